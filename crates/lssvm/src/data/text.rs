//! Lines: the ground that both text formats stand on.
//!
//! A text is parsed in chunks that end at line ends, on all threads. Parsers
//! note the byte at which they failed; its line is counted only then.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::Place;
use crate::{Error, Result};

/// Bytes that one task parses: large against the cost of a task, small against
/// the memory that a finished chunk holds until it is joined to the others.
const CHUNK: usize = 1 << 20;

/// Something wrong at a byte of a text.
pub(super) struct Problem {
    /// Where.
    pub(super) byte: usize,
    /// In which field, counted from 0, if the text is a table.
    pub(super) field: Option<usize>,
    /// What is wrong and what to do.
    pub(super) message: String,
}

impl Problem {
    /// A problem of the line that holds this byte.
    pub(super) fn new(byte: usize, message: impl Into<String>) -> Self {
        Self {
            byte,
            field: None,
            message: message.into(),
        }
    }

    /// The error, with the line counted.
    pub(super) fn at(self, path: &Path, text: &[u8]) -> Error {
        self.after(0, path, text)
    }

    /// The same where so many lines come before the text.
    pub(super) fn after(self, lines: u64, path: &Path, text: &[u8]) -> Error {
        let line = lines + line_of(text, self.byte);
        let place = match self.field {
            Some(field) => Place::Field(line, field as u64 + 1),
            None => Place::Line(line),
        };
        Error::file(path, place, self.message)
    }
}

/// What is wrong with a number that is not finite in the type of the features, and what may
/// help but to replace it.
pub(super) fn not_finite(number: f64) -> (&'static str, &'static str) {
    match number.is_finite() {
        true => ("too large for f32", "read it with --precision f64, or "),
        false => ("not a finite number", ""),
    }
}

/// The line that holds a byte, counted from 1.
pub(super) fn line_of(text: &[u8], byte: usize) -> u64 {
    let before = &text[..byte.min(text.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// Bytes of a text that are parsed at once where it does not fit in memory; few in tests,
/// so that there are several pieces.
const PIECE: usize = if cfg!(test) { 1 << 10 } else { 1 << 24 };

/// The longest row where a text does not fit in memory.
const LONGEST_ROW: usize = if cfg!(test) { 1 << 14 } else { 1 << 28 };

/// A text of any length, piece by piece.
pub(super) struct Pieces<R> {
    path: PathBuf,
    from: R,
    buffer: Vec<u8>,
    /// Lines before the buffer.
    lines: u64,
    at_end: bool,
}

impl<R: Read> Pieces<R> {
    /// Without the mark that some editors put before a text.
    pub(super) fn new(path: &Path, from: R) -> Result<Self> {
        let mut pieces = Self {
            path: path.to_path_buf(),
            from,
            buffer: Vec::new(),
            lines: 0,
            at_end: false,
        };
        pieces.grow(BOM.len())?;
        let mark = pieces.buffer.len() - without_bom(&pieces.buffer).len();
        pieces.buffer.drain(..mark);
        Ok(pieces)
    }

    /// The first lines, at least so many if there are so many and they are not too long.
    pub(super) fn first_lines(&mut self, lines: usize) -> Result<&[u8]> {
        let mut size = 1 << 16;
        loop {
            self.grow(size)?;
            let found = self.buffer.iter().filter(|&&byte| byte == b'\n').count();
            if found > lines || self.at_end || size > PIECE {
                break;
            }
            size *= 2;
        }
        let end = if self.at_end {
            self.buffer.len()
        } else {
            last_line_end(&self.buffer)
        };
        Ok(&self.buffer[..end])
    }

    /// The next rows and the number of lines before them; none at the end. `end` finds
    /// where the last whole row of a text that goes on ends, 0 if there is none.
    pub(super) fn next(&mut self, end: impl Fn(&[u8]) -> usize) -> Result<Option<(&[u8], u64)>> {
        let mut size = PIECE;
        loop {
            self.grow(size)?;
            let end = if self.at_end {
                self.buffer.len()
            } else {
                end(&self.buffer)
            };
            if end > 0 {
                return Ok(Some((&self.buffer[..end], self.lines)));
            }
            if self.at_end {
                return Ok(None);
            }
            if self.buffer.len() > LONGEST_ROW {
                let problem = format!(
                    "the row that begins here has more than {LONGEST_ROW} bytes; check whether a \
                     quote is not closed, and how the file was written"
                );
                return Err(Error::file(
                    &self.path,
                    Place::Line(self.lines + 1),
                    problem,
                ));
            }
            size *= 2;
        }
    }

    /// Takes off what was parsed.
    pub(super) fn take(&mut self, length: usize) {
        let taken = self.buffer.drain(..length);
        self.lines += taken.filter(|&byte| byte == b'\n').count() as u64;
    }

    fn grow(&mut self, size: usize) -> Result<()> {
        while self.buffer.len() < size && !self.at_end {
            let missing = (size - self.buffer.len()) as u64;
            let read = (&mut self.from).take(missing).read_to_end(&mut self.buffer);
            let read = read.map_err(|error| Error::io(&self.path, "read the file", error))?;
            self.at_end = read == 0;
        }
        Ok(())
    }
}

/// Where the last whole line ends; 0 if there is none.
pub(super) fn last_line_end(text: &[u8]) -> usize {
    let last = text.iter().rposition(|&byte| byte == b'\n');
    last.map_or(0, |at| at + 1)
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The text without the mark that some editors put before it.
pub(super) fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BOM).unwrap_or(bytes)
}

/// Each line that is not blank, without its end, and where it starts.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    let lines = text.split(|&byte| byte == b'\n').map(move |line| {
        let at = start;
        start += line.len() + 1;
        (at, line)
    });
    lines.filter(|(_, line)| !line.trim_ascii().is_empty())
}

