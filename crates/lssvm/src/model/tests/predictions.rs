use super::*;

/// Ω(x, z) as it is defined.
fn kernel_value(kernel: &Kernel, x: &[f64], z: &[f64]) -> f64 {
    let pairs = || x.iter().zip(z);
    let inner: f64 = pairs().map(|(a, b)| a * b).sum();
    match *kernel {
        Kernel::Linear => inner,
        Kernel::Poly {
            gamma,
            coef0,
            degree,
        } => (gamma * inner + coef0).powi(degree as i32),
        Kernel::Rbf { gamma } => {
            (-gamma * pairs().map(|(a, b)| (a - b).powi(2)).sum::<f64>()).exp()
        }
        Kernel::Laplacian { gamma } => {
            (-gamma * pairs().map(|(a, b)| (a - b).abs()).sum::<f64>()).exp()
        }
        Kernel::Sigmoid { gamma, coef0 } => (gamma * inner + coef0).tanh(),
    }
}

/// h(x) = Σ Ω(x, xₙ) aₙ + b, in the order it is written.
fn naive_scores<T: Scalar>(model: &Model<T>, x: &Matrix<f64>) -> Matrix<f64> {
    let z = model.pipeline().transform(x.clone()).unwrap();
    let support = model.support().points().cast::<f64>().into_dense();
    Matrix::from_fn(x.rows(), model.n_outputs(), |i, k| {
        let terms = (0..support.rows()).map(|n| {
            kernel_value(model.kernel(), z.row(i), support.row(n))
                * model.weights().get(n, k).to_f64()
        });
        model.bias()[k].to_f64() + terms.sum::<f64>()
    })
}

fn assert_near<T: Scalar>(a: &Matrix<T>, b: &Matrix<f64>, tolerance: f64) {
    assert_eq!((a.rows(), a.cols()), (b.rows(), b.cols()));
    for (a, b) in a.values().iter().zip(b.values()) {
        let a = a.to_f64();
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }
}

#[test]
fn scores_are_the_formula() {
    let kernels = [
        Kernel::Linear,
        Kernel::Poly {
            gamma: 0.5,
            coef0: 1.0,
            degree: 3,
        },
        RBF,
        Kernel::Laplacian { gamma: 0.2 },
        Kernel::Sigmoid {
            gamma: 0.1,
            coef0: 0.2,
        },
    ];
    for kernel in kernels {
        for preprocess in ["none", "center,unit-norm", "standardize", "fourier"] {
            let x = wave(33, 8, 9);
            let model64 = model::<f64>([40, 8, 3], kernel, preprocess);
            let scores = model64.decision_function(x.clone()).unwrap();
            // Values reach 100 for the polynomial of standardized rows.
            assert_near(&scores, &naive_scores(&model64, &x), 1e-10);
            let model32 = model::<f32>([40, 8, 3], kernel, preprocess);
            let scores = model32.decision_function(x.cast()).unwrap();
            let expected = naive_scores(&model32, &x);
            let size = expected.frobenius_norm().max(1.0);
            assert_near(&scores, &expected, 1e-5 * size);
        }
    }
}

#[test]
fn batches_of_any_size_agree() {
    let model = model::<f64>([30, 5, 2], RBF, "standardize,unit-norm");
    let x = wave(101, 5, 4);
    let whole = model.decision_function(x.clone()).unwrap();
    for rows in [1, 2, 7, 50, 100, 101, 102] {
        let scores = model.decision_function_in_batches(x.clone(), rows).unwrap();
        assert_near(&scores, &whole, 1e-12);
    }
    let transformed = model.pipeline().transform(x).unwrap();
    let samples = Samples::new(transformed, model.kernel());
    assert_eq!(model.scores_of_preprocessed(&samples).unwrap(), whole);
    let none = model.decision_function(Matrix::zeros(0, 5)).unwrap();
    assert_eq!((none.rows(), none.cols()), (0, 2));
}

