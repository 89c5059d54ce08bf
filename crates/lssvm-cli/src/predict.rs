//! `lssvm predict`

use std::io::{self, BufWriter, Write};
use std::ops::Range;

use anyhow::bail;
use lssvm::data::open;
use lssvm::linalg::{Matrix, Scalar};
use lssvm::model::{AnyModel, Intervals, Model, Outputs, argmax, check_writable};
use lssvm::ranks::Ranks;
use lssvm::{Error, memory};

use crate::args::PredictArgs;
use crate::batches::batches;
use crate::output;
use crate::progress::{catch_interrupts, leave_nothing_unfinished, spinner, was_interrupted};
use crate::settings::{pool, read_options_for};
use crate::together::{agree, rounds};

pub fn run(ranks: &Ranks, args: &PredictArgs) -> anyhow::Result<()> {
    match ranks.agree(AnyModel::load(&args.model))? {
        AnyModel::F32(model) => predict(ranks, args, &model),
        AnyModel::F64(model) => predict(ranks, args, &model),
    }
}

/// Refuses what cannot be predicted or written.
fn check<T: Scalar>(ranks: &Ranks, args: &PredictArgs, model: &Model<T>) -> anyhow::Result<()> {
    if args.probabilities && matches!(model.outputs(), Outputs::Values { .. }) {
        let requirement = "this model predicts values, which have no probabilities; use --scores";
        bail!(Error::parameter("probabilities", true, requirement));
    }
    args.coverage.check(model)?;
    if let Some(path) = args.output.as_ref().filter(|_| ranks.is_first()) {
        check_writable(path)?;
        // To the terminal Ctrl-C simply ends it.
        catch_interrupts();
        leave_nothing_unfinished(path);
    }
    Ok(())
}

fn predict<T: Scalar>(ranks: &Ranks, args: &PredictArgs, model: &Model<T>) -> anyhow::Result<()> {
    agree(ranks, check(ranks, args, model))?;
    let spinner = spinner(format!("predicting {}", args.data.display()));
    let budget = args.memory.unwrap_or_else(memory::default_budget);
    let mut options = agree(ranks, read_options_for(&args.read, model.input()))?;
    options.max_bytes = Some(budget.0);
    let parts = ranks.agree(open::<T>(&args.data, &options))?;
    let features = parts.test.unwrap_or(parts.train).features;
    let batches = batches(ranks, model, &*features, budget, 0)?;
    let pool = agree(ranks, pool(args.threads))?;
    let predicted = |rows: &Range<usize>| -> anyhow::Result<Vec<u8>> {
        if was_interrupted() {
            bail!("interrupted; nothing was written");
        }
        let first = rows.start == 0;
        let scores = pool.install(|| model.scores_of_rows(&*features, rows.clone()))?;
        let mut text = Vec::new();
        Predictions::new(&scores, model, args)?.write(&mut text, args.json, first)?;
        Ok(text)
    };
    // One batch a rank, then the first writes them in their order.
    let write = |out: &mut dyn Write| -> anyhow::Result<()> {
        for round in rounds(ranks, batches.len()) {
            let own = batches.get(round + ranks.rank());
            let text = agree(ranks, own.map(predicted).transpose())?;
            if args.output.is_none() {
                spinner.finish_and_clear();
            }
            let mut written = Ok(());
            ranks.gather(&text.unwrap_or_default(), |_, text| {
                if written.is_ok() {
                    written = out.write_all(text);
                }
            });
            agree(ranks, written.map_err(Into::into))?;
        }
        Ok(())
    };
    match args.output.as_ref().filter(|_| ranks.is_first()) {
        Some(path) => output::whole_or(path, write)?,
        None if ranks.is_first() => {
            let mut out = BufWriter::new(io::stdout().lock());
            write(&mut out)?;
            out.flush()?;
        }
        None => write(&mut io::sink())?,
    }
    spinner.finish_and_clear();
    Ok(())
}

/// Predictions as text, row by row.
struct Predictions<'a> {
    names: Vec<String>,
    /// One for each row.
    classes: Option<Vec<&'a str>>,
    /// Scores, probabilities or predicted values.
    numbers: Option<(&'static str, Matrix<f64>)>,
    /// Of the predicted values.
    intervals: Option<Intervals>,
    /// Names of classes for each row.
    sets: Option<Vec<Vec<&'a str>>>,
}

