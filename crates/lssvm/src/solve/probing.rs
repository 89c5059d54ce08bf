//! The diagonal of S⁻¹ without a factor of S, for leave-one-out scores of many rows.
//!
//! ```text
//!     S X = Z,   zᵢ = ±1 at random in the column of row i's group, 0 in the others
//!     E zᵢ xᵢ = (S⁻¹)ᵢᵢ,     variance: the squares of S⁻¹ᵢⱼ summed over the group
//! ```
//!
//! Each column of Z is a probe, and tells of all rows of its group at once (Bekas,
//! Kokiopoulou and Saad, "An estimator for the diagonal of a matrix", 2007). With as many
//! groups as rows it is the closed form. Three things make few probes enough:
//!
//! - Rows that resemble each other have the large values of S⁻¹, and are neighbours
//!   (`in_clusters`): rows i, i + q, i + 2q, … are a group of q, so that neighbours are in
//!   different ones (Tang and Saad, "A probing method for computing the diagonal of a matrix
//!   inverse", 2012).
//! - The diagonal of P⁻¹ is known, and what the same probes say of it is not far from what
//!   they say of S⁻¹. What is estimated is the diagonal of S⁻¹ − βP⁻¹.
//! - What a probe says of rows that are not in its group is nothing but noise, of the size
//!   that its own rows suffer. So the deviation of each estimate is known (too small for
//!   the few rows whose own group has the row that they resemble most), and the rows that
//!   matter most are solved for themselves, S x = eᵢ. They also tell how true the stated
//!   deviations are.
//!
//! There are more rows that are nearly wrong than rows that are nearly right, so that noise
//! makes more of the former wrong than of the latter right: too large an error. MNIST, 10,000
//! rows, exactly 2.13 %; means over eight choices of signs with an S⁻¹ that is known:
//!
//! ```text
//!     rows solved                 0      32      64     128     256
//!     32 probes                2.26    2.23    2.21    2.18    2.13 %
//!     64 (four choices)        2.20    2.19    2.17    2.13    2.13 %
//! ```
//!
//! So rows are solved until few of the others are in doubt beside those that are wrong.
//!
//! Conjugate gradients solve for all columns of a batch together. A loose residual will do:
//! where it is a share r, (S⁻¹)ᵢᵢ of a row alone is too small by about 0.3 r² of itself, and
//! for a probe it is lost in the noise. Costs as many products with Ω as that takes.

use super::iterate::{Iterate, Right, all_dots};
use super::leave_one_out::{Estimated, LeaveOneOut, Left};
use super::preconditioner::Preconditioner;
use super::{Phase, Phases, Work};
use crate::linalg::{Matrix, Scalar};
use crate::metrics::normal_tail;
use crate::system::{Format, TILE, product_bytes};
use crate::{Error, Result, random};

/// Right-hand sides that are solved for together.
const BATCH: usize = 64;

/// Probes, and the most rows that are solved for themselves.
const PROBES: usize = 64;
const SOLVED: usize = 128;

/// Rows are solved for themselves in such steps, at least one: it tells how true the stated
/// deviations are. For values, which have no wrong side, one is enough.
const STEP: usize = 32;

/// Rows are solved until so many of the others are expected to be on the wrong side, as a
/// share of those that are wrong: the number of these is then known to a fifth of its own
/// deviation from one choice of rows to another.
const DOUBTFUL_SHARE: f64 = 0.05;

/// All right-hand sides, and the batches that they come in.
pub(crate) const COLUMNS: usize = PROBES + SOLVED;
pub(crate) const BATCHES: usize = PROBES.div_ceil(BATCH) + SOLVED.div_ceil(BATCH);

/// The relative residual of each column. With 0.01 errors are the same to 0.02 %, with a third
/// more iterations; with 0.05 two rows more of satimage are wrong, which their small noise
/// does not account for.
const TOLERANCE: f64 = 0.03;

/// Where Ω is kept in half precision, the residual that is aimed at before it is computed
/// with true values, as a share of the tolerance.
const HALF_SHARE: f64 = 0.5;

/// Most iterations: more are needed only where rounding has the upper hand.
const MOST_ITERATIONS: usize = 500;

/// Estimates of (S⁻¹)ᵢᵢ stay within what it can be, 1/(Ωᵢᵢ+λᵢ) to 1/λᵢ; of (Θ⁻¹)ᵢᵢ at least
/// this share of the former remains.
const LEAST_SHARE: f64 = 0.1;

