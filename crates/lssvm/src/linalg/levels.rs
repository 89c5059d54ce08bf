//! Rows of evenly spaced levels, such as the grey of pixels, as bytes.
//!
//! ```text
//!     x = α q + β 1,     q in {0, …, 255}ᴹ,     α and β of each row
//! ```
//!
//! Pixels that were centred and brought to unit norm are of this form still, since both are
//! done row by row. Sums of products of bytes are exact, and a processor makes four times as
//! many in an instruction as products of numbers of 32 bits (see [`products`]).
//!
//! Nothing is rounded to levels: a row is taken as such only if it is one, to the last bits
//! of its numbers. Sums being exact, a product has the same bits whatever it is computed beside.

mod products;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Range;

use rayon::prelude::*;

use super::simd::{Arch, Job, LINE, dispatch};
use super::{MatRef, Scalar};

pub use products::{are_quick, products};

/// Spaces between the lowest and the highest level, at most.
const MOST_SPACES: u32 = 255;

/// By how much a value may differ from its level, in units in the last place of the largest
/// value of its row: what centring and scaling round, of the value itself and of the two that
/// tell where the levels are.
const LAST_PLACES: f64 = 4.0;

/// How many times as far apart as that levels must be. A row of few different values may be
/// taken for one of levels by chance; it is then changed by what it may differ from them.
const CLEARANCE: f64 = 1e3;

/// The largest values, so that sums of their products stay numbers.
const LARGEST: f64 = 1e150;

/// Columns from which products of bytes are quicker, and up to which their sums, of products
/// that are at least -128 · 255, cannot overflow 32 bits.
const FEWEST_COLUMNS: usize = 32;
const MOST_COLUMNS: usize = 65_000;

/// Values that are looked at together before the next spacing is tried.
const GLANCE: usize = 64;

/// Rows whose values are levels, or most of them.
#[derive(Debug, Clone)]
pub struct Levels {
    cols: usize,
    /// Whether all rows are.
    whole: bool,
    /// Bytes from one row to the next: whole lines of the cache, an odd number of them, so
    /// that rows do not drive each other out of it. Those after the columns are zero.
    stride: usize,
    bytes: Vec<u8>,
    /// None for a row that is not of this form.
    spacings: Vec<Option<Spacing>>,
}

/// What makes numbers of the bytes of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Spacing {
    /// α
    step: f64,
    /// β
    lowest: f64,
    /// The sum of its bytes.
    sum: f64,
}

impl Levels {
    /// The same rows, if all of them are of this form and products are quicker then.
    pub fn of<T: Scalar>(rows: MatRef<'_, T>) -> Option<Self> {
        match are_quick() {
            true => Self::whatever_they_cost(rows),
            false => None,
        }
    }

    /// The same rows, if all of them are of this form.
    fn whatever_they_cost<T: Scalar>(rows: MatRef<'_, T>) -> Option<Self> {
        let of_some = || Self::of_some(rows);
        may_fit(rows).then(of_some).filter(|levels| levels.whole)
    }

    /// Those of the rows that are of this form.
    pub fn of_some<T: Scalar>(rows: MatRef<'_, T>) -> Self {
        let (cols, stride) = (rows.cols(), stride(rows.cols()));
        let mut bytes = vec![0; rows.rows() * stride];
        let of_row = |(i, bytes): (usize, &mut [u8])| spacing(rows.row(i), &mut bytes[..cols]);
        // Where models are loaded there need not be a pool, and none should be made.
        let spacings: Vec<Option<Spacing>> = match rayon::current_thread_index() {
            Some(_) => bytes
                .par_chunks_mut(stride)
                .enumerate()
                .map(of_row)
                .collect(),
            None => bytes.chunks_mut(stride).enumerate().map(of_row).collect(),
        };
        Self {
            cols,
            whole: spacings.iter().all(Option::is_some),
            stride,
            bytes,
            spacings,
        }
    }

    /// Bytes in memory.
    pub fn size_bytes(&self) -> u64 {
        Self::bytes(self.spacings.len(), self.cols)
    }

    /// The most bytes that all of these rows take.
    pub fn most_bytes<T: Scalar>(rows: MatRef<'_, T>) -> u64 {
        match may_fit(rows) {
            true => Self::bytes(rows.rows(), rows.cols()),
            false => 0,
        }
    }

