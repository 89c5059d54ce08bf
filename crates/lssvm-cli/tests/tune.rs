//! `lssvm tune`: finds settings, writes them for `train`, and can be cut short.

mod common;

use common::*;

const SPACE: &str = "preprocess = [\"standardize\"]\nkernels = [\"linear\", \"rbf\"]\n\
                     gamma = [0.3, 1.0]\ndegree = []\nc = [1.0, 100.0]\n";

#[test]
fn the_settings_can_be_trained_with() {
    let folder = Folder::with_flowers();
    folder.write("space.toml", SPACE);
    let line = "tune train.csv --label species --space space.toml --output best.toml \
                --json t.json --report page.html";
    let told = folder.run(line).stdout;
    for part in [
        "tried",
        "6 settings",
        "best",
        "chosen",
        "train train.csv --config best.toml",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let trials = folder.json("t.json");
    assert_eq!(trials["trials"].as_array().unwrap().len(), 6);
    assert!(number(&trials["best"], "error") < 10.0);
    assert!(
        folder
            .read("page.html")
            .contains("Leave-one-out error against c")
    );
    let chosen = folder.read("best.toml");
    assert!(chosen.contains("kernel = "), "{chosen}");
    folder.run("train . --label species --config best.toml --json r.json");
    assert!(number(&folder.json("r.json"), "error_percent") < 10.0);
}

#[test]
fn what_is_worth_trying_is_known() {
    let folder = Folder::new();
    folder.write("d.csv", flowers(0..80));
    let told = folder
        .run("tune d.csv --label species --one-standard-error")
        .stdout;
    assert!(told.contains("settings on 80 rows"), "{told}");
    assert!(folder.names().contains("best.toml"));
}

#[test]
fn bad_searches_are_refused() {
    let folder = Folder::with_flowers();
    folder.write("bad.toml", "kernels = [\"cubic\"]\n");
    folder.fails("tune train.csv --space bad.toml", 1, &["bad.toml, line 1"]);
    folder.fails("tune missing.csv", 1, &["missing.csv"]);
    let nowhere = "tune train.csv --output nowhere/best.toml";
    folder.fails(nowhere, 1, &["nowhere", "mkdir"]);
    folder.fails("tune train.csv --time 0.000001s", 1, &["more time"]);
}
