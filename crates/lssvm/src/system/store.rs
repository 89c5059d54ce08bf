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
//! Where rows live on several ranks, each keeps the tiles that it has a use for ([`Keep`]).
//!
//! In half precision the values are divided by the largest of the diagonal, which
//! bounds them all for a positive kernel, so that none overflows.

use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::grid::{Grid, Place, TILE};
use crate::kernel::{FillBlock, Kernel, Samples, SamplesRef};
use crate::linalg::factor::mirror_lower;
use crate::linalg::half::{self, f16};
use crate::linalg::two_sided::Tile;
use crate::linalg::{Aligned, MatMut, MatRef, Matrix, Scalar};
use crate::ranks::Shares;
use crate::{Error, Result};

/// Rows of a tile in half precision that are widened together: with 1024 columns in `f32` they
/// fill a quarter of a megabyte and stay in the second-level cache until they are used.
const PANEL: usize = 64;

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

/// Which tiles a rank keeps. Where there is one rank, all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Those that it looks at in a product: N²/2R values.
    Share,
    /// All that its own rows have a part in, so that it can change any of them alone: N²/R
    /// values.
    Rows,
}

/// The lower half of Ω, or what a rank keeps of it: its tiles one after the other in memory,
/// row after row.
#[derive(Debug)]
pub struct Store<T: Scalar> {
    values: Values<T>,
    grid: Grid,
    /// Where the tiles begin that are kept, in the order of [`Grid::places`].
    starts: Vec<usize>,
}

/// The beginning of a tile that is not kept.
const NOWHERE: usize = usize::MAX;

#[derive(Debug)]
enum Values<T: Scalar> {
    Full(Aligned<T>),
    Half { values: Aligned<f16>, scale: T },
}

impl<T: Scalar> Store<T> {
    /// Room for Ω, of which nothing is computed yet. `largest`: what bounds its values.
    pub(super) fn new(format: Format, grid: &Grid, keep: Keep, largest: f64) -> Self {
        let kept = |place: Place| match keep {
            Keep::Share => grid.is_mine(place),
            Keep::Rows => grid.touches(place),
        };
        let mut end = 0;
        let start = |place: Place| match kept(place) {
            true => {
                let start = end;
                end += grid.size(place);
                start
            }
            false => NOWHERE,
        };
        let starts = grid.places().map(start).collect();
        let values = match format {
            Format::Full => Values::Full(Aligned::zeros(end)),
            Format::Half => Values::Half {
                values: Aligned::zeros(end),
                scale: T::from_f64(largest),
            },
        };
        Self {
            values,
            grid: grid.clone(),
            starts,
        }
    }

    /// Whether a tile is kept.
    pub(super) fn keeps(&self, place: Place) -> bool {
        self.starts[index(place)] != NOWHERE
    }

    /// Computes these tiles, which are kept, on the pool. `progress` is told the share that is
    /// done and may return false to give up, which ends in an error.
    pub(super) fn fill(
        &mut self,
        places: &[Place],
        progress: &mut dyn FnMut(f64) -> bool,
        make: &MakeTile<'_, T>,
    ) -> Result<()> {
        let (grid, starts) = (&self.grid, &self.starts);
        match &mut self.values {
            Values::Full(values) => {
                let make = |_: &mut (), place: Place, out: &mut [T]| make(place, out);
                each_tile(values, (grid, starts), places, progress, make)
            }
            Values::Half { values, scale } => {
                let scale = scale.to_f64();
                let narrow = |tile: &mut Vec<T>, place: Place, out: &mut [f16]| {
                    tile.resize(out.len(), T::ZERO);
                    make(place, tile);
                    half::narrow(tile, out, scale);
                };
                each_tile(values, (grid, starts), places, progress, narrow)
            }
        }
    }

