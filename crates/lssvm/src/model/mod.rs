//! A trained model: scores, classes, values; one file.
//!
//! With P support rows xₙ (preprocessed), their weights aₙ and the bias b:
//!
//! ```text
//! h(x) = Σₙ Ω(x, xₙ) aₙ + b       K scores a row
//! class = argmax h                 probabilities = softmax h
//! ```
//!
//! Eq. (15) of Andrecut (2016) sums the exponentials over n; that is a slip,
//! the softmax is over the K scores.
//!
//! | file | what it holds |
//! |---|---|
//! | `description.rs` | what is not a tensor: kernel, preprocessing, names, how it was trained |
//! | `predict.rs` | scores of raw rows in batches, classes, probabilities |
//! | `scaling.rs` | how scores become probabilities |
//! | `conformal.rs` | intervals and sets of classes that hold the truth as often as asked |
//! | `explain.rs` | what each training row adds to a score |
//! | `format.rs` | the file format and its checksum |
//! | `save.rs` | what a file holds |
//! | `spread.rs` | the same of rows that are not in memory |
//! | `load.rs` | mapping a file and refusing bad ones |
//!
//! ```
//! use lssvm::kernel::{Kernel, Samples};
//! use lssvm::linalg::Matrix;
//! use lssvm::model::{AnyModel, Description, Input, Model, ModelParts, Outputs};
//! use lssvm::preprocess::PipelineSpec;
//!
//! let kernel = Kernel::Linear;
//! let (pipeline, x) = PipelineSpec::default().fit(Matrix::from_rows(&[[1.0f32], [-1.0]]), None)?;
//! let model = Model::new(ModelParts {
//!     support: Samples::new(x, &kernel),
//!     weights: Matrix::from_rows(&[[0.25, -0.25], [-0.25, 0.25]]),
//!     bias: vec![0.5, 0.5],
//!     classes: Some(Matrix::from_rows(&[[0.0, 1.0]])),
//!     description: Description {
//!         kernel,
//!         pipeline,
//!         outputs: Outputs::Classes { names: vec!["up".into(), "down".into()] },
//!         input: Input { n_features: 1, ..Input::default() },
//!         config: serde_json::json!({ "c": 1.0 }),
//!         summary: serde_json::Value::Null,
//!         scaling: None,
//!         conformal: None,
//!         notes: Default::default(),
//!     },
//! })?;
//! let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("updown.lssvm");
//! model.save(&path)?;
//! let AnyModel::F32(model) = AnyModel::load(&path)? else { panic!("it was saved in f32") };
//! assert_eq!(model.predict_classes(Matrix::from_rows(&[[3.0], [-0.1]]))?, [0, 1]);
//! # Ok::<(), lssvm::Error>(())
//! ```

mod conformal;
mod description;
mod explain;
mod format;
mod load;
mod predict;
pub(crate) mod save;
mod scaling;
mod spread;
#[cfg(test)]
mod tests;

pub use crate::files::{check_writable, prefix as temporary_prefix, remove_unfinished};
pub use conformal::{Conformal, HeldOut, Intervals};
pub use description::{Description, Input, Outputs};
pub use explain::{Contribution, Explanation};
pub use predict::{argmax, softmax};
pub use scaling::Scaling;
pub use spread::Spread;

use std::path::Path;

use serde_json::Value;

use crate::kernel::{Kernel, Samples};
use crate::linalg::{Matrix, Points, Precision, Scalar};
use crate::preprocess::Pipeline;
use crate::{Error, Result};

/// What training hands over to make a [`Model`].
#[derive(Debug, Clone)]
pub struct ModelParts<T: Scalar> {
    /// The P training rows that the scores are made of, preprocessed.
    pub support: Samples<T>,
    /// A: a row of K weights for each support row.
    pub weights: Matrix<T>,
    /// b: one number for each of the K outputs.
    pub bias: Vec<T>,
    /// The class that each support row was of, as one row of whole numbers; none for
    /// values.
    pub classes: Option<Matrix<T>>,
    /// All that is not a tensor.
    pub description: Description,
}

/// A trained model. What it holds fits together; see [`Model::new`].
#[derive(Debug, Clone)]
pub struct Model<T: Scalar> {
    support: Samples<T>,
    weights: Matrix<T>,
    bias: Vec<T>,
    /// One row.
    classes: Option<Matrix<T>>,
    description: Description,
}

