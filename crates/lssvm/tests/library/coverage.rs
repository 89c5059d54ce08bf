//! Whether intervals and sets of classes hold the truth of new rows as often as asked, over
//! many data sets of known origin.
//!
//! With n rows to judge by, the coverage of one model is not the asked one: it is drawn from
//! Beta(k, n + 1 − k), k = ⌈(n + 1) · coverage⌉, whose mean is k / (n + 1), and what is held
//! of M new rows varies about it as a binomial share does. Both are in the errors that are
//! allowed here.

use lssvm::data::{Dataset, Labels};
use lssvm::linalg::Matrix;
use lssvm::metrics::{IntervalScores, SetScores};
use lssvm::model::{HeldOut, Model};
use lssvm::random::{below, rng};
use lssvm::solve::{Method, Silent, Truth};
use lssvm::train::{Config, Data, fit, truth};

const LEVELS: [f64; 4] = [0.5, 0.8, 0.9, 0.95];
const DATA_SETS: u64 = 40;
const NEW_ROWS: usize = 200;

/// Standard errors that the mean over the data sets may be off: one in 16,000 would be
/// further.
const MOST_ERRORS: f64 = 4.0;

/// Uniform and normal numbers of a seed.
struct Noise(u64, usize);

impl Noise {
    fn all(seed: u64, n: usize) -> Vec<f64> {
        let mut rng = rng(seed);
        let uniform = |_| (below(&mut rng, 1 << 53) as f64 + 0.5) / (1u64 << 53) as f64;
        (0..n).map(uniform).collect()
    }

    /// By the method of Box and Muller.
    fn normal(&self) -> impl Fn(usize) -> f64 + use<> {
        let uniform = Self::all(self.0, 2 * self.1);
        move |i| {
            (-2.0 * uniform[2 * i].ln()).sqrt() * (std::f64::consts::TAU * uniform[2 * i + 1]).cos()
        }
    }
}

/// A curved surface with noise, which is larger where the surface is higher.
fn surface(seed: u64, n: usize) -> Dataset<f64> {
    let x = Noise::all(2 * seed, 2 * n);
    let normal = Noise(2 * seed + 1, n).normal();
    let x = Matrix::from_fn(n, 2, |i, j| 4.0 * x[2 * i + j] - 2.0);
    let y = Matrix::from_fn(n, 1, |i, _| {
        let height = (2.0 * x.get(i, 0)).sin() + 0.5 * x.get(i, 1);
        height + (0.2 + 0.1 * x.get(i, 1).abs()) * normal(i)
    });
    let mut data = Dataset::new("surface".as_ref(), x);
    data.labels = Some(Labels::from_values(y).unwrap());
    data
}

/// Three clouds that overlap.
fn clouds(seed: u64, n: usize) -> Dataset<f64> {
    let normal = Noise(2 * seed, 2 * n).normal();
    let classes: Vec<usize> = Noise::all(2 * seed + 1, n)
        .iter()
        .map(|u| (3.0 * u) as usize)
        .collect();
    let centre = [[0.0, 0.0], [2.2, 0.0], [1.1, 2.0]];
    let x = Matrix::from_fn(n, 2, |i, j| centre[classes[i]][j] + normal(2 * i + j));
    let mut data = Dataset::new("clouds".as_ref(), x);
    let names = ["low", "right", "high"];
    data.labels = Some(Labels::from_text(classes.iter().map(|&k| names[k])));
    data
}

/// The share of new rows whose truth is held.
fn held(model: &Model<f64>, new: &Dataset<f64>, coverage: f64) -> f64 {
    let x = new.features.clone();
    match truth(new, model.outputs()).unwrap() {
        Truth::Classes(codes) => {
            let sets = model.predict_sets(x, coverage).unwrap();
            SetScores::new(coverage, &sets, &codes)
                .unwrap()
                .held
                .measured
        }
        Truth::Values(values) => {
            let intervals = model.predict_intervals(x, coverage).unwrap();
            let (lower, upper) = (&intervals.lower, &intervals.upper);
            let scores = IntervalScores::new(coverage, lower, upper, &values).unwrap();
            scores[0].held.measured
        }
    }
}

