//! Everything that can be wrong is told in one line, and nothing is left behind.

use crate::common::*;

#[test]
fn bad_parameters() {
    let folder = Folder::with_flowers();
    for (more, parts) in [
        ("-c 0", &["c = 0", "positive"][..]),
        ("-c -1", &["c = -1", "positive"]),
        ("-c nan", &["c = NaN", "positive"]),
        ("--method mp --block-size 152", &["block-size = 152", "151"]),
        ("--method mp --block-size 99999999", &["block-size", "151"]),
        ("--method mp --block-size 0", &["block-size = 0"]),
        (
            "--method mp --iterations 0",
            &["iterations = 0", "at least 1"],
        ),
        ("--kernel poly --degree 0", &["degree = 0", "from 1"]),
        ("--kernel poly --degree 1000", &["degree = 1000", "100"]),
        ("--gamma -1", &["gamma = -1", "positive"]),
        ("--gamma 0", &["gamma = 0", "positive"]),
        ("--kernel poly --coef0 inf", &["coef0 = inf", "finite"]),
        ("--patience 3", &["patience = 3", "--validation"]),
        ("--patience 0 --validation 0.2", &["patience = 0"]),
        ("--validation 0", &["validation = 0", "between 0 and 1"]),
        ("--validation 1.5", &["validation = 1.5"]),
        ("--validation 0.001", &["validation = 0.001", "empty"]),
        ("--train-rows 0", &["train-rows = 0"]),
        ("--threads 0", &["threads = 0", "at least 1"]),
        ("--averages 0", &["averages = 0", "at least 1"]),
        ("--time 0", &["time = 0", "positive"]),
        ("--time -1", &["time = -1", "positive"]),
        ("--tolerance -1", &["tolerance = -1", "0 or more"]),
        ("--image-shape 4x4", &["image-shape", "4x4", "3 features"]),
        ("--index-base 2", &["index-base = 2", "0 or 1"]),
        ("--delimiter ab", &["delimiter = ab", "one character"]),
    ] {
        folder.fails(&format!("train train.csv --model m {more}"), 2, parts);
        // Without --model too the error is the only line.
        folder.fails(&format!("train train.csv {more}"), 2, parts);
    }
    folder.fails("train --model m", 2, &["DATA", "name a data file"]);
}

