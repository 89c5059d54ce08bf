//! Runs that are killed at any moment and gone on with end with the same model file.

#![cfg(unix)]

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::*;
use lssvm::data::{ReadOptions, Targets, Task, read};
use lssvm::random;

/// Kills in all, and the time they may take.
const KILLS: usize = 50;
const MOST_TIME: Duration = Duration::from_secs(120);

/// A run for every method, one with averages; enough steps for some tenths of a second.
const RUNS: [&str; 8] = [
    "--method exact --precision f64",
    "--method pcg --iterations 60 --tolerance 1e-14 --precision f64 --validation 0.2 --patience 1000",
    "--method gauss-seidel --iterations 150 --tolerance 0",
    "--method nystrom --iterations 150 --block-size 100 --tolerance 0",
    "--method kaczmarz --iterations 150 --block-size 100 --tolerance 0 --validation 0.2 --patience 1000",
    "--method mp --iterations 250 --block-size 100 --tolerance 0 --validation 0.2 --patience 1000",
    "--method kaczmarz-mp --iterations 150 --block-size 100 --tolerance 0 --follow 7",
    "--method mp --averages 4 --iterations 80 --block-size 100 --tolerance 0 --follow 3",
];

/// The first images of MNIST, as its files would hold them.
fn some_digits(folder: &Folder) {
    let parts = read::<f32>(MNIST.as_ref(), &ReadOptions::default()).unwrap();
    for (name, data, rows) in [
        ("train", &parts.train, 600),
        ("t10k", parts.test.as_ref().unwrap(), 100),
    ] {
        let data = data.head(rows);
        let pixels: Vec<u8> = data.features.values().iter().map(|&v| v as u8).collect();
        let labels = data.labels.unwrap().resolve(Task::Auto).unwrap();
        let Targets::Classes { codes, .. } = labels else {
            panic!("digits are classes");
        };
        let codes: Vec<u8> = codes.iter().map(|&code| code as u8).collect();
        folder.write(
            &format!("d/{name}-images-idx3-ubyte"),
            idx(&[rows, 28, 28], &pixels),
        );
        folder.write(&format!("d/{name}-labels-idx1-ubyte"), idx(&[rows], &codes));
    }
}

