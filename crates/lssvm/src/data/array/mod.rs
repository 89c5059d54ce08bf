//! Arrays as binary files hold them: IDX and NPY share all but their heads.
//!
//! | file | what it holds |
//! |---|---|
//! | `number.rs` | types of numbers, and their decoding |
//! | `layout.rs` | where the values of a sample lie |
//! | `text.rs` | labels that are text |
//!
//! The first axis counts the samples; the others are flattened to features.
//! Three axes are grey images. Four are images with channels, which are put
//! plane after plane if the file has them pixel by pixel.

mod layout;
mod number;
#[cfg(test)]
mod tests;
mod text;

use std::path::Path;

use rayon::prelude::*;

use super::bytes::allocate;
use super::{ImageShape, Labels, ReadOptions};
use crate::error::Place;
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};
use layout::Layout;
use number::Numbers;

pub(super) use number::Kind;
pub(super) use text::Text;

/// Values that one task converts, at least.
const TASK: usize = 1 << 16;

/// Numbers of channels by which the channel axis of an image is recognised:
/// grey, colour, colour with transparency.
const CHANNELS: [usize; 3] = [1, 3, 4];

/// What one element of an array is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Number(Kind),
    /// Labels may be text; features may not.
    Text(Text),
}

impl Element {
    /// Bytes of one of them; none if no machine can hold it.
    fn size(self) -> Option<usize> {
        match self {
            Element::Number(kind) => Some(kind.size()),
            Element::Text(text) => text.size(),
        }
    }
}

/// An array whose bytes are as many as its shape needs.
#[derive(Debug)]
pub(super) struct Array<'a> {
    path: &'a Path,
    element: Element,
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
        (element, big_endian): (Element, bool),
        fortran: bool,
        shape: Vec<usize>,
        bytes: &'a [u8],
        head: usize,
    ) -> Result<Self> {
        let count = shape
            .iter()
            .try_fold(1usize, |n, &size| n.checked_mul(size));
        let size = element.size();
        let expected = count.and_then(|n| n.checked_mul(size?));
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
            element,
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
        let Element::Number(kind) = self.element else {
            return whole(
                "the array is text, and features must be numbers; encode them as numbers".into(),
            );
        };
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
        self.numbers(kind, &axes).read_into(&mut values, cols);
        if matches!(kind, Kind::F16 | Kind::F32 | Kind::F64) {
            self.check_finite(&values, cols)?;
        }
        Ok((Matrix::from_vec(rows, cols, values), image))
    }

    /// The labels of the first `rows` samples: one or more numbers for each, or a text.
    pub(super) fn labels(&self, options: &ReadOptions) -> Result<Labels> {
        let cols = match *self.shape {
            [_] => 1,
            [_, 1] => 1,
            [_, cols] if cols > 0 && matches!(self.element, Element::Number(_)) => cols,
            _ => {
                let problem = format!(
                    "labels in an array of shape {:?}; they need one axis, or two for several \
                     targets that are numbers",
                    self.shape
                );
                return Err(Error::file(self.path, Place::Whole, problem));
            }
        };
        let rows = options.rows(self.shape[0]);
        let kind = match self.element {
            Element::Number(kind) => kind,
            Element::Text(text) => {
                let labels = text.labels(self.bytes, self.big_endian, rows, self.path)?;
                return Ok(labels.with_source(self.path, vec![]));
            }
        };
        let mut values = vec![0f64; rows * cols];
        let axes: Vec<usize> = (1..self.shape.len()).collect();
        self.numbers(kind, &axes).read_into(&mut values, cols);
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

    /// The axes after the first in the order in which they run in a row.
    fn numbers(&self, kind: Kind, axes: &[usize]) -> Numbers<'a> {
        Numbers {
            kind,
            big_endian: self.big_endian,
            layout: Layout::new(&self.shape, self.fortran, axes),
            bytes: self.bytes,
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
