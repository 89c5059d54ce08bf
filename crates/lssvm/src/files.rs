//! Writing a file: all of it or nothing.
//!
//! The bytes go to a temporary file in the same folder, which takes its final name
//! only when they are on disk. A reader sees the old file or the new one, a program
//! that stops half-way leaves the old one, and what is mapped from the old file keeps
//! its pages.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Place;
use crate::{Error, Result};

/// Whether a file can be written under this name; to be asked before a long
/// training, not after it.
///
/// # Errors
/// [`Error::File`] if `path` is no place for a file, [`Error::Io`] if the
/// system refuses to make a file there.
pub fn check_writable(path: &Path) -> Result<()> {
    Temporary::beside(&Target::new(path)?).map(drop)
}

/// Where a file is to be.
pub(crate) struct Target {
    folder: PathBuf,
    name: OsString,
}

impl Target {
    pub(crate) fn new(path: &Path) -> Result<Self> {
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

/// Removes what this process is writing under a temporary name, to be `path` once it is
/// complete: for a program that is about to end without more ado.
pub fn remove_unfinished(path: &Path) {
    let Ok(target) = Target::new(path) else {
        return;
    };
    let prefix = prefix(&target.name);
    let entries = fs::read_dir(&target.folder).into_iter().flatten().flatten();
    let own = entries.filter(|entry| {
        let name = entry.file_name();
        let bytes = name.as_encoded_bytes();
        bytes.starts_with(prefix.as_encoded_bytes())
    });
    for entry in own {
        // Whoever writes it may just have given it its name, or removed it.
        let _ = fs::remove_file(entry.path());
    }
}

/// What temporary names begin with that this process gives to a file of this name.
pub fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(format!(".tmp-{}-", std::process::id()));
    prefix
}

/// A file that is removed unless it takes its final name.
pub(crate) struct Temporary {
    path: PathBuf,
    /// The name that it is to take, by which people know it.
    becomes: PathBuf,
    /// `None` when there is nothing left to remove.
    file: Option<File>,
}

impl Temporary {
    pub(crate) fn beside(target: &Target) -> Result<Self> {
        // Tells apart the threads of one process; the process is in the name.
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNTER.fetch_add(1, Ordering::Relaxed);
            let mut name = prefix(&target.name);
            name.push(count.to_string());
            let path = target.folder.join(name);
            match open_new(&path) {
                Ok(file) => {
                    return Ok(Temporary {
                        path,
                        becomes: target.path(),
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

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.write_all(bytes)
            .map_err(|error| Error::io(&self.becomes, "write the file", error))
    }

    /// Reads what was written, from `at` on.
    pub(crate) fn read_at(&mut self, at: u64, out: &mut [u8]) -> Result<()> {
        self.at(at, "read what was written", |file| file.read_exact(out))
    }

    /// Writes over what was written, or behind it, from `at` on.
    pub(crate) fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.at(at, "write the file", |file| file.write_all(bytes))
    }

    fn at(
        &mut self,
        at: u64,
        action: &'static str,
        work: impl FnOnce(&mut File) -> std::io::Result<()>,
    ) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(at))
            .and_then(|_| work(file))
            .map_err(|error| Error::io(&self.becomes, action, error))
    }

    pub(crate) fn become_file(mut self, target: &Target) -> Result<()> {
        if let Some(file) = &self.file {
            file.sync_all()
                .map_err(|error| Error::io(&self.becomes, "write the file to disk", error))?;
        }
        let path = target.path();
        fs::rename(&self.path, &path)
            .map_err(|error| Error::io(&path, "put the file in its place", error))?;
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
        // know no such thing: the file is in its place all the same.
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

fn open_new(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unfinished_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        let target = Target::new(&path).unwrap();
        let mut unfinished = Temporary::beside(&target).unwrap();
        unfinished.write(b"half of it").unwrap();
        // Of another process, for another file, and what is there.
        let others = [".m.tmp-1-0", ".n.tmp-1-0", "m"];
        for name in others {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        remove_unfinished(&path);
        let entries = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<OsString> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, others);
        drop(unfinished);
        remove_unfinished(&folder.path().join("none/m"));
    }
}
