//! A strip: the columns of Θ that one step of a block method selects.
//!
//! ```text
//!     Θ_s  =  [ top ]    1 × J: 0 for the bias column, else 1
//!             [ body]    N × J: 1 for the bias column, else Ω(x_i, x_s) + λδ
//! ```
//!
//! Θ is symmetric, so the strip is also the transpose of J of its rows. Memory
//! is N·J values; it is allocated once and filled again in each step.
//!
//! Where rows live on several ranks, each has the rows of the body that are its own. To fill
//! it, everybody gets the J selected rows: J·M values. Products over rows are sums over
//! ranks: J(J+1)/2 values for the Gram matrix, J·K for the others.

use rayon::prelude::*;

use super::{Bordered, System};
use crate::kernel::FillBlock;
use crate::linalg::gram::{gram_bytes, gram_upper};
use crate::linalg::{MatMut, MatRef, Matrix, Scalar, skinny};
use crate::ranks::Shares;

/// Rows and columns of one product and map. With many features the product
/// outweighs all else and runs fastest in large pieces: 60,000 × 784 times
/// 784 × 2,000 in f32 on two threads took 0.95 s in pieces of 7,500 × 2,000,
/// 1.00 s in pieces of 1,024 × 512, and 0.98 s as one call. With few features the
/// map's share grows, and the piece should not leave the cache before it.
const LARGE_TILE: (usize, usize) = (8192, 2048);
pub(super) const SMALL_TILE: (usize, usize) = (1024, 512);
const MANY_FEATURES: usize = 256;

/// Pieces each thread gets, so that all end together.
const TILES_PER_THREAD: usize = 4;

/// J columns of Θ.
#[derive(Debug)]
pub struct Strip<T: Scalar> {
    indices: Vec<usize>,
    top: Vec<T>,
    body: Vec<T>,
    /// Rows of the body.
    n: usize,
    shares: Shares,
}

impl<T: Scalar> Strip<T> {
    /// Nothing yet; columns come with [`Strip::fill`].
    pub fn new(shares: &Shares) -> Self {
        Self {
            indices: Vec::new(),
            top: Vec::new(),
            body: Vec::new(),
            n: shares.own().len(),
            shares: shares.clone(),
        }
    }

    /// Computes the columns of Θ with these indices (0 is the bias).
    pub fn fill(&mut self, system: &System<T>, indices: &[usize]) {
        assert_eq!(self.n, system.own_rows());
        let j = indices.len();
        self.indices.clear();
        self.indices.extend_from_slice(indices);
        self.top.clear();
        self.top.extend(
            indices
                .iter()
                .map(|&i| if i == 0 { T::ZERO } else { T::ONE }),
        );
        self.read(system);
        for (column, &index) in indices.iter().enumerate() {
            match index {
                0 => (0..self.n).for_each(|i| self.body[i * j + column] = T::ONE),
                i => {
                    if let Some(own) = self.shares.place(i - 1) {
                        self.body[own * j + column] += T::from_f64(system.lambdas[own]);
                    }
                }
            }
        }
    }

    /// Kernel values of the body, from the store or computed.
    fn read(&mut self, system: &System<T>) {
        let (indices, j) = (&self.indices, self.columns());
        self.body.resize(self.n * j, T::ZERO);
        match &system.store {
            Some(store) if self.shares.is_alone() => {
                let places = indices.iter().enumerate().filter(|(_, i)| **i > 0);
                let mut picks: Vec<_> = places.map(|(place, &i)| (i - 1, place)).collect();
                store.copy_columns(&mut picks, &mut self.body, j);
            }
            _ => self.compute(system),
        }
    }

