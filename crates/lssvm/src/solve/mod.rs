//! Ways to solve ΘW = Z (see [`crate::system`]).
//!
//! | method | a step | converges to |
//! |---|---|---|
//! | [`exact`] | everything, by Cholesky | the solution |
//! | [`pcg`] | one product with Ω+λI | the solution |
//! | [`gauss_seidel`] | solves for each block of rows in turn | the solution |
//! | [`centers`] | one pass over the rows, for a model of P of them | the best such model |
//! | [`nystrom`] | one member of a committee on J random columns | a plateau set by J |
//! | [`kaczmarz`] | projects W on the solutions of J random rows | the solution |
//! | [`matching_pursuit`] (`mp`) | fits the residual by J random columns | the solution |
//! | [`kaczmarz_mp`] | one of each, with one Gram matrix | the solution |
//!
//! The last four are those of Andrecut (2016). Each costs one N×J strip of
//! the kernel matrix and one J×J Gram matrix a step: N·J·(2M + J) operations,
//! and N·J values of memory. They work on normal equations, so convergence goes
//! with the square of the condition number; on noisy data stopping early
//! regularises.
//!
//! A method is a [`Solver`]: it makes one step at a time and knows nothing of
//! limits, clocks or test data. [`run`] drives it, follows the error on
//! [`Followed`] rows and stops by [`Limits`]. To add a method, write a file with a
//! `Solver`, add it to [`Method`] and to [`Plan::solver`].

mod average;
mod block_inverse;
mod blocks;
mod bordering;
pub mod centers;
mod checkpoint;
pub mod exact;
mod follow;
pub mod gauss_seidel;
mod iterate;
pub mod kaczmarz;
pub mod kaczmarz_mp;
mod leave_one_out;
pub mod matching_pursuit;
pub mod nystrom;
pub mod path;
pub mod pcg;
mod phases;
mod preconditioner;
mod probing;
mod run;
mod state;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_full;
#[cfg(test)]
mod tests_mnist;
#[cfg(test)]
mod tests_ranks;
#[cfg(test)]
mod tests_resume;
mod together;
mod track;
mod work;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use block_inverse::BlockInverse;
pub use blocks::Blocks;
pub(crate) use bordering::LONG_LOOK;
pub use checkpoint::{Checkpointed, Keeper, read_checkpoint, write_checkpoint};
pub use follow::{Followed, Truth};
pub use leave_one_out::{Estimated, LeaveOneOut};
pub use phases::{Phase, PhaseReport, Phases};
pub use preconditioner::rank_for;
pub(crate) use probing::{BATCHES as LEFT_OUT_BATCHES, COLUMNS as LEFT_OUT_COLUMNS};
pub use run::{Course, Flow, Iteration, Limits, Observer, Silent, Solution, Stopped, run, run_on};
pub use state::State;
pub use together::{Ended, Entry, run_together};
pub use work::{OpenBlock, Work};

use crate::linalg::{Matrix, Scalar};
use crate::ranks::Ranks;
use crate::system::{Bordered, Certificate, Strip, System};
use crate::{Error, Result};

/// Which method solves the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Cholesky of Ω+λI.
    Exact,
    /// Preconditioned conjugate gradients.
    Pcg,
    /// Block Gauss–Seidel.
    GaussSeidel,
    /// A model of some of the rows, fitted on all of them.
    Centers,
    /// Committee of Nyström solutions.
    Nystrom,
    /// Block Kaczmarz.
    Kaczmarz,
    /// Block matching pursuit.
    Mp,
    /// Kaczmarz and matching pursuit in turn.
    KaczmarzMp,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 8] = [
        Method::Exact,
        Method::Pcg,
        Method::GaussSeidel,
        Method::Centers,
        Method::Nystrom,
        Method::Kaczmarz,
        Method::Mp,
        Method::KaczmarzMp,
    ];

    /// Whether it goes step by step.
    pub fn is_iterative(self) -> bool {
        self != Method::Exact
    }

    /// Whether it can begin at the weights of another run.
    pub fn takes_start(self) -> bool {
        !matches!(self, Method::Exact | Method::Nystrom)
    }

    /// Refuses a method that cannot, with the reason.
    pub fn expect_start(self) -> Result<()> {
        let reason = match self {
            Method::Exact => "solves at once, from nothing",
            Method::Nystrom => "is a mean of solutions that know nothing of each other",
            _ => return Ok(()),
        };
        let requirement =
            format!("has no use for a warm start: it {reason}; choose pcg, gauss-seidel or mp");
        Err(Error::parameter("method", self, requirement))
    }

    /// Whether it has leave-one-out scores: in closed form, or as estimates.
    pub fn leaves_one_out(self) -> bool {
        matches!(self, Method::Exact | Method::Pcg)
    }

    /// Refuses a method that needs all rows on one rank, if there are several.
    pub fn expect_ranks(self, ranks: &Ranks) -> Result<()> {
        match self == Method::Exact && !ranks.is_alone() {
            true => Err(Error::parameter(
                "method",
                self,
                "factors the whole matrix on one machine; choose pcg, which solves the same \
                 system on several",
            )),
            false => Ok(()),
        }
    }

    /// Whether it works on blocks of random indices of Θ, as the paper's do.
    pub fn draws_blocks(self) -> bool {
        matches!(
            self,
            Method::Nystrom | Method::Kaczmarz | Method::Mp | Method::KaczmarzMp
        )
    }

    /// Whether it works on all of Ω+λI, and gains if that is kept in memory.
    pub fn wants_kernel(self) -> bool {
        matches!(self, Method::Pcg | Method::GaussSeidel)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Exact => "exact",
            Method::Pcg => "pcg",
            Method::GaussSeidel => "gauss-seidel",
            Method::Centers => "centers",
            Method::Nystrom => "nystrom",
            Method::Kaczmarz => "kaczmarz",
            Method::Mp => "mp",
            Method::KaczmarzMp => "kaczmarz-mp",
        })
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Method::ALL.into_iter().find(|m| m.to_string() == text);
        found.ok_or_else(|| {
            let known = Method::ALL.map(|m| m.to_string()).join(", ");
            Error::parameter("method", text, format!("the methods are auto, {known}"))
        })
    }
}

