//! Products of a tall matrix with a few columns.
//!
//! ```text
//! out += alpha · S · Q        S: n × j,  Q: j × k,  out: n × k
//! C = Sᵀ · R                  S: n × j,  R: n × k,  C: j × k
//! ```
//!
//! With k around 10 such a product does 5 operations a byte of S: it should
//! run at the speed of memory, where general matrix products are two to three
//! times slower because they pack S first. Here every value of S is loaded
//! once from memory and used from a register for a group of columns.
//!
//! The work is cut into pieces by the shape alone and partial sums are added
//! in order, so that the result does not depend on the number of threads.

use rayon::prelude::*;

use super::simd::{Arch, Job, LINE, Vector, dispatch, mul_add, prefetch};
use super::{MatMut, MatRef, Matrix, Scalar};

/// Columns of S taken at once: with 10 rows of Qᵀ beside them (160 kB in f32)
/// they stay in the second-level cache. 512, for the first level, was a third
/// slower: S is then read in short pieces that the hardware does not foresee.
const DEPTH: usize = 4096;

/// Rows of S that one task takes in `S · Q`.
const TASK_ROWS: usize = 512;

/// Rows of S that are swept together in `Sᵀ · R`, while the next as many are fetched: more
/// streams than the hardware follows by itself, but the sums, which are larger than the
/// first-level cache, are loaded and stored less often. 60,000 × 2,000 by 10 columns in f32 on
/// two threads with AVX2: 16 GB/s, 14 with 8 rows, 10 with 8 rows and nothing fetched.
const SWEEP_ROWS: usize = 32;

/// The same for a matrix that is in the cache already.
const SWEEP_CACHED_ROWS: usize = 64;

/// Rows of S whose dot products share the loads of Qᵀ: those, their sums with a group of
/// columns, and a register of Qᵀ fill the registers. (With AVX2 four rows reached 11 GB/s in
/// the product above, three 14.)
const DOT_ROWS: usize = 3;
const DOT_ROWS_OF_MANY_REGISTERS: usize = 4;

/// Registers of a row of S that share the loads of R.
const SWEEP_REGISTERS: usize = 2;

/// Partial sums in `Sᵀ · R`: more than threads, so that they share well.
const PARTIAL_SUMS: usize = 32;

/// Fewest rows worth a partial sum of their own.
const FEWEST_ROWS: usize = 256;

/// `out += alpha · s · q`, on the pool.
pub fn add_product<T: Scalar>(out: MatMut<'_, T>, s: MatRef<'_, T>, q: MatRef<'_, T>, alpha: T) {
    let transposed = transpose_scaled(q, alpha);
    let mut out = out;
    let (stride, k) = (out.stride(), out.cols());
    assert_eq!(out.rows(), s.rows());
    let rows = s.rows();
    out.values_mut()
        .par_chunks_mut(TASK_ROWS * stride.max(1))
        .enumerate()
        .for_each(|(task, chunk)| {
            let start = task * TASK_ROWS;
            if start >= rows {
                return;
            }
            let end = (start + TASK_ROWS).min(rows);
            let chunk = MatMut::strided(end - start, k, stride, chunk);
            add_product_of_transposed(chunk, s.row_range(start, end), transposed.view());
        });
}

/// `out += s · qᵀᵀ` for `q_t = qᵀ` (k × j), on this thread.
pub fn add_product_of_transposed<T: Scalar>(
    out: MatMut<'_, T>,
    s: MatRef<'_, T>,
    q_t: MatRef<'_, T>,
) {
    assert_eq!(s.cols(), q_t.cols());
    assert_eq!(out.rows(), s.rows());
    assert_eq!(out.cols(), q_t.rows());
    dispatch(Rows { out, s, q_t });
}

/// `alpha · qᵀ`
pub fn transpose_scaled<T: Scalar>(q: MatRef<'_, T>, alpha: T) -> Matrix<T> {
    Matrix::from_fn(q.cols(), q.rows(), |k, j| alpha * q.row(j)[k])
}

/// `sᵀ · r`, on the pool.
pub fn transposed_product<T: Scalar>(s: MatRef<'_, T>, r: MatRef<'_, T>) -> Matrix<T> {
    assert_eq!(s.rows(), r.rows());
    let (n, j, k) = (s.rows(), s.cols(), r.cols());
    let task_rows = n.div_ceil(PARTIAL_SUMS).max(FEWEST_ROWS);
    let starts: Vec<usize> = (0..n).step_by(task_rows).collect();
    let partial: Vec<Vec<T>> = starts
        .into_par_iter()
        .map(|start| {
            let end = (start + task_rows).min(n);
            let mut sums = vec![T::ZERO; k * j];
            dispatch(Columns {
                sums: &mut sums,
                s: s.row_range(start, end),
                r: r.row_range(start, end),
                sweep: SWEEP_ROWS,
                fetch: true,
            });
            sums
        })
        .collect();
    Matrix::from_fn(j, k, |j_, k_| {
        partial.iter().map(|sums| sums[k_ * j + j_]).sum()
    })
}

