//! Ω kept in memory: its lower half, in square tiles.
//!
//! ```text
//!     tile (r, c), r ≥ c:   Ω(rows of r, rows of c)
//! ```
//!
//! Ω is symmetric, so that a tile serves its own rows and, transposed, those of
//! its mirror image: N²/2 values and a little more (diagonal tiles are whole).
//! Computing it costs half of what one pass over all strips costs; after that a
//! strip of J columns is a copy, and a product with Ω runs at the speed of memory.
//!
//! In half precision the values are divided by the largest of the diagonal, which
//! bounds them all for a positive kernel, so that none overflows.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::kernel::{FillBlock, Kernel, Samples};
use crate::linalg::factor::mirror_lower;
use crate::linalg::half::{self, f16};
use crate::linalg::skinny::Ahead;
use crate::linalg::{MatRef, Matrix, Scalar};
use crate::{Error, Result};

/// Rows of a tile: large enough for the speed of the matrix product, small
/// enough to be spread over threads.
pub const TILE: usize = 1024;

/// Rows of a tile that are looked at together: with 1024 columns in `f32` they
/// fill a quarter of a megabyte and stay in the second-level cache while they are
/// widened and used twice.
pub(super) const PANEL: usize = 64;

/// Rows of a mirrored tile that are copied together, so that the lines they are
/// written to stay in the first-level cache.
const MIRRORED_ROWS: usize = 32;

/// Tiles a thread computes between two looks at the clock.
const TILES_PER_TURN: usize = 16;

/// How the values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// In the number type of the computation.
    Full,
    /// In 16 bits: a relative error of 2⁻¹¹ a value.
    Half,
}

/// The lower half of Ω.
#[derive(Debug)]
pub struct Store<T: Scalar> {
    tiles: Tiles<T>,
    n: usize,
}

#[derive(Debug)]
enum Tiles<T: Scalar> {
    Full(Vec<Matrix<T>>),
    Half { tiles: Vec<Vec<f16>>, scale: T },
}

