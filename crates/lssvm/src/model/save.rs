//! Writing a model: all of the file or none ([`crate::files`]).

use std::path::Path;

use super::Model;
use super::format::{DENSE_VERSION, FORMAT_VERSION, Stored, Tensor, digest, header, tensors};
use crate::container::{LENGTH_BYTES, LONGEST_HEADER};
use crate::error::{Bytes, Place};
use crate::files::{Target, Temporary};
use crate::linalg::{Matrix, Points, Scalar};
use crate::{Error, Result};

pub(crate) fn save<T: Scalar>(model: &Model<T>, path: &Path) -> Result<()> {
    let target = Target::new(path)?;
    let (header, tensors) = parts(model, path)?;
    let mut temporary = Temporary::beside(&target)?;
    temporary.write(&header)?;
    for tensor in &tensors {
        temporary.write(tensor.numbers.bytes())?;
    }
    temporary.become_file(&target)
}

/// What a file would hold.
pub(crate) fn to_bytes<T: Scalar>(model: &Model<T>) -> Result<Vec<u8>> {
    let (mut bytes, tensors) = parts(model, Path::new(MEMORY))?;
    bytes.reserve_exact(model.size_bytes() as usize);
    for tensor in &tensors {
        bytes.extend_from_slice(tensor.numbers.bytes());
    }
    Ok(bytes)
}

/// What stands for a path in messages about bytes.
pub(super) const MEMORY: &str = "model in memory";

/// The header of a file, and the tensors that follow it.
fn parts<'a, T: Scalar>(model: &'a Model<T>, path: &Path) -> Result<(Vec<u8>, Vec<Tensor<'a, T>>)> {
    let tensors = tensors(
        &model.bias,
        model.classes.as_ref().map(Matrix::values),
        model.support.points().into(),
        &model.weights,
    );
    let unsuitable = |error| unsuitable(path, error);
    let stored = Stored {
        format_version: match model.support.points() {
            Points::Dense(_) => DENSE_VERSION,
            Points::Sparse(_) => FORMAT_VERSION,
        },
        lssvm_version: env!("CARGO_PKG_VERSION").into(),
        precision: T::PRECISION,
        description: &model.description,
    };
    let description = serde_json::to_string(&stored).map_err(unsuitable)?;
    // A pass over the memory before the one that writes: the checksum lies
    // before the numbers.
    let (checksum, _) = digest(&description, &tensors);
    let header = header(&description, &checksum, &tensors).map_err(unsuitable)?;
    check_header(path, &header)?;
    Ok((header, tensors))
}

/// What says that a description is no JSON.
pub(super) fn unsuitable(path: &Path, error: serde_json::Error) -> Error {
    let problem = format!("the description of the model cannot be written as JSON: {error}");
    Error::file(path, Place::Whole, problem)
}

/// Refuses a header that readers would.
pub(super) fn check_header(path: &Path, header: &[u8]) -> Result<()> {
    if header.len() - LENGTH_BYTES > LONGEST_HEADER {
        return Err(Error::file(
            path,
            Place::Whole,
            format!(
                "the description of the model takes {}, more than the {} a safetensors file \
                 allows: train without feature names, or without steps that keep numbers for each \
                 column",
                Bytes(header.len() as u64),
                Bytes(LONGEST_HEADER as u64)
            ),
        ));
    }
    Ok(())
}