/// `sumsᵀ += sᵀ · r` on this thread; `sums` is k × j. For `s` that is in the cache.
pub fn add_transposed_product<T: Scalar>(sums: &mut [T], s: MatRef<'_, T>, r: MatRef<'_, T>) {
    assert_eq!(s.rows(), r.rows());
    assert_eq!(sums.len(), s.cols() * r.cols());
    dispatch(Columns {
        sums,
        s,
        r,
        sweep: SWEEP_CACHED_ROWS,
        fetch: false,
    });
}

/// Calls `$body` with the constant `G` equal to `$group`, 1 to 12.
macro_rules! with_group {
    ($group:expr, $g:ident => $body:expr) => {
        match $group {
            1 => {
                const $g: usize = 1;
                $body
            }
            2 => {
                const $g: usize = 2;
                $body
            }
            3 => {
                const $g: usize = 3;
                $body
            }
            4 => {
                const $g: usize = 4;
                $body
            }
            5 => {
                const $g: usize = 5;
                $body
            }
            6 => {
                const $g: usize = 6;
                $body
            }
            7 => {
                const $g: usize = 7;
                $body
            }
            8 => {
                const $g: usize = 8;
                $body
            }
            9 => {
                const $g: usize = 9;
                $body
            }
            10 => {
                const $g: usize = 10;
                $body
            }
            11 => {
                const $g: usize = 11;
                $body
            }
            12 => {
                const $g: usize = 12;
                $body
            }
            _ => unreachable!("a group has 1 to 12 columns"),
        }
    };
}

pub(super) use with_group;

/// Cuts `0..k` into equal groups that fit the registers.
#[inline(always)]
pub(super) fn groups<A: Arch>(k: usize, sharing: usize) -> impl Iterator<Item = (usize, usize)> {
    let most = A::ACCUMULATORS / sharing;
    let count = k.div_ceil(most).max(1);
    (0..count).map(move |g| (g * k / count, (g + 1) * k / count))
}

/// `out += s · q` by dot products of rows of S with rows of Qᵀ.
struct Rows<'a, T> {
    out: MatMut<'a, T>,
    s: MatRef<'a, T>,
    q_t: MatRef<'a, T>,
}

impl<T: Scalar> Job for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        match A::ACCUMULATORS {
            24.. => self.by::<A, DOT_ROWS_OF_MANY_REGISTERS>(),
            _ => self.by::<A, DOT_ROWS>(),
        }
    }
}

impl<T: Scalar> Rows<'_, T> {
    /// `R` rows of S at once.
    #[inline(always)]
    fn by<A: Arch, const R: usize>(mut self) {
        let (n, k) = (self.s.rows(), self.q_t.rows());
        for left in (0..self.s.cols()).step_by(DEPTH) {
            let right = (left + DEPTH).min(self.s.cols());
            let mut i = 0;
            while i < n {
                let rows = if i + R <= n { R } else { 1 };
                // All groups of columns while these rows are in the cache.
                for (first, last) in groups::<A>(k, R) {
                    with_group!(last - first, G => {
                        let q: [&[T]; G] = std::array::from_fn(|g| &self.q_t.row(first + g)[left..right]);
                        if rows == R {
                            let s = std::array::from_fn(|r| &self.s.row(i + r)[left..right]);
                            // SAFETY: this is part of `run`, for its own `A`.
                            let sums = unsafe { dots::<T, A, R, G>(s, q) };
                            for (r, sums) in sums.iter().enumerate() {
                                add_to(&mut self.out.row_mut(i + r)[first..last], sums);
                            }
                        } else {
                            let s = [&self.s.row(i)[left..right]];
                            // SAFETY: this is part of `run`, for its own `A`.
                            let [sums] = unsafe { dots::<T, A, 1, G>(s, q) };
                            add_to(&mut self.out.row_mut(i)[first..last], &sums);
                        }
                    });
                }
                i += rows;
            }
        }
    }
}

#[inline(always)]
fn add_to<T: Scalar>(out: &mut [T], sums: &[T]) {
    for (out, &sum) in out.iter_mut().zip(sums) {
        *out += sum;
    }
}

