//! Who computes which tile of the factor, and when.
//!
//! ```text
//!     T(i,j) ← T(i,j) − Σ_{k<j} T(i,k) T(j,k)ᵀ      k ascending
//!     T(j,j) ← its Cholesky factor
//!     T(i,j) ← T(i,j) T(j,j)⁻ᵀ                       i > j
//! ```
//!
//! A tile is one task: a thread takes the next tile, column after column and
//! downwards, applies all its updates while it stays in cache, and waits where
//! a tile to its left is not final yet. Nobody waits at the end of a column: a
//! thread goes on to the next columns, whose tiles lack only the newest k.
//!
//! Waiting cannot lock up. A task needs only tiles taken before it, each of
//! them by a thread that is running, so that the earliest unfinished one never
//! waits. For this no thread may start a second task inside its first: calls
//! within a task are sequential, since rayon would fill the wait for a parallel
//! one with another of our tasks.
//!
//! Since each tile's updates come in one order, on one thread, the factor has
//! the same bits for any number of threads.
//!
//! With 12 tiles of 1,024 a side on two threads (`examples/tiled_cholesky.rs`)
//! these waited for each other 3 % of the time, and did 92 GFLOP in a second of
//! processor time; the product of tiles alone did 95 in a second by the clock,
//! of which other programs took up to a tenth. A quiet machine is still to tell.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::place;
use crate::linalg::factor::mirror_upper;
use crate::linalg::{Matrix, Output, Parallel, Scalar};
use crate::{Error, Result};

/// Longest time between two calls of `progress` while its thread waits.
const TELL_INTERVAL: Duration = Duration::from_millis(100);

// Work in units of a third of a tile's side cubed. Over all tiles of a matrix
// with s tiles a side they add up to s³.
const UPDATE: usize = 6;
const DIAGONAL_UPDATE: usize = 3;
const SOLVE: usize = 3;
const FACTOR: usize = 1;

/// Told the share of the work done; false asks to give up.
type Progress<'a> = &'a mut dyn FnMut(f64) -> bool;

/// Replaces the lower tiles of A by those of L, where `A + shift·I = L Lᵀ`;
/// none if a pivot was not positive.
pub(super) fn factor<T: Scalar>(
    tiles: Vec<Matrix<T>>,
    side: usize,
    shift: f64,
    progress: Progress<'_>,
) -> Result<Option<Vec<Matrix<T>>>> {
    let run = Run {
        finished: tiles.iter().map(|_| OnceLock::new()).collect(),
        state: Mutex::new(State {
            waiting: tiles.into_iter().map(Some).collect(),
            next: (0, 0),
            work_done: 0,
            stop: None,
        }),
        changed: Condvar::new(),
        side,
        shift,
    };
    // `progress` may not leave its thread. In the pool that thread works as
    // the others do; outside, it has nothing to do but to tell.
    let in_pool = rayon::current_thread_index().is_some();
    let helpers = rayon::current_num_threads() - usize::from(in_pool);
    rayon::in_place_scope(|scope| {
        for _ in 0..helpers.min(run.finished.len()) {
            scope.spawn(|_| run.work(&mut |_| true));
        }
        if in_pool {
            run.work(progress);
        }
        run.watch(progress);
    });
    let state = run.state.into_inner();
    match state.unwrap_or_else(PoisonError::into_inner).stop {
        Some(Stop::GivenUp) => return Err(Error::Interrupted),
        Some(Stop::NotPositive) => return Ok(None),
        None => {}
    }
    // All are there, since nothing stopped the run.
    let finished = run.finished.into_iter().map(OnceLock::into_inner);
    Ok(finished.collect())
}

struct Run<T: Scalar> {
    finished: Vec<OnceLock<Matrix<T>>>,
    state: Mutex<State<T>>,
    /// A tile was finished, or the run was stopped.
    changed: Condvar,
    /// Tiles in a row or column of the matrix.
    side: usize,
    shift: f64,
}

struct State<T: Scalar> {
    /// Tiles that nobody has taken yet.
    waiting: Vec<Option<Matrix<T>>>,
    /// Row and column of the next one to be taken.
    next: (usize, usize),
    work_done: usize,
    stop: Option<Stop>,
}

#[derive(Clone, Copy)]
enum Stop {
    NotPositive,
    GivenUp,
}

