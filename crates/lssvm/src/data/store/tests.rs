//! What is converted is what was read, and damaged files are refused.

use std::fs;
use std::path::Path;

use super::*;
use crate::Result;
use crate::data::open_tests::{folders, noise};
use crate::data::{Column, Labelled, Labels, Parts, ReadOptions, Task, convert, open, parse, read};
use crate::linalg::{Matrix, Precision, Scalar};

fn write(path: &Path, out: &Path, options: &ReadOptions, precision: Precision) -> Result<()> {
    convert(path, out, options, precision, &mut |_| true)
}

/// All of some data but where it is from.
fn shown<T: Scalar>(data: &crate::data::Dataset<T>) -> String {
    let labels = data.labels.as_ref();
    let tasks = [Task::Auto, Task::Classification, Task::Regression];
    // Messages begin with the file.
    let resolved = tasks.map(|task| labels.map(|labels| labels.resolve(task).ok()));
    let columns = labels.map(|labels| (labels.column_names(), labels.column_places()));
    let rest = (&data.weights, &data.weight_name, data.weight_place);
    let more = (&data.feature_names, data.image, data.index_base);
    format!("{resolved:?} {columns:?} {rest:?} {more:?}")
}

fn same<T: Scalar>(found: Parts<T>, expected: Parts<T>) {
    assert_eq!(found.test.is_some(), expected.test.is_some());
    let tests = found.test.into_iter().zip(expected.test);
    for (found, expected) in std::iter::once((found.train, expected.train)).chain(tests) {
        assert_eq!(found.features, expected.features);
        assert_eq!(shown(&found), shown(&expected));
    }
}

