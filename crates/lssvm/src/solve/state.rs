//! What a run must remember to go on with the same bits: numbers by name.
//!
//! Only what does not follow from data and settings: weights, residuals that are sums
//! over many steps, the position of a random generator. A kernel matrix, factors and
//! preconditioners are made again.
//!
//! Numbers are kept as they are in memory, so that they come back with the same bits,
//! whatever they are. Those of a solver that is saved are borrowed, not copied.
//!
//! Rows that live on several ranks are put together on rank 0, which keeps the state of all;
//! who takes them back gets its own, whoever had them before.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytemuck::{NoUninit, Pod};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Residual;
use super::run::ITERATION_NUMBERS;
use crate::linalg::{Matrix, Precision, Scalar};
use crate::ranks::Shares;
use crate::system::{Bordered, Certificate};
use crate::{Error, Result};

/// The name of the numbers of all iterations.
pub(super) const HISTORY: &str = "history";

/// Rows, iterations and the like are fewer: of what is larger, some sum would overflow.
const LARGEST_COUNT: usize = isize::MAX as usize;

/// Numbers by name.
#[derive(Debug, Default)]
pub struct State<'a> {
    /// What comes before the names for now.
    prefix: String,
    parts: BTreeMap<String, Part<'a>>,
    /// Who has which rows; none: all are here.
    shares: Option<Shares>,
}

/// A table of numbers.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub(super) shape: Shape,
    pub(super) bytes: Cow<'a, [u8]>,
}

/// Its kind and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shape {
    kind: Kind,
    rows: usize,
    cols: usize,
}

/// Its number type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    F32,
    F64,
    U64,
}

impl Shape {
    /// Bytes of such a table; none if no memory could hold it.
    pub(super) fn bytes(self) -> Option<usize> {
        let value = match self.kind {
            Kind::F32 => size_of::<f32>(),
            Kind::F64 | Kind::U64 => size_of::<u64>(),
        };
        self.rows.checked_mul(self.cols)?.checked_mul(value)
    }
}

fn kind<T: Scalar>() -> Kind {
    match T::PRECISION {
        Precision::F32 => Kind::F32,
        Precision::F64 => Kind::F64,
    }
}

impl<'a> State<'a> {
    /// Nothing yet, of a run whose rows are shared like this.
    pub fn new(shares: &Shares) -> Self {
        Self::default().shared(shares)
    }

    /// The same for a run whose rows are shared like this.
    pub fn shared(mut self, shares: &Shares) -> Self {
        self.shares = Some(shares.clone());
        self
    }

    /// Who has which rows, if they are on several ranks.
    fn split_shares(&self) -> Option<Shares> {
        self.shares.clone().filter(|shares| !shares.is_alone())
    }

    /// Names of what `f` puts or takes begin with this one.
    pub fn within<R>(&mut self, name: &str, f: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.prefix.len();
        self.prefix.push_str(name);
        self.prefix.push('.');
        let result = f(self);
        self.prefix.truncate(before);
        result
    }

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn put(&mut self, name: &str, shape: Shape, bytes: Cow<'a, [u8]>) {
        self.parts.insert(self.name(name), Part { shape, bytes });
    }

    /// Borrows a matrix.
    pub fn put_matrix<T: Scalar>(&mut self, name: &str, matrix: &'a Matrix<T>) {
        let shape = Shape {
            kind: kind::<T>(),
            rows: matrix.rows(),
            cols: matrix.cols(),
        };
        let bytes = bytemuck::cast_slice(matrix.values());
        self.put(name, shape, Cow::Borrowed(bytes));
    }

    /// A matrix of which every rank has its own rows: borrowed if that is all of them.
    pub fn put_rows<T: Scalar>(&mut self, name: &str, own: &'a Matrix<T>) {
        let Some(shares) = self.split_shares() else {
            return self.put_matrix(name, own);
        };
        let all = shares.rows_at_first(own);
        let shape = Shape {
            kind: kind::<T>(),
            rows: all.rows(),
            cols: all.cols(),
        };
        let bytes = bytemuck::cast_slice(all.values()).to_vec();
        self.put(name, shape, Cow::Owned(bytes));
    }

