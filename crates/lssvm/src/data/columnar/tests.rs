//! Tests of the readers of columns: what they read is what a CSV file with the same values
//! gives, and nothing that a file holds makes them panic.

use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::Compression;
use ::parquet::file::properties::{WriterProperties, WriterVersion};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::*;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use half::f16;

use super::*;
use crate::data::{self, Targets, Task, open, parse};
use crate::linalg::Precision;

/// Writes batches of rows, each as a row group or a batch.
type Write = Box<dyn Fn(&[RecordBatch]) -> Vec<u8>>;

fn parquet_with(properties: WriterProperties) -> Write {
    Box::new(move |batches| {
        let mut bytes = Vec::new();
        let schema = batches[0].schema();
        let mut writer =
            ArrowWriter::try_new(&mut bytes, schema, Some(properties.clone())).unwrap();
        for batch in batches {
            writer.write(batch).unwrap();
            writer.flush().unwrap();
        }
        writer.close().unwrap();
        bytes
    })
}

fn parquet_file() -> Write {
    parquet_with(WriterProperties::default())
}

fn arrow_with(is_file: bool, packed: Option<CompressionType>) -> Write {
    Box::new(move |batches| {
        let options = IpcWriteOptions::default()
            .try_with_compression(packed)
            .unwrap();
        let (mut bytes, schema) = (Vec::new(), batches[0].schema());
        if is_file {
            let mut writer =
                FileWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
            batches
                .iter()
                .for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        } else {
            let mut writer =
                StreamWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
            batches
                .iter()
                .for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
        bytes
    })
}

/// One writer for each format.
fn formats() -> Vec<(&'static str, Write)> {
    vec![
        ("parquet", parquet_file()),
        ("file", arrow_with(true, None)),
        ("stream", arrow_with(false, None)),
    ]
}

/// Writers with every way to pack and to lay out pages.
fn all_ways() -> Vec<(String, Write)> {
    let mut ways: Vec<(String, Write)> = Vec::new();
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
        Compression::ZSTD(Default::default()),
        Compression::LZ4_RAW,
    ] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for dictionary in [true, false] {
                let properties = WriterProperties::builder()
                    .set_compression(codec)
                    .set_writer_version(version)
                    .set_dictionary_enabled(dictionary)
                    .set_data_page_row_count_limit(7)
                    .set_write_batch_size(5)
                    .build();
                let name = format!("parquet {codec} {version:?} {dictionary}");
                ways.push((name, parquet_with(properties)));
            }
        }
    }
    for packed in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        for is_file in [true, false] {
            let name = format!("arrow {packed:?} {is_file}");
            ways.push((name, arrow_with(is_file, Some(packed))));
        }
    }
    ways.extend(
        formats()
            .into_iter()
            .map(|(name, write)| (name.into(), write)),
    );
    ways
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let nullable = columns.into_iter().map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(nullable).unwrap()
}

