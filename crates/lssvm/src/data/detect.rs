//! Which format a file has, told by its content.

use std::path::Path;

use super::{Format, cifar, idx, npy, npz, store, text};
use crate::error::Place;
use crate::{Error, Result};

/// Bytes that are looked at to tell text from binary.
const SAMPLE: usize = 8192;

/// Lines that are looked at to tell LIBSVM text from a table.
const LINES: usize = 20;

/// Formats that we cannot read but know, by how they begin, and what to do.
const KNOWN: [(&[u8], &str); 6] = [
    (
        b"PARE",
        "a Parquet file with an encrypted footer; save it without encryption",
    ),
    (b"\x89HDF", "an HDF5 file; save it as CSV or NPY"),
    (
        b"\x80\x02",
        "a Python pickle; for CIFAR-10 get the binary version, else save it as CSV or NPY",
    ),
    (b"\x80\x03", "a Python pickle; save it as CSV or NPY"),
    (b"\x80\x04", "a Python pickle; save it as CSV or NPY"),
    (b"BZh", "packed by bzip2; unpack it first"),
];

/// Where a tar archive says that it is one.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// How Parquet files and Arrow files begin, the latter with what fills up to 8 bytes.
pub(super) const PARQUET: &[u8] = b"PAR1";
pub(super) const ARROW: &[u8] = b"ARROW1\0\0";

/// How every message of an Arrow stream begins; its length follows.
pub(super) const ARROW_MESSAGE: [u8; 4] = [0xff; 4];

/// The format of a file of this length, which is already unpacked and begins so.
pub(super) fn format(path: &Path, bytes: &[u8], length: u64) -> Result<Format> {
    if bytes.starts_with(npy::MAGIC) {
        return Ok(Format::Npy);
    }
    if npz::MAGIC.iter().any(|magic| bytes.starts_with(magic)) {
        return Ok(Format::Npz);
    }
    if store::looks_like(bytes) {
        return Ok(Format::Lssvm);
    }
    let text = is_text(bytes);
    // A table of text may have a column PAR1.
    if bytes.starts_with(PARQUET) && !text {
        return Ok(Format::Parquet);
    }
    if bytes.starts_with(ARROW) || is_arrow_stream(bytes, length) {
        return Ok(Format::Arrow);
    }
    let cifar = !text && cifar::looks_like(bytes, length);
    if idx::magic(bytes).is_some() && (!cifar || idx::head(path, bytes, length).is_ok()) {
        return Ok(Format::Idx);
    }
    if cifar {
        return Ok(Format::Cifar10);
    }
    if text {
        let whole = match length > bytes.len() as u64 {
            true => without_last_word(bytes),
            false => bytes,
        };
        return Ok(if is_libsvm(whole) {
            Format::Libsvm
        } else {
            Format::Csv
        });
    }
    let known = KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic));
    let problem = match known {
        Some((_, what)) => format!("this is {what}"),
        None if bytes
            .get(TAR.0..)
            .is_some_and(|rest| rest.starts_with(TAR.1)) =>
        {
            "this is a tar archive; unpack it and give the folder".to_string()
        }
        None if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") => {
            "this is text in UTF-16; save it as UTF-8".to_string()
        }
        None => "the format is not known; use IDX, CIFAR-10's binary version, LIBSVM, CSV, NPY, \
                 NPZ, Parquet or Arrow, or name the format"
            .to_string(),
    };
    Err(Error::file(path, Place::Whole, problem))
}

/// A message of a length that fits comes first.
fn is_arrow_stream(bytes: &[u8], length: u64) -> bool {
    let Some((start, rest)) = bytes.split_first_chunk::<4>() else {
        return false;
    };
    let size = rest
        .first_chunk()
        .map_or(0, |&size| u32::from_le_bytes(size));
    *start == ARROW_MESSAGE && size > 0 && u64::from(size) <= length
}

/// The last word may be cut.
fn without_last_word(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(u8::is_ascii_whitespace);
    &text[..end.unwrap_or(text.len())]
}

/// Text has no bytes that text never has. Bytes above 127 may be UTF-8 or one
/// of the older codes.
fn is_text(bytes: &[u8]) -> bool {
    let control =
        |byte: u8| byte < 32 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c) || byte == 127;
    let magic = KNOWN.iter().any(|(magic, _)| bytes.starts_with(magic));
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    let high = sample.iter().filter(|&&byte| byte > 127).count();
    !magic && !sample.iter().any(|&byte| control(byte)) && 2 * high <= sample.len()
}

