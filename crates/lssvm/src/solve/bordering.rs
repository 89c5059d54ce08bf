//! The bias from one more right-hand side.
//!
//! ```text
//!     S [A ν] = [Y 1],   S = Ω+λI,     b = 1ᵀA / 1ᵀν,     a = A − ν b
//! ```
//!
//! W = [b; a] solves ΘW = Z if A and ν are exact. If they are not, the sum of a is
//! still zero for every output, and the rest of the residual is
//! Y − Sa − 1b = (Y − SA) − (1 − Sν) b.

use super::{Phase, Residual, Work};
use crate::linalg::{Matrix, Scalar};
use crate::system::{Bordered, Certificate, Format, System, relative};

/// [Y 1]
pub(super) fn right_hand_sides<T: Scalar>(system: &System<T>) -> Matrix<T> {
    let k = system.outputs();
    Matrix::from_fn(system.n(), k + 1, |i, c| match c < k {
        true => system.targets().get(i, c),
        false => T::ONE,
    })
}

/// W of [A ν]; zero before ν is anything.
fn weights<T: Scalar>(solution: &Matrix<T>) -> Bordered<T> {
    let (n, k) = (solution.rows(), solution.cols() - 1);
    let mut sums = vec![0.0; k + 1];
    for row in solution.values().chunks_exact(k + 1) {
        let pairs = sums.iter_mut().zip(row);
        pairs.for_each(|(sum, v)| *sum += v.to_f64());
    }
    let ones = sums[k];
    let bias = |c: usize| if ones == 0.0 { 0.0 } else { sums[c] / ones };
    let bias: Vec<f64> = (0..k).map(bias).collect();
    let rows = Matrix::from_fn(n, k, |i, c| {
        let row = solution.row(i);
        T::from_f64(row[c].to_f64() - row[k].to_f64() * bias[c])
    });
    Bordered {
        bias: bias.into_iter().map(T::from_f64).collect(),
        rows,
    }
}

/// ‖Z − ΘW‖, from [Y 1] − S[A ν] and the bias.
fn residual_norm<T: Scalar>(residual: &Matrix<T>, bias: &[T]) -> f64 {
    let k = bias.len();
    let mut squares = 0.0;
    for row in residual.values().chunks_exact(k + 1) {
        let ones = row[k].to_f64();
        for (r, b) in row.iter().zip(bias) {
            squares += (r.to_f64() - ones * b.to_f64()).powi(2);
        }
    }
    squares.sqrt()
}

/// S[A ν] from scratch, timed: Ω as it is kept, but never in half precision.
pub(super) fn true_product<T: Scalar>(work: &mut Work<'_, T>, v: &Matrix<T>) -> Matrix<f64> {
    let system = work.system;
    let flops = system.true_product_flops(v.cols());
    work.phases
        .time(Phase::Certify, flops, || system.true_product(v))
}

/// `right` − `product`, rounded once.
pub(super) fn left_over<T: Scalar>(right: &Matrix<T>, product: &Matrix<f64>) -> Matrix<T> {
    let pairs = right.values().iter().zip(product.values());
    let left = pairs.map(|(b, p)| T::from_f64(b.to_f64() - p)).collect();
    Matrix::from_vec(right.rows(), right.cols(), left)
}

/// Where a solver of S [A ν] = [Y 1] stands: W, and how far it is from the solution.
#[derive(Debug)]
pub(super) struct Reached<T: Scalar> {
    weights: Bordered<T>,
    residual: Option<Residual>,
    certificate: Option<Certificate>,
    /// The relative residual when it was last known for certain.
    certain: f64,
}

/// In half precision, the share of a residual at which it is computed anew: below that
/// it says more about the rounding of Ω than about the solution.
const HALF_DROP: f64 = 0.01;

impl<T: Scalar> Reached<T> {
    /// At W = 0, before the first step.
    pub(super) fn nowhere(system: &System<T>) -> Self {
        Self {
            weights: Bordered::zeros(system.n(), system.outputs()),
            residual: None,
            certificate: None,
            certain: 1.0,
        }
    }

    /// Takes over [A ν], and returns the relative change of W.
    pub(super) fn take_over(&mut self, v: &Matrix<T>) -> f64 {
        let weights = weights(v);
        let mut change = weights.clone();
        change.add_scaled(&self.weights, -T::ONE);
        self.weights = weights;
        (self.residual, self.certificate) = (None, None);
        relative(change.norm(), self.weights.norm())
    }

    /// Estimates the residual from what is left of [Y 1], as the solver knows it.
    pub(super) fn estimate(&mut self, system: &System<T>, left: &Matrix<T>) {
        let scale = system.targets().frobenius_norm();
        self.residual = Some(Residual {
            relative: relative(residual_norm(left, &self.weights.bias), scale),
            exact: false,
        });
    }

    /// Certifies W by the product of [A ν] with S, from scratch.
    pub(super) fn certify(&mut self, system: &System<T>, product: &Matrix<f64>) {
        let k = system.outputs();
        let bias = |c: usize| self.weights.bias[c].to_f64();
        let own = Matrix::from_fn(system.n(), k, |i, c| {
            product.get(i, c) - product.get(i, k) * bias(c)
        });
        // The sum of a is zero, so that 1ᵀS1 does not matter.
        let certificate = Certificate::new(system, &self.weights, &own, 0.0);
        self.residual = Some(Residual {
            relative: certificate.relative_residual,
            exact: true,
        });
        self.certain = certificate.relative_residual;
        self.certificate = Some(certificate);
    }

    pub(super) fn weights(&self) -> &Bordered<T> {
        &self.weights
    }

    pub(super) fn residual(&self) -> Option<Residual> {
        self.residual
    }

    /// Of the weights as they are, if it is known.
    pub(super) fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }

    /// Whether the residual must be known for certain now: it seems to be within the
    /// tolerance, or Ω is in half precision and it has fallen far since it was.
    pub(super) fn is_due(&self, system: &System<T>, tolerance: f64) -> bool {
        let relative = self.residual.map_or(f64::INFINITY, |r| r.relative);
        let half = system.kept() == Some(Format::Half);
        relative <= tolerance || (half && relative <= HALF_DROP * self.certain)
    }
}
