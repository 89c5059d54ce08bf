//! S = Ω+λI as an operator: products, and blocks of rows.
//!
//! S is positive definite where Θ is not; solvers that work on it solve
//! S [A ν] = [Y 1] and get the bias from the last column. Ω is read from the
//! store if it is kept, and else computed again, each tile of the lower half once:
//!
//! ```text
//!     tile (r, c):   out_r += T · V_c,   and   out_c += Tᵀ · V_r   if r ≠ c
//! ```
//!
//! Sums over the columns of a tile are taken in the precision of the values, sums
//! over tiles in `f64`. The order of all sums depends on the shape and the number
//! of threads alone: equal runs give equal bits.

use std::ops::Range;

use rayon::prelude::*;

use super::store::{PANEL, Show, TILE, extent, fill_tile};
use super::{Format, System};
use crate::linalg::skinny::{self, Ahead};
use crate::linalg::{MatMut, MatRef, Matrix, Scalar, padded};

/// Parts of a product for each thread, so that all end together, and the fewest.
const PARTS_PER_THREAD: usize = 4;
const FEWEST_PARTS: usize = 8;

/// Shows a tile of Ω in panels of a few rows, with the place of the first in the tile.
type Panels<'a, T> = dyn Fn((usize, usize), &mut Vec<T>, &mut Show<'_, T>) + Sync + 'a;

impl<T: Scalar> System<T> {
    /// Rows of tiles in S.
    pub fn tile_rows(&self) -> usize {
        self.n().div_ceil(TILE)
    }

    /// Training rows that a range of tile rows covers.
    pub fn rows_of_tiles(&self, tiles: &Range<usize>) -> Range<usize> {
        let n = self.n();
        (tiles.start * TILE).min(n)..(tiles.end * TILE).min(n)
    }

    /// Shows tile (`row`, `column`), `row` ≥ `column`, of Ω in panels of a few
    /// rows, with the place of the first in the tile.
    fn panels(&self, place: (usize, usize), scratch: &mut Vec<T>, show: &mut Show<'_, T>) {
        match &self.store {
            Some(store) => store.panels(place, PANEL, scratch, show),
            None => self.computed_panels(place, scratch, show),
        }
    }

    /// The same, computed here and now.
    fn computed_panels(
        &self,
        (row, column): (usize, usize),
        scratch: &mut Vec<T>,
        show: &mut Show<'_, T>,
    ) {
        let (rows, columns) = (extent(row, self.n()), extent(column, self.n()));
        scratch.resize(rows.len() * columns.len(), T::ZERO);
        fill_tile(&self.kernel, &self.samples, (row, column), scratch);
        for (place, panel) in scratch.chunks(PANEL * columns.len()).enumerate() {
            let panel = MatRef::new(panel.len() / columns.len(), columns.len(), panel);
            show(place * PANEL, panel, Ahead::NOTHING);
        }
    }

    /// S · V, summed in `f64`; Ω as it is kept, or computed again.
    pub fn shifted_product(&self, v: &Matrix<T>) -> Matrix<f64> {
        self.product_by(v, &|place, scratch, show| self.panels(place, scratch, show))
    }

    /// S · V, summed in `f64`; if Ω is kept in half precision it is computed again.
    pub fn true_product(&self, v: &Matrix<T>) -> Matrix<f64> {
        match self.kept() {
            Some(Format::Full) => self.shifted_product(v),
            _ => self.product_by(v, &|place, scratch, show| {
                self.computed_panels(place, scratch, show)
            }),
        }
    }

    /// S · V of the tiles that `panels` shows.
    fn product_by(&self, v: &Matrix<T>, panels: &Panels<'_, T>) -> Matrix<f64> {
        let (n, k) = (self.n(), v.cols());
        assert_eq!(v.rows(), n);
        let wide = padded::padded(v.view());
        let parts = equal_parts(self.tile_rows(), product_parts());
        let partial: Vec<Matrix<f64>> = parts
            .into_par_iter()
            .map(|part| self.product_of_part(part, v, &wide, panels))
            .collect();
        let mut out = Matrix::from_fn(n, k, |i, c| self.lambdas[i] * v.get(i, c).to_f64());
        for part in partial {
            let pairs = out.values_mut().iter_mut().zip(part.values());
            pairs.for_each(|(out, &p)| *out += p);
        }
        out
    }

