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
//! Where rows live on several ranks, each looks at its share of the tiles, for all rows, and
//! what they found is added.
//!
//! Sums over the columns of a tile are taken in the precision of the values, sums
//! over tiles in `f64`. The order of all sums depends on the shape and the number
//! of threads alone: equal runs give equal bits.

use std::ops::Range;
use std::sync::Mutex;

use rayon::prelude::*;

use super::bands::Band;
use super::grid::{Place, TILE};
use super::{Format, Store, System, add_scores};
use crate::linalg::half::widen;
use crate::linalg::two_sided::{Sums, Tile, TwoSided};
use crate::linalg::{Matrix, Scalar};

/// Parts of a product for each thread, so that all end together, and the fewest.
const PARTS_PER_THREAD: usize = 4;
const FEWEST_PARTS: usize = 8;

/// Memory of sums, kept from one product to the next: taking it from the system each time took
/// a twentieth of a product (Zen 5, 60,000 rows, 11 columns).
#[derive(Debug, Default)]
pub(super) struct Spare(Mutex<Vec<Vec<f64>>>);

impl Spare {
    /// Some of it, or none.
    fn take(&self) -> Vec<f64> {
        let last = self.0.lock().ok().and_then(|mut spare| spare.pop());
        last.unwrap_or_default()
    }

    fn put(&self, memory: impl Iterator<Item = Vec<f64>>) {
        if let Ok(mut spare) = self.0.lock() {
            spare.extend(memory);
        }
    }
}

/// Where the tiles of Ω come from.
enum Tiles<'a, T: Scalar> {
    Kept(&'a Store<T>),
    /// Those between the rows of a band and those of this rank.
    Computed(&'a Band<'a, T>),
}

impl<T: Scalar> Tiles<'_, T> {
    /// The tile at this place, in `space` if it is computed.
    fn tile<'s>(&'s self, place: Place, space: &'s mut Vec<T>) -> Tile<'s, T> {
        match self {
            Tiles::Kept(store) => store.tile(place),
            Tiles::Computed(band) => {
                space.resize(band.size(place), T::ZERO);
                band.fill(place, space);
                Tile::Full(space)
            }
        }
    }
}

impl<T: Scalar> System<T> {
    /// Rows of tiles in S.
    pub fn tile_rows(&self) -> usize {
        self.grid.len()
    }

    /// Those that this rank has.
    pub fn own_tiles(&self) -> Range<usize> {
        self.grid.own()
    }

    /// Training rows that a range of tile rows covers.
    pub fn rows_of_tiles(&self, tiles: &Range<usize>) -> Range<usize> {
        self.grid.rows(tiles)
    }

    /// The same for tile rows of this rank: where they are among its rows.
    pub fn own_rows_of_tiles(&self, tiles: &Range<usize>) -> Range<usize> {
        let (rows, first) = (self.grid.rows(tiles), self.shares.own().start);
        rows.start - first..rows.end - first
    }

    /// S · V, summed in `f64`; Ω as it is kept, or computed again. Of V and of the product
    /// each rank has its own rows.
    pub fn shifted_product(&self, v: &Matrix<T>) -> Matrix<f64> {
        self.product_by(v, self.store.as_ref())
    }

    /// S · V, summed in `f64`; if Ω is kept in half precision it is computed again.
    pub fn true_product(&self, v: &Matrix<T>) -> Matrix<f64> {
        let full = |store: &&Store<T>| store.format() == Format::Full;
        self.product_by(v, self.store.as_ref().filter(full))
    }

    /// Some rows of S · V, computed now. For one rank alone.
    pub fn some_rows_of_product(&self, rows: &[usize], v: &Matrix<T>) -> Matrix<f64> {
        assert!(
            self.shares.is_alone(),
            "rows of all ranks have a part in it"
        );
        let mut product = Matrix::zeros(rows.len(), v.cols());
        let (some, all) = (self.samples.select(rows), self.samples.view());
        add_scores(product.view_mut(), &self.kernel, some.view(), all, v.view());
        Matrix::from_fn(rows.len(), v.cols(), |i, c| {
            let own = self.lambdas[rows[i]] * v.get(rows[i], c).to_f64();
            product.get(i, c).to_f64() + own
        })
    }

