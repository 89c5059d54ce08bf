//! Rows of raw features that need not be in memory.

use std::ops::Range;
use std::sync::Arc;

use crate::Result;
use crate::linalg::{Csr, Matrix, Points, Scalar};

/// Rows of raw features that are read when they are needed: from memory, from a file, or
/// made from other rows.
///
/// All values that are read are finite.
pub trait Rows<T: Scalar>: Send + Sync {
    /// Number of rows.
    fn len(&self) -> usize;

    /// Number of features.
    fn n_features(&self) -> usize;

    /// Copies these rows, one after the other, to `out`, which has room for just so many
    /// values.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if they cannot be read, [`crate::Error::File`] if a value is
    /// not finite or the file is damaged.
    fn read(&self, rows: Range<usize>, out: &mut [T]) -> Result<()>;

    /// Whether there is no row.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the rows with these indices, in this order.
    ///
    /// # Errors
    /// As [`Rows::read`].
    fn pick(&self, rows: &[usize], out: &mut [T]) -> Result<()> {
        let width = self.n_features();
        let mut out = out;
        for run in rows.chunk_by(|a, b| a + 1 == *b) {
            let (own, rest) = out.split_at_mut(run.len() * width);
            self.read(run[0]..run[0] + run.len(), own)?;
            out = rest;
        }
        Ok(())
    }

    /// These rows as a matrix.
    ///
    /// # Errors
    /// As [`Rows::read`].
    fn matrix(&self, rows: Range<usize>) -> Result<Matrix<T>> {
        let mut out = Matrix::zeros(rows.len(), self.n_features());
        self.read(rows, out.values_mut())?;
        Ok(out)
    }

    /// The rows with these indices as a matrix, in this order.
    ///
    /// # Errors
    /// As [`Rows::read`].
    fn picked(&self, rows: &[usize]) -> Result<Matrix<T>> {
        let mut out = Matrix::zeros(rows.len(), self.n_features());
        self.pick(rows, out.values_mut())?;
        Ok(out)
    }

    /// These rows as they are kept: sparse, if zeros are left out.
    ///
    /// # Errors
    /// As [`Rows::read`].
    fn points(&self, rows: Range<usize>) -> Result<Points<T>> {
        Ok(self.matrix(rows)?.into())
    }

    /// The rows with these indices as they are kept, in this order.
    ///
    /// # Errors
    /// As [`Rows::read`].
    fn picked_points(&self, rows: &[usize]) -> Result<Points<T>> {
        Ok(self.picked(rows)?.into())
    }

    /// How many values are kept, if zeros are left out.
    fn kept_values(&self) -> Option<usize> {
        None
    }

    /// All rows as a matrix.
    ///
    /// # Errors
    /// As [`Rows::read`].
    fn load(&self) -> Result<Matrix<T>> {
        self.matrix(0..self.len())
    }

    /// The same, without a copy where they are in memory and nobody else has them.
    ///
    /// # Errors
    /// As [`Rows::read`].
    fn into_matrix(self: Arc<Self>) -> Result<Matrix<T>> {
        self.load()
    }

    /// All rows as they are kept, without a copy where they are in memory and nobody else
    /// has them.
    ///
    /// # Errors
    /// As [`Rows::read`].
    fn into_points(self: Arc<Self>) -> Result<Points<T>> {
        match self.kept_values() {
            Some(_) => self.points(0..self.len()),
            None => Ok(self.into_matrix()?.into()),
        }
    }
}

/// Values of rows that are read at once.
const BATCH_VALUES: usize = 1 << 22;

/// Rows of a batch are a multiple of this, if so many are not too many values.
const BATCH_UNIT: usize = 1024;

fn batch_rows<T: Scalar>(rows: &dyn Rows<T>) -> usize {
    let rows = BATCH_VALUES / rows.n_features().max(1);
    match rows / BATCH_UNIT {
        0 => rows.max(1),
        units => units * BATCH_UNIT,
    }
}

