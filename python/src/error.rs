//! Errors of the core as Python's.

use std::io::ErrorKind;

use lssvm::Error;
use pyo3::PyErr;
use pyo3::exceptions::{
    PyFileNotFoundError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyPermissionError,
    PyValueError,
};

/// The same words, in the class that Python programs expect.
pub fn raise(error: Error) -> PyErr {
    let text = error.to_string();
    match &error {
        Error::Io { source, .. } => match source.kind() {
            ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
            ErrorKind::PermissionDenied => PyPermissionError::new_err(text),
            _ => PyOSError::new_err(text),
        },
        Error::Memory { .. } => PyMemoryError::new_err(text),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        _ => PyValueError::new_err(text),
    }
}
