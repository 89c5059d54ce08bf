//! LIBSVM's sparse text: a line is `label index:value index:value ...`, and
//! features that are not written are 0.
//!
//! The text is read twice: first for its shape (rows, largest index, whether
//! indices start at 0), then for the values, which go straight to their place
//! in the matrix: a dense one, or a sparse one if few values are written.
//! Holding the values between two halves of one pass would cost more memory
//! than the second pass costs time. Files that are read together agree on where
//! indices start, on the number of features, and on how rows are kept.
//!
//! `qid:` pairs are skipped, `#` begins a comment, and a file whose lines
//! begin with `index:value` has no labels.

mod sparse;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::bytes::allocate;
use super::labels::Builder;
use super::text::{self, Problem, shown};
use super::{Labelled, Labels, ReadOptions, Stream};
use crate::error::Place;
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// The shape of a text, or of a part of it.
#[derive(Default, Clone)]
struct Shape {
    rows: usize,
    /// Pairs of index and value.
    values: usize,
    /// The largest index and where it is.
    largest: Option<(u64, usize)>,
    /// Where the first index 0 is.
    zero: Option<usize>,
}

impl Shape {
    fn join(mut self, other: &Shape) -> Shape {
        self.rows += other.rows;
        self.values += other.values;
        if other.largest.map(|l| l.0) > self.largest.map(|l| l.0) {
            self.largest = other.largest;
        }
        self.zero = self.zero.or(other.zero);
        self
    }

    /// Number of features that so shaped rows need. `fail` makes an error of a place and
    /// a message.
    fn width(
        &self,
        base: u32,
        options: &ReadOptions,
        fail: impl Fn(usize, String) -> Error,
    ) -> Result<usize> {
        let base = u64::from(base);
        if let (Some(at), 1) = (self.zero, base) {
            let message = "there is an index 0, and indices start at 1; read with index base 0";
            return Err(fail(at, message.to_string()));
        }
        let Some((largest, at)) = self.largest else {
            let message = "no row has a feature; check how the file was written";
            return options.n_features.ok_or_else(|| fail(0, message.into()));
        };
        let width = usize::try_from(largest + 1 - base).unwrap_or(usize::MAX);
        match options.n_features {
            Some(n) if width > n => Err(fail(
                at,
                format!(
                    "the index {largest} is feature {width}, and the model has {n} features; \
                     use data with the features of the model"
                ),
            )),
            _ => Ok(width),
        }
    }
}

/// A file after its first reading.
struct Scanned<'a> {
    path: &'a Path,
    text: &'a [u8],
    chunks: Vec<(Range<usize>, Shape)>,
    shape: Shape,
    labelled: bool,
}

/// How lines become dense rows.
pub(super) struct Filler {
    pub(super) base: u32,
    pub(super) width: usize,
    pub(super) labelled: bool,
}

/// The samples in one or several files, with the same features.
pub(super) fn open<T: Scalar>(
    files: &[(PathBuf, Vec<u8>)],
    options: &ReadOptions,
) -> Result<Vec<Stream<T>>> {
    let scanned = files.iter().map(|(path, bytes)| scan(path, bytes, options));
    let scanned: Vec<Scanned<'_>> = scanned.collect::<Result<_>>()?;
    let zero = scanned.iter().any(|file| file.shape.zero.is_some());
    let base = options.index_base.unwrap_or(if zero { 0 } else { 1 });
    let mut width = options.n_features.unwrap_or(0);
    for file in &scanned {
        let fail = |at, message: String| Problem::new(at, message).at(file.path, file.text);
        width = width.max(file.shape.width(base, options, fail)?);
    }
    let shapes: Vec<&Shape> = scanned.iter().map(|file| &file.shape).collect();
    let is_sparse = sparse::suits(&shapes, width);
    let filled = scanned.iter().map(|file| match is_sparse {
        true => file.fill_sparse(base, width, options),
        false => file.fill(base, width, options),
    });
    filled.collect()
}

fn is_row(line: &[u8]) -> bool {
    !without_comment(line).is_empty()
}

fn without_comment(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b'#')
        .next()
        .unwrap_or(line)
        .trim_ascii()
}