/// Makes the seed of the signs another than that of the preconditioner.
const SIGNS: u64 = 0x10_0e57;

/// How much work to spend.
#[derive(Debug, Clone, Copy)]
struct Effort {
    probes: usize,
    /// At most.
    solved: usize,
    /// The relative residual of each column.
    tolerance: f64,
}

impl Effort {
    /// For so many rows: where it would do for all of them one by one, it does.
    fn usual(n: usize) -> Self {
        let (probes, solved) = match n <= COLUMNS {
            true => (n, 0),
            false => (PROBES, SOLVED),
        };
        Self {
            probes,
            solved,
            tolerance: TOLERANCE,
        }
    }
}

/// Bytes for the columns of a batch.
pub(super) fn bytes<T: Scalar>(rows: [usize; 2], rank: usize) -> u64 {
    let [n, _] = rows;
    let (value, batch) = (size_of::<T>() as u64, BATCH as u64);
    let columns = 11 * batch * n as u64 * value;
    let sums = 8 * n as u64 * size_of::<f64>() as u64;
    let inner = n.div_ceil(TILE) as u64 * batch * rank as u64 * value;
    columns + sums + inner + product_bytes::<T>(rows, BATCH)
}

/// Leave-one-out scores of the solution that `left` knows.
///
/// # Errors
/// [`Error::Interrupted`] if somebody asked to stop, [`Error::Numeric`] if conjugate
/// gradients do not converge.
pub(super) fn scores<T: Scalar>(
    work: &mut Work<'_, T>,
    preconditioner: &Preconditioner<T>,
    left: &Left<'_, T>,
    seed: u64,
) -> Result<LeaveOneOut<T>> {
    let effort = Effort::usual(work.system.n());
    scores_by(work, preconditioner, left, seed, effort)
}

fn scores_by<T: Scalar>(
    work: &mut Work<'_, T>,
    preconditioner: &Preconditioner<T>,
    left: &Left<'_, T>,
    seed: u64,
    effort: Effort,
) -> Result<LeaveOneOut<T>> {
    let mut phases = Phases::default();
    let batches = effort.probes.div_ceil(BATCH) + effort.solved.div_ceil(BATCH);
    let mut solver = BatchSolver {
        work: Work {
            system: work.system,
            block: &mut *work.block,
            phases: &mut phases,
            progress: &mut *work.progress,
        },
        preconditioner,
        tolerance: effort.tolerance,
        done: 0,
        batches,
    };
    let mut estimates = Estimates::new(&mut solver, left, effort.probes, seed)?;
    if effort.solved > 0 {
        estimates.solve_most_urgent(&mut solver, left, effort.solved)?;
    }
    work.phases.book(Phase::LeaveOneOut, &phases);
    Ok(estimates.scores(left, effort.probes))
}

/// Solves S X = B for some columns after others.
struct BatchSolver<'a, 'w, T: Scalar> {
    work: Work<'w, T>,
    preconditioner: &'a Preconditioner<T>,
    tolerance: f64,
    /// Batches that were solved, and all there will be.
    done: usize,
    batches: usize,
}

impl<T: Scalar> BatchSolver<'_, '_, T> {
    /// X, to the tolerance in every column.
    fn solve(&mut self, right: &Matrix<T>) -> Result<Matrix<T>> {
        let half = self.work.system.kept() == Some(Format::Half);
        let tolerance = self.tolerance;
        let aim = tolerance * if half { HALF_SHARE } else { 1.0 };
        let ranks = self.work.system.ranks();
        let scale = all_dots(ranks, right, right);
        let scale = scale.into_iter().map(f64::sqrt).collect();
        let known = Right::new(ranks, right, scale);
        let mut iterate = Iterate::new(right.clone(), aim);
        for _ in 0..MOST_ITERATIONS {
            let residual = iterate.largest_residual(ranks, &known.scale);
            if residual <= aim {
                if half {
                    iterate.refresh(&mut self.work, right);
                }
                if !half || iterate.largest_residual(ranks, &known.scale) <= tolerance {
                    self.done += 1;
                    return Ok(iterate.v);
                }
            }
            let within = (residual.ln() / aim.ln()).clamp(0.0, 1.0);
            if !(self.work.progress)((self.done as f64 + within) / self.batches as f64) {
                return Err(Error::Interrupted);
            }
            iterate.step(&mut self.work, self.preconditioner, &known);
        }
        Err(Error::Numeric(format!(
            "conjugate gradients did not reach a residual of {tolerance} in {MOST_ITERATIONS} \
             iterations; use a smaller c, a larger --rank or --precision f64"
        )))
    }
}

