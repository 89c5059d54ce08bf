//! The bias from one more right-hand side.
//!
//! ```text
//!     S [A ν] = [Y 1],   S = Ω+λI,     b = 1ᵀA / 1ᵀν,     a = A − ν b
//! ```
//!
//! W = [b; a] solves ΘW = Z if A and ν are exact. If they are not, the sum of a is
//! still zero for every output, and the rest of the residual is
//! Y − Sa − 1b = (Y − SA) − (1 − Sν) b.

use crate::linalg::{Matrix, Scalar};
use crate::system::{Bordered, System};

/// [Y 1]
pub(super) fn right_hand_sides<T: Scalar>(system: &System<T>) -> Matrix<T> {
    let k = system.outputs();
    Matrix::from_fn(system.n(), k + 1, |i, c| match c < k {
        true => system.targets().get(i, c),
        false => T::ONE,
    })
}

/// W of [A ν]; zero before ν is anything.
pub(super) fn weights<T: Scalar>(solution: &Matrix<T>) -> Bordered<T> {
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
pub(super) fn residual_norm<T: Scalar>(residual: &Matrix<T>, bias: &[T]) -> f64 {
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
