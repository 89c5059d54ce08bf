//! What a model of centres is fitted to: rows, what they should score, and the centres.

use super::pass::{Pass, Source};
use crate::kernel::{Kernel, Samples};
use crate::linalg::{Matrix, Scalar};
use crate::ranks::Ranks;
use crate::solve::Truth;
use crate::system::kernel_matrix;

/// ε, in units of the rounding error of Ω's values times √P times the mean of its diagonal.
const ROUNDING: f64 = 4.0;

/// ε of so many centres, as a share of the mean of Ω's diagonal.
pub(super) fn rounding<T: Scalar>(centers: usize) -> f64 {
    ROUNDING * T::EPSILON * (centers as f64).sqrt()
}

/// What a model of centres is fitted to.
pub struct Problem<T: Scalar> {
    /// All rows, preprocessed, or those of this rank.
    pub source: Source<T>,
    /// What they should score: as many as there are rows.
    pub truth: Truth,
    /// K
    pub outputs: usize,
    /// What each row counts, if not all count the same.
    pub weights: Option<Vec<f64>>,
    /// The P centres, preprocessed.
    pub centers: Samples<T>,
    /// What each centre counts, to guess what all rows count from; in the same order.
    pub center_weights: Vec<f64>,
    /// Ω
    pub kernel: Kernel,
    /// λ
    pub lambda: f64,
    /// Who has the rows.
    pub ranks: Ranks,
}

impl<T: Scalar> Problem<T> {
    pub(super) fn weight(&self, row: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[row])
    }

    pub(super) fn total_weight(&self) -> f64 {
        self.ranks.sum_of(match &self.weights {
            Some(weights) => weights.iter().sum(),
            None => self.source.len() as f64,
        })
    }

    /// What row `row` should score for output `k`.
    pub(super) fn target(&self, row: usize, k: usize) -> f64 {
        match &self.truth {
            Truth::Classes(codes) => f64::from(u8::from(codes[row] as usize == k)),
            Truth::Values(values) => values.get(row, k),
        }
    }

    /// The weighted mean of the targets.
    pub(super) fn mean_target(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.outputs];
        for row in 0..self.source.len() {
            let weight = self.weight(row);
            match &self.truth {
                Truth::Classes(codes) => sums[codes[row] as usize] += weight,
                Truth::Values(values) => {
                    let pairs = sums.iter_mut().zip(values.row(row));
                    pairs.for_each(|(sum, value)| *sum += weight * value);
                }
            }
        }
        self.ranks.sum(&mut sums);
        let total = self.total_weight();
        sums.into_iter().map(|sum| sum / total).collect()
    }

    pub(super) fn pass(&self) -> Pass<'_, T> {
        Pass {
            source: &self.source,
            centers: self.centers.view(),
            kernel: &self.kernel,
            ranks: &self.ranks,
        }
    }

    /// Ω(centres, centres) in the number type of the preconditioner, and ε.
    pub(super) fn omega_of_centers<S: Scalar>(&self) -> (Matrix<S>, f64) {
        let centers = Samples::<S>::new(self.centers.points().cast::<S>(), &self.kernel);
        let omega = kernel_matrix(&self.kernel, &centers, &centers);
        let p = omega.rows();
        let mean = (0..p).map(|i| omega.get(i, i).to_f64()).sum::<f64>() / p as f64;
        (omega, rounding::<T>(p) * mean)
    }

    pub(super) fn kernel_flops_of_centers(&self) -> f64 {
        let p = self.centers.len() as f64;
        2.0 * p * p * self.source.width() as f64
    }

    /// Operations of a pass with so many columns in each of so many products.
    pub(super) fn flops(&self, products: usize, columns: usize) -> f64 {
        let pairs = self.source.len() as f64 * self.centers.len() as f64;
        pairs * 2.0 * (self.source.width() + products * columns) as f64
    }
}
