//! `standardize`: each column to mean 0 and variance 1.
//!
//! For columns of different kinds and units. The deviation is that of the
//! population (divided by n, not n − 1), as in scikit-learn's StandardScaler.
//! A constant column is divided by 1, and becomes zero.

use serde::{Deserialize, Serialize};

use super::{columns, rows};
use crate::data::Rows;
use crate::linalg::{Matrix, Scalar};
use crate::ranks::Ranks;
use crate::{Error, Result};

/// Means and deviations of the columns of the training data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Standardize {
    mean: Vec<f64>,
    scale: Vec<f64>,
}

impl Standardize {
    pub(super) fn fit<T: Scalar>(ranks: &Ranks, x: &dyn Rows<T>) -> Result<Self> {
        let n = columns::need_rows("standardize", ranks, x)?;
        // Distances from the first row, then from the mean: Σx² − n·mean² loses
        // all digits when the mean is large beside the spread. It also makes
        // the deviation of a constant column exactly zero.
        let first = ranks.agree(x.matrix(0..x.len().min(1)))?;
        let mut first: Vec<f64> = first.values().iter().map(|v| v.to_f64()).collect();
        // The first rank has a row if there is one.
        first.resize(x.n_features(), 0.0);
        ranks.give(&mut first);
        let distance = columns::sums(ranks, x, |j, v| v - first[j])?;
        let mean: Vec<f64> = first.iter().zip(distance).map(|(f, d)| f + d / n).collect();
        columns::need_finite("standardize", &mean)?;
        let squares = columns::sums(ranks, x, |j, v| (v - mean[j]) * (v - mean[j]))?;
        columns::need_finite("standardize", &squares)?;
        let scale = squares.iter().map(|s| match (s / n).sqrt() {
            0.0 => 1.0,
            deviation => deviation,
        });
        Ok(Standardize {
            scale: scale.collect(),
            mean,
        })
    }

    /// Whether it can be applied to rows of `n_features` values.
    pub(super) fn check(&self, n_features: usize) -> Result<()> {
        columns::check_stored("standardize", &self.mean, n_features)?;
        columns::check_stored("standardize", &self.scale, n_features)?;
        if self.scale.iter().any(|&s| s <= 0.0) {
            return Err(Error::Data(
                "standardize holds a scale that is not positive: the model is damaged, train it \
                 again"
                    .into(),
            ));
        }
        Ok(())
    }

    pub(super) fn apply<T: Scalar>(&self, x: &mut Matrix<T>) {
        rows::for_each(x, |row| {
            for ((v, mean), scale) in row.iter_mut().zip(&self.mean).zip(&self.scale) {
                *v = T::from_f64((v.to_f64() - mean) / scale);
            }
        });
    }
}
