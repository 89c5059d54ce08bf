//! A search under way: trials, and who is asked to stop.

use std::sync::Mutex;
use std::time::Instant;

use super::{Confirmation, Trial, TuneLimits, TuneWatcher};
use crate::data::Dataset;
use crate::linalg::Scalar;
use crate::solve::{Flow, Iteration, Method, Observer, Stopped};
use crate::train::{Config, Data, Evaluation, Study, Watcher, fit, path_bytes};
use crate::{Error, Result};

/// Share of all rows on which the choice is confirmed, if it was made on fewer.
const CONFIRM_ON: f64 = 0.1;

/// Of so many settings one is judged on the most rows, where two rungs have chosen it, and at
/// least so many are.
const EACH_FINALIST: usize = 40;
const LEAST_FINALISTS: usize = 4;

/// Rows up to which a kernel has one thread, and others of the same rung the other threads.
const ROWS_OF_ONE_THREAD: usize = 2_048;

/// A candidate: its place, and its settings.
pub(crate) type Candidate = (usize, Config);

/// Candidates that differ in c alone.
pub(super) type Family = Vec<Candidate>;

/// Puts candidates together that differ in c alone.
pub(super) fn families(all: Vec<Candidate>) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for candidate in all {
        let alike = |family: &&mut Family| same_but_c(&family[0].1, &candidate.1);
        match families.iter_mut().find(alike) {
            Some(family) => family.push(candidate),
            None => families.push(vec![candidate]),
        }
    }
    families
}

/// How families did in a rung.
pub(super) struct Ranking {
    /// Their places, the best first.
    pub(super) places: Vec<usize>,
    /// So many of the first cannot be told from the best: their least errors are within one
    /// standard error of it.
    pub(super) alike: usize,
}

/// A search under way.
pub(super) struct Search<'a> {
    pub(super) trials: Vec<Trial>,
    pub(super) rungs: Vec<usize>,
    pub(super) cut_short: bool,
    /// What there is of numbers to learn, threads and memory.
    pub(super) outputs: usize,
    pub(super) threads: usize,
    pub(super) budget: u64,
    pub(super) relay: Relay<'a>,
}

