//! Labels as a file has them, and what they mean for a task.
//!
//! A file does not say whether `3` is the name of a class or a quantity, so a
//! reader keeps both: the text of each label, interned, and its number. Which
//! of the two is used is decided by [`Labels::resolve`].

mod builder;

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::Task;
use crate::error::Place;
use crate::linalg::Matrix;
use crate::{Error, Result};

pub(super) use builder::Builder;

/// Distinct labels above which their text is no longer kept: far more classes
/// than a kernel machine can learn, few enough to cost nothing.
const MAX_NAMES: usize = 65_536;

/// Distinct whole numbers up to which [`Task::Auto`] takes them for classes.
const MAX_AUTO_CLASSES: usize = 100;

/// Known classes that a message lists.
const LISTED: usize = 20;

/// The labels of a dataset, as the file has them.
///
/// ```
/// use lssvm::data::{Labels, Targets, Task};
/// let labels = Labels::from_text(["+1", "-1", "+1"]);
/// match labels.resolve(Task::Auto)? {
///     Targets::Classes { names, codes } => {
///         assert_eq!(names, ["-1", "+1"]);
///         assert_eq!(codes, [1, 0, 1]);
///     }
///     Targets::Values(_) => unreachable!("two whole numbers are classes"),
/// }
/// # Ok::<(), lssvm::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Labels {
    rows: usize,
    columns: usize,
    /// The distinct labels, each of which occurs, and for each row which it
    /// is; none if there are several columns or more than `MAX_NAMES` labels.
    text: Option<Interned>,
    /// The numbers, if all labels are finite numbers.
    values: Option<Matrix<f64>>,
    /// The first row whose label is no number, and that label.
    no_number: Option<(usize, String)>,
    source: Option<PathBuf>,
    column_names: Vec<String>,
    column_places: Vec<usize>,
    /// The names are those of all classes, in their order.
    settled: bool,
}

#[derive(Debug, Clone)]
struct Interned {
    names: Vec<String>,
    codes: Vec<u32>,
}

/// What tells all of some labels.
pub(super) enum Kept<'a> {
    /// Their numbers.
    Values(&'a Matrix<f64>),
    /// The distinct labels, and which each row has.
    Classes {
        names: &'a [String],
        codes: &'a [u32],
    },
}

/// What a model learns: classes or numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// One of several classes for each row.
    Classes {
        /// The classes as the file writes them; in numeric order if all are
        /// numbers, else in the order of their text.
        names: Vec<String>,
        /// For each row its class, an index into `names`.
        codes: Vec<u32>,
    },
    /// One or more numbers for each row.
    Values(Matrix<f64>),
}

impl Targets {
    /// How many numbers a model has to tell for each row.
    pub fn outputs(&self) -> usize {
        match self {
            Targets::Classes { names, .. } => names.len(),
            Targets::Values(values) => values.cols(),
        }
    }
}

