//! The direct solution, by Cholesky.
//!
//! ```text
//!     S [A ν] = [Y 1],   S = Ω+λI = L Lᵀ,     b = 1ᵀA / 1ᵀν,     a = A − ν b
//! ```
//!
//! S is positive definite where Θ is not, and one more right-hand side gives the
//! exact bias (see `bordering`). N³/3 operations, and N²/2 values of memory:
//! the lower half of S in tiles, factored in place. Steps of iterative refinement
//! with sums in `f64` bring the residual down; they read Ω if it is kept besides,
//! and else compute it once more each. A kernel that is not positive (`sigmoid`) is
//! solved by Bunch–Kaufman on the whole matrix.

use std::ops::Range;

use super::bordering::{Reached, left_over, right_hand_sides};
use super::{LeaveOneOut, Method, Phase, Residual, Solver, State, Step, Work, leave_one_out};
use crate::linalg::factor::more_jitter;
use crate::linalg::{INVERSE_COLUMNS, Matrix, Scalar, TiledCholesky};
use crate::system::{Bordered, Certificate, Format, System, TILE};
use crate::{Error, Result};

/// Most steps of refinement; each must halve the residual or it is the last.
const MOST_REFINEMENTS: usize = 3;

/// A relative residual, in units of the type's rounding error, that needs no
/// further step.
const SMALL_ENOUGH: f64 = 10.0;

/// The share of progress that the kernel matrix takes, the rest is the factor.
const KERNEL_SHARE: f64 = 0.3;

/// The solution, once it is there.
#[derive(Debug)]
pub struct Exact<T: Scalar> {
    reached: Reached<T>,
    /// Whether leave-one-out scores are wanted.
    loo: bool,
    leave_one_out: Option<LeaveOneOut<T>>,
}

impl<T: Scalar> Exact<T> {
    /// Nothing solved yet. `loo`: leave-one-out scores are wanted too.
    pub fn new(system: &System<T>, loo: bool) -> Self {
        Self {
            reached: Reached::nowhere(system),
            loo,
            leave_one_out: None,
        }
    }

    /// Bytes that it needs beside the data, for a positive kernel or another.
    pub fn bytes(n: usize, outputs: usize, positive: bool, loo: bool) -> u64 {
        let n = n as u64;
        let value = size_of::<T>() as u64;
        let threads = rayon::current_num_threads() as u64;
        let inverse = match (loo, positive) {
            (false, _) => 0,
            (true, true) => 2 * threads * n * INVERSE_COLUMNS as u64 * value,
            (true, false) => 2 * n * n * value,
        };
        let matrix = match positive {
            true => crate::system::Store::<T>::bytes(n as usize, Format::Full),
            // The whole matrix, and a copy that is factored.
            false => 2 * n * n * value,
        };
        matrix + inverse + 12 * n * (outputs as u64 + 1) * value
    }
}

/// S, ready to solve with.
pub(super) enum Factor<T: Scalar> {
    Positive(TiledCholesky<T>),
    Indefinite(Matrix<T>),
}

impl<T: Scalar> Factor<T> {
    /// The factor, and the jitter it needed.
    fn new(work: &mut Work<'_, T>) -> Result<(Self, f64)> {
        let (system, n) = (work.system, work.system.n() as f64);
        if !system.kernel().is_positive() {
            let flops = system.kernel_flops(n * (n + 1.0) / 2.0);
            let progress = &mut *work.progress;
            let matrix = work.phases.time(Phase::Kernel, flops, || {
                system.shifted_kernel(&mut |done| progress(KERNEL_SHARE * done))
            })?;
            return Ok((Factor::Indefinite(matrix), 0.0));
        }
        let flops = match system.kept() {
            Some(Format::Full) => 0.0,
            _ => system.kernel_flops(n * (n + 1.0) / 2.0),
        };
        let tiles = |system: &System<T>, told: &mut dyn FnMut(f64) -> bool| system.tiles(told);
        let (factor, jitter) = factor_tiles(work, 0..system.n(), flops, &tiles)?;
        Ok((Factor::Positive(factor), jitter))
    }

    /// The diagonal of S⁻¹.
    pub(super) fn inverse_diagonal(&self, work: &mut Work<'_, T>) -> Result<Vec<T>> {
        let n = work.system.n();
        let progress = &mut *work.progress;
        let flops = (n as f64).powi(3) / 3.0;
        work.phases.time(Phase::LeaveOneOut, flops, || match self {
            Factor::Positive(factor) => factor.inverse_diagonal(progress),
            Factor::Indefinite(matrix) => {
                let mut inverse = Matrix::from_fn(n, n, |i, j| match i == j {
                    true => T::ONE,
                    false => T::ZERO,
                });
                T::solve_indefinite(matrix.clone().view_mut(), inverse.view_mut());
                Ok((0..n).map(|i| inverse.get(i, i)).collect())
            }
        })
    }

    fn solve(&self, b: &mut Matrix<T>) {
        match self {
            Factor::Positive(factor) => factor.solve(b),
            Factor::Indefinite(matrix) => {
                T::solve_indefinite(matrix.clone().view_mut(), b.view_mut());
            }
        }
    }
}