    /// Borrows weights, or what has their shape.
    pub fn put_bordered<T: Scalar>(&mut self, name: &str, w: &'a Bordered<T>) {
        let shape = Shape {
            kind: kind::<T>(),
            rows: 1,
            cols: w.bias.len(),
        };
        self.within(name, |state| {
            let bias = bytemuck::cast_slice(&w.bias);
            state.put("bias", shape, Cow::Borrowed(bias));
            state.put_rows("rows", &w.rows);
        });
    }

    fn put_list<V: NoUninit>(&mut self, name: &str, kind: Kind, values: &[V]) {
        let shape = Shape {
            kind,
            rows: 1,
            cols: values.len(),
        };
        let bytes = bytemuck::cast_slice(values).to_vec();
        self.put(name, shape, Cow::Owned(bytes));
    }

    /// Copies some numbers.
    pub fn put_numbers(&mut self, name: &str, numbers: &[f64]) {
        self.put_list(name, Kind::F64, numbers);
    }

    /// Copies some counts or indices.
    pub fn put_counts(&mut self, name: &str, counts: impl IntoIterator<Item = usize>) {
        let counts: Vec<u64> = counts.into_iter().map(|count| count as u64).collect();
        self.put_list(name, Kind::U64, &counts);
    }

    /// The position of a generator; its seed follows from the plan.
    pub fn put_position(&mut self, name: &str, rng: &ChaCha8Rng) {
        let position = rng.get_word_pos();
        let halves = [position as u64, (position >> 64) as u64];
        self.put_list(name, Kind::U64, &halves);
    }

    /// A residual, if there is one.
    pub fn put_residual(&mut self, name: &str, residual: Option<Residual>) {
        let numbers = residual.map(|r| vec![r.relative, f64::from(u8::from(r.exact))]);
        self.put_numbers(name, &numbers.unwrap_or_default());
    }

    /// A certificate, if there is one.
    pub fn put_certificate(&mut self, name: &str, certificate: Option<&Certificate>) {
        let numbers = certificate.map(|c| {
            let mut numbers = vec![c.relative_residual, c.objective, c.objective_gap];
            numbers.extend(&c.relative_residuals);
            numbers
        });
        self.put_numbers(name, &numbers.unwrap_or_default());
    }

    /// Whether there is something of this name, or something within it.
    pub fn has(&self, name: &str) -> bool {
        let (whole, within) = (self.name(name), self.name(&format!("{name}.")));
        let mut names = self.parts.keys();
        names.any(|name| *name == whole || name.starts_with(&within))
    }

