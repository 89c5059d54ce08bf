//! The Open Inference Protocol, version 2 (KServe's V2, REST): bytes in, tensors out, and back.
//!
//! ```text
//! {"id": "42", "inputs": [{"name": "input", "shape": [2, 3], "datatype": "FP32", "data": [...]}],
//!  "outputs": [{"name": "class"}]}
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `numbers.rs` | the text of a tensor to numbers, without a tree of values between |
//! | `request.rs` | what is asked: rows, and which outputs |
//! | `response.rs` | what is answered: metadata and tensors |
//!
//! Everything here is a function of its arguments; nothing trusts a size before it is checked.

mod numbers;
mod request;
mod response;

pub use numbers::{Datatype, parse_numbers};
pub use request::{Asked, parse_request};
pub use response::{Answer, metadata, server_metadata};

use lssvm::linalg::Precision;
use lssvm::model::{AnyModel, Outputs};

/// The only version of a model that there is.
pub const VERSION: &str = "1";

/// What the metadata call the input. A request has one, and may call it as it likes.
pub const INPUT: &str = "input";

/// What requests to a model look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Features of a row.
    pub n_features: usize,
    /// `[channels, height, width]` if rows are images.
    pub image: Option<[usize; 3]>,
    /// Classes or values of a row.
    pub n_outputs: usize,
    /// What it can be asked for.
    pub outputs: &'static [Output],
    /// Its number type.
    pub precision: Precision,
}

/// Something that a model can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The names of the predicted classes.
    Class,
    /// h of every class.
    Scores,
    /// The probabilities of the classes.
    Probabilities,
    /// Predicted values.
    Values,
}

impl Output {
    /// Its name in requests and answers.
    pub fn name(self) -> &'static str {
        match self {
            Output::Class => "class",
            Output::Scores => "scores",
            Output::Probabilities => "probabilities",
            Output::Values => "values",
        }
    }

    /// Values of it in each row.
    pub fn width(self, spec: &Spec) -> usize {
        match self {
            Output::Class => 1,
            _ => spec.n_outputs,
        }
    }
}

impl Spec {
    /// What requests to this model look like.
    pub fn of(model: &AnyModel) -> Self {
        let description = model.description();
        Self {
            n_features: description.input.n_features,
            image: description.input.image,
            n_outputs: description.outputs.names().len(),
            outputs: match description.outputs {
                Outputs::Classes { .. } => &[Output::Class, Output::Scores, Output::Probabilities],
                Outputs::Values { .. } => &[Output::Values],
            },
            precision: model.precision(),
        }
    }
}