impl<T: Scalar> Model<T> {
    /// Checks the parts, and drops support rows whose weights are all zero:
    /// they add nothing to a score but cost time and memory. One row is kept
    /// if all are zero.
    ///
    /// # Errors
    /// [`Error::Data`] if the parts do not fit together, [`Error::Numeric`] if
    /// one of the numbers is not finite.
    pub fn new(parts: ModelParts<T>) -> Result<Self> {
        let mut model = Self::assemble(parts)?;
        need_finite("support", model.support.points().values())?;
        need_finite("weights", model.weights.values())?;
        need_finite("bias", &model.bias)?;
        let kept = used_rows(&model.weights);
        if kept.len() < model.weights.rows() {
            let support = match model.support.into_points() {
                Points::Dense(rows) => keep_rows(rows, &kept).into(),
                Points::Sparse(rows) => Points::Sparse(rows.select_rows(&kept)),
            };
            model.support = Samples::new(support, &model.description.kernel);
            model.weights = keep_rows(model.weights, &kept);
            model.classes = model
                .classes
                .map(|classes| Matrix::from_fn(1, kept.len(), |_, i| classes.get(0, kept[i])));
        }
        Ok(model)
    }

    /// A model of all rows, whose shapes are checked but not its tensors'
    /// values, which cost a pass over the memory.
    fn assemble(parts: ModelParts<T>) -> Result<Self> {
        let ModelParts {
            support,
            weights,
            bias,
            classes,
            description,
        } = parts;
        let (n_support, n_outputs) = (support.len(), weights.cols());
        if n_support == 0 || n_outputs == 0 {
            return Err(Error::Data(format!(
                "{n_support} support rows and {n_outputs} outputs: a model has at least one of \
                 each; train on data with rows and labels"
            )));
        }
        if weights.rows() != n_support || bias.len() != n_outputs {
            return Err(Error::Data(format!(
                "the parts of the model do not fit together: {n_support} support rows, weights of \
                 {} x {n_outputs}, bias of {}; give weights for each support row and a bias for \
                 each column of weights",
                weights.rows(),
                bias.len()
            )));
        }
        if !support.fits(&description.kernel) {
            return Err(Error::Data(
                "the support rows were prepared for another kernel: make Samples with the kernel \
                 of the model"
                    .into(),
            ));
        }
        description.check(support.points().cols(), n_outputs)?;
        if let Some(classes) = &classes {
            check_classes(classes, n_support, &description.outputs)?;
        }
        Ok(Model {
            support,
            weights,
            bias,
            classes,
            description,
        })
    }

    /// Writes the model to one file, all of it or nothing: a file that was
    /// there before is replaced at the end, when the new one is safely on disk.
    ///
    /// # Errors
    /// [`Error::File`] if `path` is no place for a file, [`Error::Io`] if the
    /// system refuses to write.
    pub fn save(&self, path: &Path) -> Result<()> {
        T::save(self, path)
    }

    /// What [`Model::save`] writes to a file, in memory.
    ///
    /// # Errors
    /// [`Error::File`] if the description is too long for a file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        T::to_bytes(self)
    }

    /// P: number of support rows.
    pub fn n_support(&self) -> usize {
        self.support.len()
    }

    /// K: number of classes or values.
    pub fn n_outputs(&self) -> usize {
        self.bias.len()
    }

    /// Number of raw features that prediction wants.
    pub fn n_features(&self) -> usize {
        self.description.input.n_features
    }

    /// Bytes of its tensors, in memory and in a file.
    pub fn size_bytes(&self) -> u64 {
        let classes = self.classes.as_ref().map_or(0, |row| row.cols());
        let values = self.weights.values().len() + classes + self.n_outputs();
        self.support.points().bytes() + (values * size_of::<T>()) as u64
    }

    /// Bytes that it takes in memory, where its rows are prepared for the kernel.
    pub fn memory_bytes(&self) -> u64 {
        self.size_bytes() - self.support.points().bytes() + self.support.bytes()
    }

    /// The support rows, preprocessed.
    pub fn support(&self) -> &Samples<T> {
        &self.support
    }

    /// A: the weights, P x K.
    pub fn weights(&self) -> &Matrix<T> {
        &self.weights
    }

    /// b: the bias of each output.
    pub fn bias(&self) -> &[T] {
        &self.bias
    }

    /// The class that a support row was of in training. None for values, and in files of
    /// earlier versions.
    pub fn class_of(&self, row: usize) -> Option<usize> {
        let classes = self.classes.as_ref()?;
        Some(classes.get(0, row).to_f64() as usize)
    }

    /// All that is not a tensor.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Leaves a note in the model for a later reader; it is saved and means nothing here.
    pub fn set_note(&mut self, key: &str, text: &str) {
        self.description.notes.insert(key.into(), text.into());
    }

    /// Ω
    pub fn kernel(&self) -> &Kernel {
        &self.description.kernel
    }

    /// What is done to raw features.
    pub fn pipeline(&self) -> &Pipeline {
        &self.description.pipeline
    }

    /// How scores become probabilities, if that was fitted.
    pub fn scaling(&self) -> Option<&Scaling> {
        self.description.scaling.as_ref()
    }

    /// What the outputs mean.
    pub fn outputs(&self) -> &Outputs {
        &self.description.outputs
    }

    /// What prediction needs to know about input files.
    pub fn input(&self) -> &Input {
        &self.description.input
    }

    /// The effective configuration of the training run.
    pub fn config(&self) -> &Value {
        &self.description.config
    }

    /// How training went.
    pub fn summary(&self) -> &Value {
        &self.description.summary
    }
}

