//! Safetensors files, as models and data are kept in: how the header is laid out, and
//! what the checksum is of.
//!
//! ```text
//! 8 bytes    length of the header, a multiple of 8
//! header     JSON: "__metadata__": texts, and type, shape and place of each tensor
//! tensors    one after the other without gaps
//! ```
//!
//! Safetensors has no checksum. Ours is XXH3 of 128 bits over a description and, one
//! after the other, the name, type, shape and bytes of each tensor, every part after its
//! length. It finds damage, not malice. How the header is laid out does not enter, so that
//! a tool may write it anew.

use std::collections::BTreeMap;

use safetensors::tensor::{Dtype, TensorInfo};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use xxhash_rust::xxh3::Xxh3;

/// The bytes of the header's length, and the multiple that it is.
pub(crate) const LENGTH_BYTES: usize = 8;

/// Readers of safetensors refuse longer headers.
pub(crate) const LONGEST_HEADER: usize = 100_000_000;

/// The key of the checksum in the metadata.
pub(crate) const CHECKSUM: &str = "checksum";

/// Whether a file that begins so can be safetensors: what tells it from others is a
/// plausible length followed by the first character of JSON.
pub(crate) fn looks_like(bytes: &[u8]) -> bool {
    let length = bytes
        .first_chunk()
        .map(|length| u64::from_le_bytes(*length));
    length.is_some_and(|length| length <= LONGEST_HEADER as u64)
        && bytes.get(LENGTH_BYTES) == Some(&b'{')
}

/// The start of a file, up to the first tensor: texts by key, and name, type, shape and
/// size in bytes of each tensor. Written here and not by safetensors, whose metadata come
/// in a random order: the same content gives the same file.
pub(crate) fn header<'a>(
    metadata: &[(&str, &str)],
    tensors: impl IntoIterator<Item = (&'a str, Dtype, Vec<usize>, usize)>,
) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Header<'a> {
        #[serde(serialize_with = "in_order")]
        __metadata__: &'a [(&'a str, &'a str)],
        #[serde(flatten)]
        tensors: BTreeMap<&'a str, TensorInfo>,
    }
    let mut end = 0usize;
    let info = |(name, dtype, shape, size): (&'a str, Dtype, Vec<usize>, usize)| {
        let start = end;
        end = end.saturating_add(size);
        let info = TensorInfo {
            dtype,
            shape,
            data_offsets: (start, end),
        };
        (name, info)
    };
    let mut bytes = vec![0; LENGTH_BYTES];
    let header = Header {
        __metadata__: metadata,
        tensors: tensors.into_iter().map(info).collect(),
    };
    serde_json::to_writer(&mut bytes, &header)?;
    // Tensors begin where any number type may lie.
    let length = bytes.len().next_multiple_of(LENGTH_BYTES);
    fill(&mut bytes, length);
    Ok(bytes)
}

/// Makes a header longer, and it says so.
pub(crate) fn fill(header: &mut Vec<u8>, length: usize) {
    header.resize(length, b' ');
    let length = (length - LENGTH_BYTES) as u64;
    header[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
}

fn in_order<S: Serializer>(pairs: &&[(&str, &str)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(pairs.len()))?;
    for (key, value) in *pairs {
        map.serialize_entry(key, value)?;
    }
    map.end()
}

/// The checksum of a file, in the making.
pub(crate) struct Digest(Xxh3);

impl Digest {
    pub(crate) fn new(description: &str) -> Self {
        let mut digest = Self(Xxh3::new());
        digest.part(description.as_bytes());
        digest
    }

    /// What is said of a tensor, whose bytes follow.
    pub(crate) fn tensor(&mut self, name: &str, dtype: Dtype, shape: &[usize], size: usize) {
        self.part(name.as_bytes());
        self.part(dtype.to_string().as_bytes());
        self.length(shape.len());
        shape.iter().for_each(|&size| self.length(size));
        self.length(size);
    }

    /// Some bytes of a tensor.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// 32 hexadecimal digits.
    pub(crate) fn finish(self) -> String {
        format!("{:032x}", self.0.digest128())
    }

    fn part(&mut self, part: &[u8]) {
        self.length(part.len());
        self.0.update(part);
    }

    fn length(&mut self, length: usize) {
        self.0.update(&(length as u64).to_le_bytes());
    }
}