impl<'a> Predictions<'a> {
    fn new<T: Scalar>(
        scores: &Matrix<T>,
        model: &'a Model<T>,
        args: &PredictArgs,
    ) -> lssvm::Result<Self> {
        let outputs = model.outputs();
        let names = outputs.names();
        let name = |k: u32| names[k as usize].as_str();
        let classes = match outputs {
            Outputs::Values { .. } => None,
            Outputs::Classes { .. } => Some(argmax(scores).into_iter().map(name).collect()),
        };
        let numbers = if args.probabilities {
            Some(("probabilities", model.probabilities_of(scores)))
        } else if classes.is_none() || args.scores {
            let name = if classes.is_none() {
                "values"
            } else {
                "scores"
            };
            Some((name, scores.cast()))
        } else {
            None
        };
        let intervals = args.coverage.interval;
        let intervals = intervals.map(|coverage| model.intervals_of(scores, coverage));
        let sets = args.coverage.sets;
        let sets = sets.map(|coverage| model.sets_of(scores, coverage));
        let named_sets = |sets: Vec<Vec<u32>>| {
            let named = |set: Vec<u32>| set.into_iter().map(name).collect();
            sets.into_iter().map(named).collect()
        };
        let named = |(i, name): (usize, &String)| match name.as_str() {
            "" => format!("output{}", i + 1),
            name => name.to_string(),
        };
        Ok(Self {
            names: names.iter().enumerate().map(named).collect(),
            classes,
            numbers,
            intervals: intervals.transpose()?,
            sets: sets.transpose()?.map(named_sets),
        })
    }

    fn rows(&self) -> usize {
        let numbers = self.numbers.as_ref().map(|(_, numbers)| numbers.rows());
        numbers.or(self.classes.as_ref().map(Vec::len)).unwrap_or(0)
    }

    /// The rows, after a header if they are the first.
    fn write(&self, out: &mut dyn Write, json: bool, first: bool) -> io::Result<()> {
        if json {
            return self.write_json(out);
        }
        if let Some(sets) = &self.sets {
            return write_sets(out, sets);
        }
        match (&self.classes, &self.numbers, &self.intervals) {
            (Some(classes), None, _) => classes
                .iter()
                .try_for_each(|class| writeln!(out, "{class}")),
            // One value a row needs no header.
            (None, Some((_, values)), None) if values.cols() == 1 => values
                .values()
                .iter()
                .try_for_each(|value| writeln!(out, "{value}")),
            _ => self.write_table(out, first),
        }
    }

    fn write_table(&self, out: &mut dyn Write, first: bool) -> io::Result<()> {
        let mut table = csv::Writer::from_writer(out);
        let class = self.classes.iter().map(|_| "predicted".to_string());
        let columns = |name: &String| match self.intervals {
            Some(_) => vec![
                name.clone(),
                format!("{name}_lower"),
                format!("{name}_upper"),
            ],
            None => vec![name.clone()],
        };
        if first {
            let header = class.chain(self.names.iter().flat_map(columns));
            table.write_record(header).map_err(plain)?;
        }
        for i in 0..self.rows() {
            let class = self.classes.iter().map(|classes| classes[i].to_string());
            let numbers = self.numbers_of_row(i).into_iter();
            let row = class.chain(numbers.map(|number| number.to_string()));
            table.write_record(row).map_err(plain)?;
        }
        table.flush()
    }

    /// The numbers of a row of the table, each with its interval.
    fn numbers_of_row(&self, i: usize) -> Vec<f64> {
        let numbers = self.numbers.iter().flat_map(|(_, n)| n.row(i));
        let with_interval = |(j, &number): (usize, &f64)| match &self.intervals {
            Some(Intervals { lower, upper }) => vec![number, lower.get(i, j), upper.get(i, j)],
            None => vec![number],
        };
        numbers.enumerate().flat_map(with_interval).collect()
    }

    fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        // Ends of intervals that are not finite are null: JSON has no infinity.
        let by_name = |numbers: &Matrix<f64>, i: usize| {
            let pairs = self.names.iter().cloned().zip(numbers.row(i));
            let values = pairs.map(|(name, &value)| (name, value.into()));
            serde_json::Value::Object(values.collect())
        };
        for i in 0..self.rows() {
            let mut object = serde_json::Map::new();
            if let Some(classes) = &self.classes {
                object.insert("predicted".into(), classes[i].into());
            }
            if let Some(sets) = &self.sets {
                object.insert("set".into(), sets[i].as_slice().into());
            }
            if let Some((name, numbers)) = &self.numbers {
                object.insert((*name).into(), by_name(numbers, i));
            }
            if let Some(Intervals { lower, upper }) = &self.intervals {
                object.insert("lower".into(), by_name(lower, i));
                object.insert("upper".into(), by_name(upper, i));
            }
            serde_json::to_writer(&mut *out, &object)?;
            writeln!(out)?;
        }
        Ok(())
    }
}

/// The classes of each row on a line, as CSV has them: names may have spaces and commas.
/// An empty set is an empty line, which csv's own writer cannot write.
fn write_sets(out: &mut dyn Write, sets: &[Vec<&str>]) -> io::Result<()> {
    let field = |name: &&str| match name.is_empty() || name.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_string(),
    };
    sets.iter().try_for_each(|set| {
        let fields: Vec<String> = set.iter().map(field).collect();
        writeln!(out, "{}", fields.join(","))
    })
}

/// What the system said: csv's own conversion hides that a pipe was closed.
fn plain(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}
