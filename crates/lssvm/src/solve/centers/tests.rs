//! Centres against the full solution and against the normal equations written out.

use std::sync::Arc;

use super::*;
use crate::kernel::Kernel;
use crate::linalg::Cholesky;
use crate::ranks::Ranks;
use crate::solve::{Course, Limits, Method, Plan, Silent, Solution, Stopped, Truth, run, run_on};
use crate::system::tests::problem;
use crate::system::{System, kernel_matrix};

fn limits(tolerance: f64, iterations: usize) -> Limits {
    Limits {
        iterations,
        seconds: None,
        spent: 0.0,
        tolerance,
        patience: None,
    }
}

/// Fits a model of these rows of a system on all of them.
fn fitted<T: Scalar>(
    full: &System<T>,
    centers: &[usize],
    weights: Option<&[f64]>,
    held: bool,
    (tolerance, iterations): (f64, usize),
) -> Solution<T> {
    let samples = full.samples();
    let system = System::new(
        samples.points().select_rows(centers),
        full.targets().select_rows(centers),
        *full.kernel(),
        1.0,
    );
    let problem = Problem {
        source: match held {
            true => Source::Held(samples.clone()),
            false => Source::Read(Arc::new(samples.points().clone().into_dense())),
        },
        truth: Truth::Values(full.targets().cast()),
        outputs: full.outputs(),
        weights: weights.map(<[f64]>::to_vec),
        centers: samples.select(centers),
        center_weights: match weights {
            Some(weights) => centers.iter().map(|&i| weights[i]).collect(),
            None => vec![1.0; centers.len()],
        },
        kernel: *full.kernel(),
        lambda: match weights {
            Some(weights) => full.lambda(0) * weights[0],
            None => full.lambda(0),
        },
        ranks: Ranks::default(),
    };
    let solver = Centers::new(problem, tolerance, Precision::F64).unwrap();
    run_on(
        &system.unwrap(),
        (Box::new(solver), Method::Centers),
        &limits(tolerance, iterations),
        [&mut None, &mut None],
        0,
        &mut Silent,
        Course::default(),
    )
    .unwrap()
}

/// Scores of all rows of a system.
fn scores<T: Scalar>(full: &System<T>, centers: &[usize], w: &Bordered<T>) -> Matrix<f64> {
    let support = full.samples().select(centers);
    let omega = kernel_matrix(full.kernel(), full.samples(), &support);
    Matrix::from_fn(full.n(), full.outputs(), |i, c| {
        let terms =
            (0..centers.len()).map(|j| omega.get(i, j).to_f64() * w.rows.get(j, c).to_f64());
        terms.sum::<f64>() + w.bias[c].to_f64()
    })
}

