//! Tables in columns: Parquet files, and Arrow IPC files and streams.
//!
//! ```text
//! parquet ─ pages (thrift, unpack) ─┐
//! ipc ──────────────────────────────┴─ batches of Arrow arrays ─ values ─ rows
//! ```
//!
//! Each column has the role that it would have in a CSV file with the same names
//! ([`Roles`]); a column of lists of numbers, all of one length, is as many columns. The
//! crates parquet and arrow-ipc decode; what they would trust is checked before ([`thrift`],
//! [`pages`], [`ipc`]), and if they panic all the same that is an error like any other
//! ([`guarded`]).

mod ipc;
mod pages;
mod parquet;
mod thrift;
mod unpack;
mod values;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use arrow_array::{Array, RecordBatch};
use arrow_schema::Fields;
use rayon::prelude::*;

use self::ipc::Ipc;
use self::parquet::Parquet;
use self::values::{Kind, Trouble, numbers, texts};
use super::bytes::check_memory;
use super::convert::Progress;
use super::labels::Builder;
use super::options::DEFAULT_MAX_BYTES;
use super::source::Source;
use super::store::Writer;
use super::table::{Part, Roles, roles};
use super::text::{self, shown};
use super::{Dataset, Format, Labelled, ReadOptions};
use crate::error::Place;
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// Values that are decoded at once; few in tests, so that there are several batches.
const BATCH_VALUES: usize = if cfg!(test) { 1 << 6 } else { 1 << 21 };

/// Rows that are decoded at once at most.
const BATCH_ROWS: usize = 1 << 16;

/// What is kept of each element of lists: a name, its place, its role.
const COLUMN_BYTES: u64 = 128;

/// What pandas calls columns that are names of rows, and so no features.
const PANDAS_INDEX: &str = "__index_level_";

/// A file of columns that is read from its beginning to its end.
trait Batches {
    /// The columns.
    fn fields(&self) -> &Fields;

    /// How many rows the file says it has.
    fn rows(&self) -> u64;

    /// How many values each list of a column has, if the file says that all have as many.
    fn list_length(&self, field: usize) -> Option<u64>;

    /// Reads only these columns from now on, in their order, and so many rows at once if the
    /// file leaves that open.
    fn choose(&mut self, fields: &[usize], batch_rows: usize) -> Result<()>;

    /// The next rows; none behind the last.
    fn next(&mut self) -> Result<Option<RecordBatch>>;
}

/// Reads all rows into memory.
pub(super) fn read<T: Scalar>(
    source: Source,
    format: Format,
    options: &ReadOptions,
) -> Result<Dataset<T>> {
    let mut table = Table::open(source, format, options)?;
    let rows = options.rows(table.rows);
    let width = table.roles.features.len();
    check_memory::<T>(&table.path, rows, width, options)?;
    let mut values: Vec<T> = Vec::new();
    values.try_reserve_exact(rows * width).map_err(|_| {
        let problem = format!("there is no room for {rows} rows of {width} features");
        Error::file(&table.path, Place::Whole, problem)
    })?;
    let (mut labels, mut weights) = (table.roles.no_labels(), Vec::new());
    while let Some(part) = table.next::<T>(rows - values.len() / width)? {
        values.extend_from_slice(&part.values);
        labels.append(part.labels);
        weights.extend(part.weights);
    }
    let features = Matrix::from_vec(values.len() / width, width, values);
    Ok(table.about(labels, weights).with_features(features))
}

/// Writes all rows to a file of our own, batch by batch.
pub(super) fn convert<T: Scalar>(
    source: Source,
    format: Format,
    out: &Path,
    options: &ReadOptions,
    progress: Progress<'_>,
) -> Result<()> {
    let mut table = Table::open(source, format, options)?;
    let rows = options.rows(table.rows);
    let width = table.roles.features.len();
    check_memory::<T>(&table.path, 1, width, options)?;
    let about = table.about(table.roles.no_labels(), Vec::new());
    let mut writer = Writer::new(out, &about, width, T::PRECISION)?;
    let (mut labels, mut weights) = (table.roles.no_labels(), Vec::new());
    while let Some(part) = table.next::<T>(rows - writer.rows())? {
        writer.push(&part.values)?;
        labels.append(part.labels);
        weights.extend(part.weights);
        progress(writer.rows() as f64 / rows as f64)?;
    }
    writer.finish(&table.about(labels, weights))
}

