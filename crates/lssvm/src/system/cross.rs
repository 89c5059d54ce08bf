//! Scores of other rows: Ω(queries, support) · A, stored or recomputed.

use rayon::prelude::*;

use crate::kernel::{FillBlock, Kernel, Samples, SamplesRef};
use crate::linalg::{MatMut, MatRef, Matrix, Scalar, skinny};

/// Queries that one task scores, and support rows of one tile. A tile of
/// 1 MB is mapped and multiplied by the weights before it leaves the
/// second-level cache; it is never written to memory.
const TILE_QUERIES: usize = 512;
const TILE_SUPPORT: usize = 512;

/// `out += Ω(queries, support) · weights`, computing Ω in tiles that are used
/// and forgotten. Memory: one tile a thread.
pub fn add_scores<T: Scalar>(
    mut out: MatMut<'_, T>,
    kernel: &Kernel,
    queries: SamplesRef<'_, T>,
    support: SamplesRef<'_, T>,
    weights: MatRef<'_, T>,
) {
    assert_eq!((out.rows(), out.cols()), (queries.len(), weights.cols()));
    assert_eq!(support.len(), weights.rows());
    let (n, k) = (queries.len(), weights.cols());
    if n == 0 || k == 0 {
        return;
    }
    let transposed = skinny::transpose_scaled(weights, T::ONE);
    let threads = rayon::current_num_threads();
    let tile_queries = n.div_ceil(threads).clamp(1, TILE_QUERIES);
    assert_eq!(out.stride(), k, "scores lie without gaps");
    out.values_mut()
        .par_chunks_mut(tile_queries * k)
        .enumerate()
        .for_each_init(Vec::new, |tile, (t, out)| {
            let rows = out.len() / k;
            let start = t * tile_queries;
            let x = queries.range(start, start + rows);
            for left in (0..support.len()).step_by(TILE_SUPPORT) {
                let right = (left + TILE_SUPPORT).min(support.len());
                let width = right - left;
                tile.resize(rows * width, T::ZERO);
                kernel.fill(
                    MatMut::new(rows, width, tile),
                    x,
                    support.range(left, right),
                );
                skinny::add_product_of_transposed(
                    MatMut::new(rows, k, out),
                    MatRef::new(rows, width, tile),
                    transposed.view().col_range(left, right),
                );
            }
        });
}

/// Ω(queries, support), all of it, on the pool.
pub fn kernel_matrix<T: Scalar>(
    kernel: &Kernel,
    queries: &Samples<T>,
    support: &Samples<T>,
) -> Matrix<T> {
    let (n, p) = (queries.len(), support.len());
    let mut out = Matrix::zeros(n, p);
    let tile_rows = n
        .div_ceil(rayon::current_num_threads())
        .clamp(1, TILE_QUERIES);
    out.values_mut()
        .par_chunks_mut((tile_rows * p).max(1))
        .enumerate()
        .for_each(|(t, tile)| {
            let rows = tile.len() / p;
            let x = queries.range(t * tile_rows, t * tile_rows + rows);
            for left in (0..p).step_by(TILE_SUPPORT) {
                let right = (left + TILE_SUPPORT).min(p);
                let part = MatMut::strided(rows, right - left, p, &mut tile[left..]);
                kernel.fill(part, x, support.range(left, right));
            }
        });
    out
}

/// Ω(queries, support) for fixed rows on both sides, kept in memory or computed
/// again at each product.
#[derive(Debug)]
pub struct Cross<T: Scalar> {
    queries: Samples<T>,
    stored: Option<Matrix<T>>,
}

impl<T: Scalar> Cross<T> {
    /// Keeps nothing but the queries.
    pub fn recomputed(queries: Samples<T>) -> Self {
        Self {
            queries,
            stored: None,
        }
    }

    /// Computes Ω once and keeps it: [`Cross::stored_bytes`] of memory.
    pub fn stored(queries: Samples<T>, kernel: &Kernel, support: &Samples<T>) -> Self {
        let stored = kernel_matrix(kernel, &queries, support);
        Self {
            queries,
            stored: Some(stored),
        }
    }

    /// Bytes that [`Cross::stored`] needs.
    pub fn stored_bytes(queries: usize, support: usize) -> u64 {
        queries as u64 * support as u64 * size_of::<T>() as u64
    }

    /// Whether Ω is kept.
    pub fn is_stored(&self) -> bool {
        self.stored.is_some()
    }

    /// The rows that are scored.
    pub fn queries(&self) -> &Samples<T> {
        &self.queries
    }

    /// Ω(queries, support) · weights
    pub fn product(&self, kernel: &Kernel, support: &Samples<T>, weights: &Matrix<T>) -> Matrix<T> {
        let mut out = Matrix::zeros(self.queries.len(), weights.cols());
        match &self.stored {
            Some(stored) => {
                skinny::add_product(out.view_mut(), stored.view(), weights.view(), T::ONE);
            }
            None => {
                let queries = self.queries.view();
                add_scores(
                    out.view_mut(),
                    kernel,
                    queries,
                    support.view(),
                    weights.view(),
                );
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_recomputed_and_plain_scores_agree() {
        let kernel = Kernel::Poly {
            gamma: 0.5,
            coef0: 1.0,
            degree: 3,
        };
        let wave = |i: usize, j: usize| ((i * 13 + j * 7) as f64 * 0.37).sin();
        for (n, p, k) in [(1, 1, 1), (3, 700, 2), (1030, 513, 11)] {
            let queries = Samples::new(Matrix::from_fn(n, 5, wave), &kernel);
            let support = Samples::new(Matrix::from_fn(p, 5, |i, j| wave(i + 3, j)), &kernel);
            let weights = Matrix::from_fn(p, k, |i, j| wave(j, i) / p as f64);
            let mut omega = Matrix::<f64>::zeros(n, p);
            kernel.fill(omega.view_mut(), queries.view(), support.view());
            let stored = Cross::stored(queries.clone(), &kernel, &support);
            let recomputed = Cross::recomputed(queries);
            let a = stored.product(&kernel, &support, &weights);
            let b = recomputed.product(&kernel, &support, &weights);
            for i in 0..n {
                for c in 0..k {
                    let plain: f64 = (0..p).map(|j| omega.get(i, j) * weights.get(j, c)).sum();
                    assert!((a.get(i, c) - plain).abs() < 1e-12);
                    assert!((b.get(i, c) - plain).abs() < 1e-12);
                }
            }
        }
    }
}
