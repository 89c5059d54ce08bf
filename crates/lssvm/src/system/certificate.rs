//! What can be said for certain about an answer: how far W is from the solution.
//!
//! ```text
//!     R = Y − S a − 1b                             zero at the solution, as is 1ᵀa
//!     F(a, b) = ½ aᵀΩa + c/2 ‖Y − Ωa − 1b‖²        what training minimises
//!     D(α) = αᵀY − ½ αᵀSα,  1ᵀα = 0                never above the least F
//! ```
//!
//! With m the mean of a, F(a, b) − D(a − m1) = c/2 ‖R‖² + m 1ᵀR + m²/2 1ᵀS1: the
//! objective cannot fall by more than that. All sums are taken in `f64`.

use serde::Serialize;

use super::{Bordered, Format, System, relative};
use crate::linalg::{Matrix, Scalar};

/// How good an answer is, computed from the answer alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Certificate {
    /// ‖Z − ΘW‖ / ‖Z‖ over all outputs.
    pub relative_residual: f64,
    /// The same of each output.
    pub relative_residuals: Vec<f64>,
    /// F(a, b), summed over the outputs.
    pub objective: f64,
    /// The most by which the objective could still fall.
    pub objective_gap: f64,
}

impl Certificate {
    /// `product`: S a, N × K. `total`: 1ᵀS1; only needed if the sum of a is not zero.
    pub(crate) fn new<T: Scalar>(
        system: &System<T>,
        w: &Bordered<T>,
        product: &Matrix<f64>,
        total: f64,
    ) -> Self {
        let (n, outputs) = (system.n(), system.outputs());
        let lambda = system.lambda();
        let mut certificate = Self {
            relative_residual: 0.0,
            relative_residuals: Vec::with_capacity(outputs),
            objective: 0.0,
            objective_gap: 0.0,
        };
        let (mut part, mut whole) = (0.0, 0.0);
        for k in 0..outputs {
            let bias = w.bias[k].to_f64();
            let (mut squares, mut sum_r, mut scale, mut sum) = (0.0, 0.0, 0.0, 0.0);
            let (mut misfit, mut smooth) = (0.0, 0.0);
            for i in 0..n {
                let (a, y) = (w.rows.get(i, k).to_f64(), system.targets.get(i, k).to_f64());
                let r = y - product.get(i, k) - bias;
                squares += r * r;
                sum_r += r;
                scale += y * y;
                sum += a;
                misfit += (r + lambda * a).powi(2);
                smooth += a * (product.get(i, k) - lambda * a);
            }
            let squares_and_sum = squares + sum * sum;
            let residual = relative(squares_and_sum.sqrt(), scale.sqrt());
            certificate.relative_residuals.push(residual);
            (part, whole) = (part + squares_and_sum, whole + scale);
            certificate.objective += 0.5 * smooth + 0.5 * misfit / lambda;
            let mean = sum / n as f64;
            certificate.objective_gap +=
                0.5 * squares / lambda + mean * sum_r + 0.5 * mean * mean * total;
        }
        certificate.relative_residual = relative(part.sqrt(), whole.sqrt());
        certificate
    }
}

impl<T: Scalar> System<T> {
    /// Examines W: one look at all of Ω, which is computed again unless it is kept in
    /// full precision.
    pub fn certify(&self, w: &Bordered<T>) -> Certificate {
        let (n, k) = (self.n(), self.outputs());
        let with_ones = Matrix::from_fn(n, k + 1, |i, c| match c < k {
            true => w.rows.get(i, c),
            false => T::ONE,
        });
        let product = self.true_product(&with_ones);
        let total = (0..n).map(|i| product.get(i, k)).sum();
        Certificate::new(self, w, &product, total)
    }

    /// Floating-point operations of [`System::certify`].
    pub fn certify_flops(&self) -> f64 {
        let n = self.n() as f64;
        let products = 2.0 * n * n * (self.outputs() + 1) as f64;
        match self.kept() {
            Some(Format::Full) => products,
            _ => products + self.kernel_flops(0.5 * n * n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::solve::{Limits, Method, Plan, Silent, run};
    use crate::system::tests::{problem, theta};

    /// F, from its definition.
    fn objective(system: &System<f64>, w: &Bordered<f64>) -> f64 {
        let (n, theta) = (system.n(), theta(system));
        let omega = |i: usize, j: usize| match i == j {
            true => theta.get(i + 1, j + 1) - system.lambda(),
            false => theta.get(i + 1, j + 1),
        };
        let mut sum = 0.0;
        for k in 0..system.outputs() {
            for i in 0..n {
                let score: f64 = (0..n).map(|j| omega(i, j) * w.rows.get(j, k)).sum();
                let misfit = system.targets().get(i, k) - score - w.bias[k];
                sum += 0.5 * w.rows.get(i, k) * score + 0.5 / system.lambda() * misfit * misfit;
            }
        }
        sum
    }

    #[test]
    fn the_objective_never_falls_by_more_than_the_gap() {
        let system = problem::<f64>(60, 3, 2, Kernel::Rbf { gamma: 0.5 }, 8.0);
        let plan = Plan {
            method: Method::Exact,
            block_size: 60,
            seed: 1,
            averages: 1,
            rank: None,
            tolerance: 0.0,
        };
        let limits = Limits {
            iterations: 1,
            seconds: None,
            tolerance: 0.0,
            patience: None,
        };
        let exact = run(
            &system,
            &plan,
            &limits,
            &mut None,
            &mut None,
            0,
            &mut Silent,
        )
        .unwrap();
        let least = objective(&system, &exact.weights);
        let at_best = system.certify(&exact.weights);
        assert!(at_best.objective_gap.abs() < 1e-12 * least);
        for step in 1..30 {
            // Away from the solution, with a sum that is not zero.
            let mut w = exact.weights.clone();
            let size = 0.5f64.powi(step);
            for i in 0..60 {
                for (k, v) in w.rows.row_mut(i).iter_mut().enumerate() {
                    *v += size * ((i * 5 + k * 3 + step as usize) as f64).sin() + 0.1 * size;
                }
            }
            w.bias[0] += size;
            let certificate = system.certify(&w);
            let value = objective(&system, &w);
            assert!((certificate.objective - value).abs() < 1e-9 * value);
            let fall = value - least;
            assert!(fall <= certificate.objective_gap + 1e-12 * least);
            // The bound is worth something: within the condition of the problem.
            assert!(certificate.objective_gap < 1e3 * fall + 1e-10 * least);
            let residual = system.relative_residual(&w);
            assert!((certificate.relative_residual - residual).abs() < 1e-9);
        }
    }

    #[test]
    fn half_precision_does_not_certify_itself() {
        let mut system = problem::<f64>(200, 3, 2, Kernel::Rbf { gamma: 0.5 }, 4.0);
        let w = Bordered {
            bias: vec![0.1, -0.2],
            rows: system.targets().clone(),
        };
        let recomputed = system.certify(&w);
        system.keep_kernel(Format::Half, &mut |_| true).unwrap();
        assert_eq!(system.certify(&w), recomputed);
    }
}
