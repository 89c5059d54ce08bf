//! Leave-one-out errors that are estimated, beside those of the closed form.

use lssvm::Error;
use lssvm::data::{Dataset, Labels};
use lssvm::linalg::Matrix;
use lssvm::random::{below, rng};
use lssvm::solve::{Flow, Iteration, Method, Observer, Silent};
use lssvm::train::{ClassWeight, Config, Data, Evaluation, Report, Watcher, fit};

const ROWS: usize = 1_300;
const SEEDS: u64 = 20;

/// Sums of uniform numbers, nearly normal.
fn normal(seed: u64, n: usize) -> Vec<f64> {
    let mut rng = rng(seed);
    let mut uniform = || below(&mut rng, 1 << 30) as f64 / f64::from(1u32 << 30) - 0.5;
    (0..n).map(|_| (0..12).map(|_| uniform()).sum()).collect()
}

/// Three clouds that overlap, in five dimensions.
fn clouds() -> Dataset<f64> {
    let noise = normal(1, 5 * ROWS);
    let x = Matrix::from_fn(ROWS, 5, |i, j| {
        noise[5 * i + j] + if i % 3 == j { 1.8 } else { 0.0 }
    });
    let mut data = Dataset::new("clouds".as_ref(), x);
    data.labels = Some(Labels::from_text((0..ROWS).map(|i| ["a", "b", "c"][i % 3])));
    data
}

/// A curved surface with noise, of which some is large.
fn surface() -> Dataset<f64> {
    let noise = normal(2, 4 * ROWS);
    let x = Matrix::from_fn(ROWS, 3, |i, j| noise[3 * i + j]);
    let y = Matrix::from_fn(ROWS, 1, |i, _| {
        let scale = if i % 50 == 0 { 2.0 } else { 0.3 };
        (2.0 * x.get(i, 0)).sin() + x.get(i, 1) * x.get(i, 2) + scale * noise[3 * ROWS + i]
    });
    let mut data = Dataset::new("surface".as_ref(), x);
    data.labels = Some(Labels::from_values(y).unwrap());
    data
}

fn settings(method: Method, seed: u64) -> Config {
    Config {
        method: Some(method),
        loo: Some(true),
        seed: Some(seed),
        c: Some(20.0),
        ..Config::default()
    }
}

fn trained(train: Dataset<f64>, config: &Config) -> Report {
    let data = Data {
        train,
        validation: None,
        test: None,
    };
    fit(data, config, &mut Silent).unwrap().1
}

fn left_out(data: &Dataset<f64>, config: &Config) -> Evaluation {
    let report = trained(data.clone(), config);
    report.leave_one_out.expect("they were asked for")
}

/// Whether the exact error is within two stated standard errors as often as it should be, and
/// these are not larger than they must be.
fn check(data: &Dataset<f64>, change: impl Fn(&mut Config)) {
    let settings = |method, seed| {
        let mut config = settings(method, seed);
        change(&mut config);
        config
    };
    let exact = left_out(data, &settings(Method::Exact, 0));
    assert!(exact.estimate.is_none());
    let (mut within, mut squares) = (0, 0.0);
    for seed in 0..SEEDS {
        let found = left_out(data, &settings(Method::Pcg, seed));
        let estimate = found.estimate.unwrap();
        assert!(estimate.standard_error > 0.0);
        let off = (found.error().0 - exact.error().0) / estimate.standard_error;
        within += usize::from(off.abs() <= 2.0);
        squares += off * off / SEEDS as f64;
        // The rows are in the order of the data.
        let pairs = found.scores.values().iter().zip(exact.scores.values());
        let far = pairs.filter(|(a, b)| (*a - *b).abs() > 0.3).count();
        assert!(far < ROWS / 50, "{far} scores are far off");
    }
    // 95 of 100; of 20, fewer than 16 once in 400.
    assert!(
        within >= 16,
        "{within} of {SEEDS} within two standard errors"
    );
    assert!(squares > 0.1, "stated errors are far too large: {squares}");
}

