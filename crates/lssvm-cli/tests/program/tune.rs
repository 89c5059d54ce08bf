//! `lssvm tune`: finds settings, writes them for `train`, and can be cut short.

use crate::common::*;

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
    folder.run("train . --config best.toml --json r.json");
    assert!(number(&folder.json("r.json"), "error_percent") < 10.0);
}

/// The label is not where it would be looked for, nor is the separator one that is guessed.
#[test]
fn the_settings_say_how_the_data_were_read() {
    let folder = Folder::new();
    let table = |rows| -> String {
        let lines = flowers(rows);
        let lines = lines.lines().map(|line| {
            let (rest, label) = line.rsplit_once(',').unwrap();
            format!("{label}:{}:1\n", rest.replace(',', ":"))
        });
        lines.collect::<String>().replacen(":1\n", ":count\n", 1)
    };
    folder.write("d.csv", table(0..120));
    folder.write("new.csv", table(120..180));
    folder.write("space.toml", SPACE);
    let reading = "--label species --delimiter : --weights count --header true --format csv";
    folder.run(&format!(
        "tune d.csv --space space.toml {reading} -o best.toml"
    ));
    let chosen = folder.read("best.toml");
    for line in [
        "format = \"csv\"",
        "label = \"species\"",
        "weights = \"count\"",
        "header = true",
        "delimiter = \":\"",
    ] {
        assert!(chosen.contains(line), "{line}: {chosen}");
    }
    folder.run("train d.csv --config best.toml --model m");
    folder.run("evaluate m new.csv --delimiter : --json e.json");
    assert!(number(&folder.json("e.json"), "error_percent") < 10.0);
    // What is typed comes first, as ever.
    folder.fails("train d.csv --config best.toml --label kind", 1, &["kind"]);
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
