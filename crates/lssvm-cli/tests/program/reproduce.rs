//! `lssvm reproduce`, and the page that `train --report` writes.

use crate::common::*;
use serde_json::Value;

/// Blocks of a kind in the section with this id.
fn blocks<'a>(page: &'a Value, id: &str, kind: &str) -> Vec<&'a Value> {
    let sections = page["sections"].as_array().unwrap();
    let section = sections.iter().find(|section| section["id"] == id);
    let section = section.unwrap_or_else(|| panic!("there is no section {id}"));
    let blocks = section["blocks"].as_array().unwrap();
    blocks.iter().filter(|b| b["kind"] == kind).collect()
}

/// The error curve of a run, iteration after iteration.
fn curve(page: &Value, section: &str, label: &str) -> Vec<f64> {
    let plot = blocks(page, section, "plot")[0];
    let series = plot["series"].as_array().unwrap();
    let series = series.iter().find(|s| s["label"] == label);
    let series = series.unwrap_or_else(|| panic!("{section} has no curve '{label}': {plot}"));
    let points = series["points"].as_array().unwrap();
    points.iter().map(|p| p[1].as_f64().unwrap()).collect()
}

/// Root mean square change from one iteration to the next, in the last half.
fn fluctuation(curve: &[f64]) -> f64 {
    let last = &curve[curve.len() / 2..];
    let squares = last.windows(2).map(|pair| (pair[1] - pair[0]).powi(2));
    (squares.sum::<f64>() / (last.len() - 1) as f64).sqrt()
}

