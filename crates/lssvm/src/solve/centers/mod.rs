//! A model of P centres fitted on all N rows: the setting of Falkon and EigenPro, for more
//! rows than a kernel matrix can have.
//!
//! ```text
//!     min over a, b:   Σᵢ wᵢ ‖yᵢ − Ω(xᵢ, centres) a − b‖² + λ aᵀ Ω(centres, centres) a
//!
//!     (K ᵀ W̃ K + λ Ω_cc) a = Kᵀ W̃ Y,     K = Ω(rows, centres),   W̃ = W − W11ᵀW / Σw
//!     b = ȳ − mᵀa / Σw,                   m = KᵀW1,   ȳ the weighted mean
//! ```
//!
//! If every row is a centre, this is the system of the full kernel, and its solution: with
//! wᵢ = 1, Ω(Ωa + λa + b − y) = 0.
//!
//! The equations are solved by preconditioned conjugate gradients. A step is one pass over
//! the rows: 2·N·P·M operations for the kernel and 4·N·P·K for two products, of blocks that
//! stay in the cache. Since m is known after the first pass, the mean of Kd is known before
//! the pass that computes it, and W̃ costs nothing. Rows are read as they are needed;
//! memory is two squares of P values and some batches. Vectors are kept in `f64`.
//!
//! Where rows live on several ranks, each passes over its own, and the sums of P·K values
//! are added; centres and everything made of them are on every rank.
//!
//! Ω_cc stands for Ω(centres, centres) + εI, with ε as large as the rounding of Ω: weights
//! along directions that centres share (those of a linear kernel, of centres that repeat)
//! would be noise without it.

mod pass;
pub mod pivots;
mod preconditioner;
mod problem;
#[cfg(test)]
mod tests;

pub use pass::Source;
pub use problem::Problem;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::State as Saved;
use super::iterate::dots;
use super::state::unfit;
use super::{Phase, Residual, Solver, Step, Work};
use crate::kernel::Kernel;
use crate::linalg::{Matrix, Precision, Scalar};
use crate::ranks::Ranks;
use crate::system::{Bordered, add_scores, relative};
use crate::{Error, Result};
use pass::Pass;
use preconditioner::Preconditioner;

/// A column rests when its own residual is so much of the tolerance for all.
const COLUMN_SHARE: f64 = 0.3;

/// How centres are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Select {
    /// Each row equally likely.
    #[default]
    Uniform,
    /// By randomly pivoted Cholesky: rows that those before them tell little of.
    Pivoted,
}

impl Select {
    const ALL: [Select; 2] = [Select::Uniform, Select::Pivoted];
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Select::Uniform => "uniform",
            Select::Pivoted => "pivoted",
        })
    }
}

impl FromStr for Select {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|way| way.to_string() == name);
        found.ok_or_else(|| Error::parameter("select", name, "must be uniform or pivoted"))
    }
}

/// Refuses a kernel that is not positive: the penalty λ aᵀΩa would have no least value.
pub fn expect_positive(kernel: &Kernel) -> Result<()> {
    match kernel.is_positive() {
        true => Ok(()),
        false => Err(Error::parameter(
            "kernel",
            "sigmoid",
            "is not positive definite, and the method centers needs a kernel that is",
        )),
    }
}

/// State of the iteration.
pub struct Centers<T: Scalar> {
    problem: Problem<T>,
    tolerance: f64,
    /// Number type of the preconditioner.
    precision: Precision,
    /// Weights to begin with.
    start: Option<Matrix<f64>>,
    iterate: Option<Iterate>,
    made: Option<Made>,
    weights: Bordered<T>,
    residual: Option<Residual>,
}

/// Where the iteration stands, after the first pass.
struct Iterate {
    /// m
    sums: Vec<f64>,
    right: Matrix<f64>,
    a: Matrix<f64>,
    r: Matrix<f64>,
    /// Directions, and how much of each goes into the next.
    d: Matrix<f64>,
    beta: Vec<f64>,
    /// ⟨R, P⁻¹R⟩ at a = 0.
    scale: Vec<f64>,
    rest: f64,
}

/// What follows from the problem.
struct Made {
    preconditioner: AnyPreconditioner,
    mean_target: Vec<f64>,
    total: f64,
}

/// Both, and P⁻¹R, for the time of a step.
struct State {
    made: Made,
    iterate: Iterate,
    z: Matrix<f64>,
}

enum AnyPreconditioner {
    F32(Preconditioner<f32>),
    F64(Preconditioner<f64>),
}

impl AnyPreconditioner {
    fn apply(&self, r: &Matrix<f64>) -> Matrix<f64> {
        match self {
            AnyPreconditioner::F32(own) => own.apply(r),
            AnyPreconditioner::F64(own) => own.apply(r),
        }
    }

