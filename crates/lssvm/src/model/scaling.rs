//! Probabilities one can trust: a scale and an offset for each class, fitted to scores of
//! rows that the model did not learn from.
//!
//! ```text
//!     p_k ∝ exp(slope · h_k + offset_k),     Σ offset_k = 0
//! ```
//!
//! Scores of a least-squares machine aim at 0 and 1, so that their bare softmax claims
//! little even where it is right. For two classes this is Platt's sigmoid; for many it is
//! temperature scaling (Guo, Pleiss, Sun, Weinberger, "On calibration of modern neural
//! networks", 2017) with a bias for each class. Where the slope is positive, as it should
//! be, and the offsets small, classes keep their order. The fit is a convex problem of
//! K + 1 numbers, solved by Newton's method.

use serde::{Deserialize, Serialize};

use super::softmax;
use crate::linalg::{Cholesky, Matrix, Scalar};
use crate::{Error, Result};

/// Most steps of Newton's method; it takes about ten.
const MOST_STEPS: usize = 100;

/// The log loss no longer changes, relative.
const SMALL_CHANGE: f64 = 1e-12;

/// Strength of the pull of the offsets to zero, in rows: it makes the problem definite,
/// also for a class without rows.
const PULL: f64 = 1.0;

/// How scores become probabilities.
///
/// ```
/// use lssvm::linalg::Matrix;
/// use lssvm::model::Scaling;
/// // Scores that are right three times out of four.
/// let scores = Matrix::from_fn(8, 2, |_, k| if k == 0 { 0.9 } else { 0.1 });
/// let scaling = Scaling::fit(&scores, &[0, 0, 0, 1, 0, 0, 0, 1])?;
/// let p = scaling.probabilities(&scores);
/// assert!((p.get(0, 0) - 0.75).abs() < 0.02);
/// # Ok::<(), lssvm::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// Factor of the scores.
    pub slope: f64,
    /// Added to the scaled score of each class.
    pub offsets: Vec<f64>,
}

impl Scaling {
    /// The bare softmax.
    pub fn none(classes: usize) -> Self {
        Self {
            slope: 1.0,
            offsets: vec![0.0; classes],
        }
    }

    /// Fits scores, a row a sample, to the true classes: the least log loss.
    ///
    /// # Errors
    /// [`Error::Data`] if there are no rows, or not as many as classes are given for.
    pub fn fit<T: Scalar>(scores: &Matrix<T>, truth: &[u32]) -> Result<Self> {
        let (n, k) = (scores.rows(), scores.cols());
        if n == 0 || n != truth.len() || truth.iter().any(|&code| code as usize >= k) {
            return Err(Error::Data(format!(
                "{n} rows of scores for {} rows of true classes cannot be fitted",
                truth.len()
            )));
        }
        let scores: Matrix<f64> = scores.cast();
        let mut scaling = Self::none(k);
        let mut loss = scaling.loss(&scores, truth);
        for _ in 0..MOST_STEPS {
            let step = scaling.newton_step(&scores, truth)?;
            let (next, next_loss) = scaling.descend(&step, loss, &scores, truth);
            let fall = loss - next_loss;
            (scaling, loss) = (next, next_loss);
            if fall <= SMALL_CHANGE * loss.abs() {
                break;
            }
        }
        let mean = scaling.offsets.iter().sum::<f64>() / k as f64;
        scaling
            .offsets
            .iter_mut()
            .for_each(|offset| *offset -= mean);
        Ok(scaling)
    }

    /// Probabilities of the classes for each row of scores.
    pub fn probabilities<T: Scalar>(&self, scores: &Matrix<T>) -> Matrix<f64> {
        let scaled = Matrix::from_fn(scores.rows(), scores.cols(), |i, k| {
            self.slope * scores.get(i, k).to_f64() + self.offsets[k]
        });
        softmax(&scaled)
    }

    /// Whether it fits a model with so many classes, and is finite.
    pub(super) fn check(&self, classes: usize) -> Result<()> {
        let finite = self.slope.is_finite() && self.offsets.iter().all(|v| v.is_finite());
        match finite && self.offsets.len() == classes {
            true => Ok(()),
            false => Err(Error::Data(format!(
                "the probabilities of the model are scaled for {} classes, and it has {classes}, \
                 or by numbers that are not finite: train it again",
                self.offsets.len()
            ))),
        }
    }

    /// −Σ ln p of the true classes, and the pull.
    fn loss(&self, scores: &Matrix<f64>, truth: &[u32]) -> f64 {
        let mut loss = 0.5 * PULL * self.offsets.iter().map(|v| v * v).sum::<f64>();
        for (i, &code) in truth.iter().enumerate() {
            let scaled = |k: usize| self.slope * scores.get(i, k) + self.offsets[k];
            let all = (0..scores.cols()).map(scaled);
            let largest = all.clone().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = all.map(|v| (v - largest).exp()).sum();
            loss += largest + sum.ln() - scaled(code as usize);
        }
        loss
    }

