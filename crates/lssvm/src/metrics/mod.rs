//! How good predictions are.
//!
//! - [`Confusion`]: which class was taken for which; error rate with its
//!   interval, precision, recall and F1.
//! - [`RegressionScores`]: RMSE, MAE and R².
//!
//! Definitions and the treatment of 0/0 are scikit-learn's, so that numbers can
//! be compared.

mod confusion;
mod regression;
mod table;

pub use confusion::{Averages, ClassScores, Confusion};
pub use regression::{OutputScores, RegressionScores};