    /// Bytes that they take for so many rows of so many columns, if these may be of this form
    /// and products are quicker then.
    pub fn bytes(rows: usize, cols: usize) -> u64 {
        match are_quick() && (FEWEST_COLUMNS..=MOST_COLUMNS).contains(&cols) {
            true => rows as u64 * (stride(cols) + size_of::<Option<Spacing>>()) as u64,
            false => 0,
        }
    }

    /// The rows with these indices, copied in this order.
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        let mut bytes = Vec::with_capacity(rows.len() * self.stride);
        for &i in rows {
            bytes.extend_from_slice(&self.bytes[i * self.stride..(i + 1) * self.stride]);
        }
        let spacings: Vec<Option<Spacing>> = rows.iter().map(|&i| self.spacings[i]).collect();
        Self {
            whole: spacings.iter().all(Option::is_some),
            bytes,
            spacings,
            ..*self
        }
    }

    /// A view of rows `start..end`.
    pub fn range(&self, start: usize, end: usize) -> LevelsRef<'_> {
        LevelsRef {
            cols: self.cols,
            whole: self.whole,
            stride: self.stride,
            bytes: &self.bytes[start * self.stride..end * self.stride],
            spacings: &self.spacings[start..end],
        }
    }
}

/// A view of some rows of [`Levels`].
#[derive(Debug, Clone, Copy)]
pub struct LevelsRef<'a> {
    cols: usize,
    whole: bool,
    stride: usize,
    bytes: &'a [u8],
    spacings: &'a [Option<Spacing>],
}

impl<'a> LevelsRef<'a> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.spacings.len()
    }

    /// Whether all rows of those that it is a view of are of this form.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Neighbouring rows that all are of this form, or all are not, and whether they are.
    pub fn runs(self) -> impl Iterator<Item = (Range<usize>, bool)> {
        let mut start = 0;
        self.spacings
            .chunk_by(|a, b| a.is_some() == b.is_some())
            .map(move |run| {
                let rows = start..start + run.len();
                start = rows.end;
                (rows, run[0].is_some())
            })
    }

    /// Rows `start..end`.
    pub fn range(&self, start: usize, end: usize) -> LevelsRef<'a> {
        LevelsRef {
            bytes: &self.bytes[start * self.stride..end * self.stride],
            spacings: &self.spacings[start..end],
            ..*self
        }
    }

    /// The bytes of a row, and the zeros after them.
    fn row(&self, i: usize) -> &'a [u8] {
        &self.bytes[i * self.stride..(i + 1) * self.stride]
    }

    /// What makes numbers of them.
    fn spacing(&self, i: usize) -> Spacing {
        self.spacings[i].expect("only rows of levels are multiplied as such")
    }
}

/// Bytes from one row to the next.
fn stride(cols: usize) -> usize {
    (cols.div_ceil(LINE) | 1) * LINE
}

/// Whether rows may be of this form, told by one of them: enough for most data.
fn may_fit<T: Scalar>(rows: MatRef<'_, T>) -> bool {
    let cols = rows.cols();
    rows.rows() > 0
        && (FEWEST_COLUMNS..=MOST_COLUMNS).contains(&cols)
        && spacing(rows.row(rows.rows() / 2), &mut vec![0; cols]).is_some()
}

/// The levels of a row, if it has some, whose numbers are written.
fn spacing<T: Scalar>(row: &[T], bytes: &mut [u8]) -> Option<Spacing> {
    dispatch(Fit { row, bytes })
}

/// Finds them.
struct Fit<'a, T> {
    row: &'a [T],
    bytes: &'a mut [u8],
}