    /// Kernel values of the body, in tiles over the pool.
    fn compute(&mut self, system: &System<T>) {
        let (indices, j) = (&self.indices, self.columns());
        // The bias has no row; row 0 stands in for it until its ones are set.
        let rows: Vec<usize> = indices.iter().map(|&i| i.saturating_sub(1)).collect();
        let selected = system.select(&rows);
        let (most_rows, columns) = match system.samples.points().width() {
            MANY_FEATURES.. => LARGE_TILE,
            _ => SMALL_TILE,
        };
        let tiles = TILES_PER_THREAD * rayon::current_num_threads();
        let tile_rows = self.n.div_ceil(tiles).clamp(1, most_rows);
        self.body
            .par_chunks_mut(tile_rows * j)
            .enumerate()
            .for_each(|(t, tile)| {
                let top = t * tile_rows;
                let height = tile.len() / j;
                let x = system.samples.range(top, top + height);
                for left in (0..j).step_by(columns) {
                    let right = (left + columns).min(j);
                    let part = MatMut::strided(height, right - left, j, &mut tile[left..]);
                    system.kernel.fill(part, x, selected.range(left, right));
                }
            });
    }

    /// J
    pub fn columns(&self) -> usize {
        self.indices.len()
    }

    /// Which columns of Θ these are.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// The rows below the bias row.
    pub fn body(&self) -> MatRef<'_, T> {
        MatRef::new(self.n, self.columns(), &self.body)
    }

    /// Upper triangle of Θ_sᵀ Θ_s, in `gram` (whose memory is used again).
    pub fn gram(&self, gram: &mut Vec<T>) {
        let j = self.columns();
        gram.resize(j * j, T::ZERO);
        let out = MatMut::new(j, j, gram);
        gram_upper(out, self.body());
        self.sum_upper(gram);
        for (row, &top) in gram.chunks_mut(j).zip(&self.top) {
            row.iter_mut()
                .zip(&self.top)
                .for_each(|(v, &t)| *v += top * t);
        }
    }

    /// Adds the upper triangle of a square over all ranks.
    fn sum_upper(&self, square: &mut [T]) {
        if self.shares.is_alone() {
            return;
        }
        let j = self.columns();
        let rows = || (0..j).map(|i| i * j + i..(i + 1) * j);
        let mut upper = Vec::with_capacity(j * (j + 1) / 2);
        rows().for_each(|row| upper.extend_from_slice(&square[row]));
        self.shares.ranks().sum(&mut upper);
        let mut rest = upper.as_slice();
        for row in rows() {
            let (own, after) = rest.split_at(row.len());
            square[row].copy_from_slice(own);
            rest = after;
        }
    }

    /// Θ_sᵀ R, J × K.
    pub fn transposed_product(&self, r: &Bordered<T>) -> Matrix<T> {
        let mut out = skinny::transposed_product(self.body(), r.rows.view());
        self.shares.ranks().sum(out.values_mut());
        for (row, &top) in self.top.iter().enumerate() {
            let row = out.row_mut(row);
            row.iter_mut()
                .zip(&r.bias)
                .for_each(|(v, &b)| *v += top * b);
        }
        out
    }

    /// `out += alpha · Θ_s Q`
    pub fn add_product(&self, out: &mut Bordered<T>, q: &Matrix<T>, alpha: T) {
        skinny::add_product(out.rows.view_mut(), self.body(), q.view(), alpha);
        for (k, bias) in out.bias.iter_mut().enumerate() {
            let sum: f64 = (0..q.rows())
                .map(|j| (self.top[j] * q.get(j, k)).to_f64())
                .sum();
            *bias += alpha * T::from_f64(sum);
        }
    }

    /// Θ_ss: rows `s` of the strip, J × J.
    pub fn square(&self) -> Matrix<T> {
        let body = self.body();
        self.selected(&self.top, |own| body.row(own))
    }

    /// A row for each index: this one for the bias, and else that of the rank which has the
    /// training row, by its place there.
    fn selected<'a>(&self, bias: &[T], row: impl Fn(usize) -> &'a [T]) -> Matrix<T> {
        let width = bias.len();
        let mut values = vec![T::ZERO; self.columns() * width];
        let own = |index: usize| self.shares.place(index.checked_sub(1)?);
        for (out, &index) in values.chunks_exact_mut(width).zip(&self.indices) {
            if let Some(own) = own(index) {
                out.copy_from_slice(row(own));
            }
        }
        // Elsewhere they are zero.
        self.shares.ranks().sum(&mut values);
        for (out, &index) in values.chunks_exact_mut(width).zip(&self.indices) {
            if index == 0 {
                out.copy_from_slice(bias);
            }
        }
        Matrix::from_vec(self.columns(), width, values)
    }

    /// Rows `s` of a bordered matrix, J × K.
    pub fn select(&self, from: &Bordered<T>) -> Matrix<T> {
        self.selected(&from.bias, |own| from.rows.row(own))
    }

    /// `to[s] += q`
    pub fn scatter_add(&self, to: &mut Bordered<T>, q: &Matrix<T>) {
        for (j, &index) in self.indices.iter().enumerate() {
            let own = match index {
                0 => Some(0),
                i => self.shares.place(i - 1).map(|own| own + 1),
            };
            let Some(own) = own else { continue };
            let row = to.row_mut(own);
            row.iter_mut().zip(q.row(j)).for_each(|(v, &q)| *v += q);
        }
    }

    /// Bytes of a strip of `n` rows and its Gram matrix (a factor takes the Gram matrix's place).
    pub fn bytes(n: usize, block_size: usize, n_features: usize) -> u64 {
        let values = block_size as u64 * (n as u64 + 2 * block_size as u64 + n_features as u64);
        values * size_of::<T>() as u64 + gram_bytes::<T>(n, block_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::system::Format;
    use crate::system::tests::{theta, weighted_problem};

    #[test]
    fn a_strip_is_the_columns_of_theta() {
        let kept = [None, Some(Format::Full), Some(Format::Half)];
        for (n, kept) in [1usize, 6, 1500]
            .into_iter()
            .flat_map(|n| kept.map(|k| (n, k)))
        {
            // Values in half precision: relative to the largest of the diagonal.
            let tolerance = match kept {
                Some(Format::Half) => 2f64.powi(-11),
                _ => 1e-14,
            };
            let mut system = weighted_problem::<f64>(n, 3, 2, Kernel::Rbf { gamma: 0.5 }, 4.0);
            let theta = theta(&system);
            if let Some(format) = kept {
                system.keep_kernel(format, &mut |_| true).unwrap();
            }
            let indices: Vec<usize> = [n, 0, n / 2].into_iter().take(n.min(3)).collect();
            let mut strip = Strip::new(system.shares());
            strip.fill(&system, &indices);
            let j = indices.len();
            for (column, &index) in indices.iter().enumerate() {
                assert_eq!(strip.top[column], theta.get(0, index));
                for i in 0..n {
                    let difference = strip.body().row(i)[column] - theta.get(i + 1, index);
                    assert!(difference.abs() <= tolerance);
                }
            }
            if kept == Some(Format::Half) {
                continue;
            }
            // Gram matrix and both products against plain sums.
            let mut gram = Vec::new();
            strip.gram(&mut gram);
            let w = Bordered {
                bias: vec![1.0, -2.0],
                rows: system.targets().clone(),
            };
            let products = strip.transposed_product(&w);
            let q = Matrix::from_fn(j, 2, |i, k| (i + 2 * k) as f64 - 1.0);
            let mut sum = w.clone();
            strip.add_product(&mut sum, &q, 0.5);
            let column = |a: usize, i: usize| theta.get(i, indices[a]);
            for a in 0..j {
                for b in a..j {
                    let plain: f64 = (0..=n).map(|i| column(a, i) * column(b, i)).sum();
                    assert!((gram[a * j + b] - plain).abs() < 1e-11 * plain.abs().max(1.0));
                }
                for k in 0..2 {
                    let plain: f64 = (0..=n).map(|i| column(a, i) * w.row(i)[k]).sum();
                    assert!((products.get(a, k) - plain).abs() < 1e-10);
                }
            }
            for i in 0..=n {
                for k in 0..2 {
                    let plain: f64 = (0..j).map(|a| column(a, i) * q.get(a, k)).sum();
                    assert!((sum.row(i)[k] - w.row(i)[k] - 0.5 * plain).abs() < 1e-12);
                }
            }
        }
    }
}
