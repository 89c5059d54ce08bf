//! Folders: MNIST's four files, CIFAR-10's six, or `train.*` and `test.*`.

use std::path::{Path, PathBuf};

use super::read::{format, open_file, refuse_columns};
use super::source::Source;
use super::{Format, ReadOptions, Stream, StreamParts, bytes, cifar, idx, libsvm};
use crate::error::Place;
use crate::linalg::Scalar;
use crate::{Error, Result};

/// CIFAR-10's own name for its folder, which may lie within the one given.
const CIFAR_FOLDER: &str = "cifar-10-batches-bin";

/// CIFAR-10's training files.
const BATCHES: [&str; 5] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
];

/// CIFAR-10's test file.
const TEST_BATCH: &str = "test_batch.bin";

/// How the names of the files of a training and of a test part begin.
const TRAIN: [&str; 1] = ["train"];
const TEST: [&str; 2] = ["t10k", "test"];

/// The parts in a folder.
pub(super) fn open<T: Scalar>(
    folder: &Path,
    options: &ReadOptions,
    most: Option<u64>,
) -> Result<StreamParts<T>> {
    let names = list(folder)?;
    let has = |name: &str| names.iter().any(|n| n == name);
    if names
        .iter()
        .any(|name| is_idx(name, "images") || is_idx(name, "labels"))
    {
        refuse_columns(folder, Format::Idx, options)?;
        return mnist(folder, &names, options, most);
    }
    if BATCHES.iter().any(|batch| has(batch)) {
        refuse_columns(folder, Format::Cifar10, options)?;
        return cifar10(folder, options, most);
    }
    let train = part_file(folder, &names, &TRAIN)?;
    let test = part_file(folder, &names, &TEST)?;
    match train {
        Some(train) => train_and_test(&train, test.as_deref(), options, most),
        None if has(CIFAR_FOLDER) => open(&folder.join(CIFAR_FOLDER), options, most),
        None => Err(Error::file(
            folder,
            Place::Whole,
            "the folder has no data: neither MNIST's files (train-images-idx3-ubyte, ...), nor \
             CIFAR-10's (data_batch_1.bin, ...), nor a file train.*; give the file itself",
        )),
    }
}

