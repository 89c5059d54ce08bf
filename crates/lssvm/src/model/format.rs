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
//! Safetensors has no checksum. Ours is XXH3 of 128 bits over the description
//! and, in the order of their names, the name, type, shape and bytes of each
//! tensor, every part after its length. It finds damage, not malice. How the
//! header is laid out does not enter, so that a tool may write it anew.

use std::collections::BTreeMap;

use safetensors::tensor::{Dtype, TensorInfo};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::linalg::{Matrix, Precision, Scalar};

#[cfg(target_endian = "big")]
compile_error!("model files are mapped, and their numbers are little-endian");

/// The format this version writes, and the newest it reads.
pub(super) const FORMAT_VERSION: u32 = 1;

/// The bytes of the header's length, and the multiple that it is.
pub(super) const LENGTH_BYTES: usize = 8;

/// Readers of safetensors refuse longer headers.
pub(super) const LONGEST_HEADER: usize = 100_000_000;

/// The key of the description in the metadata.
pub(super) const DESCRIPTION: &str = "lssvm";
/// The key of the checksum in the metadata.
pub(super) const CHECKSUM: &str = "checksum";

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

/// The start of a file, up to the first tensor. Written here and not by
/// safetensors, whose metadata come in a random order: the same model gives
/// the same file.
pub(super) fn header<T: Scalar>(
    description: &str,
    checksum: &str,
    tensors: &[Tensor<'_, T>],
) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Header<'a> {
        __metadata__: Metadata<'a>,
        #[serde(flatten)]
        tensors: BTreeMap<&'a str, TensorInfo>,
    }
    #[derive(Serialize)]
    struct Metadata<'a> {
        lssvm: &'a str,
        checksum: &'a str,
    }
    let mut end = 0;
    let info = |tensor: &Tensor<'_, T>| {
        let start = end;
        end += size_of_val(tensor.values);
        let info = TensorInfo {
            dtype: dtype::<T>(),
            shape: tensor.shape.clone(),
            data_offsets: (start, end),
        };
        (tensor.name, info)
    };
    let mut bytes = vec![0; LENGTH_BYTES];
    let header = Header {
        __metadata__: Metadata {
            lssvm: description,
            checksum,
        },
        tensors: tensors.iter().map(info).collect(),
    };
    serde_json::to_writer(&mut bytes, &header)?;
    // Tensors begin where any number type may lie.
    bytes.resize(bytes.len().next_multiple_of(LENGTH_BYTES), b' ');
    let length = (bytes.len() - LENGTH_BYTES) as u64;
    bytes[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// The checksum, and whether all numbers are finite: in one pass over them.
pub(super) fn digest<T: Scalar>(description: &str, tensors: &[Tensor<'_, T>]) -> (String, bool) {
    let mut hash = Xxh3::new();
    let mut finite = true;
    add_part(&mut hash, description.as_bytes());
    for tensor in tensors {
        add_part(&mut hash, tensor.name.as_bytes());
        add_part(&mut hash, dtype::<T>().to_string().as_bytes());
        add_length(&mut hash, tensor.shape.len());
        for &size in &tensor.shape {
            add_length(&mut hash, size);
        }
        add_length(&mut hash, size_of_val(tensor.values));
        for chunk in tensor.values.chunks(CHUNK) {
            hash.update(bytemuck::cast_slice(chunk));
            finite &= all_finite(chunk);
        }
    }
    (format!("{:032x}", hash.digest128()), finite)
}

fn add_part(hash: &mut Xxh3, part: &[u8]) {
    add_length(hash, part.len());
    hash.update(part);
}

fn add_length(hash: &mut Xxh3, length: usize) {
    hash.update(&(length as u64).to_le_bytes());
}

/// Whether no value is NaN or infinite. Without an early end, which would keep
/// the compiler from using vector registers.
pub(super) fn all_finite<T: Scalar>(values: &[T]) -> bool {
    values.iter().fold(true, |finite, v| finite & v.is_finite())
}
