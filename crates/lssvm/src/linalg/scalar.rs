//! The two number types everything is written for: `f32` and `f64`.

use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::dense::Backend;
use super::simd::{Arch, Vector};
use crate::compiled::Compiled;

/// Which number type a run or a model uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits: half the memory, twice the speed; the default.
    #[default]
    F32,
    /// 64 bits, where a small residual is wanted.
    F64,
}

impl Display for Precision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Precision::F32 => "f32",
            Precision::F64 => "f64",
        })
    }
}

/// `f32` or `f64`.
///
/// Sealed by [`Backend`], which carries the operations that differ by type.
/// `Pod` lets files be mapped and written without a copy and without `unsafe`.
pub trait Scalar:
    Copy
    + Default
    + Debug
    + Display
    + PartialEq
    + PartialOrd
    + Send
    + Sync
    + Sum
    + FromStr
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Backend
    + Compiled
    + bytemuck::Pod
    + 'static
{
    /// A vector register of this type.
    type Vector<A: Arch>: Vector<Self>;

    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// The distance from 1 to the next number.
    const EPSILON: f64;
    /// Which of the two it is.
    const PRECISION: Precision;

    /// Rounds to this type.
    fn from_f64(value: f64) -> Self;
    /// Widens, exactly.
    fn to_f64(self) -> f64;
    /// √x
    fn sqrt(self) -> Self;
    /// |x|
    fn abs(self) -> Self;
    /// Neither NaN nor infinite.
    fn is_finite(self) -> bool;
    /// `self · a + b` with one rounding.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// eˣ to within two units in the last place; 0 where that would be
    /// subnormal. Unlike the library function it can be vectorised.
    fn exp(self) -> Self;
}

macro_rules! scalar {
    ($t:ident, $vector:ident, $precision:expr, $ln2_high:expr, $ln2_low:expr, $terms:expr) => {
        impl Scalar for $t {
            type Vector<A: Arch> = A::$vector;

            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const EPSILON: f64 = $t::EPSILON as f64;
            const PRECISION: Precision = $precision;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                $t::mul_add(self, a, b)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                // x = k·ln 2 + r with |r| ≤ ln 2 / 2, and eˣ = 2ᵏ · eʳ. Adding
                // and taking away 1.5 · 2^(mantissa bits) rounds to an integer
                // and leaves k in the low bits of the sum.
                const ROUND: $t = 1.5 * (1u64 << ($t::MANTISSA_DIGITS - 1)) as $t;
                const LOWEST: $t = ($t::MIN_EXP as $t) * std::f64::consts::LN_2 as $t;
                const HIGHEST: $t = ($t::MAX_EXP as $t) * std::f64::consts::LN_2 as $t;
                let x = self;
                let sum = x * std::$t::consts::LOG2_E + ROUND;
                let k = sum - ROUND;
                let r = (x - k * $ln2_high) - k * $ln2_low;
                let mut power = $terms[0];
                for term in &$terms[1..] {
                    power = power * r + term;
                }
                // 2ᵏ: k added to the exponent's bits.
                let exponent = sum.to_bits() << ($t::MANTISSA_DIGITS - 1);
                let value = $t::from_bits(power.to_bits().wrapping_add(exponent));
                if x < LOWEST {
                    0.0
                } else if x > HIGHEST {
                    $t::INFINITY
                } else if x.is_nan() {
                    x
                } else {
                    value
                }
            }
        }
    };
}

/// 1/n!, from the highest term needed to 1/0!.
const fn exponential_series<const N: usize>() -> [f64; N] {
    let mut terms = [1.0; N];
    let mut n = 1;
    while n < N {
        terms[N - 1 - n] = terms[N - n] / n as f64;
        n += 1;
    }
    terms
}

const fn narrow<const N: usize>(wide: [f64; N]) -> [f32; N] {
    let mut terms = [0.0; N];
    let mut n = 0;
    while n < N {
        terms[n] = wide[n] as f32;
        n += 1;
    }
    terms
}

// The remainder after n terms is below (ln 2 / 2)ⁿ / n!: 5e-9 for 8 terms,
// 2e-16 for 13. ln 2 is split so that k · (high part) is exact.
const TERMS_F32: [f32; 8] = narrow(exponential_series());
const TERMS_F64: [f64; 13] = exponential_series();

scalar!(
    f32,
    F32,
    Precision::F32,
    0.693_359_4,
    -2.121_944_4e-4,
    TERMS_F32
);
scalar!(
    f64,
    F64,
    Precision::F64,
    0.693_147_180_369_123_8,
    1.908_214_929_270_587_7e-10,
    TERMS_F64
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_the_exponential() {
        for i in -2000..=2000 {
            let x = i as f64 * 0.0437;
            let relative = (Scalar::exp(x) / x.exp() - 1.0).abs();
            assert!(relative < 4.0 * f64::EPSILON, "exp({x}): {relative:.1e}");
            let y = x as f32;
            if y.abs() < 86.0 {
                let relative = (f64::from(Scalar::exp(y)) / f64::from(y).exp() - 1.0).abs();
                assert!(
                    relative < 2.0 * f64::from(f32::EPSILON),
                    "exp({y}): {relative:.1e}"
                );
            }
        }
    }

    #[test]
    fn exp_at_the_ends() {
        assert_eq!(Scalar::exp(0.0f32), 1.0);
        assert_eq!(Scalar::exp(-1e30f32), 0.0);
        assert_eq!(Scalar::exp(f64::NEG_INFINITY), 0.0);
        assert_eq!(Scalar::exp(1e5f64), f64::INFINITY);
        assert_eq!(Scalar::exp(f32::INFINITY), f32::INFINITY);
        assert!(Scalar::exp(f32::NAN).is_nan());
    }
}
