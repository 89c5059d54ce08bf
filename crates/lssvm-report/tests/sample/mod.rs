//! Made-up runs that look like real ones, for tests and the demonstration.

// Each test uses a part of it.
#![allow(dead_code)]

use lssvm::data::{ImageShape, Task};
use lssvm::kernel::Gamma;
use lssvm::linalg::Matrix;
use lssvm::memory::Size;
use lssvm::model::{Conformal, HeldOut, softmax};
use lssvm::solve::{Method, PhaseReport, Stopped, Truth};
use lssvm::train::{Config, Evaluation, HistoryLine, Report, Shape};
use lssvm_report::{
    Axis, Block, Heatmap, Machine, Mark, Page, Pictures, Plot, Run, Scale, Section, Series,
    training_page,
};

/// Numbers that look random and are always the same.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// From −1 to 1, most near 0.
    pub fn next(&mut self) -> f64 {
        (0..3).map(|_| self.uniform() * 2.0 - 1.0).sum::<f64>() / 3.0
    }

    pub fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

pub fn machine() -> Machine {
    Machine {
        cpu: "Example CPU @ 2.50 GHz".into(),
        threads: 8,
        memory_bytes: Some(16_000_000_000),
        system: "Example Linux 1, x86_64".into(),
    }
}

/// Scores near one for the true class and near zero for others; about
/// `wrong` percent prefer another class.
pub fn class_scores(codes: &[u32], classes: usize, wrong: f64) -> Matrix<f64> {
    let mut noise = Noise::new(5);
    let mut scores = Matrix::from_fn(codes.len(), classes, |i, k| {
        let target = f64::from(u8::from(codes[i] as usize == k));
        0.85 * target + 0.12 * noise.next()
    });
    for (i, &code) in codes.iter().enumerate() {
        if noise.uniform() * 100.0 < wrong {
            // Some pairs are mixed up more often than others.
            let other = (code as usize * 7 + 4 + usize::from(noise.uniform() < 0.3)) % classes;
            if other != code as usize {
                let row = scores.row_mut(i);
                row[other] = 0.55 + 0.4 * noise.next().abs();
                row[code as usize] = 0.5 - 0.5 * noise.next().abs();
            }
        }
    }
    scores
}

/// A run of `iterations` steps with this test result.
pub fn report(iterations: usize, test: Option<Evaluation>, task: Task) -> Report {
    let image = (task == Task::Classification).then_some(ImageShape {
        channels: 1,
        height: 28,
        width: 28,
    });
    let config = Config {
        task: Some(task),
        method: Some(if iterations == 1 {
            Method::Exact
        } else {
            Method::Mp
        }),
        gamma: Some(Gamma::Value(1.0)),
        memory: Some(Size(8_000_000_000)),
        threads: Some(8),
        ..Config::default()
    };
    let rows = 60_000;
    let config = config.resolve(Shape {
        ranks: 1,
        rows,
        features: 784,
        outputs: 10,
        others: 0,
        validation: false,
        image,
        kept: None,
    });
    let config = config.unwrap();
    let end = match &test {
        Some(Evaluation {
            error_percent: Some(error),
            ..
        }) => *error,
        Some(Evaluation {
            regression: Some(scores),
            ..
        }) => scores.rmse,
        _ => 1.0,
    };
    let classes = task == Task::Classification;
    let mut noise = Noise::new(3);
    let history = (1..=iterations).map(|i| {
        let decay = (-(i as f64) / (0.12 * iterations as f64)).exp();
        let error = end * (1.0 + 2.6 * decay + 0.02 * noise.next());
        let validation = end * (1.15 + 2.5 * decay + 0.03 * noise.next());
        HistoryLine {
            iteration: i,
            seconds: 2.2 * i as f64,
            error_percent: classes.then_some(error),
            rmse: (!classes).then_some(error),
            validation_error_percent: classes.then_some(validation),
            validation_rmse: (!classes).then_some(validation),
            relative_residual: (i % 2 == 0).then_some(0.4 * decay + 1e-3),
            relative_change: 0.5 * decay + 2e-3 * (1.0 + noise.next()),
        }
    });
    let phase = |phase: &str, seconds, gflops| PhaseReport {
        phase: phase.into(),
        seconds,
        gflops,
    };
    Report {
        communicated: None,
        leave_one_out: None,
        leave_one_out_missing: None,
        scaling: None,
        conformal: None,
        checkpoints: None,
        warm_start: None,
        support: Vec::new(),
        validation: test.clone(),
        test,
        seconds: 141.7,
        iterations,
        best_iteration: iterations,
        stopped: Stopped::Iterations,
        relative_residual: Some(1.23e-3),
        relative_residual_exact: true,
        tolerance_met: false,
        certificate: None,
        jitter: 0.0,
        phases: vec![
            phase("kernel", 21.4, 88.1),
            phase("gram", 88.9, 103.4),
            phase("factor", 4.1, 71.0),
            phase("update", 3.0, 9.2),
            phase("follow", 19.2, 84.0),
            phase("certify", 1.9, 0.0),
        ],
        history: history.collect(),
        planned_memory_bytes: 790_000_000,
        kernel_kept: None,
        peak_memory_bytes: Some(760_000_000),
        shape: [rows, 784, 10],
        config,
    }
}

