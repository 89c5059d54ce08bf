//! Writing a file of data, row by row, without knowing how many there will be.
//!
//! The header lies before the rows and says how many they are, so room is left for the
//! longest it can become. Features are bytes for as long as all are whole numbers from 0
//! to 255, as those of images are; the first other value makes them wider, from the last
//! block to the first.

use std::path::Path;

use safetensors::tensor::Dtype;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    BLOCK, BLOCKS, CODES, DESCRIPTION, Description, FEATURES, FORMAT_VERSION, NAMES, PADDING,
    Summed, VALUES, WEIGHTS,
};
use crate::container::{self, CHECKSUM, Digest, LENGTH_BYTES, LONGEST_HEADER};
use crate::data::Labelled;
use crate::data::labels::Kept;
use crate::error::{Bytes, Place};
use crate::files::{Target, Temporary};
use crate::linalg::{Precision, Scalar};
use crate::{Error, Result};

/// A multiple of the size of every number that a tensor may have.
const ALIGNMENT: usize = 8;

/// A tensor that fits in memory.
struct Small<'a> {
    name: &'a str,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: &'a [u8],
}

/// A file of data in the making.
pub(in crate::data) struct Writer {
    path: std::path::PathBuf,
    target: Target,
    temporary: Temporary,
    /// Where the features begin.
    start: usize,
    cols: usize,
    /// What the features are if they are not bytes.
    wide: Precision,
    is_wide: bool,
    /// Bytes that are not a block yet.
    pending: Vec<u8>,
    /// The checksums of the blocks that are written.
    blocks: Vec<u64>,
    values: u64,
}

impl Writer {
    /// A file for rows of `cols` features. `about` says everything of them but labels and
    /// weights; of these the columns must be known.
    pub(in crate::data) fn new(
        path: &Path,
        about: &Labelled<()>,
        cols: usize,
        wide: Precision,
    ) -> Result<Self> {
        let target = Target::new(path)?;
        let longest = longest_header(path, about)?;
        if longest > LONGEST_HEADER {
            let problem = format!(
                "the names of the features take {}, more than the {} a safetensors file allows; \
                 leave out the header of the table",
                Bytes(longest as u64),
                Bytes(LONGEST_HEADER as u64)
            );
            return Err(Error::file(path, Place::Whole, problem));
        }
        let mut temporary = Temporary::beside(&target)?;
        temporary.write(&vec![0; longest])?;
        Ok(Self {
            path: path.to_path_buf(),
            target,
            temporary,
            start: longest,
            cols,
            wide,
            is_wide: false,
            pending: Vec::with_capacity(2 * BLOCK),
            blocks: Vec::new(),
            values: 0,
        })
    }

    /// Number of rows so far.
    pub(in crate::data) fn rows(&self) -> usize {
        self.values as usize / self.cols
    }

    /// Adds whole rows.
    pub(in crate::data) fn push<T: Scalar>(&mut self, values: &[T]) -> Result<()> {
        if !self.is_wide && !values.iter().all(|&value| is_byte(value)) {
            self.widen()?;
        }
        self.values += values.len() as u64;
        let (wide, is_wide) = (self.wide, self.is_wide);
        for part in values.chunks(BLOCK / 8) {
            match (is_wide, wide) {
                (false, _) => {
                    let bytes = part.iter().map(|value| value.to_f64() as u8);
                    self.pending.extend(bytes);
                }
                (true, Precision::F32) => self.extend(part, |v| (v.to_f64() as f32).to_le_bytes()),
                (true, Precision::F64) => self.extend(part, |v| v.to_f64().to_le_bytes()),
            }
            self.flush(BLOCK)?;
        }
        Ok(())
    }

    fn extend<T: Scalar, const N: usize>(&mut self, part: &[T], bytes: impl Fn(T) -> [u8; N]) {
        let bytes = part.iter().flat_map(|&value| bytes(value));
        self.pending.extend(bytes);
    }

    /// Writes the blocks that are full; the last if `at_least` is 1.
    fn flush(&mut self, at_least: usize) -> Result<()> {
        let mut done = 0;
        while self.pending.len() - done >= at_least {
            let end = (done + BLOCK).min(self.pending.len());
            let block = &self.pending[done..end];
            self.temporary.write(block)?;
            self.blocks.push(xxh3_64(block));
            done = end;
        }
        self.pending.drain(..done);
        Ok(())
    }

    /// Makes numbers of the bytes so far.
    fn widen(&mut self) -> Result<()> {
        let wide = self.wide;
        let size = match wide {
            Precision::F32 => size_of::<f32>(),
            Precision::F64 => size_of::<f64>(),
        };
        let widened = |bytes: &[u8]| -> Vec<u8> {
            match wide {
                Precision::F32 => bytes
                    .iter()
                    .flat_map(|&b| f32::from(b).to_le_bytes())
                    .collect(),
                Precision::F64 => bytes
                    .iter()
                    .flat_map(|&b| f64::from(b).to_le_bytes())
                    .collect(),
            }
        };
        let mut blocks = vec![0; self.blocks.len() * size];
        let mut block = vec![0; BLOCK];
        // Where a block goes lies behind it, or is where blocks have left already.
        for i in (0..self.blocks.len()).rev() {
            self.temporary
                .read_at((self.start + i * BLOCK) as u64, &mut block)?;
            let wide = widened(&block);
            self.temporary
                .write_at((self.start + i * BLOCK * size) as u64, &wide)?;
            let sums = wide.chunks(BLOCK).map(xxh3_64);
            for (to, sum) in blocks[i * size..].iter_mut().zip(sums) {
                *to = sum;
            }
        }
        // What follows is written behind the last of them.
        let end = self.start + blocks.len() * BLOCK;
        self.temporary.write_at(end as u64, &[])?;
        self.blocks = blocks;
        self.pending = widened(&self.pending);
        self.is_wide = true;
        self.flush(BLOCK)
    }

