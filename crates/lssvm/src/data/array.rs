//! Arrays of numbers as binary files hold them: IDX and NPY share all but
//! their heads.
//!
//! The first axis counts the samples; the others are flattened to features.
//! Three axes are grey images. Four are images with channels, which are put
//! plane after plane if the file has them pixel by pixel.

use std::path::Path;

use rayon::prelude::*;

use super::bytes::allocate;
use super::{ImageShape, Labels, ReadOptions};
use crate::error::Place;
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// Values that one task converts, at least.
const TASK: usize = 1 << 16;

/// Numbers of channels by which the channel axis of an image is recognised:
/// grey, colour, colour with transparency.
const CHANNELS: [usize; 3] = [1, 3, 4];

/// The type of one number in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
    pub(super) fn size(self) -> usize {
        match self {
            Kind::Bool | Kind::U8 | Kind::I8 => 1,
            Kind::U16 | Kind::I16 | Kind::F16 => 2,
            Kind::U32 | Kind::I32 | Kind::F32 => 4,
            Kind::U64 | Kind::I64 | Kind::F64 => 8,
        }
    }
}

/// An array whose bytes are as many as its shape needs.
#[derive(Debug)]
pub(super) struct Array<'a> {
    path: &'a Path,
    kind: Kind,
    big_endian: bool,
    /// The first axis runs fastest (Fortran) instead of the last.
    fortran: bool,
    shape: Vec<usize>,
    bytes: &'a [u8],
}

impl<'a> Array<'a> {
    /// Checks `bytes`, which follow `head` bytes, against the shape that the
    /// head claims.
    pub(super) fn new(
        path: &'a Path,
        (kind, big_endian): (Kind, bool),
        fortran: bool,
        shape: Vec<usize>,
        bytes: &'a [u8],
        head: usize,
    ) -> Result<Self> {
        let count = shape
            .iter()
            .try_fold(1usize, |n, &size| n.checked_mul(size));
        let expected = count.and_then(|n| n.checked_mul(kind.size()));
        let fail = |problem| Err(Error::file(path, Place::Whole, problem));
        let Some(expected) = expected else {
            return fail(format!(
                "the head claims a shape of {shape:?}, which no file can hold; get the file again"
            ));
        };
        if bytes.len() != expected {
            let (state, remedy) = if bytes.len() < expected {
                ("cut off", "get the file again")
            } else {
                ("too long", "it may be damaged, or not what its head says")
            };
            return fail(format!(
                "the file is {state}: a shape of {shape:?} needs {} bytes, and there are {}; {remedy}",
                expected.saturating_add(head),
                bytes.len() + head
            ));
        }
        Ok(Self {
            path,
            kind,
            big_endian,
            fortran,
            shape,
            bytes,
        })
    }

    /// Sizes of the axes.
    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The samples as rows, and the shape of the images if they are images.
    pub(super) fn features<T: Scalar>(
        &self,
        options: &ReadOptions,
    ) -> Result<(Matrix<T>, Option<ImageShape>)> {
        let whole = |problem: String| Err(Error::file(self.path, Place::Whole, problem));
        if self.shape.len() < 2 {
            return whole(format!(
                "an array of shape {:?} has no features; samples and features need two axes or more",
                self.shape
            ));
        }
        if self.shape.contains(&0) {
            return whole(format!(
                "an array of shape {:?} has no values; check how it was written",
                self.shape
            ));
        }
        let rows = options.rows(self.shape[0]);
        let cols = self.shape[1..].iter().product();
        let mut values = allocate(self.path, rows, cols, options)?;
        let (axes, image) = self.axes();
        self.read_into(&mut values, cols, &axes);
        if matches!(self.kind, Kind::F16 | Kind::F32 | Kind::F64) {
            self.check_finite(&values, cols)?;
        }
        Ok((Matrix::from_vec(rows, cols, values), image))
    }

    /// The labels of the first `rows` samples: one or more numbers for each.
    pub(super) fn labels(&self, options: &ReadOptions) -> Result<Labels> {
        let cols = match *self.shape {
            [_] => 1,
            [_, cols] if cols > 0 => cols,
            _ => {
                let problem = format!(
                    "labels in an array of shape {:?}; they need one axis, or two for several targets",
                    self.shape
                );
                return Err(Error::file(self.path, Place::Whole, problem));
            }
        };
        let rows = options.rows(self.shape[0]);
        let mut values = vec![0f64; rows * cols];
        let axes: Vec<usize> = (1..self.shape.len()).collect();
        self.read_into(&mut values, cols, &axes);
        if let Some(at) = values.iter().position(|v| !v.is_finite()) {
            let problem = format!(
                "the label is {}; labels must be finite: drop the row",
                values[at]
            );
            return Err(Error::file(
                self.path,
                Place::Row((at / cols) as u64 + 1),
                problem,
            ));
        }
        Ok(Labels::from_values(Matrix::from_vec(rows, cols, values))?
            .with_source(self.path, vec![]))
    }

