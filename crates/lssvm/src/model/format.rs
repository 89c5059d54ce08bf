//! The model file: safetensors, format version 1, or 2 if the support rows are sparse.
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
//! Sparse support rows are three tensors in the place of one: `support.columns` (U32) and
//! `support.values` of all values that are not zero, row after row, and `support.offsets`
//! (U64), where each row begins and the last ends.
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

use std::borrow::Cow;

use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};

use crate::container::{self, CHECKSUM, Digest};
use crate::linalg::{Matrix, Points, Precision, Scalar};

#[cfg(target_endian = "big")]
compile_error!("model files are mapped, and their numbers are little-endian");

/// The newest format that this version reads: it has sparse support rows.
pub(super) const FORMAT_VERSION: u32 = 2;

/// The format that earlier versions read too, of models with dense rows.
pub(super) const DENSE_VERSION: u32 = 1;

/// The key of the description in the metadata.
pub(super) const DESCRIPTION: &str = "lssvm";

/// The names of the tensors.
pub(super) const BIAS: &str = "bias";
pub(super) const CLASSES: &str = "classes";
pub(super) const SUPPORT: &str = "support";
pub(super) const SUPPORT_COLUMNS: &str = "support.columns";
pub(super) const SUPPORT_OFFSETS: &str = "support.offsets";
pub(super) const SUPPORT_VALUES: &str = "support.values";
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
    pub(super) numbers: Numbers<'a, T>,
}

/// What a tensor holds.
pub(super) enum Numbers<'a, T> {
    Values(&'a [T]),
    Columns(&'a [u32]),
    Offsets(Cow<'a, [u64]>),
}

impl<T: Scalar> Numbers<'_, T> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Numbers::Values(values) => bytemuck::cast_slice(values),
            Numbers::Columns(columns) => bytemuck::cast_slice(columns),
            Numbers::Offsets(offsets) => bytemuck::cast_slice(offsets),
        }
    }

    fn dtype(&self) -> Dtype {
        match self {
            Numbers::Values(_) => dtype::<T>(),
            Numbers::Columns(_) => Dtype::U32,
            Numbers::Offsets(_) => Dtype::U64,
        }
    }
}

/// The support rows as they are written.
pub(super) enum Support<'a, T> {
    Dense(&'a Matrix<T>),
    Sparse {
        offsets: Cow<'a, [u64]>,
        columns: &'a [u32],
        values: &'a [T],
    },
}

impl<'a, T: Scalar> From<&'a Points<T>> for Support<'a, T> {
    fn from(rows: &'a Points<T>) -> Self {
        match rows {
            Points::Dense(rows) => Support::Dense(rows),
            Points::Sparse(rows) => Support::Sparse {
                offsets: rows.offsets().iter().map(|&end| end as u64).collect(),
                columns: rows.columns(),
                values: rows.values(),
            },
        }
    }
}

/// The tensors of a model in the order of their names, in which they lie in a
/// file.
pub(super) fn tensors<'a, T: Scalar>(
    bias: &'a [T],
    classes: Option<&'a [T]>,
    support: Support<'a, T>,
    weights: &'a Matrix<T>,
) -> Vec<Tensor<'a, T>> {
    let matrix = |name, matrix: &'a Matrix<T>| Tensor {
        name,
        shape: vec![matrix.rows(), matrix.cols()],
        numbers: Numbers::Values(matrix.values()),
    };
    let vector = |name, values: &'a [T]| Tensor {
        name,
        shape: vec![values.len()],
        numbers: Numbers::Values(values),
    };
    let mut tensors = vec![vector(BIAS, bias)];
    tensors.extend(classes.map(|classes| vector(CLASSES, classes)));
    match support {
        Support::Dense(rows) => tensors.push(matrix(SUPPORT, rows)),
        Support::Sparse {
            offsets,
            columns,
            values,
        } => tensors.extend([
            Tensor {
                name: SUPPORT_COLUMNS,
                shape: vec![columns.len()],
                numbers: Numbers::Columns(columns),
            },
            Tensor {
                name: SUPPORT_OFFSETS,
                shape: vec![offsets.len()],
                numbers: Numbers::Offsets(offsets),
            },
            vector(SUPPORT_VALUES, values),
        ]),
    }
    tensors.push(matrix(WEIGHTS, weights));
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
        let size = tensor.numbers.bytes().len();
        let dtype = tensor.numbers.dtype();
        (tensor.name, dtype, tensor.shape.clone(), size)
    });
    container::header(&metadata, tensors)
}

/// The checksum, and whether all numbers are finite: in one pass over them.
pub(super) fn digest<T: Scalar>(description: &str, tensors: &[Tensor<'_, T>]) -> (String, bool) {
    let mut digest = Digest::new(description);
    let mut finite = true;
    for tensor in tensors {
        let bytes = tensor.numbers.bytes();
        let dtype = tensor.numbers.dtype();
        digest.tensor(tensor.name, dtype, &tensor.shape, bytes.len());
        let Numbers::Values(values) = tensor.numbers else {
            digest.bytes(bytes);
            continue;
        };
        for chunk in values.chunks(CHUNK) {
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
