//! Everything that comes before a solver: settings decided, labels encoded, rows
//! transformed, memory planned.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::centers::Centered;
use super::checkpoint::{Fingerprint, Fixed, Ink};
use super::memory_plan::{Kept, MemoryPlan, bytes_of_columns, keep};
use super::{
    ClassWeight, Config, Effective, Forecast, Shape, StreamData, Watcher, truth as truth_for,
};
use crate::data::{Labelled, Picked, Rows, Stream, Targets, Task, as_rows};
use crate::error::Place;
use crate::kernel::Kernel;
use crate::linalg::{Csr, Matrix, Points, Scalar};
use crate::model::{Input, Outputs, argmax};
use crate::preprocess::Pipeline;
use crate::ranks::{Ranks, Shares};
use crate::solve::gauss_seidel::rows_of_block;
use crate::solve::{Flow, Followed, Method, Phase, Phases, Plan, Solver, Truth};
use crate::system::{Keep, System, TILE, in_clusters_of};
use crate::{Error, Result, random};

/// Everything decided and checked, nothing computed.
pub(super) struct Prepared<T: Scalar> {
    pub(super) config: Effective,
    pub(super) shape: Shape,
    pub(super) data: StreamData<T>,
    pub(super) outputs: Outputs,
    /// What each training row should score.
    pub(super) truth: Truth,
    /// What each training row counts, if not all count the same.
    pub(super) weights: Option<Vec<f64>>,
    pub(super) validation_truth: Option<Truth>,
    pub(super) test_truth: Option<Truth>,
    pub(super) input: Input,
    /// Preprocessing and kernel of the model that the run goes on from.
    pub(super) fixed: Option<Fixed>,
    /// Rows that are centres, if that was decided before.
    pub(super) centers: Option<Vec<usize>>,
    /// Who shares the training rows.
    pub(super) ranks: Ranks,
    pub(super) start: Instant,
}

impl<T: Scalar> Prepared<T> {
    /// The data in a few bytes.
    ///
    /// # Errors
    /// If rows cannot be read.
    pub(super) fn fingerprint(&self) -> Result<Fingerprint> {
        let part = |data: &Option<Stream<T>>, truth: &Option<Truth>| {
            let ink = match data {
                Some(data) => Ink::default().rows(&*data.features)?,
                None => Ink::default(),
            };
            Ok::<_, Error>(ink.truth(truth.as_ref()).print())
        };
        let labels = Ink::default().truth(Some(&self.truth));
        Ok(Fingerprint {
            features: Ink::default().rows(&*self.data.train.features)?.print(),
            labels: labels.names(self.outputs.names()).print(),
            weights: Ink::default()
                .numbers(self.weights.as_deref().unwrap_or_default())
                .print(),
            validation: part(&self.data.validation, &self.validation_truth)?,
            test: part(&self.data.test, &self.test_truth)?,
        })
    }

    /// Where the training rows are from.
    pub(super) fn source(&self) -> &Path {
        &self.data.train.source
    }

    pub(super) fn new(data: impl Into<StreamData<T>>, config: &Config) -> Result<Self> {
        Self::shared(Ranks::default(), data.into(), config)
    }

    /// The same where ranks share the training rows: each is given all of the data, whose
    /// features are read later, by each its own.
    pub(super) fn shared(ranks: Ranks, data: StreamData<T>, config: &Config) -> Result<Self> {
        let mut prepared = ranks.agree(Self::decide(ranks.clone(), data, config))?;
        // Ranks may see different memories; plans must be the same.
        let budget = &mut prepared.config.budget.0;
        *budget = ranks.least(*budget);
        prepared.config.method.expect_ranks(&ranks)?;
        if prepared.config.loo && !ranks.is_alone() {
            let requirement = "is for rows that one machine has; where several share them, keep \
                               some apart instead (--validation)";
            return Err(Error::parameter("loo", true, requirement));
        }
        Ok(prepared)
    }

