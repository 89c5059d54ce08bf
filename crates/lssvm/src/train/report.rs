//! What a training run or an evaluation has to say, for people and machines.

use serde::{Deserialize, Serialize, Serializer};

use super::prepare::Ready;
use super::{Effective, Estimate, WarmStart};
use crate::linalg::{Matrix, Scalar};
use crate::metrics::{ClassScores, Confusion, RegressionScores};
use crate::model::{Conformal, Model, Scaling, argmax, softmax};
use crate::ranks::Traffic;
use crate::solve::{Checkpointed, Iteration, PhaseReport, Solution, Stopped, Truth};
use crate::system::{Certificate, Format};
use crate::{Error, Result};

/// How well scores agree with the truth. Every row counts once, whatever it weighed in
/// training.
#[derive(Debug, Clone, Serialize)]
pub struct Evaluation {
    /// Rows that were scored.
    pub rows: usize,
    /// Share of wrong classes, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_percent: Option<f64>,
    /// 95 % confidence interval of it (Wilson; wider if it is an estimate).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_percent_interval: Option<(f64, f64)>,
    /// Precision and recall of each class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<ClassScores>>,
    /// True classes in rows, predicted ones in columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confusion: Option<Confusion>,
    /// Errors of predicted values.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub regression: Option<RegressionScores>,
    /// How far off the error may be, if it was estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// The scores themselves, a row for each row; none if only classes were compared.
    #[serde(skip)]
    pub scores: Matrix<f64>,
    /// What they were compared with, if they are there.
    #[serde(skip)]
    pub truth: Truth,
}

impl Evaluation {
    /// Compares scores with what they should be.
    pub fn new<T: Scalar>(scores: &Matrix<T>, truth: &Truth, names: &[String]) -> Result<Self> {
        if scores.rows() == 0 {
            return Err(Error::Data("there are no rows to evaluate on".into()));
        }
        let mut evaluation = match truth {
            Truth::Classes(codes) => Self::of_classes(codes, &argmax(scores), names)?,
            Truth::Values(_) => Self::nothing(scores.rows()),
        };
        (evaluation.scores, evaluation.truth) = (scores.cast(), truth.clone());
        if let Truth::Values(values) = truth {
            let scores = evaluation.scores.view();
            evaluation.regression = Some(RegressionScores::new(values.view(), scores)?);
        }
        Ok(evaluation)
    }

    /// Compares predicted classes with the true ones, where scores are more than can be
    /// kept.
    ///
    /// # Errors
    /// As [`Confusion::new`].
    pub fn of_classes(truth: &[u32], predicted: &[u32], names: &[String]) -> Result<Self> {
        let confusion = Confusion::new(names.to_vec(), truth, predicted)?;
        let (low, high) = confusion.error_interval();
        Ok(Self {
            error_percent: Some(confusion.error_percent()),
            error_percent_interval: Some((100.0 * low, 100.0 * high)),
            classes: Some(confusion.per_class()),
            confusion: Some(confusion),
            ..Self::nothing(truth.len())
        })
    }

    fn nothing(rows: usize) -> Self {
        Self {
            rows,
            error_percent: None,
            error_percent_interval: None,
            classes: None,
            confusion: None,
            regression: None,
            estimate: None,
            scores: Matrix::zeros(0, 0),
            truth: Truth::Classes(Vec::new()),
        }
    }

    /// The share of wrong rows in percent, or the RMSE, and its standard error.
    pub fn error(&self) -> (f64, f64) {
        let n = self.rows as f64;
        let estimated = self
            .estimate
            .map_or(0.0, |estimate| estimate.standard_error);
        if let Some(percent) = self.error_percent {
            let share = percent / 100.0;
            let of_rows = 100.0 * (share * (1.0 - share) / n).sqrt();
            return (percent, of_rows.hypot(estimated));
        }
        let Some(scores) = &self.regression else {
            return (f64::INFINITY, 0.0);
        };
        // Of the mean of the squares, whose root the RMSE is.
        let of_rows = scores.rmse / (2.0 * n).sqrt();
        (scores.rmse, of_rows.hypot(estimated))
    }
}

