//! Training.

use std::collections::BTreeMap;

use lssvm::data::{Dataset, Labels};
use lssvm::linalg::{Matrix, Precision};
use lssvm::model::{AnyModel, Model};
use lssvm::train::{self, Config, Data, Report};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::{Number, Rows, to_array};
use crate::error::raise;
use crate::model::PyModel;
use crate::report::PyReport;
use crate::run::{Caller, beside};

/// What is to be learnt: classes as (names, codes), or values.
#[derive(FromPyObject)]
pub enum Target<'py> {
    Classes(Vec<String>, PyReadonlyArray1<'py, u32>),
    Values(PyReadonlyArray2<'py, f64>),
}

impl Target<'_> {
    pub fn labels(&self) -> PyResult<Labels> {
        let labels = match self {
            Target::Classes(names, codes) => {
                Labels::from_classes(names.clone(), codes.as_array().to_vec())
            }
            Target::Values(values) => {
                let values = values.as_array();
                let (rows, cols) = values.dim();
                let values = values.iter().copied().collect();
                Labels::from_values(Matrix::from_vec(rows, cols, values))
            }
        };
        labels.map_err(raise)
    }
}

pub fn config(json: &str) -> PyResult<Config> {
    serde_json::from_str(json).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// What came with the rows.
struct Beside {
    labels: Labels,
    weights: Option<Vec<f64>>,
    feature_names: Option<Vec<String>>,
}

fn dataset<T: Number>(x: &Rows<'_>, beside: Beside) -> Dataset<T> {
    let mut data = Dataset::new("X".as_ref(), x.to_matrix::<T>());
    data.labels = Some(beside.labels);
    data.weights = beside.weights;
    data.feature_names = beside.feature_names;
    data
}

/// Trains on the rows of `x`; returns the model and what the run ended with.
#[pyfunction]
#[pyo3(signature = (x, target, config, *, weights=None, feature_names=None, validation=None, notes=None, progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn fit(
    py: Python<'_>,
    x: Rows<'_>,
    target: Target<'_>,
    config: &str,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    feature_names: Option<Vec<String>>,
    validation: Option<(Rows<'_>, Target<'_>)>,
    notes: Option<BTreeMap<String, String>>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(PyModel, PyReport)> {
    let config = self::config(config)?;
    let train = Beside {
        labels: target.labels()?,
        weights: weights.map(|w| w.as_array().to_vec()),
        feature_names: feature_names.clone(),
    };
    let validation = match validation {
        Some((x, target)) => {
            let labels = target.labels()?;
            Some((x, labels))
        }
        None => None,
    };
    let (progress, notes) = (progress.as_ref(), notes.unwrap_or_default());
    match config.precision.unwrap_or_default() {
        Precision::F32 => {
            let data = data::<f32>(&x, train, validation);
            let (mut model, report) = trained(py, data, config, progress)?;
            notes
                .iter()
                .for_each(|(key, text)| model.set_note(key, text));
            Ok((PyModel::new(AnyModel::F32(model)), report))
        }
        Precision::F64 => {
            let data = data::<f64>(&x, train, validation);
            let (mut model, report) = trained(py, data, config, progress)?;
            notes
                .iter()
                .for_each(|(key, text)| model.set_note(key, text));
            Ok((PyModel::new(AnyModel::F64(model)), report))
        }
    }
}

fn data<T: Number>(x: &Rows<'_>, train: Beside, validation: Option<(Rows<'_>, Labels)>) -> Data<T> {
    let validation = validation.map(|(x, labels)| {
        let beside = Beside {
            labels,
            weights: None,
            feature_names: train.feature_names.clone(),
        };
        dataset(&x, beside)
    });
    Data {
        train: dataset(x, train),
        validation,
        test: None,
    }
}

fn trained<T: Number>(
    py: Python<'_>,
    data: Data<T>,
    config: Config,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Model<T>, PyReport)> {
    let work = move |caller: &mut Caller| train::fit(data, &config, caller);
    let (model, report) = beside(py, progress, work)?;
    Ok((model, PyReport::new(report)))
}

/// Solves for a kernel matrix; returns weights (rows × outputs), bias and report.
#[pyfunction]
#[pyo3(signature = (omega, target, config, *, weights=None, progress=None))]
pub fn fit_kernel_matrix<'py>(
    py: Python<'py>,
    omega: Rows<'py>,
    target: Target<'py>,
    config: &str,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, PyReport)> {
    let config = self::config(config)?;
    let labels = target.labels()?;
    let weights = weights.map(|w| w.as_array().to_vec());
    let progress = progress.as_ref();
    match config.precision.unwrap_or_default() {
        Precision::F32 => solved::<f32>(py, omega.to_matrix(), labels, weights, config, progress),
        Precision::F64 => solved::<f64>(py, omega.to_matrix(), labels, weights, config, progress),
    }
}

fn solved<'py, T: Number>(
    py: Python<'py>,
    omega: Matrix<T>,
    labels: Labels,
    weights: Option<Vec<f64>>,
    config: Config,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, PyReport)> {
    let work = move |caller: &mut Caller| {
        train::fit_kernel_matrix(&omega, labels, weights, &config, caller)
    };
    let (solution, report): (_, Report) = beside(py, progress, work)?;
    Ok((
        to_array(py, solution.rows)?.into_any(),
        PyArray1::from_vec(py, solution.bias).into_any(),
        PyReport::new(report),
    ))
}