impl<T: Scalar> Job for Fit<'_, T> {
    type Output = Option<Spacing>;

    #[inline(always)]
    fn run<A: Arch>(self) -> Option<Spacing> {
        let (low, high) = bounds(self.row);
        let (range, largest) = (high - low, low.abs().max(high.abs()));
        let tolerance = LAST_PLACES * T::EPSILON * largest;
        // Of a row that is not a number everywhere it may be any.
        if !range.is_finite() || largest > LARGEST {
            return None;
        }
        if range == 0.0 {
            self.bytes.fill(0);
            let same = self.row.iter().all(|v| v.to_f64() == low);
            return same.then_some(Spacing {
                lowest: low,
                ..Spacing::default()
            });
        }
        for spaces in (1..=MOST_SPACES).rev() {
            let step = range / f64::from(spaces);
            if step < CLEARANCE * tolerance {
                continue;
            }
            if let Some(sum) = write_levels(self.row, self.bytes, (low, step), tolerance) {
                let lowest = low;
                let sum = sum as f64;
                return Some(Spacing { step, lowest, sum });
            }
        }
        None
    }
}

/// The least and the largest value.
#[inline(always)]
fn bounds<T: Scalar>(row: &[T]) -> (f64, f64) {
    // As many side by side as fill a register, and more.
    const SIDE_BY_SIDE: usize = 32;
    let less = |a: T, b: T| if a < b { a } else { b };
    let more = |a: T, b: T| if a > b { a } else { b };
    let (parts, rest) = row.as_chunks::<SIDE_BY_SIDE>();
    let first = row.first().copied().unwrap_or(T::ZERO);
    let (mut low, mut high) = ([first; SIDE_BY_SIDE], [first; SIDE_BY_SIDE]);
    for part in parts {
        for l in 0..SIDE_BY_SIDE {
            low[l] = less(part[l], low[l]);
            high[l] = more(part[l], high[l]);
        }
    }
    let low = low.iter().chain(rest).copied().fold(first, less);
    let high = high.iter().chain(rest).copied().fold(first, more);
    (low.to_f64(), high.to_f64())
}

/// Added to a number of at most 255 it leaves no places after the point, and the nearest whole
/// number in the last bits.
const ROUNDING: f64 = 1.5 * (1u64 << 52) as f64;

