//! Every method against the paper's equations written out with an explicit Θ
//! and an explicit pseudo-inverse, in `f64`.

use super::*;
use crate::kernel::Kernel;
use crate::linalg::dense::Backend;
use crate::system::tests::{problem, theta};

const KERNELS: [Kernel; 5] = [
    Kernel::Linear,
    Kernel::Poly {
        gamma: 0.5,
        coef0: 1.0,
        degree: 3,
    },
    Kernel::Rbf { gamma: 0.5 },
    Kernel::Laplacian { gamma: 0.3 },
    Kernel::Sigmoid {
        gamma: 0.2,
        coef0: 0.1,
    },
];

fn plan(method: Method, block_size: usize, seed: u64) -> Plan {
    Plan {
        method,
        block_size,
        seed,
        averages: 1,
        rank: None,
        tolerance: 0.0,
        loo: false,
    }
}

fn limits(iterations: usize) -> Limits {
    Limits::after(iterations)
}

/// Methods that solve the system of all rows.
fn of_the_system() -> impl Iterator<Item = Method> {
    let methods = Method::ALL.into_iter();
    methods.filter(|method| *method != Method::Centers)
}

fn solve<T: Scalar>(system: &System<T>, plan: Plan, iterations: usize) -> Solution<T> {
    run(
        system,
        &plan,
        &limits(iterations),
        &mut None,
        &mut None,
        0,
        &mut Silent,
    )
    .unwrap()
}

/// N+1 × K, with the bias first.
fn stacked<T: Scalar>(w: &Bordered<T>) -> Matrix<f64> {
    Matrix::from_fn(w.rows.rows() + 1, w.bias.len(), |i, k| w.row(i)[k].to_f64())
}

fn product(a: &Matrix<f64>, b: &Matrix<f64>) -> Matrix<f64> {
    Matrix::from_fn(a.rows(), b.cols(), |i, k| {
        (0..a.cols()).map(|j| a.get(i, j) * b.get(j, k)).sum()
    })
}

fn transpose(a: &Matrix<f64>) -> Matrix<f64> {
    Matrix::from_fn(a.cols(), a.rows(), |i, j| a.get(j, i))
}

fn combine(a: &Matrix<f64>, b: &Matrix<f64>, factor: f64) -> Matrix<f64> {
    Matrix::from_fn(a.rows(), a.cols(), |i, j| {
        a.get(i, j) + factor * b.get(i, j)
    })
}

/// X with AX = B by Gaussian elimination with pivoting: slow and obvious.
fn gauss(a: &Matrix<f64>, b: &Matrix<f64>) -> Matrix<f64> {
    let (n, k) = (a.rows(), b.cols());
    let (mut a, mut b) = (a.clone(), b.clone());
    for c in 0..n {
        let pivot = (c..n).max_by(|&i, &j| a.get(i, c).abs().total_cmp(&a.get(j, c).abs()));
        let pivot = pivot.unwrap();
        for j in 0..n {
            let (x, y) = (a.get(c, j), a.get(pivot, j));
            a.set(c, j, y);
            a.set(pivot, j, x);
        }
        for j in 0..k {
            let (x, y) = (b.get(c, j), b.get(pivot, j));
            b.set(c, j, y);
            b.set(pivot, j, x);
        }
        for i in c + 1..n {
            let factor = a.get(i, c) / a.get(c, c);
            for j in c..n {
                a.set(i, j, a.get(i, j) - factor * a.get(c, j));
            }
            for j in 0..k {
                b.set(i, j, b.get(i, j) - factor * b.get(c, j));
            }
        }
    }
    for j in 0..k {
        for i in (0..n).rev() {
            let sum: f64 = (i + 1..n).map(|l| a.get(i, l) * b.get(l, j)).sum();
            b.set(i, j, (b.get(i, j) - sum) / a.get(i, i));
        }
    }
    b
}

/// A† = (AᵀA)⁻¹Aᵀ for a tall matrix of full rank.
fn pseudo_inverse(a: &Matrix<f64>) -> Matrix<f64> {
    let t = transpose(a);
    gauss(&product(&t, a), &t)
}

