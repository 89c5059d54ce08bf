//! CIFAR-10's binary version: records of one byte for the class and 3072 for
//! the pixels, red plane first, 32 rows of 32.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::bytes::allocate;
use super::{Dataset, ImageShape, Labels, ReadOptions};
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

/// Whether the bytes can be CIFAR-10: whole records, each of a known class.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes.len().is_multiple_of(RECORD)
        && bytes.chunks_exact(RECORD).all(|record| record[0] < CLASSES)
}

/// The images of one or several files, one after the other.
pub(super) fn parse<T: Scalar>(
    source: &Path,
    files: &[(PathBuf, Vec<u8>)],
    options: &ReadOptions,
) -> Result<Dataset<T>> {
    for (path, bytes) in files {
        check(path, bytes)?;
    }
    let records: Vec<&[u8]> = files
        .iter()
        .flat_map(|(_, b)| b.chunks_exact(RECORD))
        .collect();
    let records = &records[..options.rows(records.len())];
    let mut values = allocate(source, records.len(), PIXELS, options)?;
    values
        .par_chunks_mut(PIXELS)
        .zip(records)
        .for_each(|(to, record)| {
            for (to, &pixel) in to.iter_mut().zip(&record[1..]) {
                *to = T::from_f64(f64::from(pixel));
            }
        });
    let mut data = Dataset::new(source, Matrix::from_vec(records.len(), PIXELS, values));
    data.image = Some(ImageShape {
        channels: 3,
        height: 32,
        width: 32,
    });
    if !options.no_labels {
        let names = names(files.first().map_or(source, |(path, _)| path));
        let codes: Vec<u8> = records.iter().map(|record| record[0]).collect();
        data.labels = Some(Labels::from_codes(&names, &codes).with_source(source, vec![]));
    }
    Ok(data)
}

fn check(path: &Path, bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(RECORD) {
        let problem = format!(
            "a CIFAR-10 file has {RECORD} bytes for each image, and this has {}; get the file again",
            bytes.len()
        );
        return Err(Error::file(path, Place::Whole, problem));
    }
    match bytes
        .chunks_exact(RECORD)
        .position(|record| record[0] >= CLASSES)
    {
        None => Ok(()),
        Some(row) => {
            let problem = format!(
                "the class is {}, and CIFAR-10 has 0 to 9; this is another file, or damaged",
                bytes[row * RECORD]
            );
            Err(Error::file(path, Place::Row(row as u64 + 1), problem))
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
            let files = [(PathBuf::from("b.bin"), bytes)];
            let read = parse::<f32>(Path::new("b.bin"), &files, &ReadOptions::default());
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
