//! From what was typed to what it means.
//!
//! Options come from the command line, then from a TOML file; the library
//! decides the rest from the data.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lssvm::Error;
use lssvm::data::{Column, ReadOptions};
use lssvm::error::Place;
use lssvm::linalg::Precision;
use lssvm::memory;
use lssvm::model::Input;
use lssvm::train::Config;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::args::{ReadArgs, TrainArgs};

/// What a training run is, except for what the data decide.
#[derive(Debug)]
pub struct TrainSettings {
    pub data: PathBuf,
    pub model: Option<PathBuf>,
    pub test: Option<PathBuf>,
    pub validation_data: Option<PathBuf>,
    pub json: Option<PathBuf>,
    pub report: Option<PathBuf>,
    pub read: ReadOptions,
    pub config: Config,
    pub print_config: bool,
}

/// Options of the program in a TOML file; the rest of the file is the
/// library's [`Config`].
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct FileOptions {
    data: Option<PathBuf>,
    model: Option<PathBuf>,
    test: Option<PathBuf>,
    validation: Option<Validation>,
    json: Option<PathBuf>,
    report: Option<PathBuf>,
    format: Option<lssvm::data::Format>,
    label: Option<OneOrMore>,
    weights: Option<Column>,
    header: Option<bool>,
    delimiter: Option<String>,
    features: Option<usize>,
    index_base: Option<u32>,
}

const FILE_KEYS: [&str; 13] = [
    "data",
    "model",
    "test",
    "validation",
    "json",
    "report",
    "format",
    "label",
    "weights",
    "header",
    "delimiter",
    "features",
    "index-base",
];

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(Column),
    More(Vec<Column>),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Validation {
    Share(f64),
    Data(PathBuf),
}

impl TrainSettings {
    pub fn new(args: &TrainArgs) -> anyhow::Result<Self> {
        let (file, base) = match &args.config {
            Some(path) => read_config(path)?,
            None => Default::default(),
        };
        let validation = match &args.validation {
            Some(text) => Some(match text.parse() {
                Ok(share) => Validation::Share(share),
                Err(_) => Validation::Data(text.into()),
            }),
            None => file.validation,
        };
        let (share, validation_data) = match validation {
            Some(Validation::Share(share)) => (Some(share), None),
            Some(Validation::Data(path)) => (None, Some(path)),
            None => (None, None),
        };
        let config = Config {
            task: args.task.or(base.task),
            image_shape: args.image_shape.or(base.image_shape),
            train_rows: args.train_rows.or(base.train_rows),
            preprocess: args.preprocess.clone().or(base.preprocess),
            kernel: args.kernel.or(base.kernel),
            gamma: args.gamma.or(base.gamma),
            coef0: args.coef0.or(base.coef0),
            degree: args.degree.or(base.degree),
            c: args.c.or(base.c),
            class_weight: args.class_weight.clone().or(base.class_weight),
            method: args.method.map_or(base.method, |choice| choice.0),
            block_size: args.block_size.or(base.block_size),
            rank: args.rank.or(base.rank),
            iterations: args.iterations.or(base.iterations),
            time: args.time.or(base.time),
            tolerance: args.tolerance.or(base.tolerance),
            patience: args.patience.or(base.patience),
            validation: share,
            loo: args.loo.then_some(true).or(base.loo),
            averages: args.averages.or(base.averages),
            follow: args.follow.or(base.follow),
            seed: args.seed.or(base.seed),
            threads: args.threads.or(base.threads),
            memory: args.memory.or(base.memory),
            precision: args.precision.or(base.precision),
        };
        let Some(data) = args.data.clone().or(file.data) else {
            return Err(Error::parameter("DATA", "nothing", "name a data file or folder").into());
        };
        let label = file.label.map(|label| match label {
            OneOrMore::One(column) => vec![column],
            OneOrMore::More(columns) => columns,
        });
        let read = ReadArgs {
            format: args.read.format.or(file.format),
            label: args.read.label.clone().or(label),
            weights: args.read.weights.clone().or(file.weights),
            header: args.read.header.or(file.header),
            delimiter: args.read.delimiter.clone().or(file.delimiter),
            features: args.read.features.or(file.features),
            index_base: args.read.index_base.or(file.index_base),
        };
        let budget = config.memory.unwrap_or_else(memory::default_budget);
        Ok(Self {
            data,
            model: args.model.clone().or(file.model),
            test: args.test.clone().or(file.test),
            validation_data,
            json: args.json.clone().or(file.json),
            report: args.report.clone().or(file.report),
            read: ReadOptions {
                max_bytes: Some(budget.0),
                ..read_options(&read)?
            },
            config,
            print_config: args.print_config,
        })
    }

