//! Text tables: CSV and its relatives.
//!
//! [`sniff`] finds out what separates the columns and whether the first line
//! names them; [`columns`] decides which are features, labels and weights;
//! this file reads the rows, in chunks on all threads. Fields may be quoted. A file
//! with quotes is read as one chunk, since a quoted field may hold line ends.

mod columns;
mod sniff;

use std::ops::Range;
use std::path::Path;

use csv::ByteRecord;
use rayon::prelude::*;

use self::columns::Roles;
use super::bytes::check_memory;
use super::labels::Builder;
use super::text::{self, Problem, shown};
use super::{Dataset, ReadOptions};
use crate::error::Place;
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// The separator that stands for any run of spaces and tabs.
const WHITESPACE: u8 = b' ';

/// The rows of a table.
pub(super) fn parse<T: Scalar>(
    path: &Path,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<Dataset<T>> {
    let text = text::without_bom(bytes);
    let delimiter = options.delimiter.unwrap_or_else(|| sniff::delimiter(text));
    let sniffed = sniff::head(text, delimiter, options.header);
    let width = sniffed.width;
    let roles = columns::roles(path, width, sniffed.names.as_deref(), options)?;
    let Some(start) = sniffed.first_row else {
        let problem = "there are no rows; check how the file was written";
        return Err(Error::file(path, Place::Whole, problem));
    };

    let quoted = text.contains(&b'"');
    let end = match options.max_rows {
        Some(rows) if !quoted => start + text::first_rows(&text[start..], rows, |_| true).len(),
        _ => text.len(),
    };
    let chunks: Vec<Range<usize>> = if quoted {
        std::iter::once(start..end).collect()
    } else {
        let chunks = text::chunks(&text[start..end]).into_iter();
        chunks
            .map(|chunk| start + chunk.start..start + chunk.end)
            .collect()
    };
    // A quoted line end makes two lines of a row: an upper bound then.
    let rows = options.rows(text::lines(&text[start..end]).count());
    check_memory::<T>(path, rows, roles.features.len(), options)?;

    let reader = Reader {
        text,
        delimiter,
        width,
        names: sniffed.names.as_deref(),
        roles: &roles,
        max_rows: options.max_rows.unwrap_or(usize::MAX),
    };
    let parts: Vec<Result<_, Problem>> = chunks
        .into_par_iter()
        .map(|chunk| reader.read::<T>(chunk))
        .collect();
    let parts: Result<Vec<Part<T>>, Problem> = parts.into_iter().collect();
    let parts = parts.map_err(|problem| problem.at(path, text))?;
    let mut values = Vec::with_capacity(parts.iter().map(|part| part.values.len()).sum());
    let mut labels = Builder::new(roles.labels.len().max(1));
    let mut weights = Vec::new();
    for part in parts {
        // Each part is freed as soon as it is joined, so the values are never
        // held twice.
        values.extend_from_slice(&part.values);
        labels.append(part.labels);
        weights.extend(part.weights);
    }
    let rows = values.len() / roles.features.len();
    let mut data = Dataset::new(path, Matrix::from_vec(rows, roles.features.len(), values));
    let named = |columns: &[usize]| -> Option<Vec<String>> {
        let names = sniffed.names.as_ref()?;
        Some(
            columns
                .iter()
                .map(|&column| names[column].clone())
                .collect(),
        )
    };
    data.feature_names = named(&roles.features);
    if let Some(column) = roles.weights {
        data.weights = Some(weights);
        data.weight_place = Some(column + 1);
        data.weight_name = named(&[column]).and_then(|names| names.into_iter().next());
    }
    if !roles.labels.is_empty() {
        let names = named(&roles.labels).unwrap_or_default();
        // Where they are if the weights are left out, as they may be next time.
        let places = roles.labels.iter().map(|&column| {
            let after = roles.weights.is_some_and(|weights| weights < column);
            column - usize::from(after)
        });
        let labels = labels.finish().with_source(path, names);
        data.labels = Some(labels.with_places(places));
    }
    Ok(data)
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
struct Part<T> {
    values: Vec<T>,
    labels: Builder,
    weights: Vec<f64>,
}

impl Reader<'_> {
    fn read<T: Scalar>(&self, part: Range<usize>) -> Result<Part<T>, Problem> {
        let (mut values, mut weights) = (Vec::new(), Vec::new());
        let mut labels = Builder::new(self.roles.labels.len().max(1));
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
                    _ => return Err(self.bad_feature::<T>(byte, column, field)),
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

    fn bad_feature<T: Scalar>(&self, byte: usize, column: usize, field: &[u8]) -> Problem {
        let show = shown(field);
        let message = if field.is_empty() {
            "the field is empty; fill it in or drop the line".to_string()
        } else if text::parse::<f64>(field).is_some() {
            format!(
                "'{show}' is not a finite number in {:?}; replace it or drop the line",
                T::PRECISION
            )
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
