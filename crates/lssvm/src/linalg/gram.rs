//! AᵀA of a tall matrix, on the pool.

use rayon::prelude::*;

use super::{MatMut, MatRef, Matrix, Output, Parallel, Scalar};

/// Rows that one sequential product takes: with 2,000 columns they fit in the caches
/// of a server. 60,000 × 2,000 in f32 on two threads: 177 GFLOP/s in such pieces and 139
/// as one parallel call of the library.
const PIECE: usize = 2000;

/// Rows for each column below which copies of the result are not worth their memory.
const TALL: usize = 4;

/// Upper triangle of `out = aᵀ · a`; the rest is left alone.
///
/// If `a` is tall enough each thread sums its own share of the rows, with `out` as the
/// first sum and [`gram_bytes`] for the others.
pub fn gram_upper<T: Scalar>(mut out: MatMut<'_, T>, a: MatRef<'_, T>) {
    let (n, j) = (a.rows(), a.cols());
    let threads = rayon::current_num_threads();
    if threads == 1 || !is_tall(n, j, threads) {
        return T::syrk_upper(out, Output::Replace, a, T::ONE, Parallel::Pool);
    }
    let share = |t: usize| a.row_range(t * n / threads, (t + 1) * n / threads);
    let mut others: Vec<Matrix<T>> = Vec::new();
    rayon::join(
        || sum(out.reborrow(), share(0)),
        || {
            let rest = (1..threads).into_par_iter().map(|t| {
                let mut other = Matrix::zeros(j, j);
                sum(other.view_mut(), share(t));
                other
            });
            others = rest.collect();
        },
    );
    let stride = out.stride();
    out.values_mut()
        .par_chunks_mut(stride)
        .enumerate()
        .for_each(|(i, row)| {
            for other in &others {
                let pairs = row[i..j].iter_mut().zip(&other.row(i)[i..]);
                pairs.for_each(|(out, &v)| *out += v);
            }
        });
}

/// Bytes that [`gram_upper`] needs beside its result, on the pool it is called in.
pub fn gram_bytes<T: Scalar>(n: usize, j: usize) -> u64 {
    let threads = rayon::current_num_threads();
    let copies = match is_tall(n, j, threads) {
        true => threads as u64 - 1,
        false => 0,
    };
    copies * (j as u64).pow(2) * size_of::<T>() as u64
}

fn is_tall(n: usize, j: usize, threads: usize) -> bool {
    n >= TALL * j * (threads - 1).max(1)
}

fn sum<T: Scalar>(mut out: MatMut<'_, T>, a: MatRef<'_, T>) {
    let mut output = Output::Replace;
    for top in (0..a.rows()).step_by(PIECE) {
        let piece = a.row_range(top, (top + PIECE).min(a.rows()));
        T::syrk_upper(out.reborrow(), output, piece, T::ONE, Parallel::No);
        output = Output::Add;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tall_and_wide_agree_with_the_plain_sums() {
        for (n, j) in [(1, 1), (7, 3), (30, 30), (5000, 4), (4100, 17)] {
            let a = Matrix::from_fn(n, j, |i, c| ((i * 7 + c * 3) as f64 * 0.37).sin());
            for threads in [1, 2, 5] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                let mut out = Matrix::from_fn(j, j, |_, _| 9.0);
                pool.unwrap()
                    .install(|| gram_upper(out.view_mut(), a.view()));
                for i in 0..j {
                    for c in 0..j {
                        let plain: f64 = (0..n).map(|r| a.get(r, i) * a.get(r, c)).sum();
                        let expected = if i <= c { plain } else { 9.0 };
                        assert!((out.get(i, c) - expected).abs() < 1e-10 * n as f64);
                    }
                }
            }
        }
    }
}