/// What is known of the diagonal of S⁻¹.
struct Estimates {
    diagonal: Vec<f64>,
    /// Standard deviation; 0 for rows that are exact.
    deviations: Vec<f64>,
    /// The least that (S⁻¹)ᵢᵢ can be.
    least: Vec<f64>,
    solved: usize,
}

/// What the probes say of each row.
struct Told {
    /// zᵢxᵢ, and the same of P⁻¹Z.
    own: Vec<f64>,
    own_preconditioned: Vec<f64>,
    /// ⟨x, x⟩, ⟨x, p⟩ and ⟨p, p⟩ over the probes of other groups, for p of P⁻¹Z.
    others: Vec<[f64; 3]>,
}

impl Told {
    /// Solves for `probes` groups.
    fn new<T: Scalar>(
        solver: &mut BatchSolver<'_, '_, T>,
        probes: usize,
        seed: u64,
    ) -> Result<Self> {
        let n = solver.work.system.n();
        let mut rng = random::rng(seed ^ SIGNS);
        let sign = |_| [-1.0, 1.0][random::below(&mut rng, 2)];
        let signs: Vec<f64> = (0..n).map(sign).collect();
        let mut told = Self {
            own: vec![0.0; n],
            own_preconditioned: vec![0.0; n],
            others: vec![[0.0; 3]; n],
        };
        for first in (0..probes).step_by(BATCH) {
            let last = (first + BATCH).min(probes);
            let z = Matrix::from_fn(n, last - first, |i, c| match i % probes == first + c {
                true => T::from_f64(signs[i]),
                false => T::ZERO,
            });
            let x = solver.solve(&z)?;
            let p = solver.preconditioner.apply(solver.work.system.ranks(), &z);
            for (i, &sign) in signs.iter().enumerate() {
                told.take(i, (i % probes).checked_sub(first), sign, [&x, &p]);
            }
        }
        Ok(told)
    }

    /// What these probes say of row `i`, whose group is in this column of them, if any.
    fn take<T: Scalar>(
        &mut self,
        i: usize,
        own: Option<usize>,
        sign: f64,
        [x, p]: [&Matrix<T>; 2],
    ) {
        for (c, (x, p)) in x.row(i).iter().zip(p.row(i)).enumerate() {
            let (x, p) = (x.to_f64(), p.to_f64());
            if own == Some(c) {
                (self.own[i], self.own_preconditioned[i]) = (sign * x, sign * p);
            } else {
                let [xx, xp, pp] = &mut self.others[i];
                (*xx, *xp, *pp) = (*xx + x * x, *xp + x * p, *pp + p * p);
            }
        }
    }

    /// β with which noise in P⁻¹Z explains most of that in X, rows counting alike.
    fn beta(&self, diagonal: &[f64]) -> f64 {
        let (mut both, mut alone) = (0.0, 0.0);
        for ([_, xp, pp], d) in self.others.iter().zip(diagonal) {
            (both, alone) = (both + xp / (d * d), alone + pp / (d * d));
        }
        if alone > 0.0 { both / alone } else { 0.0 }
    }
}

impl Estimates {
    /// By so many probes.
    fn new<T: Scalar>(
        solver: &mut BatchSolver<'_, '_, T>,
        left: &Left<'_, T>,
        probes: usize,
        seed: u64,
    ) -> Result<Self> {
        let (system, n) = (solver.work.system, left.targets().rows());
        let preconditioner = solver.preconditioner;
        let told = Told::new(solver, probes, seed)?;
        let flops = preconditioner.inverse_diagonal_flops(n);
        let of_preconditioner = solver.work.phases.time(Phase::Precondition, flops, || {
            preconditioner.inverse_diagonal()
        });
        let beta = told.beta(&of_preconditioner);
        let shifted = system.diagonal().into_iter().enumerate();
        let least = shifted.map(|(i, omega)| 1.0 / (omega + system.lambda(i)));
        let least: Vec<f64> = least.collect();
        let estimate = |i: usize| {
            let noise = told.own_preconditioned[i] - of_preconditioner[i];
            let most = (1.0 / system.lambda(i)).max(least[i]);
            (told.own[i] - beta * noise).clamp(least[i], most)
        };
        let deviation = |&[xx, xp, pp]: &[f64; 3]| {
            let squares = xx - 2.0 * beta * xp + beta * beta * pp;
            (squares.max(0.0) / (probes - 1).max(1) as f64).sqrt()
        };
        Ok(Self {
            diagonal: match probes >= n {
                true => told.own.clone(),
                false => (0..n).map(estimate).collect(),
            },
            deviations: match probes >= n {
                true => vec![0.0; n],
                false => told.others.iter().map(deviation).collect(),
            },
            least,
            solved: 0,
        })
    }

