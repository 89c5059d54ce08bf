//! Row-major matrices: one owned (or mapped from a file), and two views.

use std::sync::Arc;

use super::{Scalar, huge};

/// A row-major matrix that owns its values or shares them with a mapped file.
///
/// ```
/// use lssvm::linalg::Matrix;
/// let m = Matrix::from_rows(&[[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]);
/// assert_eq!((m.rows(), m.cols()), (3, 2));
/// assert_eq!(m.row(1), &[3.0, 4.0]);
/// ```
#[derive(Clone)]
pub struct Matrix<T> {
    rows: usize,
    cols: usize,
    values: Values<T>,
}

#[derive(Clone)]
enum Values<T> {
    Owned(Vec<T>),
    Shared(Arc<dyn AsRef<[T]> + Send + Sync>),
}

impl<T: Scalar> Matrix<T> {
    /// A matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self::from_vec(rows, cols, huge::zeros(rows * cols))
    }

    /// Takes `rows * cols` values, row after row.
    ///
    /// # Panics
    /// If `values` has another length.
    pub fn from_vec(rows: usize, cols: usize, values: Vec<T>) -> Self {
        assert_eq!(values.len(), rows * cols, "values for {rows} x {cols}");
        Self {
            rows,
            cols,
            values: Values::Owned(values),
        }
    }

    /// Shares `rows * cols` values that live elsewhere, such as in a mapped file.
    ///
    /// # Panics
    /// If `values` has another length.
    pub fn from_shared(
        rows: usize,
        cols: usize,
        values: Arc<dyn AsRef<[T]> + Send + Sync>,
    ) -> Self {
        assert_eq!(
            (*values).as_ref().len(),
            rows * cols,
            "values for {rows} x {cols}"
        );
        Self {
            rows,
            cols,
            values: Values::Shared(values),
        }
    }

    /// Copies rows that are written out; for examples and tests.
    pub fn from_rows<const C: usize>(rows: &[[T; C]]) -> Self {
        Self::from_vec(rows.len(), C, rows.concat())
    }

    /// Fills a matrix from its indices.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> T) -> Self {
        let mut values = huge::with_capacity(rows * cols);
        for i in 0..rows {
            values.extend((0..cols).map(|j| f(i, j)));
        }
        Self::from_vec(rows, cols, values)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All values, row after row.
    pub fn values(&self) -> &[T] {
        match &self.values {
            Values::Owned(v) => v,
            Values::Shared(v) => (**v).as_ref(),
        }
    }

    /// All values, row after row. Shared values are copied first.
    pub fn values_mut(&mut self) -> &mut [T] {
        if let Values::Shared(shared) = &self.values {
            self.values = Values::Owned((**shared).as_ref().to_vec());
        }
        match &mut self.values {
            Values::Owned(v) => v,
            Values::Shared(_) => unreachable!("made owned above"),
        }
    }

    /// The values, row after row, without a copy if they are owned.
    pub fn into_values(self) -> Vec<T> {
        match self.values {
            Values::Owned(v) => v,
            Values::Shared(v) => (*v).as_ref().to_vec(),
        }
    }

    /// One row.
    pub fn row(&self, i: usize) -> &[T] {
        &self.values()[i * self.cols..(i + 1) * self.cols]
    }

    /// One row.
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        let cols = self.cols;
        &mut self.values_mut()[i * cols..(i + 1) * cols]
    }

    /// One value.
    pub fn get(&self, i: usize, j: usize) -> T {
        debug_assert!(j < self.cols);
        self.values()[i * self.cols + j]
    }

    /// Sets one value.
    pub fn set(&mut self, i: usize, j: usize, value: T) {
        debug_assert!(j < self.cols);
        let cols = self.cols;
        self.values_mut()[i * cols + j] = value;
    }

    /// The rows with these indices, copied in this order.
    pub fn select_rows(&self, indices: &[usize]) -> Self {
        let mut values = huge::with_capacity(indices.len() * self.cols);
        for &i in indices {
            values.extend_from_slice(self.row(i));
        }
        Self::from_vec(indices.len(), self.cols, values)
    }

    /// The same rows in another order, in the same memory: row i is now what row `order[i]` was.
    ///
    /// # Panics
    /// If `order` does not name each row once.
    pub fn reordered(mut self, order: &[usize]) -> Self {
        let (n, cols) = (self.rows, self.cols);
        assert_eq!(order.len(), n, "an order of all rows");
        let place = |row: usize| row * cols..(row + 1) * cols;
        let values = self.values_mut();
        let (mut done, mut first) = (vec![false; n], Vec::with_capacity(cols));
        for start in 0..n {
            if done[start] {
                continue;
            }
            // Around a circle of rows, each of which goes where the one before it was.
            first.clear();
            first.extend_from_slice(&values[place(start)]);
            let mut row = start;
            while order[row] != start {
                done[row] = true;
                assert!(!done[order[row]], "row {} is named twice", order[row]);
                values.copy_within(place(order[row]), row * cols);
                row = order[row];
            }
            done[row] = true;
            values[place(row)].copy_from_slice(&first);
        }
        self
    }

    /// A view of all of it.
    pub fn view(&self) -> MatRef<'_, T> {
        MatRef::new(self.rows, self.cols, self.values())
    }

    /// A view of all of it that can be written.
    pub fn view_mut(&mut self) -> MatMut<'_, T> {
        let (rows, cols) = (self.rows, self.cols);
        MatMut::new(rows, cols, self.values_mut())
    }

    /// A view of rows `start..end`.
    pub fn row_range(&self, start: usize, end: usize) -> MatRef<'_, T> {
        MatRef::new(
            end - start,
            self.cols,
            &self.values()[start * self.cols..end * self.cols],
        )
    }

    /// The same numbers in another precision.
    pub fn cast<U: Scalar>(&self) -> Matrix<U> {
        let values = self.values().iter().map(|v| U::from_f64(v.to_f64()));
        Matrix::from_vec(self.rows, self.cols, values.collect())
    }

    /// √(Σ v²), summed in `f64`.
    pub fn frobenius_norm(&self) -> f64 {
        sum_of_squares(self.values()).sqrt()
    }
}

