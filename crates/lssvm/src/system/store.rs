//! Ω kept in memory: its lower half, in square tiles.
//!
//! ```text
//!     tile (r, c), r ≥ c:   Ω(rows of r, rows of c)
//! ```
//!
//! Ω is symmetric, so that a tile serves its own rows and, transposed, those of
//! its mirror image: N²/2 values and a little more (diagonal tiles are whole).
//! Computing it costs half of what one pass over all strips costs; after that a
//! strip of J columns is a copy.

use rayon::prelude::*;

use crate::kernel::{FillBlock, Kernel, Samples};
use crate::linalg::factor::mirror_lower;
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// Rows of a tile: large enough for the speed of the matrix product, small
/// enough to be spread over threads.
const TILE: usize = 1024;

/// Rows of a mirrored tile that are copied together, so that the lines they are
/// written to stay in the first-level cache.
const MIRRORED_ROWS: usize = 32;

/// Tiles a thread computes between two looks at the clock.
const TILES_PER_TURN: usize = 16;

/// The lower half of Ω.
#[derive(Debug)]
pub struct Store<T: Scalar> {
    tiles: Vec<Matrix<T>>,
    n: usize,
}

impl<T: Scalar> Store<T> {
    /// Computes Ω of these rows. `progress` is told the share that is done and
    /// may return false to give up, which ends in an error.
    pub fn new(
        kernel: &Kernel,
        samples: &Samples<T>,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Self> {
        let n = samples.len();
        let places: Vec<(usize, usize)> = (0..n.div_ceil(TILE))
            .flat_map(|row| (0..=row).map(move |column| (row, column)))
            .collect();
        let mut tiles = Vec::with_capacity(places.len());
        for turn in places.chunks(TILES_PER_TURN * rayon::current_num_threads()) {
            tiles.par_extend(turn.par_iter().map(|&(row, column)| {
                let (rows, columns) = (extent(row, n), extent(column, n));
                let mut tile = Matrix::zeros(rows.len(), columns.len());
                let x = samples.range(rows.start, rows.end);
                let z = samples.range(columns.start, columns.end);
                kernel.fill(tile.view_mut(), x, z);
                if row == column {
                    // Rounding may differ between the two halves of a product.
                    mirror_lower(&mut tile);
                }
                tile
            }));
            if !progress(tiles.len() as f64 / places.len() as f64) {
                return Err(Error::Interrupted);
            }
        }
        Ok(Self { tiles, n })
    }

    /// Bytes of a store for `n` rows.
    pub fn bytes(n: usize) -> u64 {
        let whole = (n / TILE) as u64;
        let rest = (n % TILE) as u64;
        let tile = TILE as u64;
        let values = whole * (whole + 1) / 2 * tile * tile + rest * (whole * tile + rest);
        values * size_of::<T>() as u64
    }

    /// Copies columns of Ω into `out`, N × `width`: column `sample` of Ω goes to
    /// column `place`, for each pair of `picks`. Quickest if both ascend.
    pub(super) fn copy_columns(&self, picks: &mut [(usize, usize)], out: &mut [T], width: usize) {
        picks.sort_unstable();
        let picks = &*picks;
        out.par_chunks_mut(TILE * width)
            .enumerate()
            .for_each(|(row, out)| {
                for column in 0..self.n.div_ceil(TILE) {
                    let within = extent(column, self.n);
                    let first = picks.partition_point(|p| p.0 < within.start);
                    let end = picks.partition_point(|p| p.0 < within.end);
                    let picks = Picks {
                        picks: &picks[first..end],
                        start: within.start,
                    };
                    if column <= row {
                        picks.copy(self.tile(row, column), out, width);
                    } else {
                        picks.copy_mirrored(self.tile(column, row), out, width);
                    }
                }
            });
    }

    fn tile(&self, row: usize, column: usize) -> &Matrix<T> {
        &self.tiles[row * (row + 1) / 2 + column]
    }
}

/// Rows of Ω that tile row `index` covers.
fn extent(index: usize, n: usize) -> std::ops::Range<usize> {
    index * TILE..((index + 1) * TILE).min(n)
}

/// The columns to be copied that lie in one tile column, which starts at `start`.
struct Picks<'a> {
    picks: &'a [(usize, usize)],
    start: usize,
}

impl Picks<'_> {
    /// From columns of the tile.
    fn copy<T: Scalar>(&self, tile: &Matrix<T>, out: &mut [T], width: usize) {
        for (i, out) in out.chunks_exact_mut(width).enumerate() {
            let row = tile.row(i);
            for &(sample, place) in self.picks {
                out[place] = row[sample - self.start];
            }
        }
    }

    /// From rows of the tile on the other side of the diagonal.
    fn copy_mirrored<T: Scalar>(&self, tile: &Matrix<T>, out: &mut [T], width: usize) {
        for (part, out) in out.chunks_mut(MIRRORED_ROWS * width).enumerate() {
            for &(sample, place) in self.picks {
                let values = &tile.row(sample - self.start)[part * MIRRORED_ROWS..];
                for (out, &v) in out.chunks_exact_mut(width).zip(values) {
                    out[place] = v;
                }
            }
        }
    }
}
