//! Values in half precision: half the memory of `f32`, eleven bits of mantissa.
//!
//! Only for values that are read often and computed seldom, and whose last digits
//! do not matter: arithmetic is always done in the type they are widened to.

pub use half::f16;

use super::simd::{Arch, Job, Vector, dispatch};
use super::two_sided::Tile;
use super::{Aligned, MatRef, Scalar};

/// A matrix in half precision, relative to its largest value.
pub struct HalfMatrix {
    rows: usize,
    cols: usize,
    /// Row after row.
    values: Aligned<f16>,
    scale: f64,
}

impl HalfMatrix {
    /// A matrix, rounded.
    pub fn new<T: Scalar>(from: MatRef<'_, T>) -> Self {
        let (rows, cols) = (from.rows(), from.cols());
        let each = || (0..rows).map(|i| from.row(i));
        let largest = each().flatten().map(|v| v.abs().to_f64());
        let largest = largest.fold(0.0, f64::max);
        let scale = if largest > 0.0 { largest } else { 1.0 };
        let mut values = Aligned::zeros(rows * cols);
        let to = values.chunks_exact_mut(cols.max(1));
        each().zip(to).for_each(|(row, to)| narrow(row, to, scale));
        Self {
            rows,
            cols,
            values,
            scale,
        }
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// As something to be multiplied.
    pub fn tile<T: Scalar>(&self) -> Tile<'_, T> {
        Tile::Half(&self.values, T::from_f64(self.scale))
    }

    /// All of it, in `scratch`.
    pub fn widen<'a, T: Scalar>(&self, scratch: &'a mut Vec<T>) -> MatRef<'a, T> {
        scratch.resize(self.values.len(), T::ZERO);
        widen(&self.values, scratch, T::from_f64(self.scale));
        MatRef::new(self.rows, self.cols, scratch)
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
    fn matrices_are_those_they_were_made_of() {
        use crate::linalg::Matrix;
        for (n, m) in [(70, 33), (1, 1), (3, 0), (0, 3)] {
            let full = Matrix::from_fn(n, m, |i, j| 300.0 * ((i * 7 + j * 3) as f32).sin());
            let (half, mut scratch) = (HalfMatrix::new(full.view()), Vec::new());
            assert_eq!(half.shape(), (n, m));
            let widened = half.widen::<f32>(&mut scratch);
            for i in 0..n {
                let pairs = widened.row(i).iter().zip(full.row(i));
                assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 0.2));
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