    fn decide(ranks: Ranks, mut data: StreamData<T>, config: &Config) -> Result<Self> {
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
        let rows = |part: &Option<Stream<T>>| part.as_ref().map_or(0, Stream::n_samples);
        let shape = Shape {
            rows: data.train.n_samples(),
            features: data.train.n_features(),
            outputs: match &data.train.labels {
                Some(labels) => labels.resolve(config.task.unwrap_or_default())?.outputs(),
                None => 1,
            },
            others: rows(&data.validation) + rows(&data.test),
            validation: data.validation.is_some(),
            image,
            kept: data.train.features.kept_values().map(|kept| {
                let rows = data.train.n_samples().max(1);
                kept.div_ceil(rows)
            }),
            ranks: ranks.size(),
        };
        let mut config = config.resolve(shape)?;
        if shape.kept.is_some() {
            // Before a step learns a number for each.
            let needed = bytes_of_columns(shape.features);
            need_memory([shape.rows, shape.features], needed, &config).map_err(|error| {
                error.with_remedy(|| {
                    "number the features without gaps, keep fewer of them, or raise --memory".into()
                })
            })?;
        }
        if let Some(share) = config.validation {
            let targets = data.train.labels.as_ref();
            let targets = targets.map(|labels| labels.resolve(config.task));
            // What the labels mean is decided by all of them, not by those that are left.
            let (train, validation) = match targets.transpose()? {
                Some(Targets::Classes { codes, .. }) => {
                    config.task = Task::Classification;
                    data.train.split_classes(share, config.seed, &codes)?
                }
                Some(Targets::Values(_)) => {
                    config.task = Task::Regression;
                    data.train.split(share, config.seed)?
                }
                None => data.train.split(share, config.seed)?,
            };
            data.train = train;
            data.validation = Some(validation);
        }
        if let Some(augment) = &config.augment {
            data.train = data.train.augmented(augment, image)?;
        }
        let labels = data.train.labels.as_ref().ok_or_else(|| {
            Error::Data(format!(
                "{}: there are no labels to learn; name the label column, or put the labels \
                 file beside it",
                data.train.source.display()
            ))
        })?;
        let label_names = labels.column_names().to_vec();
        let label_places = labels.column_places().to_vec();
        let targets = labels.resolve(config.task)?;
        let mut weights = row_weights(&data.train, &targets, config.class_weight.as_ref())?;
        let (outputs, mut truth) = encode(targets, &label_names, &data.train.source)?;
        if let Some(all) = weights.as_mut().filter(|all| all.contains(&0.0)) {
            // A row that counts for nothing is no training row.
            let rows: Vec<usize> = (0..all.len()).filter(|&row| all[row] > 0.0).collect();
            if rows.is_empty() {
                return Err(Error::Data(format!(
                    "{}: the weights of all training rows are 0; give some row a weight",
                    data.train.source.display()
                )));
            }
            data.train = data.train.select(&rows);
            truth = truth.select(&rows);
            all.retain(|&weight| weight > 0.0);
        }
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
        let told = |part: &Option<Stream<T>>| {
            part.as_ref()
                .map(|part| truth_for(part, &outputs))
                .transpose()
        };
        Ok(Self {
            validation_truth: told(&data.validation)?,
            test_truth: told(&data.test)?,
            input: Input {
                n_features: data.train.n_features(),
                feature_names: data.train.feature_names.clone(),
                label_names,
                label_places,
                weight_name: data.train.weight_name.clone(),
                weight_place: data.train.weight_place,
                index_base: data.train.index_base,
                image: image.map(|i| [i.channels, i.height, i.width]),
            },
            config,
            shape,
            data,
            outputs,
            truth,
            weights,
            fixed: None,
            centers: None,
            ranks,
            start,
        })
    }

    /// The settings of another run on the same data.
    pub(super) fn resolve(&self, config: &Config) -> Result<Effective> {
        let mut effective = config.resolve(self.shape)?;
        effective.task = self.config.task;
        Ok(effective)
    }

