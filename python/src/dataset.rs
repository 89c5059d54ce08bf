//! Readers of data files.

use std::path::PathBuf;

use lssvm::data::{Column, Dataset, Parts, ReadOptions, Targets, Task, read};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{Number, is_double, to_array};
use crate::error::raise;
use crate::run::beside;

/// A column by name or number.
#[derive(FromPyObject)]
pub enum ColumnName {
    Index(i64),
    Name(String),
}

impl From<ColumnName> for Column {
    fn from(column: ColumnName) -> Self {
        match column {
            ColumnName::Index(index) => Column::Index(index),
            ColumnName::Name(name) => Column::Name(name),
        }
    }
}

/// Reads a file or a folder: a dictionary for each part.
#[pyfunction]
#[pyo3(signature = (path, *, task, precision, format=None, label=None, weights=None, max_rows=None))]
#[allow(clippy::too_many_arguments)]
pub fn load_dataset<'py>(
    py: Python<'py>,
    path: PathBuf,
    task: &str,
    precision: &str,
    format: Option<&str>,
    label: Option<Vec<ColumnName>>,
    weights: Option<ColumnName>,
    max_rows: Option<usize>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let task: Task = task.parse().map_err(raise)?;
    let options = ReadOptions {
        format: format.map(str::parse).transpose().map_err(raise)?,
        labels: label.map(|columns| columns.into_iter().map(Column::from).collect()),
        weights: weights.map(Column::from),
        max_rows,
        ..ReadOptions::default()
    };
    match is_double(precision)? {
        true => parts(
            py,
            beside(py, None, move |_| read::<f64>(&path, &options))?,
            task,
        ),
        false => parts(
            py,
            beside(py, None, move |_| read::<f32>(&path, &options))?,
            task,
        ),
    }
}

fn parts<T: Number>(
    py: Python<'_>,
    Parts { train, test }: Parts<T>,
    task: Task,
) -> PyResult<Vec<Bound<'_, PyDict>>> {
    std::iter::once(train)
        .chain(test)
        .map(|part| dictionary(py, part, task))
        .collect()
}

fn dictionary<T: Number>(
    py: Python<'_>,
    data: Dataset<T>,
    task: Task,
) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    let targets = data.labels.as_ref().map(|labels| labels.resolve(task));
    match targets.transpose().map_err(raise)? {
        None => {}
        Some(Targets::Classes { names, codes }) => {
            out.set_item("class_names", names)?;
            out.set_item("codes", PyArray1::from_vec(py, codes))?;
        }
        Some(Targets::Values(values)) => out.set_item("values", to_array(py, values)?)?,
    }
    let target_names = data.labels.as_ref().map(|labels| labels.column_names());
    out.set_item("target_columns", target_names.map(<[String]>::to_vec))?;
    out.set_item("feature_names", data.feature_names)?;
    let image = data.image.map(|i| (i.channels, i.height, i.width));
    out.set_item("image_shape", image)?;
    let weights = data.weights.map(|weights| PyArray1::from_vec(py, weights));
    out.set_item("weights", weights)?;
    if data.features.rows() == 0 {
        return Err(PyValueError::new_err("there are no rows"));
    }
    out.set_item("data", to_array(py, data.features)?)?;
    Ok(out)
}
