//! Training.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::Arc;

use lssvm::data::{Labels, Picked, Stream};
use lssvm::linalg::{Matrix, Precision};
use lssvm::model::{AnyModel, Model};
use lssvm::train::{self, Checkpoint, Checkpoints, Config, Report, StreamData, Trainer};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::array::{AnyRows, Number, Rows, to_array};
use crate::checkpoint::{GIVEN, is_kept, kept, resumed};
use crate::error::raise;
use crate::model::{Of, PyModel};
use crate::report::PyReport;
use crate::run::{Caller, beside, beside_in, wait_for_stopped};

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
    serde_json::from_str(json).map_err(|e| PyValueError::new_err(without_place(&e)))
}

/// What is wrong, without where that is in a text that the user never saw.
fn without_place(e: &serde_json::Error) -> String {
    let said = e.to_string();
    let place = format!(" at line {} column {}", e.line(), e.column());
    said.strip_suffix(&place).unwrap_or(&said).to_owned()
}

/// Where a run is kept, and how often, in seconds.
type Keep = (PathBuf, f64);

/// Trains on rows of `x`, on those with these indices if not on all; returns the model and
/// what the run ended with. `target` and `weights` are those of these rows; `validation`:
/// other rows of `x`, and their targets. With a folder to keep the run in, one that is
/// there goes on if it is this one. `start`: the model to begin at.
#[pyfunction]
#[pyo3(signature = (x, target, config, *, rows=None, weights=None, feature_names=None, validation=None, notes=None, keep=None, start=None, progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn fit(
    py: Python<'_>,
    x: AnyRows<'_>,
    target: Target<'_>,
    config: &str,
    rows: Option<PyReadonlyArray1<'_, u64>>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    feature_names: Option<Vec<String>>,
    validation: Option<(PyReadonlyArray1<'_, u64>, Target<'_>)>,
    notes: Option<BTreeMap<String, String>>,
    keep: Option<Keep>,
    start: Option<PyRef<'_, PyModel>>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(PyModel, PyReport)> {
    let settings = Settings {
        config: self::config(config)?,
        given: serde_json::from_str(config).unwrap_or_default(),
        notes: notes.unwrap_or_default(),
        keep: keep.map(kept).transpose()?,
        start: start.map(|start| start.inner()),
    };
    let validation = match validation {
        Some((rows, target)) => Some((places(&rows), target.labels()?)),
        None => None,
    };
    let given = Given {
        x,
        rows: rows.as_ref().map(places),
        labels: target.labels()?,
        weights: weights.map(|w| w.as_array().to_vec()),
        feature_names,
        validation,
    };
    if let Some(keep) = &settings.keep {
        // A run in this folder that was interrupted may not have left it yet.
        wait_for_stopped(py, &keep.folder)?;
    }
    let progress = progress.as_ref();
    match settings.config.precision.unwrap_or_default() {
        Precision::F32 => trained::<f32>(py, given, settings, progress),
        Precision::F64 => trained::<f64>(py, given, settings, progress),
    }
}

fn places(rows: &PyReadonlyArray1<'_, u64>) -> Vec<usize> {
    rows.as_array().iter().map(|&row| row as usize).collect()
}

/// What a run learns from.
struct Given<'py> {
    x: AnyRows<'py>,
    rows: Option<Vec<usize>>,
    labels: Labels,
    weights: Option<Vec<f64>>,
    feature_names: Option<Vec<String>>,
    validation: Option<(Vec<usize>, Labels)>,
}

impl Given<'_> {
    fn data<T: Number>(self) -> PyResult<StreamData<T>> {
        let all = self.x.kept::<T>()?;
        let part = |rows: Option<Vec<usize>>, labels: Labels, weights: Option<Vec<f64>>| {
            let features = match rows {
                Some(rows) if rows.iter().any(|&row| row >= all.len()) => {
                    return Err(PyValueError::new_err("there is no such row"));
                }
                Some(rows) => Arc::new(Picked::new(Arc::clone(&all), rows)),
                None => Arc::clone(&all),
            };
            if labels.len() != features.len() {
                return Err(PyValueError::new_err("as many labels as rows are needed"));
            }
            let mut part = Stream::new("X".as_ref(), features);
            part.labels = Some(labels);
            part.weights = weights;
            part.feature_names.clone_from(&self.feature_names);
            Ok(part)
        };
        let validation = self.validation;
        let validation = validation.map(|(rows, labels)| part(Some(rows), labels, None));
        Ok(StreamData {
            train: part(self.rows, self.labels, self.weights)?,
            validation: validation.transpose()?,
            test: None,
        })
    }
}

/// How it does so.
struct Settings {
    config: Config,
    /// The same as it came.
    given: Value,
    notes: BTreeMap<String, String>,
    keep: Option<Checkpoints>,
    start: Option<Arc<AnyModel>>,
}

fn trained<T: Number>(
    py: Python<'_>,
    given: Given<'_>,
    settings: Settings,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(PyModel, PyReport)>
where
    Model<T>: Of,
{
    let data = given.data::<T>()?;
    let (notes, keep) = (settings.notes.clone(), settings.keep.clone());
    let work = move |caller: &mut Caller| {
        let start = settings.start.as_deref().map(Model::<T>::of).transpose()?;
        let trainer = match &settings.keep {
            Some(keep) if is_kept(&keep.folder) => {
                resumed(keep, &settings.config, &settings.given)?
            }
            keep => {
                let trainer = Trainer::new(&settings.config);
                let trainer = match start {
                    Some(model) => trainer.warm_start(model),
                    None => trainer,
                };
                match keep {
                    Some(keep) => trainer.checkpoints(Checkpoints {
                        notes: json!({ GIVEN: settings.given }),
                        ..keep.clone()
                    }),
                    None => trainer,
                }
            }
        };
        trainer.fit(data, caller)
    };
    let folder = keep.as_ref().map(|keep| keep.folder.as_path());
    let (mut model, report) = beside_in(py, progress, folder, work)?;
    if let Some(Err(error)) = folder.map(Checkpoint::remove) {
        // The model is there, and worth more than a clean folder.
        let text = CString::new(error.to_string()).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    notes
        .iter()
        .for_each(|(key, text)| model.set_note(key, text));
    Ok((PyModel::new(model.any()), PyReport::new(report)))
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
