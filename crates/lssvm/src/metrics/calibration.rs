//! Whether predicted probabilities mean what they say.
//!
//! A row's confidence is its largest probability. Rows are put into bins of
//! equal width by their confidence; in bin b, with n_b of n rows,
//!
//! ```text
//! ECE      = Σ_b n_b/n · |accuracy of b − mean confidence of b|
//! Brier    = Σ_rows Σ_k (p_k − [k is the true class])² / n       0 to 2
//! log loss = −Σ_rows ln p_true / n
//! ```
//!
//! The Brier score sums over all classes, so for two classes it is twice the
//! score of the positive class alone.

use serde::{Deserialize, Serialize};

use crate::linalg::MatRef;
use crate::{Error, Result};

/// How far a row's probabilities may be from summing to one.
const SUM_TOLERANCE: f64 = 1e-6;

/// How well probabilities agree with how often they come true.
///
/// ```
/// use lssvm::linalg::Matrix;
/// use lssvm::metrics::Calibration;
/// let p = Matrix::from_rows(&[[0.75, 0.25], [0.75, 0.25], [0.75, 0.25], [0.75, 0.25]]);
/// let calibration = Calibration::new(p.view(), &[0, 0, 0, 1], 10)?;
/// assert_eq!(calibration.expected_error, 0.0);
/// # Ok::<(), lssvm::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Bins of equal width from 0 to 1, empty ones included.
    pub bins: Vec<CalibrationBin>,
    /// Expected calibration error: the mean distance between confidence and
    /// accuracy, each bin with the weight of its rows.
    pub expected_error: f64,
    /// Mean squared distance from the true class, over all classes.
    pub brier: f64,
    /// Mean of −ln of the true class's probability.
    pub log_loss: f64,
}

/// Rows of about the same confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CalibrationBin {
    /// Lowest confidence.
    pub from: f64,
    /// Highest confidence, not in the bin, except for the last bin.
    pub to: f64,
    /// Rows in the bin.
    pub rows: u64,
    /// Mean confidence of the rows; 0 if there are none.
    pub confidence: f64,
    /// Share of the rows whose class was predicted; 0 if there are none.
    pub accuracy: f64,
}

impl Calibration {
    /// Compares probabilities, a row a sample and a column a class, with the
    /// true classes.
    ///
    /// # Errors
    /// [`Error::Data`] if there are no rows, not as many as true classes, a
    /// code without a class, or a row that is no probability distribution;
    /// [`Error::Parameter`] if there are no bins.
    pub fn new(probabilities: MatRef<'_, f64>, truth: &[u32], bins: usize) -> Result<Self> {
        if bins == 0 {
            return Err(Error::parameter("bins", bins, "must be at least 1"));
        }
        if probabilities.rows() != truth.len() || truth.is_empty() {
            return Err(Error::Data(format!(
                "{} rows of probabilities for {} rows: give one a row, and at least one",
                probabilities.rows(),
                truth.len()
            )));
        }
        let mut sums = vec![Sum::default(); bins];
        let (mut brier, mut log_loss) = (0.0, 0.0);
        for (i, &code) in truth.iter().enumerate() {
            let row = probabilities.row(i);
            let p_true = check(row, code as usize).map_err(|problem| {
                Error::Data(format!("row {} of the probabilities: {problem}", i + 1))
            })?;
            let best = largest(row);
            let bin = ((row[best] * bins as f64) as usize).min(bins - 1);
            sums[bin].add(row[best], best == code as usize);
            let squares: f64 = row.iter().map(|p| p * p).sum();
            brier += squares - 2.0 * p_true + 1.0;
            // A certain mistake would be infinite, and the mean with it.
            log_loss -= p_true.max(f64::EPSILON).ln();
        }
        let n = truth.len() as f64;
        let bins: Vec<_> = sums
            .iter()
            .enumerate()
            .map(|(b, sum)| sum.bin(b, bins))
            .collect();
        let gap = |b: &CalibrationBin| b.rows as f64 / n * (b.accuracy - b.confidence).abs();
        Ok(Self {
            expected_error: bins.iter().map(gap).sum(),
            bins,
            brier: brier / n,
            log_loss: log_loss / n,
        })
    }
}

