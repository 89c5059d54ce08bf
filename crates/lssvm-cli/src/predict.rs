//! `lssvm predict`

use std::io::{self, BufWriter, Write};

use anyhow::bail;
use lssvm::Error;
use lssvm::data::read;
use lssvm::linalg::{Matrix, Scalar};
use lssvm::model::{AnyModel, Model, Outputs, argmax, check_writable};

use crate::args::PredictArgs;
use crate::output;
use crate::progress::spinner;
use crate::settings::{pool, read_options_for};

pub fn run(args: &PredictArgs) -> anyhow::Result<()> {
    match AnyModel::load(&args.model)? {
        AnyModel::F32(model) => predict(args, &model),
        AnyModel::F64(model) => predict(args, &model),
    }
}

fn predict<T: Scalar>(args: &PredictArgs, model: &Model<T>) -> anyhow::Result<()> {
    if args.probabilities && matches!(model.outputs(), Outputs::Values { .. }) {
        let requirement = "this model predicts values, which have no probabilities; use --scores";
        bail!(Error::parameter("probabilities", true, requirement));
    }
    if let Some(path) = &args.output {
        check_writable(path)?;
    }
    let spinner = spinner(format!("predicting {}", args.data.display()));
    let options = read_options_for(&args.read, model.input())?;
    let parts = read::<T>(&args.data, &options)?;
    let features = parts.test.unwrap_or(parts.train).features;
    let scores = pool(args.threads)?.install(|| model.decision_function(features))?;
    spinner.finish_and_clear();
    let predictions = Predictions::new(&scores, model, args);
    match &args.output {
        Some(path) => output::whole(path, |out| predictions.write(out, args.json)),
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            predictions.write(&mut out, args.json)?;
            Ok(out.flush()?)
        }
    }
}

/// Predictions as text, row by row.
struct Predictions<'a> {
    names: Vec<String>,
    /// One for each row.
    classes: Option<Vec<&'a str>>,
    /// Scores, probabilities or predicted values.
    numbers: Option<(&'static str, Matrix<f64>)>,
}

impl<'a> Predictions<'a> {
    fn new<T: Scalar>(scores: &Matrix<T>, model: &'a Model<T>, args: &PredictArgs) -> Self {
        let outputs = model.outputs();
        let names = outputs.names();
        let classes = match outputs {
            Outputs::Values { .. } => None,
            Outputs::Classes { names } => {
                let largest = argmax(scores).into_iter();
                Some(largest.map(|k| names[k as usize].as_str()).collect())
            }
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
        let named = |(i, name): (usize, &String)| match name.as_str() {
            "" => format!("output{}", i + 1),
            name => name.to_string(),
        };
        Self {
            names: names.iter().enumerate().map(named).collect(),
            classes,
            numbers,
        }
    }

    fn rows(&self) -> usize {
        let numbers = self.numbers.as_ref().map(|(_, numbers)| numbers.rows());
        numbers.or(self.classes.as_ref().map(Vec::len)).unwrap_or(0)
    }

    fn write(&self, out: &mut dyn Write, json: bool) -> io::Result<()> {
        match (json, &self.classes, &self.numbers) {
            (true, _, _) => self.write_json(out),
            (false, Some(classes), None) => classes
                .iter()
                .try_for_each(|class| writeln!(out, "{class}")),
            // One value a row needs no header.
            (false, None, Some((_, values))) if values.cols() == 1 => values
                .values()
                .iter()
                .try_for_each(|value| writeln!(out, "{value}")),
            _ => self.write_table(out),
        }
    }

    fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = csv::Writer::from_writer(out);
        let first = self.classes.iter().map(|_| "predicted".to_string());
        let header = first.chain(self.names.iter().cloned());
        table.write_record(header).map_err(plain)?;
        for i in 0..self.rows() {
            let class = self.classes.iter().map(|classes| classes[i].to_string());
            let numbers = self.numbers.iter().flat_map(|(_, n)| n.row(i));
            let row = class.chain(numbers.map(f64::to_string));
            table.write_record(row).map_err(plain)?;
        }
        table.flush()
    }

    fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        for i in 0..self.rows() {
            let mut object = serde_json::Map::new();
            if let Some(classes) = &self.classes {
                object.insert("predicted".into(), classes[i].into());
            }
            if let Some((name, numbers)) = &self.numbers {
                let pairs = self.names.iter().cloned().zip(numbers.row(i));
                let values = pairs.map(|(name, &value)| (name, value.into()));
                object.insert((*name).into(), serde_json::Value::Object(values.collect()));
            }
            serde_json::to_writer(&mut *out, &object)?;
            writeln!(out)?;
        }
        Ok(())
    }
}

/// What the system said: csv's own conversion hides that a pipe was closed.
fn plain(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}
