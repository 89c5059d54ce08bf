//! LIBSVM's sparse text: a line is `label index:value index:value ...`, and
//! features that are not written are 0.
//!
//! The text is read twice: first for its shape (rows, largest index, whether
//! indices start at 0), then for the values, which go straight to their place
//! in the matrix: a dense one, or a sparse one if few values are written.
//! Holding the values between two halves of one pass would cost more memory
//! than the second pass costs time. Files that are read together agree on where
//! indices start, on the number of features, and on how rows are kept.
//!
//! `qid:` pairs are skipped, `#` begins a comment, and a file whose lines
//! begin with `index:value` has no labels.

mod fill;
mod line;
mod scan;
mod sparse;

use std::path::PathBuf;

pub(super) use scan::Scan;

use self::scan::{Scanned, Shape, scan};
use super::text::Problem;
use super::{ReadOptions, Stream};
use crate::Result;
use crate::linalg::Scalar;

/// The samples in one or several files, with the same features.
pub(super) fn open<T: Scalar>(
    files: &[(PathBuf, Vec<u8>)],
    options: &ReadOptions,
) -> Result<Vec<Stream<T>>> {
    let scanned = files.iter().map(|(path, bytes)| scan(path, bytes, options));
    let scanned: Vec<Scanned<'_>> = scanned.collect::<Result<_>>()?;
    let zero = scanned.iter().any(|file| file.shape.zero.is_some());
    let base = options.index_base.unwrap_or(if zero { 0 } else { 1 });
    let mut width = options.n_features.unwrap_or(0);
    for file in &scanned {
        let fail = |at, message: String| Problem::new(at, message).at(file.path, file.text);
        width = width.max(file.shape.width(base, options, fail)?);
    }
    let shapes: Vec<&Shape> = scanned.iter().map(|file| &file.shape).collect();
    let is_sparse = sparse::suits(&shapes, width);
    let filled = scanned.iter().map(|file| match is_sparse {
        true => file.fill_sparse(base, width, options),
        false => file.fill(base, width, options),
    });
    filled.collect()
}

#[cfg(test)]
mod tests;
