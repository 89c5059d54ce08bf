//! Scores of real predictions ŷ of targets y.
//!
//! ```text
//! RMSE = √(Σ(y − ŷ)²/n)     MAE = Σ|y − ŷ|/n     R² = 1 − Σ(y − ŷ)² / Σ(y − ⟨y⟩)²
//! ```
//!
//! A constant target has R² = 1 if predicted exactly, else 0. With several
//! outputs each score is the mean over the outputs, as in scikit-learn's
//! `root_mean_squared_error`; the error that is followed during a run is the same.

use serde::{Deserialize, Serialize};

use super::interval;
use crate::linalg::{MatRef, Scalar};
use crate::{Error, Result};

/// How far predictions are from the targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegressionScores {
    /// Root of the mean squared error, in the unit of the target.
    pub rmse: f64,
    /// 95 % confidence interval of it (delta method on its logarithm, from the
    /// standard error of the squared errors); none of a single row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rmse_interval: Option<(f64, f64)>,
    /// Mean absolute error, in the unit of the target.
    pub mae: f64,
    /// Share of the variance that is explained; 1 is perfect, 0 is no better
    /// than the mean.
    pub r2: f64,
    /// The same for each output.
    pub outputs: Vec<OutputScores>,
}

/// The scores of one output.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OutputScores {
    /// Root of the mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
    /// Share of the variance that is explained.
    pub r2: f64,
}

impl RegressionScores {
    /// Compares predictions with targets, a row a sample and a column an
    /// output. Sums are in `f64`.
    ///
    /// # Errors
    /// [`Error::Data`] if the shapes differ or there is nothing to compare.
    pub fn new<T: Scalar>(targets: MatRef<'_, T>, predicted: MatRef<'_, T>) -> Result<Self> {
        let shape = (targets.rows(), targets.cols());
        if shape != (predicted.rows(), predicted.cols()) {
            return Err(Error::Data(format!(
                "{} x {} predictions for {} x {} targets: give one for each target",
                predicted.rows(),
                predicted.cols(),
                shape.0,
                shape.1
            )));
        }
        if shape.0 == 0 || shape.1 == 0 {
            return Err(Error::Data(
                "there are no targets to score: give at least one row".into(),
            ));
        }
        let outputs: Vec<_> = (0..shape.1)
            .map(|j| score_output(targets, predicted, j))
            .collect();
        let mean = |score: fn(&OutputScores) -> f64| {
            outputs.iter().map(score).sum::<f64>() / outputs.len() as f64
        };
        let rmse: Vec<f64> = outputs.iter().map(|s| s.rmse).collect();
        Ok(RegressionScores {
            rmse: mean(|s| s.rmse),
            rmse_interval: interval::of_rmse(targets, predicted, &rmse),
            mae: mean(|s| s.mae),
            r2: mean(|s| s.r2),
            outputs,
        })
    }
}

fn score_output<T: Scalar>(
    targets: MatRef<'_, T>,
    predicted: MatRef<'_, T>,
    output: usize,
) -> OutputScores {
    let n = targets.rows() as f64;
    let target = |i: usize| targets.row(i)[output].to_f64();
    let error = |i: usize| target(i) - predicted.row(i)[output].to_f64();
    let sum = |f: &dyn Fn(usize) -> f64| (0..targets.rows()).map(f).sum::<f64>();

    let squares = sum(&|i| error(i).powi(2));
    // Distances from the first target: the mean of equal targets is exact, and
    // their spread zero.
    let first = target(0);
    let mean = first + sum(&|i| target(i) - first) / n;
    let spread = sum(&|i| (target(i) - mean).powi(2));
    OutputScores {
        rmse: (squares / n).sqrt(),
        mae: sum(&|i| error(i).abs()) / n,
        r2: match (squares, spread) {
            (0.0, 0.0) => 1.0,
            (_, 0.0) => 0.0,
            _ => 1.0 - squares / spread,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;

    fn score<const C: usize>(targets: &[[f64; C]], predicted: &[[f64; C]]) -> RegressionScores {
        let (targets, predicted) = (Matrix::from_rows(targets), Matrix::from_rows(predicted));
        RegressionScores::new(targets.view(), predicted.view()).unwrap()
    }

    fn assert_near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn scores_by_hand() {
        // Errors 0.5, −0.5, 0, −1: squares 1.5, absolute 2; mean 2.875,
        // spread 29.1875 (the example in scikit-learn's manual).
        let scores = score(
            &[[3.0], [-0.5], [2.0], [7.0]],
            &[[2.5], [0.0], [2.0], [8.0]],
        );
        assert_near(scores.rmse, 0.375f64.sqrt());
        assert_near(scores.mae, 0.5);
        assert_near(scores.r2, 1.0 - 1.5 / 29.1875);
        assert_eq!(scores.outputs.len(), 1);
    }

    #[test]
    fn outputs_are_averaged() {
        // Output 1: errors 1, −1, spread 2: R² = 0. Output 2: perfect.
        let scores = score(&[[1.0, 5.0], [3.0, 9.0]], &[[0.0, 5.0], [4.0, 9.0]]);
        assert_eq!((scores.rmse, scores.mae, scores.r2), (0.5, 0.5, 0.5));
        assert_eq!(scores.outputs[0].r2, 0.0);
        assert_eq!(scores.outputs[1].r2, 1.0);
    }

    #[test]
    fn constant_targets() {
        assert_eq!(score(&[[0.1]; 7], &[[0.1]; 7]).r2, 1.0);
        assert_eq!(score(&[[0.1]; 7], &[[0.2]; 7]).r2, 0.0);
    }

    #[test]
    fn shapes_must_agree() {
        let of = |a: [usize; 2], b: [usize; 2]| {
            let (a, b) = (Matrix::<f32>::zeros(a[0], a[1]), Matrix::zeros(b[0], b[1]));
            RegressionScores::new(a.view(), b.view())
        };
        assert!(of([2, 1], [3, 1]).is_err());
        assert!(of([0, 1], [0, 1]).is_err());
        assert!(of([2, 1], [2, 1]).is_ok());
    }
}
