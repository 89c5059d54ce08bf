//! `min-max`: each column to [0, 1], as scikit-learn's MinMaxScaler.
//!
//! Keeps zeros of non-negative data zero, so it suits counts and pixels. New
//! data may fall outside of [0, 1]; they are not clipped. A constant column is
//! divided by 1, and becomes zero.

use serde::{Deserialize, Serialize};

use super::{columns, rows};
use crate::data::Rows;
use crate::linalg::{Csr, Matrix, Scalar};
use crate::ranks::Ranks;
use crate::{Error, Result};

/// Least value and range of the columns of the training data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct MinMax {
    min: Vec<f64>,
    range: Vec<f64>,
}

impl MinMax {
    pub(super) fn fit<T: Scalar>(ranks: &Ranks, x: &dyn Rows<T>) -> Result<Self> {
        columns::need_rows("min-max", ranks, x)?;
        // `f64::min` would pass over NaN, which must be noticed.
        let least = |a: f64, b: f64| if b < a || b.is_nan() { b } else { a };
        let greatest = |a: f64, b: f64| if b > a || b.is_nan() { b } else { a };
        let min = columns::fold(ranks, x, f64::INFINITY, |m, _, v| least(m, v), least)?;
        let start = f64::NEG_INFINITY;
        let max = columns::fold(ranks, x, start, |m, _, v| greatest(m, v), greatest)?;
        let range = min.iter().zip(&max).map(|(min, max)| match max - min {
            0.0 => 1.0,
            range => range,
        });
        let range: Vec<f64> = range.collect();
        columns::need_finite("min-max", &range)?;
        Ok(MinMax { min, range })
    }

    /// Whether it can be applied to rows of `n_features` values.
    pub(super) fn check(&self, n_features: usize) -> Result<()> {
        columns::check_stored("min-max", &self.min, n_features)?;
        columns::check_stored("min-max", &self.range, n_features)?;
        if self.range.iter().any(|&r| r <= 0.0) {
            return Err(Error::Data(
                "min-max holds a range that is not positive: the model is damaged, train it again"
                    .into(),
            ));
        }
        Ok(())
    }

    pub(super) fn apply<T: Scalar>(&self, x: &mut Matrix<T>) {
        rows::for_each(x, |row| {
            for ((v, min), range) in row.iter_mut().zip(&self.min).zip(&self.range) {
                *v = T::from_f64((v.to_f64() - min) / range);
            }
        });
    }

    /// Whether what is zero stays zero.
    pub(super) fn keeps_zeros(&self) -> bool {
        self.min.iter().all(|&min| min == 0.0)
    }

    /// For rows whose zeros stay zero.
    pub(super) fn apply_sparse<T: Scalar>(&self, x: &mut Csr<T>) {
        columns::divide(x, &self.range);
    }
}
