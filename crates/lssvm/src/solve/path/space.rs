//! The space that holds the solutions for every c, and the diagonal of the inverse for some
//! rows.

use std::cell::RefCell;

use super::Shifted;
use super::basis::{Basis, product};
use super::spread::Spread;
use crate::linalg::skinny::transpose_scaled;
use crate::linalg::{Matrix, Output, Parallel, Scalar, TiledCholesky, eigen};
use crate::solve::bordering::right_hand_sides;
use crate::solve::exact::factor_tiles;
use crate::solve::{Phase, Work};
use crate::system::{Format, System};
use crate::{Result, random};

/// Rows whose diagonal is known at every c.
const PROBES: usize = 48;

/// Powers of Ω̃ and of its inverse that are applied to each, and the vectors that makes.
const PROBE_POWERS: usize = 3;
const OF_EACH_PROBE: usize = 1 + 2 * PROBE_POWERS;

/// Most powers of Ω̃ and of its inverse, and about how many vectors they may be.
const POWERS: usize = 16;
const KRYLOV_VECTORS: usize = 220;

/// As many vectors are a matrix product, fewer run at the speed of memory.
const MANY_ROWS: usize = 32;

/// The shares of progress that the factor and the diagonal of the inverse take.
const FACTOR_SHARE: f64 = 0.5;
const DIAGONAL_SHARE: f64 = 0.4;

/// How large a space is made.
pub(super) struct Wanted {
    powers: usize,
    probes: usize,
}

impl Wanted {
    pub(super) fn width(&self, outputs: usize) -> usize {
        (outputs + 1) * (2 * self.powers + 1) + OF_EACH_PROBE * self.probes
    }
}

/// The space for so many rows; none if it should be whole.
pub(super) fn space_for(n: usize, outputs: usize) -> Option<Wanted> {
    let powers = (KRYLOV_VECTORS / (2 * (outputs + 1))).clamp(3, POWERS);
    let wanted = Wanted {
        powers,
        probes: PROBES,
    };
    (2 * wanted.width(outputs) < n).then_some(wanted)
}

/// The space, and what goes with it.
pub(super) struct Space<T: Scalar> {
    pub(super) values: Vec<f64>,
    pub(super) vectors: Matrix<T>,
    pub(super) shifted: Shifted<T>,
    pub(super) spread: Option<Spread>,
    pub(super) probes: Vec<usize>,
}

impl<T: Scalar> Space<T> {
    /// All there is: by the eigenvectors of Ω̃.
    pub(super) fn whole(work: &mut Work<'_, T>, scale: &[f64]) -> Result<Self> {
        let omega = whole_matrix(work, scale, 0.5)?;
        let size = omega.rows() as f64;
        let (shifted, vectors) = work
            .phases
            .time(Phase::Factor, 9.0 * size.powi(3), || eigen(omega.view()))?;
        Ok(Self {
            values: shifted.into_iter().map(|v| v - 1.0).collect(),
            vectors: vectors.cast(),
            probes: (0..omega.rows()).collect(),
            shifted: Shifted::Whole(omega.cast()),
            spread: None,
        })
    }

