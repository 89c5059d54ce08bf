//! Preconditioned conjugate gradients on S = Ω+λI.
//!
//! ```text
//!     S V = [Y 1],   R = [Y 1] − S V,   Z = P⁻¹R
//!     α = ⟨R,Z⟩/⟨D,SD⟩,   V += αD,   R −= αSD,   D ← Z + βD,   β = ⟨R,Z⟩ new/old
//! ```
//!
//! One product with S serves all columns; each has its own α and β, and rests when
//! its residual is small enough. P is a Nyström approximation and what it misses on
//! the diagonal (see `preconditioner`). A step is one iteration: N² values of Ω are read,
//! or computed again if they are not kept. The choice for the full solution of
//! large systems: the residual is known, and falls by orders of magnitude where the
//! paper's methods take the square of the condition.
//!
//! R follows from its own recursion and drifts from the true residual by rounding.
//! It is computed anew from time to time, and before the tolerance is said to be
//! met. If Ω is kept in half precision, R is computed anew with true values whenever
//! it has fallen by two orders of magnitude, and the iteration begins again from
//! there (iterative refinement): the answer is that of the true system.

use super::bordering::{Reached, left_over, right_hand_sides, true_product};
use super::preconditioner::{Preconditioner, rank_for};
use super::state::unfit;
use super::{Phase, Residual, Solver, State, Step, Work};
use crate::Result;
use crate::linalg::{Matrix, Scalar};
use crate::ranks::Ranks;
use crate::system::{Bordered, Certificate, Format, System, TILE, product_bytes};

/// Iterations after which R is computed anew.
const FRESH_EVERY: usize = 50;

/// A column rests when its own residual is so much of the tolerance for all.
const COLUMN_SHARE: f64 = 0.3;

/// State of the iteration.
pub struct Pcg<T: Scalar> {
    rank: usize,
    seed: u64,
    tolerance: f64,
    iterate: Iterate<T>,
    /// Made before the first step.
    tools: Option<Tools<T>>,
    reached: Reached<T>,
}

/// What steps need and do not change.
struct Tools<T: Scalar> {
    preconditioner: Preconditioner<T>,
    /// The right-hand sides.
    right: Matrix<T>,
    /// The norms of [Y 1]'s columns.
    scale: Vec<f64>,
}

/// What steps change.
struct Iterate<T: Scalar> {
    v: Matrix<T>,
    r: Matrix<T>,
    /// Directions and ⟨R, Z⟩ of all columns.
    d: Matrix<T>,
    rz: Vec<f64>,
    /// The relative residual at which a column rests.
    rest: f64,
    /// Iterations since R was computed anew.
    age: usize,
}

impl<T: Scalar> Pcg<T> {
    /// `rank` of the preconditioner (none: chosen from the size), the seed of its rows,
    /// and the relative residual that is aimed at.
    pub fn new(system: &System<T>, rank: Option<usize>, seed: u64, tolerance: f64) -> Self {
        let features = system.width();
        let rank = rank.unwrap_or_else(|| rank_for(system.n(), features));
        let reached = Reached::nowhere(system);
        let right = reached.right_hand_sides(system);
        let (n, k) = (right.rows(), right.cols());
        Self {
            rank: rank.clamp(1, system.n()),
            seed,
            tolerance,
            iterate: Iterate {
                v: Matrix::zeros(n, k),
                r: right,
                d: Matrix::zeros(n, k),
                rz: vec![0.0; k],
                rest: COLUMN_SHARE * tolerance,
                age: 0,
            },
            tools: None,
            reached,
        }
    }

    /// Bytes that it needs beside the data and Ω, for so many rows on this rank and on all.
    pub fn bytes(rows: [usize; 2], rank: usize, outputs: usize) -> u64 {
        let [own, _] = rows;
        let columns = 10 * (outputs as u64 + 1) * own as u64 * size_of::<T>() as u64;
        Preconditioner::<T>::bytes(own, rank) + columns + product_bytes::<T>(rows, outputs + 1)
    }

    fn tools(&self, work: &mut Work<'_, T>) -> Result<Tools<T>> {
        let whole = right_hand_sides(work.system);
        Ok(Tools {
            preconditioner: Preconditioner::new(work, self.rank, self.seed)?,
            right: self.reached.right_hand_sides(work.system),
            scale: all_dots(work.system.ranks(), &whole, &whole)
                .into_iter()
                .map(f64::sqrt)
                .collect(),
        })
    }
}

impl<T: Scalar> Iterate<T> {
    /// Columns whose residual is not yet small enough; all that are not zero if each
    /// of them is. `scale`: what residuals are small beside.
    fn awake(&mut self, ranks: &Ranks, scale: &[f64]) -> Vec<usize> {
        let norms = all_dots(ranks, &self.r, &self.r);
        let larger = |rest: f64| {
            let above = |&c: &usize| norms[c].sqrt() > rest * scale[c];
            (0..norms.len()).filter(above).collect::<Vec<_>>()
        };
        let awake = larger(self.rest);
        if !awake.is_empty() {
            return awake;
        }
        // Together they do not meet the tolerance yet, or nobody would ask.
        self.rest *= COLUMN_SHARE;
        larger(0.0)
    }

