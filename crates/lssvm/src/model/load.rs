//! Mapping a model file, and refusing those that are none.
//!
//! The tensors stay in the file until they are used; the checks read them
//! once. Every refusal says which kind of bad file it is and what to do.

use std::fs::File;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use memmap2::{Mmap, MmapMut};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, Metadata, SafeTensorError, TensorInfo};

use super::format::{
    BIAS, CLASSES, DESCRIPTION, FORMAT_VERSION, SUPPORT, SUPPORT_COLUMNS, SUPPORT_OFFSETS,
    SUPPORT_VALUES, Stored, Support, Version, WEIGHTS, digest, dtype, tensors,
};
use super::save::MEMORY;
use super::{AnyModel, Description, Model, ModelParts};
use crate::container::{self, CHECKSUM, LENGTH_BYTES};
use crate::error::Place;
use crate::kernel::Samples;
use crate::linalg::{Csr, Matrix, Points, Scalar};
use crate::{Error, Result};

/// What to do about a file that was a model once.
const COPY_AGAIN: &str = "copy it again from where it was made, or train it again";

pub(super) fn load(path: &Path) -> Result<AnyModel> {
    read(path, map(path)?)
}

/// The same from the bytes of a file, which are copied to where numbers may lie.
pub(super) fn from_bytes(bytes: &[u8]) -> Result<AnyModel> {
    let path = Path::new(MEMORY);
    if bytes.is_empty() {
        let problem = format!("is empty, so no model: {COPY_AGAIN}");
        return Err(Error::file(path, Place::Whole, problem));
    }
    let map = MmapMut::map_anon(bytes.len()).and_then(|mut map| {
        map.copy_from_slice(bytes);
        map.make_read_only()
    });
    let map = map.map_err(|error| Error::io(path, "allocate memory", error))?;
    read(path, Arc::new(map))
}

fn read(path: &Path, map: Arc<Mmap>) -> Result<AnyModel> {
    let refuse = |problem: String| Err(Error::file(path, Place::Whole, problem));
    let (start, metadata) = match read_header(&map) {
        Ok(header) => header,
        Err(problem) => return refuse(problem),
    };
    let texts = metadata.metadata().as_ref();
    let text = |key: &str| texts.and_then(|texts| texts.get(key)).map(String::as_str);
    let Some(description) = text(DESCRIPTION) else {
        return refuse(
            "is a safetensors file, but not a model of lssvm: give a file that lssvm has saved"
                .into(),
        );
    };
    if let Err(problem) = check_version(description) {
        return refuse(problem);
    }
    let file = ModelFile {
        path,
        map,
        start,
        metadata: &metadata,
        description,
        checksum: text(CHECKSUM).unwrap_or_default(),
    };
    // A tensor of another type, or none, is found by either.
    let support = metadata.info(SUPPORT).or(metadata.info(SUPPORT_VALUES));
    match support.map(|support| support.dtype) {
        Some(Dtype::F64) => file.model().map(AnyModel::F64),
        _ => file.model().map(AnyModel::F32),
    }
}

/// Maps a file that is not empty.
fn map(path: &Path) -> Result<Arc<Mmap>> {
    let cannot = |action| move |error| Error::io(path, action, error);
    let file = File::open(path).map_err(cannot("open the model"))?;
    let kind = file.metadata().map_err(cannot("open the model"))?;
    let refuse = |problem: &str| Err(Error::file(path, Place::Whole, problem));
    if kind.is_dir() {
        return refuse("is a folder, not a model: give the model file in it");
    }
    if !kind.is_file() {
        return refuse("is a device or a pipe, which cannot be mapped: copy it to a file first");
    }
    if kind.len() == 0 {
        let problem = format!("is empty, so no model: {COPY_AGAIN}");
        return refuse(&problem);
    }
    // SAFETY: the map is read-only. That nobody changes or cuts the file while
    // it is mapped cannot be enforced, as with every map; it is asked of the
    // caller of `AnyModel::load`, and our own writer puts a new file in the
    // place of the old one instead of writing into it.
    let map = unsafe { Mmap::map(&file) };
    Ok(Arc::new(map.map_err(cannot("map the model"))?))
}

