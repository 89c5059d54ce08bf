//! Where the values of a sample lie in a file.

use rayon::prelude::*;

use super::TASK;
use crate::linalg::Scalar;

/// Where the values of a row lie in a file, counted in values.
pub(super) enum Layout {
    /// Row after row.
    Contiguous,
    /// Row `i` starts at `i * row`, and its features lie at these offsets.
    Strided { row: usize, features: Vec<usize> },
}

impl Layout {
    /// Of an array of this shape; the axes after the first in the order in which they
    /// run in a row.
    pub(super) fn new(shape: &[usize], fortran: bool, axes: &[usize]) -> Self {
        let last = shape.len() - 1;
        if !fortran && axes.is_sorted() {
            return Layout::Contiguous;
        }
        let mut strides = vec![1; shape.len()];
        if fortran {
            (1..=last).for_each(|d| strides[d] = strides[d - 1] * shape[d - 1]);
        } else {
            (0..last)
                .rev()
                .for_each(|d| strides[d] = strides[d + 1] * shape[d + 1]);
        }
        let mut offsets = vec![0];
        for &axis in axes {
            let steps = |&offset: &usize| (0..shape[axis]).map(move |i| (offset, i));
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

    pub(super) fn fill<T: Scalar, const N: usize>(
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