impl<T: Scalar> Store<T> {
    /// Computes Ω of these rows. `progress` is told the share that is done and
    /// may return false to give up, which ends in an error.
    pub fn new(
        kernel: &Kernel,
        samples: &Samples<T>,
        format: Format,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Self> {
        let tiles = match format {
            Format::Full => Tiles::Full(compute(kernel, samples, |tile| tile, progress)?),
            Format::Half => {
                let scale = largest_of_diagonal(kernel, samples);
                let halve = |tile: Matrix<T>| {
                    let mut halved = vec![f16::ZERO; tile.values().len()];
                    half::narrow(tile.values(), &mut halved, scale);
                    halved
                };
                Tiles::Half {
                    tiles: compute(kernel, samples, halve, progress)?,
                    scale: T::from_f64(scale),
                }
            }
        };
        Ok(Self {
            tiles,
            n: samples.len(),
        })
    }

    /// A matrix that was computed elsewhere; only its lower half is read.
    pub fn of_matrix(omega: &Matrix<T>) -> Self {
        let n = omega.rows();
        assert_eq!(n, omega.cols(), "a kernel matrix is square");
        let side = n.div_ceil(TILE);
        let places = (0..side).flat_map(|row| (0..=row).map(move |column| (row, column)));
        let tile = |(row, column)| {
            let (rows, columns) = (extent(row, n), extent(column, n));
            Matrix::from_fn(rows.len(), columns.len(), |i, j| {
                let (i, j) = (rows.start + i, columns.start + j);
                omega.get(i.max(j), i.min(j))
            })
        };
        Self {
            tiles: Tiles::Full(places.map(tile).collect()),
            n,
        }
    }

    /// The diagonal.
    pub(super) fn diagonal(&self) -> Vec<f64> {
        let (mut all, mut scratch) = (Vec::with_capacity(self.n), Vec::new());
        for row in 0..self.n.div_ceil(TILE) {
            self.panels((row, row), TILE, &mut scratch, &mut |top, panel, _| {
                let values = (0..panel.rows()).map(|i| panel.row(i)[top + i].to_f64());
                all.extend(values);
            });
        }
        all
    }

    /// Bytes of a store for `n` rows.
    pub fn bytes(n: usize, format: Format) -> u64 {
        let whole = (n / TILE) as u64;
        let rest = (n % TILE) as u64;
        let tile = TILE as u64;
        let values = whole * (whole + 1) / 2 * tile * tile + rest * (whole * tile + rest);
        values
            * match format {
                Format::Full => size_of::<T>() as u64,
                Format::Half => size_of::<f16>() as u64,
            }
    }

    /// How the values are kept.
    pub fn format(&self) -> Format {
        match self.tiles {
            Tiles::Full(_) => Format::Full,
            Tiles::Half { .. } => Format::Half,
        }
    }

    /// The tiles, row after row; none if they are in half precision.
    pub fn into_tiles(self) -> Option<Vec<Matrix<T>>> {
        match self.tiles {
            Tiles::Full(tiles) => Some(tiles),
            Tiles::Half { .. } => None,
        }
    }

    /// Copies of the tiles; none if they are in half precision.
    pub(super) fn copy_tiles(&self) -> Option<Vec<Matrix<T>>> {
        match &self.tiles {
            Tiles::Full(tiles) => Some(tiles.par_iter().map(Matrix::clone).collect()),
            Tiles::Half { .. } => None,
        }
    }

    /// Shows tile (`row`, `column`) in panels of `height` rows, with the place of
    /// the first and what comes after it in memory. Values in half precision are
    /// widened in `scratch`.
    pub(super) fn panels(
        &self,
        (row, column): (usize, usize),
        height: usize,
        scratch: &mut Vec<T>,
        show: &mut Show<'_, T>,
    ) {
        let (rows, columns) = (extent(row, self.n).len(), extent(column, self.n).len());
        let place = place(row, column);
        for top in (0..rows).step_by(height) {
            let bottom = (top + height).min(rows);
            match &self.tiles {
                Tiles::Full(tiles) => {
                    let here = tiles[place].values();
                    let after = tiles.get(place + 1).map_or(&[][..], |t| t.values());
                    let ahead = ahead(here, after, bottom * columns, height * columns);
                    show(top, tiles[place].row_range(top, bottom), ahead);
                }
                Tiles::Half { tiles, scale } => {
                    let after = tiles.get(place + 1).map_or(&[][..], |t| t);
                    let ahead = ahead(&tiles[place], after, bottom * columns, height * columns);
                    let values = &tiles[place][top * columns..bottom * columns];
                    scratch.resize(values.len(), T::ZERO);
                    half::widen(values, scratch);
                    if *scale != T::ONE {
                        scratch.iter_mut().for_each(|v| *v *= *scale);
                    }
                    show(top, MatRef::new(bottom - top, columns, scratch), ahead);
                }
            }
        }
    }

    /// Copies columns of Ω into `out`, N × `width`: column `sample` of Ω goes to
    /// column `place`, for each pair of `picks`. Quickest if both ascend.
    pub(super) fn copy_columns(&self, picks: &mut [(usize, usize)], out: &mut [T], width: usize) {
        picks.sort_unstable();
        let picks = &*picks;
        let height = match self.format() {
            Format::Full => TILE,
            Format::Half => PANEL,
        };
        out.par_chunks_mut(TILE * width).enumerate().for_each_init(
            Vec::new,
            |scratch, (row, out)| {
                for column in 0..self.n.div_ceil(TILE) {
                    let within = extent(column, self.n);
                    let first = picks.partition_point(|p| p.0 < within.start);
                    let end = picks.partition_point(|p| p.0 < within.end);
                    let picks = Picks {
                        picks: &picks[first..end],
                        start: within.start,
                        width,
                    };
                    if column <= row {
                        self.panels((row, column), height, scratch, &mut |top, panel, _| {
                            picks.copy(panel, &mut out[top * width..]);
                        });
                    } else {
                        self.panels((column, row), height, scratch, &mut |top, panel, _| {
                            picks.copy_mirrored(top, panel, out);
                        });
                    }
                }
            },
        );
    }
}

/// Is shown a few rows of a tile, the place of the first, and what will be read next.
pub(super) type Show<'a, T> = dyn FnMut(usize, MatRef<'_, T>, Ahead) + 'a;

