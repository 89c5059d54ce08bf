//! Shows how far a run has come, and lets Ctrl-C end it well.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use lssvm::model::remove_unfinished;
use lssvm::solve::{Checkpointed, Flow, Iteration, Observer};
use lssvm::train::{Forecast, Watcher};
use signal_hook::consts::SIGTERM;
use signal_hook::flag;

use crate::output::{is_shared, remark};

/// What a shell reports for a program that Ctrl-C or SIGTERM ended.
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;

/// Whether somebody asked to stop. A signal handler has no other way to speak.
static ASKED_TO_STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Files that are going to be written, or folders for some, and whether they were there.
static UNFINISHED: Mutex<Vec<(PathBuf, bool)>> = Mutex::new(Vec::new());

/// The first Ctrl-C asks to stop after the iteration, the second stops at once. SIGTERM, by
/// which schedulers and services end a program, does the same without a word.
pub fn catch_interrupts() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // Without a handler they end the program, which is no loss.
        let _ = ctrlc::set_handler(|| {
            if ASKED_TO_STOP.swap(true, Ordering::SeqCst) {
                clean_up();
                std::process::exit(INTERRUPTED);
            }
            remark("\nstopping as soon as what is done can be kept; Ctrl-C again stops at once");
        });
        let asked = || Arc::clone(&ASKED_TO_STOP);
        // First what the second does, which must not see the first.
        let _ = flag::register_conditional_shutdown(SIGTERM, TERMINATED, asked());
        let _ = flag::register(SIGTERM, asked());
    });
}

/// A file that is going to be written, or a folder for some: a program that stops at once
/// leaves nothing unfinished there.
pub fn leave_nothing_unfinished(path: &Path) {
    if let Ok(mut paths) = UNFINISHED.lock() {
        paths.push((path.to_path_buf(), path.exists()));
    }
}

fn clean_up() {
    for (path, existed) in UNFINISHED.lock().iter().flat_map(|paths| paths.iter()) {
        remove_unfinished(path);
        if !existed {
            // A folder; and only one that has nothing in it.
            let _ = fs::remove_dir(path);
        }
    }
}

/// What Ctrl-C does.
pub fn ask_to_stop() {
    ASKED_TO_STOP.store(true, Ordering::SeqCst);
}

pub fn was_interrupted() -> bool {
    ASKED_TO_STOP.load(Ordering::SeqCst)
}

/// A line that turns while something runs; nothing when piped.
pub fn spinner(message: String) -> ProgressBar {
    if is_shared() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(message);
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// A bar of [`PARTS`]; nothing when piped.
pub fn bar(message: String) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:24} {elapsed}  {msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(PARTS as u64)
        .with_style(style)
        .with_message(message)
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
    steps: usize,
    /// The residual that ends the run.
    tolerance: f64,
    /// Seconds that the run was expected to take.
    expected: f64,
    start: Instant,
    /// When the first iteration was done, and the share of all that it was.
    first: Option<(Instant, f64)>,
    /// When leave-one-out scores were begun.
    left_out_since: Option<Instant>,
    rate: Rate,
    /// Whether the last checkpoint could not be written.
    unkept: bool,
    /// The iteration that the run goes on after.
    after: Option<usize>,
    /// When a line was last written, where there is no bar.
    told: Option<Instant>,
}

/// What to say if the last checkpoint could not be written.
pub fn warning(told: &Checkpointed) -> Option<String> {
    let problem = told.problem.as_ref()?;
    let (iteration, path) = (told.iteration, told.path.display());
    Some(format!(
        "warning: the last checkpoint could not be written ({problem}); {path} stays as it was \
         after iteration {iteration}"
    ))
}

/// The time from one line to the next, where there is no bar.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Parts of a bar.
const PARTS: f64 = 1000.0;

/// Before so much is done, the forecast says more than the share.
const LITTLE: f64 = 0.05;

impl Progress {
    pub fn new(classes: bool, kept: bool) -> Self {
        Self {
            bar: ProgressBar::hidden(),
            classes,
            kept,
            steps: 1,
            tolerance: 0.0,
            expected: 0.0,
            start: Instant::now(),
            first: None,
            left_out_since: None,
            rate: Rate::default(),
            unkept: false,
            after: None,
            told: None,
        }
    }

