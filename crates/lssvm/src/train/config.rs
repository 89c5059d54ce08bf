//! What a training run may be told, and what it decides for itself.
//!
//! [`Config`] is what was typed: everything is optional. [`Effective`] is what
//! it means for given data: everything is decided. The second is saved in the
//! model and can be given back as the first.

use serde::{Deserialize, Deserializer, Serialize};

use super::ClassWeight;
use super::choice::{Choice, choose, gauss_seidel_block, with_scores};
use super::memory_plan::bytes_of_columns;
use crate::data::{Augment, ImageShape, Task};
use crate::kernel::{Gamma, KernelName, KernelSpec};
use crate::linalg::{Csr, Precision, Scalar};
use crate::memory::{self, Size};
use crate::preprocess::PipelineSpec;
use crate::solve::centers::Select;
use crate::solve::{Limits, Method, Plan};
use crate::system::TILE;
use crate::{Error, Result};

/// The name that leaves the method open.
pub const AUTO: &str = "auto";

/// Settings of a training run; those not given are chosen from the data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Classification or regression.
    pub task: Option<Task>,
    /// The shape of the image that a row is.
    pub image_shape: Option<ImageShape>,
    /// Use the first so many training rows only.
    pub train_rows: Option<usize>,
    /// In which other ways the images of the training rows are seen.
    pub augment: Option<Augment>,
    /// Steps applied to the features.
    pub preprocess: Option<PipelineSpec>,
    /// Kernel function.
    pub kernel: Option<KernelName>,
    /// Kernel coefficient.
    pub gamma: Option<Gamma>,
    /// Constant term of `poly` and `sigmoid`.
    pub coef0: Option<f64>,
    /// Power of `poly`.
    pub degree: Option<u32>,
    /// Regularisation weight c = 1/λ: larger follows the data more closely.
    pub c: Option<f64>,
    /// What the rows of each class count.
    pub class_weight: Option<ClassWeight>,
    /// How the system is solved; none, or `"auto"`: chosen from size and memory.
    #[serde(deserialize_with = "method_or_auto")]
    pub method: Option<Method>,
    /// J, the indices of a block.
    pub block_size: Option<usize>,
    /// Rank of the preconditioner of `pcg`.
    pub rank: Option<usize>,
    /// P, the rows that the model of `centers` is made of.
    pub centers: Option<usize>,
    /// How the rows of `centers` are chosen.
    pub select: Option<Select>,
    /// Most iterations.
    pub iterations: Option<usize>,
    /// Most seconds.
    pub time: Option<f64>,
    /// Stop at this relative residual or change.
    pub tolerance: Option<f64>,
    /// Stop when the validation error has not improved for so many iterations.
    pub patience: Option<usize>,
    /// Share of the training rows kept apart for validation.
    pub validation: Option<f64>,
    /// Compute leave-one-out scores of the training rows.
    pub loo: Option<bool>,
    /// Runs with different seeds that are averaged.
    pub averages: Option<usize>,
    /// Follow the test and validation error every so many iterations; 0 means
    /// at the end only.
    pub follow: Option<usize>,
    /// Seed of everything random.
    pub seed: Option<u64>,
    /// Number of threads.
    pub threads: Option<usize>,
    /// Most memory the process may use.
    pub memory: Option<Size>,
    /// Number type of the computation.
    pub precision: Option<Precision>,
}

