//! Runs that are interrupted and gone on with, and runs that begin at a model.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lssvm::data::{Dataset, Labels};
use lssvm::linalg::Matrix;
use lssvm::model::{AnyModel, Model};
use lssvm::random;
use lssvm::solve::centers::Select;
use lssvm::solve::{Checkpointed, Flow, Iteration, Method, Observer, Silent, Stopped};
use lssvm::train::{Checkpoint, Checkpoints, Config, Data, Trainer, Watcher, fit};
use serde_json::json;

/// Three classes of rows around their centres.
fn clouds(rows: std::ops::Range<usize>) -> Dataset<f32> {
    let start = rows.start;
    let x = Matrix::from_fn(rows.len(), 3, |i, j| {
        let i = i + start;
        (i % 3) as f32 * (j as f32 - 0.7) + 2.0 * ((i * 7 + j * 3) as f32).sin()
    });
    let mut data = Dataset::new("clouds".as_ref(), x);
    data.labels = Some(Labels::from_text(rows.map(|i| ["a", "b", "c"][i % 3])));
    data
}

fn data() -> Data<f32> {
    let mut train = clouds(0..240);
    train.weights = Some((0..240).map(|i| 1.0 + (i % 4) as f64).collect());
    Data {
        train,
        validation: None,
        test: Some(clouds(240..300)),
    }
}

fn config(method: Method) -> Config {
    Config {
        method: Some(method),
        block_size: Some(40),
        iterations: Some(match method {
            Method::Exact => 1,
            _ => 9,
        }),
        tolerance: Some(1e-9),
        validation: Some(0.2),
        patience: Some(100),
        averages: (method == Method::Mp).then_some(3),
        threads: Some(2),
        ..Config::default()
    }
}

fn checkpoints(folder: &Path) -> Checkpoints {
    Checkpoints {
        folder: folder.to_path_buf(),
        every: Duration::from_secs(3600),
        notes: json!("mine"),
    }
}

/// Asks to stop after so many iterations of this process.
struct StopAfter(usize);

impl Observer for StopAfter {
    fn iteration(&mut self, _: &Iteration) -> Flow {
        self.0 -= 1;
        match self.0 {
            0 => Flow::Stop,
            _ => Flow::Continue,
        }
    }
}

impl Watcher for StopAfter {}

/// A folder with a run that was stopped after two iterations.
fn stopped(folder: &Path, method: Method) {
    let trainer = Trainer::new(&config(method)).checkpoints(checkpoints(folder));
    let (_, report) = trainer.fit(data(), &mut StopAfter(2)).unwrap();
    assert_eq!(report.checkpoints.unwrap().iteration, 2);
}

fn refused(result: lssvm::Result<(Model<f32>, lssvm::train::Report)>, parts: &[&str]) {
    let said = result
        .map(drop)
        .expect_err("it must be refused")
        .to_string();
    for part in parts {
        assert!(said.contains(part), "'{part}' in {said}");
    }
}

#[test]
fn an_interrupted_run_ends_with_the_same_model() {
    for method in Method::ALL {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("runs/first");
        let (whole, report) = fit(data(), &config(method), &mut Silent).unwrap();
        let trainer = Trainer::new(&config(method)).checkpoints(checkpoints(&folder));
        let (mut model, mut last) = trainer.fit(data(), &mut StopAfter(3)).unwrap();
        for _ in 0..5 {
            let found = Checkpoint::open(&folder).unwrap();
            assert_eq!(found.notes(), &json!("mine"));
            assert_eq!(found.config(), &config(method));
            // Exact has one iteration, which is done again.
            let made = if method == Method::Exact {
                0
            } else {
                last.iterations
            };
            assert_eq!(found.iterations(), made, "{method}");
            (model, last) = Trainer::resume(found)
                .fit(data(), &mut StopAfter(2))
                .unwrap();
        }
        assert_ne!(last.stopped, Stopped::Interrupted, "{method}");
        assert_eq!(last.iterations, report.iterations, "{method}");
        assert_eq!(
            model.to_bytes().unwrap(),
            whole.to_bytes().unwrap(),
            "{method}"
        );
        Checkpoint::remove(&folder).unwrap();
        assert!(!folder.exists());
    }
}

