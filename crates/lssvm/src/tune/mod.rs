//! Choosing preprocessing, kernel, its parameters and c, without test data and without
//! refits.
//!
//! ```text
//! Space ─ kernels ─ few rows ─ the better third ─ three times as many ─ … ─ all, or as many as fit
//!            └ each with all its c from one factorisation      the best settings, exactly ┘
//! ```
//!
//! A candidate's score is its leave-one-out error. One factorisation serves every c of a
//! kernel ([`crate::solve::path`]), and one product of the rows serves every kernel of a
//! preprocessing. All kernels are tried on few rows and the better ones on more
//! (successive halving: Jamieson and Talwalkar, "Non-stochastic best arm identification and
//! hyperparameter optimization", 2016). What is best on the most rows is chosen, and judged
//! once more: by exact leave-one-out errors, and on validation rows by a model of all
//! others if there are more rows than were searched on.

mod search;
mod space;

pub use space::Space;

use std::time::Instant;

use serde::Serialize;

pub(crate) use search::Candidate;
use search::{Relay, Search, families};

use crate::data::{Dataset, Targets, Task};
use crate::kernel::{Gamma, KernelName};
use crate::linalg::Scalar;
use crate::solve::Flow;
use crate::solve::exact::Exact;
use crate::train::Config;
use crate::{Error, Result, memory, random};

/// Fewest rows of the first rung, the factor from rung to rung, and the share of the kernels
/// that goes on.
const FIRST_ROWS: usize = 500;
const MORE_ROWS: usize = 3;
const SURVIVORS: f64 = 1.0 / 3.0;

/// Rows that tell the scale of γ.
const SCALE_ROWS: usize = 1_000;

/// Kernels that go on at least, where there are as many, and besides those that cannot be told
/// from the best: of a9a, where 555 rows tell little, the best was left out.
const LEAST_SURVIVORS: usize = 3;

/// Rungs after which the best settings alone go on to the most rows.
const CHOOSING_RUNGS: usize = 2;

/// Rows of each class that every sample has, where there are as many.
const OF_EACH_CLASS: usize = 2;

/// Most rows of the last rung: a factorisation of more takes minutes.
const MOST_ROWS: usize = 15_000;

/// When and how to end.
#[derive(Debug, Clone, Copy, Default)]
pub struct TuneLimits {
    /// Most seconds; what is best by then is chosen.
    pub seconds: Option<f64>,
    /// Most rows of the last rung.
    pub rows: Option<usize>,
    /// Of candidates that differ in c alone, take the smallest c whose error is within one
    /// standard error of the best.
    pub one_standard_error: bool,
    /// Try every candidate on the rows of the last rung.
    pub exhaustive: bool,
    /// Train the chosen one on nearly all rows and judge it on the others, if it was chosen on
    /// fewer.
    pub confirm: bool,
}

/// One candidate, tried on so many rows.
#[derive(Debug, Clone, Serialize)]
pub struct Trial {
    /// Its place among the candidates.
    pub candidate: usize,
    /// Its settings; to be given to `train`.
    pub config: Config,
    /// Rows it was tried on.
    pub rows: usize,
    /// Leave-one-out error: share of wrong rows in percent, or RMSE. Infinite if it could
    /// not be trained.
    pub error: f64,
    /// Standard error of that.
    pub standard_error: f64,
    /// Whether the leave-one-out error is exact; else the diagonal of the inverse was
    /// interpolated, which is seldom off by as much as the standard error.
    pub exact: bool,
    /// Seconds it took.
    pub seconds: f64,
}

/// How the chosen one does on rows that nothing was learned from.
#[derive(Debug, Clone, Serialize)]
pub struct Confirmation {
    /// Rows that it learned from.
    pub rows: usize,
    /// Rows that it was judged on.
    pub held_out: usize,
    /// Share of wrong rows in percent, or RMSE.
    pub error: f64,
    /// Standard error of that.
    pub standard_error: f64,
    /// Seconds it took.
    pub seconds: f64,
}