#[test]
fn errors_of_classes_are_within_what_is_stated() {
    check(&clouds(), |_| ());
}

#[test]
fn errors_of_weighted_classes_are_within_what_is_stated() {
    check(&clouds(), |config| {
        let weights = [("a", 3.0), ("b", 1.0), ("c", 0.5)];
        let weights = weights.map(|(name, weight)| (name.to_string(), weight));
        config.class_weight = Some(ClassWeight::Named(weights.into_iter().collect()));
    });
}

#[test]
fn errors_of_values_are_within_what_is_stated() {
    check(&surface(), |_| ());
}

#[test]
fn few_rows_have_exact_errors() {
    let data = clouds().head(60);
    let tight = Config {
        tolerance: Some(1e-9),
        ..settings(Method::Pcg, 1)
    };
    let found = left_out(&data, &tight);
    let exact = left_out(&data, &settings(Method::Exact, 1));
    assert!(found.estimate.is_none());
    assert_eq!(found.error_percent, exact.error_percent);
}

#[test]
fn probabilities_are_calibrated_as_by_exact_scores() {
    let exact = trained(clouds(), &settings(Method::Exact, 1));
    let found = trained(clouds(), &settings(Method::Pcg, 1));
    let (exact, found) = (exact.scaling.unwrap(), found.scaling.unwrap());
    assert!((found.slope / exact.slope - 1.0).abs() < 0.03);
}

/// Asks to stop when leave-one-out scores are begun.
struct Hasty;

impl Observer for Hasty {
    fn iteration(&mut self, _: &Iteration) -> Flow {
        Flow::Continue
    }

    fn leaving_out(&mut self, _: f64) -> Flow {
        Flow::Stop
    }
}

impl Watcher for Hasty {}

#[test]
fn a_model_does_without_them_if_somebody_asks_to_stop() {
    let data = || Data {
        train: clouds(),
        validation: None,
        test: None,
    };
    let config = settings(Method::Pcg, 1);
    let (model, report) = fit(data(), &config, &mut Hasty).unwrap();
    assert!(report.leave_one_out.is_none() && report.tolerance_met);
    assert_eq!(report.leave_one_out_missing.unwrap(), "it was interrupted");
    let plain = Config {
        loo: None,
        ..config
    };
    let (other, report) = fit(data(), &plain, &mut Silent).unwrap();
    assert_eq!(report.leave_one_out_missing, None);
    let x = clouds().features;
    assert_eq!(
        model.decision_function(x.clone()).unwrap(),
        other.decision_function(x).unwrap()
    );
}

#[test]
fn weights_that_are_no_solution_have_none() {
    let config = Config {
        iterations: Some(1),
        ..settings(Method::Pcg, 1)
    };
    let report = trained(clouds(), &config);
    assert!(report.leave_one_out.is_none());
    let why = report.leave_one_out_missing.unwrap();
    assert!(
        why.contains("residual") && why.contains("--iterations"),
        "{why}"
    );
}

#[test]
fn what_contradicts_them_is_refused() {
    let refused = |config: Config| {
        let data = Data {
            train: clouds(),
            validation: None,
            test: None,
        };
        match fit(data, &config, &mut Silent) {
            Err(Error::Parameter { requirement, .. }) => requirement,
            other => panic!("{:?}", other.map(|(_, report)| report.stopped)),
        }
    };
    let validated = Config {
        validation: Some(0.2),
        ..settings(Method::Pcg, 1)
    };
    assert!(refused(validated).contains("choose the iteration"));
    let averaged = Config {
        averages: Some(2),
        ..settings(Method::Pcg, 1)
    };
    assert!(refused(averaged).contains("one run"));
    let other = refused(settings(Method::Mp, 1));
    assert!(other.contains("exact or pcg") && other.contains("--validation"));
}
