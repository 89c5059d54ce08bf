use super::*;

fn bytes(n: u8) -> Vec<u8> {
    (0..n).collect()
}

fn array<'a>(shape: &[usize], fortran: bool, bytes: &'a [u8]) -> Array<'a> {
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

fn features(array: &Array<'_>) -> (Matrix<f32>, Option<ImageShape>) {
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

fn text<'a>(width: Text, shape: &[usize], bytes: &'a [u8]) -> Array<'a> {
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
    let message = |array: Array<'_>| array.labels(&all).unwrap_err().to_string();
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
