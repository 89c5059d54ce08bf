//! From raw rows to scores, classes and probabilities.

use std::ops::Range;

use super::format::all_finite;
use super::{Model, Outputs};
use crate::data::Rows;
use crate::kernel::{Samples, SamplesRef};
use crate::linalg::{MatMut, Matrix, Points, Scalar};
use crate::system::add_scores;
use crate::{Error, Result};

/// Rows that are preprocessed and scored at once: at most as many as this, and
/// as hold this many values (64 MB in `f32`), but never fewer than the least,
/// with which each of a few threads still gets a tile that keeps a matrix
/// product at full speed.
const BATCH_ROWS: usize = 8192;
const BATCH_VALUES: usize = 1 << 24;
const LEAST_BATCH_ROWS: usize = 512;

impl<T: Scalar> Model<T> {
    /// h of each row of raw features: rows x K.
    ///
    /// Needs the memory of a batch of rows besides that of `x` and the result.
    ///
    /// # Errors
    /// [`Error::Data`] if `x` has another number of features than the training
    /// data or a value that is not finite, [`Error::Numeric`] if a score leaves
    /// the range of the number type.
    pub fn decision_function(&self, x: Matrix<T>) -> Result<Matrix<T>> {
        self.decision_function_in_batches(x, self.batch_rows())
    }

    /// The same of some rows that are read now, all at once; they should be no more than
    /// [`Model::batch_rows`].
    ///
    /// # Errors
    /// As [`Model::decision_function`], and those of [`Rows::read`].
    pub fn scores_of_rows(&self, x: &dyn Rows<T>, rows: Range<usize>) -> Result<Matrix<T>> {
        self.check_features(x.n_features())?;
        let mut scores = self.bias_of_each(rows.len());
        let z = self.samples(x.points(rows.clone())?)?;
        self.add_to(scores.view_mut(), z.view(), rows.start)?;
        Ok(scores)
    }

    /// Raw rows as the kernel sees them, dense or sparse as the support rows are.
    pub(super) fn samples(&self, raw: Points<T>) -> Result<Samples<T>> {
        T::prepare(self, raw)
    }

    pub(crate) fn transformed(&self, raw: Points<T>) -> Result<Samples<T>> {
        let rows = match self.support.points() {
            Points::Dense(_) => self.pipeline().transform(raw.into_dense())?.into(),
            support => self.pipeline().transform_points(raw)?.like(support),
        };
        Ok(Samples::beside(self.support.view(), rows, self.kernel()))
    }

    fn check_features(&self, found: usize) -> Result<()> {
        if found != self.n_features() {
            return Err(Error::Data(format!(
                "the data have {found} features, but the model wants {}: give data with the same \
                 columns as the training data",
                self.n_features()
            )));
        }
        Ok(())
    }

    /// Rows that [`Model::decision_function`] scores at once. A caller that gives it so
    /// many at a time, to show progress or to stop, gets the same bits as from one call.
    pub fn batch_rows(&self) -> usize {
        let width = self.n_features().max(self.pipeline().n_features_out());
        (BATCH_VALUES / width).clamp(LEAST_BATCH_ROWS, BATCH_ROWS)
    }

    pub(super) fn decision_function_in_batches(
        &self,
        x: Matrix<T>,
        batch_rows: usize,
    ) -> Result<Matrix<T>> {
        self.check_features(x.cols())?;
        self.check_rows(&x)?;
        let (n, cols, k) = (x.rows(), x.cols(), self.n_outputs());
        let mut scores = self.bias_of_each(n);
        if n <= batch_rows {
            let z = self.samples(x.into())?;
            self.add_to(scores.view_mut(), z.view(), 0)?;
            return Ok(scores);
        }
        let batches = x.values().chunks(batch_rows * cols);
        let parts = scores.values_mut().chunks_mut(batch_rows * k);
        for (b, (batch, part)) in batches.zip(parts).enumerate() {
            let rows = batch.len() / cols;
            let batch = Matrix::from_vec(rows, cols, batch.to_vec());
            let z = self.samples(batch.into())?;
            self.add_to(MatMut::new(rows, k, part), z.view(), b * batch_rows)?;
        }
        Ok(scores)
    }

    /// h of rows that went through [`Model::pipeline`] already: rows x K.
    ///
    /// # Errors
    /// [`Error::Data`] if the rows are not such rows or were not prepared for
    /// this kernel, [`Error::Numeric`] if a score leaves the range of the
    /// number type.
    pub fn scores_of_preprocessed(&self, x: &Samples<T>) -> Result<Matrix<T>> {
        let wanted = self.pipeline().n_features_out();
        if x.points().cols() != wanted || !x.fits(self.kernel()) {
            return Err(Error::Data(format!(
                "the model wants rows of {wanted} features after preprocessing, prepared for its \
                 kernel, and these have {}: transform them with the pipeline of the model, and \
                 make Samples with its kernel",
                x.points().cols()
            )));
        }
        let mut scores = self.bias_of_each(x.len());
        self.add_to(scores.view_mut(), x.view(), 0)?;
        Ok(scores)
    }

