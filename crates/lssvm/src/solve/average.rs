//! The mean of several runs with different seeds, stepped together
//! (eq. 66–67 of the paper).

use super::{Residual, Solver, State, Step, Update, Work};
use crate::Result;
use crate::linalg::Scalar;
use crate::system::{Bordered, System};

/// S solvers and the mean of their weights.
pub(super) struct Average<T: Scalar> {
    members: Vec<Box<dyn Solver<T>>>,
    mean: Bordered<T>,
}

impl<T: Scalar> Average<T> {
    /// Members start as they are.
    pub(super) fn new(system: &System<T>, members: Vec<Box<dyn Solver<T>>>) -> Self {
        Self {
            members,
            mean: system.zeros(),
        }
    }

    fn share(&self) -> T {
        T::from_f64(1.0 / self.members.len() as f64)
    }

    fn mean(&self) -> Bordered<T> {
        let (n, outputs) = self.mean.shape();
        let mut mean = Bordered::zeros(n, outputs);
        for member in &self.members {
            mean.add_scaled(member.weights(), self.share());
        }
        mean
    }
}

impl<T: Scalar> Solver<T> for Average<T> {
    fn step(&mut self, work: &mut Work<'_, T>) -> Result<Step> {
        let mut total = Step {
            relative_change: 0.0,
            jitter: 0.0,
            finished: true,
            abandoned: false,
        };
        for member in &mut self.members {
            let step = member.step(work)?;
            total.relative_change = total.relative_change.max(step.relative_change);
            total.jitter = total.jitter.max(step.jitter);
            total.finished &= step.finished;
        }
        self.mean = self.mean();
        Ok(total)
    }

    fn weights(&self) -> &Bordered<T> {
        &self.mean
    }

    /// The largest of the members' residuals bounds that of their mean.
    fn residual(&self) -> Option<Residual> {
        let mut residuals = self.members.iter().map(|m| m.residual());
        let largest = residuals.try_fold(0.0, |largest: f64, residual| {
            residual.map(|r| largest.max(r.relative))
        });
        largest.map(|relative| Residual {
            relative,
            exact: false,
        })
    }

    fn updates(&self, tell: &mut dyn FnMut(Update<'_, T>, T)) {
        let share = self.share();
        for member in &self.members {
            member.updates(&mut |update, factor| tell(update, factor * share));
        }
    }

    fn steps_per_pass(&self) -> usize {
        let passes = self.members.iter().map(|m| m.steps_per_pass());
        passes.max().unwrap_or(1)
    }

    fn start_from(&mut self, work: &mut Work<'_, T>, weights: Bordered<T>) -> Result<()> {
        for member in &mut self.members {
            member.start_from(work, weights.clone())?;
        }
        self.mean = self.mean();
        Ok(())
    }

    fn save<'a>(&'a self, state: &mut State<'a>) {
        for (place, member) in self.members.iter().enumerate() {
            state.within(&format!("member-{place}"), |state| member.save(state));
        }
    }

    fn restore(&mut self, state: &mut State<'_>) -> Result<()> {
        for (place, member) in self.members.iter_mut().enumerate() {
            state.within(&format!("member-{place}"), |state| member.restore(state))?;
        }
        self.mean = self.mean();
        Ok(())
    }
}
