//! One run: a solver, its history, and the best weights so far.

use std::time::{Duration, Instant};

use super::bordering::LONG_LOOK;
use super::run::ITERATION_NUMBERS;
use super::state::{HISTORY, unfit};
use super::{
    Flow, Followed, Iteration, LeaveOneOut, Limits, Method, Observer, OpenBlock, Phase, Phases,
    Residual, Solution, Solver, State, Step, Stopped, Work,
};
use crate::linalg::Scalar;
use crate::ranks::Traffic;
use crate::system::{Bordered, Certificate, System};
use crate::{Error, Result};

/// The final weights are examined if that costs at most this share of the operations
/// already spent.
const CERTIFY_SHARE: f64 = 0.25;

/// The same for methods on all of Ω, which end with a certificate unless it takes long.
const LOOKED_SHARE: f64 = 0.6;

/// A solver on its way.
pub(super) struct Track<T: Scalar> {
    solver: Box<dyn Solver<T>>,
    limits: Limits,
    phases: Phases,
    history: Vec<Iteration>,
    best: Option<Best<T>>,
    /// What was spent before the first step, and the time of all steps, blocks that
    /// another run had opened included: what the run would have taken alone.
    seconds: f64,
    /// What earlier processes of the same run have spent.
    earlier: f64,
    finished: bool,
    /// The last step was abandoned, and its weights are the model all the same.
    partial: bool,
    /// Whether it began at weights that were given.
    started: bool,
    method: Method,
    left_out: Option<LeaveOneOut<T>>,
    /// Why there are no leave-one-out scores, if they were wanted.
    not_left_out: Option<String>,
}

impl<T: Scalar> Track<T> {
    pub(super) fn new(solver: Box<dyn Solver<T>>, method: Method, limits: &Limits) -> Result<Self> {
        limits.check()?;
        Ok(Self {
            solver,
            limits: *limits,
            phases: Phases::default(),
            history: Vec::new(),
            best: None,
            seconds: limits.spent,
            earlier: 0.0,
            finished: false,
            partial: false,
            started: false,
            method,
            left_out: None,
            not_left_out: None,
        })
    }

    /// Begins at these weights.
    pub(super) fn start_from(
        &mut self,
        system: &System<T>,
        block: &mut OpenBlock<T>,
        rows: [&mut Option<Followed<T>>; 2],
        weights: Bordered<T>,
    ) -> Result<()> {
        let start = Instant::now();
        let mut work = Work {
            system,
            block,
            phases: &mut self.phases,
            progress: &mut |_| true,
        };
        self.solver.start_from(&mut work, weights)?;
        for rows in rows.into_iter().flatten() {
            self.phases.time(Phase::Follow, 0.0, || {
                rows.evaluate(system, self.solver.weights());
            });
        }
        self.started = true;
        self.spend(start.elapsed());
        Ok(())
    }

    /// Counts time that was spent beside the steps.
    pub(super) fn spend(&mut self, time: Duration) {
        self.seconds += time.as_secs_f64();
    }

    /// Whether the weights that it began with are good enough.
    fn is_there_already(&self) -> bool {
        let within = |r: Residual| r.exact && r.relative <= self.limits.tolerance;
        self.started && self.history.is_empty() && self.solver.residual().is_some_and(within)
    }

    /// Makes one step, follows the errors, and keeps the weights if they are the
    /// best so far.
    pub(super) fn step(
        &mut self,
        system: &System<T>,
        block: &mut OpenBlock<T>,
        test: &mut Option<Followed<T>>,
        validation: &mut Option<Followed<T>>,
        every: usize,
        observer: &mut dyn Observer,
    ) -> Result<Iteration> {
        let start = Instant::now();
        let number = self.history.len() + 1;
        let there = self.is_there_already();
        let mut work = Work {
            system,
            block,
            phases: &mut self.phases,
            progress: &mut |done| observer.progress(done) == Flow::Continue,
        };
        let step = match there {
            true => Step::NONE,
            false => self.solver.step(&mut work)?,
        };
        self.check(&step, number)?;
        if step.abandoned && (!self.history.is_empty() || step.relative_change == 0.0) {
            return Err(Error::Interrupted);
        }
        self.partial = step.abandoned;
        let last = self.partial || step.finished || number == self.limits.iterations;
        let due = there || last || (every > 0 && number.is_multiple_of(every));
        let (phases, solver) = (&mut self.phases, &*self.solver);
        let mut follow = |rows: &mut Option<Followed<T>>| {
            rows.as_mut().and_then(|rows| {
                if !there {
                    phases.time(Phase::Follow, 0.0, || rows.follow(system, solver, due));
                }
                due.then(|| rows.error())
            })
        };
        let (test_error, validation_error) = (follow(test), follow(validation));
        self.seconds += start.elapsed().as_secs_f64() + block.take_saved();
        let iteration = Iteration {
            iteration: number,
            test_error,
            validation_error,
            seconds: self.seconds,
            relative_change: step.relative_change,
            residual: self.solver.residual(),
            jitter: step.jitter,
            flops: self.phases.flops(),
        };
        self.finished = step.finished;
        self.history.push(iteration);
        Best::keep(&mut self.best, &iteration, &*self.solver);
        Ok(iteration)
    }