    fn step(&mut self, work: &mut Work<'_, T>, tools: &Tools<T>) {
        let system = work.system;
        let preconditioner = &tools.preconditioner;
        let ranks = system.ranks();
        let awake = self.awake(ranks, &tools.scale);
        if awake.is_empty() {
            return;
        }
        self.age += 1;
        let (n, k) = (system.own_rows() as f64, awake.len() as f64);
        let r = columns(&self.r, &awake);
        let depth = (preconditioner.rank() + TILE.min(system.n())) as f64;
        let flops = 4.0 * n * depth * k;
        let z = work.phases.time(Phase::Precondition, flops, || {
            preconditioner.apply(ranks, &r)
        });
        let rz = all_dots(ranks, &r, &z);
        let mut d = columns(&self.d, &awake);
        for (c, &place) in awake.iter().enumerate() {
            let beta = match self.rz[place] {
                0.0 => 0.0,
                before => rz[c] / before,
            };
            add_column(&mut d, c, beta, &z);
            self.rz[place] = rz[c];
        }
        let product = product(work, &d);
        let curvature = all_dots(ranks, &d, &product);
        for (c, &place) in awake.iter().enumerate() {
            // Zero only for a direction of rounding noise, which is no use.
            let alpha = match curvature[c] > 0.0 {
                true => rz[c] / curvature[c],
                false => 0.0,
            };
            let alpha = T::from_f64(alpha);
            for i in 0..d.rows() {
                let step = alpha * d.get(i, c);
                self.v.row_mut(i)[place] += step;
                self.r.row_mut(i)[place] -= alpha * product.get(i, c);
                self.d.row_mut(i)[place] = d.get(i, c);
            }
        }
    }

    /// Computes R anew, and returns S V.
    fn refresh(&mut self, work: &mut Work<'_, T>, tools: &Tools<T>) -> Matrix<f64> {
        let product = true_product(work, &self.v);
        self.r = left_over(&tools.right, &product);
        self.age = 0;
        if work.system.kept() == Some(Format::Half) {
            // Directions belong to the rounded matrix and the old R.
            self.rz.fill(0.0);
        }
        product
    }
}

impl<T: Scalar> Solver<T> for Pcg<T> {
    fn step(&mut self, work: &mut Work<'_, T>) -> Result<Step> {
        let tools = match self.tools.take() {
            Some(tools) => tools,
            None => self.tools(work)?,
        };
        let (system, iterate) = (work.system, &mut self.iterate);
        iterate.step(work, &tools);
        let change = self.reached.take_over(&iterate.v);
        self.reached.estimate(system, &iterate.r);
        if iterate.age >= FRESH_EVERY || self.reached.is_due(system, self.tolerance) {
            let product = iterate.refresh(work, &tools);
            self.reached.certify(system, &product);
        }
        self.tools = Some(tools);
        Ok(Step {
            relative_change: change,
            jitter: 0.0,
            finished: false,
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

    fn steps_per_pass(&self) -> usize {
        // The residual says when it is time to stop, small changes do not.
        usize::MAX
    }

    fn start_from(&mut self, work: &mut Work<'_, T>, weights: Bordered<T>) -> Result<()> {
        self.reached.start_from(work, weights);
        self.iterate.r = self.reached.right_hand_sides(work.system);
        Ok(())
    }

    fn save<'a>(&'a self, state: &mut State<'a>) {
        let iterate = &self.iterate;
        state.put_rows("v", &iterate.v);
        state.put_rows("r", &iterate.r);
        state.put_rows("d", &iterate.d);
        state.put_numbers("rz", &iterate.rz);
        state.put_numbers("rest", &[iterate.rest]);
        state.put_counts("age", [iterate.age]);
        self.reached.save(state);
    }

    fn restore(&mut self, state: &mut State<'_>) -> Result<()> {
        let iterate = &mut self.iterate;
        let (n, k) = (iterate.v.rows(), iterate.v.cols());
        iterate.v = state.take_rows("v", (n, k))?;
        iterate.r = state.take_rows("r", (n, k))?;
        iterate.d = state.take_rows("d", (n, k))?;
        iterate.rz = state.take_numbers("rz")?;
        [iterate.rest] = state.take_exactly("rest")?;
        iterate.age = state.take_count("age")?;
        if iterate.rz.len() != k {
            return Err(unfit("rz", "is not one number a column"));
        }
        self.reached.restore(state, &self.iterate.v)
    }
}

/// S · V, timed.
fn product<T: Scalar>(work: &mut Work<'_, T>, v: &Matrix<T>) -> Matrix<T> {
    let system = work.system;
    let values = system.own_rows() as f64 * system.n() as f64;
    let kernel = match system.kept() {
        Some(_) => 0.0,
        None => system.kernel_flops(0.5 * values),
    };
    let flops = kernel + 2.0 * values * v.cols() as f64;
    let product = work
        .phases
        .time(Phase::Product, flops, || system.shifted_product(v));
    product.cast()
}

/// ⟨a, b⟩ of each column, in `f64`, over the rows of all ranks.
fn all_dots<T: Scalar>(ranks: &Ranks, a: &Matrix<T>, b: &Matrix<T>) -> Vec<f64> {
    let mut sums = dots(a, b);
    ranks.sum(&mut sums);
    sums
}

/// ⟨a, b⟩ of each column, in `f64`.
pub(super) fn dots<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) -> Vec<f64> {
    let k = a.cols();
    let mut sums = vec![0.0; k];
    let rows = a.values().chunks_exact(k).zip(b.values().chunks_exact(k));
    for (a, b) in rows {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a.to_f64() * b.to_f64();
        }
    }
    sums
}

/// Some columns, copied.
fn columns<T: Scalar>(a: &Matrix<T>, which: &[usize]) -> Matrix<T> {
    Matrix::from_fn(a.rows(), which.len(), |i, c| a.row(i)[which[c]])
}

/// Column `c` of `d` ← `beta` · itself + column `c` of `z`.
fn add_column<T: Scalar>(d: &mut Matrix<T>, c: usize, beta: f64, z: &Matrix<T>) {
    let beta = T::from_f64(beta);
    for i in 0..d.rows() {
        let value = beta * d.get(i, c) + z.get(i, c);
        d.set(i, c, value);
    }
}
