//! NumPy's NPZ: a ZIP archive of NPY files.
//!
//! Arrays are found by name, whatever the case: `x_train` and `y_train` with
//! `x_test` and `y_test` (or `train_x`, `train_images`, ...), else `x`, `data`,
//! `features` or `images` with `y`, `labels`, `target` or `targets`.

use std::io::{Read, Seek};
use std::path::Path;
use std::sync::Arc;

use zip::ZipArchive;

use super::bytes::{MAX_INFLATION, check_length};
use super::read::loaded;
use super::source::Source;
use super::{Dataset, Parts, ReadOptions, Stream, npy};
use crate::error::Place;
use crate::linalg::Scalar;
use crate::{Error, Result};

/// What a ZIP archive begins with; the second is an empty one.
pub(super) const MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

const FEATURES: [&str; 4] = ["x", "data", "features", "images"];
const LABELS: [&str; 5] = ["y", "labels", "label", "target", "targets"];

/// The parts of an archive, no array of which may take more than `most` bytes.
pub(super) fn read<T: Scalar, R: Read + Seek>(
    path: &Path,
    file: R,
    options: &ReadOptions,
    most: Option<u64>,
) -> Result<Parts<T>> {
    let mut archive = ZipArchive::new(file).map_err(|error| damaged(path, &error))?;
    let names: Vec<String> = archive
        .file_names()
        .filter_map(|name| Some(name.ok()?.into_owned()))
        .collect();
    let train = find(&names, &FEATURES, Some("train"));
    let Some(name) = train.or_else(|| find(&names, &FEATURES, None)) else {
        let found: Vec<&str> = names
            .iter()
            .map(|name| name.trim_end_matches(".npy"))
            .take(20)
            .collect();
        let problem = format!(
            "the archive has no array x, data, features, images or x_train, but [{}]; save the \
             features as x and the labels as y",
            found.join(", ")
        );
        return Err(Error::file(path, Place::Whole, problem));
    };
    let part = train.map(|_| "train");
    let labels = find(&names, &LABELS, part);
    let train = read_part(path, &mut archive, name, labels, options, most)?;
    let test = match part.and_then(|_| find(&names, &FEATURES, Some("test"))) {
        None => None,
        Some(name) => {
            let labels = find(&names, &LABELS, Some("test"));
            Some(read_part(path, &mut archive, name, labels, options, most)?)
        }
    };
    Ok(Parts { train, test })
}

/// The array with one of these names, of this part.
fn find<'a>(names: &'a [String], wanted: &[&str], part: Option<&str>) -> Option<&'a str> {
    let matches = |name: &str, word: &str| {
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix(".npy").unwrap_or(&name);
        match part {
            None => name == word,
            Some(part) => name == format!("{word}_{part}") || name == format!("{part}_{word}"),
        }
    };
    let mut found = wanted
        .iter()
        .filter_map(|word| names.iter().find(|name| matches(name, word)));
    found.next().map(String::as_str)
}

fn read_part<T: Scalar, R: Read + Seek>(
    path: &Path,
    archive: &mut ZipArchive<R>,
    features: &str,
    labels: Option<&str>,
    options: &ReadOptions,
    most: Option<u64>,
) -> Result<Dataset<T>> {
    let array = extract(path, archive, features, most)?;
    let inside = array.path().to_path_buf();
    let head = npy::head(&inside, &array.sample()?, array.length())?;
    let (features, image) = head.features(&Arc::new(array), options)?;
    let mut data: Dataset<T> = loaded(Stream::new(&inside, Arc::new(features)), options)?;
    data.image = image;
    data.source = path.to_path_buf();
    if let Some(labels) = labels.filter(|_| !options.no_labels) {
        let array = extract(path, archive, labels, most)?;
        data.labels = Some(npy::matching_labels(array, head.shape()[0], options)?);
    }
    Ok(data)
}

