//! `lssvm path`

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lssvm::linalg::{Precision, Scalar};
use lssvm::model;
use lssvm::ranks::Ranks;
use lssvm::solve::{Flow, Iteration, Observer};
use lssvm::train::{CPath, Config, PathPoint, Watcher, c_values, path};
use lssvm_report::{Axis, Block, Page, Plot, Scale, Section, Series, Table};

use crate::args::PathArgs;
use crate::output::{self, fact, remark, say};
use crate::progress;
use crate::settings::{TrainSettings, to_toml};
use crate::train;

/// Lines of the table in the terminal.
const SHOWN: usize = 12;

/// Steps of the bar.
const PARTS: u64 = 1000;

pub fn run(args: &PathArgs) -> anyhow::Result<()> {
    train::expect_new("path", &args.train)?;
    let mut settings = TrainSettings::new(&args.train)?;
    let json = settings.json.take();
    let report = settings.report.take();
    output::expect_distinct(&[
        ("output", args.output.as_deref()),
        ("json", json.as_deref()),
        ("report", report.as_deref()),
        ("model", settings.model.as_deref()),
    ])?;
    output::expect_json(json.as_deref())?;
    for path in [&args.output, &report, &settings.model]
        .into_iter()
        .flatten()
    {
        model::check_writable(path)?;
    }
    let cs = c_values(args.from, args.to, args.values)?;
    let found = match settings.precision() {
        Precision::F32 => follow::<f32>(&settings, &cs),
        Precision::F64 => follow::<f64>(&settings, &cs),
    }?;
    let chosen = match args.one_standard_error {
        true => found.simplest,
        false => found.best,
    };
    summarise(&found, chosen, args.one_standard_error);
    let data = settings.data.display().to_string();
    let best = Config {
        c: Some(chosen),
        ..settings.config.clone()
    };
    if let Some(path) = &args.output {
        output::text(path, &to_toml(&args.train.read.clone().into(), &best)?)?;
        fact("settings", path.display());
        say(format!(
            "Train with: lssvm train {data} --config {} --model MODEL",
            path.display()
        ));
    }
    if let Some(path) = &json {
        output::json(path, &found)?;
    }
    if let Some(path) = &report {
        output::text(path, &page(&found, chosen, &data).to_html())?;
        fact("report", path.display());
    }
    if settings.model.is_some() {
        settings.config = best;
        return train::with(&Ranks::default(), &settings);
    }
    Ok(())
}

fn follow<T: Scalar>(settings: &TrainSettings, cs: &[f64]) -> anyhow::Result<CPath> {
    let mut data = train::load::<T>(settings)?;
    // It decides nothing, and takes no memory here.
    data.test = None;
    progress::catch_interrupts();
    let mut watcher = Progress::new();
    let found = path(data, &settings.config, cs, &mut watcher);
    watcher.0.finish_and_clear();
    Ok(found?)
}

/// A bar with the time left.
struct Progress(ProgressBar);