    pub(super) fn factored(work: &mut Work<'_, T>, scale: &[f64], seed: u64) -> Result<Self> {
        let (system, n) = (work.system, work.system.n());
        let squares = RefCell::new(Vec::new());
        let size = n as f64;
        let flops = match system.kept() {
            Some(Format::Full) => 0.0,
            _ => system.kernel_flops(size * (size + 1.0) / 2.0),
        };
        let tiles = |system: &System<T>, told: &mut dyn FnMut(f64) -> bool| {
            let tiles = system.tiles(told)?;
            *squares.borrow_mut() = sums_of_squares(&tiles, scale);
            Ok(tiles)
        };
        let progress = &mut *work.progress;
        let mut part = Work {
            system,
            block: &mut *work.block,
            phases: &mut *work.phases,
            progress: &mut |done| progress(FACTOR_SHARE * done),
        };
        let (factor, _) = factor_tiles(&mut part, 0..n, flops, &tiles)?;
        let mut told = |done: f64| progress(FACTOR_SHARE + DIAGONAL_SHARE * done);
        let first = work
            .phases
            .time(Phase::LeaveOneOut, size.powi(3) / 3.0, || {
                factor.inverse_diagonal(&mut told)
            })?;
        let squares = squares.into_inner();
        let wanted = space_for(n, system.outputs()).expect("few enough vectors");
        let mut probes: Vec<usize> = (0..n).collect();
        random::shuffle(&mut random::rng(seed), &mut probes);
        probes.truncate(wanted.probes);
        probes.sort_unstable();
        let k = (system.outputs() + 1) as f64;
        let powers = 2.0 * wanted.powers as f64 * k;
        let of_probes = (4 * PROBE_POWERS * wanted.probes) as f64;
        let flops = size * size * (2.0 * powers + of_probes);
        let basis = work.phases.time(Phase::Update, flops, || {
            basis_of(system, &factor, scale, &wanted, &probes)
        })?;
        let flops = size * size * basis.rows() as f64;
        let (values, vectors, half) = work
            .phases
            .time(Phase::Product, flops, || turned(&factor, basis, scale))?;
        let pairs = first.iter().zip(scale);
        let first: Vec<f64> = pairs.map(|(d, s)| d.to_f64() / (s * s)).collect();
        let pairs = system.diagonal().into_iter().zip(scale);
        let omega: Vec<f64> = pairs.map(|(v, s)| v * s * s).collect();
        let spread = Spread::new(&first, &omega, &squares, probes.clone());
        Ok(Self {
            values,
            vectors,
            shifted: Shifted::Factored(factor, half),
            spread: Some(spread),
            probes,
        })
    }
}

/// Ω̃ + I, rounded as Ω is. `share`: of the progress that is told.
pub(super) fn whole_matrix<T: Scalar>(
    work: &mut Work<'_, T>,
    scale: &[f64],
    share: f64,
) -> Result<Matrix<f64>> {
    let (system, progress) = (work.system, &mut *work.progress);
    let size = system.n() as f64;
    let flops = system.kernel_flops(size * (size + 1.0) / 2.0);
    let omega = work.phases.time(Phase::Kernel, flops, || {
        system.shifted_kernel(&mut |done| progress(share * done))
    })?;
    let scaled = |i: usize, j: usize| {
        let v = omega.get(i, j).to_f64() * scale[i] * scale[j];
        T::from_f64(v).to_f64()
    };
    Ok(Matrix::from_fn(system.n(), system.n(), scaled))
}

/// W, a vector a row.
fn basis_of<T: Scalar>(
    system: &System<T>,
    factor: &TiledCholesky<T>,
    scale: &[f64],
    wanted: &Wanted,
    probes: &[usize],
) -> Result<Matrix<T>> {
    let mut basis = Basis::new(system.n());
    let scaled = Scaled {
        factor,
        scale,
        inverse: scale.iter().map(|s| 1.0 / s).collect(),
    };
    scaled.powers(&mut basis, scaled_right(system, scale), wanted.powers)?;
    let mut own = Matrix::<T>::zeros(probes.len(), system.n());
    let pairs = probes.iter().enumerate();
    pairs.for_each(|(at, &i)| own.set(at, i, T::ONE));
    scaled.powers(&mut basis, own, PROBE_POWERS)?;
    Ok(basis.into_matrix())
}

/// Ω̃ + I = Λ^-½ S Λ^-½, by the factor of S.
struct Scaled<'a, T: Scalar> {
    factor: &'a TiledCholesky<T>,
    /// Λ^-½, and Λ^½.
    scale: &'a [f64],
    inverse: Vec<f64>,
}

