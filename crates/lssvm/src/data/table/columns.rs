//! Which columns of a table are features, which are labels, and which has the weights.

use std::path::Path;

use crate::data::labels::Builder;
use crate::data::{Column, Labelled, ReadOptions};
use crate::error::Place;
use crate::{Error, Result};

/// What label columns are usually called.
pub const LABEL_NAMES: [&str; 4] = ["label", "class", "target", "y"];

/// Columns in the order in which a dataset has them, counted from 0.
#[derive(Debug, PartialEq)]
pub(in crate::data) struct Roles {
    pub(in crate::data) features: Vec<usize>,
    pub(in crate::data) labels: Vec<usize>,
    pub(in crate::data) weights: Option<usize>,
}

impl Roles {
    /// Where labels are to be collected.
    pub(in crate::data) fn no_labels(&self) -> Builder {
        Builder::new(self.labels.len().max(1))
    }

    /// All but the features of a table whose columns have these names, given what was read
    /// of it.
    pub(in crate::data) fn about(
        &self,
        path: &Path,
        names: Option<&[String]>,
        labels: Builder,
        weights: Vec<f64>,
    ) -> Labelled<()> {
        let mut about = Labelled::new(path, ());
        let named = |columns: &[usize]| -> Option<Vec<String>> {
            let names = names?;
            Some(
                columns
                    .iter()
                    .map(|&column| names[column].clone())
                    .collect(),
            )
        };
        about.feature_names = named(&self.features);
        if let Some(column) = self.weights {
            about.weights = Some(weights);
            about.weight_place = Some(column + 1);
            about.weight_name = named(&[column]).and_then(|names| names.into_iter().next());
        }
        if !self.labels.is_empty() {
            let names = named(&self.labels).unwrap_or_default();
            // Where they are if the weights are left out, as they may be next time.
            let places = self.labels.iter().map(|&column| {
                let after = self.weights.is_some_and(|weights| weights < column);
                column - usize::from(after)
            });
            let labels = labels.finish().with_source(path, names);
            about.labels = Some(labels.with_places(places));
        }
        about
    }
}

/// Whether a column of this name is a label column.
pub(super) fn is_label_name(name: &str) -> bool {
    LABEL_NAMES
        .iter()
        .any(|label| name.eq_ignore_ascii_case(label))
}

/// Gives each column its role.
pub(in crate::data) fn roles(
    path: &Path,
    width: usize,
    names: Option<&[String]>,
    options: &ReadOptions,
) -> Result<Roles> {
    if let (Some(names), Some(features)) = (names, &options.feature_names) {
        return by_name(path, names, features, options);
    }
    // A model's features with or without labels, and no weights beside them.
    let most = |m: usize| m.saturating_add(options.label_places.len().max(1));
    let weights = match &options.weights {
        Some(_) if names.is_none() && options.n_features.is_some_and(|m| width <= most(m)) => None,
        Some(column) => Some(place(path, width, names, column)?),
        None => options.known_weights(width),
    };
    let others: Vec<usize> = (0..width)
        .filter(|&column| Some(column) != weights)
        .collect();
    let labels = if options.no_labels || options.n_features == Some(others.len()) {
        Vec::new()
    } else if let Some(columns) = &options.labels {
        chosen(path, width, names, columns)?
    } else {
        let named = names.and_then(|names| names.iter().position(|name| is_label_name(name)));
        let known = options.known_labels(others.len());
        match (named, known) {
            (Some(column), _) => vec![column],
            (None, Some(places)) => places.into_iter().map(|place| others[place]).collect(),
            (None, None) => others.last().copied().into_iter().collect(),
        }
    };
    refuse_both(path, &labels, weights)?;
    let features: Vec<usize> = (0..width)
        .filter(|column| !labels.contains(column) && Some(*column) != weights)
        .collect();
    let fail = |problem: String| Err(Error::file(path, Place::Whole, problem));
    match options.n_features {
        Some(expected) if expected != features.len() => fail(format!(
            "the table has {width} columns, and the model needs {expected} features, with or \
             without a label column; use data with the features of the model"
        )),
        _ if features.is_empty() => fail(format!(
            "the table has {width} columns, and none is a feature; set the delimiter, or read it \
             without labels"
        )),
        _ => Ok(Roles {
            features,
            labels,
            weights,
        }),
    }
}

/// A column cannot be label and weight.
fn refuse_both(path: &Path, labels: &[usize], weights: Option<usize>) -> Result<()> {
    match labels.iter().find(|&&label| Some(label) == weights) {
        None => Ok(()),
        Some(column) => {
            let problem = format!(
                "column {} would be both label and weight; choose the label column, or another \
                 column of weights",
                column + 1
            );
            Err(Error::file(path, Place::Whole, problem))
        }
    }
}

