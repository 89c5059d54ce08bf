//! Leave-one-out scores compared with the truth, and by how much the result may be off if
//! they are estimates.
//!
//! A row's (Θ⁻¹)ᵢᵢ is known up to a share sᵢ of itself (`solve::probing`), and its misfit,
//! which is divided by it, likewise.
//!
//! ```text
//!     classes:  a row changes sides if (Θ⁻¹)ᵢᵢ is off by its margin mᵢ = h_y − max h_k
//!               error ± √(D + B²) / N,  D = Σ Φ(−|mᵢ|/sᵢ),  B = Σ Φ(−mᵢ/sᵢ) − number of mᵢ < 0
//!     values:   E rᵢ²(1 + noise)⁻² ≈ rᵢ²(1 + 3sᵢ²), and misfits are made smaller by the root
//!               RMSE ± √(2 Σ (rᵢ² sᵢ)² + (¼ · 3/2 Σ rᵢ² sᵢ²)²) / (N · RMSE), and 10⁻⁴ of it
//! ```
//!
//! B is what noise once more would add to the number of wrong rows, of which there are fewer
//! than of right ones nearby: about what noise has added to it already. The 2 is a bound: rows
//! of a group share some noise, at most as much as they have. The ¼: so well are the sᵢ² known
//! from the rows that were solved for, and with them by how much misfits are to be smaller. The
//! 10⁻⁴: what residuals of the solution and of the probes leave open where there is no noise.

use std::fmt;

use serde::Serialize;

use super::Evaluation;
use crate::Result;
use crate::linalg::{Matrix, Scalar};
use crate::metrics::{normal_tail, widened};
use crate::solve::{Estimated, LeaveOneOut, Truth};

/// By which share of itself the mean square of deviations may be off: 32 rows tell it.
const KNOWN_TO: f64 = 0.25;

/// The share of an RMSE that residuals leave open.
const LEFT_OPEN: f64 = 1e-4;

/// Of an error that was estimated: how, and how far off it may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Standard error of the error, in percent or as RMSE, as an estimate of the exact
    /// leave-one-out error. Another choice of rows has an error besides: both are in the
    /// interval of the error.
    pub standard_error: f64,
    /// Right-hand sides whose solutions told of all rows.
    pub probes: usize,
    /// Rows that were solved for themselves, and are exact.
    pub solved_rows: usize,
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "an estimate: {} probes of all rows, and {} rows solved exactly; ± is its standard \
             error",
            self.probes, self.solved_rows
        )
    }
}

/// Compares leave-one-out scores with the truth.
pub(super) fn evaluation<T: Scalar>(
    left_out: &LeaveOneOut<T>,
    truth: &Truth,
    names: &[String],
) -> Result<Evaluation> {
    let Some(estimated) = &left_out.estimate else {
        return Evaluation::new(&left_out.scores, truth, names);
    };
    let scores: Matrix<f64> = left_out.scores.cast();
    let (scores, standard_error) = match truth {
        Truth::Classes(codes) => {
            let off = error_of_share(&scores, codes, estimated);
            (scores, 100.0 * off)
        }
        Truth::Values(values) => {
            let scores = without_bias(&scores, values, estimated);
            let off = error_of_rmse(&scores, values, estimated);
            (scores, off)
        }
    };
    let mut evaluation = Evaluation::new(&scores, truth, names)?;
    evaluation.estimate = Some(Estimate {
        standard_error,
        probes: estimated.probes,
        solved_rows: estimated.solved,
    });
    if let (Some(error), Some(interval)) = (
        evaluation.error_percent,
        &mut evaluation.error_percent_interval,
    ) {
        *interval = widened(error, *interval, standard_error);
    }
    if let Some(scores) = &mut evaluation.regression {
        let rmse = scores.rmse;
        let interval = scores.rmse_interval.as_mut();
        interval.into_iter().for_each(|interval| {
            *interval = widened(rmse, *interval, standard_error);
        });
    }
    Ok(evaluation)
}

/// Of the share of wrong rows.
fn error_of_share(scores: &Matrix<f64>, codes: &[u32], estimated: &Estimated) -> f64 {
    let rows = codes.iter().zip(&estimated.deviations).enumerate();
    let (mut doubtful, mut bias) = (0.0, 0.0);
    for (i, (&code, &deviation)) in rows.filter(|(_, (_, deviation))| **deviation > 0.0) {
        let row = scores.row(i);
        let others = row.iter().enumerate().filter(|(k, _)| *k != code as usize);
        let best = others.map(|(_, &h)| h).fold(f64::NEG_INFINITY, f64::max);
        let margin = row[code as usize] - best;
        let chance = normal_tail(margin.abs() / deviation);
        doubtful += chance;
        bias += chance.copysign(margin);
    }
    (doubtful + bias * bias).sqrt() / codes.len() as f64
}

