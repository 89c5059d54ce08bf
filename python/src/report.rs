//! What a training run ended with, and its page.

use lssvm::train::Report;
use numpy::PyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::to_array;

/// What a training run ended with.
#[pyclass(name = "Report", module = "lssvm._lssvm", frozen)]
pub struct PyReport(Report);

impl PyReport {
    pub fn new(report: Report) -> Self {
        Self(report)
    }

    pub fn inner(&self) -> &Report {
        &self.0
    }
}

#[pymethods]
impl PyReport {
    /// Which rows the model has, of those that were learned from; an image that is seen in
    /// several ways is one row.
    #[getter]
    fn support(&self) -> Vec<usize> {
        let ways = self
            .0
            .config
            .augment
            .map_or(1, |augment| augment.variants());
        self.0.support.iter().map(|row| row / ways).collect()
    }

    /// Scores of the training rows by models that never saw them, if they were wanted.
    #[getter]
    fn leave_one_out<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let loo = self.0.leave_one_out.as_ref();
        loo.map(|loo| to_array(py, loo.scores.clone())).transpose()
    }

    /// How far off the model is on rows that it did not learn from, as JSON, if that is
    /// known.
    #[getter]
    fn conformal(&self) -> PyResult<Option<String>> {
        let conformal = self.0.conformal.as_ref().map(serde_json::to_string);
        let conformal = conformal.transpose();
        conformal.map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// Everything, as JSON.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(|e| PyValueError::new_err(e.to_string()))
    }
}