/// Where the tensors start and what the header says of them, or what is wrong.
fn read_header(bytes: &[u8]) -> Result<(usize, Metadata), String> {
    if !container::looks_like(bytes) {
        return Err(
            "is not a model of lssvm, nor any safetensors file: give a file that lssvm has saved"
                .into(),
        );
    }
    SafeTensors::read_metadata(bytes)
        .map(|(length, metadata)| (LENGTH_BYTES + length, metadata))
        .map_err(|error| match error {
            SafeTensorError::InvalidHeaderLength => {
                format!("ends within its header, so it was cut short: {COPY_AGAIN}")
            }
            SafeTensorError::MetadataIncompleteBuffer => format!(
                "is shorter or longer than its header says, so it was cut short or changed: \
                 {COPY_AGAIN}"
            ),
            error => format!("has a damaged header ({error}): {COPY_AGAIN}"),
        })
}

/// Refuses a version that is not known yet. Before all other checks: they may
/// be others in a newer version.
fn check_version(description: &str) -> Result<(), String> {
    let version: Version = serde_json::from_str(description).map_err(|error| {
        format!("has a description that cannot be read ({error}), so it is damaged: {COPY_AGAIN}")
    })?;
    if version.format_version <= u64::from(FORMAT_VERSION) {
        return Ok(());
    }
    Err(format!(
        "was written by a newer version of lssvm ({}, file format {}; this is {}, format \
         {FORMAT_VERSION}): upgrade lssvm",
        version.lssvm_version,
        version.format_version,
        env!("CARGO_PKG_VERSION"),
    ))
}

/// A file whose header was read.
struct ModelFile<'a> {
    path: &'a Path,
    map: Arc<Mmap>,
    /// Where the tensors start.
    start: usize,
    metadata: &'a Metadata,
    description: &'a str,
    checksum: &'a str,
}

impl ModelFile<'_> {
    fn model<T: Scalar>(&self) -> Result<Model<T>> {
        let bias = self.tensor::<T>(BIAS, 1)?.into_values();
        let support = match self.metadata.info(SUPPORT_VALUES) {
            Some(_) => self.sparse()?,
            None => Loaded::Dense(self.tensor(SUPPORT, 2)?),
        };
        let weights = self.tensor(WEIGHTS, 2)?;
        let classes = match self.metadata.info(CLASSES) {
            Some(_) => Some(self.tensor::<T>(CLASSES, 1)?),
            None => None,
        };
        let numbers = classes.as_ref().map(Matrix::values);
        let tensors = tensors(&bias, numbers, support.written(), &weights);
        let (checksum, finite) = digest(self.description, &tensors);
        if checksum != self.checksum {
            return Err(self.refuse(format!(
                "does not match its checksum, so it is damaged: {COPY_AGAIN}"
            )));
        }
        // What follows finds no damage, but files made by another program.
        if !finite {
            return Err(self.refuse(
                "holds numbers that are not finite, so it cannot predict: train it again",
            ));
        }
        let stored: Stored<Description> =
            serde_json::from_str(self.description).map_err(|error| {
                self.refuse(format!(
                    "has a description that is not understood ({error}): train it again"
                ))
            })?;
        if stored.precision != T::PRECISION {
            return Err(self.refuse(
                "has numbers of another precision than its description says: train it again",
            ));
        }
        let width = stored.description.pipeline.n_features_out();
        let Some(support) = support.into_points(width) else {
            return Err(self.refuse("has sparse rows that do not fit together: train it again"));
        };
        let parts = ModelParts {
            support: Samples::new(support, &stored.description.kernel),
            weights,
            bias,
            classes,
            description: stored.description,
        };
        Model::assemble(parts).map_err(|error| {
            self.refuse(format!(
                "has parts that do not fit together ({error}): train it again"
            ))
        })
    }

    /// Sparse support rows, which are copied.
    fn sparse<T: Scalar>(&self) -> Result<Loaded<T>> {
        Ok(Loaded::Sparse {
            offsets: self.copied(SUPPORT_OFFSETS, Dtype::U64)?,
            columns: self.copied(SUPPORT_COLUMNS, Dtype::U32)?,
            values: self.copied(SUPPORT_VALUES, dtype::<T>())?,
        })
    }

    /// A tensor of one dimension, copied.
    fn copied<N: bytemuck::AnyBitPattern>(&self, name: &str, dtype: Dtype) -> Result<Vec<N>> {
        let (start, end) = self.info(name, dtype, 1)?.data_offsets;
        let bytes = &self.map[self.start + start..self.start + end];
        let numbers = bytes.chunks_exact(size_of::<N>());
        Ok(numbers.map(bytemuck::pod_read_unaligned).collect())
    }

    fn info(&self, name: &str, dtype: Dtype, dimensions: usize) -> Result<&TensorInfo> {
        let Some(info) = self.metadata.info(name) else {
            return Err(self.refuse(format!("lacks the tensor '{name}': {COPY_AGAIN}")));
        };
        // Of rows without values there could be more than memory has bytes, in a small file.
        let nothing = dimensions > 1 && info.shape.contains(&0);
        if info.dtype != dtype || info.shape.len() != dimensions || nothing {
            return Err(self.refuse(format!(
                "has a tensor '{name}' of {} {:?}, which is not what it should be: {COPY_AGAIN}",
                info.dtype, info.shape
            )));
        }
        Ok(info)
    }

    /// A tensor as rows; of one dimension it is one row.
    fn tensor<T: Scalar>(&self, name: &str, dimensions: usize) -> Result<Matrix<T>> {
        let info = self.info(name, dtype::<T>(), dimensions)?;
        let (rows, cols) = match info.shape[..] {
            [rows, cols] => (rows, cols),
            _ => (1, info.shape.iter().product()),
        };
        let (start, end) = info.data_offsets;
        let bytes = self.start + start..self.start + end;
        Ok(match Mapped::new(&self.map, bytes.clone()) {
            Some(values) => Matrix::from_shared(rows, cols, Arc::new(values)),
            // Another program wrote the header, and did not fill it up.
            None => {
                let numbers = self.map[bytes].chunks_exact(size_of::<T>());
                let values = numbers.map(bytemuck::pod_read_unaligned).collect();
                Matrix::from_vec(rows, cols, values)
            }
        })
    }

    fn refuse(&self, problem: impl ToString) -> Error {
        Error::file(self.path, Place::Whole, problem.to_string())
    }
}