    /// Fits preprocessing and transforms training and validation rows, and no more.
    pub(super) fn transformed(self) -> Result<Transformed<T>> {
        let (train, [validation, _]) = loaded(self.data, &self.config, self.input.image)?;
        let steps = &self.config.preprocess;
        let dense = |part: Points<T>| {
            check_dense(&part, &self.config)?;
            Ok::<_, Error>(part.into_dense())
        };
        let (pipeline, x) = steps.fit(dense(train)?, self.input.image)?;
        let validation = validation.map(|part| pipeline.transform(dense(part)?));
        Ok(Transformed {
            validation: validation.transpose()?.zip(self.validation_truth),
            config: self.config,
            shape: self.shape,
            x,
            targets: self.truth.targets(self.outputs.names().len()),
            weights: self.weights,
            outputs: self.outputs,
        })
    }

    /// Rows that stand for themselves in a kernel matrix that is given.
    pub(super) fn with_kernel(self, omega: &Matrix<T>, plans: &[Plan]) -> Result<LaidOut<T>> {
        let targets = self.truth.targets(self.outputs.names().len());
        let (c, weights) = (self.config.c, self.weights.clone());
        let mut laid_out = self.lay_out(plans, Kept::Recomputed)?;
        let ready = &mut laid_out.ready;
        // In the order of the matrix.
        ready.order = None;
        let system = System::of_kernel_matrix(omega, targets, c)?;
        ready.system = match weights {
            Some(weights) => system.with_weights(&weights)?,
            None => system,
        };
        Ok(laid_out)
    }

    /// Transforms the rows and decides what runs by these plans will keep in memory.
    pub(super) fn lay_out(self, plans: &[Plan], kept: Kept) -> Result<LaidOut<T>> {
        let mut config = self.config;
        let ranks = &self.ranks;
        let (n, k) = (self.truth.len(), self.outputs.names().len());
        // In the order of the data, until another is known.
        let natural = Shares::even(n, 1, ranks);
        let mut data = self.data;
        let all = Arc::clone(&data.train.features);
        if !ranks.is_alone() {
            let own = Picked::new(Arc::clone(&all), natural.own().collect());
            data.train.features = Arc::new(own);
        }
        let spread = (!ranks.is_alone()).then(|| Arc::clone(&all));
        drop(all);
        let (train, [validation, test]) = ranks.agree(loaded(data, &config, self.input.image))?;
        let (pipeline, kernel, x) = match self.fixed {
            Some(Fixed { pipeline, kernel }) => {
                let x = ranks.agree(transform(&pipeline, train, &config))?;
                (pipeline, kernel, x)
            }
            None => {
                if !config.preprocess.may_keep_zeros() {
                    ranks.agree(check_dense(&train, &config))?;
                }
                let steps = &config.preprocess;
                let (pipeline, x) = steps.fit_points_on(ranks, train, self.input.image)?;
                let spec = config.kernel_spec();
                let weights = self.weights.as_ref().map(|all| &all[natural.own()]);
                let kernel = spec.resolve_on(ranks, as_rows(&x), weights)?;
                (pipeline, kernel, x)
            }
        };
        let any = |method| plans.iter().any(|plan| plan.method == method);
        let order = if any(Method::GaussSeidel) {
            // Each block of rows a random sample.
            let mut order: Vec<usize> = (0..n).collect();
            random::shuffle(&mut random::rng(config.seed), &mut order);
            Some(order)
        } else if any(Method::Pcg) {
            Some(in_clusters_of(&natural, &x, config.seed))
        } else {
            None
        };
        let (shares, mine) = match &order {
            Some(order) => {
                let shares = Shares::even(n, unit(plans), ranks);
                let mine = order[shares.own()].to_vec();
                (shares, mine)
            }
            None => (natural.clone(), natural.own().collect()),
        };
        let x = match (&order, &spread) {
            (None, _) => x,
            (Some(order), None) => x.reordered(order),
            (Some(_), Some(all)) => {
                // Who is to have which rows is known only now: they are read once more.
                drop(x);
                let read = all.picked_points(&mine);
                ranks.agree(read.and_then(|rows| transform(&pipeline, rows, &config)))?
            }
        };
        let targets: Matrix<T> = self.truth.select(&mine).targets(k);
        let weights = self.weights;
        let weights = weights.map(|all| mine.iter().map(|&row| all[row]).collect::<Vec<_>>());
        let transformed = |part: Option<Points<T>>| {
            let part = part.map(|part| transform(&pipeline, part, &config));
            part.transpose()
        };
        let validation = transformed(validation)?;
        let test = transformed(test)?;

        let shape = [n, x.cols(), k];
        let width = ranks.largest(x.width() as u64) as usize;
        let parts = [&validation, &test];
        let (sizes, rows) = ([width, k], (&shares, &x));
        let memory = MemoryPlan::new(&config, plans, kept, rows, sizes, parts)?;
        config.rank = config.rank.or(memory.rank);
        let system = System::shared(shares, x, targets, kernel, config.c);
        let system = system.and_then(|system| match weights {
            Some(weights) => system.with_weights(&weights),
            None => Ok(system),
        });
        let system = ranks.agree(system)?;
        let spread = spread.map(|rows| Whole {
            rows,
            truth: self.truth,
        });
        let forecast = Forecast::new(&config, shape, &memory, &kernel, system.samples()).on(ranks);
        Ok(LaidOut {
            forecast,
            validation: validation.zip(self.validation_truth),
            test: test.zip(self.test_truth),
            centered: None,
            ready: Ready {
                validation: None,
                test: None,
                config,
                shape,
                order,
                centers: None,
                solver: None,
                phases: Phases::default(),
                kernel,
                pipeline,
                system,
                outputs: self.outputs,
                input: self.input,
                memory,
                ranks: self.ranks,
                keep: keep(plans),
                whole: spread,
                start: self.start,
            },
        })
    }
}