/// Every line is a label and pairs, and one has a pair.
fn is_libsvm(bytes: &[u8]) -> bool {
    let is_pair = |token: &[u8]| {
        let mut parts = token.splitn(2, |&byte| byte == b':');
        let (index, value) = (parts.next().unwrap_or_default(), parts.next());
        let is_index = index == b"qid" || text::parse::<u64>(index).is_some();
        is_index && value.is_some_and(|value| !value.iter().any(|byte| b":,;|".contains(byte)))
    };
    let lines = text::lines(text::without_bom(bytes));
    let lines = lines.map(|(_, line)| line.split(|&byte| byte == b'#').next().unwrap_or(line));
    let mut pairs = 0;
    for line in lines.take(LINES) {
        let tokens = line
            .split(u8::is_ascii_whitespace)
            .filter(|token| !token.is_empty());
        for (i, token) in tokens.enumerate() {
            if is_pair(token) {
                pairs += 1;
            } else if i > 0 {
                return false;
            }
        }
    }
    pairs > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cifar::tests::batch;
    use crate::data::idx::tests::idx;

    fn found(bytes: &[u8]) -> Format {
        format(Path::new("d"), bytes, bytes.len() as u64).unwrap()
    }

    fn message(bytes: &[u8]) -> String {
        let format = format(Path::new("d"), bytes, bytes.len() as u64);
        format.unwrap_err().to_string()
    }

    #[test]
    fn formats_are_told_by_content() {
        assert_eq!(found(b"\x93NUMPY\x01\x00"), Format::Npy);
        assert_eq!(found(b"PK\x03\x04"), Format::Npz);
        assert_eq!(found(&idx(&[2], &[1, 2])), Format::Idx);
        assert_eq!(found(&batch(&[(1, 2), (9, 255)])), Format::Cifar10);
        assert_eq!(found(b"+1 1:0.5 7:1\n-1\n"), Format::Libsvm);
        assert_eq!(found(b"\xef\xbb\xbf# a\n1 qid:1 1:0.5\n"), Format::Libsvm);
        assert_eq!(found(b"PAR1\x15\x04"), Format::Parquet);
        assert_eq!(found(b"PAR1,PAR2\n1,2\n"), Format::Csv);
        assert_eq!(found(b"ARROW1\0\0\xff\xff"), Format::Arrow);
        assert_eq!(found(b"\xff\xff\xff\xff\x04\0\0\0abcd"), Format::Arrow);
        assert_eq!(found(b"1,2,3\n"), Format::Csv);
        assert_eq!(found(b"a b c\n1 2 3\n"), Format::Csv);
        assert_eq!(found("größe;höhe\n1;2\n".as_bytes()), Format::Csv);
        assert_eq!(found(b"time,x\n12:30,1\n"), Format::Csv);
    }

    #[test]
    fn a_long_line_is_told_by_its_beginning() {
        let line = format!(
            "+1{}\n",
            (1..5000).map(|i| format!(" {i}:1")).collect::<String>()
        );
        for length in 1000..1010 {
            let found = format(
                Path::new("d"),
                &line.as_bytes()[..length],
                line.len() as u64,
            );
            assert_eq!(found.unwrap(), Format::Libsvm, "{length}");
        }
    }

    #[test]
    fn images_that_begin_like_idx_are_still_images() {
        // Class 0, then the pixels 0, 8, 1.
        let mut image = batch(&[(0, 0)]);
        (image[2], image[3]) = (8, 1);
        assert_eq!(found(&image), Format::Cifar10);
    }

    #[test]
    fn other_files_are_named_if_known() {
        assert!(message(b"PARE\x00\x01").contains("without encryption"));
        assert!(message(b"\x89HDF\r\n").contains("HDF5"));
        assert!(message(b"\x80\x02}q").contains("get the binary version"));
        assert!(message(b"\x00\x01\x02\x03").contains("the format is not known; use IDX"));
        assert!(message(b"\xff\xfe1\x00,\x00").contains("UTF-16"));
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert!(message(&tar).contains("unpack it and give the folder"));
    }
}
