//! The path against separate solutions.

use super::space::sums_of_squares;
use super::*;
use crate::kernel::Kernel;
use crate::solve::leave_one_out::tests::solved;
use crate::solve::{OpenBlock, Phases};
use crate::system::System;
use crate::system::tests::weighted_problem;

fn with_work<T: Scalar, R>(
    system: &System<T>,
    todo: impl FnOnce(&mut Work<'_, T>) -> Result<R>,
) -> R {
    let mut work = Work {
        system,
        block: &mut OpenBlock::new(system.shares()),
        phases: &mut Phases::default(),
        progress: &mut |_| true,
    };
    todo(&mut work).unwrap()
}

fn path<T: Scalar>(system: &System<T>, largest_c: f64) -> Path<T> {
    with_work(system, |work| Path::new(work, largest_c, 1))
}

/// W and leave-one-out scores, by a factorisation for this c alone.
fn alone<T: Scalar>(system: &System<T>) -> (Bordered<T>, Matrix<T>) {
    let found = solved(system, true);
    (found.weights, found.leave_one_out.unwrap().scores)
}

/// ‖a − b‖ / ‖b‖
fn difference<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) -> f64 {
    let pairs = a.values().iter().zip(b.values());
    let squares: f64 = pairs.map(|(a, b)| (a.to_f64() - b.to_f64()).powi(2)).sum();
    squares.sqrt() / b.frobenius_norm()
}

const KERNELS: [Kernel; 3] = [
    Kernel::Rbf { gamma: 0.5 },
    Kernel::Laplacian { gamma: 0.4 },
    Kernel::Poly {
        gamma: 0.1,
        coef0: 1.0,
        degree: 3,
    },
];

#[test]
fn few_rows_have_an_exact_path() {
    let sigmoid = Kernel::Sigmoid {
        gamma: 0.05,
        coef0: 0.1,
    };
    for kernel in KERNELS.into_iter().chain([Kernel::Linear, sigmoid]) {
        for (n, outputs) in [(2, 1), (30, 1), (45, 4)] {
            let largest = 100.0;
            let system = weighted_problem::<f64>(n, 3, outputs, kernel, largest);
            let cs = [100.0, 7.0, 0.3, 1e-3];
            // By eigenvectors, and by a factor for each c where the kernel is positive.
            let by_vectors = path(&system, largest).points(&cs).unwrap();
            let by_factors = with_work(&system, |work| points(work, largest, 1, &cs));
            for point in by_vectors.into_iter().chain(by_factors) {
                let other = weighted_problem::<f64>(n, 3, outputs, kernel, point.c);
                let (weights, scores) = alone(&other);
                let name = format!("{kernel:?}, {n} rows, c = {}", point.c);
                assert!(point.residual < 1e-9, "{name}: {}", point.residual);
                assert_eq!(point.diagonal_error, 0.0);
                let off = difference(&point.weights.rows, &weights.rows);
                assert!(off < 1e-8, "{name}: {off}");
                let off = difference(&point.leave_one_out, &scores);
                assert!(off < 1e-8, "{name}: {off}");
            }
        }
    }
}

/// `rounding`: residuals of rounded weights, which a kernel of large values magnifies.
fn many_rows<T: Scalar>(tolerance: f64, rounding: f64) {
    let (n, outputs) = (1_100, 2);
    for kernel in KERNELS {
        let largest = 100.0;
        let system = weighted_problem::<T>(n, 4, outputs, kernel, largest);
        assert!(!Path::<T>::is_exact(n, outputs));
        let path = path(&system, largest);
        for point in path.points(&[100.0, 10.0, 1.0, 0.1, 1e-2]).unwrap() {
            let other = weighted_problem::<T>(n, 4, outputs, kernel, point.c);
            let (weights, scores) = alone(&other);
            let name = format!("{kernel:?}, c = {}", point.c);
            let off = difference(&point.weights.rows, &weights.rows);
            assert!(off < tolerance, "{name}: weights {off}, {}", point.residual);
            let most = tolerance + rounding;
            assert!(point.residual < most, "{name}: {}", point.residual);
            let off = difference(&point.leave_one_out, &scores);
            assert!(off < 0.08, "{name}: scores {off}, {}", point.diagonal_error);
            assert!(
                point.diagonal_error < 0.1,
                "{name}: {}",
                point.diagonal_error
            );
        }
    }
}

#[test]
fn many_rows_have_a_path_that_is_near() {
    many_rows::<f64>(1e-2, 0.0);
    many_rows::<f32>(1e-2, 0.05);
}

#[test]
fn sums_of_squares_are_those_of_the_matrix() {
    let n = crate::system::TILE + 7;
    let system = weighted_problem::<f64>(n, 3, 1, KERNELS[0], 2.0);
    let scale: Vec<f64> = (0..n).map(|i| 1.0 + (i % 5) as f64).collect();
    let found = sums_of_squares(&system.tiles(&mut |_| true).unwrap(), &scale);
    let omega = system.shifted_kernel(&mut |_| true).unwrap();
    for i in (0..n).step_by(97) {
        let others = (0..n).filter(|&j| j != i);
        let sum: f64 = others
            .map(|j| (omega.get(i, j) * scale[i] * scale[j]).powi(2))
            .sum();
        assert!((found[i] / sum - 1.0).abs() < 1e-12);
    }
}
