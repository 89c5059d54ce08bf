//! Every c from one factorisation.

use std::time::Instant;

use serde::Serialize;

use super::study::{PathPoint, Study};
use super::{Config, Effective, StreamData, Watcher};
use crate::linalg::Scalar;
use crate::memory;
use crate::solve::{Flow, PhaseReport};
use crate::{Error, Result};

/// Errors along a path over c.
#[derive(Debug, Clone, Serialize)]
pub struct CPath {
    /// In the order of c, the smallest first.
    pub points: Vec<PathPoint>,
    /// The c with the least error: of validation rows if there are any, else leave-one-out.
    pub best: f64,
    /// The smallest c whose error is within one standard error of the least.
    pub simplest: f64,
    /// Whether leave-one-out errors are exact, or their diagonal is interpolated.
    pub exact: bool,
    /// All other settings.
    pub config: Effective,
    /// Seconds in all.
    pub seconds: f64,
    /// Where they went.
    pub phases: Vec<PhaseReport>,
    /// The most memory that the process used so far.
    pub peak_memory_bytes: Option<u64>,
}

/// Leave-one-out errors, and those of validation rows if there are any, for values of c,
/// from one factorisation at the largest of them ([`crate::solve::path`]).
///
/// ```
/// use lssvm::data::{Dataset, Labels};
/// use lssvm::linalg::Matrix;
/// use lssvm::train::{Config, Data, c_values, path};
/// // Two noisy clouds around (0, 0) and (3, 3).
/// let x = Matrix::from_fn(60, 2, |i, j| (i % 2) as f32 * 3.0 + ((i * 7 + j * 3) as f32).sin());
/// let mut train = Dataset::new("clouds".as_ref(), x);
/// train.labels = Some(Labels::from_text((0..60).map(|i| ["near", "far"][i % 2])));
/// let data = Data { train, validation: None, test: None };
/// let cs = c_values(1e-3, 1e3, 50)?;
/// let found = path(data, &Config::default(), &cs, &mut lssvm::solve::Silent)?;
/// assert_eq!(found.points.len(), 50);
/// assert!(found.simplest <= found.best);
/// # Ok::<(), lssvm::Error>(())
/// ```
///
/// # Errors
/// As [`super::fit`]; [`Error::Numeric`] for a kernel that is not positive, on many rows.
pub fn path<T: Scalar>(
    data: impl Into<StreamData<T>>,
    config: &Config,
    cs: &[f64],
    watcher: &mut dyn Watcher,
) -> Result<CPath> {
    T::path(data.into(), config, cs, watcher)
}

pub(crate) fn path_of<T: Scalar>(
    data: StreamData<T>,
    config: &Config,
    cs: &[f64],
    watcher: &mut dyn Watcher,
) -> Result<CPath> {
    let start = Instant::now();
    let mut cs = cs.to_vec();
    cs.sort_by(f64::total_cmp);
    cs.dedup();
    cs.iter().try_for_each(|&c| crate::system::check_c(c))?;
    let Some(&largest) = cs.last() else {
        return Err(Error::parameter("values", 0, "must be at least 1"));
    };
    let config = Config {
        c: Some(largest),
        method: Some(crate::solve::Method::Exact),
        loo: Some(true),
        ..config.clone()
    };
    let mut study = Study::new(data, &config)?;
    let mut told = |done: f64| watcher.progress(done) == Flow::Continue;
    let points = study.path(&config, &cs, false, &mut told)?;
    let (best, simplest) = choose(&points);
    Ok(CPath {
        best,
        simplest,
        points,
        exact: study.is_exact(),
        phases: study.phases.report(),
        config: study.config().clone(),
        seconds: start.elapsed().as_secs_f64(),
        peak_memory_bytes: memory::peak(),
    })
}

/// So many values of c from one to another, each the same multiple of the one before.
///
/// # Errors
/// [`Error::Parameter`] if they are not positive and in order.
pub fn c_values(from: f64, to: f64, count: usize) -> Result<Vec<f64>> {
    crate::system::check_c(from)?;
    crate::system::check_c(to)?;
    if count == 0 {
        return Err(Error::parameter("values", count, "must be at least 1"));
    }
    if to < from {
        let requirement = format!("must not be less than the smallest, {from}");
        return Err(Error::parameter("to", to, requirement));
    }
    let steps = (count.max(2) - 1) as f64;
    let at = |i: usize| match i {
        0 if count == 1 => to,
        i if i + 1 == count => to,
        i => from * (to / from).powf(i as f64 / steps),
    };
    Ok((0..count).map(at).collect())
}

/// The c with the least error, and the smallest within one standard error of it.
fn choose(points: &[PathPoint]) -> (f64, f64) {
    let error = |point: &PathPoint| point.validation_error.unwrap_or(point.error);
    // Of equal ones the first, which has the smallest c.
    let best = points.iter().min_by(|a, b| error(a).total_cmp(&error(b)));
    let Some(best) = best else {
        return (f64::NAN, f64::NAN);
    };
    let most = error(best) + best.standard_error;
    let simplest = points.iter().find(|point| error(point) <= most);
    (best.c, simplest.unwrap_or(best).c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Precision;

    #[test]
    fn values_go_from_one_end_to_the_other() {
        let close =
            |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a / b - 1.0).abs() < 1e-12);
        let found = c_values(0.01, 100.0, 5).unwrap();
        assert!(close(&found, &[0.01, 0.1, 1.0, 10.0, 100.0]) && found.len() == 5);
        assert_eq!(c_values(0.1, 3.0, 1).unwrap(), [3.0]);
        assert_eq!(c_values(3.0, 3.0, 2).unwrap(), [3.0, 3.0]);
        for (from, to, count) in [
            (0.0, 1.0, 3),
            (1.0, f64::NAN, 3),
            (2.0, 1.0, 3),
            (1.0, 2.0, 0),
        ] {
            assert!(c_values(from, to, count).is_err());
        }
    }

    #[test]
    fn the_simplest_is_within_one_standard_error() {
        let point = |c: f64, error: f64| PathPoint {
            c,
            error,
            standard_error: 0.5,
            validation_error: None,
            residual: 0.0,
            diagonal_error: 0.0,
            precision: Precision::F64,
        };
        let points = [
            point(0.1, 9.0),
            point(1.0, 4.4),
            point(10.0, 4.0),
            point(100.0, 4.0),
        ];
        assert_eq!(choose(&points), (10.0, 1.0));
    }
}