    /// (Θ⁻¹)ᵢᵢ
    fn bordered<T: Scalar>(&self, left: &Left<'_, T>, row: usize) -> f64 {
        let least = LEAST_SHARE * self.least[row];
        left.bordered(row, self.diagonal[row]).max(least)
    }

    /// The rows whose deviations matter most, at most so many.
    fn most_urgent<T: Scalar>(&self, left: &Left<'_, T>, most: usize) -> Vec<usize> {
        let classes = are_classes(left.targets());
        let mut wrong = 0;
        let mut urgency = |row: usize| {
            let bordered = self.bordered(left, row);
            let deviation = self.deviations[row] / bordered;
            if !classes {
                return deviation * left.misfits(row, bordered).map(|v| v * v).sum::<f64>();
            }
            let margin = margin(left, row, bordered);
            wrong += usize::from(margin < 0.0);
            deviation / margin.abs().max(f64::MIN_POSITIVE)
        };
        let rows = 0..self.diagonal.len();
        let mut rows: Vec<(f64, usize)> = rows.map(|row| (urgency(row), row)).collect();
        rows.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let needed = match classes {
            true => {
                let chances = rows.iter().map(|(urgency, _)| normal_tail(1.0 / urgency));
                until_few_are_in_doubt(&chances.collect::<Vec<_>>(), wrong).max(STEP)
            }
            false => STEP,
        };
        let rows = rows.into_iter().map(|(_, row)| row);
        rows.take(needed.min(most)).collect()
    }

    /// Solves for those rows whose deviations matter most, at most so many, and corrects the
    /// others' by how far off these were.
    fn solve_most_urgent<T: Scalar>(
        &mut self,
        solver: &mut BatchSolver<'_, '_, T>,
        left: &Left<'_, T>,
        most: usize,
    ) -> Result<()> {
        let n = self.diagonal.len();
        let rows = self.most_urgent(left, most);
        solver.batches = solver.done + rows.len().div_ceil(BATCH);
        let (mut off, mut counted) = (0.0, 0.0);
        for batch in rows.chunks(BATCH) {
            let units = Matrix::from_fn(n, batch.len(), |i, c| match i == batch[c] {
                true => T::ONE,
                false => T::ZERO,
            });
            let x = solver.solve(&units)?;
            for (c, &row) in batch.iter().enumerate() {
                let (true_value, deviation) = (x.get(row, c).to_f64(), self.deviations[row]);
                if deviation > 0.0 {
                    off += ((self.diagonal[row] - true_value) / deviation).powi(2);
                    counted += 1.0;
                }
                (self.diagonal[row], self.deviations[row]) = (true_value, 0.0);
                self.solved += 1;
            }
        }
        // Few rows say so, hence no less than was stated.
        let factor = if counted > 0.0 { off / counted } else { 1.0 };
        let factor = factor.max(1.0).sqrt();
        self.deviations.iter_mut().for_each(|d| *d *= factor);
        Ok(())
    }

    fn scores<T: Scalar>(&self, left: &Left<'_, T>, probes: usize) -> LeaveOneOut<T> {
        let rows = 0..self.diagonal.len();
        let bordered: Vec<f64> = rows.map(|row| self.bordered(left, row)).collect();
        let pairs = self.deviations.iter().zip(&bordered);
        let estimate = Estimated {
            deviations: pairs.map(|(deviation, b)| deviation / b).collect(),
            probes,
            solved: self.solved,
        };
        LeaveOneOut {
            scores: left.scores(&bordered),
            estimate: (probes < bordered.len()).then_some(estimate),
        }
    }
}

/// How many rows to solve, of rows that are on the wrong side with these chances, the largest
/// first, while so many are counted as wrong.
fn until_few_are_in_doubt(chances: &[f64], wrong: usize) -> usize {
    let mut doubtful: f64 = chances.iter().sum();
    let mut count = 0;
    for step in chances.chunks(STEP) {
        if doubtful <= DOUBTFUL_SHARE * wrong as f64 {
            break;
        }
        doubtful -= step.iter().sum::<f64>();
        count += step.len();
    }
    count
}