/// The bytes of an array.
fn extract<R: Read + Seek>(
    path: &Path,
    archive: &mut ZipArchive<R>,
    name: &str,
    limit: Option<u64>,
) -> Result<Source> {
    let entry = archive
        .by_name(name)
        .map_err(|error| damaged(path, &error))?;
    let most = (entry.compressed_size() as usize).saturating_mul(MAX_INFLATION);
    // Room for what the head promises, but not for a promise that no packed
    // data can keep, nor for more than a piece at first.
    let mut bytes = Vec::with_capacity((entry.size() as usize).min(most).min(1 << 30));
    let inside = format!("{}[{}]", path.display(), name.trim_end_matches(".npy"));
    let inside = Path::new(&inside);
    check_length(inside, entry.size(), limit)?;
    entry
        .take(limit.map_or(u64::MAX, |limit| limit.saturating_add(1)))
        .read_to_end(&mut bytes)
        .map_err(|error| damaged(path, &error))?;
    check_length(inside, bytes.len() as u64, limit)?;
    Ok(Source::in_memory(inside, bytes))
}

fn damaged(path: &Path, error: &dyn std::error::Error) -> Error {
    let problem = format!("the ZIP archive cannot be read ({error}); get the file again");
    Error::file(path, Place::Whole, problem)
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::{Cursor, Write};

    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::data::npy::tests::npy;
    use crate::linalg::Matrix;

    /// An archive of these arrays.
    pub(in crate::data) fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (i, (name, bytes)) in arrays.iter().enumerate() {
            let method = [
                zip::CompressionMethod::Stored,
                zip::CompressionMethod::Deflated,
            ][i % 2];
            let options = SimpleFileOptions::default().compression_method(method);
            zip.start_file(format!("{name}.npy"), options).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn parse(bytes: Vec<u8>) -> Result<Parts<f32>> {
        crate::data::parse(Path::new("d.npz"), bytes, &ReadOptions::default())
    }

    fn square() -> Vec<u8> {
        npy("|u1", false, "(2, 2)", &[1, 2, 3, 4])
    }

    #[test]
    fn one_or_two_parts_are_found_by_name() {
        let labels = npy("|u1", false, "(2,)", &[7, 8]);
        let one = parse(npz(&[("X", square()), ("target", labels.clone())])).unwrap();
        assert_eq!(
            one.train.features,
            Matrix::from_rows(&[[1.0, 2.0], [3.0, 4.0]])
        );
        assert_eq!(
            one.train.labels.unwrap().values(1).unwrap().values(),
            [7.0, 8.0]
        );
        assert!(one.test.is_none());

        let images = npy("|u1", false, "(2, 1, 2)", &[1, 2, 3, 4]);
        let two = npz(&[
            ("x_test", images.clone()),
            ("y_test", labels),
            ("x_train", images),
        ]);
        let two = parse(two).unwrap();
        assert_eq!(two.train.image.unwrap().to_string(), "1x2");
        assert!(two.train.labels.is_none());
        assert_eq!(two.test.unwrap().labels.unwrap().len(), 2);
    }

    #[test]
    fn labels_may_be_text() {
        let labels = npy("|S3", false, "(2,)", b"up\0dow");
        let data = parse(npz(&[("x", square()), ("y", labels)])).unwrap().train;
        let targets = data.labels.unwrap().resolve(crate::data::Task::Auto);
        let names = vec!["dow".to_string(), "up".to_string()];
        let codes = vec![1, 0];
        let expected = crate::data::Targets::Classes { names, codes };
        assert_eq!(targets.unwrap(), expected);
        let features = npy("|S1", false, "(2, 2)", b"abcd");
        let message = parse(npz(&[("x", features)])).unwrap_err().to_string();
        assert!(
            message.starts_with("d.npz[x]: the array is text"),
            "{message}"
        );
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let message = |bytes| parse(bytes).unwrap_err().to_string();
        let text = message(npz(&[("weights", square())]));
        assert!(
            text.contains("has no array x, data") && text.contains("[weights]"),
            "{text}"
        );
        let text = message(npz(&[
            ("x", square()),
            ("y", npy("|u1", false, "(3,)", &[0; 3])),
        ]));
        assert!(
            text.starts_with("d.npz[y]: there are 3 labels for 2 samples"),
            "{text}"
        );
        let text = message(npz(&[("x", npy("|O", false, "(2, 2)", &[]))]));
        assert!(
            text.starts_with("d.npz[x]: the array is of NumPy type |O"),
            "{text}"
        );
        let mut cut = npz(&[("x", square())]);
        cut.truncate(cut.len() / 2);
        assert!(message(cut).contains("the ZIP archive cannot be read"));
    }
}
