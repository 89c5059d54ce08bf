//! Runs that outlive the process: what the program itself must find again in a checkpoint.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lssvm::Error;
use lssvm::memory;
use lssvm::ranks::Ranks;
use lssvm::train::{Checkpoint, Checkpoints};
use serde::{Deserialize, Serialize};

use crate::args::{ReadArgs, TrainArgs};
use crate::settings::{Reading, TrainSettings, read_options};
use crate::together::agree;

/// The time from one checkpoint to the next, if none was given.
const EVERY: Duration = Duration::from_secs(60);

/// A file, by its place and as it was typed: what is at the first may have moved with the
/// folder in which the command was typed.
#[derive(Debug, Serialize, Deserialize)]
struct Named {
    typed: PathBuf,
    absolute: PathBuf,
}

impl Named {
    fn new(path: &Path) -> Self {
        Self {
            typed: path.to_path_buf(),
            absolute: absolute(path),
        }
    }

    fn find(self) -> PathBuf {
        match !self.absolute.exists() && self.typed.exists() {
            true => self.typed,
            false => self.absolute,
        }
    }
}

/// `-` is no file.
fn absolute(path: &Path) -> PathBuf {
    match path == Path::new("-") {
        true => path.to_path_buf(),
        false => std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()),
    }
}

/// What the program notes in a checkpoint: where data come from and results go.
#[derive(Debug, Serialize, Deserialize)]
struct Notes {
    data: Named,
    test: Option<Named>,
    validation_data: Option<Named>,
    model: Option<PathBuf>,
    json: Option<PathBuf>,
    report: Option<PathBuf>,
    reading: Reading,
}

/// What the library needs to keep a run.
pub fn checkpoints(settings: &TrainSettings) -> anyhow::Result<Option<Checkpoints>> {
    let Some(folder) = &settings.checkpoint else {
        if settings.every.is_some() {
            let requirement = "needs --checkpoint FOLDER, where the state of the run is kept";
            anyhow::bail!(Error::parameter("every", "a time", requirement));
        }
        return Ok(None);
    };
    let named = |path: &Option<PathBuf>| path.as_deref().map(Named::new);
    let place = |path: &Option<PathBuf>| path.as_deref().map(absolute);
    let notes = Notes {
        data: Named::new(&settings.data),
        test: named(&settings.test),
        validation_data: named(&settings.validation_data),
        model: place(&settings.model),
        json: place(&settings.json),
        report: place(&settings.report),
        reading: settings.reading.clone(),
    };
    Ok(Some(Checkpoints {
        folder: folder.clone(),
        every: settings.every.unwrap_or(EVERY),
        notes: serde_json::to_value(notes)?,
    }))
}

/// The run in a folder, and its settings. What is given once more may say where data are
/// and where results go; all else must be as it was.
pub fn open(
    ranks: &Ranks,
    folder: &Path,
    args: &TrainArgs,
) -> anyhow::Result<(Checkpoint, TrainSettings)> {
    let found = Checkpoint::open_on(ranks, folder)?;
    agree(ranks, settings(found, folder, args))
}

/// The settings of the run.
fn settings(
    mut found: Checkpoint,
    folder: &Path,
    args: &TrainArgs,
) -> anyhow::Result<(Checkpoint, TrainSettings)> {
    let foreign = || {
        Error::parameter(
            "resume",
            folder.display(),
            "the run was not begun by this program: go on with the one that began it",
        )
    };
    let notes: Notes = serde_json::from_value(found.notes().clone()).map_err(|_| foreign())?;
    let data = notes.data.find();
    let given = TrainSettings::new(&TrainArgs {
        data: Some(args.data.clone().unwrap_or(data)),
        ..args.clone()
    })?;
    found.expect_same(&given.config)?;
    if given.reading != Reading::default() && given.reading != notes.reading {
        let requirement = "the data were read otherwise when the run was begun: leave out how they \
                           are read";
        anyhow::bail!(Error::parameter("resume", folder.display(), requirement));
    }
    if let Some(every) = given.every {
        found.set_every(every);
    }
    let config = found.config().clone();
    let budget = config.memory.unwrap_or_else(memory::default_budget);
    let read = ReadArgs::from(notes.reading);
    let settings = TrainSettings {
        test: given.test.or(notes.test.map(Named::find)),
        validation_data: given
            .validation_data
            .or(notes.validation_data.map(Named::find)),
        model: given.model.or(notes.model),
        json: given.json.or(notes.json),
        report: given.report.or(notes.report),
        read: lssvm::data::ReadOptions {
            max_bytes: Some(budget.0),
            ..read_options(&read)?
        },
        reading: read.into(),
        config,
        checkpoint: Some(folder.to_path_buf()),
        ..given
    };
    Ok((found, settings))
}
