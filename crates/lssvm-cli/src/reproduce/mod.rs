//! `lssvm reproduce`: the experiments of a file, their figures, and one page.
//!
//! ```text
//! experiment (TOML) ─ runs, grouped by system ─ compare ─ reports ─ page (HTML, JSON, SVG)
//!                                                              └── table in the terminal
//! ```

mod curve;
mod experiment;
mod measure;
mod page;
mod table;
mod watch;
mod work;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::bail;
use lssvm::Error;
use lssvm::data::{Dataset, Parts, ReadOptions, read};
use lssvm::linalg::{Precision, Scalar};
use lssvm::model::check_writable;
use lssvm::train::{Config, Data, Report, Shape, compare};
use lssvm_report::{Block, Page, Pictures};

use crate::args::ReproduceArgs;
use crate::output::{self, fact, remark};
use crate::progress;
use crate::train::is_classification;
use experiment::{Experiment, Figure, Kind, Run};
use measure::Measure;
use watch::Watch;
use work::{Sizes, Work};

/// All that figures are made of.
struct Results {
    experiment: Experiment,
    quick: bool,
    data: PathBuf,
    /// How the data are read.
    reading: ReadOptions,
    runs: Vec<Run>,
    /// One for each run, once it has been made.
    reports: Vec<Option<Report>>,
    /// Images of the training rows that figures show, and their class names.
    shown: Vec<Shown>,
    /// Images of the test part, if a figure shows them.
    test: Option<Pictures>,
}

/// Images that one figure shows.
struct Shown {
    figure: String,
    pictures: Pictures,
    names: Vec<String>,
}

pub fn run(args: &ReproduceArgs) -> anyhow::Result<()> {
    let experiment = Experiment::read(&args.experiment)?.only(&args.only)?;
    let Some(data) = args.data.clone().or_else(|| experiment.data.clone()) else {
        bail!(Error::parameter(
            "data",
            "",
            "say where the data are: --data FOLDER"
        ));
    };
    let html = args.report.clone().unwrap_or_else(|| default_report(args));
    let json = html.with_extension("json");
    check_writable(&html)?;
    check_writable(&json)?;
    if let Some(folder) = &args.svg {
        check_folder(folder)?;
    }
    progress::catch_interrupts();
    let reading = experiment.reading(args.memory)?;
    let parts = load::<f32>(&data, &reading)?;
    let rows = parts.train.n_samples();
    let mut runs = match args.quick {
        true => experiment.quick_runs(rows)?,
        false => experiment.runs()?,
    };
    for run in &mut runs {
        run.config.threads = args.threads.or(run.config.threads);
        run.config.memory = args.memory.or(run.config.memory);
    }
    for run in &runs {
        if !is_classification(&parts.train, &run.config) {
            experiment.has_no_classes(&args.experiment, run)?;
        }
    }
    let mut results = Results {
        reading,
        quick: args.quick,
        data,
        reports: runs.iter().map(|_| None).collect(),
        runs,
        shown: shown(&experiment, &parts.train)?,
        test: test_pictures(&experiment, parts.test.as_ref()),
        experiment,
    };
    let groups = groups(&results.runs);
    let mut work = work(&results.runs, &groups, &parts)?;
    let clock = Instant::now();
    drop(parts);
    if let Some(folder) = &args.svg {
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "make the folder", e))?;
    }
    for (system, group) in groups.iter().enumerate() {
        let turn = Turn {
            system,
            group,
            clock,
            work: &mut work,
        };
        make(&mut results, turn, &|results| {
            // After every run: an hour of work should not hang on the last minute.
            write(&page::page(results), &html, &json, args.svg.as_deref())
        })?;
        if progress::was_interrupted() {
            break;
        }
    }
    let page = page::page(&results);
    write(&page, &html, &json, args.svg.as_deref())?;
    table::print(&results);
    fact(
        "report",
        format!("{} ({} beside it)", html.display(), json.display()),
    );
    if progress::was_interrupted() {
        remark("interrupted: figures whose runs were not made are left out");
    }
    Ok(())
}

