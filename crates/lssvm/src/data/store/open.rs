//! Opening a file of data, and refusing those that are none.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::de::DeserializeOwned;

use super::{
    BLOCKS, CODES, DESCRIPTION, Description, FEATURES, FORMAT_VERSION, NAMES, Summed, VALUES,
    Version, WEIGHTS,
};
use crate::container::{self, CHECKSUM, Digest, LENGTH_BYTES};
use crate::data::array::{Kind, Layout, Numbers, Records};
use crate::data::source::Source;
use crate::data::{Labels, ReadOptions, Stream};
use crate::error::Place;
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// What to do about a file that was good once.
const COPY_AGAIN: &str = "copy it again from where it was made, or convert the data again";

/// Blocks are read as a whole, so that none may be larger.
const LARGEST_BLOCK: usize = 1 << 24;

/// A tensor with its bytes.
struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// All tensors but the features, by name.
type Small = BTreeMap<String, Tensor>;

/// A file whose header was read.
struct DataFile {
    source: Source,
    /// Where the tensors start.
    start: usize,
    metadata: Metadata,
}

/// The rows of a file.
pub(in crate::data) fn open<T: Scalar>(source: Source, options: &ReadOptions) -> Result<Stream<T>> {
    let file = DataFile::new(source)?;
    let path = file.source.path().to_path_buf();
    let description = file.description()?;
    let features = file.info(FEATURES)?.clone();
    let (rows, cols, kind) = match (&features.shape[..], features.dtype) {
        (&[rows, cols], Dtype::U8) => (rows, cols, Kind::U8),
        (&[rows, cols], Dtype::F32) => (rows, cols, Kind::F32),
        (&[rows, cols], Dtype::F64) => (rows, cols, Kind::F64),
        _ => return Err(file.strange(FEATURES)),
    };
    if rows == 0 || cols == 0 {
        return Err(file.refuse(format!("has no rows, or no features: {COPY_AGAIN}")));
    }
    let small = file.small()?;
    file.check(&small)?;
    let description: Description = file.json(description.as_bytes())?;
    let n = options.rows(rows);
    let mut data = Stream::new(&path, Arc::new(Matrix::<T>::zeros(0, 0)));
    if let Some(weights) = small.get(WEIGHTS) {
        let weights = file.numbers(WEIGHTS, weights, rows, 1)?;
        if !weights.iter().all(|weight| *weight >= 0.0) {
            return Err(file.refuse("has weights that are negative: convert the data again"));
        }
        data.weights = Some(weights[..n].to_vec());
    }
    if !options.no_labels {
        data.labels = file.labels(&small, &description, rows, n)?;
    }
    if description
        .feature_names
        .as_ref()
        .is_some_and(|all| all.len() != cols)
    {
        return Err(file.refuse(format!(
            "names more or fewer features than it has: {COPY_AGAIN}"
        )));
    }
    let order = order(&path, &description, options)?;
    let width = order.as_ref().map_or(cols, Vec::len);
    data.feature_names = match order {
        Some(_) => options.feature_names.clone(),
        None => description.feature_names,
    };
    data.image = description.image.filter(|image| image.len() == cols);
    data.index_base = description.index_base.filter(|&base| base <= 1);
    data.weight_name = description.weight_name;
    data.weight_place = description.weight_place;
    let numbers = Numbers {
        kind,
        big_endian: false,
        layout: match order {
            None => Layout::Contiguous,
            Some(features) => Layout::Strided {
                row: cols,
                features,
            },
        },
    };
    let sums = file.block_sums(&small, &features, description.block_bytes)?;
    let (start, end) = features.data_offsets;
    let bytes = (file.start + start) as u64..(file.start + end) as u64;
    let first = file.start + start;
    let source = file
        .source
        .with_blocks(bytes, description.block_bytes, sums)?;
    let records = Records::new(numbers, width).with_part(&Arc::new(source), first, n);
    data.features = Arc::new(records);
    Ok(data)
}

impl DataFile {
    /// Reads the header.
    fn new(source: Source) -> Result<Self> {
        let path = source.path().to_path_buf();
        let refuse = |problem: String| Err(Error::file(&path, Place::Whole, problem));
        let begin = source.part(0, source.length().min(LENGTH_BYTES as u64 + 1))?;
        if !container::looks_like(&begin) {
            return refuse(
                "is not data of lssvm, nor any safetensors file: give a file that lssvm convert \
                 has made"
                    .into(),
            );
        }
        let length = begin.first_chunk().map_or(0, |&b| u64::from_le_bytes(b));
        let start = LENGTH_BYTES as u64 + length;
        if start > source.length() {
            return refuse(format!(
                "ends within its header, so it was cut short: {COPY_AGAIN}"
            ));
        }
        let header = source.part(LENGTH_BYTES as u64, start)?;
        let metadata: Metadata = match serde_json::from_slice(&header) {
            Ok(metadata) => metadata,
            Err(error) => return refuse(format!("has a damaged header ({error}): {COPY_AGAIN}")),
        };
        drop((begin, header));
        let file = Self {
            source,
            start: start as usize,
            metadata,
        };
        file.check_places()?;
        Ok(file)
    }

