//! Values in half precision: half the memory of `f32`, eleven bits of mantissa.
//!
//! Only for values that are read often and computed seldom, and whose last digits
//! do not matter: arithmetic is always done in the type they are widened to.

pub use half::f16;

use super::Scalar;
use super::simd::{Arch, Job, Vector, dispatch};

/// `to = scale · from`
pub fn widen<T: Scalar>(from: &[f16], to: &mut [T], scale: T) {
    assert_eq!(from.len(), to.len());
    dispatch(Widen { from, to, scale });
}

/// `to = from / scale`, rounded to the nearest.
pub fn narrow<T: Scalar>(from: &[T], to: &mut [f16], scale: f64) {
    assert_eq!(from.len(), to.len());
    dispatch(Narrow {
        from,
        to,
        factor: T::from_f64(1.0 / scale),
    });
}

struct Narrow<'a, T> {
    from: &'a [T],
    to: &'a mut [f16],
    factor: T,
}

impl<T: Scalar> Job for Narrow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let lanes = T::Vector::<A>::LANES;
        let whole = self.from.len() / lanes * lanes;
        // SAFETY: this is `run`, for its own `A`, and the slices are `lanes` long.
        unsafe {
            let (zero, factor) = (
                T::Vector::<A>::splat(T::ZERO),
                T::Vector::<A>::splat(self.factor),
            );
            for start in (0..whole).step_by(lanes) {
                let value = T::Vector::<A>::load(&self.from[start..start + lanes]);
                zero.add_product(value, factor)
                    .store_half(&mut self.to[start..start + lanes]);
            }
        }
        for (to, from) in self.to[whole..].iter_mut().zip(&self.from[whole..]) {
            *to = f16::from_f32((self.factor * *from).to_f64() as f32);
        }
    }
}

struct Widen<'a, T> {
    from: &'a [f16],
    to: &'a mut [T],
    scale: T,
}

impl<T: Scalar> Job for Widen<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let lanes = T::Vector::<A>::LANES;
        let whole = self.from.len() / lanes * lanes;
        // SAFETY: this is `run`, for its own `A`, and the slices are `lanes` long.
        unsafe {
            let (zero, scale) = (
                T::Vector::<A>::splat(T::ZERO),
                T::Vector::<A>::splat(self.scale),
            );
            for start in (0..whole).step_by(lanes) {
                let value = T::Vector::<A>::load_half(&self.from[start..start + lanes]);
                zero.add_product(value, scale)
                    .store(&mut self.to[start..start + lanes]);
            }
        }
        for (to, from) in self.to[whole..].iter_mut().zip(&self.from[whole..]) {
            *to = self.scale * T::from_f64(from.to_f64());
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
