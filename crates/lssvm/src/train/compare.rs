//! Several runs on the same data, kernel and c: what they share is computed once.
//!
//! The rows are transformed once, Ω of the training rows and of the test rows is
//! kept in memory if the budget allows, and runs that draw the same blocks go side
//! by side ([`crate::solve::run_together`]).

use super::memory_plan::Kept;
use super::prepare::{Prepared, Ready};
use super::{Config, Data, Effective, Evaluation, Report, Watcher, in_pool};
use crate::linalg::Scalar;
use crate::memory;
use crate::model::Outputs;
use crate::solve::{self, Ended, Entry, Flow, Observer};
use crate::{Error, Result};

/// Runs all configurations and reports on each, in their order. They may differ in
/// how the system is solved, not in the system. No rows are kept apart for
/// validation; the test rows are followed after every iteration.
///
/// The watcher is told whose turn it is ([`Observer::turn`]) and which run has ended
/// ([`Watcher::ended`]); if it asks to stop, runs that have not begun are left out.
pub fn compare<T: Scalar>(
    data: Data<T>,
    configs: &[Config],
    watcher: &mut dyn Watcher,
) -> Result<Vec<Option<Report>>> {
    T::compare(data, configs, watcher)
}

pub(crate) fn compare_all<T: Scalar>(
    data: Data<T>,
    configs: &[Config],
    watcher: &mut dyn Watcher,
) -> Result<Vec<Option<Report>>> {
    let Some(first) = configs.first() else {
        return Ok(Vec::new());
    };
    let prepared = Prepared::new(data, first)?;
    let all: Result<Vec<Effective>> = configs.iter().map(|c| prepared.resolve(c)).collect();
    let all = all?;
    for other in &all {
        if other.validation.is_some() || system_of(other) != system_of(&all[0]) {
            return Err(Error::Data(
                "runs that are compared side by side must have the same data, preprocessing, \
                 kernel and c, and no validation part"
                    .into(),
            ));
        }
    }
    in_pool(all[0].threads, || {
        let plans: Vec<_> = all.iter().map(Effective::plan).collect();
        let laid_out = prepared.lay_out(&plans, Kept::IfItFits)?;
        watcher.begin(&laid_out.forecast);
        let ready = laid_out.ready(watcher)?;
        run_groups(&ready, all, watcher)
    })
}

/// The settings that make the system, the rest set aside; a budget that nobody gave is what
/// was free at the moment of asking, and differs from one moment to the next.
fn system_of(config: &Effective) -> Effective {
    Effective {
        method: solve::Method::Exact,
        block_size: 0,
        iterations: 0,
        time: None,
        tolerance: 0.0,
        averages: 0,
        follow: 0,
        seed: 0,
        rank: None,
        why: None,
        budget: memory::Size(0),
        ..config.clone()
    }
}

fn run_groups<T: Scalar>(
    ready: &Ready<T>,
    all: Vec<Effective>,
    watcher: &mut dyn Watcher,
) -> Result<Vec<Option<Report>>> {
    let mut reports: Vec<Option<Report>> = all.iter().map(|_| None).collect();
    while let Some(next) = (0..all.len()).find(|&i| reports[i].is_none()) {
        // All that draw the blocks of the next one.
        let blocks = |i: usize| {
            (
                !all[i].method.draws_blocks(),
                all[i].block_size,
                all[i].seed,
            )
        };
        let group: Vec<usize> = (0..all.len())
            .filter(|&i| blocks(i) == blocks(next))
            .collect();
        let entries: Vec<Entry> = group
            .iter()
            .map(|&i| Entry {
                plan: all[i].plan(),
                limits: all[i].limits(),
            })
            .collect();
        let mut observer = Group {
            watcher,
            runs: &group,
            asked: false,
        };
        let test = ready.test.as_ref();
        let ended = solve::run_together(&ready.system, &entries, test, &mut observer)?;
        let asked = observer.asked;
        for (&run, ended) in group.iter().zip(ended) {
            let report = report(ready, all[run].clone(), ended)?;
            watcher.ended(run, &report);
            reports[run] = Some(report);
        }
        if asked {
            break;
        }
    }
    Ok(reports)
}

fn report<T: Scalar>(ready: &Ready<T>, config: Effective, ended: Ended<T>) -> Result<Report> {
    let (solution, test) = ended;
    let classes = matches!(ready.outputs, Outputs::Classes { .. });
    let mut report = Report::new(&solution, config, classes, ready);
    if let Some(mut test) = test {
        if !test.is_fresh() {
            test.evaluate(&ready.system, &solution.weights);
        }
        let names = ready.outputs.names();
        report.test = Some(Evaluation::new(test.scores(), test.truth(), names)?);
    }
    report.peak_memory_bytes = memory::peak();
    Ok(report)
}