#[test]
fn quick_mnist_behaves_as_the_paper_says() {
    let folder = Folder::new();
    let written = folder.run(&format!("reproduce mnist --data {MNIST} --quick --svg svg"));
    let page = folder.json("mnist-quick.json");
    assert!(page["title"].as_str().unwrap().contains("quick"));
    assert!(page["lead"].as_str().unwrap().contains("fewer rows"));
    let facts = page["facts"].to_string();
    for part in ["poly, degree 4, gamma 1", "the paper: within 8 GB"] {
        assert!(facts.contains(part), "{part} in {facts}");
    }

    // Nyström: better with larger J, flat after a few members.
    let committees =
        [100, 200, 500, 1000].map(|j| curve(&page, "fig2a", &format!("nystrom, J = {j}")));
    for pair in committees.windows(2) {
        assert!(pair[1][5] < pair[0][5], "{committees:?}");
    }
    for errors in &committees {
        assert_eq!(errors.len(), 6);
        assert!(
            (errors[5] - errors[3]).abs() < 0.1 * errors[5],
            "{errors:?}"
        );
    }

    // Matching pursuit: lower and smoother than Kaczmarz; both fall.
    let [kaczmarz, mp] = ["kaczmarz", "mp"].map(|label| curve(&page, "fig2", label));
    assert_eq!((kaczmarz.len(), mp.len()), (300, 300));
    assert!(fluctuation(&mp) < 0.5 * fluctuation(&kaczmarz));
    assert!(mp[59] < kaczmarz[59]);
    assert!(mp[299] < mp[9] && kaczmarz[299] < kaczmarz[9]);
    // Converged by 6,000 rows: the exact solution has 2.97 %.
    assert!((2.8..3.3).contains(&mp[299]), "{}", mp[299]);

    // The mean of four: smaller fluctuation.
    let one = curve(&page, "averages", "kaczmarz, J = 100");
    let mean = curve(&page, "averages", "mean of 4 kaczmarz, J = 100");
    assert!(fluctuation(&mean) < 0.7 * fluctuation(&one));

    // Pictures, and as many wrong images as the error says.
    assert_eq!(
        blocks(&page, "fig1", "gallery")[0]["tiles"]
            .as_array()
            .unwrap()
            .len(),
        200
    );
    let errors = curve(&page, "fig3", "mp, Fourier, exponent 1");
    let wrong = blocks(&page, "fig4", "gallery")[0]["tiles"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(errors.len(), 100);
    let expected = (100.0 * errors[99]).round() as usize;
    assert!(
        wrong.abs_diff(expected.min(400)) <= 1,
        "{wrong} tiles, {} %",
        errors[99]
    );
    let tile = &blocks(&page, "fig4", "gallery")[0]["tiles"][0];
    let caption = tile["caption"].as_str().unwrap();
    let (classes, score) = caption.split_once(" (").unwrap();
    assert_eq!(classes.split(" → ").count(), 2, "{caption}");
    assert!(
        score.trim_end_matches(')').parse::<f64>().is_ok(),
        "{caption}"
    );
    // What a figure shows one run of, it shows more of.
    assert_eq!(blocks(&page, "confusion", "heatmap").len(), 1);
    for id in ["confusion-classes", "fig4-classes"] {
        let tables = blocks(&page, id, "table");
        assert_eq!(tables[0]["rows"].as_array().unwrap().len(), 10);
        let plots = blocks(&page, id, "plot");
        assert_eq!(plots.len(), 2);
        let figure = id.trim_end_matches("-classes");
        assert_eq!(plots[0]["name"], format!("{figure}-reliability"));
    }
    // Each error within its interval.
    let runs = blocks(&page, "summary", "table")[0];
    assert_eq!(
        (&runs["header"][3], &runs["header"][4]),
        (&"error, %".into(), &"95 % interval".into())
    );
    for row in runs["rows"].as_array().unwrap() {
        let error: f64 = row[3].as_str().unwrap().parse().unwrap();
        let interval = row[4].as_str().unwrap().split_once(" to ").unwrap();
        let [low, high] = [interval.0, interval.1].map(|end| end.parse::<f64>().unwrap());
        assert!(low < error && error < high, "{row}");
    }
    let plots = blocks(&page, "fig2a", "plot");
    assert_eq!(plots[1]["name"], "fig2a-seconds");
    let html = folder.read("mnist-quick.html");
    assert_eq!(html.matches("data:image/png").count(), 200 + wrong);

    // A table for the terminal, and SVG files.
    for part in [
        "nystrom, J = 1000",
        "1.1 ± 0.02 %",
        "--quick",
        "mnist-quick.html",
    ] {
        assert!(
            written.stdout.contains(part),
            "{part} in {}",
            written.stdout
        );
    }
    for name in ["fig2-iterations", "confusion-ours", "fig4-reliability"] {
        let drawing = folder.read(&format!("svg/{name}.svg"));
        assert!(drawing.starts_with("<svg"), "{name}");
    }
}

/// One of CIFAR-10's binary files: images whose class is a colour and a place.
fn cifar_batch(rows: std::ops::Range<usize>) -> Vec<u8> {
    let mut file = Vec::new();
    for i in rows {
        let class = i % 10;
        file.push(class as u8);
        for channel in 0..3 {
            for pixel in 0..1024 {
                let (y, x) = (pixel / 32, pixel % 32);
                let on = channel == class % 3 && (y / 4 + x / 4) % 10 == class;
                let noise = 30.0 * noise((i * 3 + channel) * 1024 + pixel);
                file.push((120.0 + noise + if on { 60.0 } else { 0.0 }) as u8);
            }
        }
    }
    file
}

#[test]
fn quick_cifar10_has_all_figures_of_the_paper() {
    let folder = Folder::new();
    for batch in 0..5 {
        let name = format!("data_batch_{}.bin", batch + 1);
        folder.write(
            &format!("cifar/{name}"),
            cifar_batch(40 * batch..40 * (batch + 1)),
        );
    }
    folder.write("cifar/test_batch.bin", cifar_batch(200..250));
    let names = "airplane automobile bird cat deer dog frog horse ship truck";
    folder.write("cifar/batches.meta.txt", names.replace(' ', "\n"));
    let written = folder.run("reproduce cifar10 --data cifar --quick");
    let page = folder.json("cifar10-quick.json");

    // Figure 5: ten images of each class, class after class.
    let gallery = blocks(&page, "fig5", "gallery")[0];
    let tiles = gallery["tiles"].as_array().unwrap();
    assert_eq!(tiles.len(), 100);
    assert_eq!(tiles[0]["title"], tiles[9]["title"]);
    assert_ne!(tiles[9]["title"], tiles[10]["title"]);

    // Figure 6: three curves alone, with the paper's line, and together.
    for (id, name, paper) in [
        ("e1", "E1", 43.93),
        ("e2", "E2", 41.21),
        ("e3", "E3", 33.71),
    ] {
        let errors = curve(&page, id, name);
        assert_eq!(errors.len(), 100);
        assert!(
            errors.iter().all(|e| (0.0..=100.0).contains(e)),
            "{errors:?}"
        );
        // Far better than one in ten.
        assert!(errors[99] < 50.0, "{name}: {errors:?}");
        assert_eq!(curve(&page, "fig6", name), errors);
        assert_eq!(blocks(&page, id, "plot")[0]["marks"][0]["value"], paper);
    }

    // Table 1 beside the paper's, its rows percent of a class.
    let maps = blocks(&page, "table1", "heatmap");
    assert_eq!(
        (&maps[0]["name"], &maps[1]["name"]),
        (&"table1-ours".into(), &"table1-paper".into())
    );
    assert_eq!(maps[0]["rows"], maps[1]["rows"]);
    for row in maps[0]["values"].as_array().unwrap() {
        let sum: f64 = row
            .as_array()
            .unwrap()
            .iter()
            .map(|v| v.as_f64().unwrap())
            .sum();
        assert!((sum - 100.0).abs() < 1e-9, "{row}");
    }
    assert_eq!(maps[1]["values"][0][0], 71.0);
    for part in ["E1", "E3", "33.71 ± 0.01 %", "--quick"] {
        assert!(
            written.stdout.contains(part),
            "{part} in {}",
            written.stdout
        );
    }
}

const OWN: &str = r#"
title = "Flowers <b>"
data = "."

[settings]
method = "mp"
block-size = 20
iterations = 5

[quick]
train-rows = 60
iterations = 3

[[figure]]
id = "one"
title = "One"
kind = "curves"
runs = [{ name = "a" }, { name = "b", label = "kaczmarz {J}", method = "kaczmarz" }]

[[figure]]
id = "two"
title = "Two"
kind = "confusion"
of = "b"
"#;

#[test]
fn an_experiment_of_ones_own() {
    let folder = Folder::with_flowers();
    folder.write("own.toml", OWN);
    let written = folder.run("reproduce own.toml");
    let page = folder.json("own.json");
    assert_eq!(curve(&page, "one", "kaczmarz 20").len(), 5);
    let rows = &blocks(&page, "two", "heatmap")[0]["rows"];
    assert_eq!(rows.as_array().unwrap().len(), 3);
    let html = folder.read("own.html");
    assert!(!html.contains("Flowers <b>"));
    // It says what was run, and nothing of a paper that it knows nothing of.
    assert!(html.contains("rbf, gamma scale"));
    let text = page.to_string();
    assert!(
        !text.contains("degree") && !text.contains("paper"),
        "{text}"
    );
    // Nor does a zero have a sign.
    assert!(!text.contains("-0.0"), "{text}");
    assert!(!written.stdout.contains("paper"), "{}", written.stdout);

    // A figure brings the run it shows; the others are left out.
    folder.run("reproduce own.toml --only two --quick --report sub.html --svg new/svg");
    assert!(folder.read("new/svg/two-ours.svg").starts_with("<svg"));
    let page = folder.json("sub.json");
    let runs = blocks(&page, "summary", "table")[0]["rows"]
        .as_array()
        .unwrap();
    assert_eq!(runs.len(), 1);
    // 60 of 150 rows: blocks of 8.
    assert_eq!((&runs[0][1], &runs[0][2]), (&"8".into(), &"3".into()));
}

/// Two runs on a table of values.
const VALUES: &str = r#"
title = "Curves"
data = "."

[settings]
task = "regression"
block-size = 20
iterations = 6

[[figure]]
id = "one"
title = "One"
kind = "curves"
runs = [{ name = "mp", method = "mp" }, { name = "kaczmarz", method = "kaczmarz" }]
"#;

#[test]
fn an_experiment_with_values_shows_their_rmse() {
    let folder = Folder::new();
    folder.write("train.csv", curves(0..120));
    folder.write("test.csv", curves(120..180));
    folder.write("own.toml", VALUES);
    let written = folder.run("reproduce own.toml");
    let page = folder.json("own.json");
    let rmse = curve(&page, "one", "mp");
    assert_eq!(rmse.len(), 6);
    assert!(rmse[5] < rmse[0] && rmse[5] > 0.0, "{rmse:?}");
    let plot = blocks(&page, "one", "plot")[0];
    assert_eq!(plot["y"]["label"], "test RMSE");
    let table = blocks(&page, "summary", "table")[0];
    assert_eq!(table["header"][3], "error (RMSE)");
    // To four digits, as the curve ends.
    let shown: f64 = table["rows"][0][3].as_str().unwrap().parse().unwrap();
    assert!((shown / rmse[5] - 1.0).abs() < 1e-3, "{shown} and {rmse:?}");
    let lead = page["lead"].as_str().unwrap();
    assert!(
        lead.contains("least test RMSE") && lead.contains("95 %"),
        "{lead}"
    );
    assert!(!written.stdout.contains('%'), "{}", written.stdout);
    let row = written
        .stdout
        .lines()
        .find(|l| l.starts_with("mp"))
        .unwrap();
    assert!(row.contains(table["rows"][0][3].as_str().unwrap()), "{row}");

    // The label columns are those that the file names, at its top or for all runs.
    let both = VALUES.replace("data =", "label = [\"a\", \"b\"]\ndata =");
    let first = VALUES.replace("[settings]", "[settings]\nlabel = 3\nheader = true");
    for (text, features, outputs) in [(both, "2", "2"), (first, "3", "1")] {
        folder.write("label.toml", text);
        folder.run("reproduce label.toml");
        let page = folder.json("label.json");
        let facts = page["facts"].as_array().unwrap();
        for (name, value) in [("features", features), ("outputs", outputs)] {
            let fact = facts.iter().find(|fact| fact["name"] == name).unwrap();
            assert_eq!(fact["value"], value, "{name}");
        }
    }
    folder.write(
        "label.toml",
        VALUES.replace("[settings]", "[settings]\nlabel = \"c\""),
    );
    folder.fails("reproduce label.toml", 1, &["train.csv", "c"]);
    folder.write(
        "label.toml",
        VALUES.replace("[settings]", "[settings]\nheader = 1"),
    );
    folder.fails("reproduce label.toml", 1, &["reading", "boolean"]);
    std::fs::remove_file(folder.path("label.toml")).unwrap();

    let confusion =
        "\n[[figure]]\nid = \"two\"\ntitle = \"T\"\nkind = \"confusion\"\nof = \"mp\"\n";
    folder.write("own.toml", format!("{VALUES}{confusion}"));
    let parts = ["own.toml", "'two'", "values", "task"];
    folder.fails("reproduce own.toml", 1, &parts);
}

#[test]
fn what_is_wrong_is_said() {
    let folder = Folder::with_flowers();
    let line = "reproduce own.toml";
    folder.write("own.toml", OWN.replace("name = \"b\"", "name = \"a\""));
    folder.fails(line, 1, &["own.toml", "two runs", "'a'"]);
    folder.write("own.toml", OWN.replace("of = \"b\"", "of = \"c\""));
    folder.fails(line, 1, &["own.toml", "'two'", "'c'"]);
    folder.write("own.toml", OWN.replace("data =", "dta ="));
    folder.fails(line, 1, &["own.toml", "'dta'", "docs/experiments.md"]);
    folder.write("own.toml", OWN.replace("of = \"b\"", ""));
    folder.fails(line, 1, &["own.toml", "'two'", "no of"]);
    folder.write("own.toml", OWN.replace("block-size", "blocksize"));
    folder.fails(line, 1, &["'a'", "blocksize", "block-size"]);
    folder.write("own.toml", OWN.replace("title = \"One\"", "title ="));
    folder.fails(line, 1, &["own.toml", "line 16"]);
    folder.write("own.toml", OWN);
    folder.fails(
        &format!("{line} --only three"),
        2,
        &["only = three", "one, two"],
    );
    // Nothing is made, not even a folder, before all is known to be right.
    folder.write("own.toml", OWN.replace("id = \"two\"", "id = \"../two\""));
    folder.fails(
        &format!("{line} --svg new"),
        1,
        &["own.toml", "../two", "letters"],
    );
    folder.write(
        "own.toml",
        OWN.replace("name = \"b\"", "name = \"b\", c = -1"),
    );
    folder.fails(&format!("{line} --svg new"), 2, &["c = -1"]);
    folder.write("own.toml", OWN);
    folder.fails(&format!("{line} --data none --svg new"), 1, &["none"]);
    folder.fails(
        &format!("{line} --svg test.csv/svg"),
        1,
        &["test.csv", "folder"],
    );
    // Reading keeps to the memory that is given, and to that of the file.
    let remedy = ["memory budget", "allow more memory"];
    folder.fails(&format!("{line} --memory 1K"), 1, &remedy);
    folder.write(
        "own.toml",
        OWN.replace("[settings]", "[settings]\nmemory = \"1K\""),
    );
    folder.fails(line, 1, &remedy);
    folder.write("own.toml", OWN);
    folder.fails("reproduce mnist8m", 2, &["mnist8m", "mnist, cifar10"]);
    folder.fails("reproduce cifar10", 2, &["--data"]);
    folder.fails(&format!("{line} --report none/x.html"), 1, &["none"]);
    std::fs::remove_file(folder.path("test.csv")).unwrap();
    folder.fails(
        &format!("{line} --data train.csv"),
        1,
        &["train.csv", "no test part"],
    );
}

#[test]
fn training_writes_a_page() {
    let folder = Folder::with_flowers();
    let options = "--method mp --block-size 30 --iterations 6";
    folder.run(&format!(
        "train train.csv --test test.csv {options} --report page.html"
    ));
    let page = folder.json("page.json");
    assert!(
        page["lead"].as_str().unwrap().contains("95 %"),
        "{}",
        page["lead"]
    );
    let html = folder.read("page.html");
    for part in ["<svg", "iris versicolor", "Content-Security-Policy"] {
        assert!(html.contains(part), "{part}");
    }

    folder.write("curves.csv", curves(0..120));
    folder.write("more.csv", curves(120..180));
    let written = folder
        .run("train curves.csv --label a,b --test more.csv --report values.html --json run.json");
    let page = folder.json("values.json");
    let lead = page["lead"].as_str().unwrap();
    assert!(lead.contains("RMSE") && lead.contains("95 %"), "{lead}");
    assert!(written.stdout.contains("(95 %: "), "{}", written.stdout);
    let run = folder.json("run.json");
    let ends = [0, 1].map(|end| run["rmse_interval"][end].as_f64().unwrap());
    assert!(ends[0] < number(&run, "rmse") && number(&run, "rmse") < ends[1]);

    // Without test rows: validation rows, or training rows that were left out.
    let parts = [
        ("train.csv --validation 0.2", "validation rows", "confusion"),
        ("train.csv --loo", "left-out training rows", "calibration"),
        (
            "curves.csv --label a,b --loo",
            "left-out training rows",
            "predictions",
        ),
    ];
    for (options, name, section) in parts {
        folder.run(&format!("train {options} --report page.html"));
        let page = folder.json("page.json");
        assert!(
            page["lead"].as_str().unwrap().contains(name),
            "{}",
            page["lead"]
        );
        assert!(!blocks(&page, section, "plot").is_empty() || section == "confusion");
    }
    folder.fails("train train.csv --report none/page.html", 1, &["none"]);
}
