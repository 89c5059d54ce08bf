//! The file that a run can go on from.
//!
//! ```text
//! 8 bytes    "lssvmrun"
//! 8 bytes    length of the JSON
//! JSON       versions, what the run is, and name, type and size of each table
//! tables     little-endian, one after the other
//! 16 bytes   XXH3 of 128 bits over all before
//! ```
//!
//! The checksum stands at the end so that a large state is read once while it is
//! written, and covers every byte, so that no damage is missed. Versions are looked at
//! after it: they hold whatever comes between.
//!
//! A file is replaced by a newer one only when that is complete ([`crate::files`]).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::State;
use super::state::{Part, Shape};
use crate::error::Place;
use crate::files::{Target, Temporary};
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"lssvmrun";
const LENGTH_BYTES: usize = 8;
const CHECKSUM_BYTES: usize = 16;

/// The format this version writes, and the only one it reads: a run goes on with the
/// code that began it.
const FORMAT_VERSION: u32 = 1;

/// What to do about a file that cannot be used.
const START_AGAIN: &str = "take a copy of it if there is one, or start the run again";

/// What a file says of its tables, and of the run.
#[derive(Serialize, Deserialize)]
struct Header<A> {
    format_version: u32,
    lssvm_version: String,
    about: A,
    tables: Vec<(String, Shape)>,
}

/// Of [`Header`], what all versions have.
#[derive(Deserialize)]
struct Version {
    format_version: u32,
    lssvm_version: String,
}

/// Writes a file, or leaves the one that is there.
pub fn write_checkpoint(path: &Path, about: &Value, state: &State<'_>) -> Result<()> {
    let target = Target::new(path)?;
    let tables = state.parts().iter();
    let header = Header {
        format_version: FORMAT_VERSION,
        lssvm_version: env!("CARGO_PKG_VERSION").into(),
        about,
        tables: tables
            .map(|(name, part)| (name.clone(), part.shape))
            .collect(),
    };
    let header = serde_json::to_vec(&header).map_err(|error| {
        let problem = format!("the settings of the run cannot be written as JSON: {error}");
        Error::file(path, Place::Whole, problem)
    })?;
    let mut temporary = Temporary::beside(&target)?;
    let mut hash = Xxh3::new();
    let mut write = |bytes: &[u8]| {
        hash.update(bytes);
        temporary.write(bytes)
    };
    write(MAGIC)?;
    write(&(header.len() as u64).to_le_bytes())?;
    write(&header)?;
    for part in state.parts().values() {
        write(&part.bytes)?;
    }
    temporary.write(&hash.digest128().to_le_bytes())?;
    temporary.become_file(&target)
}

/// Reads a file, and refuses one that is damaged or of another version.
pub fn read_checkpoint(path: &Path) -> Result<(Value, State<'static>)> {
    let bytes =
        std::fs::read(path).map_err(|error| Error::io(path, "read the checkpoint", error))?;
    parse(&bytes).map_err(|problem| Error::file(path, Place::Whole, problem))
}

fn parse(bytes: &[u8]) -> Result<(Value, State<'static>), String> {
    if !bytes.starts_with(MAGIC) {
        return Err(format!("is not a checkpoint of lssvm: {START_AGAIN}"));
    }
    let Some((content, checksum)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(format!("is cut short: {START_AGAIN}"));
    };
    if xxh3_128(content).to_le_bytes() != *checksum {
        return Err(format!(
            "does not match its checksum, so it is damaged or cut short: {START_AGAIN}"
        ));
    }
    // What follows finds no damage, but files made by another program.
    let strange = |what: &str| format!("has {what} that is not understood: start the run again");
    let rest = content[MAGIC.len()..].split_first_chunk::<LENGTH_BYTES>();
    let (length, rest) = rest.ok_or_else(|| strange("a length"))?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok();
    let split = length.and_then(|length| rest.split_at_checked(length));
    let (header, tables) = split.ok_or_else(|| strange("a length"))?;
    let version: Version = serde_json::from_slice(header).map_err(|_| strange("a header"))?;
    if version.format_version != FORMAT_VERSION
        || version.lssvm_version != env!("CARGO_PKG_VERSION")
    {
        return Err(format!(
            "was written by lssvm {} (format {}), and this is {} (format {FORMAT_VERSION}), whose \
             steps may have other bits: go on with the version that began the run, or start it \
             again",
            version.lssvm_version,
            version.format_version,
            env!("CARGO_PKG_VERSION"),
        ));
    }
    let header: Header<Value> = serde_json::from_slice(header).map_err(|_| strange("a header"))?;
    let mut parts = BTreeMap::new();
    let mut left = tables;
    for (name, shape) in header.tables {
        let split = shape.bytes().and_then(|size| left.split_at_checked(size));
        let (own, rest) = split.ok_or_else(|| strange("a table"))?;
        let bytes = Cow::Owned(own.to_vec());
        parts.insert(name, Part { shape, bytes });
        left = rest;
    }
    match left {
        [] => Ok((header.about, State::of_parts(parts))),
        _ => Err(strange("a table")),
    }
}

