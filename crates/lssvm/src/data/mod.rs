//! Data from files: samples as rows of features, and their labels.
//!
//! ```text
//! path ─ folder ─┬─ source (gunzip) ─ detect ─┬─ idx, cifar, npy, store ─ Stream ─┐
//!        file ───┘                            └─ libsvm, table, npz, columnar ────┴─ Dataset
//! ```
//!
//! [`read`] takes a file or a folder. A file is unpacked if it is gzip, its
//! format is told by its content, and one reader a format makes a [`Dataset`]
//! of it; a folder is known by the names of its files. What the labels mean,
//! classes or numbers, is decided later, by [`Labels::resolve`].
//!
//! [`open`] does the same and leaves the features on disk where the format allows
//! that: a [`Stream`] of them is read when it is needed. [`convert`] makes a file of
//! our own (`store`), which allows it, of any other.
//!
//! Readers trust nothing that a file says about itself: sizes are checked
//! against its length and against the memory that may be used before anything
//! is allocated, and a value that is not finite is an error that names its
//! place.

mod array;
mod augment;
mod bytes;
mod cifar;
#[cfg_attr(not(feature = "parquet"), path = "columnar_absent.rs")]
mod columnar;
mod convert;
mod detect;
mod folder;
mod idx;
mod image;
mod labels;
mod libsvm;
mod npy;
mod npz;
mod options;
mod read;
mod rows;
mod source;
mod split;
mod store;
mod table;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use augment::{Augment, Augmented};
pub use convert::{PARTS, convert};
pub use image::ImageShape;
pub use labels::{Labels, Targets};
pub use options::{Column, DEFAULT_MAX_BYTES, Format, ReadOptions, Task};
pub(crate) use read::compiled;
pub use read::{open, parse, read};
pub use rows::{Features, Picked, Rows, as_rows, for_each_batch, for_each_points};
pub use table::LABEL_NAMES;

use crate::Result;
use crate::linalg::{Matrix, Scalar};

/// Samples with their raw features in memory.
pub type Dataset<T> = Labelled<Matrix<T>>;

/// Samples whose raw features stay where they are, mostly on disk, and are read when they
/// are needed.
pub type Stream<T> = Labelled<Arc<dyn Rows<T>>>;

/// Samples as files have them: raw features, and labels if there are any.
///
/// There are as many labels as rows of features.
#[derive(Debug, Clone)]
pub struct Labelled<F> {
    /// One row a sample.
    pub features: F,
    /// The labels, as the file has them.
    pub labels: Option<Labels>,
    /// What each sample counts in training, if not all count the same; finite, and
    /// not negative.
    pub weights: Option<Vec<f64>>,
    /// Name of the column that held them.
    pub weight_name: Option<String>,
    /// Where that column was in the file, counted from 1.
    pub weight_place: Option<usize>,
    /// Names of the features, if the file has them.
    pub feature_names: Option<Vec<String>>,
    /// The shape of the image that a row is, if it is one.
    pub image: Option<ImageShape>,
    /// The file or folder that was read, for messages.
    pub source: PathBuf,
    /// The index of the first feature, if the file was LIBSVM text.
    pub index_base: Option<u32>,
}

/// What one path holds, in memory.
pub type Parts<T> = TrainTest<Matrix<T>>;

/// What one path holds, with features that are read when they are needed.
pub type StreamParts<T> = TrainTest<Arc<dyn Rows<T>>>;

/// What one path holds: a training part, and a test part if there is one.
#[derive(Debug, Clone)]
pub struct TrainTest<F> {
    /// The training part, or the only one.
    pub train: Labelled<F>,
    /// The test part.
    pub test: Option<Labelled<F>>,
}

impl<F> TrainTest<F> {
    /// A training part alone.
    fn alone(train: Labelled<F>) -> Self {
        Self { train, test: None }
    }

    /// The same with each part changed.
    fn map<G>(self, change: impl Fn(Labelled<F>) -> Result<Labelled<G>>) -> Result<TrainTest<G>> {
        Ok(TrainTest {
            train: change(self.train)?,
            test: self.test.map(change).transpose()?,
        })
    }
}

impl<F> Labelled<F> {
    /// Features alone; the other fields are empty.
    pub fn new(source: &Path, features: F) -> Self {
        Self {
            features,
            labels: None,
            weights: None,
            weight_name: None,
            weight_place: None,
            feature_names: None,
            image: None,
            source: source.to_path_buf(),
            index_base: None,
        }
    }

