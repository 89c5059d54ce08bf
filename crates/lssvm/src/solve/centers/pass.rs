//! One pass over all rows, wherever they are: Ω is computed in blocks that are used twice
//! and forgotten.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::data::Rows;
use crate::kernel::{FillBlock, Kernel, Samples, SamplesRef};
use crate::linalg::{MatMut, MatRef, Matrix, Points, Scalar, skinny};
use crate::ranks::Ranks;
use crate::{Error, Result};

/// Rows whose sums one task forms in the number type of the rows; the tasks' sums are
/// added in order, in `f64`, so that the result does not depend on the number of threads.
const TASK_ROWS: usize = 512;

/// Values of rows that are read at once, and the fewest and most tasks they are.
const BATCH_VALUES: usize = 1 << 22;
const BATCH_TASKS: [usize; 2] = [4, 32];

/// Bytes of a block of Ω: it stays in the second-level cache from the product with the
/// directions to that with the rows' answers.
const BLOCK_BYTES: usize = 1 << 20;

/// Rows of a block: fewer, and the matrix product is slow; more gain nothing.
const BLOCK_ROWS: Range<usize> = 64..512;

/// Centres whose part of a block is computed at once.
const TILE: usize = 512;

/// Preprocessed rows that are in memory, or read again in every pass.
pub enum Source<T: Scalar> {
    /// All of them.
    Held(Samples<T>),
    /// Read batch by batch.
    Read(Arc<dyn Rows<T>>),
}

impl<T: Scalar> Source<T> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Source::Held(samples) => samples.len(),
            Source::Read(rows) => rows.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values that are kept of a row, on average.
    pub fn width(&self) -> usize {
        match self {
            Source::Held(samples) => samples.points().width(),
            Source::Read(rows) => match rows.kept_values() {
                Some(kept) => kept.div_ceil(rows.len().max(1)),
                None => rows.n_features(),
            },
        }
    }

    /// The rows with these indices.
    ///
    /// # Errors
    /// As [`Rows::read`].
    pub fn picked(&self, rows: &[usize]) -> Result<Points<T>> {
        match self {
            Source::Held(samples) => Ok(samples.points().select_rows(rows)),
            Source::Read(all) => all.picked_points(rows),
        }
    }
}

/// Rows that are read at once, whole tasks.
fn batch_rows(width: usize) -> usize {
    let [least, most] = BATCH_TASKS;
    let tasks = BATCH_VALUES / (TASK_ROWS * width.max(1));
    // A few threads share them well.
    (tasks / least * least).clamp(least, most) * TASK_ROWS
}

/// Rows of a block for so many centres.
fn block_rows<T>(centers: usize) -> usize {
    let rows = BLOCK_BYTES / (centers.max(1) * size_of::<T>());
    (rows / 16 * 16).clamp(BLOCK_ROWS.start, BLOCK_ROWS.end)
}

/// What the rows answer: turns Ω(row, centres) · directions, or zeros, into what the row
/// adds to the sums.
pub(super) type Answer<'a, T> = &'a (dyn Fn(usize, &mut [T]) + Sync);

/// Everything a pass needs but the question.
pub(super) struct Pass<'a, T: Scalar> {
    pub(super) source: &'a Source<T>,
    pub(super) centers: SamplesRef<'a, T>,
    pub(super) kernel: &'a Kernel,
    pub(super) ranks: &'a Ranks,
}

