//! Cholesky factorisation of a matrix that fills the memory, in place.
//!
//! ```text
//!     A + shift·I = L Lᵀ        tile (r, c), r ≥ c:  A(rows of r, rows of c)
//! ```
//!
//! The matrix is given by the square tiles of its lower half, as a store of Ω
//! keeps it, and L takes their place: N²/2 values and no second copy, 7.2 GB for
//! N = 60,000 in `f32`. The price against [`super::Cholesky`], which keeps A
//! beside L in a square buffer, is that a matrix that is not positive definite
//! must be computed again for a try with a larger shift.
//!
//! Factoring costs N³/3 operations, nearly all in products of whole tiles
//! (Buttari, Langou, Kurzak, Dongarra, "A class of parallel tiled linear
//! algebra algorithms for multicore architectures", 2009); a solve reads L twice
//! and runs at the speed of memory.

mod products;
mod schedule;
#[cfg(test)]
mod tests;

use std::ops::Range;

use rayon::prelude::*;

use super::skinny::{add_product_of_transposed, transpose_scaled, transposed_product};
use super::{MatMut, MatRef, Matrix, Output, Parallel, Scalar, sum_of_squares};
use crate::{Error, Result};

/// Columns of L⁻¹ that one task computes. A thread holds n × 128 values, 31 MB
/// for n = 60,000 in `f32`, and uses each value of L that it reads 128 times,
/// so that memory does not set the pace.
pub const INVERSE_COLUMNS: usize = 128;

/// `A + shift·I = L Lᵀ`, as tiles.
///
/// Lower tiles, row after row: tile (r, c), r ≥ c, is at r(r+1)/2 + c. Every
/// tile is `tile` × `tile`, those of the last row shorter; row-major. Diagonal
/// tiles are whole: L in the lower triangle and Lᵀ in the upper one.
#[derive(Debug)]
pub struct TiledCholesky<T: Scalar> {
    tiles: Vec<Matrix<T>>,
    n: usize,
    tile: usize,
}

