//! The bytes of a file in memory, unpacked if it is gzip, and whether features fit.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::ReadOptions;
use super::options::DEFAULT_MAX_BYTES;
use crate::error::{Bytes, Place};
use crate::linalg::Scalar;
use crate::{Error, Result};

/// What every gzip file begins with.
pub(super) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// No deflate stream grows by more than this factor, so a gzip trailer that
/// promises more lies.
pub(super) const MAX_INFLATION: usize = 1032;

/// Opens a file, with messages for what usually goes wrong.
pub(super) fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => missing(path),
        _ => Error::io(path, "open the file", source),
    })
}

/// The error for a path that does not exist.
pub(super) fn missing(path: &Path) -> Error {
    Error::file(path, Place::Whole, "no such file or folder; check the path")
}

/// The content of a file, which may be packed and is said to have `length` bytes, unless
/// it has more than `most`.
pub(super) fn read_all(path: &Path, file: File, length: u64, most: Option<u64>) -> Result<Vec<u8>> {
    check_length(path, length, most)?;
    let mut bytes = room(path, length.saturating_add(1))?;
    let limit = most.map_or(u64::MAX, |most| most.saturating_add(1));
    file.take(limit)
        .read_to_end(&mut bytes)
        .map_err(|source| Error::io(path, "read the file", source))?;
    check_length(path, bytes.len() as u64, most)?;
    Ok(bytes)
}

/// The content of `bytes`, unpacked if they are gzip, unless it has more than `most`
/// bytes. No content is an error.
pub(super) fn unpack(path: &Path, bytes: Vec<u8>, most: Option<u64>) -> Result<Vec<u8>> {
    let bytes = if bytes.starts_with(&GZIP) {
        gunzip(path, &bytes, most)?
    } else {
        bytes
    };
    if bytes.is_empty() {
        return Err(Error::file(
            path,
            Place::Whole,
            "the file is empty; check how it was written",
        ));
    }
    Ok(bytes)
}

fn gunzip(path: &Path, packed: &[u8], most: Option<u64>) -> Result<Vec<u8>> {
    // The last four bytes say how long the content is, unless it is longer
    // than 4 GB or in several members: a hint, not a fact.
    let promised = packed
        .last_chunk()
        .map_or(0, |&tail| u32::from_le_bytes(tail) as usize);
    let most = most.unwrap_or(u64::MAX);
    let room = promised.min(packed.len().saturating_mul(MAX_INFLATION));
    let room = room.min(usize::try_from(most).unwrap_or(usize::MAX));
    let mut bytes = Vec::with_capacity(room.saturating_add(1));
    let mut decoder = MultiGzDecoder::new(packed);
    let damaged = |source: io::Error| {
        let problem = format!("the gzip data is damaged or cut off ({source}); get the file again");
        Error::file(path, Place::Whole, problem)
    };
    (&mut decoder)
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(damaged)?;
    // What is too much is counted all the same, for the message.
    let more = io::copy(&mut decoder, &mut io::sink()).map_err(damaged)?;
    check_length(path, bytes.len() as u64 + more, Some(most))?;
    Ok(bytes)
}

/// Room for so many bytes, if the machine has it.
pub(super) fn room(path: &Path, length: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let wanted = usize::try_from(length).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(wanted).map_err(|_| {
        let problem = format!("there is no room for its {} in memory", Bytes(length));
        Error::file(path, Place::Whole, problem)
    })?;
    Ok(bytes)
}

/// Whether the content of a file is short enough to be held.
pub(super) fn check_length(path: &Path, length: u64, most: Option<u64>) -> Result<()> {
    match most {
        Some(most) if length > most => Err(Error::Memory {
            what: format!("{}: the content in memory", path.display()),
            needed: length,
            available: most,
            remedy: "allow more memory".to_string(),
        }),
        _ => Ok(()),
    }
}

/// Zeros for `rows` × `cols` features, if the options allow so many.
pub(super) fn allocate<T: Scalar>(
    path: &Path,
    rows: usize,
    cols: usize,
    options: &ReadOptions,
) -> Result<Vec<T>> {
    check_memory::<T>(path, rows, cols, options)?;
    Ok(vec![T::ZERO; rows * cols])
}

/// Whether the options allow `rows` × `cols` features.
pub(super) fn check_memory<T: Scalar>(
    path: &Path,
    rows: usize,
    cols: usize,
    options: &ReadOptions,
) -> Result<()> {
    let needed = (rows as u128)
        .saturating_mul(cols as u128)
        .saturating_mul(size_of::<T>() as u128);
    need_memory(path, [rows, cols], needed, options)
}

/// Whether the options allow so many bytes for features of this shape.
pub(super) fn need_memory(
    path: &Path,
    [rows, cols]: [usize; 2],
    needed: u128,
    options: &ReadOptions,
) -> Result<()> {
    let available = options.max_bytes.unwrap_or(DEFAULT_MAX_BYTES);
    if needed > u128::from(available) || needed > isize::MAX as u128 {
        return Err(Error::Memory {
            what: format!("{}: {rows} rows of {cols} features", path.display()),
            needed: u64::try_from(needed).unwrap_or(u64::MAX),
            available,
            remedy: "read fewer rows, drop features, or allow more memory".to_string(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(content).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn gzip_is_unpacked_whatever_its_name() {
        let path = Path::new("d");
        let mut packed = gzip(b"hello ");
        packed.extend(gzip(b"world"));
        assert_eq!(unpack(path, packed.clone(), None).unwrap(), b"hello world");
        assert_eq!(unpack(path, packed.clone(), Some(11)).unwrap().len(), 11);
        let message = unpack(path, packed.clone(), Some(10))
            .unwrap_err()
            .to_string();
        assert!(message.contains("needs 11 bytes"), "{message}");
        packed.truncate(packed.len() - 9);
        let message = unpack(path, packed, None).unwrap_err().to_string();
        assert!(
            message.starts_with("d: the gzip data is damaged or cut off"),
            "{message}"
        );
        let message = unpack(path, gzip(b""), None).unwrap_err().to_string();
        assert!(message.contains("empty"), "{message}");
    }

    #[test]
    fn missing_files_are_named() {
        let message = open(Path::new("no/such/file")).unwrap_err().to_string();
        assert_eq!(
            message,
            "no/such/file: no such file or folder; check the path"
        );
    }

    #[test]
    fn more_memory_than_allowed_is_refused() {
        let options = ReadOptions {
            max_bytes: Some(80),
            ..Default::default()
        };
        assert!(allocate::<f64>(Path::new("d"), 5, 2, &options).is_ok());
        let message = allocate::<f64>(Path::new("d"), 11, 1, &options)
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("d: 11 rows of 1 features needs 88 bytes"),
            "{message}"
        );
        let all = allocate::<f32>(Path::new("d"), usize::MAX, usize::MAX, &options);
        assert!(matches!(
            all,
            Err(Error::Memory {
                needed: u64::MAX,
                ..
            })
        ));
    }
}
