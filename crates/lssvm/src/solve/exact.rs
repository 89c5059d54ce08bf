//! The direct solution, by Cholesky.
//!
//! ```text
//!     (Ω+λI) [A ν] = [Y 1],     b = 1ᵀA / 1ᵀν,     a = A − ν b
//! ```
//!
//! Ω+λI is positive definite where Θ is not, and one more right-hand side gives
//! the exact bias. N³/3 operations and N² values of memory: the choice while
//! they are affordable. The factor leaves Ω's lower triangle in place, so that
//! steps of iterative refinement and the residual need no second look at the
//! kernel. A kernel that is not positive (`sigmoid`) is solved by Bunch–Kaufman.

use super::{Phase, Residual, Solver, Step, Work};
use crate::linalg::{Cholesky, MatRef, Matrix, Scalar, skinny};
use crate::system::{Bordered, System, relative};
use crate::{Error, Result};

/// Most steps of refinement; each must halve the residual or it is the last.
const MOST_REFINEMENTS: usize = 3;

/// Rows of a product with the stored triangle that are summed in the precision
/// of the matrix before they join the sum in `f64`.
const BAND: usize = 1024;

/// The share of progress that the kernel matrix takes, the rest is the factor.
const KERNEL_SHARE: f64 = 0.4;

/// The solution, once it is there.
#[derive(Debug)]
pub struct Exact<T: Scalar> {
    weights: Bordered<T>,
    residual: Option<Residual>,
}

impl<T: Scalar> Exact<T> {
    /// Nothing solved yet.
    pub fn new(system: &System<T>) -> Self {
        Self {
            weights: Bordered::zeros(system.n(), system.outputs()),
            residual: None,
        }
    }
}

impl<T: Scalar> Solver<T> for Exact<T> {
    fn step(&mut self, work: &mut Work<'_, T>) -> Result<Step> {
        let system = work.system;
        let n = system.n() as f64;
        let progress = &mut *work.progress;
        let flops = system.kernel_flops(n * (n + 1.0) / 2.0);
        let matrix = work.phases.time(Phase::Kernel, flops, || {
            system.shifted_kernel(&mut |done| progress(KERNEL_SHARE * done))
        })?;
        let flops = n * n * n / 3.0;
        let factor = work.phases.time(Phase::Factor, flops, || {
            let mut told = |done: f64| progress(KERNEL_SHARE + (1.0 - KERNEL_SHARE) * done);
            if system.kernel().is_positive() {
                Factor::cholesky(matrix, &mut told)
            } else {
                Ok(Factor::Indefinite(matrix))
            }
        })?;
        let columns = system.outputs() as f64 + 1.0;
        let flops = 4.0 * n * n * columns;
        self.weights = work
            .phases
            .time(Phase::Update, flops, || factor.solve_with_bias(system))?;
        let residual = work.phases.time(Phase::Certify, flops / 2.0, || {
            let product = factor.product(self.weights.rows.view());
            residual_norm(system, &self.weights, &product)
        });
        let scale = system.targets().frobenius_norm();
        self.residual = Some(Residual {
            relative: relative(residual, scale),
            exact: true,
        });
        if !self.weights.norm().is_finite() {
            return Err(Error::Numeric(
                "the solution is not finite: the kernel matrix is singular in this precision; \
                 use a smaller c or --precision f64"
                    .into(),
            ));
        }
        Ok(Step {
            relative_change: 1.0,
            jitter: factor.jitter(),
            finished: true,
        })
    }

    fn weights(&self) -> &Bordered<T> {
        &self.weights
    }

    fn residual(&self) -> Option<Residual> {
        self.residual
    }

    fn steps_per_pass(&self) -> usize {
        1
    }
}

/// ‖Z − ΘW‖, given (Ω+λI)·a in `f64`.
fn residual_norm<T: Scalar>(system: &System<T>, w: &Bordered<T>, product: &Matrix<f64>) -> f64 {
    let mut squares = 0.0;
    let mut sums = vec![0.0; system.outputs()];
    for i in 0..system.n() {
        for (k, sum) in sums.iter_mut().enumerate() {
            let row = product.get(i, k) + w.bias[k].to_f64();
            squares += (system.targets().get(i, k).to_f64() - row).powi(2);
            *sum += w.rows.get(i, k).to_f64();
        }
    }
    (squares + sums.iter().map(|s| s * s).sum::<f64>()).sqrt()
}

/// Ω+λI, ready to solve with.
enum Factor<T: Scalar> {
    Positive(Cholesky<T>),
    Indefinite(Matrix<T>),
}

