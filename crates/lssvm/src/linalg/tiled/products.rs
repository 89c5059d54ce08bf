//! Products with the factor, and solves for many rows at once.
//!
//! [`TiledCholesky::solve`] and [`TiledCholesky::multiply`] take a few columns and run at
//! the speed of memory. The others take many vectors, one a row, and run at that of the
//! matrix product: each thread has rows of its own and reads all tiles.

use std::ops::Range;

use rayon::prelude::*;

use super::TiledCholesky;
use crate::linalg::skinny::{add_product_of_transposed, transpose_scaled, transposed_product};
use crate::linalg::{MatMut, MatRef, Matrix, Output, Parallel, Scalar};

/// Rows of a panel of a tile on the diagonal, whose upper triangle is not L's.
const PANEL: usize = 128;

impl<T: Scalar> TiledCholesky<T> {
    /// `(A + shift·I) B`, for a few columns.
    pub fn multiply(&self, b: &Matrix<T>) -> Matrix<T> {
        assert_eq!(b.rows(), self.n, "columns to multiply");
        let (side, k) = (self.side(), b.cols());
        let mut between = Matrix::<T>::zeros(self.n, k);
        let mut out = Matrix::<T>::zeros(self.n, k);
        if k == 0 {
            return out;
        }
        // Lᵀ B
        let parts = between.values_mut().par_chunks_mut(self.tile * k);
        parts.enumerate().for_each(|(column, out)| {
            for row in column..side {
                let top = self.extent(row).start;
                self.each_lower(row, column, |rows, columns, l| {
                    let b = b.row_range(top + rows.start, top + rows.end);
                    let product = transposed_product(l, b);
                    let out = &mut out[columns.start * k..columns.end * k];
                    let pairs = out.iter_mut().zip(product.values());
                    pairs.for_each(|(o, &p)| *o += p);
                });
            }
        });
        // L (Lᵀ B)
        let across: Vec<Matrix<T>> = (0..side)
            .map(|column| {
                let rows = self.extent(column);
                transpose_scaled(between.row_range(rows.start, rows.end), T::ONE)
            })
            .collect();
        let parts = out.values_mut().par_chunks_mut(self.tile * k);
        parts.enumerate().for_each(|(row, out)| {
            for (column, b) in across[..=row].iter().enumerate() {
                self.each_lower(row, column, |rows, columns, l| {
                    let out = &mut out[rows.start * k..rows.end * k];
                    let b = b.view().col_range(columns.start, columns.end);
                    add_product_of_transposed(MatMut::new(l.rows(), k, out), l, b);
                });
            }
        });
        out
    }

    /// `B L`, for vectors that are rows of `b`.
    pub fn rows_times_lower(&self, b: &Matrix<T>) -> Matrix<T> {
        self.each_rows(b, |b, out| {
            for column in 0..self.side() {
                for row in column..self.side() {
                    let (from, to) = (self.extent(row).start, self.extent(column).start);
                    self.each_lower(row, column, |rows, columns, l| {
                        let b = b.col_range(from + rows.start, from + rows.end);
                        let out = out.reborrow();
                        let out = out.col_range(to + columns.start, to + columns.end);
                        T::gemm_nn(out, Output::Add, b, l, T::ONE, Parallel::No);
                    });
                }
            }
        })
    }

    /// `B Lᵀ`, for vectors that are rows of `b`.
    pub fn rows_times_upper(&self, b: &Matrix<T>) -> Matrix<T> {
        self.each_rows(b, |b, out| {
            for row in 0..self.side() {
                for column in 0..=row {
                    let (from, to) = (self.extent(column).start, self.extent(row).start);
                    self.each_lower(row, column, |rows, columns, l| {
                        let b = b.col_range(from + columns.start, from + columns.end);
                        let out = out.reborrow();
                        let out = out.col_range(to + rows.start, to + rows.end);
                        T::gemm_nt(out, Output::Add, b, l, T::ONE, Parallel::No);
                    });
                }
            }
        })
    }

