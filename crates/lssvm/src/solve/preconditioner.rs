//! An approximation of S = Ω+λI that makes conjugate gradients quick: a few random
//! columns for what all rows share, and the tiles on the diagonal for what neighbours
//! share.
//!
//! ```text
//!     U = Ω[:, m] C⁻¹,   Ω[m, m] = CᵀC,     m random rows
//!     L Lᵀ = tiles on the diagonal of  Ω+λI − U Uᵀ + ρI
//!     P = U Uᵀ + L Lᵀ = L (I + W Wᵀ) Lᵀ,     W = L⁻¹ U
//!     P⁻¹ R = Mᵀ (T − W (I + WᵀW)⁻¹ WᵀT),   T = M R,   M = L⁻¹
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
//! Everything but WᵀW is made tile row by tile row. M and W are kept in half precision:
//! P is then another matrix nearby, positive all the same, and that is all conjugate
//! gradients ask. It halves the memory, so that beside Ω in 8 GB there is room for it. M
//! itself is kept, for products with few columns are quicker than solutions.
//!
//! Where rows live on several ranks, everybody gets the m rows, the tiles are each rank's
//! own, and WᵀW and WᵀT are added over the ranks.
//!
//! Costs 2 N m² + 2·1024 N m operations and some once, N (m + 640) values of 16 bits,
//! and 4 N (m + 640) operations a column in each iteration.

use rayon::prelude::*;

use super::{Phase, Work};
use crate::linalg::factor::more_jitter;
use crate::linalg::half::HalfMatrix;
use crate::linalg::two_sided::{Sums, TwoSided};
use crate::linalg::{Cholesky, MatMut, MatRef, Matrix, Output, Parallel, Scalar, sum_of_squares};
use crate::ranks::Ranks;
use crate::system::{System, TILE};
use crate::{Result, random};

/// The inverses of the tiles' factors, W, and the factor of I + WᵀW.
pub(super) struct Preconditioner<T: Scalar> {
    parts: Vec<Part>,
    rank: usize,
    factor: Cholesky<T>,
}

/// The rows of a tile.
struct Part {
    /// M: strips of [`STRIP`] rows, each up to its last diagonal value.
    inverse: Vec<HalfMatrix>,
    /// Rows of W.
    w: HalfMatrix,
}

/// Rows of the triangle M that are kept as a rectangle: a quarter of a tile, so that five
/// eighths of its square are kept.
const STRIP: usize = TILE / 4;

/// Tile rows whose sums are added to each other before they are added to those of others.
const TOGETHER: usize = 4;

/// ρ, as a share of the mean diagonal that U misses. From 0.1 to 0.3 it makes no
/// difference; without it a tile may not be positive to rounding.
const FLOOR: f64 = 0.2;

/// By which share a row of U may be too long before C gets more on its diagonal, and the
/// factor by which that grows.
const SPOILT: f64 = 0.05;
const SPOILT_GROWTH: f64 = 30.0;

/// Operations on U that a rank is worth, as a share of those of computing Ω's
/// lower half; see docs/performance.md.
const SETUP_SHARE: f64 = 0.25;

/// Features that data have at least in that reckoning, since products with Ω cost too, and
/// at most: with many features Ω costs so much that a step costs nothing beside it.
const FEATURES: (usize, usize) = (500, 1000);

/// The least rank, what ranks are multiples of, so that products with W have no rest, and the
/// largest as a share of N.
const LEAST_RANK: usize = 128;
const RANK_STEP: usize = 32;
const LARGEST_RANK_SHARE: f64 = 0.25;

/// The rank for a system of `n` rows with so many features: 2 N m² operations are
/// a quarter of N² M. All of MNIST to a residual of 10⁻³, in seconds after Ω was there:
/// 51 with m = 1,500, 41 with 2,500.
pub fn rank_for(n: usize, features: usize) -> usize {
    let features = features.clamp(FEATURES.0, FEATURES.1) as f64;
    let rank = (0.5 * SETUP_SHARE * n as f64 * features).sqrt();
    let most = (n as f64 * LARGEST_RANK_SHARE) as usize;
    let rank = (rank as usize).min(most).max(LEAST_RANK);
    (rank - rank % RANK_STEP).min(n)
}

