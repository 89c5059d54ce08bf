//! Files of data: read or refused, never more memory than allowed; the same from memory, from
//! disk, and converted.

use std::path::Path;

use lssvm::data::{self as library, Column, Dataset, Format, Parts, ReadOptions, Task};
use lssvm::linalg::Precision;

use super::seal::{self, Kind};

/// The first byte of an input is one of these.
const FORMATS: [Option<Format>; 8] = [
    None,
    Some(Format::Idx),
    Some(Format::Cifar10),
    Some(Format::Libsvm),
    Some(Format::Csv),
    Some(Format::Npy),
    Some(Format::Npz),
    Some(Format::Lssvm),
];

/// What a file may take in memory.
const MAX_BYTES: u64 = 1 << 20;

/// The options that the first three bytes stand for, and a file.
fn decode(input: &[u8]) -> Option<(ReadOptions, Vec<u8>)> {
    let [format, flags, more, bytes @ ..] = input else {
        return None;
    };
    let format = FORMATS[usize::from(*format) % FORMATS.len()];
    let flag = |bit: u8| flags >> bit & 1 == 1;
    let more = |bit: u8| more >> bit & 1 == 1;
    let options = ReadOptions {
        format,
        labels: flag(0).then(|| vec![Column::Index(-1), Column::Index(1)]),
        n_features: flag(1).then_some(3),
        feature_names: flag(2).then(|| vec!["b".into(), "a".into()]),
        max_rows: flag(3).then_some(2),
        no_labels: flag(4),
        header: flag(5).then_some(flag(6)),
        delimiter: flag(7).then_some(b';'),
        weights: more(0).then_some(Column::Index(2)),
        label_names: more(1).then(|| vec!["c".into()]),
        label_places: if more(2) { vec![1] } else { Vec::new() },
        weight_name: more(3).then(|| "w".into()),
        weight_place: more(4).then_some(2),
        index_base: more(5).then_some(u32::from(more(6))),
        max_bytes: Some(MAX_BYTES),
    };
    let bytes = match format {
        Some(Format::Lssvm) if bytes.starts_with(b"{") => seal::container(bytes, Kind::Data),
        Some(Format::Npz) if !bytes.starts_with(b"PK") => seal::archive(bytes),
        _ => bytes.to_vec(),
    };
    Some((options, bytes))
}

fn parsed(bytes: &[u8], options: &ReadOptions) -> lssvm::Result<Parts<f32>> {
    library::parse(Path::new("fuzz"), bytes.to_vec(), options)
}

fn parts(parts: Parts<f32>) -> impl Iterator<Item = Dataset<f32>> {
    [Some(parts.train), parts.test].into_iter().flatten()
}

/// Any bytes as a file in memory.
pub fn data(input: &[u8]) {
    let Some((options, bytes)) = decode(input) else {
        return;
    };
    let Ok(found) = parsed(&bytes, &options) else {
        return;
    };
    for data in parts(found) {
        check(&data);
        for task in [Task::Auto, Task::Classification, Task::Regression] {
            let _ = data.labels.as_ref().map(|labels| labels.resolve(task));
        }
        let _ = data.split(0.5, 1);
    }
}

/// What every reader promises.
fn check(data: &Dataset<f32>) {
    let values = data.features.values();
    assert!(values.iter().all(|value| value.is_finite()));
    assert!(size_of_val(values) as u64 <= MAX_BYTES);
    let rows = data.n_samples();
    assert!(rows > 0 && data.n_features() > 0);
    assert!(
        data.labels
            .as_ref()
            .is_none_or(|labels| labels.len() == rows)
    );
    let weights = data
        .weights
        .iter()
        .inspect(|all| assert_eq!(all.len(), rows));
    assert!(
        weights
            .flatten()
            .all(|&weight| weight >= 0.0 && weight.is_finite())
    );
    let names = data.feature_names.as_ref();
    assert!(names.is_none_or(|names| names.len() == data.n_features()));
    assert!(
        data.image
            .is_none_or(|image| image.len() == data.n_features())
    );
}