/// One column as the roles count them: a column of the file, or an element of its lists.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Column {
    field: usize,
    element: usize,
}

/// A file whose columns have their roles.
struct Table {
    path: PathBuf,
    batches: Box<dyn Batches>,
    /// How many rows there are.
    rows: usize,
    columns: Vec<Column>,
    names: Vec<String>,
    roles: Roles,
    /// The columns of the file that are read, and how many values each has in a row.
    chosen: Vec<(usize, usize)>,
    batch_rows: usize,
    /// What was decoded and not given out yet.
    pending: VecDeque<RecordBatch>,
    rows_done: usize,
}

impl Table {
    fn open(source: Source, format: Format, options: &ReadOptions) -> Result<Self> {
        let path = source.path().to_path_buf();
        let most = options.max_bytes.unwrap_or(DEFAULT_MAX_BYTES);
        let mut batches: Box<dyn Batches> = match format {
            Format::Parquet => Box::new(Parquet::open(source, most)?),
            _ => Box::new(Ipc::open(source, most)?),
        };
        let rows = usize::try_from(batches.rows()).unwrap_or(usize::MAX);
        if rows == 0 {
            let problem = "there are no rows; check how the file was written";
            return Err(Error::file(&path, Place::Whole, problem));
        }
        let kinds = kinds(&path, batches.as_ref(), most)?;
        let (columns, names) = flat(batches.fields(), &kinds);
        let roles = roles(&path, columns.len(), Some(&names), options)?;
        check_kinds(&path, batches.fields(), &kinds, &columns, &roles)?;
        let used = roles
            .features
            .iter()
            .chain(&roles.labels)
            .chain(&roles.weights);
        let mut fields: Vec<usize> = used.map(|&column| columns[column].field).collect();
        fields.sort_unstable();
        fields.dedup();
        let width = |field: usize| match kinds[field] {
            Kind::Lists(Some(length)) => length,
            _ => 1,
        };
        let values: usize = fields.iter().map(|&field| width(field)).sum();
        let batch_rows = (BATCH_VALUES / values.max(1)).clamp(1, BATCH_ROWS);
        batches.choose(&fields, batch_rows)?;
        Ok(Self {
            path,
            batches,
            rows,
            columns,
            names,
            roles,
            chosen: fields.iter().map(|&field| (field, width(field))).collect(),
            batch_rows,
            pending: VecDeque::new(),
            rows_done: 0,
        })
    }

    fn about(&self, labels: Builder, weights: Vec<f64>) -> Labelled<()> {
        self.roles
            .about(&self.path, Some(&self.names), labels, weights)
    }

    /// The next rows, `most` of them at most; none behind the last.
    fn next<T: Scalar>(&mut self, most: usize) -> Result<Option<Part<T>>> {
        if most == 0 {
            return Ok(None);
        }
        let batch = loop {
            match self.pending.pop_front() {
                Some(batch) if batch.num_rows() > 0 => break batch,
                Some(_) => {}
                None => match self.batches.next()? {
                    Some(batch) => self.pending.push_back(batch),
                    None => return self.all_done().map(|()| None),
                },
            }
        };
        let rows = batch.num_rows().min(self.batch_rows);
        if rows < batch.num_rows() {
            let rest = batch.slice(rows, batch.num_rows() - rows);
            self.pending.push_front(rest);
        }
        let batch = batch.slice(0, rows.min(most));
        let path = self.path.clone();
        let part = guarded(&path, || self.part(&batch))?;
        self.rows_done += batch.num_rows();
        Ok(Some(part))
    }

    /// There are no fewer rows than the file says.
    fn all_done(&self) -> Result<()> {
        match self.rows_done == self.rows {
            true => Ok(()),
            false => Err(damaged(&self.path, "it has fewer rows than it says")),
        }
    }