#[test]
fn seconds_of_earlier_processes_count() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let slow = Config {
        time: Some(0.3),
        iterations: Some(100_000_000),
        tolerance: Some(0.0),
        follow: Some(0),
        ..config(Method::Mp)
    };
    struct Slow(usize);
    impl Observer for Slow {
        fn iteration(&mut self, iteration: &Iteration) -> Flow {
            self.0 = iteration.iteration;
            match iteration.seconds > 0.2 {
                true => Flow::Stop,
                false => Flow::Continue,
            }
        }
    }
    impl Watcher for Slow {}
    let trainer = Trainer::new(&slow).checkpoints(checkpoints(&folder));
    let (_, first) = trainer.fit(data(), &mut Slow(0)).unwrap();
    assert_eq!(first.stopped, Stopped::Interrupted);
    let found = Checkpoint::open(&folder).unwrap();
    let (_, second) = Trainer::resume(found).fit(data(), &mut Silent).unwrap();
    assert_eq!(second.stopped, Stopped::Time);
    assert!(second.seconds >= 0.3, "{}", second.seconds);
    let seconds: Vec<f64> = second.history.iter().map(|line| line.seconds).collect();
    assert!(seconds.is_sorted());
    assert!(seconds[first.iterations] > 0.2);
}

#[test]
fn other_data_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    stopped(&folder, Method::Mp);
    let resume = |data: Data<f32>| {
        let found = Checkpoint::open(&folder).unwrap();
        Trainer::resume(found).fit(data, &mut Silent)
    };
    let mut other = data();
    other.train.features.set(17, 1, 0.123);
    refused(resume(other), &["clouds", "the features", "same data"]);
    let mut other = data();
    other.train.labels = Some(Labels::from_text((0..240).map(|i| ["a", "c", "b"][i % 3])));
    refused(resume(other), &["the labels"]);
    let mut other = data();
    other.train.weights.as_mut().unwrap()[5] = 7.0;
    refused(resume(other), &["the weights"]);
    let mut other = data();
    other.test = Some(clouds(241..301));
    refused(resume(other), &["the test rows"]);
    let mut other = data();
    other.train = other.train.head(200);
    refused(resume(other), &["are not those"]);
    assert!(resume(data()).is_ok());
}

#[test]
fn other_settings_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    stopped(&folder, Method::Mp);
    let found = Checkpoint::open(&folder).unwrap();
    let same = Config {
        // As it was given, and as it was decided.
        seed: Some(1),
        c: Some(10.0),
        ..config(Method::Mp)
    };
    found.expect_same(&same).unwrap();
    found.expect_same(&Config::default()).unwrap();
    for (other, part) in [
        (
            Config {
                c: Some(11.0),
                ..Config::default()
            },
            "c = 11.0 was given, and the run was begun with 10.0",
        ),
        (
            Config {
                threads: Some(3),
                ..Config::default()
            },
            "threads = 3",
        ),
        (
            Config {
                time: Some(3.0),
                ..Config::default()
            },
            "without it",
        ),
    ] {
        let said = found.expect_same(&other).unwrap_err().to_string();
        assert!(said.contains(part), "'{part}' in {said}");
    }
}

#[test]
fn folders_are_kept_apart() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let said = |folder: &Path| Checkpoint::open(folder).unwrap_err().to_string();
    assert!(said(&folder).contains("is no folder"));
    fs::create_dir(&folder).unwrap();
    assert!(said(&folder).contains("holds no checkpoint"));
    stopped(&folder, Method::Mp);
    // A new run would lose what is there.
    let trainer = Trainer::new(&config(Method::Mp)).checkpoints(checkpoints(&folder));
    refused(trainer.fit(data(), &mut Silent), &["--resume", "not ended"]);
    let found = Checkpoint::open(&folder).unwrap();
    assert!(said(&folder).contains("in use by another"));
    drop(found);
    // What a process that was killed was writing goes away.
    let unfinished = folder.join(".checkpoint.tmp-1-2");
    fs::write(&unfinished, "half").unwrap();
    Checkpoint::open(&folder).unwrap();
    assert!(!unfinished.exists());
    // A file in the place of the folder.
    let trainer = Trainer::new(&config(Method::Mp)).checkpoints(checkpoints(&folder.join("lock")));
    refused(trainer.fit(data(), &mut Silent), &["make the folder"]);
}

/// Takes the folder away after the third checkpoint, and gives it back after the sixth.
struct Vandal {
    folder: PathBuf,
    told: Vec<Checkpointed>,
}

impl Vandal {
    fn away(&self) -> PathBuf {
        self.folder.with_extension("away")
    }
}