/// Settings of a training run, all decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Effective {
    /// Classification or regression.
    pub task: Task,
    /// The shape of the image that a row is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_shape: Option<ImageShape>,
    /// Training rows, with those kept apart for validation.
    pub train_rows: usize,
    /// In which other ways the images of the training rows are seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub augment: Option<Augment>,
    /// Steps applied to the features.
    pub preprocess: PipelineSpec,
    /// Kernel function.
    pub kernel: KernelName,
    /// Kernel coefficient.
    pub gamma: Gamma,
    /// Constant term.
    pub coef0: f64,
    /// Power.
    pub degree: u32,
    /// Regularisation weight.
    pub c: f64,
    /// What the rows of each class count, if not all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_weight: Option<ClassWeight>,
    /// How the system is solved.
    pub method: Method,
    /// J
    pub block_size: usize,
    /// Rank of the preconditioner of `pcg`, if it was given or memory is too short for the
    /// usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// P of `centers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centers: Option<usize>,
    /// How they are chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<Select>,
    /// Most iterations.
    pub iterations: usize,
    /// Most seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    /// Tolerance.
    pub tolerance: f64,
    /// Patience, if it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<usize>,
    /// Patience if none was given; none without validation rows.
    #[serde(skip)]
    pub default_patience: Option<usize>,
    /// Share of the training rows kept apart for validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
    /// Compute leave-one-out scores of the training rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loo: bool,
    /// Runs that are averaged.
    pub averages: usize,
    /// Follow errors every so many iterations.
    pub follow: usize,
    /// Seed.
    pub seed: u64,
    /// Number of threads.
    pub threads: usize,
    /// Most memory the process may use, if that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Most memory the process may use; depends on the machine's state if it
    /// was not given, and is not part of the saved settings.
    #[serde(skip, default = "memory::default_budget")]
    pub budget: Size,
    /// Number type of the computation.
    pub precision: Precision,
    /// Why this method, if it was chosen and not asked for.
    #[serde(skip)]
    pub why: Option<String>,
}

/// What the defaults depend on.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Training rows, with those that [`Config::validation`] keeps apart.
    pub rows: usize,
    /// Features before preprocessing.
    pub features: usize,
    /// Classes or values.
    pub outputs: usize,
    /// Test and validation rows that were given besides.
    pub others: usize,
    /// Whether there are validation rows among them.
    pub validation: bool,
    /// The shape of the image that a row is.
    pub image: Option<ImageShape>,
    /// Values of a row that are kept, on average, if zeros are left out.
    pub kept: Option<usize>,
    /// Ranks that share the training rows.
    pub ranks: usize,
}

impl Shape {
    /// The most training rows that a rank has.
    pub(super) fn own_rows(&self) -> usize {
        self.rows.div_ceil(self.ranks)
    }

    /// Values of a row that are kept: what a product with it costs.
    pub(super) fn width(&self) -> usize {
        self.kept.unwrap_or(self.features)
    }

    /// Bytes of so many rows of features.
    pub(super) fn bytes<T: Scalar>(&self, rows: usize) -> u64 {
        match self.kept {
            Some(kept) => {
                let values = Csr::<T>::bytes(rows, kept.saturating_mul(rows));
                values + bytes_of_columns(self.features)
            }
            None => (rows as u64) * (self.features as u64) * size_of::<T>() as u64,
        }
    }
}

/// Indices of a block, as in the paper's experiments, where the data have as many.
const DEFAULT_BLOCK: usize = 2_000;

/// Members of a committee: the error is flat after a few.
const DEFAULT_MEMBERS: usize = 6;

/// Passes over all indices that the paper's methods make.
const DEFAULT_PASSES: usize = 2;

/// Passes of Gauss–Seidel: the error is down to that of the solution after two or
/// three.
const GAUSS_SEIDEL_PASSES: usize = 4;

/// Most iterations of conjugate gradients; mostly the tolerance ends it earlier.
const PCG_ITERATIONS: usize = 300;

/// Most passes of `centers`, each of which computes N × P kernel values.
const CENTERS_ITERATIONS: usize = 50;

/// Iterations without a better validation error after which a run ends: errors of the
/// first iterations jump about.
const PCG_PATIENCE: usize = 20;
const CENTERS_PATIENCE: usize = 5;
const GAUSS_SEIDEL_PATIENCE: usize = 2;
const LEAST_PATIENCE: usize = 10;

/// Relative residual of methods that know it; the error of the predictions no longer
/// changes long before.
const FULL_TOLERANCE: f64 = 1e-3;

/// Relative residual of the normal equations of `centers`.
const CENTERS_TOLERANCE: f64 = 1e-3;

/// Relative change (or residual) of methods that work block by block.
const BLOCK_TOLERANCE: f64 = 1e-4;

