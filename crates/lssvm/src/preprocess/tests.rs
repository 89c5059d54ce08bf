//! Every step against its equation, written out as slowly as it is printed.

mod naive;

use proptest::prelude::*;

use super::*;
use crate::linalg::{Matrix, Scalar};

type Image = Option<[usize; 3]>;

fn fit<T: Scalar>(text: &str, x: &Matrix<T>, image: Image) -> (Pipeline, Matrix<T>) {
    let spec: PipelineSpec = text.parse().unwrap();
    spec.fit(x.clone(), image).unwrap()
}

fn error_of(text: &str, x: &Matrix<f64>, image: Image) -> String {
    let spec: Result<PipelineSpec> = text.parse();
    match spec.and_then(|spec| spec.fit(x.clone(), image)) {
        Ok(_) => panic!("{text} was accepted"),
        Err(error) => error.to_string(),
    }
}

/// Numbers without a pattern, the same every time.
fn sample(rows: usize, cols: usize) -> Matrix<f64> {
    Matrix::from_fn(rows, cols, |i, j| {
        (((i * 7919 + j * 104_729 + 13) as f64) * 0.618).sin() * 5.0 + 1.0
    })
}

fn assert_near<T: Scalar>(a: &[T], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (k, (a, b)) in a.iter().zip(b).enumerate() {
        let a = a.to_f64();
        assert!((a - b).abs() <= tolerance, "value {k}: {a} is not {b}");
    }
}

#[test]
fn center_and_unit_norm_are_equations_61_and_62() {
    let x = sample(130, 17);
    let (_, out) = fit("center,unit-norm", &x, None);
    let (_, out32) = fit("center,unit-norm", &x.cast::<f32>(), None);
    for i in 0..x.rows() {
        let expected = naive::unit_norm(&naive::center(x.row(i)));
        assert_near(out.row(i), &expected, 1e-14);
        assert_near(out32.row(i), &expected, 1e-6);
    }
}

#[test]
fn window_is_equation_76() {
    let image = [3, 4, 5];
    let x = sample(3, 60);
    let (_, out) = fit("window:c=0.03", &x, Some(image));
    let (_, by_default) = fit("window", &x, Some(image));
    let (_, from_zero) = fit("window:first=0", &x, Some(image));
    for i in 0..x.rows() {
        assert_near(out.row(i), &naive::window(x.row(i), 0.03, 1, image), 1e-14);
        let expected = naive::window(x.row(i), 4.0 / 20.0, 1, image);
        assert_near(by_default.row(i), &expected, 1e-14);
        let expected = naive::window(x.row(i), 4.0 / 20.0, 0, image);
        assert_near(from_zero.row(i), &expected, 1e-14);
    }
    assert_ne!(from_zero, by_default);
}

