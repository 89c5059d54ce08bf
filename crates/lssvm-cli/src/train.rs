//! `lssvm train`

use std::path::Path;

use anyhow::anyhow;
use lssvm::Error;
use lssvm::data::{ImageShape, Labelled, StreamParts, open};
use lssvm::error::Bytes;
use lssvm::linalg::{Precision, Scalar};
use lssvm::model::{self, AnyModel, Input, Model};
use lssvm::ranks::Ranks;
use lssvm::solve::Stopped;
use lssvm::system::Format;
use lssvm::train::{
    Checkpoint, Config, Fitted, Report, StreamData, Trainer, WarmStart, forecast, forecast_on,
};
use lssvm_report::{Machine, Pictures, Run, training_page};

use crate::args::TrainArgs;
use crate::output::{self, fact, remark};
use crate::progress::{self, Progress};
use crate::resume;
use crate::settings::{TrainSettings, options_for, to_toml};
use crate::together::agree;

pub fn run(ranks: &Ranks, args: &TrainArgs) -> anyhow::Result<()> {
    let Some(folder) = &args.resume else {
        return with(ranks, &agree(ranks, TrainSettings::new(args))?);
    };
    let (found, settings) = resume::open(ranks, folder, args)?;
    match settings.precision() {
        Precision::F32 => train::<f32>(ranks, &settings, Begin::Again(found)),
        Precision::F64 => train::<f64>(ranks, &settings, Begin::Again(found)),
    }
}

/// Trains with settings that were made elsewhere.
pub fn with(ranks: &Ranks, settings: &TrainSettings) -> anyhow::Result<()> {
    if let Some(path) = &settings.warm_start {
        return match ranks.agree(AnyModel::load(path))? {
            AnyModel::F32(model) => train(ranks, settings, Begin::At(model)),
            AnyModel::F64(model) => train(ranks, settings, Begin::At(model)),
        };
    }
    match settings.precision() {
        Precision::F32 => train::<f32>(ranks, settings, Begin::New),
        Precision::F64 => train::<f64>(ranks, settings, Begin::New),
    }
}

/// How a run begins.
enum Begin<T: Scalar> {
    New,
    /// At the weights of a model.
    At(Model<T>),
    /// Where another process left it.
    Again(Checkpoint),
}

/// Refuses options that only `train` has a use for.
pub fn expect_new(command: &str, args: &TrainArgs) -> anyhow::Result<()> {
    let options = [("resume", &args.resume), ("warm-start", &args.warm_start)];
    for (option, path) in options {
        if let Some(path) = path {
            let requirement = format!("is for train; {command} looks at runs from the beginning");
            anyhow::bail!(Error::parameter(option, path.display(), requirement));
        }
    }
    Ok(())
}

/// `lssvm plan`
pub fn plan(args: &TrainArgs) -> anyhow::Result<()> {
    expect_new("plan", args)?;
    let settings = TrainSettings::new(args)?;
    output::expect_json(settings.json.as_deref())?;
    let forecast = match settings.precision() {
        Precision::F32 => forecast(load::<f32>(&settings)?, &settings.config),
        Precision::F64 => forecast(load::<f64>(&settings)?, &settings.config),
    }?;
    let [n, m, k] = forecast.shape;
    let config = &forecast.config;
    fact("data", format!("{n} rows, {m} features, {k} outputs"));
    fact("method", format!("{} ({})", config.method, forecast.why));
    fact(
        "kernel matrix",
        match (config.centers, forecast.kernel_kept) {
            (Some(centers), _) => {
                format!("of all rows with {centers} centres, recomputed in every pass")
            }
            (_, Some(Format::Full)) => format!("lower half kept in {}", config.precision),
            (_, Some(Format::Half)) => "lower half kept in f16".to_string(),
            (_, None) => "recomputed as needed".to_string(),
        },
    );
    let budget = Bytes(config.budget.0);
    let memory = Bytes(forecast.memory_bytes);
    fact("memory", format!("up to {memory}, of {budget}"));
    fact("time", format!("about {}", forecast.duration()));
    if let Some(path) = &settings.json {
        output::json(path, &forecast)?;
    }
    Ok(())
}

/// Refuses places where results cannot be written.
fn expect_places(settings: &TrainSettings) -> anyhow::Result<()> {
    let numbers = settings
        .report
        .as_ref()
        .map(|page| page.with_extension("json"));
    output::expect_distinct(&[
        ("model", settings.model.as_deref()),
        ("json", settings.json.as_deref()),
        ("report", settings.report.as_deref()),
        ("report", numbers.as_deref()),
    ])?;
    if !settings.print_config {
        if let Some(path) = &settings.model {
            model::check_writable(path)?;
            progress::leave_nothing_unfinished(path);
        }
        output::expect_json(settings.json.as_deref())?;
        if let Some(path) = &settings.report {
            model::check_writable(path)?;
        }
        if let Some(path) = &numbers {
            model::check_writable(path)?;
        }
    }
    Ok(())
}

