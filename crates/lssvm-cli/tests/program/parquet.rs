//! Parquet and Arrow files: data like any other for a program that is built with the feature
//! `parquet`, and a clear word from one that is not.

use std::path::PathBuf;

use crate::common::Folder;

/// The same rows as CSV, and by pandas and polars.
fn flowers(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../lssvm/tests/columnar");
    PathBuf::from(folder).join(name)
}

/// A folder with these files.
fn folder(names: &[&str]) -> Folder {
    let folder = Folder::new();
    for name in names {
        folder.write(name, std::fs::read(flowers(name)).unwrap());
    }
    folder
}

#[cfg(feature = "parquet")]
mod with {
    use super::*;

    const CSV: &str = "flowers.csv";
    const FILES: [&str; 3] = [
        "flowers.zstd.parquet",
        "flowers.polars.parquet",
        "flowers.feather",
    ];

    #[test]
    fn models_are_those_of_the_table() {
        let folder = folder(&[&[CSV], &FILES[..]].concat());
        let scores = |name: &str| {
            folder.run(&format!("train {name} --method exact --model {name}.model"));
            folder
                .run(&format!("predict {name}.model {CSV} --scores"))
                .stdout
        };
        let expected = scores(CSV);
        assert_eq!(expected.lines().count(), 61);
        for name in FILES {
            assert_eq!(scores(name), expected, "{name}");
            let found = folder.run(&format!("predict {CSV}.model {name} --scores"));
            assert_eq!(found.stdout, expected, "{name}");
        }
    }

    #[test]
    fn a_converted_file_is_the_file() {
        let folder = folder(&[&[CSV], &FILES[..]].concat());
        folder.run(&format!("train {CSV} --method exact --model m"));
        let expected = folder.run(&format!("predict m {CSV} --scores")).stdout;
        for name in FILES {
            let written = folder
                .run(&format!("convert {name} data --label species"))
                .stdout;
            assert!(written.contains("60 rows of"), "{written}");
            assert_eq!(
                folder.run("predict m data --scores").stdout,
                expected,
                "{name}"
            );
            std::fs::remove_file(folder.path("data")).unwrap();
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        let folder = folder(&FILES);
        let cut = std::fs::read(flowers(FILES[0])).unwrap();
        folder.write("cut.parquet", &cut[..cut.len() - 9]);
        folder.fails(
            "train cut.parquet --model m",
            1,
            &["cut.parquet", "cut off"],
        );
        let line = format!("train {} --label colour --model m", FILES[2]);
        folder.fails(
            &line,
            1,
            &["there is no column 'colour' among length, width"],
        );
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn the_feature_is_named() {
    let names = ["flowers.polars.parquet", "flowers.feather"];
    let folder = folder(&names);
    for name in names {
        let parts = [name, "`cargo build --release --features parquet`"];
        folder.fails(&format!("train {name} --model m"), 1, &parts);
        folder.fails(&format!("convert {name} out"), 1, &parts);
    }
}