/// The rows that a rank must have whole runs of, for these plans.
fn unit(plans: &[Plan]) -> usize {
    let block = |plan: &Plan| match plan.method {
        Method::GaussSeidel => rows_of_block(plan.block_size),
        Method::Pcg => TILE,
        _ => 1,
    };
    plans.iter().map(block).max().unwrap_or(1)
}

/// Validation and test rows.
type Others<T> = [Option<Points<T>>; 2];

/// The features of the training, validation and test rows in memory, if there is room for
/// them.
fn loaded<T: Scalar>(
    data: StreamData<T>,
    config: &Effective,
    image: Option<[usize; 3]>,
) -> Result<(Points<T>, Others<T>)> {
    // As they will be after preprocessing, which may make rows longer.
    let width = config
        .preprocess
        .features_out(data.train.n_features(), image)?;
    let bytes = |part: &Stream<T>| match part.features.kept_values() {
        Some(kept) => {
            let values = Csr::<T>::bytes(part.n_samples(), kept);
            values + bytes_of_columns(part.n_features())
        }
        None => (part.n_samples() * width * size_of::<T>()) as u64,
    };
    let others = [data.validation.as_ref(), data.test.as_ref()];
    let parts = || others.into_iter().flatten().chain([&data.train]);
    let needed = parts().map(bytes).sum();
    let rows = parts().map(Stream::n_samples).sum();
    need_memory([rows, width], needed, config)?;
    let points = |part: Stream<T>| part.features.into_points();
    let others = [
        data.validation.map(points).transpose()?,
        data.test.map(points).transpose()?,
    ];
    Ok((points(data.train)?, others))
}

/// Preprocessed rows; sparse ones become dense only if there is room for them.
fn transform<T: Scalar>(
    pipeline: &Pipeline,
    rows: Points<T>,
    config: &Effective,
) -> Result<Points<T>> {
    if !pipeline.keeps_zeros() {
        check_dense(&rows, config)?;
    }
    pipeline.transform_points(rows)
}

