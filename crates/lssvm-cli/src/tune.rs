//! `lssvm tune`

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lssvm::data::{Dataset, ReadOptions, read};
use lssvm::kernel::KernelName;
use lssvm::memory;
use lssvm::model;
use lssvm::solve::Flow;
use lssvm::train::Config;
use lssvm::tune::{Confirmation, Outcome, Space, Trial, TuneLimits, TuneWatcher, tune};
use lssvm_report::{Axis, Block, Page, Plot, Scale, Section, Series, Table};

use crate::args::TuneArgs;
use crate::output::{self, fact, remark, say};
use crate::progress::{self, spinner};
use crate::settings::{parse, read_options, to_toml};

/// Lines of the table at the end.
const SHOWN: usize = 5;

pub fn run(args: &TuneArgs) -> anyhow::Result<()> {
    output::expect_distinct(&[
        ("output", Some(&args.output)),
        ("json", args.json.as_deref()),
        ("report", args.report.as_deref()),
    ])?;
    model::check_writable(&args.output)?;
    output::expect_json(args.json.as_deref())?;
    if let Some(path) = &args.report {
        model::check_writable(path)?;
    }
    let space = match &args.space {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|e| lssvm::Error::io(path, "read the space", e))?;
            Some(parse::<Space>(path, &text)?)
        }
        None => None,
    };
    let reading = spinner(format!("reading {}", args.data.display()));
    let budget = args.memory.unwrap_or_else(memory::default_budget);
    let options = ReadOptions {
        max_bytes: Some(budget.0),
        ..read_options(&args.read)?
    };
    let data: Dataset<f32> = read(&args.data, &options)?.train;
    reading.finish_and_clear();
    let image = args.image_shape.or(data.image);
    let base = Config {
        task: args.task,
        image_shape: args.image_shape,
        class_weight: args.class_weight.clone(),
        seed: args.seed,
        threads: args.threads,
        memory: args.memory,
        ..Config::default()
    };
    let limits = TuneLimits {
        seconds: args.time,
        rows: args.rows,
        one_standard_error: args.one_standard_error,
        exhaustive: args.exhaustive,
        confirm: true,
    };
    let space = space.unwrap_or_else(|| Space::for_rows(image));
    progress::catch_interrupts();
    let mut watcher = Progress::new();
    let result = tune(data, &space, &base, limits, &mut watcher);
    watcher.bar.finish_and_clear();
    let outcome = result?;
    summarise(&outcome);
    let chosen = Config {
        // What was searched, and what the search was told; the rest is for train to decide.
        threads: None,
        memory: None,
        ..outcome.best.config.clone()
    };
    let reading = args.read.clone().into();
    output::text(&args.output, &to_toml(&reading, &chosen)?)?;
    let data = args.data.display();
    fact("settings", args.output.display());
    say(format!(
        "Train with: lssvm train {data} --config {} --model MODEL",
        args.output.display()
    ));
    if let Some(path) = &args.json {
        output::json(path, &outcome)?;
    }
    if let Some(path) = &args.report {
        output::text(path, &page(&outcome, &data.to_string()).to_html())?;
        fact("report", path.display());
    }
    Ok(())
}

fn summarise(outcome: &Outcome) {
    let rungs: Vec<String> = outcome.rungs.iter().map(usize::to_string).collect();
    fact(
        "tried",
        format!(
            "{} settings on {} rows, in {:.1} s",
            outcome.candidates,
            rungs.join(", "),
            outcome.seconds
        ),
    );
    if outcome.cut_short {
        remark("ended early: this is the best so far");
    }
    let best = &outcome.best;
    for (i, trial) in ranking(outcome, best.rows)
        .into_iter()
        .take(SHOWN)
        .enumerate()
    {
        let title = if i == 0 { "best" } else { "" };
        fact(
            title,
            format!("{}  {}", error_of(trial), words(&trial.config)),
        );
    }
    fact("chosen", words(&best.config));
    if let Some(confirmed) = &outcome.confirmed {
        fact("confirmed", confirmation(confirmed));
    }
}

/// How the chosen one does on rows that nothing was learned from.
fn confirmation(confirmed: &Confirmation) -> String {
    format!(
        "{:.4} ± {:.4} on {} rows, by a model of {} others",
        confirmed.error, confirmed.standard_error, confirmed.held_out, confirmed.rows
    )
}

/// Trials on so many rows, the best first.
fn ranking(outcome: &Outcome, rows: usize) -> Vec<&Trial> {
    let mut trials: Vec<&Trial> = outcome.trials.iter().filter(|t| t.rows == rows).collect();
    trials.sort_by(|a, b| a.error.total_cmp(&b.error));
    trials
}

