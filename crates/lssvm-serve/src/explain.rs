//! Which training rows speak for a prediction: an answer in JSON, with pictures if they are
//! images.

use lssvm::linalg::Scalar;
use lssvm::model::{Contribution, Model};
use lssvm_report::Pictures;
use serde_json::{Value, json};

use crate::http::Refusal;
use crate::protocol::Asked;
use crate::service::refusal_of;

/// Training rows for it and against it: unless asked otherwise, and at most.
const USUAL_COUNT: usize = 6;
const MAX_COUNT: usize = 50;

/// Takes the score of the only row of a request apart.
pub fn explain<T: Scalar>(model: &Model<T>, asked: Asked<T>) -> Result<Value, Refusal> {
    let names = model.outputs().names();
    let output = match &asked.class {
        None => None,
        Some(class) => {
            let found = names.iter().position(|name| name == class);
            let unknown = || Refusal::new(400, format!("the model knows {}", names.join(", ")));
            Some(found.ok_or_else(unknown)?)
        }
    };
    let count = asked.count.unwrap_or(USUAL_COUNT).min(MAX_COUNT);
    let told = model
        .explain(asked.rows, output, count)
        .map_err(refusal_of)?;
    // One stretch of brightness for all, so that they can be compared.
    let both: Vec<Contribution> = told.pro.iter().chain(&told.contra).copied().collect();
    let pictures = pictures(model, &both);
    let tell = |at: usize| {
        let Contribution { row, value, kernel } = both[at];
        let class = model.class_of(row).map(|class| names[class].as_str());
        let picture = pictures.as_ref().and_then(|p| p.picture(at)?.data_uri());
        json!({"row": row, "class": class, "value": value, "kernel": kernel, "picture": picture})
    };
    let for_it = told.pro.len();
    Ok(json!({
        "id": asked.id,
        "output": names[told.output],
        "score": told.scores[told.output],
        "rest": told.rest,
        "for": (0..for_it).map(tell).collect::<Vec<_>>(),
        "against": (for_it..both.len()).map(tell).collect::<Vec<_>>(),
    }))
}

/// The training rows as pictures, after preprocessing, if they are images.
fn pictures<T: Scalar>(model: &Model<T>, rows: &[Contribution]) -> Option<Pictures> {
    Pictures::new(&model.images_of(rows)?)
}
