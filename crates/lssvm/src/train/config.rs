//! What a training run may be told, and what it decides for itself.
//!
//! [`Config`] is what was typed: everything is optional. [`Effective`] is what
//! it means for given data: everything is decided. The second is saved in the
//! model and can be given back as the first.

use serde::{Deserialize, Serialize};

use crate::data::{ImageShape, Task};
use crate::kernel::{Gamma, KernelName, KernelSpec};
use crate::linalg::Precision;
use crate::memory::{self, Size};
use crate::preprocess::PipelineSpec;
use crate::solve::{Limits, Method, Plan};
use crate::{Error, Result};

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
    /// How the system is solved.
    pub method: Option<Method>,
    /// J, the indices of a block.
    pub block_size: Option<usize>,
    /// Rank of the preconditioner of `pcg`.
    pub rank: Option<usize>,
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
    /// How the system is solved.
    pub method: Method,
    /// J
    pub block_size: usize,
    /// Rank of the preconditioner of `pcg`, if it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// Most iterations.
    pub iterations: usize,
    /// Most seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    /// Tolerance.
    pub tolerance: f64,
    /// Patience.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<usize>,
    /// Share of the training rows kept apart for validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
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
}

/// What the defaults depend on.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Training rows, with those that [`Config::validation`] keeps apart.
    pub rows: usize,
    /// The shape of the image that a row is.
    pub image: Option<ImageShape>,
}

/// Above so many rows the default method is no longer `exact`: its N³/3
/// operations take longer than two passes of matching pursuit.
const MOST_ROWS_FOR_EXACT: usize = 15_000;

/// Indices of a block, as in the paper's experiments, where the data have as many.
const DEFAULT_BLOCK: usize = 2_000;

/// Members of a committee: the error is flat after a few.
const DEFAULT_MEMBERS: usize = 6;

/// Passes over all indices that the iterative methods make.
const DEFAULT_PASSES: usize = 2;

impl Config {
    /// Decides what was left open.
    ///
    /// Images get the paper's setting: centred rows of unit norm, a polynomial
    /// kernel of degree 4, c = 10⁴. Tables get standardised columns, a Gaussian
    /// kernel of scikit-learn's width and c = 10.
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
        let rows = shape.rows - kept_apart;
        let image = shape.image.is_some();
        let text = if image {
            "center,unit-norm"
        } else {
            "standardize"
        };
        let preprocess = match &self.preprocess {
            Some(steps) => steps.clone(),
            None => text.parse()?,
        };
        let budget = self.memory.unwrap_or_else(memory::default_budget);
        let precision = self.precision.unwrap_or_default();
        let method = self.method.unwrap_or_else(|| {
            let value = if precision == Precision::F64 { 8 } else { 4 };
            let bytes = value * (rows as u64).pow(2);
            if rows <= MOST_ROWS_FOR_EXACT && 2 * bytes <= budget.0 {
                Method::Exact
            } else {
                Method::Mp
            }
        });
        let size = rows + 1;
        let block_size = self.block_size.unwrap_or_else(|| {
            // A tenth of small data, so that there are several blocks.
            (size / 10).clamp(1, DEFAULT_BLOCK).max(100).min(size)
        });
        let passes = DEFAULT_PASSES * (size / block_size.max(1)).max(1);
        let iterations = self.iterations.unwrap_or(match method {
            Method::Exact => 1,
            Method::Nystrom => DEFAULT_MEMBERS,
            _ => passes,
        });
        let kernel = if image {
            KernelName::Poly
        } else {
            KernelName::Rbf
        };
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
        let threads = self.threads.unwrap_or_else(cores);
        if threads == 0 {
            return Err(Error::parameter("threads", 0, "must be at least 1"));
        }
        let effective = Effective {
            task: self.task.unwrap_or_default(),
            image_shape: shape.image,
            train_rows: shape.rows,
            preprocess,
            kernel: self.kernel.unwrap_or(kernel),
            gamma: self.gamma.unwrap_or_default(),
            coef0: self.coef0.unwrap_or(0.0),
            degree: self.degree.unwrap_or(4),
            c: self.c.unwrap_or(if image { 1e4 } else { 10.0 }),
            method,
            block_size,
            rank: self.rank,
            iterations,
            time: self.time,
            tolerance: self.tolerance.unwrap_or(1e-4),
            patience: self.patience,
            validation: self.validation,
            averages: self.averages.unwrap_or(1),
            follow: self.follow.unwrap_or(1),
            seed: self.seed.unwrap_or(1),
            threads,
            memory: self.memory,
            budget,
            precision,
        };
        crate::system::check_c(effective.c)?;
        effective.limits().check()?;
        effective.plan().check(rows)?;
        Ok(effective)
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
        }
    }

    /// When to stop.
    pub fn limits(&self) -> Limits {
        Limits {
            iterations: self.iterations,
            seconds: self.time,
            tolerance: self.tolerance,
            patience: self.patience,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(rows: usize, image: Option<&str>) -> Shape {
        Shape {
            rows,
            image: image.map(|i| i.parse().unwrap()),
        }
    }

    #[test]
    fn defaults_follow_the_data() {
        let config = Config {
            memory: Some(Size(8_000_000_000)),
            ..Config::default()
        };
        let mnist = config.resolve(shape(60_000, Some("28x28"))).unwrap();
        assert_eq!(mnist.method, Method::Mp);
        assert_eq!((mnist.block_size, mnist.iterations), (2_000, 60));
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
    fn the_effective_configuration_can_be_given_back() {
        let config = Config {
            memory: Some(Size(1_000_000_000)),
            threads: Some(2),
            ..Config::default()
        };
        let effective = config.resolve(shape(700, Some("28x28"))).unwrap();
        let json = serde_json::to_string(&effective).unwrap();
        let again: Config = serde_json::from_str(&json).unwrap();
        assert_eq!(again.resolve(shape(700, Some("28x28"))).unwrap(), effective);
    }
}
