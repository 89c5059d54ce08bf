//! Tests of the room as a whole: what is written is read back, and nothing
//! that a file holds makes a reader panic.

use std::fmt::Write;

use proptest::prelude::*;

use super::cifar::tests::batch;
use super::idx::tests::idx;
use super::npy::tests::npy;
use super::npz::tests::npz;
use super::*;

fn read_bytes(bytes: &[u8], options: &ReadOptions) -> Result<Dataset<f64>> {
    parse(Path::new("d"), bytes.to_vec(), options).map(|parts| parts.train)
}

fn message(bytes: &[u8]) -> String {
    read_bytes(bytes, &ReadOptions::default())
        .unwrap_err()
        .to_string()
}

#[test]
fn files_without_data_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d");
    let read = |path: &Path| {
        read::<f32>(path, &ReadOptions::default())
            .unwrap_err()
            .to_string()
    };
    assert!(read(&path).ends_with("no such file or folder; check the path"));
    std::fs::write(&path, b"").unwrap();
    assert!(read(&path).ends_with("the file is empty; check how it was written"));
    assert!(message(b"\x00\x01\x02").contains("the format is not known"));
}

#[test]
fn a_file_that_does_not_fit_the_model_is_refused() {
    let model = ReadOptions {
        n_features: Some(5),
        ..Default::default()
    };
    for bytes in [
        idx(&[1, 2], &[1, 2]),
        npy("|u1", false, "(1, 2)", &[1, 2]),
        batch(&[(1, 2)]),
    ] {
        let message = read_bytes(&bytes, &model).unwrap_err().to_string();
        assert!(
            message.contains("features, and the model needs 5"),
            "{message}"
        );
    }
}

#[test]
fn label_columns_are_refused_where_there_are_none() {
    let options = ReadOptions {
        labels: Some(vec![Column::Index(1)]),
        ..Default::default()
    };
    let message = read_bytes(b"1 1:1\n", &options).unwrap_err().to_string();
    assert!(
        message.contains("the format libsvm has its labels in their own place"),
        "{message}"
    );
}

#[test]
fn a_format_can_be_forced() {
    let options = ReadOptions {
        format: Some(Format::Idx),
        ..Default::default()
    };
    let message = read_bytes(b"1,2\n", &options).unwrap_err().to_string();
    assert!(message.contains("this is not an IDX file"), "{message}");
}

#[test]
fn archives_are_read_from_files_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.npz");
    let x = npy("<f4", true, "(1, 2)", &[0, 0, 128, 63, 0, 0, 0, 64]);
    std::fs::write(&path, npz(&[("x", x)])).unwrap();
    let parts = read::<f32>(&path, &ReadOptions::default()).unwrap();
    assert_eq!(parts.train.features.row(0), [1.0, 2.0]);
}