impl<T: Scalar> TiledCholesky<T> {
    /// Factors a symmetric matrix of `n` rows with `shift` added to its
    /// diagonal, in place, on the rayon pool. Of the diagonal tiles only the
    /// upper triangle is read.
    ///
    /// None if a pivot was not positive or not finite: the tiles are spoilt
    /// then, and are to be computed again for a try with a larger shift.
    ///
    /// `progress` is told the share of the work done, from 0 to 1, between any
    /// two operations on tiles, and may return false to give up, which ends in
    /// [`Error::Interrupted`]. It must not wait for the pool, whose threads may
    /// be waiting for a tile that the calling thread holds. The factor does not depend on the number of
    /// threads, to the last bit.
    ///
    /// # Panics
    /// If `tile` is 0, or number or shape of the tiles do not fit `n`.
    pub fn new(
        tiles: Vec<Matrix<T>>,
        n: usize,
        tile: usize,
        shift: f64,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<Self>> {
        let side = n.div_ceil(tile);
        assert_eq!(tiles.len(), place(side, 0), "tiles for {n} rows");
        for row in 0..side {
            for column in 0..=row {
                let t = &tiles[place(row, column)];
                let shape = (extent(row, n, tile).len(), extent(column, n, tile).len());
                assert_eq!((t.rows(), t.cols()), shape, "tile ({row}, {column})");
            }
        }
        let tiles = schedule::factor(tiles, side, shift, progress)?;
        Ok(tiles.map(|tiles| Self { tiles, n, tile }))
    }

    /// Solves `(A + shift·I) X = B` in place, for a few columns.
    pub fn solve(&self, b: &mut Matrix<T>) {
        assert_eq!(b.rows(), self.n, "right-hand side");
        let (side, k) = (self.side(), b.cols());
        if k == 0 {
            return;
        }
        let values = b.values_mut();
        // L Y = B: what is known of Y is taken from all rows below it. The order
        // of the sums is that of the loop, on any number of threads.
        for column in 0..side {
            let rows = self.extent(column);
            let (known, below) = values.split_at_mut(rows.end * k);
            let mut y = MatMut::new(rows.len(), k, &mut known[rows.start * k..]);
            let diagonal = self.tile(column, column).view();
            T::solve_upper_transposed(diagonal, y.reborrow(), Parallel::No);
            let y = transpose_scaled(y.as_ref(), -T::ONE);
            let below = below.par_chunks_mut(self.tile * k).enumerate();
            below.for_each(|(i, b)| {
                let tile = self.tile(column + 1 + i, column).view();
                add_product_of_transposed(MatMut::new(tile.rows(), k, b), tile, y.view());
            });
        }
        // Lᵀ X = Y: what is known of X is taken from all rows above it.
        for row in (0..side).rev() {
            let rows = self.extent(row);
            let (above, known) = values.split_at_mut(rows.start * k);
            let mut x = MatMut::new(rows.len(), k, &mut known[..rows.len() * k]);
            T::solve_upper(self.tile(row, row).view(), x.reborrow(), Parallel::No);
            let x = x.as_ref();
            let above = above.par_chunks_mut(self.tile * k).enumerate();
            above.for_each(|(column, b)| {
                let product = transposed_product(self.tile(row, column).view(), x);
                for (b, p) in b.iter_mut().zip(product.values()) {
                    *b -= *p;
                }
            });
        }
    }

    /// log det(A + shift·I), in `f64`.
    pub fn log_det(&self) -> f64 {
        let pivots = (0..self.side()).flat_map(|r| {
            let tile = self.tile(r, r);
            (0..tile.rows()).map(|i| tile.get(i, i).to_f64())
        });
        2.0 * pivots.map(f64::ln).sum::<f64>()
    }

    /// The diagonal of `(A + shift·I)⁻¹`: the sums of the squares of the columns
    /// of L⁻¹, at the cost of the factorisation. `progress` as in
    /// [`TiledCholesky::new`], told after each few columns.
    pub fn inverse_diagonal(&self, progress: &mut dyn FnMut(f64) -> bool) -> Result<Vec<T>> {
        // Within one tile column, so that each task starts at a diagonal tile.
        let tasks: Vec<Range<usize>> = (0..self.side())
            .flat_map(|column| {
                let all = self.extent(column);
                let starts = all.clone().step_by(INVERSE_COLUMNS);
                starts.map(move |start| start..(start + INVERSE_COLUMNS).min(all.end))
            })
            .collect();
        let mut diagonal = Vec::with_capacity(self.n);
        for turn in tasks.chunks(rayon::current_num_threads()) {
            let parts: Vec<Vec<T>> = turn
                .par_iter()
                .map(|columns| self.squares_of_inverse(columns.clone()))
                .collect();
            diagonal.extend(parts.into_iter().flatten());
            let left = 1.0 - diagonal.len() as f64 / self.n as f64;
            if !progress(1.0 - left * left * left) {
                return Err(Error::Interrupted);
            }
        }
        Ok(diagonal)
    }

    /// The tiles of L.
    pub fn into_tiles(self) -> Vec<Matrix<T>> {
        self.tiles
    }

    /// Sums of the squares of these columns of L⁻¹, which lie in one tile column.
    fn squares_of_inverse(&self, columns: Range<usize>) -> Vec<T> {
        let first = columns.start / self.tile;
        let (top, width) = (columns.start, columns.len());
        // Z of L Z = E, from the first row that is not zero.
        let mut z = vec![T::ZERO; (self.n - top) * width];
        (0..width).for_each(|c| z[c * width + c] = T::ONE);
        let from_top = |index: usize| {
            let rows = self.extent(index);
            (rows.start.max(top), rows)
        };
        for row in first..self.side() {
            let (begin, rows) = from_top(row);
            let (known, rest) = z.split_at_mut((begin - top) * width);
            let height = rows.end - begin;
            let mut out = MatMut::new(height, width, &mut rest[..height * width]);
            for column in first..row {
                let (begin, columns) = from_top(column);
                let known = &known[(begin - top) * width..(columns.end - top) * width];
                let known = MatRef::new(columns.end - begin, width, known);
                let tile = self.tile(row, column).view();
                let tile = tile.col_range(begin - columns.start, columns.len());
                T::gemm_nn(
                    out.reborrow(),
                    Output::Add,
                    tile,
                    known,
                    -T::ONE,
                    Parallel::No,
                );
            }
            let (start, end) = (begin - rows.start, rows.len());
            let diagonal = self.tile(row, row).view();
            let diagonal = diagonal.row_range(start, end).col_range(start, end);
            T::solve_upper_transposed(diagonal, out, Parallel::No);
        }
        let z = transpose_scaled(MatRef::new(self.n - top, width, &z), T::ONE);
        (0..width)
            .map(|c| T::from_f64(sum_of_squares(z.row(c))))
            .collect()
    }

    fn side(&self) -> usize {
        self.n.div_ceil(self.tile)
    }

    fn extent(&self, index: usize) -> Range<usize> {
        extent(index, self.n, self.tile)
    }

    fn tile(&self, row: usize, column: usize) -> &Matrix<T> {
        &self.tiles[place(row, column)]
    }
}

/// Where tile (row, column) is; (s, 0) gives the number of tiles of s rows.
fn place(row: usize, column: usize) -> usize {
    row * (row + 1) / 2 + column
}

/// Rows of the matrix that tile row `index` covers.
fn extent(index: usize, n: usize, tile: usize) -> Range<usize> {
    index * tile..((index + 1) * tile).min(n)
}
