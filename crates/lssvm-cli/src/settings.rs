//! From what was typed to what it means.
//!
//! Options come from the command line, then from a TOML file; the library
//! decides the rest from the data.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use lssvm::Error;
use lssvm::data::{Column, ReadOptions};
use lssvm::error::Place;
use lssvm::linalg::Precision;
use lssvm::memory;
use lssvm::model::Input;
use lssvm::train::Config;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::args::{ReadArgs, TrainArgs, duration};

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
    /// What was said of it, for a file of settings.
    pub reading: Reading,
    pub config: Config,
    /// Where the state of the run is kept, and how often.
    pub checkpoint: Option<PathBuf>,
    pub every: Option<Duration>,
    /// The model to begin with.
    pub warm_start: Option<PathBuf>,
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
    checkpoint: Option<PathBuf>,
    every: Option<Every>,
    warm_start: Option<PathBuf>,
    #[serde(flatten)]
    reading: Reading,
}

const FILE_KEYS: [&str; 9] = [
    "data",
    "model",
    "test",
    "validation",
    "json",
    "report",
    "checkpoint",
    "every",
    "warm-start",
];

/// A time in a TOML file: seconds, or as on the command line.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Every {
    Seconds(f64),
    Text(String),
}

impl Every {
    fn seconds(&self) -> anyhow::Result<f64> {
        let text = match self {
            Every::Seconds(seconds) => seconds.to_string(),
            Every::Text(text) => text.clone(),
        };
        duration(&text).map_err(|wrong| Error::parameter("every", text, wrong).into())
    }
}

/// Options of the program in a TOML file that say how data are read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Reading {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<lssvm::data::Format>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<OneOrMore>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<Column>,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delimiter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index_base: Option<u32>,
}

/// Its keys.
pub const READING_KEYS: [&str; 7] = [
    "format",
    "label",
    "weights",
    "header",
    "delimiter",
    "features",
    "index-base",
];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

impl From<Reading> for ReadArgs {
    fn from(reading: Reading) -> Self {
        let label = reading.label.map(|label| match label {
            OneOrMore::One(column) => vec![column],
            OneOrMore::More(columns) => columns,
        });
        Self {
            format: reading.format,
            label,
            weights: reading.weights,
            header: reading.header,
            delimiter: reading.delimiter,
            features: reading.features,
            index_base: reading.index_base,
        }
    }
}

impl From<ReadArgs> for Reading {
    fn from(args: ReadArgs) -> Self {
        let label = args.label.map(|mut columns| match columns.len() {
            1 => OneOrMore::One(columns.remove(0)),
            _ => OneOrMore::More(columns),
        });
        Self {
            format: args.format,
            label,
            weights: args.weights,
            header: args.header,
            delimiter: args.delimiter,
            features: args.features,
            index_base: args.index_base,
        }
    }
}