    /// The axes after the first in the order in which features run, and the
    /// shape of the image they make.
    fn axes(&self) -> (Vec<usize>, Option<ImageShape>) {
        let image = |channels, height, width| {
            Some(ImageShape {
                channels,
                height,
                width,
            })
        };
        match self.shape[1..] {
            [height, width] => (vec![1, 2], image(1, height, width)),
            [height, width, channels] if CHANNELS.contains(&channels) => {
                (vec![3, 1, 2], image(channels, height, width))
            }
            [channels, height, width] if CHANNELS.contains(&channels) => {
                (vec![1, 2, 3], image(channels, height, width))
            }
            _ => ((1..self.shape.len()).collect(), None),
        }
    }

    /// Fills rows of `cols` values; the axes in the order in which they run.
    fn read_into<T: Scalar>(&self, values: &mut [T], cols: usize, axes: &[usize]) {
        let layout = self.layout(axes);
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

    fn layout(&self, axes: &[usize]) -> Layout {
        let last = self.shape.len() - 1;
        if !self.fortran && axes.is_sorted() {
            return Layout::Contiguous;
        }
        let mut strides = vec![1; self.shape.len()];
        if self.fortran {
            (1..=last).for_each(|d| strides[d] = strides[d - 1] * self.shape[d - 1]);
        } else {
            (0..last)
                .rev()
                .for_each(|d| strides[d] = strides[d + 1] * self.shape[d + 1]);
        }
        let mut offsets = vec![0];
        for &axis in axes {
            let steps = |&offset: &usize| (0..self.shape[axis]).map(move |i| (offset, i));
            offsets = offsets
                .iter()
                .flat_map(steps)
                .map(|(o, i)| o + i * strides[axis])
                .collect();
        }
        Layout::Strided {
            row: strides[0],
            features: offsets,
        }
    }

    fn check_finite<T: Scalar>(&self, values: &[T], cols: usize) -> Result<()> {
        let found = values
            .par_chunks(TASK)
            .enumerate()
            .find_map_first(|(task, chunk)| {
                let at = chunk.iter().position(|v| !v.is_finite())?;
                Some(task * TASK + at)
            });
        match found {
            None => Ok(()),
            Some(at) => {
                let (row, feature) = (at / cols + 1, at % cols + 1);
                let problem = format!(
                    "feature {feature} is {}, not a finite number in {:?}; replace it or drop the row",
                    values[at],
                    T::PRECISION
                );
                Err(Error::file(self.path, Place::Row(row as u64), problem))
            }
        }
    }
}

/// Where the values of a row lie in a file, counted in values.
enum Layout {
    /// Row after row.
    Contiguous,
    /// Row `i` starts at `i * row`, and its features lie at these offsets.
    Strided { row: usize, features: Vec<usize> },
}

impl Layout {
    fn fill<T: Scalar, const N: usize>(
        &self,
        values: &mut [T],
        cols: usize,
        bytes: &[u8],
        decode: impl Fn([u8; N]) -> f64 + Sync,
    ) {
        let (numbers, _) = bytes.as_chunks::<N>();
        match self {
            Layout::Contiguous => {
                let from = numbers[..values.len()].par_chunks(TASK);
                values
                    .par_chunks_mut(TASK)
                    .zip(from)
                    .for_each(|(to, from)| {
                        for (to, from) in to.iter_mut().zip(from) {
                            *to = T::from_f64(decode(*from));
                        }
                    });
            }
            Layout::Strided { row, features } => {
                // Column by column within a block of rows: in Fortran order a
                // column of the block is one piece of the file.
                let block = (TASK / cols).max(16);
                let blocks = values.par_chunks_mut(block * cols).enumerate();
                blocks.for_each(|(b, to)| {
                    for (j, offset) in features.iter().enumerate() {
                        for (i, to) in to.chunks_exact_mut(cols).enumerate() {
                            to[j] = T::from_f64(decode(numbers[(b * block + i) * row + offset]));
                        }
                    }
                });
            }
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
    use super::*;

    fn bytes(n: u8) -> Vec<u8> {
        (0..n).collect()
    }

    fn array<'a>(shape: &[usize], fortran: bool, bytes: &'a [u8]) -> Array<'a> {
        Array::new(
            Path::new("d"),
            (Kind::U8, false),
            fortran,
            shape.to_vec(),
            bytes,
            0,
        )
        .unwrap()
    }

    fn features(array: &Array<'_>) -> (Matrix<f32>, Option<ImageShape>) {
        array.features(&ReadOptions::default()).unwrap()
    }

    #[test]
    fn both_orders_give_the_same_rows() {
        let (c, _) = features(&array(&[3, 2], false, &[0, 1, 2, 3, 4, 5]));
        let (f, _) = features(&array(&[3, 2], true, &[0, 2, 4, 1, 3, 5]));
        assert_eq!(c, Matrix::from_rows(&[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]));
        assert_eq!(c, f);
    }