impl<T: Scalar> Pass<'_, T> {
    /// Σ over rows of Ω(centre, row) · answer(row, Ω(row, centres) · directions), a row of
    /// `columns` sums for each centre. `directions` has a row for each centre, or is left
    /// out, and then the answers are made of zeros.
    ///
    /// None if `progress`, told the share of the rows, returned false on some rank.
    pub(super) fn sums(
        &self,
        directions: Option<&Matrix<T>>,
        columns: usize,
        answer: Answer<'_, T>,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<Matrix<f64>>> {
        let directions = directions.map(|d| skinny::transpose_scaled(d.view(), T::ONE));
        let directions = directions.as_ref().map(Matrix::view);
        let own = self.own_sums(directions, columns, answer, progress);
        let own = self.ranks.agree(own)?;
        let went_on = self.ranks.all(own.is_some());
        let Some(mut total) = own.filter(|_| went_on) else {
            return Ok(None);
        };
        self.ranks.sum(&mut total);
        let p = self.centers.len();
        let sums = Matrix::from_fn(p, columns, |i, c| total[c * p + i]);
        match sums.values().iter().all(|sum| sum.is_finite()) {
            true => Ok(Some(sums)),
            false => Err(Error::Numeric(
                "the kernel values of some rows left the range of the number type; scale the \
                 features, lower the degree of the kernel or use --precision f64"
                    .into(),
            )),
        }
    }

    /// The sums over the rows of this rank, `columns` × centres.
    fn own_sums(
        &self,
        directions: Option<MatRef<'_, T>>,
        columns: usize,
        answer: Answer<'_, T>,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<Vec<f64>>> {
        let (n, p) = (self.source.len(), self.centers.len());
        let mut total = vec![0.0; columns * p];
        let step = batch_rows(self.source.width());
        let starts: Vec<usize> = (0..n).step_by(step).collect();
        let read = |start: usize| self.batch(start..(start + step).min(n));
        let mut next = starts.first().map(|&start| read(start)).transpose()?;
        for (at, &start) in starts.iter().enumerate() {
            let Some(batch) = next.take() else { break };
            let after = starts.get(at + 1);
            // The next batch is read while this one is worked on.
            let (sums, read) = rayon::join(
                || self.batch_sums(start, batch.view(), directions, columns, answer),
                || after.map(|&after| read(after)).transpose(),
            );
            next = read?;
            for sums in sums {
                let pairs = total.iter_mut().zip(sums);
                pairs.for_each(|(total, sum)| *total += sum.to_f64());
            }
            if !progress((start + batch.view().len()) as f64 / n as f64) {
                return Ok(None);
            }
        }
        Ok(Some(total))
    }

    fn batch(&self, rows: Range<usize>) -> Result<Batch<'_, T>> {
        Ok(match self.source {
            Source::Held(samples) => Batch::Held(samples.range(rows.start, rows.end)),
            Source::Read(all) => {
                let rows = all.points(rows)?;
                Batch::Read(Samples::beside(self.centers, rows, self.kernel))
            }
        })
    }

    /// The sums of each task, in order; a task's are `columns` × centres.
    fn batch_sums(
        &self,
        first: usize,
        batch: SamplesRef<'_, T>,
        directions: Option<MatRef<'_, T>>,
        columns: usize,
        answer: Answer<'_, T>,
    ) -> Vec<Vec<T>> {
        let p = self.centers.len();
        let height = block_rows::<T>(p);
        let task = |block: &mut Vec<T>, start: usize| {
            let end = (start + TASK_ROWS).min(batch.len());
            let mut sums = vec![T::ZERO; columns * p];
            for top in (start..end).step_by(height) {
                let rows = batch.range(top, (top + height).min(end));
                let k = rows.len();
                block.resize(height * p, T::ZERO);
                let mut answers = vec![T::ZERO; k * columns];
                for left in (0..p).step_by(TILE) {
                    let right = (left + TILE).min(p);
                    let tile = MatMut::strided(k, right - left, p, &mut block[left..]);
                    self.kernel
                        .fill(tile, rows, self.centers.range(left, right));
                    if let Some(directions) = directions {
                        let tile = MatRef::strided(k, right - left, p, &block[left..]);
                        let out = MatMut::new(k, columns, &mut answers);
                        let directions = directions.col_range(left, right);
                        skinny::add_product_of_transposed(out, tile, directions);
                    }
                }
                for (i, values) in answers.chunks_exact_mut(columns).enumerate() {
                    answer(first + top + i, values);
                }
                let block = MatRef::new(k, p, &block[..k * p]);
                let answers = MatRef::new(k, columns, &answers);
                skinny::add_transposed_product(&mut sums, block, answers);
            }
            sums
        };
        let starts: Vec<usize> = (0..batch.len()).step_by(TASK_ROWS).collect();
        let starts = starts.into_par_iter();
        starts.map_init(Vec::new, task).collect()
    }

    /// Bytes that a pass needs beside the centres and what it returns.
    pub(super) fn bytes(
        n: usize,
        centers: usize,
        columns: usize,
        features: [usize; 2],
        held: bool,
    ) -> u64 {
        let (value, threads) = (size_of::<T>(), rayon::current_num_threads());
        let [raw, preprocessed] = features;
        let batch = batch_rows(preprocessed).min(n);
        // A batch at work, and one being read and transformed.
        let batches = match held {
            true => n * preprocessed,
            false => batch * (2 * preprocessed + raw + preprocessed),
        };
        let blocks = threads * block_rows::<T>(centers) * centers;
        let sums = batch.div_ceil(TASK_ROWS) * columns * centers;
        (value * (batches + blocks + sums) + size_of::<f64>() * columns * centers) as u64
    }
}

