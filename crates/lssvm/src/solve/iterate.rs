//! The iteration of conjugate gradients, for several right-hand sides together.
//!
//! ```text
//!     S V = B,   R = B − S V,   Z = P⁻¹R
//!     α = ⟨R,Z⟩/⟨D,SD⟩,   V += αD,   R −= αSD,   D ← Z + βD,   β = ⟨R,Z⟩ new/old
//! ```
//!
//! One product with S serves all columns; each has its own α and β, and rests when its
//! residual is small enough. A last column that is the sum of the others, as 1 is of the
//! indicators of classes, need not be solved: it is their sum in V and in R too. See
//! [`super::pcg`] for how it solves the system.

use rayon::prelude::*;

use super::bordering::{left_over, true_product};
use super::preconditioner::Preconditioner;
use super::{Phase, Work};
use crate::linalg::{Matrix, Scalar};
use crate::ranks::Ranks;
use crate::system::{Format, TILE};

/// Rows that a thread works on at once, whatever the number of threads.
const ROWS_AT_ONCE: usize = 4 * TILE;

/// A column rests when its own residual is so much of the tolerance for all.
pub(super) const COLUMN_SHARE: f64 = 0.3;

/// What steps change.
pub(super) struct Iterate<T: Scalar> {
    pub(super) v: Matrix<T>,
    pub(super) r: Matrix<T>,
    /// Directions and ⟨R, Z⟩ of all columns.
    pub(super) d: Matrix<T>,
    pub(super) rz: Vec<f64>,
    /// The relative residual at which a column rests.
    pub(super) rest: f64,
    /// Iterations since R was computed anew.
    pub(super) age: usize,
}

impl<T: Scalar> Iterate<T> {
    /// At V = 0. `rest`: the relative residual at which a column rests.
    pub(super) fn new(right: Matrix<T>, rest: f64) -> Self {
        let (n, k) = (right.rows(), right.cols());
        Self {
            v: Matrix::zeros(n, k),
            r: right,
            d: Matrix::zeros(n, k),
            rz: vec![0.0; k],
            rest,
            age: 0,
        }
    }

    /// The largest relative residual of a column, beside what `scale` says.
    pub(super) fn largest_residual(&self, ranks: &Ranks, scale: &[f64]) -> f64 {
        let norms = all_dots(ranks, &self.r, &self.r);
        let shares = norms.iter().zip(scale).map(|(r, s)| r.sqrt() / s);
        shares.fold(0.0, f64::max)
    }

    /// Columns to be solved whose residual is not yet small enough; all that are not zero if
    /// each of them is.
    fn awake(&mut self, ranks: &Ranks, right: &Right) -> Vec<usize> {
        let norms = all_dots(ranks, &self.r, &self.r);
        let solved = norms.len() - usize::from(right.last_is_sum);
        let larger = |rest: f64| {
            let above = |&c: &usize| norms[c].sqrt() > rest * right.scale[c];
            (0..solved).filter(above).collect::<Vec<_>>()
        };
        let awake = larger(self.rest);
        if !awake.is_empty() {
            return awake;
        }
        // Together they do not meet the tolerance yet, or nobody would ask.
        self.rest *= COLUMN_SHARE;
        larger(0.0)
    }

    /// One iteration of all columns that are awake.
    pub(super) fn step(
        &mut self,
        work: &mut Work<'_, T>,
        preconditioner: &Preconditioner<T>,
        right: &Right,
    ) {
        let system = work.system;
        let ranks = system.ranks();
        let awake = self.awake(ranks, right);
        if awake.is_empty() {
            return;
        }
        self.age += 1;
        let (n, k) = (system.own_rows() as f64, awake.len() as f64);
        let r = columns(&self.r, &awake);
        let flops = 4.0 * n * preconditioner.depth(system.n()) * k;
        let z = work.phases.time(Phase::Precondition, flops, || {
            preconditioner.apply(ranks, &r)
        });
        let rz = all_dots(ranks, &r, &z);
        let mut d = columns(&self.d, &awake);
        let of_column = |(c, &place): (usize, &usize)| {
            let before = std::mem::replace(&mut self.rz[place], rz[c]);
            T::from_f64(if before == 0.0 { 0.0 } else { rz[c] / before })
        };
        let beta: Vec<T> = awake.iter().enumerate().map(of_column).collect();
        each_row([&mut d], [&z], |[d], [z]| {
            for ((d, &z), &beta) in d.iter_mut().zip(z).zip(&beta) {
                *d = beta * *d + z;
            }
        });
        let product = product(work, &d);
        let curvature = all_dots(ranks, &d, &product);
        // Zero only for a direction of rounding noise, which is no use.
        let of_column = |(&rz, &curvature): (&f64, &f64)| match curvature > 0.0 {
            true => T::from_f64(rz / curvature),
            false => T::ZERO,
        };
        let alpha: Vec<T> = rz.iter().zip(&curvature).map(of_column).collect();
        let changed = [&mut self.v, &mut self.r, &mut self.d];
        each_row(changed, [&d, &product], |[v, r, all], [d, product]| {
            for (c, &place) in awake.iter().enumerate() {
                v[place] += alpha[c] * d[c];
                r[place] -= alpha[c] * product[c];
                all[place] = d[c];
            }
            if right.last_is_sum {
                add_up_to_last(v);
                add_up_to_last(r);
            }
        });
    }

