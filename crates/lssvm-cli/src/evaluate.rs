//! `lssvm evaluate`

use lssvm::data::{Dataset, read};
use lssvm::linalg::Scalar;
use lssvm::memory;
use lssvm::metrics::Confusion;
use lssvm::model::{AnyModel, Model};
use lssvm::train::{Evaluation, truth};
use serde::Serialize;

use crate::args::EvaluateArgs;
use crate::output::{self, fact, say};
use crate::progress::spinner;
use crate::settings::{pool, read_options_for};

/// Tables with more classes than this are left to `--json`.
const MOST_CLASSES_SHOWN: usize = 26;

/// What `--json` writes.
#[derive(Serialize)]
struct Result<'a> {
    #[serde(flatten)]
    evaluation: &'a Evaluation,
    seconds: f64,
    peak_memory_bytes: Option<u64>,
    config: &'a serde_json::Value,
    training: &'a serde_json::Value,
}

pub fn run(args: &EvaluateArgs) -> anyhow::Result<()> {
    match AnyModel::load(&args.model)? {
        AnyModel::F32(model) => evaluate(args, &model),
        AnyModel::F64(model) => evaluate(args, &model),
    }
}

fn evaluate<T: Scalar>(args: &EvaluateArgs, model: &Model<T>) -> anyhow::Result<()> {
    let start = std::time::Instant::now();
    output::expect_json(args.json.as_deref())?;
    let spinner = spinner(format!("evaluating on {}", args.data.display()));
    let options = read_options_for(&args.read, model.input())?;
    let parts = read::<T>(&args.data, &options)?;
    let data: Dataset<T> = parts.test.unwrap_or(parts.train);
    let truth = truth(&data, model.outputs())?;
    let scores = pool(args.threads)?.install(|| model.decision_function(data.features))?;
    let evaluation = Evaluation::new(&scores, &truth, model.outputs().names())?;
    spinner.finish_and_clear();
    output::evaluation("result", &evaluation);
    let few = |confusion: &&Confusion| confusion.classes.len() <= MOST_CLASSES_SHOWN;
    if let Some(confusion) = evaluation.confusion.as_ref().filter(few) {
        say(format!("\n{confusion}"));
    }
    let seconds = start.elapsed().as_secs_f64();
    fact("time", format!("{seconds:.2} s"));
    if let Some(path) = &args.json {
        let result = Result {
            evaluation: &evaluation,
            seconds,
            peak_memory_bytes: memory::peak(),
            config: model.config(),
            training: model.summary(),
        };
        output::json(path, &result)?;
    }
    Ok(())
}
