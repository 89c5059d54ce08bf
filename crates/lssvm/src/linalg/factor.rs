//! Factorisations of symmetric matrices.
//!
//! A symmetric matrix lives in a square row-major buffer. The factor `U` of
//! `A = UᵀU` goes to the upper triangle; the strict lower triangle keeps the
//! values of `A`, so that a failed factorisation can be tried again with more
//! on the diagonal, and a residual can be taken without computing `A` again.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::{lblt as bunch_kaufman, llt};

use super::dense::{Output, Parallel, faer_mut, faer_ref};
use super::{MatMut, MatRef, Matrix, Scalar};
use crate::{Error, Result};

/// Columns factored at once. faer's Cholesky alone reaches half of the speed
/// of its matrix product at n = 8,000; in panels of 512 the trailing update,
/// which runs at full speed, dominates.
const PANEL: usize = 512;

/// The smallest jitter tried, in units of the type's rounding error times √n times
/// the mean of the diagonal: the size of the error matrix that rounding leaves.
const FIRST_JITTER: f64 = 1.0;

/// Factor by which the jitter grows from one try to the next.
const JITTER_GROWTH: f64 = 4.0;

/// Jitter, in units of the mean of the diagonal, above which we give up: the
/// matrix would no longer resemble the one that was asked for.
const LARGEST_JITTER: f64 = 0.1;

/// `A + jitter·I = UᵀU`.
#[derive(Debug)]
pub struct Cholesky<T: Scalar> {
    buffer: Matrix<T>,
    diagonal: Vec<T>,
    jitter: f64,
}

impl<T: Scalar> Cholesky<T> {
    /// Factors a symmetric matrix given by the upper triangle of `a`.
    ///
    /// If the matrix is not positive definite in this precision, a multiple of the
    /// identity is added: the one after the least of a growing series that makes
    /// it so. [`Cholesky::jitter`] says how much that was.
    pub fn new(a: Matrix<T>) -> Result<Self> {
        Self::with_jitter(a, 0.0)
    }

    /// As [`Cholesky::new`], beginning with this jitter: what a matrix of the same kind
    /// needed saves the tries that would fail.
    pub fn with_jitter(mut a: Matrix<T>, jitter: f64) -> Result<Self> {
        mirror_upper(a.view_mut());
        Self::of_full(a, jitter, &mut |_| true)
    }

    /// As [`Cholesky::with_jitter`], for a matrix whose lower triangle is given too.
    ///
    /// `progress` is told the share of the work done, from 0 to 1, and may
    /// return false to give up, which ends in an error.
    pub fn of_full(
        mut a: Matrix<T>,
        mut jitter: f64,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Self> {
        let n = a.rows();
        assert_eq!(n, a.cols(), "a symmetric matrix is square");
        let diagonal: Vec<T> = (0..n).map(|i| a.get(i, i)).collect();
        let mean = diagonal.iter().map(|d| d.to_f64()).sum::<f64>() / n.max(1) as f64;
        if !mean.is_finite() {
            return Err(Error::Numeric(
                "the kernel matrix holds values that are not finite; scale the features or \
                 lower the kernel's degree or gamma"
                    .into(),
            ));
        }
        if jitter > 0.0 {
            restore_upper(&mut a, &diagonal, jitter);
        }
        let mut safe = true;
        loop {
            let positive = factor_in_panels(a.view_mut(), progress)?;
            if positive && safe {
                return Ok(Self {
                    buffer: a,
                    diagonal,
                    jitter,
                });
            }
            // The least jitter that factors leaves pivots of rounding noise, and a
            // solution of the same kind: one step more, and the noise is the smaller.
            safe = positive;
            jitter = more_jitter::<T>(jitter, mean, n)?;
            restore_upper(&mut a, &diagonal, jitter);
        }
    }

    /// What was added to the diagonal to make the factorisation succeed.
    pub fn jitter(&self) -> f64 {
        self.jitter
    }

    /// Solves `(A + jitter·I) X = B` in place.
    pub fn solve(&self, mut b: MatMut<'_, T>) {
        T::solve_upper_transposed(self.buffer.view(), b.reborrow(), Parallel::Pool);
        T::solve_upper(self.buffer.view(), b, Parallel::Pool);
    }

    /// The mean of the diagonal of `A`.
    pub fn mean_diagonal(&self) -> f64 {
        let sum: f64 = self.diagonal.iter().map(|d| d.to_f64()).sum();
        sum / self.diagonal.len().max(1) as f64
    }

    /// The original diagonal of `A`, without jitter.
    pub fn diagonal(&self) -> &[T] {
        &self.diagonal
    }

    /// The buffer whose strict lower triangle still holds `A`.
    pub fn buffer(&self) -> MatRef<'_, T> {
        self.buffer.view()
    }

    /// Gives the memory back.
    pub fn into_buffer(self) -> Matrix<T> {
        self.buffer
    }
}

