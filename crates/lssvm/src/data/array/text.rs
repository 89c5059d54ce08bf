//! Labels that are text, as NumPy has it: of one width, filled up with zeros.

use std::path::Path;

use crate::data::Labels;
use crate::data::labels::Builder;
use crate::data::text::shown;
use crate::error::Place;
use crate::{Error, Result};

/// How the text of an array is written, and its width, which is not 0: an array of
/// nothing could claim any number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::data) enum Text {
    /// So many bytes (`|S5`).
    Narrow(usize),
    /// So many characters of four bytes (`<U5`).
    Wide(usize),
}

/// Bytes of a character in UTF-32.
const WIDE: usize = 4;

impl Text {
    /// Bytes of one text; none if no machine can hold it.
    pub(super) fn size(self) -> Option<usize> {
        match self {
            Text::Narrow(bytes) => Some(bytes),
            Text::Wide(characters) => characters.checked_mul(WIDE),
        }
    }

    /// The labels of the first `rows` samples, one for each.
    pub(super) fn labels(
        self,
        bytes: &[u8],
        big_endian: bool,
        rows: usize,
        path: &Path,
    ) -> Result<Labels> {
        let mut labels = Builder::new(1);
        let size = self.size().unwrap_or(usize::MAX).max(1);
        for (row, bytes) in bytes.chunks_exact(size).take(rows).enumerate() {
            let label = match self {
                Text::Narrow(_) => narrow(bytes),
                Text::Wide(_) => wide(bytes, big_endian),
            };
            let label = label.and_then(|label| checked(&label).map(|()| label));
            let label =
                label.map_err(|problem| Error::file(path, Place::Row(row as u64 + 1), problem))?;
            labels.push(&label);
        }
        Ok(labels.finish())
    }
}

/// The same as for the labels of a table.
fn checked(label: &str) -> Result<(), String> {
    if label.is_empty() {
        return Err("the label is empty; fill it in or drop the row".into());
    }
    match label.parse::<f64>() {
        Ok(number) if !number.is_finite() => {
            Err(format!("the label is {label}; fill it in or drop the row"))
        }
        _ => Ok(()),
    }
}

fn narrow(bytes: &[u8]) -> Result<String, String> {
    let end = bytes.iter().rposition(|&byte| byte != 0);
    let text = &bytes[..end.map_or(0, |last| last + 1)];
    match std::str::from_utf8(text) {
        Ok(text) => Ok(text.to_string()),
        Err(_) => Err(format!(
            "the label '{}' is not UTF-8; save the labels as str (y.astype(str))",
            shown(text)
        )),
    }
}

fn wide(bytes: &[u8], big_endian: bool) -> Result<String, String> {
    let (characters, _) = bytes.as_chunks::<WIDE>();
    let code = |bytes: &[u8; WIDE]| match big_endian {
        true => u32::from_be_bytes(*bytes),
        false => u32::from_le_bytes(*bytes),
    };
    let end = characters.iter().rposition(|bytes| code(bytes) != 0);
    let text = &characters[..end.map_or(0, |last| last + 1)];
    let text: Option<String> = text
        .iter()
        .map(|bytes| char::from_u32(code(bytes)))
        .collect();
    text.ok_or_else(|| "the label is not Unicode; the file may be damaged".to_string())
}
