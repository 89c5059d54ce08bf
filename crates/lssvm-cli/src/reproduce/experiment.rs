//! An experiment: a TOML file that names runs and the figures made of them.
//!
//! `[settings]` holds options of `train`; a run overlays them with its own. The
//! files of the paper are part of the program, so that they are there wherever it
//! is installed.

use std::path::{Path, PathBuf};

use anyhow::bail;
use lssvm::Error;
use lssvm::data::ReadOptions;
use lssvm::error::Place;
use lssvm::memory::{self, Size};
use lssvm::train::Config;
use serde::Deserialize;

use crate::settings::{READING_KEYS, Reading, parse, read_options};

/// The experiments that come with the program, by name.
const OURS: [(&str, &str); 2] = [
    ("mnist", include_str!("../../../../experiments/mnist.toml")),
    (
        "cifar10",
        include_str!("../../../../experiments/cifar10.toml"),
    ),
];

/// Seconds an iteration takes in the paper, as a run says it.
const PAPER_SECONDS: &str = "paper-seconds";

/// A file of runs and figures.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Experiment {
    pub title: String,
    #[serde(default)]
    pub about: String,
    /// Where the data are unless `--data` says otherwise.
    pub data: Option<PathBuf>,
    /// The memory that the paper's runs took, in words.
    pub paper_memory: Option<String>,
    /// Options of `train` for all runs.
    #[serde(default)]
    settings: toml::Table,
    quick: Option<Quick>,
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
    /// Options of `train` that say how the data are read; nothing else is allowed.
    #[serde(flatten)]
    rest: toml::Table,
    /// Runs of figures that `--only` left out.
    #[serde(skip)]
    also: Vec<toml::Table>,
}

const MEMORY: &str = "memory";

/// What `--quick` changes.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Quick {
    /// Blocks shrink as the rows do.
    pub train_rows: usize,
    /// No run makes more.
    pub iterations: usize,
}

/// One figure or table.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Figure {
    /// Its name for `--only`.
    pub id: String,
    pub title: String,
    #[serde(default)]
    pub text: String,
    pub kind: Kind,
    /// Pictures: the first so many training rows.
    pub first: Option<usize>,
    /// Pictures: the first so many training rows of each class.
    pub per_class: Option<usize>,
    /// Curves: what an iteration is called.
    pub x: Option<String>,
    /// What the paper says of it.
    #[serde(default)]
    pub paper: Paper,
    /// Confusion: the paper's table, in percent.
    pub paper_table: Option<Vec<Vec<f64>>>,
    /// Misclassified, confusion: the run it shows.
    pub of: Option<String>,
    /// Curves: runs of other figures to be shown here.
    #[serde(default)]
    pub show: Vec<String>,
    #[serde(default)]
    runs: Vec<toml::Table>,
}

/// What a figure shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Images of the training part.
    Pictures,
    /// Error against iterations.
    Curves,
    /// Images of the test part that a run got wrong.
    Misclassified,
    /// Which classes a run took for which.
    Confusion,
}

/// What the paper says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Paper {
    /// Error in percent.
    pub value: Option<f64>,
    /// Its fluctuation.
    pub spread: Option<f64>,
    /// In words.
    pub text: String,
}

/// A run: a name and the settings it has.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// As other figures name it.
    name: String,
    /// As people see it, with {J} for the block size; the name if there is none.
    label: Option<String>,
    pub config: Config,
    /// Seconds an iteration takes in the paper.
    pub paper_seconds: Option<f64>,
}

impl Experiment {
    /// One of ours by name, or a file.
    pub fn read(name: &str) -> anyhow::Result<Self> {
        let ours = OURS.into_iter().find(|(known, _)| *known == name);
        let path = Path::new(name);
        let experiment: Self = match ours {
            Some((_, text)) => parse(path, text)?,
            None if path.exists() => {
                let text = std::fs::read_to_string(path)
                    .map_err(|e| Error::io(path, "read the experiment", e))?;
                parse(path, &text)?
            }
            None => {
                let known = OURS.map(|(known, _)| known).join(", ");
                let hint = format!("there is no such file; the experiments by name are {known}");
                bail!(Error::parameter("EXPERIMENT", name, hint));
            }
        };
        experiment.check(path)?;
        Ok(experiment)
    }

