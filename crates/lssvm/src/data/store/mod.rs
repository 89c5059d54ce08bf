//! Our own file of data: safetensors, format version 1. Made by `lssvm convert`, so that
//! text, packed files and the like can be read row by row.
//!
//! ```text
//! 8 bytes    length of the header, a multiple of 8
//! header     JSON: "__metadata__": { "lssvm_data": description, "checksum": ... },
//!            and type, shape and place of each tensor
//! features   N x M      U8, F32 or F64, little-endian, row after row
//! padding    up to 7    U8, if the features end where no wider number may lie
//! blocks     B          U64: XXH3 of 64 bits of each 65,536 bytes of the features
//! values     N x K      F64: labels that are numbers, or
//! codes      N          U32: for each row which of the names it has, and
//! names      bytes      U8: the names as a JSON list
//! weights    N          F64, if rows do not count the same
//! ```
//!
//! The checksum is over the description and all tensors but the bytes of the features, in
//! the order of their names; it is checked when the file is opened. The features are
//! checked block by block, each when it is read for the first time: a file may be larger
//! than anybody wants to read twice.

mod open;
#[cfg(test)]
pub(super) mod tests;
mod write;

use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};

use super::ImageShape;
use crate::container;

pub(super) use open::open;
pub(super) use write::Writer;

/// The format this version writes, and the newest it reads.
const FORMAT_VERSION: u32 = 1;

/// The key of the description in the metadata.
const DESCRIPTION: &str = "lssvm_data";

/// The names of the tensors.
const FEATURES: &str = "features";
const PADDING: &str = "padding";
const BLOCKS: &str = "blocks";
const VALUES: &str = "values";
const CODES: &str = "codes";
const NAMES: &str = "names";
const WEIGHTS: &str = "weights";

/// Bytes of features that have a checksum of their own: what must be read to trust one
/// row, against the 8 bytes of memory that each takes.
const BLOCK: usize = 1 << 16;

/// What the checksum is of: name, type, shape and size of a tensor, and its bytes unless
/// they have checksums of their own.
type Summed<'a> = (&'a str, Dtype, &'a [usize], usize, &'a [u8]);

/// All that a file says of its data but the numbers.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    format_version: u32,
    /// The version of this library that wrote the file.
    lssvm_version: String,
    block_bytes: usize,
    feature_names: Option<Vec<String>>,
    label_names: Vec<String>,
    label_places: Vec<usize>,
    weight_name: Option<String>,
    weight_place: Option<usize>,
    image: Option<ImageShape>,
    index_base: Option<u32>,
}

/// The part of [`Description`] that all versions have.
#[derive(Deserialize)]
struct Version {
    format_version: u64,
    #[serde(default)]
    lssvm_version: String,
}

/// Whether a file that begins so can be one of ours, or at least safetensors.
pub(super) fn looks_like(sample: &[u8]) -> bool {
    container::looks_like(sample)
}