    /// What the tiles of some tile rows contribute to Ω · V: rows 0 to the last
    /// that they cover.
    fn product_of_part(
        &self,
        part: Range<usize>,
        v: &Matrix<T>,
        wide: &Matrix<T>,
        panels: &Panels<'_, T>,
    ) -> Matrix<f64> {
        let (k, width) = (v.cols(), wide.cols());
        let mut out = Matrix::<f64>::zeros(self.rows_of_tiles(&part).end, k);
        let (mut scratch, mut own, mut mirrored) = (Vec::new(), Vec::new(), Vec::new());
        for row in part {
            let rows = extent(row, self.n());
            for column in 0..=row {
                let columns = extent(column, self.n());
                let v_c = wide.row_range(columns.start, columns.end);
                own.clear();
                own.resize(rows.len() * width, T::ZERO);
                mirrored.clear();
                mirrored.resize(k * columns.len(), T::ZERO);
                panels((row, column), &mut scratch, &mut |top, panel, ahead| {
                    let bottom = top + panel.rows();
                    let here = &mut own[top * width..bottom * width];
                    let here = MatMut::new(panel.rows(), width, here);
                    padded::add_product(here, panel, v_c, ahead);
                    if row != column {
                        let v = v.row_range(rows.start + top, rows.start + bottom);
                        skinny::add_transposed_product(&mut mirrored, panel, v);
                    }
                });
                let sums = out.values_mut()[rows.start * k..].chunks_exact_mut(k);
                sums.zip(own.chunks_exact(width))
                    .for_each(|(out, own)| add(out, own));
                if row != column {
                    let out = &mut out.values_mut()[columns.start * k..columns.end * k];
                    add_transposed(out, &mirrored, k);
                }
            }
        }
        out
    }

    /// `r −= S[:, rows of these tiles] · change`, in the rows of the tile rows that are
    /// `wanted`; what happens to others does not matter.
    pub fn subtract_columns(
        &self,
        r: &mut Matrix<T>,
        tiles: &Range<usize>,
        change: &Matrix<T>,
        wanted: impl Fn(usize) -> bool + Sync,
    ) {
        let k = r.cols();
        let within = self.rows_of_tiles(tiles);
        assert_eq!((change.rows(), change.cols()), (within.len(), k));
        let negative = skinny::transpose_scaled(change.view(), -T::ONE);
        r.values_mut()
            .par_chunks_mut(TILE * k)
            .enumerate()
            .filter(|(other, _)| wanted(*other))
            .for_each_init(
                || (Vec::new(), Vec::new()),
                |(scratch, sums), (other, r)| {
                    for tile in tiles.clone() {
                        let rows = extent(tile, self.n());
                        let place = rows.start - within.start..rows.end - within.start;
                        if other >= tile {
                            let change = negative.view().col_range(place.start, place.end);
                            self.panels((other, tile), scratch, &mut |top, panel, ahead| {
                                let r = &mut r[top * k..(top + panel.rows()) * k];
                                let r = MatMut::new(panel.rows(), k, r);
                                skinny::add_product_and_fetch(r, panel, change, ahead);
                            });
                        } else {
                            sums.clear();
                            sums.resize(r.len(), T::ZERO);
                            self.panels((tile, other), scratch, &mut |top, panel, _| {
                                let start = place.start + top;
                                let change = change.row_range(start, start + panel.rows());
                                skinny::add_transposed_product(sums, panel, change);
                            });
                            let width = r.len() / k;
                            for (i, r) in r.chunks_exact_mut(k).enumerate() {
                                for (c, r) in r.iter_mut().enumerate() {
                                    *r -= sums[c * width + i];
                                }
                            }
                        }
                    }
                },
            );
        let own = r.values_mut()[within.start * k..within.end * k].chunks_exact_mut(k);
        for (i, (r, &lambda)) in own.zip(&self.lambdas[within]).enumerate() {
            let lambda = T::from_f64(lambda);
            let pairs = r.iter_mut().zip(change.row(i));
            pairs.for_each(|(r, &c)| *r -= lambda * c);
        }
    }

    /// The tiles of Ω[rows of these tiles, the same rows] in its lower half, row after
    /// row, to be worked on.
    pub fn block_tiles(&self, tiles: &Range<usize>) -> Vec<Matrix<T>> {
        let places: Vec<_> = tiles
            .clone()
            .flat_map(|row| (tiles.start..=row).map(move |column| (row, column)))
            .collect();
        let tile = |scratch: &mut Vec<T>, (row, column)| {
            let (rows, columns) = (extent(row, self.n()), extent(column, self.n()));
            let mut values = Vec::with_capacity(rows.len() * columns.len());
            self.panels((row, column), scratch, &mut |_, panel, _| {
                (0..panel.rows()).for_each(|i| values.extend_from_slice(panel.row(i)));
            });
            Matrix::from_vec(rows.len(), columns.len(), values)
        };
        places.into_par_iter().map_init(Vec::new, tile).collect()
    }

    /// The tile of Ω on its diagonal in this tile row, to be worked on.
    pub fn diagonal_tile(&self, place: usize) -> Matrix<T> {
        let only = self.block_tiles(&(place..place + 1)).pop();
        only.expect("a block of one tile row has one tile")
    }
}

/// How many sums a product is shared into.
fn product_parts() -> usize {
    (PARTS_PER_THREAD * rayon::current_num_threads()).max(FEWEST_PARTS)
}

/// Bytes of the sums of a product with `k` columns: a part has those of all rows up to its
/// last, on average two thirds of them.
pub fn product_bytes(n: usize, k: usize) -> u64 {
    let all = (n * k * size_of::<f64>()) as u64;
    all * (2 * product_parts() as u64 + 1) / 3
}