fn scan<'a>(path: &'a Path, bytes: &'a [u8], options: &ReadOptions) -> Result<Scanned<'a>> {
    let mut text = text::without_bom(bytes);
    if let Some(rows) = options.max_rows {
        text = text::first_rows(text, rows, is_row);
    }
    let chunks = scan_chunks(text).map_err(|problem| problem.at(path, text))?;
    let shape = chunks
        .iter()
        .fold(Shape::default(), |all, (_, shape)| all.join(shape));
    check_rows(path, shape.rows)?;
    Ok(Scanned {
        path,
        text,
        chunks,
        shape,
        labelled: has_label(text).unwrap_or(false),
    })
}

/// The chunks of a text and their shapes.
fn scan_chunks(text: &[u8]) -> Result<Vec<(Range<usize>, Shape)>, Problem> {
    let chunks = text::chunks(text).into_par_iter().map(|chunk| {
        let shape = scan_chunk(text, chunk.clone())?;
        Ok((chunk, shape))
    });
    // Collected before the first error is taken, so that it is the first in
    // the file, whichever thread was faster.
    let chunks: Vec<Result<_, Problem>> = chunks.collect();
    chunks.into_iter().collect()
}

fn check_rows(path: &Path, rows: usize) -> Result<()> {
    if rows == 0 {
        let problem = "there are no rows; check how the file was written";
        return Err(Error::file(path, Place::Whole, problem));
    }
    Ok(())
}

/// Whether the first row has a label, if there is a row.
fn has_label(text: &[u8]) -> Option<bool> {
    let mut lines = text::lines(text).map(|(_, line)| without_comment(line));
    let first = lines.find(|line| !line.is_empty())?;
    Some(!tokens(first).next().is_some_and(|t| t.contains(&b':')))
}

/// The first of two readings of a text that does not fit in memory.
pub(super) struct Scan {
    shape: Shape,
    labelled: Option<bool>,
}

impl Scan {
    pub(super) fn new() -> Self {
        Self {
            shape: Shape::default(),
            labelled: None,
        }
    }

    /// Adds whole rows, of which at most `rows` count in all; `lines` come before them.
    /// Places are lines from now on.
    pub(super) fn add(&mut self, path: &Path, text: &[u8], lines: u64, rows: usize) -> Result<()> {
        let text = text::first_rows(text, rows - self.shape.rows, is_row);
        let chunks = scan_chunks(text).map_err(|problem| problem.after(lines, path, text))?;
        let line = |at: usize| (lines + text::line_of(text, at)) as usize;
        for (_, mut shape) in chunks {
            let is_larger = shape.largest.map(|l| l.0) > self.shape.largest.map(|l| l.0);
            shape.largest = shape
                .largest
                .filter(|_| is_larger)
                .map(|(i, at)| (i, line(at)));
            shape.zero = shape.zero.filter(|_| self.shape.zero.is_none()).map(line);
            self.shape = std::mem::take(&mut self.shape).join(&shape);
        }
        self.labelled = self.labelled.or(has_label(text));
        Ok(())
    }

    /// Number of rows so far.
    pub(super) fn rows(&self) -> usize {
        self.shape.rows
    }

    /// Whether rows of so many columns are better kept sparse.
    pub(super) fn is_sparse(&self) -> impl Fn(usize) -> bool + use<> {
        let shape = self.shape.clone();
        move |width| sparse::suits(&[&shape], width)
    }

    /// How the rows are made dense.
    pub(super) fn finish(self, path: &Path, options: &ReadOptions) -> Result<Filler> {
        check_rows(path, self.shape.rows)?;
        let zero = self.shape.zero.is_some();
        let base = options.index_base.unwrap_or(if zero { 0 } else { 1 });
        let fail = |line: usize, message| match line {
            0 => Error::file(path, Place::Whole, message),
            line => Error::file(path, Place::Line(line as u64), message),
        };
        let least = options.n_features.unwrap_or(0);
        let width = self.shape.width(base, options, fail)?.max(least);
        check_width(path, width)?;
        Ok(Filler {
            base,
            width,
            labelled: self.labelled.unwrap_or(false),
        })
    }
}

fn check_width(path: &Path, width: usize) -> Result<()> {
    if width == 0 {
        let problem = "there are no features; check how the file was written";
        return Err(Error::file(path, Place::Whole, problem));
    }
    Ok(())
}