    /// The class of each row of raw features, as a position in the names of
    /// the classes. Of equal scores the first wins.
    ///
    /// # Errors
    /// As [`Model::decision_function`], and [`Error::Data`] if the model does
    /// not predict classes.
    pub fn predict_classes(&self, x: Matrix<T>) -> Result<Vec<u32>> {
        self.need_classes()?;
        Ok(argmax(&self.decision_function(x)?))
    }

    /// The values of each row of raw features.
    ///
    /// # Errors
    /// As [`Model::decision_function`], and [`Error::Data`] if the model does
    /// not predict values.
    pub fn predict_values(&self, x: Matrix<T>) -> Result<Matrix<T>> {
        match self.outputs() {
            Outputs::Values { .. } => self.decision_function(x),
            Outputs::Classes { .. } => Err(Error::Data(
                "this model predicts classes, not values: ask it for classes, or for scores".into(),
            )),
        }
    }

    /// The probabilities of the classes for each row of raw features.
    ///
    /// As [`Model::scaling`] has it. Without one they are the softmax of the scores, which
    /// orders the classes as the scores do, but is not calibrated: the scores are fitted to
    /// 0 and 1, so that even a sure row of K classes gets no more than about
    /// e / (e + K − 1).
    ///
    /// # Errors
    /// As [`Model::predict_classes`].
    pub fn predict_probabilities(&self, x: Matrix<T>) -> Result<Matrix<f64>> {
        self.need_classes()?;
        Ok(self.probabilities_of(&self.decision_function(x)?))
    }

    /// The same from scores.
    pub fn probabilities_of(&self, scores: &Matrix<T>) -> Matrix<f64> {
        match self.scaling() {
            Some(scaling) => scaling.probabilities(scores),
            None => softmax(scores),
        }
    }

    fn need_classes(&self) -> Result<()> {
        match self.outputs() {
            Outputs::Classes { .. } => Ok(()),
            Outputs::Values { .. } => Err(Error::Data(
                "this model predicts values, not classes: ask it for values".into(),
            )),
        }
    }

    /// Refuses values that are not finite: a kernel makes one missing value
    /// spoil all scores of its row, which then look like an answer.
    fn check_rows(&self, x: &Matrix<T>) -> Result<()> {
        if all_finite(x.values()) {
            return Ok(());
        }
        for i in 0..x.rows() {
            let Some(j) = x.row(i).iter().position(|v| !v.is_finite()) else {
                continue;
            };
            let name = match &self.input().feature_names {
                Some(names) => format!(" ({})", names[j]),
                None => String::new(),
            };
            return Err(Error::Data(format!(
                "row {}, feature {}{name} is {}: fill in or drop rows with values that are missing \
                 or infinite",
                i + 1,
                j + 1,
                x.get(i, j)
            )));
        }
        Ok(())
    }

    /// `n` rows of b.
    fn bias_of_each(&self, n: usize) -> Matrix<T> {
        Matrix::from_vec(n, self.n_outputs(), self.bias.repeat(n))
    }

    /// Adds Ω(z, support) · A to `scores`; the first row of `z` is called row
    /// `first_row + 1` in an error.
    fn add_to(&self, scores: MatMut<'_, T>, z: SamplesRef<'_, T>, first_row: usize) -> Result<()> {
        T::score(self, scores, z, first_row)
    }

    pub(crate) fn add_scores(
        &self,
        mut scores: MatMut<'_, T>,
        z: SamplesRef<'_, T>,
        first_row: usize,
    ) -> Result<()> {
        add_scores(
            scores.reborrow(),
            self.kernel(),
            z,
            self.support.view(),
            self.weights.view(),
        );
        let k = self.n_outputs();
        match scores.values_mut().iter().position(|v| !v.is_finite()) {
            None => Ok(()),
            Some(at) => Err(Error::Numeric(format!(
                "the score of row {} left the range of the number type: its features are far \
                 larger than those of the training data; correct the row, or train with \
                 preprocessing that bounds them",
                first_row + at / k + 1
            ))),
        }
    }
}

/// The position of the greatest score of each row; of equal ones the first. A
/// NaN never wins over a number.
pub fn argmax<T: Scalar>(scores: &Matrix<T>) -> Vec<u32> {
    let greatest = |row: &[T]| {
        let mut best = 0;
        for (j, v) in row.iter().enumerate() {
            if *v > row[best] || (row[best].to_f64().is_nan() && !v.to_f64().is_nan()) {
                best = j;
            }
        }
        best as u32
    };
    (0..scores.rows())
        .map(|i| greatest(scores.row(i)))
        .collect()
}

/// exp(hₖ) / Σⱼ exp(hⱼ) for each row of scores, in `f64`.
pub fn softmax<T: Scalar>(scores: &Matrix<T>) -> Matrix<f64> {
    let mut out = scores.cast::<f64>();
    for i in 0..out.rows() {
        let row = out.row_mut(i);
        // The greatest is taken off first: its exponential is 1, and none
        // leaves the range.
        let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for v in &mut *row {
            // Apart, so that an infinite greatest score gives no ∞ − ∞.
            *v = match *v == greatest {
                true => 1.0,
                false => (*v - greatest).exp(),
            };
        }
        let sum: f64 = row.iter().sum();
        for v in row {
            *v /= sum;
        }
    }
    out
}
