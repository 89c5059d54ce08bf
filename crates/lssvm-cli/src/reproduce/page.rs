//! The page of an experiment: a section for each figure, next to the paper.

use lssvm::error::Bytes;
use lssvm::model::argmax;
use lssvm::solve::Truth;
use lssvm::train::{Evaluation, Report};
use lssvm_report::{
    Axis, Block, Gallery, Heatmap, Machine, Mark, Page, Pictures, Plot, Section, Series, Table,
    Tile, calibration, class_table, kernel_in_words,
};

use super::Results;
use super::curve::Settled;
use super::experiment::{Figure, Kind, Run};
use super::measure::{Measure, error_at, error_of, interval_of};
use super::table::{paper, seconds_per_iteration};

/// Images of a gallery; more would be a page of their own.
const MOST_TILES: usize = 400;

/// Columns that only the experiments of a paper have.
const PAPER_SAYS: &str = "the paper says";
const PAPER_SECONDS: &str = "the paper's s";

pub fn page(results: &Results) -> Page {
    let experiment = &results.experiment;
    let title = match results.quick {
        true => format!("{} (quick: a small version)", experiment.title),
        false => experiment.title.clone(),
    };
    let mut page = Page::new(title, lead(results));
    page.fact("data", results.data.display());
    facts(results, &mut page);
    page.sections.push(summary(results));
    // Runs whose classes have been looked at: two figures may show the same.
    let mut seen: Vec<&str> = Vec::new();
    for figure in &experiment.figures {
        let Some(section) = section(results, figure) else {
            continue;
        };
        page.sections.push(section);
        let of = figure.of.as_deref().filter(|of| !seen.contains(of));
        if let Some((of, (run, report))) = of.and_then(|of| Some((of, made(results, of)?))) {
            seen.push(of);
            page.sections.extend(classes(figure, run, report));
        }
    }
    page
}

/// A run that was made, and its report.
fn made<'a>(results: &'a Results, name: &str) -> Option<(&'a Run, &'a Report)> {
    let mut pairs = results.runs.iter().zip(&results.reports);
    let (run, report) = pairs.find(|(run, _)| run.is(name))?;
    Some((run, report.as_ref()?))
}

fn all_made(results: &Results) -> impl Iterator<Item = (&Run, &Report)> {
    let pairs = results.runs.iter().zip(&results.reports);
    pairs.filter_map(|(run, report)| Some((run, report.as_ref()?)))
}

fn lead(results: &Results) -> String {
    let errors =
        all_made(results).filter_map(|(run, report)| Some((run, report, error_of(report)?)));
    let best = errors.min_by(|a, b| a.2.total_cmp(&b.2));
    let small = match (results.quick, results.experiment.has_paper()) {
        (true, true) => {
            " With fewer rows and iterations than the paper, so that its values are not to be reached."
        }
        (true, false) => " With fewer rows and iterations than the whole experiment.",
        (false, _) => "",
    };
    match best {
        Some((run, report, error)) => {
            let (measure, name) = (Measure::of(report), run.label());
            let interval = interval_of(report).map_or(String::new(), |(low, high)| {
                let (low, high) = (measure.number(low), measure.show(high));
                format!(" (95 % interval {low} to {high})")
            });
            let (what, error) = (measure.name(), measure.show(error));
            format!("The least {what} is {error}{interval}, by {name}.{small}")
        }
        None => format!("No run was made.{small}"),
    }
}

fn facts(results: &Results, page: &mut Page) {
    let Some((_, report)) = all_made(results).next() else {
        return;
    };
    let [n, _, k] = report.shape;
    page.fact("training rows", n);
    page.fact("features", distinct(results, |r| r.shape[1].to_string()));
    let outputs = match Measure::of(report) {
        Measure::Percent => "classes",
        Measure::Rmse => "outputs",
    };
    page.fact(outputs, k);
    if let Some(test) = &report.test {
        page.fact("test rows", test.rows);
    }
    page.fact("kernel", distinct(results, |r| kernel_in_words(&r.config)));
    page.fact("c", distinct(results, |r| r.config.c.to_string()));
    page.fact("seed", distinct(results, |r| r.config.seed.to_string()));
    let threads = distinct(results, |r| r.config.threads.to_string());
    page.fact("threads", threads);
    page.fact("machine", Machine::detect().describe());
    let peak = all_made(results)
        .filter_map(|(_, report)| report.peak_memory_bytes)
        .max();
    if let Some(peak) = peak {
        let paper = results.experiment.paper_memory.as_ref();
        let paper = paper.map_or(String::new(), |text| format!(" (the paper: {text})"));
        page.fact("peak memory", format!("{}{paper}", Bytes(peak)));
    }
    page.fact("program", concat!("lssvm ", env!("CARGO_PKG_VERSION")));
}

