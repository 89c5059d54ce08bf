use super::super::Dataset;
use super::super::read::loaded;
use super::*;
use crate::linalg::{Matrix, Points};

fn read_with(text: &str, options: &ReadOptions) -> Result<Dataset<f32>> {
    let files = [(PathBuf::from("d"), text.as_bytes().to_vec())];
    loaded(open(&files, options)?.remove(0), options)
}

fn read(text: &str) -> Dataset<f32> {
    read_with(text, &ReadOptions::default()).unwrap()
}

fn message(text: &str) -> String {
    read_with(text, &ReadOptions::default())
        .unwrap_err()
        .to_string()
}

/// Rows of one value each, in `cols` columns.
fn sparse_text(rows: usize, cols: usize) -> String {
    let line = |i: usize| format!("{} {}:{}\n", i % 2, i * 7 % cols + 1, i + 1);
    format!("{}0 {cols}:1\n", (0..rows).map(line).collect::<String>())
}

fn open_one(text: &str, options: &ReadOptions) -> Result<Stream<f32>> {
    let files = [(PathBuf::from("d"), text.as_bytes().to_vec())];
    Ok(open(&files, options)?.remove(0))
}

#[test]
fn rows_of_few_values_are_kept_sparse() {
    let text = sparse_text(20, 16);
    let sparse = open_one(&text, &ReadOptions::default()).unwrap();
    assert_eq!(sparse.features.kept_values(), Some(21));
    // One column fewer, and a value in 15 is written.
    let dense = open_one(&sparse_text(20, 15), &ReadOptions::default()).unwrap();
    assert_eq!(dense.features.kept_values(), None);
    for row in 0..20 {
        let expected = (0..16).map(|j| match row * 7 % 16 == j {
            true => row as f32 + 1.0,
            false => 0.0,
        });
        let found = sparse.features.matrix(row..row + 1).unwrap();
        assert!(found.row(0).iter().copied().eq(expected));
    }
    // In any order; a zero that is written is none.
    let text = format!("{}1 9:2 3:0 1:5\n", sparse_text(20, 32));
    let sparse = open_one(&text, &ReadOptions::default()).unwrap();
    let Points::Sparse(last) = sparse.features.points(21..22).unwrap() else {
        panic!("it is sparse")
    };
    assert_eq!(last.row(0), (&[0, 8][..], &[5.0, 2.0][..]));
    // As many columns as fit in no memory.
    let wide = open_one(&sparse_text(50, 4_000_000_000), &ReadOptions::default()).unwrap();
    assert_eq!(wide.n_features(), 4_000_000_000);
}

#[test]
fn mistakes_in_sparse_rows_are_told_as_in_dense_ones() {
    for (line, expected) in [
        ("1 3:1 3:2", "d, line 22: the index 3 occurs twice"),
        (
            "1 3:x",
            "d, line 22: the value 'x' of index 3 is not a number",
        ),
        (
            "1 3:inf",
            "d, line 22: the value 'inf' of index 3 is not a finite",
        ),
        ("3:1", "d, line 22: the line has no label"),
    ] {
        let text = format!("{}{line}\n", sparse_text(20, 20));
        let error = open_one(&text, &ReadOptions::default())
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let few = ReadOptions {
        max_bytes: Some(300),
        ..Default::default()
    };
    let error = open_one(&sparse_text(20, 20), &few)
        .unwrap_err()
        .to_string();
    assert!(error.contains("21 rows of 20 features"), "{error}");
}

#[test]
fn rows_are_made_dense() {
    let data = read("\u{feff}# head\r\n+1 qid:3 1:0.5 3:-2 # note\r\n\r\n-1\n+1 3:1e1 2:2\n");
    let expected = [[0.5, 0.0, -2.0], [0.0, 0.0, 0.0], [0.0, 2.0, 10.0]];
    assert_eq!(data.features, Matrix::from_rows(&expected));
    assert_eq!(data.index_base, Some(1));
    let codes = data
        .labels
        .unwrap()
        .codes_for(&["-1".into(), "+1".into()])
        .unwrap();
    assert_eq!(codes, [1, 0, 1]);
}

#[test]
fn an_index_0_sets_the_base() {
    let data = read("1 0:5 1:6\n2 1:7\n");
    assert_eq!(data.features, Matrix::from_rows(&[[5.0, 6.0], [0.0, 7.0]]));
    assert_eq!(data.index_base, Some(0));
    let base = |base| ReadOptions {
        index_base: Some(base),
        ..Default::default()
    };
    assert_eq!(
        read_with("1 1:5\n", &base(0)).unwrap().features.row(0),
        [0.0, 5.0]
    );
    let message = read_with("1 1:1\n1 0:5\n", &base(1))
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with("d, line 2: there is an index 0"),
        "{message}"
    );
}