/// Whether there is room for all zeros of sparse rows.
fn check_dense<T: Scalar>(rows: &Points<T>, config: &Effective) -> Result<()> {
    let shape = [rows.rows(), rows.cols()];
    let needed = shape.iter().fold(size_of::<T>() as u64, |all, &size| {
        all.saturating_mul(size as u64)
    });
    match rows.is_sparse() {
        true => need_memory(shape, needed, config).map_err(|error| {
            error.with_remedy(|| {
                "keep them sparse (--preprocess unit-norm, max-abs or none), use fewer rows \
                 (--train-rows), or raise --memory"
                    .into()
            })
        }),
        false => Ok(()),
    }
}

fn need_memory([rows, width]: [usize; 2], needed: u64, config: &Effective) -> Result<()> {
    if needed <= config.budget.0 {
        return Ok(());
    }
    Err(Error::Memory {
        what: format!("{} on {rows} rows of {width} features", config.method),
        needed,
        available: config.budget.0,
        remedy: "use --method centers, which leaves them on disk, fewer rows (--train-rows), or \
                 raise --memory"
            .into(),
    })
}

/// Rows after preprocessing, without a kernel.
pub(super) struct Transformed<T: Scalar> {
    pub(super) config: Effective,
    shape: Shape,
    pub(super) x: Matrix<T>,
    pub(super) targets: Matrix<T>,
    pub(super) weights: Option<Vec<f64>>,
    pub(super) outputs: Outputs,
    pub(super) validation: Option<(Matrix<T>, Truth)>,
}

impl<T: Scalar> Transformed<T> {
    /// The settings of a run with another kernel.
    pub(super) fn resolve(&self, config: &Config) -> Result<Effective> {
        let mut effective = config.resolve(self.shape)?;
        effective.task = self.config.task;
        Ok(effective)
    }
}

/// Everything decided; nothing large computed yet.
pub(super) struct LaidOut<T: Scalar> {
    pub(super) forecast: Forecast,
    pub(super) ready: Ready<T>,
    pub(super) validation: Option<(Points<T>, Truth)>,
    pub(super) test: Option<(Points<T>, Truth)>,
    /// What centres are chosen from and fitted to.
    pub(super) centered: Option<Centered<T>>,
}

impl<T: Scalar> LaidOut<T> {
    /// Computes what is to be kept, after [`Watcher::begin`].
    pub(super) fn ready(self, watcher: &mut dyn Watcher) -> Result<Ready<T>> {
        let mut ready = self.ready;
        if let Some(centered) = self.centered {
            ready.solver = Some(Box::new(centered.solver(&ready)?));
        }
        let system = &mut ready.system;
        if let Some(format) = ready.memory.kernel {
            let values = system.own_rows() as f64 * system.n() as f64;
            let flops = system.kernel_flops(0.5 * values);
            let keep = ready.keep;
            ready.phases.time(Phase::Kernel, flops, || {
                system.keep_some(format, keep, &mut |done| {
                    watcher.progress(done) == Flow::Continue
                })
            })?;
        }
        let followed = |pair: Option<(Points<T>, Truth)>, stored: bool| {
            pair.map(|(rows, truth)| Followed::new(&ready.system, rows, truth, stored))
        };
        let [validation, test] = ready.memory.stored;
        let (validation, test) = (
            followed(self.validation, validation),
            followed(self.test, test),
        );
        (ready.validation, ready.test) = (validation, test);
        Ok(ready)
    }
}