/// A setting of all runs; each of its values if they differ in it.
fn distinct(results: &Results, of: impl Fn(&Report) -> String) -> String {
    let mut values: Vec<String> = Vec::new();
    for (_, report) in all_made(results) {
        let value = of(report);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.join("; ")
}

fn summary(results: &Results) -> Section {
    let mut section = Section::new("summary", "All runs");
    let about = &results.experiment.about;
    section
        .text
        .extend((!about.is_empty()).then(|| about.clone()));
    section.text.push(
        "“Settled at” is mean and standard deviation of the error over the last fifth of the \
         iterations, “fluctuation” the typical change from one iteration to the next over √2. \
         Runs on the same blocks were made side by side; the seconds are those that each would \
         have taken alone."
            .into(),
    );
    let row = |(run, report): (&Run, &Report)| {
        let settled = Settled::new(&report.history);
        let measure = Measure::of(report);
        let number = |value: Option<f64>, digits: usize| {
            value.map_or("–".to_string(), |v| format!("{v:.digits$}"))
        };
        vec![
            run.label(),
            report.config.block_size.to_string(),
            report.iterations.to_string(),
            error_of(report).map_or("–".into(), |e| measure.number(e)),
            interval_of(report).map_or("–".into(), |(low, high)| {
                format!("{} to {}", measure.number(low), measure.number(high))
            }),
            settled.map_or("–".into(), |s| s.show(measure)),
            paper(results, run),
            settled.map_or("–".into(), |s| match measure {
                Measure::Percent => format!("{:.3}", s.fluctuation),
                Measure::Rmse => measure.number(s.fluctuation),
            }),
            number(Some(seconds_per_iteration(report)), 2),
            number(run.paper_seconds, 0),
            report
                .relative_residual
                .map_or("–".into(), |r| format!("{r:.1e}")),
        ]
    };
    let first = all_made(results).next();
    let measure = first.map_or(Measure::Percent, |(_, report)| Measure::of(report));
    let header = [
        "run",
        "J",
        "iterations",
        &measure.heading("error"),
        "95 % interval",
        &measure.heading("settled at"),
        PAPER_SAYS,
        &measure.heading("fluctuation"),
        "s an iteration",
        PAPER_SECONDS,
        "relative residual",
    ];
    let rows: Vec<Vec<String>> = all_made(results).map(row).collect();
    let mut table = Table::new("All runs", header, rows);
    if !results.experiment.has_paper() {
        without(&mut table, &[PAPER_SAYS, PAPER_SECONDS]);
    }
    section.blocks.push(Block::Table(table));
    section.blocks.push(Block::Table(time(results)));
    section
}

/// Leaves out columns that would be empty.
fn without(table: &mut Table, names: &[&str]) {
    let keep: Vec<bool> = table
        .header
        .iter()
        .map(|name| !names.contains(&name.as_str()))
        .collect();
    fn kept<T: Clone>(cells: &[T], keep: &[bool]) -> Vec<T> {
        let pairs = cells.iter().zip(keep);
        pairs
            .filter(|(_, keep)| **keep)
            .map(|(c, _)| c.clone())
            .collect()
    }
    table.header = kept(&table.header, &keep);
    table.numeric = kept(&table.numeric, &keep);
    for row in &mut table.rows {
        *row = kept(row, &keep);
    }
}

/// Where the seconds of an iteration go.
fn time(results: &Results) -> Table {
    let mut phases: Vec<&str> = Vec::new();
    for phase in all_made(results).flat_map(|(_, report)| &report.phases) {
        if !phases.contains(&phase.phase.as_str()) {
            phases.push(&phase.phase);
        }
    }
    let row = |(run, report): (&Run, &Report)| {
        let seconds = phases.iter().map(|name| {
            let phase = report.phases.iter().find(|phase| phase.phase == *name);
            phase.map_or("–".into(), |phase| match phase.gflops > 0.0 {
                true => format!("{:.1} ({:.0} GFLOP/s)", phase.seconds, phase.gflops),
                false => format!("{:.1}", phase.seconds),
            })
        });
        std::iter::once(run.label())
            .chain(seconds)
            .collect::<Vec<String>>()
    };
    let header: Vec<&str> = std::iter::once("run")
        .chain(phases.iter().copied())
        .collect();
    let rows: Vec<Vec<String>> = all_made(results).map(row).collect();
    Table::new("Where the time went, in seconds", header, rows)
}

/// None if what it shows was not made.
fn section(results: &Results, figure: &Figure) -> Option<Section> {
    let mut section = Section::new(&figure.id, &figure.title);
    section
        .text
        .extend((!figure.text.is_empty()).then(|| figure.text.clone()));
    match figure.kind {
        Kind::Pictures => {
            let shown = results
                .shown
                .iter()
                .find(|shown| shown.figure == figure.id)?;
            let tiles = (0..shown.pictures.len()).filter_map(|i| {
                Some(Tile {
                    picture: shown.pictures.picture(i)?,
                    caption: String::new(),
                    title: shown.names[i].clone(),
                })
            });
            section.blocks.push(Block::Gallery(Gallery {
                title: format!("{} training images", shown.pictures.len()),
                tiles: tiles.collect(),
                note: None,
            }));
        }
        Kind::Curves => {
            let runs: Vec<_> = figure
                .names()
                .iter()
                .filter_map(|n| made(results, n))
                .collect();
            if runs.is_empty() {
                return None;
            }
            if !figure.paper.text.is_empty() {
                section
                    .text
                    .push(format!("The paper: {}.", figure.paper.text));
            }
            section.text.extend(
                runs.iter()
                    .filter_map(|(run, report)| sentence(run, report)),
            );
            section.blocks.extend(curves(figure, &runs));
        }
        Kind::Misclassified => {
            let (run, report) = made(results, figure.of.as_deref()?)?;
            let test = report.test.as_ref()?;
            section.text.extend(wrong_sentence(figure, run, test));
            section
                .blocks
                .push(Block::Gallery(misclassified(test, results.test.as_ref()?)?));
        }
        Kind::Confusion => {
            let (_, report) = made(results, figure.of.as_deref()?)?;
            section
                .blocks
                .extend(confusion(figure, report.test.as_ref()?));
        }
    }
    Some(section)
}

/// Scores of each class of the run that a figure shows, and whether its probabilities
/// come true.
fn classes(figure: &Figure, run: &Run, report: &Report) -> Option<Section> {
    let table = class_table(report.test.as_ref()?)?;
    let id = format!("{}-classes", figure.id);
    let title = format!("Classes and probabilities of {}", run.label());
    let mut section = Section::new(id, title);
    section.blocks.push(Block::Table(table));
    if let Some(calibration) = calibration(report) {
        section.text.extend(calibration.text);
        let renamed = calibration.blocks.into_iter().map(|mut block| {
            if let Block::Plot(plot) = &mut block {
                plot.name = format!("{}-{}", figure.id, plot.name);
            }
            block
        });
        section.blocks.extend(renamed);
    }
    // Plots beside plots, and tables beside tables.
    let is_table = |block: &Block| matches!(block, Block::Table(_));
    section.blocks.sort_by_key(is_table);
    Some(section)
}

fn sentence(run: &Run, report: &Report) -> Option<String> {
    let settled = Settled::new(&report.history)?;
    let measure = Measure::of(report);
    let first = measure.show(error_at(report.history.first()?)?);
    let last = measure.show(error_at(report.history.last()?)?);
    Some(format!(
        "{}: {first} after the first iteration, {last} after {}; {}{} over the last fifth.",
        run.label(),
        report.iterations,
        settled.show(measure),
        measure.unit()
    ))
}

fn curves(figure: &Figure, runs: &[(&Run, &Report)]) -> Vec<Block> {
    let x = figure.x.as_deref().unwrap_or("iteration");
    let mut plots = vec![plot(figure, "iterations", x, runs, |line| {
        line.iteration as f64
    })];
    plots.push(plot(figure, "seconds", "seconds", runs, |line| {
        line.seconds
    }));
    if let Some(residual) = residuals(figure, runs) {
        plots.push(residual);
    }
    plots.into_iter().map(Block::Plot).collect()
}

fn plot(
    figure: &Figure,
    name: &str,
    x: &str,
    runs: &[(&Run, &Report)],
    at: impl Fn(&lssvm::train::HistoryLine) -> f64,
) -> Plot {
    let measure = runs
        .first()
        .map_or(Measure::Percent, |(_, r)| Measure::of(r));
    let (title, y) = match measure {
        Measure::Percent => (format!("Test error against {name}"), "test error, %"),
        Measure::Rmse => (format!("Test RMSE against {name}"), "test RMSE"),
    };
    let name = format!("{}-{name}", figure.id);
    let mut plot = Plot::new(name, title, Axis::new(x), Axis::new(y));
    for (run, report) in runs {
        let points = report
            .history
            .iter()
            .filter_map(|l| Some((at(l), error_at(l)?)));
        plot.series
            .push(Series::line(run.label(), points.collect()));
    }
    if let Some(value) = figure.paper.value {
        let mark = Mark::new("the paper", value);
        plot.marks.push(match figure.paper.spread {
            Some(spread) => mark.spread(spread),
            None => mark,
        });
    }
    plot
}

fn residuals(figure: &Figure, runs: &[(&Run, &Report)]) -> Option<Plot> {
    let mut plot = Plot::new(
        format!("{}-residual", figure.id),
        "Relative residual ‖Z − ΘW‖ / ‖Z‖",
        Axis::new("iteration"),
        Axis::new("relative residual").scale(lssvm_report::Scale::Log),
    );
    for (run, report) in runs {
        let history = report.history.iter();
        let points: Vec<(f64, f64)> = history
            .filter_map(|l| Some((l.iteration as f64, l.relative_residual?)))
            .collect();
        if points.len() > 1 {
            plot.series.push(Series::line(run.label(), points));
        }
    }
    (!plot.series.is_empty()).then_some(plot)
}

fn wrong_sentence(figure: &Figure, run: &Run, test: &Evaluation) -> Option<String> {
    let confusion = test.confusion.as_ref()?;
    let paper = match figure.paper.text.as_str() {
        "" => String::new(),
        text => format!(" The paper: {text}."),
    };
    Some(format!(
        "{} of {} test images are not recognised by {}.{paper} Below each: true → predicted class, and the \
         score of the prediction.",
        confusion.n_errors(),
        test.rows,
        run.label()
    ))
}

fn misclassified(test: &Evaluation, pictures: &Pictures) -> Option<Gallery> {
    let Truth::Classes(truth) = &test.truth else {
        return None;
    };
    let names = &test.confusion.as_ref()?.classes;
    let predicted = argmax(&test.scores);
    let wrong: Vec<usize> = (0..truth.len())
        .filter(|&i| truth[i] != predicted[i])
        .collect();
    let tiles = wrong.iter().take(MOST_TILES).filter_map(|&i| {
        let (t, p) = (truth[i] as usize, predicted[i] as usize);
        let scores = test.scores.row(i);
        Some(Tile {
            picture: pictures.picture(i)?,
            caption: format!("{} → {} ({:.2})", names[t], names[p], scores[p]),
            title: format!(
                "test row {}: score of {} is {:.2}, of {} {:.2}",
                i + 1,
                names[p],
                scores[p],
                names[t],
                scores[t]
            ),
        })
    });
    let note = (wrong.len() > MOST_TILES)
        .then(|| format!("The first {MOST_TILES} of {} are shown.", wrong.len()));
    Some(Gallery {
        title: "True → predicted class, and the score of the prediction".into(),
        tiles: tiles.collect(),
        note,
    })
}

fn confusion(figure: &Figure, test: &Evaluation) -> Vec<Block> {
    let Some(confusion) = &test.confusion else {
        return Vec::new();
    };
    let heatmap = |name: &str, title: &str, values: Vec<Vec<f64>>| {
        Block::Heatmap(Heatmap {
            name: format!("{}-{name}", figure.id),
            title: title.into(),
            rows: confusion.classes.clone(),
            columns: confusion.classes.clone(),
            values,
            row_label: "true class".into(),
            column_label: "predicted class".into(),
            unit: "% of the true class".into(),
            // As in the paper's table.
            decimals: Some(1),
        })
    };
    let mut blocks = vec![heatmap("ours", "This run", confusion.percent_of_rows())];
    let size = confusion.classes.len();
    if let Some(paper) = figure.paper_table.as_ref().filter(|t| t.len() == size) {
        blocks.push(heatmap("paper", "The paper", paper.clone()));
    }
    blocks
}