    /// Features, labels and weights of a batch.
    fn part<T: Scalar>(&self, batch: &RecordBatch) -> Result<Part<T>> {
        let (rows, width) = (batch.num_rows(), self.roles.features.len());
        let array = |column: usize| -> Result<(&dyn Array, usize)> {
            let field = self.columns[column].field;
            let at = self.chosen.iter().position(|&(chosen, _)| chosen == field);
            let array = at.and_then(|at| batch.columns().get(at));
            let array = array.ok_or_else(|| damaged(&self.path, "a batch lacks a column"))?;
            Ok((array.as_ref(), at.map_or(1, |at| self.chosen[at].1)))
        };
        // Each column of the file once, though lists are many features.
        let mut fields: Vec<usize> = Vec::new();
        let mut places = Vec::with_capacity(width);
        for &column in &self.roles.features {
            let Column { field, element } = self.columns[column];
            if fields
                .last()
                .is_none_or(|&last| self.columns[last].field != field)
            {
                fields.push(column);
            }
            places.push((fields.len() - 1, element));
        }
        let arrays: Result<Vec<_>> = fields.iter().map(|&column| array(column)).collect();
        let decoded: Vec<Result<Vec<T>, Trouble>> = arrays?
            .into_par_iter()
            .map(|(array, width)| numbers(array, width))
            .collect();
        let decoded: Vec<Vec<T>> = std::iter::zip(&fields, decoded)
            .map(|(&column, numbers)| numbers.map_err(|trouble| self.trouble(column, trouble)))
            .collect::<Result<_>>()?;
        let mut values = vec![T::ZERO; rows * width];
        for (row, out) in values.chunks_exact_mut(width).enumerate() {
            for (to, &(own, element)) in out.iter_mut().zip(&places) {
                let column = &decoded[own];
                *to = column[row * (column.len() / rows) + element];
            }
        }
        let weights = match self.roles.weights {
            Some(column) => self.weights(column, array(column)?.0)?,
            None => Vec::new(),
        };
        let mut labels = self.roles.no_labels();
        match self.roles.labels[..] {
            [] => {}
            [column] => self.names_of(column, array(column)?.0, &mut labels)?,
            ref columns => {
                let mut numbers_of = Vec::new();
                for &column in columns {
                    let numbers = numbers::<f64>(array(column)?.0, 1);
                    numbers_of.push(numbers.map_err(|trouble| self.trouble(column, trouble))?);
                }
                for row in 0..rows {
                    labels.push_values(numbers_of.iter().map(|numbers| numbers[row]));
                }
            }
        }
        Ok(Part {
            values,
            labels,
            weights,
        })
    }

    fn weights(&self, column: usize, array: &dyn Array) -> Result<Vec<f64>> {
        let weights = numbers::<f64>(array, 1).map_err(|trouble| self.trouble(column, trouble))?;
        match weights.iter().position(|&weight| weight < 0.0) {
            None => Ok(weights),
            Some(row) => {
                let problem = format!(
                    "the weight {} is not a number from 0 up; correct it or drop the row",
                    weights[row]
                );
                Err(self.trouble(column, Trouble::new(row, problem)))
            }
        }
    }

    fn names_of(&self, column: usize, array: &dyn Array, labels: &mut Builder) -> Result<()> {
        let done = texts(array, &mut |row, name| {
            let number = text::parse::<f64>(name.as_bytes());
            if name.is_empty() || number.is_some_and(|number| !number.is_finite()) {
                let what = if name.is_empty() { "empty" } else { name };
                let problem = format!("the label is {what}; fill it in or drop the row");
                return Err(Trouble::new(row, problem));
            }
            labels.push(name);
            Ok(())
        });
        done.map_err(|trouble| self.trouble(column, trouble))
    }

    fn trouble(&self, column: usize, Trouble { row, problem }: Trouble) -> Error {
        let field = self.columns[column].field;
        let name = self.batches.fields()[field].name();
        let problem = format!("column '{}': {problem}", shown(name.as_bytes()));
        let row = Place::Row((self.rows_done + row + 1) as u64);
        Error::file(&self.path, row, problem)
    }
}

