//! `lssvm inspect`

use anyhow::Context;
use lssvm::data::{Column, LABEL_NAMES};
use lssvm::error::Bytes;
use lssvm::kernel::Kernel;
use lssvm::model::{AnyModel, HeldOut, Input, Outputs};
use lssvm::solve::Stopped;
use lssvm::train::Effective;
use serde_json::{Value, json};

use crate::args::{InspectArgs, ReadArgs};
use crate::output::{fact, say, size};
use crate::settings::{Reading, to_toml};

/// Class names shown before the list is cut.
const NAMES_SHOWN: usize = 12;

pub fn run(args: &InspectArgs) -> anyhow::Result<()> {
    let model = AnyModel::load(&args.model)?;
    let description = model.description();
    if args.config {
        let config: Effective = serde_json::from_value(description.config.clone())
            .context("the model has no configuration that this version knows")?;
        say(to_toml(&reading(&description.input), &config)?.trim_end());
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
    fact("kernel", in_words(&description.kernel)?);
    let precision = precision.as_str().unwrap_or_default().to_string();
    let (rows, size) = (model.n_support(), Bytes(size(&args.model)?));
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
    trained(&description.summary);
    Ok(())
}

/// How the training ended, as far as the model says.
fn trained(summary: &Value) {
    let number = |key: &str| summary.get(key).and_then(Value::as_f64);
    let stopped = summary.get("stopped").cloned().unwrap_or_default();
    if let (Some(iterations), Ok(stopped)) = (
        number("iterations"),
        serde_json::from_value::<Stopped>(stopped),
    ) {
        let plural = if iterations == 1.0 { "" } else { "s" };
        let best = match number("best_iteration") {
            Some(best) if best != iterations => format!("; kept iteration {best}"),
            _ => String::new(),
        };
        let because = stopped.because();
        fact(
            "trained",
            format!("{iterations} iteration{plural}: {because}{best}"),
        );
    }
    let is = |key: &str| summary.get(key) == Some(&Value::Bool(true));
    if let Some(residual) = number("relative_residual") {
        let about = match (is("relative_residual_exact"), is("tolerance_met")) {
            (_, true) => ", within the tolerance",
            (true, false) => "",
            (false, false) => " (estimated)",
        };
        fact("residual", format!("{residual:.2e}{about}"));
    }
    if let Some(jitter) = number("jitter").filter(|jitter| *jitter > 0.0) {
        fact("jitter", format!("{jitter:.1e} was added to a diagonal"));
    }
    if let Some(percent) = number("test_error_percent") {
        fact("test", format!("{percent:.2} % wrong"));
    }
    if let Some(rmse) = number("test_rmse") {
        fact("test", format!("RMSE {rmse:.5}"));
    }
}

/// A kernel and its parameters in words.
fn in_words(kernel: &Kernel) -> anyhow::Result<String> {
    let Value::Object(mut parameters) = serde_json::to_value(kernel)? else {
        return Ok(String::new());
    };
    let name = parameters.remove("name").unwrap_or_default();
    let mut words = name.as_str().unwrap_or_default().to_string();
    for (parameter, value) in parameters {
        // Six digits tell all that anybody would type.
        let value = value.as_f64().unwrap_or_default();
        let value: f64 = format!("{value:.5e}").parse()?;
        words += &format!(", {parameter} {value}");
    }
    Ok(words)
}

/// How the data were read, where a file for `train --config` has to say it: labels that are
/// neither in a column with a usual name nor in the last.
fn reading(input: &Input) -> Reading {
    let columns = input.n_features + input.label_places.len() + input.weight_place.iter().count();
    let usual = |name: &String| LABEL_NAMES.contains(&name.as_str());
    let last = input.label_places == [columns];
    let label = match (input.label_names.as_slice(), input.label_places.as_slice()) {
        ([name], _) if usual(name) => None,
        _ if last => None,
        (names @ [_, ..], _) if names.iter().all(|name| !name.is_empty()) => {
            Some(names.iter().cloned().map(Column::Name).collect())
        }
        (_, []) => None,
        (_, places) => Some(places.iter().map(|&p| Column::Index(p as i64)).collect()),
    };
    let weights = match (&input.weight_name, input.weight_place) {
        (Some(name), _) => Some(Column::Name(name.clone())),
        (None, Some(place)) => Some(Column::Index(place as i64)),
        (None, None) => None,
    };
    ReadArgs {
        label,
        weights,
        ..ReadArgs::default()
    }
    .into()
}
