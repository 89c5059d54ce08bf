//! `lssvm evaluate`

use std::time::Instant;

use indicatif::ProgressBar;
use lssvm::data::{Rows, Stream, open};
use lssvm::linalg::{Matrix, Scalar};
use lssvm::memory::{self, Size};
use lssvm::metrics::{Confusion, Coverage, IntervalScores, SetScores};
use lssvm::model::{AnyModel, Model};
use lssvm::ranks::Ranks;
use lssvm::solve::Truth;
use lssvm::train::{Evaluation, truth};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::args::{CoverageArgs, EvaluateArgs};
use crate::batches::batches;
use crate::coverage::percent;
use crate::output::{self, fact, say};
use crate::progress::spinner;
use crate::settings::{pool, read_options_for};
use crate::together::{agree, rounds};

/// Tables with more classes than this are left to `--json`.
const MOST_CLASSES_SHOWN: usize = 26;

/// What `--json` says of the training, as the results of `train` do; a model of an earlier
/// version may lack some of it.
const OF_TRAINING: [&str; 7] = [
    "iterations",
    "best_iteration",
    "stopped",
    "relative_residual",
    "relative_residual_exact",
    "tolerance_met",
    HISTORY,
];

const HISTORY: &str = "history";

/// What `--json` writes.
#[derive(Serialize)]
struct Result<'a> {
    #[serde(flatten)]
    evaluation: &'a Evaluation,
    #[serde(flatten)]
    held: Held<'a>,
    /// Of the evaluation; the training's are in no model, so that the same run gives the
    /// same file.
    seconds: f64,
    phases: Value,
    peak_memory_bytes: Option<u64>,
    #[serde(flatten)]
    of_training: Map<String, Value>,
    config: &'a Value,
    /// All that the model says of its training, but for the history.
    training: Value,
}

/// How often intervals or sets hold the truth, if that was asked.
#[derive(Default, Serialize)]
struct Held<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    intervals: Option<Vec<OutputIntervals<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sets: Option<SetScores>,
}

#[derive(Serialize)]
struct OutputIntervals<'a> {
    output: &'a str,
    #[serde(flatten)]
    scores: IntervalScores,
}

impl<'a> Held<'a> {
    fn new<T: Scalar>(
        asked: &CoverageArgs,
        model: &'a Model<T>,
        scores: &Matrix<T>,
        truth: &Truth,
    ) -> lssvm::Result<Self> {
        let mut held = Self::default();
        match (truth, asked.interval, asked.sets) {
            (Truth::Values(values), Some(coverage), _) => {
                let intervals = model.intervals_of(scores, coverage)?;
                let (lower, upper) = (&intervals.lower, &intervals.upper);
                let scores = IntervalScores::new(coverage, lower, upper, values)?;
                let names = model.outputs().names().iter();
                let named = names
                    .zip(scores)
                    .map(|(output, scores)| OutputIntervals { output, scores });
                held.intervals = Some(named.collect());
            }
            (Truth::Classes(codes), _, Some(coverage)) => {
                let sets = model.sets_of(scores, coverage)?;
                held.sets = Some(SetScores::new(coverage, &sets, codes)?);
            }
            _ => {}
        }
        Ok(held)
    }

    fn say(&self) {
        let intervals = self.intervals.iter().flatten();
        for OutputIntervals { output, scores } in intervals {
            let width = format!("mean width {:.5}", scores.mean_width);
            say_held("intervals", output, &scores.held, &width);
        }
        if let Some(sets) = &self.sets {
            let empty = match sets.rows_by_size[0] {
                0 => String::new(),
                rows => format!(", {rows} empty"),
            };
            let size = format!("mean size {:.3}{empty}", sets.mean_size);
            say_held("sets", "", &sets.held, &size);
        }
    }
}

/// A line of what was promised, what was held, and how large it is.
fn say_held(kind: &str, output: &str, held: &Coverage, size: &str) {
    let of = if output.is_empty() { "" } else { " of " };
    let (asked, (low, high)) = (percent(held.coverage), held.measured_interval);
    fact(
        kind,
        format!(
            "{asked} asked{of}{output}, {:.2} % held (95 %: {:.2} to {:.2} %), {size}",
            100.0 * held.measured,
            100.0 * low,
            100.0 * high
        ),
    );
}

pub fn run(ranks: &Ranks, args: &EvaluateArgs) -> anyhow::Result<()> {
    let mut clock = Clock::new();
    let model = ranks.agree(AnyModel::load(&args.model))?;
    clock.book("load", 0.0);
    match model {
        AnyModel::F32(model) => evaluate(ranks, args, &model, clock),
        AnyModel::F64(model) => evaluate(ranks, args, &model, clock),
    }
}

/// Where the time went.
struct Clock {
    start: Instant,
    booked: f64,
    phases: Map<String, Value>,
}