/// Scores whose squared misfits are right on average.
fn without_bias(scores: &Matrix<f64>, values: &Matrix<f64>, estimated: &Estimated) -> Matrix<f64> {
    Matrix::from_fn(scores.rows(), scores.cols(), |i, k| {
        let (value, deviation) = (values.get(i, k), estimated.deviations[i]);
        value - (value - scores.get(i, k)) / (1.0 + 3.0 * deviation * deviation).sqrt()
    })
}

/// Of the RMSE, the mean over the outputs.
fn error_of_rmse(scores: &Matrix<f64>, values: &Matrix<f64>, estimated: &Estimated) -> f64 {
    let (n, outputs) = (scores.rows() as f64, scores.cols());
    let square = |i: usize, k: usize| (values.get(i, k) - scores.get(i, k)).powi(2);
    let rmse = |k: usize| ((0..scores.rows()).map(|i| square(i, k)).sum::<f64>() / n).sqrt();
    let rmse: Vec<f64> = (0..outputs).map(rmse).collect();
    let (mut noise, mut made_smaller) = (0.0, 0.0);
    for (i, &deviation) in estimated.deviations.iter().enumerate() {
        let errors = (0..outputs).filter(|&k| rmse[k] > 0.0);
        let mean = errors.map(|k| square(i, k) / rmse[k]).sum::<f64>() / outputs as f64;
        noise += (mean * deviation).powi(2);
        made_smaller += 1.5 * mean * deviation * deviation;
    }
    let left_open = LEFT_OPEN * rmse.iter().sum::<f64>() / outputs as f64;
    let off = (2.0 * noise + (KNOWN_TO * made_smaller).powi(2)).sqrt() / n;
    off.hypot(left_open)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_out(scores: Matrix<f64>, deviations: Vec<f64>) -> LeaveOneOut<f64> {
        LeaveOneOut {
            scores,
            estimate: Some(Estimated {
                deviations,
                probes: 2,
                solved: 1,
            }),
        }
    }

    #[test]
    fn rows_near_the_other_side_make_the_error_uncertain() {
        let scores = Matrix::from_rows(&[[0.9, 0.1], [0.55, 0.45], [0.4, 0.6], [0.52, 0.48]]);
        let truth = Truth::Classes(vec![0, 0, 0, 0]);
        let names = ["a".to_string(), "b".to_string()];
        let left_out = left_out(scores, vec![0.1, 0.1, 0.1, 0.0]);
        let found = evaluation(&left_out, &truth, &names).unwrap();
        // Margins of 8, 1 and −2 deviations; the last row is exact.
        let (right, wrong): (f64, f64) = (6.2e-16 + 0.158_655, 0.022_750);
        let off = 25.0 * (right + wrong + (right - wrong).powi(2)).sqrt();
        let estimate = found.estimate.unwrap();
        assert!((estimate.standard_error - off).abs() < 1e-3);
        assert_eq!(found.error_percent, Some(25.0));
        let exact = Evaluation::new(&left_out.scores, &truth, &names).unwrap();
        let (narrow, wide) = (exact.error_percent_interval, found.error_percent_interval);
        let (narrow, wide) = (narrow.unwrap(), wide.unwrap());
        assert!(wide.1 > narrow.1 && wide.0 < narrow.0 && wide.0 >= 0.0);
        assert!(found.error().1 > exact.error().1);
    }

    #[test]
    fn squared_misfits_are_right_on_average() {
        // Misfits 1/(1 + noise), noise of ±0.1 and ±0.2 with equal chances: what is found
        // is off from 1 by terms of the fourth order alone.
        for (noise, tolerance) in [(0.1, 0.001), (0.2, 0.01)] {
            let misfits = [1.0 / (1.0 + noise), 1.0 / (1.0 - noise)];
            let scores = Matrix::from_fn(2, 1, |i, _| -misfits[i]);
            let truth = Truth::Values(Matrix::zeros(2, 1));
            let found = evaluation(&left_out(scores, vec![noise; 2]), &truth, &[String::new()]);
            let found = found.unwrap();
            let rmse = found.regression.as_ref().unwrap().rmse;
            assert!((rmse - 1.0).abs() < tolerance, "{rmse}");
            // Both rows alike: 2 · 2 · s² / 2² under the root.
            let off = found.estimate.unwrap().standard_error;
            assert!((off / noise - 1.0).abs() < 0.1, "{off}");
        }
    }
}
