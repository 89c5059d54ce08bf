//! Rows that are dense or sparse, whichever suits them.

use std::borrow::Cow;
use std::ops::Range;

use super::{Csr, CsrRef, MatRef, Matrix, Scalar};

/// Rows of a dense or of a sparse matrix.
#[derive(Debug, Clone)]
pub enum Points<T: Scalar> {
    /// All values.
    Dense(Matrix<T>),
    /// Those that are not zero.
    Sparse(Csr<T>),
}

impl<T: Scalar> From<Matrix<T>> for Points<T> {
    fn from(rows: Matrix<T>) -> Self {
        Points::Dense(rows)
    }
}

impl<T: Scalar> From<Csr<T>> for Points<T> {
    fn from(rows: Csr<T>) -> Self {
        Points::Sparse(rows)
    }
}

impl<T: Scalar> Points<T> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Points::Dense(rows) => rows.rows(),
            Points::Sparse(rows) => rows.rows(),
        }
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        match self {
            Points::Dense(rows) => rows.cols(),
            Points::Sparse(rows) => rows.cols(),
        }
    }

    /// Whether only values other than zero are kept.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Points::Sparse(_))
    }

    /// The values that are kept.
    pub fn values(&self) -> &[T] {
        match self {
            Points::Dense(rows) => rows.values(),
            Points::Sparse(rows) => rows.values(),
        }
    }

    /// Row and column of a value of [`Points::values`].
    pub fn place(&self, value: usize) -> (usize, usize) {
        match self {
            Points::Dense(rows) => (value / rows.cols(), value % rows.cols()),
            Points::Sparse(rows) => {
                let row = rows.offsets().partition_point(|&end| end <= value) - 1;
                (row, rows.columns()[value] as usize)
            }
        }
    }

    /// Values that are kept of a row, on average: what a product with it costs.
    pub fn width(&self) -> usize {
        match self {
            Points::Dense(rows) => rows.cols(),
            Points::Sparse(rows) => rows.values().len().div_ceil(rows.rows().max(1)),
        }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        match self {
            Points::Dense(rows) => size_of_val(rows.values()) as u64,
            Points::Sparse(rows) => Csr::<T>::bytes(rows.rows(), rows.values().len()),
        }
    }

    /// One row, with its zeros.
    pub fn row(&self, i: usize) -> Cow<'_, [T]> {
        match self {
            Points::Dense(rows) => rows.row(i).into(),
            Points::Sparse(rows) => {
                let mut row = vec![T::ZERO; rows.cols()];
                rows.write_row(i, &mut row);
                row.into()
            }
        }
    }

    /// The rows with these indices, copied in this order.
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        match self {
            Points::Dense(all) => all.select_rows(rows).into(),
            Points::Sparse(all) => all.select_rows(rows).into(),
        }
    }

    /// The same rows in another order: dense ones in the same memory.
    pub fn reordered(self, order: &[usize]) -> Self {
        match self {
            Points::Dense(all) => all.reordered(order).into(),
            Points::Sparse(all) => all.select_rows(order).into(),
        }
    }

    /// Rows `rows`, copied.
    pub fn slice(&self, rows: Range<usize>) -> Self {
        match self {
            Points::Dense(all) => {
                let (cols, count) = (all.cols(), rows.len());
                let values = &all.values()[rows.start * cols..rows.end * cols];
                Matrix::from_vec(count, cols, values.to_vec()).into()
            }
            Points::Sparse(all) => all.slice(rows).into(),
        }
    }

    /// All values, zeros too.
    pub fn into_dense(self) -> Matrix<T> {
        match self {
            Points::Dense(rows) => rows,
            Points::Sparse(rows) => rows.to_dense(),
        }
    }

    /// Dense or sparse as others are, so that the two go together without detours.
    pub fn like(self, other: &Points<T>) -> Self {
        match (self, other) {
            (Points::Dense(rows), Points::Sparse(_)) => Csr::from_dense(&rows).into(),
            (rows, Points::Dense(_)) => rows.into_dense().into(),
            (rows, _) => rows,
        }
    }

    /// The same numbers in another type.
    pub fn cast<U: Scalar>(&self) -> Points<U> {
        match self {
            Points::Dense(rows) => rows.cast().into(),
            Points::Sparse(rows) => rows.cast().into(),
        }
    }

    /// A view of rows `start..end`.
    pub fn range(&self, start: usize, end: usize) -> PointsRef<'_, T> {
        match self {
            Points::Dense(rows) => PointsRef::Dense(rows.row_range(start, end)),
            Points::Sparse(rows) => PointsRef::Sparse(rows.range(start, end)),
        }
    }
}

/// A view of some rows of [`Points`].
#[derive(Clone, Copy)]
pub enum PointsRef<'a, T> {
    /// All values.
    Dense(MatRef<'a, T>),
    /// Those that are not zero.
    Sparse(CsrRef<'a, T>),
}

impl<T: Scalar> PointsRef<'_, T> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            PointsRef::Dense(rows) => rows.rows(),
            PointsRef::Sparse(rows) => rows.rows(),
        }
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        match self {
            PointsRef::Dense(rows) => rows.cols(),
            PointsRef::Sparse(rows) => rows.cols(),
        }
    }

    /// Rows `start..end`.
    pub fn range(&self, start: usize, end: usize) -> Self {
        match self {
            PointsRef::Dense(rows) => PointsRef::Dense(rows.row_range(start, end)),
            PointsRef::Sparse(rows) => PointsRef::Sparse(rows.range(start, end)),
        }
    }

    /// Only the values other than zero, copied.
    pub fn to_sparse(self) -> Csr<T> {
        let mut out = Csr::new(self.cols());
        match self {
            PointsRef::Dense(rows) => (0..rows.rows()).for_each(|i| out.push_dense(rows.row(i))),
            PointsRef::Sparse(rows) => (0..rows.rows()).for_each(|i| {
                let (columns, values) = rows.row(i);
                out.push(columns.iter().copied().zip(values.iter().copied()));
            }),
        }
        out
    }
}
