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

use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::kernel::{FillBlock, Kernel, Samples};
use crate::linalg::factor::mirror_lower;
use crate::linalg::half::{self, f16};
use crate::linalg::skinny::Ahead;
use crate::linalg::{MatMut, MatRef, Matrix, Scalar, huge};
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

/// Columns of a tile that are computed at once, and mapped while they are in the cache: 282
/// GFLOP/s, where the bare product of a whole tile reached 277 and a whole tile 265 (784
/// features, f32, two threads).
const FILLED_COLUMNS: usize = 256;

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

/// The lower half of Ω: its tiles one after the other in memory, row after row.
#[derive(Debug)]
pub struct Store<T: Scalar> {
    values: Values<T>,
    n: usize,
}

#[derive(Debug)]
enum Values<T: Scalar> {
    Full(Vec<T>),
    Half { values: Vec<f16>, scale: T },
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
        let n = samples.len();
        let values = match format {
            Format::Full => {
                let mut values = huge::zeros(values_before(n.div_ceil(TILE), 0, n));
                each_tile(&mut values, n, progress, &|place, out: &mut [T]| {
                    fill_tile(kernel, samples, place, out);
                })?;
                Values::Full(values)
            }
            Format::Half => {
                let scale = largest_of_diagonal(kernel, samples);
                let mut values = huge::zeros(values_before(n.div_ceil(TILE), 0, n));
                each_tile(&mut values, n, progress, &|place, out: &mut [f16]| {
                    let mut tile = vec![T::ZERO; out.len()];
                    fill_tile(kernel, samples, place, &mut tile);
                    half::narrow(&tile, out, scale);
                })?;
                Values::Half {
                    values,
                    scale: T::from_f64(scale),
                }
            }
        };
        Ok(Self { values, n })
    }

    /// A matrix that was computed elsewhere; only its lower half is read.
    pub fn of_matrix(omega: &Matrix<T>) -> Self {
        let n = omega.rows();
        assert_eq!(n, omega.cols(), "a kernel matrix is square");
        let mut values = huge::zeros(values_before(n.div_ceil(TILE), 0, n));
        let copy = |(row, column), out: &mut [T]| {
            let (rows, columns) = (extent(row, n), extent(column, n));
            for (i, out) in rows.zip(out.chunks_exact_mut(columns.len())) {
                for (j, out) in columns.clone().zip(out) {
                    *out = omega.get(i.max(j), i.min(j));
                }
            }
        };
        // It cannot be interrupted, since nobody is asked.
        let _ = each_tile(&mut values, n, &mut |_| true, &copy);
        Self {
            values: Values::Full(values),
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
        let values = values_before(n.div_ceil(TILE), 0, n) as u64;
        values
            * match format {
                Format::Full => size_of::<T>() as u64,
                Format::Half => size_of::<f16>() as u64,
            }
    }

    /// How the values are kept.
    pub fn format(&self) -> Format {
        match self.values {
            Values::Full(_) => Format::Full,
            Values::Half { .. } => Format::Half,
        }
    }

    /// Copies of the tiles, row after row; none if they are in half precision.
    pub(super) fn copy_tiles(&self) -> Option<Vec<Matrix<T>>> {
        let Values::Full(values) = &self.values else {
            return None;
        };
        let copy = |(row, column)| {
            let (rows, columns) = (extent(row, self.n).len(), extent(column, self.n).len());
            let tile = &values[self.range(row, column)];
            Matrix::from_vec(rows, columns, tile.to_vec())
        };
        Some(places(self.n).into_par_iter().map(copy).collect())
    }

    /// Where the values of a tile are.
    fn range(&self, row: usize, column: usize) -> Range<usize> {
        let start = values_before(row, column, self.n);
        start..start + extent(row, self.n).len() * extent(column, self.n).len()
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
        let start = self.range(row, column).start;
        for top in (0..rows).step_by(height) {
            let bottom = (top + height).min(rows);
            let range = start + top * columns..start + bottom * columns;
            match &self.values {
                Values::Full(values) => {
                    let ahead = ahead(values, &range);
                    let panel = MatRef::new(bottom - top, columns, &values[range]);
                    show(top, panel, ahead);
                }
                Values::Half { values, scale } => {
                    let ahead = ahead(values, &range);
                    scratch.resize(range.len(), T::ZERO);
                    half::widen(&values[range], scratch, *scale);
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
        out.par_chunks_mut(TILE * width)
            .enumerate()
            .for_each_init(Vec::new, |scratch, (row, out)| {
                self.copy_tile_row(row, picks, out, width, scratch)
            });
    }

    /// The same for one tile row, on this thread; the columns of Ω must ascend.
    pub(super) fn copy_tile_row(
        &self,
        row: usize,
        picks: &[(usize, usize)],
        out: &mut [T],
        width: usize,
        scratch: &mut Vec<T>,
    ) {
        let height = match self.format() {
            Format::Full => TILE,
            Format::Half => PANEL,
        };
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
    }
}

/// Is shown a few rows of a tile, the place of the first, and what will be read next.
pub(super) type Show<'a, T> = dyn FnMut(usize, MatRef<'_, T>, Ahead) + 'a;

/// As many values as in this range, after it.
fn ahead<V>(values: &[V], range: &Range<usize>) -> Ahead {
    let end = (range.end + range.len()).min(values.len());
    Ahead::of(&values[range.end..end])
}

/// The values of all tiles before tile (`row`, `column`); with one row more than there
/// are, those of all tiles.
fn values_before(row: usize, column: usize, n: usize) -> usize {
    let whole = row.min(n / TILE);
    let rest = if row > whole { n % TILE } else { 0 };
    let rows_before = whole * (whole + 1) / 2 * TILE * TILE + rest * (whole * TILE + rest);
    rows_before + column * TILE * extent(row, n).len()
}

/// Rows of Ω that tile row `index` covers.
pub(super) fn extent(index: usize, n: usize) -> Range<usize> {
    (index * TILE).min(n)..((index + 1) * TILE).min(n)
}

/// Row and column of all tiles, in their order.
fn places(n: usize) -> Vec<(usize, usize)> {
    let rows = 0..n.div_ceil(TILE);
    rows.flat_map(|row| (0..=row).map(move |column| (row, column)))
        .collect()
}

/// Writes the tile in this row and column.
type MakeTile<'a, V> = dyn Fn((usize, usize), &mut [V]) + Sync + 'a;

/// Gives each tile its place in memory, on the pool. `progress` as for [`Store::new`].
fn each_tile<V: Send>(
    values: &mut [V],
    n: usize,
    progress: &mut dyn FnMut(f64) -> bool,
    make: &MakeTile<'_, V>,
) -> Result<()> {
    let places = places(n);
    let mut rest = values;
    let mut done = 0;
    for turn in places.chunks(TILES_PER_TURN * rayon::current_num_threads()) {
        let mut tiles = Vec::with_capacity(turn.len());
        for &(row, column) in turn {
            let size = extent(row, n).len() * extent(column, n).len();
            let (tile, after) = rest.split_at_mut(size);
            tiles.push(((row, column), tile));
            rest = after;
        }
        tiles
            .into_par_iter()
            .for_each(|(place, tile)| make(place, tile));
        done += turn.len();
        if !progress(done as f64 / places.len() as f64) {
            return Err(Error::Interrupted);
        }
    }
    Ok(())
}

/// Computes a tile of Ω, or of what it is a function of.
pub(super) fn fill_tile<T: Scalar>(
    kernel: &impl FillBlock<T>,
    samples: &Samples<T>,
    (row, column): (usize, usize),
    out: &mut [T],
) {
    let n = samples.len();
    let (rows, columns) = (extent(row, n), extent(column, n));
    let x = samples.range(rows.start, rows.end);
    for left in columns.clone().step_by(FILLED_COLUMNS) {
        let right = (left + FILLED_COLUMNS).min(columns.end);
        let out = &mut out[left - columns.start..];
        let part = MatMut::strided(rows.len(), right - left, columns.len(), out);
        kernel.fill(part, x, samples.range(left, right));
    }
    if row == column {
        // Rounding may differ between the two halves of a product.
        mirror_lower(MatMut::new(rows.len(), columns.len(), out));
    }
}

/// All tiles of Ω, or of what it is a function of, row after row. `progress` as for [`Store::new`].
pub(super) fn compute_tiles<T: Scalar>(
    kernel: &impl FillBlock<T>,
    samples: &Samples<T>,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Vec<Matrix<T>>> {
    let n = samples.len();
    tiles_by(n, progress, &|(row, column)| {
        let mut tile = Matrix::zeros(extent(row, n).len(), extent(column, n).len());
        fill_tile(kernel, samples, (row, column), tile.values_mut());
        tile
    })
}

/// A tile for each place of the lower half, row after row. `progress` as for [`Store::new`].
pub(super) fn tiles_by<T: Scalar>(
    n: usize,
    progress: &mut dyn FnMut(f64) -> bool,
    make: &(dyn Fn((usize, usize)) -> Matrix<T> + Sync),
) -> Result<Vec<Matrix<T>>> {
    let places = places(n);
    let mut tiles = Vec::with_capacity(places.len());
    for turn in places.chunks(TILES_PER_TURN * rayon::current_num_threads()) {
        tiles.par_extend(turn.par_iter().map(|&place| make(place)));
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
pub fn diagonal<T: Scalar>(kernel: &Kernel, samples: &Samples<T>) -> Vec<f64> {
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