    pub fn precision(&self) -> Precision {
        self.config.precision.unwrap_or_default()
    }
}

/// Splits a TOML file into the program's part and the library's.
fn read_config(path: &Path) -> anyhow::Result<(FileOptions, Config)> {
    let text =
        std::fs::read_to_string(path).map_err(|e| Error::io(path, "read the configuration", e))?;
    let mut table: toml::Table = parse(path, &text)?;
    let mut own = toml::Table::new();
    for key in FILE_KEYS {
        if let Some(value) = table.remove(key) {
            own.insert(key.to_string(), value);
        }
    }
    let own = own.try_into().map_err(|e| wrong(path, &e))?;
    let config = table.try_into().map_err(|e| wrong(path, &e))?;
    Ok((own, config))
}

pub fn parse<D: DeserializeOwned>(path: &Path, text: &str) -> anyhow::Result<D> {
    toml::from_str(text).map_err(|e| {
        let before = e.span().map_or(0, |span| span.start);
        let line = text[..before].matches('\n').count() as u64 + 1;
        Error::file(path, Place::Line(line), e.message().to_string()).into()
    })
}

fn wrong(path: &Path, error: &toml::de::Error) -> Error {
    // The message of an unknown key lists the known ones on the same line.
    let message = error.message().replace('\n', " ");
    Error::file(
        path,
        Place::Whole,
        format!("{message}; see lssvm train --help"),
    )
}

/// How files are read, without a model's expectations.
pub fn read_options(args: &ReadArgs) -> anyhow::Result<ReadOptions> {
    let delimiter = match args.delimiter.as_deref() {
        None => None,
        Some("\\t" | "tab") => Some(b'\t'),
        Some("space") => Some(b' '),
        Some(text) => match text.as_bytes() {
            [byte] => Some(*byte),
            _ => bail!(Error::parameter("delimiter", text, "must be one character")),
        },
    };
    Ok(ReadOptions {
        format: args.format,
        labels: args.label.clone(),
        weights: args.weights.clone(),
        header: args.header,
        delimiter,
        n_features: args.features,
        index_base: args.index_base,
        ..ReadOptions::default()
    })
}

/// How files are read for a model that was trained on others.
pub fn read_options_for(args: &ReadArgs, input: &Input) -> anyhow::Result<ReadOptions> {
    let options = read_options(args)?;
    Ok(options_for(options, input))
}

/// Adds what a model, or the training data, expect.
pub fn options_for(options: ReadOptions, input: &Input) -> ReadOptions {
    // The label columns of the training file are the labels here too, but they
    // may be missing where there is nothing to compare with.
    ReadOptions {
        n_features: Some(input.n_features),
        feature_names: input.feature_names.clone(),
        label_names: Some(input.label_names.clone()),
        label_places: input.label_places.clone(),
        weights: options
            .weights
            .or_else(|| input.weight_name.clone().map(Column::Name)),
        index_base: options.index_base.or(input.index_base),
        max_bytes: options.max_bytes.or(Some(memory::default_budget().0)),
        ..options
    }
}

/// A pool for commands that have no other use for threads.
pub fn pool(threads: Option<usize>) -> anyhow::Result<rayon::ThreadPool> {
    if threads == Some(0) {
        bail!(Error::parameter("threads", 0, "must be at least 1"));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .build()
        .context("cannot start threads")
}