/// All dot products of `R` rows with `G` rows of the same length.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
unsafe fn dots<T: Scalar, A: Arch, const R: usize, const G: usize>(
    s: [&[T]; R],
    q: [&[T]; G],
) -> [[T; G]; R] {
    let lanes = T::Vector::<A>::LANES;
    let length = q[0].len();
    assert!(s.iter().chain(&q).all(|row| row.len() == length));
    let whole = length / lanes * lanes;
    // SAFETY: the slices are `lanes` long; the caller has the instruction set.
    unsafe {
        let mut sums = [[T::Vector::<A>::splat(T::ZERO); G]; R];
        for c in (0..whole).step_by(lanes) {
            let mut s_now = [T::Vector::<A>::splat(T::ZERO); R];
            for r in 0..R {
                s_now[r] = T::Vector::<A>::load(s[r].get_unchecked(c..c + lanes));
            }
            for g in 0..G {
                let q = T::Vector::<A>::load(q[g].get_unchecked(c..c + lanes));
                for r in 0..R {
                    sums[r][g] = sums[r][g].add_product(s_now[r], q);
                }
            }
        }
        let mut out = [[T::ZERO; G]; R];
        for r in 0..R {
            for g in 0..G {
                out[r][g] = sums[r][g].sum();
                for c in whole..length {
                    out[r][g] = mul_add::<A, T>(s[r][c], q[g][c], out[r][g]);
                }
            }
        }
        out
    }
}

/// `sumsᵀ += sᵀ · r` by sweeps over a few rows of S.
struct Columns<'a, T> {
    /// k × j
    sums: &'a mut [T],
    s: MatRef<'a, T>,
    r: MatRef<'a, T>,
    /// Rows swept together.
    sweep: usize,
    /// Whether the rows after them are fetched meanwhile.
    fetch: bool,
}

impl<T: Scalar> Job for Columns<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let (n, j, k) = (self.s.rows(), self.s.cols(), self.r.cols());
        let width = SWEEP_REGISTERS * T::Vector::<A>::LANES;
        for top in (0..n).step_by(self.sweep) {
            let s = self.s.row_range(top, (top + self.sweep).min(n));
            let r = self.r.row_range(top, (top + self.sweep).min(n));
            let mut left = 0;
            while left + width <= j {
                for (first, last) in groups::<A>(k, SWEEP_REGISTERS) {
                    let far = match self.fetch && first == 0 {
                        true => self.sweep * self.s.stride(),
                        false => 0,
                    };
                    with_group!(last - first, G => {
                        // SAFETY: this is `run`, for its own `A`.
                        unsafe { sweep::<T, A, G>(self.sums, s, r, (left, first), far) }
                    });
                }
                left += width;
            }
            for i in 0..s.rows() {
                for (k_, &r) in r.row(i).iter().enumerate() {
                    let sums = &mut self.sums[k_ * j + left..(k_ + 1) * j];
                    for (sum, &s) in sums.iter_mut().zip(&s.row(i)[left..]) {
                        *sum = mul_add::<A, T>(s, r, *sum);
                    }
                }
            }
        }
    }
}

/// Adds the rows of `s` to the sums of `SWEEP_REGISTERS` registers of columns from `left`
/// on, for `G` columns of R from `first` on. What lies `far` values further, if that is not 0,
/// is fetched into the cache.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
unsafe fn sweep<T: Scalar, A: Arch, const G: usize>(
    sums: &mut [T],
    s: MatRef<'_, T>,
    r: MatRef<'_, T>,
    (left, first): (usize, usize),
    far: usize,
) {
    let (lanes, j) = (T::Vector::<A>::LANES, s.cols());
    let width = SWEEP_REGISTERS * lanes;
    assert!(left + width <= j && first + G <= r.cols() && r.rows() == s.rows());
    assert_eq!(sums.len(), r.cols() * j);
    // SAFETY: the assertions say that all places are there, and the caller has the
    // instruction set. (Checked one by one, they took a third of the time.)
    unsafe {
        let mut acc = [[T::Vector::<A>::splat(T::ZERO); SWEEP_REGISTERS]; G];
        for (g, acc) in acc.iter_mut().enumerate() {
            for (v, acc) in acc.iter_mut().enumerate() {
                let place = (first + g) * j + left + v * lanes;
                *acc = T::Vector::<A>::load(sums.get_unchecked(place..place + lanes));
            }
        }
        for i in 0..s.rows() {
            let s = s
                .values()
                .get_unchecked(i * s.stride() + left..)
                .get_unchecked(..width);
            if far > 0 {
                for line in (0..width).step_by(LINE / size_of::<T>()) {
                    prefetch(s.as_ptr().wrapping_add(far + line).cast());
                }
            }
            let mut s_now = [T::Vector::<A>::splat(T::ZERO); SWEEP_REGISTERS];
            for (v, s_now) in s_now.iter_mut().enumerate() {
                *s_now = T::Vector::<A>::load(s.get_unchecked(v * lanes..));
            }
            let r = r.values().get_unchecked(i * r.stride() + first..);
            for (g, acc) in acc.iter_mut().enumerate() {
                let r = T::Vector::<A>::splat(*r.get_unchecked(g));
                for (acc, s) in acc.iter_mut().zip(s_now) {
                    *acc = acc.add_product(s, r);
                }
            }
        }
        for (g, acc) in acc.iter().enumerate() {
            for (v, acc) in acc.iter().enumerate() {
                let place = (first + g) * j + left + v * lanes;
                acc.store(sums.get_unchecked_mut(place..place + lanes));
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