/// Runs a command and kills it after a while; whether it had ended by then.
fn ends_within(folder: &Folder, line: &str, time: Duration) -> bool {
    let mut command = folder.command(line);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(time);
    if let Some(status) = child.try_wait().unwrap() {
        assert!(status.success(), "lssvm {line}");
        return true;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

#[test]
fn a_run_that_is_killed_at_any_moment_ends_with_the_same_model() {
    let folder = Folder::new();
    some_digits(&folder);
    let began = Instant::now();
    let mut rng = random::rng(began.elapsed().subsec_nanos().into());
    let (mut kills, mut resumed) = (0, 0);
    for (place, run) in RUNS.iter().enumerate() {
        let line = format!("train d {run} --threads 2 --model");
        let start = Instant::now();
        folder.run(&format!("{line} whole"));
        let usual = start.elapsed().as_millis() as usize;
        let kept = format!("{line} m --checkpoint run --every 0.02s");
        let wanted = KILLS * (place + 1) / RUNS.len();
        while kills < wanted && began.elapsed() < MOST_TIME {
            let moment = Duration::from_millis(random::below(&mut rng, usual.max(2)) as u64);
            let again = exists(&folder.path("run/checkpoint"));
            let line = if again {
                "train --resume run"
            } else {
                kept.as_str()
            };
            resumed += usize::from(again);
            match ends_within(&folder, line, moment) {
                true => compare(&folder, run),
                false => kills += 1,
            }
        }
        // To the end.
        match exists(&folder.path("run/checkpoint")) {
            true => drop(folder.run("train --resume run")),
            false => drop(folder.run(&kept)),
        }
        compare(&folder, run);
    }
    assert!(kills >= KILLS || began.elapsed() >= MOST_TIME, "{kills}");
    assert!(
        resumed > KILLS / 4,
        "only {resumed} of {kills} were gone on with"
    );
}

/// The model is that of the run that was never killed, and nothing else is left.
#[track_caller]
fn compare(folder: &Folder, run: &str) {
    let bytes = |name: &str| fs::read(folder.path(name)).unwrap();
    assert!(bytes("m") == bytes("whole"), "{run}: another model");
    fs::remove_file(folder.path("m")).unwrap();
    assert!(!exists(&folder.path("run")), "{run}");
}

const LONG: &str = "train train.csv --test test.csv --method mp --block-size 50 --iterations 40 \
                    --tolerance 0 --threads 2 --model m --checkpoint run --every 0.001s";

/// A folder with a run that Ctrl-C ended.
fn stopped() -> Folder {
    let folder = Folder::with_flowers();
    let line = "train train.csv --test test.csv --method mp --block-size 50 --tolerance 0 \
                --iterations 100000000 --follow 0 --threads 2 --model m --checkpoint run";
    let child = folder
        .command(line)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !exists(&folder.path("run/checkpoint")) {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    let pid = child.id().to_string();
    let kill = Command::new("kill").args(["-INT", &pid]).status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = Written::new(&output).stderr;
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("go on with: lssvm train --resume run"),
        "{said}"
    );
    folder
}

#[test]
fn what_does_not_fit_a_checkpoint_is_refused() {
    let folder = stopped();
    folder.fails(
        "train --resume run --c 3",
        2,
        &["c = 3", "was begun with 10"],
    );
    folder.fails(
        "train --resume run --threads 1",
        2,
        &["threads = 1", "with 2"],
    );
    folder.fails("train --resume run --label 1", 2, &["read otherwise"]);
    folder.fails("train --resume nowhere", 1, &["nowhere", "is no folder"]);
    folder.fails("train --resume .", 1, &["holds no checkpoint"]);
    folder.fails(LONG, 1, &["run", "--resume"]);
    folder.fails("plan --resume run", 2, &["resume", "is for train"]);
    folder.refused("train --resume run --checkpoint other", &["--checkpoint"]);
    folder.fails("train d.csv --every 5s", 1, &["d.csv"]);
    folder.fails("train train.csv --every 5s", 2, &["every", "--checkpoint"]);

    let good = fs::read(folder.path("run/checkpoint")).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 16;
    folder.write("run/checkpoint", bad);
    folder.fails("train --resume run", 1, &["run/checkpoint", "checksum"]);
    folder.write("run/checkpoint", good);

    let rows = folder.read("train.csv");
    folder.write("train.csv", rows.replacen("setosa", "sibirica", 1));
    folder.fails(
        "train --resume run",
        1,
        &["train.csv", "the labels are not those"],
    );
    // The same data elsewhere will do.
    folder.write("train.csv", "");
    folder.write("moved.csv", rows);
    let (mut child, time) = (
        folder
            .command("train moved.csv --resume run")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
        Duration::from_millis(700),
    );
    std::thread::sleep(time);
    assert!(child.try_wait().unwrap().is_none(), "it goes on");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_full_disk_is_told_and_training_goes_on() {
    // Files of at most 40 kB: the model fits, and twenty states do not. Root is no exception.
    let folder = Folder::with_flowers();
    let line = "train train.csv --method mp --averages 20 --block-size 50 --iterations 40 \
                --tolerance 0 --threads 2 --model m --checkpoint run --every 0.001s";
    let program = folder.command("");
    let program = program.get_program().to_str().unwrap();
    let shell = format!("trap '' XFSZ; ulimit -f 40; exec {program} {line}");
    let output = Command::new("bash")
        .current_dir(folder.path(""))
        .args(["-c", &shell])
        .output()
        .unwrap();
    let Written { stdout, stderr } = Written::new(&output);
    assert!(output.status.success(), "{stderr}");
    assert!(stdout.contains("40 iterations"), "{stdout}");
    let warnings: Vec<&str> = stderr
        .lines()
        .filter(|l| l.starts_with("warning"))
        .collect();
    assert_eq!(warnings.len(), 2, "in the run and at its end: {stderr}");
    for warning in &warnings {
        assert!(warning.contains("after iteration 0"), "{warning}");
        assert!(warning.contains("run/checkpoint stays"), "{warning}");
    }
    assert!(warnings[0].contains("training goes on"), "{stderr}");
    folder.run("evaluate m test.csv");
}

#[test]
fn a_model_is_trained_on() {
    let folder = Folder::with_flowers();
    let mp = "--method mp --block-size 50 --iterations 400 --threads 2";
    folder.run(&format!("train train.csv {mp} --tolerance 1e-5 --model m"));
    let line = "train train.csv --warm-start m --block-size 50 --model n --json r.json";
    let written = folder.run(line);
    assert!(
        written.stdout.contains("150 rows of the model, 0 new"),
        "{}",
        written.stdout
    );
    let report = folder.json("r.json");
    assert_eq!(number(&report, "iterations"), 1.0);
    assert_eq!(report["warm_start"]["known"], 150);
    // More rows, with labels that end the file.
    folder.write("more.csv", flowers(10..180));
    folder.run("train more.csv --warm-start m --c 20 --model n --json r.json");
    let report = folder.json("r.json");
    assert_eq!(report["warm_start"]["new"], 30);
    assert_eq!(report["warm_start"]["gone"], 10);
    assert_eq!(report["config"]["method"], "mp");
    folder.fails(
        "train train.csv --warm-start m --kernel poly",
        2,
        &["kernel = poly", "rbf"],
    );
    folder.fails(
        "train train.csv --warm-start m --method exact",
        2,
        &["exact", "no use"],
    );
    folder.fails(
        "train train.csv --warm-start m --precision f64",
        2,
        &["precision", "f32"],
    );
    folder.fails("train train.csv --warm-start nothing", 1, &["nothing"]);
}
