//! Sparse rows: of each only the values other than zero, and their columns.

use std::ops::Range;

use super::{Matrix, Scalar};

/// Compressed sparse rows.
///
/// ```
/// use lssvm::linalg::{Csr, Matrix};
/// let dense = Matrix::from_rows(&[[0.0f32, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]]);
/// let sparse = Csr::from_dense(&dense);
/// assert_eq!((sparse.rows(), sparse.cols(), sparse.values().len()), (3, 3, 3));
/// assert_eq!(sparse.row(2), (&[0u32, 2][..], &[1.0, 3.0][..]));
/// assert_eq!(sparse.to_dense(), dense);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Csr<T> {
    cols: usize,
    /// Where each row begins in the other two, and where the last ends.
    offsets: Vec<usize>,
    /// Increasing within a row.
    columns: Vec<u32>,
    values: Vec<T>,
}

/// The most columns that sparse rows can have.
pub const MOST_COLUMNS: usize = u32::MAX as usize;

impl<T: Scalar> Csr<T> {
    /// No rows yet.
    ///
    /// # Panics
    /// If there are more than [`MOST_COLUMNS`].
    pub fn new(cols: usize) -> Self {
        assert!(cols <= MOST_COLUMNS, "{cols} columns");
        Self {
            cols,
            offsets: vec![0],
            columns: Vec::new(),
            values: Vec::new(),
        }
    }

    /// The same with room for so many values of so many rows.
    pub fn with_capacity(rows: usize, cols: usize, values: usize) -> Self {
        let mut out = Self::new(cols);
        out.offsets.reserve_exact(rows);
        out.columns.reserve_exact(values);
        out.values.reserve_exact(values);
        out
    }

    /// Rows whose parts come from elsewhere; none if they do not fit together: offsets that
    /// begin at 0, never fall and end at the number of values; columns that increase within
    /// each row and are less than `cols`.
    pub fn from_parts(
        cols: usize,
        offsets: Vec<usize>,
        columns: Vec<u32>,
        values: Vec<T>,
    ) -> Option<Self> {
        let ends = cols <= MOST_COLUMNS
            && offsets.first() == Some(&0)
            && offsets.last() == Some(&values.len())
            && columns.len() == values.len();
        let in_order = |row: &[usize]| {
            let row = columns.get(row[0]..row[1]);
            row.is_some_and(|row| {
                row.is_sorted_by(|a, b| a < b) && row.last().is_none_or(|&c| (c as usize) < cols)
            })
        };
        (ends && offsets.windows(2).all(in_order)).then_some(Self {
            cols,
            offsets,
            columns,
            values,
        })
    }

    /// The values of a matrix that are not zero.
    ///
    /// # Panics
    /// As [`Csr::new`].
    pub fn from_dense(dense: &Matrix<T>) -> Self {
        let mut out = Self::new(dense.cols());
        for i in 0..dense.rows() {
            out.push_dense(dense.row(i));
        }
        out
    }

    /// Adds a row: its values with their columns, which must increase. Zeros are left out.
    ///
    /// # Panics
    /// If a column is too large, or not larger than the one before.
    pub fn push(&mut self, row: impl IntoIterator<Item = (u32, T)>) {
        let mut least = 0;
        for (column, value) in row {
            let place = column as usize;
            assert!((least..self.cols).contains(&place), "column {column}");
            least = place + 1;
            if value != T::ZERO {
                self.columns.push(column);
                self.values.push(value);
            }
        }
        self.offsets.push(self.values.len());
    }

    /// Adds a row that is written out.
    pub fn push_dense(&mut self, row: &[T]) {
        assert_eq!(row.len(), self.cols, "values of a row");
        let places = row.iter().enumerate();
        self.push(places.map(|(column, &value)| (column as u32, value)));
    }

    /// Adds all rows of another.
    ///
    /// # Panics
    /// If it has other columns.
    pub fn append(&mut self, other: &Csr<T>) {
        assert_eq!(self.cols, other.cols, "columns");
        let before = self.values.len();
        self.columns.extend_from_slice(&other.columns);
        self.values.extend_from_slice(&other.values);
        let ends = other.offsets[1..].iter();
        self.offsets.extend(ends.map(|end| before + end));
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Where each row begins, and where the last ends.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The columns of all values.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// All values, row after row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// One row: columns and values.
    pub fn row(&self, i: usize) -> (&[u32], &[T]) {
        let place = self.offsets[i]..self.offsets[i + 1];
        (&self.columns[place.clone()], &self.values[place])
    }

    /// Changes the values of each row, given its columns.
    pub fn change(&mut self, mut f: impl FnMut(&[u32], &mut [T])) {
        for ends in self.offsets.windows(2) {
            let place = ends[0]..ends[1];
            f(&self.columns[place.clone()], &mut self.values[place]);
        }
    }

    /// Bytes of so many rows with so many values.
    pub fn bytes(rows: usize, values: usize) -> u64 {
        let row = size_of::<usize>() as u64;
        let value = (size_of::<u32>() + size_of::<T>()) as u64;
        row * (rows as u64 + 1) + value * values as u64
    }

    /// The rows with these indices, copied in this order.
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        let length = |&i: &usize| self.offsets[i + 1] - self.offsets[i];
        let values = rows.iter().map(length).sum();
        let mut out = Self::with_capacity(rows.len(), self.cols, values);
        for &i in rows {
            let (columns, values) = self.row(i);
            out.columns.extend_from_slice(columns);
            out.values.extend_from_slice(values);
            out.offsets.push(out.values.len());
        }
        out
    }

