//! From data sets to a model: the wiring of all rooms before this one.
//!
//! ```text
//! Dataset ─ pipeline ─ kernel ─ system ─ solver ─ Model + Report
//! ```

mod centers;
mod checkpoint;
mod choice;
mod class_weight;
pub(crate) mod compare;
pub(crate) mod compress;
mod config;
mod forecast;
mod left_out;
mod memory_plan;
pub(crate) mod path;
mod prepare;
mod report;
mod study;
#[cfg(test)]
mod tests_ranks;
mod trainer;
mod warm_start;

pub use checkpoint::{Checkpoint, Checkpoints};
pub use class_weight::ClassWeight;
pub use compare::compare;
pub use compress::{Compression, compress};
pub use config::{AUTO, Config, Effective, Shape};
pub use forecast::Forecast;
pub use left_out::Estimate;
pub use path::{CPath, c_values, path};
pub use report::{Communicated, Evaluation, HistoryLine, Report};
pub use study::PathPoint;
pub(crate) use study::{Study, path_bytes};
pub use trainer::Trainer;
pub use warm_start::WarmStart;

use std::path::Path;
use std::sync::Arc;

use crate::data::{Dataset, Labelled, Labels, Rows};
use crate::kernel::{Kernel, KernelName};
use crate::linalg::{Matrix, Scalar};
use crate::memory;
use crate::model::{
    Conformal, Description, HeldOut, Input, Model, ModelParts, Outputs, Scaling, Spread, argmax,
    used_rows,
};
use crate::preprocess::{Pipeline, PipelineSpec, Preprocessed};
use crate::ranks::Ranks;
use crate::solve::{
    self, Checkpointed, Course, Followed, Iteration, Method, Observer, Solution, Truth,
};
use crate::system::Bordered;
use crate::{Error, Result};
use memory_plan::Kept;
use prepare::{LaidOut, Prepared, Ready, Whole};

/// Data a run is given, in memory.
pub type Data<T> = DataOf<Matrix<T>>;

/// Data a run is given, whose features are read when they are needed.
pub type StreamData<T> = DataOf<Arc<dyn Rows<T>>>;

/// Data a run is given.
pub struct DataOf<F> {
    /// Rows to learn from.
    pub train: Labelled<F>,
    /// Rows that choose the iteration; not learned from.
    pub validation: Option<Labelled<F>>,
    /// Rows that choose nothing; their error is reported.
    pub test: Option<Labelled<F>>,
}

impl<T: Scalar> From<Data<T>> for StreamData<T> {
    fn from(data: Data<T>) -> Self {
        DataOf {
            train: data.train.into(),
            validation: data.validation.map(Into::into),
            test: data.test.map(Into::into),
        }
    }
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
    Trainer::new(config).fit(data, watcher)
}

/// As [`fit`], with features that stay where they are if the method is
/// [`Method::Centers`]; other methods read them into memory.
///
/// # Errors
/// As [`fit`], and [`Error::Memory`] if the features do not fit and the method needs them.
pub fn fit_stream<T: Scalar>(
    data: StreamData<T>,
    config: &Config,
    watcher: &mut dyn Watcher,
) -> Result<(Model<T>, Report)> {
    Trainer::new(config).fit(data, watcher)
}

/// What [`fit`] or [`fit_stream`] would do with the same data and settings, and what it
/// would take.
pub fn forecast<T: Scalar>(data: impl Into<StreamData<T>>, config: &Config) -> Result<Forecast> {
    forecast_on(&Ranks::default(), data, config)
}

/// The same for ranks that share the training rows.
pub fn forecast_on<T: Scalar>(
    ranks: &Ranks,
    data: impl Into<StreamData<T>>,
    config: &Config,
) -> Result<Forecast> {
    T::forecast(ranks, data.into(), config)
}

pub(crate) fn lay_out_forecast<T: Scalar>(
    ranks: &Ranks,
    data: StreamData<T>,
    config: &Config,
) -> Result<Forecast> {
    let prepared = Prepared::shared(ranks.clone(), data, config)?;
    in_pool(prepared.config.threads, || Ok(lay_out(prepared)?.forecast))
}

