//! Runs that go on after their process has died.
//!
//! A folder holds one run: the file `checkpoint`, and `lock`, which keeps a second process
//! away for as long as the first lives. The file says everything but the data: settings
//! as they were given and as they were decided, the memory they were decided for, and
//! fingerprints of the data. A run goes on only where all of that is the same, since
//! then its bits are.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use super::prepare::Ready;
use super::{Config, Effective};
use crate::data::{Rows, for_each_points};
use crate::error::Place;
use crate::kernel::Kernel;
use crate::linalg::{Matrix, Points, Scalar};
use crate::memory::Size;
use crate::preprocess::Pipeline;
use crate::ranks::{Ranks, Shares};
use crate::solve::{State, Truth, read_checkpoint};
use crate::system::{Bordered, System};
use crate::{Error, Result};

/// Names in the folder.
const FILE: &str = "checkpoint";
const LOCK: &str = "lock";
/// What the name of a file begins with that was being written when its process died.
const UNFINISHED: &str = ".checkpoint.tmp-";

/// The weights a run begins with, in a state without iterations.
const START: &str = "start";

/// Where the state of a run is kept, and how often.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    /// A folder of its own; made if there is none.
    pub folder: PathBuf,
    /// The time from one checkpoint to the next; one is also written when the run begins,
    /// and when somebody asks it to stop.
    pub every: Duration,
    /// What a caller wants to find again; means nothing here.
    pub notes: Value,
}

/// What the file says of the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct About {
    /// As given.
    config: Config,
    /// As decided.
    effective: Value,
    threads: usize,
    /// The memory it was decided for.
    budget: Size,
    pub(super) fixed: Option<Fixed>,
    /// Rows that are centres: choosing them may have taken long, or a model that is no
    /// longer there.
    pub(super) centers: Option<Vec<usize>>,
    fingerprint: Fingerprint,
    every: Duration,
    notes: Value,
}

/// What a run takes from the model that it began with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Fixed {
    pub(super) pipeline: Pipeline,
    pub(super) kernel: Kernel,
}

impl About {
    pub(super) fn new<T: Scalar>(
        config: &Config,
        ready: &Ready<T>,
        fixed: Option<Fixed>,
        fingerprint: Fingerprint,
        Checkpoints { every, notes, .. }: Checkpoints,
    ) -> Self {
        let effective = &ready.config;
        Self {
            config: config.clone(),
            effective: decided(effective),
            threads: effective.threads,
            budget: effective.budget,
            fixed,
            centers: ready.centers.clone(),
            fingerprint,
            every,
            notes,
        }
    }

    pub(super) fn every(&self) -> Duration {
        self.every
    }

    pub(super) fn to_value(&self) -> Result<Value> {
        serde_json::to_value(self).map_err(|error| {
            Error::Data(format!(
                "the settings of the run cannot be kept ({error}): train without checkpoints"
            ))
        })
    }
}

fn decided(effective: &Effective) -> Value {
    serde_json::to_value(effective).unwrap_or_default()
}

/// The data of a run, in a few bytes: XXH3 of all of theirs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    pub(super) features: String,
    pub(super) labels: String,
    pub(super) weights: String,
    pub(super) validation: String,
    pub(super) test: String,
}

/// Takes fingerprints.
#[derive(Default)]
pub(super) struct Ink(Xxh3);

impl Ink {
    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    pub(super) fn numbers<V: bytemuck::NoUninit>(self, values: &[V]) -> Self {
        self.bytes(bytemuck::cast_slice(values))
    }

    pub(super) fn matrix<T: Scalar>(self, matrix: &Matrix<T>) -> Self {
        let shape = [matrix.rows() as u64, matrix.cols() as u64];
        self.numbers(&shape).numbers(matrix.values())
    }

    /// As [`Ink::matrix`] of all of them.
    pub(super) fn rows<T: Scalar>(mut self, rows: &dyn Rows<T>) -> Result<Self> {
        let shape = [rows.len() as u64, rows.n_features() as u64];
        self = self.numbers(&shape);
        let bytes = rows.len() * rows.n_features() * size_of::<T>();
        self.0.update(&(bytes as u64).to_le_bytes());
        for_each_points(rows, |_, batch| {
            if let Points::Sparse(batch) = batch {
                self.0.update(bytemuck::cast_slice(batch.offsets()));
                self.0.update(bytemuck::cast_slice(batch.columns()));
            }
            self.0.update(bytemuck::cast_slice(batch.values()));
            Ok(())
        })?;
        Ok(self)
    }

