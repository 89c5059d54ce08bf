//! NumPy's NPY: a magic, a version, and a head that is a Python dictionary of
//! three entries, then the values.
//!
//! Our own reading of the head, not the crate npyz: the values go to the shared
//! parallel conversion of [`super::array`] either way, and the head is small.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::array::{Element, Head, Kind, Text};
use super::source::Source;
use super::{Column, Labels, ReadOptions, Rows, Stream};
use crate::error::Place;
use crate::linalg::Scalar;
use crate::{Error, Result};

/// What every NPY file begins with.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// Names of files, and of arrays in an archive, that hold features, and the
/// names under which their labels are sought.
pub(super) const PAIRS: [(&str, &str); 5] = [
    ("x", "y"),
    ("data", "target"),
    ("data", "targets"),
    ("features", "labels"),
    ("images", "labels"),
];

/// What the head of an NPY file of this length says, of which `sample` is the beginning.
pub(super) fn head(path: &Path, sample: &[u8], length: u64) -> Result<Head> {
    let whole = |problem: &str| Error::file(path, Place::Whole, problem);
    let broken = || whole("the head of the NPY file cannot be understood; save the array again");
    let cut_off = || match length > sample.len() as u64 {
        // No array of plain numbers has such a head.
        true => broken(),
        false => whole("the file is cut off within its head; get the file again"),
    };
    let Some(rest) = sample.strip_prefix(MAGIC) else {
        return Err(whole(
            "this is not an NPY file; check the file, or leave out the format",
        ));
    };
    let (&[major, _minor], rest) = rest.split_first_chunk::<2>().ok_or_else(cut_off)?;
    let (size, rest) = if major == 1 {
        let (&size, rest) = rest.split_first_chunk::<2>().ok_or_else(cut_off)?;
        (usize::from(u16::from_le_bytes(size)), rest)
    } else {
        let (&size, rest) = rest.split_first_chunk::<4>().ok_or_else(cut_off)?;
        (u32::from_le_bytes(size) as usize, rest)
    };
    let (head, values) = rest.split_at_checked(size).ok_or_else(cut_off)?;
    let head = String::from_utf8_lossy(head);
    let descr = entry(&head, "descr").ok_or_else(broken)?;
    let descr = descr.trim_matches(['\'', '"']);
    let element = element(descr).ok_or_else(|| {
        whole(&match descr.trim_start_matches(['|', '<', '>', '=']) {
            name if name.starts_with('O') => format!(
                "the array is of NumPy type {descr}: Python objects, which are never read, since \
                 they can hold programs; save labels as text (y.astype(str)) and all else as numbers"
            ),
            _ => format!(
                "the array is of NumPy type {descr}, and only plain numbers, and labels that are \
                 text, can be read; save it as float32 or another number type"
            ),
        })
    })?;
    let fortran = match entry(&head, "fortran_order") {
        Some("True") => true,
        Some("False") => false,
        _ => return Err(broken()),
    };
    let shape = entry(&head, "shape").and_then(shape).ok_or_else(broken)?;
    let start = sample.len() - values.len();
    Head::new(path, element, fortran, shape, start, length)
}

/// The value of an entry of the head: a tuple, a list, or up to the comma.
fn entry<'a>(head: &'a str, key: &str) -> Option<&'a str> {
    let quoted = [format!("'{key}'"), format!("\"{key}\"")];
    let at = quoted
        .iter()
        .find_map(|key| Some(head.find(key.as_str())? + key.len()))?;
    let value = head[at..].trim_start().strip_prefix(':')?.trim_start();
    let end = match value.chars().next()? {
        '(' => value.find(')')? + 1,
        '[' => value.find(']')? + 1,
        quote @ ('\'' | '"') => value[1..].find(quote)? + 2,
        _ => value.find([',', '}'])?,
    };
    Some(value[..end].trim())
}

fn shape(tuple: &str) -> Option<Vec<usize>> {
    let inner = tuple.strip_prefix('(')?.strip_suffix(')')?;
    let sizes = inner
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty());
    // Python 2 wrote long integers with an L.
    sizes
        .map(|size| size.trim_end_matches('L').parse().ok())
        .collect()
}

