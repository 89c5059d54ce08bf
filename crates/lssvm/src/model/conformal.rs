//! Intervals and sets that hold the truth as often as asked: conformal prediction.
//!
//! Rows that the model did not learn from say how far off it is. With the misfits r of n
//! such rows in increasing order,
//!
//! ```text
//!     q = r₍ₖ₎,  k = ⌈(n + 1) · coverage⌉          ∞ if k > n
//!     values:  rᵢ = |yᵢ − hᵢ|        interval  h(x) − q … h(x) + q, for each output
//!     classes: rᵢ = 1 − p(yᵢ)        set       all classes with 1 − p ≤ q
//! ```
//!
//! n + 1 and not n: the new row is one more of the same kind, and any place among them is
//! equally likely for it.
//!
//! The misfit of a class is the plainest one (Sadinle, Lei, Wasserman, "Least ambiguous
//! set-valued classifiers with bounded error levels", 2019): of all sets with this coverage
//! it makes the smallest on average if the probabilities are right, which is what they were
//! scaled for. The price: a row unlike all classes may get the empty set. Sets that add up
//! probabilities (Romano, Sesia, Candès, 2020) cover hard rows better, but are larger, and
//! are exact only if drawn at random.
//!
//! What is certain: rows kept apart that decide nothing else, drawn like the new ones, give
//! a coverage of at least what was asked, on average over such draws. Leave-one-out rows
//! are the jackknife, which has no such theorem without the assumption that one row changes
//! little (Barber, Candès, Ramdas, Tibshirani, "Predictive inference with the jackknife+",
//! 2021, who need all N models for a theorem). A ridge makes that assumption good; with
//! hardly any, and as many features as rows, 65 % were held of 90 % asked. What else is
//! measured: `tests/library/coverage.rs`, and docs/prediction.md.
//!
//! Every row counts once, whatever its weight in training: coverage is that of rows as they
//! come. Scaling of probabilities does the same.

use serde::{Deserialize, Serialize};

use super::{Model, Outputs};
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// So many misfits are all kept. Of more, the k-th greatest is kept where the distance to
/// the one before is at most k / `TAIL` and n / `BODY`: the interval of an asked coverage
/// is that of one which is greater by at most 0.002, and by 1/64 of what is missing to 1.
/// 15,000 rows leave 755, a million 1,027.
const ALL_KEPT: usize = 1_000;
const TAIL: usize = 64;
const BODY: usize = 500;

/// (n + 1) · coverage may be above a whole number by rounding, as 20 · 0.55 is.
const ROUNDING: f64 = 1e-12;

/// Which rows the misfits are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldOut {
    /// Training rows, each judged by a model that never saw it.
    LeaveOneOut,
    /// Rows that were not learned from.
    Validation,
}

/// How far off a model is on rows that it did not learn from.
///
/// ```
/// use lssvm::linalg::Matrix;
/// use lssvm::model::{Conformal, HeldOut};
/// let predicted = Matrix::<f64>::zeros(9, 1);
/// let truth = Matrix::from_fn(9, 1, |i, _| i as f64 - 5.0);
/// let conformal = Conformal::of_values(HeldOut::LeaveOneOut, &predicted, &truth)?;
/// // 0 1 1 2 2 3 3 4 5: the 8th of them, since ⌈10 · 0.8⌉ = 8.
/// assert_eq!(conformal.thresholds(0.8)?, [4.0]);
/// // Nine rows cannot promise 95 %.
/// assert_eq!(conformal.thresholds(0.95)?, [f64::INFINITY]);
/// # Ok::<(), lssvm::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conformal {
    from: HeldOut,
    /// n
    rows: usize,
    /// Places of the kept misfits among all in increasing order, from 1 on.
    ranks: Vec<usize>,
    /// The misfits at these places: a list for each value, or one for all classes. One
    /// that has misfits which are not finite ends before them.
    misfits: Vec<Vec<f64>>,
}

/// Lower and upper ends of intervals: a row for each row, a column for each value.
#[derive(Debug, Clone, PartialEq)]
pub struct Intervals {
    /// Lower ends.
    pub lower: Matrix<f64>,
    /// Upper ends.
    pub upper: Matrix<f64>,
}