    #[test]
    fn images_are_put_plane_after_plane() {
        let bytes = bytes(12);
        let (last, shape) = features(&array(&[1, 2, 2, 3], false, &bytes));
        assert_eq!(shape.unwrap().to_string(), "3x2x2");
        let planes = [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11].map(|v| v as f32);
        assert_eq!(last.row(0), planes);
        let (first, shape) = features(&array(&[1, 3, 2, 2], false, &bytes));
        assert_eq!(shape.unwrap().to_string(), "3x2x2");
        assert_eq!(first.row(0), (0..12).map(|v| v as f32).collect::<Vec<_>>());
        let (_, shape) = features(&array(&[2, 3, 2], false, &bytes));
        assert_eq!(shape.unwrap().to_string(), "3x2");
    }

    #[test]
    fn fortran_order_holds_for_images_too() {
        // a[i, y, x] = 100i + 10y + x, first index fastest.
        let mut fortran = Vec::new();
        for x in 0..2 {
            for y in 0..3 {
                fortran.extend([10 * y + x, 100 + 10 * y + x]);
            }
        }
        let (rows, _) = features(&array(&[2, 3, 2], true, &fortran));
        assert_eq!(rows.row(1), [100.0, 101.0, 110.0, 111.0, 120.0, 121.0]);
    }

    #[test]
    fn every_kind_is_decoded() {
        let read = |kind, big, bytes: &[u8]| {
            let array =
                Array::new(Path::new("d"), (kind, big), false, vec![1, 1], bytes, 0).unwrap();
            array
                .features::<f64>(&ReadOptions::default())
                .unwrap()
                .0
                .get(0, 0)
        };
        assert_eq!(read(Kind::Bool, false, &[7]), 1.0);
        assert_eq!(read(Kind::I8, false, &[255]), -1.0);
        for big in [false, true] {
            macro_rules! check {
                ($kind:ident, $value:expr) => {
                    let bytes = if big {
                        $value.to_be_bytes()
                    } else {
                        $value.to_le_bytes()
                    };
                    assert_eq!(read(Kind::$kind, big, &bytes), $value as f64);
                };
            }
            check!(U16, 40_000u16);
            check!(I16, -1234i16);
            check!(U32, 4_000_000_000u32);
            check!(I32, -70_000i32);
            check!(U64, 1u64 << 40);
            check!(I64, -(1i64 << 40));
            check!(F32, 1.5f32);
            check!(F64, -0.1f64);
            let half = 0x3e00u16; // 1.5
            let bytes = if big {
                half.to_be_bytes()
            } else {
                half.to_le_bytes()
            };
            assert_eq!(read(Kind::F16, big, &bytes), 1.5);
        }
    }

    #[test]
    fn half_precision_by_known_values() {
        assert_eq!(half(0x0001), 2f64.powi(-24));
        assert_eq!(half(0xc000), -2.0);
        assert_eq!(half(0x7bff), 65504.0);
        assert_eq!(half(0xfc00), f64::NEG_INFINITY);
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn values_that_are_not_finite_are_named() {
        let mut bytes = Vec::new();
        [1.0, 2.0, 3.0, f64::INFINITY]
            .iter()
            .for_each(|v: &f64| bytes.extend(v.to_le_bytes()));
        let array = Array::new(
            Path::new("d"),
            (Kind::F64, false),
            false,
            vec![2, 2],
            &bytes,
            0,
        )
        .unwrap();
        let message = array
            .features::<f32>(&ReadOptions::default())
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("d, row 2: feature 2 is inf, not a finite number"),
            "{message}"
        );
        let message = array
            .labels(&ReadOptions::default())
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("d, row 2: the label is inf"),
            "{message}"
        );
    }

    #[test]
    fn shapes_are_not_trusted() {
        let new = |shape: &[usize], bytes: &[u8]| {
            let made = Array::new(
                Path::new("d"),
                (Kind::F64, true),
                false,
                shape.to_vec(),
                bytes,
                8,
            );
            made.err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        assert!(new(&[usize::MAX, 2], b"").contains("no file can hold"));
        assert!(new(&[1 << 62], b"").contains("no file can hold"));
        assert_eq!(
            new(&[2, 3], b"12345"),
            "d: the file is cut off: a shape of [2, 3] needs 56 bytes, and there are 13; get the file again"
        );
        assert!(
            new(&[1], b"123456789")
                .contains("too long: a shape of [1] needs 16 bytes, and there are 17")
        );
        let bytes = [];
        let empty = array(&[0, 3], false, &bytes).features::<f32>(&ReadOptions::default());
        assert!(empty.unwrap_err().to_string().contains("no values"));
    }

    #[test]
    fn only_the_first_rows_are_read_on_demand() {
        let options = ReadOptions {
            max_rows: Some(2),
            max_bytes: Some(16),
            ..Default::default()
        };
        let bytes = bytes(6);
        let (rows, _) = array(&[3, 2], true, &bytes)
            .features::<f32>(&options)
            .unwrap();
        assert_eq!(rows, Matrix::from_rows(&[[0.0, 3.0], [1.0, 4.0]]));
    }
}