/// What to run: the method and its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// The method.
    pub method: Method,
    /// J, the number of indices in a block.
    pub block_size: usize,
    /// Seed of the random blocks.
    pub seed: u64,
    /// S, the number of runs with different seeds that are averaged in the
    /// weights (eq. 66–67 of the paper).
    pub averages: usize,
    /// Rank of the preconditioner of `pcg`; none: chosen from the size.
    pub rank: Option<usize>,
    /// The relative residual that is aimed at, where a method needs to know.
    pub tolerance: f64,
    /// Whether leave-one-out scores are wanted; `exact` and `pcg` have them.
    pub loo: bool,
}

impl Plan {
    /// The parameters fit a system of so many training rows.
    pub(crate) fn check(&self, rows: usize) -> Result<()> {
        let size = rows + 1;
        if self.averages == 0 {
            return Err(Error::parameter("averages", 0, "must be at least 1"));
        }
        if self.loo && !self.method.leaves_one_out() {
            return Err(Error::parameter(
                "loo",
                true,
                format!(
                    "needs the method exact or pcg, and this is {}; rows that are kept apart \
                     (--validation) serve every method",
                    self.method
                ),
            ));
        }
        if self.loo && self.method.is_iterative() && self.averages > 1 {
            let requirement = "leave-one-out scores are those of one run, not of a mean";
            return Err(Error::parameter("averages", self.averages, requirement));
        }
        if self.loo && rows < 2 {
            let requirement = "there is nothing to learn from if one of one rows is left out";
            return Err(Error::parameter("loo", true, requirement));
        }
        if let Some(rank) = self.rank.filter(|r| !(1..=rows).contains(r)) {
            let requirement = format!("must be from 1 to {rows}, the number of training rows");
            return Err(Error::parameter("rank", rank, requirement));
        }
        if self.method.draws_blocks() && !(1..=size).contains(&self.block_size) {
            return Err(Error::parameter(
                "block-size",
                self.block_size,
                format!(
                    "must be from 1 to {size}, the number of training rows and one for the bias"
                ),
            ));
        }
        Ok(())
    }

    /// The solver, its parameters checked against the system.
    pub fn solver<T: Scalar>(&self, system: &System<T>) -> Result<Box<dyn Solver<T>>> {
        self.check(system.n())?;
        self.method.expect_ranks(system.ranks())?;
        let size = system.n() + 1;
        let one = |seed: u64| -> Result<Box<dyn Solver<T>>> {
            let blocks = Blocks::new(size, self.block_size, seed);
            Ok(match self.method {
                Method::Exact => Box::new(exact::Exact::new(system, self.loo)),
                Method::Pcg => {
                    let (rank, tolerance) = (self.rank, self.tolerance);
                    Box::new(pcg::Pcg::new(system, rank, seed, tolerance, self.loo))
                }
                Method::GaussSeidel => {
                    let solver = gauss_seidel::GaussSeidel::new(
                        system,
                        self.block_size,
                        seed,
                        self.tolerance,
                    );
                    Box::new(solver)
                }
                Method::Centers => {
                    return Err(Error::parameter(
                        "method",
                        self.method,
                        "fits a model of some rows on all of them, and does not solve the system \
                         of all: it cannot run beside other methods",
                    ));
                }
                Method::Nystrom => Box::new(nystrom::Nystrom::new(system, blocks)),
                Method::Kaczmarz => Box::new(kaczmarz::Kaczmarz::new(system, blocks)),
                Method::Mp => Box::new(matching_pursuit::MatchingPursuit::new(system, blocks)),
                Method::KaczmarzMp => Box::new(kaczmarz_mp::KaczmarzMp::new(system, blocks)),
            })
        };
        if self.averages == 1 || !self.method.is_iterative() {
            return one(self.seed);
        }
        let seeds = (0..self.averages as u64).map(|s| self.seed.wrapping_add(s));
        let members = seeds.map(one).collect::<Result<_>>()?;
        Ok(Box::new(average::Average::new(system, members)))
    }

