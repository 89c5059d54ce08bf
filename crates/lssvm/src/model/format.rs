//! The model file: safetensors, format version 1.
//!
//! ```text
//! 8 bytes    length of the header, a multiple of 8
//! header     JSON: "__metadata__": { "lssvm": description, "checksum": ... },
//!            and type, shape and place of each tensor
//! bias       K          F32 or F64, little-endian, row after row,
//! classes    P          one after the other without gaps
//! support    P x M'
//! weights    P x K
//! ```
//!
//! Files of regressions and of earlier versions have no `classes`. They are whole
//! numbers in the type of the others, so that one loop writes, maps and checks all.
//!
//! Safetensors, because every language reads it, the header says all before a
//! number is touched, and the numbers can be mapped instead of read. Its
//! metadata are strings, so the description is JSON in a string.
//!
//! The checksum is over the description and all tensors, in the order of their names;
//! see [`crate::container`].

use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};

use crate::container::{self, CHECKSUM, Digest};
use crate::linalg::{Matrix, Precision, Scalar};

#[cfg(target_endian = "big")]
compile_error!("model files are mapped, and their numbers are little-endian");

/// The format this version writes, and the newest it reads.
pub(super) const FORMAT_VERSION: u32 = 1;

/// The key of the description in the metadata.
pub(super) const DESCRIPTION: &str = "lssvm";

/// The names of the tensors.
pub(super) const BIAS: &str = "bias";
pub(super) const CLASSES: &str = "classes";
pub(super) const SUPPORT: &str = "support";
pub(super) const WEIGHTS: &str = "weights";

/// Values that are hashed and checked at once, while they are in the cache.
const CHUNK: usize = 4096;

/// The description as it is in a file.
#[derive(Serialize, Deserialize)]
pub(super) struct Stored<D> {
    pub(super) format_version: u32,
    /// The version of this library that wrote the file.
    pub(super) lssvm_version: String,
    pub(super) precision: Precision,
    #[serde(flatten)]
    pub(super) description: D,
}

/// The part of [`Stored`] that all versions have.
#[derive(Deserialize)]
pub(super) struct Version {
    pub(super) format_version: u64,
    #[serde(default)]
    pub(super) lssvm_version: String,
}

/// A tensor to be written or checked.
pub(super) struct Tensor<'a, T> {
    pub(super) name: &'static str,
    pub(super) shape: Vec<usize>,
    pub(super) values: &'a [T],
}

/// The tensors of a model in the order of their names, in which they lie in a
/// file.
pub(super) fn tensors<'a, T: Scalar>(
    bias: &'a [T],
    classes: Option<&'a [T]>,
    support: &'a Matrix<T>,
    weights: &'a Matrix<T>,
) -> Vec<Tensor<'a, T>> {
    let matrix = |name, matrix: &'a Matrix<T>| Tensor {
        name,
        shape: vec![matrix.rows(), matrix.cols()],
        values: matrix.values(),
    };
    let vector = |name, values: &'a [T]| Tensor {
        name,
        shape: vec![values.len()],
        values,
    };
    let mut tensors = vec![vector(BIAS, bias)];
    tensors.extend(classes.map(|classes| vector(CLASSES, classes)));
    tensors.extend([matrix(SUPPORT, support), matrix(WEIGHTS, weights)]);
    tensors
}

/// The name of a number type in safetensors.
pub(super) fn dtype<T: Scalar>() -> Dtype {
    match T::PRECISION {
        Precision::F32 => Dtype::F32,
        Precision::F64 => Dtype::F64,
    }
}

/// The start of a file, up to the first tensor.
pub(super) fn header<T: Scalar>(
    description: &str,
    checksum: &str,
    tensors: &[Tensor<'_, T>],
) -> serde_json::Result<Vec<u8>> {
    let metadata = [(DESCRIPTION, description), (CHECKSUM, checksum)];
    let tensors = tensors.iter().map(|tensor| {
        let size = size_of_val(tensor.values);
        (tensor.name, dtype::<T>(), tensor.shape.clone(), size)
    });
    container::header(&metadata, tensors)
}

/// The checksum, and whether all numbers are finite: in one pass over them.
pub(super) fn digest<T: Scalar>(description: &str, tensors: &[Tensor<'_, T>]) -> (String, bool) {
    let mut digest = Digest::new(description);
    let mut finite = true;
    for tensor in tensors {
        let size = size_of_val(tensor.values);
        digest.tensor(tensor.name, dtype::<T>(), &tensor.shape, size);
        for chunk in tensor.values.chunks(CHUNK) {
            digest.bytes(bytemuck::cast_slice(chunk));
            finite &= all_finite(chunk);
        }
    }
    (digest.finish(), finite)
}

/// Whether no value is NaN or infinite. Without an early end, which would keep
/// the compiler from using vector registers.
pub(super) fn all_finite<T: Scalar>(values: &[T]) -> bool {
    values.iter().fold(true, |finite, v| finite & v.is_finite())
}