/// Writes the number of the nearest level of each value and returns their sum, if no value is
/// farther from it than the tolerance.
#[inline(always)]
fn write_levels<T: Scalar>(
    row: &[T],
    bytes: &mut [u8],
    (low, step): (f64, f64),
    tolerance: f64,
) -> Option<u64> {
    let per_step = 1.0 / step;
    let mut sum = 0;
    for (row, bytes) in row.chunks(GLANCE).zip(bytes.chunks_mut(GLANCE)) {
        let (mut fits, mut here) = (true, 0u32);
        for (v, byte) in row.iter().zip(bytes) {
            let v = v.to_f64();
            let rounded = (v - low) * per_step + ROUNDING;
            let off = (low + (rounded - ROUNDING) * step - v).abs();
            // Not if it is not a number.
            fits &= off <= tolerance;
            *byte = rounded.to_bits() as u8;
            here += u32::from(*byte);
        }
        if !fits {
            return None;
        }
        sum += u64::from(here);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;

    /// Rows of pixels, each scaled and moved by amounts of its own.
    pub(super) fn pixels<T: Scalar>(rows: usize, cols: usize, seed: usize) -> Matrix<T> {
        let pixel = |i: usize, j: usize| ((i * 7919 + j * j * 31 + seed * 17) % 256) as f64;
        Matrix::from_fn(rows, cols, |i, j| {
            let scale = 0.001 * (1.0 + (i % 7) as f64);
            // In steps, as programs do it.
            let centred = T::from_f64(pixel(i, j)) - T::from_f64(100.3 + (i % 5) as f64);
            centred * T::from_f64(scale)
        })
    }

    /// Rows are what the levels say they are.
    fn check<T: Scalar>(rows: &Matrix<T>) {
        let levels = Levels::whatever_they_cost(rows.view()).unwrap();
        for i in 0..rows.rows() {
            let Spacing { step, lowest, sum } = levels.spacings[i].unwrap();
            let view = levels.range(i, i + 1);
            let (bytes, rest) = view.row(0).split_at(rows.cols());
            assert!(rest.iter().all(|&b| b == 0));
            assert_eq!(sum, bytes.iter().map(|&b| f64::from(b)).sum::<f64>());
            let largest = rows.row(i).iter().map(|v| v.abs().to_f64());
            let most = LAST_PLACES * T::EPSILON * largest.fold(0.0, f64::max);
            for (&byte, v) in bytes.iter().zip(rows.row(i)) {
                let level = lowest + step * f64::from(byte);
                assert!((level - v.to_f64()).abs() <= most, "{level} {v}");
            }
        }
    }

    #[test]
    fn pixels_are_levels_when_scaled_and_moved() {
        check(&pixels::<f32>(40, 784, 1));
        check(&pixels::<f64>(9, 33, 2));
        // Few levels, all the same, zeros.
        check(&Matrix::from_fn(5, 64, |i, j| {
            [0.0, 0.25, 1.0][(i + j) % 3]
        }));
        check(&Matrix::from_fn(3, 40, |i, _| -1.5f32 * i as f32));
        check(&Matrix::from_fn(3, 40, |i, j| (i * j) as f32));
    }

    #[test]
    fn others_are_not() {
        let none = |rows: Matrix<f32>| Levels::whatever_they_cost(rows.view()).is_none();
        let pixels = pixels::<f32>(40, 100, 1);
        assert!(none(
            Matrix::from_fn(9, 100, |i, j| ((i * 100 + j) as f32).sin())
        ));
        // 1,000 levels; one value beside its level, far or near; not a number.
        assert!(none(Matrix::from_fn(9, 999, |_, j| j as f32)));
        for place in [0, 39, 99] {
            // Among equal values, too.
            let mut row = Matrix::from_fn(1, 100, |_, _| -1.5f32);
            row.set(0, place, f32::NAN);
            assert!(none(row));
        }
        for wrong in [0.3, 1e-5 + pixels.get(33, 77), f32::NAN, f32::INFINITY] {
            let mut rows = pixels.clone();
            rows.set(33, 77, wrong);
            assert!(none(rows), "{wrong}");
        }
        // Far from zero, where neighbouring numbers are as far apart as levels.
        assert!(none(Matrix::from_fn(4, 64, |_, j| 1e7 + j as f32)));
        // Steps so small that there are more than the largest number in 1.
        let tiny = Matrix::from_fn(4, 64, |_, j| 1e-310 * f64::from(j as u8));
        assert!(Levels::whatever_they_cost(tiny.view()).is_none());
        let huge = Matrix::from_fn(4, 64, |_, j| 1e200 * f64::from(j as u8));
        assert!(Levels::whatever_they_cost(huge.view()).is_none());
        // Too few columns, or no rows.
        assert!(none(Matrix::from_fn(4, FEWEST_COLUMNS - 1, |_, j| j as f32)));
        assert!(none(Matrix::zeros(0, 64)));
    }

    #[test]
    fn some_rows_are() {
        let mut rows = pixels::<f32>(9, 40, 1);
        for i in [0, 4, 5] {
            rows.set(i, 3, 0.123_456_7);
        }
        let some = Levels::of_some(rows.view());
        let runs: Vec<_> = some.range(0, 9).runs().collect();
        let expected = [(0..1, false), (1..4, true), (4..6, false), (6..9, true)];
        assert_eq!(runs, expected);
        assert!(!some.range(6, 9).is_whole() && some.select_rows(&[8, 1]).whole);
        assert_eq!(
            Levels::of_some(Matrix::<f32>::zeros(0, 40).view())
                .spacings
                .len(),
            0
        );
    }

    #[test]
    fn chosen_rows_keep_their_levels() {
        let rows = pixels::<f32>(20, 50, 3);
        let all = Levels::whatever_they_cost(rows.view()).unwrap();
        let some = all.select_rows(&[7, 0, 7, 19]);
        for (i, from) in [7, 0, 7, 19].into_iter().enumerate() {
            assert_eq!(
                some.range(i, i + 1).row(0),
                all.range(from, from + 1).row(0)
            );
            assert_eq!(some.spacings[i], all.spacings[from]);
        }
        if are_quick() {
            assert_eq!(Levels::bytes(20, 50), 20 * (64 + 32));
            assert_eq!(Levels::bytes(20, 64), 20 * (64 + 32));
            assert_eq!(Levels::bytes(1, 65), 3 * 64 + 32);
        }
        assert_eq!(Levels::bytes(20, FEWEST_COLUMNS - 1), 0);
    }
}