/// Reads all rows in order, some thousands at a time.
///
/// # Errors
/// As [`Rows::read`], and what `f` returns.
pub fn for_each_batch<T: Scalar>(
    rows: &dyn Rows<T>,
    mut f: impl FnMut(&Matrix<T>) -> Result<()>,
) -> Result<()> {
    let step = batch_rows(rows);
    for start in (0..rows.len()).step_by(step) {
        f(&rows.matrix(start..(start + step).min(rows.len()))?)?;
    }
    Ok(())
}

/// The same with rows as they are kept, and the index of the first of them.
///
/// # Errors
/// As [`for_each_batch`].
pub fn for_each_points<T: Scalar>(
    rows: &dyn Rows<T>,
    mut f: impl FnMut(usize, &Points<T>) -> Result<()>,
) -> Result<()> {
    let step = match rows.kept_values() {
        Some(_) => SPARSE_BATCH,
        None => batch_rows(rows),
    };
    for start in (0..rows.len()).step_by(step) {
        f(start, &rows.points(start..(start + step).min(rows.len()))?)?;
    }
    Ok(())
}

/// Sparse rows of a batch.
const SPARSE_BATCH: usize = 16 * BATCH_UNIT;

impl<T: Scalar> std::fmt::Debug for dyn Rows<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rows({} x {})", self.len(), self.n_features())
    }
}

impl<T: Scalar> Rows<T> for Matrix<T> {
    fn len(&self) -> usize {
        self.rows()
    }

    fn n_features(&self) -> usize {
        self.cols()
    }

    fn read(&self, rows: Range<usize>, out: &mut [T]) -> Result<()> {
        let width = self.cols();
        out.copy_from_slice(&self.values()[rows.start * width..rows.end * width]);
        Ok(())
    }

    fn load(&self) -> Result<Matrix<T>> {
        Ok(self.clone())
    }

    fn into_matrix(self: Arc<Self>) -> Result<Matrix<T>> {
        Ok(Arc::unwrap_or_clone(self))
    }
}

/// Sparse rows in memory.
impl<T: Scalar> Rows<T> for Csr<T> {
    fn len(&self) -> usize {
        self.rows()
    }

    fn n_features(&self) -> usize {
        self.cols()
    }

    fn read(&self, rows: Range<usize>, out: &mut [T]) -> Result<()> {
        let out = out.chunks_exact_mut(self.cols().max(1));
        rows.zip(out)
            .for_each(|(row, out)| self.write_row(row, out));
        Ok(())
    }

    fn points(&self, rows: Range<usize>) -> Result<Points<T>> {
        Ok(self.slice(rows).into())
    }

    fn picked_points(&self, rows: &[usize]) -> Result<Points<T>> {
        Ok(self.select_rows(rows).into())
    }

    fn kept_values(&self) -> Option<usize> {
        Some(self.values().len())
    }

    fn into_points(self: Arc<Self>) -> Result<Points<T>> {
        Ok(Arc::unwrap_or_clone(self).into())
    }
}

/// Rows in memory, as those that are read when they are needed.
pub fn as_rows<T: Scalar>(points: &Points<T>) -> &dyn Rows<T> {
    match points {
        Points::Dense(rows) => rows,
        Points::Sparse(rows) => rows,
    }
}

/// What samples can have as features: a matrix, or rows that are read when needed.
pub trait Features {
    /// Number of samples.
    fn n_samples(&self) -> usize;

    /// Number of features of each.
    fn n_features(&self) -> usize;

    /// Those of the samples with these indices, in this order.
    ///
    /// # Panics
    /// If there is no such sample.
    fn select(&self, rows: &[usize]) -> Self;
}

impl<T: Scalar> Features for Matrix<T> {
    fn n_samples(&self) -> usize {
        self.rows()
    }

    fn n_features(&self) -> usize {
        self.cols()
    }

    fn select(&self, rows: &[usize]) -> Self {
        self.select_rows(rows)
    }
}