    /// Every name means one thing, and every figure has what its kind needs.
    fn check(&self, path: &Path) -> anyhow::Result<()> {
        let wrong = |problem: String| Err(Error::file(path, Place::Whole, problem).into());
        if let Some(key) = self
            .rest
            .keys()
            .find(|key| !READING_KEYS.contains(&key.as_str()))
        {
            return wrong(format!(
                "there is no key '{key}' at the top of an experiment; see docs/experiments.md"
            ));
        }
        let mut names: Vec<String> = Vec::new();
        for run in self.runs()? {
            if names.contains(&run.name) {
                return wrong(format!("two runs have the name '{}'", run.name));
            }
            names.push(run.name);
        }
        let mut ids: Vec<&str> = Vec::new();
        for figure in &self.figures {
            let id = figure.id.as_str();
            if ids.contains(&id) {
                return wrong(format!("two figures have the id '{id}'"));
            }
            ids.push(id);
            let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
            if id.is_empty() || id.starts_with('.') || !id.chars().all(plain) {
                return wrong(format!(
                    "the id '{id}' of a figure is also the name of its files: use letters, digits, \
                     - and _"
                ));
            }
            if let Some(name) = figure
                .of
                .iter()
                .chain(&figure.show)
                .find(|n| !names.contains(n))
            {
                return wrong(format!(
                    "figure '{id}' shows '{name}', and no run has this name"
                ));
            }
            let missing = match figure.kind {
                Kind::Pictures if figure.first.is_none() && figure.per_class.is_none() => {
                    "first or per-class"
                }
                Kind::Curves if figure.runs.is_empty() && figure.show.is_empty() => "runs or show",
                Kind::Misclassified | Kind::Confusion if figure.of.is_none() => "of",
                _ => continue,
            };
            return wrong(format!("figure '{id}' has no {missing}"));
        }
        Ok(())
    }

    /// Refuses figures that show the classes of a run that has none.
    pub fn has_no_classes(&self, path: &str, run: &Run) -> anyhow::Result<()> {
        let about_classes = |figure: &&Figure| {
            let kinds = [Kind::Misclassified, Kind::Confusion];
            kinds.contains(&figure.kind) && figure.of.as_deref().is_some_and(|of| run.is(of))
        };
        let Some(figure) = self.figures.iter().find(about_classes) else {
            return Ok(());
        };
        let problem = format!(
            "figure '{}' shows the classes of run '{}', whose labels are values: leave it out, or \
             set task = \"classification\"",
            figure.id, run.name
        );
        Err(Error::file(Path::new(path), Place::Whole, problem).into())
    }

    /// Keeps the figures with these ids.
    pub fn only(mut self, ids: &[String]) -> anyhow::Result<Self> {
        if ids.is_empty() {
            return Ok(self);
        }
        let known: Vec<String> = self.figures.iter().map(|f| f.id.clone()).collect();
        if let Some(id) = ids.iter().find(|id| !known.contains(id)) {
            let hint = format!("the figures are {}", known.join(", "));
            bail!(Error::parameter("only", id, hint));
        }
        let all: Vec<toml::Table> = self.figures.iter().flat_map(|f| f.runs.clone()).collect();
        self.figures.retain(|figure| ids.contains(&figure.id));
        // Runs that a figure left out defines, and one kept shows.
        let named = |run: &toml::Table, figure: &Figure| {
            let name = run.get("name").and_then(toml::Value::as_str);
            figure
                .of
                .iter()
                .chain(&figure.show)
                .any(|n| Some(n.as_str()) == name)
        };
        let have: Vec<&toml::Table> = self.figures.iter().flat_map(|f| &f.runs).collect();
        let wanted = all.iter().filter(|run| !have.contains(run));
        let wanted = wanted.filter(|run| self.figures.iter().any(|figure| named(run, figure)));
        self.also = wanted.cloned().collect();
        Ok(self)
    }

    /// Whether the file says what a paper has, to be shown beside what came out.
    pub fn has_paper(&self) -> bool {
        let runs = self.figures.iter().flat_map(|figure| &figure.runs);
        let mut runs = runs.chain(&self.also);
        self.paper_memory.is_some()
            || self.figures.iter().any(Figure::has_paper)
            || runs.any(|run| run.contains_key(PAPER_SECONDS))
    }

