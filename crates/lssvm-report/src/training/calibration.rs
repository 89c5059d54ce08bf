//! Whether the probabilities come true.

use lssvm::metrics::{Calibration, CalibrationBin};
use lssvm::model::softmax;
use lssvm::train::Report;

use super::{Judged, Rows};
use crate::page::{Block, Section, Table};
use crate::plot::{Axis, Plot, Series, grouped};

/// Bins of the reliability diagram.
const BINS: usize = 20;

/// Reliability diagram, rows by confidence, and three scores.
pub(super) fn section(report: &Report, judged: Judged, codes: &[u32]) -> Option<Section> {
    let test = judged.evaluation;
    let bare = softmax(&test.scores);
    let before = Calibration::new(bare.view(), codes, BINS).ok()?;
    let scaling = report.scaling.as_ref();
    let probabilities = scaling.map_or(bare, |scaling| scaling.probabilities(&test.scores));
    // Scores that are not finite have no probabilities, and no section.
    let calibration = Calibration::new(probabilities.view(), codes, BINS).ok()?;
    let filled: Vec<_> = calibration.bins.iter().filter(|b| b.rows > 0).collect();
    let mut section = Section::new("calibration", "Calibration of the probabilities");
    section.text.push(
        "Rows are grouped by the probability of the predicted class. On the line y = x they are \
         right as often as they claim; above it the model is more often right than it says."
            .into(),
    );
    let classes = probabilities.cols().max(1) as f64;
    let most = std::f64::consts::E / (std::f64::consts::E + classes - 1.0);
    // As the library fits it: on left-out rows if there are any, else on validation rows.
    let fitted = match report.leave_one_out {
        Some(_) => Rows::LeftOut,
        None => Rows::Validation,
    };
    let on = match judged.rows == fitted {
        true => "these rows, which the model did not learn from; on others it is a little larger",
        false => "rows that the model did not learn from, and none of these",
    };
    section.text.push(match scaling {
        Some(scaling) => format!(
            "Scores are scaled by {:.2} before the softmax, with an offset for each class: the least \
             log loss on {on}.",
            scaling.slope
        ),
        None => format!(
            "Scores of a least-squares machine aim at 1 for the right class and 0 for the others, \
             so their softmax seldom goes beyond e / (e + K − 1) = {most:.2}: it claims little even \
             where it is right. With --loo, or with validation rows, they are scaled to mean what \
             they say."
        ),
    });
    let share = |label: &str| Axis::new(label).from(0.0).to(1.0);
    let mut plot = Plot::new(
        "reliability",
        "Reliability diagram",
        share("probability of the predicted class"),
        // A little more than 1, lest dots there be cut in half.
        share("share of rows that are right").to(1.03),
    );
    let points = filled.iter().map(|b| (b.confidence, b.accuracy));
    plot.series
        .push(Series::line(judged.rows.name(), points.collect()));
    if scaling.is_some() {
        let points = before.bins.iter().filter(|b| b.rows > 0);
        let points = points.map(|b| (b.confidence, b.accuracy));
        plot.series
            .push(Series::line("before scaling", points.collect()));
    }
    plot.diagonal = true;
    section.blocks.push(Block::Plot(plot));

    let mut plot = Plot::new(
        "confidence",
        "How sure the model is",
        share("probability of the predicted class"),
        Axis::new("rows"),
    );
    let middle = |b: &CalibrationBin| ((b.from + b.to) / 2.0, b.rows as f64);
    let bars = calibration.bins.iter().map(middle).collect();
    plot.series.push(Series::bars("rows", bars));
    section.blocks.push(Block::Plot(plot));

    let score = |name: &str, of: fn(&Calibration) -> f64| {
        let mut row = vec![name.to_string(), format!("{:.4}", of(&calibration))];
        if scaling.is_some() {
            row.push(format!("{:.4}", of(&before)));
        }
        row
    };
    let rows = [
        score("expected calibration error", |c| c.expected_error),
        score("Brier score (0 to 2)", |c| c.brier),
        score("log loss", |c| c.log_loss),
    ];
    let header = ["score", "value", "before scaling"];
    let header = &header[..if scaling.is_some() { 3 } else { 2 }];
    let table = Table::new("Scores of the probabilities", header, rows);
    section.blocks.push(Block::Table(table));
    let rows = filled.iter().map(|b| {
        [
            format!("{:.2} to {:.2}", b.from, b.to),
            grouped(b.rows as f64, 0),
            format!("{:.3}", b.confidence),
            format!("{:.3}", b.accuracy),
        ]
    });
    let header = ["probability", "rows", "mean", "right"];
    let table = Table::new("Rows by probability", header, rows);
    section.blocks.push(Block::Table(table));
    Some(section)
}