impl<T: Scalar> Features for Arc<dyn Rows<T>> {
    fn n_samples(&self) -> usize {
        self.len()
    }

    fn n_features(&self) -> usize {
        (**self).n_features()
    }

    /// Nothing is read yet.
    fn select(&self, rows: &[usize]) -> Self {
        Arc::new(Picked::new(Arc::clone(self), rows.to_vec()))
    }
}

/// Some rows of others, in any order.
pub struct Picked<T: Scalar> {
    rows: Arc<dyn Rows<T>>,
    indices: Vec<usize>,
}

impl<T: Scalar> Picked<T> {
    /// The rows of `rows` with these indices.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn new(rows: Arc<dyn Rows<T>>, indices: Vec<usize>) -> Self {
        assert!(indices.iter().all(|&i| i < rows.len()), "no such row");
        Self { rows, indices }
    }
}

impl<T: Scalar> Picked<T> {
    fn places(&self, rows: &[usize]) -> Vec<usize> {
        rows.iter().map(|&row| self.indices[row]).collect()
    }
}

impl<T: Scalar> Rows<T> for Picked<T> {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn n_features(&self) -> usize {
        self.rows.n_features()
    }

    fn read(&self, rows: Range<usize>, out: &mut [T]) -> Result<()> {
        self.rows.pick(&self.indices[rows], out)
    }

    fn pick(&self, rows: &[usize], out: &mut [T]) -> Result<()> {
        self.rows.pick(&self.places(rows), out)
    }

    fn points(&self, rows: Range<usize>) -> Result<Points<T>> {
        self.rows.picked_points(&self.indices[rows])
    }

    fn picked_points(&self, rows: &[usize]) -> Result<Points<T>> {
        self.rows.picked_points(&self.places(rows))
    }

    /// About as many of them as there are rows.
    fn kept_values(&self) -> Option<usize> {
        let all = self.rows.kept_values()? as f64;
        Some((all * self.len() as f64 / self.rows.len().max(1) as f64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picked_rows_are_those_of_the_matrix() {
        let all = Matrix::from_fn(10, 3, |i, j| (10 * i + j) as f32);
        let indices = [7, 8, 9, 2, 2, 0];
        assert_eq!(all.picked(&indices).unwrap(), all.select_rows(&indices));
        let picked = Picked::new(Arc::new(all.clone()), indices.to_vec());
        assert_eq!((picked.len(), picked.n_features()), (6, 3));
        assert_eq!(picked.load().unwrap(), all.select_rows(&indices));
        let again = picked.picked(&[3, 1]).unwrap();
        assert_eq!(again, all.select_rows(&[2, 8]));
    }

    #[test]
    fn sparse_rows_are_those_of_the_matrix() {
        let all = Matrix::from_fn(10, 3, |i, j| ((i + j) % 3) as f64);
        let sparse: Arc<dyn Rows<f64>> = Arc::new(Csr::from_dense(&all));
        assert_eq!(sparse.load().unwrap(), all);
        assert_eq!(sparse.kept_values(), Some(20));
        let indices = [7, 8, 9, 2, 2, 0];
        let picked = Picked::new(Arc::clone(&sparse), indices.to_vec());
        assert_eq!(picked.load().unwrap(), all.select_rows(&indices));
        let rows = picked.points(1..4).unwrap();
        assert!(rows.is_sparse());
        assert_eq!(rows.into_dense(), all.select_rows(&indices[1..4]));
        let rows = picked.picked_points(&[5, 0]).unwrap();
        assert_eq!(rows.into_dense(), all.select_rows(&[0, 7]));
        let mut seen = Csr::new(3);
        for_each_points(&*sparse, |start, points| {
            assert_eq!(start, seen.rows());
            seen.append(&points.range(0, points.rows()).to_sparse());
            Ok(())
        })
        .unwrap();
        assert_eq!(seen.to_dense(), all);
    }
}