impl<T: Scalar> Preconditioner<T> {
    pub(super) fn new(work: &mut Work<'_, T>, rank: usize, seed: u64) -> Result<Self> {
        let (system, n) = (work.system, work.system.n());
        let (size, m) = (system.own_rows() as f64, rank as f64);
        let tile = TILE.min(n) as f64;
        let ranks = system.ranks();
        let rows = some_rows(n, rank, seed);
        let phases = &mut *work.phases;
        let diagonal = system.diagonal();
        let columns = system.columns(rows.clone());
        let computed = match system.kept() {
            Some(_) => 0.0,
            None => system.kernel_flops(size * m),
        };
        let (middle, mut jitter) = (columns.rows(&rows), 0.0);
        let flops = computed + size * (m * m + 2.0 * tile * m + 4.0 / 3.0 * tile * tile);
        let parts = loop {
            let parts = phases.time(Phase::Precondition, flops, || {
                let c = Cholesky::with_jitter(middle.clone(), jitter)?;
                jitter = SPOILT_GROWTH * c.jitter().max(m.sqrt() * T::EPSILON * c.mean_diagonal());
                let all = system.own_tiles();
                let part = |scratch: &mut Scratch<T>, place: usize| {
                    let range = system.own_rows_of_tiles(&(place..place + 1));
                    columns.tile_row(place, &mut scratch.u, &mut scratch.panel);
                    let u = MatMut::new(range.len(), rank, &mut scratch.u);
                    part(system, place, u, c.buffer(), &diagonal[range])
                };
                let parts = all.into_par_iter().map_init(Scratch::default, part);
                ranks.agree(parts.collect::<Result<Option<Vec<Part>>>>())
            })?;
            let fine = ranks.all(parts.is_some());
            if let Some(parts) = parts.filter(|_| fine) {
                break parts;
            }
        };
        let factor = phases.time(Phase::Precondition, size * m * m + m.powi(3) / 3.0, || {
            Cholesky::new(inner(ranks, &parts, rank))
        })?;
        Ok(Self {
            parts,
            rank,
            factor,
        })
    }

    /// Values of M and W in a row, of all `n`: a product with P⁻¹ reads them twice.
    pub(super) fn depth(&self, n: usize) -> f64 {
        (self.rank + (TILE + STRIP).min(n) / 2) as f64
    }

    /// P⁻¹ R, of which each rank has its own rows.
    pub(super) fn apply(&self, ranks: &Ranks, r: &Matrix<T>) -> Matrix<T> {
        let (k, rank) = (r.cols(), self.rank);
        let mut out = Matrix::zeros(r.rows(), k);
        // T, in the place of what is returned, and WᵀT; its sums in their order.
        let shares = self.parts.par_chunks(TOGETHER).zip(
            r.values()
                .par_chunks(TOGETHER * TILE * k)
                .zip(out.values_mut().par_chunks_mut(TOGETHER * TILE * k)),
        );
        let sums: Vec<Sums> = shares
            .map(|(parts, (r, out))| {
                let mut products = TwoSided::new(k);
                let mut sums = products.sums(rank, Vec::new());
                let rows = r.chunks(TILE * k).zip(out.chunks_mut(TILE * k));
                for (part, (r, out)) in parts.iter().zip(rows) {
                    part.add_forward(&mut products, MatRef::new(r.len() / k, k, r), out);
                    let t = Some(MatRef::new(out.len() / k, k, out));
                    products.multiply(part.w.tile(), part.w.shape(), None, t);
                    products.add_left(&mut sums);
                }
                sums
            })
            .collect();
        let mut all = vec![0.0; rank * k];
        for sums in sums {
            sums.each(|i, c, v| all[i * k + c] += v);
        }
        ranks.sum(&mut all);
        let all = all.into_iter().map(T::from_f64).collect();
        let mut inner = Matrix::from_vec(rank, k, all);
        self.factor.solve(inner.view_mut());
        out.values_mut()
            .par_chunks_mut(TILE * k)
            .zip(&self.parts)
            .for_each_init(
                || (TwoSided::new(k), Vec::new()),
                |(products, t), (out, part)| {
                    t.clear();
                    t.extend_from_slice(out);
                    let shape = part.w.shape();
                    products.multiply(part.w.tile(), shape, Some(inner.view()), None);
                    products.each_right(shape.0, |i, c, v| t[i * k + c] -= v);
                    out.fill(T::ZERO);
                    part.add_back(products, MatRef::new(shape.0, k, t), out);
                },
            );
        out
    }

