//! The page of a training run.
//!
//! ```text
//! result ─ facts ─ error curves ─ residual ─ time ─┬─ confusion, mistakes, calibration, sets
//!                                                  └─ predicted against true, intervals
//! ```
//!
//! A section that has nothing to show is left out. Without test rows the model is judged
//! by validation rows, or by training rows that were left out in turn, and says so.

mod calibration;
mod classes;
mod coverage;
mod curves;
mod facts;
mod mistakes;
mod values;

pub use classes::class_table;
pub use facts::kernel_in_words;
use lssvm::solve::Truth;
use lssvm::train::{Evaluation, Report};

use crate::machine::Machine;
use crate::page::{Page, Section};
use crate::picture::Pictures;
use crate::plot::{grouped, short};

/// A training run and what belongs to it.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// What the run ended with.
    pub report: &'a Report,
    /// What was read.
    pub data: String,
    /// Names of the outputs.
    pub names: &'a [String],
    /// The test rows as images, if they are images.
    pub pictures: Option<&'a Pictures>,
    /// Where it ran.
    pub machine: Machine,
}

impl Run<'_> {
    /// The name of an output; its number if it has none.
    fn name(&self, output: usize) -> String {
        match self.names.get(output).map(String::as_str) {
            None | Some("") => format!("output {}", output + 1),
            Some(name) => name.into(),
        }
    }
}

/// Everything there is to say about a training run.
///
/// ```
/// use lssvm::data::{Dataset, Labels};
/// use lssvm::linalg::Matrix;
/// use lssvm::train::{Config, Data, fit};
/// use lssvm_report::{Machine, Run, training_page};
/// // Two noisy clouds around (0, 0) and (3, 3).
/// let x = Matrix::from_fn(60, 2, |i, j| (i % 2) as f32 * 3.0 + ((i * 7 + j * 3) as f32).sin());
/// let mut clouds = Dataset::new("clouds".as_ref(), x);
/// clouds.labels = Some(Labels::from_text((0..60).map(|i| ["near", "far"][i % 2])));
/// let (train, test) = clouds.split(0.5, 1)?;
/// let data = Data { train, validation: None, test: Some(test) };
/// let (model, report) = fit(data, &Config::default(), &mut lssvm::solve::Silent)?;
///
/// let page = training_page(&Run {
///     report: &report,
///     data: "clouds".into(),
///     names: model.outputs().names(),
///     pictures: None,
///     machine: Machine::detect(),
/// });
/// assert!(page.lead.contains("of 30 test rows are classified wrong"));
/// # Ok::<(), lssvm::Error>(())
/// ```
pub fn training_page(run: &Run) -> Page {
    let mut page = Page::new(format!("Training on {}", run.data), lead(run.report));
    facts::add(&mut page, run);
    page.sections.extend(curves::errors(run.report));
    page.sections.extend(curves::residual(run.report));
    page.sections.extend(curves::time(run.report));
    if let Some(judged) = Judged::by(run.report) {
        page.sections.extend(classes::confusion(judged));
        match &judged.evaluation.truth {
            Truth::Classes(codes) => {
                // The pictures are those of the test rows.
                if judged.rows == Rows::Test {
                    let test = judged.evaluation;
                    page.sections.extend(mistakes::section(run, test, codes));
                }
                page.sections
                    .extend(calibration::section(run.report, judged, codes));
            }
            Truth::Values(values) => page.sections.extend(values::section(run, judged, values)),
        }
        page.sections.extend(coverage::section(run, judged));
    }
    page
}

/// Rows that say how good a model is.
#[derive(Debug, Clone, Copy)]
struct Judged<'a> {
    evaluation: &'a Evaluation,
    rows: Rows,
}

/// Which rows they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    Test,
    Validation,
    LeftOut,
}

impl<'a> Judged<'a> {
    /// Test rows if there are any, which decided nothing; else validation rows, or
    /// training rows by models that did not see them.
    fn by(report: &'a Report) -> Option<Self> {
        let of = |evaluation: &'a Option<Evaluation>, rows| {
            let evaluation = evaluation.as_ref()?;
            Some(Self { evaluation, rows })
        };
        of(&report.test, Rows::Test)
            .or_else(|| of(&report.validation, Rows::Validation))
            .or_else(|| of(&report.leave_one_out, Rows::LeftOut))
    }
}

impl Rows {
    fn name(self) -> &'static str {
        match self {
            Self::Test => "test rows",
            Self::Validation => "validation rows",
            Self::LeftOut => "left-out training rows",
        }
    }

    /// What must be known of them to trust what they say.
    fn remark(self) -> Option<&'static str> {
        match self {
            Self::Test => None,
            Self::Validation => Some(
                "There was no test part: these are the validation rows. Where they decided when \
                 training ended, new rows may do a little worse.",
            ),
            Self::LeftOut => Some(
                "There was no test part: each training row is judged by a model that was made \
                 without it.",
            ),
        }
    }
}

/// Whether the probabilities of a run come true; none for values, and without rows that
/// were not learned from.
pub fn calibration(report: &Report) -> Option<Section> {
    let judged = Judged::by(report)?;
    match &judged.evaluation.truth {
        Truth::Classes(codes) => calibration::section(report, judged, codes),
        Truth::Values(_) => None,
    }
}

/// The result in one sentence.
fn lead(report: &Report) -> String {
    match Judged::by(report) {
        Some(judged) if judged.rows == Rows::Test => sentence(judged),
        Some(judged) => format!("There was no test part. {}", sentence(judged)),
        None => "There was no test part, so nothing is known about new data.".into(),
    }
}

fn sentence(judged: Judged) -> String {
    let (evaluation, name) = (judged.evaluation, judged.rows.name());
    let rows = grouped(evaluation.rows as f64, 0);
    let rows = match evaluation.rows {
        1 => format!("{rows} {}", name.trim_end_matches('s')),
        _ => format!("{rows} {name}"),
    };
    if let Some(scores) = &evaluation.regression {
        let (rmse, mae, r2) = (short(scores.rmse), short(scores.mae), scores.r2);
        let estimate = evaluation.estimate.map_or(String::new(), |estimate| {
            format!(" ± {} (estimated)", short(estimate.standard_error))
        });
        let interval = scores.rmse_interval.map_or(String::new(), |(low, high)| {
            let (low, high) = (short(low), short(high));
            format!(" (95 % confidence interval {low} to {high})")
        });
        return format!(
            "On {rows} the RMSE is {rmse}{estimate}{interval}, the MAE {mae}, and R² is {r2:.4}."
        );
    }
    match (evaluation.error_percent, evaluation.error_percent_interval) {
        (Some(error), Some((low, high))) => {
            let estimate = evaluation.estimate.map_or(String::new(), |estimate| {
                format!(" ± {:.2} % (estimated)", estimate.standard_error)
            });
            format!(
                "{error:.2} %{estimate} of {rows} are classified wrong (95 % confidence interval \
                 {low:.2} to {high:.2} %)."
            )
        }
        _ => format!("{rows} were scored."),
    }
}