/// What a search found.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The chosen one, on the most rows it was tried on.
    pub best: Trial,
    /// The chosen one on all rows, if it was chosen on fewer and there was time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<Confirmation>,
    /// All trials, in their order.
    pub trials: Vec<Trial>,
    /// Number of candidates.
    pub candidates: usize,
    /// Rows of each rung that was begun.
    pub rungs: Vec<usize>,
    /// True if time or somebody ended the search early.
    pub cut_short: bool,
    /// Seconds in all.
    pub seconds: f64,
}

/// Told how a search goes; may ask to stop.
pub trait TuneWatcher: Send {
    /// After each trial: the best of this rung so far, and how many of its candidates are
    /// done, of how many.
    fn tried(&mut self, _trial: &Trial, _best: &Trial, _done: usize, _of: usize) -> Flow {
        Flow::Continue
    }

    /// Within a trial: whether to go on.
    fn flow(&mut self) -> Flow {
        Flow::Continue
    }
}

/// Watches nothing.
impl TuneWatcher for crate::solve::Silent {}

/// Searches a space for the setting with the least leave-one-out error.
///
/// `base`: settings that are not searched: task, memory, threads, precision, seed, class
/// weights.
///
/// ```
/// use lssvm::data::{Dataset, Labels};
/// use lssvm::linalg::Matrix;
/// use lssvm::train::Config;
/// use lssvm::tune::{Space, TuneLimits, tune};
/// // Two noisy clouds around (0, 0) and (3, 3).
/// let x = Matrix::from_fn(60, 2, |i, j| (i % 2) as f32 * 3.0 + ((i * 7 + j * 3) as f32).sin());
/// let mut train = Dataset::new("clouds".as_ref(), x);
/// train.labels = Some(Labels::from_text((0..60).map(|i| ["near", "far"][i % 2])));
/// let space = Space::for_rows(None);
/// let (base, limits) = (Config::default(), TuneLimits::default());
/// let found = tune(train, &space, &base, limits, &mut lssvm::solve::Silent)?;
/// assert_eq!(found.best.error, 0.0);
/// # Ok::<(), lssvm::Error>(())
/// ```
///
/// # Errors
/// [`Error::Data`] if no candidate could be trained, or the data have no labels.
pub fn tune<T: Scalar>(
    data: Dataset<T>,
    space: &Space,
    base: &Config,
    limits: TuneLimits,
    watcher: &mut dyn TuneWatcher,
) -> Result<Outcome> {
    T::tune(data, space, base, limits, watcher)
}

