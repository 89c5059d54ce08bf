//! Every way a call of this library can fail.
//!
//! A message names the thing that is wrong (file, line, row, parameter, value)
//! and ends with what to do about it. A panic is a bug of ours.

use std::fmt;
use std::path::{Path, PathBuf};

/// The result of everything in this library that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to read or write a file.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried, as a verb with its object: "open the file".
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },

    /// A file was read, but what it holds cannot be used.
    #[error("{}{place}: {problem}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Where in the file.
        place: Place,
        /// What is wrong and what to do.
        problem: String,
    },

    /// A parameter is outside its range.
    #[error("{name} = {value}: {requirement}")]
    Parameter {
        /// The parameter, as the user writes it.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// What the value must be.
        requirement: String,
    },

    /// Data that were read well do not fit together, or do not fit the model.
    #[error("{0}")]
    Data(String),

    /// The run would need more memory than it may use.
    #[error("{what} needs {}, but the memory budget is {}: {remedy}", Bytes(*.needed), Bytes(*.available))]
    Memory {
        /// What needs the memory.
        what: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes that may be used.
        available: u64,
        /// What to change.
        remedy: String,
    },

    /// Somebody asked to stop before there was anything to keep.
    #[error(
        "interrupted before there was a solution, so there is nothing to keep; iterative methods \
         (such as mp) keep what they have after their first iteration"
    )]
    Interrupted,

    /// The computation left the range of the number type.
    #[error("{0}")]
    Numeric(String),

    /// Something failed on another rank of a run on several ([`crate::ranks`]).
    #[error("rank {rank}: {problem}")]
    Elsewhere {
        /// The rank.
        rank: usize,
        /// What it says.
        problem: String,
        /// Whether that is about a parameter.
        usage: bool,
    },
}

impl Error {
    /// The same, with another remedy if there was too little memory.
    pub(crate) fn with_remedy(self, remedy: impl FnOnce() -> String) -> Self {
        match self {
            Error::Memory {
                what,
                needed,
                available,
                ..
            } => Error::Memory {
                what,
                needed,
                available,
                remedy: remedy(),
            },
            error => error,
        }
    }

    /// An [`Error::Io`] about `path`.
    pub fn io(path: &Path, action: &'static str, source: std::io::Error) -> Self {
        Error::Io {
            path: path.to_path_buf(),
            action,
            source,
        }
    }

    /// An [`Error::File`] about `path`.
    pub fn file(path: &Path, place: Place, problem: impl Into<String>) -> Self {
        Error::File {
            path: path.to_path_buf(),
            place,
            problem: problem.into(),
        }
    }

    /// An [`Error::Parameter`].
    pub fn parameter(
        name: &'static str,
        value: impl fmt::Display,
        requirement: impl Into<String>,
    ) -> Self {
        Error::Parameter {
            name,
            value: value.to_string(),
            requirement: requirement.into(),
        }
    }
}

/// Where in a file something was found. Lines, columns and rows count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// A line of a text file.
    Line(u64),
    /// A line and a column (field) of a text file.
    Field(u64, u64),
    /// A row (sample) of a binary file.
    Row(u64),
    /// A byte offset.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Whole => Ok(()),
            Place::Line(line) => write!(f, ", line {line}"),
            Place::Field(line, column) => write!(f, ", line {line}, column {column}"),
            Place::Row(row) => write!(f, ", row {row}"),
            Place::Byte(byte) => write!(f, ", byte {byte}"),
        }
    }
}

/// A number of bytes, shown to a person: `1.2 GB`, `480 MB`, `12 bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} bytes", self.0),
            1_000..1_000_000 => write!(f, "{:.1} kB", bytes / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} MB", bytes / 1e6),
            _ => write!(f, "{:.2} GB", bytes / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_place() {
        let e = Error::file(
            Path::new("d.csv"),
            Place::Field(7, 3),
            "'x' is not a number; correct it or drop the line",
        );
        assert_eq!(
            e.to_string(),
            "d.csv, line 7, column 3: 'x' is not a number; correct it or drop the line"
        );
    }

    #[test]
    fn bytes_read_well() {
        assert_eq!(Bytes(999).to_string(), "999 bytes");
        assert_eq!(Bytes(1_500_000).to_string(), "1.5 MB");
        assert_eq!(Bytes(14_400_000_000).to_string(), "14.40 GB");
    }
}