/// The place of a column that was chosen, counted from 0. A number is a name if the header
/// has it: years and codes are names of columns too, and only a name is there to be read.
fn place(path: &Path, width: usize, names: Option<&[String]>, column: &Column) -> Result<usize> {
    match (column, names) {
        (Column::Index(index), Some(names)) if names.contains(&index.to_string()) => {
            find(path, names, &index.to_string())
        }
        (Column::Index(_), _) => column.place(width, path),
        (Column::Name(name), Some(names)) => find(path, names, name),
        (Column::Name(name), None) => {
            let problem =
                format!("there is no header to find the column '{name}' in; give its number");
            Err(Error::file(path, Place::Whole, problem))
        }
    }
}

fn chosen(
    path: &Path,
    width: usize,
    names: Option<&[String]>,
    columns: &[Column],
) -> Result<Vec<usize>> {
    let fail = |problem: String| Err(Error::file(path, Place::Whole, problem));
    let mut found: Vec<usize> = Vec::new();
    for column in columns {
        let at = place(path, width, names, column)?;
        if found.contains(&at) {
            return fail(format!(
                "the label column {column} is chosen twice; choose it once"
            ));
        }
        found.push(at);
    }
    Ok(found)
}

/// The column of this name, which must be the only one.
fn find(path: &Path, names: &[String], wanted: &str) -> Result<usize> {
    let mut found = (0..names.len()).filter(|&column| names[column] == wanted);
    let problem = match (found.next(), found.next()) {
        (Some(column), None) => return Ok(column),
        (Some(_), Some(_)) => format!("two columns are named '{wanted}'; rename one"),
        (None, _) => {
            format!(
                "there is no column '{wanted}' among {}; check its name",
                listed(names)
            )
        }
    };
    Err(Error::file(path, Place::Whole, problem))
}

fn listed(names: &[String]) -> String {
    const LISTED: usize = 20;
    let more = if names.len() > LISTED { ", ..." } else { "" };
    format!("{}{more}", names[..names.len().min(LISTED)].join(", "))
}

/// The features of a model, wherever they are. What is left is the label: what
/// was chosen, or what the model was trained with, or the only column, or the
/// one called so.
fn by_name(
    path: &Path,
    names: &[String],
    wanted: &[String],
    options: &ReadOptions,
) -> Result<Roles> {
    let features: Result<Vec<usize>> = wanted.iter().map(|name| find(path, names, name)).collect();
    let features = features?;
    let mut is_feature = vec![false; names.len()];
    features
        .iter()
        .for_each(|&column| is_feature[column] = true);
    let mut left: Vec<usize> = (0..names.len())
        .filter(|&column| !is_feature[column])
        .collect();
    // Where a model is used, its weights matter no more: they may be there or not.
    let weights = match &options.weights {
        Some(Column::Name(name)) => left.iter().copied().find(|&c| names[c] == *name),
        Some(column) => place(path, names.len(), Some(names), column).ok(),
        None => {
            let name = options.weight_name.as_ref();
            name.and_then(|name| left.iter().copied().find(|&c| names[c] == *name))
        }
    };
    left.retain(|column| Some(*column) != weights);
    let among_left = |name: &String| left.iter().copied().find(|&c| names[c] == *name);
    let expected: Option<Vec<usize>> = match options.label_names.as_deref() {
        None | Some([]) => None,
        Some(expected) => expected.iter().map(among_left).collect(),
    };
    let labels = match &options.labels {
        _ if left.is_empty() || options.no_labels => Vec::new(),
        Some(columns) => chosen(path, names.len(), Some(names), columns)?,
        None if expected.is_some() => expected.unwrap_or_default(),
        None if left.len() == 1 => left.clone(),
        None => left
            .iter()
            .copied()
            .find(|&column| is_label_name(&names[column]))
            .into_iter()
            .collect(),
    };
    left.retain(|column| !labels.contains(column));
    if let Some(&column) = left.first() {
        let problem = format!(
            "the column '{}' is neither a feature of the model nor the label; drop it, or choose \
             the label column",
            names[column]
        );
        return Err(Error::file(path, Place::Whole, problem));
    }
    if let Some(&column) = labels.iter().find(|&&column| is_feature[column]) {
        let problem = format!(
            "the label column '{}' is a feature of the model; choose another",
            names[column]
        );
        return Err(Error::file(path, Place::Whole, problem));
    }
    Ok(Roles {
        features,
        labels,
        weights,
    })
}