/// Solves for a kernel matrix that was computed elsewhere: square and symmetric, with
/// labels, and weights if there are any, for each of its rows. The settings of kernel and
/// preprocessing mean nothing here.
///
/// Returns the weights of the rows and the bias of each output, with which the scores of
/// new rows are Ω(new, training) · weights + bias.
pub fn fit_kernel_matrix<T: Scalar>(
    omega: &Matrix<T>,
    labels: Labels,
    weights: Option<Vec<f64>>,
    config: &Config,
    watcher: &mut dyn Watcher,
) -> Result<(Bordered<T>, Report)> {
    T::fit_kernel_matrix(omega, labels, weights, config, watcher)
}

pub(crate) fn solve_kernel_matrix<T: Scalar>(
    omega: &Matrix<T>,
    labels: Labels,
    weights: Option<Vec<f64>>,
    config: &Config,
    watcher: &mut dyn Watcher,
) -> Result<(Bordered<T>, Report)> {
    let n = omega.rows();
    if labels.len() != n {
        let labels = labels.len();
        return Err(Error::Data(format!(
            "a kernel matrix of {n} rows, and {labels} labels; give one for each row"
        )));
    }
    if weights.as_ref().is_some_and(|all| all.contains(&0.0)) {
        return Err(Error::Data(
            "a row of weight 0 is no training row; leave out its row and its column".into(),
        ));
    }
    if config.validation.is_some() {
        return Err(Error::parameter(
            "validation",
            "a share",
            "rows cannot be kept apart from a kernel matrix that is given",
        ));
    }
    // The rows stand for themselves.
    let mut train = Dataset::new("kernel matrix".as_ref(), Matrix::zeros(n, 1));
    (train.labels, train.weights) = (Some(labels), weights);
    let data = Data {
        train,
        validation: None,
        test: None,
    };
    let config = Config {
        preprocess: Some(PipelineSpec::default()),
        kernel: Some(KernelName::Linear),
        method: Some(config.method.unwrap_or(choice::with_kernel(n))),
        ..config.clone()
    };
    let prepared = Prepared::new(data, &config)?;
    in_pool(prepared.config.threads, || {
        let plans = [prepared.config.plan()];
        let laid_out = prepared.with_kernel(omega, &plans)?;
        watcher.begin(&laid_out.forecast);
        let ready = laid_out.ready(watcher)?;
        let (solution, report, _) = solve_ready(ready, watcher, Course::default())?;
        Ok((solution.weights, report))
    })
}