fn floats(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

fn words<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// A batch of so many rows with a column of each type; the last are labels and weights.
fn every_type(rows: std::ops::Range<i64>) -> (RecordBatch, String) {
    let ints = |most: i64| rows.clone().map(move |i| i * 37 % most);
    let reals = || rows.clone().map(|i| (i as f64 * 0.37).sin() * 100.0);
    let halves: Vec<f16> = reals().map(f16::from_f64).collect();
    let decimals = rows.clone().map(|i| i128::from(i) * 125 - 3000);
    let cents: Vec<i128> = decimals.collect();
    let truths: Vec<bool> = rows.clone().map(|i| i % 3 == 0).collect();
    let names = ["oak", "elm", "ash, white", "10"];
    let labels: Vec<&str> = rows.clone().map(|i| names[i as usize % 4]).collect();
    let levels = [0.5, -1.25, 8.0];
    let keys: Int8Array = rows.clone().map(|i| Some((i % 3) as i8)).collect();
    let dictionary = DictionaryArray::new(keys, Arc::new(Float64Array::from(levels.to_vec())));
    let keys: Int32Array = rows.clone().map(|i| Some((i % 4) as i32)).collect();
    let label_column = DictionaryArray::new(keys, words(names));
    let decimal = Decimal128Array::from(cents.clone());
    let batch = batch(vec![
        (
            "i8",
            Arc::new(Int8Array::from_iter_values(ints(100).map(|v| v as i8 - 50))),
        ),
        (
            "i16",
            Arc::new(Int16Array::from_iter_values(ints(3000).map(|v| v as i16))),
        ),
        (
            "i32",
            Arc::new(Int32Array::from_iter_values(
                ints(99991).map(|v| -(v as i32)),
            )),
        ),
        ("i64", Arc::new(Int64Array::from_iter_values(ints(1 << 40)))),
        (
            "u8",
            Arc::new(UInt8Array::from_iter_values(ints(256).map(|v| v as u8))),
        ),
        (
            "u16",
            Arc::new(UInt16Array::from_iter_values(ints(65000).map(|v| v as u16))),
        ),
        (
            "u32",
            Arc::new(UInt32Array::from_iter_values(
                ints(1 << 31).map(|v| v as u32),
            )),
        ),
        (
            "u64",
            Arc::new(UInt64Array::from_iter_values(
                ints(1 << 50).map(|v| v as u64),
            )),
        ),
        ("f16", Arc::new(Float16Array::from(halves.clone()))),
        (
            "f32",
            Arc::new(Float32Array::from_iter_values(reals().map(|v| v as f32))),
        ),
        ("f64", floats(reals())),
        ("truth", Arc::new(BooleanArray::from(truths.clone()))),
        (
            "cents",
            Arc::new(decimal.with_precision_and_scale(20, 2).unwrap()),
        ),
        ("level", Arc::new(dictionary)),
        ("label", Arc::new(label_column)),
        (
            "count",
            Arc::new(Int32Array::from_iter_values(ints(7).map(|v| v as i32))),
        ),
    ]);
    let mut csv = String::new();
    for (row, i) in rows.clone().enumerate() {
        let real = (i as f64 * 0.37).sin() * 100.0;
        let v = i * 37;
        csv += &format!(
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},\"{}\",{}\n",
            v % 100 - 50,
            v % 3000,
            -(v % 99991),
            v,
            v % 256,
            v % 65000,
            v,
            v,
            halves[row].to_f64(),
            f64::from(real as f32),
            real,
            u8::from(truths[row]),
            cents[row] as f64 / 100.0,
            levels[i as usize % 3],
            labels[row],
            v % 7,
        );
    }
    (batch, csv)
}

fn every_type_csv(csv: &str) -> String {
    let names = "i8,i16,i32,i64,u8,u16,u32,u64,f16,f32,f64,truth,cents,level,label,count";
    format!("{names}\n{csv}")
}

fn read_as(bytes: Vec<u8>, options: &ReadOptions) -> Result<Dataset<f64>> {
    parse(Path::new("d"), bytes, options).map(|parts| parts.train)
}

fn message(bytes: Vec<u8>, options: &ReadOptions) -> String {
    read_as(bytes, options).unwrap_err().to_string()
}

fn assert_same(found: &Dataset<f64>, expected: &Dataset<f64>, what: &str) {
    assert_eq!(found.features, expected.features, "{what}");
    assert_eq!(found.feature_names, expected.feature_names, "{what}");
    assert_eq!(found.weights, expected.weights, "{what}");
    assert_eq!(found.weight_name, expected.weight_name, "{what}");
    assert_eq!(found.weight_place, expected.weight_place, "{what}");
    let labels = |data: &Dataset<f64>| {
        let labels = data.labels.as_ref()?;
        let places = labels.column_places().to_vec();
        let targets = labels.resolve(Task::Auto).unwrap();
        Some((labels.column_names().to_vec(), places, targets))
    };
    assert_eq!(labels(found), labels(expected), "{what}");
}

fn weighted() -> ReadOptions {
    ReadOptions {
        weights: Some(data::Column::Name("count".into())),
        ..Default::default()
    }
}

