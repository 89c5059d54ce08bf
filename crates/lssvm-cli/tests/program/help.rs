//! Help, versions, completions, and the measurements.

use crate::common::*;

/// The commands that the help lists, so that a new one is tested too.
fn commands(folder: &Folder) -> Vec<String> {
    let help = folder.run("--help").stdout;
    let list = help.split("Commands:\n").nth(1).unwrap();
    let list = list.split("\n\n").next().unwrap();
    let names = list
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_string)
        .collect()
}

#[test]
fn every_command_is_listed() {
    let expected = [
        "train",
        "plan",
        "path",
        "tune",
        "convert",
        "predict",
        "evaluate",
        "compress",
        "explain",
        "inspect",
        "serve",
        "reproduce",
        "bench",
        "completions",
    ];
    assert_eq!(commands(&Folder::new()), expected);
}

#[test]
fn help_ends_with_examples_that_are_understood() {
    let folder = Folder::with_flowers();
    for command in [
        "train",
        "path",
        "tune",
        "convert",
        "predict",
        "serve",
        "compress",
        "reproduce",
    ] {
        let help = folder.run(&format!("{command} --help")).stdout;
        let (_, examples) = help.split_once("Examples:\n").unwrap();
        let lines: Vec<&str> = examples.lines().map(str::trim).collect();
        assert!((1..=2).contains(&lines.len()), "{examples}");
        for line in lines {
            // Wrong options are refused with code 2; files that are not here are not wrong.
            let typed = line.strip_prefix("lssvm ").unwrap();
            if command == "reproduce" {
                assert!(typed.starts_with("reproduce mnist --"), "{line}");
                continue;
            }
            let code = folder.command(typed).output().unwrap().status.code();
            assert_eq!(code, Some(1), "{line}");
        }
    }
}

#[test]
fn every_command_has_help() {
    let folder = Folder::new();
    for command in commands(&folder) {
        for option in ["--help", "-h"] {
            let text = folder.run(&format!("{command} {option}")).stdout;
            assert!(text.contains(&format!("Usage: lssvm {command}")), "{text}");
        }
    }
    let train = folder.run("train --help").stdout;
    for option in [
        "--model",
        "--block-size",
        "--validation",
        "--precision",
        "--label",
    ] {
        assert!(train.contains(option), "{option}");
    }
}

#[test]
fn the_version_is_told() {
    let version = concat!("lssvm ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(Folder::new().run("--version").stdout, version);
}

#[test]
fn shells_can_complete() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = folder.run(&format!("completions {shell}")).stdout;
        for word in ["lssvm", "evaluate", "block-size"] {
            assert!(script.contains(word), "{word} for {shell}");
        }
    }
    folder.refused("completions cmd", &["cmd", "bash"]);
}

#[test]
fn a_small_measurement_runs() {
    let folder = Folder::new();
    let sizes = "--rows 300 --features 20 --block-size 50 --queries 100 --repeat 1 --outputs 3";
    let text = folder.run(&format!("bench {sizes} --json b.json")).stdout;
    for part in [
        "N = 300",
        "one iteration of mp",
        "prediction / bare product",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let json = folder.json("b.json");
    assert!(number(&json["prediction"], "seconds") > 0.0);
    assert!(number(&json["mp / peak"], "ratio") > 0.0);

    let written = folder.run(&format!("bench {sizes} --json -"));
    let json: serde_json::Value = serde_json::from_str(&written.stdout).unwrap();
    assert!(number(&json["prediction"], "seconds") > 0.0);
}

#[test]
fn reading_is_measured() {
    let folder = Folder::new();
    folder.write("d.csv", "a,b,c,label\n1,2,4,x\n3,1,2,y\n5,0,1,x\n");
    let text = folder.run("bench --data d.csv --json b.json").stdout;
    assert!(text.contains("d.csv, f32"), "{text}");
    let json = folder.json("b.json");
    let seconds = |name: &str| number(&json[name], "seconds");
    let parts = seconds("reading") + seconds("center, unit-norm");
    assert!(parts > 0.0 && (seconds("both") - parts).abs() < 1e-12);
    folder.fails("bench --data none.csv", 1, &["none.csv"]);
    folder.refused("bench --data d.csv --full", &["--full"]);
}

#[test]
fn sizes_that_cannot_be_measured() {
    let folder = Folder::new();
    let more = "--features 4 --queries 10 --repeat 1";
    folder.fails(&format!("bench --rows 0 {more}"), 2, &["rows = 0"]);
    folder.fails(
        &format!("bench --rows 10 --outputs 0 {more}"),
        2,
        &["outputs = 0"],
    );
    let line = format!("bench --rows 10 --block-size 50 {more}");
    folder.fails(&line, 2, &["block-size = 50"]);
}
