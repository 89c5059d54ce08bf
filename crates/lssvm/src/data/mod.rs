//! Data from files: samples as rows of features, and their labels.
//!
//! ```text
//! path ─ folder ─┬─ bytes (gunzip) ─ detect ─ idx, cifar, libsvm, table, npy, npz ─ Dataset
//!        file ───┘
//! ```
//!
//! [`read`] takes a file or a folder. A file is unpacked if it is gzip, its
//! format is told by its content, and one reader a format makes a [`Dataset`]
//! of it; a folder is known by the names of its files. What the labels mean,
//! classes or numbers, is decided later, by [`Labels::resolve`].
//!
//! Readers trust nothing that a file says about itself: sizes are checked
//! against its length and against the memory that may be used before anything
//! is allocated, and a value that is not finite is an error that names its
//! place.

mod array;
mod augment;
mod bytes;
mod cifar;
mod detect;
mod folder;
mod idx;
mod image;
mod labels;
mod libsvm;
mod npy;
mod npz;
mod options;
mod rows;
mod split;
mod table;
mod text;

use std::io::{Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use augment::{Augment, Augmented};
pub use image::ImageShape;
pub use labels::{Labels, Targets};
pub use options::{Column, DEFAULT_MAX_BYTES, Format, ReadOptions, Task};
pub use rows::{Features, Picked, Rows, for_each_batch};

use crate::error::Place;
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

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

/// What one path holds: a training part, and a test part if there is one.
#[derive(Debug, Clone)]
pub struct Parts<T: Scalar> {
    /// The training part, or the only one.
    pub train: Dataset<T>,
    /// The test part.
    pub test: Option<Dataset<T>>,
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
        let nothing = Arc::new(Matrix::zeros(0, 0));
        let features = std::mem::replace(&mut self.features, nothing).into_matrix()?;
        Ok(self.with_features(features))
    }
}

impl<T: Scalar> From<Dataset<T>> for Stream<T> {
    fn from(mut data: Dataset<T>) -> Self {
        let features = std::mem::replace(&mut data.features, Matrix::zeros(0, 0));
        data.with_features(Arc::new(features))
    }
}

/// Reads a file or a folder.
///
/// A file gives one part, except for an NPZ archive with arrays for training
/// and test. A folder holds MNIST's or CIFAR-10's files, or `train.*` and
/// `test.*` in any format.
///
/// ```
/// use lssvm::data::{ReadOptions, Targets, Task, read};
/// # let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("flowers.csv");
/// std::fs::write(&path, "length,width,species\n5.1,3.5,setosa\n6.2,2.9,virginica\n").unwrap();
/// let data = read::<f32>(&path, &ReadOptions::default())?.train;
/// assert_eq!(data.features.row(1), [6.2, 2.9]);
/// let labels = data.labels.expect("the last column");
/// assert!(matches!(labels.resolve(Task::Auto)?, Targets::Classes { .. }));
/// # Ok::<(), lssvm::Error>(())
/// ```
pub fn read<T: Scalar>(path: &Path, options: &ReadOptions) -> Result<Parts<T>> {
    options.check()?;
    if path.is_dir() {
        checked(folder::read(path, options)?, options)
    } else {
        read_file(path, options)
    }
}

/// Reads what is already in memory; `path` serves for messages only.
///
/// ```
/// use lssvm::data::{ReadOptions, parse};
/// let bytes = b"+1 1:0.5 3:2\n-1 2:1\n".to_vec();
/// let data = parse::<f64>("memory".as_ref(), bytes, &ReadOptions::default())?.train;
/// assert_eq!(data.features.row(0), [0.5, 0.0, 2.0]);
/// # Ok::<(), lssvm::Error>(())
/// ```
pub fn parse<T: Scalar>(path: &Path, bytes: Vec<u8>, options: &ReadOptions) -> Result<Parts<T>> {
    options.check()?;
    parse_with(path, bytes::unpack(path, bytes)?, |_| None, options)
}

fn read_file<T: Scalar>(path: &Path, options: &ReadOptions) -> Result<Parts<T>> {
    // An archive is read from the file, lest its bytes be held beside those of
    // its arrays. A pipe is not looked into: what is read there is gone.
    let mut file = bytes::open(path)?;
    let mut head = [0; 4];
    let is_zip = file.metadata().is_ok_and(|data| data.is_file())
        && file.read_exact(&mut head).is_ok()
        && npz::MAGIC.contains(&&head[..]);
    if is_zip && options.format.is_none_or(|format| format == Format::Npz) {
        file.rewind()
            .map_err(|source| Error::io(path, "read the file", source))?;
        refuse_columns(path, Format::Npz, options)?;
        return checked(
            npz::read(path, std::io::BufReader::new(file), options)?,
            options,
        );
    }
    drop(file);
    let beside = |format| match format {
        _ if options.no_labels || options.labels.is_some() => None,
        Format::Idx => idx::labels_beside(path),
        Format::Npy => npy::labels_beside(path),
        _ => None,
    };
    parse_with(path, bytes::load(path)?, beside, options)
}

/// The one place that knows every reader.
fn parse_with<T: Scalar>(
    path: &Path,
    bytes: Vec<u8>,
    labels_beside: impl Fn(Format) -> Option<PathBuf>,
    options: &ReadOptions,
) -> Result<Parts<T>> {
    let format = match options.format {
        Some(format) => format,
        None => detect::format(path, &bytes)?,
    };
    refuse_columns(path, format, options)?;
    let labels = labels_beside(format);
    let train = match format {
        Format::Idx => idx::read(path, &bytes, labels.as_deref(), options)?,
        Format::Npy => npy::read(path, &bytes, labels.as_deref(), options)?,
        Format::Csv => table::parse(path, &bytes, options)?,
        Format::Cifar10 => cifar::parse(path, &[(path.to_path_buf(), bytes)], options)?,
        Format::Libsvm => {
            let mut parts = libsvm::parse(&[(path.to_path_buf(), bytes)], options)?;
            parts.pop().ok_or_else(|| bytes::missing(path))?
        }
        Format::Npz => return checked(npz::read(path, Cursor::new(bytes), options)?, options),
    };
    checked(Parts { train, test: None }, options)
}

/// Columns can be chosen in tables only.
fn refuse_columns(path: &Path, format: Format, options: &ReadOptions) -> Result<()> {
    if let (Some(column), false) = (&options.weights, format == Format::Csv) {
        let problem = format!(
            "the format {format} has no column {column} of weights; write the data as CSV with \
             such a column"
        );
        return Err(Error::file(path, Place::Whole, problem));
    }
    if options.labels.is_some() && !matches!(format, Format::Csv | Format::Npy) {
        let problem = format!(
            "the format {format} has its labels in their own place; do not choose label columns"
        );
        return Err(Error::file(path, Place::Whole, problem));
    }
    Ok(())
}

/// The features are as many as a model expects.
fn checked<T: Scalar>(parts: Parts<T>, options: &ReadOptions) -> Result<Parts<T>> {
    for data in std::iter::once(&parts.train).chain(&parts.test) {
        let found = data.n_features();
        if let Some(expected) = options.n_features.filter(|&expected| expected != found) {
            let problem = format!(
                "there are {found} features, and the model needs {expected}; use data with the \
                 features of the model"
            );
            return Err(Error::file(&data.source, Place::Whole, problem));
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests;
