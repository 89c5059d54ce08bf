//! Ctrl-C ends a run well, and nothing ends it with half a file.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::*;

/// Steps enough for hours.
const LONG: &str = "train train.csv --test test.csv --method mp --block-size 100 --tolerance 0 \
                    --iterations 100000000 --follow 0 --model m --json r.json";

/// Starts a command and waits until its training has begun.
fn start(folder: &Folder, line: &str) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut command = folder.command(line);
    let mut child = command
        .env("TMPDIR", folder.path("spare"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    stderr.read_line(&mut first).unwrap();
    assert!(first.contains("rows, "), "{first}");
    std::thread::sleep(Duration::from_millis(300));
    (child, stderr)
}

fn send(child: &Child, signal: &str) {
    let kill = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
}

/// Sends Ctrl-C to a command that must end well, and soon; returns what it wrote.
fn interrupted(child: Child, from: BufReader<std::process::ChildStderr>) -> Written {
    ended_with(0, child, from)
}

/// The same for a command that must end with this code.
fn ended_with(
    code: i32,
    mut child: Child,
    mut from: BufReader<std::process::ChildStderr>,
) -> Written {
    let asked = Instant::now();
    send(&child, "-INT");
    let (mut stdout, mut stderr) = (String::new(), String::new());
    from.read_to_string(&mut stderr).unwrap();
    let out = child.stdout.take();
    out.unwrap().read_to_string(&mut stdout).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(code), "{stderr}");
    assert!(asked.elapsed() < Duration::from_secs(20));
    Written { stdout, stderr }
}

fn flowers_in_plenty() -> Folder {
    let folder = Folder::new();
    folder.write("train.csv", flowers(0..1500));
    folder.write("test.csv", flowers(1500..1800));
    folder
}

#[test]
fn a_model_whose_folder_is_gone_is_not_lost() {
    let folder = flowers_in_plenty();
    folder.write("out/other", "");
    folder.write("spare/other", "");
    let (child, stderr) = start(&folder, &LONG.replace("--model m", "--model out/m"));
    let spare = format!("spare/m-{}.lssvm", child.id());
    std::fs::remove_dir_all(folder.path("out")).unwrap();
    let Written { stderr, .. } = ended_with(1, child, stderr);
    let last = stderr.lines().last().unwrap();
    assert!(
        last.starts_with("error: ") && last.contains("out"),
        "{last}"
    );
    assert!(last.contains("the model is not lost"), "{last}");
    assert!(last.ends_with(&spare), "{last}");
    folder.run(&format!("evaluate {spare} test.csv"));
    // The rest is where it should be.
    assert!(number(&folder.json("r.json"), "iterations") > 0.0);
}

#[test]
fn an_interrupted_run_keeps_its_model() {
    let folder = flowers_in_plenty();
    let (child, stderr) = start(&folder, LONG);
    let Written {
        stdout,
        stderr: said,
    } = interrupted(child, stderr);
    assert!(said.contains("stopping as soon as"), "{said}");
    assert!(said.contains("interrupted: this is the model"), "{said}");
    assert!(stdout.contains("it was interrupted"), "{stdout}");

    let report = folder.json("r.json");
    assert_eq!(report["stopped"], "interrupted");
    assert!(number(&report, "iterations") >= 1.0);
    folder.run("evaluate m test.csv --json e.json");
    let error = number(&folder.json("e.json"), "error_percent");
    assert_eq!(number(&report, "error_percent"), error);
    assert_eq!(folder.predictions("m test.csv").len(), 300);
}

/// As schedulers and services end a program.
#[test]
fn a_terminated_run_keeps_its_model() {
    let folder = flowers_in_plenty();
    let (mut child, mut stderr) = start(&folder, LONG);
    send(&child, "-TERM");
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
    assert!(said.contains("interrupted: this is the model"), "{said}");
    assert_eq!(folder.json("r.json")["stopped"], "interrupted");
    assert_eq!(folder.predictions("m test.csv").len(), 300);
}

#[test]
fn a_killed_run_leaves_no_file() {
    let folder = flowers_in_plenty();
    let before = folder.names();
    let (mut child, _) = start(&folder, LONG);
    send(&child, "-KILL");
    assert_eq!(child.wait().unwrap().code(), None);
    assert_eq!(folder.names(), before);
}

#[test]
fn a_killed_run_leaves_the_old_model() {
    let folder = flowers_in_plenty();
    folder.run("train train.csv --model m --method mp --iterations 3");
    let before = std::fs::read(folder.path("m")).unwrap();
    let (mut child, _) = start(&folder, LONG);
    send(&child, "-KILL");
    child.wait().unwrap();
    assert_eq!(std::fs::read(folder.path("m")).unwrap(), before);
}

#[test]
fn an_interrupted_exact_solution_is_a_failure() {
    let folder = Folder::new();
    folder.write("train.csv", flowers(0..9000));
    let before = folder.names();
    let line = "train train.csv --method exact --precision f64 --model m --threads 1";
    let (mut child, mut stderr) = start(&folder, line);
    send(&child, "-INT");
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("error: "), "{said}");
    assert_eq!(folder.names(), before);
}

#[test]
fn an_interrupted_search_keeps_the_best_so_far() {
    let folder = Folder::with_flowers();
    // Settings enough for minutes; the first is tried when the search says what it does.
    let c: Vec<String> = (1..=100_000).map(|i| format!("{i}.0")).collect();
    let space = format!(
        "preprocess = ['standardize']\nkernels = ['rbf']\ngamma = [1.0]\ndegree = []\nc = [{}]\n",
        c.join(", ")
    );
    folder.write("space.toml", space);
    let line = "tune train.csv --space space.toml --output best.toml --json t.json";
    let (child, stderr) = start(&folder, line);
    let Written {
        stdout,
        stderr: said,
    } = interrupted(child, stderr);
    assert!(
        said.contains("ended early: this is the best so far"),
        "{said}"
    );
    assert!(
        stdout.contains("train train.csv --config best.toml"),
        "{stdout}"
    );

    let search = folder.json("t.json");
    assert_eq!(search["cut_short"], true);
    let trials = search["trials"].as_array().unwrap().len();
    assert!((1..100_000).contains(&trials), "{trials}");
    folder.run("train . --config best.toml --json r.json");
    assert!(number(&folder.json("r.json"), "error_percent") < 20.0);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let folder = Folder::new();
    folder.write("train.csv", flowers(0..100));
    folder.write("many.csv", flowers(0..20_000));
    folder.run("train train.csv --model m");
    let mut command = folder.command("predict m many.csv --scores");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(Written::new(&output).stderr, "");
    assert_eq!(output.status.code(), Some(0));
}
