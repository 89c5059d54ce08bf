//! Configurations: from files, from models, and by default.

use crate::common::*;

#[test]
fn a_model_gives_back_its_configuration() {
    let folder = Folder::with_flowers();
    let trainings = [
        "--method mp --block-size 40 --iterations 5 --seed 9",
        "--method kaczmarz-mp --block-size 30 --iterations 4 --validation 0.25 --averages 2",
        "--kernel poly --degree 3 --gamma 0.5 --coef0 1 --preprocess min-max -c 7",
        "--precision f64 --train-rows 100 --time 60 --patience 2 --validation 0.1",
    ];
    for more in trainings {
        folder.run(&format!("train train.csv --model a {more}"));
        let config = folder.run("inspect a --config").stdout;
        folder.write("c.toml", &config);
        folder.run("train train.csv --config c.toml --model b");
        assert_eq!(folder.run("inspect b --config").stdout, config);
        let scores = |model: &str| folder.predictions(&format!("{model} test.csv --scores"));
        assert_eq!(scores("a"), scores("b"), "{more}");
    }
}

#[test]
fn the_printed_configuration_is_the_one_used() {
    let folder = Folder::with_flowers();
    let before = folder.names();
    let line = "train train.csv --validation 0.2 --method mp --seed 3 --memory 1G --threads 2";
    let printed = folder.run(&format!("{line} --print-config"));
    assert_eq!(folder.names(), before, "nothing is trained");
    assert_eq!(printed.stderr, "");
    assert!(printed.stdout.contains("method = \"mp\""));
    folder.run(&format!("{line} --model a"));
    assert_eq!(folder.run("inspect a --config").stdout, printed.stdout);
    folder.write("c.toml", printed.stdout);
    folder.run("train train.csv --config c.toml --model b");
    let scores = |model: &str| folder.predictions(&format!("{model} test.csv --scores"));
    assert_eq!(scores("a"), scores("b"));
}

#[test]
fn what_is_printed_says_how_data_are_read() {
    let folder = Folder::new();
    folder.write("d.csv", curves(0..40).replace(',', ";"));
    let line = "train d.csv --label a,4 --delimiter ; -c 2";
    let printed = folder.run(&format!("{line} --print-config")).stdout;
    assert!(printed.contains("label = [\"a\", 4]"), "{printed}");
    assert!(printed.contains("delimiter = \";\""), "{printed}");
    let one = folder.run("train d.csv --label -1 --print-config").stdout;
    assert!(one.contains("label = -1\n"), "{one}");
    folder.write("c.toml", one);
    folder.run("train d.csv --config c.toml --model m");
    assert!(folder.run("inspect m").stdout.contains("1 outputs: b"));
}

/// A model tells where its labels were, where that is not what is taken by default.
#[test]
fn the_configuration_of_a_model_says_how_data_are_read() {
    let folder = Folder::new();
    folder.write("d.csv", "kind,a,b,w\nx,1,2,1\ny,2,3,2\nx,1,1,1\ny,4,3,3\n");
    folder.run("train d.csv --label kind --weights w --model m");
    let config = folder.run("inspect m --config").stdout;
    assert!(config.contains("label = \"kind\"\n"), "{config}");
    assert!(config.contains("weights = \"w\"\n"), "{config}");
    folder.write("c.toml", &config);
    folder.run("train d.csv --config c.toml --model n");
    let bytes = |name: &str| std::fs::read(folder.path(name)).unwrap();
    assert!(bytes("m") == bytes("n"));
    folder.write("n.csv", "x,1,2\ny,2,3\nx,1,1\ny,4,3\n");
    folder.run("train n.csv --label 1 --model m");
    let config = folder.run("inspect m --config").stdout;
    assert!(config.contains("label = 1\n"), "{config}");
}

#[test]
fn printing_checks_the_configuration() {
    let folder = Folder::with_flowers();
    folder.fails("train train.csv --print-config -c 0", 2, &["c = 0"]);
}

#[test]
fn a_file_holds_everything_that_can_be_typed() {
    let folder = Folder::with_flowers();
    folder.write(
        "c.toml",
        "data = 'train.csv'\nmodel = 'm'\ntest = 'test.csv'\njson = 'r.json'\nlabel = 'species'\n\
         validation = 0.2\nmethod = 'mp'\nblock-size = 33\niterations = 3\ntolerance = 0\n\
         memory = '2G'\ngamma = 0.25\n",
    );
    folder.run("train --config c.toml");
    let config = folder.json("r.json")["config"].clone();
    assert_eq!(config["block-size"], 33);
    assert_eq!(config["memory"], 2_000_000_000u64);
    assert_eq!(config["gamma"], 0.25);
    assert!(exists(&folder.path("m")));

    folder.run("train --config c.toml --block-size 44 --model m2 --gamma auto --validation 0.3");
    let config = folder.json("r.json")["config"].clone();
    assert_eq!(config["block-size"], 44);
    assert_eq!(config["gamma"], "auto");
    assert_eq!(config["validation"], 0.3);
    assert_eq!(config["iterations"], 3);
    assert!(exists(&folder.path("m2")));
}

#[test]
fn wrong_files_are_named() {
    let folder = Folder::with_flowers();
    for (text, parts) in [
        ("metod = 'mp'\n", &["`metod`", "method"][..]),
        ("modle = 'm'\n", &["`modle`", "`model`", "`index-base`"]),
        ("c = 1\nblock_size = 3\n", &["`block_size`", "block-size"]),
        ("method = 'map'\n", &["map", "kaczmarz-mp"]),
        ("c = 'much'\n", &["much"]),
        ("kernel = 'gauss'\n", &["gauss", "rbf"]),
        ("gamma = 'wide'\n", &["gamma"]),
        ("memory = 'much'\n", &["memory"]),
        ("data = 3\n", &["3"]),
        ("c = 1\nc = 2\n", &["line 2"]),
        ("c == 1\n", &["line 1"]),
    ] {
        folder.write("c.toml", text);
        let parts: Vec<&str> = parts.iter().copied().chain(["c.toml"]).collect();
        folder.fails("train train.csv --config c.toml --model m", 1, &parts);
    }
    let parts = ["none.toml", "read"];
    folder.fails("train train.csv --config none.toml --model m", 1, &parts);
}

#[test]
fn a_model_is_described() {
    let folder = Folder::with_flowers();
    folder.run("train . --model m");
    let text = folder.run("inspect m").stdout;
    for part in [
        "3 classes: iris setosa",
        "standardize",
        "rbf, gamma 0.333",
        "1 iteration: the system is solved",
        "150 training rows",
        "f32",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&folder.run("inspect m --json").stdout).unwrap();
    assert_eq!(json["rows"], 150);
    assert_eq!(json["precision"], "f32");
    assert_eq!(json["config"]["method"], "exact");
    assert_eq!(json["summary"]["stopped"], "solved");
    folder.refused("inspect m --json --config", &["--json"]);
}
