//! `lssvm compress`

use lssvm::data::read;
use lssvm::error::Bytes;
use lssvm::linalg::Scalar;
use lssvm::model::{self, AnyModel, Model, Outputs};
use lssvm::train::{Compression, Evaluation, compress, truth};
use serde::Serialize;

use crate::args::CompressArgs;
use crate::output::{self, fact, remark};
use crate::progress::{self, Progress, spinner};
use crate::settings::{pool, read_options_for};

/// What `--json` writes.
#[derive(Serialize)]
struct Result {
    #[serde(flatten)]
    cost: Compression,
    /// Of the model before.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Evaluation>,
    /// Of the smaller model.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Evaluation>,
}

pub fn run(args: &CompressArgs) -> anyhow::Result<()> {
    output::expect_distinct(&[
        ("output", Some(&args.output)),
        ("json", args.json.as_deref()),
    ])?;
    model::check_writable(&args.output)?;
    output::expect_json(args.json.as_deref())?;
    match AnyModel::load(&args.model)? {
        AnyModel::F32(model) => small(args, &model),
        AnyModel::F64(model) => small(args, &model),
    }
}

fn small<T: Scalar>(args: &CompressArgs, model: &Model<T>) -> anyhow::Result<()> {
    progress::catch_interrupts();
    let threads = pool(args.threads)?.current_num_threads();
    let mut watcher = Progress::new(matches!(model.outputs(), Outputs::Classes { .. }), false);
    let found = compress(model, args.centers, args.seed, threads, &mut watcher);
    watcher.finish();
    let (small, cost) = found?;
    let judged = judge(args, model, &small)?;
    small.save(&args.output)?;
    let [rows, left] = cost.rows;
    fact("rows", format!("{left} of {rows}"));
    let [before, after] = cost.bytes.map(Bytes);
    fact("size", format!("{after}, was {before}"));
    if let Some(changed) = cost.changed_percent {
        fact(
            "changed",
            format!("{changed:.2} % of the model's rows are of another class now"),
        );
    }
    let share = 100.0 * cost.rms_change / cost.rms_scores.max(f64::MIN_POSITIVE);
    fact(
        "scores",
        format!("changed by {share:.2} % of their spread (root mean square)"),
    );
    let (before, after) = judged.unzip();
    if let (Some(before), Some(after)) = (&before, &after) {
        output::evaluation("test before", before);
        output::evaluation("test after", after);
    }
    if model.conformal().is_some() {
        remark("intervals and sets were those of the larger model, and are left out");
    }
    fact("model", args.output.display());
    if let Some(path) = &args.json {
        output::json(
            path,
            &Result {
                cost,
                before,
                after,
            },
        )?;
    }
    Ok(())
}

/// The errors of both models on other rows, if there are any.
fn judge<T: Scalar>(
    args: &CompressArgs,
    model: &Model<T>,
    small: &Model<T>,
) -> anyhow::Result<Option<(Evaluation, Evaluation)>> {
    let Some(path) = &args.test else {
        return Ok(None);
    };
    let spinner = spinner(format!("comparing on {}", path.display()));
    let parts = read::<T>(path, &read_options_for(&args.read, model.input())?)?;
    let data = parts.test.unwrap_or(parts.train);
    let truth = truth(&data, model.outputs())?;
    let names = model.outputs().names();
    let judged = pool(args.threads)?.install(|| {
        let before = model.decision_function(data.features.clone())?;
        let after = small.decision_function(data.features)?;
        Ok::<_, lssvm::Error>((
            Evaluation::new(&before, &truth, names)?,
            Evaluation::new(&after, &truth, names)?,
        ))
    });
    spinner.finish_and_clear();
    Ok(Some(judged?))
}
