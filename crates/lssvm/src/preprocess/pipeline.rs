//! Fitted steps, one after the other.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::fourier::Fourier;
use super::max_abs::MaxAbs;
use super::min_max::MinMax;
use super::standardize::Standardize;
use super::window::Window;
use super::{PipelineSpec, StepSpec, center, check_image, unit_norm};
use crate::data::Rows;
use crate::linalg::{Csr, Matrix, Points, Scalar};
use crate::ranks::Ranks;
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
        x: Matrix<T>,
        image: Option<[usize; 3]>,
    ) -> Result<(Pipeline, Matrix<T>)> {
        self.fit_dense(&Ranks::default(), x, image)
    }

    fn fit_dense<T: Scalar>(
        &self,
        ranks: &Ranks,
        mut x: Matrix<T>,
        mut image: Option<[usize; 3]>,
    ) -> Result<(Pipeline, Matrix<T>)> {
        if let Some(image) = image {
            check_image(image, x.cols())?;
        }
        let n_features_in = x.cols();
        let mut steps = Vec::with_capacity(self.0.len());
        for spec in &self.0 {
            let step = Step::fit(ranks, spec, &x, image)?;
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

    /// Number of features that the steps make of rows of so many.
    ///
    /// # Errors
    /// As [`PipelineSpec::fit`].
    pub fn features_out(
        &self,
        mut n_features: usize,
        mut image: Option<[usize; 3]>,
    ) -> Result<usize> {
        for spec in &self.0 {
            if let StepSpec::Fourier(spec) = *spec {
                n_features = Fourier::fit(spec, image)?.check(n_features)?;
                image = None;
            }
        }
        Ok(n_features)
    }

    /// As [`PipelineSpec::fit`], for rows that may be sparse, and stay so if every step
    /// leaves zeros as they are.
    ///
    /// # Errors
    /// As [`PipelineSpec::fit`].
    pub fn fit_points<T: Scalar>(
        &self,
        x: Points<T>,
        image: Option<[usize; 3]>,
    ) -> Result<(Pipeline, Points<T>)> {
        self.fit_points_on(&Ranks::default(), x, image)
    }

    /// The same for rows of several ranks, of which these are one's; those of all are learnt
    /// from.
    ///
    /// # Errors
    /// As [`PipelineSpec::fit`].
    pub fn fit_points_on<T: Scalar>(
        &self,
        ranks: &Ranks,
        x: Points<T>,
        image: Option<[usize; 3]>,
    ) -> Result<(Pipeline, Points<T>)> {
        match x {
            Points::Dense(x) => {
                let (pipeline, x) = self.fit_dense(ranks, x, image)?;
                Ok((pipeline, x.into()))
            }
            Points::Sparse(x) => {
                let x: Arc<dyn Rows<T>> = Arc::new(x);
                let pipeline = self.fit_rows_on(ranks, &x, image)?;
                let x = pipeline.transform_points(x.into_points()?)?;
                Ok((pipeline, x))
            }
        }
    }

    /// As [`PipelineSpec::fit`], for rows that are read once or twice for each step that
    /// learns from them; the same numbers are learnt, to the last bit.
    ///
    /// # Errors
    /// As [`PipelineSpec::fit`], and [`Rows::read`].
    pub fn fit_rows<T: Scalar>(
        &self,
        rows: &Arc<dyn Rows<T>>,
        image: Option<[usize; 3]>,
    ) -> Result<Pipeline> {
        self.fit_rows_on(&Ranks::default(), rows, image)
    }

    /// The same for rows of several ranks, of which these are one's.
    ///
    /// # Errors
    /// As [`PipelineSpec::fit_rows`].
    pub fn fit_rows_on<T: Scalar>(
        &self,
        ranks: &Ranks,
        rows: &Arc<dyn Rows<T>>,
        mut image: Option<[usize; 3]>,
    ) -> Result<Pipeline> {
        if let Some(image) = image {
            check_image(image, rows.n_features())?;
        }
        let mut pipeline = Pipeline {
            n_features_in: rows.n_features(),
            n_features_out: rows.n_features(),
            steps: Vec::with_capacity(self.0.len()),
        };
        for spec in &self.0 {
            let before = Preprocessed::new(Arc::clone(rows), pipeline.clone())?;
            let step = Step::fit(ranks, spec, &before, image)?;
            pipeline.n_features_out = step.check(pipeline.n_features_out)?;
            if matches!(step, Step::Fourier(_)) {
                image = None;
            }
            pipeline.steps.push(step);
        }
        Ok(pipeline)
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
        self.need_features(x.cols())?;
        for step in &self.steps {
            x = step.apply(x)?;
        }
        Ok(x)
    }

    /// The same for rows that may be sparse. They stay so if every step leaves zeros as they
    /// are ([`Pipeline::keeps_zeros`]).
    ///
    /// # Errors
    /// As [`Pipeline::transform`].
    pub fn transform_points<T: Scalar>(&self, x: Points<T>) -> Result<Points<T>> {
        match x {
            Points::Sparse(mut x) if self.keeps_zeros() => {
                self.need_features(x.cols())?;
                self.steps.iter().for_each(|step| step.apply_sparse(&mut x));
                Ok(x.into())
            }
            x => Ok(self.transform(x.into_dense())?.into()),
        }
    }

    /// Whether every step leaves zeros as they are.
    pub fn keeps_zeros(&self) -> bool {
        self.steps.iter().all(Step::keeps_zeros)
    }

    fn need_features(&self, found: usize) -> Result<()> {
        if found == self.n_features_in {
            return Ok(());
        }
        Err(Error::Data(format!(
            "the data have {found} features, but preprocessing was fitted on {}: give data with \
             the same columns as the training data",
            self.n_features_in
        )))
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

/// Rows as a pipeline makes them, transformed when they are read.
pub struct Preprocessed<T: Scalar> {
    rows: Arc<dyn Rows<T>>,
    pipeline: Pipeline,
}

impl<T: Scalar> Preprocessed<T> {
    /// Raw rows, and what is to be done to them.
    ///
    /// # Errors
    /// [`Error::Data`] if the rows have another number of features than those that the
    /// pipeline was fitted on.
    pub fn new(rows: Arc<dyn Rows<T>>, pipeline: Pipeline) -> Result<Self> {
        pipeline.need_features(rows.n_features())?;
        Ok(Self { rows, pipeline })
    }

    fn transformed(&self, raw: Matrix<T>, out: &mut [T]) -> Result<()> {
        let rows = self.pipeline.transform(raw)?;
        out.copy_from_slice(rows.values());
        Ok(())
    }
}

impl<T: Scalar> Rows<T> for Preprocessed<T> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn n_features(&self) -> usize {
        self.pipeline.n_features_out
    }

    fn read(&self, rows: Range<usize>, out: &mut [T]) -> Result<()> {
        self.transformed(self.rows.matrix(rows)?, out)
    }

    fn pick(&self, rows: &[usize], out: &mut [T]) -> Result<()> {
        self.transformed(self.rows.picked(rows)?, out)
    }

    fn matrix(&self, rows: Range<usize>) -> Result<Matrix<T>> {
        self.pipeline.transform(self.rows.matrix(rows)?)
    }

    fn points(&self, rows: Range<usize>) -> Result<Points<T>> {
        self.pipeline.transform_points(self.rows.points(rows)?)
    }

    fn picked_points(&self, rows: &[usize]) -> Result<Points<T>> {
        let rows = self.rows.picked_points(rows)?;
        self.pipeline.transform_points(rows)
    }

    fn kept_values(&self) -> Option<usize> {
        let kept = self.rows.kept_values();
        kept.filter(|_| self.pipeline.keeps_zeros())
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
    MaxAbs(MaxAbs),
    MinMax(MinMax),
}

impl Step {
    fn fit<T: Scalar>(
        ranks: &Ranks,
        spec: &StepSpec,
        x: &dyn Rows<T>,
        image: Option<[usize; 3]>,
    ) -> Result<Self> {
        spec.check()?;
        Ok(match *spec {
            StepSpec::Center => Step::Center,
            StepSpec::UnitNorm => Step::UnitNorm,
            StepSpec::Window(spec) => Step::Window(Window::fit(spec, image)?),
            StepSpec::Fourier(spec) => Step::Fourier(Fourier::fit(spec, image)?),
            StepSpec::Standardize => Step::Standardize(Standardize::fit(ranks, x)?),
            StepSpec::MaxAbs => Step::MaxAbs(MaxAbs::fit(ranks, x)?),
            StepSpec::MinMax => Step::MinMax(MinMax::fit(ranks, x)?),
        })
    }

    fn apply<T: Scalar>(&self, mut x: Matrix<T>) -> Result<Matrix<T>> {
        match self {
            Step::Center => center::apply(&mut x),
            Step::UnitNorm => unit_norm::apply(&mut x),
            Step::Window(step) => step.apply(&mut x),
            Step::Fourier(step) => return step.apply(x),
            Step::Standardize(step) => step.apply(&mut x),
            Step::MaxAbs(step) => step.apply(&mut x),
            Step::MinMax(step) => step.apply(&mut x),
        }
        Ok(x)
    }

    /// Whether what is zero stays zero.
    fn keeps_zeros(&self) -> bool {
        match self {
            Step::UnitNorm | Step::MaxAbs(_) => true,
            Step::MinMax(step) => step.keeps_zeros(),
            Step::Center | Step::Window(_) | Step::Fourier(_) | Step::Standardize(_) => false,
        }
    }

    /// For a step that keeps zeros.
    fn apply_sparse<T: Scalar>(&self, x: &mut Csr<T>) {
        match self {
            Step::UnitNorm => unit_norm::apply_sparse(x),
            Step::MaxAbs(step) => step.apply_sparse(x),
            Step::MinMax(step) => step.apply_sparse(x),
            Step::Center | Step::Window(_) | Step::Fourier(_) | Step::Standardize(_) => {
                unreachable!("rows are dense before a step that does not keep zeros")
            }
        }
    }

    /// Whether it can be applied to rows of `n_features` values, and how many
    /// it makes of them.
    fn check(&self, n_features: usize) -> Result<usize> {
        match self {
            Step::Center | Step::UnitNorm => {}
            Step::Window(step) => step.check(n_features)?,
            Step::Fourier(step) => return step.check(n_features),
            Step::Standardize(step) => step.check(n_features)?,
            Step::MaxAbs(step) => step.check(n_features)?,
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
            Step::MaxAbs(_) => StepSpec::MaxAbs,
            Step::MinMax(_) => StepSpec::MinMax,
        }
    }
}
