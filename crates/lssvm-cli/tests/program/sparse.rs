//! Files of mostly zeros, from training to prediction.

use std::fmt::Write;

use crate::common::*;

/// Rows of a few words out of a million; the first of them tells the class.
fn texts(rows: std::ops::Range<usize>) -> String {
    let mut text = String::new();
    for i in rows {
        let class = i % 3;
        let own = 1 + class * 10 + i % 7;
        let other = 1000 + i * 7919 % 900_000;
        writeln!(text, "{class} {own}:1.5 {other}:1 1000000:0.5").unwrap();
    }
    text
}

#[test]
fn a_million_columns_are_trained_on_and_predicted_within_little_memory() {
    let folder = Folder::new();
    folder.write("in/train.svm", texts(0..300));
    folder.write("in/test.svm", texts(300..360));
    // With their zeros the rows would take 1.4 GB.
    let memory = "--memory 300M";
    let plan = folder.run(&format!("plan in {memory}"));
    assert!(plan.stdout.contains("1000000 features"), "{}", plan.stdout);
    folder.run(&format!("train in --model m {memory} --json train.json"));
    let trained = folder.json("train.json");
    assert_eq!(number(&trained, "error_percent"), 0.0);
    assert_eq!(trained["config"]["preprocess"], "unit-norm");
    assert!(number(&trained, "peak_memory_bytes") < 300e6);
    folder.run(&format!("evaluate m in {memory} --json evaluated.json"));
    assert_eq!(number(&folder.json("evaluated.json"), "error_percent"), 0.0);
    let predicted = folder.predictions("m in/test.svm");
    let truth: Vec<String> = (300..360).map(|i| (i % 3).to_string()).collect();
    assert_eq!(predicted, truth);
    let explained = folder.run("explain m in/test.svm --row 2");
    assert!(explained.stdout.contains("for it"), "{}", explained.stdout);
    folder.run("compress m --centers 100 --output small");
    assert!(folder.predictions("small in/test.svm").len() == 60);
}

#[test]
fn a_hostile_index_is_an_error_and_no_memory() {
    let folder = Folder::new();
    folder.write("far.svm", format!("{}1 4000000000:1\n", texts(0..50)));
    for method in ["exact", "pcg", "mp", "centers", "auto"] {
        let line = format!("train far.svm --model m --memory 2G --method {method}");
        folder.fails(&line, 1, &["4000000000 features", "needs 256.0", "2.00 GB"]);
    }
    assert!(!exists(&folder.path("m")));
}

#[test]
fn zeros_are_not_written_to_fill_the_disk() {
    let folder = Folder::new();
    folder.write("wide.svm", texts(0..300));
    folder.fails(
        "convert wide.svm wide.data",
        1,
        &[
            "wide.svm: there are 300 rows of 1000000 features",
            "1.20 GB",
            "as it is",
        ],
    );
    assert!(!exists(&folder.path("wide.data")));
}
