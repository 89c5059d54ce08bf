//! `lssvm inspect`

use anyhow::Context;
use lssvm::error::Bytes;
use lssvm::model::{AnyModel, HeldOut, Outputs};
use lssvm::train::Effective;
use serde_json::{Value, json};

use crate::args::InspectArgs;
use crate::output::{fact, say};

/// Class names shown before the list is cut.
const NAMES_SHOWN: usize = 12;

pub fn run(args: &InspectArgs) -> anyhow::Result<()> {
    let model = AnyModel::load(&args.model)?;
    let description = model.description();
    if args.config {
        let config: Effective = serde_json::from_value(description.config.clone())
            .context("the model has no configuration that this version knows")?;
        say(toml::to_string(&config)?.trim_end());
        return Ok(());
    }
    let precision = serde_json::to_value(model.precision())?;
    if args.json {
        let mut all = json!({
            "precision": precision,
            "rows": model.n_support(),
            "size_bytes": model.size_bytes(),
        });
        if let (Some(all), Value::Object(more)) =
            (all.as_object_mut(), serde_json::to_value(description)?)
        {
            all.extend(more);
        }
        say(serde_json::to_string_pretty(&all)?);
        return Ok(());
    }
    let (kind, names) = match &description.outputs {
        Outputs::Classes { names } => ("classes", names),
        Outputs::Values { names } => ("outputs", names),
    };
    let shown = names[..names.len().min(NAMES_SHOWN)].join(", ");
    let more = if names.len() > NAMES_SHOWN {
        ", …"
    } else {
        ""
    };
    let shown = if shown.is_empty() {
        shown
    } else {
        format!(": {shown}{more}")
    };
    fact("predicts", format!("{} {kind}{shown}", names.len()));
    let image = match description.input.image {
        Some([1, height, width]) => format!(" ({height} × {width} images)"),
        Some([channels, height, width]) => format!(" ({channels} × {height} × {width} images)"),
        None => String::new(),
    };
    fact(
        "features",
        format!("{}{image}", description.input.n_features),
    );
    let pipeline = description.pipeline.spec().to_string();
    fact("preprocess", pipeline);
    fact("kernel", serde_json::to_string(&description.kernel)?);
    let precision = precision.as_str().unwrap_or_default().to_string();
    let (rows, size) = (model.n_support(), Bytes(model.size_bytes()));
    fact(
        "rows",
        format!("{rows} training rows with weights, {precision}, {size}"),
    );
    if let Some(conformal) = &description.conformal {
        let what = match description.outputs {
            Outputs::Classes { .. } => "sets of classes",
            Outputs::Values { .. } => "intervals",
        };
        let from = match conformal.from() {
            HeldOut::LeaveOneOut => "left out one by one",
            HeldOut::Validation => "kept for validation",
        };
        fact(
            "coverage",
            format!("{what} by {} rows {from}", conformal.rows()),
        );
    }
    if let Some(summary) = description.summary.as_object() {
        // The history is for machines.
        let short = |(name, value): &(&String, &Value)| !value.is_null() && *name != "history";
        for (name, value) in summary.iter().filter(short) {
            fact(&name.replace('_', " "), value);
        }
    }
    Ok(())
}
