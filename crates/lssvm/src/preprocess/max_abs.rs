//! `max-abs`: each column by its greatest absolute value, as scikit-learn's MaxAbsScaler.
//!
//! Zeros stay zero, whatever the data: sparse rows stay sparse. A column of zeros is
//! divided by 1.

use serde::{Deserialize, Serialize};

use super::{columns, rows};
use crate::data::{Rows, for_each_points};
use crate::linalg::{Csr, Matrix, Points, Scalar};
use crate::ranks::Ranks;
use crate::{Error, Result};

/// The greatest absolute value of each column of the training data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct MaxAbs {
    scale: Vec<f64>,
}

impl MaxAbs {
    pub(super) fn fit<T: Scalar>(ranks: &Ranks, x: &dyn Rows<T>) -> Result<Self> {
        columns::need_rows("max-abs", ranks, x)?;
        let mut scale = vec![0.0; x.n_features()];
        // `f64::max` would pass over NaN, which must be noticed.
        let greatest = |a: f64, b: f64| if b > a || b.is_nan() { b } else { a };
        let mut note = |j: usize, value: T| {
            scale[j] = greatest(scale[j], value.to_f64().abs());
        };
        let looked = for_each_points(x, |_, batch| {
            match batch {
                Points::Dense(batch) => {
                    let places = (0..batch.cols()).cycle();
                    places.zip(batch.values()).for_each(|(j, &v)| note(j, v));
                }
                Points::Sparse(batch) => {
                    let places = batch.columns().iter().zip(batch.values());
                    places.for_each(|(&j, &v)| note(j as usize, v));
                }
            }
            Ok(())
        });
        ranks.agree(looked)?;
        let mut scale = columns::joined(ranks, scale, greatest);
        columns::need_finite("max-abs", &scale)?;
        scale.iter_mut().for_each(|v| {
            if *v == 0.0 {
                *v = 1.0;
            }
        });
        Ok(MaxAbs { scale })
    }

    /// Whether it can be applied to rows of `n_features` values.
    pub(super) fn check(&self, n_features: usize) -> Result<()> {
        columns::check_stored("max-abs", &self.scale, n_features)?;
        if self.scale.iter().any(|&s| s <= 0.0) {
            return Err(Error::Data(
                "max-abs holds a scale that is not positive: the model is damaged, train it again"
                    .into(),
            ));
        }
        Ok(())
    }

    pub(super) fn apply<T: Scalar>(&self, x: &mut Matrix<T>) {
        rows::for_each(x, |row| {
            for (v, scale) in row.iter_mut().zip(&self.scale) {
                *v = T::from_f64(v.to_f64() / scale);
            }
        });
    }

    pub(super) fn apply_sparse<T: Scalar>(&self, x: &mut Csr<T>) {
        columns::divide(x, &self.scale);
    }
}