/// How keeping the state of a run goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checkpointed {
    /// The file.
    pub path: PathBuf,
    /// The iteration that the file is of, the last that could be written.
    pub iteration: usize,
    /// How often it was written.
    pub written: usize,
    /// How often it could not be.
    pub failed: usize,
    /// Why the last try failed; none if it did not.
    pub problem: Option<String>,
}

/// Writes the state of a run from time to time. A failure is told and does not end the
/// run: the last good file stays.
#[derive(Debug)]
pub struct Keeper {
    about: Value,
    every: Duration,
    last: Instant,
    told: Checkpointed,
}

impl Keeper {
    /// `about`: what the run is, for whoever reads the file. `iteration`: of the file that
    /// is there.
    pub fn new(path: PathBuf, about: Value, every: Duration, iteration: usize) -> Self {
        Self {
            about,
            every,
            last: Instant::now(),
            told: Checkpointed {
                path,
                iteration,
                written: 0,
                failed: 0,
                problem: None,
            },
        }
    }

    /// Whether it is time to write.
    pub(super) fn is_due(&self) -> bool {
        self.last.elapsed() >= self.every
    }

    /// Tries to write the state after this iteration.
    pub(super) fn keep(&mut self, iteration: usize, state: &State<'_>) {
        let told = &mut self.told;
        match write_checkpoint(&told.path, &self.about, state) {
            Ok(()) => {
                told.written += 1;
                (told.iteration, told.problem) = (iteration, None);
            }
            Err(error) => {
                told.failed += 1;
                told.problem = Some(error.to_string());
            }
        }
        self.last = Instant::now();
    }

    /// How it goes.
    pub fn told(&self) -> &Checkpointed {
        &self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;

    fn written(path: &Path) -> Vec<u8> {
        let matrix = Matrix::from_fn(20, 3, |i, j| (i * 3 + j) as f32);
        let mut state = State::default();
        state.put_matrix("m", &matrix);
        state.put_counts("c", [1, 2]);
        write_checkpoint(path, &serde_json::json!({ "c": 0.1 }), &state).unwrap();
        std::fs::read(path).unwrap()
    }

    fn problem(bytes: &[u8]) -> String {
        parse(bytes).unwrap_err()
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint");
        written(&path);
        let (about, mut state) = read_checkpoint(&path).unwrap();
        assert_eq!(about, serde_json::json!({ "c": 0.1 }));
        let matrix: Matrix<f32> = state.take_matrix("m", (20, 3)).unwrap();
        assert_eq!(matrix.row(7), [21.0, 22.0, 23.0]);
        assert_eq!(state.take_counts("c").unwrap(), [1, 2]);
        state.expect_empty().unwrap();
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = written(&folder.path().join("checkpoint"));
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for length in 0..bytes.len() {
            assert!(parse(&bytes[..length]).is_err(), "{length} bytes");
        }
        bytes.push(0);
        assert!(problem(&bytes).contains("damaged or cut short"));
        assert!(problem(b"").contains("is not a checkpoint"));
    }

    /// A file with this header and nothing else wrong.
    fn with_header(header: &str, tables: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend((header.len() as u64).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(tables);
        bytes.extend(xxh3_128(&bytes).to_le_bytes());
        bytes
    }

    #[test]
    fn other_versions_and_strange_headers_are_refused() {
        let version = env!("CARGO_PKG_VERSION");
        let header = |format: u32, version: &str, tables: &str| {
            format!(
                r#"{{"format_version":{format},"lssvm_version":"{version}","about":null,"tables":[{tables}]}}"#
            )
        };
        let table = |rows: &str| format!(r#"["m",{{"kind":"f32","rows":{rows},"cols":2}}]"#);
        let good = with_header(&header(1, version, &table("1")), &[0; 8]);
        assert!(parse(&good).is_ok());
        for (format, version) in [(2, version), (1, "0.0.9")] {
            let bytes = with_header(&header(format, version, ""), &[]);
            let said = problem(&bytes);
            assert!(said.contains("go on with the version"), "{said}");
            assert!(said.contains(version), "{said}");
        }
        let huge = u64::MAX.to_string();
        for (rows, tables) in [("2", 8), ("1", 9), (huge.as_str(), 8)] {
            let bytes = with_header(&header(1, version, &table(rows)), &vec![0; tables]);
            assert!(problem(&bytes).contains("a table"));
        }
        assert!(problem(&with_header("{", &[])).contains("a header"));
        assert!(problem(&with_header("{}", &[])).contains("a header"));
    }
}
