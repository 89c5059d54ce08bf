//! Rows of numbers that lie at known places of one or several files.
//!
//! Rows are read in chunks, on all threads: the bytes of a chunk go to a buffer of the
//! thread and from there, as numbers, to the caller. Where the file has the numbers as
//! memory has them, they go to the caller at once. Rows that are picked here and there
//! are read in the order of the file, those that are near each other at once.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::number::Numbers;
use crate::data::Rows;
use crate::data::source::Source;
use crate::error::Place;
use crate::linalg::Scalar;
use crate::{Error, Result};

/// Bytes that one task reads and converts: large against the cost of a read, small
/// enough that they are converted from the cache.
const CHUNK: usize = 1 << 20;

/// Rows of a chunk, at least, where they are in memory: a column of an array in Fortran
/// order is one piece of so many values.
const FEWEST_ROWS: usize = 16;

/// Bytes between two rows that are rather read than skipped. From the page cache a read
/// takes 3 µs and 6 µs more for so many bytes; from a disk it takes so much longer that
/// they do not count.
const GAP: usize = 1 << 14;

/// Rows of numbers, part after part.
pub(in crate::data) struct Records {
    numbers: Numbers,
    cols: usize,
    parts: Vec<Part>,
    /// Which column of the file each feature is, counted from 0, if not all are features.
    places: Option<Vec<usize>>,
}

/// Rows of one file.
struct Part {
    source: Arc<Source>,
    /// Byte of the first row.
    start: u64,
    /// Which of all rows they are.
    rows: Range<usize>,
}

impl Records {
    /// Rows of `cols` numbers, none as yet.
    pub(in crate::data) fn new(numbers: Numbers, cols: usize) -> Self {
        Self {
            numbers,
            cols,
            parts: Vec::new(),
            places: None,
        }
    }

    /// The columns of the file that these are, for messages.
    pub(super) fn with_places(mut self, columns: &[usize]) -> Self {
        self.places = Some(columns.to_vec());
        self
    }

    /// Adds so many rows, the first of which begins at byte `start`. The file must have
    /// them, and all of it must be in memory if they are not row after row.
    pub(in crate::data) fn with_part(
        mut self,
        source: &Arc<Source>,
        start: usize,
        rows: usize,
    ) -> Self {
        let first = self.count();
        self.parts.push(Part {
            source: Arc::clone(source),
            start: start as u64,
            rows: first..first + rows,
        });
        self
    }

    fn count(&self) -> usize {
        self.parts.last().map_or(0, |part| part.rows.end)
    }

    /// Bytes from one row to the next.
    fn stride(&self) -> usize {
        self.numbers.row(self.cols) * self.numbers.kind.size()
    }

    fn part_of(&self, row: usize) -> &Part {
        let at = self.parts.partition_point(|part| part.rows.end <= row);
        &self.parts[at]
    }