/// A model in the precision it was saved in.
#[derive(Debug, Clone)]
pub enum AnyModel {
    /// Of 32-bit numbers.
    F32(Model<f32>),
    /// Of 64-bit numbers.
    F64(Model<f64>),
}

impl AnyModel {
    /// Maps a model file into memory and checks all of it.
    ///
    /// The file must not be changed in place while the model is in use.
    /// [`Model::save`] never does that: it puts a new file in its place.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, [`Error::File`] if it is not a
    /// model, damaged, or written by a newer version.
    pub fn load(path: &Path) -> Result<Self> {
        load::load(path)
    }

    /// A model from the bytes of a file, or from [`Model::to_bytes`].
    ///
    /// # Errors
    /// [`Error::File`] if they are not a model, damaged, or written by a newer
    /// version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        load::from_bytes(bytes)
    }

    /// Which number type it has.
    pub fn precision(&self) -> Precision {
        match self {
            AnyModel::F32(_) => Precision::F32,
            AnyModel::F64(_) => Precision::F64,
        }
    }

    /// All that is not a tensor.
    pub fn description(&self) -> &Description {
        match self {
            AnyModel::F32(model) => model.description(),
            AnyModel::F64(model) => model.description(),
        }
    }

    /// P: number of support rows.
    pub fn n_support(&self) -> usize {
        match self {
            AnyModel::F32(model) => model.n_support(),
            AnyModel::F64(model) => model.n_support(),
        }
    }

    /// Bytes of its tensors, in memory and in a file.
    pub fn size_bytes(&self) -> u64 {
        match self {
            AnyModel::F32(model) => model.size_bytes(),
            AnyModel::F64(model) => model.size_bytes(),
        }
    }
}

/// The rows that a model keeps: those with a weight that is not zero, or the first if
/// all are.
pub(crate) fn used_rows<T: Scalar>(weights: &Matrix<T>) -> Vec<usize> {
    let used = |&i: &usize| weights.row(i).iter().any(|&a| a != T::ZERO);
    let mut kept: Vec<usize> = (0..weights.rows()).filter(used).collect();
    if kept.is_empty() {
        kept.push(0);
    }
    kept
}

/// Whether there is one of the classes for each support row.
fn check_classes<T: Scalar>(
    classes: &Matrix<T>,
    n_support: usize,
    outputs: &Outputs,
) -> Result<()> {
    let names = match outputs {
        Outputs::Classes { names } => names.len(),
        Outputs::Values { .. } => 0,
    };
    let is_class = |code: f64| code >= 0.0 && code < names as f64 && code.fract() == 0.0;
    let wrong = classes.values().iter().find(|c| !is_class(c.to_f64()));
    if let Some(wrong) = wrong {
        return Err(Error::Data(format!(
            "a support row is of class {wrong}, and there are {names} classes; number them from 0"
        )));
    }
    if (classes.rows(), classes.cols()) != (1, n_support) {
        return Err(Error::Data(format!(
            "the classes of {n_support} support rows are {} x {}; give one row of them",
            classes.rows(),
            classes.cols()
        )));
    }
    Ok(())
}

/// Refuses a tensor with a number that is not finite.
fn need_finite<T: Scalar>(tensor: &str, values: &[T]) -> Result<()> {
    if format::all_finite(values) {
        return Ok(());
    }
    Err(Error::Numeric(format!(
        "the {tensor} of the model are not all finite: rescale the features, lower the degree of \
         the kernel, choose a smaller c or train in f64"
    )))
}

/// The rows with these increasing indices, in the memory they lie in: a copy
/// would need nearly twice the memory where few rows go.
fn keep_rows<T: Scalar>(matrix: Matrix<T>, kept: &[usize]) -> Matrix<T> {
    let cols = matrix.cols();
    let mut values = matrix.into_values();
    for (to, &from) in kept.iter().enumerate() {
        values.copy_within(from * cols..(from + 1) * cols, to * cols);
    }
    values.truncate(kept.len() * cols);
    values.shrink_to_fit();
    Matrix::from_vec(kept.len(), cols, values)
}
