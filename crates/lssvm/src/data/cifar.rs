//! CIFAR-10's binary version: records of one byte for the class and 3072 for
//! the pixels, red plane first, 32 rows of 32.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::array::{Kind, Layout, Numbers, Records};
use super::source::Source;
use super::{ImageShape, Labels, ReadOptions, Rows, Stream};
use crate::error::Place;
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// Bytes of one image.
const PIXELS: usize = 3 * 32 * 32;

/// Bytes of one record: the class, then the image.
pub(super) const RECORD: usize = 1 + PIXELS;

/// Number of classes.
const CLASSES: u8 = 10;

/// The names of the classes, in the order of their codes.
const NAMES: [&str; CLASSES as usize] = [
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
];

/// Whether a file of this length that begins so can be CIFAR-10: whole records, each of
/// a known class.
pub(super) fn looks_like(sample: &[u8], length: u64) -> bool {
    length > 0
        && length.is_multiple_of(RECORD as u64)
        && sample.chunks(RECORD).all(|record| record[0] < CLASSES)
}

/// The images of one or several files, one after the other.
pub(super) fn open<T: Scalar>(
    source: &Path,
    files: Vec<Source>,
    options: &ReadOptions,
) -> Result<Stream<T>> {
    let columns = |features: Range<usize>| {
        let numbers = Numbers {
            kind: Kind::U8,
            big_endian: false,
            layout: Layout::Strided {
                row: RECORD,
                features: features.clone().collect(),
            },
        };
        Records::new(numbers, features.len())
    };
    let names = names(files.first().map_or(source, Source::path));
    let (mut pixels, mut classes) = (columns(1..RECORD), Vec::new());
    let mut left = options.max_rows.unwrap_or(usize::MAX);
    for file in files {
        let file = Arc::new(file);
        let rows = count(&file)?.min(left);
        left -= rows;
        pixels = pixels.with_part(&file, 0, rows);
        let column = columns(0..1).with_part(&file, 0, rows);
        classes.extend(codes(&file, &column.load()?)?);
    }
    let mut data = Stream::new(source, Arc::new(pixels));
    data.image = Some(ImageShape {
        channels: 3,
        height: 32,
        width: 32,
    });
    if !options.no_labels {
        data.labels = Some(Labels::from_codes(&names, &classes).with_source(source, vec![]));
    }
    Ok(data)
}

/// Number of images in a file.
fn count(file: &Source) -> Result<usize> {
    let length = file.length();
    if length == 0 || !length.is_multiple_of(RECORD as u64) {
        let problem = format!(
            "a CIFAR-10 file has {RECORD} bytes for each image, and this has {length}; get the file \
             again"
        );
        return Err(Error::file(file.path(), Place::Whole, problem));
    }
    Ok((length / RECORD as u64) as usize)
}

/// The classes of the images in a file.
fn codes(file: &Source, classes: &Matrix<f32>) -> Result<Vec<u8>> {
    let codes: Vec<u8> = classes.values().iter().map(|&class| class as u8).collect();
    match codes.iter().position(|&code| code >= CLASSES) {
        None => Ok(codes),
        Some(row) => {
            let problem = format!(
                "the class is {}, and CIFAR-10 has 0 to 9; this is another file, or damaged",
                codes[row]
            );
            Err(Error::file(
                file.path(),
                Place::Row(row as u64 + 1),
                problem,
            ))
        }
    }
}

/// The names of the classes: those in `batches.meta.txt` beside the file, or
/// the usual ones.
fn names(file: &Path) -> Vec<String> {
    let meta = std::fs::read_to_string(file.with_file_name("batches.meta.txt")).unwrap_or_default();
    let names = meta.lines().map(str::trim).filter(|line| !line.is_empty());
    let names: Vec<String> = names.map(str::to_string).collect();
    if names.len() == NAMES.len() {
        names
    } else {
        NAMES.map(str::to_string).to_vec()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::data::{Targets, Task, read};

    /// A file with an image of each class, filled with one value each.
    pub(in crate::data) fn batch(images: &[(u8, u8)]) -> Vec<u8> {
        let record = |&(class, value): &(u8, u8)| {
            let mut record = vec![value; RECORD];
            record[0] = class;
            record
        };
        images.iter().flat_map(record).collect()
    }

    #[test]
    fn records_become_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("batch.bin");
        std::fs::write(&path, batch(&[(3, 200), (9, 0), (3, 17)])).unwrap();
        let data = read::<f32>(&path, &ReadOptions::default()).unwrap().train;
        assert_eq!((data.features.rows(), data.features.cols()), (3, 3072));
        assert_eq!(data.features.get(0, 5), 200.0);
        assert_eq!(data.features.get(2, 3071), 17.0);
        assert_eq!(data.image.unwrap().to_string(), "3x32x32");
        let Ok(Targets::Classes { names, codes }) = data.labels.unwrap().resolve(Task::Auto) else {
            panic!("classes");
        };
        assert_eq!(names, ["cat", "truck"]);
        assert_eq!(codes, [0, 1, 0]);
    }

    #[test]
    fn damage_is_named() {
        let message = |bytes: Vec<u8>| {
            let path = Path::new("b.bin");
            let files = vec![Source::in_memory(path, bytes)];
            let read = open::<f32>(path, files, &ReadOptions::default());
            read.unwrap_err().to_string()
        };
        assert!(message(vec![0; 3072]).contains("3073 bytes for each image, and this has 3072"));
        let message = message(batch(&[(1, 1), (10, 1)]));
        assert!(
            message.starts_with("b.bin, row 2: the class is 10"),
            "{message}"
        );
    }
}
