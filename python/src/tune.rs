//! Choosing a model.

use lssvm::data::{Dataset, ImageShape};
use lssvm::linalg::Precision;
use lssvm::solve::Flow;
use lssvm::train::{Data, Shape, path};
use lssvm::tune::{Outcome, Space, Trial, TuneLimits, TuneWatcher};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::{Number, Rows};
use crate::error::raise;
use crate::fit::{Target, config};
use crate::run::{Caller, Tried, beside};

/// Searches for the settings with the least leave-one-out error; returns what was found,
/// as JSON. `space`: JSON too; what it does not name is what is worth trying.
#[pyfunction]
#[pyo3(signature = (x, target, base, *, space=None, weights=None, seconds=None, rows=None, one_standard_error=false, exhaustive=false, progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn tune(
    py: Python<'_>,
    x: Rows<'_>,
    target: Target<'_>,
    base: &str,
    space: Option<&str>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    seconds: Option<f64>,
    rows: Option<usize>,
    one_standard_error: bool,
    exhaustive: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let base = config(base)?;
    let space = self::space(space, base.image_shape)?;
    let limits = TuneLimits {
        seconds,
        rows,
        one_standard_error,
        exhaustive,
        // It is fitted to all rows anyway.
        confirm: false,
    };
    let weights = weights.map(|w| w.as_array().to_vec());
    let labels = target.labels()?;
    let progress = progress.as_ref();
    let outcome = match base.precision.unwrap_or_default() {
        Precision::F32 => {
            let data = dataset::<f32>(&x, labels, weights);
            let work = move |caller: &mut Caller| {
                lssvm::tune::tune(data, &space, &base, limits, &mut Told(caller))
            };
            beside(py, progress, work)
        }
        Precision::F64 => {
            let data = dataset::<f64>(&x, labels, weights);
            let work = move |caller: &mut Caller| {
                lssvm::tune::tune(data, &space, &base, limits, &mut Told(caller))
            };
            beside(py, progress, work)
        }
    };
    let outcome: Outcome = outcome?;
    serde_json::to_string(&outcome).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Leave-one-out errors for values of c from one factorisation, as JSON.
#[pyfunction]
#[pyo3(signature = (x, target, config, values, *, weights=None))]
pub fn c_path(
    py: Python<'_>,
    x: Rows<'_>,
    target: Target<'_>,
    config: &str,
    values: Vec<f64>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<String> {
    let config = self::config(config)?;
    let weights = weights.map(|w| w.as_array().to_vec());
    let labels = target.labels()?;
    let found = match config.precision.unwrap_or_default() {
        Precision::F32 => {
            let data = whole(dataset::<f32>(&x, labels, weights));
            beside(py, None, move |caller| path(data, &config, &values, caller))
        }
        Precision::F64 => {
            let data = whole(dataset::<f64>(&x, labels, weights));
            beside(py, None, move |caller| path(data, &config, &values, caller))
        }
    };
    serde_json::to_string(&found?).map_err(|e| PyValueError::new_err(e.to_string()))
}

fn whole<T>(train: Dataset<T>) -> Data<T> {
    Data {
        train,
        validation: None,
        test: None,
    }
}

/// The method that a fit with these settings would take.
#[pyfunction]
pub fn chosen_method(
    config: &str,
    rows: usize,
    features: usize,
    outputs: usize,
) -> PyResult<String> {
    let config = self::config(config)?;
    let shape = Shape {
        rows,
        features,
        outputs,
        others: 0,
        validation: false,
        image: config.image_shape,
        kept: None,
        ranks: 1,
    };
    let effective = config.resolve(shape).map_err(raise)?;
    Ok(effective.method.to_string())
}

fn space(json: Option<&str>, image: Option<ImageShape>) -> PyResult<Space> {
    let usual = Space::for_rows(image);
    let Some(json) = json else {
        return Ok(usual);
    };
    let wrong = |e: serde_json::Error| PyValueError::new_err(format!("space: {e}"));
    let given: serde_json::Map<_, _> = serde_json::from_str(json).map_err(wrong)?;
    let mut parts = serde_json::to_value(usual).map_err(wrong)?;
    if let Some(parts) = parts.as_object_mut() {
        parts.extend(given);
    }
    serde_json::from_value(parts).map_err(wrong)
}

fn dataset<T: Number>(
    x: &Rows<'_>,
    labels: lssvm::data::Labels,
    weights: Option<Vec<f64>>,
) -> Dataset<T> {
    let mut data = Dataset::new("X".as_ref(), x.to_matrix::<T>());
    data.labels = Some(labels);
    data.weights = weights;
    data
}

/// Tells the caller of trials as of iterations.
struct Told<'a>(&'a mut Caller);

impl TuneWatcher for Told<'_> {
    fn tried(&mut self, trial: &Trial, best: &Trial, done: usize, of: usize) -> Flow {
        let json = |trial| serde_json::to_string(trial).unwrap_or_default();
        self.0.tried(Tried {
            rows: best.rows,
            error: best.error,
            done,
            of,
            trial: json(trial),
            best: json(best),
        });
        self.0.flow()
    }

    fn flow(&mut self) -> Flow {
        self.0.flow()
    }
}