/// Converts, and compares what is read then with what was read before.
fn round_trip(path: &Path, options: &ReadOptions) {
    let dir = tempfile::tempdir().unwrap();
    let plain = ReadOptions::default();
    let out = dir.path().join("f32");
    write(path, &out, options, Precision::F32).unwrap();
    same::<f32>(read(&out, &plain).unwrap(), read(path, options).unwrap());
    let out = dir.path().join("f64");
    write(path, &out, options, Precision::F64).unwrap();
    same::<f32>(read(&out, &plain).unwrap(), read(path, options).unwrap());
    same::<f64>(read(&out, &plain).unwrap(), read(path, options).unwrap());
    // Nothing else was left.
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn every_format_is_converted() {
    for (dir, name) in folders() {
        for max_rows in [None, Some(2)] {
            let options = ReadOptions {
                max_rows,
                ..Default::default()
            };
            round_trip(&dir.path().join(name), &options);
        }
    }
}

fn with_text(text: &str, check: impl Fn(&Path)) {
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d");
    fs::write(&path, text).unwrap();
    check(&path);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    fs::write(&path, packed.finish().unwrap()).unwrap();
    check(&path);
}

/// Many pieces of a table: text and numbers, a header, weights.
fn table(rows: usize, quote: &str) -> String {
    let mut text = String::from("\u{feff}a,w,\"b c\",species\r\n");
    for i in 0..rows {
        let b = (i as f64 * 0.7).sin() / 3.0;
        let weight = i % 3;
        text += &format!(
            "{},{weight},{b},{quote}kind {}{quote}\n",
            i % 300,
            i * i % 7
        );
    }
    text
}

#[test]
fn tables_are_converted_piece_by_piece() {
    let weights = ReadOptions {
        weights: Some(Column::Name("w".into())),
        ..Default::default()
    };
    let quoted = table(400, "\"");
    let lines = quoted.replace("kind ", "two\n lines, \"\"kind\"\" ");
    for text in [table(400, ""), quoted, lines] {
        with_text(&text, |path| {
            round_trip(path, &weights);
            let first = ReadOptions {
                max_rows: Some(123),
                ..weights.clone()
            };
            round_trip(path, &first);
        });
    }
    // Quotes that begin late, several label columns, no header, spaces.
    let late = (0..300)
        .map(|i| format!("{i} {} {}\n", i % 5, i * 7))
        .collect::<String>();
    let several = ReadOptions {
        labels: Some(vec![Column::Index(2), Column::Index(3)]),
        ..Default::default()
    };
    with_text(&late, |path| round_trip(path, &several));
    with_text(&(late.replace(' ', ",") + "\"1\",\"2\",3\n"), |path| {
        round_trip(path, &several);
    });
}

#[test]
fn sparse_text_is_converted_piece_by_piece() {
    let mut text = String::from("# comment\n");
    for i in 0..500 {
        let label = ["+1", "-1", "2"][i % 3];
        text += &format!("{label} {}:0.{i} {}:1 # note\n\n", i % 10 + 1, i % 40 + 12);
    }
    with_text(&text, |path| round_trip(path, &ReadOptions::default()));
    with_text(&(text.clone() + "+1 0:3 90:1\n"), |path| {
        for options in [
            ReadOptions::default(),
            ReadOptions {
                max_rows: Some(77),
                ..Default::default()
            },
            ReadOptions {
                n_features: Some(200),
                no_labels: true,
                ..Default::default()
            },
        ] {
            round_trip(path, &options);
        }
    });
}

#[test]
fn mistakes_are_those_of_reading() {
    let rows = table(300, "");
    let sparse: String = (0..300).map(|i| format!("1 {}:2\n", i + 1)).collect();
    for text in [
        rows.clone() + "1,2,x,kind 1\n",
        rows.clone() + "1,2,3\n",
        rows.clone() + "1,2,nan,k\n" + &rows,
        sparse.clone() + "1 5:x\n" + &sparse,
        sparse.clone() + "1 2:1 2:1\n",
        sparse.clone() + "5:1\n",
        String::new(),
        "a,b\n".to_string(),
        "# nothing\n".to_string(),
        "1\n1 4000000000000:1\n".to_string(),
        sparse.clone() + "1 0:1\n",
    ] {
        let options = ReadOptions {
            max_bytes: Some(1 << 20),
            index_base: text.contains(" 0:1").then_some(1),
            ..Default::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let (path, out) = (dir.path().join("d"), dir.path().join("out"));
        fs::write(&path, &text).unwrap();
        let expected = read::<f32>(&path, &options).unwrap_err().to_string();
        let found = write(&path, &out, &options, Precision::F32).unwrap_err();
        // The size that is too large is that of a row, not of all.
        match found.to_string().contains("memory budget") {
            true => assert!(expected.contains("memory budget"), "{found}"),
            false => assert_eq!(found.to_string(), expected),
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{found}");
    }
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("d"), dir.path().join("out"));
    fs::write(
        &path,
        rows.clone() + "1,2,3,\"" + &rows.replace('"', "").repeat(10),
    )
    .unwrap();
    let found = write(&path, &out, &ReadOptions::default(), Precision::F32).unwrap_err();
    assert!(
        found.to_string().contains("a quote is not closed"),
        "{found}"
    );
    assert!(found.to_string().contains("d, line 302"), "{found}");
}

#[test]
fn who_stops_leaves_nothing() {
    for (dir, name) in folders() {
        let out = tempfile::tempdir().unwrap();
        let path = out.path().join("out");
        let options = ReadOptions::default();
        let stopped = convert(
            &dir.path().join(name),
            &path,
            &options,
            Precision::F32,
            &mut |_| false,
        );
        assert!(matches!(stopped, Err(crate::Error::Interrupted)));
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
    }
}

/// A file of these rows and labels.
fn file(features: &Matrix<f64>, labels: Option<Labels>) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d");
    let mut about = Labelled::new(&path, ());
    about.labels = labels;
    let mut writer = Writer::new(&path, &about, features.cols(), Precision::F64).unwrap();
    for i in 0..features.rows() {
        writer.push(features.row(i)).unwrap();
    }
    writer.finish(&about).unwrap();
    fs::read(path).unwrap()
}

fn load(bytes: Vec<u8>) -> Result<crate::data::Dataset<f64>> {
    parse(Path::new("d"), bytes, &ReadOptions::default()).map(|parts| parts.train)
}

#[test]
fn bytes_become_numbers_when_they_must() {
    // So that whole blocks, and a part of one, are made wider.
    let n = 3 * BLOCK / 2 + 1000;
    let bytes: Vec<f64> = noise(2 * n).into_iter().map(f64::from).collect();
    let all = Matrix::from_vec(n, 2, bytes.clone());
    let small = file(&all, None);
    assert!(small.len() < 2 * n + BLOCK);
    assert_eq!(load(small).unwrap().features, all);
    for value in [0.5, -1.0, 256.0, -0.0] {
        for at in [0, n, 2 * n - 1] {
            let mut values = bytes.clone();
            values[at] = value;
            let all = Matrix::from_vec(n, 2, values);
            let found = load(file(&all, None)).unwrap().features;
            let bits = |m: &Matrix<f64>| m.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&all), "{value} at {at}");
        }
    }
}

pub(in crate::data) fn sample() -> Vec<u8> {
    let features = Matrix::from_fn(5, 3, |i, j| i as f64 * 0.3 - j as f64);
    file(
        &features,
        Some(Labels::from_text(["x", "y", "+1", "x", "y"])),
    )
}

#[test]
fn every_flipped_bit_is_found() {
    let good = sample();
    let expected = load(good.clone()).unwrap();
    assert_eq!(expected.n_samples(), 5);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d");
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        assert!(load(bad.clone()).is_err(), "byte {at}");
        if at % 37 == 0 {
            fs::write(&path, &bad).unwrap();
            let opened = open::<f32>(&path, &ReadOptions::default());
            assert!(
                opened.and_then(|parts| parts.train.load()).is_err(),
                "byte {at}"
            );
        }
    }
}

