//! `lssvm predict` and `lssvm evaluate`.

use crate::common::*;
use serde_json::Value;

/// A model of the flowers.
fn flowers_model() -> Folder {
    let folder = Folder::with_flowers();
    folder.run("train train.csv --label species --model m");
    folder
}

#[test]
fn classes_have_their_own_names() {
    let folder = flowers_model();
    let predicted = folder.predictions("m test.csv");
    assert!(predicted.iter().all(|p| SPECIES.contains(&p.as_str())));
    let truth = last_column(&folder.read("test.csv"));
    let wrong = percent_wrong(&predicted, &truth);
    assert!(wrong < 10.0, "{wrong} %");

    folder.run("evaluate m test.csv --json e.json");
    assert_eq!(number(&folder.json("e.json"), "error_percent"), wrong);

    folder.write("d.txt", libsvm(0..90, true));
    folder.run("train d.txt --model signs");
    let predicted = folder.predictions("signs d.txt");
    assert!(predicted.iter().all(|p| p == "+1" || p == "-1"));
    let truth: Vec<String> = (0..90)
        .map(|i| if i % 3 == 0 { "+1" } else { "-1" }.to_string())
        .collect();
    assert!(percent_wrong(&predicted, &truth) < 5.0);
}

#[test]
fn labels_are_not_needed() {
    let folder = flowers_model();
    let predicted = folder.predictions("m test.csv");
    let bare: String = folder
        .read("test.csv")
        .lines()
        .map(|line| format!("{}\n", line.rsplit_once(',').unwrap().0))
        .collect();
    folder.write("bare.csv", &bare);
    assert_eq!(folder.predictions("m bare.csv"), predicted);
    let headless = bare.split_once('\n').unwrap().1;
    folder.write("headless.csv", headless);
    assert_eq!(folder.predictions("m headless.csv"), predicted);
    folder.fails("evaluate m bare.csv", 1, &["bare.csv", "no labels"]);
}

#[test]
fn columns_are_found_by_name() {
    let folder = flowers_model();
    let predicted = folder.predictions("m test.csv");
    let turned: String = folder
        .read("test.csv")
        .lines()
        .map(|line| {
            let mut fields: Vec<&str> = line.split(',').collect();
            fields.reverse();
            format!("{}\n", fields.join(","))
        })
        .collect();
    folder.write("turned.csv", &turned);
    assert_eq!(folder.predictions("m turned.csv"), predicted);
    folder.run("evaluate m turned.csv --json e.json");
    assert!(number(&folder.json("e.json"), "error_percent") < 10.0);

    folder.write("other.csv", turned.replace("width", "depth"));
    folder.fails("predict m other.csv", 1, &["other.csv", "'width'", "check"]);
}

#[test]
fn label_columns_of_the_training_are_known() {
    let folder = Folder::new();
    folder.write("train.csv", curves(0..300));
    folder.write("test.csv", curves(300..400));
    folder.run("train train.csv --label a,b -c 1e4 --model m");
    folder.run("evaluate m test.csv --json e.json");
    let result = folder.json("e.json");
    assert!(number(&result, "r2") > 0.99);
    assert!(number(&result, "rmse") < 0.3);

    let table = folder.predictions("m test.csv");
    assert_eq!(table[0], "a,b");
    assert_eq!(table.len(), 101);
    // The targets in another order are found by their names.
    let turned: String = folder
        .read("test.csv")
        .lines()
        .map(|line| {
            let mut fields: Vec<&str> = line.split(',').collect();
            fields.swap(2, 3);
            format!("{}\n", fields.join(","))
        })
        .collect();
    folder.write("turned.csv", turned);
    folder.run("evaluate m turned.csv --json t.json");
    assert_eq!(folder.json("t.json")["rmse"], result["rmse"]);
}

#[test]
fn one_value_a_line_for_one_target() {
    let folder = Folder::new();
    let one = |range| -> String {
        let rows = curves(range);
        rows.lines()
            .map(|line| format!("{}\n", line.rsplit_once(',').unwrap().0))
            .collect()
    };
    folder.write("train.csv", one(0..200));
    folder.write("test.csv", one(200..250));
    folder.run("train train.csv -c 1e4 --model m");
    let predicted = folder.predictions("m test.csv");
    let truth = last_column(&folder.read("test.csv"));
    for (p, t) in predicted.iter().zip(&truth) {
        let (p, t): (f64, f64) = (p.parse().unwrap(), t.parse().unwrap());
        assert!((p - t).abs() < 0.2, "{p} for {t}");
    }
    let parts = ["probabilities", "--scores"];
    folder.fails("predict m test.csv --probabilities", 2, &parts);
}

