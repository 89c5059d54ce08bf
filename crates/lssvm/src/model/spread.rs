//! A model whose support rows are not in memory: what training on several ranks ends with.
//!
//! No rank has room for the rows of all. They are read again, as they were for training,
//! while the file is written: once for its checksum, which lies before them, and once for
//! itself. The file is the one that [`Model::save`] would write.

use std::path::Path;
use std::sync::Arc;

use super::format::{
    BIAS, CLASSES, DENSE_VERSION, DESCRIPTION, SUPPORT, Stored, WEIGHTS, all_finite, dtype,
};
use super::save::check_header;
use super::{Description, Model, ModelParts, Outputs, check_classes, keep_rows, used_rows};
use crate::container::{self, CHECKSUM, Digest};
use crate::data::{Picked, Rows, for_each_batch};
use crate::files::{Target, Temporary};
use crate::kernel::Samples;
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// A trained model that is not yet in one place.
#[derive(Debug)]
pub struct Spread<T: Scalar> {
    /// Preprocessed, and only those that have weights.
    rows: Arc<dyn Rows<T>>,
    weights: Matrix<T>,
    bias: Vec<T>,
    classes: Option<Matrix<T>>,
    description: Description,
}

/// Its name, its shape, and its values if they are here.
type Tensor<'a, T> = (&'static str, Vec<usize>, Option<&'a [T]>);

impl<T: Scalar> Spread<T> {
    /// `rows`: preprocessed, with weights, and a class if there are classes, for each.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub fn new(
        rows: Arc<dyn Rows<T>>,
        weights: Matrix<T>,
        bias: Vec<T>,
        classes: Option<Matrix<T>>,
        description: Description,
    ) -> Result<Self> {
        super::need_finite("weights", weights.values())?;
        super::need_finite("bias", &bias)?;
        description.check(rows.n_features(), bias.len())?;
        if let Some(classes) = &classes {
            check_classes(classes, rows.len(), &description.outputs)?;
        }
        let kept = used_rows(&weights);
        let classes = classes.map(|all| Matrix::from_fn(1, kept.len(), |_, i| all.get(0, kept[i])));
        Ok(Self {
            weights: keep_rows(weights, &kept),
            rows: Arc::new(Picked::new(rows, kept)),
            bias,
            classes,
            description,
        })
    }

    /// P: number of support rows.
    pub fn n_support(&self) -> usize {
        self.rows.len()
    }

    /// What the model predicts.
    pub fn outputs(&self) -> &Outputs {
        &self.description.outputs
    }

    /// Bytes of its tensors, in a file.
    pub fn size_bytes(&self) -> u64 {
        let tensors = self.tensors();
        tensors
            .iter()
            .map(|(_, shape, _)| size::<T>(shape) as u64)
            .sum()
    }

    /// The model in memory.
    ///
    /// # Errors
    /// As [`Rows::read`] and [`Model::new`].
    pub fn into_model(self) -> Result<Model<T>> {
        Model::new(ModelParts {
            support: Samples::new(self.rows.into_points()?, &self.description.kernel),
            weights: self.weights,
            bias: self.bias,
            classes: self.classes,
            description: self.description,
        })
    }

    /// Writes the model to one file, all of it or nothing. Sparse rows are brought into memory
    /// for it.
    ///
    /// # Errors
    /// As [`Model::save`], and [`Rows::read`].
    pub fn save(self, path: &Path) -> Result<()> {
        if self.rows.kept_values().is_some() {
            return self.into_model()?.save(path);
        }
        let target = Target::new(path)?;
        let stored = Stored {
            format_version: DENSE_VERSION,
            lssvm_version: env!("CARGO_PKG_VERSION").into(),
            precision: T::PRECISION,
            description: &self.description,
        };
        let unsuitable = |error| super::save::unsuitable(path, error);
        let description = serde_json::to_string(&stored).map_err(unsuitable)?;
        let mut digest = Digest::new(&description);
        for (name, shape, values) in self.tensors() {
            digest.tensor(name, dtype::<T>(), &shape, size::<T>(&shape));
            self.each(values, |bytes| {
                digest.bytes(bytes);
                Ok(())
            })?;
        }
        let metadata = [(DESCRIPTION, &*description), (CHECKSUM, &*digest.finish())];
        let tensors = self.tensors().into_iter().map(|(name, shape, _)| {
            let size = size::<T>(&shape);
            (name, dtype::<T>(), shape, size)
        });
        let header = container::header(&metadata, tensors).map_err(unsuitable)?;
        check_header(path, &header)?;
        let mut temporary = Temporary::beside(&target)?;
        temporary.write(&header)?;
        for (_, _, values) in self.tensors() {
            self.each(values, |bytes| temporary.write(bytes))?;
        }
        temporary.become_file(&target)
    }

    /// All tensors, in their order in a file; of the support rows no values are here.
    fn tensors(&self) -> Vec<Tensor<'_, T>> {
        let support = vec![self.rows.len(), self.rows.n_features()];
        let weights = vec![self.weights.rows(), self.weights.cols()];
        let mut tensors = vec![(BIAS, vec![self.bias.len()], Some(&self.bias[..]))];
        if let Some(classes) = &self.classes {
            tensors.push((CLASSES, vec![classes.cols()], Some(classes.values())));
        }
        tensors.push((SUPPORT, support, None));
        tensors.push((WEIGHTS, weights, Some(self.weights.values())));
        tensors
    }

    /// The bytes of a tensor, some at a time.
    fn each(&self, values: Option<&[T]>, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let Some(values) = values else {
            return for_each_batch(&*self.rows, |batch| {
                if !all_finite(batch.values()) {
                    return Err(Error::Numeric(
                        "a support row is not finite: the data were changed while they were \
                         learnt from; train again"
                            .into(),
                    ));
                }
                f(bytemuck::cast_slice(batch.values()))
            });
        };
        f(bytemuck::cast_slice(values))
    }
}

/// Bytes of a tensor.
fn size<T>(shape: &[usize]) -> usize {
    shape.iter().product::<usize>() * size_of::<T>()
}
