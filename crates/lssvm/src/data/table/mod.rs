//! Text tables: CSV and its relatives.
//!
//! [`sniff`] finds out what separates the columns and whether the first line
//! names them; [`columns`] decides which are features, labels and weights;
//! this file reads the rows, in chunks on all threads. Fields may be quoted. A file
//! with quotes is read as one chunk, since a quoted field may hold line ends.

mod columns;
mod sniff;

use std::convert::Infallible;
use std::ops::Range;
use std::path::Path;

use csv::ByteRecord;
use rayon::prelude::*;

use super::bytes::check_memory;
use super::labels::Builder;
use super::text::{self, Problem, shown};
use super::{Dataset, Labelled, ReadOptions};
use crate::error::Place;
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

pub use columns::LABEL_NAMES;
pub(super) use columns::{Roles, roles};
pub(super) use sniff::SAMPLE as FIRST_LINES;

/// The separator that stands for any run of spaces and tabs.
const WHITESPACE: u8 = b' ';

/// The rows of a table.
pub(super) fn parse<T: Scalar>(
    path: &Path,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<Dataset<T>> {
    let text = text::without_bom(bytes);
    let table = Table::new(path, text, options)?;
    // A quoted line end makes two lines of a row: an upper bound then.
    let rows = options.rows(text::lines(&text[table.start..]).count());
    check_memory::<T>(path, rows, table.n_features(), options)?;
    let all = table.start..text.len();
    let parts = table.rows::<T>(text, all, options.max_rows.unwrap_or(usize::MAX));
    let parts = parts.map_err(|problem| problem.at(path, text))?;
    let mut values = Vec::with_capacity(parts.iter().map(|part| part.values.len()).sum());
    let (mut labels, mut weights) = (table.no_labels(), Vec::new());
    for part in parts {
        // Each part is freed as soon as it is joined, so the values are never
        // held twice.
        values.extend_from_slice(&part.values);
        labels.append(part.labels);
        weights.extend(part.weights);
    }
    let rows = values.len() / table.n_features();
    let features = Matrix::from_vec(rows, table.n_features(), values);
    Ok(table.about(path, labels, weights).with_features(features))
}

/// What the beginning of a table says of all of it.
pub(super) struct Table {
    delimiter: u8,
    width: usize,
    names: Option<Vec<String>>,
    roles: Roles,
    /// Where the first row starts.
    pub(super) start: usize,
}

impl Table {
    /// Of a text that is the table, or has at least its first [`FIRST_LINES`].
    pub(super) fn new(path: &Path, text: &[u8], options: &ReadOptions) -> Result<Self> {
        let delimiter = options.delimiter.unwrap_or_else(|| sniff::delimiter(text));
        let sniffed = sniff::head(text, delimiter, options.header);
        let roles = roles(path, sniffed.width, sniffed.names.as_deref(), options)?;
        let Some(start) = sniffed.first_row else {
            let problem = "there are no rows; check how the file was written";
            return Err(Error::file(path, Place::Whole, problem));
        };
        Ok(Self {
            delimiter,
            width: sniffed.width,
            names: sniffed.names,
            roles,
            start,
        })
    }

    pub(super) fn n_features(&self) -> usize {
        self.roles.features.len()
    }

    /// The first rows of a part of a text, in chunks.
    pub(super) fn rows<T: Scalar>(
        &self,
        text: &[u8],
        part: Range<usize>,
        max_rows: usize,
    ) -> Result<Vec<Part<T>>, Problem> {
        let Range { start, end } = part;
        let chunks: Vec<Range<usize>> = if text[start..end].contains(&b'"') {
            std::iter::once(start..end).collect()
        } else {
            let rows = text::first_rows(&text[start..end], max_rows, |_| true);
            let chunks = text::chunks(rows).into_iter();
            chunks
                .map(|chunk| start + chunk.start..start + chunk.end)
                .collect()
        };
        let reader = Reader {
            text,
            delimiter: self.delimiter,
            width: self.width,
            names: self.names.as_deref(),
            roles: &self.roles,
            max_rows,
        };
        let parts: Vec<Result<_, Problem>> = chunks
            .into_par_iter()
            .map(|chunk| reader.read::<T>(chunk))
            .collect();
        parts.into_iter().collect()
    }

    /// Where the last whole row of a text that goes on ends; 0 if there is none.
    pub(super) fn last_row_end(&self, text: &[u8]) -> usize {
        if self.delimiter == WHITESPACE || !text.contains(&b'"') {
            return text::last_line_end(text);
        }
        // The last record may go on; where it starts, the one before it has ended.
        let mut last = 0;
        let Ok(()) = records(text, 0..text.len(), self.delimiter, |at, _| {
            last = at;
            Ok::<bool, Infallible>(true)
        });
        last
    }

    pub(super) fn no_labels(&self) -> Builder {
        self.roles.no_labels()
    }

    /// All but the features, given what was read of it.
    pub(super) fn about(&self, path: &Path, labels: Builder, weights: Vec<f64>) -> Labelled<()> {
        self.roles
            .about(path, self.names.as_deref(), labels, weights)
    }
}

/// Calls `row` with each record of a part of the text and the byte where it
/// starts, until it returns false. Blank lines are skipped.
fn records<E>(
    text: &[u8],
    part: Range<usize>,
    delimiter: u8,
    mut row: impl FnMut(usize, &ByteRecord) -> Result<bool, E>,
) -> Result<(), E> {
    let bytes = &text[part.clone()];
    let mut record = ByteRecord::new();
    if delimiter == WHITESPACE {
        for (at, line) in text::lines(bytes) {
            record.clear();
            let fields = line
                .split(u8::is_ascii_whitespace)
                .filter(|field| !field.is_empty());
            fields.for_each(|field| record.push_field(field));
            if !row(part.start + at, &record)? {
                break;
            }
        }
        return Ok(());
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(bytes);
    // Reading bytes from memory into a flexible record cannot fail.
    while reader.read_byte_record(&mut record).unwrap_or(false) {
        if record.len() == 1 && record[0].trim_ascii().is_empty() {
            continue;
        }
        let at = record
            .position()
            .map_or(0, |position| position.byte() as usize);
        // The position may be that of blank lines before the record.
        let blank = bytes[at..]
            .iter()
            .take_while(|byte| matches!(byte, b'\r' | b'\n'))
            .count();
        if !row(part.start + at + blank, &record)? {
            break;
        }
    }
    Ok(())
}

/// A field without the spaces around it, nor quotes that follow a space.
fn clean(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    match field {
        [b'"', inner @ .., b'"'] => inner,
        _ => field,
    }
}

struct Reader<'a> {
    text: &'a [u8],
    delimiter: u8,
    width: usize,
    names: Option<&'a [String]>,
    roles: &'a Roles,
    max_rows: usize,
}

/// What one chunk of the text holds.
pub(super) struct Part<T> {
    pub(super) values: Vec<T>,
    pub(super) labels: Builder,
    pub(super) weights: Vec<f64>,
}

impl Reader<'_> {
    fn read<T: Scalar>(&self, part: Range<usize>) -> Result<Part<T>, Problem> {
        let (mut values, mut weights) = (Vec::new(), Vec::new());
        let mut labels = self.roles.no_labels();
        let mut rows = 0;
        records(self.text, part, self.delimiter, |byte, record| {
            if record.len() != self.width {
                let message = format!(
                    "the line has {} fields, and the first has {}; correct it, or set the delimiter",
                    record.len(),
                    self.width
                );
                return Err(Problem::new(byte, message));
            }
            for &column in &self.roles.features {
                let field = clean(&record[column]);
                match text::parse::<T>(field) {
                    Some(value) if value.is_finite() => values.push(value),
                    _ => return Err(self.bad_feature(byte, column, field)),
                }
            }
            self.push_labels(byte, record, &mut labels)?;
            if let Some(column) = self.roles.weights {
                weights.push(self.weight(byte, column, clean(&record[column]))?);
            }
            rows += 1;
            Ok(rows < self.max_rows)
        })?;
        Ok(Part {
            values,
            labels,
            weights,
        })
    }

    fn weight(&self, byte: usize, column: usize, field: &[u8]) -> Result<f64, Problem> {
        let weight = text::parse::<f64>(field).filter(|w| w.is_finite() && *w >= 0.0);
        weight.ok_or_else(|| {
            let message = format!(
                "the weight '{}' is not a finite number from 0 up; correct it or drop the line",
                shown(field)
            );
            self.problem(byte, column, message)
        })
    }

    fn push_labels(
        &self,
        byte: usize,
        record: &ByteRecord,
        labels: &mut Builder,
    ) -> Result<(), Problem> {
        let fail = |column, message: String| Err(self.problem(byte, column, message));
        let mut numbers = Vec::new();
        for &column in &self.roles.labels {
            let field = clean(&record[column]);
            let number = text::parse::<f64>(field);
            if field.is_empty() || number.is_some_and(|value| !value.is_finite()) {
                let what = if field.is_empty() {
                    "empty".into()
                } else {
                    shown(field)
                };
                return fail(
                    column,
                    format!("the label is {what}; fill it in or drop the line"),
                );
            }
            let Ok(text) = std::str::from_utf8(field) else {
                let message = format!(
                    "the label '{}' is not UTF-8; convert the file",
                    shown(field)
                );
                return fail(column, message);
            };
            match (self.roles.labels.len(), number) {
                (1, _) => labels.push(text),
                (_, Some(number)) => numbers.push(number),
                (n, None) => {
                    let message = format!(
                        "'{}' is not a number, and {n} label columns must be; correct it, or \
                         choose one label column",
                        shown(field)
                    );
                    return fail(column, message);
                }
            }
        }
        if self.roles.labels.len() > 1 {
            labels.push_values(numbers);
        }
        Ok(())
    }

    fn bad_feature(&self, byte: usize, column: usize, field: &[u8]) -> Problem {
        let show = shown(field);
        let message = if field.is_empty() {
            "the field is empty; fill it in or drop the line".to_string()
        } else if let Some(number) = text::parse::<f64>(field) {
            let (what, remedy) = text::not_finite(number);
            format!("'{show}' is {what}; {remedy}replace it or drop the line")
        } else if field.contains(&b',') && text::parse::<f64>(&decimal_point(field)).is_some() {
            format!("'{show}' has a decimal comma; write numbers with a decimal point")
        } else {
            format!(
                "'{show}' is not a number; encode the column as numbers, drop it, or choose it as \
                 the label column"
            )
        };
        self.problem(byte, column, message)
    }

    fn problem(&self, byte: usize, column: usize, message: String) -> Problem {
        let name = self
            .names
            .map(|names| format!("column '{}': ", names[column]));
        Problem {
            byte,
            field: Some(column),
            message: format!("{}{message}", name.unwrap_or_default()),
        }
    }
}

fn decimal_point(field: &[u8]) -> Vec<u8> {
    field
        .iter()
        .map(|&byte| if byte == b',' { b'.' } else { byte })
        .collect()
}

#[cfg(test)]
mod tests;