/// Support rows as they are in a file.
enum Loaded<T: Scalar> {
    Dense(Matrix<T>),
    Sparse {
        offsets: Vec<u64>,
        columns: Vec<u32>,
        values: Vec<T>,
    },
}

impl<T: Scalar> Loaded<T> {
    fn written(&self) -> Support<'_, T> {
        match self {
            Loaded::Dense(rows) => Support::Dense(rows),
            Loaded::Sparse {
                offsets,
                columns,
                values,
            } => Support::Sparse {
                offsets: offsets.into(),
                columns,
                values,
            },
        }
    }

    /// None if sparse rows are none of `width` columns.
    fn into_points(self, width: usize) -> Option<Points<T>> {
        match self {
            Loaded::Dense(rows) => Some(rows.into()),
            Loaded::Sparse {
                offsets,
                columns,
                values,
            } => {
                let offsets = offsets.into_iter().map(usize::try_from);
                let offsets = offsets.collect::<Result<_, _>>().ok()?;
                Some(Csr::from_parts(width, offsets, columns, values)?.into())
            }
        }
    }
}

/// Numbers in a mapped file.
struct Mapped<T> {
    map: Arc<Mmap>,
    bytes: Range<usize>,
    number: PhantomData<T>,
}

impl<T: Scalar> Mapped<T> {
    /// `None` if the bytes do not lie where numbers of this type may.
    fn new(map: &Arc<Mmap>, bytes: Range<usize>) -> Option<Self> {
        bytemuck::try_cast_slice::<u8, T>(&map[bytes.clone()]).ok()?;
        Some(Mapped {
            map: Arc::clone(map),
            bytes,
            number: PhantomData,
        })
    }
}

impl<T: Scalar> AsRef<[T]> for Mapped<T> {
    fn as_ref(&self) -> &[T] {
        bytemuck::cast_slice(&self.map[self.bytes.clone()])
    }
}