#[test]
fn every_way_to_write_reads_like_csv() {
    let parts = [every_type(0..40), every_type(40..41), every_type(41..90)];
    let csv: String = parts.iter().map(|(_, csv)| csv.as_str()).collect();
    let batches = parts.map(|(batch, _)| batch);
    let csv = every_type_csv(&csv);
    let expected = read_as(csv.into_bytes(), &weighted()).unwrap();
    assert_eq!((expected.n_samples(), expected.n_features()), (90, 14));
    for (name, write) in all_ways() {
        let found = read_as(write(&batches), &weighted()).unwrap();
        assert_same(&found, &expected, &name);
    }
}

#[test]
fn converting_in_batches_is_reading() {
    let dir = tempfile::tempdir().unwrap();
    let batches = [every_type(0..1500).0, every_type(1500..2000).0];
    for (name, write) in formats() {
        for max_rows in [None, Some(3), Some(1700)] {
            let options = ReadOptions {
                max_rows,
                ..weighted()
            };
            let (path, out) = (dir.path().join("d"), dir.path().join("d.safetensors"));
            std::fs::write(&path, write(&batches)).unwrap();
            let mut shares = Vec::new();
            data::convert(&path, &out, &options, Precision::F64, &mut |share| {
                shares.push(share);
                true
            })
            .unwrap();
            let expected = data::read(&path, &options).unwrap().train;
            let converted = open(&out, &ReadOptions::default()).unwrap().train;
            assert_same(&converted.load().unwrap(), &expected, name);
            assert_eq!(expected.n_samples(), max_rows.unwrap_or(2000), "{name}");
            assert!(shares.is_sorted() && shares.last() == Some(&1.0));
            assert!(shares.len() > max_rows.unwrap_or(2000) / 10, "{name}");
        }
    }
}

#[test]
fn packed_files_and_folders_are_read_too() {
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    bytes
        .write_all(&parquet_file()(&[every_type(0..20).0]))
        .unwrap();
    std::fs::write(dir.path().join("train.parquet.gz"), bytes.finish().unwrap()).unwrap();
    let test = arrow_with(true, None)(&[every_type(20..30).0]);
    std::fs::write(dir.path().join("test.feather"), test).unwrap();
    let parts = data::read::<f64>(dir.path(), &weighted()).unwrap();
    let csv = |rows| {
        read_as(
            every_type_csv(&every_type(rows).1).into_bytes(),
            &weighted(),
        )
    };
    assert_same(&parts.train, &csv(0..20).unwrap(), "train");
    assert_same(&parts.test.unwrap(), &csv(20..30).unwrap(), "test");
    let out = dir.path().join("out");
    let packed = dir.path().join("train.parquet.gz");
    data::convert(&packed, &out, &weighted(), Precision::F64, &mut |_| true).unwrap();
    assert_eq!(
        open::<f64>(&out, &ReadOptions::default())
            .unwrap()
            .train
            .n_samples(),
        20
    );
}

#[test]
fn labels_are_what_a_table_has() {
    let columns: Vec<(ArrayRef, &[&str])> = vec![
        (words(["b", "a", "b"]), &["a", "b"]),
        (
            Arc::new(LargeStringArray::from_iter_values(["b", "a", "b"])),
            &["a", "b"],
        ),
        (
            Arc::new(StringViewArray::from_iter_values(["b", "a", "b"])),
            &["a", "b"],
        ),
        (
            Arc::new(BooleanArray::from(vec![true, false, true])),
            &["false", "true"],
        ),
        (Arc::new(Int64Array::from(vec![10, 9, 10])), &["9", "10"]),
        (floats([2.0, -0.0, 2.0]), &["0", "2"]),
        (
            Arc::new(
                Decimal128Array::from(vec![100, -50, 100])
                    .with_data_type(DataType::Decimal128(9, 2)),
            ),
            &["-0.50", "1.00"],
        ),
        (
            // 2^53 + 1, which is no f64.
            Arc::new(UInt64Array::from(vec![
                9_007_199_254_740_993,
                3,
                9_007_199_254_740_993,
            ])),
            &["3", "9007199254740993"],
        ),
    ];
    for (labels, expected) in columns {
        let batch = batch(vec![("label", labels), ("x", floats([1.0, 2.0, 3.0]))]);
        for (name, write) in formats() {
            let data = read_as(write(std::slice::from_ref(&batch)), &ReadOptions::default());
            let data = data.unwrap();
            assert_eq!(data.feature_names.as_deref(), Some(&["x".to_string()][..]));
            let targets = data.labels.unwrap().resolve(Task::Classification).unwrap();
            let Targets::Classes { names, codes } = targets else {
                panic!("{name}: no classes");
            };
            assert_eq!(names, expected, "{name}");
            assert_eq!(codes, [1, 0, 1], "{name}");
        }
    }
}