/// Any bytes as a file on disk, whose rows are read one after the other: what is in memory else.
pub fn open(input: &[u8]) {
    let Some((options, bytes)) = decode(input) else {
        return;
    };
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), &bytes).expect("a temporary file");
    let expected = parsed(&bytes, &options);
    let Ok(found) = library::open::<f32>(file.path(), &options) else {
        // In memory it may be refused for less: all of it is limited, not the features alone.
        assert!(expected.is_err() || bytes.len() as u64 > MAX_BYTES || packed(&bytes));
        return;
    };
    let found = [Some(found.train), found.test];
    let expected = expected.ok().map(|found| [Some(found.train), found.test]);
    for (part, stream) in found.into_iter().enumerate() {
        let Some(stream) = stream else {
            continue;
        };
        let width = stream.n_features();
        let mut row = vec![0.0; width];
        // Backwards, as no file is read.
        let rows: lssvm::Result<Vec<Vec<f32>>> = (0..stream.n_samples().min(1000))
            .rev()
            .map(|at| {
                stream
                    .features
                    .read(at..at + 1, &mut row)
                    .map(|()| row.clone())
            })
            .collect();
        let Some(expected) = expected.as_ref().map(|parts| &parts[part]) else {
            // It was refused for its values, or for their number.
            let large = (stream.n_samples() * width * size_of::<f32>()) as u64 > MAX_BYTES;
            assert!(rows.is_err() || large || stream.n_samples() > 1000);
            continue;
        };
        let data = expected.as_ref().expect("as many parts");
        let rows = rows.expect("it was read before");
        assert_eq!(
            (data.n_samples(), data.n_features()),
            (stream.n_samples(), width)
        );
        for (at, row) in (0..rows.len()).rev().zip(&rows) {
            assert_eq!(data.features.row(at), row);
        }
        same_labels(data, &stream);
    }
}

/// Whether the length of a file says little about its content.
fn packed(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK") || bytes.starts_with(&[0x1f, 0x8b])
}

fn same_labels<F, G>(a: &library::Labelled<F>, b: &library::Labelled<G>) {
    let targets = |labels: &Option<library::Labels>| {
        let labels = labels.as_ref()?;
        let resolved = labels
            .resolve(Task::Auto)
            .map_err(|error| error.to_string().len());
        Some((
            resolved.ok(),
            labels.column_names().to_vec(),
            labels.column_places().to_vec(),
        ))
    };
    assert_eq!(targets(&a.labels), targets(&b.labels));
    assert_eq!(a.weights, b.weights);
    assert_eq!(a.feature_names, b.feature_names);
    assert_eq!((a.image, a.index_base), (b.image, b.index_base));
    assert_eq!(
        (&a.weight_name, a.weight_place),
        (&b.weight_name, b.weight_place)
    );
}

/// Any bytes, converted to a file of our own: that holds what is read from the bytes, or both
/// are refused.
pub fn convert(input: &[u8]) {
    let Some((options, bytes)) = decode(input) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [file, out] = ["in", "out"].map(|name| folder.path().join(name));
    std::fs::write(&file, &bytes).expect("a temporary file");
    let expected = parsed(&bytes, &options);
    let converted = library::convert(&file, &out, &options, Precision::F32, &mut |_| true);
    if converted.is_err() {
        assert!(!out.exists(), "a file was left behind");
        // What must be in memory to be converted is limited.
        assert!(expected.is_err() || packed(&bytes), "{converted:?}");
        return;
    }
    // The features of a file that is read piece by piece may be more than fit in memory.
    let Ok(expected) = expected else {
        return;
    };
    let limits = ReadOptions {
        max_bytes: Some(MAX_BYTES),
        no_labels: options.no_labels,
        ..ReadOptions::default()
    };
    let found = library::read::<f32>(&out, &limits).expect("it was just written");
    for (found, expected) in parts(found).zip(parts(expected)) {
        assert_eq!(found.features.values(), expected.features.values());
        same_labels(&found, &expected);
    }
}