    /// `B (A + shift·I)⁻¹`, for vectors that are rows of `b`.
    pub fn solve_rows(&self, b: &Matrix<T>) -> Matrix<T> {
        let side = self.side();
        self.each_rows(b, |b, out| {
            // By tiles of columns, each a matrix of its own while it is worked on.
            let columns = |at: usize| self.extent(at);
            let mut parts: Vec<Matrix<T>> = (0..side)
                .map(|at| copied(b.col_range(columns(at).start, columns(at).end)))
                .collect();
            // Y Lᵀ = B
            for at in 0..side {
                let (known, rest) = parts.split_at_mut(at);
                for (column, known) in known.iter().enumerate() {
                    let (y, l) = (known.view(), self.tile(at, column).view());
                    let out = rest[0].view_mut();
                    T::gemm_nt(out, Output::Add, y, l, -T::ONE, Parallel::No);
                }
                let upper = self.tile(at, at).view();
                T::solve_upper_right(upper, rest[0].view_mut(), Parallel::No);
            }
            // X L = Y, backwards; a tile's x from Lᵀ xᵀ = yᵀ.
            for at in (0..side).rev() {
                let (rest, known) = parts.split_at_mut(at + 1);
                for (row, known) in (at + 1..).zip(known.iter()) {
                    let (x, l) = (known.view(), self.tile(row, at).view());
                    let out = rest[at].view_mut();
                    T::gemm_nn(out, Output::Add, x, l, -T::ONE, Parallel::No);
                }
                let mut across = transpose_scaled(rest[at].view(), T::ONE);
                let upper = self.tile(at, at).view();
                T::solve_upper(upper, across.view_mut(), Parallel::No);
                rest[at] = transpose_scaled(across.view(), T::ONE);
            }
            for (at, part) in parts.iter().enumerate() {
                for i in 0..part.rows() {
                    out.row_mut(i)[columns(at)].copy_from_slice(part.row(i));
                }
            }
        })
    }

    /// Hands each thread some rows of `b` and of what is to be made of them.
    fn each_rows(
        &self,
        b: &Matrix<T>,
        work: impl Fn(MatRef<'_, T>, &mut MatMut<'_, T>) + Sync,
    ) -> Matrix<T> {
        assert_eq!(b.cols(), self.n, "rows to multiply");
        let (rows, n) = (b.rows(), self.n);
        let mut out = Matrix::<T>::zeros(rows, n);
        if rows > 0 {
            let share = rows.div_ceil(rayon::current_num_threads());
            let parts = out.values_mut().par_chunks_mut(share * n);
            parts.enumerate().for_each(|(at, out)| {
                let height = out.len() / n;
                let b = b.row_range(at * share, at * share + height);
                work(b, &mut MatMut::new(height, n, out));
            });
        }
        out
    }

    /// Shows a tile of L, whole, or if it is on the diagonal in pieces that are not zero: a
    /// panel of rows left of the diagonal and the triangle beside it, and so on. With each, its
    /// rows and columns in the tile.
    fn each_lower(
        &self,
        row: usize,
        column: usize,
        mut show: impl FnMut(Range<usize>, Range<usize>, MatRef<'_, T>),
    ) {
        let tile = self.tile(row, column);
        let size = tile.rows();
        if row > column {
            return show(0..size, 0..tile.cols(), tile.view());
        }
        for start in (0..size).step_by(PANEL) {
            let end = (start + PANEL).min(size);
            if start > 0 {
                let left = tile.row_range(start, end).col_range(0, start);
                show(start..end, 0..start, left);
            }
            let mut triangle = Matrix::<T>::zeros(end - start, end - start);
            for i in 0..end - start {
                triangle.row_mut(i)[..=i].copy_from_slice(&tile.row(start + i)[start..=start + i]);
            }
            show(start..end, start..end, triangle.view());
        }
    }
}

fn copied<T: Scalar>(a: MatRef<'_, T>) -> Matrix<T> {
    Matrix::from_fn(a.rows(), a.cols(), |i, j| a.row(i)[j])
}