impl<T: Scalar> Scaled<'_, T> {
    /// Adds vectors, which are rows, and what powers of Ω̃ + I and of its inverse make of
    /// them. In a space that holds the vectors themselves Ω̃ + I is as good as Ω̃.
    fn powers(&self, basis: &mut Basis<T>, rows: Matrix<T>, powers: usize) -> Result<()> {
        let start = basis.extend(rows)?;
        let (mut below, mut above) = (start.clone(), start);
        for _ in 0..powers {
            below = basis.extend(self.solve(basis.rows(below)))?;
            above = basis.extend(self.multiply(basis.rows(above)))?;
        }
        Ok(())
    }

    fn solve(&self, mut rows: Matrix<T>) -> Matrix<T> {
        scale_columns(&mut rows, &self.inverse);
        rows = match rows.rows() < MANY_ROWS {
            true => {
                let mut columns = transpose_scaled(rows.view(), T::ONE);
                self.factor.solve(&mut columns);
                transpose_scaled(columns.view(), T::ONE)
            }
            false => self.factor.solve_rows(&rows),
        };
        scale_columns(&mut rows, &self.inverse);
        rows
    }

    fn multiply(&self, mut rows: Matrix<T>) -> Matrix<T> {
        scale_columns(&mut rows, self.scale);
        rows = match rows.rows() < MANY_ROWS {
            true => {
                let columns = transpose_scaled(rows.view(), T::ONE);
                transpose_scaled(self.factor.multiply(&columns).view(), T::ONE)
            }
            false => {
                let half = self.factor.rows_times_lower(&rows);
                self.factor.rows_times_upper(&half)
            }
        };
        scale_columns(&mut rows, self.scale);
        rows
    }
}

/// θ, ZW, and ZW Λ^-½ L.
fn turned<T: Scalar>(
    factor: &TiledCholesky<T>,
    mut basis: Matrix<T>,
    scale: &[f64],
) -> Result<(Vec<f64>, Matrix<T>, Matrix<T>)> {
    let mut scaled = basis.clone();
    scale_columns(&mut scaled, scale);
    let half = factor.rows_times_lower(&scaled);
    drop(scaled);
    let mut small = Matrix::<T>::zeros(half.rows(), half.rows());
    let view = half.view();
    T::gemm_nt(
        small.view_mut(),
        Output::Replace,
        view,
        view,
        T::ONE,
        Parallel::Pool,
    );
    let (shifted, turn) = eigen(small.cast::<f64>().view())?;
    let turn: Matrix<T> = turn.cast();
    basis = product(turn.view(), basis.view());
    let half = product(turn.view(), half.view());
    // Ω̃ has no negative ones; what rounding makes of zero is not one.
    let values = shifted.into_iter().map(|v| (v - 1.0).max(0.0)).collect();
    Ok((values, basis, half))
}

/// B̃ = Λ^-½ [Y 1], a vector a row.
pub(super) fn scaled_right<T: Scalar>(system: &System<T>, scale: &[f64]) -> Matrix<T> {
    let mut rows = transpose_scaled(right_hand_sides(system).view(), T::ONE);
    scale_columns(&mut rows, scale);
    rows
}

pub(super) fn scale_columns<T: Scalar>(rows: &mut Matrix<T>, scale: &[f64]) {
    for i in 0..rows.rows() {
        let pairs = rows.row_mut(i).iter_mut().zip(scale);
        pairs.for_each(|(v, s)| *v = T::from_f64(v.to_f64() * s));
    }
}

/// Σⱼ Ω̃ᵢⱼ² over the other rows, from the tiles of Ω's lower half.
pub(super) fn sums_of_squares<T: Scalar>(tiles: &[Matrix<T>], scale: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; scale.len()];
    let (mut at, mut top) = (0, 0);
    for tile_row in 0.. {
        let Some(diagonal) = tiles.get(at + tile_row) else {
            break;
        };
        let mut left = 0;
        for tile in &tiles[at..=at + tile_row] {
            for i in 0..tile.rows() {
                let row = top + i;
                // The diagonal tiles hold both triangles.
                let width = if left == top { i } else { tile.cols() };
                let mut own = 0.0;
                for (j, v) in tile.row(i)[..width].iter().enumerate() {
                    let square = (v.to_f64() * scale[row] * scale[left + j]).powi(2);
                    own += square;
                    sums[left + j] += square;
                }
                sums[row] += own;
            }
            left += tile.cols();
        }
        (at, top) = (at + tile_row + 1, top + diagonal.rows());
    }
    sums
}
