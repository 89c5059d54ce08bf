//! Products of a tile in the cache with a few columns, for registers that hold a whole line of
//! the cache.
//!
//! ```text
//! out += S · Q        S: n × j,  Q: j × k,  out: n × w,   w: k, and columns without meaning
//! ```
//!
//! For panels of the tiles that [`super::two_sided`] looks at; a tall matrix that is read once
//! goes to [`super::skinny`].

use std::ops::Range;

use super::simd::{Arch, Job, LINE, Vector, dispatch, prefetch};
use super::{MatMut, MatRef, Matrix, Scalar};

/// Memory that will be read next.
#[derive(Debug, Clone, Copy)]
pub struct Ahead {
    pub(super) start: *const u8,
    pub(super) bytes: usize,
}

impl Ahead {
    /// Nothing is known.
    pub const NOTHING: Ahead = Ahead {
        start: std::ptr::null(),
        bytes: 0,
    };

    /// As many values as in this range, after it: at the end of a tile those of the next, which
    /// lies behind it where tiles are kept.
    pub fn after<T>(values: &[T], range: &Range<usize>) -> Self {
        Self {
            start: values.as_ptr().wrapping_add(range.end).cast(),
            bytes: range.len() * size_of::<T>(),
        }
    }

    /// The part of it that belongs to units `first..last` of `all`.
    #[inline(always)]
    pub(super) fn part(self, first: usize, last: usize, all: usize) -> Self {
        let lines = self.bytes / LINE;
        let (first, last) = (first * lines / all, last * lines / all);
        Self {
            start: self.start.wrapping_add(first * LINE),
            bytes: (last - first) * LINE,
        }
    }
}

/// `q` with zeros after its columns, so that rows fill whole cache lines and registers.
pub(super) fn padded<T: Scalar>(q: MatRef<'_, T>) -> Matrix<T> {
    let width = q.cols().next_multiple_of(LINE / size_of::<T>());
    let mut out = Matrix::zeros(q.rows(), width);
    for i in 0..q.rows() {
        out.row_mut(i)[..q.cols()].copy_from_slice(q.row(i));
    }
    out
}

/// `out += s · q` for `q` and `out` that are [`padded`], on this thread; for `s` that is in the
/// second-level cache, into which `ahead` is fetched meanwhile.
pub(super) fn add_padded_product<T: Scalar>(
    out: MatMut<'_, T>,
    s: MatRef<'_, T>,
    q: MatRef<'_, T>,
    ahead: Ahead,
) {
    assert_eq!(s.cols(), q.rows());
    assert_eq!((out.rows(), out.cols()), (s.rows(), q.cols()));
    dispatch(Padded { out, s, q, ahead });
}

/// `out += s · q` with a value of S in all lanes of a register and a row of Q in another.
///
/// Dot products of rows need all rows of Qᵀ, which leave no room for S in the first-level
/// cache; here a row of Q is used and forgotten. With 11 columns in f32 a value of S takes
/// 0.27 ns, and 0.33 by dot products (processor time, AVX-512).
struct Padded<'a, T> {
    out: MatMut<'a, T>,
    s: MatRef<'a, T>,
    q: MatRef<'a, T>,
    ahead: Ahead,
}

/// Rows of S that share the loads of Q. Rows of a tile lie 4 kB apart and share a set of
/// the first-level cache: more than its eight or twelve ways would drive each other out.
const PADDED_ROWS: usize = 8;

/// Columns of S between two looks ahead.
const PADDED_STEP: usize = 16;

impl<T: Scalar> Job for Padded<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(mut self) {
        let (n, lanes) = (self.s.rows(), T::Vector::<A>::LANES);
        let whole = n / PADDED_ROWS * PADDED_ROWS;
        for top in (0..whole).step_by(PADDED_ROWS) {
            let ahead = self.ahead.part(top, top + PADDED_ROWS, n);
            for left in (0..self.q.cols()).step_by(lanes) {
                let ahead = if left == 0 { ahead } else { Ahead::NOTHING };
                // SAFETY: this is `run`, for its own `A`.
                unsafe { self.rows::<A, PADDED_ROWS>(top, left, ahead) }
            }
        }
        for top in whole..n {
            for left in (0..self.q.cols()).step_by(lanes) {
                // SAFETY: this is `run`, for its own `A`.
                unsafe { self.rows::<A, 1>(top, left, Ahead::NOTHING) }
            }
        }
    }
}