impl Observer for Vandal {
    fn checkpoint(&mut self, told: &Checkpointed) {
        self.told.push(told.clone());
        match self.told.len() {
            3 => {
                fs::rename(&self.folder, self.away()).unwrap();
                // Not even root can write below a file.
                fs::write(&self.folder, "").unwrap();
            }
            6 => {
                fs::remove_file(&self.folder).unwrap();
                fs::rename(self.away(), &self.folder).unwrap();
            }
            _ => {}
        }
    }
}

impl Watcher for Vandal {}

#[test]
fn a_failure_to_write_is_told_and_the_last_good_checkpoint_stays() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let often = Checkpoints {
        every: Duration::ZERO,
        ..checkpoints(&folder)
    };
    let mut vandal = Vandal {
        folder: folder.clone(),
        told: Vec::new(),
    };
    let trainer = Trainer::new(&config(Method::Mp)).checkpoints(often);
    let (model, report) = trainer.fit(data(), &mut vandal).unwrap();
    let iterations: Vec<_> = vandal.told.iter().map(|told| told.iteration).collect();
    assert_eq!(iterations, [1, 2, 3, 3, 3, 3, 7, 8]);
    let failed: Vec<_> = vandal
        .told
        .iter()
        .map(|told| told.problem.is_some())
        .collect();
    assert_eq!(
        failed,
        [false, false, false, true, true, true, false, false]
    );
    let end = report.checkpoints.unwrap();
    assert_eq!((end.written, end.failed, end.problem), (5, 3, None));
    // What is there is good.
    let found = Checkpoint::open(&folder).unwrap();
    let (again, _) = Trainer::resume(found).fit(data(), &mut Silent).unwrap();
    assert_eq!(again.to_bytes().unwrap(), model.to_bytes().unwrap());
}

#[test]
fn a_thousand_flipped_bits_are_found() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    stopped(&folder, Method::KaczmarzMp);
    let file = folder.join("checkpoint");
    let good = fs::read(&file).unwrap();
    let (model, _) = fit(data(), &config(Method::Mp), &mut Silent).unwrap();
    let model = model.to_bytes().unwrap();
    let mut rng = random::rng(20);
    for _ in 0..1000 {
        let mut flip = |bytes: &[u8]| {
            let (mut bytes, bit) = (bytes.to_vec(), random::below(&mut rng, 8 * bytes.len()));
            bytes[bit / 8] ^= 1 << (bit % 8);
            (bytes, bit)
        };
        let (bytes, bit) = flip(&good);
        fs::write(&file, bytes).unwrap();
        assert!(Checkpoint::open(&folder).is_err(), "bit {bit}");
        let (bytes, bit) = flip(&model);
        assert!(AnyModel::from_bytes(&bytes).is_err(), "bit {bit}");
    }
    fs::write(&file, &good[..good.len() / 2]).unwrap();
    let said = Checkpoint::open(&folder).unwrap_err().to_string();
    assert!(said.contains("damaged or cut short"), "{said}");
    fs::write(&file, good).unwrap();
    assert!(Checkpoint::open(&folder).is_ok());
    assert!(AnyModel::from_bytes(&model).is_ok());
}

fn plain(rows: std::ops::Range<usize>) -> Data<f32> {
    Data {
        train: clouds(rows),
        validation: None,
        test: None,
    }
}

fn long(method: Method, c: f64) -> Config {
    Config {
        method: Some(method),
        c: Some(c),
        block_size: Some(50),
        iterations: Some(4000),
        tolerance: Some(1e-4),
        threads: Some(2),
        ..Config::default()
    }
}

#[test]
fn centres_go_on_from_a_model() {
    let config = |c: f64, iterations: usize| Config {
        centers: Some(60),
        iterations: Some(iterations),
        ..long(Method::Centers, c)
    };
    let (model, _) = fit(plain(0..200), &config(10.0, 8), &mut Silent).unwrap();
    let (_, cold) = fit(plain(0..200), &config(12.0, 1), &mut Silent).unwrap();
    let (_, warm) = Trainer::new(&config(12.0, 1))
        .warm_start(&model)
        .fit(plain(0..200), &mut Silent)
        .unwrap();
    let rows = warm.warm_start.unwrap();
    assert_eq!((rows.known, rows.new, rows.gone), (60, 0, 0));
    let [cold, warm] = [cold, warm].map(|report| report.relative_residual.unwrap());
    assert!(warm < 0.3 * cold, "{warm} and {cold}");
}