    fn jitter(&self) -> f64 {
        match self {
            AnyPreconditioner::F32(own) => own.jitter(),
            AnyPreconditioner::F64(own) => own.jitter(),
        }
    }
}

impl<T: Scalar> Centers<T> {
    /// `tolerance`: the relative residual that is aimed at; `precision` of the
    /// preconditioner: `f64` converges in fewer steps where λ is small.
    ///
    /// # Errors
    /// As [`expect_positive`].
    pub fn new(problem: Problem<T>, tolerance: f64, precision: Precision) -> Result<Self> {
        expect_positive(&problem.kernel)?;
        Ok(Self {
            weights: Bordered::zeros(problem.centers.len(), problem.outputs),
            problem,
            tolerance,
            precision,
            start: None,
            iterate: None,
            made: None,
            residual: None,
        })
    }

    /// What it is fitted to.
    pub fn problem(&self) -> &Problem<T> {
        &self.problem
    }

    /// Bytes that it needs beside the centres: for `n` rows of `features` (raw, and after
    /// preprocessing), held in memory or not.
    pub fn bytes(
        n: usize,
        centers: usize,
        outputs: usize,
        features: [usize; 2],
        held: bool,
        precision: Precision,
    ) -> u64 {
        let preconditioner = match precision {
            Precision::F32 => Preconditioner::<f32>::bytes(centers),
            Precision::F64 => Preconditioner::<f64>::bytes(centers),
        };
        let vectors = 10 * size_of::<f64>() * centers * (outputs + 1);
        let pass = Pass::<T>::bytes(n, centers, outputs + 1, features, held);
        preconditioner + pass + vectors as u64
    }

    /// What follows from the problem, made once by every process.
    fn make(&self, work: &mut Work<'_, T>) -> Result<Made> {
        let problem = &self.problem;
        let (total, size) = (problem.total_weight(), problem.centers.len() as f64);
        let flops = problem.kernel_flops_of_centers() + size.powi(3);
        let preconditioner = work.phases.time(Phase::Precondition, flops, || {
            let scale = total / problem.center_weights.iter().sum::<f64>();
            let (weights, lambda) = (&problem.center_weights, problem.lambda);
            Ok::<_, Error>(match self.precision {
                Precision::F32 => {
                    let omega = problem.omega_of_centers();
                    AnyPreconditioner::F32(Preconditioner::new(omega, weights, scale, lambda)?)
                }
                Precision::F64 => {
                    let omega = problem.omega_of_centers();
                    AnyPreconditioner::F64(Preconditioner::new(omega, weights, scale, lambda)?)
                }
            })
        })?;
        Ok(Made {
            preconditioner,
            mean_target: problem.mean_target(),
            total,
        })
    }

    /// The first pass: what the rows say without any weights.
    fn begin(&self, made: &Made, work: &mut Work<'_, T>) -> Result<Iterate> {
        let problem = &self.problem;
        let (p, k) = (problem.centers.len(), problem.outputs);
        let answer = |row: usize, values: &mut [T]| {
            let weight = problem.weight(row);
            for (c, value) in values.iter_mut().enumerate() {
                *value = T::from_f64(match c < k {
                    true => weight * (problem.target(row, c) - made.mean_target[c]),
                    false => weight,
                });
            }
        };
        let flops = problem.flops(1, k + 1);
        let progress = &mut *work.progress;
        let sums = work.phases.time(Phase::Product, flops, || {
            problem.pass().sums(None, k + 1, &answer, progress)
        })?;
        let sums = sums.ok_or(Error::Interrupted)?;
        let right = Matrix::from_fn(p, k, |i, c| sums.get(i, c));
        Ok(Iterate {
            sums: (0..p).map(|i| sums.get(i, k)).collect(),
            a: Matrix::zeros(p, k),
            d: Matrix::zeros(p, k),
            beta: vec![0.0; k],
            r: right.clone(),
            rest: COLUMN_SHARE * self.tolerance,
            scale: dots(&right, &made.preconditioner.apply(&right)),
            right,
        })
    }

    /// Everything a step needs.
    fn ready(&mut self, work: &mut Work<'_, T>) -> Result<State> {
        let made = match self.made.take() {
            Some(made) => made,
            None => self.make(work)?,
        };
        let iterate = match self.iterate.take() {
            Some(iterate) => iterate,
            None => {
                let mut iterate = self.begin(&made, work)?;
                if let Some(start) = self.start.take() {
                    let product = self.product(&made, &iterate.sums, &start, work)?;
                    let product = product.ok_or(Error::Interrupted)?;
                    iterate.r = less(&iterate.right, &product);
                    iterate.a = start;
                }
                iterate
            }
        };
        let z = made.preconditioner.apply(&iterate.r);
        Ok(State { made, iterate, z })
    }

