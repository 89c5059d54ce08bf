//! What can be said for certain about an answer: how far W is from the solution.
//!
//! ```text
//!     R = Y − S a − 1b                             zero at the solution, as is 1ᵀa
//!     F(a, b) = ½ aᵀΩa + c/2 ‖Y − Ωa − 1b‖²        what training minimises
//!     D(α) = αᵀY − ½ αᵀSα,  1ᵀα = 0                never above the least F
//! ```
//!
//! With m the mean of a, F(a, b) − D(a − m1) = c/2 ‖R‖² + m 1ᵀR + m²/2 1ᵀS1: the
//! objective cannot fall by more than that. With weights, ‖·‖² sums wᵢ times the squares
//! in F and in the gap. All sums are taken in `f64`.

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
    /// `product`: S a, the rows of this rank. `total`: 1ᵀS1; only needed if the sum of a is not zero.
    pub(crate) fn new<T: Scalar>(
        system: &System<T>,
        w: &Bordered<T>,
        product: &Matrix<f64>,
        total: f64,
    ) -> Self {
        let (own, outputs) = (system.own_rows(), system.outputs());
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
            let (mut misfit, mut smooth, mut gap) = (0.0, 0.0, 0.0);
            for i in 0..own {
                let lambda = system.lambda(i);
                let (a, y) = (w.rows.get(i, k).to_f64(), system.targets.get(i, k).to_f64());
                let r = y - product.get(i, k) - bias;
                squares += r * r;
                sum_r += r;
                scale += y * y;
                sum += a;
                misfit += (r + lambda * a).powi(2) / lambda;
                gap += r * r / lambda;
                smooth += a * (product.get(i, k) - lambda * a);
            }
            let mut sums = [squares, sum_r, scale, sum, misfit, gap, smooth];
            system.ranks().sum(&mut sums);
            [squares, sum_r, scale, sum, misfit, gap, smooth] = sums;
            let squares_and_sum = squares + sum * sum;
            let residual = relative(squares_and_sum.sqrt(), scale.sqrt());
            certificate.relative_residuals.push(residual);
            (part, whole) = (part + squares_and_sum, whole + scale);
            certificate.objective += 0.5 * (smooth + misfit);
            let mean = sum / system.n() as f64;
            certificate.objective_gap += 0.5 * gap + mean * sum_r + 0.5 * mean * mean * total;
        }
        certificate.relative_residual = relative(part.sqrt(), whole.sqrt());
        certificate
    }
}

impl<T: Scalar> System<T> {
    /// Examines W: one look at all of Ω, which is computed again unless it is kept in
    /// full precision.
    pub fn certify(&self, w: &Bordered<T>) -> Certificate {
        let (n, k) = (self.own_rows(), self.outputs());
        let with_ones = Matrix::from_fn(n, k + 1, |i, c| match c < k {
            true => w.rows.get(i, c),
            false => T::ONE,
        });
        let product = self.true_product(&with_ones);
        let total = (0..n).map(|i| product.get(i, k)).sum();
        let total = self.ranks().sum_of(total);
        Certificate::new(self, w, &product, total)
    }

    /// Floating-point operations of [`System::true_product`] with so many columns; one
    /// more than the outputs for [`System::certify`].
    pub fn true_product_flops(&self, columns: usize) -> f64 {
        let values = self.own_rows() as f64 * self.n() as f64;
        let products = 2.0 * values * columns as f64;
        match self.kept() {
            Some(Format::Full) => products,
            _ => products + self.kernel_flops(0.5 * values),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::system::tests::problem;

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
