//! Drives a solver: steps, clocks, the errors it is followed by, and the end.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Followed, Phase, PhaseReport, Phases, Plan, Residual, Work};
use crate::linalg::Scalar;
use crate::system::{Bordered, Strip, System};
use crate::{Error, Result};

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Most iterations.
    pub iterations: usize,
    /// Most seconds; the iteration that passes it is finished.
    pub seconds: Option<f64>,
    /// Stop when the relative residual, or the relative change of W in every
    /// step of a whole pass, is at most this.
    pub tolerance: f64,
    /// Stop when the validation error has not improved for so many iterations.
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
    pub phases: Vec<PhaseReport>,
    /// The largest jitter of any iteration.
    pub jitter: f64,
}

/// The residual of the final weights is computed if that costs at most this
/// share of the operations already spent.
const CERTIFY_SHARE: f64 = 0.25;

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
    limits.check()?;
    let mut solver = plan.solver(system)?;
    let start = Instant::now();
    let mut phases = Phases::default();
    let mut strip = Strip::new(system.n());
    let mut gram = Vec::new();
    let mut history: Vec<Iteration> = Vec::new();
    let mut best: Option<Best<T>> = None;
    let stopped = loop {
        let number = history.len() + 1;
        let mut progress = |done: f64| observer.progress(done) == Flow::Continue;
        let mut work = Work {
            system,
            strip,
            gram,
            phases,
            progress: &mut progress,
        };
        let step = solver.step(&mut work)?;
        (strip, gram, phases) = (work.strip, work.gram, work.phases);
        if !step.relative_change.is_finite() {
            return Err(Error::Numeric(format!(
                "iteration {number} left the range of the number type; scale the features, use a \
                 smaller c or --precision f64"
            )));
        }
        let last = step.finished || number == limits.iterations;
        let due = last || (every > 0 && number.is_multiple_of(every));
        let mut follow = |rows: &mut Option<Followed<T>>| {
            rows.as_mut().and_then(|rows| {
                phases.time(Phase::Follow, 0.0, || rows.follow(system, &*solver, due));
                due.then(|| rows.error())
            })
        };
        let iteration = Iteration {
            iteration: number,
            test_error: follow(test),
            validation_error: follow(validation),
            seconds: start.elapsed().as_secs_f64(),
            relative_change: step.relative_change,
            residual: solver.residual(),
            jitter: step.jitter,
        };
        history.push(iteration);
        Best::keep(&mut best, &iteration, solver.weights());
        let asked = observer.iteration(&iteration) == Flow::Stop;
        let since_best = best.as_ref().map(|b| number - b.iteration.iteration);
        if step.finished {
            break Stopped::Solved;
        } else if asked {
            break Stopped::Interrupted;
        } else if iteration
            .residual
            .is_some_and(|r| r.relative <= limits.tolerance)
        {
            break Stopped::Tolerance;
        } else if stands_still(&history, limits.tolerance, solver.steps_per_pass()) {
            break Stopped::NoImprovement;
        } else if limits
            .patience
            .is_some_and(|p| since_best.is_some_and(|s| s >= p))
        {
            break Stopped::Patience;
        } else if number == limits.iterations {
            break Stopped::Iterations;
        } else if limits
            .seconds
            .is_some_and(|s| start.elapsed().as_secs_f64() >= s)
        {
            break Stopped::Time;
        }
    };
    drop((strip, gram));
    let last = *history.last().expect("at least one iteration was made");
    let (chosen, weights) = match best {
        Some(best) => (best.iteration, best.weights),
        None => (last, solver.weights().clone()),
    };
    let known = chosen.residual.filter(|r| r.exact);
    let residual = known.or_else(|| {
        let n = system.n() as f64;
        let flops = system.kernel_flops(n * n);
        let affordable = flops <= CERTIFY_SHARE * phases.flops();
        affordable.then(|| Residual {
            relative: phases.time(Phase::Certify, flops, || system.relative_residual(&weights)),
            exact: true,
        })
    });
    Ok(Solution {
        residual: residual.or(chosen.residual),
        weights,
        iterations: last.iteration,
        best_iteration: chosen.iteration,
        stopped,
        seconds: start.elapsed().as_secs_f64(),
        jitter: history.iter().map(|i| i.jitter).fold(0.0, f64::max),
        history,
        phases: phases.report(),
    })
}

/// The weights with the least validation error so far.
struct Best<T: Scalar> {
    iteration: Iteration,
    weights: Bordered<T>,
}

impl<T: Scalar> Best<T> {
    fn keep(best: &mut Option<Self>, iteration: &Iteration, weights: &Bordered<T>) {
        let Some(error) = iteration.validation_error else {
            return;
        };
        let before = best.as_ref().and_then(|b| b.iteration.validation_error);
        if before.is_none_or(|before| error < before) {
            *best = Some(Best {
                iteration: *iteration,
                weights: weights.clone(),
            });
        }
    }
}

/// Whether W has changed little in every step of a whole pass.
fn stands_still(history: &[Iteration], tolerance: f64, pass: usize) -> bool {
    let little = |i: &Iteration| i.relative_change <= tolerance;
    history.len() > pass && history[history.len() - pass..].iter().all(little)
}