impl Progress {
    fn new() -> Self {
        let bar = ProgressBar::new(PARTS);
        let form = "{bar:30} factoring  {elapsed}, {eta} left";
        bar.set_style(ProgressStyle::with_template(form).unwrap_or(ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }
}

impl Observer for Progress {
    fn iteration(&mut self, _: &Iteration) -> Flow {
        progress::flow()
    }

    fn progress(&mut self, done: f64) -> Flow {
        self.0.set_position((done * PARTS as f64) as u64);
        progress::flow()
    }
}

impl Watcher for Progress {}

fn summarise(found: &CPath, chosen: f64, simplest: bool) {
    fact(
        "path",
        format!(
            "{} values of c from {} to {}, in {:.1} s",
            found.points.len(),
            short(found.points.first().map_or(0.0, |p| p.c)),
            short(found.points.last().map_or(0.0, |p| p.c)),
            found.seconds
        ),
    );
    if !found.exact {
        let worst = |of: fn(&PathPoint) -> f64| found.points.iter().map(of).fold(0.0, f64::max);
        fact(
            "accuracy",
            format!(
                "residuals up to {:.0e}; the diagonal that leave-one-out needs is off by up to {:.1} %; {}",
                worst(|p| p.residual),
                100.0 * worst(|p| p.diagonal_error),
                found.points[0].precision
            ),
        );
    }
    // The chosen one, and others spread over the path.
    let step = found.points.len().div_ceil(SHOWN);
    for (i, point) in found.points.iter().enumerate() {
        if i % step == 0 || point.c == chosen || i + 1 == found.points.len() {
            let validation = point.validation_error;
            let validation = validation.map_or(String::new(), |e| format!(", validation {e:.4}"));
            let mark = if point.c == chosen { "  *" } else { "" };
            fact(
                &format!("c {}", short(point.c)),
                format!(
                    "{:.4} ± {:.4}{validation}{mark}",
                    point.error, point.standard_error
                ),
            );
        }
    }
    let rule = match simplest {
        true => "the smallest within one standard error of the best",
        false => "the least error",
    };
    fact("chosen", format!("c {} ({rule})", short(chosen)));
    let ends = [found.points.first(), found.points.last()];
    if found.points.len() > 2 && ends.into_iter().flatten().any(|end| end.c == found.best) {
        remark("the least error is at an end of the path: widen it with --from or --to");
    }
}

/// A number of few digits.
fn short(c: f64) -> String {
    let digits = format!("{c:.2e}");
    match digits.parse::<f64>() {
        Ok(c) if (1e-3..1e5).contains(&c) => c.to_string(),
        _ => digits,
    }
}

fn page(found: &CPath, chosen: f64, data: &str) -> Page {
    let config = &found.config;
    let mut page = Page::new(
        format!("Path over c on {data}"),
        format!(
            "{} values of c from one factorisation; c = {} is chosen.",
            found.points.len(),
            short(chosen)
        ),
    );
    page.fact("kernel", config.kernel);
    page.fact("preprocessing", &config.preprocess);
    page.fact("rows", config.train_rows);
    page.fact("time", format!("{:.1} s", found.seconds));
    let mut section = Section::new("path", "Errors along the path");
    let mut plot = Plot::new(
        "errors",
        "Error against c",
        Axis::new("c").scale(Scale::Log),
        Axis::new("error"),
    );
    let curve = |of: &dyn Fn(&PathPoint) -> Option<f64>| {
        let points = found.points.iter();
        let points = points.filter_map(|p| of(p).map(|error| (p.c, error)));
        points.filter(|p| p.1.is_finite()).collect::<Vec<_>>()
    };
    let left_out = curve(&|p| Some(p.error));
    plot.series.push(Series::line("leave-one-out", left_out));
    let above = curve(&|p| Some(p.error + p.standard_error));
    plot.series
        .push(Series::line("plus one standard error", above));
    let validation = curve(&|p| p.validation_error);
    if !validation.is_empty() {
        plot.series.push(Series::line("validation", validation));
    }
    section.blocks.push(Block::Plot(plot));
    let mut header = vec!["c", "leave-one-out error", "standard error"];
    if found.points.iter().any(|p| p.validation_error.is_some()) {
        header.push("validation error");
    }
    header.extend(["residual", "error of the diagonal"]);
    let row = |point: &PathPoint| {
        let mut cells = vec![
            short(point.c),
            format!("{:.4}", point.error),
            format!("{:.4}", point.standard_error),
        ];
        cells.extend(point.validation_error.map(|e| format!("{e:.4}")));
        cells.push(format!("{:.1e}", point.residual));
        cells.push(format!("{:.1e}", point.diagonal_error));
        cells
    };
    let table = Table::new("All values", header, found.points.iter().map(row));
    section.blocks.push(Block::Table(table));
    page.sections.push(section);
    page
}