#[test]
fn words_that_are_not_known() {
    let folder = Folder::with_flowers();
    for (more, parts) in [
        (
            "--kernel gauss",
            &["gauss", "linear", "rbf", "laplacian"][..],
        ),
        (
            "--method fast",
            &["fast", "exact", "kaczmarz-mp", "nystrom"],
        ),
        ("--preprocess whiten", &["whiten", "unit-norm"]),
        ("--preprocess window:c=x", &["window"]),
        ("--gamma wide", &["wide", "scale"]),
        ("--task cluster", &["cluster", "regression"]),
        ("--precision f16", &["f16", "f64"]),
        ("--memory much", &["much", "8G"]),
        ("--format xls", &["xls", "libsvm"]),
        ("--image-shape 4by4", &["4by4"]),
        ("--iterations many", &["many"]),
        ("--block-size -5", &["-5"]),
        ("--frobnicate", &["--frobnicate"]),
        ("--header perhaps", &["perhaps", "true"]),
    ] {
        folder.refused(&format!("train train.csv --model m {more}"), parts);
    }
    folder.refused("tran train.csv", &["tran", "train"]);
    folder.refused("predict m", &["<DATA>"]);
    let usage = folder.command("").output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn files_that_cannot_be_read() {
    let folder = Folder::new();
    let train = |name: &str| format!("train {name} --model m");
    folder.fails(
        &train("none.csv"),
        1,
        &["none.csv", "no such file", "check"],
    );
    folder.write("empty.csv", "");
    folder.fails(&train("empty.csv"), 1, &["empty.csv", "empty"]);
    folder.write("head.csv", "a,b,class\n");
    folder.fails(&train("head.csv"), 1, &["head.csv", "no rows", "check"]);
    folder.write("noise.bin", [7, 0, 255, 3, 1, 200, 0, 0, 9, 12, 0, 1]);
    let parts = ["noise.bin", "format is not known", "use IDX"];
    folder.fails(&train("noise.bin"), 1, &parts);
    folder.write("p.parquet", b"PAR1\0\0\0\0");
    let parts = match cfg!(feature = "parquet") {
        true => ["p.parquet", "too short", "write it again"],
        false => ["p.parquet", "Parquet", "save it"],
    };
    folder.fails(&train("p.parquet"), 1, &parts);
    folder.write("z.csv.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\xffbroken");
    folder.fails(&train("z.csv.gz"), 1, &["z.csv.gz"]);
    folder.write("nothing/readme", "");
    folder.fails(&train("nothing"), 1, &["nothing", "train.*", "give"]);
}

#[test]
fn tables_that_are_wrong() {
    let folder = Folder::new();
    for (rows, parts) in [
        ("1,2,x\n3,4\n", &["line 3", "2"][..]),
        ("1,2,x\n3,4,5,y\n", &["line 3", "4"]),
        ("1,2,x\n3,nan,y\n", &["line 3", "column 2", "nan"]),
        ("1,2,x\ninf,4,y\n", &["line 3", "column 1", "inf"]),
        ("1,2,x\n3,four,y\n", &["line 3", "column 2", "'four'"]),
        ("1,2,x\n3,,y\n", &["line 3", "column 2"]),
        ("1,2,x\n3,4,x\n", &["'x'", "two classes"]),
        ("1e300,2,x\n3,4,y\n", &["line 2", "column 1", "1e300"]),
    ] {
        folder.write("d.csv", format!("a,b,class\n{rows}"));
        let parts: Vec<&str> = parts.iter().copied().chain(["d.csv"]).collect();
        folder.fails("train d.csv --model m", 1, &parts);
    }
    folder.write("d.csv", "a,b,class\n1,2,x\n3,4,y\n");
    let parts = ["d.csv", "'kind'", "a, b, class", "check"];
    folder.fails("train d.csv --label kind --model m", 1, &parts);
    folder.fails("train d.csv --label 9 --model m", 1, &["d.csv", "column 9"]);
    let parts = ["d.csv", "'x'", "not a number", "correct"];
    folder.fails("train d.csv --task regression --model m", 1, &parts);
}

#[test]
fn sparse_text_that_is_wrong() {
    let folder = Folder::new();
    for (text, parts) in [
        ("+1 1:1\n-1 1:x\n", &["line 2", "'x'"][..]),
        ("+1 1:1\n-1 1:nan\n", &["line 2", "nan"]),
        ("+1 1:1\n-1 1:1 1:3\n", &["line 2"]),
        ("+1 1:1\n-1 900000000000:3\n", &["900000000000", "memory"]),
    ] {
        folder.write("d.txt", text);
        let parts: Vec<&str> = parts.iter().copied().chain(["d.txt"]).collect();
        folder.fails("train d.txt --model m", 1, &parts);
    }
}

#[test]
fn images_that_are_wrong() {
    let folder = Folder::new();
    let (images, labels) = bars(12);
    let images = idx(&[12, 4, 4], &images);
    let train = "train train-images-idx3-ubyte --model m";
    folder.write("train-images-idx3-ubyte", &images);
    folder.fails(train, 1, &["train-images-idx3-ubyte", "no labels", "put"]);
    folder.fails(
        "train . --model m",
        1,
        &["train-images", "no labels", "add"],
    );

    folder.write("train-labels-idx1-ubyte", idx(&[11], &labels[..11]));
    folder.fails(train, 1, &["train-", "11", "12"]);
    folder.write("train-labels-idx1-ubyte", idx(&[12], &labels));
    folder.run(train);
    std::fs::remove_file(folder.path("m")).unwrap();

    folder.write("train-images-idx3-ubyte", &images[..images.len() - 5]);
    folder.fails(train, 1, &["train-images-idx3-ubyte"]);
    let mut magic = images.clone();
    magic[2] = 0x55;
    folder.write("train-images-idx3-ubyte", &magic);
    folder.fails(train, 1, &["train-images-idx3-ubyte"]);

    std::fs::remove_file(folder.path("train-images-idx3-ubyte")).unwrap();
    let parts = ["train-labels-idx1-ubyte", "no images", "add"];
    folder.fails("train . --model m", 1, &parts);
}

#[test]
fn test_data_that_do_not_fit() {
    let folder = Folder::with_flowers();
    let line = "train train.csv --model m --test other.csv";
    folder.fails(line, 1, &["other.csv", "no such file", "check"]);
    folder.write("other.csv", "1,2,3,4,virginica\n3,4,5,6,virginica\n");
    folder.fails(line, 1, &["other.csv", "3 features"]);
    folder.write("other.csv", flowers(0..9).replacen("virginica", "rosa", 1));
    folder.fails(line, 1, &["other.csv", "row 3", "'rosa'", "correct"]);
    let line = "train train.csv --model m --validation other.csv";
    folder.fails(line, 1, &["other.csv", "'rosa'"]);
}

#[test]
fn memory_is_planned_before_it_is_used() {
    let folder = Folder::new();
    folder.write("d.csv", flowers(0..6000));
    let start = std::time::Instant::now();
    let parts = [
        "6000 rows",
        "150.0 MB",
        "--method mp --block-size",
        "--memory",
    ];
    folder.fails(
        "train d.csv --method exact --memory 150M --model m",
        1,
        &parts,
    );
    folder.fails(
        "train d.csv --memory 50M --model m",
        1,
        &["50.0 MB", "--memory"],
    );
    assert!(start.elapsed().as_secs() < 10);
    // What the message advises works.
    let output = folder.command("train d.csv --method exact --memory 150M");
    let text = Written::new(&{ output }.output().unwrap()).stderr;
    let advice = text
        .split("use ")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    folder.run(&format!(
        "train d.csv --memory 150M --model m --iterations 1 {advice}"
    ));
    // Reading is within the budget too.
    folder.fails(
        "train d.csv --memory 10k --model m",
        1,
        &["d.csv", "10.0 kB"],
    );
    folder.fails("tune d.csv --memory 10k", 1, &["d.csv", "10.0 kB"]);
}

#[test]
fn places_that_cannot_be_written() {
    let folder = Folder::with_flowers();
    let parts = ["no/m", "does not exist", "mkdir"];
    folder.fails("train . --model no/m", 1, &parts);
    folder.fails("train . --model .", 1, &["is a folder", "give the name"]);
    // Told before the training, not after it.
    let parts = ["no/r.json", "does not exist", "mkdir"];
    folder.fails("train . --model m --json no/r.json", 1, &parts);
    folder.run("train . --model m");
    folder.fails("evaluate m . --json no/r.json", 1, &parts);
    folder.fails("predict m . --output .", 1, &["is a folder"]);
}

#[test]
fn files_that_are_no_model() {
    let folder = Folder::with_flowers();
    folder.run("train . --model m");
    let model = std::fs::read(folder.path("m")).unwrap();

    let mut damaged = model.clone();
    *damaged.last_mut().unwrap() ^= 0x10;
    folder.write("damaged", damaged);
    folder.write("cut", &model[..model.len() - 100]);
    folder.write("head", &model[..100]);
    folder.write("empty", "");
    let version = br#"format_version\":1"#;
    let at = model.windows(version.len()).position(|w| w == version);
    let mut newer = model.clone();
    newer[at.unwrap() + version.len() - 1] = b'9';
    folder.write("newer", newer);
    for (name, parts) in [
        ("damaged", &["damaged", "checksum", "copy it again"][..]),
        ("cut", &["cut", "copy it again"]),
        ("head", &["head", "copy it again"]),
        ("empty", &["empty", "copy it again"]),
        ("newer", &["newer version", "format 9", "upgrade"]),
        ("train.csv", &["train.csv", "not a model", "give a file"]),
        ("none", &["none", "No such file"]),
        (".", &["is a folder", "give the model"]),
    ] {
        folder.fails(&format!("predict {name} test.csv"), 1, parts);
        folder.fails(&format!("evaluate {name} test.csv"), 1, parts);
        folder.fails(&format!("inspect {name}"), 1, parts);
        folder.fails(&format!("inspect {name} --config"), 1, parts);
    }
    folder.fails(
        "predict m none.csv",
        1,
        &["none.csv", "no such file", "check"],
    );
    folder.fails("predict m test.csv --threads 0", 2, &["threads = 0"]);
    folder.fails("evaluate m test.csv --threads 0", 2, &["threads = 0"]);
}

#[test]
fn an_old_model_survives_a_failure() {
    let folder = Folder::with_flowers();
    folder.run("train . --model m");
    let before = std::fs::read(folder.path("m")).unwrap();
    folder.fails("train . --model m -c 0", 2, &["c = 0"]);
    assert_eq!(std::fs::read(folder.path("m")).unwrap(), before);
}

#[test]
fn two_results_do_not_go_to_one_file() {
    let folder = Folder::with_flowers();
    std::fs::create_dir(folder.path("sub")).unwrap();
    for (outputs, parts) in [
        ("--json r.json --report r.html", ["report = r.json", "json"]),
        (
            "--json r.json --report ./sub/../r.html",
            ["report = ", "json"],
        ),
        ("--report x.json", ["report = x.json", ".html"]),
        ("--model m --json m", ["json = m", "model"]),
        (
            "--model r.html --report r.html",
            ["report = r.html", "model"],
        ),
        (
            "--model r.json --report r.html",
            ["report = r.json", "model"],
        ),
    ] {
        folder.fails(&format!("train . {outputs}"), 2, &parts);
    }
    folder.fails(
        "tune . --json best.toml",
        2,
        &["json = best.toml", "output"],
    );
    folder.run("train . --model m --json a.json --report r.html");
    assert!(exists(&folder.path("r.json")) && exists(&folder.path("a.json")));
}