#[test]
fn damage_is_found_when_it_is_read() {
    let n = BLOCK;
    let features = Matrix::from_fn(n, 4, |i, j| (i * 7 % 256 * j % 256) as f64);
    let mut bytes = file(&features, None);
    let length = bytes.len();
    bytes[length - 2 * BLOCK] ^= 1;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d");
    fs::write(&path, bytes).unwrap();
    let data = open::<f64>(&path, &ReadOptions::default()).unwrap().train;
    let rows = [0, n / 4, 3];
    assert_eq!(
        data.features.picked(&rows).unwrap(),
        features.select_rows(&rows)
    );
    let error = data.features.load().unwrap_err().to_string();
    assert!(error.contains("do not match their checksum"), "{error}");
    let error = parse::<f64>(&path, fs::read(&path).unwrap(), &ReadOptions::default());
    assert!(error.unwrap_err().to_string().contains("do not match"));
}

#[test]
fn a_file_that_is_cut_is_refused() {
    let good = sample();
    for length in (1..good.len()).step_by(13) {
        let error = load(good[..length].to_vec()).unwrap_err().to_string();
        if length > 16 {
            assert!(error.contains("cut short"), "{length}: {error}");
        }
    }
    let long = [&good[..], b"more"].concat();
    assert!(load(long).unwrap_err().to_string().contains("longer"));
}

/// The same file with its header changed.
fn changed(from: &str, to: &str) -> String {
    let good = sample();
    let length = u64::from_le_bytes(*good.first_chunk().unwrap()) as usize;
    let header = std::str::from_utf8(&good[8..8 + length]).unwrap();
    assert!(header.contains(from), "{header}");
    let header = header.replacen(from, to, 1);
    let length = (header.len() as u64).to_le_bytes();
    let rest = &good[good.len() - (good.len() - 8 - header_length(&good))..];
    let bytes = [&length[..], header.as_bytes(), rest].concat();
    load(bytes).unwrap_err().to_string()
}

fn header_length(bytes: &[u8]) -> usize {
    u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize
}

#[test]
fn strange_headers_are_refused() {
    let newer = changed("\\\"format_version\\\":1", "\\\"format_version\\\":2");
    assert!(newer.contains("newer version of lssvm"), "{newer}");
    let model = changed("\"lssvm_data\"", "\"lssvm\"");
    assert!(model.contains("is a model of lssvm, not data"), "{model}");
    let foreign = changed("\"lssvm_data\"", "\"other\"");
    assert!(
        foreign.contains("is a safetensors file, but not data"),
        "{foreign}"
    );
    for (from, to) in [
        ("[5,3]", "[3,5]"),
        ("[5,3]", "[5,18446744073709551615]"),
        ("[5,3]", "[4611686018427387904,4611686018427387904]"),
        ("[5,3]", "[0,3]"),
        ("\"features\"", "\"other\""),
        ("\"blocks\"", "\"other\""),
        ("\"names\"", "\"values\""),
        ("65536", "0"),
        ("65536", "18446744073709551615"),
        ("\"checksum\":\"", "\"checksum\":\"0"),
        ("F64", "F32"),
        ("\"data_offsets\":[0", "\"data_offsets\":[1"),
    ] {
        let error = changed(from, to);
        assert!(error.starts_with("d: "), "{from} {to}: {error}");
    }
}

#[test]
fn features_of_a_model_are_found_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("d.csv"), dir.path().join("d"));
    fs::write(&path, "a,b,c,y\n1,2.5,3,0\n4,5,6,1\n").unwrap();
    write(&path, &out, &ReadOptions::default(), Precision::F32).unwrap();
    let wanted = |names: &[&str]| ReadOptions {
        n_features: Some(names.len()),
        feature_names: Some(names.iter().map(|name| name.to_string()).collect()),
        ..Default::default()
    };
    let data = read::<f32>(&out, &wanted(&["c", "a", "b"])).unwrap().train;
    assert_eq!(
        data.features,
        Matrix::from_rows(&[[3.0, 1.0, 2.5], [6.0, 4.0, 5.0]])
    );
    assert_eq!(data.feature_names.unwrap(), ["c", "a", "b"]);
    let error = read::<f32>(&out, &wanted(&["a", "b", "x"])).unwrap_err();
    assert!(
        error.to_string().contains("there is no feature 'x'"),
        "{error}"
    );
    let error = read::<f32>(&out, &wanted(&["a", "b"])).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("'c' is not a feature of the model"),
        "{error}"
    );
}