/// The centres of a model stay, whatever the seed, where they are among the rows; others
/// take the place of those that are not, or come to them.
#[test]
fn centres_of_a_model_stay() {
    let config = |centers: usize, seed: u64, select: Select| Config {
        centers: Some(centers),
        iterations: Some(5),
        seed: Some(seed),
        select: Some(select),
        ..long(Method::Centers, 10.0)
    };
    for select in [Select::Uniform, Select::Pivoted] {
        let (model, before) = fit(plain(0..200), &config(60, 1, select), &mut Silent).unwrap();
        for (rows, count) in [(0..200, 60), (0..200, 90), (0..200, 20), (50..250, 60)] {
            let (_, warm) = Trainer::new(&config(count, 2, select))
                .warm_start(&model)
                .fit(plain(rows.clone()), &mut Silent)
                .unwrap();
            let there = before.support.iter().filter(|row| rows.contains(row));
            let known = there.count().min(count);
            let told = warm.warm_start.unwrap();
            let expected = (known, count - known, 60 - known);
            assert_eq!((told.known, told.new, told.gone), expected);
            let mut support = warm.support;
            support.dedup();
            assert_eq!(support.len(), count);
        }
    }
}

#[test]
fn a_run_with_chosen_centres_can_be_gone_on_with() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let config = Config {
        centers: Some(25),
        select: Some(Select::Pivoted),
        ..config(Method::Centers)
    };
    let (whole, report) = fit(data(), &config, &mut Silent).unwrap();
    let uniform = Config {
        select: None,
        ..config.clone()
    };
    let (_, other) = fit(data(), &uniform, &mut Silent).unwrap();
    assert_ne!(report.support, other.support);
    let trainer = Trainer::new(&config).checkpoints(checkpoints(&folder));
    trainer.fit(data(), &mut StopAfter(3)).unwrap();
    let found = Checkpoint::open(&folder).unwrap();
    let (again, _) = Trainer::resume(found).fit(data(), &mut Silent).unwrap();
    assert_eq!(again.to_bytes().unwrap(), whole.to_bytes().unwrap());
}

#[test]
fn training_goes_on_from_a_model() {
    // Centres are another system: see below.
    let methods = Method::ALL.into_iter();
    let methods = methods.filter(|m| m.takes_start() && *m != Method::Centers);
    for method in methods {
        let finer = Config {
            tolerance: Some(1e-5),
            ..long(method, 10.0)
        };
        let (model, _) = fit(plain(0..200), &finer, &mut Silent).unwrap();
        let warm = |rows, config: &Config| {
            let trainer = Trainer::new(config).warm_start(&model);
            trainer.fit(plain(rows), &mut Silent).unwrap()
        };
        let (same, report) = warm(0..200, &long(method, 10.0));
        assert_eq!(report.iterations, 1, "{method}");
        assert_eq!(report.stopped, Stopped::Tolerance, "{method}");
        assert_eq!(same.n_support(), 200);
        // Other rows: 20 are new, 10 are gone. Preprocessing is the model's.
        let (grown, report) = warm(10..220, &long(method, 12.0));
        let rows = report.warm_start.unwrap();
        assert_eq!((rows.known, rows.new, rows.gone), (190, 20, 10), "{method}");
        assert_eq!(grown.pipeline(), model.pipeline());
        assert_eq!(grown.kernel(), model.kernel());
        // Against an exact solution with the same preprocessing and kernel.
        let x = model
            .pipeline()
            .transform(clouds(10..220).features)
            .unwrap();
        let mut transformed = plain(10..220);
        transformed.train.features = x;
        let lssvm::kernel::Kernel::Rbf { gamma } = *model.kernel() else {
            panic!("a table gets a Gaussian kernel");
        };
        let exact = Config {
            preprocess: Some(Default::default()),
            gamma: Some(lssvm::kernel::Gamma::Value(gamma)),
            ..long(Method::Exact, 12.0)
        };
        let (exact, _) = fit(transformed, &exact, &mut Silent).unwrap();
        let scores = grown.decision_function(clouds(300..350).features).unwrap();
        let x = model
            .pipeline()
            .transform(clouds(300..350).features)
            .unwrap();
        let expected = exact.decision_function(x).unwrap();
        let pairs = scores.values().iter().zip(expected.values());
        let largest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(largest < 0.02, "{method}: {largest}");
    }
}