#[test]
fn columns_are_chosen_by_name_and_place() {
    let rows = batch(vec![
        ("b", floats([1.0, 2.0])),
        ("y1", floats([0.5, 0.25])),
        ("a", floats([3.0, 4.0])),
        ("y2", floats([7.0, 8.0])),
        ("__index_level_0__", floats([5.0, 6.0])),
    ]);
    let column = |name: &str| data::Column::Name(name.into());
    for (_, write) in formats() {
        let bytes = write(std::slice::from_ref(&rows));
        let last = read_as(bytes.clone(), &ReadOptions::default()).unwrap();
        assert_eq!(last.labels.unwrap().column_names(), ["y2"]);
        let both = ReadOptions {
            labels: Some(vec![column("y2"), data::Column::Index(2)]),
            ..Default::default()
        };
        let both = read_as(bytes.clone(), &both).unwrap();
        assert_eq!(both.features.values(), [1.0, 3.0, 2.0, 4.0]);
        let targets = both.labels.unwrap().resolve(Task::Auto).unwrap();
        let expected = Matrix::from_vec(2, 2, vec![7.0, 0.5, 8.0, 0.25]);
        assert_eq!(targets, Targets::Values(expected));
        // As for a model: features by name, in the order of the model.
        let model = ReadOptions {
            feature_names: Some(vec!["y2".into(), "a".into(), "b".into()]),
            n_features: Some(3),
            label_names: Some(vec!["y1".into()]),
            ..Default::default()
        };
        let model = read_as(bytes.clone(), &model).unwrap();
        assert_eq!(model.features.row(1), [8.0, 4.0, 2.0]);
        assert_eq!(model.labels.unwrap().column_names(), ["y1"]);
        let none = ReadOptions {
            no_labels: true,
            ..Default::default()
        };
        let none = read_as(bytes.clone(), &none).unwrap();
        assert_eq!((none.n_features(), none.labels.is_none()), (4, true));
        let missing = ReadOptions {
            labels: Some(vec![column("z")]),
            ..Default::default()
        };
        let text = message(bytes, &missing);
        assert!(
            text.contains("there is no column 'z' among b, y1, a, y2;"),
            "{text}"
        );
    }
}

fn lists(rows: &[Option<Vec<Option<f32>>>]) -> ArrayRef {
    let mut builder = builder::ListBuilder::new(builder::Float32Builder::new());
    for row in rows {
        match row {
            Some(values) => builder.append_value(values.iter().copied()),
            None => builder.append_null(),
        }
    }
    Arc::new(builder.finish())
}

#[test]
fn lists_of_one_length_are_features() {
    let row = |i: i32| Some((0..3).map(|j| Some((10 * i + j) as f32)).collect());
    let vectors = lists(&(0..50).map(row).collect::<Vec<_>>());
    let field = Arc::new(Field::new_list_field(DataType::Float32, true));
    let inner = Arc::new(Float32Array::from_iter_values(
        (0..50).flat_map(|i| (0..3).map(move |j| (10 * i + j) as f32)),
    ));
    let fixed: ArrayRef = Arc::new(FixedSizeListArray::new(field, 3, inner, None));
    for vectors in [vectors, fixed] {
        let rows = batch(vec![
            ("size", floats((0..50).map(f64::from))),
            ("v", vectors),
            ("label", words((0..50).map(|i| ["a", "b"][i % 2]))),
        ]);
        for (name, write) in all_ways() {
            let batches = [rows.slice(0, 30), rows.slice(30, 20)];
            let data = read_as(write(&batches), &ReadOptions::default()).unwrap();
            let names = data.feature_names.unwrap();
            assert_eq!(names, ["size", "v[0]", "v[1]", "v[2]"], "{name}");
            let expected = Matrix::from_fn(50, 4, |i, j| match j {
                0 => i as f64,
                _ => (10 * i + j - 1) as f64,
            });
            assert_eq!(data.features, expected, "{name}");
        }
    }
}

