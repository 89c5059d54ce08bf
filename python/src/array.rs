//! NumPy arrays and the core's matrices.
//!
//! The core keeps its own rows, so that an array is copied once, whatever its type,
//! strides and order, straight into the number type of the computation.

use lssvm::linalg::{Matrix, Scalar};
use numpy::ndarray::ArrayView2;
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Rows that are copied together, column by column, from an array whose rows are not
/// in one piece.
const BLOCK_ROWS: usize = 16;

/// An array of one of the two types, in any order.
#[derive(FromPyObject)]
pub enum Rows<'py> {
    F32(PyReadonlyArray2<'py, f32>),
    F64(PyReadonlyArray2<'py, f64>),
}

impl Rows<'_> {
    /// A copy as rows of numbers of type `T`.
    pub fn to_matrix<T: Scalar>(&self) -> Matrix<T> {
        match self {
            Rows::F32(array) => copy(array.as_array()),
            Rows::F64(array) => copy(array.as_array()),
        }
    }
}

fn copy<A: Scalar, T: Scalar>(array: ArrayView2<'_, A>) -> Matrix<T> {
    let (rows, cols) = array.dim();
    let mut values = vec![T::ZERO; rows * cols];
    if cols == 0 {
        return Matrix::from_vec(rows, cols, values);
    }
    let convert = |v: A| T::from_f64(v.to_f64());
    for (b, out) in values.chunks_mut(BLOCK_ROWS * cols).enumerate() {
        let top = b * BLOCK_ROWS;
        let height = out.len() / cols;
        if array.row(top).as_slice().is_some() {
            for (i, out) in out.chunks_exact_mut(cols).enumerate() {
                let row = array.row(top + i);
                let pairs = out.iter_mut().zip(row.as_slice().unwrap_or_default());
                pairs.for_each(|(to, &from)| *to = convert(from));
            }
            continue;
        }
        for j in 0..cols {
            for i in 0..height {
                out[i * cols + j] = convert(array[[top + i, j]]);
            }
        }
    }
    Matrix::from_vec(rows, cols, values)
}

/// Number types that NumPy has too.
pub trait Number: Scalar + Element {}
impl Number for f32 {}
impl Number for f64 {}

/// A matrix as an array.
pub fn to_array<'py, T: Number>(
    py: Python<'py>,
    matrix: Matrix<T>,
) -> PyResult<Bound<'py, PyArray2<T>>> {
    let shape = [matrix.rows(), matrix.cols()];
    PyArray1::from_vec(py, matrix.into_values()).reshape(shape)
}

/// The number type that a name stands for.
pub fn is_double(precision: &str) -> PyResult<bool> {
    match precision {
        "f32" => Ok(false),
        "f64" => Ok(true),
        other => Err(PyTypeError::new_err(format!(
            "precision = {other}: must be 'f32' or 'f64'"
        ))),
    }
}