#[test]
fn a_warm_start_saves_iterations_on_data() {
    let (model, _) = fit(plain(0..1500), &long(Method::Mp, 1.0), &mut Silent).unwrap();
    for method in [Method::Mp, Method::Kaczmarz, Method::KaczmarzMp] {
        for (rows, c) in [(0..1500, 1.2), (0..1650, 1.0)] {
            let config = Config {
                block_size: Some(150),
                tolerance: Some(1e-3),
                ..long(method, c)
            };
            let (_, cold) = fit(plain(rows.clone()), &config, &mut Silent).unwrap();
            let trainer = Trainer::new(&config).warm_start(&model);
            let (_, warm) = trainer.fit(plain(rows), &mut Silent).unwrap();
            let (fewer, many) = (warm.iterations, cold.iterations);
            assert!(fewer < many, "{method}: {fewer} against {many}");
        }
    }
}

#[test]
fn classes_may_come_and_go() {
    let (model, _) = fit(plain(0..150), &long(Method::Mp, 10.0), &mut Silent).unwrap();
    let mut other = plain(0..160);
    other.train.labels = Some(Labels::from_text((0..160).map(|i| ["b", "d"][i % 2])));
    let config = Config::default();
    let trainer = Trainer::new(&config).warm_start(&model);
    let (model, report) = trainer.fit(other, &mut Silent).unwrap();
    assert_eq!(model.outputs().names(), ["b", "d"]);
    assert_eq!(report.config.method, Method::Mp);
    assert_eq!(report.config.c, 10.0);
    assert_eq!(report.warm_start.unwrap().new, 10);
}

#[test]
fn what_contradicts_the_model_is_refused() {
    let (model, _) = fit(plain(0..90), &long(Method::Mp, 10.0), &mut Silent).unwrap();
    let start = |config: Config, data: Data<f32>| {
        let trainer = Trainer::new(&config).warm_start(&model);
        trainer.fit(data, &mut Silent)
    };
    let config = |name: &str, value: serde_json::Value| {
        serde_json::from_value::<Config>(json!({ name: value })).unwrap()
    };
    for (name, value) in [
        ("preprocess", json!("min-max")),
        ("kernel", json!("poly")),
        ("gamma", json!(0.3)),
        ("degree", json!(7)),
        ("task", json!("regression")),
        ("precision", json!("f64")),
    ] {
        let result = start(config(name, value), plain(0..90));
        refused(result, &[name, "a warm start keeps"]);
    }
    for method in ["exact", "nystrom"] {
        let result = start(config("method", json!(method)), plain(0..90));
        refused(result, &[method, "no use for a warm start"]);
    }
    assert!(start(config("kernel", json!("rbf")), plain(0..90)).is_ok());
    let mut narrow = plain(0..90);
    narrow.train.features = Matrix::from_fn(90, 2, |i, j| (i + j) as f32);
    refused(start(Config::default(), narrow), &["features"]);
}

#[test]
fn a_run_from_a_model_can_be_gone_on_with() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    for method in [Method::Pcg, Method::Mp, Method::Centers] {
        let (model, _) = fit(plain(0..150), &long(method, 1.0), &mut Silent).unwrap();
        let config = Config {
            iterations: Some(6),
            tolerance: Some(1e-9),
            ..long(method, 10.0)
        };
        let trainer = || Trainer::new(&config).warm_start(&model);
        let (whole, _) = trainer().fit(plain(5..170), &mut Silent).unwrap();
        let kept = trainer().checkpoints(checkpoints(&folder));
        // Whether it ends or gives up, what is kept is the beginning.
        let _ = kept.fit(plain(5..170), &mut Nervous);
        let found = Checkpoint::open(&folder).unwrap();
        assert_eq!(found.iterations(), 0);
        Trainer::<f32>::resume(found)
            .fit(plain(5..170), &mut StopAfter(2))
            .unwrap();
        let found = Checkpoint::open(&folder).unwrap();
        assert_eq!(found.iterations(), 2);
        let (again, _) = Trainer::resume(found)
            .fit(plain(5..170), &mut Silent)
            .unwrap();
        assert_eq!(again.to_bytes().unwrap(), whole.to_bytes().unwrap());
        Checkpoint::remove(&folder).unwrap();
    }
}

/// Gives up within the kernel matrix, if one is computed.
struct Nervous;

impl Observer for Nervous {
    fn progress(&mut self, _: f64) -> Flow {
        Flow::Stop
    }
}

impl Watcher for Nervous {}