fn lay_out<T: Scalar>(prepared: Prepared<T>) -> Result<LaidOut<T>> {
    if prepared.config.method == Method::Centers {
        return centers::lay_out(prepared);
    }
    let plans = [prepared.config.plan()];
    let once = (prepared.config.iterations, prepared.config.averages) == (1, 1);
    let kept = match prepared.config.method {
        // Beside the factor, for refinement and the residual.
        Method::Exact => Kept::IfItFits,
        // A single pass looks at each value once.
        Method::GaussSeidel if once => Kept::Recomputed,
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

/// Solves and evaluates.
fn solve_ready<T: Scalar>(
    mut ready: Ready<T>,
    watcher: &mut dyn Watcher,
    course: Course<'_, T>,
) -> Result<(Solution<T>, Report, Ready<T>)> {
    let config = ready.config.clone();
    let classes = matches!(ready.outputs, Outputs::Classes { .. });
    let limits = solve::Limits {
        spent: ready.start.elapsed().as_secs_f64(),
        ..config.limits()
    };
    let solver = match ready.solver.take() {
        Some(solver) => solver,
        None => config.plan().solver(&ready.system)?,
    };
    let solution = solve::run_on(
        &ready.system,
        (solver, config.method),
        &limits,
        [&mut ready.test, &mut ready.validation],
        ready.memory.follow_every,
        &mut Relay(watcher),
        course,
    )?;
    let mut report = Report::new(&solution, config, classes, &ready);
    report.seconds = ready.start.elapsed().as_secs_f64() + solution.earlier_seconds;
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
    let left_out = solution.leave_one_out.as_ref();
    let left_out = left_out.map(|left_out| {
        let truth = prepare::truth_of(ready.system.targets(), &ready.outputs);
        let (names, back) = (ready.outputs.names(), ready.back());
        match &back {
            Some(rows) => left_out::evaluation(&left_out.select(rows), &truth.select(rows), names),
            None => left_out::evaluation(left_out, &truth, names),
        }
    });
    report.leave_one_out = left_out.transpose()?;
    report.scaling = scaling(&report)?;
    report.conformal = conformal(&report)?;
    report.peak_memory_bytes = memory::peak();
    Ok((solution, report, ready))
}

/// Rows that were not learned from: each training row by a model that never saw it, or
/// validation rows.
fn held_out(report: &Report) -> Option<(HeldOut, &Evaluation)> {
    let left_out = report.leave_one_out.as_ref();
    let left_out = left_out.map(|rows| (HeldOut::LeaveOneOut, rows));
    let validation = report.validation.as_ref();
    left_out.or(validation.map(|rows| (HeldOut::Validation, rows)))
}

/// How scores become probabilities.
fn scaling(report: &Report) -> Result<Option<Scaling>> {
    match held_out(report).map(|(_, rows)| (rows, &rows.truth)) {
        Some((rows, Truth::Classes(codes))) => Scaling::fit(&rows.scores, codes).map(Some),
        _ => Ok(None),
    }
}

/// How far off the model is.
fn conformal(report: &Report) -> Result<Option<Conformal>> {
    let Some((from, rows)) = held_out(report) else {
        return Ok(None);
    };
    let conformal = match &rows.truth {
        Truth::Values(values) => Conformal::of_values(from, &rows.scores, values),
        Truth::Classes(codes) => {
            Conformal::of_classes(from, &report.probabilities(&rows.scores), codes)
        }
    };
    conformal.map(Some)
}

/// What training ended with, on the first of the ranks that made it.
#[derive(Debug)]
pub enum Fitted<T: Scalar> {
    /// A model in memory.
    Model(Box<Model<T>>),
    /// One whose rows are read again when it is saved.
    Spread(Box<Spread<T>>),
}

impl<T: Scalar> Fitted<T> {
    /// Writes the model to one file, all of it or nothing.
    ///
    /// # Errors
    /// As [`Model::save`] and [`Spread::save`].
    pub fn save(self, path: &Path) -> Result<()> {
        match self {
            Fitted::Model(model) => model.save(path),
            Fitted::Spread(model) => model.save(path),
        }
    }

    /// The model in memory.
    ///
    /// # Errors
    /// As [`Spread::into_model`].
    pub fn into_model(self) -> Result<Model<T>> {
        match self {
            Fitted::Model(model) => Ok(*model),
            Fitted::Spread(model) => model.into_model(),
        }
    }

    /// P: number of support rows.
    pub fn n_support(&self) -> usize {
        match self {
            Fitted::Model(model) => model.n_support(),
            Fitted::Spread(model) => model.n_support(),
        }
    }

    /// Bytes of its tensors, in a file.
    pub fn size_bytes(&self) -> u64 {
        match self {
            Fitted::Model(model) => model.size_bytes(),
            Fitted::Spread(model) => model.size_bytes(),
        }
    }

    /// What it predicts.
    pub fn outputs(&self) -> &Outputs {
        match self {
            Fitted::Model(model) => model.outputs(),
            Fitted::Spread(model) => model.outputs(),
        }
    }
}

/// Solves, and makes a model of it on the first rank.
fn solve_one<T: Scalar>(
    ready: Ready<T>,
    watcher: &mut dyn Watcher,
    course: Course<'_, T>,
) -> Result<(Option<Fitted<T>>, Report)> {
    let ranks = ready.ranks.clone();
    let (solution, mut report, ready) = solve_ready(ready, watcher, course)?;
    let model = match ready.whole.is_some() {
        true => spread(solution, &mut report, ready)
            .map(|model| model.map(|model| Fitted::Spread(Box::new(model)))),
        false => whole_model(solution, &mut report, ready)
            .map(|model| ranks.is_first().then(|| Fitted::Model(Box::new(model)))),
    };
    let model = ranks.agree(model)?;
    Ok((model, report))
}

/// A model of rows that several ranks have, on the first of them.
fn spread<T: Scalar>(
    solution: Solution<T>,
    report: &mut Report,
    ready: Ready<T>,
) -> Result<Option<Spread<T>>> {
    let mut weights = ready.system.shares().rows_at_first(&solution.weights.rows);
    let Some(Whole { rows, truth }) = ready.whole.filter(|_| ready.ranks.is_first()) else {
        return Ok(None);
    };
    if let Some(order) = &ready.order {
        weights = weights.select_rows(&inverse(order));
    }
    report.support = used_rows(&weights);
    let classes = match &truth {
        Truth::Classes(codes) => Some(one_row(codes)),
        Truth::Values(_) => None,
    };
    let rows = Arc::new(Preprocessed::new(rows, ready.pipeline.clone())?);
    let description = describe(
        report,
        (ready.kernel, ready.pipeline, ready.outputs, ready.input),
    );
    let bias = solution.weights.bias;
    Spread::new(rows, weights, bias, classes, description).map(Some)
}

/// Where each of these is.
fn inverse(order: &[usize]) -> Vec<usize> {
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(i, &row)| back[row] = i);
    back
}

/// Classes as a model has them.
fn one_row<T: Scalar>(codes: &[u32]) -> Matrix<T> {
    Matrix::from_fn(1, codes.len(), |_, i| T::from_f64(f64::from(codes[i])))
}

/// What a model says of itself.
fn describe(
    report: &Report,
    (kernel, pipeline, outputs, input): (Kernel, Pipeline, Outputs, Input),
) -> Description {
    Description {
        kernel,
        pipeline,
        outputs,
        input,
        config: serde_json::to_value(&report.config).unwrap_or_default(),
        summary: report.summary(),
        scaling: report.scaling.clone(),
        conformal: report.conformal.clone(),
        notes: Default::default(),
    }
}

/// A model of rows that are all here.
fn whole_model<T: Scalar>(
    solution: Solution<T>,
    report: &mut Report,
    ready: Ready<T>,
) -> Result<Model<T>> {
    let mut codes = match ready.outputs {
        Outputs::Classes { .. } => Some(argmax(ready.system.targets())),
        Outputs::Values { .. } => None,
    };
    let back = ready.back();
    let (mut support, mut weights) = (ready.system.into_samples(), solution.weights.rows);
    if let Some(back) = back {
        // A model has its rows in the order of the data.
        (support, weights) = (support.reordered(&back), weights.reordered(&back));
        codes = codes.map(|codes| back.iter().map(|&i| codes[i]).collect());
    }
    report.support = used_rows(&weights);
    if let Some(centers) = ready.centers {
        report
            .support
            .iter_mut()
            .for_each(|row| *row = centers[*row]);
    }
    Model::new(ModelParts {
        support,
        weights,
        bias: solution.weights.bias,
        classes: codes.map(|codes| one_row(&codes)),
        description: describe(
            report,
            (ready.kernel, ready.pipeline, ready.outputs, ready.input),
        ),
    })
}

/// What these labels should score, for a model with these outputs.
pub fn truth<F>(data: &Labelled<F>, outputs: &Outputs) -> Result<Truth> {
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

    fn checkpoint(&mut self, told: &Checkpointed) {
        self.0.checkpoint(told);
    }

    fn progress(&mut self, done: f64) -> solve::Flow {
        self.0.progress(done)
    }

    fn leaving_out(&mut self, done: f64) -> solve::Flow {
        self.0.leaving_out(done)
    }
}
