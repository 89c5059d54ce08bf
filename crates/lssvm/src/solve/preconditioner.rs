//! An approximation of S = Ω+λI that makes conjugate gradients quick: a few random
//! columns for what all rows share, and the tiles on the diagonal for what neighbours
//! share.
//!
//! ```text
//!     U = Ω[:, m] C⁻¹,   Ω[m, m] = CᵀC,     m random rows
//!     L Lᵀ = tiles on the diagonal of  Ω+λI − U Uᵀ + ρI
//!     P = U Uᵀ + L Lᵀ = L (I + W Wᵀ) Lᵀ,     W = L⁻¹ U
//!     P⁻¹ R = L⁻ᵀ (T − W (I + WᵀW)⁻¹ WᵀT),   T = L⁻¹ R
//! ```
//!
//! In the words of Gaussian processes, U Uᵀ is the Nyström approximation and P a
//! partially independent one (Quiñonero-Candela and Rasmussen, "A unifying view of
//! sparse approximate Gaussian process regression", 2005). It gains if rows of a tile
//! resemble each other (`in_clusters`). MNIST, 12,000 rows, m = 600: a relative residual
//! of 10⁻³ takes 60 iterations with ρI alone for what U misses, and 24 with the tiles.
//! ρ is a part of the mean diagonal that U misses, and stands for what the tiles do
//! not hold.
//!
//! Costs 2 N m² operations and some once, N (m + 1024) values of memory, and 4 N m
//! operations a column in each iteration.

use rayon::prelude::*;

use super::{Phase, Work};
use crate::linalg::factor::more_jitter;
use crate::linalg::gram::{gram_bytes, gram_upper};
use crate::linalg::{Cholesky, MatMut, Matrix, Output, Parallel, Scalar, skinny, sum_of_squares};
use crate::system::{System, TILE};
use crate::{Result, random};

/// The tiles' factors, W, and the factor of I + WᵀW.
pub(super) struct Preconditioner<T: Scalar> {
    /// Lᵀ of each tile, in the upper triangle.
    tiles: Vec<Matrix<T>>,
    w: Matrix<T>,
    factor: Cholesky<T>,
}

/// ρ, as a share of the mean diagonal that U misses. From 0.1 to 0.3 it makes no
/// difference; without it a tile may not be positive to rounding.
const FLOOR: f64 = 0.2;

/// By which share a row of U may be too long before C gets more on its diagonal, and the
/// factor by which that grows.
const SPOILT: f64 = 0.05;
const SPOILT_GROWTH: f64 = 30.0;

/// Operations on U that a rank is worth, as a share of those of computing Ω's
/// lower half; see docs/performance.md.
const SETUP_SHARE: f64 = 0.4;

/// Features that data have at least in that reckoning: products with Ω cost too.
const FEWEST_FEATURES: usize = 500;

/// The least rank, and the largest as a share of N.
const LEAST_RANK: usize = 100;
const LARGEST_RANK_SHARE: f64 = 0.25;

/// The rank for a system of `n` rows with so many features: 2 N m² operations are
/// four tenths of N² M.
pub fn rank_for(n: usize, features: usize) -> usize {
    let features = features.max(FEWEST_FEATURES) as f64;
    let rank = (0.5 * SETUP_SHARE * n as f64 * features).sqrt();
    let most = (n as f64 * LARGEST_RANK_SHARE) as usize;
    (rank as usize).min(most).max(LEAST_RANK).min(n)
}

impl<T: Scalar> Preconditioner<T> {
    pub(super) fn new(work: &mut Work<'_, T>, rank: usize, seed: u64) -> Result<Self> {
        let (system, n) = (work.system, work.system.n());
        let (size, m) = (n as f64, rank as f64);
        let rows = some_rows(n, rank, seed);
        let flops = match system.kept() {
            Some(_) => 0.0,
            None => system.kernel_flops(size * m),
        };
        let phases = &mut *work.phases;
        let diagonal = system.diagonal();
        let mut jitter = 0.0;
        let mut u = loop {
            let mut u = phases.time(Phase::Kernel, flops, || system.columns(&rows));
            phases.time(Phase::Precondition, m.powi(3) / 3.0 + size * m * m, || {
                let c = Cholesky::with_jitter(u.select_rows(&rows), jitter)?;
                jitter = SPOILT_GROWTH * c.jitter().max(m.sqrt() * T::EPSILON * c.mean_diagonal());
                u.values_mut().par_chunks_mut(TILE * rank).for_each(|u| {
                    let u = MatMut::new(u.len() / rank, rank, u);
                    T::solve_upper_right(c.buffer(), u, Parallel::No);
                });
                Ok::<(), crate::Error>(())
            })?;
            if !is_spoilt(&u, &diagonal) {
                break u;
            }
        };
        let missed = (diagonal.iter().sum::<f64>() - sum_of_squares(u.values())) / size;
        let floor = FLOOR * missed.max(0.0);
        let flops = 2.0 * size * TILE.min(n) as f64 * m;
        let tiles = phases.time(Phase::Precondition, flops, || {
            let parts = u.values_mut().par_chunks_mut(TILE * rank).enumerate();
            let tile = |(place, u)| factor_tile(system, place, u, floor);
            parts.map(tile).collect::<Result<Vec<_>>>()
        })?;
        let factor = phases.time(Phase::Precondition, size * m * m + m.powi(3) / 3.0, || {
            let mut gram = Matrix::zeros(rank, rank);
            gram_upper(gram.view_mut(), u.view());
            let diagonal = gram.values_mut().iter_mut().step_by(rank + 1);
            diagonal.for_each(|v| *v += T::ONE);
            Cholesky::new(gram)
        })?;
        Ok(Self {
            tiles,
            w: u,
            factor,
        })
    }

