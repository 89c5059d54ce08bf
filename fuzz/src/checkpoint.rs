//! Checkpoints: opened or refused. Where a run goes on from one, it ends with a model or with an
//! error.

use std::sync::OnceLock;
use std::time::Duration;

use lssvm::data::{Dataset, Labels};
use lssvm::linalg::Matrix;
use lssvm::memory::Size;
use lssvm::solve::{Flow, Iteration, Method, Observer, read_checkpoint};
use lssvm::train::{Checkpoint, Checkpoints, Config, Data, Trainer, Watcher};
use serde_json::{Value, json};

use super::seal;

/// The methods whose runs go on.
pub const METHODS: [Method; 7] = [
    Method::Pcg,
    Method::GaussSeidel,
    Method::Centers,
    Method::Nystrom,
    Method::Kaczmarz,
    Method::Mp,
    Method::KaczmarzMp,
];

/// Ends a run after so many iterations.
pub struct Stop(pub usize);

impl Observer for Stop {
    fn iteration(&mut self, _: &Iteration) -> Flow {
        self.0 = self.0.saturating_sub(1);
        match self.0 {
            0 => Flow::Stop,
            _ => Flow::Continue,
        }
    }
}

impl Watcher for Stop {}

/// Three noisy clouds of points.
pub fn samples() -> Data<f32> {
    let cloud = |n: usize, shift: f32| {
        let x = Matrix::from_fn(n, 2, |i, j| {
            (i % 3 * (j + 1)) as f32 + ((i * 7 + j * 3) as f32 + shift).sin()
        });
        let mut data = Dataset::new("clouds".as_ref(), x);
        let names = ["red", "green", "blue"];
        data.labels = Some(Labels::from_text((0..n).map(|i| names[i % 3])));
        data
    };
    Data {
        train: cloud(24, 0.0),
        validation: Some(cloud(6, 0.3)),
        test: Some(cloud(6, 0.7)),
    }
}

/// Settings of a small run.
pub fn config(method: Method) -> Config {
    Config {
        method: Some(method),
        block_size: method.draws_blocks().then_some(6),
        centers: (method == Method::Centers).then_some(8),
        averages: (method == Method::Mp).then_some(2),
        iterations: Some(100),
        tolerance: Some(0.0),
        threads: Some(1),
        memory: Some(Size(4_000_000_000)),
        ..Config::default()
    }
}

/// The checkpoint of a run that was stopped after so many iterations.
pub fn kept(method: Method, iterations: usize) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let checkpoints = Checkpoints {
        folder: folder.path().to_path_buf(),
        every: Duration::MAX,
        notes: Value::Null,
    };
    let trainer = Trainer::new(&config(method)).checkpoints(checkpoints);
    let run = trainer.fit(samples(), &mut Stop(iterations));
    run.expect("a small run");
    std::fs::read(folder.path().join("checkpoint")).expect("it was kept")
}

/// What the checkpoints of these runs say of them, and the version that wrote them.
fn runs() -> &'static (Vec<Value>, Value) {
    static RUNS: OnceLock<(Vec<Value>, Value)> = OnceLock::new();
    RUNS.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let about = |method: Method| {
            let file = folder.path().join("checkpoint");
            let bytes = kept(method, 1);
            std::fs::write(&file, &bytes).expect("a temporary file");
            let (about, _) = read_checkpoint(&file).expect("it was just written");
            let (header, _) = seal::split(&bytes, seal::MAGIC.len());
            (about, header["lssvm_version"].clone())
        };
        let (abouts, mut versions): (_, Vec<_>) = METHODS.map(about).into_iter().unzip();
        (abouts, versions.pop().expect("some runs"))
    })
}

/// Any bytes as a checkpoint, or as what to make one of: then the run of the `method` that the
/// header names goes on from its tables.
pub fn checkpoint(input: &[u8]) {
    // An error is as good as a model.
    let _ = goes_on(input);
}

/// The same, with what came of it.
pub fn goes_on(input: &[u8]) -> lssvm::Result<()> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (bytes, resumes) = match input.starts_with(b"{") {
        true => sealed(input),
        false => (input.to_vec(), false),
    };
    std::fs::write(folder.path().join("checkpoint"), bytes).expect("a temporary file");
    let found = Checkpoint::open(folder.path())?;
    found.expect_same(&Config::default())?;
    let iterations = found.iterations();
    if resumes {
        let (model, report) = Trainer::<f32>::resume(found).fit(samples(), &mut Stop(3))?;
        assert!(model.n_support() > 0);
        assert!(report.iterations >= iterations);
    }
    Ok(())
}

/// The file to make, and whether a run is to go on from it.
fn sealed(input: &[u8]) -> (Vec<u8>, bool) {
    let (abouts, version) = runs();
    let known = |name: String| METHODS.iter().position(|method| method.to_string() == name);
    let run = seal::header_text(input, "method").and_then(known);
    let missing = [
        ("format_version", json!(1)),
        ("lssvm_version", version.clone()),
        ("about", abouts[run.unwrap_or(0)].clone()),
        ("tables", json!([])),
    ];
    let (file, replaced) = seal::checkpoint(input, &missing);
    // With settings of its own a run may ask for any number of threads.
    (file, run.is_some() && replaced)
}