impl<T: Scalar> Factor<T> {
    fn cholesky(matrix: Matrix<T>, progress: &mut dyn FnMut(f64) -> bool) -> Result<Self> {
        Cholesky::of_full(matrix, progress).map(Factor::Positive)
    }

    fn jitter(&self) -> f64 {
        match self {
            Factor::Positive(factor) => factor.jitter(),
            Factor::Indefinite(_) => 0.0,
        }
    }

    /// W = [b; a] of the system.
    fn solve_with_bias(&self, system: &System<T>) -> Result<Bordered<T>> {
        let (n, k) = (system.n(), system.outputs());
        let right = Matrix::from_fn(n, k + 1, |i, c| {
            if c < k {
                system.targets().get(i, c)
            } else {
                T::ONE
            }
        });
        let solution = self.solve(&right);
        let sum = |c: usize| (0..n).map(|i| solution.get(i, c).to_f64()).sum::<f64>();
        let ones = sum(k);
        let bias: Vec<f64> = (0..k).map(|c| sum(c) / ones).collect();
        let rows = Matrix::from_fn(n, k, |i, c| {
            T::from_f64(solution.get(i, c).to_f64() - solution.get(i, k).to_f64() * bias[c])
        });
        Ok(Bordered {
            bias: bias.into_iter().map(T::from_f64).collect(),
            rows,
        })
    }

    /// (Ω+λI)⁻¹ B, refined.
    fn solve(&self, right: &Matrix<T>) -> Matrix<T> {
        let factor = match self {
            Factor::Positive(factor) => factor,
            Factor::Indefinite(matrix) => {
                let (mut matrix, mut solution) = (matrix.clone(), right.clone());
                T::solve_indefinite(matrix.view_mut(), solution.view_mut());
                return solution;
            }
        };
        let mut solution = right.clone();
        factor.solve(solution.view_mut());
        let mut best = f64::INFINITY;
        for _ in 0..=MOST_REFINEMENTS {
            let product = self.product(solution.view());
            let difference = Matrix::from_fn(right.rows(), right.cols(), |i, c| {
                T::from_f64(right.get(i, c).to_f64() - product.get(i, c))
            });
            let norm = difference.frobenius_norm();
            if norm.is_nan() || norm >= 0.5 * best {
                break;
            }
            best = norm;
            let mut correction = difference;
            factor.solve(correction.view_mut());
            let pairs = solution.values_mut().iter_mut().zip(correction.values());
            pairs.for_each(|(s, &c)| *s += c);
        }
        solution
    }

    /// (Ω+λI) · V from the stored lower triangle, summed in `f64`.
    fn product(&self, v: MatRef<'_, T>) -> Matrix<f64> {
        let (matrix, diagonal): (MatRef<'_, T>, Vec<T>) = match self {
            Factor::Positive(factor) => (factor.buffer(), factor.diagonal().to_vec()),
            Factor::Indefinite(matrix) => {
                let diagonal = (0..matrix.rows()).map(|i| matrix.get(i, i)).collect();
                (matrix.view(), diagonal)
            }
        };
        let (n, k) = (v.rows(), v.cols());
        let mut out = Matrix::<f64>::zeros(n, k);
        let mut add = |start: usize, part: &Matrix<T>| {
            let out = &mut out.values_mut()[start * k..];
            let pairs = out.iter_mut().zip(part.values());
            pairs.for_each(|(o, p)| *o += p.to_f64());
        };
        for top in (0..n).step_by(BAND) {
            let bottom = (top + BAND).min(n);
            let rows = matrix.row_range(top, bottom);
            // Left of the diagonal block, and its mirror image above it.
            for left in (0..top).step_by(BAND) {
                let right = left + BAND;
                let tile = rows.col_range(left, right);
                let mut part = Matrix::zeros(bottom - top, k);
                let here = v.row_range(left, right);
                skinny::add_product(part.view_mut(), tile, here, T::ONE);
                add(top, &part);
                add(
                    left,
                    &skinny::transposed_product(tile, v.row_range(top, bottom)),
                );
            }
            let corner = Matrix::from_fn(bottom - top, bottom - top, |i, j| match i.cmp(&j) {
                std::cmp::Ordering::Equal => diagonal[top + i],
                std::cmp::Ordering::Greater => rows.row(i)[top + j],
                std::cmp::Ordering::Less => rows.row(j)[top + i],
            });
            let mut part = Matrix::zeros(bottom - top, k);
            skinny::add_product(
                part.view_mut(),
                corner.view(),
                v.row_range(top, bottom),
                T::ONE,
            );
            add(top, &part);
        }
        out
    }
}
