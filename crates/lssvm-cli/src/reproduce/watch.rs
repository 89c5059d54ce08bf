//! The live line of several runs.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use lssvm::error::Bytes;
use lssvm::solve::{Flow, Iteration, Observer};
use lssvm::train::{Forecast, Report, Watcher};

use super::experiment::Run;
use super::measure::Measure;
use crate::output::remark;
use crate::progress::{self, Rate};

/// Parts of the bar while the kernel matrix is computed.
const PARTS: u64 = 1000;

/// Without a terminal a line is written this often, so that a log shows how far it is.
const LINE_EVERY: Duration = Duration::from_secs(60);

pub struct Watch<'a> {
    bar: ProgressBar,
    /// Told of each run that has ended.
    ended: &'a mut (dyn FnMut(usize, &Report) + Send),
    last_line: Instant,
    names: Vec<String>,
    steps: Vec<u64>,
    current: usize,
    done: u64,
    rates: Vec<Rate>,
    measure: Measure,
}

impl<'a> Watch<'a> {
    pub fn new(
        runs: &[Run],
        measure: Measure,
        ended: &'a mut (dyn FnMut(usize, &Report) + Send),
    ) -> Self {
        Self {
            bar: ProgressBar::hidden(),
            ended,
            last_line: Instant::now(),
            names: runs.iter().map(|run| run.label()).collect(),
            steps: runs
                .iter()
                .map(|run| run.config.iterations.unwrap_or(1) as u64)
                .collect(),
            current: 0,
            done: 0,
            rates: runs.iter().map(|_| Rate::default()).collect(),
            measure,
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Watch<'_> {
    fn turn(&mut self, run: usize) {
        self.current = run;
    }

    fn iteration(&mut self, iteration: &Iteration) -> Flow {
        self.done += 1;
        let error = iteration.test_error.map(|e| match self.measure {
            Measure::Percent => format!("{:.2} %  ", 100.0 * e),
            Measure::Rmse => format!("RMSE {}  ", self.measure.number(e)),
        });
        let residual = iteration
            .residual
            .map(|r| format!("residual {:.1e}  ", r.relative));
        let rate = self.rates[self.current].after(iteration);
        self.bar.set_prefix(format!(
            "{} {}/{}",
            self.names[self.current], iteration.iteration, self.steps[self.current]
        ));
        self.bar.set_message(format!(
            "{}{}{rate}",
            error.unwrap_or_default(),
            residual.unwrap_or_default()
        ));
        if self.bar.is_hidden() && self.last_line.elapsed() >= LINE_EVERY {
            remark(format!("{}  {}", self.bar.prefix(), self.bar.message()));
            self.last_line = Instant::now();
        }
        self.bar.set_length(self.steps.iter().sum::<u64>().max(1));
        self.bar.set_position(self.done);
        progress::flow()
    }

    fn progress(&mut self, done: f64) -> Flow {
        if self.done == 0 {
            self.bar.set_prefix("kernel matrix");
            self.bar.set_length(PARTS);
            self.bar.set_position((done * PARTS as f64) as u64);
        }
        progress::flow()
    }
}

impl Watcher for Watch<'_> {
    fn ended(&mut self, run: usize, report: &Report) {
        (self.ended)(run, report);
    }

    fn begin(&mut self, forecast: &Forecast) {
        let [n, m, k] = forecast.shape;
        let outputs = match self.measure {
            Measure::Percent => "classes",
            Measure::Rmse => "outputs",
        };
        remark(format!(
            "{}: {n} rows, {m} features ({}), {k} {outputs}; up to {}",
            self.names.join("; "),
            forecast.config.preprocess,
            Bytes(forecast.memory_bytes),
        ));
        let style = ProgressStyle::with_template("{bar:24} {prefix}  {msg}  {elapsed}, {eta} left");
        self.bar = ProgressBar::new(PARTS)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.enable_steady_tick(Duration::from_millis(250));
    }
}