    /// The tensors lie one after the other and fill the file; safetensors can tell that
    /// only of files in memory.
    fn check_places(&self) -> Result<()> {
        let tensors = self.metadata.tensors();
        let mut all: Vec<(&String, &&TensorInfo)> = tensors.iter().collect();
        all.sort_unstable_by_key(|(_, info)| info.data_offsets);
        let mut end = 0;
        for (name, info) in all {
            let (from, to) = info.data_offsets;
            let count = info.shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
            let bits = count.and_then(|count| count.checked_mul(info.dtype.bitsize()));
            if from != end || bits != to.checked_sub(from).and_then(|bytes| bytes.checked_mul(8)) {
                return Err(self.strange(name));
            }
            end = to;
        }
        if (self.start as u64).checked_add(end as u64) != Some(self.source.length()) {
            return Err(self.refuse(format!(
                "is shorter or longer than its header says, so it was cut short or changed: \
                 {COPY_AGAIN}"
            )));
        }
        Ok(())
    }

    fn text(&self, key: &str) -> Option<&str> {
        let texts = self.metadata.metadata().as_ref();
        texts.and_then(|texts| texts.get(key)).map(String::as_str)
    }

    /// The description, if it is of a version that is known. Before all other checks:
    /// they may be others in a newer version.
    fn description(&self) -> Result<String> {
        let Some(description) = self.text(DESCRIPTION) else {
            return Err(self.refuse(match self.text("lssvm") {
                Some(_) => "is a model of lssvm, not data: give the data to apply it to",
                None => {
                    "is a safetensors file, but not data of lssvm: give a file that lssvm convert \
                     has made"
                }
            }));
        };
        let version: Version = self.json(description.as_bytes())?;
        if version.format_version > u64::from(FORMAT_VERSION) {
            return Err(self.refuse(format!(
                "was written by a newer version of lssvm ({}, data format {}; this is {}, format \
                 {FORMAT_VERSION}): upgrade lssvm",
                version.lssvm_version,
                version.format_version,
                env!("CARGO_PKG_VERSION"),
            )));
        }
        Ok(description.to_string())
    }

    fn json<D: DeserializeOwned>(&self, bytes: &[u8]) -> Result<D> {
        serde_json::from_slice(bytes).map_err(|error| {
            self.refuse(format!(
                "has a description that is not understood ({error}): {COPY_AGAIN}"
            ))
        })
    }

    fn info(&self, name: &str) -> Result<&TensorInfo> {
        let missing = || self.refuse(format!("lacks the tensor '{name}': {COPY_AGAIN}"));
        self.metadata.info(name).ok_or_else(missing)
    }

    /// All tensors but the features.
    fn small(&self) -> Result<Small> {
        let tensors = self.metadata.tensors().into_iter();
        let small = tensors.filter(|(name, _)| name != FEATURES);
        let read = |(name, info): (String, &TensorInfo)| {
            let (from, to) = info.data_offsets;
            let bytes = self
                .source
                .part((self.start + from) as u64, (self.start + to) as u64)?;
            let tensor = Tensor {
                dtype: info.dtype,
                shape: info.shape.clone(),
                bytes: bytes.into_owned(),
            };
            Ok((name, tensor))
        };
        small.map(read).collect()
    }

    fn check(&self, small: &Small) -> Result<()> {
        let features = self.info(FEATURES)?;
        let (from, to) = features.data_offsets;
        let mut all: Vec<Summed<'_>> =
            vec![(FEATURES, features.dtype, &features.shape, to - from, &[])];
        let tensors = small.iter();
        all.extend(tensors.map(|(name, t)| {
            (
                name.as_str(),
                t.dtype,
                &t.shape[..],
                t.bytes.len(),
                &t.bytes[..],
            )
        }));
        let description = self.text(DESCRIPTION).unwrap_or_default();
        if self.text(CHECKSUM) != Some(&checksum(description, all)) {
            return Err(self.refuse(format!(
                "does not match its checksum, so it is damaged: {COPY_AGAIN}"
            )));
        }
        Ok(())
    }

