//! What an error curve comes to: the paper's "η ≃ 1.1 ± 0.1 %".

use lssvm::train::HistoryLine;

use super::measure::{Measure, error_at};

/// The share of a curve, at its end, that counts as settled.
const SETTLED_SHARE: f64 = 0.2;

/// Numbers of one error curve, in percent or as RMSE.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settled {
    /// Mean over the last fifth of the iterations.
    pub mean: f64,
    /// Standard deviation there.
    pub spread: f64,
    /// Root mean square of the change from one iteration to the next, over √2:
    /// for a curve that only fluctuates the standard deviation, and unlike it
    /// not blown up by a slope.
    pub fluctuation: f64,
}

impl Settled {
    /// Mean and spread, without the unit.
    pub fn show(&self, measure: Measure) -> String {
        let [mean, spread] = [self.mean, self.spread].map(|v| measure.number(v));
        format!("{mean} ± {spread}")
    }

    /// None if no error was followed.
    pub fn new(history: &[HistoryLine]) -> Option<Self> {
        let errors: Vec<f64> = history.iter().filter_map(error_at).collect();
        let last = ((errors.len() as f64 * SETTLED_SHARE).ceil() as usize).max(1);
        let settled = &errors[errors.len().checked_sub(last)?..];
        let n = settled.len() as f64;
        let mean = settled.iter().sum::<f64>() / n;
        let variance = settled.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / n;
        let changes = settled.windows(2).map(|pair| (pair[1] - pair[0]).powi(2));
        // From 0 on: the sum of no changes would be −0, and be shown so.
        let changes = changes.fold(0.0, |sum, change| sum + change) / (n - 1.0).max(1.0);
        Some(Self {
            mean,
            spread: variance.sqrt(),
            fluctuation: (changes / 2.0).sqrt(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(errors: impl IntoIterator<Item = f64>) -> Vec<HistoryLine> {
        let line = |(i, error): (usize, f64)| HistoryLine {
            iteration: i + 1,
            seconds: 0.0,
            error_percent: Some(error),
            rmse: None,
            validation_error_percent: None,
            validation_rmse: None,
            relative_residual: None,
            relative_change: 0.0,
        };
        errors.into_iter().enumerate().map(line).collect()
    }

    #[test]
    fn the_end_of_a_curve_is_what_counts() {
        // Far away at first, then 1 ± 0.1 in turn.
        let errors = (0..100).map(|i| {
            if i < 80 {
                50.0
            } else {
                1.0 + 0.1 * f64::from(i % 2)
            }
        });
        let settled = Settled::new(&curve(errors)).unwrap();
        assert!((settled.mean - 1.05).abs() < 1e-12);
        assert!((settled.spread - 0.05).abs() < 1e-12);
        assert!((settled.fluctuation - 0.1 / 2f64.sqrt()).abs() < 1e-12);
        // A slope is no fluctuation.
        let slope = Settled::new(&curve((0..100).map(|i| 5.0 - 0.01 * f64::from(i)))).unwrap();
        assert!(slope.fluctuation < 0.008 && slope.spread > 0.05);
    }

    #[test]
    fn short_and_empty_curves_are_fine() {
        assert_eq!(Settled::new(&[]), None);
        let one = Settled::new(&curve([2.0])).unwrap();
        assert_eq!((one.mean, one.spread, one.fluctuation), (2.0, 0.0, 0.0));
        assert!(one.fluctuation.is_sign_positive());
    }
}
