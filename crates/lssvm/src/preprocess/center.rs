//! `center`, eq. (61): x ← x − ⟨x⟩, each row by its own mean.
//!
//! For rows whose values are of one kind, such as the pixels of an image: it
//! takes the brightness out. For columns of different kinds use `standardize`.

use super::rows;
use crate::linalg::{Matrix, Scalar};

/// Subtracts from each row its own mean.
pub(super) fn apply<T: Scalar>(x: &mut Matrix<T>) {
    rows::for_each(x, |row| {
        let mean = rows::mean(row);
        for v in row {
            *v = T::from_f64(v.to_f64() - mean);
        }
    });
}
