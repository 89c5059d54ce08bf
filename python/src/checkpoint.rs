//! Runs that are kept in a folder, and go on when they are fitted again.
//!
//! Python gives all its settings with every fit, so that a run goes on only if all of
//! them, and the data, are those it was begun with. They are in the checkpoint's notes as
//! they came: what the core was told in the end may be more, as with a warm start.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lssvm::Error;
use lssvm::linalg::Scalar;
use lssvm::train::{Checkpoint, Checkpoints, Config, Trainer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::error::{parameter, raise};
use crate::run::wait_for_stopped;

/// Where the notes have the settings as they came.
pub const GIVEN: &str = "python-settings";

/// The file that a run is in.
const FILE: &str = "checkpoint";

/// Where and how often a run is kept, from a folder and seconds.
pub fn kept((folder, every): (PathBuf, f64)) -> PyResult<Checkpoints> {
    let every = Duration::try_from_secs_f64(every).map_err(|_| {
        PyValueError::new_err(format!(
            "checkpoint_every = {every}: must be a number of seconds, not negative"
        ))
    })?;
    Ok(Checkpoints {
        folder,
        every,
        notes: Value::Null,
    })
}

/// Whether there is a run in the folder that has not ended.
pub fn is_kept(folder: &Path) -> bool {
    folder.join(FILE).is_file()
}

/// The settings of the run in the folder that has not ended, as JSON, if there is one.
#[pyfunction]
pub fn checkpoint_settings(py: Python<'_>, folder: PathBuf) -> PyResult<Option<String>> {
    wait_for_stopped(py, &folder)?;
    if !is_kept(&folder) {
        return Ok(None);
    }
    let found = py.detach(|| Checkpoint::open(&folder)).map_err(raise)?;
    let settings = match found.notes().get(GIVEN) {
        Some(given) => Ok(given.clone()),
        // Begun by the program.
        None => serde_json::to_value(found.config()),
    };
    let settings = settings.map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(Some(settings.to_string()))
}

/// The run in the folder, which must be one with these settings: `given` as they came.
pub fn resumed<T: Scalar>(
    keep: &Checkpoints,
    config: &Config,
    given: &Value,
) -> lssvm::Result<Trainer<'static, T>> {
    let mut found = Checkpoint::open(&keep.folder)?;
    if let Some(before) = found.notes().get(GIVEN).filter(|before| *before != given) {
        return Err(another(&keep.folder, before, given));
    }
    if found.notes().get(GIVEN).is_none() {
        found.expect_same(config)?;
    }
    found.set_every(keep.every);
    Ok(Trainer::resume(found))
}

/// Names the first setting that is not as it was.
fn another(folder: &Path, before: &Value, now: &Value) -> Error {
    let keys = |all: &Value| all.as_object().map(|all| all.keys().cloned().collect());
    let mut names: Vec<String> = keys(now).unwrap_or_default();
    names.extend(keys(before).unwrap_or_default());
    let changed = names.iter().find(|name| before.get(name) != now.get(name));
    let key = changed.map_or("a setting", String::as_str);
    let name = parameter(key);
    let text = |value: Option<&Value>| match value {
        Some(value) => format!("with {name} = {value}"),
        None => format!("without {name}"),
    };
    Error::parameter(
        "checkpoint",
        folder.display(),
        format!(
            "the run there was begun {}, and this one is {}: fit with the settings it was begun \
             with, choose another folder, or remove this one",
            text(before.get(key)),
            text(now.get(key))
        ),
    )
}
