//! Training on several ranks: from data to a model, checkpoints and errors.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::data::{Labelled, Labels, Stream};
use crate::linalg::{Csr, Points};
use crate::ranks::threads::on_ranks;
use crate::solve::{Flow, Silent};
use crate::system::TILE;

const METHODS: [Method; 7] = [
    Method::Mp,
    Method::Kaczmarz,
    Method::KaczmarzMp,
    Method::Nystrom,
    Method::Pcg,
    Method::GaussSeidel,
    Method::Centers,
];

fn value(i: usize, j: usize) -> f64 {
    (i % 3) as f64 + ((i * 37 + j * 101 + i * j) as f64 * 0.7311).sin()
}

/// Three classes; of sparse rows a third is zero.
fn stream(n: usize, sparse: bool) -> Stream<f64> {
    let x = Matrix::from_fn(n, 4, |i, j| match sparse && (i + j) % 3 == 0 {
        true => 0.0,
        false => value(i, j),
    });
    let rows: Arc<dyn Rows<f64>> = match sparse {
        true => Arc::new(Csr::from_dense(&x)),
        false => Arc::new(x),
    };
    let mut data = Labelled::new("waves".as_ref(), rows);
    data.labels = Some(Labels::from_text((0..n).map(|i| ["a", "b", "c"][i % 3])));
    data
}

fn data(n: usize, sparse: bool) -> StreamData<f64> {
    StreamData {
        train: stream(n, sparse),
        validation: None,
        test: Some(stream(23, false)),
    }
}

fn config(method: Method, n: usize) -> Config {
    Config {
        method: Some(method),
        iterations: Some(8),
        block_size: Some(match method {
            Method::GaussSeidel => TILE,
            _ => 20.min(n),
        }),
        rank: (method == Method::Pcg).then_some(40.min(n)),
        centers: (method == Method::Centers).then_some(30.min(n)),
        tolerance: Some(1e-10),
        threads: Some(1),
        memory: Some(crate::memory::Size(1 << 30)),
        ..Config::default()
    }
}

/// What the first of so many ranks ends with.
fn fitted(
    size: usize,
    config: &Config,
    data: impl Fn() -> StreamData<f64> + Sync,
) -> (Model<f64>, Report) {
    let all = on_ranks(size, |ranks| {
        let trainer = Trainer::new(config);
        let (model, report) = trainer.fit_on(&ranks, data(), &mut Silent).unwrap();
        assert_eq!(model.is_some(), ranks.is_first());
        (model, report)
    });
    let (model, report) = all.into_iter().next().unwrap();
    (model.unwrap().into_model().unwrap(), report)
}

/// The same rows, and weights that are as near as rounding allows.
fn near(found: &Model<f64>, expected: &Model<f64>, tolerance: f64, what: &str) {
    assert_eq!(found.outputs(), expected.outputs(), "{what}");
    let rows = |model: &Model<f64>| model.support().points().clone().into_dense();
    let off = |a: &[f64], b: &[f64]| {
        assert_eq!(a.len(), b.len(), "{what}");
        let largest = b.iter().fold(1.0, |m: f64, v| m.max(v.abs()));
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest
    };
    let apart = off(rows(found).values(), rows(expected).values());
    assert!(apart <= 1e-14, "{what}: rows {apart}");
    let apart = off(found.weights().values(), expected.weights().values());
    assert!(apart <= tolerance, "{what}: weights {apart}");
    let apart = off(found.bias(), expected.bias());
    assert!(apart <= tolerance, "{what}: bias {apart}");
}

#[test]
fn one_rank_of_one_gives_the_same_bits() {
    for method in METHODS {
        let config = config(method, 150);
        let (expected, _) = Trainer::new(&config)
            .fit(data(150, false), &mut Silent)
            .unwrap();
        let (found, report) = fitted(1, &config, || data(150, false));
        assert!(found.to_bytes().unwrap() == expected.to_bytes().unwrap());
        assert!(report.communicated.is_none());
    }
}

#[test]
fn the_model_does_not_depend_on_the_number_of_ranks() {
    for method in METHODS {
        // Fewer rows than ranks, and rows that do not come out even.
        for n in [3, 151] {
            let config = config(method, n);
            let trainer = Trainer::new(&config);
            let (expected, told) = trainer.fit(data(n, false), &mut Silent).unwrap();
            for size in 2..5 {
                let what = format!("{method} on {size} ranks, {n} rows");
                let (found, report) = fitted(size, &config, || data(n, false));
                near(&found, &expected, 1e-7, &what);
                let (own, then) = (report.test.unwrap(), told.test.as_ref().unwrap());
                assert_eq!(own.error_percent, then.error_percent, "{what}");
                assert_eq!(report.iterations, told.iterations, "{what}");
                let communicated = report.communicated.unwrap();
                assert_eq!(communicated.ranks, size);
                assert!(communicated.in_steps.total() > 0, "{what}");
            }
        }
    }
}