#[test]
fn heads_and_splits_keep_rows_and_labels_together() {
    let text: String = (0..20).map(|i| format!("{i},{}\n", i % 4)).collect();
    let data = read_bytes(text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(data.head(3).n_samples(), 3);
    assert_eq!(data.head(99).n_samples(), 20);
    let (first, second) = data.split(0.25, 7).unwrap();
    assert_eq!((first.n_samples(), second.n_samples()), (15, 5));
    for part in [&first, &second] {
        let labels = part.labels.as_ref().unwrap().values(1).unwrap();
        assert!((0..part.n_samples()).all(|i| part.features.get(i, 0) % 4.0 == labels.get(i, 0)));
    }
    let mut all = [first.features.values(), second.features.values()].concat();
    all.sort_by(f64::total_cmp);
    assert_eq!(all, data.features.values());
    assert_eq!(data.split(0.25, 7).unwrap().1.features, second.features);
    assert_ne!(data.split(0.25, 8).unwrap().1.features, second.features);
    assert!(
        data.split(1.0, 7)
            .unwrap_err()
            .to_string()
            .contains("between 0 and 1")
    );
    assert!(
        data.split(0.01, 7)
            .unwrap_err()
            .to_string()
            .contains("would be empty")
    );
}

/// A matrix of any finite numbers, small in size, with labels.
fn samples() -> impl Strategy<Value = (Matrix<f64>, Vec<i8>)> {
    let number = any::<f64>().prop_filter("finite", |v| v.is_finite());
    (1usize..6, 1usize..5).prop_flat_map(move |(rows, cols)| {
        let values = prop::collection::vec(number.clone(), rows * cols);
        let labels = prop::collection::vec(any::<i8>(), rows);
        (values, labels).prop_map(move |(v, labels)| (Matrix::from_vec(rows, cols, v), labels))
    })
}

/// Valid files of every format.
fn valid() -> Vec<Vec<u8>> {
    let square = npy("<f4", true, "(2, 2)", &[0; 16]);
    vec![
        idx(&[2, 2, 2], &[1; 8]),
        idx(&[2], &[1; 2]),
        npy(">i2", false, "(2, 3)", &[0; 12]),
        store::tests::sample(),
        npz(&[("x_train", square.clone()), ("y_train", npy("|b1", false, "(2,)", &[0, 1])), ("x_test", square.clone())]),
        npz(&[("x", square.clone()), ("y", npy("<U1", false, "(2,)", b"a\0\0\0b\0\0\0"))]),
        npz(&[("x", square), ("y", npy("|S2", false, "(2,)", b"a\0bc"))]),
        b"+1 1:0.5 3:-2 # note\n-1 qid:1 2:1\n".to_vec(),
        b"a,b,label\n1,2,x\n\"3\",4e-1,y\n".to_vec(),
        b"1 2 3\n4 5 6\n".to_vec(),
        b"1;2;3\n4;5;6\n".to_vec(),
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x033\xd41\xe2\x02\x00\xb0\xb7\x1c\x9a\x04\x00\x00\x00".to_vec(),
    ]
}

/// Options that take different paths through the readers.
fn option_sets() -> Vec<ReadOptions> {
    let small = ReadOptions {
        max_bytes: Some(1 << 20),
        ..Default::default()
    };
    let mut sets = vec![
        ReadOptions {
            n_features: Some(2),
            feature_names: Some(vec!["b".into(), "a".into()]),
            ..small.clone()
        },
        ReadOptions {
            labels: Some(vec![Column::Index(-1), Column::Index(1)]),
            max_rows: Some(1),
            ..small.clone()
        },
        small.clone(),
    ];
    for format in ["idx", "cifar10", "libsvm", "csv", "npy", "npz", "lssvm"] {
        sets.push(ReadOptions {
            format: Some(format.parse().unwrap()),
            ..small.clone()
        });
    }
    sets
}

fn try_all(bytes: &[u8]) {
    for options in option_sets() {
        if let Ok(data) = read_bytes(bytes, &options) {
            assert!(data.features.values().iter().all(|v| v.is_finite()));
            assert!(
                data.labels
                    .is_none_or(|labels| labels.len() == data.features.rows())
            );
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        try_all(&bytes);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a-c:;,\"# \t\n.+e-]{0,120}") {
        try_all(text.as_bytes());
    }

    #[test]
    fn damaged_files_are_read_or_refused(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        length in any::<prop::sample::Index>(),
    ) {
        let mut files = valid();
        let mut file = files.swap_remove(which.index(files.len()));
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        try_all(&file);
        file.truncate(length.index(file.len()) + 1);
        try_all(&file);
    }

    #[test]
    fn tables_are_read_as_written((features, labels) in samples()) {
        let mut text = String::new();
        for (i, label) in labels.iter().enumerate() {
            for v in features.row(i) {
                write!(text, "{v:?},").unwrap();
            }
            writeln!(text, "{label}").unwrap();
        }
        let data = read_bytes(text.as_bytes(), &ReadOptions::default()).unwrap();
        prop_assert_eq!(data.features, features);
        let expected: Vec<f64> = labels.iter().map(|&v| f64::from(v)).collect();
        let labels = data.labels.unwrap();
        prop_assert_eq!(labels.values(1).unwrap().values(), expected);
    }

    #[test]
    fn sparse_text_is_read_as_written((features, labels) in samples()) {
        let mut text = String::new();
        for (i, label) in labels.iter().enumerate() {
            write!(text, "{label}").unwrap();
            for (j, v) in features.row(i).iter().enumerate().filter(|(_, v)| **v != 0.0) {
                write!(text, " {}:{v:?}", j + 1).unwrap();
            }
            text.push('\n');
        }
        let options = ReadOptions {
            format: Some(Format::Libsvm),
            n_features: Some(features.cols()),
            ..Default::default()
        };
        let data = read_bytes(text.as_bytes(), &options).unwrap();
        prop_assert_eq!(data.features, features);
    }

    #[test]
    fn arrays_are_read_as_written((features, _) in samples(), fortran in any::<bool>(), big in any::<bool>()) {
        let (rows, cols) = (features.rows(), features.cols());
        let order: Vec<(usize, usize)> = if fortran {
            (0..cols).flat_map(|j| (0..rows).map(move |i| (i, j))).collect()
        } else {
            (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))).collect()
        };
        let values = order.iter().map(|&(i, j)| features.get(i, j));
        let bytes: Vec<u8> =
            values.flat_map(|v| if big { v.to_be_bytes() } else { v.to_le_bytes() }).collect();
        let file = npy(if big { ">f8" } else { "<f8" }, fortran, &format!("({rows}, {cols})"), &bytes);
        prop_assert_eq!(read_bytes(&file, &ReadOptions::default()).unwrap().features, features);
    }
}
