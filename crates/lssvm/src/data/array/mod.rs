//! Arrays as binary files hold them: IDX and NPY share all but their heads.
//!
//! | file | what it holds |
//! |---|---|
//! | `number.rs` | types of numbers, and their decoding |
//! | `layout.rs` | where the values of a sample lie |
//! | `records.rs` | rows of numbers that are read when they are needed |
//! | `text.rs` | labels that are text |
//!
//! The first axis counts the samples; the others are flattened to features.
//! Three axes are grey images. Four are images with channels, which are put
//! plane after plane if the file has them pixel by pixel.

mod layout;
mod number;
mod records;
#[cfg(test)]
mod tests;
mod text;

use std::path::Path;
use std::sync::Arc;

use super::source::Source;
use super::{ImageShape, Labels, ReadOptions};
use crate::error::Place;
use crate::linalg::Matrix;
use crate::{Error, Result};

pub(super) use layout::Layout;
pub(super) use number::{Kind, Numbers};
pub(super) use records::Records;
pub(super) use text::Text;

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

/// What the head of a file says of its array, and the file has as many bytes as that
/// needs.
#[derive(Debug)]
pub(super) struct Head {
    element: Element,
    big_endian: bool,
    /// The first axis runs fastest (Fortran) instead of the last.
    fortran: bool,
    shape: Vec<usize>,
    /// Where the values begin.
    start: usize,
}

impl Head {
    /// Checks the shape that a head of `start` bytes claims against the length of the
    /// file.
    pub(super) fn new(
        path: &Path,
        (element, big_endian): (Element, bool),
        fortran: bool,
        shape: Vec<usize>,
        start: usize,
        length: u64,
    ) -> Result<Self> {
        let count = shape
            .iter()
            .try_fold(1usize, |n, &size| n.checked_mul(size));
        let size = element.size();
        let expected = count.and_then(|n| n.checked_mul(size?)?.checked_add(start));
        let fail = |problem| Err(Error::file(path, Place::Whole, problem));
        let Some(expected) = expected else {
            return fail(format!(
                "the head claims a shape of {shape:?}, which no file can hold; get the file again"
            ));
        };
        if length != expected as u64 {
            let (state, remedy) = if length < expected as u64 {
                ("cut off", "get the file again")
            } else {
                ("too long", "it may be damaged, or not what its head says")
            };
            return fail(format!(
                "the file is {state}: a shape of {shape:?} needs {expected} bytes, and there are \
                 {length}; {remedy}"
            ));
        }
        Ok(Self {
            element,
            big_endian,
            fortran,
            shape,
            start,
        })
    }

    /// Sizes of the axes.
    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Whether the values of a sample are scattered over the whole file.
    pub(super) fn is_scattered(&self) -> bool {
        self.fortran && self.shape.len() > 1
    }

    /// The type of the features, if there are any: numbers of two axes or more.
    fn feature_kind(&self, path: &Path) -> Result<Kind> {
        let whole = |problem: String| Err(Error::file(path, Place::Whole, problem));
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
        Ok(kind)
    }

    /// Number of values of a sample.
    pub(super) fn width(&self) -> usize {
        self.shape.iter().skip(1).product()
    }

    /// The samples as rows, and the shape of the images if they are images.
    pub(super) fn features(
        &self,
        source: &Arc<Source>,
        options: &ReadOptions,
    ) -> Result<(Records, Option<ImageShape>)> {
        let kind = self.feature_kind(source.path())?;
        let (axes, image) = self.axes();
        let numbers = self.numbers(kind, &axes);
        let rows = options.rows(self.shape[0]);
        let records = Records::new(numbers, self.width());
        Ok((records.with_part(source, self.start, rows), image))
    }

    /// Some columns of a table, in this order.
    pub(super) fn columns(
        &self,
        source: &Arc<Source>,
        columns: &[usize],
        options: &ReadOptions,
    ) -> Result<Records> {
        let kind = self.feature_kind(source.path())?;
        let mut numbers = self.numbers(kind, &[1]);
        numbers.layout = numbers.layout.columns(self.width(), columns);
        let rows = options.rows(self.shape[0]);
        let records = Records::new(numbers, columns.len()).with_places(columns);
        Ok(records.with_part(source, self.start, rows))
    }

    /// The labels of the first rows: one or more numbers for each, or a text.
    pub(super) fn labels(&self, source: &Arc<Source>, options: &ReadOptions) -> Result<Labels> {
        let path = source.path();
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
                return Err(Error::file(path, Place::Whole, problem));
            }
        };
        let rows = options.rows(self.shape[0]);
        let kind = match self.element {
            Element::Number(kind) => kind,
            Element::Text(text) => {
                let bytes = source.part(self.start as u64, source.length())?;
                let labels = text.labels(&bytes, self.big_endian, rows, path)?;
                return Ok(labels.with_source(path, vec![]));
            }
        };
        let axes: Vec<usize> = (1..self.shape.len()).collect();
        let numbers = self.numbers(kind, &axes);
        let records = Records::new(numbers, cols).with_part(source, self.start, rows);
        let mut values = Matrix::zeros(rows, cols);
        records.read_any(0..rows, values.values_mut())?;
        if let Some(at) = values.values().iter().position(|v: &f64| !v.is_finite()) {
            let problem = format!(
                "the label is {}; labels must be finite: drop the row",
                values.values()[at]
            );
            let row = Place::Row((at / cols) as u64 + 1);
            return Err(Error::file(path, row, problem));
        }
        Ok(Labels::from_values(values)?.with_source(path, vec![]))
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

    /// The numbers, with the axes after the first in the order in which they run in a
    /// row.
    fn numbers(&self, kind: Kind, axes: &[usize]) -> Numbers {
        Numbers {
            kind,
            big_endian: self.big_endian,
            layout: Layout::new(&self.shape, self.fortran, axes),
        }
    }
}