/// Computes tiles, or copies them, and is told whom to tell how far that is.
pub(super) type Tiles<'a, T> =
    dyn Fn(&System<T>, &mut dyn FnMut(f64) -> bool) -> Result<Vec<Matrix<T>>> + 'a;

/// Factors Ω+λI of these rows, given by tiles of Ω that can be had again, with `flops`
/// operations, if the matrix needs jitter; returns that too.
pub(super) fn factor_tiles<T: Scalar>(
    work: &mut Work<'_, T>,
    rows: Range<usize>,
    flops: f64,
    tiles: &Tiles<'_, T>,
) -> Result<(TiledCholesky<T>, f64)> {
    let (system, progress) = (work.system, &mut *work.progress);
    let (n, size) = (rows.len(), rows.len() as f64);
    let mut jitter = 0.0;
    loop {
        let mut tiles = work.phases.time(Phase::Kernel, flops, || {
            tiles(system, &mut |done| progress(KERNEL_SHARE * done))
        })?;
        system.shift_tiles(&mut tiles, rows.start);
        let factor = work.phases.time(Phase::Factor, size.powi(3) / 3.0, || {
            let mut told = |done: f64| progress(KERNEL_SHARE + (1.0 - KERNEL_SHARE) * done);
            TiledCholesky::new(tiles, n, TILE, jitter, &mut told)
        })?;
        if let Some(factor) = factor {
            return Ok((factor, jitter));
        }
        let mean = system.trace() / system.own_rows() as f64;
        if !mean.is_finite() {
            return Err(Error::Numeric(
                "the kernel matrix holds values that are not finite; scale the features or \
                 lower the kernel's degree or gamma"
                    .into(),
            ));
        }
        jitter = more_jitter::<T>(jitter, mean, n)?;
    }
}

/// V = S⁻¹ [Y 1], refined, and S V.
fn solve<T: Scalar>(work: &mut Work<'_, T>, factor: &Factor<T>) -> (Matrix<T>, Matrix<f64>) {
    let system = work.system;
    let right = right_hand_sides(system);
    let (n, k) = (right.rows() as f64, right.cols() as f64);
    let scale = right.frobenius_norm();
    let mut residual = right.clone();
    let mut solution = Matrix::zeros(right.rows(), right.cols());
    let mut its_product = Matrix::zeros(right.rows(), right.cols());
    let mut least = f64::INFINITY;
    for _ in 0..=MOST_REFINEMENTS {
        let mut correction = residual.clone();
        work.phases.time(Phase::Update, 2.0 * n * n * k, || {
            factor.solve(&mut correction)
        });
        let mut next = solution.clone();
        let pairs = next.values_mut().iter_mut().zip(correction.values());
        pairs.for_each(|(s, &c)| *s += c);
        let flops = 2.0 * n * n * k;
        let product = work
            .phases
            .time(Phase::Certify, flops, || system.shifted_product(&next));
        let left = left_over(&right, &product);
        let norm = left.frobenius_norm();
        // Never worse than before, and never not a number after a number.
        if least.is_finite() && (norm.is_nan() || norm >= least) {
            break;
        }
        let enough = norm >= 0.5 * least || norm <= SMALL_ENOUGH * T::EPSILON * scale;
        (solution, its_product, residual, least) = (next, product, left, norm);
        if enough {
            break;
        }
    }
    (solution, its_product)
}

impl<T: Scalar> Solver<T> for Exact<T> {
    fn step(&mut self, work: &mut Work<'_, T>) -> Result<Step> {
        let (factor, jitter) = Factor::new(work)?;
        let (solution, product) = solve(work, &factor);
        let reached = &mut self.reached;
        reached.take_over(&solution);
        reached.certify(work.system, &product);
        if !reached.weights().norm(work.system.ranks()).is_finite() {
            return Err(Error::Numeric(
                "the solution is not finite: the kernel matrix is singular in this precision; \
                 use a smaller c or --precision f64"
                    .into(),
            ));
        }
        if self.loo {
            let weights = self.reached.weights();
            let scores = leave_one_out::by_factor(work, &factor, &solution, weights)?;
            self.leave_one_out = Some(scores);
        }
        Ok(Step {
            relative_change: 1.0,
            jitter,
            finished: true,
            abandoned: false,
        })
    }

    fn weights(&self) -> &Bordered<T> {
        self.reached.weights()
    }

    fn residual(&self) -> Option<Residual> {
        self.reached.residual()
    }

    fn certificate(&self) -> Option<&Certificate> {
        self.reached.certificate()
    }

    fn leave_one_out(&mut self, _: &mut Work<'_, T>) -> Result<Option<LeaveOneOut<T>>> {
        Ok(self.leave_one_out.take())
    }

    fn steps_per_pass(&self) -> usize {
        1
    }

    fn start_from(&mut self, _: &mut Work<'_, T>, _: Bordered<T>) -> Result<()> {
        Method::Exact.expect_start()
    }

    /// Nothing: before its one step there is nothing to keep, and after it the run ends.
    fn save<'a>(&'a self, _: &mut State<'a>) {}

    fn restore(&mut self, _: &mut State<'_>) -> Result<()> {
        Ok(())
    }
}