fn scan_chunk(text: &[u8], chunk: Range<usize>) -> Result<Shape, Problem> {
    let mut shape = Shape::default();
    let mut note = |index: u64, _: &[u8], at: usize| {
        shape.values += 1;
        if shape.largest.is_none_or(|(largest, _)| index > largest) {
            shape.largest = Some((index, at));
        }
        if index == 0 && shape.zero.is_none() {
            shape.zero = Some(at);
        }
        Ok(())
    };
    let mut rows = 0;
    for (at, line) in text::lines(&text[chunk.clone()]) {
        let line = without_comment(line);
        if !line.is_empty() {
            parse_line(line, chunk.start + at, &mut note)?;
            rows += 1;
        }
    }
    shape.rows = rows;
    Ok(shape)
}

fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|token| !token.is_empty())
}

/// Calls `feature(index, value, at)` for each pair of a line and returns the
/// label, if the line has one.
fn parse_line<'a>(
    line: &'a [u8],
    at: usize,
    feature: &mut impl FnMut(u64, &'a [u8], usize) -> Result<(), Problem>,
) -> Result<Option<&'a [u8]>, Problem> {
    let mut label = None;
    for (i, token) in tokens(line).enumerate() {
        let Some(colon) = token.iter().position(|&byte| byte == b':') else {
            if i == 0 {
                label = Some(token);
                continue;
            }
            let message = format!(
                "'{}' is not of the form index:value; correct the line",
                shown(token)
            );
            return Err(Problem::new(at, message));
        };
        let (index, value) = (&token[..colon], &token[colon + 1..]);
        if index == b"qid" {
            continue;
        }
        let Some(index) = text::parse::<u64>(index).filter(|&index| index < u64::MAX) else {
            let message = format!(
                "'{}' is not an index; correct '{}'",
                shown(index),
                shown(token)
            );
            return Err(Problem::new(at, message));
        };
        feature(index, value, at)?;
    }
    Ok(label)
}

impl Scanned<'_> {
    fn filler(&self, base: u32, width: usize) -> Result<Filler> {
        check_width(self.path, width)?;
        Ok(Filler {
            base,
            width,
            labelled: self.labelled,
        })
    }

    /// The rows of a file, dense.
    fn fill<T: Scalar>(&self, base: u32, width: usize, options: &ReadOptions) -> Result<Stream<T>> {
        let filler = self.filler(base, width)?;
        let mut values = allocate(self.path, self.shape.rows, width, options)?;
        let chunks = self
            .chunks
            .iter()
            .map(|(chunk, shape)| (chunk.clone(), shape.rows));
        let labels = filler
            .fill(self.text, chunks, &mut values)
            .map_err(|problem| problem.at(self.path, self.text))?;
        let features = Matrix::from_vec(self.shape.rows, width, values);
        let about = filler.about(self.path, labels.finish(), options);
        Ok(about.with_features(Arc::new(features)))
    }
}

/// The lines that are rows, without their comments, each with its place in the text.
fn rows_of(text: &[u8], chunk: Range<usize>) -> impl Iterator<Item = (usize, &[u8])> {
    let start = chunk.start;
    text::lines(&text[chunk])
        .map(move |(at, line)| (start + at, without_comment(line)))
        .filter(|(_, line)| !line.is_empty())
}

impl Filler {
    /// All but the features.
    pub(super) fn about(&self, path: &Path, labels: Labels, options: &ReadOptions) -> Labelled<()> {
        let mut about = Labelled::new(path, ());
        about.index_base = Some(self.base);
        if self.labelled && !options.no_labels {
            about.labels = Some(labels.with_source(path, vec![]));
        }
        about
    }

    /// The first `rows` rows of a text of whole lines, as dense values, and their labels;
    /// also how many bytes these rows are.
    pub(super) fn rows<T: Scalar>(
        &self,
        text: &[u8],
        rows: usize,
    ) -> Result<(Vec<T>, Builder, usize), Problem> {
        let part = text::first_rows(text, rows, is_row);
        let count = |chunk: Range<usize>| {
            let lines = text::lines(&part[chunk.clone()]);
            (chunk, lines.filter(|(_, line)| is_row(line)).count())
        };
        let chunks: Vec<_> = text::chunks(part).into_iter().map(count).collect();
        let rows: usize = chunks.iter().map(|(_, rows)| rows).sum();
        let mut values = vec![T::ZERO; rows * self.width];
        let labels = self.fill(part, chunks.into_iter(), &mut values)?;
        Ok((values, labels, part.len()))
    }

