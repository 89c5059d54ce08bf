//! Training that begins at the weights of a model.
//!
//! The model's fitted preprocessing and its kernel stay; c, the rows and how the system is
//! solved may be others. A row of the data that is a support row of the model, bit by bit
//! after preprocessing, begins with its weights, any other with zero. A run of `centers`
//! keeps those of the model's rows that are in the data as its centres.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt::Display;

use serde::Serialize;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::Config;
use super::checkpoint::Fixed;
use crate::data::{Rows, for_each_points};
use crate::linalg::{Points, Scalar};
use crate::model::{Model, Outputs};
use crate::ranks::Shares;
use crate::solve::Method;
use crate::system::{Bordered, System};
use crate::{Error, Result};

/// The rows of a run that began at the weights of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WarmStart {
    /// Rows that began with the weights they have in the model.
    pub known: usize,
    /// Rows that began with zero.
    pub new: usize,
    /// Rows of the model that are not in the data.
    pub gone: usize,
}

/// What the run takes from the model.
pub(super) fn fixed<T: Scalar>(model: &Model<T>) -> Fixed {
    Fixed {
        pipeline: model.pipeline().clone(),
        kernel: *model.kernel(),
    }
}

/// These settings, with those of the model where they are kept or nothing else was given.
pub(super) fn settings<T: Scalar>(model: &Model<T>, given: &Config) -> Result<Config> {
    let before: Config = serde_json::from_value(model.config().clone()).map_err(|error| {
        Error::Data(format!(
            "the model does not say how it was trained ({error}), so that training cannot go on \
             from it; train it again"
        ))
    })?;
    keep("preprocess", &given.preprocess, &before.preprocess)?;
    keep("kernel", &given.kernel, &before.kernel)?;
    keep("gamma", &given.gamma, &before.gamma)?;
    keep("coef0", &given.coef0, &before.coef0)?;
    keep("degree", &given.degree, &before.degree)?;
    keep("task", &given.task, &before.task)?;
    keep("image-shape", &given.image_shape, &before.image_shape)?;
    if given.precision.unwrap_or(T::PRECISION) != T::PRECISION {
        keep("precision", &given.precision, &Some(T::PRECISION))?;
    }
    if let Some(method) = given.method {
        method.expect_start()?;
    }
    let usual = match model.kernel().is_positive() {
        true => Method::Pcg,
        false => Method::Mp,
    };
    let method = before.method.filter(|method| method.takes_start());
    Ok(Config {
        preprocess: before.preprocess,
        kernel: before.kernel,
        gamma: before.gamma,
        coef0: before.coef0,
        degree: before.degree,
        task: before.task,
        image_shape: before.image_shape,
        precision: Some(T::PRECISION),
        c: given.c.or(before.c),
        class_weight: given.class_weight.clone().or(before.class_weight),
        method: given.method.or(method).or(Some(usual)),
        centers: given.centers.or(before.centers),
        select: given.select.or(before.select),
        ..given.clone()
    })
}

/// What was given must be what the model has.
fn keep<V: PartialEq + Display>(
    name: &'static str,
    given: &Option<V>,
    before: &Option<V>,
) -> Result<()> {
    let Some(value) = given.as_ref().filter(|_| given != before) else {
        return Ok(());
    };
    let was = match before {
        Some(before) => format!("with {before}"),
        None => "without it".to_string(),
    };
    let requirement = format!(
        "the model was trained {was}, and a warm start keeps its preprocessing and kernel; leave \
         it out, or train from the beginning"
    );
    Err(Error::parameter(name, value, requirement))
}

