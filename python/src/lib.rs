//! The Rust side of the Python package: arrays in, models and arrays out.
//!
//! ```text
//! array ─┬─ fit ─ Model, Report          run: off the interpreter's lock, Ctrl-C heard
//!        │   └─ checkpoint: runs that go on
//!        ├─ tune
//!        ├─ model: scores, files, bytes
//!        ├─ pipeline: transformers
//!        └─ dataset: readers
//! ```
//!
//! What scikit-learn asks of an estimator is written in Python (`python/package`); here
//! is only what needs the core.

mod array;
mod checkpoint;
mod dataset;
mod error;
mod fit;
mod model;
mod pipeline;
mod report;
mod run;
mod tune;

use pyo3::prelude::*;

/// The Rust core of the package; not to be used directly.
#[pymodule]
fn _lssvm(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<model::PyModel>()?;
    m.add_class::<pipeline::PyPipeline>()?;
    m.add_class::<report::PyReport>()?;
    m.add_function(wrap_pyfunction!(fit::fit, m)?)?;
    m.add_function(wrap_pyfunction!(checkpoint::checkpoint_settings, m)?)?;
    m.add_function(wrap_pyfunction!(fit::fit_kernel_matrix, m)?)?;
    m.add_function(wrap_pyfunction!(tune::tune, m)?)?;
    m.add_function(wrap_pyfunction!(tune::c_path, m)?)?;
    m.add_function(wrap_pyfunction!(tune::chosen_method, m)?)?;
    m.add_function(wrap_pyfunction!(dataset::load_dataset, m)?)?;
    m.add_function(wrap_pyfunction!(pipeline::softmax, m)?)?;
    m.add_function(wrap_pyfunction!(model::thresholds, m)?)?;
    let close = wrap_pyfunction!(array::close, m)?;
    let atexit = m.py().import("atexit")?;
    atexit.call_method1("register", (close,))?;
    Ok(())
}
