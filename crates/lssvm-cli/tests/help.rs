//! Help, versions, completions, and the measurements.

mod common;

use common::*;

#[test]
fn every_command_has_help() {
    let folder = Folder::new();
    let help = folder.run("--help").stdout;
    for command in [
        "train",
        "plan",
        "predict",
        "evaluate",
        "inspect",
        "reproduce",
        "bench",
        "completions",
    ] {
        assert!(help.contains(command));
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
