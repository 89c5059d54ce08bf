//! Rows of mostly zeros, kept as they are written.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::fill::Filler;
use super::line::{parse_line, parse_value, refuse_duplicates, rows_of};
use super::scan::{Scanned, Shape};
use crate::Result;
use crate::data::bytes::need_memory;
use crate::data::labels::Builder;
use crate::data::text::Problem;
use crate::data::{ReadOptions, Stream};
use crate::linalg::{Csr, MOST_COLUMNS, Scalar};

/// Rows are kept sparse if at most one value of so many is written: they then take an
/// eighth of the memory in `f32`, and their kernel values less time.
const SPARSE: usize = 16;

/// Whether rows of these shapes are better kept sparse.
pub(super) fn suits(shapes: &[&Shape], width: usize) -> bool {
    let of = |f: fn(&Shape) -> usize| shapes.iter().map(|shape| f(shape) as u128).sum();
    let (rows, values): (u128, u128) = (of(|shape| shape.rows), of(|shape| shape.values));
    width <= MOST_COLUMNS && values * SPARSE as u128 <= rows * width as u128
}

impl Scanned<'_> {
    /// The rows of a file, sparse.
    pub(super) fn fill_sparse<T: Scalar>(
        &self,
        base: u32,
        width: usize,
        options: &ReadOptions,
    ) -> Result<Stream<T>> {
        let filler = self.filler(base, width)?;
        let Shape { rows, values, .. } = self.shape;
        // While the parts are joined there are two copies.
        let needed = 2 * u128::from(Csr::<T>::bytes(rows, values));
        need_memory(self.path, [rows, width], needed, options)?;
        let parts: Vec<Result<_, Problem>> = self
            .chunks
            .par_iter()
            .map(|(chunk, shape)| filler.sparse_chunk(self.text, chunk.clone(), shape))
            .collect();
        let mut labels = Builder::new(1);
        let mut all = Csr::with_capacity(rows, width, values);
        for part in parts {
            let (part, builder) = part.map_err(|problem| problem.at(self.path, self.text))?;
            all.append(&part);
            labels.append(builder);
        }
        let about = filler.about(self.path, labels.finish(), options);
        Ok(about.with_features(Arc::new(all)))
    }
}

impl Filler {
    fn sparse_chunk<T: Scalar>(
        &self,
        text: &[u8],
        chunk: Range<usize>,
        shape: &Shape,
    ) -> Result<(Csr<T>, Builder), Problem> {
        let mut rows = Csr::with_capacity(shape.rows, self.width, shape.values);
        let mut labels = Builder::new(1);
        let mut row: Vec<(u32, T)> = Vec::new();
        for (at, line) in rows_of(text, chunk) {
            row.clear();
            let label = parse_line(line, at, &mut |index, value, at| {
                let place = self.place(index, at)?;
                row.push((place as u32, parse_value(index, value, at)?));
                Ok(())
            })?;
            if !row.is_sorted_by(|a, b| a.0 < b.0) {
                refuse_duplicates(line, at)?;
                row.sort_unstable_by_key(|pair| pair.0);
            }
            rows.push(row.iter().copied());
            self.push_label(&mut labels, label, at)?;
        }
        Ok((rows, labels))
    }
}
