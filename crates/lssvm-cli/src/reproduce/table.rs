//! The closing table in the terminal: each run beside what the paper says.

use super::Results;
use super::curve::Settled;
use super::experiment::Run;
use super::measure::{Measure, error_of};
use crate::output::say;

pub fn print(results: &Results) {
    let width = results
        .runs
        .iter()
        .map(|run| run.label().chars().count())
        .max();
    let width = width.unwrap_or(0).max(3);
    let has_paper = results.experiment.has_paper();
    let last = if has_paper { "  paper" } else { "" };
    say(format!(
        "{:<width$}  {:>8}  {:>14}  {:>7}  {:>8}{last}",
        "run", "error", "settled at", "s/iter", "residual"
    ));
    for (run, report) in results.runs.iter().zip(&results.reports) {
        let Some(report) = report else {
            continue;
        };
        let (error, measure) = (error_of(report), Measure::of(report));
        let settled = Settled::new(&report.history);
        let residual = report.relative_residual;
        let line = format!(
            "{:<width$}  {:>8}  {:>14}  {:>7.2}  {:>8}  {}",
            run.label(),
            error.map_or("–".into(), |e| measure.show(e)),
            settled.map_or("–".into(), |s| s.show(measure) + measure.unit()),
            seconds_per_iteration(report),
            residual.map_or("–".into(), |r| format!("{r:.1e}")),
            paper(results, run),
        );
        say(line.trim_end());
    }
    match (results.quick, has_paper) {
        (true, true) => say(
            "--quick: fewer rows and iterations than the paper; its values are not to be reached",
        ),
        (true, false) => say("--quick: fewer rows and iterations than the whole experiment"),
        (false, _) => {}
    }
}

/// Wall time of the run alone, over its iterations.
pub fn seconds_per_iteration(report: &lssvm::train::Report) -> f64 {
    report
        .history
        .last()
        .map_or(0.0, |last| last.seconds / last.iteration as f64)
}

/// What the paper says of the figure that has this run.
pub fn paper(results: &Results, run: &Run) -> String {
    let figures = results.experiment.figures.iter();
    let figure = figures
        .filter(|f| !f.paper.text.is_empty())
        .find(|figure| figure.names().iter().any(|name| run.is(name)));
    figure.map_or(String::new(), |figure| figure.paper.text.clone())
}
