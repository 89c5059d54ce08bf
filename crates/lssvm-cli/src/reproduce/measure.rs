//! What errors are counted in: rows of the wrong class in percent, or for values
//! the RMSE in their unit.

use lssvm::train::{HistoryLine, Report};
use lssvm_report::short;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    Percent,
    Rmse,
}

impl Measure {
    pub fn of(report: &Report) -> Self {
        let values = report.test.as_ref().is_some_and(|t| t.regression.is_some());
        Self::new(!values)
    }

    pub fn new(classes: bool) -> Self {
        match classes {
            true => Self::Percent,
            false => Self::Rmse,
        }
    }

    /// In a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Percent => "test error",
            Self::Rmse => "test RMSE",
        }
    }

    /// Over an axis or a column of bare numbers.
    pub fn heading(self, what: &str) -> String {
        match self {
            Self::Percent => format!("{what}, %"),
            Self::Rmse => format!("{what} (RMSE)"),
        }
    }

    /// A bare number.
    pub fn number(self, error: f64) -> String {
        match self {
            Self::Percent => format!("{error:.2}"),
            Self::Rmse => short(error),
        }
    }

    /// What is after numbers that stand alone.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Percent => " %",
            Self::Rmse => "",
        }
    }

    /// With its unit.
    pub fn show(self, error: f64) -> String {
        self.number(error) + self.unit()
    }
}

/// The error on the test part after an iteration.
pub fn error_at(line: &HistoryLine) -> Option<f64> {
    line.error_percent.or(line.rmse)
}

/// The error on the test part at the end.
pub fn error_of(report: &Report) -> Option<f64> {
    let test = report.test.as_ref()?;
    let rmse = test.regression.as_ref().map(|scores| scores.rmse);
    test.error_percent.or(rmse)
}

/// The 95 % confidence interval of it.
pub fn interval_of(report: &Report) -> Option<(f64, f64)> {
    let test = report.test.as_ref()?;
    let rmse = test
        .regression
        .as_ref()
        .and_then(|scores| scores.rmse_interval);
    test.error_percent_interval.or(rmse)
}
