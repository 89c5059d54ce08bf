//! Shows how far a run has come, and lets Ctrl-C end it well.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lssvm::solve::{Flow, Iteration, Observer};
use lssvm::train::{Forecast, Watcher};

use crate::output::remark;

/// What a shell reports for a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Whether Ctrl-C was pressed. A signal handler has no other way to speak.
static ASKED_TO_STOP: AtomicBool = AtomicBool::new(false);

/// The first Ctrl-C asks to stop after the iteration, the second stops at once.
pub fn catch_interrupts() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // Without a handler Ctrl-C ends the program, which is no loss.
        let _ = ctrlc::set_handler(|| {
            if ASKED_TO_STOP.swap(true, Ordering::SeqCst) {
                std::process::exit(INTERRUPTED);
            }
            remark("\nstopping after this iteration; Ctrl-C again stops at once");
        });
    });
}

pub fn was_interrupted() -> bool {
    ASKED_TO_STOP.load(Ordering::SeqCst)
}

/// A line that turns while something runs; nothing when piped.
pub fn spinner(message: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(message);
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// The speed of the last step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rate {
    flops: f64,
    seconds: f64,
}

impl Rate {
    /// "190 GFLOP/s"; empty if nothing was counted.
    pub fn after(&mut self, iteration: &Iteration) -> String {
        let flops = iteration.flops - self.flops;
        let seconds = iteration.seconds - self.seconds;
        (self.flops, self.seconds) = (iteration.flops, iteration.seconds);
        match flops > 0.0 && seconds > 0.0 {
            true => format!("{:.0} GFLOP/s", flops / seconds / 1e9),
            false => String::new(),
        }
    }
}

/// The progress of a training run on a terminal.
pub struct Progress {
    bar: ProgressBar,
    classes: bool,
    /// Whether the model will be saved.
    kept: bool,
    steps: u64,
    rate: Rate,
}

/// Parts of a bar for a run of a single long step.
const PARTS: u64 = 1000;

impl Progress {
    pub fn new(classes: bool, kept: bool) -> Self {
        Self {
            bar: ProgressBar::hidden(),
            classes,
            kept,
            steps: 1,
            rate: Rate::default(),
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn error(&self, name: &str, error: Option<f64>) -> String {
        match error {
            Some(error) if self.classes => format!("{name} {:.2} %  ", 100.0 * error),
            Some(error) => format!("{name} RMSE {error:.5}  "),
            None => String::new(),
        }
    }
}

impl Observer for Progress {
    fn iteration(&mut self, iteration: &Iteration) -> Flow {
        let residual = iteration.residual.map(|r| {
            let about = if r.exact { "" } else { "about " };
            format!("residual {about}{:.2e}", r.relative)
        });
        let test = self.error("test", iteration.test_error);
        let validation = self.error("validation", iteration.validation_error);
        let residual = residual.unwrap_or_default();
        let rate = self.rate.after(iteration);
        self.bar
            .set_message(format!("{test}{validation}{residual}  {rate}"));
        let prefix = format!("{}/{}", iteration.iteration, self.steps);
        self.bar.set_prefix(prefix);
        self.bar.set_position(iteration.iteration as u64 * PARTS);
        flow()
    }

    fn progress(&mut self, done: f64) -> Flow {
        self.bar.set_position((done * PARTS as f64) as u64);
        flow()
    }
}

/// Whether Ctrl-C was pressed, as an observer answers.
pub fn flow() -> Flow {
    match was_interrupted() {
        true => Flow::Stop,
        false => Flow::Continue,
    }
}

impl Watcher for Progress {
    fn begin(&mut self, forecast: &Forecast) {
        let config = &forecast.config;
        remark(forecast);
        // Not before: a run that cannot begin says why, and nothing else.
        if !self.kept {
            remark("note: without --model FILE the model is not kept");
        }
        self.steps = config.iterations as u64;
        let template = if config.method.is_iterative() {
            "{bar:24} {prefix}  {msg}  {elapsed}, {eta} left"
        } else {
            "{bar:24} {percent} %  {elapsed}, {eta} left"
        };
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        self.bar = ProgressBar::new(self.steps * PARTS).with_style(style);
        self.bar.enable_steady_tick(Duration::from_millis(250));
    }
}