fn columns(a: &Matrix<f64>, s: &[usize]) -> Matrix<f64> {
    Matrix::from_fn(a.rows(), s.len(), |i, j| a.get(i, s[j]))
}

fn distance(a: &Matrix<f64>, b: &Matrix<f64>) -> f64 {
    combine(a, b, -1.0).frobenius_norm() / b.frobenius_norm()
}

fn reference(system: &System<f64>) -> Matrix<f64> {
    gauss(&theta(system), &stacked(&system.right_hand_side()))
}

#[test]
fn exact_agrees_with_a_dense_solve_of_theta() {
    for kernel in KERNELS {
        for (n, k) in [(1, 1), (2, 2), (40, 1), (61, 26), (150, 10)] {
            // A single row with targets Y: a = 0, b = Y.
            let system = problem::<f64>(n, 6, k, kernel, 10.0);
            let solution = solve(&system, plan(Method::Exact, 1, 0), 1);
            let error = distance(&stacked(&solution.weights), &reference(&system));
            assert!(error < 1e-8, "{kernel:?}, n = {n}, K = {k}: {error:.1e}");
            assert_eq!(solution.stopped, Stopped::Solved);
            assert!(solution.residual.unwrap().relative < 1e-10);

            let single = problem::<f32>(n, 6, k, kernel, 10.0);
            let solution = solve(&single, plan(Method::Exact, 1, 0), 1);
            let error = distance(&stacked(&solution.weights), &reference(&system));
            assert!(
                error < 1e-4,
                "f32 {kernel:?}, n = {n}, K = {k}: {error:.1e}"
            );
        }
    }
}

#[test]
fn exact_solves_with_duplicate_rows_and_constant_features() {
    let wave = |i: usize, j: usize| ((i * 5 + j * 3) as f64).sin();
    let x = Matrix::from_fn(60, 4, |i, j| match j {
        0 => 2.5,
        1 => 0.0,
        _ => wave(i % 20, j),
    });
    let y = Matrix::from_fn(60, 3, |i, k| wave(k, i));
    for kernel in KERNELS {
        let system = System::new(x.clone(), y.clone(), kernel, 100.0).unwrap();
        let solution = solve(&system, plan(Method::Exact, 1, 0), 1);
        let error = distance(&stacked(&solution.weights), &reference(&system));
        assert!(error < 1e-8, "{kernel:?}: {error:.1e}");
    }
}

#[test]
fn steps_are_those_of_the_paper() {
    for kernel in KERNELS {
        let system = problem::<f64>(37, 5, 3, kernel, 5.0);
        let (theta, z) = (theta(&system), stacked(&system.right_hand_side()));
        let j = 9;
        for method in [
            Method::Mp,
            Method::Kaczmarz,
            Method::KaczmarzMp,
            Method::Nystrom,
        ] {
            let mut blocks = Blocks::new(38, j, 3);
            let mut w = Matrix::<f64>::zeros(38, 3);
            let mut r = z.clone();
            for step in 1..=6 {
                let s = blocks.draw().to_vec();
                let strip = columns(&theta, &s);
                if matches!(method, Method::Mp | Method::KaczmarzMp) {
                    let q = product(&pseudo_inverse(&strip), &r);
                    for (i, &index) in s.iter().enumerate() {
                        (0..3).for_each(|k| w.set(index, k, w.get(index, k) + q.get(i, k)));
                    }
                    r = combine(&r, &product(&strip, &q), -1.0);
                }
                if matches!(method, Method::Kaczmarz | Method::KaczmarzMp) {
                    // Standardised rows, their targets, and A† = Aᵀ(AAᵀ)⁻¹.
                    let norms: Vec<f64> = (0..j)
                        .map(|a| columns(&strip, &[a]).frobenius_norm())
                        .collect();
                    let a = Matrix::from_fn(j, 38, |i, l| strip.get(l, i) / norms[i]);
                    let b = Matrix::from_fn(j, 3, |i, k| z.get(s[i], k) / norms[i]);
                    let inverse = transpose(&pseudo_inverse(&transpose(&a)));
                    let change = product(&inverse, &combine(&b, &product(&a, &w), -1.0));
                    w = combine(&w, &change, 1.0);
                }
                if method == Method::Nystrom {
                    let square = Matrix::from_fn(j, j, |a, b| theta.get(s[a], s[b]));
                    let inverse = pseudo_inverse(&strip);
                    let inner = product(&square, &product(&inverse, &z));
                    let member = product(&transpose(&inverse), &inner);
                    w = combine(&w, &combine(&member, &w, -1.0), 1.0 / step as f64);
                }
                let solution = solve(&system, plan(method, j, 3), step);
                let error = distance(&stacked(&solution.weights), &w);
                assert!(
                    error < 1e-8,
                    "{method} {kernel:?}, step {step}: {error:.1e}"
                );
            }
        }
    }
}