/// One line of the history, as machines read it.
#[derive(Debug, Clone, Serialize)]
pub struct HistoryLine {
    /// From 1 on.
    pub iteration: usize,
    /// Since the start of the run: preprocessing and the kernel matrix included, except
    /// for runs that share them ([`compare`](super::compare)).
    pub seconds: f64,
    /// On the test part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_percent: Option<f64>,
    /// On the test part, for regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmse: Option<f64>,
    /// On the validation part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_error_percent: Option<f64>,
    /// On the validation part, for regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_rmse: Option<f64>,
    /// ‖Z − ΘW‖ / ‖Z‖, exact or estimated.
    pub relative_residual: Option<f64>,
    /// ‖change of W‖ / ‖W‖
    pub relative_change: f64,
}

impl HistoryLine {
    /// `classes`: whether errors are shares of wrong classes.
    pub fn new(iteration: &Iteration, classes: bool) -> Self {
        let percent = |error: Option<f64>| error.filter(|_| classes).map(|e| 100.0 * e);
        let rmse = |error: Option<f64>| error.filter(|_| !classes);
        Self {
            iteration: iteration.iteration,
            seconds: iteration.seconds,
            error_percent: percent(iteration.test_error),
            rmse: rmse(iteration.test_error),
            validation_error_percent: percent(iteration.validation_error),
            validation_rmse: rmse(iteration.validation_error),
            relative_residual: iteration.residual.map(|r| r.relative),
            relative_change: iteration.relative_change,
        }
    }
}

/// What [`Report::summary`] says of a run.
#[derive(Deserialize)]
struct Told {
    iterations: usize,
    best_iteration: usize,
    stopped: Stopped,
    relative_residual: Option<f64>,
    relative_residual_exact: bool,
    #[serde(default)]
    tolerance_met: bool,
    jitter: f64,
}

/// What several ranks had a part in: bytes that were summed or handed over, as one of them
/// counts them.
#[derive(Debug, Clone, Serialize)]
pub struct Communicated {
    /// How many ranks there are.
    pub ranks: usize,
    /// In the iterations, following included.
    pub in_steps: Traffic,
    /// From reading the data to the last iteration.
    pub in_all: Traffic,
}

/// What a training run ended with.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// On the test part, if there is one.
    #[serde(flatten)]
    pub test: Option<Evaluation>,
    /// On the validation part, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<Evaluation>,
    /// Of the training rows, each by a model that never saw it; if wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leave_one_out: Option<Evaluation>,
    /// Why there is none, if it was wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leave_one_out_missing: Option<String>,
    /// How scores become probabilities, if there were rows to find out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// How far off the model is on such rows; it is in the model.
    #[serde(skip)]
    pub conformal: Option<Conformal>,
    /// Wall time of the training, preprocessing and following included; 0 if that is
    /// not known.
    pub seconds: f64,
    /// Iterations made.
    pub iterations: usize,
    /// The iteration whose weights the model has.
    pub best_iteration: usize,
    /// Why it ended.
    pub stopped: Stopped,
    /// ‖Z − ΘW‖ / ‖Z‖ of the model's weights.
    pub relative_residual: Option<f64>,
    /// False if that is an estimate from one block of rows.
    pub relative_residual_exact: bool,
    /// Whether the residual is known for certain to be within the tolerance.
    pub tolerance_met: bool,
    /// What is certain about the weights, if it was affordable to find out: the
    /// residual of each output, and by how much the objective could still fall.
    pub certificate: Option<Certificate>,
    /// The largest value that had to be added to a diagonal.
    pub jitter: f64,
    /// Where the time went; to machines, a map from the phase's name.
    #[serde(serialize_with = "by_name")]
    pub phases: Vec<PhaseReport>,
    /// Every iteration.
    pub history: Vec<HistoryLine>,
    /// Memory the run was expected to need at most, in bytes; 0 if that is not known.
    pub planned_memory_bytes: u64,
    /// How the kernel matrix was kept in memory, if it was.
    pub kernel_kept: Option<Format>,
    /// The most memory the process ever held, in bytes.
    pub peak_memory_bytes: Option<u64>,
    /// Training rows, features after preprocessing, and outputs.
    pub shape: [usize; 3],
    /// How keeping its state went, if that was wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<Checkpointed>,
    /// The rows it began with, if it began at the weights of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_start: Option<WarmStart>,
    /// What ranks that made the run together said to each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communicated: Option<Communicated>,
    /// Which training rows the model has, of those that were learned from.
    #[serde(skip)]
    pub support: Vec<usize>,
    /// The settings that were used.
    pub config: Effective,
}

