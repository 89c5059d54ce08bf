//! Tests that what is opened is what is read, for every format.

use std::fs;

use super::cifar::tests::batch;
use super::idx::tests::idx;
use super::npy::tests::npy;
use super::npz::tests::npz;
use super::*;

/// Bytes that are neither sorted nor all different.
pub(super) fn noise(n: usize) -> Vec<u8> {
    (0..n as u64).map(|i| (i * i % 251) as u8).collect()
}

fn numbers<const N: usize>(n: usize, bytes: impl Fn(f64) -> [u8; N]) -> Vec<u8> {
    (0..n)
        .flat_map(|i| bytes((i as f64 * 0.37).sin() * 1e3))
        .collect()
}

/// Folders with data of each format, and which file or folder to give.
pub(super) fn folders() -> Vec<(tempfile::TempDir, &'static str)> {
    let labels = npy(
        "<U3",
        false,
        "(3,)",
        &[[b'a', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]; 3].concat(),
    );
    type Files = Vec<(&'static str, Vec<u8>)>;
    let cases: Vec<(&str, Files)> = vec![
        (
            "X.npy",
            vec![
                (
                    "X.npy",
                    npy(
                        "<f4",
                        false,
                        "(3, 5)",
                        &numbers(15, |v| (v as f32).to_le_bytes()),
                    ),
                ),
                ("y.npy", labels),
            ],
        ),
        (
            "d.npy",
            vec![(
                "d.npy",
                npy("<f8", false, "(3, 5)", &numbers(15, f64::to_le_bytes)),
            )],
        ),
        (
            "d.npy",
            vec![(
                "d.npy",
                npy(">f8", true, "(3, 5)", &numbers(15, f64::to_be_bytes)),
            )],
        ),
        (
            "d.npy",
            vec![(
                "d.npy",
                npy(
                    "<i2",
                    false,
                    "(3, 5)",
                    &numbers(15, |v| (v as i16).to_le_bytes()),
                ),
            )],
        ),
        (
            "d.npy",
            vec![(
                "d.npy",
                npy(
                    "<u8",
                    false,
                    "(3, 2)",
                    &numbers(6, |v| (v.abs() as u64 * 7).to_le_bytes()),
                ),
            )],
        ),
        (
            "d.npy",
            vec![("d.npy", npy("|b1", false, "(4, 2)", &noise(8)))],
        ),
        (
            "d.npy",
            vec![("d.npy", npy("|u1", false, "(3, 4, 4, 3)", &noise(144)))],
        ),
        (
            "d-images-idx3-ubyte",
            vec![
                ("d-images-idx3-ubyte", idx(&[4, 2, 3], &noise(24))),
                ("d-labels-idx1-ubyte", idx(&[4], &noise(4))),
            ],
        ),
        (
            "",
            vec![
                ("train-images-idx3-ubyte", idx(&[4, 2, 3], &noise(24))),
                ("train-labels-idx1-ubyte", idx(&[4], &noise(4))),
                ("t10k-images-idx3-ubyte", idx(&[2, 2, 3], &noise(12))),
                ("t10k-labels-idx1-ubyte", idx(&[2], &noise(2))),
            ],
        ),
        (
            "",
            vec![
                ("data_batch_1.bin", batch(&[(1, 2), (3, 4)])),
                ("data_batch_2.bin", batch(&[(5, 6)])),
                ("data_batch_3.bin", batch(&[(7, 8)])),
                ("data_batch_4.bin", batch(&[(9, 10), (0, 11)])),
                ("data_batch_5.bin", batch(&[(2, 12)])),
                ("test_batch.bin", batch(&[(3, 13)])),
            ],
        ),
        ("b.bin", vec![("b.bin", batch(&[(1, 2), (3, 4)]))]),
        (
            "",
            vec![
                (
                    "train.npy",
                    npy(
                        "<f4",
                        false,
                        "(3, 2)",
                        &numbers(6, |v| (v as f32).to_le_bytes()),
                    ),
                ),
                (
                    "test.npy",
                    npy("<f8", false, "(2, 3)", &numbers(6, f64::to_le_bytes)),
                ),
            ],
        ),
        (
            "d.npz",
            vec![(
                "d.npz",
                npz(&[(
                    "x",
                    npy("<f8", false, "(3, 2)", &numbers(6, f64::to_le_bytes)),
                )]),
            )],
        ),
        (
            "d.csv",
            vec![("d.csv", b"a,b,label\n1,2,x\n3,0.1,y\n".to_vec())],
        ),
        (
            "",
            vec![
                ("train", b"+1 1:0.1 3:2\n-1 2:7\n".to_vec()),
                ("test", b"+1 5:0.1\n".to_vec()),
            ],
        ),
    ];
    let write = |(name, files): (&'static str, Files)| {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(dir.path().join(name), content).unwrap();
        }
        (dir, name)
    };
    cases.into_iter().map(write).collect()
}

