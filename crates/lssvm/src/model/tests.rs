//! Predictions against the formula written out; files against every kind of
//! damage.

mod bad_files;
mod files;
mod predictions;

use serde_json::json;

use super::*;
use crate::preprocess::PipelineSpec;

const RBF: Kernel = Kernel::Rbf { gamma: 0.3 };

/// Numbers without a pattern, the same every time.
fn wave(rows: usize, cols: usize, seed: usize) -> Matrix<f64> {
    Matrix::from_fn(rows, cols, |i, j| {
        (((i * 7919 + j * 104_729 + seed * 31 + 13) as f64) * 0.618).sin()
    })
}

fn names(k: usize) -> Vec<String> {
    (0..k).map(|k| format!("class {k}")).collect()
}

/// A classifier of `p` support rows of `m` raw features, with `k` classes.
fn parts<T: Scalar>([p, m, k]: [usize; 3], kernel: Kernel, preprocess: &str) -> ModelParts<T> {
    let spec: PipelineSpec = preprocess.parse().unwrap();
    let (pipeline, x) = spec.fit(wave(p, m, 1).cast::<T>(), None).unwrap();
    ModelParts {
        support: Samples::new(x, &kernel),
        weights: wave(p, k, 2).cast(),
        bias: wave(1, k, 3).cast().into_values(),
        classes: None,
        description: Description {
            kernel,
            pipeline,
            outputs: Outputs::Classes { names: names(k) },
            input: Input {
                n_features: m,
                ..Input::default()
            },
            config: json!({ "c": 1e4, "seed": 7 }),
            summary: json!({ "residual": 1.5e-3, "stopped": "max_iterations" }),
            scaling: None,
            conformal: None,
            notes: Default::default(),
        },
    }
}

fn model<T: Scalar>(sizes: [usize; 3], kernel: Kernel, preprocess: &str) -> Model<T> {
    Model::new(parts(sizes, kernel, preprocess)).unwrap()
}

fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn rows_without_weight_are_dropped_and_scores_stay() {
    for kernel in [RBF, Kernel::Linear] {
        let mut parts = parts::<f64>([9, 3, 2], kernel, "standardize");
        let mut fewer = parts.clone();
        for i in [0, 3, 4, 8] {
            parts.weights.row_mut(i).fill(-0.0);
        }
        parts.classes = Some(Matrix::from_rows(&[[0., 1., 1., 0., 1., 0., 1., 1., 0.]]));
        let kept = [1, 2, 5, 6, 7];
        fewer.support = parts.support.select(&kept);
        fewer.weights = parts.weights.select_rows(&kept);
        let (model, fewer) = (Model::new(parts).unwrap(), Model::new(fewer).unwrap());
        assert_eq!(model.n_support(), 5);
        let classes: Vec<_> = (0..5).filter_map(|row| model.class_of(row)).collect();
        assert_eq!(classes, [1, 1, 0, 1, 1]);
        assert_eq!(fewer.class_of(0), None);
        let rows = |model: &Model<f64>| model.support().points().clone().into_dense();
        assert_eq!(rows(&model), rows(&fewer));
        let x = wave(20, 3, 5);
        assert_eq!(
            model.decision_function(x.clone()).unwrap(),
            fewer.decision_function(x).unwrap()
        );
    }
}

#[test]
fn a_model_without_weights_keeps_one_row_and_answers_its_bias() {
    let mut parts = parts::<f32>([4, 2, 3], RBF, "none");
    parts.weights = Matrix::zeros(4, 3);
    let bias = parts.bias.clone();
    let model = Model::new(parts).unwrap();
    assert_eq!(model.n_support(), 1);
    assert_eq!(model.size_bytes(), 4 * (2 + 3 + 3));
    let scores = model.decision_function(Matrix::zeros(2, 2)).unwrap();
    assert_eq!(scores.row(1), &bias);
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    type Change = fn(&mut ModelParts<f64>);
    let changes: [(&str, Change); 14] = [
        ("do not fit together", |p| p.weights = wave(3, 2, 0)),
        ("do not fit together", |p| p.bias.push(0.0)),
        ("at least one of each", |p| {
            p.support = p.support.select(&[])
        }),
        ("prepared for another kernel", |p| {
            p.support = Samples::new(wave(4, 3, 0), &Kernel::Linear);
        }),
        ("3 names for 2 outputs", |p| {
            p.description.outputs = Outputs::Values { names: names(3) };
        }),
        ("not the same everywhere", |p| {
            p.description.input.n_features = 4
        }),
        ("2 feature names for 3", |p| {
            p.description.input.feature_names = Some(names(2));
        }),
        ("1 channel(s) of 2 x 2 pixels", |p| {
            p.description.input.image = Some([1, 2, 2]);
        }),
        ("give one row of them", |p| {
            p.classes = Some(Matrix::zeros(1, 3));
        }),
        ("of class 2, and there are 2", |p| {
            p.classes = Some(Matrix::from_rows(&[[0.0, 1.0, 2.0, 0.0]]));
        }),
        ("of class 0.5", |p| {
            p.classes = Some(Matrix::from_rows(&[[0.0, 1.0, 0.5, 0.0]]));
        }),
        ("there are 0 classes", |p| {
            p.description.outputs = Outputs::Values { names: names(2) };
            p.classes = Some(Matrix::zeros(1, 4));
        }),
        ("must be finite", |p| {
            p.description.kernel = Kernel::Rbf { gamma: f64::NAN };
        }),
        ("the weights of the model are not all finite", |p| {
            p.weights.set(1, 1, f64::INFINITY);
        }),
    ];
    for (expected, change) in changes {
        let mut parts = parts([4, 3, 2], RBF, "none");
        assert!(Model::new(parts.clone()).is_ok());
        change(&mut parts);
        let message = message(Model::new(parts));
        assert!(message.contains(expected), "{message}");
    }
}
