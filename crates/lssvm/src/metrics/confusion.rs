//! The confusion matrix and what follows from it.
//!
//! With nₐₚ rows of true class a predicted as p:
//!
//! ```text
//! precision of p = nₚₚ / Σₐ nₐₚ      recall of a = nₐₐ / Σₚ nₐₚ
//! F1 = 2 precision·recall / (precision + recall)      0/0 = 0
//! ```

use serde::{Deserialize, Serialize};

use super::interval::wilson;
use crate::{Error, Result};

/// How often each class was predicted for rows of each class.
///
/// Shown, it is a plain text table:
///
/// ```
/// use lssvm::metrics::Confusion;
/// let classes = vec!["cat".to_string(), "dog".to_string()];
/// let confusion = Confusion::new(classes, &[0, 0, 0, 1, 1], &[0, 0, 1, 1, 1])?;
/// assert_eq!(confusion.counts, [[2, 1], [0, 2]]);
/// assert_eq!(confusion.error_percent(), 20.0);
/// println!("{confusion}");
/// # Ok::<(), lssvm::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confusion {
    /// Names of the classes.
    pub classes: Vec<String>,
    /// `counts[a][p]`: rows of class `a` that were predicted as class `p`.
    pub counts: Vec<Vec<u64>>,
}

/// The scores of one class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassScores {
    /// Name of the class.
    pub class: String,
    /// Share of the rows predicted as this class that are of it.
    pub precision: f64,
    /// Share of the rows of this class that are predicted as it.
    pub recall: f64,
    /// Harmonic mean of precision and recall.
    pub f1: f64,
    /// Number of rows of this class.
    pub support: u64,
}

/// Means over the classes, each class with the same weight.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Averages {
    /// Mean precision.
    pub precision: f64,
    /// Mean recall, also called balanced accuracy.
    pub recall: f64,
    /// Mean F1.
    pub f1: f64,
}

impl Confusion {
    /// Counts predictions. Codes are positions in `classes`.
    ///
    /// # Errors
    /// [`Error::Data`] if there are no rows, not as many predictions as true
    /// classes, or a code without a class.
    pub fn new(classes: Vec<String>, true_codes: &[u32], predicted: &[u32]) -> Result<Self> {
        if true_codes.len() != predicted.len() {
            return Err(Error::Data(format!(
                "{} predictions for {} rows: give one prediction a row",
                predicted.len(),
                true_codes.len()
            )));
        }
        if true_codes.is_empty() {
            return Err(Error::Data(
                "there are no rows to score: give at least one".into(),
            ));
        }
        let mut counts = vec![vec![0; classes.len()]; classes.len()];
        for (row, (&a, &p)) in true_codes.iter().zip(predicted).enumerate() {
            let cell = counts
                .get_mut(a as usize)
                .and_then(|counts| counts.get_mut(p as usize));
            let Some(cell) = cell else {
                return Err(Error::Data(format!(
                    "row {}: class code {} of {} classes: codes count from 0, give all classes",
                    row + 1,
                    a.max(p),
                    classes.len()
                )));
            };
            *cell += 1;
        }
        Ok(Confusion { classes, counts })
    }

    /// Number of rows.
    pub fn n_samples(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }

    /// Number of rows whose class was not the predicted one.
    pub fn n_errors(&self) -> u64 {
        self.n_samples() - self.n_correct()
    }

    fn n_correct(&self) -> u64 {
        self.counts.iter().enumerate().map(|(a, row)| row[a]).sum()
    }

    /// `counts` as percentages of their rows: of each class, the share that was
    /// predicted as each. A class without rows has zeros.
    pub fn percent_of_rows(&self) -> Vec<Vec<f64>> {
        let row = |row: &Vec<u64>| {
            let total = row.iter().sum();
            row.iter().map(|&count| ratio(100 * count, total)).collect()
        };
        self.counts.iter().map(row).collect()
    }

    /// Fraction of rows whose class was not the predicted one.
    pub fn error_rate(&self) -> f64 {
        ratio(self.n_errors(), self.n_samples())
    }

    /// [`Confusion::error_rate`] in percent, the paper's η.
    pub fn error_percent(&self) -> f64 {
        // Not 100 × the rate: 7 errors of 100 shall be 7, not 7.000000000000001.
        ratio(100 * self.n_errors(), self.n_samples())
    }

    /// Fraction of rows whose class was predicted.
    pub fn accuracy(&self) -> f64 {
        ratio(self.n_correct(), self.n_samples())
    }

    /// Wilson's 95 % confidence interval of the error rate: lower and upper
    /// end, as fractions.
    pub fn error_interval(&self) -> (f64, f64) {
        wilson(self.n_errors(), self.n_samples())
    }

    /// Precision, recall, F1 and support of each class.
    pub fn per_class(&self) -> Vec<ClassScores> {
        let scores = self.classes.iter().enumerate().map(|(k, class)| {
            let hits = self.counts[k][k];
            let (support, predicted) = (self.support(k), self.predicted(k));
            ClassScores {
                class: class.clone(),
                precision: ratio(hits, predicted),
                recall: ratio(hits, support),
                // 2pr/(p + r) with the counts put in: no 0/0 in between.
                f1: ratio(2 * hits, support + predicted),
                support,
            }
        });
        scores.collect()
    }