fn by_name<S: Serializer>(phases: &[PhaseReport], serializer: S) -> Result<S::Ok, S::Error> {
    let numbers = |p: &PhaseReport| serde_json::json!({"seconds": p.seconds, "gflops": p.gflops});
    serializer.collect_map(phases.iter().map(|p| (&p.phase, numbers(p))))
}

/// Lines of the history that are saved in a model: some megabytes of text at most, far
/// from the longest header of a file, and more than a curve can show.
const SAVED_LINES: usize = 10_000;

impl Report {
    /// The part that is saved in the model: without times, so that the same run gives
    /// the same file.
    pub fn summary(&self) -> serde_json::Value {
        let test = self.test.as_ref();
        serde_json::json!({
            "iterations": self.iterations,
            "best_iteration": self.best_iteration,
            "stopped": self.stopped,
            "relative_residual": self.relative_residual,
            "relative_residual_exact": self.relative_residual_exact,
            "tolerance_met": self.tolerance_met,
            "jitter": self.jitter,
            "test_error_percent": test.and_then(|t| t.error_percent),
            "test_rmse": test.and_then(|t| t.regression.as_ref()).map(|r| r.rmse),
            "history": self.saved_history(),
        })
    }

    /// The history without times; of a very long one, lines at equal distances and the
    /// last.
    fn saved_history(&self) -> Vec<serde_json::Value> {
        let n = self.history.len();
        let step = n.div_ceil(SAVED_LINES).max(1);
        let lines = self.history.iter().enumerate();
        let saved = lines.filter(|(i, _)| (i + 1).is_multiple_of(step) || i + 1 == n);
        let without_time = |(_, line): (usize, &HistoryLine)| {
            let mut line = serde_json::to_value(line).unwrap_or_default();
            line.as_object_mut().map(|line| line.remove("seconds"));
            line
        };
        saved.map(without_time).collect()
    }

    /// What is known of the run that made a model: its settings and how it ended, but
    /// no times, and so no history, whose lines have them.
    ///
    /// # Errors
    /// [`Error::Data`] if the model was not made by [`fit`](super::fit).
    pub fn of_model<T: Scalar>(model: &Model<T>) -> Result<Self> {
        let unknown = |error: serde_json::Error| {
            Error::Data(format!(
                "the model does not say how it was trained ({error}); train it again"
            ))
        };
        let config = serde_json::from_value(model.config().clone()).map_err(unknown)?;
        let told: Told = serde_json::from_value(model.summary().clone()).map_err(unknown)?;
        Ok(Self {
            test: None,
            validation: None,
            leave_one_out: None,
            leave_one_out_missing: None,
            scaling: model.scaling().cloned(),
            conformal: model.conformal().cloned(),
            seconds: 0.0,
            iterations: told.iterations,
            best_iteration: told.best_iteration,
            stopped: told.stopped,
            relative_residual: told.relative_residual,
            relative_residual_exact: told.relative_residual_exact,
            tolerance_met: told.tolerance_met,
            certificate: None,
            jitter: told.jitter,
            phases: Vec::new(),
            history: Vec::new(),
            planned_memory_bytes: 0,
            kernel_kept: None,
            peak_memory_bytes: None,
            shape: [
                model.n_support(),
                model.pipeline().n_features_out(),
                model.n_outputs(),
            ],
            checkpoints: None,
            warm_start: None,
            communicated: None,
            support: Vec::new(),
            config,
        })
    }

    /// Probabilities of scores, as the model makes them.
    pub fn probabilities(&self, scores: &Matrix<f64>) -> Matrix<f64> {
        match &self.scaling {
            Some(scaling) => scaling.probabilities(scores),
            None => softmax(scores),
        }
    }

