//! NumPy arrays and the core's matrices.
//!
//! The core keeps its own rows, so that an array is copied once, whatever its type,
//! strides and order, straight into the number type of the computation. Rows to learn
//! from and to predict are copied when they are needed ([`Rows::kept`]): what reads them
//! batch by batch leaves an array that is mapped from a file in its file. Sparse rows are
//! copied as they are.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, RwLock};

use lssvm::error::Place;
use lssvm::linalg::{Csr, Matrix, Scalar};
use numpy::ndarray::{ArrayView1, ArrayView2};
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Rows that are copied together, column by column, from an array whose rows are not
/// in one piece.
const BLOCK_ROWS: usize = 16;

/// Where each sparse row begins and the last ends, and the columns of all values.
type Offsets<'py> = PyReadonlyArray1<'py, u64>;
type Columns<'py> = PyReadonlyArray1<'py, u32>;

/// Rows that may be sparse: then offsets, columns, values, and the number of columns.
#[derive(FromPyObject)]
pub enum AnyRows<'py> {
    Dense(Rows<'py>),
    F32(
        Offsets<'py>,
        Columns<'py>,
        PyReadonlyArray1<'py, f32>,
        usize,
    ),
    F64(
        Offsets<'py>,
        Columns<'py>,
        PyReadonlyArray1<'py, f64>,
        usize,
    ),
}

impl AnyRows<'_> {
    /// As the core reads them.
    pub fn kept<T: Scalar>(&self) -> PyResult<Arc<dyn lssvm::data::Rows<T>>> {
        match self {
            AnyRows::Dense(rows) => Ok(Arc::new(rows.kept())),
            AnyRows::F32(offsets, columns, values, width) => {
                sparse(offsets, columns, values, *width)
            }
            AnyRows::F64(offsets, columns, values, width) => {
                sparse(offsets, columns, values, *width)
            }
        }
    }
}

fn sparse<A: Scalar + Element, T: Scalar>(
    offsets: &Offsets<'_>,
    columns: &Columns<'_>,
    values: &PyReadonlyArray1<'_, A>,
    width: usize,
) -> PyResult<Arc<dyn lssvm::data::Rows<T>>> {
    let offsets = offsets.as_array().iter().map(|&end| end as usize).collect();
    let values: Vec<T> = values.as_array().iter().map(|&v| convert(v)).collect();
    if let Some(at) = values.iter().position(|v| !v.is_finite()) {
        return Err(PyValueError::new_err(format!(
            "value {} of X is not finite as {}: scale the features, or use precision='f64'",
            at + 1,
            T::PRECISION
        )));
    }
    let rows = Csr::from_parts(width, offsets, columns.as_array().to_vec(), values);
    let rows = rows.ok_or_else(|| PyValueError::new_err("the sparse rows do not fit together"))?;
    Ok(Arc::new(rows))
}

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

    /// The array itself, for as long as it takes.
    pub fn kept(&self) -> ArrayRows {
        let (array, (rows, cols)) = match self {
            Rows::F32(array) => (
                Kept::F32((**array).clone().unbind()),
                array.as_array().dim(),
            ),
            Rows::F64(array) => (
                Kept::F64((**array).clone().unbind()),
                array.as_array().dim(),
            ),
        };
        ArrayRows { array, rows, cols }
    }
}

fn convert<A: Scalar, T: Scalar>(value: A) -> T {
    T::from_f64(value.to_f64())
}

fn copy<A: Scalar, T: Scalar>(array: ArrayView2<'_, A>) -> Matrix<T> {
    let (rows, cols) = array.dim();
    let mut values = vec![T::ZERO; rows * cols];
    copy_rows(array, 0, &mut values);
    Matrix::from_vec(rows, cols, values)
}

/// Fills `out` with the rows from `first` on.
fn copy_rows<A: Scalar, T: Scalar>(array: ArrayView2<'_, A>, first: usize, out: &mut [T]) {
    let cols = array.ncols().max(1);
    for (b, out) in out.chunks_mut(BLOCK_ROWS * cols).enumerate() {
        let top = first + b * BLOCK_ROWS;
        let height = out.len() / cols;
        if array.row(top).as_slice().is_some() {
            for (i, out) in out.chunks_exact_mut(cols).enumerate() {
                copy_row(array.row(top + i), out);
            }
            continue;
        }
        for j in 0..cols {
            for i in 0..height {
                out[i * cols + j] = convert(array[[top + i, j]]);
            }
        }
    }
}

