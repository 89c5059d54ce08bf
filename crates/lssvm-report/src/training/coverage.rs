//! Intervals and sets of classes: what they promise, what they hold, and how much they say.

use lssvm::linalg::Matrix;
use lssvm::metrics::{Coverage, IntervalScores, SetScores};
use lssvm::model::{Conformal, HeldOut};
use lssvm::solve::Truth;

use super::{Judged, Rows, Run};
use crate::page::{Block, Section, Table};
use crate::plot::{Axis, Plot, Series, grouped, short};

/// Promises of the table.
const TABLED: [f64; 4] = [0.8, 0.9, 0.95, 0.99];

/// Promises of the plots, in percent.
const DRAWN: std::ops::RangeInclusive<u32> = 50..=99;

/// Outputs that are shown.
const MOST_OUTPUTS: usize = 4;

/// Sets of classes or intervals of values; none if the model has none.
pub(super) fn section(run: &Run, judged: Judged) -> Option<Section> {
    let conformal = run.report.conformal.as_ref()?;
    let shown = Shown {
        run,
        judged,
        conformal,
        fresh: judged.rows != rows_of(conformal.from()),
    };
    match &judged.evaluation.truth {
        Truth::Classes(codes) => shown.sets(codes),
        Truth::Values(values) => shown.intervals(values),
    }
}

fn rows_of(held_out: HeldOut) -> Rows {
    match held_out {
        HeldOut::LeaveOneOut => Rows::LeftOut,
        HeldOut::Validation => Rows::Validation,
    }
}

struct Shown<'a> {
    run: &'a Run<'a>,
    judged: Judged<'a>,
    conformal: &'a Conformal,
    /// Whether the rows are others than those that the promises were made from: only such
    /// rows say whether promises are kept.
    fresh: bool,
}