/// What to add to the diagonal of a matrix of `n` rows, with this mean on its
/// diagonal, after so much was not enough.
pub fn more_jitter<T: Scalar>(before: f64, mean: f64, n: usize) -> Result<f64> {
    // An all-zero matrix has mean 0; any positive unit serves it.
    let unit = if mean > 0.0 { mean } else { 1.0 };
    let jitter = match before {
        0.0 => FIRST_JITTER * T::EPSILON * (n as f64).sqrt() * unit,
        _ => before * JITTER_GROWTH,
    };
    if jitter > LARGEST_JITTER * unit {
        return Err(Error::Numeric(format!(
            "a block of {n} rows is not positive definite, even with {jitter:.1e} added to its \
             diagonal; use a positive definite kernel, a smaller c or a smaller block size"
        )));
    }
    Ok(jitter)
}

/// Right-looking Cholesky by panels. False if a pivot was not positive.
fn factor_in_panels<T: Scalar>(
    mut a: MatMut<'_, T>,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<bool> {
    let n = a.rows();
    let stride = a.stride();
    let values = a.values_mut();
    let mut start = 0;
    while start < n {
        let width = PANEL.min(n - start);
        let rest = n - start - width;
        // Rows start.. of the buffer: the panel's rows, then the trailing ones.
        let (panel, trailing) = values[start * stride..].split_at_mut(width * stride);
        // Factored in a copy: faer's Cholesky writes over the other triangle.
        let mut corner = Vec::with_capacity(width * width);
        for row in panel.chunks(stride) {
            corner.extend_from_slice(&row[start..start + width]);
        }
        if !T::cholesky_upper(MatMut::new(width, width, &mut corner), Parallel::Pool) {
            return Ok(false);
        }
        for (i, (row, factor)) in panel
            .chunks_mut(stride)
            .zip(corner.chunks(width))
            .enumerate()
        {
            row[start + i..start + width].copy_from_slice(&factor[i..]);
        }
        if rest > 0 {
            // U₁₂ = U₁₁⁻ᵀ A₁₂, then A₂₂ −= U₁₂ᵀ U₁₂.
            let corner = MatRef::new(width, width, &corner);
            let end = start + width;
            let mut right = MatMut::strided(width, rest, stride, &mut panel[end..]);
            T::solve_upper_transposed(corner, right.reborrow(), Parallel::Pool);
            let trailing = MatMut::strided(rest, rest, stride, &mut trailing[end..]);
            T::syrk_upper(
                trailing,
                Output::Add,
                right.as_ref(),
                -T::ONE,
                Parallel::Pool,
            );
        }
        start += width;
        let left = rest as f64 / n as f64;
        if !progress(1.0 - left * left * left) {
            return Err(Error::Interrupted);
        }
    }
    Ok(true)
}

/// Copies the upper triangle over the lower one.
pub fn mirror_upper<T: Scalar>(a: MatMut<'_, T>) {
    copy_triangle(a, |values, n, i, j| values[j * n + i] = values[i * n + j]);
}

/// Copies the lower triangle over the upper one.
pub fn mirror_lower<T: Scalar>(a: MatMut<'_, T>) {
    copy_triangle(a, |values, n, i, j| values[i * n + j] = values[j * n + i]);
}

/// Puts `A + jitter·I` back over a spoilt factor, from the lower triangle.
fn restore_upper<T: Scalar>(a: &mut Matrix<T>, diagonal: &[T], jitter: f64) {
    mirror_lower(a.view_mut());
    for (i, &d) in diagonal.iter().enumerate() {
        a.set(i, i, T::from_f64(d.to_f64() + jitter));
    }
}

/// Calls `copy(values, stride, i, j)` for all `i < j`, in squares that stay in cache.
fn copy_triangle<T: Scalar>(mut a: MatMut<'_, T>, copy: impl Fn(&mut [T], usize, usize, usize)) {
    const SQUARE: usize = 64;
    let (n, stride) = (a.rows(), a.stride());
    let values = a.values_mut();
    for top in (0..n).step_by(SQUARE) {
        for left in (top..n).step_by(SQUARE) {
            for i in top..(top + SQUARE).min(n) {
                for j in left.max(i + 1)..(left + SQUARE).min(n) {
                    copy(values, stride, i, j);
                }
            }
        }
    }
}

/// faer's own Cholesky; used for one panel's diagonal block.
pub(super) fn faer_cholesky<T: Scalar + faer::traits::ComplexField>(
    mut a: MatMut<'_, T>,
    parallel: Parallel,
) -> bool
where
    llt::factor::LltRegularization<T::Real>: Default,
{
    let n = a.rows();
    let par = parallel.into();
    let params = Default::default();
    let scratch = llt::factor::cholesky_in_place_scratch::<T>(n, par, params);
    let mut memory = MemBuffer::new(scratch);
    let stack = MemStack::new(&mut memory);
    llt::factor::cholesky_in_place(
        faer_mut(&mut a).transpose_mut(),
        Default::default(),
        par,
        stack,
        params,
    )
    .is_ok()
}

