//! Writing a model: all of the file or none.
//!
//! The bytes go to a temporary file in the same folder, which takes the name
//! of the model only when they are on disk. A reader sees the old file or the
//! new one, a program that stops half-way leaves the old one, and a model that
//! is mapped from the old file keeps its pages.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Model;
use super::format::{
    FORMAT_VERSION, LENGTH_BYTES, LONGEST_HEADER, Stored, Tensor, digest, header, tensors,
};
use crate::error::{Bytes, Place};
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// Whether a model can be saved under this name; to be asked before a long
/// training, not after it.
///
/// # Errors
/// [`Error::File`] if `path` is no place for a file, [`Error::Io`] if the
/// system refuses to make a file there.
pub fn check_writable(path: &Path) -> Result<()> {
    Temporary::beside(&Target::new(path)?).map(drop)
}

pub(super) fn save<T: Scalar>(model: &Model<T>, path: &Path) -> Result<()> {
    let target = Target::new(path)?;
    let (header, tensors) = parts(model, path)?;
    let mut temporary = Temporary::beside(&target)?;
    temporary.write(&header)?;
    for tensor in &tensors {
        temporary.write(bytemuck::cast_slice(tensor.values))?;
    }
    temporary.become_file(&target)
}

/// What a file would hold.
pub(super) fn to_bytes<T: Scalar>(model: &Model<T>) -> Result<Vec<u8>> {
    let (mut bytes, tensors) = parts(model, Path::new(MEMORY))?;
    bytes.reserve_exact(model.size_bytes() as usize);
    for tensor in &tensors {
        bytes.extend_from_slice(bytemuck::cast_slice(tensor.values));
    }
    Ok(bytes)
}

/// What stands for a path in messages about bytes.
pub(super) const MEMORY: &str = "model in memory";

/// The header of a file, and the tensors that follow it.
fn parts<'a, T: Scalar>(model: &'a Model<T>, path: &Path) -> Result<(Vec<u8>, Vec<Tensor<'a, T>>)> {
    let tensors = tensors(
        &model.bias,
        model.classes.as_ref().map(Matrix::values),
        model.support.matrix(),
        &model.weights,
    );
    let unsuitable = |error: serde_json::Error| {
        let problem = format!("the description of the model cannot be written as JSON: {error}");
        Error::file(path, Place::Whole, problem)
    };
    let stored = Stored {
        format_version: FORMAT_VERSION,
        lssvm_version: env!("CARGO_PKG_VERSION").into(),
        precision: T::PRECISION,
        description: &model.description,
    };
    let description = serde_json::to_string(&stored).map_err(unsuitable)?;
    // A pass over the memory before the one that writes: the checksum lies
    // before the numbers.
    let (checksum, _) = digest(&description, &tensors);
    let header = header(&description, &checksum, &tensors).map_err(unsuitable)?;
    if header.len() - LENGTH_BYTES > LONGEST_HEADER {
        return Err(Error::file(
            path,
            Place::Whole,
            format!(
                "the description of the model takes {}, more than the {} a safetensors file \
                 allows: train without feature names, or without steps that keep numbers for each \
                 column",
                Bytes(header.len() as u64),
                Bytes(LONGEST_HEADER as u64)
            ),
        ));
    }
    Ok((header, tensors))
}

/// Where a file is to be.
pub(super) struct Target {
    folder: PathBuf,
    name: OsString,
}

impl Target {
    pub(super) fn new(path: &Path) -> Result<Self> {
        let refuse = |problem: String| Err(Error::file(path, Place::Whole, problem));
        // A link is followed: what it names is replaced, not the link.
        let real = match path.is_symlink() {
            true => fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()),
            false => path.to_path_buf(),
        };
        if real.is_dir() {
            return refuse("is a folder: give the name of a file in it".into());
        }
        // The program may be run by root, and /dev/null be given.
        if real.exists() && !real.is_file() {
            return refuse("is a device or a pipe: give the name of an ordinary file".into());
        }
        let Some(name) = real.file_name() else {
            return refuse("is no file name: give the name of a file".into());
        };
        let folder = match real.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            let problem = match folder.exists() {
                true => format!("{} is not a folder: choose another place", folder.display()),
                false => format!(
                    "the folder {} does not exist: create it first (mkdir -p {0})",
                    folder.display()
                ),
            };
            return refuse(problem);
        }
        Ok(Target {
            folder: folder.to_path_buf(),
            name: name.to_os_string(),
        })
    }

    fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }
}

/// A file that is removed unless it takes its final name.
pub(super) struct Temporary {
    path: PathBuf,
    /// `None` when there is nothing left to remove.
    file: Option<File>,
}

impl Temporary {
    pub(super) fn beside(target: &Target) -> Result<Self> {
        // Tells apart the threads of one process; the process is in the name.
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNTER.fetch_add(1, Ordering::Relaxed);
            let mut name = OsString::from(".");
            name.push(&target.name);
            name.push(format!(".tmp-{}-{count}", std::process::id()));
            let path = target.folder.join(name);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    return Ok(Temporary {
                        path,
                        file: Some(file),
                    });
                }
                // Left by a process that was killed and had this number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => {
                    let action = "create a file in its folder";
                    return Err(Error::io(&target.path(), action, error));
                }
            }
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.write_all(bytes)
            .map_err(|error| Error::io(&self.path, "write the model", error))
    }

    pub(super) fn become_file(mut self, target: &Target) -> Result<()> {
        if let Some(file) = &self.file {
            file.sync_all()
                .map_err(|error| Error::io(&self.path, "write the model to disk", error))?;
        }
        let path = target.path();
        fs::rename(&self.path, &path)
            .map_err(|error| Error::io(&path, "put the model in its place", error))?;
        self.file = None;
        sync_folder(&target.folder)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // The error that brought us here is the one to tell.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Makes the new name outlast a loss of power, where the system can.
fn sync_folder(folder: &Path) -> Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Ok(()) => Ok(()),
        // Folders that may be written but not listed, and file systems that
        // know no such thing: the model is in its place all the same.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::PermissionDenied | ErrorKind::Unsupported | ErrorKind::InvalidInput
            ) =>
        {
            Ok(())
        }
        Err(error) => Err(Error::io(folder, "write the folder to disk", error)),
    }
}