#[test]
fn rows_that_cannot_be_scored_are_named() {
    let mut parts = parts::<f32>([6, 3, 2], Kernel::Linear, "none");
    let unnamed = Model::new(parts.clone()).unwrap();
    parts.description.input.feature_names = Some(names(3));
    let named = Model::new(parts).unwrap();

    let error = message(unnamed.decision_function(Matrix::zeros(2, 4)));
    assert!(
        error.contains("have 4 features, but the model wants 3"),
        "{error}"
    );

    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut x = Matrix::zeros(9, 3);
        x.set(7, 1, bad);
        for (model, feature) in [(&unnamed, "2 is"), (&named, "2 (class 1) is")] {
            let error = message(model.decision_function_in_batches(x.clone(), 2));
            let expected = format!("row 8, feature {feature} {bad}: ");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    let mut x = Matrix::zeros(9, 3);
    x.row_mut(5).fill(f32::MAX);
    let error = message(unnamed.decision_function_in_batches(x, 4));
    assert!(
        error.starts_with("the score of row 6 left the range"),
        "{error}"
    );
}

#[test]
fn preprocessed_rows_are_checked() {
    let model = model::<f64>([6, 3, 2], RBF, "none");
    let wrong = Samples::new(wave(2, 4, 0), &RBF);
    assert!(message(model.scores_of_preprocessed(&wrong)).contains("rows of 3 features"));
    let wrong = Samples::new(wave(2, 3, 0), &Kernel::Linear);
    assert!(message(model.scores_of_preprocessed(&wrong)).contains("for its kernel"));
}

#[test]
fn classes_and_values_are_told_apart() {
    let mut parts = parts::<f64>([6, 3, 2], RBF, "none");
    let classifier = Model::new(parts.clone()).unwrap();
    let outputs = vec![String::new(), "y".into()];
    parts.description.outputs = Outputs::Values { names: outputs };
    let regressor = Model::new(parts).unwrap();
    let x = || wave(4, 3, 8);
    let scores = regressor.predict_values(x()).unwrap();
    assert_eq!(classifier.predict_classes(x()).unwrap(), argmax(&scores));
    let probabilities = classifier.predict_probabilities(x()).unwrap();
    assert_eq!(probabilities, softmax(&scores));
    assert!(message(classifier.predict_values(x())).contains("predicts classes"));
    assert!(message(regressor.predict_classes(x())).contains("predicts values"));
    assert!(message(regressor.predict_probabilities(x())).contains("predicts values"));
}

#[test]
fn the_first_of_equal_scores_wins_and_nan_never() {
    let nan = f64::NAN;
    let scores = Matrix::from_rows(&[
        [1.0, 1.0, 0.0],
        [0.0, 2.0, 2.0],
        [nan, -1.0, -2.0],
        [3.0, nan, 2.0],
    ]);
    assert_eq!(argmax(&scores), [0, 1, 1, 0]);
}

#[test]
fn softmax_sums_to_one_whatever_the_scores() {
    let (max, inf) = (f64::MAX, f64::INFINITY);
    let scores = Matrix::from_rows(&[
        [0.1, 0.2, 0.7],
        [1e5, 1e5, -1e5],
        [max, -max, 0.0],
        [-max, -max, -max],
        [inf, 1.0, inf],
    ]);
    let p = softmax(&scores);
    for i in 0..p.rows() {
        assert!((p.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-15);
        assert!(p.row(i).iter().all(|p| (0.0..=1.0).contains(p)));
    }
    let sum = 0.1f64.exp() + 0.2f64.exp() + 0.7f64.exp();
    assert!((p.get(0, 2) - 0.7f64.exp() / sum).abs() < 1e-15);
    assert_eq!(p.row(1), &[0.5, 0.5, 0.0]);
    assert_eq!(p.row(2), &[1.0, 0.0, 0.0]);
    assert_eq!(p.row(4), &[0.5, 0.0, 0.5]);
    // In f32 the exponential of 100 is beyond all numbers.
    let p = softmax(&Matrix::from_rows(&[[100.0f32, 99.0]]));
    assert!((p.get(0, 0) - 1.0 / (1.0 + (-1f64).exp())).abs() < 1e-15);
}