pub(crate) fn search_all<T: Scalar>(
    data: Dataset<T>,
    space: &Space,
    base: &Config,
    limits: TuneLimits,
    watcher: &mut dyn TuneWatcher,
) -> Result<Outcome> {
    let start = Instant::now();
    let labels = data.labels.as_ref().ok_or_else(|| {
        Error::Data(format!(
            "{}: there are no labels to learn; name the label column",
            data.source.display()
        ))
    })?;
    let targets = labels.resolve(base.task.unwrap_or_default())?;
    let outputs = targets.outputs();
    let base = &Config {
        // Of all rows: a sample may look like the other task.
        task: Some(match targets {
            Targets::Classes { .. } => Task::Classification,
            Targets::Values(_) => Task::Regression,
        }),
        ..base.clone()
    };
    let order = order_of(&targets, data.n_samples(), base.seed.unwrap_or(1));
    let most = most_rows::<T>(&data, outputs, space, base, &limits);
    let all = space.candidates(&sample(&data, &order, SCALE_ROWS), base)?;
    let candidates = all.len();
    let kernels = families(all);
    let mut alive = kernels.clone();
    let mut search = Search {
        trials: Vec::new(),
        rungs: Vec::new(),
        cut_short: false,
        outputs,
        threads: base.threads_asked_for(),
        budget: base.memory.unwrap_or_else(memory::default_budget).0,
        relay: Relay {
            deadline: limits.seconds.map(|seconds| (start, seconds)),
            watcher,
        },
    };
    let rungs = match limits.exhaustive {
        true => vec![most],
        false => rungs_up_to(most),
    };
    for (at, &rows) in rungs.iter().enumerate() {
        search.rungs.push(rows);
        if rows == most && at >= CHOOSING_RUNGS {
            search.finals(&sample(&data, &order, rows), rungs[at - 1], candidates)?;
            if limits.one_standard_error
                && !search.cut_short
                && let Some(rest) = search.rest_of_best(&kernels, rows)
            {
                search.rung(&sample(&data, &order, rows), &[rest])?;
            }
            break;
        }
        let part = sample(&data, &order, rows);
        let ranking = search.rung(&part, &alive)?;
        if search.cut_short || rows == most {
            break;
        }
        let share = (alive.len() as f64 * SURVIVORS).ceil() as usize;
        let go_on = share.max(LEAST_SURVIVORS).max(ranking.alike);
        let better = ranking.places.iter().take(go_on);
        alive = better.map(|&at| alive[at].clone()).collect();
    }
    let mut best = search.best(&limits)?;
    if !best.exact {
        let part = sample(&data, &order, best.rows);
        search.judge_exactly(&mut best, &part)?;
    }
    let confirmed = match limits.confirm && best.rows < data.n_samples() {
        true => search.confirm(&best, data)?,
        false => None,
    };
    Ok(Outcome {
        best,
        confirmed,
        candidates,
        trials: search.trials,
        rungs: search.rungs,
        cut_short: search.cut_short,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// Rows of the rungs, up to the most.
fn rungs_up_to(most: usize) -> Vec<usize> {
    let mut rungs = vec![most];
    while rungs[0] >= FIRST_ROWS * MORE_ROWS {
        rungs.insert(0, rungs[0] / MORE_ROWS);
    }
    rungs
}

/// Rows in random order, but some of every class first: a sample without one would be
/// another problem.
fn order_of(targets: &Targets, rows: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    random::shuffle(&mut random::rng(seed), &mut order);
    if let Targets::Classes { names, codes } = targets {
        let mut seen = vec![0; names.len()];
        let (mut first, mut rest) = (Vec::new(), Vec::with_capacity(rows));
        for row in order {
            let seen = &mut seen[codes[row] as usize];
            match *seen < OF_EACH_CLASS {
                true => first.push(row),
                false => rest.push(row),
            }
            *seen += 1;
        }
        first.append(&mut rest);
        order = first;
    }
    order
}

/// Rows at random, in the order of the data; the same for all candidates, and each rung
/// with those of the rung before.
fn sample<T: Scalar>(data: &Dataset<T>, order: &[usize], rows: usize) -> Dataset<T> {
    if rows >= data.n_samples() {
        return data.clone();
    }
    let mut rows = order[..rows].to_vec();
    rows.sort_unstable();
    data.select(&rows)
}

/// Rows of the last rung: as many as there are, and as memory and patience allow.
fn most_rows<T: Scalar>(
    data: &Dataset<T>,
    outputs: usize,
    space: &Space,
    base: &Config,
    limits: &TuneLimits,
) -> usize {
    let budget = base.memory.unwrap_or_else(memory::default_budget).0;
    let positive = !space.kernels.contains(&KernelName::Sigmoid);
    let held = size_of_val(data.features.values()) as u64;
    // The factor, inner products beside it, the sample and what preprocessing makes of it.
    let fits = |rows: usize| {
        let part = held * rows as u64 / data.n_samples().max(1) as u64;
        let solver = Exact::<T>::bytes(rows, outputs, positive, true);
        held + 3 * part + 2 * solver + (200 << 20) <= budget
    };
    let mut rows = limits.rows.unwrap_or(MOST_ROWS).min(data.n_samples());
    while rows > FIRST_ROWS && !fits(rows) {
        rows = (rows * 3 / 4).max(FIRST_ROWS);
    }
    rows.max(1)
}

/// The scale of γ for these rows after these steps.
pub(crate) fn scale_of<T: Scalar>(data: &Dataset<T>, config: &Config) -> Result<f64> {
    let steps = config.preprocess.clone().unwrap_or_default();
    let image = config.image_shape.or(data.image);
    let image = image.map(|i| [i.channels, i.height, i.width]);
    let (_, x) = steps.fit(data.features.clone(), image)?;
    Gamma::Scale.resolve(&x, data.weights.as_deref())
}

#[cfg(test)]
mod tests;
