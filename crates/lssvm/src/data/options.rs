//! What a caller can say about a file before it is read.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Place;
use crate::{Error, Result};

/// Bytes of features that are allocated when [`ReadOptions::max_bytes`] is not
/// set: a million rows of a thousand features in `f64`. One line of hostile
/// LIBSVM text can ask for more than any machine has.
pub const DEFAULT_MAX_BYTES: u64 = 8_000_000_000;

/// The file formats that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// MNIST's binary format.
    Idx,
    /// CIFAR-10's binary version.
    Cifar10,
    /// Sparse text: `label index:value ...`
    Libsvm,
    /// A text table, separated by commas, tabs, semicolons, bars or spaces.
    Csv,
    /// One NumPy array.
    Npy,
    /// Several NumPy arrays.
    Npz,
    /// Our own, as `lssvm convert` makes it.
    Lssvm,
    /// Columns in row groups, read by the feature `parquet`.
    Parquet,
    /// Arrow IPC, as a file (Feather) or a stream, read by the feature `parquet`.
    Arrow,
}

impl Format {
    const ALL: [(Format, &str); 9] = [
        (Format::Idx, "idx"),
        (Format::Cifar10, "cifar10"),
        (Format::Libsvm, "libsvm"),
        (Format::Csv, "csv"),
        (Format::Npy, "npy"),
        (Format::Npz, "npz"),
        (Format::Lssvm, "lssvm"),
        (Format::Parquet, "parquet"),
        (Format::Arrow, "arrow"),
    ];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) = Self::ALL
            .iter()
            .find(|(format, _)| format == self)
            .unwrap_or(&Self::ALL[0]);
        f.write_str(name)
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(format, _)| *format).ok_or_else(|| {
            let requirement =
                "must be one of idx, cifar10, libsvm, csv, npy, npz, lssvm, parquet, arrow";
            Error::parameter("format", text, requirement)
        })
    }
}

/// What is to be learned from the labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Decided by the labels; see [`Labels::resolve`](super::Labels::resolve).
    #[default]
    Auto,
    /// Labels are names of classes.
    Classification,
    /// Labels are numbers.
    Regression,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Task::Auto => "auto",
            Task::Classification => "classification",
            Task::Regression => "regression",
        })
    }
}

impl FromStr for Task {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Task::Auto),
            "classification" => Ok(Task::Classification),
            "regression" => Ok(Task::Regression),
            _ => {
                let requirement = "must be auto, classification or regression";
                Err(Error::parameter("task", text, requirement))
            }
        }
    }
}

/// A column of a table, by name or by place.
///
/// Places count from 1, as in error messages and spreadsheets; -1 is the last
/// column. Where the header has the number as a name, that column is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Column {
    /// 1 is the first column, -1 the last.
    Index(i64),
    /// As the header has it.
    Name(String),
}

impl Column {
    /// The place among `width` columns, counted from 0, of a column that is
    /// given by its index.
    pub(super) fn place(&self, width: usize, path: &Path) -> Result<usize> {
        let at = match *self {
            Column::Index(index @ 1..) => usize::try_from(index - 1).ok(),
            Column::Index(index @ ..0) => usize::try_from(index.unsigned_abs())
                .ok()
                .and_then(|back| width.checked_sub(back)),
            Column::Index(0) | Column::Name(_) => None,
        };
        at.filter(|&at| at < width).ok_or_else(|| {
            let problem = format!(
                "there is no column {self}: the table has {width}; columns count from 1, and -1 \
                 is the last"
            );
            Error::file(path, Place::Whole, problem)
        })
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Column::Index(index) => write!(f, "{index}"),
            Column::Name(name) => f.write_str(name),
        }
    }
}

impl FromStr for Column {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse() {
            Ok(index) => Column::Index(index),
            Err(_) => Column::Name(text.to_string()),
        })
    }
}

