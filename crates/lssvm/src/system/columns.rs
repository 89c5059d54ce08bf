//! Some columns of Ω, for all rows but never all at once.
//!
//! What a preconditioner is made of: tile row by tile row, so that N × m values need not
//! be in memory. Where rows live on several ranks, each has the tile rows of its own.

use rayon::prelude::*;

use super::System;
use super::strip::SMALL_TILE;
use crate::kernel::{FillBlock, Samples};
use crate::linalg::{MatMut, Matrix, Scalar};

impl<T: Scalar> System<T> {
    /// These training rows, whoever has them, on every rank.
    pub(super) fn select(&self, rows: &[usize]) -> Samples<T> {
        match self.shares.is_alone() {
            true => self.samples.select(rows),
            false => {
                let points = self.shares.pick_points(self.samples.points(), rows);
                Samples::new(points, &self.kernel)
            }
        }
    }

    /// Ω[:, these rows], to be read tile row by tile row.
    pub fn columns(&self, rows: Vec<usize>) -> Columns<'_, T> {
        let selected = match self.store {
            Some(_) if self.shares.is_alone() => None,
            _ => Some(self.select(&rows)),
        };
        Columns {
            system: self,
            picks: rows.into_iter().zip(0..).collect(),
            selected,
        }
    }
}

/// Some columns of Ω: read from the store if all of it is kept here, else computed.
pub struct Columns<'a, T: Scalar> {
    system: &'a System<T>,
    /// Column of Ω and its place.
    picks: Vec<(usize, usize)>,
    selected: Option<Samples<T>>,
}

impl<T: Scalar> Columns<'_, T> {
    /// Writes what is in the rows of this tile row of this rank to `out`, on this thread.
    pub fn tile_row(&self, place: usize, out: &mut Vec<T>, scratch: &mut Vec<T>) {
        let (system, width) = (self.system, self.picks.len());
        let rows = system.own_rows_of_tiles(&(place..place + 1));
        out.resize(rows.len() * width, T::ZERO);
        match (&system.store, &self.selected) {
            (Some(store), None) => store.copy_tile_row(place, &self.picks, out, width, scratch),
            (_, Some(selected)) => {
                let x = system.samples.range(rows.start, rows.end);
                for left in (0..width).step_by(SMALL_TILE.1) {
                    let right = (left + SMALL_TILE.1).min(width);
                    let out = &mut out[left..];
                    let part = MatMut::strided(rows.len(), right - left, width, out);
                    system.kernel.fill(part, x, selected.range(left, right));
                }
            }
            (None, None) => unreachable!("selected if there is no store"),
        }
    }

    /// The rows of Ω with these indices, which ascend, on every rank.
    pub fn rows(&self, rows: &[usize]) -> Matrix<T> {
        let width = self.picks.len();
        let mut all = Matrix::zeros(rows.len(), width);
        let tiles = self.system.own_tiles();
        let start = |tile: usize| self.system.rows_of_tiles(&(tile..tile)).start;
        let bound = |tile: usize| rows.partition_point(|row| *row < start(tile));
        let mut parts = Vec::new();
        let mut rest = &mut all.values_mut()[bound(tiles.start) * width..];
        for tile in tiles.clone() {
            let (part, after) = rest.split_at_mut((bound(tile + 1) - bound(tile)) * width);
            parts.push(part);
            rest = after;
        }
        tiles.into_par_iter().zip(parts).for_each_init(
            || (Vec::new(), Vec::new()),
            |(out, scratch), (tile, part)| {
                self.tile_row(tile, out, scratch);
                let rows = &rows[bound(tile)..bound(tile + 1)];
                for (row, part) in rows.iter().zip(part.chunks_exact_mut(width)) {
                    let start = (row - start(tile)) * width;
                    part.copy_from_slice(&out[start..start + width]);
                }
            },
        );
        self.system.ranks().sum(all.values_mut());
        all
    }
}