    /// The same as [`Rows::read`], where values need not be finite.
    pub(super) fn read_any<T: Scalar>(&self, rows: Range<usize>, out: &mut [T]) -> Result<()> {
        let in_memory = self.parts.iter().all(|part| part.source.bytes().is_some());
        let fewest = if in_memory { FEWEST_ROWS } else { 1 };
        let bytes = self.stride().max(self.cols * self.numbers.kind.size());
        let chunk = (CHUNK / bytes).max(fewest);
        let read = |(i, out): (usize, &mut [T])| {
            let first = rows.start + i * chunk;
            self.read_chunk(first, out).err()
        };
        let chunks = out.par_chunks_mut(chunk * self.cols).enumerate();
        // The first in the file, whichever thread was faster.
        match chunks.find_map_first(read) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Rows from `first` on, on this thread.
    fn read_chunk<T: Scalar>(&self, first: usize, out: &mut [T]) -> Result<()> {
        let (mut first, mut out) = (first, out);
        while !out.is_empty() {
            let part = self.part_of(first);
            let rows = (part.rows.end - first).min(out.len() / self.cols);
            let (own, rest) = out.split_at_mut(rows * self.cols);
            self.read_part(part, first - part.rows.start, own)?;
            (first, out) = (first + rows, rest);
        }
        Ok(())
    }

    /// Rows of one part from its `first` on.
    fn read_part<T: Scalar>(&self, part: &Part, first: usize, out: &mut [T]) -> Result<()> {
        if let Some(bytes) = part.source.bytes() {
            let values = &bytes[part.start as usize..];
            self.numbers.decode(values, first, out, self.cols);
            return Ok(());
        }
        let stride = self.stride();
        let at = part.start + first as u64 * stride as u64;
        if self.numbers.is_native::<T>() {
            return part.source.read(at, bytemuck::cast_slice_mut(out));
        }
        let mut bytes = vec![0; out.len() / self.cols * stride];
        part.source.read(at, &mut bytes)?;
        self.numbers.decode(&bytes, 0, out, self.cols);
        Ok(())
    }

    /// Rows that are near each other, in the order of the file, each with where it goes.
    fn pick_run<T: Scalar>(&self, run: &mut [(usize, &mut [T])]) -> Result<()> {
        let (Some(&(first, _)), Some(&(last, _))) = (run.first(), run.last()) else {
            return Ok(());
        };
        let part = self.part_of(first);
        let own = |row: usize| row - part.rows.start;
        if part.source.bytes().is_some() || first == last {
            return run
                .iter_mut()
                .try_for_each(|(row, out)| self.read_part(part, own(*row), out));
        }
        let stride = self.stride();
        let mut bytes = vec![0; (last - first + 1) * stride];
        let at = part.start + own(first) as u64 * stride as u64;
        part.source.read(at, &mut bytes)?;
        for (row, out) in run {
            self.numbers.decode(&bytes, *row - first, out, self.cols);
        }
        Ok(())
    }

    /// Whether two rows, the first of which is not behind the second, are read at once.
    fn is_near(&self, first: usize, row: usize, next: usize) -> bool {
        let stride = self.stride();
        let gap = (next - row).saturating_sub(1).saturating_mul(stride);
        let all = (next - first + 1).saturating_mul(stride);
        gap <= GAP && all <= CHUNK && self.part_of(first).rows.contains(&next)
    }

    /// Whether the values of these rows are finite; `row(i)` is which the `i`th is.
    fn check<T: Scalar>(&self, values: &[T], row: impl Fn(usize) -> usize + Sync) -> Result<()> {
        if !self.numbers.may_be_infinite() {
            return Ok(());
        }
        let chunk = (CHUNK / size_of::<T>()).max(1);
        let chunks = values.par_chunks(chunk).enumerate();
        let found = chunks.find_map_first(|(i, values)| {
            // Without an early end, which would keep the compiler from using vector
            // registers; the place is sought only where there is one.
            let finite = values.iter().fold(true, |all, v| all & v.is_finite());
            let at = || values.iter().position(|v| !v.is_finite());
            (!finite).then(at).flatten().map(|at| i * chunk + at)
        });
        let Some(at) = found else { return Ok(()) };
        let (row, feature) = (row(at / self.cols), at % self.cols);
        let feature = self.places.as_ref().map_or(feature, |all| all[feature]) + 1;
        let part = self.part_of(row);
        let problem = format!(
            "feature {feature} is {}, not a finite number in {}; replace it or drop the row",
            values[at],
            T::PRECISION
        );
        let place = Place::Row((row - part.rows.start) as u64 + 1);
        Err(Error::file(part.source.path(), place, problem))
    }
}

impl<T: Scalar> Rows<T> for Records {
    fn len(&self) -> usize {
        self.count()
    }

    fn n_features(&self) -> usize {
        self.cols
    }

    fn read(&self, rows: Range<usize>, out: &mut [T]) -> Result<()> {
        assert_eq!(out.len(), rows.len() * self.cols, "room for the rows");
        self.read_any(rows.clone(), out)?;
        self.check(out, |i| rows.start + i)
    }

    fn pick(&self, rows: &[usize], out: &mut [T]) -> Result<()> {
        assert_eq!(out.len(), rows.len() * self.cols, "room for the rows");
        let places = out.chunks_exact_mut(self.cols);
        let mut sorted: Vec<(usize, &mut [T])> = rows.iter().copied().zip(places).collect();
        sorted.sort_unstable_by_key(|&(row, _)| row);
        let mut runs: Vec<&mut [(usize, &mut [T])]> = Vec::new();
        let mut rest = sorted.as_mut_slice();
        while let Some(&(first, _)) = rest.first() {
            let near = |pair: &[(usize, &mut [T])]| self.is_near(first, pair[0].0, pair[1].0);
            let length = 1 + rest.windows(2).take_while(|pair| near(pair)).count();
            let (run, after) = rest.split_at_mut(length);
            runs.push(run);
            rest = after;
        }
        let failed = runs.into_par_iter().map(|run| self.pick_run(run));
        failed
            .collect::<Vec<_>>()
            .into_iter()
            .collect::<Result<()>>()?;
        self.check(out, |i| rows[i])
    }
}