    /// Fills zeros with the rows of chunks of a text, each with their number.
    fn fill<T: Scalar>(
        &self,
        text: &[u8],
        chunks: impl Iterator<Item = (Range<usize>, usize)>,
        values: &mut [T],
    ) -> Result<Builder, Problem> {
        let mut rest = values;
        let mut tasks = Vec::new();
        for (chunk, rows) in chunks {
            let (rows, after) = rest.split_at_mut(rows * self.width);
            tasks.push((chunk, rows));
            rest = after;
        }
        let filled = tasks
            .into_par_iter()
            .map(|(chunk, rows)| self.fill_chunk(text, chunk, rows));
        let filled: Vec<Result<Builder, Problem>> = filled.collect();
        let mut labels = Builder::new(1);
        for builder in filled {
            labels.append(builder?);
        }
        Ok(labels)
    }

    fn fill_chunk<T: Scalar>(
        &self,
        text: &[u8],
        chunk: Range<usize>,
        rows: &mut [T],
    ) -> Result<Builder, Problem> {
        let mut labels = Builder::new(1);
        let lines = rows_of(text, chunk);
        for ((at, line), row) in lines.zip(rows.chunks_exact_mut(self.width)) {
            let (mut previous, mut sorted) = (None, true);
            let label = parse_line(line, at, &mut |index, value, at| {
                sorted &= previous < Some(index);
                previous = Some(index);
                row[self.place(index, at)?] = parse_value(index, value, at)?;
                Ok(())
            })?;
            if !sorted {
                refuse_duplicates(line, at)?;
            }
            self.push_label(&mut labels, label, at)?;
        }
        Ok(labels)
    }

    /// The column of an index.
    fn place(&self, index: u64, at: usize) -> Result<usize, Problem> {
        let place = index.checked_sub(u64::from(self.base));
        let place = place.and_then(|place| usize::try_from(place).ok());
        // The file was read once before, and may have changed since.
        place
            .filter(|&place| place < self.width)
            .ok_or_else(|| Problem::new(at, "the file changes; try again"))
    }

    fn push_label(
        &self,
        labels: &mut Builder,
        label: Option<&[u8]>,
        at: usize,
    ) -> Result<(), Problem> {
        let Some(label) = label else {
            return match self.labelled {
                false => Ok(()),
                true => Err(Problem::new(
                    at,
                    "the line has no label, and the first has; add it",
                )),
            };
        };
        let show = shown(label);
        if !self.labelled {
            let message =
                format!("the line has the label '{show}', and the first has none; drop it");
            return Err(Problem::new(at, message));
        }
        if label.contains(&b',') {
            let message = format!(
                "'{show}' are several labels, and a row can have only one; choose one for each row"
            );
            return Err(Problem::new(at, message));
        }
        let Ok(text) = std::str::from_utf8(label) else {
            return Err(Problem::new(
                at,
                format!("the label '{show}' is not UTF-8; convert the file"),
            ));
        };
        if text.parse().is_ok_and(|v: f64| !v.is_finite()) {
            let message = format!("the label is '{show}'; labels must be finite: drop the line");
            return Err(Problem::new(at, message));
        }
        labels.push(text);
        Ok(())
    }
}

fn parse_value<T: Scalar>(index: u64, value: &[u8], at: usize) -> Result<T, Problem> {
    let problem = |what: &str| {
        let message = format!(
            "the value '{}' of index {index} is {what}; correct it",
            shown(value)
        );
        Problem::new(at, message)
    };
    match text::parse::<T>(value) {
        Some(number) if number.is_finite() => Ok(number),
        Some(_) => Err(problem(&format!(
            "not a finite number in {:?}",
            T::PRECISION
        ))),
        None => Err(problem("not a number")),
    }
}

fn refuse_duplicates(line: &[u8], at: usize) -> Result<(), Problem> {
    let mut indices = Vec::new();
    parse_line(line, at, &mut |index, _, _| {
        indices.push(index);
        Ok(())
    })?;
    indices.sort_unstable();
    match indices.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            let message = format!("the index {} occurs twice; keep one", pair[0]);
            Err(Problem::new(at, message))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Dataset;
    use super::super::read::loaded;
    use super::*;
    use crate::linalg::Points;

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
            message("1:5\n1 1:5\n")
                .starts_with("d, line 2: the line has the label '1', and the first")
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
        assert!(message("1 1:1e39\n").contains("not a finite number in F32"));
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
}