impl Config {
    /// The number of threads; without one, that of the cores.
    pub(crate) fn threads_asked_for(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
        self.threads.unwrap_or_else(cores)
    }

    /// Decides what was left open.
    ///
    /// Images get the paper's setting: centred rows of unit norm, a polynomial
    /// kernel of degree 4, c = 10⁴. Tables get standardised columns, a Gaussian
    /// kernel of scikit-learn's width and c = 10. Sparse rows stay sparse: they get unit
    /// norm instead.
    ///
    /// # Errors
    /// [`Error::Parameter`] if a number cannot be used with such data. All
    /// that does not depend on the values of the features is checked here,
    /// before any work.
    pub fn resolve(&self, shape: Shape) -> Result<Effective> {
        let kept_apart = match self.validation {
            Some(share) => validation_rows(shape.rows, share)?,
            None => 0,
        };
        let ways = self.augment.map_or(1, |augment| augment.variants());
        let rows = (shape.rows - kept_apart) * ways;
        let image = shape.image.is_some();
        let text = match (image, shape.kept) {
            (true, _) => "center,unit-norm",
            // Sparse rows stay sparse.
            (false, Some(_)) => "unit-norm",
            (false, None) => "standardize",
        };
        let preprocess = match &self.preprocess {
            Some(steps) => steps.clone(),
            None => text.parse()?,
        };
        let budget = self.memory.unwrap_or_else(memory::default_budget);
        let precision = self.precision.unwrap_or_default();
        let kernel = self.kernel.unwrap_or(match image {
            true => KernelName::Poly,
            false => KernelName::Rbf,
        });
        let solved = Shape {
            rows,
            others: shape.others + kept_apart,
            kept: shape.kept.filter(|_| preprocess.may_keep_zeros()),
            ..shape
        };
        let loo = self.loo.unwrap_or(false);
        let one_pass = self.iterations == Some(1);
        let (chosen, gauss_seidel_block) = match precision {
            Precision::F32 => chosen::<f32>(&solved, kernel, budget, loo, one_pass),
            Precision::F64 => chosen::<f64>(&solved, kernel, budget, loo, one_pass),
        };
        if let (true, Some(augment)) = (loo, &self.augment) {
            return Err(Error::parameter(
                "augment",
                augment,
                "a row that is left out would still be there in other ways, so that --loo would \
                 promise too much; use --validation instead",
            ));
        }
        let method = self.method.unwrap_or(match (loo, self.centers) {
            (true, _) => with_scores(chosen.method, kernel),
            (false, Some(_)) => Method::Centers,
            (false, None) => chosen.method,
        });
        let size = rows + 1;
        let block_size = self.block_size.unwrap_or_else(|| match method {
            Method::GaussSeidel => gauss_seidel_block,
            // A tenth of small data, so that there are several blocks.
            _ => (size / 10).clamp(1, DEFAULT_BLOCK).max(100).min(size),
        });
        let passes = DEFAULT_PASSES * (size / block_size.max(1)).max(1);
        let iterations = self.iterations.unwrap_or(match method {
            Method::Exact => 1,
            Method::Pcg => PCG_ITERATIONS,
            Method::Centers => CENTERS_ITERATIONS,
            Method::GaussSeidel => GAUSS_SEIDEL_PASSES,
            Method::Nystrom => DEFAULT_MEMBERS,
            _ => passes,
        });
        let validated = shape.validation || self.validation.is_some();
        if loo && validated && method.is_iterative() {
            return Err(Error::parameter(
                "loo",
                true,
                format!(
                    "with {method} validation rows choose the iteration, and leave-one-out scores \
                     are those of the last; give one of --loo and --validation, or the method exact"
                ),
            ));
        }
        let patience = match method {
            Method::Pcg => PCG_PATIENCE,
            Method::Centers => CENTERS_PATIENCE,
            Method::GaussSeidel => GAUSS_SEIDEL_PATIENCE,
            // A pass over all indices.
            _ => (size / block_size.max(1)).max(LEAST_PATIENCE),
        };
        let tolerance = match method {
            Method::Pcg | Method::GaussSeidel => FULL_TOLERANCE,
            Method::Centers => CENTERS_TOLERANCE,
            _ => BLOCK_TOLERANCE,
        };
        let threads = self.threads_asked_for();
        if threads == 0 {
            return Err(Error::parameter("threads", 0, "must be at least 1"));
        }
        let effective = Effective {
            task: self.task.unwrap_or_default(),
            image_shape: shape.image,
            train_rows: shape.rows,
            augment: self.augment,
            preprocess,
            kernel,
            gamma: self.gamma.unwrap_or_default(),
            coef0: self.coef0.unwrap_or(0.0),
            degree: self.degree.unwrap_or(4),
            c: self.c.unwrap_or(if image { 1e4 } else { 10.0 }),
            class_weight: self.class_weight.clone(),
            method,
            block_size,
            rank: self.rank,
            centers: self.centers.filter(|_| method == Method::Centers),
            select: (method == Method::Centers).then(|| self.select.unwrap_or_default()),
            iterations,
            time: self.time,
            tolerance: self.tolerance.unwrap_or(tolerance),
            patience: self.patience,
            default_patience: (validated && method.is_iterative()).then_some(patience),
            validation: self.validation,
            loo,
            averages: self.averages.unwrap_or(1),
            follow: self.follow.unwrap_or(1),
            seed: self.seed.unwrap_or(1),
            threads,
            memory: self.memory,
            budget,
            precision,
            why: match self.method {
                Some(_) => None,
                None if loo && method == Method::Exact => {
                    Some("leave-one-out scores follow from its factor".into())
                }
                None if loo && method != chosen.method => {
                    Some("leave-one-out scores can be estimated with it".into())
                }
                None if self.centers.is_some() => Some("their number was given".into()),
                None => Some(chosen.why),
            },
        };
        crate::system::check_c(effective.c)?;
        effective.limits().check()?;
        effective.plan().check(rows)?;
        if let Some(centers) = effective.centers.filter(|p| !(1..=rows).contains(p)) {
            let requirement = format!("must be from 1 to {rows}, the number of training rows");
            return Err(Error::parameter("centers", centers, requirement));
        }
        Ok(effective)
    }
}