#[test]
fn fewer_features_in_sparse_text() {
    let folder = Folder::new();
    folder.write("train.txt", libsvm(0..150, true));
    folder.write("test.txt", libsvm(150..210, false));
    folder.run("train train.txt --test test.txt --model m --json r.json");
    folder.run("evaluate m test.txt --json e.json");
    let (trained, evaluated) = (folder.json("r.json"), folder.json("e.json"));
    let error = number(&evaluated, "error_percent");
    assert_eq!(number(&trained, "error_percent"), error);
    assert_eq!(folder.predictions("m test.txt").len(), 60);
}

#[test]
fn scores_and_probabilities_are_tables() {
    let folder = flowers_model();
    let predicted = folder.predictions("m test.csv");
    for option in ["--scores", "--probabilities"] {
        let text = folder.run(&format!("predict m test.csv {option}")).stdout;
        let mut table = csv::Reader::from_reader(text.as_bytes());
        let header: Vec<String> = table.headers().unwrap().iter().map(Into::into).collect();
        assert_eq!(header[0], "predicted");
        assert_eq!(header[1..], SPECIES);
        let mut rows = 0;
        for (row, class) in table.records().zip(&predicted) {
            let row = row.unwrap();
            assert_eq!(&row[0], class);
            let numbers: Vec<f64> = row.iter().skip(1).map(|n| n.parse().unwrap()).collect();
            let best = (0..3).max_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
            assert_eq!(SPECIES[best.unwrap()], class);
            if option == "--probabilities" {
                assert!((numbers.iter().sum::<f64>() - 1.0).abs() < 1e-6);
                assert!(numbers.iter().all(|n| (0.0..=1.0).contains(n)));
            }
            rows += 1;
        }
        assert_eq!(rows, 60);
    }
    folder.refused("predict m test.csv --scores --probabilities", &["--scores"]);
}

#[test]
fn json_has_one_object_a_row() {
    let folder = flowers_model();
    let predicted = folder.predictions("m test.csv");
    let lines = folder.predictions("m test.csv --json --probabilities");
    assert_eq!(lines.len(), predicted.len());
    for (line, class) in lines.iter().zip(&predicted) {
        let object: Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["predicted"], class.as_str());
        let values = object["probabilities"].as_object().unwrap().values();
        let sum: f64 = values.map(|v| v.as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-6);
    }
}

#[test]
fn output_goes_to_a_file() {
    let folder = flowers_model();
    let predicted = folder.predictions("m test.csv");
    let written = folder.run("predict m test.csv --output p.txt --threads 1");
    assert_eq!((written.stdout.as_str(), written.stderr.as_str()), ("", ""));
    let lines: Vec<String> = folder.read("p.txt").lines().map(Into::into).collect();
    assert_eq!(lines, predicted);
    folder.fails(
        "predict m test.csv --output no/p.txt",
        1,
        &["no/p.txt", "no"],
    );
}

#[test]
fn evaluation_of_a_folder_is_of_its_test_part() {
    let folder = flowers_model();
    let written = folder.run("evaluate m . --json e.json");
    let result = folder.json("e.json");
    assert_eq!(result["rows"], 60);
    assert!(number(&result, "seconds") > 0.0);
    assert!(number(&result, "peak_memory_bytes") > 0.0);
    assert_eq!(result["confusion"]["classes"], serde_json::json!(SPECIES));
    assert_eq!(result["config"]["kernel"], "rbf");
    assert_eq!(result["training"]["stopped"], "solved");
    assert_eq!(result["classes"][1]["class"], SPECIES[1]);
    for part in ["% wrong of 60 rows", "precision", "virginica"] {
        assert!(written.stdout.contains(part), "{part}");
    }
    assert_eq!(written.stderr, "");
}