/// What is summed over the rows of a bin.
#[derive(Clone, Default)]
struct Sum {
    rows: u64,
    confidence: f64,
    right: u64,
}

impl Sum {
    fn add(&mut self, confidence: f64, right: bool) {
        self.rows += 1;
        self.confidence += confidence;
        self.right += u64::from(right);
    }

    fn bin(&self, index: usize, bins: usize) -> CalibrationBin {
        let rows = self.rows.max(1) as f64;
        CalibrationBin {
            from: index as f64 / bins as f64,
            to: (index + 1) as f64 / bins as f64,
            rows: self.rows,
            confidence: self.confidence / rows,
            accuracy: self.right as f64 / rows,
        }
    }
}

/// The probability of the true class, if the row is a distribution.
fn check(row: &[f64], code: usize) -> std::result::Result<f64, String> {
    let sum: f64 = row.iter().sum();
    // Written so that NaN is refused.
    let valid = row.iter().all(|&p| p >= 0.0) && (sum - 1.0).abs() <= SUM_TOLERANCE;
    if !valid {
        return Err(format!("they sum to {sum}; give shares of one"));
    }
    let p_true = row.get(code).copied();
    p_true.ok_or_else(|| format!("class code {code} of {} classes", row.len()))
}

/// Index of the largest value; the first of equals.
fn largest(row: &[f64]) -> usize {
    (0..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;

    fn assert_near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn scores_by_hand() {
        // Confidences 0.6 (right), 0.7 (wrong), 0.9 (right); two bins, and all
        // in the upper one: |2/3 − 2.2/3|.
        let p = Matrix::from_rows(&[[0.6, 0.3, 0.1], [0.7, 0.2, 0.1], [0.05, 0.05, 0.9]]);
        let c = Calibration::new(p.view(), &[0, 1, 2], 2).unwrap();
        assert_near(c.expected_error, 0.2 / 3.0);
        let brier = (0.16 + 0.09 + 0.01) + (0.49 + 0.64 + 0.01) + (0.0025 + 0.0025 + 0.01);
        assert_near(c.brier, brier / 3.0);
        assert_near(c.log_loss, -(0.6f64.ln() + 0.2f64.ln() + 0.9f64.ln()) / 3.0);
        assert_eq!((c.bins[0].rows, c.bins[1].rows), (0, 3));
        assert_eq!((c.bins[0].confidence, c.bins[0].accuracy), (0.0, 0.0));
    }

    #[test]
    fn bins_have_their_own_gap() {
        let p = Matrix::from_rows(&[[0.55, 0.45], [0.95, 0.05], [1.0, 0.0]]);
        let c = Calibration::new(p.view(), &[1, 0, 0], 10).unwrap();
        assert_near(c.expected_error, (0.55 + 0.05) / 3.0);
        assert_eq!(c.bins[5].rows, 1);
        assert_eq!(c.bins[9].rows, 2, "a confidence of 1 is in the last bin");
    }

    #[test]
    fn certain_mistakes_stay_finite() {
        let p = Matrix::from_rows(&[[1.0, 0.0]]);
        let c = Calibration::new(p.view(), &[1], 5).unwrap();
        assert!(c.log_loss.is_finite() && c.log_loss > 30.0);
        assert_eq!(c.brier, 2.0);
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        let one = |row: [f64; 2], truth: &[u32], bins| {
            Calibration::new(Matrix::from_rows(&[row]).view(), truth, bins)
        };
        assert!(one([0.5, 0.5], &[0], 10).is_ok());
        assert!(one([0.5, 0.6], &[0], 10).is_err());
        assert!(one([1.5, -0.5], &[0], 10).is_err());
        assert!(one([f64::NAN, 0.5], &[0], 10).is_err());
        assert!(one([0.5, 0.5], &[2], 10).is_err());
        assert!(one([0.5, 0.5], &[0, 1], 10).is_err());
        assert!(one([0.5, 0.5], &[0], 0).is_err());
        assert!(Calibration::new(Matrix::zeros(0, 2).view(), &[], 10).is_err());
    }
}
