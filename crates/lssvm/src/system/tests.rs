//! Problems that tests of this room and others share, and the tests of the system itself.

use super::*;

/// Θ written out, in `f64`, from the kernel's definition on `f64` rows.
pub(crate) fn theta(system: &System<f64>) -> Matrix<f64> {
    let n = system.n();
    let mut omega = Matrix::zeros(n, n);
    let x = system.samples.view();
    system.kernel.fill(omega.view_mut(), x, x);
    Matrix::from_fn(n + 1, n + 1, |i, j| match (i, j) {
        (0, 0) => 0.0,
        (0, _) | (_, 0) => 1.0,
        _ if i == j => omega.get(i - 1, j - 1) + system.lambdas[i - 1],
        _ => omega.get(i - 1, j - 1),
    })
}

/// A small problem with known shape and no structure.
pub(crate) fn problem<T: Scalar>(
    n: usize,
    d: usize,
    k: usize,
    kernel: Kernel,
    c: f64,
) -> System<T> {
    let wave = |i: usize, j: usize| ((i * 37 + j * 101 + i * j) as f64 * 0.7311).sin();
    let x = Matrix::from_fn(n, d, |i, j| T::from_f64(wave(i, j)));
    let y = Matrix::from_fn(n, k, |i, j| T::from_f64(wave(i + 7, j + d)));
    System::new(x, y, kernel, c).unwrap()
}

/// The same with rows of unequal weights.
pub(crate) fn weighted_problem<T: Scalar>(
    n: usize,
    d: usize,
    k: usize,
    kernel: Kernel,
    c: f64,
) -> System<T> {
    let weights = unequal_weights(n);
    problem(n, d, k, kernel, c).with_weights(&weights).unwrap()
}

fn unequal_weights(n: usize) -> Vec<f64> {
    (0..n).map(|i| 0.25 + (i * 7 % 5) as f64).collect()
}

/// The same with row `n − 1` once more, with another target; and the weights.
pub(crate) fn problem_with_a_twin(
    n: usize,
    d: usize,
    k: usize,
    kernel: Kernel,
    c: f64,
) -> (System<f64>, Vec<f64>) {
    let plain = problem::<f64>(n, d, k, kernel, c);
    let rows: Vec<usize> = (0..n).chain([n - 1]).collect();
    let x = plain.samples().points().select_rows(&rows);
    let mut targets = plain.targets().select_rows(&rows);
    targets.row_mut(n).iter_mut().for_each(|y| *y += 0.3);
    let weights = unequal_weights(n + 1);
    let system = System::new(x, targets, kernel, c).unwrap();
    (system.with_weights(&weights).unwrap(), weights)
}

/// One of each kind whose matrices are positive.
pub(crate) const POSITIVE_KERNELS: [Kernel; 4] = [
    Kernel::Linear,
    Kernel::Rbf { gamma: 0.5 },
    Kernel::Laplacian { gamma: 0.4 },
    Kernel::Poly {
        gamma: 0.5,
        coef0: 1.0,
        degree: 3,
    },
];

const RBF: Kernel = Kernel::Rbf { gamma: 0.3 };

#[test]
fn the_shifted_kernel_and_products_are_those_of_theta() {
    for n in [1, 5, 700, 1100] {
        let system = weighted_problem::<f64>(n, 4, 3, RBF, 10.0);
        let theta = theta(&system);
        let shifted = system.shifted_kernel(&mut |_| true).unwrap();
        for i in 0..n {
            for j in 0..n {
                assert!((shifted.get(i, j) - theta.get(i + 1, j + 1)).abs() < 1e-14);
            }
        }
        let w = Bordered {
            bias: vec![0.5, -1.0, 2.0],
            rows: system.targets().clone(),
        };
        let product = system.product(&w);
        for i in 0..=n {
            for k in 0..3 {
                let sum: f64 = (0..=n).map(|j| theta.get(i, j) * w.row(j)[k]).sum();
                assert!((product.row(i)[k] - sum).abs() < 1e-10 * n as f64);
            }
        }
    }
}

#[test]
fn weights_must_be_positive_and_as_many_as_rows() {
    for (weights, expected) in [
        (vec![1.0, 2.0], "3 training rows, but 2 weights"),
        (vec![1.0, 0.0, 1.0], "the weight of row 2 is 0"),
        (vec![1.0, 1.0, -2.0], "the weight of row 3 is -2"),
        (vec![f64::NAN, 1.0, 1.0], "the weight of row 1 is NaN"),
    ] {
        let system = problem::<f64>(3, 2, 1, RBF, 10.0);
        let error = system.with_weights(&weights).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_bad_c_and_values_out_of_range_are_refused() {
    let x = || Matrix::from_rows(&[[1.0f32], [2.0]]);
    for c in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = System::new(x(), x(), RBF, c).unwrap_err().to_string();
        assert!(error.starts_with("c = "), "{error}");
    }
    let bad = Matrix::from_rows(&[[1.0f32], [f32::INFINITY]]);
    let error = System::new(bad, x(), RBF, 1.0).unwrap_err().to_string();
    assert!(error.contains("row 2, feature 1"), "{error}");
}