    /// S · V of the tiles that are kept, or that are computed now.
    fn product_by(&self, v: &Matrix<T>, store: Option<&Store<T>>) -> Matrix<f64> {
        assert_eq!(v.rows(), self.own_rows());
        let (n, k) = (self.n(), v.cols());
        let all = self.shares.all_rows(v);
        let mut out = Matrix::zeros(n, k);
        let first = self.shares.own().start * k;
        let own = &mut out.values_mut()[first..first + v.values().len()];
        let rows = own.chunks_mut(k.max(1)).zip(v.values().chunks(k.max(1)));
        for ((out, v), lambda) in rows.zip(&self.lambdas) {
            let pairs = out.iter_mut().zip(v);
            pairs.for_each(|(out, v)| *out = lambda * v.to_f64());
        }
        let mut add = |places: &[Place], tiles: &Tiles<'_, T>| {
            let partial: Vec<Vec<Option<Sums>>> = self
                .parts(places)
                .into_par_iter()
                .map(|part| self.product_of_part(part, &all, tiles))
                .collect();
            self.add_parts(&mut out, &partial);
            let sums = partial.into_iter().flatten().flatten();
            self.spare.put(sums.map(Sums::into_memory));
        };
        let mine = |place: Place| self.grid.is_mine(place);
        match store {
            Some(store) => {
                let places: Vec<Place> = self.grid.places().filter(|&p| mine(p)).collect();
                add(&places, &Tiles::Kept(store));
            }
            None => {
                let shown = self.in_bands(|band| {
                    add(&band.places(mine), &Tiles::Computed(band));
                    Ok(())
                });
                shown.expect("nothing here can fail");
            }
        }
        self.own_part_of_sum(out)
    }

    /// The rows of this rank of what all ranks have a part in.
    fn own_part_of_sum(&self, mut all: Matrix<f64>) -> Matrix<f64> {
        if self.shares.is_alone() {
            return all;
        }
        self.ranks().sum(all.values_mut());
        let (own, k) = (self.shares.own(), all.cols());
        let values = all.values()[own.start * k..own.end * k].to_vec();
        Matrix::from_vec(own.len(), k, values)
    }

    /// Tiles of a product in parts of about as many: whole tile rows where one rank looks
    /// at all of them.
    fn parts<'a>(&self, places: &'a [Place]) -> Vec<&'a [Place]> {
        if !self.shares.is_alone() {
            let size = places.len().div_ceil(product_parts()).max(1);
            return places.chunks(size).collect();
        }
        let before = |row: usize| row * (row + 1) / 2;
        let parts = equal_parts(self.tile_rows(), product_parts()).into_iter();
        let parts = parts.map(|rows| &places[before(rows.start)..before(rows.end)]);
        parts.collect()
    }

    /// What some tiles contribute to Ω · V, for each tile row that they touch.
    fn product_of_part(
        &self,
        part: &[Place],
        v: &Matrix<T>,
        tiles: &Tiles<'_, T>,
    ) -> Vec<Option<Sums>> {
        let mut out: Vec<Option<Sums>> = Vec::new();
        out.resize_with(self.grid.len(), || None);
        let (mut space, mut products) = (Vec::new(), TwoSided::new(v.cols()));
        for &(row, column) in part {
            let (rows, columns) = (self.grid.extent(row), self.grid.extent(column));
            let of_columns = Some(v.row_range(columns.start, columns.end));
            let of_rows = (row != column).then(|| v.row_range(rows.start, rows.end));
            let shape = (rows.len(), columns.len());
            let tile = tiles.tile((row, column), &mut space);
            products.multiply(tile, shape, of_columns, of_rows);
            let zeros = |rows: usize| products.sums(rows, self.spare.take());
            products.add_right(out[row].get_or_insert_with(|| zeros(rows.len())));
            if row != column {
                products.add_left(out[column].get_or_insert_with(|| zeros(columns.len())));
            }
        }
        out
    }

    /// Adds what all parts of a product found, each row in the order of the parts.
    fn add_parts(&self, out: &mut Matrix<f64>, parts: &[Vec<Option<Sums>>]) {
        let k = out.cols();
        let mut rest = out.values_mut();
        let mut rows = Vec::with_capacity(self.grid.len());
        for tile in 0..self.grid.len() {
            let (own, after) = rest.split_at_mut(self.grid.extent(tile).len() * k);
            rows.push((tile, own));
            rest = after;
        }
        rows.into_par_iter().for_each(|(tile, out)| {
            for sums in parts.iter().filter_map(|part| part[tile].as_ref()) {
                sums.each(|i, c, v| out[i * k + c] += v);
            }
        });
    }

    /// `r −= S[:, rows of these tiles] · change`, in the rows of the tile rows that are
    /// `wanted`; what happens to others does not matter. Of `r` each rank has its own rows,
    /// the change is on all; the tiles are of one rank.
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
        let band = match self.store {
            Some(_) => self.own_band(tiles.clone()),
            None => self.band(tiles.clone()),
        };
        let source = match &self.store {
            Some(store) => Tiles::Kept(store),
            None => Tiles::Computed(&band),
        };
        let first = self.own_tiles().start;
        r.values_mut()
            .par_chunks_mut(TILE * k)
            .enumerate()
            .map(|(place, r)| (first + place, r))
            .filter(|(other, _)| wanted(*other))
            .for_each_init(
                || (Vec::new(), TwoSided::new(k)),
                |(space, products), (other, r)| {
                    let height = r.len() / k;
                    for tile in tiles.clone() {
                        let rows = self.grid.extent(tile);
                        let place = rows.start - within.start..rows.end - within.start;
                        let change = Some(change.row_range(place.start, place.end));
                        let mut subtract = |i: usize, c: usize, v: T| r[i * k + c] -= v;
                        if other >= tile {
                            let values = source.tile((other, tile), space);
                            products.multiply(values, (height, rows.len()), change, None);
                            products.each_right(height, &mut subtract);
                        } else {
                            let values = source.tile((tile, other), space);
                            products.multiply(values, (rows.len(), height), None, change);
                            products.each_left(height, &mut subtract);
                        }
                    }
                },
            );
        let Some(start) = self.shares.place(within.start) else {
            return;
        };
        let end = start + within.len();
        let own = r.values_mut()[start * k..end * k].chunks_exact_mut(k);
        for (i, (r, &lambda)) in own.zip(&self.lambdas[start..end]).enumerate() {
            let lambda = T::from_f64(lambda);
            let pairs = r.iter_mut().zip(change.row(i));
            pairs.for_each(|(r, &c)| *r -= lambda * c);
        }
    }

    /// The tiles of Ω[rows of these tiles, the same rows] in its lower half, row after
    /// row, to be worked on. They must be of this rank.
    pub fn block_tiles(&self, tiles: &Range<usize>) -> Vec<Matrix<T>> {
        let places: Vec<_> = tiles
            .clone()
            .flat_map(|row| (tiles.start..=row).map(move |column| (row, column)))
            .collect();
        let band = self.own_band(tiles.clone());
        let tile = |place: Place| {
            let (rows, columns) = (self.grid.extent(place.0), self.grid.extent(place.1));
            let mut values = vec![T::ZERO; rows.len() * columns.len()];
            match &self.store {
                None => band.fill(place, &mut values),
                Some(store) => match store.tile(place) {
                    Tile::Full(kept) => values.copy_from_slice(kept),
                    Tile::Half(kept, scale) => widen(kept, &mut values, scale),
                },
            }
            Matrix::from_vec(rows.len(), columns.len(), values)
        };
        places.into_par_iter().map(tile).collect()
    }

    /// The tile of Ω on its diagonal in this tile row, to be worked on. It must be of this
    /// rank.
    pub fn diagonal_tile(&self, place: usize) -> Matrix<T> {
        let only = self.block_tiles(&(place..place + 1)).pop();
        only.expect("a block of one tile row has one tile")
    }
}

/// How many sums a product is shared into.
fn product_parts() -> usize {
    (PARTS_PER_THREAD * rayon::current_num_threads()).max(FEWEST_PARTS)
}

/// Bytes of the sums of a product with `k` columns, for so many rows on this rank and on all:
/// a part has those of all rows up to its last, on average two thirds of them. Several ranks
/// also have the columns of all.
pub fn product_bytes<T>([own, n]: [usize; 2], k: usize) -> u64 {
    let all = (n * k * size_of::<f64>()) as u64;
    let parts = product_parts() as u64;
    match own == n {
        true => all * (2 * parts + 1) / 3,
        false => all * (parts + 1) + (2 * n * k * size_of::<T>()) as u64,
    }
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
