//! Long work beside the interpreter: its lock is free, Ctrl-C is heard, progress is told.
//!
//! The work has a thread of its own. The calling thread wakes a few times a second,
//! lets Python handle signals, and passes on what the work tells. If Python raises, the
//! work is asked to stop and not waited for: it ends at its next look at the flag.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lssvm::solve::{Flow, Iteration, Observer};
use lssvm::train::{Forecast, Report, Watcher};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::raise;

/// Between two looks at signals.
const TICK: Duration = Duration::from_millis(50);

/// Between two words on progress within a step.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// What the work tells.
enum Message<R> {
    Told(Told),
    Done(lssvm::Result<R>),
}

/// A word on progress.
pub enum Told {
    /// What will be done, and the most iterations of it.
    Begin(String, usize),
    /// Share of a step.
    Step(f64),
    /// A candidate of a search.
    Tried(Tried),
    /// Iteration, relative residual, validation error.
    Iteration(usize, Option<f64>, Option<f64>),
}

/// What a search tells after each candidate.
pub struct Tried {
    /// Rows, and the least error on so many.
    pub rows: usize,
    pub error: f64,
    /// How many candidates are done, of how many.
    pub done: usize,
    pub of: usize,
    /// The trial, and the best so far, as JSON: Python keeps them, so that a search that
    /// is interrupted has not been for nothing.
    pub trial: String,
    pub best: String,
}

/// What the work has of the caller.
pub struct Caller {
    stop: Arc<AtomicBool>,
    tell: Box<dyn Fn(Told) + Send>,
    last: Instant,
}

impl Caller {
    /// Whether to go on.
    pub fn flow(&self) -> Flow {
        match self.stop.load(Ordering::Relaxed) {
            true => Flow::Stop,
            false => Flow::Continue,
        }
    }

    /// Tells of a candidate of a search.
    pub fn tried(&self, tried: Tried) {
        (self.tell)(Told::Tried(tried));
    }
}

impl Observer for Caller {
    fn iteration(&mut self, iteration: &Iteration) -> Flow {
        let residual = iteration.residual.map(|r| r.relative);
        (self.tell)(Told::Iteration(
            iteration.iteration,
            residual,
            iteration.validation_error,
        ));
        self.flow()
    }

    fn progress(&mut self, done: f64) -> Flow {
        if self.last.elapsed() > TELL_EVERY {
            self.last = Instant::now();
            (self.tell)(Told::Step(done));
        }
        self.flow()
    }
}

impl Watcher for Caller {
    fn begin(&mut self, forecast: &Forecast) {
        let text = format!("{} ({})", forecast.config.method, forecast.why);
        (self.tell)(Told::Begin(text, forecast.config.iterations));
    }

    fn ended(&mut self, _run: usize, _report: &Report) {}
}

/// Work that was asked to stop and may not have ended, by the folder it writes to.
static STOPPED: Mutex<Vec<(PathBuf, JoinHandle<()>)>> = Mutex::new(Vec::new());

/// Waits until work that was asked to stop has left this folder.
pub fn wait_for_stopped(py: Python<'_>, folder: &Path) -> PyResult<()> {
    loop {
        {
            let mut stopped = STOPPED.lock().unwrap_or_else(PoisonError::into_inner);
            stopped.retain(|(_, thread)| !thread.is_finished());
            if !stopped.iter().any(|(other, _)| other == folder) {
                return Ok(());
            }
        }
        py.detach(|| thread::sleep(TICK));
        py.check_signals()?;
    }
}

/// Does the work; `progress` is called with (kind, …) tuples, if it is given.
pub fn beside<R: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&mut Caller) -> lssvm::Result<R> + Send + 'static,
) -> PyResult<R> {
    beside_in(py, progress, None, work)
}

/// As [`beside`], for work that writes to a folder.
pub fn beside_in<R: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    folder: Option<&Path>,
    work: impl FnOnce(&mut Caller) -> lssvm::Result<R> + Send + 'static,
) -> PyResult<R> {
    let (sender, mut receiver) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let mut caller = caller(&stop, &sender, progress.is_some());
    let thread = thread::spawn(move || {
        let result = work(&mut caller);
        // Nobody listens any more if Python has raised.
        let _ = sender.send(Message::Done(result));
    });
    loop {
        let (message, back) = py.detach(move || (receiver.recv_timeout(TICK), receiver));
        receiver = back;
        let heard = match message {
            Ok(Message::Done(result)) => return result.map_err(raise),
            Ok(Message::Told(told)) => progress.map_or(Ok(()), |call| pass_on(call, told)),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                let text = "the computation failed unexpectedly; this is a bug of lssvm";
                return Err(PyRuntimeError::new_err(text));
            }
        };
        if let Err(raised) = heard.and_then(|()| py.check_signals()) {
            stop.store(true, Ordering::Relaxed);
            if let Some(folder) = folder {
                let mut stopped = STOPPED.lock().unwrap_or_else(PoisonError::into_inner);
                stopped.push((folder.to_path_buf(), thread));
            }
            return Err(raised);
        }
    }
}

fn caller<R: Send + 'static>(
    stop: &Arc<AtomicBool>,
    sender: &Sender<Message<R>>,
    tells: bool,
) -> Caller {
    let sender = sender.clone();
    Caller {
        stop: Arc::clone(stop),
        tell: Box::new(move |told| {
            if tells {
                let _ = sender.send(Message::Told(told));
            }
        }),
        last: Instant::now(),
    }
}

fn pass_on(call: &Bound<'_, PyAny>, told: Told) -> PyResult<()> {
    match told {
        Told::Begin(text, iterations) => call.call1(("begin", text, iterations))?,
        Told::Tried(t) => call.call1(("tried", t.rows, t.error, t.done, t.of, t.trial, t.best))?,
        Told::Step(done) => call.call1(("step", done))?,
        Told::Iteration(i, residual, error) => call.call1(("iteration", i, residual, error))?,
    };
    Ok(())
}
