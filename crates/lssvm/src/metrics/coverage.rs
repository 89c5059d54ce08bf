//! Whether intervals and sets of classes hold the truth as often as they promise, and how
//! much they say: narrow intervals and small sets say more.

use serde::Serialize;

use super::interval::wilson;
use crate::linalg::Matrix;
use crate::{Error, Result};

/// How often the truth was held.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coverage {
    /// The share of rows that was promised.
    pub coverage: f64,
    /// The share of rows whose truth was held.
    pub measured: f64,
    /// 95 % confidence interval of it (Wilson): of these rows, not of other rows that the
    /// promise might have been made from.
    pub measured_interval: (f64, f64),
}

/// Of intervals of one value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IntervalScores {
    /// How often the true value was in them.
    #[serde(flatten)]
    pub held: Coverage,
    /// Mean of upper less lower end.
    pub mean_width: f64,
}

/// Of sets of classes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetScores {
    /// How often the true class was in them.
    #[serde(flatten)]
    pub held: Coverage,
    /// Mean number of classes.
    pub mean_size: f64,
    /// Rows whose set has 0, 1, 2, … classes.
    pub rows_by_size: Vec<u64>,
}

impl Coverage {
    fn new(coverage: f64, held: usize, rows: usize) -> Result<Self> {
        if rows == 0 {
            return Err(Error::Data(
                "there are no rows to measure coverage on".into(),
            ));
        }
        Ok(Self {
            coverage,
            measured: held as f64 / rows as f64,
            measured_interval: wilson(held as u64, rows as u64),
        })
    }
}

impl IntervalScores {
    /// Compares intervals, a column for each value, with the true values.
    ///
    /// ```
    /// use lssvm::linalg::Matrix;
    /// use lssvm::metrics::IntervalScores;
    /// let (lower, upper) = (Matrix::from_rows(&[[0.0], [1.0]]), Matrix::from_rows(&[[2.0], [4.0]]));
    /// let truth = Matrix::from_rows(&[[0.5], [5.0]]);
    /// let scores = &IntervalScores::new(0.9, &lower, &upper, &truth)?[0];
    /// assert_eq!((scores.held.measured, scores.mean_width), (0.5, 2.5));
    /// # Ok::<(), lssvm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] if there are no rows, or the shapes differ.
    pub fn new(
        coverage: f64,
        lower: &Matrix<f64>,
        upper: &Matrix<f64>,
        truth: &Matrix<f64>,
    ) -> Result<Vec<Self>> {
        let shape = |m: &Matrix<f64>| (m.rows(), m.cols());
        if shape(lower) != shape(truth) || shape(upper) != shape(truth) {
            return Err(Error::Data(format!(
                "intervals of {:?} and {:?} rows and values cannot be compared with {:?}",
                shape(lower),
                shape(upper),
                shape(truth)
            )));
        }
        let n = truth.rows();
        let of_value = |j: usize| {
            let holds = |&i: &usize| (lower.get(i, j)..=upper.get(i, j)).contains(&truth.get(i, j));
            let widths = (0..n).map(|i| upper.get(i, j) - lower.get(i, j));
            Ok(Self {
                held: Coverage::new(coverage, (0..n).filter(holds).count(), n)?,
                mean_width: widths.sum::<f64>() / n as f64,
            })
        };
        (0..truth.cols()).map(of_value).collect()
    }
}

impl SetScores {
    /// Compares sets of classes with the true ones.
    ///
    /// ```
    /// use lssvm::metrics::SetScores;
    /// let sets = [vec![0], vec![2, 1], vec![], vec![1]];
    /// let scores = SetScores::new(0.9, &sets, &[0, 1, 0, 0])?;
    /// assert_eq!((scores.held.measured, scores.mean_size), (0.5, 1.0));
    /// assert_eq!(scores.rows_by_size, [1, 2, 1]);
    /// # Ok::<(), lssvm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] if there are no rows, or not as many sets as classes.
    pub fn new(coverage: f64, sets: &[Vec<u32>], truth: &[u32]) -> Result<Self> {
        let mut counts = SetCounts::default();
        counts.add(sets, truth)?;
        counts.scores(coverage)
    }
}

/// Sets of classes compared with the true ones, some rows after the others.
#[derive(Debug, Clone, Default)]
pub struct SetCounts {
    held: usize,
    rows: usize,
    /// Rows whose set has 0, 1, 2, … classes.
    by_size: Vec<u64>,
}

impl SetCounts {
    /// Compares the sets of more rows.
    ///
    /// # Errors
    /// [`Error::Data`] if there are not as many sets as classes.
    pub fn add(&mut self, sets: &[Vec<u32>], truth: &[u32]) -> Result<()> {
        if sets.len() != truth.len() {
            let (sets, n) = (sets.len(), truth.len());
            return Err(Error::Data(format!(
                "{sets} sets cannot be compared with {n} true classes"
            )));
        }
        for (set, code) in sets.iter().zip(truth) {
            self.held += usize::from(set.contains(code));
            if self.by_size.len() <= set.len() {
                self.by_size.resize(set.len() + 1, 0);
            }
            self.by_size[set.len()] += 1;
        }
        self.rows += sets.len();
        Ok(())
    }

    /// How often sets that promise this held the truth.
    ///
    /// # Errors
    /// [`Error::Data`] if there were no rows.
    pub fn scores(self, coverage: f64) -> Result<SetScores> {
        let sizes = self.by_size.iter().enumerate();
        let classes: u64 = sizes.map(|(size, rows)| size as u64 * rows).sum();
        Ok(SetScores {
            held: Coverage::new(coverage, self.held, self.rows)?,
            mean_size: classes as f64 / self.rows as f64,
            rows_by_size: self.by_size,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_compared() {
        let (one, two) = (Matrix::zeros(1, 1), Matrix::zeros(2, 1));
        assert!(IntervalScores::new(0.9, &one, &two, &two).is_err());
        assert!(IntervalScores::new(0.9, &two, &two, &one).is_err());
        let none = Matrix::zeros(0, 1);
        assert!(IntervalScores::new(0.9, &none, &none, &none).is_err());
        assert!(SetScores::new(0.9, &[vec![0]], &[0, 1]).is_err());
        assert!(SetScores::new(0.9, &[], &[]).is_err());
    }

    #[test]
    fn intervals_without_end_hold_everything() {
        let (lower, upper) = (
            Matrix::from_fn(3, 1, |_, _| f64::NEG_INFINITY),
            Matrix::from_fn(3, 1, |_, _| f64::INFINITY),
        );
        let truth = Matrix::zeros(3, 1);
        let scores = &IntervalScores::new(0.99, &lower, &upper, &truth).unwrap()[0];
        assert_eq!(scores.held.measured, 1.0);
        assert_eq!(scores.mean_width, f64::INFINITY);
    }
}
