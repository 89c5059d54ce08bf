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

use super::bordering::{Reached, right_hand_sides};
use super::iterate::{COLUMN_SHARE, Iterate, Right, all_dots};
use super::leave_one_out::Left;
use super::preconditioner::{Preconditioner, rank_for};
use super::state::unfit;
use super::{LeaveOneOut, Residual, Solver, State, Step, Work, probing};
use crate::linalg::{Matrix, Scalar};
use crate::system::{Bordered, Certificate, System, product_bytes};
use crate::{Error, Result};

/// Iterations after which R is computed anew.
const FRESH_EVERY: usize = 50;

/// The relative residual up to which leave-one-out scores are worth having.
const LARGEST_RESIDUAL: f64 = 1e-2;

/// State of the iteration.
pub struct Pcg<T: Scalar> {
    rank: usize,
    seed: u64,
    tolerance: f64,
    /// Whether leave-one-out scores are wanted.
    loo: bool,
    iterate: Iterate<T>,
    /// Made before the first step.
    tools: Option<Tools<T>>,
    reached: Reached<T>,
}

/// What steps need and do not change.
struct Tools<T: Scalar> {
    preconditioner: Preconditioner<T>,
    /// The right-hand sides, and what is known of them.
    right: Matrix<T>,
    known: Right,
}

impl<T: Scalar> Pcg<T> {
    /// `rank` of the preconditioner (none: chosen from the size), the seed of its rows,
    /// the relative residual that is aimed at, and whether leave-one-out scores are wanted.
    pub fn new(
        system: &System<T>,
        rank: Option<usize>,
        seed: u64,
        tolerance: f64,
        loo: bool,
    ) -> Self {
        let features = system.width();
        let rank = rank.unwrap_or_else(|| rank_for(system.n(), features));
        let reached = Reached::nowhere(system);
        let right = reached.right_hand_sides(system);
        Self {
            rank: rank.clamp(1, system.n()),
            seed,
            tolerance,
            loo,
            iterate: Iterate::new(right, COLUMN_SHARE * tolerance),
            tools: None,
            reached,
        }
    }

    /// Bytes that it needs beside the data and Ω, for so many rows on this rank and on all.
    pub fn bytes(rows: [usize; 2], rank: usize, outputs: usize, loo: bool) -> u64 {
        let [own, _] = rows;
        let columns = 10 * (outputs as u64 + 1) * own as u64 * size_of::<T>() as u64;
        let left_out = if loo {
            probing::bytes::<T>(rows, rank)
        } else {
            0
        };
        // Its products come after those of the solution.
        let products = product_bytes::<T>(rows, outputs + 1).max(left_out);
        Preconditioner::<T>::bytes(own, rank) + columns + products
    }

    fn tools(&self, work: &mut Work<'_, T>) -> Result<Tools<T>> {
        let whole = right_hand_sides(work.system);
        let ranks = work.system.ranks();
        // The norms of [Y 1]'s columns.
        let scale = all_dots(ranks, &whole, &whole).into_iter().map(f64::sqrt);
        let right = self.reached.right_hand_sides(work.system);
        Ok(Tools {
            known: Right::new(ranks, &right, scale.collect()),
            right,
            preconditioner: Preconditioner::new(work, self.rank, self.seed)?,
        })
    }
}

impl<T: Scalar> Solver<T> for Pcg<T> {
    fn step(&mut self, work: &mut Work<'_, T>) -> Result<Step> {
        let tools = match self.tools.take() {
            Some(tools) => tools,
            None => self.tools(work)?,
        };
        let (system, iterate) = (work.system, &mut self.iterate);
        iterate.step(work, &tools.preconditioner, &tools.known);
        let change = self.reached.take_over(&iterate.v);
        self.reached.estimate(system, &iterate.r);
        if iterate.age >= FRESH_EVERY || self.reached.is_due(system, self.tolerance) {
            let product = iterate.refresh(work, &tools.right);
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

    fn leave_one_out(&mut self, work: &mut Work<'_, T>) -> Result<Option<LeaveOneOut<T>>> {
        if !self.loo {
            return Ok(None);
        }
        let reached = self.residual().map_or(f64::INFINITY, |r| r.relative);
        if reached > LARGEST_RESIDUAL {
            return Err(Error::Numeric(format!(
                "they follow from the solution, and a relative residual of {reached:.1e} is too \
                 far from it; let it come to {LARGEST_RESIDUAL:.0e} (--iterations, --time, \
                 --tolerance)"
            )));
        }
        if !(work.progress)(0.0) {
            return Err(Error::Interrupted);
        }
        let tools = match self.tools.take() {
            Some(tools) => tools,
            None => self.tools(work)?,
        };
        let (weights, targets) = (self.reached.weights(), work.system.targets());
        let left = Left::new(&self.iterate.v, weights, targets);
        probing::scores(work, &tools.preconditioner, &left, self.seed).map(Some)
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