    /// Rows `rows`, copied.
    pub fn slice(&self, rows: Range<usize>) -> Self {
        let place = self.offsets[rows.start]..self.offsets[rows.end];
        let offsets = self.offsets[rows.start..=rows.end].iter();
        Self {
            cols: self.cols,
            offsets: offsets.map(|end| end - place.start).collect(),
            columns: self.columns[place.clone()].to_vec(),
            values: self.values[place].to_vec(),
        }
    }

    /// Writes a row out.
    pub fn write_row(&self, i: usize, out: &mut [T]) {
        out.fill(T::ZERO);
        let (columns, values) = self.row(i);
        for (&column, &value) in columns.iter().zip(values) {
            out[column as usize] = value;
        }
    }

    /// All rows written out.
    pub fn to_dense(&self) -> Matrix<T> {
        let mut out = Matrix::zeros(self.rows(), self.cols);
        for i in 0..self.rows() {
            self.write_row(i, out.row_mut(i));
        }
        out
    }

    /// The same numbers in another type.
    pub fn cast<U: Scalar>(&self) -> Csr<U> {
        let values = self.values.iter().map(|v| U::from_f64(v.to_f64()));
        Csr {
            cols: self.cols,
            offsets: self.offsets.clone(),
            columns: self.columns.clone(),
            values: values.collect(),
        }
    }

    /// A view of rows `start..end`.
    pub fn range(&self, start: usize, end: usize) -> CsrRef<'_, T> {
        CsrRef {
            cols: self.cols,
            offsets: &self.offsets[start..=end],
            columns: &self.columns,
            values: &self.values,
        }
    }
}

/// A view of some rows of a [`Csr`].
#[derive(Clone, Copy)]
pub struct CsrRef<'a, T> {
    cols: usize,
    /// Of these rows, counted from the first value of all.
    offsets: &'a [usize],
    columns: &'a [u32],
    values: &'a [T],
}

impl<'a, T: Scalar> CsrRef<'a, T> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// One row: columns and values.
    pub fn row(&self, i: usize) -> (&'a [u32], &'a [T]) {
        let place = self.offsets[i]..self.offsets[i + 1];
        (&self.columns[place.clone()], &self.values[place])
    }

    /// Rows `start..end`.
    pub fn range(&self, start: usize, end: usize) -> Self {
        Self {
            offsets: &self.offsets[start..=end],
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_dense_matrix() {
        let dense = Matrix::from_fn(9, 5, |i, j| match (i * 7 + j * 3) % 4 {
            0 => (i + 10 * j) as f64 - 12.0,
            _ => 0.0,
        });
        let sparse = Csr::from_dense(&dense);
        assert_eq!(sparse.to_dense(), dense);
        let rows = [8, 1, 1, 4];
        assert_eq!(
            sparse.select_rows(&rows).to_dense(),
            dense.select_rows(&rows)
        );
        let some: Vec<usize> = (3..7).collect();
        assert_eq!(sparse.slice(3..7), sparse.select_rows(&some));
        let mut twice = sparse.slice(0..3);
        twice.append(&sparse.slice(3..9));
        assert_eq!(twice, sparse);
        let view = sparse.range(2, 9).range(1, 3);
        assert_eq!(view.rows(), 2);
        assert_eq!(view.row(1), sparse.row(4));
        assert_eq!(sparse.cast::<f32>().to_dense(), dense.cast::<f32>());
    }

    #[test]
    fn parts_that_do_not_fit_together_are_refused() {
        let rows = |offsets: &[usize], columns: &[u32]| {
            let values = vec![1.0f32; 3];
            Csr::from_parts(4, offsets.to_vec(), columns.to_vec(), values).is_some()
        };
        assert!(rows(&[0, 2, 2, 3], &[1, 3, 0]));
        for (offsets, columns) in [
            (&[0, 2, 2][..], &[1, 3, 0][..]),
            (&[1, 2, 3], &[1, 3, 0]),
            (&[0, 3, 2, 3], &[0, 1, 2]),
            (&[0, 9, 3], &[0, 1, 2]),
            (&[], &[0, 1, 2]),
            (&[0, 3], &[1, 3, 0]),
            (&[0, 3], &[0, 1, 1]),
            (&[0, 3], &[0, 1, 4]),
            (&[0, 3], &[0, 1]),
        ] {
            assert!(!rows(offsets, columns), "{offsets:?} {columns:?}");
        }
    }
}
