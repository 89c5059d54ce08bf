//! How good predictions are.
//!
//! - [`Confusion`]: which class was taken for which; error rate with its
//!   interval, precision, recall and F1.
//! - [`Calibration`]: whether probabilities come true as often as they say.
//! - [`IntervalScores`], [`SetScores`]: how often intervals and sets of classes hold the
//!   truth, and how large they are.
//! - [`RegressionScores`]: RMSE with its interval, MAE and R².
//!
//! Definitions and the treatment of 0/0 are scikit-learn's, so that numbers can
//! be compared.

mod calibration;
mod confusion;
mod coverage;
mod interval;
mod regression;
mod table;

pub use calibration::{Calibration, CalibrationBin};
pub use confusion::{Averages, ClassScores, Confusion};
pub use coverage::{Coverage, IntervalScores, SetCounts, SetScores};
pub(crate) use interval::{normal_tail, widened};
pub use regression::{OutputScores, RegressionScores};
