//! Tests of the labels; apart, to keep the file they test short.

use super::*;

fn classes(labels: &[&str]) -> (Vec<String>, Vec<u32>) {
    match Labels::from_text(labels.iter().copied()).resolve(Task::Auto) {
        Ok(Targets::Classes { names, codes }) => (names, codes),
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers_are_sorted_as_numbers_and_text_as_text() {
    let (names, codes) = classes(&["10", "9", "+1", "9"]);
    assert_eq!(names, ["+1", "9", "10"]);
    assert_eq!(codes, [2, 1, 0, 1]);
    let (names, codes) = classes(&["10", "9", "b", "a"]);
    assert_eq!(names, ["10", "9", "a", "b"]);
    assert_eq!(codes, [0, 1, 3, 2]);
}

#[test]
fn equal_numbers_are_one_class() {
    let (names, codes) = classes(&["1.0", "2", "1", "+2"]);
    assert_eq!(names, ["1.0", "2"]);
    assert_eq!(codes, [0, 1, 0, 1]);
}

#[test]
fn the_task_follows_from_the_labels() {
    let is_regression =
        |labels: Labels| matches!(labels.resolve(Task::Auto), Ok(Targets::Values(_)));
    let whole = |n: usize| Labels::from_values(Matrix::from_fn(n, 1, |i, _| i as f64)).unwrap();
    assert!(!is_regression(whole(100)));
    assert!(is_regression(whole(101)));
    assert!(is_regression(Labels::from_text(["1.5", "2"])));
    assert!(is_regression(
        Labels::from_values(Matrix::zeros(3, 2)).unwrap()
    ));
    let chosen = Labels::from_text(["1", "2"])
        .resolve(Task::Regression)
        .unwrap();
    assert_eq!(chosen, Targets::Values(Matrix::from_rows(&[[1.0], [2.0]])));
}

#[test]
fn text_is_no_target_for_regression() {
    let labels = Labels::from_text(["1", "cat"]).with_source(Path::new("d.csv"), vec![]);
    let message = labels.resolve(Task::Regression).unwrap_err().to_string();
    assert!(
        message.starts_with("d.csv: row 2: the label 'cat' is not a number"),
        "{message}"
    );
    let message = Labels::from_text(["1"]).values(2).unwrap_err().to_string();
    assert!(
        message.contains("1 label columns, and the model has 2 outputs"),
        "{message}"
    );
}

#[test]
fn too_many_names_are_no_classes() {
    let many: Vec<String> = (0..=MAX_NAMES).map(|i| format!("name{i}")).collect();
    let labels = Labels::from_text(many.iter().map(String::as_str));
    let message = labels.resolve(Task::Auto).unwrap_err().to_string();
    assert!(
        message.contains("more than 65536 distinct labels"),
        "{message}"
    );
    let many = Matrix::from_fn(MAX_NAMES + 1, 1, |i, _| i as f64);
    let labels = Labels::from_values(many).unwrap();
    assert!(matches!(labels.resolve(Task::Auto), Ok(Targets::Values(_))));
    assert!(labels.resolve(Task::Classification).is_err());
}

#[test]
fn labels_map_to_the_classes_of_a_model() {
    let model = ["-1", "+1", "cat"].map(String::from);
    let labels = Labels::from_text(["1.0", "cat", "-1", "+1"]);
    assert_eq!(labels.codes_for(&model).unwrap(), [1, 2, 0, 1]);
    let labels = Labels::from_text(["1", "dog"]).with_source(Path::new("t.csv"), vec![]);
    assert_eq!(
        labels.codes_for(&model).unwrap_err().to_string(),
        "t.csv: row 2: the label 'dog' is not a class of the model (-1, +1, cat); \
         correct it, drop the row, or train with that class"
    );
}

#[test]
fn builders_join_in_order() {
    let mut first = Builder::new(1);
    first.push("b");
    first.push("a");
    let mut second = Builder::new(1);
    second.push("c");
    second.push("b");
    first.append(second);
    let text = first.finish().text.unwrap();
    assert_eq!(text.names, ["b", "a", "c"]);
    assert_eq!(text.codes, [0, 1, 2, 0]);

    let mut first = Builder::new(1);
    first.push("1");
    let mut second = Builder::new(1);
    second.push("2");
    second.push("x");
    first.append(second);
    assert_eq!(first.finish().no_number, Some((2, "x".to_string())));
}

#[test]
fn a_selection_forgets_labels_that_do_not_occur() {
    let labels = Labels::from_text(["x", "3", "2", "3"]);
    let selected = labels.select(&[3, 2]);
    assert_eq!(
        selected.values(1).unwrap(),
        &Matrix::from_rows(&[[3.0], [2.0]])
    );
    match selected.resolve(Task::Auto).unwrap() {
        Targets::Classes { names, codes } => {
            assert_eq!(names, ["2", "3"]);
            assert_eq!(codes, [1, 0]);
        }
        other => panic!("{other:?}"),
    }
    let message = labels.select(&[1, 0]).values(1).unwrap_err().to_string();
    assert!(message.contains("row 2: the label 'x'"), "{message}");
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    let message = Labels::from_values(Matrix::from_rows(&[[1.0], [f64::NAN]])).unwrap_err();
    assert!(message.to_string().contains("row 2 is NaN"), "{message}");
}