/// Rows at work.
enum Batch<'a, T: Scalar> {
    Held(SamplesRef<'a, T>),
    Read(Samples<T>),
}

impl<T: Scalar> Batch<'_, T> {
    fn view(&self) -> SamplesRef<'_, T> {
        match self {
            Batch::Held(samples) => *samples,
            Batch::Read(samples) => samples.view(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(i: usize, j: usize) -> f64 {
        ((i * 13 + j * 7) as f64 * 0.37).sin()
    }

    #[test]
    fn sums_are_the_plain_ones_held_or_read_on_any_number_of_threads() {
        let kernel = Kernel::Rbf { gamma: 0.4 };
        for (n, p) in [(1, 1), (70, 5), (2600, 700)] {
            let x = Matrix::from_fn(n, 3, wave);
            let centers = Samples::new(Matrix::from_fn(p, 3, |i, j| wave(j, i + 2)), &kernel);
            let directions = Matrix::from_fn(p, 2, |i, c| wave(i, c + 5) / p as f64);
            let answer = |row: usize, values: &mut [f64]| {
                values.iter_mut().for_each(|v| *v = 2.0 * *v - row as f64)
            };
            let samples = Samples::new(x.clone(), &kernel);
            let mut omega = Matrix::zeros(n, p);
            kernel.fill(omega.view_mut(), samples.view(), centers.view());
            let held = Source::Held(samples);
            let read = Source::Read(Arc::new(x));
            let sums = |source: &Source<f64>, threads: usize| {
                let pass = Pass {
                    source,
                    centers: centers.view(),
                    kernel: &kernel,
                    ranks: &Ranks::default(),
                };
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                pool.unwrap().install(|| {
                    let sums = pass.sums(Some(&directions), 2, &answer, &mut |_| true);
                    sums.unwrap().unwrap()
                })
            };
            let found = sums(&held, 1);
            assert_eq!(found, sums(&read, 1));
            assert_eq!(found, sums(&held, 3));
            for i in 0..p {
                for c in 0..2 {
                    let answer = |row: usize| {
                        let score: f64 = (0..p)
                            .map(|j| omega.get(row, j) * directions.get(j, c))
                            .sum();
                        2.0 * score - row as f64
                    };
                    let plain: f64 = (0..n).map(|row| omega.get(row, i) * answer(row)).sum();
                    let difference = (found.get(i, c) - plain).abs();
                    assert!(difference < 1e-9 * (n * n) as f64, "{difference}");
                }
            }
        }
    }

    #[test]
    fn progress_can_stop_it() {
        let kernel = Kernel::Linear;
        let x = Matrix::from_fn(50, 2, wave);
        let centers = Samples::new(x.select_rows(&[1, 2]), &kernel);
        let source = Source::Read(Arc::new(x));
        let pass = Pass {
            source: &source,
            centers: centers.view(),
            kernel: &kernel,
            ranks: &Ranks::default(),
        };
        let sums = pass.sums(None, 1, &|_, values| values.fill(1.0), &mut |_| false);
        assert!(sums.unwrap().is_none());
    }
}
