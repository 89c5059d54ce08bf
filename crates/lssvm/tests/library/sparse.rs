//! Rows of mostly zeros: they stay sparse from the file to the prediction, and all comes out
//! as if they were dense.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lssvm::data::{Labelled, ReadOptions, Stream, open};
use lssvm::kernel::KernelName;
use lssvm::linalg::{Matrix, Points};
use lssvm::memory::Size;
use lssvm::model::{AnyModel, Model};
use lssvm::solve::{Method, Silent};
use lssvm::train::{Checkpoint, Checkpoints, Config, Report, StreamData, Trainer};

/// Words of two kinds of texts: each row has some of `words` words, and the class has its
/// own among them.
fn texts(rows: std::ops::Range<usize>, words: usize) -> String {
    let mut text = String::new();
    for i in rows {
        let class = i % 2;
        let mut columns: Vec<usize> = (0..6)
            .map(|k| match k {
                0..3 => (i * (7 + k) + k * 13) % (words / 4) + class * words / 4,
                _ => (i * (5 + 2 * k) + k * 31) % words,
            })
            .collect();
        columns.sort_unstable();
        columns.dedup();
        write!(text, "{}", ["sport", "music"][class]).unwrap();
        for column in columns {
            write!(text, " {}:{}", column + 1, 1 + (i + column) % 3).unwrap();
        }
        text.push('\n');
    }
    text
}

/// Training and test rows from a folder of two files.
fn written(folder: &Path, words: usize) -> StreamData<f64> {
    std::fs::write(folder.join("train.svm"), texts(0..240, words)).unwrap();
    std::fs::write(folder.join("test.svm"), texts(240..300, words)).unwrap();
    let parts = open::<f64>(folder, &ReadOptions::default()).unwrap();
    StreamData {
        train: parts.train,
        validation: None,
        test: parts.test,
    }
}

/// The same rows with all their zeros.
fn dense(data: &StreamData<f64>) -> StreamData<f64> {
    let part = |part: &Stream<f64>| -> Stream<f64> {
        let about: Labelled<()> = part.clone().with_features(());
        about.with_features(Arc::new(part.features.load().unwrap()))
    };
    StreamData {
        train: part(&data.train),
        validation: None,
        test: data.test.as_ref().map(part),
    }
}

fn fit(data: StreamData<f64>, config: &Config) -> lssvm::Result<(Model<f64>, Report)> {
    Trainer::new(config).fit(data, &mut Silent)
}

fn scores(model: &Model<f64>, rows: &Stream<f64>) -> Matrix<f64> {
    let all = 0..rows.n_samples();
    model.scores_of_rows(&*rows.features, all).unwrap()
}

fn greatest_difference(a: &Matrix<f64>, b: &Matrix<f64>) -> f64 {
    let pairs = a.values().iter().zip(b.values());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn every_method_gives_the_scores_of_dense_rows() {
    let folder = tempfile::tempdir().unwrap();
    for method in [
        Method::Exact,
        Method::Pcg,
        Method::GaussSeidel,
        Method::Centers,
        Method::Mp,
        Method::Kaczmarz,
        Method::KaczmarzMp,
        Method::Nystrom,
    ] {
        for kernel in [KernelName::Rbf, KernelName::Laplacian, KernelName::Poly] {
            let data = written(folder.path(), 200);
            assert!(data.train.features.kept_values().is_some());
            let config = Config {
                method: Some(method),
                kernel: Some(kernel),
                preprocess: Some("max-abs,unit-norm".parse().unwrap()),
                gamma: Some("0.7".parse().unwrap()),
                centers: (method == Method::Centers).then_some(90),
                tolerance: Some(1e-12),
                // Conjugate gradients go apart by rounding when they go on after the end.
                iterations: (method == Method::Centers).then_some(12),
                ..Config::default()
            };
            let test = data.test.clone().unwrap();
            let plain = dense(&data);
            let (sparse, report) = fit(data, &config).unwrap();
            let (full, _) = fit(plain, &config).unwrap();
            assert!(sparse.support().points().is_sparse());
            assert!(!full.support().points().is_sparse());
            let difference = greatest_difference(&scores(&sparse, &test), &scores(&full, &test));
            assert!(difference < 1e-6, "{method} {kernel}: {difference}");
            assert!(
                report.test.unwrap().error_percent.unwrap() < 20.0,
                "{method} {kernel}"
            );
        }
    }
}

#[test]
fn defaults_keep_rows_sparse_and_columns_beyond_memory() {
    let folder = tempfile::tempdir().unwrap();
    // Dense they would take 2 GB.
    let data = written(folder.path(), 4_000_000);
    let test = data.test.clone().unwrap();
    let config = Config {
        memory: Some(Size(300_000_000)),
        ..Config::default()
    };
    let (model, report) = fit(data, &config).unwrap();
    assert_eq!(model.pipeline().spec().to_string(), "unit-norm");
    assert!(model.size_bytes() < 100_000, "{}", model.size_bytes());
    assert!(report.test.unwrap().error_percent.unwrap() < 60.0);

    // Another step would need all zeros.
    let config = Config {
        preprocess: Some("standardize".parse().unwrap()),
        method: Some(Method::Exact),
        ..config
    };
    let error = fit(written(folder.path(), 4_000_000), &config);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("exact on 240 rows of"), "{error}");
    assert!(error.contains("keep them sparse"), "{error}");

    // All bits come back.
    let path = folder.path().join("m.lssvm");
    model.save(&path).unwrap();
    let AnyModel::F64(loaded) = AnyModel::load(&path).unwrap() else {
        panic!("it was saved in f64")
    };
    let Points::Sparse(rows) = loaded.support().points() else {
        panic!("it was saved sparse")
    };
    assert!(rows.cols() > 1_000_000);
    assert_eq!(scores(&model, &test), scores(&loaded, &test));
    assert_eq!(model.to_bytes().unwrap(), loaded.to_bytes().unwrap());
}

#[test]
fn every_damaged_byte_of_a_sparse_model_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (model, _) = fit(written(folder.path(), 400), &Config::default()).unwrap();
    let bytes = model.to_bytes().unwrap();
    assert!(AnyModel::from_bytes(&bytes).is_ok());
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for at in (8 + length..bytes.len()).step_by(37) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(AnyModel::from_bytes(&damaged).is_err(), "byte {at}");
    }
}

#[test]
fn sparse_runs_are_resumed_and_begun_at_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let config = Config {
        method: Some(Method::Mp),
        block_size: Some(50),
        iterations: Some(8),
        // Lengths of rows are summed in another order where they are sparse.
        preprocess: Some("max-abs".parse().unwrap()),
        ..Config::default()
    };
    let checkpoints = Checkpoints {
        folder: kept.clone(),
        every: Duration::ZERO,
        notes: serde_json::Value::Null,
    };
    let data = || written(folder.path(), 300);
    let trainer = Trainer::new(&config).checkpoints(checkpoints);
    let (model, _) = trainer.fit(data(), &mut Silent).unwrap();
    let found = Checkpoint::open(&kept).unwrap();
    let (again, _) = Trainer::resume(found).fit(data(), &mut Silent).unwrap();
    assert_eq!(model.to_bytes().unwrap(), again.to_bytes().unwrap());
    // Whether the rows are sparse or not.
    for data in [data(), dense(&data())] {
        let begun = Trainer::new(&config).warm_start(&model);
        let (_, report) = begun.fit(data, &mut Silent).unwrap();
        let rows = report.warm_start.unwrap();
        assert_eq!((rows.known, rows.gone), (model.n_support(), 0));
    }
}