/// The weights that the rows of a system begin with. `order`: where each is in the data,
/// whose order the rows of a model have.
pub(super) fn weights<T: Scalar>(
    model: &Model<T>,
    outputs: &Outputs,
    system: &System<T>,
    order: Option<&[usize]>,
) -> Result<(Bordered<T>, WarmStart)> {
    let rows = system.samples().points();
    let prints = prints(system.shares(), rows);
    let columns = columns(model.outputs(), outputs)?;
    let mut places = Places::new(model, rows);
    let mut turn: Vec<usize> = (0..prints.len()).collect();
    if let Some(order) = order {
        turn.sort_unstable_by_key(|&row| order[row]);
    }
    let mut start = system.zeros();
    let of = |all: &[T], column: Option<usize>| column.map_or(T::ZERO, |column| all[column]);
    for (k, &column) in columns.iter().enumerate() {
        start.bias[k] = of(model.bias(), column);
    }
    let mut known = 0;
    for row in turn {
        let Some(place) = places.take(prints[row]) else {
            continue;
        };
        known += 1;
        let Some(row) = system.shares().place(row) else {
            continue;
        };
        for (k, &column) in columns.iter().enumerate() {
            start.rows.row_mut(row)[k] = of(model.weights().row(place), column);
        }
    }
    let told = WarmStart {
        known,
        new: prints.len() - known,
        gone: model.n_support() - known,
    };
    Ok((start, told))
}

/// The rows of the data, in ascending order, that are rows of the model.
pub(super) fn rows_of_model<T: Scalar>(model: &Model<T>, rows: &dyn Rows<T>) -> Result<Vec<usize>> {
    let (mut places, mut known) = (None, Vec::new());
    for_each_points(rows, |first, batch| {
        let places = places.get_or_insert_with(|| Places::new(model, batch));
        let found = (0..batch.rows()).filter(|&row| places.take(print(batch, row)).is_some());
        known.extend(found.map(|row| first + row));
        Ok(())
    })?;
    Ok(known)
}

/// Where rows are in a model.
struct Places(HashMap<u128, VecDeque<usize>>);

impl Places {
    /// For rows that are kept as `like` are.
    fn new<T: Scalar>(model: &Model<T>, like: &Points<T>) -> Self {
        let support = model.support().points();
        let support = match support.is_sparse() == like.is_sparse() {
            true => Cow::Borrowed(support),
            false => Cow::Owned(support.clone().like(like)),
        };
        let mut places: HashMap<u128, VecDeque<usize>> = HashMap::new();
        for place in 0..support.rows() {
            let same = places.entry(print(&support, place)).or_default();
            same.push_back(place);
        }
        Self(places)
    }

    /// The place of a row with this print; rows that repeat are taken in their order, and
    /// each once.
    fn take(&mut self, print: u128) -> Option<usize> {
        let same = self.0.get_mut(&print);
        same.and_then(VecDeque::pop_front)
    }
}

/// All rows of all ranks in a few bytes each: which of those that repeat has which weights
/// depends on all of them.
fn prints<T: Scalar>(shares: &Shares, own: &Points<T>) -> Vec<u128> {
    let own: Vec<u128> = (0..own.rows()).map(|row| print(own, row)).collect();
    let pieces = shares.ranks().all_gather(bytemuck::cast_slice(&own));
    let pieces = pieces
        .iter()
        .map(|piece| bytemuck::pod_collect_to_vec(piece));
    pieces.collect::<Vec<Vec<u128>>>().concat()
}

/// A row in a few bytes.
fn print<T: Scalar>(rows: &Points<T>, row: usize) -> u128 {
    match rows {
        Points::Dense(rows) => xxh3_128(bytemuck::cast_slice(rows.row(row))),
        Points::Sparse(rows) => {
            let (columns, values) = rows.row(row);
            let mut ink = Xxh3::new();
            ink.update(bytemuck::cast_slice(columns));
            ink.update(bytemuck::cast_slice(values));
            ink.digest128()
        }
    }
}

/// Which output of the model each output was; none: a class that it does not know.
fn columns(before: &Outputs, now: &Outputs) -> Result<Vec<Option<usize>>> {
    match (before, now) {
        (Outputs::Classes { names: before }, Outputs::Classes { names }) => {
            let place = |name: &String| before.iter().position(|known| known == name);
            Ok(names.iter().map(place).collect())
        }
        (Outputs::Values { names: before }, Outputs::Values { names }) if before == names => {
            Ok((0..names.len()).map(Some).collect())
        }
        _ => Err(Error::Data(format!(
            "the model has the outputs {}, and the data {}: a warm start needs the same",
            before.names().join(", "),
            now.names().join(", ")
        ))),
    }
}