/// faer's Bunch–Kaufman factorisation and solve.
pub(super) fn faer_solve_indefinite<T: Scalar + faer::traits::ComplexField>(
    mut a: MatMut<'_, T>,
    mut b: MatMut<'_, T>,
) {
    let n = a.rows();
    let par = Parallel::Pool.into();
    let params = Default::default();
    let mut subdiagonal = faer::diag::Diag::<T>::zeros(n);
    let (mut perm, mut perm_inv) = (vec![0usize; n], vec![0usize; n]);
    let mut memory = MemBuffer::new(
        bunch_kaufman::factor::cholesky_in_place_scratch::<usize, T>(n, par, params).or(
            bunch_kaufman::solve::solve_in_place_scratch::<usize, T>(n, b.cols(), par),
        ),
    );
    let (_, perm) = bunch_kaufman::factor::cholesky_in_place(
        faer_mut(&mut a).transpose_mut(),
        subdiagonal.as_mut(),
        &mut perm,
        &mut perm_inv,
        par,
        MemStack::new(&mut memory),
        params,
    );
    let factor = faer_ref(a.as_ref()).transpose();
    bunch_kaufman::solve::solve_in_place(
        factor,
        factor.diagonal(),
        subdiagonal.as_ref(),
        perm,
        faer_mut(&mut b),
        par,
        MemStack::new(&mut memory),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::dense::Backend;

    /// A symmetric matrix with eigenvalues of both signs or of one.
    fn symmetric(n: usize, shift: f64) -> Matrix<f64> {
        Matrix::from_fn(n, n, |i, j| {
            let (i, j) = (i.min(j), i.max(j));
            let noise = ((i * 31 + j * 17) % 101) as f64 / 101.0 - 0.5;
            if i == j { noise + shift } else { noise }
        })
    }

    fn product(a: &Matrix<f64>, x: &Matrix<f64>) -> Matrix<f64> {
        Matrix::from_fn(a.rows(), x.cols(), |i, k| {
            (0..a.cols()).map(|j| a.get(i, j) * x.get(j, k)).sum()
        })
    }

    fn largest_difference(a: &Matrix<f64>, b: &Matrix<f64>) -> f64 {
        let pairs = a.values().iter().zip(b.values());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn cholesky_solves_across_panels() {
        for n in [1, 2, 7, PANEL - 1, PANEL, PANEL + 1, 2 * PANEL + 3] {
            let a = symmetric(n, n as f64);
            let x = Matrix::from_fn(n, 3, |i, k| (i + k) as f64 / n as f64);
            let mut b = product(&a, &x);
            let factor = Cholesky::new(a).unwrap();
            factor.solve(b.view_mut());
            assert_eq!(factor.jitter(), 0.0);
            assert!(largest_difference(&b, &x) < 1e-12 * n as f64, "n = {n}");
        }
    }

    #[test]
    fn lower_triangle_keeps_the_matrix() {
        let n = PANEL + 20;
        let a = symmetric(n, n as f64);
        let factor = Cholesky::new(a.clone()).unwrap();
        for i in 0..n {
            assert_eq!(factor.diagonal()[i], a.get(i, i));
            assert_eq!(&factor.buffer().row(i)[..i], &a.row(i)[..i]);
        }
    }

    #[test]
    fn a_singular_matrix_gets_the_least_jitter() {
        // All ones: rank one.
        let n = 50;
        let factor = Cholesky::new(Matrix::from_fn(n, n, |_, _| 1.0f32)).unwrap();
        assert!(factor.jitter() > 0.0);
        assert!(factor.jitter() < 1e-4, "jitter {}", factor.jitter());
        let zero = Cholesky::new(Matrix::<f64>::zeros(4, 4)).unwrap();
        assert!(zero.jitter() > 0.0 && zero.jitter() < 1e-12);
    }

    #[test]
    fn an_indefinite_matrix_is_refused_by_cholesky_and_solved_by_bunch_kaufman() {
        for n in [2, 5, 120] {
            let a = symmetric(n, 0.0);
            let x = Matrix::from_fn(n, 2, |i, k| (1 + i * k) as f64);
            let mut b = product(&a, &x);
            let mut work = a.clone();
            f64::solve_indefinite(work.view_mut(), b.view_mut());
            let scale = x.values().iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            assert!(largest_difference(&b, &x) < 1e-9 * scale, "n = {n}");
        }
        assert!(Cholesky::new(symmetric(120, 0.0)).is_err());
    }

    #[test]
    fn values_that_are_not_finite_are_named() {
        let mut a = symmetric(3, 3.0);
        a.set(1, 1, f64::NAN);
        assert!(Cholesky::new(a).unwrap_err().to_string().contains("finite"));
    }
}