impl<T: Scalar> Run<T> {
    /// Takes and finishes tiles until there are none left.
    fn work(&self, progress: Progress<'_>) {
        let _guard = StopOnPanic(self);
        while let Some((row, column, tile)) = self.take() {
            let Some(tile) = self.finish(row, column, tile, progress) else {
                return;
            };
            // Set before the lock is taken: who looks under the lock and finds
            // no tile is waiting by the time of the notice.
            let _ = self.finished[place(row, column)].set(tile);
            let _state = self.lock();
            self.changed.notify_all();
        }
    }

    /// Tells the progress until the last tile is finished.
    fn watch(&self, progress: Progress<'_>) {
        let _guard = StopOnPanic(self);
        if self.side > 0 {
            self.wait_for(self.side - 1, self.side - 1, progress);
        }
        self.go_on(progress);
    }

    fn take(&self) -> Option<(usize, usize, Matrix<T>)> {
        let mut state = self.lock();
        let (row, column) = state.next;
        let tile = state.waiting.get_mut(place(row, column))?.take()?;
        state.next = if row + 1 < self.side {
            (row + 1, column)
        } else {
            (column + 1, column + 1)
        };
        Some((row, column, tile))
    }

    /// The final tile; none if the run was stopped.
    fn finish(
        &self,
        row: usize,
        column: usize,
        mut tile: Matrix<T>,
        progress: Progress<'_>,
    ) -> Option<Matrix<T>> {
        if row == column {
            for i in 0..tile.rows() {
                tile.set(i, i, T::from_f64(tile.get(i, i).to_f64() + self.shift));
            }
        }
        for k in 0..column {
            let left = self.wait_for(row, k, progress)?.view();
            let out = tile.view_mut();
            if row == column {
                T::syrk_nt_upper(out, Output::Add, left, -T::ONE, Parallel::No);
                self.add_work(DIAGONAL_UPDATE);
            } else {
                let above = self.wait_for(column, k, progress)?.view();
                T::gemm_nt(out, Output::Add, left, above, -T::ONE, Parallel::No);
                self.add_work(UPDATE);
            }
        }
        if row == column {
            if !factor_diagonal(&mut tile) {
                self.stop(Stop::NotPositive);
                return None;
            }
            self.add_work(FACTOR);
        } else {
            let diagonal = self.wait_for(column, column, progress)?.view();
            T::solve_upper_right(diagonal, tile.view_mut(), Parallel::No);
            self.add_work(SOLVE);
        }
        Some(tile)
    }

    /// A tile, once it is final; none if the run was stopped.
    fn wait_for(&self, row: usize, column: usize, progress: Progress<'_>) -> Option<&Matrix<T>> {
        let finished = &self.finished[place(row, column)];
        while self.go_on(progress) {
            if let Some(tile) = finished.get() {
                return Some(tile);
            }
            let state = self.lock();
            if finished.get().is_none() && state.stop.is_none() {
                let waited = self.changed.wait_timeout(state, TELL_INTERVAL);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
        None
    }

    /// Tells the progress; false if the run was stopped, or is by this.
    fn go_on(&self, progress: Progress<'_>) -> bool {
        let state = self.lock();
        let all = self.side.pow(3).max(1);
        let share = state.work_done as f64 / all as f64;
        let stopped = state.stop.is_some();
        drop(state);
        if stopped {
            return false;
        }
        let go_on = progress(share);
        if !go_on {
            self.stop(Stop::GivenUp);
        }
        go_on
    }

    fn add_work(&self, units: usize) {
        self.lock().work_done += units;
    }

    /// The first reason stays.
    fn stop(&self, reason: Stop) {
        self.lock().stop.get_or_insert(reason);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the others end if this thread panics, so that rayon can pass it on.
struct StopOnPanic<'a, T: Scalar>(&'a Run<T>);

impl<T: Scalar> Drop for StopOnPanic<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop(Stop::GivenUp);
        }
    }
}

/// L over the lower triangle and Lᵀ over the upper one, from the upper triangle
/// of a symmetric tile. False if a pivot was not positive.
fn factor_diagonal<T: Scalar>(tile: &mut Matrix<T>) -> bool {
    if !T::cholesky_upper(tile.view_mut(), Parallel::No) {
        return false;
    }
    // An infinite pivot is positive, and faer does not say what NaN does.
    let pivots = (0..tile.rows()).map(|i| tile.get(i, i));
    if !pivots.into_iter().all(|p| p > T::ZERO && p.is_finite()) {
        return false;
    }
    // The upper triangle serves the solvers of `dense`; the lower one, which
    // faer has spoilt, makes the tiles together read as L.
    mirror_upper(tile.view_mut());
    true
}