    pub(super) fn names(self, names: &[String]) -> Self {
        names
            .iter()
            .fold(self, |ink, name| ink.bytes(name.as_bytes()))
    }

    pub(super) fn truth(self, truth: Option<&Truth>) -> Self {
        match truth {
            Some(Truth::Classes(codes)) => self.numbers(codes),
            Some(Truth::Values(values)) => self.matrix(values),
            None => self,
        }
    }

    pub(super) fn print(self) -> String {
        format!("{:032x}", self.0.digest128())
    }
}

impl Fingerprint {
    /// What is not as it was.
    fn difference(&self, now: &Self) -> Option<&'static str> {
        let pairs = [
            ("the features", &self.features, &now.features),
            ("the labels", &self.labels, &now.labels),
            ("the weights of the rows", &self.weights, &now.weights),
            ("the validation rows", &self.validation, &now.validation),
            ("the test rows", &self.test, &now.test),
        ];
        let other = pairs.into_iter().find(|(_, then, now)| then != now);
        other.map(|(what, ..)| what)
    }
}

/// A run that has not ended.
#[derive(Debug)]
pub struct Checkpoint {
    folder: Folder,
    about: About,
    state: State<'static>,
}

impl Checkpoint {
    /// Opens the checkpoint in a folder, and keeps other processes from it.
    ///
    /// # Errors
    /// [`Error::File`] if there is none, if it is damaged or was written by another
    /// version, or if another process is at it; [`Error::Io`] if it cannot be read.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::open_as(folder, true)
    }

    /// The same for a run on several ranks, each of which calls this: the first keeps other
    /// processes from the folder.
    ///
    /// # Errors
    /// As [`Checkpoint::open`], on all ranks.
    pub fn open_on(ranks: &Ranks, folder: &Path) -> Result<Self> {
        let first = match ranks.is_first() {
            true => Some(Self::open_as(folder, true)),
            false => None,
        };
        // Not before it is there for certain.
        let first = ranks.agree(first.transpose())?;
        let own = match first {
            Some(found) => Ok(found),
            None => Self::open_as(folder, false),
        };
        ranks.agree(own)
    }

    fn open_as(folder: &Path, owned: bool) -> Result<Self> {
        let refuse = |problem: &str| Err(Error::file(folder, Place::Whole, problem));
        if !folder.is_dir() {
            return refuse("is no folder, so there is no checkpoint in it: start the run again");
        }
        let file = folder.join(FILE);
        if !file.is_file() {
            return refuse(
                "holds no checkpoint: a run that has ended removes its own, and one that ended \
                 before its data were read has none; start the run again",
            );
        }
        let folder = match owned {
            true => Folder::open(folder)?,
            false => Folder::borrowed(folder),
        };
        let (about, state) = read_checkpoint(&file)?;
        let about = serde_json::from_value(about).map_err(|error| {
            let problem = format!("is not understood ({error}): start the run again");
            Error::file(&file, Place::Whole, problem)
        })?;
        Ok(Self {
            folder,
            about,
            state,
        })
    }

    /// The settings that the run was given.
    pub fn config(&self) -> &Config {
        &self.about.config
    }

    /// What the caller of the run left in [`Checkpoints::notes`].
    pub fn notes(&self) -> &Value {
        &self.about.notes
    }

    /// Keeps the rest of the run at another interval.
    pub fn set_every(&mut self, every: Duration) {
        self.about.every = every;
    }

    /// Iterations made.
    pub fn iterations(&self) -> usize {
        self.state.iterations()
    }

    /// Settings that are given once more must be those of the run, as it was given them
    /// or as they were decided.
    ///
    /// # Errors
    /// [`Error::Parameter`] if one is another.
    pub fn expect_same(&self, given: &Config) -> Result<()> {
        let (given, then) = (to_map(given), to_map(&self.about.config));
        for (key, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
            let decided = self.about.effective.get(&key);
            if then.get(&key) == Some(&value) || decided == Some(&value) {
                continue;
            }
            let before = match decided {
                Some(before) => format!("with {before}"),
                None => "without it".to_string(),
            };
            let folder = self.folder.path.display();
            return Err(Error::parameter(
                "resume",
                folder,
                format!(
                    "{key} = {value} was given, and the run was begun {before}: leave it out, or \
                     begin another run (--warm-start goes on from a model with other settings)"
                ),
            ));
        }
        Ok(())
    }

    /// Removes the checkpoint in a folder, and the folder if it is empty then. To be done
    /// when the model is safe, not before.
    pub fn remove(folder: &Path) -> Result<()> {
        for name in [FILE, LOCK] {
            let path = folder.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::io(&path, "remove the checkpoint", error));
                }
                _ => {}
            }
        }
        // Somebody may keep other files there.
        let _ = fs::remove_dir(folder);
        Ok(())
    }

    /// The settings to go on with: what depended on the machine is as it was.
    pub(super) fn settings(&self) -> Config {
        Config {
            memory: Some(self.about.budget),
            threads: Some(self.about.threads),
            // Their number may follow from the speed of the machine, which is never the same.
            centers: self.about.centers.as_ref().map(Vec::len),
            ..self.about.config.clone()
        }
    }

    /// Puts right what [`Checkpoint::settings`] had to say otherwise.
    pub(super) fn correct(&self, effective: &mut Effective) {
        effective.memory = self.about.config.memory;
    }

    pub(super) fn about(&self) -> &About {
        &self.about
    }

    /// The data must be those of the run.
    pub(super) fn expect_data(&self, now: &Fingerprint, source: &Path) -> Result<()> {
        match self.about.fingerprint.difference(now) {
            None => Ok(()),
            Some(what) => {
                let folder = self.folder.path.display();
                let problem = format!(
                    "{what} are not those that the run in {folder} was begun with: give the same \
                     data, or start another run"
                );
                Err(Error::file(source, Place::Whole, problem))
            }
        }
    }

    /// The settings must come out as they did.
    pub(super) fn expect_settings(&self, now: &Effective) -> Result<()> {
        match decided(now) == self.about.effective {
            true => Ok(()),
            false => Err(Error::file(
                &self.folder.path,
                Place::Whole,
                "the settings of the run come out otherwise than when it was begun, so its bits \
                 would too: start it again",
            )),
        }
    }

    /// The folder, and where the run goes on: a state or the weights it begins with.
    pub(super) fn into_course<T: Scalar>(
        mut self,
        system: &System<T>,
    ) -> Result<(Folder, Option<State<'static>>, Option<Bordered<T>>)> {
        let shape = (system.own_rows(), system.outputs());
        self.state = self.state.shared(system.shares());
        let start = match self.state.has(START) {
            true => Some(self.state.take_bordered(START, shape)?),
            false => None,
        };
        let state = (self.state.iterations() > 0).then_some(self.state);
        Ok((self.folder, state, start))
    }
}