/// Everything a solver needs, and what a model says of itself.
pub(super) struct Ready<T: Scalar> {
    pub(super) config: Effective,
    /// Training rows, features after preprocessing, and outputs.
    pub(super) shape: [usize; 3],
    /// Where row i of the system is in the data, if the rows were put in another order.
    pub(super) order: Option<Vec<usize>>,
    /// Which rows of the data the system is made of, if not of all.
    pub(super) centers: Option<Vec<usize>>,
    /// The solver, if the plan does not say which.
    pub(super) solver: Option<Box<dyn Solver<T>>>,
    /// Where the time went so far.
    pub(super) phases: Phases,
    pub(super) kernel: Kernel,
    pub(super) pipeline: Pipeline,
    pub(super) system: System<T>,
    pub(super) validation: Option<Followed<T>>,
    pub(super) test: Option<Followed<T>>,
    pub(super) outputs: Outputs,
    pub(super) input: Input,
    pub(super) memory: MemoryPlan,
    /// Who makes the run together.
    pub(super) ranks: Ranks,
    /// What is kept of Ω, if it is.
    pub(super) keep: Keep,
    /// All training rows, if this rank has some of them alone.
    pub(super) whole: Option<Whole<T>>,
    pub(super) start: Instant,
}

impl<T: Scalar> Ready<T> {
    /// Where row i of the data is in the system, if that has another order.
    pub(super) fn back(&self) -> Option<Vec<usize>> {
        let order = self.order.as_ref()?;
        let mut back = vec![0; order.len()];
        order.iter().enumerate().for_each(|(i, &row)| back[row] = i);
        Some(back)
    }
}

/// Training rows that several ranks share.
pub(super) struct Whole<T: Scalar> {
    /// As they are in the data.
    pub(super) rows: Arc<dyn Rows<T>>,
    pub(super) truth: Truth,
}

/// What each training row counts: its own weight times that of its class; none if all
/// count the same.
fn row_weights<F>(
    train: &Labelled<F>,
    targets: &Targets,
    class_weight: Option<&ClassWeight>,
) -> Result<Option<Vec<f64>>> {
    if let Some(weights) = &train.weights {
        let wrong = |weight: &f64| !(*weight >= 0.0 && weight.is_finite());
        if let Some(row) = weights.iter().position(wrong) {
            return Err(Error::Data(format!(
                "{}: the weight of row {} is {}; weights must be finite and not negative",
                train.source.display(),
                row + 1,
                weights[row]
            )));
        }
    }
    let Some(class_weight) = class_weight else {
        return Ok(train.weights.clone());
    };
    let Targets::Classes { names, codes } = targets else {
        return Err(class_weight.refused());
    };
    let of_classes = class_weight.of_classes(names, codes)?;
    let of_row = |(row, &code): (usize, &u32)| {
        let own = train.weights.as_ref().map_or(1.0, |weights| weights[row]);
        own * of_classes[code as usize]
    };
    Ok(Some(codes.iter().enumerate().map(of_row).collect()))
}

/// What [`encode`] was given, from the numbers it made.
pub(super) fn truth_of<T: Scalar>(targets: &Matrix<T>, outputs: &Outputs) -> Truth {
    match outputs {
        Outputs::Classes { .. } => Truth::Classes(argmax(targets)),
        Outputs::Values { .. } => Truth::Values(targets.cast()),
    }
}

/// Names the outputs, and says what the rows should score.
fn encode(labels: Targets, label_names: &[String], source: &Path) -> Result<(Outputs, Truth)> {
    match labels {
        Targets::Classes { names, codes } => {
            if let [only] = names.as_slice() {
                let other = match only.parse::<f64>() {
                    Ok(_) => "; choose --task regression if it is a number to predict",
                    Err(_) => ": check the label column (--label)",
                };
                let problem = format!(
                    "all training rows have the class '{only}', and classification needs at \
                     least two classes{other}"
                );
                return Err(Error::file(source, Place::Whole, problem));
            }
            Ok((Outputs::Classes { names }, Truth::Classes(codes)))
        }
        Targets::Values(values) => {
            let mut names = label_names.to_vec();
            names.resize(values.cols(), String::new());
            Ok((Outputs::Values { names }, Truth::Values(values)))
        }
    }
}