#[test]
fn rows_in_another_order_come_back_in_that_of_the_data() {
    // More than a tile: shares of several ranks, which are not runs of the data.
    let n = 2 * TILE + 77;
    for method in [Method::Pcg, Method::GaussSeidel] {
        let config = Config {
            iterations: Some(3),
            ..config(method, n)
        };
        let trainer = Trainer::new(&config);
        let (expected, _) = trainer.fit(data(n, false), &mut Silent).unwrap();
        for size in [2, 3] {
            let what = format!("{method} on {size} ranks");
            let (found, _) = fitted(size, &config, || data(n, false));
            near(&found, &expected, 1e-7, &what);
        }
    }
}

#[test]
fn what_is_learnt_from_columns_and_weights_is_learnt_from_all_rows() {
    let n = 97;
    for (preprocess, sparse) in [
        ("min-max", false),
        ("max-abs", true),
        ("max-abs,standardize", false),
        ("unit-norm", true),
    ] {
        let config = Config {
            preprocess: Some(preprocess.parse().unwrap()),
            class_weight: Some("a=2,c=0.5".parse().unwrap()),
            validation: Some(0.2),
            ..config(Method::Mp, n)
        };
        let trainer = Trainer::new(&config);
        let (expected, told) = trainer.fit(data(n, sparse), &mut Silent).unwrap();
        for size in [2, 3] {
            let (found, report) = fitted(size, &config, || data(n, sparse));
            near(&found, &expected, 1e-7, preprocess);
            assert_eq!(report.best_iteration, told.best_iteration);
            assert!(found.scaling().is_some());
        }
    }
}

#[test]
fn a_spread_model_is_saved_as_one_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    for sparse in [false, true] {
        let mut config = config(Method::Mp, 90);
        // Few steps leave rows without weights.
        config.iterations = Some(2);
        config.preprocess = Some("unit-norm".parse().unwrap());
        let path = folder.path().join(format!("{sparse}.lssvm"));
        let all = on_ranks(2, |ranks| {
            let train = || Trainer::new(&config).fit_on(&ranks, data(90, sparse), &mut Silent);
            if let Some(model) = train().unwrap().0 {
                assert!(matches!(model, Fitted::Spread(_)));
                let (rows, size) = (model.n_support(), model.size_bytes());
                model.save(&path).unwrap();
                assert!(rows < 90 && size > 0);
            }
            train().unwrap().0.map(|model| model.into_model().unwrap())
        });
        let expected = all[0].as_ref().unwrap().to_bytes().unwrap();
        assert!(
            std::fs::read(&path).unwrap() == expected,
            "sparse: {sparse}"
        );
    }
}

/// Asks to stop after so many iterations, on the first rank alone.
struct StopAfter(usize, bool);

impl Observer for StopAfter {
    fn iteration(&mut self, iteration: &Iteration) -> Flow {
        match self.1 && iteration.iteration >= self.0 {
            true => Flow::Stop,
            false => Flow::Continue,
        }
    }
}

impl Watcher for StopAfter {}

#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    let n = 130;
    for method in METHODS {
        let config = config(method, n);
        let trainer = Trainer::new(&config);
        let (expected, told) = trainer.fit(data(n, false), &mut Silent).unwrap();
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("run");
        let (before, after) = (2, 3);
        on_ranks(before, |ranks| {
            let checkpoints = Checkpoints {
                folder: folder.clone(),
                every: Duration::from_secs(3600),
                notes: serde_json::Value::Null,
            };
            let trainer = Trainer::new(&config).checkpoints(checkpoints);
            let mut watcher = StopAfter(3, ranks.is_first());
            let (_, report) = trainer
                .fit_on(&ranks, data(n, false), &mut watcher)
                .unwrap();
            // Some are at their end before.
            assert_eq!(report.iterations, told.iterations.min(3), "{method}");
            assert_eq!(report.checkpoints.is_some(), ranks.is_first());
        });
        let all = on_ranks(after, |ranks| {
            let found = Checkpoint::open_on(&ranks, &folder).unwrap();
            let trainer = Trainer::resume(found);
            let (model, report) = trainer.fit_on(&ranks, data(n, false), &mut Silent).unwrap();
            assert_eq!(report.iterations, told.iterations, "{method}");
            model.map(|model| model.into_model().unwrap())
        });
        near(
            all[0].as_ref().unwrap(),
            &expected,
            1e-7,
            &method.to_string(),
        );
    }
}

