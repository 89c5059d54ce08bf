//! Sums over columns, for the steps that learn from them.

use rayon::prelude::*;

use crate::data::{Rows, for_each_batch};
use crate::linalg::{Csr, Matrix, Scalar};
use crate::ranks::Ranks;
use crate::{Error, Result};

/// Rows whose sums are formed by one thread and then added in order, so that
/// the result does not depend on the number of threads.
const ROWS_PER_SUM: usize = 1024;

/// For each column j the sum of `f(j, value)` over the rows of all ranks, in `f64`.
pub(super) fn sums<T: Scalar>(
    ranks: &Ranks,
    x: &dyn Rows<T>,
    f: impl Fn(usize, f64) -> f64 + Sync,
) -> Result<Vec<f64>> {
    fold(ranks, x, 0.0, |sum, j, v| sum + f(j, v), |a, b| a + b)
}

/// For each column its values on all ranks folded with `f`, the parts joined with `join`.
pub(super) fn fold<T: Scalar>(
    ranks: &Ranks,
    x: &dyn Rows<T>,
    start: f64,
    f: impl Fn(f64, usize, f64) -> f64 + Sync,
    join: impl Fn(f64, f64) -> f64,
) -> Result<Vec<f64>> {
    let mut total = vec![start; x.n_features()];
    if total.is_empty() {
        return Ok(total);
    }
    let folded = for_each_batch(x, |batch| {
        for part in parts(batch, start, &f) {
            for (t, p) in total.iter_mut().zip(part) {
                *t = join(*t, p);
            }
        }
        Ok(())
    });
    ranks.agree(folded)?;
    Ok(joined(ranks, total, join))
}

/// What the ranks have found of each column, joined in their order.
pub(super) fn joined(ranks: &Ranks, own: Vec<f64>, join: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    if ranks.is_alone() {
        return own;
    }
    let pieces = ranks.all_gather(bytemuck::cast_slice(&own));
    let pieces = pieces
        .iter()
        .map(|piece| bytemuck::pod_collect_to_vec(piece));
    let join = |all: Vec<f64>, part: Vec<f64>| {
        let pairs = all.into_iter().zip(part);
        pairs.map(|(a, b)| join(a, b)).collect()
    };
    pieces.reduce(join).unwrap_or(own)
}

/// The folds of every so many rows.
fn parts<T: Scalar>(
    x: &Matrix<T>,
    start: f64,
    f: &(impl Fn(f64, usize, f64) -> f64 + Sync),
) -> Vec<Vec<f64>> {
    let cols = x.cols();
    x.values()
        .par_chunks(ROWS_PER_SUM * cols)
        .map(|rows| {
            let mut part = vec![start; cols];
            for row in rows.chunks_exact(cols) {
                for (j, (p, v)) in part.iter_mut().zip(row).enumerate() {
                    *p = f(*p, j, v.to_f64());
                }
            }
            part
        })
        .collect()
}

/// Each value of sparse rows divided by the number of its column.
pub(super) fn divide<T: Scalar>(x: &mut Csr<T>, by: &[f64]) {
    x.change(|columns, values| {
        for (v, &column) in values.iter_mut().zip(columns) {
            *v = T::from_f64(v.to_f64() / by[column as usize]);
        }
    });
}

/// The rows of all ranks. Refuses data without rows, of which nothing can be learnt.
pub(super) fn need_rows<T: Scalar>(step: &str, ranks: &Ranks, x: &dyn Rows<T>) -> Result<f64> {
    let n = ranks.sum_of(x.len() as f64);
    if n == 0.0 {
        return Err(Error::Data(format!(
            "{step} cannot be fitted on data without rows: give at least one row"
        )));
    }
    Ok(n)
}

/// Refuses learnt numbers that are not finite: they could not be used or saved.
pub(super) fn need_finite(step: &str, learnt: &[f64]) -> Result<()> {
    match learnt.iter().position(|v| !v.is_finite()) {
        Some(j) => Err(Error::Numeric(format!(
            "{step}: the values of column {} are not finite, or too large for their spread to be \
             computed: correct or rescale that column",
            j + 1
        ))),
        None => Ok(()),
    }
}

/// Refuses stored numbers that are not one for each of `n_features` columns,
/// or not finite; they come from a file.
pub(super) fn check_stored(step: &str, stored: &[f64], n_features: usize) -> Result<()> {
    if stored.len() != n_features || stored.iter().any(|v| !v.is_finite()) {
        return Err(Error::Data(format!(
            "{step} holds {} numbers for {n_features} features, or some that are not finite: the \
             model is damaged, train it again",
            stored.len()
        )));
    }
    Ok(())
}