    fn take(&mut self, name: &str, kind: Kind) -> Result<Part<'a>> {
        let name = self.name(name);
        match self.parts.remove(&name) {
            Some(part) if part.shape.kind == kind => Ok(part),
            Some(_) => Err(unfit(&name, "is of another number type")),
            None => Err(unfit(&name, "is missing")),
        }
    }

    /// Takes a matrix of this size.
    pub fn take_matrix<T: Scalar>(
        &mut self,
        name: &str,
        (rows, cols): (usize, usize),
    ) -> Result<Matrix<T>> {
        let Part { shape, bytes } = self.take(name, kind::<T>())?;
        if (shape.rows, shape.cols) != (rows, cols) {
            let (there, other) = (shape.rows, shape.cols);
            let problem = format!("is {there} x {other} instead of {rows} x {cols}");
            return Err(unfit(&self.name(name), &problem));
        }
        Ok(Matrix::from_vec(rows, cols, values(&bytes)))
    }

    /// Takes the rows of this rank, so many, of a matrix that all have a part in.
    pub fn take_rows<T: Scalar>(
        &mut self,
        name: &str,
        (rows, cols): (usize, usize),
    ) -> Result<Matrix<T>> {
        let Some(shares) = self.split_shares() else {
            return self.take_matrix(name, (rows, cols));
        };
        let all: Matrix<T> = self.take_matrix(name, (shares.n(), cols))?;
        let own = shares.own();
        let values = all.values()[own.start * cols..own.end * cols].to_vec();
        Ok(Matrix::from_vec(own.len(), cols, values))
    }

    /// Takes weights of this many rows, those of this rank, and outputs.
    pub fn take_bordered<T: Scalar>(
        &mut self,
        name: &str,
        (n, outputs): (usize, usize),
    ) -> Result<Bordered<T>> {
        self.within(name, |state| {
            Ok(Bordered {
                bias: state.take_matrix("bias", (1, outputs))?.into_values(),
                rows: state.take_rows("rows", (n, outputs))?,
            })
        })
    }

    /// Takes all numbers of this name.
    pub fn take_numbers(&mut self, name: &str) -> Result<Vec<f64>> {
        Ok(values(&self.take(name, Kind::F64)?.bytes))
    }

    /// Takes so many numbers.
    pub fn take_exactly<const N: usize>(&mut self, name: &str) -> Result<[f64; N]> {
        let numbers = self.take_numbers(name)?;
        let there = numbers.len();
        let wrong = |_| unfit(&self.name(name), &format!("has {there} numbers, not {N}"));
        numbers.try_into().map_err(wrong)
    }

    /// Takes all counts of this name. To each of them one can be added.
    pub fn take_counts(&mut self, name: &str) -> Result<Vec<usize>> {
        let counts = values::<u64>(&self.take(name, Kind::U64)?.bytes);
        let counts = counts.into_iter().map(usize::try_from);
        let counts = counts.map(|count| count.ok().filter(|&count| count <= LARGEST_COUNT));
        let counts: Option<Vec<usize>> = counts.collect();
        counts.ok_or_else(|| unfit(&self.name(name), "counts what no memory could hold"))
    }

    /// Takes one count.
    pub fn take_count(&mut self, name: &str) -> Result<usize> {
        match self.take_counts(name)?[..] {
            [count] => Ok(count),
            _ => Err(unfit(&self.name(name), "is not one count")),
        }
    }

    /// Sets a generator, made from its seed, to the position it had.
    pub fn take_position(&mut self, name: &str, rng: &mut ChaCha8Rng) -> Result<()> {
        match values::<u64>(&self.take(name, Kind::U64)?.bytes)[..] {
            [low, high] => {
                rng.set_word_pos(u128::from(low) | u128::from(high) << 64);
                Ok(())
            }
            _ => Err(unfit(&self.name(name), "is no position")),
        }
    }

    /// Takes a residual, if there was one.
    pub fn take_residual(&mut self, name: &str) -> Result<Option<Residual>> {
        match self.take_numbers(name)?[..] {
            [] => Ok(None),
            [relative, exact] => Ok(Some(Residual {
                relative,
                exact: exact != 0.0,
            })),
            _ => Err(unfit(&self.name(name), "is no residual")),
        }
    }

    /// Takes a certificate, if there was one.
    pub fn take_certificate(&mut self, name: &str) -> Result<Option<Certificate>> {
        match self.take_numbers(name)?[..] {
            [] => Ok(None),
            [relative_residual, objective, objective_gap, ref each @ ..] => Ok(Some(Certificate {
                relative_residual,
                relative_residuals: each.to_vec(),
                objective,
                objective_gap,
            })),
            _ => Err(unfit(&self.name(name), "is no certificate")),
        }
    }

    /// Iterations that the run had made.
    pub fn iterations(&self) -> usize {
        let history = self.parts.get(HISTORY);
        history.map_or(0, |part| part.shape.cols / ITERATION_NUMBERS)
    }

    /// Everything must have been taken: what is left belongs to another run.
    pub fn expect_empty(&self) -> Result<()> {
        match self.parts.keys().next() {
            Some(name) => Err(unfit(name, "belongs to no part of this run")),
            None => Ok(()),
        }
    }

    /// What a file holds.
    pub(super) fn parts(&self) -> &BTreeMap<String, Part<'a>> {
        &self.parts
    }

    /// What a file held.
    pub(super) fn of_parts(parts: BTreeMap<String, Part<'a>>) -> Self {
        Self {
            prefix: String::new(),
            parts,
            shares: None,
        }
    }
}

