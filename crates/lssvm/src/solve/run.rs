//! Drives a solver: limits, who is told, and what a run ends with.

use serde::{Deserialize, Serialize};

use super::track::Track;
use super::{Followed, Method, OpenBlock, Phases, Plan, Residual, Solver};
use crate::linalg::{Matrix, Scalar};
use crate::system::{Bordered, Certificate, System};
use crate::{Error, Result};

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Most iterations.
    pub iterations: usize,
    /// Most seconds, what came before the first iteration included; the iteration that
    /// passes it is finished.
    pub seconds: Option<f64>,
    /// Seconds that are gone already, for preprocessing and the kernel matrix; they count
    /// for the limit and in all times that are told.
    pub spent: f64,
    /// Stop when the relative residual, or the relative change of W in every
    /// step of a whole pass, is at most this.
    pub tolerance: f64,
    /// Stop when the validation error is looked at and has not improved for so many
    /// iterations.
    pub patience: Option<usize>,
}

impl Limits {
    /// Every limit can be kept.
    pub(crate) fn check(&self) -> Result<()> {
        if self.iterations == 0 {
            return Err(Error::parameter("iterations", 0, "must be at least 1"));
        }
        if self.tolerance.is_nan() || self.tolerance < 0.0 {
            return Err(Error::parameter(
                "tolerance",
                self.tolerance,
                "must be 0 or more",
            ));
        }
        if let Some(seconds) = self.seconds.filter(|s| s.is_nan() || *s <= 0.0) {
            return Err(Error::parameter("time", seconds, "must be positive"));
        }
        if self.patience == Some(0) {
            return Err(Error::parameter("patience", 0, "must be at least 1"));
        }
        Ok(())
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// A direct method: there is nothing left to do.
    Solved,
    /// The residual came below the tolerance.
    Tolerance,
    /// W changed by less than the tolerance in every step of a whole pass.
    NoImprovement,
    /// The validation error no longer improved.
    Patience,
    /// All iterations were made.
    Iterations,
    /// Time was up.
    Time,
    /// Somebody asked to stop.
    Interrupted,
}

impl Stopped {
    /// As a phrase: "stopped because …".
    pub fn because(self) -> &'static str {
        match self {
            Stopped::Solved => "the system is solved",
            Stopped::Tolerance => "the residual reached the tolerance",
            Stopped::NoImprovement => "the weights no longer changed",
            Stopped::Patience => "the validation error no longer improved",
            Stopped::Iterations => "all iterations were made",
            Stopped::Time => "the time was up",
            Stopped::Interrupted => "it was interrupted",
        }
    }
}

/// One line of a run's history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Iteration {
    /// From 1 on.
    pub iteration: usize,
    /// Since the start of the run.
    pub seconds: f64,
    /// ‖W(t+1) − W(t)‖ / ‖W(t+1)‖
    pub relative_change: f64,
    /// Of the weights after this iteration, or an estimate.
    pub residual: Option<Residual>,
    /// Share of wrong test rows (or RMSE), if followed.
    pub test_error: Option<f64>,
    /// Share of wrong validation rows (or RMSE), if followed.
    pub validation_error: Option<f64>,
    /// What made the factorisation succeed; see [`super::Step::jitter`].
    pub jitter: f64,
    /// Floating-point operations so far, of all phases that count them.
    pub flops: f64,
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Stop after the current iteration.
    Stop,
}

/// Told what happens; may ask to stop.
pub trait Observer {
    /// Of several runs that go side by side, the next step is this one's.
    fn turn(&mut self, _run: usize) {}

    /// After each iteration.
    fn iteration(&mut self, _iteration: &Iteration) -> Flow {
        Flow::Continue
    }

    /// Within a long step: the share of it that is done.
    fn progress(&mut self, _done: f64) -> Flow {
        Flow::Continue
    }
}

/// Listens to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}

/// What a run ended with.
#[derive(Debug)]
pub struct Solution<T: Scalar> {
    /// W: of the best iteration on the validation rows if there are any, else
    /// of the last.
    pub weights: Bordered<T>,
    /// Residual of these weights.
    pub residual: Option<Residual>,
    /// What is certain about these weights, if it was affordable to find out.
    pub certificate: Option<Certificate>,
    /// Scores of the training rows by models that never saw them, if they were wanted.
    pub leave_one_out: Option<Matrix<T>>,
    /// Iterations made.
    pub iterations: usize,
    /// The iteration whose weights these are.
    pub best_iteration: usize,
    /// Why it ended.
    pub stopped: Stopped,
    /// Wall time.
    pub seconds: f64,
    /// All iterations.
    pub history: Vec<Iteration>,
    /// Where the time went.
    pub phases: Phases,
    /// The largest jitter of any iteration.
    pub jitter: f64,
}

/// Runs a plan on a system.
///
/// `test` and `validation` are followed every `every` iterations (0: only at
/// the end). The validation rows choose the iteration; the test rows choose
/// nothing.
pub fn run<T: Scalar>(
    system: &System<T>,
    plan: &Plan,
    limits: &Limits,
    test: &mut Option<Followed<T>>,
    validation: &mut Option<Followed<T>>,
    every: usize,
    observer: &mut dyn Observer,
) -> Result<Solution<T>> {
    let solver = plan.solver(system)?;
    drive(
        system,
        (solver, plan.method),
        limits,
        test,
        validation,
        every,
        observer,
    )
}

/// As [`run`], for a solver that was made elsewhere.
pub fn drive<T: Scalar>(
    system: &System<T>,
    (solver, method): (Box<dyn Solver<T>>, Method),
    limits: &Limits,
    test: &mut Option<Followed<T>>,
    validation: &mut Option<Followed<T>>,
    every: usize,
    observer: &mut dyn Observer,
) -> Result<Solution<T>> {
    let mut track = Track::new(solver, method, limits)?;
    let mut block = OpenBlock::new(system.n());
    let stopped = loop {
        let iteration = track.step(system, &mut block, test, validation, every, observer)?;
        if let Some(stopped) = track.end(observer.iteration(&iteration)) {
            break stopped;
        }
    };
    drop(block);
    Ok(track.finish(system, stopped))
}
