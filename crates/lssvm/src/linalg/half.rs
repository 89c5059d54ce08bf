//! Values in half precision: half the memory of `f32`, eleven bits of mantissa.
//!
//! Only for values that are read often and computed seldom, and whose last digits
//! do not matter: arithmetic is always done in the type they are widened to.

pub use half::f16;

use super::simd::{Arch, Job, Vector, dispatch};
use super::{MatMut, MatRef, Scalar, skinny};

/// Rows that are widened at once for a product: with 2,000 columns they stay in the
/// second-level cache.
const PANEL: usize = 64;

/// A matrix in half precision, or an upper triangle, relative to its largest value.
pub struct HalfMatrix {
    rows: usize,
    cols: usize,
    /// Row after row; of a triangle what is not left of the diagonal.
    values: Vec<f16>,
    scale: f64,
}

impl HalfMatrix {
    /// All of a matrix, rounded.
    pub fn new<T: Scalar>(from: MatRef<'_, T>) -> Self {
        Self::of(from, |_| 0)
    }

    /// The upper triangle of a square matrix, rounded.
    pub fn of_upper<T: Scalar>(from: MatRef<'_, T>) -> Self {
        Self::of(from, |row| row)
    }

    /// What is right of a place in each row.
    fn of<T: Scalar>(from: MatRef<'_, T>, begin: impl Fn(usize) -> usize) -> Self {
        let rows = || (0..from.rows()).map(|i| &from.row(i)[begin(i)..]);
        let largest = rows().flatten().map(|v| v.abs().to_f64());
        let largest = largest.fold(0.0, f64::max);
        let scale = if largest > 0.0 { largest } else { 1.0 };
        let mut values = vec![f16::ZERO; rows().map(<[T]>::len).sum()];
        let mut rest = &mut values[..];
        for row in rows() {
            let (here, after) = rest.split_at_mut(row.len());
            narrow(row, here, scale);
            rest = after;
        }
        Self {
            rows: from.rows(),
            cols: from.cols(),
            values,
            scale,
        }
    }

    /// All of it, in `scratch`.
    pub fn widen<'a, T: Scalar>(&self, scratch: &'a mut Vec<T>) -> MatRef<'a, T> {
        self.rows_in(0..self.rows, scratch)
    }

    /// Some rows, in `scratch`.
    fn rows_in<'a, T: Scalar>(
        &self,
        rows: std::ops::Range<usize>,
        scratch: &'a mut Vec<T>,
    ) -> MatRef<'a, T> {
        scratch.resize(rows.len() * self.cols, T::ZERO);
        let values = &self.values[rows.start * self.cols..rows.end * self.cols];
        widen(values, scratch, T::from_f64(self.scale));
        MatRef::new(rows.len(), self.cols, scratch)
    }

    /// A triangle, in `scratch`; what is left of the diagonal means nothing.
    pub fn widen_upper<'a, T: Scalar>(&self, scratch: &'a mut Vec<T>) -> MatRef<'a, T> {
        scratch.resize(self.rows * self.cols, T::ZERO);
        let mut start = 0;
        for (i, row) in scratch.chunks_exact_mut(self.cols).enumerate() {
            let end = start + self.cols - i;
            widen(
                &self.values[start..end],
                &mut row[i..],
                T::from_f64(self.scale),
            );
            start = end;
        }
        MatRef::new(self.rows, self.cols, scratch)
    }

    /// `out += self · q` for `q_t = qᵀ`, on this thread.
    pub fn add_product<T: Scalar>(
        &self,
        mut out: MatMut<'_, T>,
        q_t: MatRef<'_, T>,
        scratch: &mut Vec<T>,
    ) {
        let (k, stride) = (out.cols(), out.stride());
        for top in (0..self.rows).step_by(PANEL) {
            let bottom = (top + PANEL).min(self.rows);
            let here = &mut out.values_mut()[top * stride..];
            let here = MatMut::strided(bottom - top, k, stride, here);
            skinny::add_product_of_transposed(here, self.rows_in(top..bottom, scratch), q_t);
        }
    }

    /// `sumsᵀ += selfᵀ · r`, on this thread; `sums` has a row for each column of `r`.
    pub fn add_transposed_product<T: Scalar>(
        &self,
        sums: &mut [T],
        r: MatRef<'_, T>,
        scratch: &mut Vec<T>,
    ) {
        for top in (0..self.rows).step_by(PANEL) {
            let bottom = (top + PANEL).min(self.rows);
            let r = r.row_range(top, bottom);
            skinny::add_transposed_product(sums, self.rows_in(top..bottom, scratch), r);
        }
    }
}

/// `to = scale · from`
pub fn widen<T: Scalar>(from: &[f16], to: &mut [T], scale: T) {
    convert(from, to, scale);
}

/// `to = from / scale`, rounded to the nearest.
pub fn narrow<T: Scalar>(from: &[T], to: &mut [f16], scale: f64) {
    convert(from, to, T::from_f64(1.0 / scale));
}

fn convert<T: Scalar, F: Lanes<T>, G: Lanes<T>>(from: &[F], to: &mut [G], factor: T) {
    assert_eq!(from.len(), to.len());
    dispatch(Convert { from, to, factor });
}

/// Values that a register of `T` is loaded from and stored to.
pub(super) trait Lanes<T: Scalar>: Copy {
    /// # Safety
    /// As [`Vector`].
    unsafe fn load<A: Arch>(values: &[Self]) -> T::Vector<A>;
    /// # Safety
    /// As [`Vector`].
    unsafe fn store<A: Arch>(register: T::Vector<A>, values: &mut [Self]);
    /// Exactly.
    fn widened(self) -> T;
    /// To the nearest.
    fn rounded(value: T) -> Self;
}