/// Whether every row has a 1 for its class and 0 for the others.
fn are_classes<T: Scalar>(targets: &Matrix<T>) -> bool {
    let one_hot = |row: &[T]| {
        let ones = row.iter().filter(|&&v| v == T::ONE).count();
        ones == 1 && row.iter().all(|&v| v == T::ONE || v == T::ZERO)
    };
    targets.cols() > 1 && (0..targets.rows()).all(|i| one_hot(targets.row(i)))
}

/// By how much the score of a row's class is above all others. (Θ⁻¹)ᵢᵢ must change by this
/// share of itself for it to be none.
fn margin<T: Scalar>(left: &Left<'_, T>, row: usize, bordered: f64) -> f64 {
    let targets = left.targets().row(row).iter();
    let scores = targets.zip(left.misfits(row, bordered));
    let (mut own, mut best) = (0.0, f64::NEG_INFINITY);
    for (&target, misfit) in scores {
        match target == T::ONE {
            true => own = 1.0 - misfit,
            false => best = best.max(-misfit),
        }
    }
    own - best
}

#[cfg(test)]
mod tests {
    use super::super::OpenBlock;
    use super::super::bordering::{Reached, right_hand_sides};
    use super::super::leave_one_out::tests::solved;
    use super::*;
    use crate::kernel::Kernel;
    use crate::system::System;
    use crate::system::tests::{POSITIVE_KERNELS, problem, problem_with_a_twin, weighted_problem};

    const RANK: usize = 40;

    /// Estimates for the solution of the system to a residual of `exact`.
    fn probed<T: Scalar>(
        system: &System<T>,
        effort: Effort,
        exact: f64,
        seed: u64,
    ) -> LeaveOneOut<T> {
        let (mut block, mut phases) = (OpenBlock::new(system.shares()), Phases::default());
        let mut work = Work {
            system,
            block: &mut block,
            phases: &mut phases,
            progress: &mut |_| true,
        };
        let rank = RANK.min(system.n());
        let preconditioner = Preconditioner::new(&mut work, rank, seed).unwrap();
        let mut solver = BatchSolver {
            work: Work {
                system,
                block: &mut *work.block,
                phases: &mut *work.phases,
                progress: &mut *work.progress,
            },
            preconditioner: &preconditioner,
            tolerance: exact,
            done: 0,
            batches: 1,
        };
        let solution = solver.solve(&right_hand_sides(system)).unwrap();
        let mut reached = Reached::nowhere(system);
        reached.take_over(&solution);
        let left = Left::new(&solution, reached.weights(), system.targets());
        scores_by(&mut work, &preconditioner, &left, seed, effort).unwrap()
    }

    /// (Θ⁻¹)ᵢᵢ as it is estimated, as a multiple of what it is.
    fn share<T: Scalar>(
        system: &System<T>,
        found: &Matrix<T>,
        exact: &Matrix<f64>,
        i: usize,
    ) -> f64 {
        let misfit = |h: f64, k: usize| system.targets().get(i, k).to_f64() - h;
        let outputs = 0..system.outputs();
        let misfits = outputs.map(|k| {
            (
                misfit(exact.get(i, k), k),
                misfit(found.get(i, k).to_f64(), k),
            )
        });
        let largest = misfits.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
        largest.map_or(1.0, |(exact, found)| exact / found)
    }

    #[test]
    fn as_many_probes_as_rows_are_the_closed_form() {
        for kernel in POSITIVE_KERNELS {
            for (outputs, c) in [(1, 1.0), (2, 50.0), (10, 0.1)] {
                let n = 61;
                let (system, _) = problem_with_a_twin(n, 3, outputs, kernel, c);
                let exact = solved(&system, true).leave_one_out.unwrap().scores;
                let effort = Effort {
                    tolerance: 1e-10,
                    ..Effort::usual(n + 1)
                };
                let found = probed(&system, effort, 1e-10, 3);
                assert!(found.estimate.is_none());
                let pairs = found.scores.values().iter().zip(exact.values());
                for (found, exact) in pairs {
                    let off = (found - exact).abs();
                    assert!(
                        off < 1e-6 * exact.abs().max(1.0),
                        "{kernel:?}: {found}, {exact}"
                    );
                }
            }
        }
    }

