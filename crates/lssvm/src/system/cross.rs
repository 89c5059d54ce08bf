//! Scores of other rows: Ω(queries, support) · A, stored or recomputed.

use rayon::prelude::*;

use crate::kernel::{FillBlock, Kernel, Samples, SamplesRef};
use crate::linalg::{MatMut, MatRef, Matrix, Scalar, skinny};

/// Queries that one task scores, and support rows of one tile. A tile of
/// 1 MB is mapped and multiplied by the weights before it leaves the
/// second-level cache; it is never written to memory.
const TILE_QUERIES: usize = 512;
const TILE_SUPPORT: usize = 512;

/// Support rows whose products are summed before they are added to the scores. Sums are formed
/// like this for any number of queries and threads, so that it does not matter who shares what.
/// (The matrix product of a few rows alone may round otherwise than that of many.)
const SEGMENT: usize = 2 * TILE_SUPPORT;

/// Sums of segments that are kept at the same time at most, as values.
const MAX_SUMS: usize = 1 << 22;

/// `out += Ω(queries, support) · weights`, computing Ω in tiles that are used
/// and forgotten. Memory: one tile a thread, and some sums.
///
/// Many queries are shared among the threads, each of which sees all support rows. Few queries,
/// as a server gets them, would each way be too little to keep the cores busy while the support
/// rows come from memory; then the threads share the support rows.
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
    assert_eq!(out.stride(), k, "scores lie without gaps");
    let threads = rayon::current_num_threads();
    let segments = support.len().div_ceil(SEGMENT);
    let sums = n.saturating_mul(k).saturating_mul(segments);
    let scores = Scores {
        kernel,
        queries,
        support,
        weights,
    };
    if n <= TILE_QUERIES * threads && sums <= MAX_SUMS {
        return scores.by_segments(out.values_mut(), segments);
    }
    let tile_queries = n.div_ceil(threads).clamp(1, TILE_QUERIES);
    out.values_mut()
        .par_chunks_mut(tile_queries * k)
        .enumerate()
        .for_each_init(Space::default, |space, (t, out)| {
            let mut sums = vec![T::ZERO; out.len()];
            for s in 0..segments {
                sums.fill(T::ZERO);
                scores.add_segment(&mut sums, t * tile_queries, s, space);
                add(out, &sums);
            }
        });
}

/// What scores are made of.
struct Scores<'a, T> {
    kernel: &'a Kernel,
    queries: SamplesRef<'a, T>,
    support: SamplesRef<'a, T>,
    weights: MatRef<'a, T>,
}

/// A tile of Ω, in memory that is used again.
struct Space<T>(Vec<T>);

impl<T> Default for Space<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Scalar> Scores<'_, T> {
    /// Adds all scores to `out`; the threads share the segments.
    fn by_segments(&self, out: &mut [T], segments: usize) {
        let mut sums = vec![T::ZERO; out.len() * segments];
        sums.par_chunks_mut(out.len()).enumerate().for_each_init(
            Space::default,
            |space, (s, sums)| {
                let k = self.weights.cols();
                for (t, sums) in sums.chunks_mut(TILE_QUERIES * k).enumerate() {
                    self.add_segment(sums, t * TILE_QUERIES, s, space);
                }
            },
        );
        sums.chunks(out.len()).for_each(|sums| add(out, sums));
    }

    /// Adds what a segment of the support rows adds to the scores of the queries from `first` on.
    fn add_segment(&self, sums: &mut [T], first: usize, segment: usize, space: &mut Space<T>) {
        let k = self.weights.cols();
        let rows = sums.len() / k;
        let x = self.queries.range(first, first + rows);
        let end = ((segment + 1) * SEGMENT).min(self.support.len());
        for left in (segment * SEGMENT..end).step_by(TILE_SUPPORT) {
            let right = (left + TILE_SUPPORT).min(end);
            let width = right - left;
            let tile = &mut space.0;
            tile.resize(rows * width, T::ZERO);
            let z = self.support.range(left, right);
            self.kernel.fill(MatMut::new(rows, width, tile), x, z);
            // Here, not once for all: all weights of a large model take longer than few queries.
            let weights = self.weights.row_range(left, right);
            skinny::add_product_of_transposed(
                MatMut::new(rows, k, sums),
                MatRef::new(rows, width, tile),
                skinny::transpose_scaled(weights, T::ONE).view(),
            );
        }
    }
}

fn add<T: Scalar>(out: &mut [T], sums: &[T]) {
    for (out, sum) in out.iter_mut().zip(sums) {
        *out += *sum;
    }
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

    /// Whoever shares what, the bits are the same.
    #[test]
    fn scores_do_not_depend_on_how_the_work_is_shared() {
        let kernel = Kernel::Rbf { gamma: 0.1 };
        let wave = |i: usize, j: usize| ((i * 13 + j * 7) as f32 * 0.37).sin();
        let (n, p, k) = (1100, 3000, 3);
        let queries = Samples::new(Matrix::from_fn(n, 9, wave), &kernel);
        let support = Samples::new(Matrix::from_fn(p, 9, |i, j| wave(i + 5, j)), &kernel);
        let weights = Matrix::from_fn(p, k, wave);
        let scores = |threads: usize, batch: usize| -> Vec<f32> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let mut out = Matrix::from_fn(n, k, |_, j| j as f32);
            pool.build().unwrap().install(|| {
                for start in (0..n).step_by(batch) {
                    let end = (start + batch).min(n);
                    let part = &mut out.values_mut()[start * k..end * k];
                    let part = MatMut::new(end - start, k, part);
                    let queries = queries.range(start, end);
                    add_scores(part, &kernel, queries, support.view(), weights.view());
                }
            });
            out.into_values()
        };
        // By queries on one thread; by segments; by both.
        let expected = scores(1, n);
        for (threads, batch) in [(1, 512), (2, n), (3, n), (3, 64)] {
            assert!(scores(threads, batch) == expected, "{threads} {batch}");
        }
        assert!(scores(1, 7) == scores(3, 7));
    }

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