impl Search<'_> {
    /// Tries families on a sample.
    pub(super) fn rung<T: Scalar>(
        &mut self,
        part: &Dataset<T>,
        alive: &[Family],
    ) -> Result<Ranking> {
        let first = self.trials.len();
        let of = alive.iter().map(Vec::len).sum();
        // The least error of each, and its standard error.
        let mut least = vec![(f64::INFINITY, 0.0); alive.len()];
        let at_once = self.at_once(part, alive.len());
        let mut studies: Vec<Option<Study<T>>> = (0..at_once).map(|_| None).collect();
        let mut places = 0..;
        'rung: for families in alive.chunks(at_once) {
            if self.relay.flow() == Flow::Stop {
                self.cut_short = true;
                break;
            }
            let tried = self.attempts(part, families, &mut studies);
            for (trials, place) in tried.into_iter().zip(&mut places) {
                let trials = match trials {
                    // Somebody asked to stop in the middle of it.
                    Err(Error::Interrupted) => {
                        self.cut_short = true;
                        break 'rung;
                    }
                    trials => trials?,
                };
                for trial in trials {
                    if trial.error < least[place].0 {
                        least[place] = (trial.error, trial.standard_error);
                    }
                    self.note(trial, first, of);
                    if self.cut_short {
                        break 'rung;
                    }
                }
            }
        }
        let mut places: Vec<usize> = (0..alive.len()).collect();
        places.sort_by(|&a, &b| least[a].0.total_cmp(&least[b].0));
        let most = places
            .first()
            .map_or(0.0, |&best| least[best].0 + least[best].1);
        let alike = places.iter().filter(|&&place| least[place].0 <= most);
        Ok(Ranking {
            alike: alike.count(),
            places,
        })
    }

    /// Families that are tried side by side, with a thread each: few rows do not keep several
    /// threads busy.
    fn at_once<T: Scalar>(&self, part: &Dataset<T>, families: usize) -> usize {
        if part.n_samples() > ROWS_OF_ONE_THREAD {
            return 1;
        }
        let (n, m) = (part.n_samples(), part.n_features());
        let each = path_bytes::<f64>((n, m, self.outputs), 0, true).max(1);
        let room = (self.budget / 2 / each) as usize;
        self.threads.min(room).min(families).max(1)
    }

    /// Tries some families, each with a study of its own.
    fn attempts<T: Scalar>(
        &mut self,
        part: &Dataset<T>,
        families: &[Family],
        studies: &mut [Option<Study<T>>],
    ) -> Vec<Result<Vec<Trial>>> {
        let threads = (studies.len() > 1).then_some(1);
        if families.len() == 1 {
            return vec![attempt(
                part,
                (&families[0], threads),
                &mut studies[0],
                &mut self.relay,
            )];
        }
        let deadline = self.relay.deadline;
        let watcher: &mut dyn TuneWatcher = &mut *self.relay.watcher;
        let watcher = Mutex::new(watcher);
        std::thread::scope(|scope| {
            let begun: Vec<_> = families
                .iter()
                .zip(studies)
                .map(|(family, study)| {
                    let watcher = &watcher;
                    scope.spawn(move || {
                        let mut relay = Relay {
                            watcher: &mut Shared(watcher),
                            deadline,
                        };
                        attempt(part, (family, threads), study, &mut relay)
                    })
                })
                .collect();
            let ended = begun.into_iter().map(|thread| match thread.join() {
                Ok(trials) => trials,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            ended.collect()
        })
    }

    /// Judges the best settings on the rows of the last rung by exact leave-one-out errors on more
    /// rows; `of`: how many settings there were at the beginning.
    pub(super) fn finals<T: Scalar>(
        &mut self,
        part: &Dataset<T>,
        before: usize,
        of: usize,
    ) -> Result<()> {
        let mut ranking: Vec<&Trial> = self.trials.iter().filter(|t| t.rows == before).collect();
        ranking.sort_by(|a, b| compare(a, b));
        let places = of.div_ceil(EACH_FINALIST).max(LEAST_FINALISTS);
        let finalists = ranking.into_iter().take(places);
        let finalists: Family = finalists
            .map(|trial| (trial.candidate, trial.config.clone()))
            .collect();
        let first = self.trials.len();
        for candidate in &finalists {
            if self.cut_short || self.relay.flow() == Flow::Stop {
                self.cut_short = true;
                break;
            }
            match alone(part, candidate, &mut self.relay) {
                Err(Error::Interrupted) => self.cut_short = true,
                trial => self.note(trial?, first, finalists.len()),
            }
        }
        Ok(())
    }

    /// Of the family of the best one on so many rows, those that were not tried on them.
    pub(super) fn rest_of_best(&self, families: &[Family], rows: usize) -> Option<Family> {
        let on = || self.trials.iter().filter(|trial| trial.rows == rows);
        let best = on().min_by(|a, b| compare(a, b))?;
        let own = families
            .iter()
            .find(|f| same_but_c(&f[0].1, &best.config))?;
        let untried = |(place, _): &&Candidate| on().all(|trial| trial.candidate != *place);
        let rest: Family = own.iter().filter(untried).cloned().collect();
        (!rest.is_empty()).then_some(rest)
    }

    /// Keeps a trial of a rung of `of`, which began at trial `first`, and tells of it.
    fn note(&mut self, trial: Trial, first: usize, of: usize) {
        self.trials.push(trial);
        let done = &self.trials[first..];
        let best = done.iter().min_by(|a, b| compare(a, b));
        if let (Some(best), Some(trial)) = (best, done.last())
            && self.relay.watcher.tried(trial, best, done.len(), of) == Flow::Stop
        {
            self.cut_short = true;
        }
    }

    /// The least error on the most rows. A rung that was cut short counts for those it
    /// tried, if it tried the best of the one before.
    pub(super) fn best(&self, limits: &TuneLimits) -> Result<Trial> {
        let on = |rows: usize| self.trials.iter().filter(move |trial| trial.rows == rows);
        let sizes: Vec<usize> = self.rungs.iter().rev().copied().collect();
        // Of a rung that was cut short the first may all have failed.
        let mut bests = sizes
            .iter()
            .filter_map(|&rows| on(rows).min_by(|a, b| compare(a, b)));
        let Some(best) = bests.find(|best| best.error.is_finite()) else {
            return Err(Error::Data(
                "no candidate could be trained: the search was ended before the first, or the \
                 features have values that no kernel can handle; scale them, or give it more time"
                    .into(),
            ));
        };
        if !limits.one_standard_error {
            return Ok(best.clone());
        }
        let most = best.error + best.standard_error;
        let alike = on(best.rows).filter(|t| same_but_c(&t.config, &best.config));
        let simpler = alike.filter(|t| t.error <= most);
        let least = simpler.min_by(|a, b| c_of(&a.config).total_cmp(&c_of(&b.config)));
        Ok(least.unwrap_or(best).clone())
    }

    /// Replaces the error of the chosen one by the exact one, if there is time.
    pub(super) fn judge_exactly<T: Scalar>(
        &mut self,
        best: &mut Trial,
        part: &Dataset<T>,
    ) -> Result<()> {
        if self.relay.flow() == Flow::Stop {
            return Ok(());
        }
        let candidate = (best.candidate, best.config.clone());
        let exact = match alone(part, &candidate, &mut self.relay) {
            Err(Error::Interrupted) => {
                self.cut_short = true;
                return Ok(());
            }
            exact => exact?,
        };
        if exact.error.is_finite() {
            let same = |t: &&mut Trial| t.candidate == exact.candidate && t.rows == exact.rows;
            if let Some(trial) = self.trials.iter_mut().find(same) {
                *trial = exact.clone();
            }
            *best = exact;
        }
        Ok(())
    }

    /// Trains the chosen one on nearly all rows and judges it on the others; none if there
    /// is no time.
    pub(super) fn confirm<T: Scalar>(
        &mut self,
        best: &Trial,
        train: Dataset<T>,
    ) -> Result<Option<Confirmation>> {
        if self.relay.flow() == Flow::Stop {
            return Ok(None);
        }
        let start = Instant::now();
        let config = Config {
            validation: Some(CONFIRM_ON),
            ..best.config.clone()
        };
        let data = Data {
            train,
            validation: None,
            test: None,
        };
        let (model, report) = match fit(data, &config, &mut self.relay) {
            Err(Error::Interrupted | Error::Memory { .. } | Error::Numeric(_)) => return Ok(None),
            fitted => fitted?,
        };
        let Some(held_out) = &report.validation else {
            return Ok(None);
        };
        if report.stopped == Stopped::Interrupted {
            self.cut_short = true;
            return Ok(None);
        }
        let (error, standard_error) = held_out.error();
        Ok(Some(Confirmation {
            rows: model.n_support(),
            held_out: held_out.rows,
            error,
            standard_error,
            seconds: start.elapsed().as_secs_f64(),
        }))
    }
}

/// The lesser error first, then the smaller c, then the order of the candidates.
fn compare(a: &Trial, b: &Trial) -> std::cmp::Ordering {
    a.error
        .total_cmp(&b.error)
        .then(c_of(&a.config).total_cmp(&c_of(&b.config)))
        .then(a.candidate.cmp(&b.candidate))
}

fn same_but_c(a: &Config, b: &Config) -> bool {
    let without = |config: &Config| Config {
        c: None,
        ..config.clone()
    };
    without(a) == without(b)
}

fn c_of(config: &Config) -> f64 {
    config.c.unwrap_or(1.0)
}

/// Judges candidates that differ in c alone by their leave-one-out errors. `study`: what
/// candidates of the same preprocessing share; `threads`: if not those of the settings.
fn attempt<T: Scalar>(
    part: &Dataset<T>,
    (family, threads): (&Family, Option<usize>),
    study: &mut Option<Study<T>>,
    relay: &mut Relay<'_>,
) -> Result<Vec<Trial>> {
    let start = Instant::now();
    let config = Config {
        loo: Some(true),
        method: Some(Method::Exact),
        threads: threads.or(family[0].1.threads),
        ..family[0].1.clone()
    };
    let steps = config.preprocess.clone().unwrap_or_default();
    if study
        .as_ref()
        .is_none_or(|s| s.config().preprocess != steps)
    {
        // The old one goes before the new one comes.
        *study = None;
        *study = Some(Study::new(whole(part.clone()), &config)?);
    }
    let Some(study) = study else {
        return Ok(Vec::new());
    };
    let cs: Vec<f64> = family.iter().map(|(_, config)| c_of(config)).collect();
    let mut told = |_: f64| relay.flow() == Flow::Continue;
    let points = match study.path(&config, &cs, true, &mut told) {
        // Perhaps some c can do without the others.
        Err(Error::Numeric(_) | Error::Memory { .. }) => {
            let each = family.iter();
            return each
                .map(|candidate| alone(part, candidate, relay))
                .collect();
        }
        points => points?,
    };
    let seconds = start.elapsed().as_secs_f64() / family.len() as f64;
    let exact = study.is_exact();
    let pairs = family.iter().zip(points);
    let trials = pairs.map(|((candidate, config), point)| Trial {
        candidate: *candidate,
        config: config.clone(),
        rows: part.n_samples(),
        error: finite(point.error),
        standard_error: point.standard_error,
        exact,
        seconds,
    });
    Ok(trials.collect())
}

/// Judges one candidate by exact leave-one-out errors.
fn alone<T: Scalar>(
    part: &Dataset<T>,
    (candidate, config): &Candidate,
    relay: &mut Relay<'_>,
) -> Result<Trial> {
    let start = Instant::now();
    let loo = Config {
        loo: Some(true),
        method: Some(Method::Exact),
        ..config.clone()
    };
    let (error, standard_error) = match fit(whole(part.clone()), &loo, relay) {
        Ok((_, report)) => report
            .leave_one_out
            .as_ref()
            .map_or((f64::INFINITY, 0.0), Evaluation::error),
        // A kernel that overflows, is singular or too large here is a bad candidate, not a
        // failure.
        Err(Error::Numeric(_) | Error::Memory { .. }) => (f64::INFINITY, 0.0),
        Err(error) => return Err(error),
    };
    Ok(Trial {
        candidate: *candidate,
        config: config.clone(),
        rows: part.n_samples(),
        error: finite(error),
        standard_error,
        exact: true,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// An error that is no number is worse than any.
fn finite(error: f64) -> f64 {
    match error.is_finite() {
        true => error,
        false => f64::INFINITY,
    }
}

fn whole<T: Scalar>(train: Dataset<T>) -> Data<T> {
    Data {
        train,
        validation: None,
        test: None,
    }
}

/// A watcher for several threads.
struct Shared<'a, 'b>(&'a Mutex<&'b mut dyn TuneWatcher>);

impl TuneWatcher for Shared<'_, '_> {
    fn flow(&mut self) -> Flow {
        match self.0.lock() {
            Ok(mut watcher) => watcher.flow(),
            // Another thread panicked, which will be told.
            Err(_) => Flow::Stop,
        }
    }
}

/// Passes on the wish to stop, and that time is up.
pub(super) struct Relay<'a> {
    pub(super) watcher: &'a mut dyn TuneWatcher,
    /// The start, and the seconds from then on.
    pub(super) deadline: Option<(Instant, f64)>,
}

impl Relay<'_> {
    fn flow(&mut self) -> Flow {
        let late = |&(start, seconds): &(Instant, f64)| start.elapsed().as_secs_f64() > seconds;
        match self.deadline.as_ref().is_some_and(late) {
            true => Flow::Stop,
            false => self.watcher.flow(),
        }
    }
}

impl Observer for Relay<'_> {
    fn iteration(&mut self, _: &Iteration) -> Flow {
        self.flow()
    }

    fn progress(&mut self, _: f64) -> Flow {
        self.flow()
    }
}

impl Watcher for Relay<'_> {}