fn default_report(args: &ReproduceArgs) -> PathBuf {
    let stem = Path::new(&args.experiment).file_stem().unwrap_or_default();
    let quick = if args.quick { "-quick" } else { "" };
    PathBuf::from(format!("{}{quick}.html", stem.to_string_lossy()))
}

/// Whether files can be made in this folder, or it can itself be made.
fn check_folder(folder: &Path) -> anyhow::Result<()> {
    // A relative path has the current folder above it, by the name of "".
    let there = folder.ancestors().find(|path| path.exists());
    let there = there.unwrap_or(Path::new("."));
    if !there.is_dir() {
        let problem = "is a file; name a folder for --svg".to_string();
        return Err(Error::file(there, lssvm::error::Place::Whole, problem).into());
    }
    Ok(check_writable(&there.join("x.svg"))?)
}

fn load<T: Scalar>(path: &Path, options: &ReadOptions) -> anyhow::Result<Parts<T>> {
    let spinner = progress::spinner(format!("reading {}", path.display()));
    let parts = read::<T>(path, options)?;
    spinner.finish_and_clear();
    Ok(parts)
}

/// Runs on the same system, which share what they compute.
fn groups(runs: &[Run]) -> Vec<Vec<usize>> {
    let system = |run: &Run| Config {
        method: None,
        block_size: None,
        iterations: None,
        time: None,
        tolerance: None,
        averages: None,
        seed: None,
        ..run.config.clone()
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        match groups
            .iter_mut()
            .find(|g| system(&runs[g[0]]) == system(run))
        {
            Some(group) => group.push(i),
            None => groups.push(vec![i]),
        }
    }
    groups
}

/// What all runs are for these data, checked before the first begins.
fn work(runs: &[Run], groups: &[Vec<usize>], parts: &Parts<f32>) -> anyhow::Result<Work> {
    let train = &parts.train;
    let test_rows = parts.test.as_ref().map_or(0, Dataset::n_samples);
    let mut outputs = 1;
    let mut decided = Vec::new();
    for Run { config, .. } in runs {
        if let Some(labels) = &train.labels {
            outputs = labels.resolve(config.task.unwrap_or_default())?.outputs();
        }
        let rows = train.n_samples();
        decided.push(config.resolve(Shape {
            rows: config.train_rows.unwrap_or(rows).min(rows),
            features: train.n_features(),
            outputs,
            others: test_rows,
            validation: false,
            image: config.image_shape.or(train.image),
            kept: None,
            ranks: 1,
        })?);
    }
    let sizes = Sizes {
        features: train.n_features(),
        outputs,
        test_rows,
    };
    Ok(Work::new(decided, groups, sizes))
}

/// The runs on one system, whose turn it is, and where they stand among all.
struct Turn<'a> {
    system: usize,
    /// The runs by their place among all.
    group: &'a [usize],
    /// When the first of all began.
    clock: Instant,
    work: &'a mut Work,
}

/// Makes the runs of a group; `save` is called whenever one has ended.
fn make(
    results: &mut Results,
    turn: Turn<'_>,
    save: &(dyn Fn(&Results) -> anyhow::Result<()> + Sync),
) -> anyhow::Result<()> {
    let group = turn.group;
    let runs: Vec<Run> = group.iter().map(|&i| results.runs[i].clone()).collect();
    let (path, reading) = (results.data.clone(), results.reading.clone());
    let mut saved = Ok(());
    let mut ended = |run: usize, report: &Report| {
        results.reports[group[run]] = Some(report.clone());
        if saved.is_ok() {
            saved = save(results);
        }
    };
    match runs[0].config.precision.unwrap_or_default() {
        Precision::F32 => make_runs::<f32>((&path, &reading), &runs, turn, &mut ended)?,
        Precision::F64 => make_runs::<f64>((&path, &reading), &runs, turn, &mut ended)?,
    }
    saved
}

