//! Linear algebra under our own names.
//!
//! Matrices are row-major: a row is a sample; rows of mostly zeros are kept sparse ([`Csr`]),
//! and [`Points`] are either. Large products, symmetric rank-k
//! updates and factorisations go to faer, which only this room names
//! ([`dense`], [`factor`]); products with a few columns, where libraries are
//! two to three times off the speed of memory, are our own ([`skinny`], and
//! [`two_sided`] for tiles), and so are products of pixels ([`levels`]). A matrix
//! that fills the memory is factored where it lies, as tiles ([`tiled`]).
//!
//! Functions run on the current rayon pool and use all of its threads.

mod aligned;
mod csr;
pub mod dense;
pub mod eigen;
pub mod factor;
pub mod gram;
pub mod half;
pub mod huge;
pub mod levels;
mod matrix;
mod points;
mod scalar;
pub mod simd;
pub mod skinny;
pub mod tiled;
pub mod two_sided;

pub use aligned::Aligned;
pub use csr::{Csr, CsrRef, MOST_COLUMNS};
pub use dense::{Output, Parallel};
pub use eigen::eigen;
pub use factor::Cholesky;
pub use levels::{Levels, LevelsRef};
pub use matrix::{MatMut, MatRef, Matrix, sum_of_squares};
pub use points::{Points, PointsRef};
pub use scalar::{Precision, Scalar};
pub use tiled::{INVERSE_COLUMNS, TiledCholesky};