#[test]
fn dictionaries_may_be_replaced_in_a_stream() {
    let part = |labels: [&str; 2]| {
        let labels: DictionaryArray<Int32Type> = labels.into_iter().collect();
        batch(vec![("x", floats([1.0, 2.0])), ("label", Arc::new(labels))])
    };
    let bytes = arrow_with(false, None)(&[part(["b", "a"]), part(["c", "b"])]);
    let data = read_as(bytes, &ReadOptions::default()).unwrap();
    let expected = Targets::Classes {
        names: vec!["a".into(), "b".into(), "c".into()],
        codes: vec![1, 0, 2, 1],
    };
    assert_eq!(data.labels.unwrap().resolve(Task::Auto).unwrap(), expected);
}

#[test]
fn lists_that_are_no_features_are_named() {
    let some = |values: &[f32]| Some(values.iter().map(|&value| Some(value)).collect());
    let cases = [
        // The sums are those of equal lengths.
        (
            lists(&[some(&[1.0]), some(&[1.0, 2.0, 3.0])]),
            "row 1: column 'v': the list has 1 numbers, and others have 2",
        ),
        (
            lists(&[some(&[1.0, 2.0]), some(&[1.0])]),
            "column 'v': the lists have not all",
        ),
        (lists(&[some(&[]), some(&[])]), "column 'v': the list"),
        (
            // In which way depends on how the format counts what is missing.
            lists(&[some(&[1.0, 2.0]), None]),
            "column 'v': the",
        ),
        (
            lists(&[some(&[1.0]), Some(vec![None])]),
            "row 2: column 'v': there is no value",
        ),
        (
            lists(&[some(&[1.0]), some(&[f32::NAN])]),
            "row 2: column 'v': 'NaN' is not a finite",
        ),
    ];
    for (vectors, expected) in cases {
        let rows = batch(vec![("v", vectors), ("label", words(["a", "b"]))]);
        for (name, write) in formats() {
            let text = message(write(std::slice::from_ref(&rows)), &ReadOptions::default());
            assert!(text.contains(expected), "{name}: {text}");
        }
    }
    let rows = batch(vec![
        ("x", floats([1.0])),
        ("v", lists(&[some(&[1.0, 2.0])])),
    ]);
    for (name, write) in formats() {
        let text = message(write(std::slice::from_ref(&rows)), &ReadOptions::default());
        let expected = "d: column 'v' has lists of numbers, and a label is one text or number";
        assert!(text.starts_with(expected), "{name}: {text}");
    }
}

