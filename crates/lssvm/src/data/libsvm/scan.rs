//! The first reading: how many rows and columns there are, and where indices start.

use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::fill::Filler;
use super::line::{is_row, parse_line, tokens, without_comment};
use super::sparse;
use crate::data::ReadOptions;
use crate::data::text::{self, Problem};
use crate::error::Place;
use crate::{Error, Result};

/// The shape of a text, or of a part of it.
#[derive(Default, Clone)]
pub(super) struct Shape {
    pub(super) rows: usize,
    /// Pairs of index and value.
    pub(super) values: usize,
    /// The largest index and where it is.
    pub(super) largest: Option<(u64, usize)>,
    /// Where the first index 0 is.
    pub(super) zero: Option<usize>,
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
    pub(super) fn width(
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
pub(super) struct Scanned<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a [u8],
    pub(super) chunks: Vec<(Range<usize>, Shape)>,
    pub(super) shape: Shape,
    pub(super) labelled: bool,
}

pub(super) fn scan<'a>(
    path: &'a Path,
    bytes: &'a [u8],
    options: &ReadOptions,
) -> Result<Scanned<'a>> {
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
pub(in crate::data) struct Scan {
    pub(super) shape: Shape,
    pub(super) labelled: Option<bool>,
}

impl Scan {
    pub(in crate::data) fn new() -> Self {
        Self {
            shape: Shape::default(),
            labelled: None,
        }
    }

    /// Adds whole rows, of which at most `rows` count in all; `lines` come before them.
    /// Places are lines from now on.
    pub(in crate::data) fn add(
        &mut self,
        path: &Path,
        text: &[u8],
        lines: u64,
        rows: usize,
    ) -> Result<()> {
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
    pub(in crate::data) fn rows(&self) -> usize {
        self.shape.rows
    }

    /// Whether rows of so many columns are better kept sparse.
    pub(in crate::data) fn is_sparse(&self) -> impl Fn(usize) -> bool + use<> {
        let shape = self.shape.clone();
        move |width| sparse::suits(&[&shape], width)
    }

    /// How the rows are made dense.
    pub(in crate::data) fn finish(self, path: &Path, options: &ReadOptions) -> Result<Filler> {
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

pub(super) fn check_width(path: &Path, width: usize) -> Result<()> {
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
