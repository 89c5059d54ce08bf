//! Rows as bytes, on their way from one rank to another.
//!
//! ```text
//! dense    the values
//! sparse   rows and values (8 bytes each), places of the rows (8 bytes), columns (4), values
//! ```
//!
//! They are never kept, and all ranks are of one kind: there is no version to tell.

use crate::linalg::{Csr, Matrix, Points, Scalar};

/// What [`from_bytes`] reads.
pub(super) fn to_bytes<T: Scalar>(rows: &Points<T>) -> Vec<u8> {
    match rows {
        Points::Dense(rows) => bytemuck::cast_slice(rows.values()).to_vec(),
        Points::Sparse(rows) => {
            let offsets = rows.offsets().iter().map(|&offset| offset as u64);
            let offsets: Vec<u64> = offsets.collect();
            let sizes = [rows.rows() as u64, rows.values().len() as u64];
            let mut bytes = bytemuck::cast_slice(&sizes).to_vec();
            bytes.extend_from_slice(bytemuck::cast_slice(&offsets));
            bytes.extend_from_slice(bytemuck::cast_slice(rows.columns()));
            bytes.extend_from_slice(bytemuck::cast_slice(rows.values()));
            bytes
        }
    }
}

/// The rows of all pieces, one after the other, of the kind and width that `like` has.
pub(super) fn from_bytes<T: Scalar>(pieces: &[Vec<u8>], like: &Points<T>) -> Points<T> {
    match like {
        Points::Dense(like) => {
            let mut values: Vec<T> =
                Vec::with_capacity(pieces.iter().map(Vec::len).sum::<usize>() / size_of::<T>());
            for piece in pieces {
                values.extend(bytemuck::pod_collect_to_vec::<u8, T>(piece));
            }
            let rows = values.len() / like.cols().max(1);
            Matrix::from_vec(rows, like.cols(), values).into()
        }
        Points::Sparse(like) => {
            let mut all = Csr::new(like.cols());
            pieces.iter().for_each(|piece| append(&mut all, piece));
            all.into()
        }
    }
}

/// Adds the rows of a sparse piece.
fn append<T: Scalar>(all: &mut Csr<T>, piece: &[u8]) {
    let words = |bytes: &[u8]| bytemuck::pod_collect_to_vec::<u8, u64>(bytes);
    let (sizes, rest) = piece.split_at(2 * size_of::<u64>());
    let sizes = words(sizes);
    let (rows, values) = (sizes[0] as usize, sizes[1] as usize);
    let (offsets, rest) = rest.split_at((rows + 1) * size_of::<u64>());
    let (columns, numbers) = rest.split_at(values * size_of::<u32>());
    let columns: Vec<u32> = bytemuck::pod_collect_to_vec(columns);
    let numbers: Vec<T> = bytemuck::pod_collect_to_vec(numbers);
    for bounds in words(offsets).windows(2) {
        let range = bounds[0] as usize..bounds[1] as usize;
        let row = columns[range.clone()].iter().copied();
        all.push(row.zip(numbers[range].iter().copied()));
    }
}