    fn check(&self, step: &Step, number: usize) -> Result<()> {
        if step.relative_change.is_finite() {
            return Ok(());
        }
        Err(Error::Numeric(format!(
            "iteration {number} left the range of the number type; scale the features, use a \
             smaller c or --precision f64"
        )))
    }

    /// Whether the last step was abandoned: the weights are those of a part of it, and there
    /// is nothing to go on from.
    pub(super) fn is_partial(&self) -> bool {
        self.partial
    }

    /// Whether there is a model already.
    pub(super) fn has_begun(&self) -> bool {
        !self.history.is_empty()
    }

    /// Why the run ends here, if it does. `asked`: what an observer wishes.
    pub(super) fn end(&self, asked: Flow) -> Option<Stopped> {
        let last = self.last();
        let best = self.best.as_ref().map(|b| b.iteration.iteration);
        // Between two looks at the validation rows nothing is known to have got no better.
        let looked = last.validation_error.is_some();
        let since_best = best.filter(|_| looked).map(|best| last.iteration - best);
        let Limits {
            iterations,
            seconds,
            tolerance,
            patience,
            ..
        } = self.limits;
        if self.finished {
            Some(Stopped::Solved)
        } else if asked == Flow::Stop {
            Some(Stopped::Interrupted)
        } else if last.residual.is_some_and(|r| r.relative <= tolerance) {
            Some(Stopped::Tolerance)
        } else if stands_still(&self.history, tolerance, self.solver.steps_per_pass()) {
            Some(Stopped::NoImprovement)
        } else if patience.is_some_and(|p| since_best.is_some_and(|s| s >= p)) {
            Some(Stopped::Patience)
        } else if last.iteration == iterations {
            Some(Stopped::Iterations)
        } else if seconds.is_some_and(|s| self.seconds >= s) {
            Some(Stopped::Time)
        } else {
            None
        }
    }

    /// Notes all that the rest of the run depends on.
    pub(super) fn save<'a>(
        &'a self,
        block: &OpenBlock<T>,
        [test, validation]: [&'a Option<Followed<T>>; 2],
        state: &mut State<'a>,
    ) {
        state.within("solver", |state| self.solver.save(state));
        state.within("block", |state| block.save(state));
        for (name, rows) in [("test", test), ("validation", validation)] {
            if let Some(rows) = rows {
                state.within(name, |state| rows.save(state));
            }
        }
        if let Some(best) = &self.best {
            state.within("best", |state| {
                state.put_counts("iteration", [best.iteration.iteration]);
                state.put_bordered("weights", &best.weights);
                state.put_certificate("certificate", best.certificate.as_ref());
            });
        }
        let history: Vec<f64> = self.history.iter().flat_map(Iteration::numbers).collect();
        state.put_numbers(HISTORY, &history);
        state.put_numbers("phases", &self.phases.numbers());
        state.put_numbers("seconds", &[self.seconds]);
    }

    /// Goes on where another with the same plan and limits was.
    pub(super) fn restore(
        &mut self,
        block: &mut OpenBlock<T>,
        [test, validation]: [&mut Option<Followed<T>>; 2],
        state: &mut State<'_>,
    ) -> Result<()> {
        let (history, rest) = {
            let numbers = state.take_numbers(HISTORY)?;
            let (lines, rest) = numbers.as_chunks::<ITERATION_NUMBERS>();
            let line = |(place, line)| Iteration::of_numbers(place + 1, line);
            let history: Vec<_> = lines.iter().enumerate().map(line).collect();
            (history, rest.len())
        };
        if history.is_empty() || rest > 0 {
            return Err(unfit(HISTORY, "is not one of iterations"));
        }
        self.history = history;
        let shape = self.solver.weights().shape();
        state.within("solver", |state| self.solver.restore(state))?;
        state.within("block", |state| block.restore(state))?;
        for (name, rows) in [("test", test), ("validation", validation)] {
            if let Some(rows) = rows {
                state.within(name, |state| rows.restore(state))?;
            }
        }
        if state.has("best") {
            self.best = state.within("best", |state| {
                let place = state.take_count("iteration")?;
                let line = place.checked_sub(1).and_then(|i| self.history.get(i));
                let iteration = line.ok_or_else(|| unfit("best", "is of no iteration"))?;
                Ok(Some(Best {
                    iteration: *iteration,
                    weights: state.take_bordered("weights", shape)?,
                    certificate: state.take_certificate("certificate")?,
                }))
            })?;
        }
        self.phases = Phases::of_numbers(state.take_exactly("phases")?);
        [self.earlier] = state.take_exactly("seconds")?;
        self.seconds += self.earlier;
        Ok(())
    }

    pub(super) fn last(&self) -> Iteration {
        *self.history.last().expect("at least one step was made")
    }