    /// (KᵀW̃K + λΩ) d; none if somebody asked to stop.
    fn product(
        &self,
        made: &Made,
        sums: &[f64],
        d: &Matrix<f64>,
        work: &mut Work<'_, T>,
    ) -> Result<Option<Matrix<f64>>> {
        let problem = &self.problem;
        let (p, k) = (d.rows(), d.cols());
        // The weighted mean of Kd.
        let mean: Vec<f64> = (0..k)
            .map(|c| {
                let terms = (0..p).map(|i| sums[i] * d.get(i, c));
                terms.sum::<f64>() / made.total
            })
            .collect();
        let directions: Matrix<T> = d.cast();
        let answer = |row: usize, values: &mut [T]| {
            let weight = problem.weight(row);
            for (value, mean) in values.iter_mut().zip(&mean) {
                *value = T::from_f64(weight * (value.to_f64() - mean));
            }
        };
        let flops = problem.flops(2, k) + problem.kernel_flops_of_centers();
        let progress = &mut *work.progress;
        work.phases.time(Phase::Product, flops, || {
            let pass = problem.pass();
            let Some(mut sums) = pass.sums(Some(&directions), k, &answer, progress)? else {
                return Ok(None);
            };
            let mut penalty = Matrix::<T>::zeros(p, k);
            let centers = problem.centers.view();
            add_scores(
                penalty.view_mut(),
                &problem.kernel,
                centers,
                centers,
                directions.view(),
            );
            let pairs = sums.values_mut().iter_mut().zip(penalty.values());
            let (lambda, jitter) = (problem.lambda, made.preconditioner.jitter());
            for ((sum, v), d) in pairs.zip(d.values()) {
                *sum += lambda * (v.to_f64() + jitter * d);
            }
            Ok(Some(sums))
        })
    }

    /// One step of conjugate gradients; false if somebody asked to stop.
    fn advance(&self, state: &mut State, work: &mut Work<'_, T>) -> Result<bool> {
        let awake = state.awake();
        if awake.is_empty() {
            return Ok(true);
        }
        let State { made, iterate, z } = state;
        let d = Matrix::from_fn(iterate.d.rows(), awake.len(), |i, c| {
            let place = awake[c];
            iterate.beta[place] * iterate.d.get(i, place) + z.get(i, place)
        });
        let Some(product) = self.product(made, &iterate.sums, &d, work)? else {
            return Ok(false);
        };
        let before = dots(&iterate.r, z);
        let curvature = dots(&d, &product);
        let mut alphas = vec![0.0; awake.len()];
        for (c, &place) in awake.iter().enumerate() {
            let rows = 0..d.rows();
            let slope: f64 = rows.map(|i| iterate.r.get(i, place) * d.get(i, c)).sum();
            // Zero only for a direction of rounding noise, which is no use.
            if curvature[c] > 0.0 {
                alphas[c] = slope / curvature[c];
            }
            for i in 0..d.rows() {
                iterate.a.row_mut(i)[place] += alphas[c] * d.get(i, c);
                iterate.r.row_mut(i)[place] -= alphas[c] * product.get(i, c);
                iterate.d.row_mut(i)[place] = d.get(i, c);
            }
        }
        *z = precondition(made, iterate, work);
        for (c, &place) in awake.iter().enumerate() {
            // ⟨Z, R − R before⟩ / ⟨R, Z⟩ before (Polak and Ribière): the preconditioner is
            // rounded, and not quite the same in each step.
            let rows = 0..d.rows();
            let fell: f64 = rows
                .map(|i| z.get(i, place) * alphas[c] * product.get(i, c))
                .sum();
            iterate.beta[place] = (-fell / before[place]).max(0.0);
        }
        Ok(true)
    }

    /// Takes over the weights, and returns by how much they changed.
    fn take_over(&mut self, State { made, iterate, .. }: &State) -> f64 {
        let bias = (0..self.problem.outputs).map(|c| {
            let terms = (0..iterate.a.rows()).map(|i| iterate.sums[i] * iterate.a.get(i, c));
            T::from_f64(made.mean_target[c] - terms.sum::<f64>() / made.total)
        });
        let weights = Bordered {
            bias: bias.collect(),
            rows: iterate.a.cast(),
        };
        let mut change = weights.clone();
        change.add_scaled(&self.weights, -T::ONE);
        self.weights = weights;
        // Every rank has all centres.
        let alone = Ranks::default();
        relative(change.norm(&alone), self.weights.norm(&alone))
    }
}

/// P⁻¹R, timed.
fn precondition<T: Scalar>(made: &Made, iterate: &Iterate, work: &mut Work<'_, T>) -> Matrix<f64> {
    let (rows, columns) = (iterate.r.rows() as f64, iterate.r.cols() as f64);
    let apply = || made.preconditioner.apply(&iterate.r);
    let flops = 4.0 * rows * rows * columns;
    work.phases.time(Phase::Precondition, flops, apply)
}