/// The type that a NumPy description names, and whether it is big-endian.
fn element(descr: &str) -> Option<(Element, bool)> {
    let order = descr.chars().next()?;
    let name = descr.strip_prefix(['<', '>', '|', '=']).unwrap_or(descr);
    let big_endian = order == '>';
    let width = |digits: &str| digits.parse().ok().filter(|&width: &usize| width > 0);
    if let Some(digits) = name.strip_prefix('U') {
        return Some((Element::Text(Text::Wide(width(digits)?)), big_endian));
    }
    if let Some(digits) = name.strip_prefix(['S', 'a']) {
        return Some((Element::Text(Text::Narrow(width(digits)?)), big_endian));
    }
    let kind = match name {
        "b1" | "?" => Kind::Bool,
        "u1" => Kind::U8,
        "i1" => Kind::I8,
        "u2" => Kind::U16,
        "i2" => Kind::I16,
        "u4" => Kind::U32,
        "i4" => Kind::I32,
        "u8" => Kind::U64,
        "i8" => Kind::I64,
        "f2" => Kind::F16,
        "f4" => Kind::F32,
        "f8" => Kind::F64,
        _ => return None,
    };
    Some((Element::Number(kind), big_endian))
}

/// Features, with labels from another file, from columns, or none.
pub(super) fn open<T: Scalar>(
    source: Source,
    labels: Option<&Path>,
    options: &ReadOptions,
    most: Option<u64>,
) -> Result<Stream<T>> {
    let path = source.path().to_path_buf();
    let array = head(&path, &source.sample()?, source.length())?;
    let source = match array.is_scattered() {
        true => source.held(most)?,
        false => source,
    };
    let source = Arc::new(source);
    let (features, image) = array.features(&source, options)?;
    let width = array.width();
    let columns = match image {
        Some(_) => None,
        None => label_columns(&path, width, options)?,
    };
    let Some(columns) = columns else {
        let mut data = Stream::new(&path, Arc::new(features));
        data.image = image;
        if let Some(labels) = labels.filter(|_| !options.no_labels) {
            let samples = array.shape()[0];
            let source = Source::open(labels, None)?.held(None)?;
            data.labels = Some(matching_labels(source, samples, options)?);
        }
        return Ok(data);
    };
    let kept: Vec<usize> = (0..width).filter(|j| !columns.contains(j)).collect();
    if kept.is_empty() {
        let problem = "every column is a label; features need a column too";
        return Err(Error::file(&path, Place::Whole, problem));
    }
    let features = array.columns(&source, &kept, options)?;
    let labels = array.columns(&source, &columns, options)?;
    let labels = Labels::from_values(labels.load()?)?.with_source(&path, vec![]);
    let mut data = Stream::new(&path, Arc::new(features));
    data.labels = Some(labels.with_places(columns.iter().copied()));
    Ok(data)
}

/// Labels, of which there must be as many as samples.
pub(super) fn matching_labels(
    source: Source,
    samples: usize,
    options: &ReadOptions,
) -> Result<Labels> {
    let array = head(source.path(), &source.sample()?, source.length())?;
    let path = source.path().to_path_buf();
    let labels = array.labels(&Arc::new(source), options)?;
    let count = array.shape()[0];
    if count != samples {
        let problem =
            format!("there are {count} labels for {samples} samples; they do not belong together");
        return Err(Error::file(&path, Place::Whole, problem));
    }
    Ok(labels)
}

/// Which of so many columns of an array are labels, counted from 0: those that are asked
/// for, or where they were when a model was trained, or the last if a model expects one
/// column less.
fn label_columns(path: &Path, cols: usize, options: &ReadOptions) -> Result<Option<Vec<usize>>> {
    if options.no_labels || options.n_features == Some(cols) {
        return Ok(None);
    }
    let Some(columns) = &options.labels else {
        let one_more = options
            .n_features
            .is_some_and(|n| n.checked_add(1) == Some(cols));
        let last = || one_more.then(|| vec![cols - 1]);
        return Ok(options.known_labels(cols).or_else(last));
    };
    let found = columns.iter().map(|column| match column {
        Column::Index(_) => column.place(cols, path),
        Column::Name(name) => {
            let problem = format!("an array has no column named '{name}'; give its number");
            Err(Error::file(path, Place::Whole, problem))
        }
    });
    found.collect::<Result<Vec<usize>>>().map(Some)
}

