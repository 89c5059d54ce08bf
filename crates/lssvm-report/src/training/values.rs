//! Predicted values against true ones.

use lssvm::linalg::Matrix;

use super::{Judged, Run};
use crate::page::{Block, Section};
use crate::plot::{Axis, Mark, Plot, Series, grouped};

/// Dots of a plot; more are a blot.
const MOST_POINTS: usize = 5_000;

/// Outputs that are drawn.
const MOST_OUTPUTS: usize = 4;

/// Two plots for each output.
pub(super) fn section(run: &Run, judged: Judged, values: &Matrix<f64>) -> Option<Section> {
    let (test, name) = (judged.evaluation, judged.rows.name());
    let outputs = test.scores.cols().min(values.cols());
    let rows = values.rows();
    if outputs == 0 || rows == 0 {
        return None;
    }
    let mut section = Section::new("predictions", "Predicted against true values");
    section.text.extend(judged.rows.remark().map(String::from));
    let every = rows.div_ceil(MOST_POINTS);
    if every > 1 {
        let rows = grouped(rows as f64, 0);
        section
            .text
            .push(format!("One in {every} of the {rows} {name} is drawn."));
    }
    if outputs > MOST_OUTPUTS {
        section.text.push(format!(
            "The first {MOST_OUTPUTS} of {outputs} outputs are drawn."
        ));
    }
    for output in 0..outputs.min(MOST_OUTPUTS) {
        let pair = |i: usize| (values.row(i)[output], test.scores.row(i)[output]);
        let pairs: Vec<_> = (0..rows).step_by(every).map(pair).collect();
        let output_name = run.name(output);
        let plots = plots(output, &output_name, name, &pairs);
        section.blocks.extend(plots.map(Block::Plot));
    }
    Some(section)
}

/// `pairs`: true and predicted, of these rows.
fn plots(output: usize, name: &str, rows: &str, pairs: &[(f64, f64)]) -> [Plot; 2] {
    let both = pairs.iter().flat_map(|p| [p.0, p.1]);
    let both = both.filter(|v| v.is_finite());
    let (low, high) = both.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
        (l.min(v), h.max(v))
    });
    // The same range on both axes, with a little room: y = x is a diagonal.
    let room = 0.03 * (high - low);
    let axis = |label: &str| match room > 0.0 && room.is_finite() {
        true => Axis::new(label).from(low - room).to(high + room),
        false => Axis::new(label),
    };
    let mut against = Plot::new(
        format!("predicted-{}", output + 1),
        format!("{name}: predicted against true"),
        axis("true value"),
        axis("predicted value"),
    );
    against.series.push(Series::dots(rows, pairs.to_vec()));
    against.diagonal = true;

    let mut residuals = Plot::new(
        format!("residuals-{}", output + 1),
        format!("{name}: true − predicted"),
        Axis::new("predicted value"),
        Axis::new("true − predicted"),
    );
    let points = pairs.iter().map(|&(truth, p)| (p, truth - p)).collect();
    residuals.series.push(Series::dots(rows, points));
    residuals.marks.push(Mark::new("perfect", 0.0));
    [against, residuals]
}
