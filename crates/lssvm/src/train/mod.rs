//! From data sets to a model: the wiring of all rooms before this one.
//!
//! ```text
//! Dataset ─ pipeline ─ kernel ─ system ─ solver ─ Model + Report
//! ```

mod config;
mod report;

use std::path::Path;
use std::time::Instant;

pub use config::{Config, Effective, Shape};
pub use report::{Evaluation, HistoryLine, Report};

use crate::data::{Dataset, Targets, Task};
use crate::error::Place;
use crate::kernel::{KernelName, Samples};
use crate::linalg::{Matrix, Scalar};
use crate::memory;
use crate::model::{Description, Input, Model, ModelParts, Outputs};
use crate::solve::{self, Followed, Iteration, Method, Observer, Truth};
use crate::system::{Cross, System};
use crate::{Error, Result};

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
    fn begin(&mut self, _config: &Effective, _shape: [usize; 3], _planned_bytes: u64) {}
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
    let threads = prepared.config.threads;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| Error::parameter("threads", threads, e.to_string()))?;
    pool.install(|| prepared.fit(watcher))
}

/// Names the outputs and turns labels into the numbers to be fitted.
fn encode<T: Scalar>(
    labels: &Targets,
    label_names: &[String],
    source: &Path,
) -> Result<(Outputs, Matrix<T>)> {
    match labels {
        Targets::Classes { names, codes } => {
            if let [only] = names.as_slice() {
                let problem = format!(
                    "all training rows have the class '{only}'; classification needs at least \
                     two classes (or choose --task regression)"
                );
                return Err(Error::file(source, Place::Whole, problem));
            }
            let one_hot = Matrix::from_fn(codes.len(), names.len(), |i, k| {
                if codes[i] as usize == k {
                    T::ONE
                } else {
                    T::ZERO
                }
            });
            let names = names.clone();
            Ok((Outputs::Classes { names }, one_hot))
        }
        Targets::Values(values) => {
            let mut names = label_names.to_vec();
            names.resize(values.cols(), String::new());
            Ok((Outputs::Values { names }, values.cast()))
        }
    }
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

/// Everything decided and checked, nothing computed.
struct Prepared<T: Scalar> {
    config: Effective,
    data: Data<T>,
    outputs: Outputs,
    targets: Matrix<T>,
    validation_truth: Option<Truth>,
    test_truth: Option<Truth>,
    input: Input,
    start: Instant,
}

impl<T: Scalar> Prepared<T> {
    fn new(mut data: Data<T>, config: &Config) -> Result<Self> {
        let start = Instant::now();
        let mut config = config.clone();
        if data.validation.is_some() {
            // Rows that were given come before a share of the training rows.
            config.validation = None;
        }
        if let Some(rows) = config.train_rows {
            if rows == 0 {
                return Err(Error::parameter("train-rows", 0, "must be at least 1"));
            }
            if rows < data.train.n_samples() {
                data.train = data.train.head(rows);
            }
        }
        if config.patience.is_some() && data.validation.is_none() && config.validation.is_none() {
            return Err(Error::parameter(
                "patience",
                config.patience.unwrap_or(0),
                "needs validation rows; give --validation as well (the test part never decides)",
            ));
        }
        let image = config.image_shape.or(data.train.image);
        if let Some(shape) = image.filter(|shape| shape.len() != data.train.n_features()) {
            return Err(Error::parameter(
                "image-shape",
                shape,
                format!("the data have {} features a row", data.train.n_features()),
            ));
        }
        let mut config = config.resolve(Shape {
            rows: data.train.n_samples(),
            image,
        })?;
        if let Some(share) = config.validation {
            let (train, validation) = data.train.split(share, config.seed)?;
            data.train = train;
            data.validation = Some(validation);
        }
        let labels = data.train.labels.as_ref().ok_or_else(|| {
            Error::Data(format!(
                "{}: there are no labels to learn; name the label column, or put the labels \
                 file beside it",
                data.train.source.display()
            ))
        })?;
        let label_names = labels.column_names().to_vec();
        let targets = labels.resolve(config.task)?;
        let (outputs, targets) = encode(&targets, &label_names, &data.train.source)?;
        config.task = match outputs {
            Outputs::Classes { .. } => Task::Classification,
            Outputs::Values { .. } => Task::Regression,
        };
        let parts = [&data.validation, &data.test];
        for part in parts.into_iter().flatten() {
            if part.n_features() != data.train.n_features() {
                return Err(Error::Data(format!(
                    "{}: there are {} features, and the training data have {}",
                    part.source.display(),
                    part.n_features(),
                    data.train.n_features()
                )));
            }
        }
        let told =
            |part: &Option<Dataset<T>>| part.as_ref().map(|part| truth(part, &outputs)).transpose();
        Ok(Self {
            validation_truth: told(&data.validation)?,
            test_truth: told(&data.test)?,
            input: Input {
                n_features: data.train.n_features(),
                feature_names: data.train.feature_names.clone(),
                label_names,
                index_base: data.train.index_base,
                image: image.map(|i| [i.channels, i.height, i.width]),
            },
            config,
            data,
            outputs,
            targets,
            start,
        })
    }

    fn fit(self, watcher: &mut dyn Watcher) -> Result<(Model<T>, Report)> {
        let config = self.config;
        let classes = matches!(self.outputs, Outputs::Classes { .. });
        let (n, k) = (self.targets.rows(), self.targets.cols());
        let (pipeline, x) = config
            .preprocess
            .fit(self.data.train.features, self.input.image)?;
        let kernel = config.kernel_spec().resolve(&x)?;
        let transformed = |part: Option<Dataset<T>>| {
            part.map(|part| pipeline.transform(part.features))
                .transpose()
        };
        let validation = transformed(self.data.validation)?;
        let test = transformed(self.data.test)?;

        let shape = [n, x.cols(), k];
        let memory = MemoryPlan::new(&config, shape, [&validation, &test])?;
        watcher.begin(&config, shape, memory.bytes);
        let system = System::new(x, self.targets, kernel, config.c)?;
        let followed = |rows: Option<Matrix<T>>, truth: Option<Truth>, stored: bool| {
            let pair = rows.zip(truth);
            pair.map(|(rows, truth)| Followed::new(&system, rows, truth, stored))
        };
        let mut validation = followed(validation, self.validation_truth, memory.stored[0]);
        let mut test = followed(test, self.test_truth, memory.stored[1]);
        let every = memory.follow_every;
        let mut relay = Relay(watcher);
        let solution = solve::run(
            &system,
            &config.plan(),
            &config.limits(),
            &mut test,
            &mut validation,
            every,
            &mut relay,
        )?;

        let mut report = Report::new(&solution, config, classes, shape, memory.bytes);
        let evaluate = |followed: &mut Option<Followed<T>>| {
            let followed = followed.as_mut();
            let evaluation = followed.map(|followed| {
                let last = solution.best_iteration == solution.iterations;
                if !(last && followed.is_fresh()) {
                    followed.evaluate(&system, &solution.weights);
                }
                Evaluation::new(followed.scores(), followed.truth(), self.outputs.names())
            });
            evaluation.transpose()
        };
        report.seconds = self.start.elapsed().as_secs_f64();
        report.test = evaluate(&mut test)?;
        report.validation = evaluate(&mut validation)?;
        report.peak_memory_bytes = memory::peak();
        let model = model(
            system.into_samples(),
            solution.weights,
            Description {
                kernel,
                pipeline,
                outputs: self.outputs,
                input: self.input,
                config: serde_json::to_value(&report.config).unwrap_or_default(),
                summary: report.summary(),
            },
        )?;
        Ok((model, report))
    }
}

fn model<T: Scalar>(
    support: Samples<T>,
    weights: crate::system::Bordered<T>,
    description: Description,
) -> Result<Model<T>> {
    Model::new(ModelParts {
        support,
        weights: weights.rows,
        bias: weights.bias,
        description,
    })
}

/// What will be kept in memory, worked out before anything large is allocated.
struct MemoryPlan {
    bytes: u64,
    /// Whether Ω(validation rows, training rows) and Ω(test rows, ...) are kept.
    stored: [bool; 2],
    follow_every: usize,
}

/// What the program itself takes, buffers of a reader that may still be held,
/// and tiles of each thread.
const BASE_BYTES: u64 = 100_000_000;

/// If following needs a full product that is not in memory, it costs several
/// iterations; then it is done this seldom unless the user chose otherwise.
const SELDOM: usize = 10;

impl MemoryPlan {
    fn new<T: Scalar>(
        config: &Effective,
        [n, m, k]: [usize; 3],
        parts: [&Option<Matrix<T>>; 2],
    ) -> Result<Self> {
        let value = size_of::<T>() as u64;
        let rows = |part: &Option<Matrix<T>>| part.as_ref().map_or(0, |p| p.rows());
        let others: usize = parts.iter().map(|p| rows(p)).sum();
        let data = value * (n as u64 + others as u64) * (m as u64 + k as u64);
        let mut solver = config.plan().bytes::<T>(n, m, k);
        if config.method == Method::Exact && config.kernel == KernelName::Sigmoid {
            // The factorisation for indefinite matrices works on a copy.
            solver += value * (n as u64).pow(2);
        }
        let mut bytes = BASE_BYTES + data + solver;
        if bytes > config.budget.0 {
            return Err(Error::Memory {
                what: format!("training by {} on {n} rows of {m} features", config.method),
                needed: bytes,
                available: config.budget.0,
                remedy: remedy::<T>(config, n, m, k, BASE_BYTES + data),
            });
        }
        // Methods that change all weights follow errors by a full product.
        let full = matches!(
            config.method,
            Method::Kaczmarz | Method::KaczmarzMp | Method::Nystrom
        );
        let mut stored = [false; 2];
        let mut follow_every = config.follow;
        for (stored, part) in stored.iter_mut().zip(parts) {
            let needed = Cross::<T>::stored_bytes(rows(part), n);
            if full && config.follow > 0 && needed > 0 {
                *stored = bytes + needed <= config.budget.0;
                if *stored {
                    bytes += needed;
                } else if config.follow == 1 {
                    follow_every = SELDOM;
                }
            }
        }
        Ok(Self {
            bytes,
            stored,
            follow_every,
        })
    }
}

/// What to change so that the run fits.
fn remedy<T: Scalar>(config: &Effective, n: usize, m: usize, k: usize, fixed: u64) -> String {
    let fits = |method: Method, block_size: usize| {
        let plan = solve::Plan {
            method,
            block_size,
            ..config.plan()
        };
        fixed + plan.bytes::<T>(n, m, k) <= config.budget.0
    };
    let method = match config.method {
        Method::Exact => Method::Mp,
        method => method,
    };
    let sizes = (0..).map(|i| (n + 1) >> i).take_while(|&size| size > 0);
    match sizes.into_iter().find(|&size| fits(method, size)) {
        Some(size) => format!("use --method {method} --block-size {size}, or raise --memory"),
        None => "use fewer rows (--train-rows), or raise --memory".to_string(),
    }
}

/// Passes on to the watcher what a solver tells its observer.
struct Relay<'a>(&'a mut dyn Watcher);

impl Observer for Relay<'_> {
    fn iteration(&mut self, iteration: &Iteration) -> solve::Flow {
        self.0.iteration(iteration)
    }

    fn progress(&mut self, done: f64) -> solve::Flow {
        self.0.progress(done)
    }
}