fn make_runs<T: Scalar>(
    (path, reading): (&Path, &ReadOptions),
    runs: &[Run],
    turn: Turn<'_>,
    ended: &mut (dyn FnMut(usize, &Report) + Send),
) -> anyhow::Result<()> {
    let Parts { train, test } = load::<T>(path, reading)?;
    if test.is_none() {
        let problem = "there is no test part, whose error the figures would show";
        return Err(Error::file(path, lssvm::error::Place::Whole, problem.to_string()).into());
    }
    let data = Data {
        train,
        validation: None,
        test,
    };
    let configs: Vec<Config> = runs.iter().map(|run| run.config.clone()).collect();
    let classes = is_classification(&data.train, &configs[0]);
    let mut watch = Watch::new(runs, turn, Measure::new(classes), ended);
    let result = compare(data, &configs, &mut watch);
    watch.finish();
    result?;
    Ok(())
}

/// The images of the training part that figures show.
fn shown(experiment: &Experiment, train: &Dataset<f32>) -> anyhow::Result<Vec<Shown>> {
    let figures = experiment
        .figures
        .iter()
        .filter(|f| f.kind == Kind::Pictures);
    figures
        .map(|figure| {
            let rows = rows_to_show(figure, train)?;
            let (some, names) = (train.select(&rows), class_names(train, &rows));
            let Some(pictures) = Pictures::new(&some) else {
                let problem = "the rows are not images; there is nothing to show";
                let place = lssvm::error::Place::Whole;
                return Err(Error::file(&train.source, place, problem.to_string()).into());
            };
            Ok(Shown {
                figure: figure.id.clone(),
                pictures,
                names,
            })
        })
        .collect()
}

fn rows_to_show(figure: &Figure, train: &Dataset<f32>) -> anyhow::Result<Vec<usize>> {
    let n = train.n_samples();
    let Some(each) = figure.per_class else {
        return Ok((0..figure.first.unwrap_or(0).min(n)).collect());
    };
    let all: Vec<usize> = (0..n).collect();
    let names = class_names(train, &all);
    let mut classes: Vec<&String> = names.iter().collect();
    classes.sort();
    classes.dedup();
    let rows = classes.into_iter().flat_map(|class| {
        all.iter()
            .copied()
            .filter(|&i| &names[i] == class)
            .take(each)
            .collect::<Vec<_>>()
    });
    Ok(rows.collect())
}

/// Names of the classes of these rows; empty without labels.
fn class_names(data: &Dataset<f32>, rows: &[usize]) -> Vec<String> {
    let targets = data
        .labels
        .as_ref()
        .map(|l| l.resolve(lssvm::data::Task::Classification));
    match targets {
        Some(Ok(lssvm::data::Targets::Classes { names, codes })) => rows
            .iter()
            .map(|&i| names[codes[i] as usize].clone())
            .collect(),
        _ => rows.iter().map(|_| String::new()).collect(),
    }
}

fn test_pictures(experiment: &Experiment, test: Option<&Dataset<f32>>) -> Option<Pictures> {
    let wanted = experiment
        .figures
        .iter()
        .any(|f| f.kind == Kind::Misclassified);
    test.filter(|_| wanted).and_then(Pictures::new)
}

fn write(page: &Page, html: &Path, json: &Path, svg: Option<&Path>) -> anyhow::Result<()> {
    output::text(html, &page.to_html())?;
    output::json(json, &page.to_json())?;
    let blocks = page.sections.iter().flat_map(|section| &section.blocks);
    for block in blocks {
        let (name, drawing) = match block {
            Block::Plot(plot) => (&plot.name, plot.to_svg()),
            Block::Heatmap(map) => (&map.name, map.to_svg()),
            Block::Table(_) | Block::Gallery(_) => continue,
        };
        if let Some(folder) = svg {
            output::text(&folder.join(format!("{name}.svg")), &drawing)?;
        }
    }
    Ok(())
}
