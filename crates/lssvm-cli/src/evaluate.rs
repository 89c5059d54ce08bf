//! `lssvm evaluate`

use std::ops::Range;
use std::time::Instant;

use indicatif::ProgressBar;
use lssvm::data::{Rows, Stream, open};
use lssvm::linalg::{Matrix, Scalar};
use lssvm::memory::{self, Size};
use lssvm::metrics::{Confusion, Coverage, IntervalScores, SetCounts, SetScores};
use lssvm::model::{AnyModel, Model, argmax};
use lssvm::ranks::Ranks;
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
    let scored = Scored {
        ranks,
        args,
        model,
        rows: &*data.features,
        budget,
    };
    let found = match &truth {
        Truth::Classes(codes) => scored.classes(codes),
        Truth::Values(values) => scored.values(values),
    };
    let told = match agree(ranks, found)? {
        Some(found) => {
            let flops = ranks.size() as f64 * flops;
            tell(args, model, found, (clock, flops), &spinner)
        }
        None => Ok(()),
    };
    agree(ranks, told)
}

/// Says and writes what all scores are worth.
fn tell<T: Scalar>(
    args: &EvaluateArgs,
    model: &Model<T>,
    (evaluation, held): (Evaluation, Held<'_>),
    (mut clock, flops): (Clock, f64),
    spinner: &ProgressBar,
) -> anyhow::Result<()> {
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

/// Rows that ranks score together; what they are worth is for the first to tell.
struct Scored<'a, T: Scalar> {
    ranks: &'a Ranks,
    args: &'a EvaluateArgs,
    model: &'a Model<T>,
    rows: &'a dyn Rows<T>,
    budget: Size,
}

/// On the first rank.
type Found<'a> = Option<(Evaluation, Held<'a>)>;

impl<'a, T: Scalar> Scored<'a, T> {
    /// Calls `f` with the scores of all rows, batch by batch, on the first rank; `kept` is
    /// what it keeps of each row, in bytes.
    fn for_each(
        &self,
        kept: usize,
        mut f: impl FnMut(Range<usize>, Matrix<T>) -> lssvm::Result<()>,
    ) -> anyhow::Result<()> {
        let (ranks, model, rows) = (self.ranks, self.model, self.rows);
        let pool = agree(ranks, pool(self.args.threads))?;
        let kept = (rows.len() * kept) as u64;
        let batches = batches(ranks, model, rows, self.budget, kept)?;
        // One batch a rank, then the first has them in their order.
        for round in rounds(ranks, batches.len()) {
            let own = batches.get(round + ranks.rank()).cloned();
            let part = own.map(|batch| pool.install(|| model.scores_of_rows(rows, batch)));
            let part = ranks.agree(part.transpose())?;
            let part = part.as_ref().map_or(&[][..], Matrix::values);
            let (mut rest, mut used) = (batches[round..].iter(), Ok(()));
            ranks.gather_values(part, |part| {
                if let (Some(batch), Ok(())) = (rest.next(), &used) {
                    let scores = Matrix::from_vec(batch.len(), model.n_outputs(), part);
                    used = f(batch.clone(), scores);
                }
            });
            ranks.agree(used)?;
        }
        Ok(())
    }

    /// Of classes nothing is kept but which were predicted: scores may be far more than labels.
    fn classes(&self, codes: &[u32]) -> anyhow::Result<Found<'a>> {
        let model = self.model;
        let coverage = self.args.coverage.sets;
        let mut predicted = Vec::with_capacity(codes.len());
        let mut counts = SetCounts::default();
        self.for_each(size_of::<u32>(), |batch, scores| {
            predicted.extend(argmax(&scores));
            match coverage {
                Some(coverage) => counts.add(&model.sets_of(&scores, coverage)?, &codes[batch]),
                None => Ok(()),
            }
        })?;
        if !self.ranks.is_first() {
            return Ok(None);
        }
        let sets = coverage.map(|coverage| counts.scores(coverage));
        let held = Held {
            sets: sets.transpose()?,
            ..Held::default()
        };
        let evaluation = Evaluation::of_classes(codes, &predicted, model.outputs().names())?;
        Ok(Some((evaluation, held)))
    }

    /// Predicted values are as many as labels.
    fn values(&self, values: &Matrix<f64>) -> anyhow::Result<Found<'a>> {
        let (n, outputs) = (self.rows.len(), self.model.n_outputs());
        let mut scores = Vec::with_capacity(n * outputs);
        // As they are, and as the evaluation has them, with the truth.
        let kept = outputs * (size_of::<T>() + 2 * size_of::<f64>());
        self.for_each(kept, |_, part| {
            scores.extend_from_slice(part.values());
            Ok(())
        })?;
        if !self.ranks.is_first() {
            return Ok(None);
        }
        let scores = Matrix::from_vec(n, outputs, scores);
        let names = self.model.outputs().names();
        let mut held = Held::default();
        if let Some(coverage) = self.args.coverage.interval {
            let intervals = self.model.intervals_of(&scores, coverage)?;
            let (lower, upper) = (&intervals.lower, &intervals.upper);
            let found = IntervalScores::new(coverage, lower, upper, values)?;
            let named = names.iter().zip(found);
            let named = named.map(|(output, scores)| OutputIntervals { output, scores });
            held.intervals = Some(named.collect());
        }
        let truth = Truth::Values(values.clone());
        Ok(Some((Evaluation::new(&scores, &truth, names)?, held)))
    }
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