impl<T: Scalar> Padded<'_, T> {
    /// `R` rows from `top` on, and a register of columns from `left` on.
    ///
    /// # Safety
    /// As [`Vector`].
    #[inline(always)]
    unsafe fn rows<A: Arch, const R: usize>(&mut self, top: usize, left: usize, ahead: Ahead) {
        let (lanes, depth) = (T::Vector::<A>::LANES, self.s.cols());
        let lines = (ahead.bytes / LINE).div_ceil(depth / PADDED_STEP + 1);
        let mut line = ahead.start;
        let s: [&[T]; R] = std::array::from_fn(|r| self.s.row(top + r));
        // SAFETY: the slices are `lanes` long; the caller has the instruction set.
        unsafe {
            let zero = T::Vector::<A>::splat(T::ZERO);
            // Two sums for each row, so that none waits for the one before it.
            let mut sums = [[zero; R]; 2];
            for start in (0..depth).step_by(PADDED_STEP) {
                for _ in 0..lines {
                    prefetch(line);
                    line = line.wrapping_add(LINE);
                }
                let end = (start + PADDED_STEP).min(depth);
                let mut j = start;
                while j + 2 <= end {
                    for (half, sums) in sums.iter_mut().enumerate() {
                        let q = T::Vector::<A>::load(&self.q.row(j + half)[left..left + lanes]);
                        for (sum, s) in sums.iter_mut().zip(&s) {
                            let value = T::Vector::<A>::splat(*s.get_unchecked(j + half));
                            *sum = sum.add_product(value, q);
                        }
                    }
                    j += 2;
                }
                if j < end {
                    let q = T::Vector::<A>::load(&self.q.row(j)[left..left + lanes]);
                    for (sum, s) in sums[0].iter_mut().zip(&s) {
                        *sum = sum.add_product(T::Vector::<A>::splat(s[j]), q);
                    }
                }
            }
            let one = T::Vector::<A>::splat(T::ONE);
            let [even, odd] = sums;
            for (r, (even, odd)) in even.into_iter().zip(odd).enumerate() {
                let out = &mut self.out.row_mut(top + r)[left..left + lanes];
                T::Vector::<A>::load(out)
                    .add_product(even, one)
                    .add_product(odd, one)
                    .store(out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::simd::Portable;
    use crate::linalg::skinny::tests::example;

    #[test]
    fn products_are_the_plain_sums() {
        for (n, j, k) in [(1, 1, 1), (8, 16, 11), (21, 35, 17), (9, 2, 16), (0, 3, 2)] {
            let (s, q) = (example::<f32>(n, j, 1), example::<f32>(j, k, 2));
            let q_padded = padded(q.view());
            let plain = |i: usize, c: usize| {
                let products = (0..j).map(|l| s.get(i, l).to_f64() * q.get(l, c).to_f64());
                1.0 + products.sum::<f64>()
            };
            let run = |run: &dyn Fn(Padded<'_, f32>)| {
                let mut out = Matrix::from_fn(n, q_padded.cols(), |_, _| 1.0);
                run(Padded {
                    out: out.view_mut(),
                    s: s.view(),
                    q: q_padded.view(),
                    ahead: Ahead::after(s.values(), &(0..n * j)),
                });
                Matrix::from_fn(n, k, |i, c| out.get(i, c))
            };
            let outs = [run(&|job| dispatch(job)), run(&|job| job.run::<Portable>())];
            for out in outs {
                for i in 0..n {
                    for c in 0..k {
                        let difference = (out.get(i, c).to_f64() - plain(i, c)).abs();
                        let tolerance = 16.0 * f32::EPSILON as f64 * j as f64;
                        assert!(difference <= tolerance, "({i}, {c}): {difference:.1e}");
                    }
                }
            }
        }
    }
}