    /// How the data are read: as the top of the file and `[settings]` say, within the
    /// memory that was given, here or there.
    pub fn reading(&self, memory: Option<Size>) -> anyhow::Result<ReadOptions> {
        let mut table = self.rest.clone();
        let settings = self.settings.iter();
        let settings = settings.filter(|(key, _)| READING_KEYS.contains(&key.as_str()));
        table.extend(settings.map(|(key, value)| (key.clone(), value.clone())));
        let wrong = |e: toml::de::Error| {
            let message = e.message().replace('\n', " ");
            anyhow::anyhow!("the reading options of the experiment: {message}")
        };
        let reading: Reading = table.try_into().map_err(wrong)?;
        let options = read_options(&reading.into())?;
        let of_file = self.settings.get(MEMORY).cloned();
        let of_file = of_file.map(|size| size.try_into().map_err(wrong));
        let budget = memory.or(of_file.transpose()?);
        Ok(ReadOptions {
            max_bytes: Some(budget.unwrap_or_else(memory::default_budget).0),
            ..options
        })
    }

    /// All runs, in the order of the file.
    pub fn runs(&self) -> anyhow::Result<Vec<Run>> {
        let tables = self.figures.iter().flat_map(|figure| &figure.runs);
        tables.chain(&self.also).map(|run| self.run(run)).collect()
    }

    fn run(&self, own: &toml::Table) -> anyhow::Result<Run> {
        let mut table = self.settings.clone();
        // Those say how all is read, and label is something else for a run.
        table.retain(|key, _| !READING_KEYS.contains(&key));
        table.extend(own.clone());
        let mut text = |key| match table.remove(key) {
            Some(toml::Value::String(text)) => Some(text),
            _ => None,
        };
        let (Some(name), label) = (text("name"), text("label")) else {
            bail!("a run needs a name = \"...\"");
        };
        let paper_seconds = match table.remove(PAPER_SECONDS) {
            Some(toml::Value::Float(seconds)) => Some(seconds),
            Some(toml::Value::Integer(seconds)) => Some(seconds as f64),
            Some(_) => bail!("run '{name}': {PAPER_SECONDS} must be a number"),
            None => None,
        };
        let config = table.try_into();
        let config = config.map_err(|e: toml::de::Error| {
            anyhow::anyhow!("run '{name}': {}", e.message().replace('\n', " "))
        })?;
        Ok(Run {
            name,
            label,
            config,
            paper_seconds,
        })
    }

    /// The runs as `--quick` makes them, for so many training rows.
    pub fn quick_runs(&self, rows: usize) -> anyhow::Result<Vec<Run>> {
        let Some(quick) = self.quick else {
            bail!(Error::parameter(
                "quick",
                "",
                "this experiment has no [quick] table that says how"
            ));
        };
        let mut runs = self.runs()?;
        for Run { config, .. } in &mut runs {
            let before = config.train_rows.unwrap_or(rows).min(rows);
            let after = quick.train_rows.min(before);
            config.train_rows = Some(after);
            let share = after as f64 / before.max(1) as f64;
            // At least two blocks, also of data that were small from the beginning.
            let most = (after / 2).max(1);
            let shrunk = |j: usize| ((j as f64 * share).round() as usize).clamp(1, most);
            config.block_size = config.block_size.map(shrunk);
            let iterations = config.iterations.map(|t| t.min(quick.iterations));
            config.iterations = Some(iterations.unwrap_or(quick.iterations));
        }
        Ok(runs)
    }
}

impl Run {
    /// Its name for people.
    pub fn label(&self) -> String {
        let label = self.label.as_ref().unwrap_or(&self.name);
        match self.config.block_size {
            Some(j) => label.replace("{J}", &j.to_string()),
            None => label.clone(),
        }
    }

    /// Whether a figure means this run.
    pub fn is(&self, name: &str) -> bool {
        self.name == name
    }
}

impl Figure {
    fn has_paper(&self) -> bool {
        let Paper { value, text, .. } = &self.paper;
        value.is_some() || !text.is_empty() || self.paper_table.is_some()
    }

    /// Names of the runs it shows.
    pub fn names(&self) -> Vec<String> {
        let own = self.runs.iter().filter_map(|run| run.get("name")?.as_str());
        let mut names: Vec<String> = Vec::new();
        for name in own.chain(self.show.iter().map(String::as_str)) {
            if !names.iter().any(|n| n == name) {
                names.push(name.to_string());
            }
        }
        names
    }
}