fn compare<T: Scalar>(path: &Path, options: &ReadOptions) {
    let expected = read::<T>(path, options).unwrap();
    let found = open::<T>(path, options).unwrap();
    assert_eq!(expected.test.is_some(), found.test.is_some());
    let tests = expected.test.into_iter().zip(found.test);
    for (expected, found) in std::iter::once((expected.train, found.train)).chain(tests) {
        let backwards: Vec<usize> = (0..expected.n_samples()).rev().collect();
        let picked = found.features.picked(&backwards).unwrap();
        assert_eq!(picked, expected.features.select_rows(&backwards));
        let again = found.select(&backwards).select(&backwards);
        let again = again.load().unwrap();
        let all = found.load().unwrap();
        assert_eq!(format!("{again:?}"), format!("{expected:?}"));
        assert_eq!(format!("{all:?}"), format!("{expected:?}"));
        // A matrix is shown by its shape only if it is large.
        assert_eq!(all.features, expected.features);
    }
}

#[test]
fn what_is_opened_is_what_is_read() {
    for (dir, name) in folders() {
        let path = dir.path().join(name);
        for max_rows in [None, Some(2)] {
            let options = ReadOptions {
                max_rows,
                ..Default::default()
            };
            compare::<f32>(&path, &options);
            compare::<f64>(&path, &options);
        }
    }
}

#[test]
fn what_is_read_from_files_is_what_is_parsed() {
    for (dir, name) in folders().into_iter().filter(|(_, name)| !name.is_empty()) {
        let path = dir.path().join(name);
        let options = ReadOptions {
            no_labels: true,
            ..Default::default()
        };
        if name.ends_with("csv") {
            continue;
        }
        let read = read::<f64>(&path, &options).unwrap().train;
        let parsed = parse::<f64>(&path, fs::read(&path).unwrap(), &options).unwrap();
        assert_eq!(read.features, parsed.train.features, "{name}");
    }
}

#[test]
fn label_columns_are_no_features() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.npy");
    for (descr, fortran) in [("<f8", false), ("<f8", true)] {
        let file = npy(descr, fortran, "(50, 4)", &numbers(200, f64::to_le_bytes));
        fs::write(&path, file).unwrap();
        let options = ReadOptions {
            labels: Some(vec![Column::Index(-1), Column::Index(2)]),
            ..Default::default()
        };
        compare::<f32>(&path, &options);
        let all = read::<f64>(&path, &ReadOptions::default()).unwrap().train;
        let data = open::<f32>(&path, &options).unwrap().train;
        let labels = data.labels.as_ref().unwrap().values(2).unwrap().clone();
        let features = data.load().unwrap().features;
        for i in 0..50 {
            let row = all.features.row(i);
            assert_eq!(features.row(i), [row[0] as f32, row[2] as f32]);
            // As exact as the file has them, whatever the features are.
            assert_eq!(labels.row(i), [row[3], row[1]]);
        }
    }
}

#[test]
fn features_on_disk_need_no_memory() {
    for (dir, name) in folders() {
        let path = dir.path().join(name);
        let options = ReadOptions {
            max_bytes: Some(1),
            ..Default::default()
        };
        let on_disk = path.extension().is_none_or(|e| e == "npy" || e == "bin");
        let scattered = fs::read(&path)
            .is_ok_and(|file| String::from_utf8_lossy(&file).contains("'fortran_order': True"));
        let text = path.join("train").is_file();
        match open::<f32>(&path, &options) {
            Ok(_) => assert!(on_disk && !scattered && !text, "{}", path.display()),
            Err(error) => {
                assert!(!on_disk || scattered || text, "{error}");
                assert!(error.to_string().contains("lssvm convert"), "{error}");
            }
        }
    }
}

#[test]
fn streams_are_split_as_data_sets_are() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.npy");
    fs::write(&path, npy("|u1", false, "(60, 2)", &noise(120))).unwrap();
    let options = ReadOptions {
        labels: Some(vec![Column::Index(1)]),
        ..Default::default()
    };
    let data = read::<f32>(&path, &options).unwrap().train;
    let stream = open::<f32>(&path, &options).unwrap().train;
    let same = |stream: Stream<f32>, data: &Dataset<f32>| {
        assert_eq!(format!("{:?}", stream.load().unwrap()), format!("{data:?}"));
    };
    same(stream.head(7), &data.head(7));
    same(stream.head(99), &data);
    let codes: Vec<u32> = (0..60).map(|i| i % 3).collect();
    let (a, b) = stream.split(0.3, 5).unwrap();
    let (c, d) = data.split(0.3, 5).unwrap();
    same(a, &c);
    same(b, &d);
    let (a, b) = stream.split_classes(0.3, 5, &codes).unwrap();
    let (c, d) = data.split_classes(0.3, 5, &codes).unwrap();
    same(a, &c);
    same(b, &d);
}

#[test]
fn a_file_that_shrinks_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.npy");
    let file = npy("|u1", false, "(60, 2)", &noise(120));
    fs::write(&path, &file).unwrap();
    let stream = open::<f32>(&path, &ReadOptions::default()).unwrap().train;
    fs::write(&path, &file[..file.len() - 30]).unwrap();
    assert!(stream.features.matrix(0..40).is_ok());
    let message = stream.load().unwrap_err().to_string();
    assert!(
        message.contains("now has fewer; leave it alone"),
        "{message}"
    );
}
