//! `lssvm path`: errors for many values of c, and the choice among them.

use crate::common::*;

#[test]
fn errors_for_many_c() {
    let folder = Folder::new();
    let told = folder.run(&format!(
        "path {MNIST} --train-rows 1200 --values 9 --json path.json --report path.html \
         --output best.toml"
    ));
    for part in ["9 values of c from 0.001 to 10000", "accuracy", "chosen"] {
        assert!(told.stdout.contains(part), "{part}: {}", told.stdout);
    }
    let found = folder.json("path.json");
    let points = found["points"].as_array().unwrap();
    assert_eq!(points.len(), 9);
    // Too small a c follows nothing; that of the paper is the largest.
    let error = |i: usize| number(&points[i], "error");
    assert!(error(0) > 15.0 && error(8) < 9.0, "{points:?}");
    assert_eq!(found["exact"], false);
    // As a training that leaves out each row has it.
    folder.run(&format!(
        "train {MNIST} --train-rows 1200 --c 1e4 --loo --json m.json"
    ));
    let alone = number(&folder.json("m.json")["leave_one_out"], "error_percent");
    assert!((error(8) - alone).abs() < 0.1, "{} {alone}", error(8));
    assert!(folder.read("path.html").contains("Errors along the path"));
    assert!(folder.read("best.toml").contains("c = "));
}

#[test]
fn the_chosen_c_is_trained_with() {
    let folder = Folder::with_flowers();
    let told = folder.run(
        "path train.csv --label species --one-standard-error --validation 0.2 --model m.lssvm \
         --values 7 --from 0.01 --to 100",
    );
    for part in ["smallest within one standard error", "validation"] {
        assert!(told.stdout.contains(part), "{part}: {}", told.stdout);
    }
    assert!(exists(&folder.path("m.lssvm")));
}

#[test]
fn bad_paths_are_refused() {
    let folder = Folder::with_flowers();
    let line = "path train.csv --label species";
    folder.fails(&format!("{line} --from 0"), 2, &["positive"]);
    folder.fails(&format!("{line} --from 2 --to 1"), 2, &["less than"]);
    folder.fails(&format!("{line} --values 0"), 2, &["at least 1"]);
}
