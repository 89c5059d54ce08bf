//! `--interval` and `--sets` of `lssvm predict` and `lssvm evaluate`.

use std::fmt::Write;

use crate::common::*;
use serde_json::{Value, json};

/// Two features and two targets with noise: `u,v,a,b`.
fn noisy(rows: std::ops::Range<usize>) -> String {
    let mut text = String::from("u,v,a,b\n");
    for i in rows {
        let [u, v, e, f] = [0, 1, 2, 3].map(|j| noise(4 * i + j));
        let (a, b) = ((3.0 * u).sin() + v + 0.3 * e, u * v + f);
        writeln!(text, "{u:.5},{v:.5},{a:.5},{b:.5}").unwrap();
    }
    text
}

/// A model of both targets, and rows it has not seen.
fn values_model() -> Folder {
    let folder = Folder::new();
    folder.write("train.csv", noisy(0..200));
    folder.write("test.csv", noisy(200..500));
    folder.run("train train.csv --label a,b --loo --model m");
    folder
}

/// A model of flowers in clouds that overlap, with names that need care.
fn classes_model() -> Folder {
    let folder = Folder::new();
    let names = ["iris, setosa", "iris versicolor", "virginica"];
    let rows = |rows: std::ops::Range<usize>| {
        let mut text = String::from("x,y,species\n");
        for i in rows {
            let centre = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]][i % 3];
            let [x, y] = [0, 1].map(|j| centre[j] + noise(2 * i + j));
            writeln!(text, "{x:.4},{y:.4},\"{}\"", names[i % 3]).unwrap();
        }
        text
    };
    folder.write("train.csv", rows(0..240));
    folder.write("test.csv", rows(240..540));
    folder.run("train train.csv --label species --loo --model m");
    folder
}

#[test]
fn intervals_are_a_table() {
    let folder = values_model();
    let lines = folder.predictions("m test.csv --interval 0.9");
    assert_eq!(lines[0], "a,a_lower,a_upper,b,b_lower,b_upper");
    assert_eq!(lines.len(), 301);
    let plain = folder.predictions("m test.csv");
    for (line, plain) in lines[1..].iter().zip(&plain[1..]) {
        let numbers: Vec<f64> = line.split(',').map(|v| v.parse().unwrap()).collect();
        let values: Vec<f64> = plain.split(',').map(|v| v.parse().unwrap()).collect();
        assert_eq!([numbers[0], numbers[3]], values[..]);
        for part in numbers.chunks(3) {
            assert!(part[1] < part[0] && part[0] < part[2]);
            let (below, above) = (part[0] - part[1], part[2] - part[0]);
            assert!((below - above).abs() < 1e-9);
        }
    }
    // 200 rows cannot promise 99.9 %.
    let all = folder.predictions("m test.csv --interval 0.999");
    assert!(
        all[1].contains("-inf") && all[1].ends_with(",inf"),
        "{}",
        all[1]
    );
}

#[test]
fn intervals_as_json() {
    let folder = values_model();
    let lines = folder.predictions("m test.csv --interval 0.9 --json");
    let table = folder.predictions("m test.csv --interval 0.9");
    for (line, row) in lines.iter().zip(&table[1..]) {
        let object: Value = serde_json::from_str(line).unwrap();
        let row: Vec<f64> = row.split(',').map(|v| v.parse().unwrap()).collect();
        assert_eq!(object["values"], json!({"a": row[0], "b": row[3]}));
        assert_eq!(object["lower"], json!({"a": row[1], "b": row[4]}));
        assert_eq!(object["upper"], json!({"a": row[2], "b": row[5]}));
    }
    let all = folder.predictions("m test.csv --interval 0.999 --json");
    let object: Value = serde_json::from_str(&all[0]).unwrap();
    assert_eq!(object["upper"], json!({"a": null, "b": null}));
}

#[test]
fn sets_are_lines_of_names() {
    let folder = classes_model();
    let text = folder.run("predict m test.csv --sets 0.9").stdout;
    assert_eq!(text.lines().count(), 300);
    let objects = folder.predictions("m test.csv --sets 0.9 --json");
    let classes = folder.predictions("m test.csv");
    let mut lines = csv::ReaderBuilder::new();
    let mut lines = lines
        .flexible(true)
        .has_headers(false)
        .from_reader(text.as_bytes());
    // The reader passes over empty lines, which are empty sets.
    let mut records = lines.records();
    let mut larger = 0;
    for ((object, line), class) in objects.iter().zip(text.lines()).zip(&classes) {
        let object: Value = serde_json::from_str(object).unwrap();
        let set: Vec<String> = match line {
            "" => Vec::new(),
            _ => records
                .next()
                .unwrap()
                .unwrap()
                .iter()
                .map(Into::into)
                .collect(),
        };
        assert_eq!(object["set"], json!(set));
        assert_eq!(object["predicted"], class.as_str());
        larger += usize::from(set.len() > 1);
    }
    assert!(larger > 10, "{larger}");
    let all = folder.predictions("m test.csv --sets 0.999 --json");
    let object: Value = serde_json::from_str(&all[0]).unwrap();
    assert_eq!(object["set"].as_array().unwrap().len(), 3);
    // Where only some classes are likely, few rows have one.
    let few = folder.predictions("m test.csv --sets 0.2");
    assert!(few.iter().any(String::is_empty));
}