/// `length` values from `start` on in a tile, or the first of the tile after it.
fn ahead<V>(here: &[V], after: &[V], start: usize, length: usize) -> Ahead {
    match here.get(start..) {
        None | Some([]) => Ahead::of(&after[..length.min(after.len())]),
        Some(rest) => Ahead::of(&rest[..length.min(rest.len())]),
    }
}

/// Where tile (`row`, `column`) is in the list of tiles.
fn place(row: usize, column: usize) -> usize {
    row * (row + 1) / 2 + column
}

/// Rows of Ω that tile row `index` covers.
pub(super) fn extent(index: usize, n: usize) -> std::ops::Range<usize> {
    index * TILE..((index + 1) * TILE).min(n)
}

/// All tiles, each made into what will be kept of it.
fn compute<T: Scalar, K: Send>(
    kernel: &Kernel,
    samples: &Samples<T>,
    keep: impl Fn(Matrix<T>) -> K + Sync,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Vec<K>> {
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
            keep(tile)
        }));
        if !progress(tiles.len() as f64 / places.len() as f64) {
            return Err(Error::Interrupted);
        }
    }
    Ok(tiles)
}

/// The largest Ω(x, x), which bounds |Ω(x, z)| for a positive kernel; 1 if all
/// are zero.
fn largest_of_diagonal<T: Scalar>(kernel: &Kernel, samples: &Samples<T>) -> f64 {
    let diagonal = diagonal(kernel, samples);
    let largest = diagonal.into_iter().fold(0.0, f64::max);
    if largest > 0.0 { largest } else { 1.0 }
}

/// Ω(x, x) of each row.
pub(super) fn diagonal<T: Scalar>(kernel: &Kernel, samples: &Samples<T>) -> Vec<f64> {
    let one = |i: usize| {
        let mut value = Matrix::zeros(1, 1);
        let x = samples.range(i, i + 1);
        kernel.fill(value.view_mut(), x, x);
        value.get(0, 0).to_f64()
    };
    (0..samples.len()).into_par_iter().map(one).collect()
}

/// The columns to be copied that lie in one tile column, which starts at `start`.
struct Picks<'a> {
    picks: &'a [(usize, usize)],
    start: usize,
    width: usize,
}

impl Picks<'_> {
    /// From columns of the panel to rows of `out`.
    fn copy<T: Scalar>(&self, panel: MatRef<'_, T>, out: &mut [T]) {
        for (i, out) in out
            .chunks_exact_mut(self.width)
            .take(panel.rows())
            .enumerate()
        {
            let row = panel.row(i);
            for &(sample, place) in self.picks {
                out[place] = row[sample - self.start];
            }
        }
    }

    /// From rows of a panel on the other side of the diagonal, whose first is `top`.
    fn copy_mirrored<T: Scalar>(&self, top: usize, panel: MatRef<'_, T>, out: &mut [T]) {
        let first = self.start + top;
        let (from, to) = (
            self.picks.partition_point(|p| p.0 < first),
            self.picks.partition_point(|p| p.0 < first + panel.rows()),
        );
        for (part, out) in out.chunks_mut(MIRRORED_ROWS * self.width).enumerate() {
            for &(sample, place) in &self.picks[from..to] {
                let values = &panel.row(sample - first)[part * MIRRORED_ROWS..];
                for (out, &v) in out.chunks_exact_mut(self.width).zip(values) {
                    out[place] = v;
                }
            }
        }
    }
}
