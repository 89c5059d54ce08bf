//! The live line of several runs.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use lssvm::error::Bytes;
use lssvm::solve::{Flow, Iteration, Observer};
use lssvm::train::{Effective, Forecast, Report, Watcher};

use super::Turn;
use super::experiment::Run;
use super::measure::Measure;
use crate::output::remark;
use crate::progress::{self, Rate};

/// Parts of the bar.
const PARTS: f64 = 1000.0;

/// Without a terminal a line is written this often, so that a log shows how far it is.
const LINE_EVERY: Duration = Duration::from_secs(60);

pub struct Watch<'a> {
    bar: ProgressBar,
    turn: Turn<'a>,
    /// Told of each run that has ended.
    ended: &'a mut (dyn FnMut(usize, &Report) + Send),
    last_line: Instant,
    names: Vec<String>,
    current: usize,
    rates: Vec<Rate>,
    measure: Measure,
    /// Whether an iteration was made, on this system.
    begun: bool,
}

impl<'a> Watch<'a> {
    pub fn new(
        runs: &[Run],
        turn: Turn<'a>,
        measure: Measure,
        ended: &'a mut (dyn FnMut(usize, &Report) + Send),
    ) -> Self {
        Self {
            bar: ProgressBar::hidden(),
            turn,
            ended,
            last_line: Instant::now(),
            names: runs.iter().map(|run| run.label()).collect(),
            current: 0,
            rates: runs.iter().map(|_| Rate::default()).collect(),
            measure,
            begun: false,
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Seconds since the first of all runs began.
    fn now(&self) -> f64 {
        self.turn.clock.elapsed().as_secs_f64()
    }

    /// Shows how far all runs are, and what this one has to say.
    fn show(&mut self, prefix: String, message: &str) {
        let now = self.now();
        let left = self.turn.work.left();
        let share = left.map_or(0.0, |left| now / (now + left).max(f64::MIN_POSITIVE));
        let left = left.map_or(String::new(), |seconds| format!("{} left", brief(seconds)));
        self.bar.set_position((PARTS * share) as u64);
        self.bar.set_prefix(prefix);
        self.bar.set_message(format!("{message}{left}"));
        if self.bar.is_hidden() && self.last_line.elapsed() >= LINE_EVERY {
            remark(format!("{}  {}", self.bar.prefix(), self.bar.message()));
            self.last_line = Instant::now();
        }
    }
}

/// The share of a run that is done: of the most iterations, or of the way to the
/// tolerance on a logarithmic scale, whichever is more.
fn share(iteration: &Iteration, config: &Effective) -> f64 {
    let made = iteration.iteration as f64 / config.iterations.max(1) as f64;
    let residual = iteration.residual.map_or(1.0, |r| r.relative);
    let way = residual.min(1.0).ln() / config.tolerance.ln();
    match way.is_finite() && config.tolerance < 1.0 {
        true => made.max(way),
        false => made,
    }
}

/// A time in a few letters.
fn brief(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

impl Observer for Watch<'_> {
    fn turn(&mut self, run: usize) {
        self.current = run;
    }

    fn iteration(&mut self, iteration: &Iteration) -> Flow {
        self.begun = true;
        let run = self.turn.group[self.current];
        let now = self.now();
        let config = self.turn.work.run(run);
        let (share, steps) = (share(iteration, config), config.iterations);
        self.turn.work.step(run, share, now);
        let error = iteration.test_error.map(|e| match self.measure {
            Measure::Percent => format!("{:.2} %  ", 100.0 * e),
            Measure::Rmse => format!("RMSE {}  ", self.measure.number(e)),
        });
        let residual = iteration
            .residual
            .map(|r| format!("residual {:.1e}  ", r.relative));
        let rate = self.rates[self.current].after(iteration);
        let (error, residual) = (error.unwrap_or_default(), residual.unwrap_or_default());
        let prefix = format!(
            "{} {}/{steps}",
            self.names[self.current], iteration.iteration
        );
        self.show(prefix, &format!("{error}{residual}{rate}  "));
        progress::flow()
    }

    fn progress(&mut self, done: f64) -> Flow {
        if !self.begun {
            let now = self.now();
            self.turn.work.kernel(self.turn.system, done, now);
            self.show("kernel matrix".into(), "");
        }
        progress::flow()
    }
}

impl Watcher for Watch<'_> {
    fn ended(&mut self, run: usize, report: &Report) {
        let now = self.now();
        self.turn.work.ended(self.turn.group[run], now);
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
        let kept = forecast.kernel_kept.is_some();
        self.turn.work.begin(self.turn.system, m, kept);
        let style = ProgressStyle::with_template("{bar:24} {prefix}  {elapsed}  {msg}");
        self.bar = ProgressBar::new(PARTS as u64)
            .with_elapsed(self.turn.clock.elapsed())
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.enable_steady_tick(Duration::from_millis(250));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_brief() {
        let times = [7.4, 99.0, 600.0, 7200.0].map(brief);
        assert_eq!(times, ["7 s", "99 s", "10 min", "2.0 h"]);
    }
}