    /// m
    pub(super) fn rank(&self) -> usize {
        self.w.cols()
    }

    /// P⁻¹ R
    pub(super) fn apply(&self, r: &Matrix<T>) -> Matrix<T> {
        let mut out = r.clone();
        self.each_tile(&mut out, T::solve_upper_transposed);
        let mut inner = skinny::transposed_product(self.w.view(), out.view());
        self.factor.solve(inner.view_mut());
        skinny::add_product(out.view_mut(), self.w.view(), inner.view(), -T::ONE);
        self.each_tile(&mut out, T::solve_upper);
        out
    }

    /// Solves with the triangle of each tile.
    fn each_tile(
        &self,
        out: &mut Matrix<T>,
        solve: impl Fn(crate::linalg::MatRef<'_, T>, MatMut<'_, T>, Parallel) + Sync,
    ) {
        let k = out.cols();
        let parts = out.values_mut().par_chunks_mut(TILE * k).zip(&self.tiles);
        parts.for_each(|(part, tile)| {
            let part = MatMut::new(tile.rows(), k, part);
            solve(tile.view(), part, Parallel::No);
        });
    }

    /// Bytes of it.
    pub(super) fn bytes(n: usize, rank: usize) -> u64 {
        // W and the tiles, and at one time C, a copy of it and the Gram matrix.
        let (n, rank) = (n as u64, rank as u64);
        let tile = n.min(TILE as u64);
        let copies = gram_bytes::<T>(n as usize, rank as usize);
        (n * rank + 3 * rank * rank + n * tile) * size_of::<T>() as u64 + copies
    }
}

/// Whether rounding has the upper hand in U: no row of it can be longer than Ω's diagonal
/// allows. It is where rows repeat, so that C is singular and yet was factored.
fn is_spoilt<T: Scalar>(u: &Matrix<T>, diagonal: &[f64]) -> bool {
    let spoilt = |(i, &d): (usize, &f64)| {
        let squares = sum_of_squares(u.row(i));
        squares.is_nan() || squares > (1.0 + SPOILT) * d.max(0.0) + f64::MIN_POSITIVE
    };
    diagonal.par_iter().enumerate().any(spoilt)
}

/// So many of `n` rows, at random, in ascending order.
fn some_rows(n: usize, count: usize, seed: u64) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..n).collect();
    random::shuffle(&mut random::rng(seed), &mut rows);
    rows.truncate(count);
    rows.sort_unstable();
    rows
}

/// Lᵀ of one tile of Ω+λI − U Uᵀ + ρI, with the least jitter that factors; these
/// rows of U become rows of W.
fn factor_tile<T: Scalar>(
    system: &System<T>,
    place: usize,
    u: &mut [T],
    floor: f64,
) -> Result<Matrix<T>> {
    let mut tile = system.diagonal_tile(place);
    let n = tile.rows();
    let mut u = MatMut::new(n, u.len() / n, u);
    let mut mean = 0.0;
    T::syrk_nt_upper(
        tile.view_mut(),
        Output::Add,
        u.as_ref(),
        -T::ONE,
        Parallel::No,
    );
    for i in 0..n {
        let value = tile.get(i, i).to_f64() + system.lambda(place * TILE + i) + floor;
        mean += value.abs() / n as f64;
        tile.set(i, i, T::from_f64(value));
    }
    let mut jitter = 0.0;
    loop {
        let mut factor = tile.clone();
        let diagonal = factor.values_mut().iter_mut().step_by(n + 1);
        diagonal.for_each(|v| *v += T::from_f64(jitter));
        if T::cholesky_upper(factor.view_mut(), Parallel::No) {
            T::solve_upper_transposed(factor.view(), u.reborrow(), Parallel::No);
            return Ok(factor);
        }
        jitter = more_jitter::<T>(jitter, mean, n)?;
    }
}