impl Shown<'_> {
    fn sets(&self, codes: &[u32]) -> Option<Section> {
        let scores = &self.judged.evaluation.scores;
        let probabilities = self.run.report.probabilities(scores);
        let of = |promise: f64| {
            let sets = self.conformal.sets(&probabilities, promise).ok()?;
            SetScores::new(promise, &sets, codes).ok()
        };
        let mut section = Section::new("sets", "Sets of classes that keep a promise");
        section.text.push(format!(
            "A set holds all classes that are probable enough (predict --sets 0.9) for the true one \
             to be among them as often as promised. {}",
            self.origin()
        ));
        let drawn: Vec<_> = DRAWN.filter_map(|p| of(f64::from(p) / 100.0)).collect();
        if self.fresh {
            let held = drawn.iter().map(|s| &s.held).collect();
            let series = vec![(self.judged.rows.name().to_string(), held)];
            section.blocks.push(kept("set", series));
        }
        let points = drawn.iter().map(|s| (s.held.coverage, s.mean_size));
        let line = Series::line(self.judged.rows.name(), points.collect());
        let axis = "mean number of classes in a set";
        section.blocks.push(cost("set-size", axis, vec![line]));

        let rows = TABLED.into_iter().filter_map(|promise| {
            let scores = of(promise)?;
            let all = scores.rows_by_size.iter().sum::<u64>().max(1) as f64;
            let share = |size: usize| {
                let rows = scores.rows_by_size.get(size).copied().unwrap_or(0);
                format!("{:.1} %", 100.0 * rows as f64 / all)
            };
            let mut row = vec![percent(promise)];
            row.extend(self.measured(&scores.held));
            row.extend([format!("{:.2}", scores.mean_size), share(0), share(1)]);
            Some(row)
        });
        let header = ["mean size", "no class", "one class"];
        let header = self.header("promised", &header);
        let table = Table::new("Sets of classes", &header, rows.collect::<Vec<_>>());
        section.blocks.push(Block::Table(table));
        Some(section)
    }

    fn intervals(&self, values: &Matrix<f64>) -> Option<Section> {
        let of = |promise: f64| {
            let scores = &self.judged.evaluation.scores;
            let intervals = self.conformal.intervals(scores, promise).ok()?;
            IntervalScores::new(promise, &intervals.lower, &intervals.upper, values).ok()
        };
        let mut section = Section::new("intervals", "Intervals that keep a promise");
        section.text.push(format!(
            "A predicted value ± the same margin for all rows (predict --interval 0.9) holds the \
             true one as often as promised. {}",
            self.origin()
        ));
        let outputs = values.cols().min(MOST_OUTPUTS);
        if values.cols() > outputs {
            let all = values.cols();
            let first = format!("The first {outputs} of {all} outputs are shown.");
            section.text.push(first);
        }
        let drawn: Vec<_> = DRAWN.filter_map(|p| of(f64::from(p) / 100.0)).collect();
        let held = |output: usize| drawn.iter().map(|s| &s[output].held).collect();
        if self.fresh {
            let series = (0..outputs).map(|output| (self.run.name(output), held(output)));
            section.blocks.push(kept("interval", series.collect()));
        }
        let line = |output: usize| {
            let points = drawn.iter().map(|s| &s[output]);
            let points = points.map(|s| (s.held.coverage, s.mean_width / 2.0));
            Series::line(self.run.name(output), points.collect())
        };
        let lines = (0..outputs).map(line).collect();
        section
            .blocks
            .push(cost("interval-margin", "margin", lines));

        let mut rows = Vec::new();
        for output in 0..outputs {
            for promise in TABLED {
                let scores = &of(promise)?[output];
                let mut row = vec![self.run.name(output), percent(promise)];
                row.extend(self.measured(&scores.held));
                row.push(match scores.mean_width.is_finite() {
                    true => format!("± {}", short(scores.mean_width / 2.0)),
                    false => "no limit: too few rows".into(),
                });
                rows.push(row);
            }
        }
        let mut header = vec!["output"];
        header.extend(self.header("promised", &["margin"]));
        let table = Table::new("Intervals", &header, rows);
        section.blocks.push(Block::Table(table));
        Some(section)
    }

    /// Where the promises come from, and what these rows say about them.
    fn origin(&self) -> String {
        let (rows, from) = (self.conformal.rows(), rows_of(self.conformal.from()));
        let (rows, from) = (grouped(rows as f64, 0), from.name());
        let judged = self.judged.rows.name();
        match self.fresh {
            true => format!(
                "What that takes was learned from {rows} {from}; whether it is kept is measured on \
                 the {judged}."
            ),
            false => format!(
                "What that takes was learned from these {rows} {from}, so that they cannot say \
                 whether it is kept: test rows would."
            ),
        }
    }

    fn header<'a>(&self, first: &'a str, last: &[&'a str]) -> Vec<&'a str> {
        let measured: &[&str] = if self.fresh { &["held", "95 %"] } else { &[] };
        [&[first], measured, last].concat()
    }

    /// The cells below what the header says of measurements.
    fn measured(&self, held: &Coverage) -> Vec<String> {
        let (low, high) = held.measured_interval;
        let cells = vec![
            format!("{:.1} %", 100.0 * held.measured),
            format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high),
        ];
        if self.fresh { cells } else { Vec::new() }
    }
}

/// What is held against what is promised.
fn kept(what: &str, series: Vec<(String, Vec<&Coverage>)>) -> Block {
    let all = series.iter().flat_map(|(_, held)| held);
    let least = all.map(|h| h.measured).fold(0.5, f64::min);
    let mut plot = Plot::new(
        format!("{what}-coverage"),
        "Whether promises are kept",
        promised(),
        Axis::new("share of rows whose truth is held")
            .from(least)
            .to(1.0),
    );
    for (label, held) in series {
        let points = held.iter().map(|h| (h.coverage, h.measured));
        plot.series.push(Series::line(label, points.collect()));
    }
    plot.diagonal = true;
    Block::Plot(plot)
}

/// What a promise costs, up to the dearest: that is where the question is.
fn cost(name: &str, axis: &str, series: Vec<Series>) -> Block {
    let all = series.iter().flat_map(|line| &line.points).map(|p| p.1);
    let most = all.filter(|v| v.is_finite()).fold(0.0, f64::max);
    let mut axis = Axis::new(axis).from(0.0);
    if most > 0.0 {
        axis = axis.to(1.03 * most);
    }
    let mut plot = Plot::new(name, "What a promise costs", promised(), axis);
    plot.series = series;
    Block::Plot(plot)
}

fn promised() -> Axis {
    Axis::new("share of rows that is promised")
        .from(0.5)
        .to(1.0)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
