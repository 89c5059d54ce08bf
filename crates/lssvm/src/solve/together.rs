//! Several runs on one system, step by step side by side.
//!
//! Runs with the same block size and seed draw the same blocks. Taken together
//! they share each strip of Ω, its Gram matrix and its factor, which is most of
//! the cost of a step: matching pursuit, Kaczmarz and their hybrid for little
//! more than the price of one. The times each run reports are those it would have
//! taken alone.

use super::track::Track;
use super::{Followed, Limits, Observer, OpenBlock, Plan, Solution};
use crate::Result;
use crate::linalg::Scalar;
use crate::system::System;

/// One of the runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// What to run.
    pub plan: Plan,
    /// When to stop.
    pub limits: Limits,
}

/// A run that has ended, and the test rows it was followed by.
pub type Ended<T> = (Solution<T>, Option<Followed<T>>);

/// Runs all entries to their ends, one step of each in turn. `test` is followed
/// after every iteration; `observer` may stop all of them.
pub fn run_together<T: Scalar>(
    system: &System<T>,
    entries: &[Entry],
    test: Option<&Followed<T>>,
    observer: &mut dyn Observer,
) -> Result<Vec<Ended<T>>> {
    let mut running = Vec::with_capacity(entries.len());
    for entry in entries {
        // What all have in common, such as a kernel matrix that is kept, is no run's own.
        let solver = entry.plan.solver(system)?;
        let track = Track::new(solver, entry.plan.method, &entry.limits)?;
        running.push((Some(track), test.map(Followed::again)));
    }
    let mut ended: Vec<Option<Solution<T>>> = entries.iter().map(|_| None).collect();
    let mut block = OpenBlock::new(system.shares());
    while ended.iter().any(Option::is_none) {
        for (index, (track, test)) in running.iter_mut().enumerate() {
            let Some(mut going) = track.take() else {
                continue;
            };
            observer.turn(index);
            let iteration = going.step(system, &mut block, test, &mut None, 1, observer)?;
            match going.end(observer.iteration(&iteration)) {
                Some(stopped) => {
                    going.leave_one_out(system, &mut block, stopped, observer)?;
                    ended[index] = Some(going.finish(system, stopped));
                }
                None => *track = Some(going),
            }
        }
    }
    let tests = running.into_iter().map(|(_, test)| test);
    Ok(ended.into_iter().flatten().zip(tests).collect())
}
