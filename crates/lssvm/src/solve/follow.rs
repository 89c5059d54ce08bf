//! Following the error on rows that are not trained on.
//!
//! Scores are linear in the weights. A method that changes J rows of W changes
//! the scores by Ω(queries, s)·Q, which costs J/N of a full evaluation; one that
//! changes all rows needs the full product Ω(queries, training rows)·W, quick
//! only while that matrix is kept in memory. Where training rows live on several ranks, each
//! adds what its own contribute, and everybody has all scores.

use std::sync::Arc;

use super::{Solver, State, Update};
use crate::Result;
use crate::kernel::Samples;
use crate::linalg::{Matrix, Points, Scalar};
use crate::system::{Bordered, Cross, System, add_scores};

/// What the rows should score.
#[derive(Debug, Clone)]
pub enum Truth {
    /// The column with the largest score.
    Classes(Vec<u32>),
    /// The scores themselves.
    Values(Matrix<f64>),
}

impl Truth {
    /// As numbers to be fitted: classes as 1 in their column of `outputs` and 0 elsewhere.
    pub fn targets<T: Scalar>(&self, outputs: usize) -> Matrix<T> {
        match self {
            Truth::Values(values) => values.cast(),
            Truth::Classes(codes) => {
                Matrix::from_fn(codes.len(), outputs, |i, k| match codes[i] as usize == k {
                    true => T::ONE,
                    false => T::ZERO,
                })
            }
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Truth::Values(values) => values.rows(),
            Truth::Classes(codes) => codes.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Of the rows with these indices.
    pub fn select(&self, rows: &[usize]) -> Self {
        match self {
            Truth::Values(values) => Truth::Values(values.select_rows(rows)),
            Truth::Classes(codes) => Truth::Classes(rows.iter().map(|&i| codes[i]).collect()),
        }
    }
}

/// Rows whose scores are kept up to date with the weights.
#[derive(Debug)]
pub struct Followed<T: Scalar> {
    cross: Arc<Cross<T>>,
    truth: Arc<Truth>,
    scores: Matrix<T>,
    /// Whether the scores were computed from scratch for the latest weights.
    fresh: bool,
}

impl<T: Scalar> Followed<T> {
    /// `rows`: preprocessed; `stored`: keep Ω(rows, training rows) in memory.
    pub fn new(system: &System<T>, rows: impl Into<Points<T>>, truth: Truth, stored: bool) -> Self {
        let rows = rows.into().like(system.samples().points());
        let queries = Samples::beside(system.samples().view(), rows, system.kernel());
        let scores = Matrix::zeros(queries.len(), system.outputs());
        let cross = match stored {
            true => Cross::stored(queries, system.kernel(), system.samples()),
            false => Cross::recomputed(queries),
        };
        Self {
            cross: Arc::new(cross),
            truth: Arc::new(truth),
            scores,
            fresh: false,
        }
    }

    /// The same rows for another run: Ω is shared, scores begin at zero.
    pub fn again(&self) -> Self {
        Self {
            cross: Arc::clone(&self.cross),
            truth: Arc::clone(&self.truth),
            scores: Matrix::zeros(self.scores.rows(), self.scores.cols()),
            fresh: false,
        }
    }

    /// Follows the solver's last step. `due`: whether the error will be asked
    /// for; if not, expensive work is left for later.
    pub(super) fn follow(&mut self, system: &System<T>, solver: &dyn Solver<T>, due: bool) {
        let mut all = false;
        self.fresh = false;
        solver.updates(&mut |update, factor| match update {
            Update::All => all = true,
            Update::Rows { indices, change } => self.add(system, indices, change, factor),
        });
        if all && due {
            self.evaluate(system, solver.weights());
        }
    }

    /// Scores of these weights, from scratch.
    pub fn evaluate(&mut self, system: &System<T>, w: &Bordered<T>) {
        self.scores = self
            .cross
            .product(system.kernel(), system.samples(), &w.rows);
        system.ranks().sum(self.scores.values_mut());
        add_bias(&mut self.scores, &w.bias);
        self.fresh = true;
    }

    /// Notes the scores, which may be sums over many steps.
    pub(super) fn save<'a>(&'a self, state: &mut State<'a>) {
        state.put_matrix("scores", &self.scores);
        state.put_counts("fresh", [usize::from(self.fresh)]);
    }

    /// Takes that back.
    pub(super) fn restore(&mut self, state: &mut State<'_>) -> Result<()> {
        let shape = (self.scores.rows(), self.scores.cols());
        self.scores = state.take_matrix("scores", shape)?;
        self.fresh = state.take_count("fresh")? != 0;
        Ok(())
    }

    /// Whether [`Followed::scores`] owe nothing to sums over many steps.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Adds the scores of a change of a few rows.
    fn add(&mut self, system: &System<T>, indices: &[usize], change: &Matrix<T>, factor: T) {
        let mut scaled = change.clone();
        scaled.values_mut().iter_mut().for_each(|v| *v *= factor);
        if let Some(bias) = indices.iter().position(|&i| i == 0) {
            let bias = scaled.row(bias).to_vec();
            add_bias(&mut self.scores, &bias);
        }
        // Those of this rank.
        let own = |&index: &usize| system.shares().place(index.checked_sub(1)?);
        let own = indices.iter().map(own).enumerate();
        let (places, rows): (Vec<usize>, Vec<usize>) =
            own.filter_map(|(j, row)| Some((j, row?))).unzip();
        let support = system.samples().select(&rows);
        let weights = scaled.select_rows(&places);
        let queries = self.cross.queries().view();
        let add = |out: &mut Matrix<T>| {
            let (out, support) = (out.view_mut(), support.view());
            add_scores(out, system.kernel(), queries, support, weights.view());
        };
        if system.shares().is_alone() {
            return add(&mut self.scores);
        }
        let mut sums = Matrix::zeros(self.scores.rows(), self.scores.cols());
        add(&mut sums);
        system.ranks().sum(sums.values_mut());
        let pairs = self.scores.values_mut().iter_mut().zip(sums.values());
        pairs.for_each(|(score, &sum)| *score += sum);
    }

    /// Share of wrong classes, or the mean over the outputs of the root mean square error
    /// of each, as [`crate::metrics::RegressionScores`] has it.
    pub fn error(&self) -> f64 {
        let n = self.scores.rows().max(1) as f64;
        match &*self.truth {
            Truth::Classes(codes) => {
                let wrong = codes.iter().enumerate();
                let wrong = wrong.filter(|&(i, &code)| largest(self.scores.row(i)) != code);
                wrong.count() as f64 / n
            }
            Truth::Values(values) => {
                let outputs = values.cols();
                let rmse = |k: usize| {
                    let rows = 0..self.scores.rows();
                    let error = |i| self.scores.get(i, k).to_f64() - values.get(i, k);
                    (rows.map(|i| error(i).powi(2)).sum::<f64>() / n).sqrt()
                };
                (0..outputs).map(rmse).sum::<f64>() / outputs.max(1) as f64
            }
        }
    }

    /// What the rows should score.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// Scores so far.
    pub fn scores(&self) -> &Matrix<T> {
        &self.scores
    }
}

fn add_bias<T: Scalar>(scores: &mut Matrix<T>, bias: &[T]) {
    for row in scores.values_mut().chunks_mut(bias.len().max(1)) {
        row.iter_mut().zip(bias).for_each(|(v, &b)| *v += b);
    }
}

/// Index of the largest value; the first of equals.
fn largest<T: Scalar>(row: &[T]) -> u32 {
    let mut best = 0;
    for (i, v) in row.iter().enumerate() {
        if *v > row[best] {
            best = i;
        }
    }
    best as u32
}