impl<T: Scalar> Lanes<T> for T {
    #[inline(always)]
    unsafe fn load<A: Arch>(values: &[T]) -> T::Vector<A> {
        // SAFETY: said by the caller.
        unsafe { T::Vector::<A>::load(values) }
    }
    #[inline(always)]
    unsafe fn store<A: Arch>(register: T::Vector<A>, values: &mut [T]) {
        // SAFETY: said by the caller.
        unsafe { register.store(values) }
    }
    fn widened(self) -> T {
        self
    }
    fn rounded(value: T) -> T {
        value
    }
}

impl<T: Scalar> Lanes<T> for f16 {
    #[inline(always)]
    unsafe fn load<A: Arch>(values: &[f16]) -> T::Vector<A> {
        // SAFETY: said by the caller.
        unsafe { T::Vector::<A>::load_half(values) }
    }
    #[inline(always)]
    unsafe fn store<A: Arch>(register: T::Vector<A>, values: &mut [f16]) {
        // SAFETY: said by the caller.
        unsafe { register.store_half(values) }
    }
    fn widened(self) -> T {
        T::from_f64(self.to_f64())
    }
    fn rounded(value: T) -> f16 {
        f16::from_f32(value.to_f64() as f32)
    }
}

/// `to = factor · from`
struct Convert<'a, T, F, G> {
    from: &'a [F],
    to: &'a mut [G],
    factor: T,
}

impl<T: Scalar, F: Lanes<T>, G: Lanes<T>> Job for Convert<'_, T, F, G> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let lanes = T::Vector::<A>::LANES;
        let whole = self.from.len() / lanes * lanes;
        // SAFETY: this is `run`, for its own `A`, and the slices are `lanes` long.
        unsafe {
            let zero = T::Vector::<A>::splat(T::ZERO);
            let factor = T::Vector::<A>::splat(self.factor);
            for start in (0..whole).step_by(lanes) {
                let value = F::load::<A>(&self.from[start..start + lanes]);
                let product = zero.add_product(value, factor);
                G::store::<A>(product, &mut self.to[start..start + lanes]);
            }
        }
        for (to, from) in self.to[whole..].iter_mut().zip(&self.from[whole..]) {
            *to = G::rounded(self.factor * from.widened());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_everything() {
        // All bit patterns of finite values, so that every length of a rest occurs too.
        let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        let all: Vec<f16> = all.into_iter().filter(|v| v.is_finite()).collect();
        for from in [&all[..], &all[..1], &all[..19], &[]] {
            let mut single = vec![0f32; from.len()];
            let mut double = vec![0f64; from.len()];
            widen(from, &mut single, 1.0);
            widen(from, &mut double, 1.0);
            for (i, v) in from.iter().enumerate() {
                assert_eq!(single[i], v.to_f32());
                assert_eq!(double[i], v.to_f64());
            }
            let mut back = vec![f16::ZERO; from.len()];
            narrow(&single, &mut back, 1.0);
            assert!(back.iter().zip(from).all(|(a, b)| a == b));
        }
    }

    #[test]
    fn matrices_and_triangles_are_those_they_were_made_of() {
        use crate::linalg::Matrix;
        let n = 2 * PANEL + 5;
        let full = Matrix::from_fn(n, n, |i, j| 300.0 * ((i * 7 + j * 3) as f32).sin());
        let r = Matrix::from_fn(n, 3, |i, j| ((i + 2 * j) as f32).cos());
        let (mut scratch, near) = (Vec::new(), |a: f32, b: f32| (a - b).abs() < 0.2);
        let half = HalfMatrix::new(full.view());
        let widened = half.widen::<f32>(&mut scratch);
        assert!((0..n).all(|i| (0..n).all(|j| near(widened.row(i)[j], full.get(i, j)))));
        let half_upper = HalfMatrix::of_upper(full.view());
        let upper = half_upper.widen_upper::<f32>(&mut scratch);
        assert!((0..n).all(|i| (i..n).all(|j| near(upper.row(i)[j], full.get(i, j)))));
        let (mut product, mut sums) = (Matrix::zeros(n, 3), vec![0.0; 3 * n]);
        let r_t = skinny::transpose_scaled(r.view(), 1.0);
        half.add_product(product.view_mut(), r_t.view(), &mut scratch);
        half.add_transposed_product(&mut sums, r.view(), &mut scratch);
        // Each term is off by at most 300 · 2⁻¹¹.
        let tolerance = 0.15 * n as f32;
        for i in 0..n {
            for c in 0..3 {
                let plain: f32 = (0..n).map(|j| full.get(i, j) * r.get(j, c)).sum();
                assert!((product.get(i, c) - plain).abs() < tolerance);
                let plain: f32 = (0..n).map(|j| full.get(j, i) * r.get(j, c)).sum();
                assert!((sums[c * n + i] - plain).abs() < tolerance);
            }
        }
    }

    #[test]
    fn rounding_stays_within_half_a_unit() {
        let values: Vec<f64> = (1..2000).map(|i| 1e4 * (i as f64 * 0.37).sin()).collect();
        let mut half = vec![f16::ZERO; values.len()];
        narrow(&values, &mut half, 1e4);
        for (v, h) in values.iter().zip(half) {
            let error = (h.to_f64() * 1e4 - v).abs();
            assert!(error <= v.abs() / 2048.0 + 1e4 * 3e-8, "{v}: {error}");
        }
    }
}
