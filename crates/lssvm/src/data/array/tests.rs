use super::*;
use crate::data::{Rows, Stream};
use crate::linalg::Scalar;

/// A head with the bytes that follow it.
#[derive(Debug)]
struct Array {
    head: Head,
    source: Arc<Source>,
}

impl Array {
    fn new(
        path: &Path,
        element: (Element, bool),
        fortran: bool,
        shape: Vec<usize>,
        bytes: &[u8],
        start: usize,
    ) -> Result<Self> {
        let all = [&vec![0; start], bytes].concat();
        let head = Head::new(path, element, fortran, shape, start, all.len() as u64)?;
        let source = Arc::new(Source::in_memory(path, all));
        Ok(Self { head, source })
    }

    fn features<T: Scalar>(
        &self,
        options: &ReadOptions,
    ) -> Result<(Matrix<T>, Option<ImageShape>)> {
        let (features, image) = self.head.features(&self.source, options)?;
        let data = Stream::new(self.source.path(), Arc::new(features));
        Ok((crate::data::read::loaded(data, options)?.features, image))
    }

    fn labels(&self, options: &ReadOptions) -> Result<Labels> {
        self.head.labels(&self.source, options)
    }
}

fn bytes(n: u8) -> Vec<u8> {
    (0..n).collect()
}

fn array(shape: &[usize], fortran: bool, bytes: &[u8]) -> Array {
    Array::new(
        Path::new("d"),
        (Element::Number(Kind::U8), false),
        fortran,
        shape.to_vec(),
        bytes,
        0,
    )
    .unwrap()
}

fn features(array: &Array) -> (Matrix<f32>, Option<ImageShape>) {
    array.features(&ReadOptions::default()).unwrap()
}

#[test]
fn both_orders_give_the_same_rows() {
    let (c, _) = features(&array(&[3, 2], false, &[0, 1, 2, 3, 4, 5]));
    let (f, _) = features(&array(&[3, 2], true, &[0, 2, 4, 1, 3, 5]));
    assert_eq!(c, Matrix::from_rows(&[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]));
    assert_eq!(c, f);
}

#[test]
fn images_are_put_plane_after_plane() {
    let bytes = bytes(12);
    let (last, shape) = features(&array(&[1, 2, 2, 3], false, &bytes));
    assert_eq!(shape.unwrap().to_string(), "3x2x2");
    let planes = [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11].map(|v| v as f32);
    assert_eq!(last.row(0), planes);
    let (first, shape) = features(&array(&[1, 3, 2, 2], false, &bytes));
    assert_eq!(shape.unwrap().to_string(), "3x2x2");
    assert_eq!(first.row(0), (0..12).map(|v| v as f32).collect::<Vec<_>>());
    let (_, shape) = features(&array(&[2, 3, 2], false, &bytes));
    assert_eq!(shape.unwrap().to_string(), "3x2");
}

#[test]
fn fortran_order_holds_for_images_too() {
    // a[i, y, x] = 100i + 10y + x, first index fastest.
    let mut fortran = Vec::new();
    for x in 0..2 {
        for y in 0..3 {
            fortran.extend([10 * y + x, 100 + 10 * y + x]);
        }
    }
    let (rows, _) = features(&array(&[2, 3, 2], true, &fortran));
    assert_eq!(rows.row(1), [100.0, 101.0, 110.0, 111.0, 120.0, 121.0]);
}

#[test]
fn every_kind_is_decoded() {
    let read = |kind, big, bytes: &[u8]| {
        let array = Array::new(
            Path::new("d"),
            (Element::Number(kind), big),
            false,
            vec![1, 1],
            bytes,
            0,
        )
        .unwrap();
        array
            .features::<f64>(&ReadOptions::default())
            .unwrap()
            .0
            .get(0, 0)
    };
    assert_eq!(read(Kind::Bool, false, &[7]), 1.0);
    assert_eq!(read(Kind::I8, false, &[255]), -1.0);
    for big in [false, true] {
        macro_rules! check {
            ($kind:ident, $value:expr) => {
                let bytes = if big {
                    $value.to_be_bytes()
                } else {
                    $value.to_le_bytes()
                };
                assert_eq!(read(Kind::$kind, big, &bytes), $value as f64);
            };
        }
        check!(U16, 40_000u16);
        check!(I16, -1234i16);
        check!(U32, 4_000_000_000u32);
        check!(I32, -70_000i32);
        check!(U64, 1u64 << 40);
        check!(I64, -(1i64 << 40));
        check!(F32, 1.5f32);
        check!(F64, -0.1f64);
        let half = 0x3e00u16; // 1.5
        let bytes = if big {
            half.to_be_bytes()
        } else {
            half.to_le_bytes()
        };
        assert_eq!(read(Kind::F16, big, &bytes), 1.5);
    }
}