#[test]
fn a_warm_start_finds_its_rows_on_any_rank() {
    let n = 120;
    let first = config(Method::Mp, n);
    let (model, _) = Trainer::new(&first)
        .fit(data(n, false), &mut Silent)
        .unwrap();
    for method in [Method::Mp, Method::Pcg] {
        let again = Config {
            iterations: Some(2),
            ..Config::default()
        };
        let again = Config {
            method: Some(method),
            threads: Some(1),
            memory: first.memory,
            ..again
        };
        let start = |ranks: &Ranks| {
            let trainer = Trainer::new(&again).warm_start(&model);
            trainer
                .fit_on(ranks, data(n + 10, false), &mut Silent)
                .unwrap()
        };
        let (expected, told) = start(&Ranks::default());
        let expected = expected.unwrap().into_model().unwrap();
        let all = on_ranks(3, |ranks| {
            let (found, report) = start(&ranks);
            assert_eq!(report.warm_start, told.warm_start);
            assert_eq!(report.warm_start.unwrap().new, 10 + n - model.n_support());
            found.map(|found| found.into_model().unwrap())
        });
        near(
            all[0].as_ref().unwrap(),
            &expected,
            1e-7,
            &method.to_string(),
        );
    }
}

/// Rows of which one cannot be read.
struct Broken {
    rows: Matrix<f64>,
    bad: usize,
}

impl Rows<f64> for Broken {
    fn len(&self) -> usize {
        self.rows.rows()
    }

    fn n_features(&self) -> usize {
        self.rows.cols()
    }

    fn read(&self, rows: Range<usize>, out: &mut [f64]) -> Result<()> {
        if rows.contains(&self.bad) {
            let row = self.bad as u64 + 1;
            let place = crate::error::Place::Row(row);
            return Err(Error::file(Path::new("waves"), place, "is not finite"));
        }
        self.rows.read(rows, out)
    }
}

#[test]
fn a_bad_row_of_one_rank_is_an_error_of_all() {
    let n = 90;
    for method in METHODS {
        for bad in [0, n - 1] {
            let broken = || {
                let good = stream(n, false);
                let rows = good.features.load().unwrap();
                let features: Arc<dyn Rows<f64>> = Arc::new(Broken { rows, bad });
                StreamData {
                    train: good.with_features(features),
                    validation: None,
                    test: None,
                }
            };
            let said = on_ranks(3, |ranks| {
                let trainer = Trainer::new(&config(method, n));
                let result = trainer.fit_on(&ranks, broken(), &mut Silent);
                result.map(|_| ()).unwrap_err().to_string()
            });
            let expected = format!("waves, row {}: is not finite", bad + 1);
            assert!(said.iter().all(|s| s.ends_with(&expected)), "{said:?}");
            let named = format!("rank 2: {expected}");
            assert!(bad == 0 || said[0] == named, "{said:?}");
        }
    }
}

#[test]
fn what_one_rank_has_no_memory_for_nobody_begins() {
    let given = Config {
        memory: Some(crate::memory::Size(100_000_100)),
        ..config(Method::Mp, 500)
    };
    let said = on_ranks(2, |ranks| {
        let own = match ranks.rank() {
            // A budget of its own.
            1 => given.clone(),
            _ => config(Method::Mp, 500),
        };
        let trainer = Trainer::new(&own);
        let result = trainer.fit_on(&ranks, data(500, false), &mut Silent);
        result.map(|_| ()).unwrap_err().to_string()
    });
    assert_eq!(said[0], said[1]);
    assert!(said[0].contains("memory budget"), "{}", said[0]);
}

#[test]
fn methods_that_need_all_rows_in_one_place_are_refused() {
    let said = on_ranks(2, |ranks| {
        let config = Config {
            method: Some(Method::Exact),
            ..Config::default()
        };
        let trainer = Trainer::new(&config);
        let result = trainer.fit_on(&ranks, data(50, false), &mut Silent);
        result.map(|_| ()).unwrap_err().to_string()
    });
    assert!(said.iter().all(|said| said.contains("choose pcg")));
    // Unless one is chosen, it is one that can.
    let report = on_ranks(2, |ranks| {
        let config = Config {
            threads: Some(1),
            ..Config::default()
        };
        let trainer = Trainer::new(&config);
        trainer
            .fit_on(&ranks, data(50, false), &mut Silent)
            .unwrap()
            .1
    });
    assert_eq!(report[0].config.method, Method::Pcg);
}

#[test]
fn points_of_the_test_are_dense_and_sparse() {
    let points = |sparse| stream(9, sparse).features.into_points().unwrap();
    assert!(matches!(points(true), Points::Sparse(_)));
    assert!(matches!(points(false), Points::Dense(_)));
}