fn copy_row<A: Scalar, T: Scalar>(row: ArrayView1<'_, A>, out: &mut [T]) {
    let pairs = out.iter_mut().zip(row);
    pairs.for_each(|(to, &from)| *to = convert(from));
}

/// Values that are copied while the interpreter is held: some milliseconds.
const BATCH_VALUES: usize = 1 << 20;

/// Rows of an array that stays where it is. They are copied on the core's threads, which
/// hold the interpreter for one batch at a time.
pub struct ArrayRows {
    array: Kept,
    rows: usize,
    cols: usize,
}

enum Kept {
    F32(Py<PyArray2<f32>>),
    F64(Py<PyArray2<f64>>),
}

/// Whether threads of the core may still ask for the interpreter. One that asks while it
/// ends would be killed in the middle of its work, and take the process with it.
static OPEN: RwLock<bool> = RwLock::new(true);

/// Said when the interpreter is about to end.
#[pyfunction]
pub fn close(py: Python<'_>) {
    // Without the interpreter, which a batch that is being copied may be waiting for.
    py.detach(|| {
        if let Ok(mut open) = OPEN.write() {
            *open = false;
        }
    });
}

impl ArrayRows {
    /// Copies a batch: the rows from the first on, or those with these indices.
    fn copy<T: Scalar>(&self, which: Which<'_>, out: &mut [T]) -> lssvm::Result<()> {
        let gone = || lssvm::Error::Interrupted;
        let open = OPEN.read().map_err(|_| gone())?;
        let attached = open.then(|| {
            Python::try_attach(|py| match &self.array {
                Kept::F32(array) => which.copy(array.bind(py), out),
                Kept::F64(array) => which.copy(array.bind(py), out),
            })
        });
        attached.flatten().ok_or_else(gone)??;
        let wrong = out.iter().position(|value| !value.is_finite());
        match wrong {
            None => Ok(()),
            Some(at) => Err(lssvm::Error::file(
                Path::new("X"),
                Place::Row((which.row(at / self.cols.max(1)) + 1) as u64),
                format!(
                    "feature {} is not finite as {}: scale the features, or use precision='f64'",
                    at % self.cols.max(1) + 1,
                    T::PRECISION
                ),
            )),
        }
    }

    /// Rows of a batch.
    fn batch(&self) -> usize {
        (BATCH_VALUES / self.cols.max(1)).max(1)
    }
}

/// Rows of a batch.
#[derive(Clone, Copy)]
enum Which<'a> {
    From(usize),
    These(&'a [usize]),
}

impl Which<'_> {
    fn row(&self, at: usize) -> usize {
        match self {
            Which::From(first) => first + at,
            Which::These(rows) => rows[at],
        }
    }

    fn copy<A: Scalar + Element, T: Scalar>(
        &self,
        array: &Bound<'_, PyArray2<A>>,
        out: &mut [T],
    ) -> lssvm::Result<()> {
        let taken = |e: numpy::BorrowError| lssvm::Error::Data(format!("X cannot be read: {e}"));
        let array = array.try_readonly().map_err(taken)?;
        let array = array.as_array();
        match self {
            Which::From(first) => copy_rows(array, *first, out),
            Which::These(rows) => {
                let cols = array.ncols().max(1);
                for (out, &row) in out.chunks_exact_mut(cols).zip(*rows) {
                    copy_row(array.row(row), out);
                }
            }
        }
        Ok(())
    }
}

impl<T: Scalar> lssvm::data::Rows<T> for ArrayRows {
    fn len(&self) -> usize {
        self.rows
    }

    fn n_features(&self) -> usize {
        self.cols
    }

    fn read(&self, rows: Range<usize>, out: &mut [T]) -> lssvm::Result<()> {
        let step = self.batch();
        let batches = out.chunks_mut(step * self.cols.max(1));
        for (first, out) in rows.step_by(step).zip(batches) {
            self.copy(Which::From(first), out)?;
        }
        Ok(())
    }

    fn pick(&self, rows: &[usize], out: &mut [T]) -> lssvm::Result<()> {
        let step = self.batch();
        let batches = out.chunks_mut(step * self.cols.max(1));
        for (rows, out) in rows.chunks(step).zip(batches) {
            self.copy(Which::These(rows), out)?;
        }
        Ok(())
    }
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