/// Σ v², summed in `f64`.
pub fn sum_of_squares<T: Scalar>(values: &[T]) -> f64 {
    // Short partial sums let the compiler use vector registers.
    let (chunks, rest) = values.as_chunks::<8>();
    let mut sums = [0f64; 8];
    for chunk in chunks {
        for (sum, v) in sums.iter_mut().zip(chunk) {
            *sum += v.to_f64() * v.to_f64();
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|v| v.to_f64() * v.to_f64()).sum::<f64>()
}

impl<T: Scalar> std::fmt::Debug for Matrix<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matrix({} x {})", self.rows, self.cols)?;
        if self.rows * self.cols <= 64 {
            let rows = (0..self.rows).map(|i| self.row(i));
            f.debug_list().entries(rows).finish()?;
        }
        Ok(())
    }
}

impl<T: Scalar> PartialEq for Matrix<T> {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows && self.cols == other.cols && self.values() == other.values()
    }
}

/// A view of a row-major matrix whose rows may lie apart in memory.
#[derive(Clone, Copy)]
pub struct MatRef<'a, T> {
    rows: usize,
    cols: usize,
    stride: usize,
    values: &'a [T],
}

impl<'a, T: Scalar> MatRef<'a, T> {
    /// `rows * cols` values, row after row.
    pub fn new(rows: usize, cols: usize, values: &'a [T]) -> Self {
        Self::strided(rows, cols, cols, values)
    }

