//! Ω cut into square tiles, each of which belongs to a rank.
//!
//! The rows of a rank are cut into tiles of [`TILE`] rows from its first on, so that a tile
//! never has rows of two ranks. Where one rank has all rows, or every share is whole tiles,
//! these are the tiles of the matrix as it is.
//!
//! A product with Ω looks at each tile of the lower half once. Tile (r, c) is looked at by
//! the rank that has the rows of r or the one that has those of c, by turns: each rank then
//! has half of what lies between it and any other.

use std::ops::Range;

use crate::ranks::Shares;

/// Rows of a tile: large enough for the speed of the matrix product, small
/// enough to be spread over threads.
pub const TILE: usize = 1024;

/// Where the tiles are, and whose.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    /// The first row of each tile, and N.
    starts: Vec<usize>,
    /// The first tile of each rank, and their number.
    tiles: Vec<usize>,
    rank: usize,
}

/// Row and column of a tile in the lower half: the first is not the smaller.
pub(super) type Place = (usize, usize);

impl Grid {
    pub(super) fn new(shares: &Shares) -> Self {
        let ranks = shares.ranks();
        let (mut starts, mut tiles) = (Vec::new(), vec![0]);
        for rank in 0..ranks.size() {
            starts.extend(shares.of(rank).step_by(TILE));
            tiles.push(starts.len());
        }
        starts.push(shares.n());
        Self {
            starts,
            tiles,
            rank: ranks.rank(),
        }
    }

    /// Number of tiles in a row of them.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Rows of Ω that a tile row covers.
    pub(super) fn extent(&self, tile: usize) -> Range<usize> {
        self.starts[tile]..self.starts[tile + 1]
    }

    /// Rows of Ω that a range of tile rows covers.
    pub(super) fn rows(&self, tiles: &Range<usize>) -> Range<usize> {
        self.starts[tiles.start]..self.starts[tiles.end]
    }

    /// The tile rows of this rank.
    pub(super) fn own(&self) -> Range<usize> {
        self.of(self.rank)
    }

    /// The tile rows of a rank.
    pub(super) fn of(&self, rank: usize) -> Range<usize> {
        self.tiles[rank]..self.tiles[rank + 1]
    }

    /// The place of the tile between two tile rows.
    pub(super) fn between(a: usize, b: usize) -> Place {
        (a.max(b), a.min(b))
    }

    /// Whether this rank looks at a tile in a product.
    pub(super) fn is_mine(&self, (row, column): Place) -> bool {
        let tile = if (row + column) % 2 == 0 { row } else { column };
        self.own().contains(&tile)
    }

    /// Whether this rank has some of a tile's rows or columns.
    pub(super) fn touches(&self, (row, column): Place) -> bool {
        self.own().contains(&row) || self.own().contains(&column)
    }

    /// Values of a tile.
    pub(super) fn size(&self, (row, column): Place) -> usize {
        self.extent(row).len() * self.extent(column).len()
    }

    /// Row and column of all tiles, row after row.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let rows = 0..self.len();
        rows.flat_map(|row| (0..=row).map(move |column| (row, column)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::threads::on_ranks;

    #[test]
    fn each_tile_is_looked_at_once_and_shared_well() {
        for (n, unit) in [(0, 1), (5, 1), (30 * TILE + 7, 1), (30 * TILE + 7, TILE)] {
            for size in 1..5 {
                let mine = on_ranks(size, |ranks| {
                    let grid = Grid::new(&Shares::even(n, unit, &ranks));
                    let rows = (0..grid.len()).flat_map(|tile| grid.extent(tile));
                    assert!(rows.eq(0..n));
                    let mine = grid.places().map(|place| grid.is_mine(place));
                    mine.collect::<Vec<_>>()
                });
                for place in 0..mine[0].len() {
                    assert_eq!(mine.iter().filter(|mine| mine[place]).count(), 1);
                }
                if n > TILE {
                    let counts = mine
                        .iter()
                        .map(|all| all.iter().filter(|mine| **mine).count());
                    let fair = mine[0].len() / size;
                    assert!(counts.into_iter().all(|c| c < fair + fair / 3), "{size}");
                }
            }
        }
    }
}