fn train<T: Scalar>(
    ranks: &Ranks,
    settings: &TrainSettings,
    begin: Begin<T>,
) -> anyhow::Result<()> {
    // Before hours of training, not after; and by the rank that will write.
    let places = match ranks.is_first() {
        true => expect_places(settings),
        false => Ok(()),
    };
    agree(ranks, places)?;
    let data = agree(ranks, load::<T>(settings))?;
    if settings.print_config {
        let effective = forecast_on(ranks, data, &settings.config)?.config;
        output::say(to_toml(&settings.reading, &effective)?.trim_end());
        return Ok(());
    }
    progress::catch_interrupts();
    let classes = is_classification(&data.train, &settings.config);
    let pictures = match (&data.test, &settings.report) {
        (Some(test), Some(_)) if ranks.is_first() => {
            let test = test.clone().load();
            test.map(|test| Pictures::new(&test)).map_err(Into::into)
        }
        _ => Ok(None),
    };
    let pictures = agree(ranks, pictures)?;
    let mut watcher = Progress::new(classes, settings.model.is_some());
    let result = fit(ranks, data, settings, begin, &mut watcher);
    watcher.finish();
    let (model, report) = result?;
    let peaks = ranks.each(report.peak_memory_bytes.unwrap_or(0) as f64);
    let written = match model {
        Some(model) => {
            summarise(&report, &peaks);
            write(settings, model, &report, pictures.as_ref())
        }
        // The first rank speaks and writes.
        None => Ok(()),
    };
    agree(ranks, written)
}

/// Writes all results of a run, as many as can be written.
fn write<T: Scalar>(
    settings: &TrainSettings,
    model: Fitted<T>,
    report: &Report,
    pictures: Option<&Pictures>,
) -> anyhow::Result<()> {
    let names = model.outputs().names().to_vec();
    let saved = match &settings.model {
        Some(path) => save(model, path),
        None => Ok(()),
    };
    let told = tell(settings, &names, report, pictures);
    saved.and(told)?;
    end_checkpoints(settings, report);
    Ok(())
}

/// Saves a model. It may have taken hours: if there is no room for it any more, or no folder,
/// it goes where other files of short life go.
fn save<T: Scalar>(model: Fitted<T>, path: &Path) -> anyhow::Result<()> {
    let rows = model.n_support();
    let saved = match model {
        Fitted::Model(model) => model.save(path).map_err(|error| {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("{stem}-{}.lssvm", std::process::id());
            let spare = std::env::temp_dir().join(name);
            match model.save(&spare) {
                Ok(()) => anyhow!("{error}; the model is not lost, it is {}", spare.display()),
                Err(_) => error.into(),
            }
        }),
        spread => spread.save(path).map_err(Into::into),
    };
    saved?;
    let size = Bytes(output::size(path)?);
    fact("model", format!("{} ({rows} rows, {size})", path.display()));
    Ok(())
}

/// Writes what there is to say about a run.
fn tell(
    settings: &TrainSettings,
    names: &[String],
    report: &Report,
    pictures: Option<&Pictures>,
) -> anyhow::Result<()> {
    if let Some(path) = &settings.json {
        output::json(path, report)?;
    }
    if let Some(path) = &settings.report {
        let page = training_page(&Run {
            report,
            data: settings.data.display().to_string(),
            names,
            pictures,
            machine: Machine::detect(),
        });
        output::text(path, &page.to_html())?;
        output::json(&path.with_extension("json"), &page.to_json())?;
        fact("report", path.display());
    }
    Ok(())
}

fn fit<T: Scalar>(
    ranks: &Ranks,
    data: StreamData<T>,
    settings: &TrainSettings,
    begin: Begin<T>,
    watcher: &mut Progress,
) -> anyhow::Result<(Option<Fitted<T>>, Report)> {
    let model;
    let trainer = match begin {
        Begin::Again(found) => {
            watcher.goes_on_after(found.iterations());
            return Ok(Trainer::resume(found).fit_on(ranks, data, watcher)?);
        }
        Begin::At(before) => {
            model = before;
            Trainer::new(&settings.config).warm_start(&model)
        }
        Begin::New => Trainer::new(&settings.config),
    };
    let trainer = match agree(ranks, resume::checkpoints(settings))? {
        Some(checkpoints) => trainer.checkpoints(checkpoints),
        None => trainer,
    };
    Ok(trainer.fit_on(ranks, data, watcher)?)
}

/// The results are safe: a run that has ended needs its checkpoint no more.
fn end_checkpoints(settings: &TrainSettings, report: &Report) {
    let Some(folder) = &settings.checkpoint else {
        return;
    };
    if let Some(told) = &report.checkpoints
        && let Some(warning) = progress::warning(told)
    {
        remark(warning);
    }
    if report.stopped == Stopped::Interrupted {
        let folder = folder.display();
        let program = output::program();
        remark(format!("go on with: {program} train --resume {folder}"));
    } else if let Err(error) = Checkpoint::remove(folder) {
        remark(format!("note: {error}"));
    }
}

