//! What each training row would have been told by a model that never saw it, without
//! training one.
//!
//! ```text
//!     yᵢ − hᵢ = aᵢ / (Θ⁻¹)ᵢᵢ,     (Θ⁻¹)ᵢᵢ = (S⁻¹)ᵢᵢ − νᵢ² / 1ᵀν,     S ν = 1
//! ```
//!
//! hᵢ is the score of row i by the solution of the system without row and column i of Θ,
//! bias included; weights of rows are part of S. It is exact for a solution that is.
//! (Cawley and Talbot, "Fast exact leave-one-out cross-validation of sparse least-squares
//! support vector machines", 2004.) What was fitted before the system, preprocessing and
//! `gamma = scale`, stays as it is.

use super::Work;
use super::exact::Factor;
use crate::Result;
use crate::linalg::{Matrix, Scalar};
use crate::system::Bordered;

/// Scores of the training rows by models that never saw them.
#[derive(Debug, Clone)]
pub struct LeaveOneOut<T: Scalar> {
    /// N × K
    pub scores: Matrix<T>,
    /// How far off they may be; none if they are exact.
    pub estimate: Option<Estimated>,
}

impl<T: Scalar> LeaveOneOut<T> {
    /// Of the rows with these indices.
    pub fn select(&self, rows: &[usize]) -> Self {
        let estimate = self.estimate.as_ref().map(|estimate| Estimated {
            deviations: rows.iter().map(|&i| estimate.deviations[i]).collect(),
            ..*estimate
        });
        Self {
            scores: self.scores.select_rows(rows),
            estimate,
        }
    }
}

/// Of leave-one-out scores that are estimates (see `probing`).
#[derive(Debug, Clone)]
pub struct Estimated {
    /// Relative standard deviation of (Θ⁻¹)ᵢᵢ for each row; 0 for rows that are exact.
    pub deviations: Vec<f64>,
    /// Right-hand sides that told of all rows.
    pub probes: usize,
    /// Rows that were solved for themselves.
    pub solved: usize,
}

/// What (Θ⁻¹)ᵢᵢ and scores follow from, once the diagonal of S⁻¹ is known.
pub(super) struct Left<'a, T: Scalar> {
    weights: &'a Bordered<T>,
    targets: &'a Matrix<T>,
    nu: Vec<f64>,
    /// 1ᵀν
    total: f64,
}

impl<'a, T: Scalar> Left<'a, T> {
    /// `solution`: [A ν].
    pub(super) fn new(
        solution: &Matrix<T>,
        weights: &'a Bordered<T>,
        targets: &'a Matrix<T>,
    ) -> Self {
        let last = solution.cols() - 1;
        let nu = (0..solution.rows()).map(|i| solution.get(i, last).to_f64());
        let nu: Vec<f64> = nu.collect();
        Self {
            weights,
            targets,
            total: nu.iter().sum(),
            nu,
        }
    }

    /// (Θ⁻¹)ᵢᵢ, from (S⁻¹)ᵢᵢ.
    pub(super) fn bordered(&self, row: usize, diagonal: f64) -> f64 {
        diagonal - self.nu[row] * self.nu[row] / self.total
    }

    /// yᵢ − hᵢ of each output, from (Θ⁻¹)ᵢᵢ.
    pub(super) fn misfits(&self, row: usize, bordered: f64) -> impl Iterator<Item = f64> {
        let weights = self.weights.rows.row(row).iter();
        weights.map(move |a| a.to_f64() / bordered)
    }

    pub(super) fn targets(&self) -> &Matrix<T> {
        self.targets
    }

    /// hᵢ of all rows, from (Θ⁻¹)ᵢᵢ of each.
    pub(super) fn scores(&self, bordered: &[f64]) -> Matrix<T> {
        let mut scores = self.targets.clone();
        for (i, &bordered) in bordered.iter().enumerate() {
            let pairs = scores.row_mut(i).iter_mut().zip(self.misfits(i, bordered));
            pairs.for_each(|(h, misfit)| *h = T::from_f64(h.to_f64() - misfit));
        }
        scores
    }
}

/// By the diagonal of S⁻¹ from its factor. Costs about as much as the factor did.
pub(super) fn by_factor<T: Scalar>(
    work: &mut Work<'_, T>,
    factor: &Factor<T>,
    solution: &Matrix<T>,
    weights: &Bordered<T>,
) -> Result<LeaveOneOut<T>> {
    let diagonal = factor.inverse_diagonal(work)?;
    let left = Left::new(solution, weights, work.system.targets());
    let bordered = diagonal.iter().enumerate();
    let bordered = bordered.map(|(i, d)| left.bordered(i, d.to_f64()));
    Ok(LeaveOneOut {
        scores: left.scores(&bordered.collect::<Vec<_>>()),
        estimate: None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Limits, Method, Plan, Silent, run};
    use super::*;
    use crate::kernel::{FillBlock, Kernel, Samples};
    use crate::system::System;
    use crate::system::tests::{POSITIVE_KERNELS, problem_with_a_twin};

    /// By one factorisation for this system alone.
    pub(in crate::solve) fn solved<T: Scalar>(
        system: &System<T>,
        loo: bool,
    ) -> super::super::Solution<T> {
        let plan = Plan {
            method: Method::Exact,
            block_size: 1,
            seed: 1,
            averages: 1,
            rank: None,
            tolerance: 0.0,
            loo,
        };
        let limits = Limits::after(1);
        let (mut test, mut validation) = (None, None);
        run(
            system,
            &plan,
            &limits,
            &mut test,
            &mut validation,
            0,
            &mut Silent,
        )
        .unwrap()
    }

    /// The score of row `left` by a model of all others.
    fn refitted(system: &System<f64>, weights: &[f64], left: usize, c: f64) -> Vec<f64> {
        let others: Vec<usize> = (0..system.n()).filter(|&i| i != left).collect();
        let x = system.samples().points();
        let kernel = *system.kernel();
        let without = System::new(
            x.select_rows(&others),
            system.targets().select_rows(&others),
            kernel,
            c,
        );
        let weights: Vec<f64> = others.iter().map(|&i| weights[i]).collect();
        let without = without.unwrap().with_weights(&weights).unwrap();
        let w = solved(&without, false).weights;
        let row = Samples::new(x.select_rows(&[left]), &kernel);
        let mut omega = Matrix::zeros(1, others.len());
        kernel.fill(omega.view_mut(), row.view(), without.samples().view());
        let score = |k: usize| {
            let sum = (0..others.len()).map(|j| omega.get(0, j) * w.rows.get(j, k));
            w.bias[k] + sum.sum::<f64>()
        };
        (0..system.outputs()).map(score).collect()
    }

    #[test]
    fn they_are_those_of_refits() {
        let sigmoid = Kernel::Sigmoid {
            gamma: 0.05,
            coef0: 0.1,
        };
        for kernel in POSITIVE_KERNELS.into_iter().chain([sigmoid]) {
            for (outputs, c) in [(1, 1.0), (2, 50.0), (10, 0.1)] {
                let n = 25;
                let (system, weights) = problem_with_a_twin(n, 3, outputs, kernel, c);
                let found = solved(&system, true).leave_one_out.unwrap().scores;
                for left in (0..=n).step_by(5).chain([n]) {
                    let expected = refitted(&system, &weights, left, c);
                    for (k, expected) in expected.iter().enumerate() {
                        let found = found.get(left, k);
                        assert!(
                            (found - expected).abs() < 1e-7 * expected.abs().max(1.0),
                            "{kernel:?}, row {left}: {found}, {expected}"
                        );
                    }
                }
            }
        }
    }
}
