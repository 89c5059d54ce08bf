//! Every input that fuzzing kept, and every one that it begins with, goes through what the fuzz
//! targets do. They are in `fuzz/`, which needs a nightly compiler; here the same functions run in
//! the ordinary tests.

#[path = "../../../fuzz/src/lib.rs"]
mod fuzz;

use std::path::{Path, PathBuf};

use fuzz::seal::{self, Kind};
use fuzz::seeds;
use lssvm::data::{ReadOptions, parse};
use lssvm::model::AnyModel;

type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 7] = [
    ("data", fuzz::data),
    ("open", fuzz::open),
    ("convert", fuzz::convert),
    ("model", fuzz::model),
    ("checkpoint", fuzz::checkpoint),
    ("request", fuzz::request),
    ("options", fuzz::options),
];

/// Where the inputs of a target are kept.
fn corpus(target: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("fuzz/corpus").join(target)
}

/// The inputs of a target, with their names.
fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = corpus(target);
    let files = folder.read_dir();
    let files = files.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let read = |path: PathBuf| (path.display().to_string(), std::fs::read(&path).unwrap());
    let kept = files.map(|file| read(file.unwrap().path()));
    seeds::of(target).into_iter().chain(kept).collect()
}

/// Gives all inputs of a target to its function. A panic is told with the name of the input.
fn replay(at: usize) {
    let (target, run) = TARGETS[at];
    let inputs = inputs(target);
    assert!(inputs.len() > seeds::of(target).len(), "nothing is kept");
    for (name, input) in inputs {
        if std::panic::catch_unwind(|| run(&input)).is_err() {
            panic!("{name} makes the target {target} panic");
        }
    }
}

#[test]
fn files_in_memory() {
    replay(0);
}

#[test]
fn files_on_disk() {
    replay(1);
}

#[test]
fn converted_files() {
    replay(2);
}

#[test]
fn models() {
    replay(3);
}

#[test]
fn checkpoints() {
    replay(4);
}

#[test]
fn requests() {
    replay(5);
}

#[test]
fn settings() {
    replay(6);
}

/// What the targets make of a header and bytes gets past every checksum; else they would look at
/// nothing but the door.
#[test]
fn what_is_sealed_is_accepted() {
    for (name, input) in seeds::of("model") {
        AnyModel::from_bytes(&seal::container(&input, Kind::Model))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let files = seeds::of("data");
    let stored = files.iter().filter(|(name, _)| name.starts_with("lssvm"));
    assert_eq!(stored.clone().count(), 5);
    for (name, input) in stored {
        let file = seal::container(&input[3..], Kind::Data);
        parse::<f32>(name.as_ref(), file, &ReadOptions::default()).unwrap();
    }
    let archives = files.iter().filter(|(name, _)| name.starts_with("npz"));
    assert_eq!(archives.clone().count(), 2);
    for (name, input) in archives {
        let file = seal::archive(&input[3..]);
        parse::<f32>(name.as_ref(), file, &ReadOptions::default()).unwrap();
    }
    for (name, input) in seeds::of("checkpoint") {
        fuzz::checkpoint::goes_on(&input).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// `cargo test -p lssvm-cli --test fuzz_corpus -- --ignored` writes what fuzzing begins with.
#[test]
#[ignore = "writes to the folder of the inputs"]
fn write_seeds() {
    for (target, _) in TARGETS {
        std::fs::create_dir_all(corpus(target)).unwrap();
        for (name, input) in seeds::of(target) {
            std::fs::write(corpus(target).join(name), input).unwrap();
        }
    }
}