#[test]
fn an_evaluation_measures_coverage() {
    let folder = values_model();
    let told = folder.run("evaluate m test.csv --interval 0.9 --json e.json");
    assert!(told.stdout.contains("90 % asked of a, "), "{}", told.stdout);
    let result = folder.json("e.json");
    let intervals = result["intervals"].as_array().unwrap();
    assert_eq!(intervals.len(), 2);
    for (scores, output) in intervals.iter().zip(["a", "b"]) {
        assert_eq!(scores["output"], output);
        assert_eq!(number(scores, "coverage"), 0.9);
        let measured = number(scores, "measured");
        // Four standard errors of 300 rows by 200.
        assert!((measured - 0.9).abs() < 4.0 * 0.3 * (1.0 / 200.0 + 1.0 / 300.0f64).sqrt());
        assert!(number(scores, "mean_width") > 0.3);
        let interval = scores["measured_interval"].as_array().unwrap();
        assert!(interval[0].as_f64() < Some(measured) && interval[1].as_f64() > Some(measured));
    }
    assert!(result.get("sets").is_none());
    folder.run("evaluate m test.csv --interval 0.999 --json e.json");
    assert!(folder.json("e.json")["intervals"][0]["mean_width"].is_null());

    let folder = classes_model();
    let told = folder.run("evaluate m test.csv --sets 0.9 --json e.json");
    assert!(told.stdout.contains("90 % asked, "), "{}", told.stdout);
    let sets = &folder.json("e.json")["sets"];
    let measured = number(sets, "measured");
    assert!((measured - 0.9).abs() < 4.0 * 0.3 * (1.0 / 240.0 + 1.0 / 300.0f64).sqrt());
    let sizes = sets["rows_by_size"].as_array().unwrap();
    let sizes: Vec<f64> = sizes.iter().map(|n| n.as_f64().unwrap()).collect();
    assert_eq!(sizes.iter().sum::<f64>(), 300.0);
    let classes: f64 = sizes.iter().enumerate().map(|(k, n)| k as f64 * n).sum();
    assert!((number(sets, "mean_size") - classes / 300.0).abs() < 1e-12);
    folder.run("evaluate m test.csv --json e.json");
    assert!(folder.json("e.json").get("sets").is_none());
    assert!(
        folder
            .run("inspect m")
            .stdout
            .contains("by 240 rows left out")
    );
}

#[test]
fn what_a_model_cannot_promise() {
    let values = values_model();
    let classes = classes_model();
    for command in ["predict", "evaluate"] {
        let line = |option: &str| format!("{command} m test.csv {option}");
        values.fails(&line("--sets 0.9"), 2, &["sets = 0.9", "--interval"]);
        classes.fails(&line("--interval 0.9"), 2, &["interval = 0.9", "--sets"]);
        for wrong in ["0", "1", "-0.5", "90", "nan", "most"] {
            let asked = line(&format!("--sets {wrong}"));
            classes.refused(&asked, &["--sets", "between 0 and 1"]);
        }
        values.refused(&line("--interval 0.9 --sets 0.9"), &["--sets"]);
    }
    values.refused("predict m test.csv --interval 0.9 --scores", &["--scores"]);
    classes.refused("predict m test.csv --sets 0.9 --probabilities", &["--sets"]);
    // Without rows to judge by.
    values.run("train train.csv --label a,b --model plain");
    values.fails("predict plain test.csv --interval 0.9", 1, &["--loo"]);
    values.fails("evaluate plain test.csv --interval 0.9", 1, &["--loo"]);
    // Validation rows will do.
    values.run("train train.csv --label a,b --validation 0.3 --model plain");
    assert_eq!(
        values.predictions("plain test.csv --interval 0.9").len(),
        301
    );
    assert!(
        values
            .run("inspect plain")
            .stdout
            .contains("by 60 rows kept")
    );
}