impl Clock {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            booked: 0.0,
            phases: Map::new(),
        }
    }

    fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// What has passed since the last phase is this one's.
    fn book(&mut self, phase: &str, flops: f64) {
        let seconds = self.seconds() - self.booked;
        self.booked += seconds;
        let gflops = flops / seconds.max(f64::MIN_POSITIVE) / 1e9;
        self.phases
            .insert(phase.into(), json!({"seconds": seconds, "gflops": gflops}));
    }
}

fn evaluate<T: Scalar>(
    ranks: &Ranks,
    args: &EvaluateArgs,
    model: &Model<T>,
    mut clock: Clock,
) -> anyhow::Result<()> {
    let json = args.json.as_deref().filter(|_| ranks.is_first());
    let checked = args.coverage.check(model);
    agree(ranks, checked.and_then(|()| output::expect_json(json)))?;
    let spinner = spinner(format!("evaluating on {}", args.data.display()));
    let budget = args.memory.unwrap_or_else(memory::default_budget);
    let mut options = agree(ranks, read_options_for(&args.read, model.input()))?;
    options.max_bytes = Some(budget.0);
    let parts = ranks.agree(open::<T>(&args.data, &options))?;
    let data: Stream<T> = parts.test.unwrap_or(parts.train);
    let truth = ranks.agree(truth(&data, model.outputs()))?;
    // Rows that are read when they are needed are read while they are predicted.
    clock.book("read", 0.0);
    let flops = flops(model, data.n_samples());
    let scores = scores(ranks, args, model, &*data.features, budget)?;
    let told = match ranks.is_first() {
        true => {
            let flops = ranks.size() as f64 * flops;
            tell(args, model, (&scores, &truth), (clock, flops), &spinner)
        }
        false => Ok(()),
    };
    agree(ranks, told)
}

/// Says and writes what all scores are worth.
fn tell<T: Scalar>(
    args: &EvaluateArgs,
    model: &Model<T>,
    (scores, truth): (&Matrix<T>, &Truth),
    (mut clock, flops): (Clock, f64),
    spinner: &ProgressBar,
) -> anyhow::Result<()> {
    let evaluation = Evaluation::new(scores, truth, model.outputs().names())?;
    let held = Held::new(&args.coverage, model, scores, truth)?;
    clock.book("predict", flops);
    spinner.finish_and_clear();
    output::evaluation("result", &evaluation);
    held.say();
    let few = |confusion: &&Confusion| confusion.classes.len() <= MOST_CLASSES_SHOWN;
    if let Some(confusion) = evaluation.confusion.as_ref().filter(few) {
        say(format!("\n{confusion}"));
    }
    let seconds = clock.seconds();
    fact("time", format!("{seconds:.2} s"));
    if let Some(path) = &args.json {
        let result = Result {
            evaluation: &evaluation,
            held,
            seconds,
            phases: clock.phases.into(),
            peak_memory_bytes: memory::peak(),
            of_training: of_training(model.summary()),
            config: model.config(),
            training: without_history(model.summary()),
        };
        output::json(path, &result)?;
    }
    Ok(())
}

/// The scores of all rows, which alone are kept, on the first rank.
fn scores<T: Scalar>(
    ranks: &Ranks,
    args: &EvaluateArgs,
    model: &Model<T>,
    rows: &dyn Rows<T>,
    budget: Size,
) -> anyhow::Result<Matrix<T>> {
    let (n, outputs) = (rows.len(), model.n_outputs());
    let kept = (n * outputs * size_of::<T>()) as u64;
    let pool = agree(ranks, pool(args.threads))?;
    let batches = batches(ranks, model, rows, budget, kept)?;
    let mut scores: Vec<T> = Vec::with_capacity(n * outputs);
    // One batch a rank, then the first keeps them in their order.
    for round in rounds(ranks, batches.len()) {
        let own = batches.get(round + ranks.rank()).cloned();
        let part = own.map(|batch| pool.install(|| model.scores_of_rows(rows, batch)));
        let part = ranks.agree(part.transpose())?;
        let part = part.as_ref().map_or(&[][..], Matrix::values);
        ranks.gather_values(part, |part| scores.extend(part));
    }
    let rows = if ranks.is_first() { n } else { 0 };
    Ok(Matrix::from_vec(rows, outputs, scores))
}

/// Operations of the kernel values and of their product with the weights.
fn flops<T: Scalar>(model: &Model<T>, rows: usize) -> f64 {
    let (features, outputs) = (model.pipeline().n_features_out(), model.n_outputs());
    2.0 * rows as f64 * model.n_support() as f64 * (features + outputs) as f64
}

fn of_training(summary: &Value) -> Map<String, Value> {
    let told = |key: &str| match (summary.get(key), key) {
        (Some(value), _) => value.clone(),
        (None, HISTORY) => json!([]),
        (None, _) => Value::Null,
    };
    let pairs = OF_TRAINING.iter().map(|key| (key.to_string(), told(key)));
    pairs.collect()
}

fn without_history(summary: &Value) -> Value {
    let mut summary = summary.clone();
    summary.as_object_mut().map(|all| all.remove(HISTORY));
    summary
}