impl Labels {
    /// Labels from their text.
    pub fn from_text<'a>(labels: impl IntoIterator<Item = &'a str>) -> Self {
        let mut builder = Builder::new(1);
        labels.into_iter().for_each(|label| builder.push(label));
        builder.finish()
    }

    /// Labels from numbers, one row a sample. A number that is not finite is
    /// an error.
    pub fn from_values(values: Matrix<f64>) -> Result<Self> {
        if let Some(at) = values.values().iter().position(|v| !v.is_finite()) {
            let (row, value) = (at / values.cols() + 1, values.values()[at]);
            return Err(Error::Data(format!(
                "the label of row {row} is {value}: labels must be finite; drop the row"
            )));
        }
        let mut text = None;
        if values.cols() == 1 {
            let mut seen = HashMap::new();
            let (mut names, mut codes) = (Vec::new(), Vec::with_capacity(values.rows()));
            for &value in values.values() {
                // -0 and 0 are the same class.
                let code = *seen.entry((value + 0.0).to_bits()).or_insert_with(|| {
                    names.push((value + 0.0).to_string());
                    (names.len() - 1) as u32
                });
                if names.len() > MAX_NAMES {
                    break;
                }
                codes.push(code);
            }
            text = (names.len() <= MAX_NAMES).then_some(Interned { names, codes });
        }
        Ok(Self {
            rows: values.rows(),
            columns: values.cols(),
            text,
            values: Some(values),
            no_number: None,
            source: None,
            column_names: Vec::new(),
            column_places: Vec::new(),
            settled: false,
        })
    }

    /// Labels of classes that are known: their names in their order, each once, and for
    /// each row an index into them. A class may have no row.
    ///
    /// ```
    /// use lssvm::data::{Labels, Targets, Task};
    /// let names = vec!["cold".to_string(), "10".to_string(), "9".to_string()];
    /// let labels = Labels::from_classes(names.clone(), vec![2, 0, 2])?;
    /// let codes = vec![2, 0, 2];
    /// assert_eq!(labels.resolve(Task::Auto)?, Targets::Classes { names, codes });
    /// # Ok::<(), lssvm::Error>(())
    /// ```
    pub fn from_classes(names: Vec<String>, codes: Vec<u32>) -> Result<Self> {
        if let Some(row) = codes.iter().position(|&code| code as usize >= names.len()) {
            return Err(Error::Data(format!(
                "row {} is of class {}, and there are {}; count classes from 0",
                row + 1,
                codes[row],
                names.len()
            )));
        }
        let first = codes.first().map(|&code| names[code as usize].clone());
        Ok(Self {
            rows: codes.len(),
            columns: 1,
            no_number: first.map(|name| (0, name)),
            text: Some(Interned { names, codes }),
            values: None,
            source: None,
            column_names: Vec::new(),
            column_places: Vec::new(),
            settled: true,
        })
    }

    /// Labels as a file has them: their names, each once, and for each row an index into
    /// them.
    pub(super) fn from_names(names: Vec<String>, codes: Vec<u32>) -> Result<Self> {
        let distinct: HashSet<&String> = names.iter().collect();
        if distinct.len() != names.len() || names.len() > MAX_NAMES {
            return Err(Error::Data(format!(
                "{} names, of which {} differ and at most {MAX_NAMES} may be; give each once",
                names.len(),
                distinct.len()
            )));
        }
        let rows: Vec<usize> = (0..codes.len()).collect();
        let mut labels = Self::from_classes(names, codes)?;
        labels.settled = false;
        Ok(labels.select(&rows))
    }

    /// What has to be kept of the labels to make them again: their numbers if these tell
    /// all, else their text.
    pub(super) fn kept(&self) -> Result<Kept<'_>> {
        let written = |name: &String| number(name).is_some_and(|v| (v + 0.0).to_string() == *name);
        let plain = |text: &Interned| text.names.iter().all(written);
        if let Some(values) = &self.values
            && self.text.as_ref().is_none_or(plain)
        {
            return Ok(Kept::Values(values));
        }
        let Interned { names, codes } = self.interned()?;
        Ok(Kept::Classes { names, codes })
    }

    /// Labels from class names and, for each row, an index into them.
    pub(super) fn from_codes(names: &[String], codes: &[u8]) -> Self {
        let mut builder = Builder::new(1);
        codes
            .iter()
            .for_each(|&code| builder.push(&names[usize::from(code)]));
        builder.finish()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Number of label columns: more than one for several targets a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Names of the label columns; empty if the file has no header.
    pub fn column_names(&self) -> &[String] {
        &self.column_names
    }

    /// Where the label columns are in the table, counted from 1 without the column of
    /// weights; empty if the labels have a place of their own.
    pub fn column_places(&self) -> &[usize] {
        &self.column_places
    }

    /// `columns`: counted from 0.
    pub(super) fn with_places(mut self, columns: impl Iterator<Item = usize>) -> Self {
        self.column_places = columns.map(|column| column + 1).collect();
        self
    }

    pub(super) fn with_source(mut self, source: &Path, column_names: Vec<String>) -> Self {
        self.source = Some(source.to_path_buf());
        self.column_names = column_names;
        self
    }

    /// Decides what the labels mean.
    ///
    /// [`Task::Auto`] takes several columns for numbers, text for classes,
    /// whole numbers with at most 100 distinct values for classes, and other
    /// numbers for numbers. Labels that are numbers are the same class if they
    /// are the same number (`1` and `1.0`); the class has the name that comes
    /// first.
    pub fn resolve(&self, task: Task) -> Result<Targets> {
        match task {
            Task::Classification => self.classes(),
            Task::Regression => self.values(self.columns).cloned().map(Targets::Values),
            Task::Auto if self.looks_like_classes() => self.classes(),
            Task::Auto => self.values(self.columns).cloned().map(Targets::Values),
        }
    }

    fn looks_like_classes(&self) -> bool {
        match (&self.values, &self.text) {
            (None, _) => self.columns == 1,
            (Some(_), None) => false,
            (Some(values), Some(_)) => {
                let mut distinct = values.values().to_vec();
                distinct.sort_unstable_by(f64::total_cmp);
                distinct.dedup();
                distinct.len() <= MAX_AUTO_CLASSES && distinct.iter().all(|v| v.fract() == 0.0)
            }
        }
    }

    fn classes(&self) -> Result<Targets> {
        let Interned { names, codes } = self.interned()?;
        if self.settled {
            let (names, codes) = (names.clone(), codes.clone());
            return Ok(Targets::Classes { names, codes });
        }
        let numbers: Option<Vec<f64>> = names.iter().map(|name| number(name)).collect();
        let compare = |&a: &usize, &b: &usize| match &numbers {
            Some(numbers) => numbers[a]
                .partial_cmp(&numbers[b])
                .unwrap_or(Ordering::Equal),
            None => names[a].cmp(&names[b]),
        };
        // A stable sort keeps the name that came first at the head of those
        // that are the same number.
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by(compare);
        let mut sorted: Vec<usize> = Vec::new();
        let mut new_code = vec![0; names.len()];
        for old in order {
            if sorted
                .last()
                .is_none_or(|last| compare(last, &old) != Ordering::Equal)
            {
                sorted.push(old);
            }
            new_code[old] = (sorted.len() - 1) as u32;
        }
        Ok(Targets::Classes {
            names: sorted.into_iter().map(|old| names[old].clone()).collect(),
            codes: codes.iter().map(|&code| new_code[code as usize]).collect(),
        })
    }

    /// For each row the index of its label among the classes of a model.
    ///
    /// A label is sought by its text, then by its number: `1`, `+1` and `1.0`
    /// are the same. One that the model does not know is an error.
    ///
    /// ```
    /// use lssvm::data::Labels;
    /// let classes = ["-1".to_string(), "+1".to_string()];
    /// let codes = Labels::from_text(["1", "-1"]).codes_for(&classes)?;
    /// assert_eq!(codes, [1, 0]);
    /// # Ok::<(), lssvm::Error>(())
    /// ```
    pub fn codes_for(&self, classes: &[String]) -> Result<Vec<u32>> {
        let Interned { names, codes } = self.interned()?;
        let same_number = |name: &str| {
            let value = number(name)?;
            classes
                .iter()
                .position(|class| number(class) == Some(value))
        };
        let mut new_code = Vec::with_capacity(names.len());
        for (old, name) in names.iter().enumerate() {
            let exact = classes.iter().position(|class| class == name);
            let Some(new) = exact.or_else(|| same_number(name)) else {
                let row = codes
                    .iter()
                    .position(|&code| code as usize == old)
                    .unwrap_or(0)
                    + 1;
                let listed = classes[..classes.len().min(LISTED)].join(", ");
                let more = if classes.len() > LISTED { ", ..." } else { "" };
                return Err(self.problem(format!(
                    "row {row}: the label '{name}' is not a class of the model \
                     ({listed}{more}); correct it, drop the row, or train with that class"
                )));
            };
            new_code.push(new as u32);
        }
        Ok(codes.iter().map(|&code| new_code[code as usize]).collect())
    }

    /// An error about these labels, which begins with their file.
    fn problem(&self, problem: String) -> Error {
        match &self.source {
            Some(path) => Error::file(path, Place::Whole, problem),
            None => Error::Data(problem),
        }
    }

    fn interned(&self) -> Result<&Interned> {
        self.text.as_ref().ok_or_else(|| {
            let problem = if self.columns > 1 {
                format!(
                    "there are {} label columns, and classes need one",
                    self.columns
                )
            } else {
                format!("there are more than {MAX_NAMES} distinct labels, too many for classes")
            };
            self.problem(format!("{problem}; choose the label column, or regression"))
        })
    }

    /// The labels as numbers, `outputs` for each row; text, or another number
    /// of columns, is an error.
    pub fn values(&self, outputs: usize) -> Result<&Matrix<f64>> {
        if outputs != self.columns {
            return Err(self.problem(format!(
                "there are {} label columns, and the model has {outputs} outputs; \
                 choose the label columns",
                self.columns
            )));
        }
        self.values.as_ref().ok_or_else(|| {
            let (row, text) = self.no_number.clone().unwrap_or_default();
            self.problem(format!(
                "row {}: the label '{text}' is not a number; correct it, or choose the \
                 label column, or classification",
                row + 1
            ))
        })
    }

    /// The labels of these rows, in this order.
    pub fn select(&self, rows: &[usize]) -> Self {
        let text = self.text.as_ref().map(|text| {
            if self.settled {
                let codes = rows.iter().map(|&row| text.codes[row]).collect();
                let names = text.names.clone();
                return Interned { names, codes };
            }
            // Only names that occur are kept, so that a class without rows is
            // not learned.
            let mut new_code = vec![None; text.names.len()];
            let mut names = Vec::new();
            let codes = rows.iter().map(|&row| {
                let old = text.codes[row] as usize;
                *new_code[old].get_or_insert_with(|| {
                    names.push(text.names[old].clone());
                    (names.len() - 1) as u32
                })
            });
            let codes = codes.collect();
            Interned { names, codes }
        });
        let mut selected = Self {
            rows: rows.len(),
            columns: self.columns,
            text,
            values: self.values.as_ref().map(|values| values.select_rows(rows)),
            no_number: None,
            source: self.source.clone(),
            column_names: self.column_names.clone(),
            column_places: self.column_places.clone(),
            settled: self.settled,
        };
        if selected.values.is_none() && self.columns == 1 && !self.settled {
            selected.find_numbers();
        }
        selected
    }

    /// Sets `values`, or `no_number`, from the text.
    fn find_numbers(&mut self) {
        let Some(text) = &self.text else { return };
        let numbers: Vec<Option<f64>> = text.names.iter().map(|name| number(name)).collect();
        let mut codes = text.codes.iter().map(|&code| code as usize);
        if let Some(row) = codes.position(|code| numbers[code].is_none()) {
            self.no_number = Some((row, text.names[text.codes[row] as usize].clone()));
        } else {
            let values = text
                .codes
                .iter()
                .map(|&code| numbers[code as usize].unwrap_or(0.0));
            self.values = Some(Matrix::from_vec(self.rows, 1, values.collect()));
        }
    }
}

/// The finite number that a text stands for.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|v: &f64| v.is_finite())
}

#[cfg(test)]
mod tests;