/// The method of choice, and the block size that Gauss–Seidel would have.
fn chosen<T: Scalar>(
    shape: &Shape,
    kernel: KernelName,
    budget: Size,
    loo: bool,
    one_pass: bool,
) -> (Choice, usize) {
    let block = gauss_seidel_block::<T>(shape, budget, one_pass).unwrap_or(TILE);
    (choose::<T>(shape, kernel, budget, loo), block)
}

/// A method by its name, or none for `auto`.
fn method_or_auto<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Method>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    match name.as_deref() {
        None | Some(AUTO) => Ok(None),
        Some(name) => name.parse().map(Some).map_err(serde::de::Error::custom),
    }
}

/// How many of so many rows this share keeps apart, as
/// [`Dataset::split`](crate::data::Dataset::split) does.
fn validation_rows(rows: usize, share: f64) -> Result<usize> {
    let wrong = |requirement: String| Err(Error::parameter("validation", share, requirement));
    if !(share > 0.0 && share < 1.0) {
        return wrong("must be between 0 and 1, or a file".into());
    }
    let apart = (rows as f64 * share).round() as usize;
    if apart == 0 || apart >= rows {
        return wrong(format!(
            "one of the two parts of {rows} rows would be empty"
        ));
    }
    Ok(apart)
}

impl Effective {
    /// The kernel as typed.
    pub fn kernel_spec(&self) -> KernelSpec {
        KernelSpec {
            name: self.kernel,
            gamma: self.gamma,
            coef0: self.coef0,
            degree: self.degree,
        }
    }

    /// The solver's part.
    pub fn plan(&self) -> Plan {
        Plan {
            method: self.method,
            block_size: self.block_size,
            seed: self.seed,
            averages: self.averages,
            rank: self.rank,
            tolerance: self.tolerance,
            loo: self.loo,
        }
    }