#[test]
fn values_that_are_not_finite_are_named() {
    let mut bytes = Vec::new();
    [1.0, 2.0, 3.0, f64::INFINITY]
        .iter()
        .for_each(|v: &f64| bytes.extend(v.to_le_bytes()));
    let array = Array::new(
        Path::new("d"),
        (Element::Number(Kind::F64), false),
        false,
        vec![2, 2],
        &bytes,
        0,
    )
    .unwrap();
    let message = array
        .features::<f32>(&ReadOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with("d, row 2: feature 2 is inf, not a finite number"),
        "{message}"
    );
    let message = array
        .labels(&ReadOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with("d, row 2: the label is inf"),
        "{message}"
    );
}

#[test]
fn shapes_are_not_trusted() {
    let new = |shape: &[usize], bytes: &[u8]| {
        let made = Array::new(
            Path::new("d"),
            (Element::Number(Kind::F64), true),
            false,
            shape.to_vec(),
            bytes,
            8,
        );
        made.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert!(new(&[usize::MAX, 2], b"").contains("no file can hold"));
    assert!(new(&[1 << 62], b"").contains("no file can hold"));
    assert_eq!(
        new(&[2, 3], b"12345"),
        "d: the file is cut off: a shape of [2, 3] needs 56 bytes, and there are 13; get the file again"
    );
    assert!(
        new(&[1], b"123456789")
            .contains("too long: a shape of [1] needs 16 bytes, and there are 17")
    );
    let bytes = [];
    let empty = array(&[0, 3], false, &bytes).features::<f32>(&ReadOptions::default());
    assert!(empty.unwrap_err().to_string().contains("no values"));
}

#[test]
fn only_the_first_rows_are_read_on_demand() {
    let options = ReadOptions {
        max_rows: Some(2),
        max_bytes: Some(16),
        ..Default::default()
    };
    let bytes = bytes(6);
    let (rows, _) = array(&[3, 2], true, &bytes)
        .features::<f32>(&options)
        .unwrap();
    assert_eq!(rows, Matrix::from_rows(&[[0.0, 3.0], [1.0, 4.0]]));
}

fn text(width: Text, shape: &[usize], bytes: &[u8]) -> Array {
    let element = (Element::Text(width), false);
    Array::new(Path::new("d"), element, false, shape.to_vec(), bytes, 0).unwrap()
}

/// UTF-32, filled up to `width` characters.
fn wide(words: &[&str], width: usize) -> Vec<u8> {
    let codes = |word: &&str| {
        let mut codes: Vec<u32> = word.chars().map(u32::from).collect();
        codes.resize(width, 0);
        codes
    };
    words
        .iter()
        .flat_map(codes)
        .flat_map(u32::to_le_bytes)
        .collect()
}

fn classes(labels: Result<Labels>) -> Vec<String> {
    match labels.unwrap().resolve(crate::data::Task::Auto).unwrap() {
        crate::data::Targets::Classes { names, codes } => codes
            .iter()
            .map(|&code| names[code as usize].clone())
            .collect(),
        crate::data::Targets::Values(_) => panic!("these are classes"),
    }
}

#[test]
fn text_is_read_as_classes() {
    let all = ReadOptions::default();
    let words = ["été", "3", "数字 x"];
    let bytes = wide(&words, 6);
    assert_eq!(
        classes(text(Text::Wide(6), &[3], &bytes).labels(&all)),
        words
    );
    assert_eq!(
        classes(text(Text::Wide(6), &[3, 1], &bytes).labels(&all)),
        words
    );
    let big: Vec<u8> = bytes
        .chunks_exact(4)
        .flat_map(|c| [c[3], c[2], c[1], c[0]])
        .collect();
    let element = (Element::Text(Text::Wide(6)), true);
    let array = Array::new(Path::new("d"), element, false, vec![3], &big, 0).unwrap();
    assert_eq!(classes(array.labels(&all)), words);
    let narrow = text(Text::Narrow(3), &[3], b"b\0\0a\0\0b\0\0");
    assert_eq!(classes(narrow.labels(&all)), ["b", "a", "b"]);
    let two = ReadOptions {
        max_rows: Some(2),
        ..all
    };
    assert_eq!(narrow.labels(&two).unwrap().len(), 2);
}

#[test]
fn text_that_is_no_label_is_refused() {
    let all = ReadOptions::default();
    let message = |array: Array| array.labels(&all).unwrap_err().to_string();
    let empty = message(text(Text::Narrow(2), &[2], b"a\0\0\0"));
    assert!(empty.starts_with("d, row 2: the label is empty"), "{empty}");
    let latin = message(text(Text::Narrow(2), &[2], b"a\0\xe9t"));
    assert!(latin.starts_with("d, row 2: the label"), "{latin}");
    assert!(latin.contains("is not UTF-8"), "{latin}");
    // Half of a pair of UTF-16, and more than Unicode has.
    for code in [0xd800u32, 0x0011_0000, u32::MAX] {
        let wide = message(text(Text::Wide(1), &[1], &code.to_le_bytes()));
        assert!(wide.contains("row 1: the label is not Unicode"), "{wide}");
    }
    let number = message(text(Text::Narrow(3), &[1], b"nan"));
    assert!(number.contains("the label is nan"), "{number}");
    let columns = message(text(Text::Narrow(1), &[1, 2], b"ab"));
    assert!(columns.contains("[1, 2]"), "{columns}");
    let features = text(Text::Narrow(1), &[1, 2], b"ab").features::<f32>(&all);
    let features = features.unwrap_err().to_string();
    assert!(
        features.contains("text, and features must be numbers"),
        "{features}"
    );
}

/// The same bytes on disk and in memory, as rows of three columns of which the second is
/// left out.
fn both(kind: Kind, big: bool, bytes: &[u8]) -> (tempfile::TempDir, [Records; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d");
    std::fs::write(&path, bytes).unwrap();
    let rows = bytes.len() / kind.size() / 3;
    let head = |length| {
        let element = (Element::Number(kind), big);
        Head::new(&path, element, false, vec![rows, 3], 0, length).unwrap()
    };
    let records = [
        Source::open(&path, Some(0)).unwrap(),
        Source::in_memory(&path, bytes.to_vec()),
    ]
    .map(|source| {
        let head = head(source.length());
        let columns = head.columns(&Arc::new(source), &[2, 0], &ReadOptions::default());
        columns.unwrap()
    });
    (dir, records)
}

#[test]
fn rows_on_disk_are_those_in_memory() {
    // More than two chunks, and gaps between picked rows of all sizes.
    let bytes: Vec<u8> = (0..3_000_000u64).map(|i| (i * i % 251) as u8).collect();
    for (kind, big) in [(Kind::U8, false), (Kind::I16, true)] {
        let (_dir, [disk, memory]) = both(kind, big, &bytes);
        let n = Rows::<f32>::len(&disk);
        let expected: Matrix<f64> = memory.load().unwrap();
        assert_eq!(Rows::<f64>::load(&disk).unwrap(), expected);
        let picked: Vec<usize> = (0..400)
            .map(|i: usize| i.pow(3) % n)
            .chain([n - 1, 0, 0, n - 1, n - 2])
            .collect();
        let found: Matrix<f64> = disk.picked(&picked).unwrap();
        assert_eq!(found, expected.select_rows(&picked));
        let part: Matrix<f64> = disk.matrix(7..n - 5).unwrap();
        assert_eq!(part.values(), &expected.values()[14..2 * (n - 5)]);
    }
}

#[test]
fn a_value_that_is_not_finite_is_named_when_it_is_read() {
    let mut values = vec![1f32; 3 * 500_000];
    values[3 * 400_000 + 2] = f32::NAN;
    values[1] = f32::NAN; // In the column that is left out.
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let (_dir, records) = both(Kind::F32, false, &bytes);
    for records in records {
        let message = |found: Result<Matrix<f32>>| found.unwrap_err().to_string();
        for text in [
            message(records.load()),
            message(records.picked(&[9, 400_000, 3])),
        ] {
            let expected = "d, row 400001: feature 3 is NaN, not a finite number in f32";
            assert!(text.contains(expected), "{text}");
        }
        assert!(Rows::<f32>::matrix(&records, 0..400_000).is_ok());
    }
}

#[test]
fn files_one_after_the_other_are_rows_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let numbers = Numbers {
        kind: Kind::F64,
        big_endian: false,
        layout: Layout::Contiguous,
    };
    let mut records = Records::new(numbers, 2);
    let mut all = Vec::new();
    for (i, rows) in [3, 0, 1, 200_000].into_iter().enumerate() {
        let path = dir.path().join(i.to_string());
        let values: Vec<f64> = (0..2 * rows).map(|j| (i * 1000 + j) as f64).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        // A head that is not read.
        std::fs::write(&path, [&[1; 5], &bytes[..]].concat()).unwrap();
        all.extend(values);
        let source = Arc::new(Source::open(&path, None).unwrap());
        records = records.with_part(&source, 5, rows);
    }
    let all = Matrix::from_vec(200_004, 2, all);
    assert_eq!(Rows::<f64>::load(&records).unwrap(), all);
    let picked = [5, 2, 3, 4, 200_003, 0, 3];
    assert_eq!(
        Rows::<f64>::picked(&records, &picked).unwrap(),
        all.select_rows(&picked)
    );
    std::fs::write(dir.path().join("2"), b"").unwrap();
    let message = Rows::<f64>::picked(&records, &picked).unwrap_err();
    assert!(message.to_string().contains("now has fewer"), "{message}");
}