    /// Computes R of these right-hand sides anew, and returns S V.
    pub(super) fn refresh(&mut self, work: &mut Work<'_, T>, right: &Matrix<T>) -> Matrix<f64> {
        let product = true_product(work, &self.v);
        self.r = left_over(right, &product);
        self.age = 0;
        if work.system.kept() == Some(Format::Half) {
            // Directions belong to the rounded matrix and the old R.
            self.rz.fill(0.0);
        }
        product
    }
}

/// What is known of the right-hand sides before the first step.
pub(super) struct Right {
    /// What the residuals of the columns are small beside: their norms.
    pub(super) scale: Vec<f64>,
    /// Whether the last column is the sum of the others.
    last_is_sum: bool,
}

impl Right {
    /// Of these, of which each rank has its own rows; `scale`: the norms of the columns that
    /// they stand for.
    pub(super) fn new<T: Scalar>(ranks: &Ranks, right: &Matrix<T>, scale: Vec<f64>) -> Self {
        let is_sum = |row: &[T]| match row.split_last() {
            Some((&last, others)) => others.iter().copied().sum::<T>() == last,
            None => false,
        };
        let several = right.cols() > 2;
        let own = several && right.values().chunks_exact(right.cols()).all(is_sum);
        Self {
            scale,
            last_is_sum: ranks.all(own),
        }
    }
}

/// The last value ← the sum of the others.
fn add_up_to_last<T: Scalar>(row: &mut [T]) {
    if let Some((last, others)) = row.split_last_mut() {
        *last = others.iter().copied().sum();
    }
}

/// Gives `f` each row of some matrices that change and of others that do not.
fn each_row<T: Scalar, const A: usize, const B: usize>(
    changed: [&mut Matrix<T>; A],
    read: [&Matrix<T>; B],
    f: impl Fn([&mut [T]; A], [&[T]; B]) + Sync,
) {
    let mut changed = changed.map(|matrix| {
        let k = matrix.cols();
        matrix
            .values_mut()
            .chunks_mut(k * ROWS_AT_ONCE)
            .map(move |part| (k, part))
    });
    let parts: Vec<_> = (0..read[0].rows())
        .step_by(ROWS_AT_ONCE)
        .map(|top| {
            let part = changed
                .each_mut()
                .map(|parts| parts.next().expect("as many rows"));
            (top, part)
        })
        .collect();
    parts.into_par_iter().for_each(|(top, part)| {
        let mut rows = part.map(|(k, values)| values.chunks_exact_mut(k));
        let height = ROWS_AT_ONCE.min(read[0].rows() - top);
        for i in top..top + height {
            let rows = rows
                .each_mut()
                .map(|rows| rows.next().expect("as many rows"));
            f(rows, read.map(|matrix| matrix.row(i)));
        }
    });
}

/// S · V, timed.
fn product<T: Scalar>(work: &mut Work<'_, T>, v: &Matrix<T>) -> Matrix<T> {
    let system = work.system;
    let values = system.own_rows() as f64 * system.n() as f64;
    let kernel = match system.kept() {
        Some(_) => 0.0,
        None => system.kernel_flops(0.5 * values),
    };
    let flops = kernel + 2.0 * values * v.cols() as f64;
    let product = work
        .phases
        .time(Phase::Product, flops, || system.shifted_product(v));
    product.cast()
}

/// ⟨a, b⟩ of each column, in `f64`, over the rows of all ranks.
pub(super) fn all_dots<T: Scalar>(ranks: &Ranks, a: &Matrix<T>, b: &Matrix<T>) -> Vec<f64> {
    let mut sums = dots(a, b);
    ranks.sum(&mut sums);
    sums
}

/// ⟨a, b⟩ of each column, in `f64`.
pub(super) fn dots<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) -> Vec<f64> {
    let k = a.cols();
    let size = (k * ROWS_AT_ONCE).max(1);
    let of_part = |(a, b): (&[T], &[T])| {
        let mut sums = vec![0.0; k];
        for (a, b) in a.chunks_exact(k).zip(b.chunks_exact(k)) {
            for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                *sum += a.to_f64() * b.to_f64();
            }
        }
        sums
    };
    let parts = a.values().par_chunks(size).zip(b.values().par_chunks(size));
    let parts: Vec<Vec<f64>> = parts.map(of_part).collect();
    (0..k)
        .map(|c| parts.iter().map(|sums| sums[c]).sum())
        .collect()
}

/// Some columns, copied.
fn columns<T: Scalar>(a: &Matrix<T>, which: &[usize]) -> Matrix<T> {
    Matrix::from_fn(a.rows(), which.len(), |i, c| a.row(i)[which[c]])
}