    /// A matrix that was computed elsewhere; only its lower half is read.
    pub fn of_matrix(omega: &Matrix<T>) -> Self {
        let n = omega.rows();
        assert_eq!(n, omega.cols(), "a kernel matrix is square");
        let grid = Grid::new(&Shares::whole(n));
        let mut store = Self::new(Format::Full, &grid, Keep::Share, 1.0);
        let copy = |(row, column), out: &mut [T]| {
            let (rows, columns) = (grid.extent(row), grid.extent(column));
            for (i, out) in rows.zip(out.chunks_exact_mut(columns.len())) {
                for (j, out) in columns.clone().zip(out) {
                    *out = omega.get(i.max(j), i.min(j));
                }
            }
        };
        // It cannot be interrupted, since nobody is asked.
        let places: Vec<Place> = grid.places().collect();
        let _ = store.fill(&places, &mut |_| true, &copy);
        store
    }

    /// The diagonal.
    pub(super) fn diagonal(&self) -> Vec<f64> {
        let (mut all, mut scratch) = (Vec::new(), Vec::new());
        for row in self.grid.own() {
            self.panels((row, row), TILE, &mut scratch, &mut |top, panel| {
                let values = (0..panel.rows()).map(|i| panel.row(i)[top + i].to_f64());
                all.extend(values);
            });
        }
        all
    }

    /// Bytes of a store for `n` rows, if one rank keeps all of it.
    pub fn bytes(n: usize, format: Format) -> u64 {
        let values = all_values(n) as u64;
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
        let copy = |place: Place| {
            let (rows, columns) = self.shape(place);
            let start = self.starts[index(place)];
            let tile = &values[start..start + rows * columns];
            Matrix::from_vec(rows, columns, tile.to_vec())
        };
        let places: Vec<Place> = self.grid.places().collect();
        Some(places.into_par_iter().map(copy).collect())
    }

    /// Rows and columns of a tile.
    fn shape(&self, (row, column): Place) -> (usize, usize) {
        (self.grid.extent(row).len(), self.grid.extent(column).len())
    }

    /// A tile that is kept.
    pub(super) fn tile(&self, place: Place) -> Tile<'_, T> {
        let (rows, columns) = self.shape(place);
        let start = self.starts[index(place)];
        let range = start..start + rows * columns;
        match &self.values {
            Values::Full(values) => Tile::Full(&values[range]),
            Values::Half { values, scale } => Tile::Half(&values[range], *scale),
        }
    }

    /// Shows a tile in panels of `height` rows, with the place of the first. Values in half
    /// precision are widened in `scratch`.
    fn panels(&self, place: Place, height: usize, scratch: &mut Vec<T>, show: &mut Show<'_, T>) {
        let (rows, columns) = self.shape(place);
        for top in (0..rows).step_by(height) {
            let bottom = (top + height).min(rows);
            let range = top * columns..bottom * columns;
            let values = match self.tile(place) {
                Tile::Full(values) => &values[range],
                Tile::Half(values, scale) => {
                    scratch.resize(range.len(), T::ZERO);
                    half::widen(&values[range], scratch, scale);
                    &scratch[..]
                }
            };
            show(top, MatRef::new(bottom - top, columns, values));
        }
    }

    /// Copies columns of Ω, all of which is kept, into `out`, N × `width`: column `sample` of Ω goes to
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
        for column in 0..self.grid.len() {
            let within = self.grid.extent(column);
            let first = picks.partition_point(|p| p.0 < within.start);
            let end = picks.partition_point(|p| p.0 < within.end);
            let picks = Picks {
                picks: &picks[first..end],
                start: within.start,
                width,
            };
            if column <= row {
                self.panels((row, column), height, scratch, &mut |top, panel| {
                    picks.copy(panel, &mut out[top * width..]);
                });
            } else {
                self.panels((column, row), height, scratch, &mut |top, panel| {
                    picks.copy_mirrored(top, panel, out);
                });
            }
        }
    }
}

/// Is shown a few rows of a tile, and the place of the first.
type Show<'a, T> = dyn FnMut(usize, MatRef<'_, T>) + 'a;

/// The values of all tiles of the lower half.
fn all_values(n: usize) -> usize {
    let (whole, rest) = (n / TILE, n % TILE);
    whole * (whole + 1) / 2 * TILE * TILE + rest * (whole * TILE + rest)
}

