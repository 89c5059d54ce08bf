//! All rows, some at a time: what a rank must see of the rows of others to compute its part
//! of Ω.
//!
//! Rank after rank shows its rows to all, in bands of some tiles. Each computes the tiles
//! between its own rows and those of the band, and forgets the band. Where one rank has all
//! rows there is one band, which is nobody else's and is not copied.

use std::ops::Range;

use super::System;
use super::grid::{Grid, Place};
use super::store::fill_tile;
use crate::Result;
use crate::kernel::{Samples, SamplesRef};
use crate::linalg::Scalar;

/// Tiles of a band: 4,096 rows, of which 1,000 features in `f32` take 16 MB.
const BAND_TILES: usize = 4;

/// Rows of some tiles, wherever they live.
pub(super) struct Band<'a, T: Scalar> {
    system: &'a System<T>,
    tiles: Range<usize>,
    /// The rows, if they are of another rank.
    lent: Option<Samples<T>>,
}

impl<T: Scalar> System<T> {
    /// Shows all rows of all ranks to `f`. On every rank it is called as often.
    pub(super) fn in_bands(&self, mut f: impl FnMut(&Band<'_, T>) -> Result<()>) -> Result<()> {
        if self.shares.is_alone() {
            return f(&self.own_band(0..self.grid.len()));
        }
        for rank in 0..self.ranks().size() {
            let tiles = self.grid.of(rank);
            for start in tiles.clone().step_by(BAND_TILES) {
                f(&self.band(start..(start + BAND_TILES).min(tiles.end)))?;
            }
        }
        Ok(())
    }

    /// The rows of some tiles of one rank, on every rank.
    pub(super) fn band(&self, tiles: Range<usize>) -> Band<'_, T> {
        if self.shares.is_alone() {
            return self.own_band(tiles);
        }
        let rows = self.grid.rows(&tiles);
        let points = self.shares.give_points(self.samples.points(), &rows);
        let lent = match self.grid.own().contains(&tiles.start) {
            true => None,
            false => Some(Samples::new(points, &self.kernel)),
        };
        Band {
            system: self,
            tiles,
            lent,
        }
    }

    /// Tiles that this rank has.
    pub(super) fn own_band(&self, tiles: Range<usize>) -> Band<'_, T> {
        Band {
            system: self,
            tiles,
            lent: None,
        }
    }
}

impl<'a, T: Scalar> Band<'a, T> {
    /// The tiles between these rows and those of this rank, as far as they are wanted, each
    /// once.
    pub(super) fn places(&self, wanted: impl Fn(Place) -> bool) -> Vec<Place> {
        let grid = &self.system.grid;
        let between = |tile: usize| {
            // Those between two tile rows of this rank come up twice.
            let own = grid
                .own()
                .filter(move |&own| self.lent.is_some() || own >= tile);
            own.map(move |own| Grid::between(own, tile))
        };
        let places = self.tiles.clone().flat_map(between);
        let mut places: Vec<Place> = places.filter(|&place| wanted(place)).collect();
        places.sort_unstable();
        places
    }

    /// The share of all rows that was shown when so much of this band is done.
    pub(super) fn done(&self, share: f64) -> f64 {
        let all = self.system.grid.len() as f64;
        (self.tiles.start as f64 + share * self.tiles.len() as f64) / all
    }

    /// Values of a tile.
    pub(super) fn size(&self, place: Place) -> usize {
        self.system.grid.size(place)
    }

    /// Computes a tile between these rows and those of this rank.
    pub(super) fn fill(&self, place: Place, out: &mut [T]) {
        let (row, column) = place;
        let rows = (self.rows(row), self.rows(column));
        fill_tile(&self.system.kernel, rows, row == column, out);
    }

    fn rows(&self, tile: usize) -> SamplesRef<'_, T> {
        let grid = &self.system.grid;
        let rows = grid.extent(tile);
        let (samples, first) = match &self.lent {
            Some(lent) if self.tiles.contains(&tile) => (lent, grid.extent(self.tiles.start).start),
            _ => (&self.system.samples, self.system.shares.own().start),
        };
        samples.range(rows.start - first, rows.end - first)
    }
}