/// The page of a run of so many iterations with these scores of the test rows.
pub fn page(
    data: &str,
    iterations: usize,
    scores: &Matrix<f64>,
    truth: &Truth,
    names: &[String],
    pictures: Option<&Pictures>,
) -> Page {
    let task = match truth {
        Truth::Classes(_) => Task::Classification,
        Truth::Values(_) => Task::Regression,
    };
    let evaluation = Evaluation::new(scores, truth, names).unwrap();
    training_page(&Run {
        report: &Report {
            conformal: conformal(HeldOut::LeaveOneOut, scores, truth),
            ..report(iterations, Some(evaluation), task)
        },
        data: data.into(),
        names,
        pictures,
        machine: machine(),
    })
}

/// How far off these scores are; none if some are not numbers.
pub fn conformal(from: HeldOut, scores: &Matrix<f64>, truth: &Truth) -> Option<Conformal> {
    let conformal = match truth {
        Truth::Classes(codes) => Conformal::of_classes(from, &softmax(scores), codes),
        Truth::Values(values) => Conformal::of_values(from, scores, values),
    };
    conformal.ok()
}

/// Two outputs, one with a spread that grows.
pub fn regression(rows: usize) -> (Truth, Matrix<f64>) {
    let mut noise = Noise::new(11);
    let truth = Matrix::from_fn(rows, 2, |_, j| 50.0 * (j + 1) as f64 * (1.0 + noise.next()));
    let scores = Matrix::from_fn(rows, 2, |i, j| {
        let value = truth.row(i)[j];
        value + (2.0 + 0.05 * value) * noise.next()
    });
    (Truth::Values(truth), scores)
}

/// Three long curves with the values of a paper.
pub fn paper() -> Page {
    let curve = |start: f64, end: f64, speed: f64, rough: f64, seed: u64| {
        let mut noise = Noise::new(seed);
        let points = (1..=600).map(|i| {
            let decay = (1.0 + f64::from(i) * speed).powf(-0.9);
            (
                f64::from(i),
                end + (start - end) * decay + rough * noise.next(),
            )
        });
        points.collect::<Vec<_>>()
    };
    let mut plot = Plot::new(
        "fig2a",
        "MNIST: test error of three methods, J = 2,000",
        Axis::new("iteration"),
        Axis::new("test error, %"),
    );
    plot.series = vec![
        Series::line("Kaczmarz", curve(4.2, 1.08, 0.12, 0.12, 1)),
        Series::line("matching pursuit", curve(2.6, 1.1, 0.3, 0.006, 2)),
        Series::line("hybrid", curve(3.2, 1.05, 0.2, 0.02, 3)),
    ];
    plot.marks = vec![
        Mark::new("paper, MP", 1.12).spread(0.03),
        Mark::new("paper, hybrid", 1.06),
    ];
    let mut log = plot.clone();
    log.name = "fig2a-log".into();
    log.title = "The same on a logarithmic axis".into();
    log.y.scale = Scale::Log;
    let mut page = Page::new("Reproduction of a paper", "All three methods reach 1.1 %.");
    let mut section = Section::new("fig2a", "Figure 2a");
    section
        .text
        .push("Error of each method on the test part.".into());
    section.blocks = vec![Block::Plot(plot), Block::Plot(log)];
    page.sections.push(section);
    page
}

/// What is hard to draw: many curves with long names, many classes, odd ranges.
pub fn stress() -> Page {
    let mut page = Page::new("Hard cases", "Nothing overlaps.");
    let mut section = Section::new("many", "Many of everything");
    let x = || Axis::new("iteration");
    let mut plot = Plot::new(
        "many",
        "Eight curves that end together",
        x(),
        Axis::new("error"),
    );
    for k in 0..8u32 {
        let curve = |i: u32| 1.0 + f64::from(k) * 0.01 + 2.0 / f64::from(i);
        let points = (1..=80).map(|i| (f64::from(i), curve(i))).collect();
        let name = format!("method {k} with a name that is rather long");
        plot.series.push(Series::line(name, points));
    }
    section.blocks.push(Block::Plot(plot));
    let ranges = [1e9, 3e-8, 123_456.0];
    for (k, &size) in ranges.iter().enumerate() {
        let title = format!("Values up to {size}");
        let mut plot = Plot::new(
            format!("range{k}"),
            title,
            Axis::new("rows"),
            Axis::new("time, s"),
        );
        let points = (0..20).map(|i| (f64::from(i) * size, size * f64::from(i * i) / 361.0));
        plot.series.push(Series::line("a", points.collect()));
        section.blocks.push(Block::Plot(plot));
    }
    let mut log = Plot::new("log", "Twelve decades", x(), Axis::new("residual"));
    log.y.scale = Scale::Log;
    let fall = (1..=40).map(|i| (f64::from(i), 10f64.powf(-0.3 * f64::from(i))));
    log.series.push(Series::line("residual", fall.collect()));
    section.blocks.push(Block::Plot(log));
    for n in [3, 26, 100] {
        let names: Vec<String> = (0..n).map(|k| format!("class number {k}")).collect();
        let value = |i: usize, j: usize| match (i * 7 + j * 3) % 11 {
            _ if i == j => 12_345.0,
            r if r < 2 => (r + i) as f64,
            _ => 0.0,
        };
        let row = |i: usize| (0..n).map(|j| value(i, j)).collect();
        section.blocks.push(Block::Heatmap(Heatmap {
            name: format!("confusion{n}"),
            title: format!("{n} classes"),
            rows: names.clone(),
            columns: names,
            values: (0..n).map(row).collect(),
            row_label: "true".into(),
            column_label: "predicted".into(),
            unit: "rows".into(),
            decimals: None,
        }));
    }
    page.sections.push(section);
    page
}