    #[test]
    fn estimates_are_as_far_off_as_they_say() {
        let (n, kernel, c) = (TILE + 300, Kernel::Rbf { gamma: 3.0 }, 5.0);
        for outputs in [1, 2, 10] {
            let exact = weighted_problem::<f64>(n, 3, outputs, kernel, c);
            let exact = solved(&exact, true).leave_one_out.unwrap().scores;
            for kept in [None, Some(Format::Full), Some(Format::Half)] {
                let mut system = weighted_problem::<f32>(n, 3, outputs, kernel, c);
                if let Some(format) = kept {
                    system.keep_kernel(format, &mut |_| true).unwrap();
                }
                let found = probed(&system, Effort::usual(n), 1e-4, 5);
                let estimate = found.estimate.as_ref().unwrap();
                assert_eq!((estimate.probes, estimate.solved), (PROBES, STEP));
                let (mut squares, mut far, mut solved) = (0.0, 0, 0);
                for (i, &deviation) in estimate.deviations.iter().enumerate() {
                    let off = share(&system, &found.scores, &exact, i) - 1.0;
                    if deviation == 0.0 {
                        solved += 1;
                        assert!(off.abs() < 0.01, "{kept:?}, row {i}: {off}");
                    } else {
                        let off = off / deviation;
                        squares += off * off / (n - STEP) as f64;
                        far += usize::from(off.abs() > 3.0);
                    }
                }
                assert_eq!(solved, STEP);
                let spread = squares.sqrt();
                assert!(
                    (0.5..1.2).contains(&spread),
                    "{outputs}, {kept:?}: {spread}"
                );
                // More than of a normal variable: some rows share a group with the one that
                // they resemble most.
                assert!(far < n / 30, "{outputs}, {kept:?}: {far}");
            }
        }
    }

    #[test]
    fn rows_that_may_change_sides_are_solved_first() {
        let n = 200;
        let plain = problem::<f64>(n, 3, 3, Kernel::Rbf { gamma: 3.0 }, 5.0);
        let x = plain.samples().points().clone();
        let classes = Matrix::from_fn(n, 3, |i, k| f64::from(u8::from((i * 7 + i / 5) % 3 == k)));
        let system = System::new(x, classes, *plain.kernel(), 5.0).unwrap();
        let effort = Effort {
            probes: 8,
            solved: 20,
            tolerance: 0.01,
        };
        let found = probed(&system, effort, 1e-6, 1);
        let deviations = found.estimate.unwrap().deviations;
        let margin = |i: usize| {
            let (mut own, mut best) = (0.0, f64::NEG_INFINITY);
            for (h, y) in found.scores.row(i).iter().zip(system.targets().row(i)) {
                match *y == 1.0 {
                    true => own = *h,
                    false => best = best.max(*h),
                }
            }
            (own - best).abs()
        };
        let share = |solved: bool| {
            let rows = (0..n).filter(|&i| (deviations[i] == 0.0) == solved);
            let margins: Vec<f64> = rows.map(margin).collect();
            margins.iter().sum::<f64>() / margins.len() as f64
        };
        assert!(share(true) < 0.3 * share(false));
    }

    #[test]
    fn rows_are_solved_until_few_are_in_doubt() {
        let chances = |doubtful: usize| {
            let chance = |i| if i < doubtful { 0.4 } else { 1e-4 };
            (0..1000).map(chance).collect::<Vec<f64>>()
        };
        // 5 % of 100 rows: 40 in doubt leave 3.2 of 16 after a step, 60 leave 11.2 of 24.
        assert_eq!(until_few_are_in_doubt(&chances(0), 100), 0);
        assert_eq!(until_few_are_in_doubt(&chances(40), 100), STEP);
        assert_eq!(until_few_are_in_doubt(&chances(60), 100), 2 * STEP);
        assert_eq!(until_few_are_in_doubt(&chances(60), 300), STEP);
        assert_eq!(until_few_are_in_doubt(&chances(60), 0), 1000);
    }

    #[test]
    fn the_same_seed_gives_the_same_scores() {
        let system = problem::<f32>(300, 3, 2, Kernel::Rbf { gamma: 3.0 }, 5.0);
        let effort = Effort::usual(system.n());
        let scores = |seed| probed(&system, effort, 1e-4, seed).scores;
        assert_eq!(scores(1), scores(1));
        assert_ne!(scores(1), scores(2));
    }
}