/// A file for `train --config`: how the data are read, and the settings.
pub fn to_toml(reading: &Reading, settings: &impl Serialize) -> anyhow::Result<String> {
    // Plain values come before the tables that settings may end with.
    Ok(toml::to_string(reading)? + &toml::to_string(settings)?)
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
            augment: args.augment.or(base.augment),
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
            centers: args.centers.or(base.centers),
            select: args.select.or(base.select),
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
        let reading = ReadArgs::from(file.reading);
        let read = ReadArgs {
            format: args.read.format.or(reading.format),
            label: args.read.label.clone().or(reading.label),
            weights: args.read.weights.clone().or(reading.weights),
            header: args.read.header.or(reading.header),
            delimiter: args.read.delimiter.clone().or(reading.delimiter),
            features: args.read.features.or(reading.features),
            index_base: args.read.index_base.or(reading.index_base),
        };
        let budget = config.memory.unwrap_or_else(memory::default_budget);
        let every = match args.every {
            Some(seconds) => Some(seconds),
            None => file.every.as_ref().map(Every::seconds).transpose()?,
        };
        let every = every.map(Duration::try_from_secs_f64).transpose();
        let every =
            every.map_err(|wrong| Error::parameter("every", "a time", wrong.to_string()))?;
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
            reading: read.into(),
            config,
            checkpoint: args.checkpoint.clone().or(file.checkpoint),
            every,
            warm_start: args.warm_start.clone().or(file.warm_start),
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
    for key in FILE_KEYS.into_iter().chain(READING_KEYS) {
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
    // The message of an unknown key lists those of the library on the same line.
    let mut message = error.message().replace('\n', " ");
    if message.starts_with("unknown field") {
        for key in FILE_KEYS.into_iter().chain(READING_KEYS) {
            message += &format!(", `{key}`");
        }
    }
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
        weight_name: input.weight_name.clone(),
        weight_place: input.weight_place,
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

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::args::{Args, Command};

    /// Options of `train` that a file cannot hold, and why.
    const NOT_IN_A_FILE: [(&str, &str); 4] = [
        ("resume", "the folder has all settings"),
        ("config", "it names the file"),
        ("print-config", "it is a question, not a setting"),
        ("help", "so is this"),
    ];

    /// For every other option what is typed, and the same in a file.
    const SAMPLES: [(&str, &str, &str); 43] = [
        ("data", "d.csv", "'d.csv'"),
        ("model", "m", "'m'"),
        ("test", "t.csv", "'t.csv'"),
        ("validation", "0.2", "0.2"),
        ("json", "r.json", "'r.json'"),
        ("report", "r.html", "'r.html'"),
        ("checkpoint", "run", "'run'"),
        ("every", "5m", "'5m'"),
        ("warm-start", "w", "'w'"),
        ("task", "regression", "'regression'"),
        ("train-rows", "7", "7"),
        ("image-shape", "2x3", "'2x3'"),
        ("preprocess", "center,unit-norm", "'center,unit-norm'"),
        ("kernel", "laplacian", "'laplacian'"),
        ("gamma", "0.5", "0.5"),
        ("coef0", "1.5", "1.5"),
        ("degree", "3", "3"),
        ("c", "2.5", "2.5"),
        ("class-weight", "balanced", "'balanced'"),
        ("method", "mp", "'mp'"),
        ("block-size", "9", "9"),
        ("rank", "5", "5"),
        ("augment", "shift=1", "'shift=1'"),
        ("centers", "6", "6"),
        ("select", "pivoted", "'pivoted'"),
        ("iterations", "11", "11"),
        ("time", "1.5", "1.5"),
        ("tolerance", "0.01", "0.01"),
        ("patience", "4", "4"),
        ("loo", "", "true"),
        ("averages", "3", "3"),
        ("follow", "2", "2"),
        ("seed", "8", "8"),
        ("threads", "2", "2"),
        ("memory", "2G", "'2G'"),
        ("precision", "f64", "'f64'"),
        ("format", "csv", "'csv'"),
        ("label", "a,2", "['a', 2]"),
        ("weights", "w", "'w'"),
        ("header", "false", "false"),
        ("delimiter", ";", "';'"),
        ("features", "6", "6"),
        ("index-base", "1", "1"),
    ];

    /// What a command line means, with a file of these settings if there is any.
    fn settings(words: &[&str], file: Option<&str>) -> String {
        let file = file.map(|text| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            file
        });
        let path = file.as_ref().map(|file| file.path().to_str().unwrap());
        let given = path.iter().flat_map(|&path| ["--config", path]);
        let words = ["lssvm", "train"].into_iter().chain(words.iter().copied());
        let args = Args::try_parse_from(words.chain(given)).unwrap();
        let Command::Train(args) = args.command else {
            unreachable!("train was typed");
        };
        format!("{:?}", TrainSettings::new(&args).unwrap())
    }

    #[test]
    fn every_option_of_train_can_come_from_a_file() {
        let command = Args::command();
        let mut train = command.find_subcommand("train").unwrap().clone();
        train.build();
        for argument in train.get_arguments() {
            let id = argument.get_id().as_str().replace('_', "-");
            let name = argument.get_long().unwrap_or(&id);
            if NOT_IN_A_FILE
                .iter()
                .any(|(exception, _)| *exception == name)
            {
                continue;
            }
            let sample = SAMPLES.iter().find(|(option, ..)| *option == name);
            let Some((_, typed, written)) = sample else {
                panic!("{name} is a new option: add it to the samples, or to the exceptions");
            };
            let option = format!("--{name}");
            let words = match (name, *typed) {
                ("data", typed) => vec![typed],
                (_, "") => vec![option.as_str()],
                (_, typed) => vec![option.as_str(), typed],
            };
            // Without these two a run has no data, and its memory is what is free just now.
            let mut rest = vec!["other.csv", "--memory", "1G"];
            match name {
                "data" => rest.retain(|word| *word != "other.csv"),
                "memory" => rest.truncate(1),
                _ => {}
            }
            let typed = settings(&[words, rest.clone()].concat(), None);
            let line = format!("{name} = {written}\n");
            assert_eq!(settings(&rest, Some(&line)), typed, "{line}");
            // The sample says something.
            if name != "data" && name != "memory" {
                assert_ne!(settings(&rest, None), typed, "{line}");
            }
        }
    }

    #[test]
    fn samples_are_of_options() {
        let command = Args::command();
        let train = command.find_subcommand("train").unwrap();
        let ids: Vec<String> = train
            .get_arguments()
            .map(|argument| argument.get_id().as_str().replace('_', "-"))
            .collect();
        for (name, ..) in SAMPLES {
            assert!(ids.iter().any(|id| id == name), "{name} is no option");
        }
    }
}
