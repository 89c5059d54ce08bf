//! Matrix products and triangular kernels, from faer.
//!
//! This file and [`super::factor`] are the only ones that name faer. Every
//! matrix here is row-major; faer sees the transpose of a column-major one.

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve;
use faer::{Accum, Par};

use super::{MatMut, MatRef, Scalar};

/// How many threads one call may use.
///
/// Parallelise at one level: either tiles over rayon with sequential calls
/// inside, or one large call on the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parallel {
    /// The calling thread only.
    No,
    /// All threads of the current rayon pool.
    Pool,
}

impl From<Parallel> for Par {
    fn from(parallel: Parallel) -> Par {
        match parallel {
            Parallel::No => Par::Seq,
            Parallel::Pool => match rayon::current_num_threads() {
                1 => Par::Seq,
                n => Par::rayon(n),
            },
        }
    }
}

/// What happens to the old content of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// It is replaced.
    Replace,
    /// The result is added to it.
    Add,
}

impl From<Output> for Accum {
    fn from(output: Output) -> Accum {
        match output {
            Output::Replace => Accum::Replace,
            Output::Add => Accum::Add,
        }
    }
}

/// The operations that faer provides for a number type.
///
/// Implemented for `f32` and `f64` only, so that faer's generic code is
/// compiled once, in this crate, and not in each that uses it.
pub trait Backend: Sized {
    /// `out (+)= alpha · a · bᵀ`
    fn gemm_nt(
        out: MatMut<'_, Self>,
        output: Output,
        a: MatRef<'_, Self>,
        b: MatRef<'_, Self>,
        alpha: Self,
        parallel: Parallel,
    );
    /// `out (+)= alpha · a · b`
    fn gemm_nn(
        out: MatMut<'_, Self>,
        output: Output,
        a: MatRef<'_, Self>,
        b: MatRef<'_, Self>,
        alpha: Self,
        parallel: Parallel,
    );
    /// Upper triangle of `out (+)= alpha · aᵀ · a`; the rest is left alone.
    fn syrk_upper(
        out: MatMut<'_, Self>,
        output: Output,
        a: MatRef<'_, Self>,
        alpha: Self,
        parallel: Parallel,
    );
    /// Upper triangle of `out (+)= alpha · a · aᵀ`; the rest is left alone.
    fn syrk_nt_upper(
        out: MatMut<'_, Self>,
        output: Output,
        a: MatRef<'_, Self>,
        alpha: Self,
        parallel: Parallel,
    );
    /// Solves `uᵀ · x = b` in place; `u` is upper triangular.
    fn solve_upper_transposed(u: MatRef<'_, Self>, b: MatMut<'_, Self>, parallel: Parallel);
    /// Solves `u · x = b` in place; `u` is upper triangular.
    fn solve_upper(u: MatRef<'_, Self>, b: MatMut<'_, Self>, parallel: Parallel);
    /// Solves `x · u = b` in place; `u` is upper triangular.
    fn solve_upper_right(u: MatRef<'_, Self>, b: MatMut<'_, Self>, parallel: Parallel);
    /// Upper triangle `u` with `uᵀ · u = a`, over the upper triangle of `a`.
    /// False if a pivot was not positive.
    fn cholesky_upper(a: MatMut<'_, Self>, parallel: Parallel) -> bool;
    /// Solves `a · x = b` for a symmetric `a` of any signature; destroys `a`,
    /// of which only the upper triangle is read.
    fn solve_indefinite(a: MatMut<'_, Self>, b: MatMut<'_, Self>);
}

pub(super) fn faer_ref<'a, T: Scalar>(a: MatRef<'a, T>) -> faer::MatRef<'a, T> {
    faer::MatRef::from_row_major_slice_with_stride(a.values(), a.rows(), a.cols(), a.stride())
}

pub(super) fn faer_mut<'a, T: Scalar>(a: &'a mut MatMut<'_, T>) -> faer::MatMut<'a, T> {
    let (rows, cols, stride) = (a.rows(), a.cols(), a.stride());
    // Not from_row_major_slice_with_stride_mut: in faer 0.24.4 it swaps the
    // strides, checks the bounds of the right matrix, and writes outside them.
    faer::MatMut::from_column_major_slice_with_stride_mut(a.values_mut(), cols, rows, stride)
        .transpose_mut()
}

/// Upper triangle of `out (+)= alpha · a · aᵀ`.
fn faer_syrk<T: Scalar + faer::traits::ComplexField>(
    out: faer::MatMut<'_, T>,
    output: Output,
    a: faer::MatRef<'_, T>,
    alpha: T,
    parallel: Parallel,
) {
    // Transposed, so that faer writes the lower triangle of a column-major
    // matrix; the product is its own transpose.
    triangular::matmul(
        out.transpose_mut(),
        BlockStructure::TriangularLower,
        output.into(),
        a,
        BlockStructure::Rectangular,
        a.transpose(),
        BlockStructure::Rectangular,
        alpha,
        parallel.into(),
    );
}