    /// The checksums of the blocks of features.
    fn block_sums(&self, small: &Small, features: &TensorInfo, size: usize) -> Result<Vec<u64>> {
        let (from, to) = features.data_offsets;
        let blocks = small.get(BLOCKS);
        let blocks = blocks.filter(|blocks| {
            let expected = (to - from)
                .checked_add(size)
                .map(|all| (all - 1) / size.max(1));
            size > 0
                && size <= LARGEST_BLOCK
                && blocks.dtype == Dtype::U64
                && Some(blocks.bytes.len() / 8) == expected
        });
        let blocks = blocks.ok_or_else(|| self.strange(BLOCKS))?;
        let (sums, _) = blocks.bytes.as_chunks();
        Ok(sums.iter().map(|&sum| u64::from_le_bytes(sum)).collect())
    }

    /// The numbers of a tensor of this shape, which are finite.
    fn numbers(&self, name: &str, tensor: &Tensor, rows: usize, cols: usize) -> Result<Vec<f64>> {
        let (numbers, _) = tensor.bytes.as_chunks();
        let numbers: Vec<f64> = numbers.iter().map(|&b| f64::from_le_bytes(b)).collect();
        let shaped = Some(numbers.len()) == rows.checked_mul(cols);
        if tensor.dtype != Dtype::F64 || !shaped || !numbers.iter().all(|v| v.is_finite()) {
            return Err(self.strange(name));
        }
        Ok(numbers)
    }

    /// The labels of the first `n` of all rows.
    fn labels(
        &self,
        small: &Small,
        description: &Description,
        rows: usize,
        n: usize,
    ) -> Result<Option<Labels>> {
        let labels = if let Some(values) = small.get(VALUES) {
            let cols = match values.shape[..] {
                [_, cols] if cols > 0 => cols,
                _ => return Err(self.strange(VALUES)),
            };
            let mut numbers = self.numbers(VALUES, values, rows, cols)?;
            numbers.truncate(n * cols);
            Labels::from_values(Matrix::from_vec(n, cols, numbers))?
        } else if let Some(codes) = small.get(CODES) {
            let Some(names) = small.get(NAMES) else {
                return Err(self.strange(NAMES));
            };
            let names: Vec<String> = self.json(&names.bytes)?;
            let (numbers, _) = codes.bytes.as_chunks();
            let mut numbers: Vec<u32> = numbers.iter().map(|&b| u32::from_le_bytes(b)).collect();
            if codes.dtype != Dtype::U32 || numbers.len() != rows {
                return Err(self.strange(CODES));
            }
            numbers.truncate(n);
            Labels::from_names(names, numbers).map_err(|error| {
                self.refuse(format!(
                    "has labels that do not fit ({error}): {COPY_AGAIN}"
                ))
            })?
        } else {
            return Ok(None);
        };
        let labels = labels.with_source(self.source.path(), description.label_names.clone());
        let places = description.label_places.iter();
        let places = places.filter_map(|place| place.checked_sub(1));
        Ok(Some(labels.with_places(places)))
    }

    fn strange(&self, name: &str) -> Error {
        let what = match self.metadata.info(name) {
            Some(info) => format!("of {} {:?}", info.dtype, info.shape),
            None => "missing".to_string(),
        };
        self.refuse(format!(
            "has a tensor '{name}' that is not what it should be ({what}): {COPY_AGAIN}"
        ))
    }

    fn refuse(&self, problem: impl ToString) -> Error {
        Error::file(self.source.path(), Place::Whole, problem.to_string())
    }
}

/// Which column of the file each feature of a model is, if they are not just those of the
/// file.
fn order(
    path: &Path,
    description: &Description,
    options: &ReadOptions,
) -> Result<Option<Vec<usize>>> {
    let (Some(names), Some(wanted)) = (&description.feature_names, &options.feature_names) else {
        return Ok(None);
    };
    if names == wanted {
        return Ok(None);
    }
    let fail = |problem: String| Err(Error::file(path, Place::Whole, problem));
    let columns: HashMap<&String, usize> = names.iter().zip(0..).collect();
    let known: HashSet<&String> = wanted.iter().collect();
    if let Some(name) = wanted.iter().find(|name| !columns.contains_key(name)) {
        return fail(format!(
            "there is no feature '{name}'; use data with the features of the model"
        ));
    }
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        return fail(format!(
            "'{name}' is not a feature of the model; convert the data without it"
        ));
    }
    Ok(Some(wanted.iter().map(|name| columns[name]).collect()))
}

/// The checksum of a description and of tensors.
pub(super) fn checksum(description: &str, mut tensors: Vec<Summed<'_>>) -> String {
    tensors.sort_unstable_by_key(|&(name, ..)| name);
    let mut digest = Digest::new(description);
    for (name, dtype, shape, size, bytes) in tensors {
        digest.tensor(name, dtype, shape, size);
        digest.bytes(bytes);
    }
    digest.finish()
}