fn error_of(trial: &Trial) -> String {
    format!("{:.4} ± {:.4}", trial.error, trial.standard_error)
}

/// Settings as people say them.
fn words(config: &Config) -> String {
    let mut words = vec![kernel(config)];
    words.extend(config.c.map(|c| format!("c {c}")));
    words.extend(config.preprocess.as_ref().map(|steps| steps.to_string()));
    words.join(", ")
}

fn kernel(config: &Config) -> String {
    let name = config.kernel.unwrap_or(KernelName::Rbf);
    match (name, config.gamma) {
        (KernelName::Poly, _) => format!("{name} of degree {}", config.degree.unwrap_or(4)),
        (KernelName::Linear, _) | (_, None) => format!("{name}"),
        (_, Some(lssvm::kernel::Gamma::Value(gamma))) => format!("{name}, gamma {gamma:.4}"),
        (_, Some(gamma)) => format!("{name}, gamma {gamma}"),
    }
}

/// The search, plotted: a curve over c for each kernel, for each round.
fn page(outcome: &Outcome, data: &str) -> Page {
    let best = &outcome.best;
    let mut page = Page::new(
        format!("Search on {data}"),
        format!(
            "The least leave-one-out error is {} on {} rows: {}.",
            error_of(best),
            best.rows,
            words(&best.config)
        ),
    );
    page.fact("settings tried", outcome.candidates);
    page.fact("trials", outcome.trials.len());
    page.fact("time", format!("{:.1} s", outcome.seconds));
    if let Some(confirmed) = &outcome.confirmed {
        page.fact("confirmed", confirmation(confirmed));
    }
    for &rows in outcome.rungs.iter().rev() {
        let trials = ranking(outcome, rows);
        if trials.is_empty() {
            continue;
        }
        let mut section = Section::new(format!("rows-{rows}"), format!("{rows} rows"));
        let mut plot = Plot::new(
            format!("errors-{rows}"),
            "Leave-one-out error against c",
            Axis::new("c").scale(Scale::Log),
            Axis::new("error"),
        );
        let mut curves: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for trial in trials.iter().filter(|t| t.error.is_finite()) {
            let steps = trial.config.preprocess.as_ref();
            let steps = steps.map_or(String::new(), |s| format!(", {s}"));
            let name = format!("{}{steps}", kernel(&trial.config));
            let point = (trial.config.c.unwrap_or(1.0), trial.error);
            curves.entry(name).or_default().push(point);
        }
        // The best few: more are not told apart.
        let mut curves: Vec<_> = curves.into_iter().collect();
        let least =
            |points: &[(f64, f64)]| points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
        curves.sort_by(|a, b| least(&a.1).total_cmp(&least(&b.1)));
        for (name, mut points) in curves.into_iter().take(SHOWN) {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            plot.series.push(Series::line(name, points));
        }
        section.blocks.push(Block::Plot(plot));
        let row = |trial: &&Trial| {
            [
                kernel(&trial.config),
                trial
                    .config
                    .preprocess
                    .as_ref()
                    .map_or(String::new(), |s| s.to_string()),
                trial.config.c.map_or(String::new(), |c| c.to_string()),
                format!("{:.4}", trial.error),
                format!("{:.4}", trial.standard_error),
            ]
        };
        let header = ["kernel", "preprocessing", "c", "error", "standard error"];
        let table = Table::new("The best", header, trials.iter().take(20).map(row));
        section.blocks.push(Block::Table(table));
        page.sections.push(section);
    }
    page
}

/// A bar with the best so far.
struct Progress {
    bar: ProgressBar,
    rows: usize,
}

impl Progress {
    fn new() -> Self {
        let bar = ProgressBar::new(1);
        let form = "{bar:30} {pos}/{len}  {msg}  [{elapsed}]";
        bar.set_style(ProgressStyle::with_template(form).unwrap_or(ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, rows: 0 }
    }
}

impl TuneWatcher for Progress {
    fn tried(&mut self, trial: &Trial, best: &Trial, done: usize, of: usize) -> Flow {
        if self.rows != trial.rows {
            self.rows = trial.rows;
            self.bar.set_length(of as u64);
            if self.bar.is_hidden() {
                // For a log of it.
                remark(format!("{} rows, {of} settings to try", trial.rows));
            }
        }
        self.bar.set_position(done as u64);
        self.bar.set_message(format!(
            "{} rows: best {:.4}, {}",
            best.rows,
            best.error,
            words(&best.config)
        ));
        self.flow()
    }

    fn flow(&mut self) -> Flow {
        progress::flow()
    }
}