macro_rules! backend {
    ($t:ident) => {
        impl Backend for $t {
            fn gemm_nt(
                mut out: MatMut<'_, $t>,
                output: Output,
                a: MatRef<'_, $t>,
                b: MatRef<'_, $t>,
                alpha: $t,
                parallel: Parallel,
            ) {
                let (a, b) = (faer_ref(a), faer_ref(b).transpose());
                matmul(
                    faer_mut(&mut out),
                    output.into(),
                    a,
                    b,
                    alpha,
                    parallel.into(),
                );
            }

            fn gemm_nn(
                mut out: MatMut<'_, $t>,
                output: Output,
                a: MatRef<'_, $t>,
                b: MatRef<'_, $t>,
                alpha: $t,
                parallel: Parallel,
            ) {
                let (a, b) = (faer_ref(a), faer_ref(b));
                matmul(
                    faer_mut(&mut out),
                    output.into(),
                    a,
                    b,
                    alpha,
                    parallel.into(),
                );
            }

            fn syrk_upper(
                mut out: MatMut<'_, $t>,
                output: Output,
                a: MatRef<'_, $t>,
                alpha: $t,
                parallel: Parallel,
            ) {
                faer_syrk(
                    faer_mut(&mut out),
                    output,
                    faer_ref(a).transpose(),
                    alpha,
                    parallel,
                );
            }

            fn syrk_nt_upper(
                mut out: MatMut<'_, $t>,
                output: Output,
                a: MatRef<'_, $t>,
                alpha: $t,
                parallel: Parallel,
            ) {
                faer_syrk(faer_mut(&mut out), output, faer_ref(a), alpha, parallel);
            }

            fn solve_upper_transposed(
                u: MatRef<'_, $t>,
                mut b: MatMut<'_, $t>,
                parallel: Parallel,
            ) {
                let lower = faer_ref(u).transpose();
                triangular_solve::solve_lower_triangular_in_place(
                    lower,
                    faer_mut(&mut b),
                    parallel.into(),
                );
            }

            fn solve_upper(u: MatRef<'_, $t>, mut b: MatMut<'_, $t>, parallel: Parallel) {
                triangular_solve::solve_upper_triangular_in_place(
                    faer_ref(u),
                    faer_mut(&mut b),
                    parallel.into(),
                );
            }

            fn solve_upper_right(u: MatRef<'_, $t>, mut b: MatMut<'_, $t>, parallel: Parallel) {
                // Transposed, uᵀ · xᵀ = bᵀ: all three column-major to faer.
                triangular_solve::solve_lower_triangular_in_place(
                    faer_ref(u).transpose(),
                    faer_mut(&mut b).transpose_mut(),
                    parallel.into(),
                );
            }

            fn cholesky_upper(a: MatMut<'_, $t>, parallel: Parallel) -> bool {
                super::factor::faer_cholesky(a, parallel)
            }

            fn solve_indefinite(a: MatMut<'_, $t>, b: MatMut<'_, $t>) {
                super::factor::faer_solve_indefinite(a, b)
            }
        }
    };
}
backend!(f32);
backend!(f64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;

    /// Wider than the leaves of faer's recursions, and not a multiple of them.
    const N: usize = 77;

    fn example(rows: usize, cols: usize) -> Matrix<f64> {
        Matrix::from_fn(rows, cols, |i, j| ((i * 31 + j * 17) % 101) as f64 / 101.0)
    }

    #[test]
    fn syrk_nt_writes_the_upper_triangle_alone() {
        let a = example(N, 20);
        let mut out = example(N, N);
        f64::syrk_nt_upper(out.view_mut(), Output::Add, a.view(), -0.5, Parallel::No);
        let before = example(N, N);
        for i in 0..N {
            for j in 0..N {
                let dot: f64 = a.row(i).iter().zip(a.row(j)).map(|(x, y)| x * y).sum();
                let change = if i <= j { -0.5 * dot } else { 0.0 };
                let error = (out.get(i, j) - before.get(i, j) - change).abs();
                assert!(error < 1e-13, "({i}, {j}): {error:.1e}");
            }
        }
    }

    #[test]
    fn solve_upper_right_is_undone_by_the_product() {
        let (rows, b) = (130, example(130, N));
        let mut u = example(N, N);
        for i in 0..N {
            u.set(i, i, N as f64);
            // Never read: a NaN would show in the result.
            u.row_mut(i)[..i].fill(f64::NAN);
        }
        let mut x = b.clone();
        f64::solve_upper_right(u.view(), x.view_mut(), Parallel::No);
        for i in 0..rows {
            for j in 0..N {
                let product: f64 = (0..=j).map(|l| x.get(i, l) * u.get(l, j)).sum();
                let error = (product - b.get(i, j)).abs();
                assert!(error < 1e-12, "({i}, {j}): {error:.1e}");
            }
        }
    }
}