    /// Examines the weights, if that is affordable. Those of centres solve another system,
    /// whose residual they know.
    fn certify(&mut self, system: &System<T>, weights: &Bordered<T>) -> Option<Certificate> {
        if self.method == Method::Centers {
            return None;
        }
        let flops = system.true_product_flops(system.outputs() + 1);
        let spent = self.phases.flops() - self.phases.flops_of(Phase::Factor);
        let affordable = is_affordable(self.method, flops, spent);
        // Ranks have rows of their own to count, and must all look or not.
        system.ranks().decide(affordable).then(|| {
            self.phases
                .time(Phase::Certify, flops, || system.certify(weights))
        })
    }

    /// Finds leave-one-out scores, if they are wanted and not there yet. The run has ended:
    /// whoever asks to stop now, or asked before, has the model without them.
    pub(super) fn leave_one_out(
        &mut self,
        system: &System<T>,
        block: &mut OpenBlock<T>,
        stopped: Stopped,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let start = Instant::now();
        let go_on = stopped != Stopped::Interrupted;
        let mut work = Work {
            system,
            block,
            phases: &mut self.phases,
            progress: &mut |done| go_on && observer.leaving_out(done) == Flow::Continue,
        };
        match self.solver.leave_one_out(&mut work) {
            Ok(found) => self.left_out = found,
            Err(Error::Interrupted) => self.not_left_out = Some("it was interrupted".into()),
            Err(Error::Numeric(why)) => self.not_left_out = Some(why),
            Err(error) => return Err(error),
        }
        self.spend(start.elapsed());
        Ok(())
    }

    /// The weights of the run, with a certificate if it is to be had.
    pub(super) fn finish(mut self, system: &System<T>, stopped: Stopped) -> Solution<T> {
        let start = Instant::now();
        let last = self.last();
        let (chosen, weights, known) = match self.best.take() {
            Some(best) => (best.iteration, best.weights, best.certificate),
            None => {
                let solver = &self.solver;
                (
                    last,
                    solver.weights().clone(),
                    solver.certificate().cloned(),
                )
            }
        };
        // Who wants to stop does not wait for all of Ω to be computed again.
        let in_time = stopped != Stopped::Interrupted || system.kept().is_some();
        let certificate = known.or_else(|| {
            let certificate = in_time.then(|| self.certify(system, &weights));
            certificate.flatten()
        });
        let certain = certificate.as_ref().map(|c| Residual {
            relative: c.relative_residual,
            exact: true,
        });
        Solution {
            residual: certain.or(chosen.residual),
            certificate,
            leave_one_out: self.left_out,
            not_left_out: self.not_left_out,
            weights,
            iterations: last.iteration,
            best_iteration: chosen.iteration,
            stopped,
            seconds: self.seconds + start.elapsed().as_secs_f64(),
            earlier_seconds: self.earlier,
            jitter: self.history.iter().map(|i| i.jitter).fold(0.0, f64::max),
            history: self.history,
            phases: self.phases,
            traffic: Traffic::default(),
        }
    }
}

/// Whether weights that took so many operations, factors apart, are worth others to examine
/// them. Methods on
/// all of Ω have looked at it many times, and theirs are, unless one more look takes long and
/// there was only one.
fn is_affordable(method: Method, flops: f64, spent: f64) -> bool {
    let looked_often = flops <= LONG_LOOK || flops <= LOOKED_SHARE * spent;
    flops <= CERTIFY_SHARE * spent || method.wants_kernel() && looked_often
}

/// The weights with the least validation error so far.
struct Best<T: Scalar> {
    iteration: Iteration,
    weights: Bordered<T>,
    certificate: Option<Certificate>,
}

impl<T: Scalar> Best<T> {
    fn keep(best: &mut Option<Self>, iteration: &Iteration, solver: &dyn Solver<T>) {
        let Some(error) = iteration.validation_error else {
            return;
        };
        let before = best.as_ref().and_then(|b| b.iteration.validation_error);
        if before.is_none_or(|before| error < before) {
            *best = Some(Best {
                iteration: *iteration,
                weights: solver.weights().clone(),
                certificate: solver.certificate().cloned(),
            });
        }
    }
}

/// Whether W has changed little in every step of a whole pass.
fn stands_still(history: &[Iteration], tolerance: f64, pass: usize) -> bool {
    let little = |i: &Iteration| i.relative_change <= tolerance;
    history.len() > pass && history[history.len() - pass..].iter().all(little)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worth_a_certificate() {
        use Method::{GaussSeidel, Mp};
        let (short, long) = (0.1 * LONG_LOOK, 10.0 * LONG_LOOK);
        // After one look, after two passes, after many steps.
        for (method, flops, looks, worth) in [
            (GaussSeidel, short, 1.0, true),
            (GaussSeidel, long, 1.0, false),
            (GaussSeidel, long, 4.0, true),
            (Mp, short, 1.0, false),
            (Mp, long, 4.0, true),
        ] {
            assert_eq!(is_affordable(method, flops, looks * flops), worth);
        }
    }
}
