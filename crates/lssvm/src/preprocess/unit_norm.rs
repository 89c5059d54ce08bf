//! `unit-norm`, eq. (62): x ← x / ‖x‖, each row by its own Euclidean norm.
//!
//! Inner products become cosines. After `center` it takes brightness and
//! contrast out of an image.

use super::rows;
use crate::linalg::{Csr, Matrix, Scalar};

/// Divides each row by its length; a zero row stays zero.
pub(super) fn apply<T: Scalar>(x: &mut Matrix<T>) {
    rows::for_each(x, rows::to_unit_norm);
}

/// The same for sparse rows.
pub(super) fn apply_sparse<T: Scalar>(x: &mut Csr<T>) {
    x.change(|_, values| rows::to_unit_norm(values));
}