#[test]
fn files_read_together_agree() {
    let file = |name: &str, text: &str| (PathBuf::from(name), text.as_bytes().to_vec());
    let files = [file("a", "1 1:5\n"), file("b", "1 0:6 3:7\n")];
    let all = open::<f32>(&files, &ReadOptions::default()).unwrap();
    let [a, b] = [0, 1].map(|i: usize| all[i].features.load().unwrap());
    assert_eq!(a.row(0), [0.0, 5.0, 0.0, 0.0]);
    assert_eq!(b.row(0), [6.0, 0.0, 0.0, 7.0]);
}

#[test]
fn a_model_sets_the_width() {
    let options = ReadOptions {
        n_features: Some(3),
        ..Default::default()
    };
    assert_eq!(read_with("1 1:5\n", &options).unwrap().features.cols(), 3);
    assert_eq!(read_with("1\n", &options).unwrap().features.cols(), 3);
    let message = read_with("1 1:5\n1 4:5\n", &options)
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with("d, line 2: the index 4 is feature 4, and the model has 3"),
        "{message}"
    );
}

#[test]
fn files_without_labels_are_read() {
    let data = read("1:5 2:6\n2:7\n");
    assert!(data.labels.is_none());
    assert_eq!(data.features, Matrix::from_rows(&[[5.0, 6.0], [0.0, 7.0]]));
    assert!(
        message("1:5\n1 1:5\n").starts_with("d, line 2: the line has the label '1', and the first")
    );
    assert!(message("1 1:5\n1:5\n").starts_with("d, line 2: the line has no label"));
}

#[test]
fn hostile_indices_do_not_allocate() {
    assert!(message("1 4000000000:1\n").contains("needs 16.00 GB"));
    assert!(message("1 18446744073709551614:1\n").contains("but the memory budget is 8.00 GB"));
    assert!(message("1 18446744073709551615:1\n").contains("is not an index"));
    assert!(message("1 99999999999999999999999:1\n").contains("is not an index"));
    assert!(message("1 -1:1\n").contains("'-1' is not an index"));
}

#[test]
fn errors_name_the_line() {
    assert!(
        message("1 1:1\n1 1:x\n")
            .starts_with("d, line 2: the value 'x' of index 1 is not a number")
    );
    assert!(
        message("1 1:1\n1 1:nan\n")
            .starts_with("d, line 2: the value 'nan' of index 1 is not a finite")
    );
    assert!(message("1 1:1e39\n").contains("is too large for f32; read it with --precision f64"));
    assert!(message("1 1:1 2\n").contains("'2' is not of the form index:value"));
    assert!(message("1 2:1 1:1 2:3\n").contains("the index 2 occurs twice"));
    assert!(message("1,2 1:1\n").contains("'1,2' are several labels"));
    assert!(message("inf 1:1\n").contains("labels must be finite"));
    assert!(message("# nothing\n").contains("there are no rows"));
    assert!(message("1\n2\n").contains("no row has a feature"));
}

#[test]
fn the_first_rows_are_read_on_demand() {
    let options = ReadOptions {
        max_rows: Some(2),
        ..Default::default()
    };
    let data = read_with("1 1:1\n# x\n2 1:2\n3 9:broken\n", &options).unwrap();
    assert_eq!(data.features, Matrix::from_rows(&[[1.0], [2.0]]));
}
