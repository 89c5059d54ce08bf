//! Eigenvalues and eigenvectors of a symmetric matrix, in `f64`.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd;

use super::dense::{Parallel, faer_mut, faer_ref};
use super::{MatRef, Matrix};
use crate::{Error, Result};

/// `A = Σ valueₖ vₖ vₖᵀ`: values in ascending order, and vₖ as row k.
///
/// Only one triangle of `a` is read. About 9 n³ operations, half of them at the speed of
/// memory: it is for matrices of a few hundred rows.
///
/// # Errors
/// [`Error::Numeric`] if `a` holds values that are not finite.
pub fn eigen(a: MatRef<'_, f64>) -> Result<(Vec<f64>, Matrix<f64>)> {
    let n = a.rows();
    assert_eq!(n, a.cols(), "a symmetric matrix is square");
    let par = Parallel::Pool.into();
    let params = Default::default();
    let vectors = evd::ComputeEigenvectors::Yes;
    let scratch = evd::self_adjoint_evd_scratch::<f64>(n, vectors, par, params);
    let mut memory = MemBuffer::new(scratch);
    let mut values = faer::diag::Diag::<f64>::zeros(n);
    let mut vectors = Matrix::zeros(n, n);
    // Columns of the transpose are our rows.
    let found = evd::self_adjoint_evd(
        faer_ref(a),
        values.as_mut(),
        Some(faer_mut(&mut vectors.view_mut()).transpose_mut()),
        par,
        MemStack::new(&mut memory),
        params,
    );
    let values: Vec<f64> = values.column_vector().iter().copied().collect();
    if found.is_err() || values.iter().any(|v| !v.is_finite()) {
        return Err(Error::Numeric(
            "a matrix has no eigenvalues that are finite; scale the features or lower the \
             kernel's degree or gamma"
                .into(),
        ));
    }
    Ok((values, vectors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_vectors_make_the_matrix() {
        for n in [1, 2, 7, 65] {
            let a = Matrix::from_fn(n, n, |i, j| ((i * j + i + j) as f64).sin());
            let (values, vectors) = eigen(a.view()).unwrap();
            assert!(values.is_sorted());
            for i in 0..n {
                for j in 0..n {
                    let sum = |f: &dyn Fn(usize) -> f64| (0..n).map(f).sum::<f64>();
                    let made = sum(&|k| values[k] * vectors.get(k, i) * vectors.get(k, j));
                    assert!((made - a.get(i, j)).abs() < 1e-12 * n as f64);
                    let dot = sum(&|k| vectors.get(i, k) * vectors.get(j, k));
                    assert!((dot - f64::from(i == j)).abs() < 1e-12 * n as f64);
                }
            }
        }
    }

    #[test]
    fn what_is_not_finite_is_refused() {
        let a = Matrix::from_rows(&[[1.0, f64::NAN], [f64::NAN, 1.0]]);
        assert!(matches!(eigen(a.view()), Err(Error::Numeric(_))));
    }
}