    /// Means over the classes that occur, true or predicted, as scikit-learn's
    /// `average="macro"`: a class the data do not have says nothing.
    pub fn macro_average(&self) -> Averages {
        let scores = self.per_class();
        let occurring =
            (0..self.classes.len()).filter(|&k| self.support(k) + self.predicted(k) > 0);
        let occurring: Vec<_> = occurring.map(|k| &scores[k]).collect();
        if occurring.is_empty() {
            return Averages::default();
        }
        let mean = |score: fn(&ClassScores) -> f64| {
            occurring.iter().map(|s| score(s)).sum::<f64>() / occurring.len() as f64
        };
        Averages {
            precision: mean(|s| s.precision),
            recall: mean(|s| s.recall),
            f1: mean(|s| s.f1),
        }
    }

    fn support(&self, class: usize) -> u64 {
        self.counts[class].iter().sum()
    }

    fn predicted(&self, class: usize) -> u64 {
        self.counts.iter().map(|row| row[class]).sum()
    }
}

/// a/b, and 0/0 = 0.
fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

#[cfg(test)]
mod tests {
    use super::super::interval::Z;
    use super::*;

    fn names(n: usize) -> Vec<String> {
        (0..n).map(|k| format!("c{k}")).collect()
    }

    fn assert_near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn scores_by_hand() {
        // true a: 3 as a, 1 as b; true b: 2 as b; true c: 1 as a, 1 as b; d never.
        let truth = [0, 0, 0, 0, 1, 1, 2, 2];
        let predicted = [0, 0, 0, 1, 1, 1, 0, 1];
        let confusion = Confusion::new(names(4), &truth, &predicted).unwrap();
        assert_eq!(
            confusion.counts,
            [[3, 1, 0, 0], [0, 2, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
        );
        assert_eq!((confusion.n_samples(), confusion.n_errors()), (8, 3));
        assert_eq!(confusion.error_rate(), 0.375);
        assert_eq!(confusion.error_percent(), 37.5);
        assert_eq!(confusion.accuracy(), 0.625);

        let scores = confusion.per_class();
        let of = |k: usize| (scores[k].precision, scores[k].recall, scores[k].support);
        assert_eq!(of(0), (0.75, 0.75, 4));
        assert_eq!(of(1), (0.5, 1.0, 2));
        assert_eq!(of(2), (0.0, 0.0, 2));
        assert_eq!(of(3), (0.0, 0.0, 0));
        assert_near(scores[0].f1, 0.75);
        assert_near(scores[1].f1, 2.0 / 3.0);
        assert_eq!((scores[2].f1, scores[3].f1), (0.0, 0.0));

        // Over a, b and c; d does not occur.
        let average = confusion.macro_average();
        assert_near(average.precision, 1.25 / 3.0);
        assert_near(average.recall, 1.75 / 3.0);
        assert_near(average.f1, (0.75 + 2.0 / 3.0) / 3.0);
    }

    #[test]
    fn wilson_interval() {
        let of = |errors: u64, n: u64| {
            let counts = vec![vec![n - errors, errors], vec![0, 0]];
            let classes = names(2);
            Confusion { classes, counts }.error_interval()
        };
        // 10 of 100: (0.1 + z²/200 ± z√(0.0009 + z²/40000)) / (1 + z²/100).
        let (lower, upper) = of(10, 100);
        assert!((lower - 0.055_229_14).abs() < 1e-7, "{lower}");
        assert!((upper - 0.174_365_66).abs() < 1e-7, "{upper}");
        // No errors: 0 to z²/(n + z²).
        let (lower, upper) = of(0, 10);
        assert_eq!(lower, 0.0);
        assert_near(upper, Z * Z / (10.0 + Z * Z));
        let (lower, upper) = of(10, 10);
        assert_near(lower, 10.0 / (10.0 + Z * Z));
        assert_eq!(upper, 1.0);
        assert_eq!(of(0, 0), (0.0, 1.0));
    }

    #[test]
    fn what_cannot_be_counted() {
        let of = |t: &[u32], p: &[u32]| Confusion::new(names(2), t, p).unwrap_err().to_string();
        assert!(of(&[0, 1], &[0]).contains("1 predictions for 2 rows"));
        assert!(of(&[], &[]).contains("no rows"));
        assert!(of(&[0, 1], &[0, 2]).contains("row 2: class code 2 of 2 classes"));
        assert!(of(&[5], &[0]).contains("row 1: class code 5"));
    }

    #[test]
    fn serde_round_trip() {
        let confusion = Confusion::new(names(2), &[0, 1], &[1, 1]).unwrap();
        let json = serde_json::to_string(&confusion).unwrap();
        assert_eq!(json, r#"{"classes":["c0","c1"],"counts":[[0,1],[0,1]]}"#);
        assert_eq!(serde_json::from_str::<Confusion>(&json).unwrap(), confusion);
    }
}