#[test]
fn iterative_methods_converge_to_the_exact_solution() {
    let system = problem::<f64>(90, 5, 4, Kernel::Rbf { gamma: 1.0 }, 2.0);
    let exact = reference(&system);
    for method in [Method::Mp, Method::Kaczmarz, Method::KaczmarzMp] {
        let solution = solve(&system, plan(method, 20, 1), 400);
        let error = distance(&stacked(&solution.weights), &exact);
        assert!(error < 1e-6, "{method}: {error:.1e}");
        let averaged = Plan {
            averages: 3,
            ..plan(method, 20, 1)
        };
        let solution = solve(&system, averaged, 400);
        let error = distance(&stacked(&solution.weights), &exact);
        assert!(error < 1e-6, "mean of {method}: {error:.1e}");
    }
}

#[test]
fn a_block_of_everything_solves_in_one_step() {
    let system = problem::<f64>(30, 4, 2, Kernel::Rbf { gamma: 0.7 }, 3.0);
    for method in [Method::Mp, Method::Kaczmarz, Method::Nystrom] {
        let solution = solve(&system, plan(method, 31, 5), 1);
        let error = distance(&stacked(&solution.weights), &reference(&system));
        assert!(error < 1e-7, "{method}: {error:.1e}");
    }
}

#[test]
fn the_residual_of_mp_never_rises_and_is_the_true_one() {
    let system = problem::<f64>(120, 6, 3, KERNELS[1], 50.0);
    let solution = solve(&system, plan(Method::Mp, 25, 2), 60);
    let residuals: Vec<f64> = solution
        .history
        .iter()
        .map(|i| i.residual.unwrap().relative)
        .collect();
    assert!(
        residuals.windows(2).all(|w| w[1] <= w[0] * (1.0 + 1e-12)),
        "{residuals:?}"
    );
    let true_residual = system.relative_residual(&solution.weights);
    assert!((true_residual - residuals[59]).abs() < 1e-10);
}

#[test]
fn kaczmarz_never_moves_away_from_the_solution() {
    let system = problem::<f64>(80, 6, 2, KERNELS[2], 20.0);
    let exact = reference(&system);
    let mut before = f64::INFINITY;
    for steps in 1..40 {
        let solution = solve(&system, plan(Method::Kaczmarz, 15, 4), steps);
        let now = distance(&stacked(&solution.weights), &exact);
        assert!(
            now <= before * (1.0 + 1e-9),
            "step {steps}: {before} to {now}"
        );
        before = now;
    }
}

#[test]
fn rank_deficient_blocks_get_jitter_and_say_so() {
    // 50 copies of the same two rows, and c so large that λ vanishes in f32.
    let x = Matrix::from_fn(100, 3, |i, j| ((i % 2) * 2 + j) as f32);
    let y = Matrix::from_fn(100, 2, |i, k| if i % 2 == k { 1.0 } else { 0.0 });
    let system = System::new(x, y, Kernel::Linear, 1e12).unwrap();
    for method in [
        Method::Mp,
        Method::Kaczmarz,
        Method::KaczmarzMp,
        Method::Nystrom,
    ] {
        let solution = solve(&system, plan(method, 40, 1), 5);
        assert!(
            solution.jitter > 0.0 && solution.jitter < 1e-3,
            "{method}: {}",
            solution.jitter
        );
        assert!(solution.weights.norm(system.ranks()).is_finite());
    }
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let system = problem::<f32>(200, 8, 3, KERNELS[2], 10.0);
    for method in of_the_system() {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(2)
            .build()
            .unwrap();
        let run = || pool.install(|| solve(&system, plan(method, 50, 7), 8).weights);
        assert_eq!(run(), run(), "{method}");
    }
    let other = solve(&system, plan(Method::Mp, 50, 8), 8).weights;
    assert_ne!(solve(&system, plan(Method::Mp, 50, 7), 8).weights, other);
}

