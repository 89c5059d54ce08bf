//! Where the values of a sample lie in a file.

use crate::linalg::Scalar;

/// Where the values of a row lie in a file, counted in values.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::data) enum Layout {
    /// Row after row, all of each.
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

    /// Some columns of rows of `cols` values.
    pub(super) fn columns(&self, cols: usize, columns: &[usize]) -> Self {
        match self {
            Layout::Contiguous => Layout::Strided {
                row: cols,
                features: columns.to_vec(),
            },
            Layout::Strided { row, features } => Layout::Strided {
                row: *row,
                features: columns.iter().map(|&column| features[column]).collect(),
            },
        }
    }

    /// Fills rows of `cols` values with those from row `first` of `bytes` on.
    pub(super) fn fill<T: Scalar, const N: usize>(
        &self,
        bytes: &[u8],
        first: usize,
        values: &mut [T],
        cols: usize,
        decode: impl Fn([u8; N]) -> f64,
    ) {
        let (numbers, _) = bytes.as_chunks::<N>();
        let value = |at: usize| T::from_f64(decode(numbers[at]));
        let rows = values.chunks_exact_mut(cols).enumerate();
        match self {
            Layout::Contiguous => {
                for (to, from) in values.iter_mut().zip(&numbers[first * cols..]) {
                    *to = T::from_f64(decode(*from));
                }
            }
            Layout::Strided { row, features } if features.iter().all(|at| at < row) => {
                for (i, to) in rows {
                    let start = (first + i) * row;
                    for (to, at) in to.iter_mut().zip(features) {
                        *to = value(start + at);
                    }
                }
            }
            // Column by column: in Fortran order a column is one piece of the file.
            Layout::Strided { row, features } => {
                for (j, at) in features.iter().enumerate() {
                    for (i, to) in values.chunks_exact_mut(cols).enumerate() {
                        to[j] = value((first + i) * row + at);
                    }
                }
            }
        }
    }
}