/// What each column of a file can serve for. Lists of any length must have one here.
fn kinds(path: &Path, batches: &dyn Batches, most: u64) -> Result<Vec<Kind>> {
    let fields = batches.fields();
    let mut kinds: Vec<Kind> = Vec::with_capacity(fields.len());
    let mut width: usize = 0;
    for (at, field) in fields.iter().enumerate() {
        let kind = match Kind::of(field.data_type()) {
            Kind::Lists(length) => {
                let length = length.or_else(|| usize::try_from(batches.list_length(at)?).ok());
                match length {
                    Some(length @ 1..) => Kind::Lists(Some(length)),
                    _ => {
                        let problem = format!(
                            "column '{}': the lists have not all the same number of values, or \
                             some are missing; make them equally long, drop their rows, or drop \
                             the column",
                            shown(field.name().as_bytes())
                        );
                        return Err(Error::file(path, Place::Whole, problem));
                    }
                }
            }
            kind => kind,
        };
        if let Kind::Lists(Some(length)) = kind {
            width = width.saturating_add(length);
            let needed = COLUMN_BYTES.saturating_mul(width as u64);
            if needed > most {
                return Err(Error::Memory {
                    what: format!("{}: the names of {width} features", path.display()),
                    needed,
                    available: most,
                    remedy: "drop columns of lists, or allow more memory".to_string(),
                });
            }
        }
        kinds.push(kind);
    }
    Ok(kinds)
}

/// The columns and their names, those of lists one by one. What pandas keeps for itself is
/// left out.
fn flat(fields: &Fields, kinds: &[Kind]) -> (Vec<Column>, Vec<String>) {
    let (mut columns, mut names) = (Vec::new(), Vec::new());
    for (field, (about, kind)) in fields.iter().zip(kinds).enumerate() {
        if about.name().starts_with(PANDAS_INDEX) {
            continue;
        }
        if let Kind::Lists(Some(length)) = kind {
            columns.extend((0..*length).map(|element| Column { field, element }));
            names.extend((0..*length).map(|element| format!("{}[{element}]", about.name())));
        } else {
            columns.push(Column { field, element: 0 });
            names.push(about.name().clone());
        }
    }
    (columns, names)
}

/// Whether the columns can be what they are to be.
fn check_kinds(
    path: &Path,
    fields: &Fields,
    kinds: &[Kind],
    columns: &[Column],
    roles: &Roles,
) -> Result<()> {
    let check = |column: usize, is_good: fn(&Kind) -> bool, remedy: &str| -> Result<()> {
        let Column { field, .. } = columns[column];
        let what = match &kinds[field] {
            kind if is_good(kind) => return Ok(()),
            Kind::Numbers => "is numbers".to_string(),
            Kind::Text => "is text".to_string(),
            Kind::Lists(_) => "has lists of numbers".to_string(),
            Kind::Other(name) => format!("is of type {name}"),
        };
        let name = shown(fields[field].name().as_bytes());
        let problem = format!("column '{name}' {what}, {remedy}");
        Err(Error::file(path, Place::Whole, problem))
    };
    for &column in &roles.features {
        let remedy = "not a number in each row; make numbers of it, drop it, or choose it as the \
                      label column if it has the classes";
        let is_good = |kind: &Kind| matches!(kind, Kind::Numbers | Kind::Lists(_));
        check(column, is_good, remedy)?;
    }
    if let [column] = roles.labels[..] {
        let remedy = "and a label is one text or number; choose another label column, or read \
                      the file without labels";
        let is_good = |kind: &Kind| matches!(kind, Kind::Numbers | Kind::Text);
        check(column, is_good, remedy)?;
    } else {
        for &column in &roles.labels {
            let remedy = "and several label columns must be numbers; choose one label column";
            check(column, |kind| *kind == Kind::Numbers, remedy)?;
        }
    }
    if let Some(column) = roles.weights {
        let remedy = "and weights are numbers; choose another column of weights";
        check(column, |kind| *kind == Kind::Numbers, remedy)?;
    }
    Ok(())
}

/// The error for a file that is not what it should be.
fn damaged(path: &Path, problem: &str) -> Error {
    let problem = format!("the file is damaged: {problem}; get it again, or write it again");
    Error::file(path, Place::Whole, problem)
}

/// What `f` returns; if it panics, which decoders of hostile bytes may, an error.
///
/// Nothing that `f` was working on may be used after that. The panic hook, which belongs to
/// the program, is still told.
fn guarded<R>(path: &Path, f: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(damaged(path, text.unwrap_or("it cannot be decoded")))
    })
}