/// The text up to the end of its `rows`th line for which `is_row` holds.
pub(super) fn first_rows(text: &[u8], rows: usize, is_row: impl Fn(&[u8]) -> bool) -> &[u8] {
    let mut wanted = lines(text).filter(|(_, line)| is_row(line));
    match wanted.nth(rows.saturating_sub(1)) {
        Some((start, line)) => &text[..start + line.len()],
        None => text,
    }
}

/// Ranges of about [`CHUNK`] bytes that cover the text and end at line ends.
pub(super) fn chunks(text: &[u8]) -> Vec<Range<usize>> {
    let mut chunks = Vec::with_capacity(text.len() / CHUNK + 1);
    let mut start = 0;
    while start < text.len() {
        let goal = (start + CHUNK).min(text.len());
        let line_end = text[goal..].iter().position(|&byte| byte == b'\n');
        let end = line_end.map_or(text.len(), |rest| goal + rest + 1);
        chunks.push(start..end);
        start = end;
    }
    chunks
}

/// A piece of a text as a message shows it: short, and printable.
pub(super) fn shown(field: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text = String::from_utf8_lossy(field);
    let mut short: String = text
        .chars()
        .take(LONGEST)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push_str("...");
    }
    short
}

/// The number that a field stands for, if it is one.
pub(super) fn parse<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_text_and_end_at_line_ends() {
        let text = "some line\n".repeat(300_000).into_bytes();
        let chunks = chunks(&text);
        assert_eq!(chunks.len(), 3);
        assert_eq!(chunks.iter().map(Range::len).sum::<usize>(), text.len());
        assert!(chunks.iter().all(|chunk| text[chunk.end - 1] == b'\n'));
    }

    #[test]
    fn blank_lines_do_not_count() {
        let text = b"a\n\n \r\nb\nc";
        let found: Vec<_> = lines(text).map(|(at, _)| at).collect();
        assert_eq!(found, [0, 6, 8]);
        assert_eq!(first_rows(text, 2, |_| true), b"a\n\n \r\nb");
        assert_eq!(first_rows(text, 9, |_| true), text);
    }

    #[test]
    fn problems_name_their_line() {
        let error = Problem::new(6, "wrong").at(Path::new("d"), b"a\n\n \r\nb\nc");
        assert_eq!(error.to_string(), "d, line 4: wrong");
    }

    #[test]
    fn strange_fields_are_shown_short_and_printable() {
        assert_eq!(shown(b"a\x07\n"), "a\\u{7}\\n");
        assert_eq!(shown(&[b'x'; 50]), format!("{}...", "x".repeat(40)));
    }
}
