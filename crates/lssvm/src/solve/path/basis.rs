//! Vectors at right angles, one a row, and more of them as they come.

use std::ops::Range;

use crate::Result;
use crate::linalg::{MatMut, MatRef, Matrix, Output, Parallel, Scalar, eigen, sum_of_squares};

/// A direction whose length, of 1 before what is known was taken away, falls below so many
/// rounding errors is noise.
const NOISE: f64 = 1_000.0;

/// What is known is taken away so often; twice is enough (Giraud, Langou, Rozložník, "The
/// loss of orthogonality in the Gram–Schmidt orthogonalization process", 2005).
const PASSES: usize = 2;

/// An orthonormal basis that grows.
pub(super) struct Basis<T: Scalar> {
    values: Vec<T>,
    n: usize,
}

impl<T: Scalar> Basis<T> {
    /// No vectors yet, of `n` numbers each.
    pub(super) fn new(n: usize) -> Self {
        let values = Vec::new();
        Self { values, n }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.values.len() / self.n.max(1)
    }

    /// Some of them.
    pub(super) fn rows(&self, range: Range<usize>) -> Matrix<T> {
        let values = self.values[range.start * self.n..range.end * self.n].to_vec();
        Matrix::from_vec(range.len(), self.n, values)
    }

    /// All of them.
    pub(super) fn into_matrix(self) -> Matrix<T> {
        Matrix::from_vec(self.len(), self.n, self.values)
    }

    /// Adds what is new in these rows; returns where that is.
    pub(super) fn extend(&mut self, mut block: Matrix<T>) -> Result<Range<usize>> {
        let before = self.len();
        for i in 0..block.rows() {
            let length = sum_of_squares(block.row(i)).sqrt();
            let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
            let row = block.row_mut(i).iter_mut();
            row.for_each(|v| *v = T::from_f64(v.to_f64() * scale));
        }
        for pass in 0..PASSES {
            self.take_away(&mut block);
            block = orthonormal(&block, if pass == 0 { NOISE * T::EPSILON } else { 0.5 })?;
        }
        self.values.extend_from_slice(block.values());
        Ok(before..self.len())
    }

    /// Takes the parts of the rows away that lie in the space.
    fn take_away(&self, block: &mut Matrix<T>) {
        let known = MatRef::new(self.len(), self.n, &self.values);
        if known.rows() == 0 || block.rows() == 0 {
            return;
        }
        let mut parts = Matrix::<T>::zeros(block.rows(), known.rows());
        let (pool, out) = (Parallel::Pool, parts.view_mut());
        T::gemm_nt(out, Output::Replace, block.view(), known, T::ONE, pool);
        let (out, parts) = (block.view_mut(), parts.view());
        T::gemm_nn(out, Output::Add, parts, known, -T::ONE, pool);
    }
}

/// Rows that span the same, at right angles; without directions shorter than `least`.
fn orthonormal<T: Scalar>(block: &Matrix<T>, least: f64) -> Result<Matrix<T>> {
    if block.rows() == 0 {
        return Ok(block.clone());
    }
    let mut gram = Matrix::<T>::zeros(block.rows(), block.rows());
    let view = block.view();
    T::gemm_nt(
        gram.view_mut(),
        Output::Replace,
        view,
        view,
        T::ONE,
        Parallel::Pool,
    );
    let (squares, vectors) = eigen(gram.cast::<f64>().view())?;
    let kept: Vec<usize> = (0..squares.len())
        .filter(|&k| squares[k] > least * least)
        .collect();
    let turn = Matrix::from_fn(kept.len(), block.rows(), |i, j| {
        T::from_f64(vectors.get(kept[i], j) / squares[kept[i]].sqrt())
    });
    Ok(product(turn.view(), view))
}

/// `a · b`
pub(super) fn product<T: Scalar>(a: MatRef<'_, T>, b: MatRef<'_, T>) -> Matrix<T> {
    let mut out = Matrix::<T>::zeros(a.rows(), b.cols());
    let (rows, columns) = (out.rows(), out.cols());
    if rows > 0 && columns > 0 {
        let view = MatMut::new(rows, columns, out.values_mut());
        T::gemm_nn(view, Output::Replace, a, b, T::ONE, Parallel::Pool);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_added() {
        let n = 40;
        let block = |seed: usize| {
            Matrix::from_fn(5, n, |i, j| (((i + seed) * 31 + j * 17) as f32).sin() * 1e3)
        };
        let mut basis = Basis::new(n);
        assert_eq!(basis.extend(block(0)).unwrap(), 0..2);
        // Waves of one length: two of them span all.
        assert_eq!(basis.extend(block(9)).unwrap(), 2..2);
        let more = Matrix::from_fn(3, n, |i, j| ((i * 7 + j * j) as f32).cos());
        assert_eq!(basis.extend(more).unwrap().start, 2);
        assert_eq!(basis.extend(Matrix::zeros(2, n)).unwrap().len(), 0);
        let all = basis.into_matrix().cast::<f64>();
        for i in 0..all.rows() {
            for j in 0..all.rows() {
                let pairs = all.row(i).iter().zip(all.row(j));
                let dot: f64 = pairs.map(|(a, b)| a * b).sum();
                assert!((dot - f64::from(i == j)).abs() < 1e-5, "{i}, {j}: {dot}");
            }
        }
    }
}