/// a − b
fn less(a: &Matrix<f64>, b: &Matrix<f64>) -> Matrix<f64> {
    Matrix::from_fn(a.rows(), a.cols(), |i, c| a.get(i, c) - b.get(i, c))
}

impl State {
    /// Columns whose residual is not yet small enough; all that are not zero if each of
    /// them is.
    fn awake(&mut self) -> Vec<usize> {
        let now = dots(&self.iterate.r, &self.z);
        let scale = &self.iterate.scale;
        let larger = |rest: f64| {
            let above = |&c: &usize| now[c].max(0.0) > rest * rest * scale[c];
            (0..now.len()).filter(above).collect::<Vec<_>>()
        };
        let awake = larger(self.iterate.rest);
        if !awake.is_empty() {
            return awake;
        }
        // Together they do not meet the tolerance yet, or nobody would ask.
        self.iterate.rest *= COLUMN_SHARE;
        larger(0.0)
    }

    /// √⟨R, P⁻¹R⟩ of all columns together, as a share of what it was at a = 0.
    fn residual(&self) -> f64 {
        let now = dots(&self.iterate.r, &self.z);
        let now: f64 = now.iter().map(|v| v.max(0.0)).sum();
        relative(now.sqrt(), self.iterate.scale.iter().sum::<f64>().sqrt())
    }
}

impl<T: Scalar> Solver<T> for Centers<T> {
    fn step(&mut self, work: &mut Work<'_, T>) -> Result<Step> {
        let mut state = self.ready(work)?;
        let went_on = self.advance(&mut state, work)?;
        let change = self.take_over(&state);
        let mut residual = Residual {
            relative: state.residual(),
            exact: false,
        };
        if went_on && residual.relative <= self.tolerance {
            // R follows from its own recursion: before the tolerance is said to be met, it
            // is computed anew.
            let State { made, iterate, z } = &mut state;
            if let Some(product) = self.product(made, &iterate.sums, &iterate.a, work)? {
                iterate.r = less(&iterate.right, &product);
                iterate.beta.fill(0.0);
                *z = precondition(made, iterate, work);
                residual = Residual {
                    relative: state.residual(),
                    exact: true,
                };
            }
        }
        let jitter = state.made.preconditioner.jitter();
        self.residual = Some(residual);
        (self.made, self.iterate) = (Some(state.made), Some(state.iterate));
        Ok(Step {
            relative_change: change,
            jitter,
            finished: false,
            abandoned: !went_on,
        })
    }

    fn weights(&self) -> &Bordered<T> {
        &self.weights
    }

    fn residual(&self) -> Option<Residual> {
        self.residual
    }

    fn steps_per_pass(&self) -> usize {
        // The residual says when it is time to stop, small changes do not.
        usize::MAX
    }

    fn start_from(&mut self, _: &mut Work<'_, T>, weights: Bordered<T>) -> Result<()> {
        self.start = Some(weights.rows.cast());
        Ok(())
    }

    fn save<'a>(&'a self, state: &mut Saved<'a>) {
        state.put_bordered("weights", &self.weights);
        state.put_residual("residual", self.residual);
        state.put_counts("begun", [usize::from(self.iterate.is_some())]);
        if let Some(iterate) = &self.iterate {
            state.put_numbers("sums", &iterate.sums);
            state.put_matrix("right", &iterate.right);
            state.put_matrix("a", &iterate.a);
            state.put_matrix("r", &iterate.r);
            state.put_matrix("d", &iterate.d);
            state.put_numbers("beta", &iterate.beta);
            state.put_numbers("scale", &iterate.scale);
            state.put_numbers("rest", &[iterate.rest]);
        }
    }

    fn restore(&mut self, state: &mut Saved<'_>) -> Result<()> {
        let (p, k) = (self.problem.centers.len(), self.problem.outputs);
        self.weights = state.take_bordered("weights", (p, k))?;
        self.residual = state.take_residual("residual")?;
        if state.take_count("begun")? == 0 {
            return Ok(());
        }
        let mut numbers = |name: &str, count: usize| {
            let numbers = state.take_numbers(name)?;
            match numbers.len() == count {
                true => Ok(numbers),
                false => Err(unfit(name, "has another number of values")),
            }
        };
        let (sums, beta, scale) = (
            numbers("sums", p)?,
            numbers("beta", k)?,
            numbers("scale", k)?,
        );
        self.iterate = Some(Iterate {
            sums,
            right: state.take_matrix("right", (p, k))?,
            a: state.take_matrix("a", (p, k))?,
            r: state.take_matrix("r", (p, k))?,
            d: state.take_matrix("d", (p, k))?,
            beta,
            scale,
            rest: state.take_exactly::<1>("rest")?[0],
        });
        Ok(())
    }
}