    /// Hessian⁻¹ · gradient: slope first, then the offsets.
    fn newton_step(&self, scores: &Matrix<f64>, truth: &[u32]) -> Result<Vec<f64>> {
        let k = scores.cols();
        let p = self.probabilities(scores);
        let mut gradient = vec![0.0; k + 1];
        let mut hessian = Matrix::<f64>::zeros(k + 1, k + 1);
        for (i, &code) in truth.iter().enumerate() {
            let (h, p) = (scores.row(i), p.row(i));
            let mean: f64 = h.iter().zip(p).map(|(h, p)| h * p).sum();
            gradient[0] += mean - h[code as usize];
            gradient[1 + code as usize] -= 1.0;
            for a in 0..k {
                gradient[1 + a] += p[a];
                // Covariances of (score, indicator of a class) under p.
                *entry(&mut hessian, 0, 0) += p[a] * (h[a] - mean) * (h[a] - mean);
                *entry(&mut hessian, 0, 1 + a) += p[a] * (h[a] - mean);
                *entry(&mut hessian, 1 + a, 1 + a) += p[a];
                for b in a..k {
                    *entry(&mut hessian, 1 + a, 1 + b) -= p[a] * p[b];
                }
            }
        }
        for (a, offset) in self.offsets.iter().enumerate() {
            gradient[1 + a] += PULL * offset;
            *entry(&mut hessian, 1 + a, 1 + a) += PULL;
        }
        // Scores that are all the same say nothing of the slope.
        *entry(&mut hessian, 0, 0) += f64::EPSILON * truth.len() as f64 + f64::MIN_POSITIVE;
        let mut step = Matrix::from_vec(k + 1, 1, gradient);
        Cholesky::new(hessian)?.solve(step.view_mut());
        Ok(step.into_values())
    }

    /// Goes along the step as far as the loss falls.
    fn descend(&self, step: &[f64], loss: f64, scores: &Matrix<f64>, truth: &[u32]) -> (Self, f64) {
        let mut length = 1.0;
        while length > 1e-10 {
            let offsets = self.offsets.iter().zip(&step[1..]);
            let next = Self {
                slope: self.slope - length * step[0],
                offsets: offsets.map(|(v, s)| v - length * s).collect(),
            };
            let next_loss = next.loss(scores, truth);
            if next_loss < loss {
                return (next, next_loss);
            }
            length *= 0.5;
        }
        (self.clone(), loss)
    }
}

fn entry(matrix: &mut Matrix<f64>, i: usize, j: usize) -> &mut f64 {
    &mut matrix.row_mut(i)[j]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Calibration;

    /// Scores whose true probabilities are a softmax with slope 6 and offsets.
    fn sample(n: usize) -> (Matrix<f64>, Vec<u32>) {
        let wave = |i: usize, k: usize| ((i * 37 + k * 101) as f64 * 0.7311).sin() * 0.5 + 0.3;
        let scores = Matrix::from_fn(n, 4, wave);
        let truly = Scaling {
            slope: 6.0,
            offsets: vec![0.5, -0.2, -0.6, 0.3],
        };
        let p = truly.probabilities(&scores);
        // A uniform number for each row, from the golden ratio.
        let draw = |i: usize| {
            let mut left = (i as f64 * 0.618_033_988_75).fract();
            let class = p.row(i).iter().position(|&p| {
                left -= p;
                left < 0.0
            });
            class.unwrap_or(3) as u32
        };
        (scores, (0..n).map(draw).collect())
    }

    #[test]
    fn it_finds_what_the_rows_were_drawn_from() {
        let (scores, truth) = sample(20_000);
        let scaling = Scaling::fit(&scores, &truth).unwrap();
        assert!((scaling.slope - 6.0).abs() < 0.3, "{scaling:?}");
        assert!((scaling.offsets[2] + 0.6).abs() < 0.1, "{scaling:?}");
        let error = |p: Matrix<f64>| Calibration::new(p.view(), &truth, 10).unwrap();
        let (before, after) = (
            error(softmax(&scores)),
            error(scaling.probabilities(&scores)),
        );
        assert!(after.log_loss < 0.8 * before.log_loss);
        assert!(after.expected_error < 0.02, "{}", after.expected_error);
    }

    #[test]
    fn hard_cases_stay_finite() {
        // All right, all the same, a class without rows, one row.
        let sure = Matrix::from_fn(30, 3, |i, k| if i % 2 == k { 1.0 } else { 0.0 });
        let truth: Vec<u32> = (0..30).map(|i| i % 2).collect();
        let same = Matrix::from_fn(30, 3, |_, _| 0.5);
        let one = Matrix::from_fn(1, 3, |_, k| k as f64);
        for (scores, truth) in [(&sure, &truth[..]), (&same, &truth), (&one, &[1])] {
            let scaling = Scaling::fit(scores, truth).unwrap();
            scaling.check(3).unwrap();
            let p = scaling.probabilities(scores);
            assert!(
                p.values().iter().all(|p| (0.0..=1.0).contains(p)),
                "{scaling:?}"
            );
        }
        assert!(Scaling::fit(&same, &[0, 1]).is_err());
        assert!(Scaling::none(3).check(2).is_err());
    }
}