    /// How far the weights are from the solution, as people say it.
    pub fn residual_in_words(&self) -> Option<String> {
        let residual = self.relative_residual?;
        let Some(certificate) = &self.certificate else {
            let about = match self.relative_residual_exact {
                true => "",
                false => " (estimated)",
            };
            return Some(format!("{residual:.2e}{about}"));
        };
        let worst = certificate.relative_residuals.iter().copied();
        let worst = match certificate.relative_residuals.len() {
            0 | 1 => String::new(),
            _ => format!(", at most {:.2e} for an output", worst.fold(0.0, f64::max)),
        };
        let met = match (self.config.tolerance, self.tolerance_met) {
            // Nobody asked for one.
            (0.0, _) => String::new(),
            (tolerance, true) => format!("; within the tolerance of {tolerance:.0e}"),
            (tolerance, false) => format!("; above the tolerance of {tolerance:.0e}"),
        };
        // More than all of it can be rounding only.
        let gap = certificate.objective_gap / certificate.objective.max(f64::MIN_POSITIVE);
        Some(format!(
            "{residual:.2e}{worst}{met}; the training objective could fall by at most {}",
            share(gap.min(1.0))
        ))
    }

    pub(super) fn new<T: Scalar>(
        solution: &Solution<T>,
        config: Effective,
        classes: bool,
        ready: &Ready<T>,
    ) -> Self {
        let mut phases = ready.phases.clone();
        phases.add(&solution.phases);
        Self {
            test: None,
            validation: None,
            leave_one_out: None,
            leave_one_out_missing: solution.not_left_out.clone(),
            scaling: None,
            conformal: None,
            seconds: solution.seconds,
            iterations: solution.iterations,
            best_iteration: solution.best_iteration,
            stopped: solution.stopped,
            relative_residual: solution.residual.map(|r| r.relative),
            relative_residual_exact: solution.residual.is_some_and(|r| r.exact),
            tolerance_met: solution
                .residual
                .is_some_and(|r| r.exact && r.relative <= config.tolerance),
            certificate: solution.certificate.clone(),
            jitter: solution.jitter,
            phases: phases.report(),
            history: solution
                .history
                .iter()
                .map(|i| HistoryLine::new(i, classes))
                .collect(),
            planned_memory_bytes: ready.memory.bytes,
            kernel_kept: ready.memory.kernel,
            peak_memory_bytes: None,
            shape: ready.shape,
            checkpoints: None,
            warm_start: None,
            communicated: (!ready.ranks.is_alone()).then(|| Communicated {
                ranks: ready.ranks.size(),
                in_steps: solution.traffic,
                in_all: ready.ranks.traffic(),
            }),
            support: Vec::new(),
            config,
        }
    }
}

/// A share as people write it.
fn share(part: f64) -> String {
    match 100.0 * part {
        percent if percent >= 0.1 => format!("{percent:.1} %"),
        percent => format!("{percent:.1e} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Labels};
    use crate::solve::Silent;
    use crate::train::{Config, Data, fit};

    #[test]
    fn a_long_history_is_saved_in_part() {
        let x = Matrix::from_fn(12, 2, |i, j| ((i * 7 + j * 3) as f64).sin());
        let mut train = Dataset::new("waves".as_ref(), x);
        train.labels = Some(Labels::from_text((0..12).map(|i| ["a", "b"][i % 2])));
        let data = Data {
            train,
            validation: None,
            test: None,
        };
        let (_, mut report) = fit(data, &Config::default(), &mut Silent).unwrap();
        let line = report.history[0].clone();
        for (n, saved, first) in [(1, 1, 1), (10_000, 10_000, 1), (25_001, 8334, 3)] {
            let numbered = (1..=n).map(|iteration| HistoryLine {
                iteration,
                ..line.clone()
            });
            report.history = numbered.collect();
            let summary = report.summary();
            let history = summary["history"].as_array().unwrap();
            assert_eq!(history.len(), saved);
            assert_eq!(history[0]["iteration"], first);
            assert_eq!(history[saved - 1]["iteration"], n);
            assert!(history[0].get("seconds").is_none());
        }
    }
}