impl Conformal {
    /// From values that were predicted, and the true ones.
    ///
    /// # Errors
    /// [`Error::Data`] if there are no rows, or the two have not the same shape.
    pub fn of_values(from: HeldOut, predicted: &Matrix<f64>, truth: &Matrix<f64>) -> Result<Self> {
        let (n, outputs) = (predicted.rows(), predicted.cols());
        if n == 0 || (truth.rows(), truth.cols()) != (n, outputs) {
            return Err(Error::Data(format!(
                "{n} x {outputs} predictions cannot be compared with {} x {} values",
                truth.rows(),
                truth.cols()
            )));
        }
        let misfit = |i, j| (truth.get(i, j) - predicted.get(i, j)).abs();
        let of_output = |j| (0..n).map(|i| misfit(i, j)).collect();
        Ok(Self::new(from, n, (0..outputs).map(of_output).collect()))
    }

    /// From probabilities of the classes, as the model gives them, and the true ones.
    ///
    /// # Errors
    /// [`Error::Data`] if there are no rows, or not one class for each.
    pub fn of_classes(from: HeldOut, probabilities: &Matrix<f64>, truth: &[u32]) -> Result<Self> {
        let (n, k) = (probabilities.rows(), probabilities.cols());
        if n == 0 || n != truth.len() || truth.iter().any(|&code| code as usize >= k) {
            return Err(Error::Data(format!(
                "{n} rows of probabilities cannot be compared with {} true classes",
                truth.len()
            )));
        }
        let misfit = |(i, &code): (usize, &u32)| 1.0 - probabilities.get(i, code as usize);
        let misfits = truth.iter().enumerate().map(misfit).collect();
        Ok(Self::new(from, n, vec![misfits]))
    }

    fn new(from: HeldOut, rows: usize, misfits: Vec<Vec<f64>>) -> Self {
        let ranks = kept_ranks(rows);
        let thinned = |mut all: Vec<f64>| {
            // What is not finite is farther off than any number.
            all.retain(|r| r.is_finite());
            all.sort_by(f64::total_cmp);
            let kept = ranks.iter().map_while(|&rank| all.get(rank - 1));
            kept.copied().collect()
        };
        Self {
            from,
            rows,
            misfits: misfits.into_iter().map(thinned).collect(),
            ranks,
        }
    }

    /// Which rows the misfits are of.
    pub fn from(&self) -> HeldOut {
        self.from
    }

    /// n: how many rows there were.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// q: the misfit that a new row exceeds with a probability of at most 1 − coverage; for
    /// each value, or one for all classes. Infinite if there are too few rows to say.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the coverage is not between 0 and 1.
    pub fn thresholds(&self, coverage: f64) -> Result<Vec<f64>> {
        if !(coverage > 0.0 && coverage < 1.0) {
            let requirement = "must be between 0 and 1, such as 0.9 for 90 %";
            return Err(Error::parameter("coverage", coverage, requirement));
        }
        let rank = (self.rows as f64 + 1.0) * coverage * (1.0 - ROUNDING);
        let rank = rank.ceil() as usize;
        // The next that is kept: it covers a little more.
        let at = self.ranks.partition_point(|&kept| kept < rank);
        let of_list = |list: &Vec<f64>| list.get(at).copied().unwrap_or(f64::INFINITY);
        Ok(self.misfits.iter().map(of_list).collect())
    }

    /// Intervals around predicted values that hold the true ones of a share `coverage` of
    /// rows: each value for itself, not all at once.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the coverage is not between 0 and 1; [`Error::Data`] if there
    /// are more values than this knows of.
    pub fn intervals(&self, predicted: &Matrix<f64>, coverage: f64) -> Result<Intervals> {
        let margins = self.thresholds(coverage)?;
        if predicted.cols() != margins.len() {
            return Err(Error::Data(format!(
                "misfits of {} values make no intervals of {}",
                margins.len(),
                predicted.cols()
            )));
        }
        let end = |sign: f64| {
            Matrix::from_fn(predicted.rows(), predicted.cols(), |i, j| {
                predicted.get(i, j) + sign * margins[j]
            })
        };
        Ok(Intervals {
            lower: end(-1.0),
            upper: end(1.0),
        })
    }