#[test]
fn a_window_without_a_first_pixel_counts_from_1() {
    // As models were written before there was a choice.
    let step = r#"{"step":"window","spec":{"c":null},"image":[1,3,4]}"#;
    let json = format!(r#"{{"n_features_in":12,"steps":[{step}]}}"#);
    let old: Pipeline = serde_json::from_str(&json).unwrap();
    let (new, _) = fit("window:first=1", &sample(2, 12), Some([1, 3, 4]));
    assert_eq!(old, new);
}

#[test]
fn fourier_is_equations_69_to_75() {
    let images: [Image; 8] = [
        None,
        Some([1, 4, 6]),
        Some([1, 6, 4]),
        Some([1, 5, 7]),
        Some([3, 4, 5]),
        Some([3, 3, 3]),
        Some([1, 8, 1]),
        Some([1, 1, 9]),
    ];
    for image in images {
        let cols = image.map_or(31, |image| image.iter().product());
        let x = sample(5, cols);
        for text in ["1d", "1d-channel", "2d"] {
            for order in ["columns", "rows"] {
                for exponent in [0.5, 1.0, 0.7] {
                    if image.is_none() && text != "1d" {
                        continue;
                    }
                    let text =
                        format!("fourier:exponent={exponent}:transform={text}:order={order}");
                    let Ok(StepSpec::Fourier(spec)) = text.parse() else {
                        panic!("{text} is no fourier");
                    };
                    let (pipeline, out) = fit(&text, &x, image);
                    assert_eq!(pipeline.n_features_out(), out.cols());
                    for i in 0..x.rows() {
                        let expected = naive::fourier(x.row(i), &spec, image);
                        // The naive sums leave noise of 1e-14 where the true
                        // value is zero, and that noise is raised to a power.
                        assert_near(out.row(i), &expected, 1e-13f64.powf(exponent));
                    }
                }
            }
        }
    }
}

#[test]
fn mnist_rows_grow_to_1176() {
    let (pipeline, x) = fit("fourier", &sample(2, 784).cast::<f32>(), Some([1, 28, 28]));
    assert_eq!((pipeline.n_features_in(), x.cols()), (784, 1176));
    let (_, x) = fit("fourier:transform=2d", &sample(1, 3072), Some([3, 32, 32]));
    assert_eq!(x.cols(), 4608);
}

#[test]
fn zero_and_constant_rows_become_zero() {
    let x = Matrix::from_rows(&[[0.0f64; 12], [0.1; 12], [-7e300; 12]]);
    for text in [
        "center,unit-norm",
        "fourier",
        "fourier:transform=2d",
        "fourier:transform=1d-channel",
        "window,fourier",
    ] {
        let (_, out) = fit(text, &x, Some([1, 3, 4]));
        assert!(out.row(0).iter().all(|&v| v == 0.0), "{text}");
        if !text.starts_with("window") {
            assert!(out.values().iter().all(|&v| v == 0.0), "{text}");
        }
    }
    let (_, out) = fit("unit-norm", &x, None);
    assert_eq!(out.row(0), &[0.0; 12]);
}

#[test]
fn large_rows_do_not_overflow() {
    let x = Matrix::from_rows(&[[3e30f32, -4e30, 0.0, 1e-30]]);
    let (_, out) = fit("unit-norm", &x, None);
    assert_near(out.row(0), &[0.6, -0.8, 0.0, 0.0], 1e-7);
    let (_, out) = fit("center,unit-norm,fourier", &x, None);
    assert!(out.values().iter().all(|v| v.is_finite()));
    let (_, out) = fit(
        "fourier",
        &Matrix::from_rows(&[[3e200f64, -4e200, 0.0]]),
        None,
    );
    let (_, small) = fit("fourier", &Matrix::from_rows(&[[3.0f64, -4.0, 0.0]]), None);
    assert_near(out.row(0), small.row(0), 1e-14);
}

#[test]
fn standardize_by_hand() {
    // Column 1: mean 3, deviations −2, 0, 2, variance 8/3. Column 2 constant.
    // Column 3: a large offset, mean 1e8 + 1, variance 2/3.
    let x = Matrix::from_rows(&[
        [1.0, 5.5, 1e8],
        [3.0, 5.5, 1e8 + 1.0],
        [5.0, 5.5, 1e8 + 2.0],
    ]);
    let (pipeline, out) = fit("standardize", &x, None);
    let s = 1.5f64.sqrt();
    assert_near(
        out.values(),
        &[-s, 0.0, -s, 0.0, 0.0, 0.0, s, 0.0, s],
        1e-14,
    );
    let new = pipeline.transform(Matrix::from_rows(&[[7.0, 7.5, 1e8 + 1.0]]));
    assert_near(new.unwrap().row(0), &[2.0 * s, 2.0, 0.0], 1e-14);
}

#[test]
fn min_max_by_hand() {
    let x = Matrix::from_rows(&[[2.0f32, -1.0, 9.0], [4.0, 3.0, 9.0], [3.0, 0.0, 9.0]]);
    let (pipeline, out) = fit("min-max", &x, None);
    assert_eq!(
        out.values(),
        &[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.5, 0.25, 0.0]
    );
    let new = pipeline.transform(Matrix::from_rows(&[[6.0f32, -5.0, 10.0]]));
    assert_eq!(new.unwrap().row(0), &[2.0, -1.0, 1.0]);
}

#[test]
fn column_steps_do_not_depend_on_the_number_of_threads() {
    let x = sample(5000, 7);
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build()
            .unwrap()
            .install(|| fit("standardize,min-max", &x, None).0)
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn none_leaves_the_data_alone() {
    let x = sample(3, 4);
    for text in ["none", "", " none "] {
        let (pipeline, out) = fit(text, &x, None);
        assert_eq!(out, x);
        assert_eq!(pipeline.spec().to_string(), "none");
    }
}

#[test]
fn data_without_rows_or_columns() {
    for text in ["center,unit-norm,fourier", "none"] {
        assert_eq!(fit(text, &Matrix::<f64>::zeros(0, 4), None).1.rows(), 0);
        assert_eq!(fit(text, &Matrix::<f64>::zeros(4, 0), None).1.cols(), 0);
    }
    fit("standardize,min-max", &Matrix::<f64>::zeros(4, 0), None);
    let message = error_of("standardize", &Matrix::zeros(0, 4), None);
    assert!(message.contains("at least one row"), "{message}");
}

#[test]
fn errors_name_the_remedy() {
    let x = sample(2, 12);
    for (text, image, remedy) in [
        ("window", None, "give --image-shape 28x28"),
        ("fourier:transform=2d", None, "give --image-shape 28x28"),
        ("fourier,window", Some([1, 3, 4]), "put window before"),
        ("center", Some([1, 3, 5]), "correct --image-shape"),
        ("center", Some([1, 0, 12]), "correct --image-shape"),
        (
            "centre",
            None,
            "the steps are center, unit-norm, window, fourier, standardize, max-abs, min-max",
        ),
        ("center,", None, "the steps are center"),
        ("none,center", None, "the steps are center"),
        (
            "fourier:power=1",
            None,
            "the parameters of fourier are exponent, transform, order",
        ),
        ("center:c=1", None, "center has no parameters"),
        ("window:c", None, "name=value"),
        ("window:c=1:c=2", None, "given twice"),
        ("window:c=wide", None, "must be a number"),
        ("window:c=-1", None, "must be a number that is 0 or more"),
        ("window:c=nan", None, "must be a number that is 0 or more"),
        ("fourier:exponent=0", None, "must be a number above 0"),
        ("window:first=2", None, "must be 1 or 0"),
        (
            "fourier:transform=1d-channel",
            None,
            "give --image-shape 28x28",
        ),
        (
            "fourier:transform=3d",
            None,
            "must be 1d or 1d-channel or 2d",
        ),
        ("fourier:order=random", None, "must be columns or rows"),
    ] {
        let message = error_of(text, &x, image);
        assert!(message.contains(remedy), "{text}: {message}");
    }
    for (c, first) in [(-1.0, 1), (1.0, 2)] {
        let window = WindowSpec { c: Some(c), first };
        let spec = PipelineSpec(vec![StepSpec::Window(window)]);
        assert!(spec.fit(x.clone(), Some([1, 3, 4])).is_err());
    }

    let (pipeline, _) = fit("center", &x, None);
    let message = pipeline.transform(sample(1, 11)).unwrap_err().to_string();
    assert!(message.contains("11 features, but preprocessing was fitted on 12"));

    let bad = Matrix::from_rows(&[[1.0, f64::NAN], [2.0, 3.0]]);
    for text in ["standardize", "min-max"] {
        let message = error_of(text, &bad, None);
        assert!(message.contains("column 2"), "{message}");
    }
}

#[test]
fn text_is_canonical() {
    for (text, canonical) in [
        ("center,unit-norm", "center,unit-norm"),
        (" center , unit-norm ", "center,unit-norm"),
        ("fourier:exponent=0.5:transform=1d:order=columns", "fourier"),
        (
            "window:c=0.004,fourier:order=rows:transform=2d:exponent=1.0",
            "window:c=0.004,fourier:exponent=1:transform=2d:order=rows",
        ),
        ("window:first=1", "window"),
        (
            "window:first=0:c=0.004,fourier:transform=1d-channel",
            "window:c=0.004:first=0,fourier:transform=1d-channel",
        ),
        (
            "window:c=1e-300,min-max,standardize",
            "window:c=1e-300,min-max,standardize",
        ),
    ] {
        let spec: PipelineSpec = text.parse().unwrap();
        assert_eq!(spec.to_string(), canonical);
        assert_eq!(
            serde_json::to_string(&spec).unwrap(),
            format!("{canonical:?}")
        );
    }
    assert!(serde_json::from_str::<PipelineSpec>("\"centre\"").is_err());
}

#[test]
fn damaged_files_are_errors() {
    for (text, image) in [
        ("standardize", None),
        ("min-max", None),
        ("window", Some([1, 3, 4])),
        ("fourier:transform=1d-channel", Some([1, 3, 4])),
        ("fourier:transform=2d", Some([1, 3, 4])),
    ] {
        let (pipeline, _) = fit(text, &sample(3, 12), image);
        let json = serde_json::to_string(&pipeline).unwrap();
        let other = json.replace("\"n_features_in\":12", "\"n_features_in\":11");
        assert_ne!(json, other);
        assert!(serde_json::from_str::<Pipeline>(&other).is_err(), "{text}");
    }
    for json in [
        r#"{"n_features_in":1,"steps":[{"step":"standardize","mean":[0],"scale":[0]}]}"#,
        r#"{"n_features_in":1,"steps":[{"step":"min-max","min":[0],"range":[-1]}]}"#,
        r#"{"n_features_in":0,"steps":[{"step":"window","spec":{"c":1},"image":[0,1000000000,1000000000]}]}"#,
        r#"{"n_features_in":18446744073709551615,"steps":[{"step":"fourier","spec":{"exponent":1,"transform":"1d","order":"rows"},"image":null}]}"#,
        r#"{"n_features_in":1,"steps":[{"step":"bleach"}]}"#,
    ] {
        assert!(serde_json::from_str::<Pipeline>(json).is_err(), "{json}");
    }
}

fn any_step() -> impl Strategy<Value = StepSpec> {
    let positive = (1e-300f64..1e300).prop_union(0.001f64..3.0);
    let transforms = [Transform::OneD, Transform::OneDChannel, Transform::TwoD];
    let fourier = (positive.clone(), 0..3usize, any::<bool>()).prop_map(move |(exponent, a, b)| {
        StepSpec::Fourier(FourierSpec {
            exponent,
            transform: transforms[a],
            order: if b { Order::Columns } else { Order::Rows },
        })
    });
    prop_oneof![
        Just(StepSpec::Center),
        Just(StepSpec::UnitNorm),
        Just(StepSpec::Standardize),
        Just(StepSpec::MinMax),
        Just(StepSpec::Fourier(FourierSpec::default())),
        (prop::option::of(positive), 0..2u8)
            .prop_map(|(c, first)| StepSpec::Window(WindowSpec { c, first })),
        fourier,
    ]
}

/// Rows of 12 values, as 3 × 4 pixels, of all sizes.
fn any_data() -> impl Strategy<Value = Matrix<f64>> {
    let value = prop_oneof![-1.0..1.0f64, -1e6..1e6f64, Just(0.0), Just(3.25)];
    let rows = prop::collection::vec(prop::array::uniform12(value), 1..20);
    rows.prop_map(|rows| Matrix::from_rows(&rows))
}

proptest! {
    #[test]
    fn text_round_trip(steps in prop::collection::vec(any_step(), 0..5)) {
        let spec = PipelineSpec(steps);
        prop_assert_eq!(&spec.to_string().parse::<PipelineSpec>().unwrap(), &spec);
        let json = serde_json::to_string(&spec).unwrap();
        prop_assert_eq!(serde_json::from_str::<PipelineSpec>(&json).unwrap(), spec);
    }

    #[test]
    fn unit_norm_rows_have_length_1(x in any_data()) {
        let (_, out) = fit("unit-norm", &x, None);
        for i in 0..x.rows() {
            let zero = x.row(i).iter().all(|&v| v == 0.0);
            let expected = if zero { 0.0 } else { 1.0 };
            prop_assert!((rows::norm(out.row(i)) - expected).abs() < 1e-14);
        }
    }

    #[test]
    fn standardized_columns_have_mean_0_and_variance_1(x in any_data(), offset in -1e4..1e4f64) {
        let x = Matrix::from_fn(x.rows(), x.cols(), |i, j| x.get(i, j) + offset);
        let (_, out) = fit("standardize", &x, None);
        for j in 0..x.cols() {
            let column = |m: &Matrix<f64>| (0..m.rows()).map(|i| m.get(i, j)).collect::<Vec<_>>();
            let (before, after) = (column(&x), column(&out));
            let variance = after.iter().map(|v| v * v).sum::<f64>() / after.len() as f64;
            let constant = before.iter().all(|v| *v == before[0]);
            prop_assert!(rows::mean(&after).abs() < 1e-7);
            let expected = if constant { 0.0 } else { 1.0 };
            prop_assert!((variance - expected).abs() < 1e-7);
        }
    }

    #[test]
    fn a_row_does_not_depend_on_its_batch_nor_on_a_save(x in any_data()) {
        for text in ["standardize,fourier:transform=2d,min-max", "window,center,unit-norm,fourier"] {
            let (pipeline, all) = fit(text, &x, Some([1, 3, 4]));
            let json = serde_json::to_string(&pipeline).unwrap();
            let read: Pipeline = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(&read, &pipeline);
            prop_assert_eq!(read.spec().to_string(), text);
            prop_assert_eq!(read.n_features_out(), all.cols());
            for i in 0..x.rows() {
                let alone = read.transform(x.select_rows(&[i])).unwrap();
                prop_assert_eq!(alone.row(0), all.row(i));
            }
        }
    }
}