/// The names in a folder, sorted.
fn list(folder: &Path) -> Result<Vec<String>> {
    let fail = |source| Error::io(folder, "list the folder", source);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        names.extend(entry.map_err(fail)?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// Whether a name is that of an IDX file of images or labels.
fn is_idx(name: &str, what: &str) -> bool {
    name.contains(what) && name.contains("idx")
}

fn starts_with_any(name: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| name.starts_with(start))
}

fn mnist<T: Scalar>(
    folder: &Path,
    names: &[String],
    options: &ReadOptions,
    most: Option<u64>,
) -> Result<StreamParts<T>> {
    let part = |starts: &[&str]| -> Result<Option<(PathBuf, Option<PathBuf>)>> {
        let find = |what| {
            names
                .iter()
                .find(|n| starts_with_any(n, starts) && is_idx(n, what))
        };
        match (find("images"), find("labels")) {
            (Some(images), labels) => {
                let images = folder.join(images);
                // By the name of the images, lest two sets in a folder mix.
                let labels = labels.and_then(|_| idx::labels_beside(&images));
                if labels.is_none() && !options.no_labels {
                    let problem = "there are no labels beside these images (…-labels-idx1-…); \
                                   add them, or read without labels";
                    return Err(Error::file(&images, Place::Whole, problem));
                }
                Ok(Some((images, labels.filter(|_| !options.no_labels))))
            }
            (None, Some(labels)) => {
                let problem = "there are no images for these labels (…-images-idx3-…); add them";
                Err(Error::file(&folder.join(labels), Place::Whole, problem))
            }
            (None, None) => Ok(None),
        }
    };
    let open = |(images, labels): (PathBuf, Option<PathBuf>)| -> Result<Stream<T>> {
        let source = Source::open(&images, most)?;
        idx::open(source, labels.as_deref(), options)
    };
    let Some(train) = part(&TRAIN)? else {
        let problem = "there is no training part: its images are in train-images-idx3-ubyte; \
                       add it, or give one file of images";
        return Err(Error::file(folder, Place::Whole, problem));
    };
    let test = part(&TEST)?;
    let (train, test) = rayon::join(|| open(train), || test.map(open).transpose());
    Ok(StreamParts {
        train: train?,
        test: test?,
    })
}

fn cifar10<T: Scalar>(
    folder: &Path,
    options: &ReadOptions,
    most: Option<u64>,
) -> Result<StreamParts<T>> {
    let missing: Vec<&str> = BATCHES
        .iter()
        .copied()
        .filter(|batch| !folder.join(batch).is_file())
        .collect();
    if !missing.is_empty() {
        let problem = format!(
            "of CIFAR-10's training files {} is missing; add it, or give one file",
            missing.join(", ")
        );
        return Err(Error::file(folder, Place::Whole, problem));
    }
    let source = |name: &&str| Source::open(&folder.join(name), most);
    let files: Vec<_> = BATCHES.iter().map(source).collect::<Result<_>>()?;
    let train = cifar::open(folder, files, options)?;
    let test_batch = folder.join(TEST_BATCH);
    let test = test_batch.is_file().then(|| -> Result<Stream<T>> {
        let file = Source::open(&test_batch, most)?;
        cifar::open(&test_batch, vec![file], options)
    });
    Ok(StreamParts {
        train,
        test: test.transpose()?,
    })
}

/// The file `train.*` or `test.*`, of which there must not be two.
fn part_file(folder: &Path, names: &[String], starts: &[&str]) -> Result<Option<PathBuf>> {
    let is_part = |name: &&String| {
        let stem = name.split('.').next().unwrap_or_default();
        starts.contains(&stem.to_ascii_lowercase().as_str()) && folder.join(name).is_file()
    };
    let mut found = names.iter().filter(is_part);
    match (found.next(), found.next()) {
        (Some(one), Some(two)) => {
            let problem =
                format!("both {one} and {two} could be meant; give one of them, or remove one");
            Err(Error::file(folder, Place::Whole, problem))
        }
        (one, _) => Ok(one.map(|name| folder.join(name))),
    }
}

/// A training and a test file of any format. The test file must have the
/// features of the training file, and may lack labels.
fn train_and_test<T: Scalar>(
    train: &Path,
    test: Option<&Path>,
    options: &ReadOptions,
    most: Option<u64>,
) -> Result<StreamParts<T>> {
    let source = |path| Source::open(path, most);
    let Some(test) = test else {
        return open_file(source(train)?, options, most);
    };
    let is_libsvm = |source: &Source| Ok(format(source, options)? == Format::Libsvm);
    let (train_source, test_source) = (source(train)?, source(test)?);
    if is_libsvm(&train_source)? && is_libsvm(&test_source)? {
        let content = |source: Source| -> Result<_> {
            let path = source.path().to_path_buf();
            Ok((path, source.into_bytes(most)?))
        };
        let files = [content(train_source)?, content(test_source)?];
        let mut parts = libsvm::open(&files, options)?.into_iter();
        let train = parts.next().ok_or_else(|| bytes::missing(train))?;
        let test = parts.next();
        return Ok(StreamParts { train, test });
    }
    let mut parts = open_file::<T>(train_source, options, most)?;
    let options = ReadOptions {
        n_features: Some(parts.train.n_features()),
        feature_names: parts.train.feature_names.clone(),
        label_places: match &parts.train.labels {
            Some(labels) => labels.column_places().to_vec(),
            None => Vec::new(),
        },
        index_base: parts.train.index_base.or(options.index_base),
        ..options.clone()
    };
    parts.test = Some(open_file(test_source, &options, most)?.train);
    Ok(parts)
}

#[cfg(test)]
mod tests;
