//! From data sets to a model: the wiring of all rooms before this one.
//!
//! ```text
//! Dataset ─ pipeline ─ kernel ─ system ─ solver ─ Model + Report
//! ```

mod choice;
mod compare;
mod config;
mod forecast;
mod memory_plan;
mod prepare;
mod report;

pub use compare::compare;
pub use config::{AUTO, Config, Effective, Shape};
pub use forecast::Forecast;
pub use report::{Evaluation, HistoryLine, Report};

use crate::data::Dataset;
use crate::linalg::Scalar;
use crate::memory;
use crate::model::{Description, Model, ModelParts, Outputs};
use crate::solve::{self, Followed, Iteration, Method, Observer, Truth};
use crate::{Error, Result};
use memory_plan::Kept;
use prepare::{LaidOut, Prepared, Ready};

/// Data a run is given.
pub struct Data<T: Scalar> {
    /// Rows to learn from.
    pub train: Dataset<T>,
    /// Rows that choose the iteration; not learned from.
    pub validation: Option<Dataset<T>>,
    /// Rows that choose nothing; their error is reported.
    pub test: Option<Dataset<T>>,
}

/// Told what happens during a run; may ask to stop.
pub trait Watcher: Observer + Send {
    /// Everything is decided and fits in memory; the run begins.
    fn begin(&mut self, _forecast: &Forecast) {}

    /// Of several runs ([`compare`]), this one has ended.
    fn ended(&mut self, _run: usize, _report: &Report) {}
}

impl Watcher for solve::Silent {}

/// Trains a model.
///
/// ```
/// use lssvm::data::{Dataset, Labels};
/// use lssvm::linalg::Matrix;
/// use lssvm::train::{Config, Data, fit};
/// // Two noisy clouds around (0, 0) and (3, 3).
/// let x = Matrix::from_fn(60, 2, |i, j| (i % 2) as f32 * 3.0 + ((i * 7 + j * 3) as f32).sin());
/// let mut train = Dataset::new("clouds".as_ref(), x);
/// train.labels = Some(Labels::from_text((0..60).map(|i| ["near", "far"][i % 2])));
/// let data = Data { train, validation: None, test: None };
/// let (model, report) = fit(data, &Config::default(), &mut lssvm::solve::Silent)?;
/// let predicted = model.predict_classes(Matrix::from_rows(&[[0.1, 0.0], [3.0, 2.5]]))?;
/// assert_eq!(model.outputs().names()[predicted[1] as usize], "far");
/// assert!(report.relative_residual.unwrap() < 1e-3);
/// # Ok::<(), lssvm::Error>(())
/// ```
pub fn fit<T: Scalar>(
    data: Data<T>,
    config: &Config,
    watcher: &mut dyn Watcher,
) -> Result<(Model<T>, Report)> {
    let prepared = Prepared::new(data, config)?;
    in_pool(prepared.config.threads, || {
        let ready = lay_out(prepared)?.ready(watcher)?;
        solve_one(ready, watcher)
    })
}

/// What [`fit`] would do with the same data and settings, and what it would take.
pub fn forecast<T: Scalar>(data: Data<T>, config: &Config) -> Result<Forecast> {
    let prepared = Prepared::new(data, config)?;
    in_pool(prepared.config.threads, || Ok(lay_out(prepared)?.forecast))
}

fn lay_out<T: Scalar>(prepared: Prepared<T>) -> Result<LaidOut<T>> {
    let plans = [prepared.config.plan()];
    let kept = match prepared.config.method {
        // Beside the factor, for refinement and the residual.
        Method::Exact => Kept::IfItFits,
        method if method.wants_kernel() => Kept::AsItFits,
        _ => Kept::Recomputed,
    };
    prepared.lay_out(&plans, kept)
}

/// Runs `f` on a pool of so many threads.
fn in_pool<R: Send>(threads: usize, f: impl FnOnce() -> Result<R> + Send) -> Result<R> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| Error::parameter("threads", threads, e.to_string()))?;
    pool.install(f)
}

fn solve_one<T: Scalar>(
    mut ready: Ready<T>,
    watcher: &mut dyn Watcher,
) -> Result<(Model<T>, Report)> {
    let config = ready.config.clone();
    let classes = matches!(ready.outputs, Outputs::Classes { .. });
    let solution = solve::run(
        &ready.system,
        &config.plan(),
        &config.limits(),
        &mut ready.test,
        &mut ready.validation,
        ready.memory.follow_every,
        &mut Relay(watcher),
    )?;
    let mut report = Report::new(&solution, config, classes, &ready);
    report.seconds = ready.start.elapsed().as_secs_f64();
    let evaluate = |followed: &mut Option<Followed<T>>| {
        let followed = followed.as_mut();
        let evaluation = followed.map(|followed| {
            let last = solution.best_iteration == solution.iterations;
            if !(last && followed.is_fresh()) {
                followed.evaluate(&ready.system, &solution.weights);
            }
            Evaluation::new(followed.scores(), followed.truth(), ready.outputs.names())
        });
        evaluation.transpose()
    };
    report.test = evaluate(&mut ready.test)?;
    report.validation = evaluate(&mut ready.validation)?;
    report.peak_memory_bytes = memory::peak();
    let (mut support, mut weights) = (ready.system.into_samples(), solution.weights.rows);
    if let Some(order) = ready.order {
        // A model has its rows in the order of the data.
        let mut back = vec![0; order.len()];
        order.iter().enumerate().for_each(|(i, &row)| back[row] = i);
        (support, weights) = (support.select(&back), weights.select_rows(&back));
    }
    let model = Model::new(ModelParts {
        support,
        weights,
        bias: solution.weights.bias,
        description: Description {
            kernel: ready.kernel,
            pipeline: ready.pipeline,
            outputs: ready.outputs,
            input: ready.input,
            config: serde_json::to_value(&report.config).unwrap_or_default(),
            summary: report.summary(),
        },
    })?;
    Ok((model, report))
}

/// What these labels should score, for a model with these outputs.
pub fn truth<T: Scalar>(data: &Dataset<T>, outputs: &Outputs) -> Result<Truth> {
    let labels = data.labels.as_ref().ok_or_else(|| {
        Error::Data(format!(
            "{}: there are no labels, so there is nothing to compare predictions with",
            data.source.display()
        ))
    })?;
    match outputs {
        Outputs::Classes { names } => labels.codes_for(names).map(Truth::Classes),
        Outputs::Values { names } => labels.values(names.len()).cloned().map(Truth::Values),
    }
}

/// Passes on to the watcher what a solver tells its observer.
struct Relay<'a>(&'a mut dyn Watcher);

impl Observer for Relay<'_> {
    fn turn(&mut self, run: usize) {
        self.0.turn(run);
    }

    fn iteration(&mut self, iteration: &Iteration) -> solve::Flow {
        self.0.iteration(iteration)
    }

    fn progress(&mut self, done: f64) -> solve::Flow {
        self.0.progress(done)
    }
}
