//! `lssvm convert`: what it makes is data like any other.

use std::fs;

use crate::common::*;

#[test]
fn a_converted_table_is_the_table() {
    let folder = Folder::with_flowers();
    let train = "--label species --method exact --test";
    folder.run("convert train.csv train.data --label species");
    let written = folder.run("convert test.csv test.data --label species");
    assert!(written.stdout.contains("60 rows of"), "{}", written.stdout);
    folder.run(&format!("train train.csv {train} test.csv --model a"));
    folder.run("train train.data --method exact --test test.data --model b");
    let tables = folder
        .run("predict a test.csv --scores --label species")
        .stdout;
    for (model, data) in [("a", "test.data"), ("b", "test.data"), ("b", "test.csv")] {
        let label = if data.ends_with("csv") {
            "--label species"
        } else {
            ""
        };
        let found = folder.run(&format!("predict {model} {data} --scores {label}"));
        assert_eq!(found.stdout, tables, "{model} {data}");
    }
    // The time is another.
    let result = |said: String| {
        said.lines()
            .find(|l| l.contains("result"))
            .map(str::to_string)
    };
    let evaluated = result(folder.run("evaluate a test.csv --label species").stdout);
    assert!(evaluated.is_some());
    assert_eq!(result(folder.run("evaluate a test.data").stdout), evaluated);
}

#[test]
fn a_folder_with_two_parts_becomes_one() {
    let folder = Folder::new();
    folder.write("in/train", "+1 1:0.5 3:2\n-1 2:1\n+1 1:3\n");
    folder.write("in/test", "+1 5:0.5\n");
    let written = folder.run("convert in out");
    assert!(
        written.stdout.contains("3 rows of 5 features"),
        "{}",
        written.stdout
    );
    assert!(
        written.stdout.contains("1 rows of 5 features"),
        "{}",
        written.stdout
    );
    let names: Vec<_> = fs::read_dir(folder.path("out")).unwrap().collect();
    assert_eq!(names.len(), 2);
    let planned = |data: &str| {
        let said = folder.run(&format!("plan {data}")).stdout;
        said.lines().next().map(str::to_string)
    };
    assert!(
        planned("in")
            .unwrap()
            .contains("3 rows, 5 features, 2 outputs")
    );
    assert_eq!(planned("out"), planned("in"));
}

#[test]
fn bytes_stay_bytes() {
    let folder = Folder::new();
    let rows: String = (0..1000)
        .map(|i| format!("{},{},a\n", i % 256, i % 7))
        .collect();
    folder.write("d.csv", rows.clone());
    folder.run("convert d.csv bytes");
    folder.write("d.csv", rows + "0.5,1,a\n");
    folder.run("convert d.csv f32");
    folder.run("convert d.csv f64 --precision f64");
    let size = |name: &str| fs::metadata(folder.path(name)).unwrap().len();
    assert!((5900..6200).contains(&(size("f32") - size("bytes"))));
    assert!((7900..8100).contains(&(size("f64") - size("f32"))));
}

#[test]
fn what_is_wrong_is_named() {
    let folder = Folder::with_flowers();
    folder.write("bad.csv", "a,b\n1,x\n2,y\nz,y\n");
    folder.fails(
        "convert bad.csv out",
        1,
        &["bad.csv, line 4, column 1", "'z'"],
    );
    folder.fails("convert none.csv out", 1, &["none.csv: no such file"]);
    folder.fails("convert train.csv no/out --label species", 1, &["mkdir -p"]);
    folder.run("convert train.csv train.data --label species");
    let mut bytes = fs::read(folder.path("train.data")).unwrap();
    bytes[5000] ^= 1;
    folder.write("damaged", &bytes);
    folder.fails("train damaged", 1, &["damaged", "checksum"]);
    folder.write("short", &bytes[..bytes.len() - 10]);
    folder.fails("train short", 1, &["short", "cut short"]);
    folder.fails(
        "train train.data --label species",
        1,
        &["format lssvm has its labels"],
    );
    folder.run("train train.data --method exact --model m");
    folder.fails("predict m m", 1, &["is a model of lssvm, not data"]);
    folder.fails("inspect train.data", 1, &["not a model of lssvm"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_nothing() {
    use std::process::{Command, Stdio};
    use std::time::Duration;
    let folder = Folder::new();
    let line = "0.123456,0.234567,0.345678,0.456789,0.567891,0.678912,a\n";
    folder.write("long.csv", line.repeat(4_000_000));
    let before = folder.names();
    let mut command = folder.command("convert long.csv out");
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    // It has begun when its temporary file is there.
    while folder.names() == before {
        std::thread::sleep(Duration::from_millis(5));
    }
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = Written::new(&output).stderr;
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("interrupted; nothing was written"), "{said}");
    assert_eq!(folder.names(), before);
}
