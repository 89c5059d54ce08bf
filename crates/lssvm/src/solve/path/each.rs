//! A factorisation for each c, where rows and values of c are few.
//!
//! ```text
//!     S̃(μ) = Ω̃ + μ I = L Lᵀ        for each μ = c₀/c, in f64
//! ```
//!
//! Solution and diagonal of the inverse cost 2n³/3 operations each c, nearly all of them in
//! products of matrices; the eigenvectors of Ω̃, which serve every c, cost as much as dozens of
//! factorisations because half of their operations run at the speed of memory.

use rayon::prelude::*;

use super::basis::product;
use super::space::{scaled_right, whole_matrix};
use super::spread::Diagonal;
use super::{Point, point};
use crate::linalg::skinny::transpose_scaled;
use crate::linalg::{Scalar, TiledCholesky};
use crate::solve::{Phase, Work};
use crate::{Error, Result};

/// The share of progress that the kernel matrix takes.
const KERNEL_SHARE: f64 = 0.1;

/// Solutions for values of c; none if the matrix is not positive definite at one of them.
pub(super) fn points<T: Scalar>(
    work: &mut Work<'_, T>,
    scale: &[f64],
    largest_c: f64,
    cs: &[f64],
) -> Result<Option<Vec<Point<T>>>> {
    let system = work.system;
    let shifted = whole_matrix(work, scale, KERNEL_SHARE)?;
    let right = scaled_right(system, scale).cast::<f64>();
    let targets = system.targets();
    let one = |&c: &f64| -> Result<Option<Point<T>>> {
        let (mu, n) = (largest_c / c, shifted.rows());
        let tiles = vec![shifted.clone()];
        let factor = TiledCholesky::new(tiles, n, n, mu - 1.0, &mut |_| true)?;
        let Some(factor) = factor else {
            return Ok(None);
        };
        let mut solution = transpose_scaled(right.view(), 1.0);
        factor.solve(&mut solution);
        let diagonal = Diagonal {
            values: factor.inverse_diagonal(&mut |_| true)?,
            error: 0.0,
        };
        let its_product = product(shifted.view(), solution.view());
        Ok(Some(point(
            (targets, scale),
            (c, mu),
            &solution,
            &its_product,
            &diagonal,
        )))
    };
    let (size, threads) = (shifted.rows() as f64, rayon::current_num_threads());
    let mut points = Vec::with_capacity(cs.len());
    for some in cs.chunks(threads) {
        let flops = some.len() as f64 * 2.0 / 3.0 * size.powi(3);
        let found: Result<Vec<_>> = work
            .phases
            .time(Phase::Factor, flops, || some.par_iter().map(one).collect());
        for found in found? {
            match found {
                Some(point) => points.push(point),
                None => return Ok(None),
            }
        }
        let done = points.len() as f64 / cs.len() as f64;
        if !(work.progress)(KERNEL_SHARE + (1.0 - KERNEL_SHARE) * done) {
            return Err(Error::Interrupted);
        }
    }
    Ok(Some(points))
}