/// Opens all parts; test and validation data must fit the training data.
pub fn load<T: Scalar>(settings: &TrainSettings) -> anyhow::Result<StreamData<T>> {
    let spinner = progress::spinner(format!("reading {}", settings.data.display()));
    let StreamParts { train, mut test } = open::<T>(&settings.data, &settings.read)?;
    // As in competitions: nothing to compare with, but the training part is all there.
    let unlabelled = test.take_if(|part| part.labels.is_none());
    let input = Input {
        n_features: train.n_features(),
        feature_names: train.feature_names.clone(),
        label_places: match &train.labels {
            Some(labels) => labels.column_places().to_vec(),
            None => Vec::new(),
        },
        index_base: train.index_base,
        ..Input::default()
    };
    let other = |path| {
        let options = options_for(settings.read.clone(), &input);
        open::<T>(path, &options).map(|parts| parts.test.unwrap_or(parts.train))
    };
    if let Some(path) = &settings.test {
        test = Some(other(path)?);
    }
    let validation = settings.validation_data.as_ref().map(|path| other(path));
    let validation = validation.transpose()?;
    spinner.finish_and_clear();
    if let Some(part) = unlabelled.filter(|_| settings.test.is_none()) {
        let source = part.source.display();
        remark(format!(
            "{source} has no labels: training without a test part"
        ));
    }
    let mut data = StreamData {
        train,
        validation,
        test,
    };
    if let Some(shape) = settings.config.image_shape {
        see_images(&mut data, shape);
    }
    Ok(data)
}

/// Rows of a table are images once their shape is told. One that does not fit is left for
/// the library to refuse.
fn see_images<T: Scalar>(data: &mut StreamData<T>, shape: ImageShape) {
    let others = data.validation.iter_mut().chain(&mut data.test);
    for part in std::iter::once(&mut data.train).chain(others) {
        if part.n_features() == shape.len() {
            part.image = Some(shape);
        }
    }
}

/// The library decides for itself; this is for the words on the screen only.
pub fn is_classification<F>(train: &Labelled<F>, config: &Config) -> bool {
    let task = config.task.unwrap_or_default();
    let targets = train.labels.as_ref().map(|labels| labels.resolve(task));
    matches!(targets, Some(Ok(lssvm::data::Targets::Classes { .. })))
}

/// `peaks`: of the memory of each rank.
fn summarise(report: &Report, peaks: &[f64]) {
    let (iterations, seconds) = (report.iterations, report.seconds);
    let plural = if iterations == 1 { "" } else { "s" };
    let best = match report.best_iteration {
        best if best != iterations => {
            format!("; kept iteration {best}, the best on validation rows")
        }
        _ => String::new(),
    };
    fact(
        "trained",
        format!(
            "{iterations} iteration{plural} in {seconds:.1} s: {}{best}",
            report.stopped.because()
        ),
    );
    if let Some(WarmStart { known, new, gone }) = report.warm_start {
        let rows = format!("{known} rows of the model, {new} new, {gone} no longer there");
        fact("warm start", rows);
    }
    if let Some(residual) = report.residual_in_words() {
        fact("residual", residual);
    }
    if report.jitter > 0.0 {
        let jitter = report.jitter;
        fact(
            "jitter",
            format!("{jitter:.1e} was added to a diagonal that was singular to rounding"),
        );
    }
    if let Some(loo) = &report.leave_one_out {
        output::evaluation("leave-one-out", loo);
    }
    if let Some(why) = &report.leave_one_out_missing {
        fact("leave-one-out", format!("no scores: {why}"));
    }
    if let Some(validation) = &report.validation {
        output::evaluation("validation", validation);
    }
    if let Some(test) = &report.test {
        output::evaluation("test", test);
    }
    let phases = report.phases.iter().map(|phase| {
        let rate = if phase.gflops > 0.0 {
            format!(" at {:.0} GFLOP/s", phase.gflops)
        } else {
            String::new()
        };
        format!("{} {:.1} s{rate}", phase.phase, phase.seconds)
    });
    fact("time", phases.collect::<Vec<_>>().join(", "));
    if let Some(peak) = report.peak_memory_bytes {
        let planned = Bytes(report.planned_memory_bytes);
        fact(
            "memory",
            format!("{} at its peak, {planned} planned", Bytes(peak)),
        );
    }
    if let Some(communicated) = &report.communicated {
        let peaks = peaks.iter().map(|&peak| Bytes(peak as u64).to_string());
        let peaks = peaks.collect::<Vec<_>>().join(", ");
        let a_step = communicated.in_steps.total() / report.iterations.max(1) as u64;
        fact(
            "ranks",
            format!(
                "{}, memory at its peak {peaks}; {} communicated, {} in an iteration",
                communicated.ranks,
                Bytes(communicated.in_all.total()),
                Bytes(a_step)
            ),
        );
    }
    if report.stopped == Stopped::Interrupted {
        remark("interrupted: this is the model trained so far");
    }
}
