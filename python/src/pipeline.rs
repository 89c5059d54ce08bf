//! The steps of preprocessing, for transformers.

use lssvm::linalg::Matrix;
use lssvm::preprocess::{Pipeline, PipelineSpec};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::array::{Number, Rows, is_double, to_array};
use crate::error::raise;

/// Steps that were fitted.
#[pyclass(name = "Pipeline", module = "lssvm._lssvm", frozen)]
pub struct PyPipeline(Pipeline);

#[pymethods]
impl PyPipeline {
    /// Fits steps, given as text, to these rows; `image`: (channels, height, width).
    #[classmethod]
    #[pyo3(signature = (steps, x, image=None))]
    fn fit(
        _: &Bound<'_, PyType>,
        steps: &str,
        x: Rows<'_>,
        image: Option<[usize; 3]>,
    ) -> PyResult<Self> {
        let steps: PipelineSpec = steps.parse().map_err(raise)?;
        let (pipeline, _) = steps.fit(x.to_matrix::<f64>(), image).map_err(raise)?;
        Ok(Self(pipeline))
    }

    /// Reads what [`PyPipeline::json`] wrote.
    #[classmethod]
    fn from_json(_: &Bound<'_, PyType>, json: &str) -> PyResult<Self> {
        let pipeline = serde_json::from_str(json);
        pipeline
            .map(Self)
            .map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// As JSON.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(|e| PyValueError::new_err(e.to_string()))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let json = slf.borrow().json()?;
        Ok((slf.get_type().getattr("from_json")?, (json,)))
    }

    /// Number of features it makes.
    #[getter]
    fn n_features_out(&self) -> usize {
        self.0.n_features_out()
    }

    /// The rows, transformed, in "f32" or "f64".
    fn transform<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        precision: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        match is_double(precision)? {
            true => self.transformed::<f64>(py, &x),
            false => self.transformed::<f32>(py, &x),
        }
    }
}

impl PyPipeline {
    fn transformed<'py, T: Number>(
        &self,
        py: Python<'py>,
        x: &Rows<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let x: Matrix<T> = x.to_matrix();
        let pipeline = &self.0;
        let out = py.detach(|| pipeline.transform(x)).map_err(raise)?;
        Ok(to_array(py, out)?.into_any())
    }
}

/// The softmax of each row of scores.
#[pyfunction]
pub fn softmax<'py>(py: Python<'py>, scores: Rows<'py>) -> PyResult<Bound<'py, PyAny>> {
    let scores: Matrix<f64> = scores.to_matrix();
    Ok(to_array(py, lssvm::model::softmax(&scores))?.into_any())
}
