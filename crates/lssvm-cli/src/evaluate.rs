//! `lssvm evaluate`

use std::ops::Range;
use std::time::Instant;

use lssvm::data::{Rows, Stream, open};
use lssvm::linalg::{Matrix, Scalar};
use lssvm::memory::{self, Size};
use lssvm::metrics::{Confusion, Coverage, IntervalScores, SetCounts, SetScores};
use lssvm::model::{AnyModel, Model, argmax};
use lssvm::solve::Truth;
use lssvm::train::{Evaluation, truth};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::args::EvaluateArgs;
use crate::batches::batches;
use crate::coverage::percent;
use crate::output::{self, fact, say};
use crate::progress::spinner;
use crate::settings::{pool, read_options_for};

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

impl Held<'_> {
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

pub fn run(args: &EvaluateArgs) -> anyhow::Result<()> {
    let mut clock = Clock::new();
    let model = AnyModel::load(&args.model)?;
    clock.book("load", 0.0);
    match model {
        AnyModel::F32(model) => evaluate(args, &model, clock),
        AnyModel::F64(model) => evaluate(args, &model, clock),
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
    args: &EvaluateArgs,
    model: &Model<T>,
    mut clock: Clock,
) -> anyhow::Result<()> {
    args.coverage.check(model)?;
    output::expect_json(args.json.as_deref())?;
    let spinner = spinner(format!("evaluating on {}", args.data.display()));
    let budget = args.memory.unwrap_or_else(memory::default_budget);
    let mut options = read_options_for(&args.read, model.input())?;
    options.max_bytes = Some(budget.0);
    let parts = open::<T>(&args.data, &options)?;
    let data: Stream<T> = parts.test.unwrap_or(parts.train);
    let truth = truth(&data, model.outputs())?;
    // Rows that are read when they are needed are read while they are predicted.
    clock.book("read", 0.0);
    let flops = flops(model, data.n_samples());
    let rows = &*data.features;
    let (evaluation, held) = match &truth {
        Truth::Classes(codes) => of_classes(args, model, rows, codes, budget)?,
        Truth::Values(values) => of_values(args, model, rows, values, budget)?,
    };
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

/// Calls `f` with the scores of all rows, batch by batch; `kept` is what it keeps of each
/// row, in bytes.
fn for_each_scores<T: Scalar>(
    args: &EvaluateArgs,
    model: &Model<T>,
    rows: &dyn Rows<T>,
    (budget, kept): (Size, usize),
    mut f: impl FnMut(Range<usize>, Matrix<T>) -> lssvm::Result<()>,
) -> anyhow::Result<()> {
    let pool = pool(args.threads)?;
    for batch in batches(model, rows, budget, (rows.len() * kept) as u64)? {
        let scores = pool.install(|| model.scores_of_rows(rows, batch.clone()))?;
        f(batch, scores)?;
    }
    Ok(())
}

/// Of classes nothing is kept but which were predicted: scores may be far more than labels.
fn of_classes<'a, T: Scalar>(
    args: &EvaluateArgs,
    model: &'a Model<T>,
    rows: &dyn Rows<T>,
    codes: &[u32],
    budget: Size,
) -> anyhow::Result<(Evaluation, Held<'a>)> {
    let mut predicted = Vec::with_capacity(codes.len());
    let mut counts = SetCounts::default();
    let kept = size_of::<u32>();
    for_each_scores(args, model, rows, (budget, kept), |batch, scores| {
        predicted.extend(argmax(&scores));
        match args.coverage.sets {
            Some(coverage) => counts.add(&model.sets_of(&scores, coverage)?, &codes[batch]),
            None => Ok(()),
        }
    })?;
    let sets = args.coverage.sets.map(|coverage| counts.scores(coverage));
    let held = Held {
        sets: sets.transpose()?,
        ..Held::default()
    };
    let evaluation = Evaluation::of_classes(codes, &predicted, model.outputs().names())?;
    Ok((evaluation, held))
}

/// Predicted values are as many as labels.
fn of_values<'a, T: Scalar>(
    args: &EvaluateArgs,
    model: &'a Model<T>,
    rows: &dyn Rows<T>,
    values: &Matrix<f64>,
    budget: Size,
) -> anyhow::Result<(Evaluation, Held<'a>)> {
    let (n, outputs) = (rows.len(), model.n_outputs());
    let mut scores = Vec::with_capacity(n * outputs);
    // As they are, and as the evaluation has them, with the truth.
    let kept = outputs * (size_of::<T>() + 2 * size_of::<f64>());
    for_each_scores(args, model, rows, (budget, kept), |_, part| {
        scores.extend_from_slice(part.values());
        Ok(())
    })?;
    let scores = Matrix::from_vec(n, outputs, scores);
    let names = model.outputs().names();
    let mut held = Held::default();
    if let Some(coverage) = args.coverage.interval {
        let intervals = model.intervals_of(&scores, coverage)?;
        let (lower, upper) = (&intervals.lower, &intervals.upper);
        let found = IntervalScores::new(coverage, lower, upper, values)?;
        let named = names.iter().zip(found);
        let named = named.map(|(output, scores)| OutputIntervals { output, scores });
        held.intervals = Some(named.collect());
    }
    let truth = Truth::Values(values.clone());
    Ok((Evaluation::new(&scores, &truth, names)?, held))
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
