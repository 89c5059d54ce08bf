//! Models: loaded or refused. What is loaded predicts, and is saved as it was.

use lssvm::kernel::Samples;
use lssvm::linalg::{Csr, Matrix, Points, Scalar};
use lssvm::model::{AnyModel, Model, ModelParts, Outputs};

use super::seal::{self, Kind};

/// Features of a row at most that is predicted; a file can ask for any number.
const MOST_FEATURES: usize = 1 << 16;

/// Any bytes as a model file, or as what to make one of.
pub fn model(input: &[u8]) {
    let bytes = match input.starts_with(b"{") {
        true => seal::container(input, Kind::Model),
        false => input.to_vec(),
    };
    match AnyModel::from_bytes(&bytes) {
        Ok(AnyModel::F32(model)) => used(&model, bytes.len()),
        Ok(AnyModel::F64(model)) => used(&model, bytes.len()),
        Err(_) => {}
    }
}

fn used<T: Scalar>(model: &Model<T>, length: usize) {
    assert!(model.size_bytes() <= length as u64);
    saved(model);
    let width = model.n_features();
    if width > MOST_FEATURES {
        return;
    }
    let rows = |n| Matrix::from_fn(n, width, |i, j| T::from_f64((i * 7 + j) as f64 % 5.0 - 1.5));
    let Ok(scores) = model.decision_function(rows(2)) else {
        return;
    };
    assert!(scores.values().iter().all(|score| score.is_finite()));
    let _ = model.explain(rows(1), None, 2);
    for row in 0..model.n_support() {
        assert!(
            model
                .class_of(row)
                .is_none_or(|class| class < model.n_outputs())
        );
    }
    match model.outputs() {
        Outputs::Classes { names } => {
            let classes = model.predict_classes(rows(2)).expect("scores were made");
            assert!(classes.iter().all(|&class| (class as usize) < names.len()));
            for probability in model.probabilities_of(&scores).values() {
                assert!((0.0..=1.0).contains(probability), "{probability}");
            }
            let _ = model.predict_sets(rows(2), 0.9);
        }
        Outputs::Values { .. } => {
            let _ = model.predict_values(rows(2)).expect("scores were made");
            let _ = model.predict_intervals(rows(2), 0.9);
        }
    }
}

/// Saved, loaded and saved again, a model has the same bytes.
fn saved<T: Scalar>(model: &Model<T>) {
    let bytes = model.to_bytes().expect("it came from a file");
    let again = match AnyModel::from_bytes(&bytes).expect("it was just saved") {
        AnyModel::F32(model) => model.to_bytes(),
        AnyModel::F64(model) => model.to_bytes(),
    };
    assert_eq!(bytes, again.expect("it was saved before"));
}

/// The same model of 64-bit numbers. To train one would compile every solver once more.
pub fn doubled(model: &Model<f32>) -> Model<f64> {
    with_support(model, model.support().points().cast())
}

/// The same of sparse rows.
pub fn sparse(model: &Model<f32>) -> Model<f64> {
    let rows = model.support().points().cast::<f64>().into_dense();
    with_support(model, Csr::from_dense(&rows).into())
}

fn with_support(model: &Model<f32>, rows: Points<f64>) -> Model<f64> {
    let parts = ModelParts {
        support: Samples::new(rows, model.kernel()),
        weights: model.weights().cast(),
        bias: model.bias().iter().map(|&v| f64::from(v)).collect(),
        classes: None,
        description: model.description().clone(),
    };
    Model::new(parts).expect("it was a model before")
}
