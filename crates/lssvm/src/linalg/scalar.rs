//! The two number types everything is written for: `f32` and `f64`.

use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::dense::Backend;

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

/// `f32` or `f64`.
///
/// Sealed by [`Backend`], which carries the operations that differ by type.
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
    + 'static
{
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
}

macro_rules! scalar {
    ($t:ident, $precision:expr) => {
        impl Scalar for $t {
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
        }
    };
}
scalar!(f32, Precision::F32);
scalar!(f64, Precision::F64);