/// The file of labels that belongs to a file of features by its name, if there
/// is one: `y.npy` for `X.npy`, `y_train.npy` for `X_train.npy`.
pub(super) fn labels_beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let lower = name.to_ascii_lowercase();
    PAIRS.iter().find_map(|(features, labels)| {
        let is_word = |at: usize| {
            let edge = |c: Option<char>| !c.is_some_and(|c| c.is_ascii_alphanumeric());
            edge(lower[..at].chars().next_back())
                && edge(lower[at + features.len()..].chars().next())
        };
        let (at, _) = lower.match_indices(features).find(|&(at, _)| is_word(at))?;
        let beside = format!("{}{labels}{}", &name[..at], &name[at + features.len()..]);
        Some(path.with_file_name(beside)).filter(|path| path.is_file())
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::linalg::Matrix;

    /// An NPY file with this head.
    pub(in crate::data) fn npy(descr: &str, fortran: bool, shape: &str, values: &[u8]) -> Vec<u8> {
        let fortran = if fortran { "True" } else { "False" };
        let head =
            format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let mut file = MAGIC.to_vec();
        file.extend([1, 0]);
        file.extend((head.len() as u16).to_le_bytes());
        file.extend(head.as_bytes());
        file.extend(values);
        file
    }

    fn message(bytes: &[u8]) -> String {
        let head = head(Path::new("d.npy"), bytes, bytes.len() as u64);
        head.unwrap_err().to_string()
    }

    #[test]
    fn heads_are_understood() {
        let shape = |bytes: &[u8]| {
            let head = head(Path::new("d"), bytes, bytes.len() as u64);
            head.unwrap().shape().to_vec()
        };
        let bytes = npy("|u1", false, "(2, 3)", &[1, 2, 3, 4, 5, 6]);
        assert_eq!(shape(&bytes), [2, 3]);
        let one = npy(">f4", true, "(1,)", &[0; 4]);
        assert_eq!(shape(&one), [1]);
        let mut second = npy("|u1", false, "(1L, 1L)", &[1]);
        second.splice(6..10, [2, 0, second[8], second[9], 0, 0]);
        assert_eq!(shape(&second), [1, 1]);
    }

    #[test]
    fn heads_are_not_trusted() {
        let good = npy("<f8", false, "(2, 3)", &[0; 48]);
        assert!(message(&good[..9]).contains("cut off within its head"));
        assert!(message(&good[..40]).contains("cut off within its head"));
        assert!(
            message(&good[..good.len() - 1]).contains("the file is cut off: a shape of [2, 3]")
        );
        for head in ["|O", "|O8"] {
            let objects = message(&npy(head, false, "(2,)", b"\x80\x04cposix\nsystem\n."));
            assert!(objects.contains("NumPy type |O"), "{objects}");
            assert!(objects.contains("y.astype(str)"), "{objects}");
        }
        for none in ["<U0", "|S0", "<U", "<U-1", "<U99999999999999999999", "|S1x"] {
            let text = message(&npy(none, false, "(1000000000000,)", &[]));
            assert!(text.contains(&format!("NumPy type {none}")), "{text}");
        }
        let wide = message(&npy("<U4611686018427387904", false, "(1,)", &[]));
        assert!(wide.contains("no file can hold"), "{wide}");
        let cut = message(&npy("<U2", false, "(3,)", &[65; 23]));
        assert!(cut.contains("the file is cut off: a shape of [3]"), "{cut}");
        assert!(message(&npy("<c16", false, "(2,)", &[])).contains("save it as float32"));
        assert!(message(&npy("<f8", false, "(-2, 3)", &[])).contains("cannot be understood"));
        assert!(
            message(&npy("<f8", false, "(4611686018427387904, 3)", &[]))
                .contains("no file can hold")
        );
    }

    #[test]
    fn labels_come_from_columns_or_from_beside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("X_train.npy");
        std::fs::write(&path, npy("|u1", false, "(2, 3)", &[1, 2, 3, 4, 5, 6])).unwrap();
        let read = |options: &ReadOptions| crate::data::read::<f32>(&path, options);
        assert!(
            read(&ReadOptions::default())
                .unwrap()
                .train
                .labels
                .is_none()
        );

        let columns = ReadOptions {
            labels: Some(vec![Column::Index(-2)]),
            ..Default::default()
        };
        let data = read(&columns).unwrap().train;
        assert_eq!(data.features, Matrix::from_rows(&[[1.0, 3.0], [4.0, 6.0]]));
        let labels = data.labels.unwrap();
        assert_eq!(labels.values(1).unwrap().values(), [2.0, 5.0]);
        let data_places = labels.column_places().to_vec();
        let model = ReadOptions {
            n_features: Some(2),
            ..Default::default()
        };
        assert_eq!(read(&model).unwrap().train.features.cols(), 2);
        let trained = ReadOptions {
            label_places: data_places,
            ..model
        };
        let data = read(&trained).unwrap().train;
        assert_eq!(data.labels.unwrap().values(1).unwrap().values(), [2.0, 5.0]);

        std::fs::write(
            dir.path().join("y_train.npy"),
            npy("<i8", false, "(2,)", &[0; 16]),
        )
        .unwrap();
        assert_eq!(
            read(&ReadOptions::default())
                .unwrap()
                .train
                .labels
                .unwrap()
                .len(),
            2
        );
        std::fs::write(
            dir.path().join("y_train.npy"),
            npy("|u1", false, "(3,)", &[0; 3]),
        )
        .unwrap();
        let message = read(&ReadOptions::default()).unwrap_err().to_string();
        assert!(
            message.contains("y_train.npy: there are 3 labels for 2 samples"),
            "{message}"
        );
    }
}