#[test]
fn the_followed_error_is_that_of_the_weights() {
    let system = problem::<f64>(150, 5, 3, KERNELS[2], 10.0);
    let rows = problem::<f64>(40, 5, 3, KERNELS[2], 10.0)
        .into_samples()
        .into_points();
    let truth: Vec<u32> = (0..40).map(|i| i % 3).collect();
    for method in of_the_system() {
        for (averages, stored) in [(1, true), (1, false), (2, false)] {
            let plan = Plan {
                averages,
                ..plan(method, 40, 1)
            };
            let follow =
                || Followed::new(&system, rows.clone(), Truth::Classes(truth.clone()), stored);
            let solution = run(
                &system,
                &plan,
                &limits(7),
                &mut Some(follow()),
                &mut None,
                1,
                &mut Silent,
            )
            .unwrap();
            let mut fresh = follow();
            fresh.evaluate(&system, &solution.weights);
            let last = solution.history.last().unwrap();
            assert_eq!(last.test_error, Some(fresh.error()), "{method}");
        }
    }
}

/// Stops after so many iterations.
struct StopAfter(usize);

impl Observer for StopAfter {
    fn iteration(&mut self, iteration: &Iteration) -> Flow {
        if iteration.iteration >= self.0 {
            Flow::Stop
        } else {
            Flow::Continue
        }
    }
}

#[test]
fn runs_end_for_the_reason_they_say() {
    let system = problem::<f64>(100, 5, 2, KERNELS[2], 2.0);
    let plan = plan(Method::Mp, 30, 1);
    let run = |limits: Limits, observer: &mut dyn Observer| {
        run(&system, &plan, &limits, &mut None, &mut None, 0, observer).unwrap()
    };
    let many = limits(500);
    assert_eq!(run(limits(3), &mut Silent).stopped, Stopped::Iterations);
    let stopped = run(many, &mut StopAfter(4));
    assert_eq!(
        (stopped.stopped, stopped.iterations),
        (Stopped::Interrupted, 4)
    );
    // A committee knows no residual; its mean settles as 1/t.
    let committee = Plan {
        method: Method::Nystrom,
        ..plan
    };
    let limits = Limits {
        tolerance: 0.02,
        ..many
    };
    let still = super::run(
        &system,
        &committee,
        &limits,
        &mut None,
        &mut None,
        0,
        &mut Silent,
    )
    .unwrap();
    assert_eq!(still.stopped, Stopped::NoImprovement);
    let whole = Plan {
        block_size: 101,
        ..plan
    };
    let limits = Limits {
        tolerance: 1e-6,
        ..many
    };
    let solved = super::run(
        &system,
        &whole,
        &limits,
        &mut None,
        &mut None,
        0,
        &mut Silent,
    )
    .unwrap();
    assert_eq!((solved.stopped, solved.iterations), (Stopped::Tolerance, 1));
    assert!(solved.residual.unwrap().relative <= 1e-6);
    let brief = run(
        Limits {
            seconds: Some(1e-9),
            ..many
        },
        &mut Silent,
    );
    assert_eq!((brief.stopped, brief.iterations), (Stopped::Time, 1));
    // Of an hour that is gone before the first step, nothing is left.
    let hour = Limits {
        seconds: Some(3600.0),
        spent: 3600.0,
        ..many
    };
    let late = run(hour, &mut Silent);
    assert_eq!((late.stopped, late.iterations), (Stopped::Time, 1));
    assert!(late.history[0].seconds >= 3600.0 && late.seconds >= 3600.0);
}

