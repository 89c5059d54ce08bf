//! What makes conjugate gradients on centres quick: the normal equations as they would be
//! if the rows were the centres themselves, many times over.
//!
//! ```text
//!     Ω(centres, centres) = UᵀU
//!     D = s (diag w − w wᵀ / Σw)        w: weights of the centres, s = Σ all weights / Σw
//!     U D Uᵀ + λI = VᵀV
//!     P = UᵀVᵀV U ≈ Ω(centres, rows) W̃ Ω(rows, centres) + λΩ(centres, centres)
//! ```
//!
//! (Rudi, Carratino, Rosasco, "Falkon: an optimal large scale kernel method", 2017; the
//! part of w wᵀ is for the bias.) Costs P³ operations once and two squares of P values.

use crate::linalg::{Cholesky, MatMut, MatRef, Matrix, Output, Parallel, Scalar};
use crate::{Result, linalg};

/// Rows of U that are multiplied at once.
const PANEL: usize = 512;

/// U and V.
pub(super) struct Preconditioner<S: Scalar> {
    u: Cholesky<S>,
    v: Cholesky<S>,
}

impl<S: Scalar> Preconditioner<S> {
    /// `omega`: Ω(centres, centres), its upper triangle, and the least that is to be added
    /// to its diagonal; `weights` of the centres; `scale`: s; `lambda`: λ.
    pub(super) fn new(
        (omega, jitter): (Matrix<S>, f64),
        weights: &[f64],
        scale: f64,
        lambda: f64,
    ) -> Result<Self> {
        let u = Cholesky::with_jitter(omega, jitter)?;
        let mut inner = weighted_square(u.buffer(), weights);
        let total: f64 = weights.iter().sum();
        let sums = times_upper(u.buffer(), weights);
        let p = inner.rows();
        for i in 0..p {
            let row = &mut inner.row_mut(i)[i..];
            for (value, sum) in row.iter_mut().zip(&sums[i..]) {
                let centred = value.to_f64() - sums[i] * sum / total;
                *value = S::from_f64(scale * centred);
            }
            row[0] += S::from_f64(lambda);
        }
        let v = Cholesky::new(inner)?;
        Ok(Self { u, v })
    }

    /// P⁻¹ R
    pub(super) fn apply(&self, r: &Matrix<f64>) -> Matrix<f64> {
        let mut z: Matrix<S> = r.cast();
        let (u, v) = (self.u.buffer(), self.v.buffer());
        S::solve_upper_transposed(u, z.view_mut(), Parallel::Pool);
        S::solve_upper_transposed(v, z.view_mut(), Parallel::Pool);
        S::solve_upper(v, z.view_mut(), Parallel::Pool);
        S::solve_upper(u, z.view_mut(), Parallel::Pool);
        z.cast()
    }

    /// What had to be added to the diagonal of Ω(centres, centres).
    pub(super) fn jitter(&self) -> f64 {
        self.u.jitter()
    }

    /// Bytes of it, and of what it takes to make it.
    pub(super) fn bytes(centers: usize) -> u64 {
        let panel = PANEL.min(centers);
        (size_of::<S>() * centers * (2 * centers + 3 * panel)) as u64
    }
}

/// Σⱼ≥ᵢ u[i][j] w[j] of each row of an upper triangle, in `f64`.
fn times_upper<S: Scalar>(u: MatRef<'_, S>, weights: &[f64]) -> Vec<f64> {
    let row = |i: usize| {
        let pairs = u.row(i)[i..].iter().zip(&weights[i..]);
        pairs.map(|(u, w)| u.to_f64() * w).sum()
    };
    (0..u.rows()).map(row).collect()
}

/// The upper triangle of U diag(w) Uᵀ, panel by panel; of `u` only the upper triangle is
/// read.
fn weighted_square<S: Scalar>(u: MatRef<'_, S>, weights: &[f64]) -> Matrix<S> {
    let p = u.rows();
    let mut out = linalg::Matrix::<S>::zeros(p, p);
    for left in (0..p).step_by(PANEL) {
        let width = PANEL.min(p - left);
        // The rows of this panel from its first column on, with zeros under the diagonal.
        let upper = |i: usize, j: usize| match j >= i {
            true => u.row(left + i)[left + j],
            false => S::ZERO,
        };
        let own = Matrix::from_fn(width, p - left, upper);
        let weighted = Matrix::from_fn(width, p - left, |i, j| {
            own.get(i, j) * S::from_f64(weights[left + j])
        });
        let values = out.values_mut();
        let above = MatMut::strided(left, width, p, &mut values[left..]);
        S::gemm_nt(
            above,
            Output::Replace,
            u.row_range(0, left).col_range(left, p),
            weighted.view(),
            S::ONE,
            Parallel::Pool,
        );
        let corner = MatMut::strided(width, width, p, &mut values[left * p + left..]);
        S::gemm_nt(
            corner,
            Output::Replace,
            own.view(),
            weighted.view(),
            S::ONE,
            Parallel::Pool,
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_square_is_the_plain_sum() {
        for p in [1, 7, 600] {
            let u = Matrix::from_fn(p, p, |i, j| ((i * 31 + j * 17) as f64 * 0.3).sin());
            let weights: Vec<f64> = (0..p).map(|i| 1.0 + (i % 3) as f64).collect();
            let square = weighted_square(u.view(), &weights);
            for i in (0..p).step_by(37) {
                for j in (i..p).step_by(11) {
                    let terms = (j..p).map(|k| u.get(i, k) * weights[k] * u.get(j, k));
                    let plain: f64 = terms.sum();
                    assert!((square.get(i, j) - plain).abs() < 1e-9, "({i}, {j})");
                }
            }
        }
    }
}
