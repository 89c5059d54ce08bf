//! The types of numbers that files hold, and their decoding.

use super::layout::Layout;
use crate::linalg::Scalar;

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

/// Numbers of one type and byte order, laid out in a file.
pub(super) struct Numbers<'a> {
    pub(super) kind: Kind,
    pub(super) big_endian: bool,
    pub(super) layout: Layout,
    pub(super) bytes: &'a [u8],
}

impl Numbers<'_> {
    /// Fills rows of `cols` values.
    pub(super) fn read_into<T: Scalar>(&self, values: &mut [T], cols: usize) {
        let layout = &self.layout;
        macro_rules! fill {
            ($t:ty) => {
                if self.big_endian {
                    layout.fill(values, cols, self.bytes, |b| <$t>::from_be_bytes(b) as f64)
                } else {
                    layout.fill(values, cols, self.bytes, |b| <$t>::from_le_bytes(b) as f64)
                }
            };
        }
        match self.kind {
            Kind::Bool => layout.fill(values, cols, self.bytes, |[b]| f64::from(u8::from(b != 0))),
            Kind::U8 => layout.fill(values, cols, self.bytes, |[b]| f64::from(b)),
            Kind::I8 => fill!(i8),
            Kind::U16 => fill!(u16),
            Kind::I16 => fill!(i16),
            Kind::U32 => fill!(u32),
            Kind::I32 => fill!(i32),
            Kind::U64 => fill!(u64),
            Kind::I64 => fill!(i64),
            Kind::F32 => fill!(f32),
            Kind::F64 => fill!(f64),
            Kind::F16 if self.big_endian => {
                layout.fill(values, cols, self.bytes, |b| half(u16::from_be_bytes(b)))
            }
            Kind::F16 => layout.fill(values, cols, self.bytes, |b| half(u16::from_le_bytes(b))),
        }
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