    /// Row `i` starts at `values[i * stride]`.
    pub fn strided(rows: usize, cols: usize, stride: usize, values: &'a [T]) -> Self {
        assert!(cols <= stride || rows <= 1);
        assert!(rows == 0 || cols == 0 || values.len() >= (rows - 1) * stride + cols);
        Self {
            rows,
            cols,
            stride,
            values,
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Distance from the start of one row to the start of the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The values from the first of the first row on.
    pub fn values(&self) -> &'a [T] {
        self.values
    }

    /// One row.
    pub fn row(&self, i: usize) -> &'a [T] {
        &self.values[i * self.stride..i * self.stride + self.cols]
    }

    /// Rows `start..end`.
    pub fn row_range(&self, start: usize, end: usize) -> MatRef<'a, T> {
        assert!(start <= end && end <= self.rows);
        let values = if start == end {
            &self.values[..0]
        } else {
            &self.values[start * self.stride..]
        };
        MatRef::strided(end - start, self.cols, self.stride, values)
    }

    /// Columns `start..end`.
    pub fn col_range(&self, start: usize, end: usize) -> MatRef<'a, T> {
        assert!(start <= end && end <= self.cols);
        let values = if self.rows == 0 {
            self.values
        } else {
            &self.values[start..]
        };
        MatRef::strided(self.rows, end - start, self.stride, values)
    }
}

/// As [`MatRef`], and it can be written.
pub struct MatMut<'a, T> {
    rows: usize,
    cols: usize,
    stride: usize,
    values: &'a mut [T],
}

impl<'a, T: Scalar> MatMut<'a, T> {
    /// `rows * cols` values, row after row.
    pub fn new(rows: usize, cols: usize, values: &'a mut [T]) -> Self {
        Self::strided(rows, cols, cols, values)
    }

    /// Row `i` starts at `values[i * stride]`.
    pub fn strided(rows: usize, cols: usize, stride: usize, values: &'a mut [T]) -> Self {
        assert!(cols <= stride || rows <= 1);
        assert!(rows == 0 || cols == 0 || values.len() >= (rows - 1) * stride + cols);
        Self {
            rows,
            cols,
            stride,
            values,
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Distance from the start of one row to the start of the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The values from the first of the first row on.
    pub fn values_mut(&mut self) -> &mut [T] {
        self.values
    }

    /// One row.
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        &mut self.values[i * self.stride..i * self.stride + self.cols]
    }

    /// The same view for a shorter time.
    pub fn reborrow(&mut self) -> MatMut<'_, T> {
        MatMut::strided(self.rows, self.cols, self.stride, self.values)
    }

    /// A view that can only be read.
    pub fn as_ref(&self) -> MatRef<'_, T> {
        MatRef::strided(self.rows, self.cols, self.stride, self.values)
    }

    /// Rows `start..end`.
    pub fn row_range(self, start: usize, end: usize) -> MatMut<'a, T> {
        assert!(start <= end && end <= self.rows);
        // The last row may end before the stride does.
        let values = self.values.get_mut(start * self.stride..);
        MatMut::strided(
            end - start,
            self.cols,
            self.stride,
            values.unwrap_or_default(),
        )
    }

    /// Columns `start..end`.
    pub fn col_range(self, start: usize, end: usize) -> MatMut<'a, T> {
        assert!(start <= end && end <= self.cols);
        let values = if self.rows == 0 {
            self.values
        } else {
            &mut self.values[start..]
        };
        MatMut::strided(self.rows, end - start, self.stride, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    #[test]
    fn rows_in_another_order_are_those_that_were_selected() {
        for (n, cols) in [(0, 3), (1, 2), (7, 1), (50, 4), (3, 0)] {
            let all = Matrix::from_fn(n, cols, |i, j| (i * 10 + j) as f64);
            for seed in 0..20 {
                let mut order: Vec<usize> = (0..n).collect();
                random::shuffle(&mut random::rng(seed), &mut order);
                let selected = all.select_rows(&order);
                assert_eq!(all.clone().reordered(&order), selected, "{order:?}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "named twice")]
    fn an_order_names_each_row_once() {
        let _ = Matrix::<f64>::zeros(3, 1).reordered(&[1, 2, 1]);
    }
}