fn largest_difference(a: &Matrix<f64>, b: &Matrix<f64>) -> f64 {
    let pairs = a.values().iter().zip(b.values());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn exact<T: Scalar>(system: &System<T>) -> Solution<T> {
    let plan = Plan {
        method: Method::Exact,
        block_size: 1,
        seed: 1,
        averages: 1,
        rank: None,
        tolerance: 0.0,
        loo: false,
    };
    let limits = limits(0.0, 1);
    run(system, &plan, &limits, &mut None, &mut None, 0, &mut Silent).unwrap()
}

const KERNELS: [Kernel; 4] = [
    Kernel::Rbf { gamma: 2.0 },
    Kernel::Laplacian { gamma: 0.5 },
    Kernel::Linear,
    Kernel::Poly {
        gamma: 0.5,
        coef0: 1.0,
        degree: 3,
    },
];

#[test]
fn with_every_row_a_centre_it_is_the_full_solution() {
    for kernel in KERNELS {
        for (n, k) in [(2, 1), (60, 3), (200, 2)] {
            let system = problem::<f64>(n, 3, k, kernel, 2.0);
            let all: Vec<usize> = (0..n).collect();
            let solution = fitted(&system, &all, None, true, (1e-5, 100));
            let found = scores(&system, &all, &solution.weights);
            let full = scores(&system, &all, &exact(&system).weights);
            let difference = largest_difference(&found, &full);
            assert!(difference < 1e-3, "{kernel:?}, n = {n}: {difference:.1e}");
            assert_eq!(solution.stopped, Stopped::Tolerance, "{kernel:?}, n = {n}");
            assert!(solution.residual.unwrap().exact);
        }
    }
}

#[test]
fn weights_are_those_of_the_full_solution() {
    let kernel = Kernel::Rbf { gamma: 2.0 };
    let n = 200;
    let weights: Vec<f64> = (0..n).map(|i| 0.5 + (i % 4) as f64).collect();
    let system = problem::<f64>(n, 3, 2, kernel, 2.0);
    let system = system.with_weights(&weights).unwrap();
    let all: Vec<usize> = (0..n).collect();
    let solution = fitted(&system, &all, Some(&weights), true, (1e-9, 300));
    let found = scores(&system, &all, &solution.weights);
    let full = scores(&system, &all, &exact(&system).weights);
    assert!(largest_difference(&found, &full) < 1e-5);
}

/// The normal equations of centres and bias, written out and solved in `f64`.
fn written_out(system: &System<f64>, centers: &[usize]) -> Bordered<f64> {
    let support = system.samples().select(centers);
    let k = kernel_matrix(system.kernel(), system.samples(), &support);
    let own = kernel_matrix(system.kernel(), &support, &support);
    let (n, p, lambda) = (system.n(), centers.len(), system.lambda(0));
    let value = |i: usize, j: usize| if j == p { 1.0 } else { k.get(i, j) };
    let normal = Matrix::from_fn(p + 1, p + 1, |a, b| {
        let sum: f64 = (0..n).map(|i| value(i, a) * value(i, b)).sum();
        let penalty = match a < p && b < p {
            true => lambda * own.get(a, b),
            false => 0.0,
        };
        sum + penalty
    });
    let mut x = Matrix::from_fn(p + 1, system.outputs(), |a, c| {
        let terms = (0..n).map(|i| value(i, a) * system.targets().get(i, c));
        terms.sum()
    });
    Cholesky::new(normal).unwrap().solve(x.view_mut());
    Bordered {
        bias: x.row(p).to_vec(),
        rows: x.select_rows(&(0..p).collect::<Vec<_>>()),
    }
}

#[test]
fn few_centres_solve_their_normal_equations() {
    for kernel in KERNELS {
        let system = problem::<f64>(400, 4, 3, kernel, 0.5);
        let centers: Vec<usize> = (0..400).step_by(9).collect();
        let solution = fitted(&system, &centers, None, true, (1e-10, 200));
        let found = scores(&system, &centers, &solution.weights);
        let plain = scores(&system, &centers, &written_out(&system, &centers));
        let difference = largest_difference(&found, &plain);
        assert!(difference < 1e-6, "{kernel:?}: {difference:.1e}");
    }
}

#[test]
fn single_precision_is_near_and_repeated_centres_do_no_harm() {
    let kernel = Kernel::Rbf { gamma: 2.0 };
    let centers: Vec<usize> = (0..400).step_by(9).chain((0..400).step_by(27)).collect();
    let wide = problem::<f64>(400, 4, 3, kernel, 50.0);
    let narrow = problem::<f32>(400, 4, 3, kernel, 50.0);
    let exact = scores(&wide, &centers, &written_out(&wide, &centers));
    let solution = fitted(&narrow, &centers, None, true, (1e-4, 60));
    let found = scores(&narrow, &centers, &solution.weights);
    let difference = largest_difference(&found, &exact);
    assert!(difference < 5e-3, "{difference:.1e}");
}

#[test]
fn rows_that_are_read_give_the_bits_of_rows_that_are_held() {
    let system = problem::<f32>(3000, 4, 2, Kernel::Rbf { gamma: 2.0 }, 10.0);
    let centers: Vec<usize> = (0..3000).step_by(37).collect();
    let held = fitted(&system, &centers, None, true, (0.0, 4));
    let read = fitted(&system, &centers, None, false, (0.0, 4));
    assert_eq!(held.weights, read.weights);
}

#[test]
fn a_kernel_that_is_not_positive_is_refused() {
    let kernel = Kernel::Sigmoid {
        gamma: 1.0,
        coef0: 0.0,
    };
    let system = problem::<f64>(20, 2, 1, kernel, 1.0);
    let problem = Problem {
        source: Source::Held(system.samples().clone()),
        truth: Truth::Values(system.targets().clone()),
        outputs: 1,
        weights: None,
        centers: system.samples().select(&[0, 1]),
        center_weights: vec![1.0; 2],
        kernel,
        lambda: 1.0,
        ranks: Ranks::default(),
    };
    let refused = Centers::new(problem, 1e-3, Precision::F64);
    assert!(refused.is_err_and(|error| error.to_string().contains("positive definite")));
}
