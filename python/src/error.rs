//! Errors of the core as Python's: the same words, with the names that things have here.

use std::io::ErrorKind;

use lssvm::Error;
use pyo3::PyErr;
use pyo3::exceptions::{
    PyFileNotFoundError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyPermissionError,
    PyValueError,
};

/// Settings of the core that have another name as parameters of an estimator.
const NAMES: [(&str, &str); 15] = [
    ("averages", "n_averages"),
    ("block-size", "block_size"),
    ("c", "C"),
    ("centers", "n_centers"),
    ("class-weight", "class_weight"),
    ("image-shape", "image_shape"),
    ("iterations", "max_iter"),
    ("loo", "leave_one_out"),
    ("seed", "random_state"),
    ("threads", "n_jobs"),
    ("time", "time_limit"),
    ("tolerance", "tol"),
    ("train-rows", "max_rows"),
    ("validation", "early_stopping"),
    ("warm-start", "warm_start"),
];

/// What an estimator calls a setting of the core.
pub fn parameter(name: &str) -> &str {
    let known = NAMES.iter().find(|(core, _)| *core == name);
    known.map_or(name, |(_, python)| python)
}

/// Text that tells of options of the program, telling of parameters.
fn in_python(text: &str) -> String {
    let mut parts = text.split("--");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let inside = |c: char| c.is_ascii_lowercase() || c == '-';
        let (name, rest) = part.split_at(part.find(|c| !inside(c)).unwrap_or(part.len()));
        let value = rest.strip_prefix(' ').unwrap_or_default();
        let end = value.find([' ', ',', ';', ')', ':']).unwrap_or(value.len());
        let (value, after) = value.split_at(end);
        out.push_str(parameter(name));
        match (name, value.split_once('x')) {
            ("image-shape", Some((height, width))) => {
                out.push_str(&format!("=({height}, {width})"));
            }
            ("method" | "precision", _) if !value.is_empty() => {
                out.push_str(&format!("='{value}'"));
            }
            ("block-size" | "centers", _) if value.parse::<u64>().is_ok() => {
                out.push_str(&format!("={value}"));
            }
            _ => {
                out.push_str(rest);
                continue;
            }
        }
        out.push_str(after);
    }
    out
}

/// The same words, in the class that Python programs expect.
pub fn raise(error: Error) -> PyErr {
    let error = match error {
        Error::Parameter {
            name,
            value,
            requirement,
        } => {
            let text = format!("{} = {value}: {requirement}", parameter(name));
            return PyValueError::new_err(in_python(&text));
        }
        error => error,
    };
    let text = match &error {
        // What a file holds is told as it is.
        Error::File { .. } | Error::Io { .. } => error.to_string(),
        _ => in_python(&error.to_string()),
    };
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