    /// Bytes the solver needs beside the data, at its peak: for so many rows on this rank, and
    /// on all.
    pub fn bytes<T: Scalar>(&self, rows: [usize; 2], n_features: usize, outputs: usize) -> u64 {
        let [own, n] = rows;
        let value = size_of::<T>() as u64;
        let weights = value * own as u64 * outputs as u64;
        match self.method {
            Method::Exact => exact::Exact::<T>::bytes(n, outputs, true, self.loo),
            Method::Pcg => {
                let rank = self.rank.unwrap_or_else(|| rank_for(n, n_features));
                pcg::Pcg::<T>::bytes(rows, rank, outputs, self.loo)
            }
            // Not known here: it depends on P, and on where the rows are.
            Method::Centers => 0,
            Method::GaussSeidel => {
                gauss_seidel::GaussSeidel::<T>::bytes(rows, self.block_size, n_features, outputs)
            }
            _ => {
                let members = self.averages as u64;
                let strip = Strip::<T>::bytes(own, self.block_size, n_features);
                // What is summed over ranks: the upper triangle of the Gram matrix.
                let summed = match own == n {
                    true => 0,
                    false => value * (self.block_size as u64).pow(2) / 2,
                };
                strip + summed + (3 * members + 4) * weights
            }
        }
    }
}

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// ‖W(t+1) − W(t)‖ / ‖W(t+1)‖
    pub relative_change: f64,
    /// Added to the (unit) diagonal of the standardised Gram matrix, or to the
    /// diagonal of Ω+λI, so that it could be factored; mostly 0.
    pub jitter: f64,
    /// True if there is nothing left to do.
    pub finished: bool,
    /// True if somebody asked to stop before it was done. It does not count: the solver is
    /// where it was before, except that the weights of a first step may be worth having.
    pub abandoned: bool,
}

impl Step {
    /// A step that was not needed.
    const NONE: Self = Self {
        relative_change: 0.0,
        jitter: 0.0,
        finished: false,
        abandoned: false,
    };
}

/// ‖Z − ΘW‖ / ‖Z‖
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Residual {
    /// The value.
    pub relative: f64,
    /// False if it is an estimate: from the rows of one block, taken just before the last
    /// step, from rows that lie evenly between all, or from sums that rounding was added to.
    pub exact: bool,
}

/// How the weights changed in the last step.
pub enum Update<'a, T: Scalar> {
    /// Only these rows: `W[indices[j]] += change[j]`.
    Rows {
        /// In Θ's numbering: 0 is the bias.
        indices: &'a [usize],
        /// J × K
        change: &'a Matrix<T>,
    },
    /// All rows.
    All,
}

/// A method that approaches the solution step by step.
pub trait Solver<T: Scalar> {
    /// Makes one step.
    fn step(&mut self, work: &mut Work<'_, T>) -> Result<Step>;

    /// The weights so far.
    fn weights(&self) -> &Bordered<T>;

    /// The residual of these weights, if it is known without more work.
    fn residual(&self) -> Option<Residual>;

    /// The certificate of these weights, if it is known without more work.
    fn certificate(&self) -> Option<&Certificate> {
        None
    }

    /// Scores of the training rows by models that never saw them, if they were wanted. Asked
    /// once, after the last step.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if somebody asked to stop, and [`Error::Numeric`] with the
    /// reason if these weights have none; they are the model all the same.
    fn leave_one_out(&mut self, _: &mut Work<'_, T>) -> Result<Option<LeaveOneOut<T>>> {
        Ok(None)
    }

    /// Tells how [`Solver::weights`] changed in the last step; the changes
    /// times their factors add up.
    fn updates(&self, tell: &mut dyn FnMut(Update<'_, T>, T)) {
        tell(Update::All, T::ONE);
    }

    /// Steps after which every index has had its turn.
    fn steps_per_pass(&self) -> usize;

    /// Begins at these weights instead of zero, before the first step.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the method has no use for them.
    fn start_from(&mut self, work: &mut Work<'_, T>, weights: Bordered<T>) -> Result<()>;

    /// Notes all that later steps depend on and that does not follow from plan and
    /// system.
    fn save<'a>(&'a self, state: &mut State<'a>);

    /// Takes back what [`Solver::save`] noted. The solver was made by the same plan for
    /// the same system, and has made no step; its next steps have the bits that those of
    /// the saved one would have had.
    fn restore(&mut self, state: &mut State<'_>) -> Result<()>;
}
