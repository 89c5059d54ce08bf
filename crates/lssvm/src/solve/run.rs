//! Drives a solver: limits, who is told, and what a run ends with.

use serde::{Deserialize, Serialize};

use std::time::Instant;

use super::track::Track;
use super::{
    Checkpointed, Followed, Keeper, LeaveOneOut, Method, OpenBlock, Phases, Plan, Residual, Solver,
    State,
};
use crate::linalg::Scalar;
use crate::ranks::{Ranks, Traffic};
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
    /// So many iterations, and nothing else.
    pub fn after(iterations: usize) -> Self {
        Self {
            iterations,
            seconds: None,
            spent: 0.0,
            tolerance: 0.0,
            patience: None,
        }
    }

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

/// Numbers of an iteration in a saved history.
pub(super) const ITERATION_NUMBERS: usize = 8;

impl Iteration {
    /// All but its place, for a run that is to go on.
    pub(super) fn numbers(&self) -> [f64; ITERATION_NUMBERS] {
        let known = [
            self.residual.is_some(),
            self.residual.is_some_and(|r| r.exact),
            self.test_error.is_some(),
            self.validation_error.is_some(),
        ];
        let flags = known
            .iter()
            .rev()
            .fold(0, |bits, &bit| 2 * bits + u8::from(bit));
        [
            f64::from(flags),
            self.seconds,
            self.relative_change,
            self.residual.map_or(0.0, |r| r.relative),
            self.test_error.unwrap_or(0.0),
            self.validation_error.unwrap_or(0.0),
            self.jitter,
            self.flops,
        ]
    }

    /// The iteration that [`Iteration::numbers`] told.
    pub(super) fn of_numbers(iteration: usize, numbers: &[f64; ITERATION_NUMBERS]) -> Self {
        let [
            flags,
            seconds,
            relative_change,
            relative,
            test,
            validation,
            jitter,
            flops,
        ] = *numbers;
        let known = |bit: u8| flags as u8 & (1 << bit) != 0;
        Self {
            iteration,
            seconds,
            relative_change,
            residual: known(0).then(|| Residual {
                relative,
                exact: known(1),
            }),
            test_error: known(2).then_some(test),
            validation_error: known(3).then_some(validation),
            jitter,
            flops,
        }
    }
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

    /// After each try to keep the state of the run.
    fn checkpoint(&mut self, _told: &Checkpointed) {}

    /// Within a long step: the share of it that is done.
    fn progress(&mut self, _done: f64) -> Flow {
        Flow::Continue
    }

    /// After the last iteration, while leave-one-out scores are estimated: the share of that
    /// which is done. To stop is to do without them.
    fn leaving_out(&mut self, done: f64) -> Flow {
        self.progress(done)
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
    pub leave_one_out: Option<LeaveOneOut<T>>,
    /// Why there are none, if they were wanted.
    pub not_left_out: Option<String>,
    /// Iterations made.
    pub iterations: usize,
    /// The iteration whose weights these are.
    pub best_iteration: usize,
    /// Why it ended.
    pub stopped: Stopped,
    /// Wall time.
    pub seconds: f64,
    /// The part of it that was spent by earlier processes, if the run went on from a
    /// checkpoint.
    pub earlier_seconds: f64,
    /// All iterations.
    pub history: Vec<Iteration>,
    /// Where the time went.
    pub phases: Phases,
    /// The largest jitter of any iteration.
    pub jitter: f64,
    /// What the steps of this process communicated, following included.
    pub traffic: Traffic,
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
    let (rows, course) = ([test, validation], Course::default());
    let solver = (plan.solver(system)?, plan.method);
    run_on(system, solver, limits, rows, every, observer, course)
}

/// How a run begins, and who keeps its state on the way.
pub struct Course<'a, T: Scalar> {
    /// The state that it goes on from.
    pub state: Option<State<'static>>,
    /// If there is none, the weights that it begins with; none: zero.
    pub start: Option<Bordered<T>>,
    /// Keeps the state from time to time, and if somebody asked to stop. Where there are
    /// several ranks, the first has it.
    pub keeper: Option<&'a mut Keeper>,
    /// The ranks that make the run together: the first decides when it ends.
    pub ranks: Ranks,
}

impl<T: Scalar> Default for Course<'_, T> {
    fn default() -> Self {
        Self {
            state: None,
            start: None,
            keeper: None,
            ranks: Ranks::default(),
        }
    }
}

/// [`run`] on a course of its own, by a solver that was made elsewhere. `rows`: test and
/// validation.
pub fn run_on<T: Scalar>(
    system: &System<T>,
    (solver, method): (Box<dyn Solver<T>>, Method),
    limits: &Limits,
    rows: [&mut Option<Followed<T>>; 2],
    every: usize,
    observer: &mut dyn Observer,
    mut course: Course<'_, T>,
) -> Result<Solution<T>> {
    let [test, validation] = rows;
    let mut track = Track::new(solver, method, limits)?;
    let mut block = OpenBlock::new(system.shares());
    let mut ended = None;
    if let Some(state) = course.state {
        let mut state = state.shared(system.shares());
        track.restore(&mut block, [&mut *test, &mut *validation], &mut state)?;
        state.expect_empty()?;
        // Stopped from outside, it may have been at its end all the same.
        ended = track.end(Flow::Continue);
    } else if let Some(weights) = course.start {
        track.start_from(system, &mut block, [&mut *test, &mut *validation], weights)?;
    }
    let ranks = &course.ranks;
    let mut traffic = Traffic::default();
    ended = agreed(ranks, ended);
    let stopped = loop {
        if let Some(stopped) = ended {
            break stopped;
        }
        let before = ranks.traffic();
        let step = track.step(system, &mut block, test, validation, every, observer);
        traffic.add(&ranks.traffic().since(&before));
        let iteration = match ranks.agree(step) {
            Ok(iteration) => {
                let asked = observer.iteration(&iteration);
                ended = agreed(ranks, track.end(asked));
                iteration
            }
            // Within a step: what the steps before it reached is the result.
            Err(Error::Interrupted) if track.has_begun() => {
                ended = Some(Stopped::Interrupted);
                track.last()
            }
            Err(error) => return Err(error),
        };
        let keeper = course.keeper.as_deref_mut();
        let wanted = |keeper: &Keeper| match ended {
            None => keeper.is_due(),
            Some(stopped) => stopped == Stopped::Interrupted && !track.is_partial(),
        };
        if ranks.decide(keeper.as_deref().is_some_and(wanted)) {
            let start = Instant::now();
            let mut state = State::new(system.shares());
            track.save(&block, [&*test, &*validation], &mut state);
            if let Some(keeper) = keeper {
                keeper.keep(iteration.iteration, &state);
                observer.checkpoint(keeper.told());
            }
            track.spend(start.elapsed());
        }
    };
    track.leave_one_out(system, &mut block, stopped, observer)?;
    drop(block);
    Ok(Solution {
        traffic,
        ..track.finish(system, stopped)
    })
}

/// Why the run ends, if it does, as the first rank sees it: clocks and people differ.
fn agreed(ranks: &Ranks, own: Option<Stopped>) -> Option<Stopped> {
    if ranks.is_alone() {
        return own;
    }
    let all = [
        Stopped::Solved,
        Stopped::Tolerance,
        Stopped::NoImprovement,
        Stopped::Patience,
        Stopped::Iterations,
        Stopped::Time,
        Stopped::Interrupted,
    ];
    let place = all.iter().position(|&stopped| Some(stopped) == own);
    let told = ranks.broadcast(0, vec![place.unwrap_or(all.len()) as u8]);
    all.get(usize::from(told[0])).copied()
}