fn values<V: Pod>(bytes: &[u8]) -> Vec<V> {
    bytemuck::pod_collect_to_vec(bytes)
}

/// A state that was read well, but is of another run.
pub(super) fn unfit(name: &str, problem: &str) -> Error {
    Error::Data(format!(
        "the checkpoint does not fit this run: '{name}' {problem}; start the run again"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    #[test]
    fn what_is_taken_is_what_was_put() {
        let matrix = Matrix::from_rows(&[[1.5f32, f32::NAN], [-0.0, f32::INFINITY]]);
        let w = Bordered {
            bias: vec![0.1f64, 0.2],
            rows: Matrix::from_rows(&[[1.0, 2.0]]),
        };
        let mut rng = random::rng(3);
        (0..1001).for_each(|_| assert!(random::below(&mut rng, 10) < 10));
        let certificate = Certificate {
            relative_residual: f64::NAN,
            relative_residuals: vec![1.0, 2.0],
            objective: 3.0,
            objective_gap: 4.0,
        };
        let residual = Residual {
            relative: 0.3,
            exact: true,
        };
        let mut state = State::default();
        state.within("a", |state| {
            state.put_matrix("m", &matrix);
            state.put_bordered("w", &w);
            state.put_position("rng", &rng);
            state.put_counts("counts", [7, 8]);
        });
        state.put_residual("r", Some(residual));
        state.put_residual("none", None);
        state.put_certificate("c", Some(&certificate));
        assert!(state.has("a") && state.has("r") && !state.has("m"));

        state.within("a", |state| {
            let found: Matrix<f32> = state.take_matrix("m", (2, 2)).unwrap();
            let bits = |m: &Matrix<f32>| m.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&matrix));
            assert_eq!(state.take_bordered("w", (1, 2)).unwrap(), w);
            let mut again = random::rng(3);
            state.take_position("rng", &mut again).unwrap();
            let draw = |rng: &mut ChaCha8Rng| random::below(rng, usize::MAX);
            assert_eq!(draw(&mut again), draw(&mut rng));
            assert_eq!(state.take_counts("counts").unwrap(), [7, 8]);
        });
        assert_eq!(state.take_residual("r").unwrap(), Some(residual));
        assert_eq!(state.take_residual("none").unwrap(), None);
        assert!(state.expect_empty().is_err());
        let found = state.take_certificate("c").unwrap().unwrap();
        assert_eq!(found.relative_residuals, [1.0, 2.0]);
        assert!(found.relative_residual.is_nan() && found.objective_gap == 4.0);
        state.expect_empty().unwrap();
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let matrix = Matrix::from_rows(&[[1.5f32, 2.0]]);
        let full = || {
            let mut state = State::default();
            state.put_matrix("m", &matrix);
            state.put_counts("c", [1, 2, 3]);
            state
        };
        assert!(full().take_matrix::<f64>("m", (1, 2)).is_err());
        assert!(full().take_matrix::<f32>("m", (2, 1)).is_err());
        assert!(full().take_matrix::<f32>("n", (1, 2)).is_err());
        assert!(full().take_count("c").is_err());
        let mut beyond = State::default();
        beyond.put_counts("members", [usize::MAX]);
        assert!(beyond.take_count("members").is_err());
        assert!(full().take_residual("c").is_err());
        assert!(full().take_exactly::<3>("c").is_err());
        let mut rng = random::rng(1);
        assert!(full().take_position("c", &mut rng).is_err());
    }
}