#[test]
fn values_that_cannot_be_used_are_named() {
    let column = |bad: Option<f64>| -> ArrayRef {
        let value = |i: i32| if i == 70 { bad } else { Some(f64::from(i)) };
        Arc::new((0..100).map(value).collect::<Float64Array>())
    };
    let labels = || words((0..100).map(|i| ["a", "b"][i % 2]));
    let bad_labels = |bad: Option<&'static str>| -> ArrayRef {
        let value = |i: i32| if i == 70 { bad } else { Some("a") };
        Arc::new((0..100).map(value).collect::<StringArray>())
    };
    let good = || column(Some(1.0));
    let cases = [
        (
            column(None),
            labels(),
            good(),
            "d, row 71: column 'x': there is no value; fill it in or drop the row",
        ),
        (
            column(Some(f64::NAN)),
            labels(),
            good(),
            "d, row 71: column 'x': 'NaN' is not a finite number; replace it",
        ),
        (
            column(Some(f64::INFINITY)),
            labels(),
            good(),
            "d, row 71: column 'x': 'inf' is not a finite",
        ),
        (
            good(),
            bad_labels(None),
            good(),
            "d, row 71: column 'label': there is no value",
        ),
        (
            good(),
            bad_labels(Some("")),
            good(),
            "d, row 71: column 'label': the label is empty",
        ),
        (
            good(),
            bad_labels(Some("nan")),
            good(),
            "d, row 71: column 'label': the label is nan",
        ),
        (
            good(),
            column(Some(f64::NAN)),
            good(),
            "d, row 71: column 'label': the label is NaN",
        ),
        (
            good(),
            labels(),
            column(Some(-1.0)),
            "d, row 71: column 'count': the weight -1 is not a number from 0 up",
        ),
        (
            good(),
            labels(),
            column(None),
            "d, row 71: column 'count': there is no value",
        ),
    ];
    for (x, labels, weights, expected) in cases {
        let rows = batch(vec![("x", x), ("label", labels), ("count", weights)]);
        for (name, write) in formats() {
            let batches = [rows.slice(0, 60), rows.slice(60, 40)];
            let text = message(write(&batches), &weighted());
            assert!(text.starts_with(expected), "{name}: {text}");
            // What is not read does no harm.
            let head = ReadOptions {
                max_rows: Some(70),
                ..weighted()
            };
            assert_eq!(
                read_as(write(&batches), &head).unwrap().n_samples(),
                70,
                "{name}"
            );
        }
    }
    let large = batch(vec![("x", floats([1e300])), ("label", words(["a"]))]);
    let data = parse::<f32>(
        Path::new("d"),
        parquet_file()(&[large]),
        &ReadOptions::default(),
    );
    let text = data.unwrap_err().to_string();
    assert!(
        text.contains("is too large for f32; read it with --precision f64"),
        "{text}"
    );
}

#[test]
fn types_that_cannot_be_used_are_named() {
    let inner: Vec<(Arc<Field>, ArrayRef)> = vec![(
        Arc::new(Field::new("part", DataType::Float64, false)),
        floats([1.0, 2.0]),
    )];
    let cases: Vec<(ArrayRef, &str)> = vec![
        (
            words(["u", "v"]),
            "column 'x' is text, not a number in each row; make numbers of it, drop it",
        ),
        (
            Arc::new(TimestampMillisecondArray::from(vec![1, 2])),
            "column 'x' is of type Timestamp(",
        ),
        (
            Arc::new(Date32Array::from(vec![1, 2])),
            "column 'x' is of type Date32",
        ),
        (
            Arc::new(BinaryArray::from_iter_values([b"a", b"b"])),
            "column 'x' is of type Binary",
        ),
        (
            Arc::new(StructArray::from(inner)),
            "column 'x' is of type Struct(",
        ),
    ];
    for (column, expected) in cases {
        let rows = batch(vec![
            ("x", column),
            ("z", floats([1.0, 2.0])),
            ("label", words(["a", "b"])),
        ]);
        for (name, write) in formats() {
            let text = message(write(std::slice::from_ref(&rows)), &ReadOptions::default());
            assert!(
                text.starts_with(&format!("d: {expected}")),
                "{name}: {text}"
            );
        }
    }
    let none = batch(vec![("x", floats([])), ("label", words([]))]);
    for (name, write) in formats() {
        let text = message(write(std::slice::from_ref(&none)), &ReadOptions::default());
        assert!(text.contains("there are no rows"), "{name}: {text}");
    }
}

#[test]
fn memory_is_asked_for_before_it_is_used() {
    let rows = every_type(0..1000).0;
    for (name, write) in formats() {
        let bytes = write(std::slice::from_ref(&rows));
        // 1000 rows of 15 features less one byte; then so little that a batch is too much.
        for (max_bytes, what) in [
            (1000 * 14 * 8 - 1, "1000 rows of 14 features"),
            (2000, "d:"),
        ] {
            let options = ReadOptions {
                max_bytes: Some(max_bytes),
                ..weighted()
            };
            let error = read_as(bytes.clone(), &options).unwrap_err();
            assert!(matches!(error, Error::Memory { .. }), "{name}: {error}");
            assert!(error.to_string().contains(what), "{name}: {error}");
        }
    }
}