    /// The same samples with their features in another form.
    pub fn with_features<G>(self, features: G) -> Labelled<G> {
        Labelled {
            features,
            labels: self.labels,
            weights: self.weights,
            weight_name: self.weight_name,
            weight_place: self.weight_place,
            feature_names: self.feature_names,
            image: self.image,
            source: self.source,
            index_base: self.index_base,
        }
    }

    /// These samples in this order, whose features are `features`.
    fn selected<G>(&self, rows: &[usize], features: G) -> Labelled<G> {
        Labelled {
            features,
            labels: self.labels.as_ref().map(|labels| labels.select(rows)),
            weights: self
                .weights
                .as_ref()
                .map(|weights| rows.iter().map(|&row| weights[row]).collect()),
            weight_name: self.weight_name.clone(),
            weight_place: self.weight_place,
            feature_names: self.feature_names.clone(),
            image: self.image,
            source: self.source.clone(),
            index_base: self.index_base,
        }
    }
}

impl<F: Features> Labelled<F> {
    /// Number of samples.
    pub fn n_samples(&self) -> usize {
        self.features.n_samples()
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.features.n_features()
    }

    /// The first `n` samples, or all if there are fewer.
    pub fn head(&self, n: usize) -> Self {
        let rows: Vec<usize> = (0..n.min(self.n_samples())).collect();
        self.select(&rows)
    }

    /// The samples with these indices in this order: copied if they are in memory, else
    /// read when they are needed.
    ///
    /// # Panics
    /// If there is no such sample.
    pub fn select(&self, rows: &[usize]) -> Self {
        self.selected(rows, self.features.select(rows))
    }

    /// Two parts at random: this fraction of the samples (rounded) is in the
    /// second, the rest in the first. Each keeps the order of the file.
    ///
    /// ```
    /// use lssvm::data::Dataset;
    /// use lssvm::linalg::Matrix;
    /// let data = Dataset::new("d.csv".as_ref(), Matrix::from_fn(10, 2, |i, _| i as f32));
    /// let (train, validation) = data.split(0.3, 42)?;
    /// assert_eq!((train.n_samples(), validation.n_samples()), (7, 3));
    /// # Ok::<(), lssvm::Error>(())
    /// ```
    pub fn split(&self, fraction: f64, seed: u64) -> Result<(Self, Self)> {
        let (first, second) = split::at_random(self.n_samples(), fraction, seed)?;
        Ok((self.select(&first), self.select(&second)))
    }

    /// The same with about this fraction of each class in the second part, `codes`
    /// saying for each sample which class it is of. A class is never in the second part
    /// alone: its only sample is in the first.
    ///
    /// ```
    /// use lssvm::data::Dataset;
    /// use lssvm::linalg::Matrix;
    /// let data = Dataset::new("d.csv".as_ref(), Matrix::from_fn(10, 2, |i, _| i as f32));
    /// let (_, validation) = data.split_classes(0.4, 42, &[0, 0, 0, 0, 0, 1, 1, 1, 1, 2])?;
    /// let of_first_class = validation.features.values().iter().filter(|&&i| i < 5.0).count();
    /// assert_eq!((validation.n_samples(), of_first_class / 2), (4, 2));
    /// # Ok::<(), lssvm::Error>(())
    /// ```
    pub fn split_classes(&self, fraction: f64, seed: u64, codes: &[u32]) -> Result<(Self, Self)> {
        let (first, second) = split::by_class(self.n_samples(), fraction, seed, codes)?;
        Ok((self.select(&first), self.select(&second)))
    }
}

impl<T: Scalar> Stream<T> {
    /// Reads all features into memory.
    ///
    /// # Errors
    /// As [`Rows::read`].
    pub fn load(mut self) -> Result<Dataset<T>> {
        let none: Arc<dyn Rows<T>> = Arc::new(Matrix::zeros(0, 0));
        let features = std::mem::replace(&mut self.features, none).into_matrix()?;
        Ok(self.with_features(features))
    }
}

impl<T: Scalar> From<Dataset<T>> for Stream<T> {
    fn from(mut data: Dataset<T>) -> Self {
        let features = std::mem::replace(&mut data.features, Matrix::zeros(0, 0));
        data.with_features(Arc::new(features))
    }
}

#[cfg(test)]
mod open_tests;
#[cfg(test)]
mod tests;
