//! What the steps ask of a row: its mean, its length, and to be many at once.

use rayon::prelude::*;

use crate::linalg::{Matrix, Scalar, sum_of_squares};

/// Rows a thread takes at once. A row of 784 values is a microsecond of work,
/// too little for a task of its own; 64 of them fit in the second cache.
pub(super) const ROWS_PER_TASK: usize = 64;

/// Changes each row in place, rows in parallel.
pub(super) fn for_each<T: Scalar>(x: &mut Matrix<T>, f: impl Fn(&mut [T]) + Sync) {
    let cols = x.cols();
    if cols == 0 {
        return;
    }
    x.values_mut()
        .par_chunks_mut(ROWS_PER_TASK * cols)
        .for_each(|rows| rows.chunks_exact_mut(cols).for_each(&f));
}

/// The mean, summed in `f64`, and exact if all values are equal.
///
/// What is summed is the distance from the first value. With a plain sum the
/// mean of equal `f64` values can be an ulp off; centred, such a row would be
/// rounding noise, and `unit-norm` would blow that up to length 1.
pub(super) fn mean<T: Scalar>(values: &[T]) -> f64 {
    let Some(first) = values.first().map(|v| v.to_f64()) else {
        return 0.0;
    };
    // Short partial sums let the compiler use vector registers.
    let (chunks, rest) = values.as_chunks::<8>();
    let mut sums = [0f64; 8];
    for chunk in chunks {
        for (sum, v) in sums.iter_mut().zip(chunk) {
            *sum += v.to_f64() - first;
        }
    }
    let sum = sums.iter().sum::<f64>() + rest.iter().map(|v| v.to_f64() - first).sum::<f64>();
    first + sum / values.len() as f64
}

/// Squares of `f64` numbers outside of this range leave the range of `f64` or
/// lose digits. No `f32` number comes near its ends.
const SAFE_SQUARES: std::ops::Range<f64> = 1e-280..1e300;

/// √(Σ v²), summed in `f64`.
pub(super) fn norm<T: Scalar>(values: &[T]) -> f64 {
    let squares = sum_of_squares(values);
    if SAFE_SQUARES.contains(&squares) {
        return squares.sqrt();
    }
    let largest = values.iter().fold(0f64, |m, v| m.max(v.to_f64().abs()));
    if largest == 0.0 || !largest.is_finite() {
        return squares.sqrt();
    }
    let scaled = values.iter().map(|v| (v.to_f64() / largest).powi(2));
    largest * scaled.sum::<f64>().sqrt()
}

/// v ← v / ‖v‖; zero stays zero.
pub(super) fn to_unit_norm<T: Scalar>(values: &mut [T]) {
    let norm = norm(values);
    if norm != 0.0 {
        for v in values {
            *v = T::from_f64(v.to_f64() / norm);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_equal_values_is_that_value() {
        for n in 1..200 {
            assert_eq!(mean(&vec![0.1f64; n]), 0.1);
        }
        assert_eq!(mean::<f32>(&[]), 0.0);
    }

    #[test]
    fn lengths_out_of_the_range_of_squares() {
        assert!((norm(&[3e30f32, 4e30]) / 5e30 - 1.0).abs() < 1e-7);
        assert!((norm(&[3e200f64, 4e200]) / 5e200 - 1.0).abs() < 1e-15);
        assert!((norm(&[3e-200f64, 4e-200]) / 5e-200 - 1.0).abs() < 1e-15);
        assert_eq!(norm(&[0f64; 3]), 0.0);
        assert!(norm(&[f64::NAN, 1.0]).is_nan());
    }
}
