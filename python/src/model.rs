//! A trained model.

use std::path::PathBuf;
use std::sync::Arc;

use lssvm::data::{Dataset, ImageShape, Labels};
use lssvm::linalg::{Matrix, Precision};
use lssvm::model::{AnyModel, Conformal, Model, Outputs};
use lssvm::solve::Flow;
use lssvm::train::{Evaluation, Report, truth};
use lssvm_report::{Machine, Pictures, Run, training_page};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::array::{AnyRows, Number, Rows, to_array};
use crate::error::raise;
use crate::fit::Target;
use crate::report::PyReport;
use crate::run::{Caller, beside};

/// A model: what a file of the program holds.
#[pyclass(name = "Model", module = "lssvm._lssvm", frozen)]
pub struct PyModel(Arc<AnyModel>);

/// Does the same for a model of either precision.
macro_rules! either {
    ($model:expr, $inner:ident => $body:expr) => {
        match $model {
            AnyModel::F32($inner) => $body,
            AnyModel::F64($inner) => $body,
        }
    };
}

impl PyModel {
    pub fn new(model: AnyModel) -> Self {
        Self(Arc::new(model))
    }

    pub fn inner(&self) -> Arc<AnyModel> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl PyModel {
    /// Reads a model file.
    #[classmethod]
    fn load(of: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Self> {
        let model = of.py().detach(|| AnyModel::load(&path));
        model.map(Self::new).map_err(raise)
    }

    /// Reads the bytes of a model file.
    #[classmethod]
    fn from_bytes(of: &Bound<'_, PyType>, bytes: &[u8]) -> PyResult<Self> {
        let model = of.py().detach(|| AnyModel::from_bytes(bytes));
        model.map(Self::new).map_err(raise)
    }

    /// The bytes of a model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| either!(&*self.0, model => model.to_bytes()));
        Ok(PyBytes::new(py, &bytes.map_err(raise)?))
    }

    /// Writes a model file, all of it or nothing.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| either!(&*self.0, model => model.save(&path)))
            .map_err(raise)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = slf.borrow().to_bytes(slf.py())?;
        Ok((slf.get_type().getattr("from_bytes")?, (bytes,)))
    }

    /// The score of each row for each output.
    fn decision_function<'py>(
        &self,
        py: Python<'py>,
        x: AnyRows<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &*self.0 {
            AnyModel::F32(_) => self.scores::<f32>(py, &x, threads),
            AnyModel::F64(_) => self.scores::<f64>(py, &x, threads),
        }
    }

    /// Probabilities of the classes for rows of scores, calibrated if the model is.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        scores: Rows<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let p = either!(&*self.0, model => model.probabilities_of(&scores.to_matrix()));
        Ok(to_array(py, p)?.into_any())
    }

    /// Whether probabilities are calibrated.
    #[getter]
    fn calibrated(&self) -> bool {
        self.0.description().scaling.is_some()
    }

    /// Half the width of intervals of this coverage for each value, or the largest 1 − p of a
    /// class in a set.
    fn thresholds(&self, coverage: f64) -> PyResult<Vec<f64>> {
        let found = either!(&*self.0, model => match model.outputs() {
            Outputs::Values { .. } => model.margins(coverage),
            Outputs::Classes { .. } => model.largest_misfit(coverage).map(|largest| vec![largest]),
        });
        found.map_err(raise)
    }

    /// A: rows × outputs.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(either!(&*self.0, model => to_array(py, model.weights().clone())?.into_any()))
    }

    /// b of each output.
    #[getter]
    fn bias<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        either!(&*self.0, model => PyArray1::from_slice(py, model.bias()).into_any())
    }

    /// The training rows, preprocessed.
    #[getter]
    fn support<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(
            either!(&*self.0, model => to_array(py, model.support().points().clone().into_dense())?.into_any()),
        )
    }

    /// "f32" or "f64".
    #[getter]
    fn precision(&self) -> &'static str {
        match self.0.precision() {
            Precision::F32 => "f32",
            Precision::F64 => "f64",
        }
    }

    /// All that is not a tensor, as JSON.
    #[getter]
    fn description(&self) -> PyResult<String> {
        let description = self.0.description();
        serde_json::to_string(description).map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// Writes a page about the model and how well it does on these rows. `report`: of
    /// the run that made it, if there is one.
    #[pyo3(signature = (x, target, path, name, threads, report=None, image=None))]
    #[allow(clippy::too_many_arguments)]
    fn write_report(
        &self,
        py: Python<'_>,
        x: Rows<'_>,
        target: Target<'_>,
        path: PathBuf,
        name: String,
        threads: usize,
        report: Option<PyRef<'_, PyReport>>,
        image: Option<[usize; 3]>,
    ) -> PyResult<()> {
        let page = Page {
            labels: target.labels()?,
            name,
            report: report.map(|report| report.inner().clone()),
            image,
        };
        let (html, json) = match &*self.0 {
            AnyModel::F32(_) => self.page::<f32>(py, page, &x, threads),
            AnyModel::F64(_) => self.page::<f64>(py, page, &x, threads),
        }?;
        let write = |path: PathBuf, text: String| {
            std::fs::write(&path, text)
                .map_err(|e| raise(lssvm::Error::io(&path, "write the report", e)))
        };
        write(path.with_extension("json"), json)?;
        write(path, html)
    }
}