#[test]
fn data_that_do_not_fit_a_model() {
    let folder = flowers_model();
    folder.write("wide.csv", "1,2,3,4,5,6\n2,3,4,5,6,7\n");
    folder.fails("predict m wide.csv", 1, &["wide.csv", "3 features", "use"]);
    let new = folder.read("test.csv").replacen("virginica", "rosa", 1);
    folder.write("new.csv", new);
    let parts = ["new.csv", "row 3", "'rosa'", "train with that class"];
    folder.fails("evaluate m new.csv", 1, &parts);
    // The label is not looked at.
    assert_eq!(folder.predictions("m new.csv").len(), 60);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_from_its_first_byte() {
    use assert_cmd::cargo::CommandCargoExt;
    use std::io::Write;
    use std::process::{Command, Stdio};

    let folder = Folder::with_flowers();
    folder.run("train . --model m");
    let mut child = Command::cargo_bin("lssvm")
        .unwrap()
        .args(["predict", "m", "-", "--scores"])
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(folder.read("test.csv").as_bytes()).unwrap();
    drop(pipe);
    let piped = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let lines: Vec<&str> = piped.lines().collect();
    assert_eq!(lines, folder.predictions("m test.csv --scores"));
}

#[test]
fn a_prediction_is_explained() {
    let folder = flowers_model();
    let told = folder.run("explain m test.csv --row 2 --count 3").stdout;
    for part in ["explained", "scores", "for it", "against it", "all others"] {
        assert!(told.contains(part), "{told}");
    }
    let rows = told.lines().filter(|line| line.contains("of the model"));
    assert_eq!(rows.count(), 6, "{told}");
    let other = folder
        .run("explain m test.csv --row 2 --class virginica")
        .stdout;
    assert!(other.contains("virginica (score"), "{other}");
    folder.fails("explain m test.csv --row 0", 2, &["row = 0", "from 1"]);
    folder.fails("explain m test.csv --row 9999", 2, &["row = 9999"]);
    let unknown = "explain m test.csv --row 1 --class rose";
    folder.fails(unknown, 2, &["class = rose", "virginica"]);
    let picture = "explain m test.csv --row 1 --report page.html";
    folder.fails(picture, 2, &["images"]);
}

/// By their weights rows would be told wrong: one that is fitted beyond its target pulls
/// its own class down, and so may one that was given the wrong label.
#[test]
fn an_explanation_names_the_classes_that_the_rows_had() {
    let folder = Folder::with_flowers();
    let table = folder.read("train.csv");
    // All classes, and two of them; the first row has a wrong label.
    let wrong = |table: String| table.replacen("iris setosa", "virginica", 1);
    let two = table.lines().filter(|line| !line.contains("versicolor"));
    let two: String = two.map(|line| format!("{line}\n")).collect();
    folder.write("three.csv", wrong(table));
    folder.write("two.csv", wrong(two));
    for (data, more) in [
        ("three.csv", ""),
        ("two.csv", ""),
        ("two.csv", "--class-weight balanced -c 1000"),
        ("three.csv", "--method pcg --precision f64"),
        ("two.csv", "--method gauss-seidel"),
    ] {
        folder.run(&format!("train {data} --model m {more}"));
        let told = folder.run("explain m test.csv --row 2 --count 999").stdout;
        let truth = last_column(&folder.read(data));
        let mut seen = 0;
        for line in told.lines().filter(|line| line.contains("of the model")) {
            let (_, rest) = line.split_once("  row ").unwrap();
            let (row, rest) = rest.split_once(" of the model, class ").unwrap();
            let (class, _) = rest.split_once(", kernel").unwrap();
            let row: usize = row.parse().unwrap();
            assert_eq!(class, truth[row - 1], "{data} {more}: {line}");
            seen += 1;
        }
        assert!(seen > 90, "{data} {more}: {told}");
    }
}

#[test]
fn digits_are_explained_by_pictures() {
    let folder = Folder::new();
    folder.run(&format!("train {MNIST} --train-rows 300 --model m"));
    folder.run(&format!("explain m {MNIST} --row 3 --report page.html"));
    let page = folder.read("page.html");
    assert!(page.contains("Why row 3 looks like"));
    assert!(page.matches("data:image/png").count() >= 7);
}

#[test]
fn weights_are_no_features_where_they_were_in_training() {
    let folder = Folder::new();
    // Without a header: the species, a weight, and the rest.
    let table = |rows| -> String {
        let lines = flowers(rows);
        let lines = lines.lines().skip(1).enumerate().map(|(i, line)| {
            let (rest, label) = line.rsplit_once(',').unwrap();
            format!("{label},{},{rest}\n", 1 + i % 2)
        });
        lines.collect()
    };
    folder.write("h.csv", table(0..150));
    folder.write("new.csv", table(150..210));
    folder.write("bare.csv", flowers(150..210));
    folder.run("train h.csv --label 1 --weights 2 --model m");
    let scores = folder.predictions("m new.csv --scores");
    assert_eq!(scores, folder.predictions("m bare.csv --scores --label 4"));
    folder.run("evaluate m new.csv --json e.json");
    assert!(number(&folder.json("e.json"), "error_percent") < 10.0);
    // Arrays have no such column, and need none.
    let values: Vec<f64> = (150..210).flat_map(flower).collect();
    folder.write("new.npy", npy(&[60, 3], &values));
    assert_eq!(folder.predictions("m new.npy").len(), 60);
    // Nor do those that a model with names of columns is used with.
    let named = format!("species,w,length,width,height\n{}", table(0..150));
    folder.write("named.csv", named);
    folder.run("train named.csv --label species --weights w --model n");
    assert_eq!(scores, folder.predictions("n new.csv --scores"));
    assert_eq!(folder.predictions("n new.npy").len(), 60);
}

#[test]
fn a_label_that_was_first_is_first_again() {
    let folder = Folder::new();
    let first = |range| -> String {
        let rows = flowers(range);
        let turned = rows.lines().skip(1).map(|line| {
            let (rest, label) = line.rsplit_once(',').unwrap();
            format!("{label},{rest}\n")
        });
        turned.collect()
    };
    folder.write("h.csv", first(0..150));
    folder.write("new.csv", first(150..210));
    folder.run("train h.csv --label 1 --model m");
    folder.run("evaluate m new.csv --json e.json");
    assert!(number(&folder.json("e.json"), "error_percent") < 10.0);
    let chosen = folder.predictions("m new.csv --label 1");
    assert_eq!(folder.predictions("m new.csv"), chosen);

    // Several targets of a table without a header.
    let curves = |range| curves(range).split_once('\n').unwrap().1.to_string();
    folder.write("c.csv", curves(0..200));
    folder.run("train c.csv --label 3,4 -c 1e4 --model values");
    folder.run("evaluate values c.csv --json e.json");
    assert!(number(&folder.json("e.json"), "r2") > 0.99);
}

#[test]
fn an_evaluation_has_the_keys_of_a_training() {
    let folder = Folder::with_flowers();
    let line = "train . --method mp --block-size 40 --iterations 5 --tolerance 0";
    folder.run(&format!("{line} --model m --json r.json"));
    folder.run("evaluate m . --json e.json");
    let (trained, result) = (folder.json("r.json"), folder.json("e.json"));
    // What the run was, and what came of it.
    for key in [
        "iterations",
        "best_iteration",
        "stopped",
        "relative_residual",
        "relative_residual_exact",
        "tolerance_met",
        "config",
        "error_percent",
        "error_percent_interval",
        "confusion",
        "classes",
        "rows",
    ] {
        assert_eq!(result[key], trained[key], "{key}");
        assert!(!result[key].is_null(), "{key}");
    }
    // What the evaluation took.
    let seconds = number(&result, "seconds");
    assert!(seconds > 0.0 && number(&result, "peak_memory_bytes") > 1e6);
    let phases = result["phases"].as_object().unwrap();
    for name in ["load", "read", "predict"] {
        assert!(number(&phases[name], "seconds") > 0.0, "{name}");
        assert!(number(&phases[name], "gflops") >= 0.0, "{name}");
    }
    let booked: f64 = phases.values().map(|p| number(p, "seconds")).sum();
    assert!(booked <= seconds, "{booked} of {seconds}");

    let history = result["history"].as_array().unwrap();
    assert_eq!(history.len(), 5);
    for (line, of_run) in history.iter().zip(trained["history"].as_array().unwrap()) {
        assert!(line.get("seconds").is_none(), "no model has times");
        for key in ["iteration", "error_percent", "relative_residual"] {
            assert_eq!(line[key], of_run[key], "{key}");
            assert!(!line[key].is_null(), "{key}");
        }
    }
    assert_eq!(result["training"]["iterations"], 5);
    assert!(result["training"].get("history").is_none());

    // The same run gives the same file, history included.
    folder.run(&format!("{line} --model again"));
    let bytes = |name| std::fs::read(folder.path(name)).unwrap();
    assert!(bytes("m") == bytes("again"));
    let inspected = folder.run("inspect m").stdout;
    assert!(!inspected.contains("relative_change"), "{inspected}");
}

#[test]
fn an_evaluation_of_values_has_its_keys() {
    let folder = Folder::new();
    folder.write("train.csv", curves(0..200));
    folder.write("test.csv", curves(200..260));
    folder.run("train . --label a,b --model m --json r.json");
    folder.run("evaluate m . --json e.json");
    let (trained, result) = (folder.json("r.json"), folder.json("e.json"));
    for key in ["iterations", "stopped", "relative_residual", "config"] {
        assert_eq!(result[key], trained[key], "{key}");
        assert!(!result[key].is_null(), "{key}");
    }
    for key in ["rmse", "mae", "r2"] {
        let (a, b) = (number(&result, key), number(&trained, key));
        assert!((a - b).abs() < 1e-4 * b.abs(), "{key}: {a}, {b}");
    }
    let last = result["history"].as_array().unwrap().last().unwrap();
    assert!(number(last, "rmse") > 0.0);
}