/// Rows of Ω that tile row `index` covers.
pub(super) fn extent(index: usize, n: usize) -> Range<usize> {
    (index * TILE).min(n)..((index + 1) * TILE).min(n)
}

/// Row and column of all tiles, in their order.
fn places(n: usize) -> Vec<Place> {
    Grid::new(&Shares::whole(n)).places().collect()
}

/// The number of a tile in the order of [`Grid::places`].
fn index((row, column): Place) -> usize {
    row * (row + 1) / 2 + column
}

/// Writes the tile in this row and column.
pub(super) type MakeTile<'a, V> = dyn Fn(Place, &mut [V]) + Sync + 'a;

/// Gives each of these tiles, which are kept, its place in memory, on the pool; `make` also gets
/// a space of its own, which it finds as it left it. `progress` as for [`Store::fill`].
fn each_tile<V: Send, S: Default + Send>(
    values: &mut [V],
    (grid, starts): (&Grid, &[usize]),
    places: &[Place],
    progress: &mut dyn FnMut(f64) -> bool,
    make: impl Fn(&mut S, Place, &mut [V]) + Sync,
) -> Result<()> {
    let mut places = places.to_vec();
    places.sort_unstable_by_key(|&place| starts[index(place)]);
    let (mut rest, mut at, mut done) = (values, 0, 0);
    for turn in places.chunks(TILES_PER_TURN * rayon::current_num_threads()) {
        let mut tiles = Vec::with_capacity(turn.len());
        for &place in turn {
            let (start, size) = (starts[index(place)], grid.size(place));
            let (_, own) = rest.split_at_mut(start - at);
            let (tile, after) = own.split_at_mut(size);
            tiles.push((place, tile));
            (rest, at) = (after, start + size);
        }
        tiles
            .into_par_iter()
            .for_each_init(S::default, |space, (place, tile)| make(space, place, tile));
        done += turn.len();
        if !progress(done as f64 / places.len() as f64) {
            return Err(Error::Interrupted);
        }
    }
    Ok(())
}

/// Computes a tile of Ω, or of what it is a function of: of the rows `x` and, as columns,
/// the rows `z`, which are the same on the `diagonal`.
pub(super) fn fill_tile<T: Scalar>(
    kernel: &impl FillBlock<T>,
    (x, z): (SamplesRef<'_, T>, SamplesRef<'_, T>),
    diagonal: bool,
    out: &mut [T],
) {
    let (rows, columns) = (x.len(), z.len());
    for left in (0..columns).step_by(FILLED_COLUMNS) {
        let right = (left + FILLED_COLUMNS).min(columns);
        let part = MatMut::strided(rows, right - left, columns, &mut out[left..]);
        kernel.fill(part, x, z.range(left, right));
    }
    if diagonal {
        // Rounding may differ between the two halves of a product.
        mirror_lower(MatMut::new(rows, columns, out));
    }
}

/// All tiles of Ω, or of what it is a function of, row after row. `progress` as for [`Store::fill`].
pub(super) fn compute_tiles<T: Scalar>(
    kernel: &impl FillBlock<T>,
    samples: &Samples<T>,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Vec<Matrix<T>>> {
    let n = samples.len();
    tiles_by(n, progress, &|(row, column)| {
        let (rows, columns) = (extent(row, n), extent(column, n));
        let mut tile = Matrix::zeros(rows.len(), columns.len());
        let x = samples.range(rows.start, rows.end);
        let z = samples.range(columns.start, columns.end);
        fill_tile(kernel, (x, z), row == column, tile.values_mut());
        tile
    })
}

/// A tile for each place of the lower half, row after row. `progress` as for [`Store::fill`].
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

/// The largest Ω(x, x), which bounds |Ω(x, z)| for a positive kernel.
pub(super) fn largest_of_diagonal<T: Scalar>(kernel: &Kernel, samples: &Samples<T>) -> f64 {
    let diagonal = diagonal(kernel, samples);
    diagonal.into_iter().fold(0.0, f64::max)
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
