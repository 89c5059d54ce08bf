//! IDX, the format of MNIST: two zero bytes, a byte for the type, one for the
//! number of axes, the sizes in 32 bits, then the values; all big-endian.
//!
//! Images and labels are two files, told apart by the number of their axes and
//! matched by their names: `train-images-idx3-ubyte` has its labels in
//! `train-labels-idx1-ubyte`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::array::{Element, Head, Kind};
use super::source::Source;
use super::{ReadOptions, Stream};
use crate::error::Place;
use crate::linalg::Scalar;
use crate::{Error, Result};

/// The type and the number of axes, if the bytes begin as IDX does.
pub(super) fn magic(bytes: &[u8]) -> Option<(Kind, usize)> {
    let &[0, 0, kind, axes] = bytes.first_chunk::<4>()? else {
        return None;
    };
    let kind = match kind {
        0x08 => Kind::U8,
        0x09 => Kind::I8,
        0x0b => Kind::I16,
        0x0c => Kind::I32,
        0x0d => Kind::F32,
        0x0e => Kind::F64,
        _ => return None,
    };
    (axes > 0).then_some((kind, usize::from(axes)))
}

/// What the head of an IDX file of this length says, of which `sample` is the beginning.
pub(super) fn head(path: &Path, sample: &[u8], length: u64) -> Result<Head> {
    let whole = |problem: &str| Error::file(path, Place::Whole, problem);
    let Some((kind, axes)) = magic(sample) else {
        return Err(whole(
            "this is not an IDX file; check the file, or leave out the format",
        ));
    };
    let start = 4 + 4 * axes;
    let Some(sizes) = sample.get(4..start) else {
        return Err(whole(
            "the file is cut off within its head; get the file again",
        ));
    };
    let (sizes, _) = sizes.as_chunks();
    let shape = sizes
        .iter()
        .map(|&size| u32::from_be_bytes(size) as usize)
        .collect();
    let element = (Element::Number(kind), true);
    Head::new(path, element, false, shape, start, length)
}

/// Images, with the labels in another file if it is given.
pub(super) fn open<T: Scalar>(
    source: Source,
    labels: Option<&Path>,
    options: &ReadOptions,
) -> Result<Stream<T>> {
    let path = source.path().to_path_buf();
    let array = head(&path, &source.sample()?, source.length())?;
    let images = array.shape()[0];
    if array.shape().len() == 1 {
        let problem = "these are labels without images; give the file of images \
                       (…-images-idx3-…), and keep the labels beside it";
        return Err(Error::file(&path, Place::Whole, problem));
    }
    let (features, image) = array.features(&Arc::new(source), options)?;
    let mut data = Stream::new(&path, Arc::new(features));
    data.image = image;
    if let Some(labels_path) = labels {
        let source = Source::open(labels_path, None)?;
        let array = head(labels_path, &source.sample()?, source.length())?;
        let labels = array.shape()[0];
        if labels != images {
            let problem = format!(
                "there are {labels} labels for the {images} images in {}; the two files do not \
                 belong together",
                path.display()
            );
            return Err(Error::file(labels_path, Place::Whole, problem));
        }
        data.labels = Some(array.labels(&Arc::new(source), options)?);
    }
    Ok(data)
}

/// The file of labels that belongs to a file of images, if there is one.
pub(super) fn labels_beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    let at = plain.rfind("images")?;
    let (before, after) = (&plain[..at], &plain[at + "images".len()..]);
    // "-idx3-ubyte" or ".idx3-ubyte" or nothing, whichever the labels have.
    let rest = after.trim_start_matches(['-', '.']);
    let one_axis = ["idx2", "idx3", "idx4"]
        .iter()
        .fold(rest.to_string(), |r, n| r.replace(n, "idx1"));
    let separator = &after[..after.len() - rest.len()];
    [separator, "-", "."].iter().find_map(|separator| {
        let name = format!("{before}labels{separator}{one_axis}");
        ["", ".gz"]
            .iter()
            .map(|end| path.with_file_name(format!("{name}{end}")))
            .find(|p| p.is_file())
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::data::read;

    /// An IDX file of bytes.
    pub(in crate::data) fn idx(shape: &[u32], values: &[u8]) -> Vec<u8> {
        let mut file = vec![0, 0, 8, shape.len() as u8];
        shape
            .iter()
            .for_each(|size| file.extend(size.to_be_bytes()));
        file.extend(values);
        file
    }

    fn message(path: &Path) -> String {
        read::<f32>(path, &ReadOptions::default())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn labels_are_found_beside_images() {
        for (images, labels) in [
            ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
            ("t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"),
            ("train-images-idx3-ubyte", "train-labels.idx1-ubyte"),
            ("a-images", "a-labels"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(images);
            std::fs::write(&path, idx(&[2, 1, 3], &[1, 2, 3, 4, 5, 6])).unwrap();
            let without = read::<f32>(&path, &ReadOptions::default()).unwrap();
            assert!(without.train.labels.is_none());
            std::fs::write(dir.path().join(labels), idx(&[2], &[7, 9])).unwrap();
            let data = read::<f32>(&path, &ReadOptions::default()).unwrap().train;
            assert_eq!(data.features.row(1), [4.0, 5.0, 6.0]);
            assert_eq!(data.image.unwrap().to_string(), "1x3");
            assert_eq!(
                data.labels
                    .unwrap()
                    .codes_for(&["7".into(), "9".into()])
                    .unwrap(),
                [0, 1]
            );
        }
    }

    #[test]
    fn files_that_do_not_match_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let images = dir.path().join("x-images-idx3-ubyte");
        let labels = dir.path().join("x-labels-idx1-ubyte");
        std::fs::write(&images, idx(&[2, 1, 1], &[1, 2])).unwrap();
        std::fs::write(&labels, idx(&[3], &[1, 2, 3])).unwrap();
        assert!(message(&images).contains("there are 3 labels for the 2 images in"));
        assert!(message(&labels).contains("these are labels without images"));
        std::fs::write(&images, &idx(&[2, 1, 1], &[1, 2])[..10]).unwrap();
        assert!(message(&images).contains("cut off within its head"));
        std::fs::write(&images, idx(&[2, 5, 5], &[1, 2])).unwrap();
        assert!(message(&images).contains("needs 66 bytes, and there are 18"));
    }
}