fn to_map(config: &Config) -> serde_json::Map<String, Value> {
    match serde_json::to_value(config) {
        Ok(Value::Object(map)) => map,
        _ => Default::default(),
    }
}

/// The folder of a run, which no other process may use.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Locked until it is closed, by whatever ends the process. None where the file
    /// system knows no locks.
    _lock: Option<File>,
}

/// The state before the first iteration: the weights that a run begins with, if it begins
/// with any. Every rank has a part in it.
pub(super) fn start_state<'a, T: Scalar>(
    shares: &Shares,
    start: Option<&'a Bordered<T>>,
) -> State<'a> {
    let mut state = State::new(shares);
    if let Some(start) = start {
        state.put_bordered(START, start);
    }
    state
}

impl Folder {
    /// That of a run which another rank keeps.
    fn borrowed(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            _lock: None,
        }
    }

    /// A folder for a new run.
    pub(super) fn begin(path: &Path) -> Result<Self> {
        fs::create_dir_all(path)
            .map_err(|error| Error::io(path, "make the folder for checkpoints", error))?;
        if path.join(FILE).exists() {
            let problem = "holds the checkpoint of a run that has not ended: go on with it \
                           (--resume), or remove the folder";
            return Err(Error::file(path, Place::Whole, problem));
        }
        Self::open(path)
    }

    fn open(path: &Path) -> Result<Self> {
        let lock = path.join(LOCK);
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock)
            .map_err(|error| Error::io(&lock, "make a file in the folder", error))?;
        let lock = match file.try_lock() {
            Ok(()) => Some(file),
            Err(TryLockError::WouldBlock) => {
                let problem = "is in use by another process: wait for it, or choose another folder";
                return Err(Error::file(path, Place::Whole, problem));
            }
            Err(TryLockError::Error(_)) => None,
        };
        let folder = Self {
            path: path.to_path_buf(),
            _lock: lock,
        };
        folder.clear();
        Ok(folder)
    }

    /// Removes what a process that was killed was writing.
    fn clear(&self) {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for entry in entries {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                // It takes room, and does no other harm.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    pub(super) fn file(&self) -> PathBuf {
        self.path.join(FILE)
    }
}
