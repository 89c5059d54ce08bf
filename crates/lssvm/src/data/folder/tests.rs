//! Tests of folders; apart, to keep the file they test short.

use std::fs;

use super::*;
use crate::data::cifar::tests::batch;
use crate::data::idx::tests::idx;
use crate::data::read as read_path;
use crate::data::{Dataset, Parts, Targets, Task};

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(dir.path().join(name), content).unwrap();
    }
    dir
}

fn read(dir: &tempfile::TempDir) -> Result<Parts<f32>> {
    read_path(dir.path(), &ReadOptions::default())
}

fn message(dir: &tempfile::TempDir) -> String {
    read(dir).unwrap_err().to_string()
}

#[test]
fn mnist_is_known_by_its_names() {
    let images = idx(&[2, 2, 1], &[1, 2, 3, 4]);
    let labels = idx(&[2], &[5, 0]);
    let dir = folder(&[
        ("train-images-idx3-ubyte", &images),
        ("train-labels-idx1-ubyte", &labels),
    ]);
    let parts = read(&dir).unwrap();
    assert!(parts.test.is_none());
    fs::write(
        dir.path().join("t10k-images.idx3-ubyte"),
        idx(&[1, 2, 1], &[9, 8]),
    )
    .unwrap();
    assert!(message(&dir).contains("t10k-images.idx3-ubyte: there are no labels beside"));
    fs::write(dir.path().join("t10k-labels.idx1-ubyte"), idx(&[1], &[5])).unwrap();
    let test = read(&dir).unwrap().test.unwrap();
    assert_eq!(test.features.row(0), [9.0, 8.0]);
    fs::remove_file(dir.path().join("train-images-idx3-ubyte")).unwrap();
    assert!(
        message(&dir).contains("train-labels-idx1-ubyte: there are no images for these labels")
    );
    fs::remove_file(dir.path().join("train-labels-idx1-ubyte")).unwrap();
    assert!(message(&dir).contains("there is no training part"));
}

#[test]
fn cifar_is_known_by_its_names() {
    let files: Vec<Vec<u8>> = (0..6).map(|i| batch(&[(i, i + 100)])).collect();
    let dir = folder(&[("data_batch_1.bin", &files[0])]);
    assert!(message(&dir).contains("data_batch_2.bin, data_batch_3.bin"));
    for (name, file) in BATCHES.iter().zip(&files) {
        fs::write(dir.path().join(name), file).unwrap();
    }
    fs::write(dir.path().join(TEST_BATCH), &files[5]).unwrap();
    let parts = read(&dir).unwrap();
    assert_eq!(parts.train.features.rows(), 5);
    assert_eq!(parts.train.features.get(4, 0), 104.0);
    let names = |data: Dataset<f32>| match data.labels.unwrap().resolve(Task::Auto) {
        Ok(Targets::Classes { names, .. }) => names,
        other => panic!("{other:?}"),
    };
    assert_eq!(names(parts.test.unwrap()), ["dog"]);
    assert_eq!(
        names(parts.train),
        ["airplane", "automobile", "bird", "cat", "deer"]
    );
    let meta = ('a'..='j')
        .map(|name| format!("{name}\n"))
        .collect::<String>()
        + "\n";
    fs::write(dir.path().join("batches.meta.txt"), meta).unwrap();
    assert_eq!(names(read(&dir).unwrap().train), ["a", "b", "c", "d", "e"]);
    let options = ReadOptions {
        max_rows: Some(3),
        ..Default::default()
    };
    let parts = read_path::<f32>(dir.path(), &options).unwrap();
    assert_eq!(parts.train.features.rows(), 3);

    let outer = tempfile::tempdir().unwrap();
    fs::rename(dir.path(), outer.path().join(CIFAR_FOLDER)).unwrap();
    assert_eq!(read(&outer).unwrap().train.features.rows(), 5);
}

#[test]
fn tables_for_training_and_test_share_their_features() {
    let dir = folder(&[
        ("train.csv", b"a,b,y\n1,2,0\n3,4,1\n"),
        ("test.csv", b"b,a\n6,5\n"),
    ]);
    let parts = read(&dir).unwrap();
    assert_eq!(parts.train.features.rows(), 2);
    let test = parts.test.unwrap();
    assert_eq!(test.features.row(0), [5.0, 6.0]);
    assert!(test.labels.is_none());
    fs::write(dir.path().join("test.csv"), b"b,c\n6,5\n").unwrap();
    assert!(message(&dir).contains("test.csv: there is no column 'a' among b, c"));
    fs::write(dir.path().join("train.tsv"), b"1\t2\n").unwrap();
    assert!(message(&dir).contains("both train.csv and train.tsv could be meant"));
}

#[test]
fn sparse_files_for_training_and_test_share_their_width() {
    let dir = folder(&[("train", b"1 1:1\n"), ("test.txt", b"1 0:2 4:1\n")]);
    let parts = read(&dir).unwrap();
    assert_eq!(parts.train.features.row(0), [0.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(parts.test.unwrap().index_base, Some(0));
}

#[test]
fn a_folder_without_data_says_what_was_sought() {
    let dir = folder(&[("readme.md", b"hello")]);
    let message = message(&dir);
    for sought in ["train-images-idx3-ubyte", "data_batch_1.bin", "train.*"] {
        assert!(message.contains(sought), "{message}");
    }
}
