//! Fitted steps, one after the other.

use serde::{Deserialize, Serialize};

use super::fourier::Fourier;
use super::min_max::MinMax;
use super::standardize::Standardize;
use super::window::Window;
use super::{PipelineSpec, StepSpec, center, check_image, unit_norm};
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// Steps that have learnt what they need from training data.
///
/// Saved with serde. The numbers it has learnt keep their bits if the format
/// does: JSON needs the `float_roundtrip` feature of `serde_json` to read them
/// back exactly. What is read is checked, so that a damaged file is an error
/// here and no panic later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Pipeline {
    n_features_in: usize,
    #[serde(skip_serializing)]
    n_features_out: usize,
    steps: Vec<Step>,
}

/// A pipeline as it is in a file.
#[derive(Deserialize)]
struct Stored {
    n_features_in: usize,
    steps: Vec<Step>,
}

impl TryFrom<Stored> for Pipeline {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        let mut n_features_out = stored.n_features_in;
        for step in &stored.steps {
            n_features_out = step.check(n_features_out)?;
        }
        Ok(Pipeline {
            n_features_in: stored.n_features_in,
            n_features_out,
            steps: stored.steps,
        })
    }
}

impl PipelineSpec {
    /// Fits the steps in their order, each on what those before it made of
    /// `x`, and returns them with the transformed data.
    ///
    /// `image` is `[channels, height, width]` if the rows are images, row-major
    /// and one channel after the other. Where the number of columns stays, the
    /// memory of `x` is used again.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a parameter out of its range, [`Error::Data`]
    /// if the image shape is needed but not given or does not fit the columns,
    /// or if there is no row to learn from, [`Error::Numeric`] if what a step
    /// learns is not finite.
    pub fn fit<T: Scalar>(
        &self,
        mut x: Matrix<T>,
        mut image: Option<[usize; 3]>,
    ) -> Result<(Pipeline, Matrix<T>)> {
        if let Some(image) = image {
            check_image(image, x.cols())?;
        }
        let n_features_in = x.cols();
        let mut steps = Vec::with_capacity(self.0.len());
        for spec in &self.0 {
            let step = Step::fit(spec, &x, image)?;
            x = step.apply(x)?;
            if matches!(step, Step::Fourier(_)) {
                image = None;
            }
            steps.push(step);
        }
        let pipeline = Pipeline {
            n_features_in,
            n_features_out: x.cols(),
            steps,
        };
        Ok((pipeline, x))
    }
}

impl Pipeline {
    /// Does to `x` what was done to the training data. A row gives the same
    /// bits whatever the other rows are.
    ///
    /// # Errors
    /// [`Error::Data`] if `x` has another number of columns than the training
    /// data.
    pub fn transform<T: Scalar>(&self, mut x: Matrix<T>) -> Result<Matrix<T>> {
        if x.cols() != self.n_features_in {
            return Err(Error::Data(format!(
                "the data have {} features, but preprocessing was fitted on {}: give data with the \
                 same columns as the training data",
                x.cols(),
                self.n_features_in
            )));
        }
        for step in &self.steps {
            x = step.apply(x)?;
        }
        Ok(x)
    }

    /// Number of features of the data it was fitted on.
    pub fn n_features_in(&self) -> usize {
        self.n_features_in
    }

    /// Number of features it makes of them.
    pub fn n_features_out(&self) -> usize {
        self.n_features_out
    }

    /// The steps it was fitted from.
    pub fn spec(&self) -> PipelineSpec {
        PipelineSpec(self.steps.iter().map(Step::spec).collect())
    }
}

/// A fitted step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
enum Step {
    Center,
    UnitNorm,
    Window(Window),
    Fourier(Fourier),
    Standardize(Standardize),
    MinMax(MinMax),
}

impl Step {
    fn fit<T: Scalar>(spec: &StepSpec, x: &Matrix<T>, image: Option<[usize; 3]>) -> Result<Self> {
        spec.check()?;
        Ok(match *spec {
            StepSpec::Center => Step::Center,
            StepSpec::UnitNorm => Step::UnitNorm,
            StepSpec::Window(spec) => Step::Window(Window::fit(spec, image)?),
            StepSpec::Fourier(spec) => Step::Fourier(Fourier::fit(spec, image)?),
            StepSpec::Standardize => Step::Standardize(Standardize::fit(x)?),
            StepSpec::MinMax => Step::MinMax(MinMax::fit(x)?),
        })
    }

    fn apply<T: Scalar>(&self, mut x: Matrix<T>) -> Result<Matrix<T>> {
        match self {
            Step::Center => center::apply(&mut x),
            Step::UnitNorm => unit_norm::apply(&mut x),
            Step::Window(step) => step.apply(&mut x),
            Step::Fourier(step) => return step.apply(&x),
            Step::Standardize(step) => step.apply(&mut x),
            Step::MinMax(step) => step.apply(&mut x),
        }
        Ok(x)
    }

    /// Whether it can be applied to rows of `n_features` values, and how many
    /// it makes of them.
    fn check(&self, n_features: usize) -> Result<usize> {
        match self {
            Step::Center | Step::UnitNorm => {}
            Step::Window(step) => step.check(n_features)?,
            Step::Fourier(step) => return step.check(n_features),
            Step::Standardize(step) => step.check(n_features)?,
            Step::MinMax(step) => step.check(n_features)?,
        }
        Ok(n_features)
    }

    fn spec(&self) -> StepSpec {
        match self {
            Step::Center => StepSpec::Center,
            Step::UnitNorm => StepSpec::UnitNorm,
            Step::Window(step) => StepSpec::Window(step.spec),
            Step::Fourier(step) => StepSpec::Fourier(step.spec),
            Step::Standardize(_) => StepSpec::Standardize,
            Step::MinMax(_) => StepSpec::MinMax,
        }
    }
}