    /// Sets of classes that hold the true one of a share `coverage` of rows, from
    /// probabilities as the model gives them; the most probable class first.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the coverage is not between 0 and 1.
    pub fn sets(&self, probabilities: &Matrix<f64>, coverage: f64) -> Result<Vec<Vec<u32>>> {
        let largest = self.thresholds(coverage)?[0];
        let set = |i: usize| {
            let p = probabilities.row(i);
            let fits = |&k: &u32| 1.0 - p[k as usize] <= largest;
            let mut set: Vec<u32> = (0..p.len() as u32).filter(fits).collect();
            set.sort_by(|&a, &b| p[b as usize].total_cmp(&p[a as usize]));
            set
        };
        Ok((0..probabilities.rows()).map(set).collect())
    }

    /// Whether it fits a model with these outputs, and is what it should be.
    pub(super) fn check(&self, outputs: &Outputs) -> Result<()> {
        let lists = match outputs {
            Outputs::Classes { .. } => 1,
            Outputs::Values { names } => names.len(),
        };
        let increasing = self.ranks.windows(2).all(|pair| pair[0] < pair[1]);
        let first = self.ranks.first().is_some_and(|&rank| rank >= 1);
        let last = self.ranks.last() == Some(&self.rows);
        let in_order = |list: &Vec<f64>| {
            list.len() <= self.ranks.len()
                && list.iter().all(|r| r.is_finite() && *r >= 0.0)
                && list.windows(2).all(|pair| pair[0] <= pair[1])
        };
        let fits = self.misfits.len() == lists && self.misfits.iter().all(in_order);
        match increasing && first && last && fits {
            true => Ok(()),
            false => Err(Error::Data(format!(
                "the {} lists of misfits of {} rows, from which the model makes intervals and \
                 sets, are not those of its {lists}, or not in order: train it again",
                self.misfits.len(),
                self.rows
            ))),
        }
    }
}

/// Places among n numbers in increasing order, from 1 on, that are kept.
fn kept_ranks(n: usize) -> Vec<usize> {
    let longest = if n <= ALL_KEPT { 1 } else { n / BODY };
    let mut ranks = Vec::new();
    let mut above = 0;
    while above < n {
        ranks.push(n - above);
        above += (above / TAIL).clamp(1, longest);
    }
    ranks.reverse();
    ranks
}

impl<T: Scalar> Model<T> {
    /// How far off it is on rows that it did not learn from, if that is known.
    pub fn conformal(&self) -> Option<&Conformal> {
        self.description.conformal.as_ref()
    }

    /// Intervals that hold the true values of a share `coverage` of rows like those of the
    /// training: each value for itself, not all at once.
    ///
    /// # Errors
    /// As [`Model::decision_function`]; [`Error::Parameter`] if the coverage is not between
    /// 0 and 1; [`Error::Data`] if the model does not predict values, or was trained
    /// without leave-one-out scores and validation rows.
    pub fn predict_intervals(&self, x: Matrix<T>, coverage: f64) -> Result<Intervals> {
        self.margins(coverage)?;
        self.intervals_of(&self.decision_function(x)?, coverage)
    }

    /// The same from predicted values.
    ///
    /// # Errors
    /// As [`Model::predict_intervals`].
    pub fn intervals_of(&self, values: &Matrix<T>, coverage: f64) -> Result<Intervals> {
        self.margins(coverage)?;
        self.known_misfits()?.intervals(&values.cast(), coverage)
    }

    /// Half the width of such an interval, for each value: all rows have the same.
    ///
    /// # Errors
    /// As [`Model::predict_intervals`].
    pub fn margins(&self, coverage: f64) -> Result<Vec<f64>> {
        match self.outputs() {
            Outputs::Values { .. } => self.known_misfits()?.thresholds(coverage),
            Outputs::Classes { .. } => Err(Error::Data(
                "this model predicts classes, which have no intervals: ask it for sets of \
                 classes"
                    .into(),
            )),
        }
    }