/// Cuts tile rows 0 to `rows`, of which row r has r + 1 tiles, into at most
/// `parts` ranges of about as many tiles.
fn equal_parts(rows: usize, parts: usize) -> Vec<Range<usize>> {
    let bound = |part: usize| {
        let share = (part as f64 / parts as f64).sqrt();
        (rows as f64 * share).round() as usize
    };
    let ranges = (0..parts).map(|part| bound(part)..bound(part + 1));
    ranges.filter(|range| !range.is_empty()).collect()
}

fn add<T: Scalar>(out: &mut [f64], values: &[T]) {
    for (out, v) in out.iter_mut().zip(values) {
        *out += v.to_f64();
    }
}

/// `out += sumsᵀ`, for sums of `k` rows.
fn add_transposed<T: Scalar>(out: &mut [f64], sums: &[T], k: usize) {
    let width = sums.len() / k.max(1);
    for (i, out) in out.chunks_exact_mut(k).enumerate() {
        for (c, out) in out.iter_mut().enumerate() {
            *out += sums[c * width + i].to_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::system::Format;
    use crate::system::tests::{problem, theta, weighted_problem};

    #[test]
    fn products_and_blocks_are_those_of_the_matrix() {
        // Less than a tile, one, and three with a rest.
        for n in [3, TILE, 2 * TILE + 77] {
            for kept in [None, Some(Format::Full), Some(Format::Half)] {
                let mut system = weighted_problem::<f64>(n, 3, 2, Kernel::Rbf { gamma: 0.5 }, 4.0);
                if let Some(format) = kept {
                    system.keep_kernel(format, &mut |_| true).unwrap();
                }
                check(
                    &system,
                    if kept == Some(Format::Half) {
                        1e-3
                    } else {
                        1e-11
                    },
                );
            }
        }
    }

    fn check(system: &System<f64>, tolerance: f64) {
        let n = system.n();
        let theta = theta(system);
        let s = |i: usize, j: usize| theta.get(i + 1, j + 1);
        let near = |a: f64, b: f64, what: &str| {
            assert!(
                (a - b).abs() <= tolerance * b.abs().max(1.0),
                "{what}: {a}, {b}"
            );
        };
        let v = Matrix::from_fn(n, 5, |i, c| ((i * 3 + c) as f64 * 0.7).sin() / n as f64);
        let product = system.shifted_product(&v);
        let last = system.tile_rows();
        let tiles = last.saturating_sub(2)..last;
        let within = system.rows_of_tiles(&tiles);
        let change = Matrix::from_fn(within.len(), 5, |i, c| v.get(within.start + i, c));
        let mut r = v.clone();
        system.subtract_columns(&mut r, &tiles, &change, |_| true);
        let mut some = v.clone();
        system.subtract_columns(&mut some, &tiles, &change, |tile| tile % 2 == 0);
        for tile in (0..last).step_by(2).filter(|tile| !tiles.contains(tile)) {
            for i in system.rows_of_tiles(&(tile..tile + 1)) {
                assert_eq!(some.row(i), r.row(i));
            }
        }
        let block = system.block_tiles(&tiles);
        let some: Vec<usize> = (0..n).step_by(3).collect();
        let all: Vec<usize> = (0..n).collect();
        let columns = system.columns(some.clone()).rows(&all);
        for i in (0..n).step_by(41) {
            for c in 0..5 {
                let plain: f64 = (0..n).map(|j| s(i, j) * v.get(j, c)).sum();
                near(product.get(i, c), plain, "product");
                let plain: f64 = within.clone().map(|j| s(i, j) * v.get(j, c)).sum();
                near(r.get(i, c), v.get(i, c) - plain, "columns");
            }
            for (place, &j) in some.iter().enumerate().step_by(17) {
                let shift = if i == j { system.lambda(i) } else { 0.0 };
                near(columns.get(i, place), s(i, j) - shift, "columns");
            }
        }
        let places = tiles
            .clone()
            .flat_map(|r| (tiles.start..=r).map(move |c| (r, c)));
        for ((row, column), tile) in places.zip(&block) {
            for i in (0..tile.rows()).step_by(29) {
                for j in (0..tile.cols()).step_by(31) {
                    let (i_, j_) = (row * TILE + i, column * TILE + j);
                    let shift = if i_ == j_ { system.lambda(i_) } else { 0.0 };
                    near(tile.get(i, j), s(i_, j_) - shift, "block");
                }
            }
        }
    }

    #[test]
    fn the_same_bits_twice() {
        let mut system = problem::<f32>(TILE + 300, 3, 2, Kernel::Rbf { gamma: 0.5 }, 4.0);
        system.keep_kernel(Format::Full, &mut |_| true).unwrap();
        let v = Matrix::from_fn(system.n(), 3, |i, c| ((i + c) as f32).cos());
        assert_eq!(system.shifted_product(&v), system.shifted_product(&v));
    }

    #[test]
    fn parts_are_about_equal() {
        for (rows, parts) in [(1, 8), (5, 8), (59, 8), (59, 1)] {
            let ranges = equal_parts(rows, parts);
            assert_eq!(ranges[0].start, 0);
            assert_eq!(ranges.last().unwrap().end, rows);
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
