//! The second reading: lines become dense rows.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::line::{is_row, parse_line, parse_value, refuse_duplicates, rows_of};
use super::scan::{Scanned, check_width};
use crate::Result;
use crate::data::bytes::allocate;
use crate::data::labels::Builder;
use crate::data::text::{self, Problem, shown};
use crate::data::{Labelled, Labels, ReadOptions, Stream};
use crate::linalg::{Matrix, Scalar};

/// How lines become dense rows.
pub(in crate::data) struct Filler {
    pub(in crate::data) base: u32,
    pub(in crate::data) width: usize,
    pub(in crate::data) labelled: bool,
}

impl Scanned<'_> {
    pub(super) fn filler(&self, base: u32, width: usize) -> Result<Filler> {
        check_width(self.path, width)?;
        Ok(Filler {
            base,
            width,
            labelled: self.labelled,
        })
    }

    /// The rows of a file, dense.
    pub(super) fn fill<T: Scalar>(
        &self,
        base: u32,
        width: usize,
        options: &ReadOptions,
    ) -> Result<Stream<T>> {
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

impl Filler {
    /// All but the features.
    pub(in crate::data) fn about(
        &self,
        path: &Path,
        labels: Labels,
        options: &ReadOptions,
    ) -> Labelled<()> {
        let mut about = Labelled::new(path, ());
        about.index_base = Some(self.base);
        if self.labelled && !options.no_labels {
            about.labels = Some(labels.with_source(path, vec![]));
        }
        about
    }

    /// The first `rows` rows of a text of whole lines, as dense values, and their labels;
    /// also how many bytes these rows are.
    pub(in crate::data) fn rows<T: Scalar>(
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
    pub(super) fn place(&self, index: u64, at: usize) -> Result<usize, Problem> {
        let place = index.checked_sub(u64::from(self.base));
        let place = place.and_then(|place| usize::try_from(place).ok());
        // The file was read once before, and may have changed since.
        place
            .filter(|&place| place < self.width)
            .ok_or_else(|| Problem::new(at, "the file changes; try again"))
    }

    pub(super) fn push_label(
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