    /// The run was begun by another process, which made so many iterations.
    pub fn goes_on_after(&mut self, iteration: usize) {
        self.after = Some(iteration);
    }

    /// Shows the time that is left.
    fn show(&self, left: f64, message: &str) {
        let elapsed = self.start.elapsed().as_secs_f64();
        let share = elapsed / (elapsed + left).max(f64::MIN_POSITIVE);
        self.bar.set_position((PARTS * share) as u64);
        let left = match left {
            s if s < 100.0 => format!("{s:.0} s left"),
            s => format!("{:.0} min left", s / 60.0),
        };
        self.bar.set_message(format!("{message}{left}"));
    }

    /// The share of the iterations that is done: of the most that may be made, or of
    /// the way to the tolerance on a logarithmic scale, whichever is more.
    fn share(&self, iteration: &Iteration) -> f64 {
        let made = iteration.iteration as f64 / self.steps as f64;
        let residual = iteration.residual.map_or(1.0, |r| r.relative);
        let way = residual.min(1.0).ln() / self.tolerance.ln();
        match way.is_finite() && self.tolerance < 1.0 {
            true => made.max(way).min(1.0),
            false => made,
        }
    }

    /// A line now and then: the first of several ranks cannot know whether what it writes
    /// goes to a terminal.
    fn tell(&mut self, iteration: &Iteration, message: &str) {
        let due = |told: Instant| told.elapsed() >= LINE_EVERY;
        if is_shared() && self.told.is_none_or(due) {
            let (iteration, steps) = (iteration.iteration, self.steps);
            remark(format!(
                "rank 0: iteration {iteration}/{steps}  {}",
                message.trim_end()
            ));
            self.told = Some(Instant::now());
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
        let prefix = format!("{}/{}", iteration.iteration, self.steps);
        self.bar.set_prefix(prefix);
        let share = self.share(iteration);
        let (since, before) = *self.first.get_or_insert((Instant::now(), share));
        let left = match share > before {
            true => since.elapsed().as_secs_f64() / (share - before) * (1.0 - share),
            false => self.expected - self.start.elapsed().as_secs_f64(),
        };
        let message = format!("{test}{validation}{residual}  {rate}  ");
        self.show(left.max(0.0), &message);
        self.tell(iteration, &message);
        flow()
    }

    fn checkpoint(&mut self, told: &Checkpointed) {
        // Once, not for every try.
        match warning(told).filter(|_| !self.unkept) {
            Some(warning) => {
                let warning = format!("{warning}; training goes on");
                self.bar.suspend(|| remark(warning));
            }
            None if self.unkept && told.problem.is_none() => {
                let iteration = told.iteration;
                self.bar.suspend(|| {
                    remark(format!(
                        "checkpoints are written again, after iteration {iteration}"
                    ));
                });
            }
            None => {}
        }
        self.unkept = told.problem.is_some();
    }

    fn progress(&mut self, done: f64) -> Flow {
        if self.first.is_none() {
            let elapsed = self.start.elapsed().as_secs_f64();
            let by_share = elapsed * (1.0 - done) / done.max(LITTLE);
            self.show((self.expected - elapsed).max(by_share * LITTLE), "");
        }
        flow()
    }

    fn leaving_out(&mut self, done: f64) -> Flow {
        let since = self.left_out_since.get_or_insert_with(Instant::now);
        let elapsed = since.elapsed().as_secs_f64();
        self.show(elapsed * (1.0 - done) / done.max(LITTLE), "leave-one-out  ");
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
        if let Some(iteration) = self.after {
            remark(format!("going on after iteration {iteration}"));
        }
        // Not before: a run that cannot begin says why, and nothing else.
        if !self.kept {
            remark("note: without --model FILE the model is not kept");
        }
        self.steps = config.iterations;
        self.tolerance = config.tolerance;
        (self.expected, self.start) = (forecast.seconds, Instant::now());
        if is_shared() {
            return;
        }
        let style = ProgressStyle::with_template("{bar:24} {prefix}  {elapsed}  {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        self.bar = ProgressBar::new(PARTS as u64).with_style(style);
        self.bar.enable_steady_tick(Duration::from_millis(250));
    }
}