    /// Sets of classes that hold the true one of a share `coverage` of rows like those of
    /// the training: positions in the names of the classes, the most probable first. A row
    /// unlike all classes may get an empty one.
    ///
    /// # Errors
    /// As [`Model::decision_function`]; [`Error::Parameter`] if the coverage is not between
    /// 0 and 1; [`Error::Data`] if the model does not predict classes, or was trained
    /// without leave-one-out scores and validation rows.
    pub fn predict_sets(&self, x: Matrix<T>, coverage: f64) -> Result<Vec<Vec<u32>>> {
        self.largest_misfit(coverage)?;
        self.sets_of(&self.decision_function(x)?, coverage)
    }

    /// The same from scores.
    ///
    /// # Errors
    /// As [`Model::predict_sets`].
    pub fn sets_of(&self, scores: &Matrix<T>, coverage: f64) -> Result<Vec<Vec<u32>>> {
        self.largest_misfit(coverage)?;
        let probabilities = self.probabilities_of(scores);
        self.known_misfits()?.sets(&probabilities, coverage)
    }

    /// The largest 1 − p of a class in a set.
    ///
    /// # Errors
    /// As [`Model::predict_sets`].
    pub fn largest_misfit(&self, coverage: f64) -> Result<f64> {
        match self.outputs() {
            Outputs::Classes { .. } => Ok(self.known_misfits()?.thresholds(coverage)?[0]),
            Outputs::Values { .. } => Err(Error::Data(
                "this model predicts values, not classes: ask it for intervals".into(),
            )),
        }
    }

