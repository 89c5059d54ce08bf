//! How a run went: errors, residual, and where the time went.

use lssvm::data::Task;
use lssvm::solve::Method;
use lssvm::train::{HistoryLine, Report};

use crate::page::{Block, Section, Table};
use crate::plot::{Axis, Plot, Scale, Series};

/// Error against iterations and against seconds.
pub fn errors(report: &Report) -> Option<Section> {
    let label = match report.config.task {
        Task::Regression => "RMSE",
        _ => "error, %",
    };
    let test = |line: &HistoryLine| line.error_percent.or(line.rmse);
    let validation = |line: &HistoryLine| line.validation_error_percent.or(line.validation_rmse);
    let plot = |name: &str, title: &str, x: Axis, place: fn(&HistoryLine) -> f64| {
        let mut plot = Plot::new(name, title, x, Axis::new(label));
        plot.series = vec![
            Series::line("test", points(report, place, test)),
            Series::line("validation", points(report, place, validation)),
        ];
        plot.series.retain(|series| series.points.len() > 1);
        plot
    };
    let plots = [
        plot(
            "error-iterations",
            "Error against iterations",
            Axis::new("iteration"),
            |line| line.iteration as f64,
        ),
        plot(
            "error-seconds",
            "Error against time",
            Axis::new("time, s").from(0.0),
            |line| line.seconds,
        ),
    ];
    if plots[0].series.is_empty() {
        return None;
    }
    let mut section = Section::new("error", "Error during training");
    if report.best_iteration != report.iterations {
        section.text.push(format!(
            "The model has the weights of iteration {}, the best on the validation rows.",
            report.best_iteration
        ));
    }
    section.blocks.extend(plots.map(Block::Plot));
    Some(section)
}

/// Residual and change of the weights, on a logarithmic axis.
pub fn residual(report: &Report) -> Option<Section> {
    let iteration = |line: &HistoryLine| line.iteration as f64;
    let residual = points(report, iteration, |line| line.relative_residual);
    let change = points(report, iteration, |line| Some(line.relative_change));
    let y = Axis::new("relative size").scale(Scale::Log);
    let mut plot = Plot::new(
        "residual",
        "Residual and change of the weights",
        Axis::new("iteration"),
        y,
    );
    plot.series = vec![
        Series::line("residual", residual),
        Series::line("change", change),
    ];
    plot.series.retain(|series| series.points.len() > 1);
    if plot.series.is_empty() {
        return None;
    }
    let mut section = Section::new("residual", "Convergence");
    let what = match report.config.method {
        Method::Centers => {
            "The residual is that of the normal equations, in the norm of the preconditioner, as a \
             share of what it was before the first iteration"
        }
        _ => "The residual is ‖Z − ΘW‖ / ‖Z‖, where it was known",
    };
    section.text.push(format!(
        "{what}; the change is that of the weights in one iteration, ‖ΔW‖ / ‖W‖."
    ));
    section.blocks.push(Block::Plot(plot));
    Some(section)
}

fn points(
    report: &Report,
    x: impl Fn(&HistoryLine) -> f64,
    y: impl Fn(&HistoryLine) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let lines = report.history.iter();
    lines.filter_map(|line| Some((x(line), y(line)?))).collect()
}

/// A row for each phase.
pub fn time(report: &Report) -> Option<Section> {
    if report.phases.is_empty() {
        return None;
    }
    let whole = report.seconds.max(f64::MIN_POSITIVE);
    let row = |name: &str, seconds: f64, rate: String| {
        let share = format!("{:.1} %", 100.0 * seconds / whole);
        [name.to_string(), format!("{seconds:.2}"), share, rate]
    };
    let mut rows: Vec<_> = report
        .phases
        .iter()
        .map(|phase| {
            let rate = match phase.gflops > 0.0 && phase.gflops.is_finite() {
                true => format!("{:.1}", phase.gflops),
                false => "–".into(),
            };
            row(&phase.phase, phase.seconds, rate)
        })
        .collect();
    let known: f64 = report.phases.iter().map(|phase| phase.seconds).sum();
    // Preprocessing, and what is between the phases.
    rows.push(row("other", (report.seconds - known).max(0.0), "–".into()));
    rows.push(row("all", report.seconds, "–".into()));
    let header = ["phase", "seconds", "share", "GFLOP/s"];
    let mut section = Section::new("time", "Where the time went");
    let table = Table::new("Time of each phase", header, rows);
    section.blocks.push(Block::Table(table));
    Some(section)
}
