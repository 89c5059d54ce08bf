//! The types of numbers that files hold, and their decoding.

use super::layout::Layout;
use crate::linalg::{Precision, Scalar};

/// The type of one number in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::data) enum Kind {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
}

impl Kind {
    /// Bytes of one number.
    pub(in crate::data) fn size(self) -> usize {
        match self {
            Kind::Bool | Kind::U8 | Kind::I8 => 1,
            Kind::U16 | Kind::I16 | Kind::F16 => 2,
            Kind::U32 | Kind::I32 | Kind::F32 => 4,
            Kind::U64 | Kind::I64 | Kind::F64 => 8,
        }
    }
}

/// Numbers of one type and byte order, laid out in rows.
#[derive(Debug, Clone)]
pub(in crate::data) struct Numbers {
    pub(in crate::data) kind: Kind,
    pub(in crate::data) big_endian: bool,
    pub(in crate::data) layout: Layout,
}

impl Numbers {
    /// Fills rows of `cols` values with those from row `first` of `bytes` on.
    pub(super) fn decode<T: Scalar>(
        &self,
        bytes: &[u8],
        first: usize,
        values: &mut [T],
        cols: usize,
    ) {
        macro_rules! fill {
            ($decode:expr) => {
                self.layout.fill(bytes, first, values, cols, $decode)
            };
            (number $t:ty) => {
                if self.big_endian {
                    fill!(|b| <$t>::from_be_bytes(b) as f64)
                } else {
                    fill!(|b| <$t>::from_le_bytes(b) as f64)
                }
            };
        }
        match self.kind {
            Kind::Bool => fill!(|[b]| f64::from(u8::from(b != 0))),
            Kind::U8 => fill!(|[b]| f64::from(b)),
            Kind::I8 => fill!(number i8),
            Kind::U16 => fill!(number u16),
            Kind::I16 => fill!(number i16),
            Kind::U32 => fill!(number u32),
            Kind::I32 => fill!(number i32),
            Kind::U64 => fill!(number u64),
            Kind::I64 => fill!(number i64),
            Kind::F32 => fill!(number f32),
            Kind::F64 => fill!(number f64),
            Kind::F16 if self.big_endian => fill!(|b| half(u16::from_be_bytes(b))),
            Kind::F16 => fill!(|b| half(u16::from_le_bytes(b))),
        }
    }

    /// Values from one row to the next, of which `cols` are read.
    pub(super) fn row(&self, cols: usize) -> usize {
        match self.layout {
            Layout::Contiguous => cols,
            Layout::Strided { row, .. } => row,
        }
    }

    /// Whether the bytes of a row are the values of a row as memory has them.
    pub(super) fn is_native<T: Scalar>(&self) -> bool {
        let same = match T::PRECISION {
            Precision::F32 => self.kind == Kind::F32,
            Precision::F64 => self.kind == Kind::F64,
        };
        same && self.layout == Layout::Contiguous && self.big_endian == cfg!(target_endian = "big")
    }

    /// Whether a value may be infinite, or not a number, in this type.
    pub(super) fn may_be_infinite(&self) -> bool {
        matches!(self.kind, Kind::F16 | Kind::F32 | Kind::F64)
    }
}

/// IEEE half precision, by its definition.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let magnitude = match exponent {
        0 => fraction / 16_777_216.0, // 2²⁴
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn half_precision_by_known_values() {
        assert_eq!(half(0x0001), 2f64.powi(-24));
        assert_eq!(half(0xc000), -2.0);
        assert_eq!(half(0x7bff), 65504.0);
        assert_eq!(half(0xfc00), f64::NEG_INFINITY);
        assert!(half(0x7e00).is_nan());
    }
}