    /// Adds what `about` says, labels and weights too, and puts the file in its place.
    pub(in crate::data) fn finish(mut self, about: &Labelled<()>) -> Result<()> {
        self.flush(1)?;
        let rows = self.rows();
        let dtype = match (self.is_wide, self.wide) {
            (false, _) => Dtype::U8,
            (true, Precision::F32) => Dtype::F32,
            (true, Precision::F64) => Dtype::F64,
        };
        let size = self.values as usize * dtype.bitsize() / 8;
        let padding = [0; ALIGNMENT];
        let padding = &padding[..size.next_multiple_of(ALIGNMENT) - size];
        let kept = about.labels.as_ref().map(|labels| labels.kept());
        let kept = kept.transpose()?;
        let names = match &kept {
            Some(Kept::Classes { names, .. }) => {
                serde_json::to_vec(names).map_err(|e| unsuitable(&self.path, &e))?
            }
            _ => Vec::new(),
        };
        let mut small = Vec::new();
        let mut add = |name, dtype, shape: Vec<usize>, bytes| {
            small.push(Small {
                name,
                dtype,
                shape,
                bytes,
            });
        };
        if !padding.is_empty() {
            add(PADDING, Dtype::U8, vec![padding.len()], padding);
        }
        let blocks = bytemuck::cast_slice(&self.blocks);
        add(BLOCKS, Dtype::U64, vec![self.blocks.len()], blocks);
        if let Some(Kept::Values(values)) = &kept {
            let shape = vec![values.rows(), values.cols()];
            add(
                VALUES,
                Dtype::F64,
                shape,
                bytemuck::cast_slice(values.values()),
            );
        }
        if let Some(weights) = &about.weights {
            let bytes = bytemuck::cast_slice(weights);
            add(WEIGHTS, Dtype::F64, vec![weights.len()], bytes);
        }
        if let Some(Kept::Classes { codes, .. }) = &kept {
            add(
                CODES,
                Dtype::U32,
                vec![codes.len()],
                bytemuck::cast_slice(codes),
            );
            add(NAMES, Dtype::U8, vec![names.len()], &names);
        }
        let description = description(&self.path, about)?;
        let shape = vec![rows, self.cols];
        let checksum = checksum(&description, (dtype, &shape, size), &small);
        let metadata = [(DESCRIPTION, description.as_str()), (CHECKSUM, &checksum)];
        let tensors = small.iter().map(|small| {
            (
                small.name,
                small.dtype,
                small.shape.clone(),
                small.bytes.len(),
            )
        });
        let all = std::iter::once((FEATURES, dtype, shape, size)).chain(tensors);
        let mut header =
            container::header(&metadata, all).map_err(|e| unsuitable(&self.path, &e))?;
        container::fill(&mut header, self.start);
        for small in &small {
            self.temporary.write(small.bytes)?;
        }
        self.temporary.write_at(0, &header)?;
        self.temporary.become_file(&self.target)
    }
}

/// Whether a byte holds the value; it has no -0.
fn is_byte<T: Scalar>(value: T) -> bool {
    let value = value.to_f64();
    value == f64::from(value as u8) && value.is_sign_positive()
}

/// The checksum of a file, in the order of names.
fn checksum(
    description: &str,
    (dtype, shape, size): (Dtype, &[usize], usize),
    small: &[Small<'_>],
) -> String {
    let mut all: Vec<Summed<'_>> = vec![(FEATURES, dtype, shape, size, &[])];
    let tensors = small.iter();
    all.extend(tensors.map(|t| (t.name, t.dtype, &t.shape[..], t.bytes.len(), t.bytes)));
    super::open::checksum(description, all)
}

fn description(path: &Path, about: &Labelled<()>) -> Result<String> {
    let labels = about.labels.as_ref();
    let description = Description {
        format_version: FORMAT_VERSION,
        lssvm_version: env!("CARGO_PKG_VERSION").into(),
        block_bytes: BLOCK,
        feature_names: about.feature_names.clone(),
        label_names: labels.map_or_else(Vec::new, |labels| labels.column_names().to_vec()),
        label_places: labels.map_or_else(Vec::new, |labels| labels.column_places().to_vec()),
        weight_name: about.weight_name.clone(),
        weight_place: about.weight_place,
        image: about.image,
        index_base: about.index_base,
    };
    serde_json::to_string(&description).map_err(|error| unsuitable(path, &error))
}

fn unsuitable(path: &Path, error: &serde_json::Error) -> Error {
    let problem = format!("the description of the data cannot be written as JSON: {error}");
    Error::file(path, Place::Whole, problem)
}

/// Bytes of the longest header that a file with this description can get.
fn longest_header(path: &Path, about: &Labelled<()>) -> Result<usize> {
    let description = description(path, about)?;
    let checksum = Digest::new("").finish();
    let metadata = [(DESCRIPTION, description.as_str()), (CHECKSUM, &checksum)];
    let all = [FEATURES, PADDING, BLOCKS, VALUES, WEIGHTS, CODES, NAMES];
    let tensors = all.map(|name| (name, Dtype::F64, vec![usize::MAX; 2], usize::MAX));
    let header = container::header(&metadata, tensors);
    let header = header.map_err(|error| unsuitable(path, &error))?;
    // The last place of the first tensor is no longer than that of the others.
    Ok((header.len() + LENGTH_BYTES).next_multiple_of(BLOCK.min(4096)))
}