    /// The diagonal of P⁻¹: with I + WᵀW = CᵀC, what M has in a column less what
    /// Mᵀ W C⁻¹ has in a row. About as many operations as it took to make P.
    pub(super) fn inverse_diagonal(&self) -> Vec<f64> {
        let of_part = |part: &Part| {
            let mut scratch = Vec::new();
            let (n, rank) = part.w.shape();
            // Mᵀ
            let mut inverse = Matrix::<T>::zeros(n, n);
            let mut diagonal = vec![0.0; n];
            let mut row = 0;
            for strip in &part.inverse {
                let strip = strip.widen::<T>(&mut scratch);
                for i in 0..strip.rows() {
                    for (j, &v) in strip.row(i).iter().enumerate() {
                        inverse.set(j, row, v);
                        diagonal[j] += v.to_f64().powi(2);
                    }
                    row += 1;
                }
            }
            let w = part.w.widen(&mut scratch);
            let mut v = Matrix::zeros(n, rank);
            let (inverse, out) = (inverse.view(), v.view_mut());
            T::gemm_nn(out, Output::Replace, inverse, w, T::ONE, Parallel::No);
            T::solve_upper_right(self.factor.buffer(), v.view_mut(), Parallel::No);
            for (i, sum) in diagonal.iter_mut().enumerate() {
                *sum -= sum_of_squares(v.row(i));
            }
            diagonal
        };
        let parts = self.parts.par_iter().map(of_part);
        parts.collect::<Vec<_>>().concat()
    }

    /// Operations of [`Preconditioner::inverse_diagonal`].
    pub(super) fn inverse_diagonal_flops(&self, n: usize) -> f64 {
        let (tile, rank) = (n.min(TILE) as f64, self.rank as f64);
        n as f64 * (rank * rank + 2.0 * tile * rank)
    }

    /// Bytes of it, and of what it takes to make it.
    pub(super) fn bytes(n: usize, rank: usize) -> u64 {
        let (value, threads) = (size_of::<T>(), rayon::current_num_threads());
        let tile = n.min(TILE);
        let triangle = tile.div_ceil(2) + STRIP.min(n) / 2 + 1;
        let kept = size_of::<u16>() * n * (rank + triangle);
        // Ω[m, m] and its factor, or the sums of WᵀW of each thread.
        let squares = value * rank * rank * (threads + 2).max(3);
        let scratch = value * threads * (2 * tile * rank + 3 * tile * tile);
        (kept + squares + scratch) as u64
    }
}

impl Part {
    /// `t += M r`
    fn add_forward<T: Scalar>(&self, products: &mut TwoSided<T>, r: MatRef<'_, T>, t: &mut [T]) {
        let (k, mut top) = (r.cols(), 0);
        for strip in &self.inverse {
            let shape = strip.shape();
            let r = Some(r.row_range(0, shape.1));
            products.multiply(strip.tile(), shape, r, None);
            products.each_right(shape.0, |i, c, v| t[(top + i) * k + c] += v);
            top += shape.0;
        }
    }

    /// `out += Mᵀ t`
    fn add_back<T: Scalar>(&self, products: &mut TwoSided<T>, t: MatRef<'_, T>, out: &mut [T]) {
        let (k, mut top) = (t.cols(), 0);
        for strip in &self.inverse {
            let shape = strip.shape();
            let t = Some(t.row_range(top, top + shape.0));
            products.multiply(strip.tile(), shape, None, t);
            products.each_left(shape.1, |i, c, v| out[i * k + c] += v);
            top += shape.0;
        }
    }
}

/// Strips of the inverse of a lower triangle L, from Lᵀ.
fn inverse_strips<T: Scalar>(triangle: MatRef<'_, T>) -> Vec<HalfMatrix> {
    let n = triangle.rows();
    let mut inverse = Matrix::from_fn(n, n, |i, j| T::from_f64(f64::from(u8::from(i == j))));
    T::solve_upper_transposed(triangle, inverse.view_mut(), Parallel::No);
    let strips = (0..n).step_by(STRIP).map(|top| {
        let bottom = (top + STRIP).min(n);
        HalfMatrix::new(inverse.row_range(top, bottom).col_range(0, bottom))
    });
    strips.collect()
}

/// Memory of a thread: rows of U, and what reading them takes.
struct Scratch<T> {
    u: Vec<T>,
    panel: Vec<T>,
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self {
            u: Vec::new(),
            panel: Vec::new(),
        }
    }
}