    /// When to stop.
    pub fn limits(&self) -> Limits {
        Limits {
            iterations: self.iterations,
            seconds: self.time,
            spent: 0.0,
            tolerance: self.tolerance,
            patience: self.patience.or(self.default_patience),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(rows: usize, image: Option<&str>) -> Shape {
        Shape {
            rows,
            features: 784,
            outputs: 10,
            others: 0,
            validation: false,
            image: image.map(|i| i.parse().unwrap()),
            kept: None,
            ranks: 1,
        }
    }

    #[test]
    fn defaults_follow_the_data() {
        let config = Config {
            memory: Some(Size(8_000_000_000)),
            ..Config::default()
        };
        let mnist = config.resolve(shape(60_000, Some("28x28"))).unwrap();
        assert_eq!((mnist.method, mnist.tolerance), (Method::Pcg, 1e-3));
        let mp = Config {
            method: Some(Method::Mp),
            ..config.clone()
        };
        let mp = mp.resolve(shape(60_000, Some("28x28"))).unwrap();
        assert_eq!((mp.block_size, mp.iterations), (2_000, 60));
        assert_eq!(
            (mnist.kernel, mnist.degree, mnist.c),
            (KernelName::Poly, 4, 1e4)
        );
        let table = config.resolve(shape(5_000, None)).unwrap();
        assert_eq!(
            (table.method, table.kernel),
            (Method::Exact, KernelName::Rbf)
        );
        let tiny = config.resolve(shape(3, None)).unwrap();
        assert_eq!(tiny.block_size, 4);
    }

    #[test]
    fn validation_rows_end_a_run() {
        let given = |config: &Config, validation| {
            let shape = Shape {
                validation,
                ..shape(60_000, None)
            };
            config.resolve(shape).unwrap().limits().patience
        };
        let config = Config {
            method: Some(Method::Mp),
            ..Config::default()
        };
        assert_eq!(given(&config, false), None);
        assert_eq!(given(&config, true), Some(30));
        let share = Config {
            validation: Some(0.1),
            ..config.clone()
        };
        assert_eq!(given(&share, false), Some(27));
        let own = Config {
            patience: Some(3),
            ..share
        };
        assert_eq!(given(&own, false), Some(3));
    }

    #[test]
    fn a_number_of_centres_chooses_the_method() {
        let config = Config {
            centers: Some(50),
            ..Config::default()
        };
        let effective = config.resolve(shape(60_000, None)).unwrap();
        assert_eq!(effective.method, Method::Centers);
        assert_eq!(effective.centers, Some(50));
    }

    #[test]
    fn images_seen_in_other_ways_are_not_left_out() {
        let config = Config {
            augment: Some("shift=1".parse().unwrap()),
            loo: Some(true),
            ..Config::default()
        };
        let error = config.resolve(shape(700, Some("28x28"))).unwrap_err();
        assert!(error.to_string().contains("--validation"), "{error}");
    }

    #[test]
    fn auto_is_a_method_that_is_left_open() {
        let config: Config = serde_json::from_str(r#"{"method": "auto"}"#).unwrap();
        assert_eq!(config, Config::default());
        let config: Config = serde_json::from_str(r#"{"method": "pcg"}"#).unwrap();
        assert_eq!(config.method, Some(Method::Pcg));
        assert!(serde_json::from_str::<Config>(r#"{"method": "magic"}"#).is_err());
    }

    #[test]
    fn the_effective_configuration_can_be_given_back() {
        let config = Config {
            memory: Some(Size(1_000_000_000)),
            threads: Some(2),
            ..Config::default()
        };
        let effective = config.resolve(shape(700, Some("28x28"))).unwrap();
        let json = serde_json::to_string(&effective).unwrap();
        let again: Config = serde_json::from_str(&json).unwrap();
        let again = again.resolve(shape(700, Some("28x28"))).unwrap();
        // Chosen before, asked for now.
        assert!(effective.why.is_some() && again.why.is_none());
        let why = effective.why.clone();
        assert_eq!(Effective { why, ..again }, effective);
    }
}