/// Passes on what a group of runs tells, by their place among all.
struct Group<'a> {
    watcher: &'a mut dyn Watcher,
    runs: &'a [usize],
    asked: bool,
}

impl Observer for Group<'_> {
    fn turn(&mut self, run: usize) {
        self.watcher.turn(self.runs[run]);
    }

    fn iteration(&mut self, iteration: &solve::Iteration) -> Flow {
        let flow = self.watcher.iteration(iteration);
        self.asked |= flow == Flow::Stop;
        flow
    }

    fn progress(&mut self, done: f64) -> Flow {
        self.watcher.progress(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Labels};
    use crate::linalg::Matrix;
    use crate::memory::Size;
    use crate::solve::{Iteration, Method, Silent};
    use crate::train::fit;

    fn clouds(n: usize, shift: f64) -> Dataset<f64> {
        let x = Matrix::from_fn(n, 3, |i, j| {
            (i % 3) as f64 * (j as f64 - 0.7) + ((i * 7 + j * 3) as f64 + shift).sin()
        });
        let mut data = Dataset::new("clouds".as_ref(), x);
        data.labels = Some(Labels::from_text((0..n).map(|i| ["a", "b", "c"][i % 3])));
        data
    }

    fn data() -> Data<f64> {
        Data {
            train: clouds(90, 0.0),
            validation: None,
            test: Some(clouds(30, 0.3)),
        }
    }

    fn config(method: Method, block_size: usize, averages: usize, memory: u64) -> Config {
        Config {
            method: Some(method),
            block_size: Some(block_size),
            averages: Some(averages),
            iterations: Some(7),
            memory: Some(Size(memory)),
            ..Config::default()
        }
    }

    #[test]
    fn a_run_among_others_is_the_run_alone() {
        let plans = [
            (Method::Mp, 20, 1),
            (Method::Nystrom, 30, 1),
            (Method::Kaczmarz, 20, 1),
            (Method::Exact, 20, 1),
            (Method::Kaczmarz, 20, 3),
            (Method::KaczmarzMp, 20, 1),
        ];
        // The second budget has no room for Ω, so that strips are recomputed.
        for memory in [1_000_000_000, 100_150_000] {
            let configs = plans.map(|(m, j, s)| config(m, j, s, memory));
            let together = compare(data(), &configs, &mut Silent).unwrap();
            for (config, report) in configs.iter().zip(together) {
                let report = report.unwrap();
                let (_, alone) = fit(data(), config, &mut Silent).unwrap();
                assert_eq!(report.config, alone.config);
                assert_eq!(report.history.len(), alone.history.len());
                let (a, b) = (report.test.unwrap(), alone.test.unwrap());
                let pairs = a.scores.values().iter().zip(b.scores.values());
                let largest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(largest < 1e-8, "{}: {largest}", report.config.method);
            }
        }
    }

    #[test]
    fn systems_that_differ_are_refused() {
        let one = config(Method::Mp, 20, 1, 1_000_000_000);
        let other = Config {
            c: Some(3.0),
            ..one.clone()
        };
        let error = compare(data(), &[one, other], &mut Silent).unwrap_err();
        assert!(error.to_string().contains("same data"), "{error}");
    }

    #[test]
    fn what_is_free_at_the_moment_makes_no_other_system() {
        let one = config(Method::Mp, 20, 1, 1_000_000_000);
        let prepared = Prepared::new(data(), &one).unwrap();
        let one = prepared.resolve(&one).unwrap();
        let later = Effective {
            budget: Size(one.budget.0 - 4096),
            ..one.clone()
        };
        assert_eq!(system_of(&one), system_of(&later));
    }

    struct StopInSecondGroup(usize);

    impl Observer for StopInSecondGroup {
        fn turn(&mut self, run: usize) {
            self.0 = run;
        }

        fn iteration(&mut self, iteration: &Iteration) -> Flow {
            match (self.0, iteration.iteration) {
                (1, 3) => Flow::Stop,
                _ => Flow::Continue,
            }
        }
    }

    impl Watcher for StopInSecondGroup {}

    #[test]
    fn a_stop_leaves_out_what_has_not_begun() {
        let configs = [20, 30, 40].map(|j| config(Method::Mp, j, 1, 1_000_000_000));
        let reports = compare(data(), &configs, &mut StopInSecondGroup(0)).unwrap();
        let made: Vec<_> = reports
            .iter()
            .map(|r| r.as_ref().map(|r| r.iterations))
            .collect();
        assert_eq!(made, [Some(7), Some(3), None]);
    }
}