/// What belongs to the rows of one tile, from Ω[these rows, m] and C; none if rounding
/// has the upper hand.
fn part<T: Scalar>(
    system: &System<T>,
    place: usize,
    mut u: MatMut<'_, T>,
    c: MatRef<'_, T>,
    diagonal: &[f64],
) -> Result<Option<Part>> {
    T::solve_upper_right(c, u.reborrow(), Parallel::No);
    let lengths = (0..u.rows()).map(|i| sum_of_squares(u.as_ref().row(i)));
    let lengths: Vec<f64> = lengths.collect();
    if is_spoilt(&lengths, diagonal) {
        return Ok(None);
    }
    let missed = diagonal.iter().sum::<f64>() - lengths.iter().sum::<f64>();
    let floor = FLOOR * missed.max(0.0) / diagonal.len() as f64;
    let triangle = factor_tile(system, place, &mut u, floor)?;
    Ok(Some(Part {
        inverse: inverse_strips(triangle.view()),
        w: HalfMatrix::new(u.as_ref()),
    }))
}

/// I + WᵀW, upper triangle. Each thread sums a share of the parts; the shares are added
/// in their order, and those of all ranks.
fn inner<T: Scalar>(ranks: &Ranks, parts: &[Part], rank: usize) -> Matrix<T> {
    let threads = rayon::current_num_threads().min(parts.len()).max(1);
    let shares = (0..threads).into_par_iter().map(|t| {
        let share = &parts[t * parts.len() / threads..(t + 1) * parts.len() / threads];
        let mut sum = Matrix::<T>::zeros(rank, rank);
        let mut scratch = Vec::new();
        for part in share {
            let w = part.w.widen(&mut scratch);
            T::syrk_upper(sum.view_mut(), Output::Add, w, T::ONE, Parallel::No);
        }
        sum
    });
    let mut shares: Vec<Matrix<T>> = shares.collect();
    let mut out = shares.swap_remove(0);
    for share in shares {
        let pairs = out.values_mut().iter_mut().zip(share.values());
        pairs.for_each(|(out, &v)| *out += v);
    }
    ranks.sum(out.values_mut());
    let diagonal = out.values_mut().iter_mut().step_by(rank + 1);
    diagonal.for_each(|v| *v += T::ONE);
    out
}

/// Whether rounding has the upper hand in U: no row of it can be longer than Ω's diagonal
/// allows. It is where rows repeat, so that C is singular and yet was factored.
fn is_spoilt(lengths: &[f64], diagonal: &[f64]) -> bool {
    let spoilt = |(&squares, &d): (&f64, &f64)| {
        squares.is_nan() || squares > (1.0 + SPOILT) * d.max(0.0) + f64::MIN_POSITIVE
    };
    lengths.iter().zip(diagonal).any(spoilt)
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
    u: &mut MatMut<'_, T>,
    floor: f64,
) -> Result<Matrix<T>> {
    let mut tile = system.diagonal_tile(place);
    let first = system.own_rows_of_tiles(&(place..place + 1)).start;
    let n = tile.rows();
    let mut mean = 0.0;
    T::syrk_nt_upper(
        tile.view_mut(),
        Output::Add,
        u.as_ref(),
        -T::ONE,
        Parallel::No,
    );
    for i in 0..n {
        let value = tile.get(i, i).to_f64() + system.lambda(first + i) + floor;
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

#[cfg(test)]
mod tests {
    use super::super::{OpenBlock, Phases};
    use super::*;
    use crate::kernel::Kernel;
    use crate::system::tests::weighted_problem;

    #[test]
    fn the_diagonal_of_the_inverse_is_that_of_its_columns() {
        let n = TILE + 77;
        let system = weighted_problem::<f64>(n, 3, 1, Kernel::Rbf { gamma: 2.0 }, 5.0);
        let mut work = Work {
            system: &system,
            block: &mut OpenBlock::new(system.shares()),
            phases: &mut Phases::default(),
            progress: &mut |_| true,
        };
        let preconditioner = Preconditioner::new(&mut work, 60, 3).unwrap();
        let diagonal = preconditioner.inverse_diagonal();
        for i in (0..n).step_by(97) {
            let unit = Matrix::from_fn(n, 1, |j, _| f64::from(u8::from(i == j)));
            let column = preconditioner.apply(system.ranks(), &unit);
            let (found, expected) = (diagonal[i], column.get(i, 0));
            assert!(
                (found - expected).abs() < 1e-9 * expected,
                "{found}, {expected}"
            );
        }
    }
}