#[test]
fn patience_keeps_the_best_weights() {
    // Noise for targets: the validation error soon stops improving.
    let system = problem::<f64>(120, 5, 3, KERNELS[2], 1e4);
    let rows = Matrix::from_fn(60, 5, |i, j| ((i * 11 + j * 17) as f64).cos());
    let truth = Truth::Classes((0..60).map(|i| (i * i) % 3).collect());
    let validation = Followed::new(&system, rows.clone(), truth.clone(), false);
    let limits = Limits {
        patience: Some(5),
        ..limits(200)
    };
    let plan = plan(Method::Mp, 20, 1);
    let solution = run(
        &system,
        &plan,
        &limits,
        &mut None,
        &mut Some(validation),
        1,
        &mut Silent,
    )
    .unwrap();
    assert_eq!(solution.stopped, Stopped::Patience);
    assert_eq!(solution.iterations, solution.best_iteration + 5);
    let mut fresh = Followed::new(&system, rows, truth, false);
    fresh.evaluate(&system, &solution.weights);
    let errors = solution.history.iter().map(|i| i.validation_error.unwrap());
    assert_eq!(fresh.error(), errors.fold(f64::INFINITY, f64::min));
}

#[test]
fn patience_waits_for_the_next_look() {
    // No row is ever right: the first look is the best.
    let system = problem::<f64>(120, 5, 3, KERNELS[2], 1e4);
    let rows = Matrix::from_fn(10, 5, |i, j| ((i * 11 + j * 17) as f64).cos());
    for (every, patience, expected) in [(10, 3, 20), (10, 10, 20), (10, 11, 30), (1, 3, 4)] {
        let truth = Truth::Classes(vec![99; 10]);
        let validation = Followed::new(&system, rows.clone(), truth, false);
        let limits = Limits {
            patience: Some(patience),
            ..limits(200)
        };
        let solution = run(
            &system,
            &plan(Method::Mp, 20, 1),
            &limits,
            &mut None,
            &mut Some(validation),
            every,
            &mut Silent,
        )
        .unwrap();
        assert_eq!(solution.stopped, Stopped::Patience);
        assert_eq!(
            (solution.best_iteration, solution.iterations),
            (every, expected)
        );
    }
}

#[test]
fn bad_parameters_are_refused_with_their_value() {
    let system = problem::<f64>(10, 2, 1, KERNELS[2], 1.0);
    let refused = |plan: Plan, limits: Limits| {
        let result = run(
            &system,
            &plan,
            &limits,
            &mut None,
            &mut None,
            0,
            &mut Silent,
        );
        result.map(|_| ()).unwrap_err().to_string()
    };
    assert!(refused(plan(Method::Mp, 12, 1), limits(1)).contains("block-size = 12"));
    assert!(refused(plan(Method::Mp, 0, 1), limits(1)).contains("block-size = 0"));
    assert!(refused(plan(Method::Mp, 5, 1), limits(0)).contains("iterations = 0"));
    let nan = Limits {
        tolerance: f64::NAN,
        ..limits(1)
    };
    assert!(refused(plan(Method::Mp, 5, 1), nan).contains("tolerance"));
    let none = Plan {
        averages: 0,
        ..plan(Method::Mp, 5, 1)
    };
    assert!(refused(none, limits(1)).contains("averages"));
    assert!(
        "fast"
            .parse::<Method>()
            .unwrap_err()
            .to_string()
            .contains("kaczmarz-mp")
    );
}

#[test]
fn the_indefinite_solver_is_used_for_the_sigmoid_kernel_only() {
    assert!(KERNELS.iter().filter(|k| !k.is_positive()).count() == 1);
    // A symmetric matrix with a negative eigenvalue, for the record.
    let mut a = Matrix::from_rows(&[[1.0f64, 2.0], [2.0, 1.0]]);
    let mut b = Matrix::from_rows(&[[3.0], [3.0]]);
    f64::solve_indefinite(a.view_mut(), b.view_mut());
    assert!((b.get(0, 0) - 1.0).abs() < 1e-12 && (b.get(1, 0) - 1.0).abs() < 1e-12);
}
