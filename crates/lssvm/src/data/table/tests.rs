//! Tests of tables: each error by its message, each guess by its result.

use super::*;
use crate::data::{Column, Targets, Task};

fn read_with(text: &str, options: &ReadOptions) -> Result<Dataset<f32>> {
    parse(Path::new("d"), text.as_bytes(), options)
}

fn read(text: &str) -> Dataset<f32> {
    read_with(text, &ReadOptions::default()).unwrap()
}

fn message(text: &str) -> String {
    read_with(text, &ReadOptions::default())
        .unwrap_err()
        .to_string()
}

fn names(data: &Dataset<f32>) -> Vec<String> {
    match data
        .labels
        .as_ref()
        .unwrap()
        .resolve(Task::Classification)
        .unwrap()
    {
        Targets::Classes { names, .. } => names,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_last_column_is_the_label() {
    let data = read("5.1, 3.5 ,setosa\r\n\r\n4.9,3.0, virginica\r\n");
    assert_eq!(data.features, Matrix::from_rows(&[[5.1, 3.5], [4.9, 3.0]]));
    assert_eq!(names(&data), ["setosa", "virginica"]);
    assert!(data.feature_names.is_none());
}

#[test]
fn a_column_called_label_is_the_label() {
    let data = read("\u{feff}a,Class,b\n1,x,2\n3,y,4\n");
    assert_eq!(data.features, Matrix::from_rows(&[[1.0, 2.0], [3.0, 4.0]]));
    assert_eq!(data.feature_names.as_ref().unwrap(), &["a", "b"]);
    assert_eq!(data.labels.as_ref().unwrap().column_names(), ["Class"]);
    assert_eq!(names(&data), ["x", "y"]);
}

#[test]
fn quotes_and_spaces_are_taken_off() {
    let data = read("a,b,c\n\"1\", 2,\"New York, NY\"\n3,\"4\",\"two\nlines\"\n5, \"6\", \"x\"\n");
    let expected = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
    assert_eq!(data.features, Matrix::from_rows(&expected));
    assert_eq!(names(&data), ["New York, NY", "two\nlines", "x"]);
    let spaces = read("  1   2\tx\n 3 4  z \n");
    assert_eq!(
        spaces.features,
        Matrix::from_rows(&[[1.0, 2.0], [3.0, 4.0]])
    );
}

#[test]
fn columns_are_chosen_by_place_or_name() {
    let labels = |columns: &[&str]| ReadOptions {
        labels: Some(columns.iter().map(|c| c.parse().unwrap()).collect()),
        ..Default::default()
    };
    let text = "a,b,c\n1,2,3\n4,5,6\n";
    for column in ["1", "-3", "a"] {
        let data = read_with(text, &labels(&[column])).unwrap();
        assert_eq!(data.features, Matrix::from_rows(&[[2.0, 3.0], [5.0, 6.0]]));
    }
    let two = read_with(text, &labels(&["c", "a"])).unwrap();
    assert_eq!(two.labels.unwrap().values(2).unwrap().row(1), [6.0, 4.0]);
    let fail = |columns: &[&str], text| read_with(text, &labels(columns)).unwrap_err().to_string();
    assert!(fail(&["0"], text).contains("columns count from 1, and -1 is the last"));
    assert!(fail(&["4"], text).contains("there is no column 4: the table has 3"));
    assert!(fail(&["z"], text).contains("there is no column 'z' among a, b, c"));
    assert!(fail(&["a"], "1,2\n").contains("there is no header to find the column 'a' in"));
    assert!(fail(&["a", "1"], text).contains("chosen twice"));
    assert!(fail(&["a", "b", "c"], text).contains("none is a feature"));
    let text = "a,b,c\n1,2,3\n4,x,6\n";
    assert!(
        fail(&["b", "c"], text)
            .starts_with("d, line 3, column 2: column 'b': 'x' is not a number, and 2")
    );
    let none = ReadOptions {
        no_labels: true,
        ..Default::default()
    };
    assert_eq!(
        read_with("1,2\n", &none).unwrap().features.row(0),
        [1.0, 2.0]
    );
}

#[test]
fn a_model_decides_what_is_a_label() {
    let model = ReadOptions {
        n_features: Some(2),
        ..Default::default()
    };
    assert!(read_with("1,2\n3,4\n", &model).unwrap().labels.is_none());
    assert!(
        read_with("1,2,0\n3,4,1\n", &model)
            .unwrap()
            .labels
            .is_some()
    );
    let message = read_with("1,2,3,4\n", &model).unwrap_err().to_string();
    assert!(
        message.contains("the table has 4 columns, and the model needs 2 features"),
        "{message}"
    );
}

#[test]
fn a_model_finds_its_features_by_name() {
    let model = ReadOptions {
        n_features: Some(2),
        feature_names: Some(vec!["b".into(), "a".into()]),
        ..Default::default()
    };
    let data = read_with("price,a,b\n7,1,2\n", &model).unwrap();
    assert_eq!(data.features.row(0), [2.0, 1.0]);
    assert_eq!(data.labels.unwrap().column_names(), ["price"]);
    assert!(read_with("a,b\n1,2\n", &model).unwrap().labels.is_none());
    assert_eq!(
        read_with("1,2,3\n", &model).unwrap().features.row(0),
        [1.0, 2.0]
    );
    let fail = |text| read_with(text, &model).unwrap_err().to_string();
    assert!(fail("a,c,y\n1,2,3\n").contains("there is no column 'b' among a, c, y"));
    assert!(fail("a,b,id,y\n1,2,3,4\n").contains("the column 'id' is neither a feature"));
    assert!(fail("a,b,b,y\n1,2,3,4\n").contains("two columns are named 'b'"));
}

#[test]
fn errors_name_line_and_column() {
    assert_eq!(
        message("1,2,x\n\n3,red,x\n"),
        "d, line 3, column 2: 'red' is not a number; encode the column as numbers, drop it, or \
         choose it as the label column"
    );
    assert!(
        message("a,b,c\n1,2,x\n,4,x\n")
            .starts_with("d, line 3, column 1: column 'a': the field is empty")
    );
    assert!(
        message("1,2\nNaN,4\n").starts_with("d, line 2, column 1: 'NaN' is not a finite number")
    );
    assert!(
        message("1,2\n1e39,4\n")
            .contains("'1e39' is too large for f32; read it with --precision f64, or replace it")
    );
    assert!(message("1,2\n3,\n").starts_with("d, line 2, column 2: the label is empty"));
    assert!(message("1,2\n3,inf\n").starts_with("d, line 2, column 2: the label is inf"));
    assert!(
        message("1,2,3\n4,5\n")
            .starts_with("d, line 2: the line has 2 fields, and the first has 3")
    );
    assert!(message("1,5;2\n1,6;3\n").contains("'1,5' has a decimal comma"));
    assert!(message("a,b,c\n").contains("there are no rows"));
    assert!(message("5\n6\n").contains("the table has 1 columns, and none is a feature"));
    assert!(message(" \n\n").contains("0 columns"));
    let quoted = "a,b,c\n1,2,\"x\"\n\n1,z,\"x\"\n";
    assert!(
        message(quoted).starts_with("d, line 4, column 2"),
        "{}",
        message(quoted)
    );
}

#[test]
fn the_first_rows_are_read_on_demand() {
    let options = ReadOptions {
        max_rows: Some(1),
        max_bytes: Some(8),
        ..Default::default()
    };
    assert_eq!(
        read_with("1,2,3\n4,5,6\nx\n", &options)
            .unwrap()
            .features
            .rows(),
        1
    );
    assert_eq!(
        read_with("1,2,\"3\"\n4,5,6\nx\n", &options)
            .unwrap()
            .features
            .rows(),
        1
    );
    let more = ReadOptions {
        max_rows: Some(2),
        ..options
    };
    assert!(
        read_with("1,2,3\n4,5,6\n", &more)
            .unwrap_err()
            .to_string()
            .contains("needs 16 bytes")
    );
}

#[test]
fn large_files_are_read_in_order() {
    use std::fmt::Write;
    let mut text = String::new();
    for i in 0..200_000 {
        writeln!(text, "{i},{},c{}", i + 1, i % 3).unwrap();
    }
    let data = read(&text);
    assert_eq!(data.features.rows(), 200_000);
    assert!((0..200_000).all(|i| data.features.row(i) == [i as f32, i as f32 + 1.0]));
    let codes = data
        .labels
        .unwrap()
        .codes_for(&["c0", "c1", "c2"].map(String::from))
        .unwrap();
    assert!(
        codes
            .iter()
            .enumerate()
            .all(|(i, &code)| code as usize == i % 3)
    );
}

#[test]
fn a_column_of_weights_is_no_feature() {
    let options = ReadOptions {
        weights: Some(Column::Name("w".into())),
        ..ReadOptions::default()
    };
    let text = "a,w,b,y\n1,0.5,2,x\n3,2,4,z\n";
    let data = read_with(text, &options).unwrap();
    assert_eq!(data.features, Matrix::from_rows(&[[1.0, 2.0], [3.0, 4.0]]));
    assert_eq!(data.weights, Some(vec![0.5, 2.0]));
    assert_eq!(data.weight_name.as_deref(), Some("w"));
    assert_eq!(data.select(&[1]).weights, Some(vec![2.0]));

    // The last column has the weights: the label is the one before it.
    let last = ReadOptions {
        weights: Some(Column::Index(-1)),
        ..ReadOptions::default()
    };
    let data = read_with("1,2,x,3\n4,5,z,6\n", &last).unwrap();
    assert_eq!(data.features, Matrix::from_rows(&[[1.0, 2.0], [4.0, 5.0]]));
    assert_eq!(names(&data), ["x", "z"]);
    assert_eq!(data.weights, Some(vec![3.0, 6.0]));

    for (text, expected) in [
        (
            "a,w,y\n1,-2,x\n",
            "d, line 2, column 2: column 'w': the weight '-2'",
        ),
        (
            "a,w,y\n1,much,x\n",
            "the weight 'much' is not a finite number",
        ),
        ("a,y\n1,x\n", "there is no column 'w' among a, y"),
    ] {
        let error = read_with(text, &options).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_model_needs_no_weights() {
    let with = |text: &str, names: bool| {
        let options = ReadOptions {
            weights: Some(match names {
                true => Column::Name("w".into()),
                false => Column::Index(2),
            }),
            n_features: Some(2),
            feature_names: names.then(|| vec!["a".into(), "b".into()]),
            ..ReadOptions::default()
        };
        read_with(text, &options).unwrap()
    };
    for text in [
        "a,w,b,y\n1,9,2,x\n",
        "a,b,y\n1,2,x\n",
        "b,a\n2,1\n",
        "b,w,a\n2,7,1\n",
    ] {
        assert_eq!(with(text, true).features.row(0), [1.0, 2.0], "{text}");
    }
    for text in ["1,9,2,x\n3,9,4,z\n", "1,2,x\n3,4,z\n", "1,2\n3,4\n"] {
        assert_eq!(with(text, false).features.row(0), [1.0, 2.0], "{text}");
    }
}

#[test]
fn labels_are_where_they_were_in_training() {
    let model = |n_features, label_places: &[usize]| ReadOptions {
        n_features: Some(n_features),
        label_places: label_places.to_vec(),
        ..Default::default()
    };
    let first = read_with("7,1,2\n8,3,4\n", &model(2, &[1])).unwrap();
    assert_eq!(first.features, Matrix::from_rows(&[[1.0, 2.0], [3.0, 4.0]]));
    assert_eq!(names(&first), ["7", "8"]);
    let labels = first.labels.as_ref().unwrap();
    assert_eq!(labels.column_places(), [1]);
    assert_eq!(labels.select(&[1]).column_places(), [1]);

    let two = read_with("7,1,8,2\n", &model(2, &[3, 1])).unwrap();
    assert_eq!(two.features.row(0), [1.0, 2.0]);
    assert_eq!(two.labels.unwrap().values(2).unwrap().row(0), [8.0, 7.0]);

    // Another width, a choice, or a name comes first.
    assert!(
        read_with("1,2\n", &model(2, &[1]))
            .unwrap()
            .labels
            .is_none()
    );
    let chosen = ReadOptions {
        labels: Some(vec![Column::Index(3)]),
        ..model(2, &[1])
    };
    assert_eq!(names(&read_with("1,2,7\n", &chosen).unwrap()), ["7"]);
    let named = read_with("a,b,label\n1,2,7\n", &model(2, &[1])).unwrap();
    assert_eq!(names(&named), ["7"]);
    // Places that no table has, from a file that somebody else wrote.
    for places in [vec![0], vec![4], vec![usize::MAX], vec![1, 1]] {
        let _ = read_with("1,2,7\n", &model(2, &places));
        let _ = read_with("1,2,7\n", &model(1, &places));
    }
}

#[test]
fn places_of_labels_do_not_count_the_weights() {
    let weighted = ReadOptions {
        labels: Some(vec![Column::Index(2)]),
        weights: Some(Column::Index(1)),
        ..Default::default()
    };
    let data = read_with("0.5,7,1,2\n0.5,8,3,4\n", &weighted).unwrap();
    let places = data.labels.unwrap().column_places().to_vec();
    assert_eq!(places, [1]);
    let model = ReadOptions {
        n_features: Some(2),
        label_places: places,
        ..Default::default()
    };
    assert_eq!(names(&read_with("7,1,2\n", &model).unwrap()), ["7"]);
    let again = ReadOptions {
        weights: Some(Column::Index(1)),
        ..model
    };
    assert_eq!(names(&read_with("0.5,7,1,2\n", &again).unwrap()), ["7"]);
}

#[test]
fn weights_are_where_they_were_in_training() {
    let training = ReadOptions {
        labels: Some(vec![Column::Index(1)]),
        weights: Some(Column::Index(-2)),
        ..Default::default()
    };
    let data = read_with("7,1,0.5,2\n8,3,0.5,4\n", &training).unwrap();
    assert_eq!(data.weight_place, Some(3));
    assert_eq!(data.select(&[0]).weight_place, Some(3));
    let model = ReadOptions {
        n_features: Some(2),
        label_places: data.labels.unwrap().column_places().to_vec(),
        weight_place: data.weight_place,
        ..Default::default()
    };
    // With weights and labels, with labels, and with neither.
    for (text, labelled) in [
        ("7,1,0.5,2\n", true),
        ("a,b,c,d\n7,1,0.5,2\n", true),
        ("7,1,2\n", true),
        ("1,2\n", false),
    ] {
        let data = read_with(text, &model).unwrap();
        assert_eq!(data.features.row(0), [1.0, 2.0], "{text}");
        assert_eq!(data.labels.is_some(), labelled, "{text}");
    }
    // Places that no table has, from a file that somebody else wrote.
    for place in [0, 5, usize::MAX] {
        let weight_place = Some(place);
        let model = ReadOptions {
            weight_place,
            ..model.clone()
        };
        assert!(read_with("7,1,0.5,2\n", &model).is_err());
    }
}

#[test]
fn a_name_that_is_a_number_is_a_name() {
    let text = "country,2015,2016,1\n1,2,3,7\n4,5,6,8\n";
    let with = |column: &str| ReadOptions {
        labels: Some(vec![column.parse().unwrap()]),
        ..Default::default()
    };
    let label = |column: &str| {
        let data = read_with(text, &with(column)).unwrap();
        data.labels.unwrap().column_names()[0].clone()
    };
    assert_eq!(label("2016"), "2016");
    assert_eq!(label("1"), "1", "the name comes before the place");
    assert_eq!(label("2"), "2015");
    assert_eq!(label("-1"), "1");
    let missing = read_with(text, &with("2017")).unwrap_err().to_string();
    assert!(missing.contains("no column 2017"), "{missing}");

    // For a model too, and for weights.
    let model = ReadOptions {
        n_features: Some(2),
        feature_names: Some(vec!["country".into(), "2015".into()]),
        weights: Some(Column::Index(1)),
        ..with("2016")
    };
    let data = read_with(text, &model).unwrap();
    assert_eq!(data.labels.unwrap().column_names(), ["2016"]);
    assert_eq!(data.weights.unwrap(), [7.0, 8.0]);
}
