//! The program under `mpirun`, with 1, 2 and 3 ranks: the same models, predictions and errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use lssvm::data::{ReadOptions, convert, open};
use lssvm::linalg::{Matrix, Precision, Scalar};
use lssvm::model::{AnyModel, Model};
use lssvm::solve::Silent;
use lssvm::train::{Config, StreamData, fit_stream};

/// A job that says nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(120);

fn mpirun(ranks: usize, words: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command
        .args(["--allow-run-as-root", "--oversubscribe", "--quiet", "-n"])
        .arg(ranks.to_string())
        .arg(env!("CARGO_BIN_EXE_lssvm-mpi"))
        .args(words)
        // Tests share the machine: ranks are bound to no core.
        .env("OMPI_MCA_hwloc_base_binding_policy", "none");
    command
}

/// What a job ends with; one that does not end is a failure.
fn run(ranks: usize, words: &[&str]) -> Output {
    let mut command = mpirun(ranks, words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    ended(command.spawn().unwrap())
}

fn ended(mut child: Child) -> Output {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            panic!("the job hangs: {}", text(&output.stderr));
        }
        sleep(Duration::from_millis(50));
    }
    child.wait_with_output().unwrap()
}

fn succeeded(ranks: usize, words: &[&str]) -> Output {
    let output = run(ranks, words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn word(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A folder with data that are read by their place, and the same with a bad end.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new(rows: usize) -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let wave = |i: usize, j: usize| ((i * 37 + j * 101 + i * j) as f64 * 0.7311).sin();
        let line = |i: usize| {
            let numbers = (0..4).map(|j| format!("{:.6}", (i % 3) as f64 + wave(i, j)));
            let class = ["red", "green", "blue"][i % 3];
            format!("{},{class}\n", numbers.collect::<Vec<_>>().join(","))
        };
        let lines: String = (0..rows).map(line).collect();
        fs::write(place.csv(), format!("a,b,c,d,colour\n{lines}")).unwrap();
        let options = ReadOptions::default();
        let go_on = &mut |_| true;
        convert(&place.csv(), &place.data(), &options, Precision::F32, go_on).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn csv(&self) -> PathBuf {
        self.path("waves.csv")
    }

    fn data(&self) -> PathBuf {
        self.path("waves.safetensors")
    }
}

fn load_f32(path: &Path) -> Model<f32> {
    match AnyModel::load(path).unwrap() {
        AnyModel::F32(model) => model,
        AnyModel::F64(_) => panic!("trained in f32"),
    }
}

fn load_f64(path: &Path) -> Model<f64> {
    match AnyModel::load(path).unwrap() {
        AnyModel::F64(model) => model,
        AnyModel::F32(_) => panic!("trained in f64"),
    }
}

/// The largest difference, beside the largest value.
fn apart<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) -> f64 {
    assert_eq!((a.rows(), a.cols()), (b.rows(), b.cols()));
    let largest = b
        .values()
        .iter()
        .fold(0.0, |m: f64, v| m.max(v.to_f64().abs()));
    let pairs = a.values().iter().zip(b.values());
    let off = pairs.map(|(a, b)| (a.to_f64() - b.to_f64()).abs());
    off.fold(0.0, f64::max) / largest
}

/// Methods with options that make them end soon.
const METHODS: [&[&str]; 7] = [
    &["mp", "--block-size", "60"],
    &["kaczmarz", "--block-size", "60"],
    &["kaczmarz-mp", "--block-size", "60"],
    &["nystrom", "--block-size", "60"],
    &["gauss-seidel", "--block-size", "1024"],
    &["pcg", "--rank", "100"],
    &["centers", "--centers", "80"],
];

#[test]
fn models_are_those_of_one_process() {
    // Two tiles, so that two of three ranks have rows to solve for.
    let place = Place::new(1500);
    for method in METHODS {
        let model = |ranks: usize| {
            let path = place.path(&format!("{}-{ranks}.lssvm", method[0]));
            let data = place.data();
            let mut words = vec!["train", word(&data), "--model", word(&path), "--method"];
            words.extend(method);
            words.extend(["--iterations", "4", "--precision", "f64"]);
            words.extend(["--threads", "1", "--memory", "1G"]);
            let output = succeeded(ranks, &words);
            let said = text(&output.stdout);
            // Once, whoever else is there.
            assert_eq!(said.matches("trained").count(), 1, "{said}");
            assert_eq!(said.contains("communicated"), ranks > 1, "{said}");
            path
        };
        let alone = model(1);
        let number = |option: &str| {
            let place = method.iter().position(|word| *word == option)?;
            method[place + 1].parse().ok()
        };
        let config = Config {
            method: Some(method[0].parse().unwrap()),
            block_size: number("--block-size"),
            rank: number("--rank"),
            centers: number("--centers"),
            iterations: Some(4),
            precision: Some(Precision::F64),
            threads: Some(1),
            memory: Some("1G".parse().unwrap()),
            ..Config::default()
        };
        let parts = open::<f64>(&place.data(), &ReadOptions::default()).unwrap();
        let data = StreamData {
            train: parts.train,
            validation: None,
            test: None,
        };
        let (library, _) = fit_stream(data, &config, &mut Silent).unwrap();
        assert!(
            fs::read(&alone).unwrap() == library.to_bytes().unwrap(),
            "{}: one rank gives other bits than the library",
            method[0]
        );
        for ranks in [2, 3] {
            let path = model(ranks);
            let (found, expected) = (load_f64(&path), load_f64(&alone));
            let support = |model: &Model<f64>| model.support().points().clone().into_dense();
            let far = apart(&support(&found), &support(&expected));
            assert!(far < 1e-14, "{} on {ranks} ranks: rows {far}", method[0]);
            let scores = |model: &Model<f64>| {
                let some = Matrix::from_fn(50, 4, |i, j| ((i * 5 + j) as f64).sin());
                model.decision_function(some).unwrap()
            };
            let far = apart(&scores(&found), &scores(&expected));
            assert!(far < 1e-6, "{} on {ranks} ranks: scores {far}", method[0]);
        }
    }
}

#[test]
fn predictions_do_not_depend_on_the_number_of_ranks() {
    let place = Place::new(700);
    let (data, model) = (place.data(), place.path("m.lssvm"));
    let words = [
        "train",
        word(&data),
        "--model",
        word(&model),
        "--method",
        "mp",
    ];
    succeeded(2, &words);
    let predicted = |ranks: usize| {
        let out = place.path(&format!("{ranks}.csv"));
        let words = [
            "predict",
            word(&model),
            word(&data),
            "--scores",
            "--output",
            word(&out),
        ];
        // Fewer rows in a batch than there are, so that every rank has some.
        succeeded(
            ranks,
            &[&words[..], &["--threads", "1", "--memory", "61M"]].concat(),
        );
        fs::read(&out).unwrap()
    };
    let alone = predicted(1);
    assert_eq!(text(&alone).lines().count(), 701);
    let evaluated = |ranks: usize| {
        let output = succeeded(
            ranks,
            &["evaluate", word(&model), word(&data), "--threads", "1"],
        );
        let said = text(&output.stdout);
        assert_eq!(said.matches("wrong of 700 rows").count(), 1, "{said}");
        said.lines()
            .take_while(|line| !line.contains("time"))
            .collect::<String>()
    };
    let expected = evaluated(1);
    for ranks in [2, 3] {
        assert!(predicted(ranks) == alone, "{ranks} ranks");
        assert_eq!(evaluated(ranks), expected);
    }
    // To the terminal, in the order of the rows.
    let words = ["predict", word(&model), word(&data)];
    let said = [1, 3].map(|ranks| succeeded(ranks, &words).stdout);
    assert!(said[0] == said[1]);
}

/// The error is said once, every rank fails, and nothing is left behind.
fn refused(ranks: usize, words: &[&str], model: &Path, expected: &str) {
    let output = run(ranks, words);
    let said = text(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert_eq!(said.matches("error:").count(), 1, "{said}");
    assert!(said.contains(expected), "{said}");
    let folder = model.parent().unwrap();
    let left = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left
        .filter(|name| name.to_string_lossy().contains("lssvm"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// An NPY file of numbers in single precision, the label last.
fn npy(path: &Path, rows: usize, bad: usize) {
    let head = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, 3), }}");
    let length = (10 + head.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(format!("{head:<width$}\n", width = length - 1).bytes());
    for i in 0..rows {
        let broken = if i == bad { f32::NAN } else { (i as f32).sin() };
        for value in [(i as f32).cos(), broken, (i % 2) as f32] {
            bytes.extend(value.to_le_bytes());
        }
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn an_error_of_one_rank_ends_all() {
    let place = Place::new(600);
    let (data, model) = (place.data(), place.path("m.lssvm"));
    let train = |data: &Path, more: &[&str], expected: &str| {
        for ranks in [2, 3] {
            let words = [
                "train",
                word(data),
                "--model",
                word(&model),
                "--method",
                "mp",
            ];
            refused(ranks, &[&words[..], more].concat(), &model, expected);
        }
    };
    train(&place.path("nowhere.csv"), &[], "nowhere.csv");
    train(&data, &["--block-size", "100000"], "block-size = 100000");
    train(&data, &["--memory", "100M"], "memory budget");
    train(&data, &["--checkpoint", "/dev/null/x"], "make the folder");
    // The last rows are of the last rank.
    let numbers = place.path("numbers.npy");
    npy(&numbers, 400, 399);
    train(&numbers, &["--label", "-1"], "row 400");
    let mut bytes = fs::read(&data).unwrap();
    let place_of_features = bytes.len() - 40;
    bytes[place_of_features] ^= 1;
    let damaged = place.path("damaged.safetensors");
    fs::write(&damaged, bytes).unwrap();
    train(&damaged, &[], "damaged");
}

#[test]
fn wrong_usage_is_said_once() {
    let output = run(2, &["train", "--no-such-option"]);
    assert!(!output.status.success());
    let said = text(&output.stderr);
    assert_eq!(
        said.matches("error: unexpected argument").count(),
        1,
        "{said}"
    );
    let output = succeeded(2, &["--help"]);
    let said = text(&output.stdout);
    assert_eq!(said.matches("Usage: lssvm-mpi").count(), 1, "{said}");
}

/// The processes that another has started.
fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |process: &u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let after = stat.rsplit(')').next().unwrap_or_default();
        after.split_whitespace().nth(1) == Some(parent.to_string().as_str())
    };
    numbers.filter(is_child).collect()
}

#[test]
fn after_a_killed_rank_another_number_goes_on() {
    let place = Place::new(1500);
    let (data, model, folder) = (place.data(), place.path("m.lssvm"), place.path("run"));
    let settings = [
        "--method",
        "mp",
        "--block-size",
        "300",
        "--iterations",
        "400",
    ];
    let settings = [
        &settings[..],
        &["--tolerance", "0", "--threads", "1", "--memory", "1G"],
    ]
    .concat();
    let words = ["train", word(&data), "--model", word(&model)];
    let kept = ["--checkpoint", word(&folder), "--every", "0.05s"];
    let mut command = mpirun(2, &[&words[..], &settings, &kept].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let start = Instant::now();
    // Until some iterations are kept.
    let first = loop {
        assert!(start.elapsed() < PATIENCE, "no checkpoint");
        let written = fs::metadata(folder.join("checkpoint")).and_then(|data| data.modified());
        if let Ok(time) = written {
            break time;
        }
        sleep(Duration::from_millis(5));
    };
    while fs::metadata(folder.join("checkpoint"))
        .unwrap()
        .modified()
        .unwrap()
        == first
    {
        assert!(start.elapsed() < PATIENCE, "no second checkpoint");
        sleep(Duration::from_millis(5));
    }
    let victim = children(child.id())[1];
    let killed = Command::new("kill")
        .args(["-9", &victim.to_string()])
        .status();
    assert!(killed.unwrap().success());
    let output = ended(child);
    let said = text(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("--resume"), "{said}");
    assert!(!model.exists());

    let output = succeeded(3, &["train", "--resume", word(&folder)]);
    let said = text(&output.stderr);
    assert!(said.contains("going on after iteration"), "{said}");
    assert!(!folder.exists(), "a run that has ended needs no checkpoint");
    let expected = place.path("expected.lssvm");
    let words = ["train", word(&data), "--model", word(&expected)];
    succeeded(1, &[&words[..], &settings].concat());
    let (found, expected) = (load_f32(&model), load_f32(&expected));
    let far = apart(found.weights(), expected.weights());
    assert!(far < 2e-2, "{far}");
}