impl PyModel {
    fn scores<'py, T: Number>(
        &self,
        py: Python<'py>,
        x: &AnyRows<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyAny>>
    where
        Model<T>: Of,
    {
        let (model, x) = (Arc::clone(&self.0), x.kept::<T>()?);
        let scores = beside(py, None, move |caller| {
            in_pool(threads, || in_blocks(Model::<T>::of(&model)?, &*x, caller))
        })?;
        Ok(to_array(py, scores)?.into_any())
    }

    fn page<T: Number>(
        &self,
        py: Python<'_>,
        page: Page,
        x: &Rows<'_>,
        threads: usize,
    ) -> PyResult<(String, String)>
    where
        Model<T>: Of,
    {
        let (model, x) = (Arc::clone(&self.0), x.to_matrix::<T>());
        beside(py, None, move |_| {
            in_pool(threads, || page.of(Model::<T>::of(&model)?, x))
        })
    }
}

/// What [`PyModel::thresholds`] says, from [`PyReport`]'s JSON: for a kernel that the core
/// does not know, and so has no model of.
#[pyfunction]
pub fn thresholds(conformal: &str, coverage: f64) -> PyResult<Vec<f64>> {
    let conformal: Conformal =
        serde_json::from_str(conformal).map_err(|e| PyValueError::new_err(e.to_string()))?;
    conformal.thresholds(coverage).map_err(raise)
}

/// The scores, block by block, with a look at the wish to stop before each. The blocks are
/// the core's own batches, so that the bits are those of the program.
fn in_blocks<T: Number>(
    model: &Model<T>,
    x: &dyn lssvm::data::Rows<T>,
    caller: &mut Caller,
) -> lssvm::Result<Matrix<T>> {
    let (n, step) = (lssvm::data::Rows::<T>::len(x), model.batch_rows());
    let mut scores = Vec::with_capacity(n * model.n_outputs());
    for start in (0..n).step_by(step) {
        if caller.flow() == Flow::Stop {
            return Err(lssvm::Error::Interrupted);
        }
        let block = model.scores_of_rows(x, start..(start + step).min(n))?;
        scores.extend(block.into_values());
    }
    Ok(Matrix::from_vec(n, model.n_outputs(), scores))
}

/// Runs `f` on so many threads.
fn in_pool<R: Send>(
    threads: usize,
    f: impl FnOnce() -> lssvm::Result<R> + Send,
) -> lssvm::Result<R> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| lssvm::Error::parameter("threads", threads, e.to_string()))?;
    pool.install(f)
}

/// The model of one precision in a model of any, and back.
pub trait Of: Sized {
    fn of(model: &AnyModel) -> lssvm::Result<&Self>;
    fn any(self) -> AnyModel;
}

fn another() -> lssvm::Error {
    lssvm::Error::Data(
        "the model has another precision: leave precision at 'auto', which takes that of the \
         model, or fit from the beginning"
            .into(),
    )
}

impl Of for Model<f32> {
    fn of(model: &AnyModel) -> lssvm::Result<&Self> {
        match model {
            AnyModel::F32(model) => Ok(model),
            AnyModel::F64(_) => Err(another()),
        }
    }

    fn any(self) -> AnyModel {
        AnyModel::F32(self)
    }
}

impl Of for Model<f64> {
    fn of(model: &AnyModel) -> lssvm::Result<&Self> {
        match model {
            AnyModel::F64(model) => Ok(model),
            AnyModel::F32(_) => Err(another()),
        }
    }

    fn any(self) -> AnyModel {
        AnyModel::F64(self)
    }
}

/// What a page is made of besides model and rows.
struct Page {
    labels: Labels,
    name: String,
    report: Option<Report>,
    image: Option<[usize; 3]>,
}

impl Page {
    /// The page, and its numbers as JSON.
    fn of<T: Number>(self, model: &Model<T>, x: Matrix<T>) -> lssvm::Result<(String, String)> {
        let mut data = Dataset::new(self.name.as_ref(), x.clone());
        data.labels = Some(self.labels);
        data.image = self
            .image
            .or(model.input().image)
            .map(|[channels, height, width]| ImageShape {
                channels,
                height,
                width,
            });
        let truth = truth(&data, model.outputs())?;
        let scores = model.decision_function(x)?;
        let names = model.outputs().names();
        let mut report = match self.report {
            Some(report) => report,
            None => Report::of_model(model)?,
        };
        report.test = Some(Evaluation::new(&scores, &truth, names)?);
        let pictures = Pictures::new(&data);
        let page = training_page(&Run {
            report: &report,
            data: self.name,
            names,
            pictures: pictures.as_ref(),
            machine: Machine::detect(),
        });
        let json = serde_json::to_string_pretty(&page.to_json());
        let json = json.map_err(|e| lssvm::Error::Data(e.to_string()))?;
        Ok((page.to_html(), json))
    }
}