    fn known_misfits(&self) -> Result<&Conformal> {
        self.conformal().ok_or_else(|| {
            Error::Data(
                "this model does not know how far off it is on rows that it did not learn from, \
                 so that it has no intervals and no sets: train it with --loo \
                 (leave_one_out=True in Python), or with validation rows"
                    .into(),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: impl IntoIterator<Item = f64>) -> Matrix<f64> {
        let values: Vec<f64> = values.into_iter().collect();
        Matrix::from_vec(values.len(), 1, values)
    }

    fn of_residuals(residuals: &[f64]) -> Conformal {
        let zeros = Matrix::zeros(residuals.len(), 1);
        let truth = column(residuals.iter().copied());
        Conformal::of_values(HeldOut::LeaveOneOut, &zeros, &truth).unwrap()
    }

    fn threshold(conformal: &Conformal, coverage: f64) -> f64 {
        conformal.thresholds(coverage).unwrap()[0]
    }

    #[test]
    fn the_quantile_by_hand() {
        // Of 19 residuals the k-th smallest is k.
        let residuals: Vec<f64> = (1..=19).map(|i| f64::from(i * 7 % 20)).collect();
        let signed: Vec<f64> = residuals.iter().map(|r| r * (9.5 - r).signum()).collect();
        let conformal = of_residuals(&signed);
        // ⌈20 · coverage⌉; 20 · 0.55 is above 11 by rounding.
        let expected = [
            (0.01, 1.0),
            (0.05, 1.0),
            (0.051, 2.0),
            (0.5, 10.0),
            (0.55, 11.0),
            (0.9, 18.0),
            (0.949, 19.0),
            (0.95, 19.0),
            (0.951, f64::INFINITY),
            (0.999_999, f64::INFINITY),
        ];
        for (coverage, expected) in expected {
            assert_eq!(threshold(&conformal, coverage), expected, "{coverage}");
        }
        for wrong in [0.0, 1.0, -0.1, 90.0, f64::NAN] {
            let message = conformal.thresholds(wrong).unwrap_err().to_string();
            assert!(message.contains("between 0 and 1"), "{message}");
        }
    }

    #[test]
    fn misfits_of_classes_by_hand() {
        let p = Matrix::from_rows(&[[0.75, 0.25], [0.5, 0.5], [0.125, 0.875], [0.0, 1.0]]);
        // 0.25, 0.5, 0.875, 0.
        let conformal = Conformal::of_classes(HeldOut::Validation, &p, &[0, 1, 0, 1]).unwrap();
        let at = [0.2, 0.4, 0.6, 0.8].map(|coverage| threshold(&conformal, coverage));
        assert_eq!(at, [0.0, 0.25, 0.5, 0.875]);
        assert_eq!(threshold(&conformal, 0.81), f64::INFINITY);
        assert_eq!(
            (conformal.from(), conformal.rows()),
            (HeldOut::Validation, 4)
        );
        assert!(Conformal::of_classes(HeldOut::Validation, &p, &[0, 1, 2, 1]).is_err());
        assert!(Conformal::of_classes(HeldOut::Validation, &p, &[0]).is_err());
    }

    #[test]
    fn outputs_have_their_own() {
        let truth = Matrix::from_rows(&[[1.0, 10.0], [-2.0, 30.0], [3.0, -20.0]]);
        let conformal = Conformal::of_values(HeldOut::LeaveOneOut, &Matrix::zeros(3, 2), &truth);
        assert_eq!(conformal.unwrap().thresholds(0.5).unwrap(), [2.0, 20.0]);
        let narrow = Matrix::zeros(3, 1);
        assert!(Conformal::of_values(HeldOut::LeaveOneOut, &narrow, &truth).is_err());
    }

    #[test]
    fn what_is_not_finite_is_infinitely_far_off() {
        let conformal = of_residuals(&[1.0, f64::NAN, 2.0, f64::NEG_INFINITY]);
        assert_eq!(threshold(&conformal, 0.4), 2.0);
        assert_eq!(threshold(&conformal, 0.6), f64::INFINITY);
        let names = vec![String::new()];
        conformal.check(&Outputs::Values { names }).unwrap();
    }

    #[test]
    fn of_many_rows_few_are_kept_and_coverage_is_rounded_up_a_little() {
        for n in [1, 2, 999, 1_000, 1_001, 1_500, 15_000, 77_777, 1_000_000] {
            let ranks = kept_ranks(n);
            assert!(ranks.len() <= 1_050, "{n}: {}", ranks.len());
            assert_eq!((ranks[0] >= 1, ranks.last()), (true, Some(&n)));
            assert!(n > 1_000 || ranks.len() == n);
            let mut kept = 0;
            for rank in 1..=n {
                if ranks[kept] < rank {
                    kept += 1;
                }
                let more = ranks[kept] - rank;
                assert!(more * TAIL <= n - rank && more * BODY <= n, "{n}, {rank}");
            }
        }
        let residuals: Vec<f64> = (1..=20_000).map(f64::from).collect();
        let conformal = of_residuals(&residuals);
        let exact = (20_001.0f64 * 0.9).ceil();
        let kept = threshold(&conformal, 0.9);
        assert!(kept >= exact && kept <= exact + 32.0, "{kept}, {exact}");
        // One of the last is kept as it is.
        assert_eq!(threshold(&conformal, 0.9999), 19_999.0);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let good = of_residuals(&[1.0, 2.0, 3.0]);
        let names = |n: usize| vec![String::new(); n];
        let values = |n| Outputs::Values { names: names(n) };
        good.check(&values(1)).unwrap();
        good.check(&Outputs::Classes { names: names(5) }).unwrap();
        assert!(good.check(&values(2)).is_err());
        let changes: [fn(&mut Conformal); 9] = [
            |c| c.rows = 4,
            |c| c.rows = 0,
            |c| c.ranks.clear(),
            |c| c.ranks[0] = 0,
            |c| c.ranks[1] = 1,
            |c| c.misfits[0][1] = 9.0,
            |c| c.misfits[0][0] = -1.0,
            |c| c.misfits[0][2] = f64::INFINITY,
            |c| c.misfits[0].push(4.0),
        ];
        for change in changes {
            let mut bad = good.clone();
            change(&mut bad);
            let message = bad.check(&values(1)).unwrap_err().to_string();
            assert!(message.contains("train it again"), "{message}");
        }
    }
}
