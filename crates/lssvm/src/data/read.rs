//! From a path to samples: what is a folder, which reader a file needs, and whether its
//! features are read now or when they are needed.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::bytes::{check_memory, unpack};
use super::options::DEFAULT_MAX_BYTES;
use super::source::Source;
use super::{
    Dataset, Format, Parts, ReadOptions, Stream, StreamParts, TrainTest, cifar, columnar, detect,
    folder, idx, libsvm, npy, npz, store, table,
};
use crate::error::Place;
use crate::linalg::Scalar;
use crate::{Error, Result};

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
    T::read(path, options)
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
    T::parse(path, bytes, options)
}

/// The same as [`read`], but features stay on disk and are read when they are needed,
/// so that there may be more of them than memory.
///
/// That is so for NPY files in C order, IDX files, CIFAR-10's binary files, what
/// [`convert`](super::convert) makes, and folders of these. Their labels are in memory. Other
/// files are read as a whole if they fit in [`ReadOptions::max_bytes`]; if not, the error names
/// the remedy. Of LIBSVM files that write few values no others are kept
/// ([`Rows::points`](super::Rows::points) of them are sparse).
///
/// Values are checked when they are read: one that is not finite is an error of
/// [`Rows::read`](super::Rows::read).
///
/// ```
/// use lssvm::data::{ReadOptions, open};
/// # let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("train-images-idx2-ubyte");
/// std::fs::write(&path, [&[0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 2][..], &[1, 2, 3, 4, 5, 6]].concat()).unwrap();
/// let data = open::<f32>(&path, &ReadOptions::default())?.train;
/// assert_eq!((data.n_samples(), data.n_features()), (3, 2));
/// assert_eq!(data.features.picked(&[2, 0])?.values(), [5.0, 6.0, 1.0, 2.0]);
/// # Ok::<(), lssvm::Error>(())
/// ```
pub fn open<T: Scalar>(path: &Path, options: &ReadOptions) -> Result<StreamParts<T>> {
    T::open(path, options)
}

/// The same, generic.
pub(crate) mod compiled {
    use super::*;

    pub(crate) fn read<T: Scalar>(path: &Path, options: &ReadOptions) -> Result<Parts<T>> {
        open_any(path, options, None)?.map(|part| loaded(part, options))
    }

    pub(crate) fn parse<T: Scalar>(
        path: &Path,
        bytes: Vec<u8>,
        options: &ReadOptions,
    ) -> Result<Parts<T>> {
        options.check()?;
        let source = Source::in_memory(path, unpack(path, bytes, None)?);
        let parts = open_source(source, |_| None, options, None)?;
        parts.map(|part| loaded(part, options))
    }

    pub(crate) fn open<T: Scalar>(path: &Path, options: &ReadOptions) -> Result<StreamParts<T>> {
        let most = options.max_bytes.unwrap_or(DEFAULT_MAX_BYTES);
        let remedy = || {
            format!(
                "convert it to a file that is read piece by piece (lssvm convert {} FILE), or allow \
                 more memory",
                path.display()
            )
        };
        open_any(path, options, Some(most)).map_err(|error| error.with_remedy(remedy))
    }
}

/// What must be held in memory may take `most` bytes.
fn open_any<T: Scalar>(
    path: &Path,
    options: &ReadOptions,
    most: Option<u64>,
) -> Result<StreamParts<T>> {
    options.check()?;
    if path.is_dir() {
        checked(folder::open(path, options, most)?, options)
    } else {
        open_file(Source::open(path, most)?, options, most)
    }
}

/// A file with what lies beside it.
pub(super) fn open_file<T: Scalar>(
    source: Source,
    options: &ReadOptions,
    most: Option<u64>,
) -> Result<StreamParts<T>> {
    let path = source.path().to_path_buf();
    let beside = |format| match format {
        _ if options.no_labels || options.labels.is_some() => None,
        Format::Idx => idx::labels_beside(&path),
        Format::Npy => npy::labels_beside(&path),
        _ => None,
    };
    open_source(source, beside, options, most)
}

/// The one place that knows every reader.
fn open_source<T: Scalar>(
    source: Source,
    labels_beside: impl Fn(Format) -> Option<PathBuf>,
    options: &ReadOptions,
    most: Option<u64>,
) -> Result<StreamParts<T>> {
    let path = source.path().to_path_buf();
    let format = format(&source, options)?;
    refuse_columns(&path, format, options)?;
    let labels = labels_beside(format);
    let train = match format {
        Format::Idx => idx::open(source, labels.as_deref(), options)?,
        Format::Npy => npy::open(source, labels.as_deref(), options, most)?,
        Format::Cifar10 => cifar::open(&path, vec![source], options)?,
        Format::Lssvm => store::open(source, options)?,
        Format::Csv => table::parse(&path, &source.into_bytes(most)?, options)?.into(),
        Format::Parquet | Format::Arrow => columnar::read(source, format, options)?.into(),
        Format::Libsvm => {
            let files = [(path.clone(), source.into_bytes(most)?)];
            let mut parts = libsvm::open(&files, options)?;
            parts.pop().ok_or_else(|| super::bytes::missing(&path))?
        }
        Format::Npz => {
            let parts = npz::read(&path, BufReader::new(source.reader()), options, most)?;
            return checked(parts.map(|part| Ok(part.into()))?, options);
        }
    };
    checked(TrainTest::alone(train), options)
}

/// The format that is given, or that the content shows.
pub(super) fn format(source: &Source, options: &ReadOptions) -> Result<Format> {
    match options.format {
        Some(format) => Ok(format),
        None => detect::format(source.path(), &source.sample()?, source.length()),
    }
}

/// The same in memory, if the options allow so much.
pub(super) fn loaded<T: Scalar>(data: Stream<T>, options: &ReadOptions) -> Result<Dataset<T>> {
    check_memory::<T>(&data.source, data.n_samples(), data.n_features(), options)?;
    data.load()
}

/// Columns can be chosen in tables only.
pub(super) fn refuse_columns(path: &Path, format: Format, options: &ReadOptions) -> Result<()> {
    let is_table = matches!(format, Format::Csv | Format::Parquet | Format::Arrow);
    if let (Some(column), false) = (&options.weights, is_table) {
        let problem = format!(
            "the format {format} has no column {column} of weights; write the data as CSV with \
             such a column"
        );
        return Err(Error::file(path, Place::Whole, problem));
    }
    if options.labels.is_some() && !is_table && format != Format::Npy {
        let problem = format!(
            "the format {format} has its labels in their own place; do not choose label columns"
        );
        return Err(Error::file(path, Place::Whole, problem));
    }
    Ok(())
}

/// The features are as many as a model expects.
fn checked<T: Scalar>(parts: StreamParts<T>, options: &ReadOptions) -> Result<StreamParts<T>> {
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