/// Checks the coverage of models, one for each data set, that judge by n rows.
#[expect(
    clippy::print_stdout,
    reason = "the numbers of docs/prediction.md, with --nocapture"
)]
fn check(
    what: &str,
    n: usize,
    from: HeldOut,
    data: fn(u64, usize) -> Dataset<f64>,
    train: fn(u64) -> Model<f64>,
) {
    let mut shares = [const { Vec::new() }; LEVELS.len()];
    for seed in 0..DATA_SETS {
        let model = train(seed);
        let conformal = model.conformal().unwrap();
        assert_eq!((conformal.rows(), conformal.from()), (n, from));
        let new = data(1_000_000 + seed, NEW_ROWS);
        for (shares, level) in shares.iter_mut().zip(LEVELS) {
            shares.push(held(&model, &new, level));
        }
    }
    for (shares, level) in shares.iter().zip(LEVELS) {
        let (rows, sets) = (n as f64, DATA_SETS as f64);
        let rank = ((rows + 1.0) * level).ceil();
        let expected = rank / (rows + 1.0);
        let product = expected * (1.0 - expected);
        let of_models = product / (rows + 2.0);
        let of_new_rows = (product - of_models) / NEW_ROWS as f64;
        let variance = of_models + of_new_rows;
        let mean = shares.iter().sum::<f64>() / sets;
        let errors = (mean - expected) / (variance / sets).sqrt();
        let spread = shares
            .iter()
            .map(|s| (s - expected).powi(2) / variance)
            .sum::<f64>()
            / sets;
        println!(
            "{what}, {level}: {mean:.4} of {expected:.4} expected, {errors:+.1} errors, spread \
             {spread:.2}"
        );
        assert!(errors.abs() < MOST_ERRORS, "{what}, {level}: {mean}");
        // χ² of 40 is outside of this once in 10,000.
        assert!((0.4..2.0).contains(&spread), "{what}, {level}: {spread}");
    }
}

fn trained(train: Dataset<f64>, validation: Option<Dataset<f64>>) -> Model<f64> {
    let config = Config {
        loo: Some(validation.is_none()),
        method: Some(Method::Exact),
        threads: Some(1),
        ..Config::default()
    };
    let data = Data {
        train,
        validation,
        test: None,
    };
    fit(data, &config, &mut Silent).unwrap().0
}

#[test]
fn intervals_by_rows_left_out_one_by_one() {
    let train = |seed| trained(surface(seed, 120), None);
    check("intervals", 120, HeldOut::LeaveOneOut, surface, train);
}

#[test]
fn intervals_by_validation_rows() {
    let train = |seed| trained(surface(seed, 120), Some(surface(500_000 + seed, 99)));
    check(
        "intervals by validation",
        99,
        HeldOut::Validation,
        surface,
        train,
    );
}

#[test]
fn sets_by_rows_left_out_one_by_one() {
    let train = |seed| trained(clouds(seed, 150), None);
    check("sets", 150, HeldOut::LeaveOneOut, clouds, train);
}

#[test]
fn sets_by_validation_rows() {
    let train = |seed| trained(clouds(seed, 150), Some(clouds(500_000 + seed, 99)));
    check("sets by validation", 99, HeldOut::Validation, clouds, train);
}

#[test]
fn too_few_rows_promise_nothing() {
    let new = surface(7, 5);
    let model = trained(surface(0, 30), None);
    let intervals = model.predict_intervals(new.features, 0.98).unwrap();
    assert!(
        intervals
            .lower
            .values()
            .iter()
            .all(|&v| v == f64::NEG_INFINITY)
    );
    assert!(intervals.upper.values().iter().all(|&v| v == f64::INFINITY));
    let model = trained(clouds(0, 30), None);
    let sets = model.predict_sets(clouds(7, 5).features, 0.98).unwrap();
    for mut set in sets {
        set.sort_unstable();
        assert_eq!(set, [0, 1, 2]);
    }
}

#[test]
fn weights_of_rows_change_no_promise() {
    // Rows of little weight are badly fitted, and as far off as they are.
    let train = |seed| {
        let mut data = surface(seed, 120);
        data.weights = Some((0..120).map(|i| [0.05, 1.0, 3.0][i % 3]).collect());
        trained(data, None)
    };
    check(
        "intervals with weights",
        120,
        HeldOut::LeaveOneOut,
        surface,
        train,
    );
}

#[test]
fn a_set_has_the_most_probable_classes_first() {
    let model = trained(clouds(3, 150), None);
    let x = clouds(4, 100).features;
    let p = model.predict_probabilities(x.clone()).unwrap();
    let largest = model.largest_misfit(0.95).unwrap();
    let sets = model.predict_sets(x, 0.95).unwrap();
    for (i, set) in sets.iter().enumerate() {
        let p = p.row(i);
        assert!(set.is_sorted_by(|&a, &b| p[a as usize] >= p[b as usize]));
        for k in 0..3 {
            assert_eq!(set.contains(&k), 1.0 - p[k as usize] <= largest);
        }
    }
}
