//! A Nyström approximation of Ω that makes conjugate gradients quick.
//!
//! ```text
//!     Ω ≈ U Uᵀ,   U = Ω[:, m] C⁻¹,   Ω[m, m] = CᵀC       m: the first rows
//!     P = U Uᵀ + ρI,     P⁻¹ R = (R − U (UᵀU + ρI)⁻¹ UᵀR) / ρ
//!     ρ = λ + mean of the diagonal of Ω − U Uᵀ
//! ```
//!
//! The rows must be in random order. ρ stands for the part of Ω that U misses:
//! with λ alone in its place the approximation is worse than none (MNIST, 9,000
//! rows, m = N/10: relative residual 0.8 after 16 iterations with λ, 0.009 with ρ).
//! Costs 2 N m² operations once, N m values of memory and 4 N m operations a column
//! in each iteration.

use rayon::prelude::*;

use super::{Phase, Work};
use crate::Result;
use crate::linalg::{Cholesky, MatMut, Matrix, Output, Parallel, Scalar, skinny, sum_of_squares};

/// Rows that one task solves with the triangle C.
const TASK_ROWS: usize = 1024;

/// U, the factor of UᵀU + ρI, and ρ.
pub(super) struct Preconditioner<T: Scalar> {
    u: Matrix<T>,
    factor: Cholesky<T>,
    rho: T,
}

/// Operations on U that a rank is worth, as a share of those of computing Ω's
/// lower half; see docs/performance.md.
const SETUP_SHARE: f64 = 0.4;

/// Features that data have at least in that reckoning: products with Ω cost too.
const FEWEST_FEATURES: usize = 500;

/// The least rank, and the largest as a share of N.
const LEAST_RANK: usize = 100;
const LARGEST_RANK_SHARE: f64 = 0.25;

/// The rank for a system of `n` rows with so many features: 2 N m² operations are
/// four tenths of N² M.
pub fn rank_for(n: usize, features: usize) -> usize {
    let features = features.max(FEWEST_FEATURES) as f64;
    let rank = (0.5 * SETUP_SHARE * n as f64 * features).sqrt();
    let most = (n as f64 * LARGEST_RANK_SHARE) as usize;
    (rank as usize).min(most).max(LEAST_RANK).min(n)
}

impl<T: Scalar> Preconditioner<T> {
    pub(super) fn new(work: &mut Work<'_, T>, rank: usize) -> Result<Self> {
        let (system, n) = (work.system, work.system.n());
        let flops = match system.kept() {
            Some(_) => 0.0,
            None => system.kernel_flops(n as f64 * rank as f64),
        };
        let mut u = work
            .phases
            .time(Phase::Kernel, flops, || system.leading_columns(rank));
        let m = rank as f64;
        let flops = m * m * m / 3.0 + n as f64 * m * m;
        work.phases
            .time(Phase::Precondition, flops, || -> Result<()> {
                let corner = Matrix::from_vec(rank, rank, u.values()[..rank * rank].to_vec());
                let c = Cholesky::new(corner)?;
                u.values_mut()
                    .par_chunks_mut(TASK_ROWS * rank)
                    .for_each(|rows| {
                        let rows = MatMut::new(rows.len() / rank, rank, rows);
                        T::solve_upper_right(c.buffer(), rows, Parallel::No);
                    });
                Ok(())
            })?;
        let captured = sum_of_squares(u.values());
        let missed = (system.trace() - captured) / n as f64;
        let rho = system.lambda() + missed.max(0.0);
        let flops = m * m * m / 3.0 + n as f64 * m * m;
        let factor = work.phases.time(Phase::Precondition, flops, || {
            let mut gram = Matrix::zeros(rank, rank);
            let out = gram.view_mut();
            T::syrk_upper(out, Output::Replace, u.view(), T::ONE, Parallel::Pool);
            let diagonal = gram.values_mut().iter_mut().step_by(rank + 1);
            diagonal.for_each(|v| *v += T::from_f64(rho));
            Cholesky::new(gram)
        })?;
        Ok(Self {
            u,
            factor,
            rho: T::from_f64(rho),
        })
    }

    /// m
    pub(super) fn rank(&self) -> usize {
        self.u.cols()
    }

    /// P⁻¹ R
    pub(super) fn apply(&self, r: &Matrix<T>) -> Matrix<T> {
        let mut inner = skinny::transposed_product(self.u.view(), r.view());
        self.factor.solve(inner.view_mut());
        let mut out = r.clone();
        skinny::add_product(out.view_mut(), self.u.view(), inner.view(), -T::ONE);
        let inverse = T::ONE / self.rho;
        out.values_mut().iter_mut().for_each(|v| *v *= inverse);
        out
    }

    /// Bytes of it.
    pub(super) fn bytes(n: usize, rank: usize) -> u64 {
        // U, and at one time C, a copy of it and the Gram matrix.
        (n as u64 + 3 * rank as u64) * rank as u64 * size_of::<T>() as u64
    }
}