/// Changes of one byte, and files that are cut, spread over a file.
fn damages(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for at in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff, 0x10] {
            let mut changed = bytes.to_vec();
            changed[at] ^= change;
            all.push(changed);
        }
        if at % 3 == 0 {
            all.push(bytes[..at].to_vec());
        }
    }
    all
}

#[test]
fn damaged_files_never_panic() {
    let rows = batch(vec![
        ("x", floats((0..8).map(f64::from))),
        (
            "level",
            Arc::new(DictionaryArray::<Int8Type>::new(
                Int8Array::from(vec![0, 1, 0, 1, 1, 0, 0, 1]),
                Arc::new(
                    Decimal128Array::from(vec![5_i128, 7])
                        .with_data_type(DataType::Decimal128(9, 2)),
                ),
            )),
        ),
        (
            "v",
            lists(
                &(0..8)
                    .map(|i| Some(vec![Some(i as f32), None, Some(2.0)]))
                    .collect::<Vec<_>>(),
            ),
        ),
        ("truth", Arc::new(BooleanArray::from(vec![true; 8]))),
        ("label", words(["a", "b", "a", "b", "a", "b", "c", "c"])),
    ]);
    let mut failed = 0;
    for (_, write) in all_ways().into_iter().step_by(3).chain([(
        String::new(),
        arrow_with(false, Some(CompressionType::ZSTD)),
    )]) {
        let bytes = write(&[rows.slice(0, 5), rows.slice(5, 3)]);
        let options = ReadOptions {
            max_bytes: Some(1 << 26),
            ..Default::default()
        };
        for damaged in damages(&bytes) {
            for format in [Format::Parquet, Format::Arrow] {
                if damaged.is_empty() {
                    continue;
                }
                let options = ReadOptions {
                    format: Some(format),
                    ..options.clone()
                };
                failed += usize::from(read_as(damaged.clone(), &options).is_err());
            }
        }
    }
    assert!(failed > 1000, "{failed}");
}

#[test]
fn a_cut_file_says_so() {
    for (name, write) in formats() {
        let bytes = write(&[every_type(0..200).0]);
        let cut = bytes[..bytes.len() - 100].to_vec();
        let text = message(cut, &ReadOptions::default());
        assert!(
            text.starts_with("d: the file is damaged: "),
            "{name}: {text}"
        );
        assert!(
            text.ends_with("get it again, or write it again"),
            "{name}: {text}"
        );
    }
}

#[test]
fn a_panic_is_an_error() {
    let text = guarded::<()>(Path::new("d"), || panic!("at {}", 3)).unwrap_err();
    assert!(
        text.to_string()
            .starts_with("d: the file is damaged: at 3;"),
        "{text}"
    );
    let none: Vec<u8> = Vec::new();
    let text = guarded::<u8>(Path::new("d"), || Ok(none[std::hint::black_box(0)])).unwrap_err();
    assert!(text.to_string().contains("index out of bounds"), "{text}");
}

#[test]
fn the_schema_need_not_say_that_values_may_be_missing() {
    let schema = Schema::new(vec![
        Field::new("x", DataType::Float32, false),
        Field::new("label", DataType::Utf8, false),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Float32Array::from(vec![1.5, 2.5])),
        words(["a", "b"]),
    ];
    let rows = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    for (name, write) in all_ways() {
        let data = read_as(write(std::slice::from_ref(&rows)), &ReadOptions::default()).unwrap();
        assert_eq!(data.features.values(), [1.5, 2.5], "{name}");
    }
}

/// Files of the same 60 rows: by pandas with pyarrow 26 (Parquet with zstd, three row groups
/// and an index of its own, and Feather with LZ4), by polars 2.1, and as CSV. The label is
/// a categorical column.
#[test]
fn files_of_other_programs_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/columnar");
    let read = |name: &str| data::read::<f64>(&folder.join(name), &ReadOptions::default());
    let expected = read("flowers.csv").unwrap().train;
    assert_eq!((expected.n_samples(), expected.n_features()), (60, 4));
    for name in [
        "flowers.zstd.parquet",
        "flowers.polars.parquet",
        "flowers.feather",
    ] {
        assert_same(&read(name).unwrap().train, &expected, name);
    }
}