/// What a caller can say about a file before it is read. The default leaves
/// everything to what the file holds.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The format; recognised from the content if not given.
    pub format: Option<Format>,
    /// The label columns of a table (CSV, Parquet, Arrow or a two-dimensional NPY array).
    ///
    /// If not given, a table's label is the column whose header is `label`,
    /// `class`, `target` or `y`, else the last; an NPY array's labels are in
    /// the file beside it (`y.npy` for `X.npy`).
    pub labels: Option<Vec<Column>>,
    /// The column of a table that says what each row counts in training. Where
    /// [`n_features`](Self::n_features) says what to expect it may be missing.
    pub weights: Option<Column>,
    /// The file has no labels: every other column is a feature.
    pub no_labels: bool,
    /// Whether the first line of a table has the names of the columns;
    /// guessed if not given.
    pub header: Option<bool>,
    /// What separates the columns of a table; a space stands for any run of
    /// spaces and tabs. Guessed if not given.
    pub delimiter: Option<u8>,
    /// Number of features that a model expects. A table with exactly that
    /// many columns has no label; a LIBSVM file is padded up to it.
    pub n_features: Option<usize>,
    /// Names of the features that a model expects. In a table with a header
    /// they are found by name, in any order. One missing is an error, and so
    /// is a column that is neither a feature nor the label: ignoring it might
    /// ignore a misspelled feature.
    pub feature_names: Option<Vec<String>>,
    /// Names of the label columns that a model was trained with. In a table
    /// with a header they are the labels if all are there and
    /// [`labels`](Self::labels) chooses no others.
    pub label_names: Option<Vec<String>>,
    /// Where the labels were in the table that a model was trained with
    /// ([`Labels::column_places`](super::Labels::column_places)). They are there again
    /// in a table without names that has the features of the model and as many labels,
    /// if [`labels`](Self::labels) chooses no others.
    pub label_places: Vec<usize>,
    /// Name of the column of weights that a model was trained with. In a table with a
    /// header it is no feature, if it is there.
    pub weight_name: Option<String>,
    /// Where the weights were in the table that a model was trained with, counted from 1.
    /// They are there again in a table without names that has the features of the model,
    /// its labels and one column more.
    pub weight_place: Option<usize>,
    /// The index of the first feature in LIBSVM text, 0 or 1; if not given it
    /// is 0 if an index 0 occurs, else 1.
    pub index_base: Option<u32>,
    /// Read the first so many rows only (of each part).
    pub max_rows: Option<usize>,
    /// Refuse to allocate more for the features of one part;
    /// [`DEFAULT_MAX_BYTES`] if not given.
    pub max_bytes: Option<u64>,
}

impl ReadOptions {
    /// The options fit together.
    pub(super) fn check(&self) -> Result<()> {
        if self.labels.is_some() && self.no_labels {
            let requirement = "a file without labels has no label column; give one or the other";
            return Err(Error::parameter("no_labels", true, requirement));
        }
        if self.labels.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::parameter("labels", "[]", "name at least one column"));
        }
        if self.max_rows == Some(0) {
            return Err(Error::parameter("max_rows", 0, "must be at least 1"));
        }
        match self.index_base {
            Some(base) if base > 1 => Err(Error::parameter("index-base", base, "must be 0 or 1")),
            _ => Ok(()),
        }
    }

    /// Which of so many columns have the labels that a model was trained with, counted
    /// from 0; none if a table of this width is not like the one of the training.
    pub(super) fn known_labels(&self, width: usize) -> Option<Vec<usize>> {
        let labels = self.label_places.len();
        if labels == 0 || self.n_features?.checked_add(labels)? != width {
            return None;
        }
        let column = |place: &usize| place.checked_sub(1).filter(|&column| column < width);
        self.label_places.iter().map(column).collect()
    }

    /// Which of so many columns has the weights that a model was trained with, counted
    /// from 0; none if a table of this width is not like the one of the training.
    pub(super) fn known_weights(&self, width: usize) -> Option<usize> {
        let others = self.n_features?.checked_add(self.label_places.len())?;
        let column = self.weight_place?.checked_sub(1)?;
        (others.checked_add(1)? == width && column < width).then_some(column)
    }

    /// How many of `rows` rows are read.
    pub(super) fn rows(&self, rows: usize) -> usize {
        self.max_rows.map_or(rows, |max| max.min(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_and_write() {
        for (format, name) in Format::ALL {
            assert_eq!(name.parse::<Format>().unwrap(), format);
            assert_eq!(format.to_string(), name);
            assert_eq!(
                serde_json::to_string(&format).unwrap(),
                format!("\"{name}\"")
            );
        }
        for task in [Task::Auto, Task::Classification, Task::Regression] {
            assert_eq!(task.to_string().parse::<Task>().unwrap(), task);
            assert_eq!(serde_json::to_string(&task).unwrap(), format!("\"{task}\""));
        }
        assert!(
            "x".parse::<Task>()
                .unwrap_err()
                .to_string()
                .contains("classification")
        );
        assert!(
            "x".parse::<Format>()
                .unwrap_err()
                .to_string()
                .contains("libsvm")
        );
        assert_eq!("-1".parse(), Ok(Column::Index(-1)));
        assert_eq!("species".parse(), Ok(Column::Name("species".into())));
    }

    #[test]
    fn options_that_contradict_are_refused() {
        let both = ReadOptions {
            labels: Some(vec![Column::Index(1)]),
            no_labels: true,
            ..Default::default()
        };
        assert!(
            both.check()
                .unwrap_err()
                .to_string()
                .contains("one or the other")
        );
        let base = ReadOptions {
            index_base: Some(2),
            ..Default::default()
        };
        assert_eq!(
            base.check().unwrap_err().to_string(),
            "index-base = 2: must be 0 or 1"
        );
        let none = ReadOptions {
            max_rows: Some(0),
            ..Default::default()
        };
        assert!(none.check().is_err());
    }
}
