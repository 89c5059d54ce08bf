//! The methods on all of Ω+λI, with every store and several thread counts, against
//! the exact solution in `f64`.

use super::*;
use crate::kernel::Kernel;
use crate::system::tests::{problem, theta, weighted_problem};
use crate::system::{Format, TILE};

const STORES: [Option<Format>; 3] = [None, Some(Format::Full), Some(Format::Half)];
const METHODS: [Method; 2] = [Method::Pcg, Method::GaussSeidel];

fn solve<T: Scalar>(
    system: &System<T>,
    method: Method,
    rank: usize,
    tolerance: f64,
) -> Solution<T> {
    let plan = Plan {
        method,
        block_size: match method.wants_kernel() {
            true => TILE,
            false => system.n() + 1,
        },
        seed: 3,
        averages: 1,
        rank: Some(rank.min(system.n())),
        tolerance,
        loo: false,
    };
    let limits = Limits {
        iterations: 400,
        seconds: None,
        spent: 0.0,
        tolerance,
        patience: None,
    };
    run(system, &plan, &limits, &mut None, &mut None, 0, &mut Silent).unwrap()
}

/// A system with this store, and its exact solution in `f64`.
fn system<T: Scalar>(n: usize, k: usize, kept: Option<Format>) -> (System<T>, Bordered<f64>) {
    let kernel = Kernel::Rbf { gamma: 20.0 };
    let exact = solve(&problem::<f64>(n, 3, k, kernel, 2.0), Method::Exact, 1, 0.0);
    let mut system = problem::<T>(n, 3, k, kernel, 2.0);
    if let Some(format) = kept {
        system.keep_kernel(format, &mut |_| true).unwrap();
    }
    (system, exact.weights)
}

fn distance<T: Scalar>(a: &Bordered<T>, b: &Bordered<f64>) -> f64 {
    let (mut part, mut whole) = (0.0, 0.0);
    for i in 0..=b.rows.rows() {
        for (a, b) in a.row(i).iter().zip(b.row(i)) {
            part += (a.to_f64() - b).powi(2);
            whole += b * b;
        }
    }
    (part / whole).sqrt()
}

#[test]
fn every_method_and_store_reaches_the_exact_solution() {
    // Fewer rows than a tile, a tile, and tiles with a rest; one output and many.
    for (n, k) in [(1, 1), (40, 1), (TILE, 3), (2 * TILE + 301, 12)] {
        for kept in STORES {
            // In half precision too: the residual is that of the true matrix.
            let (system, exact) = system::<f64>(n, k, kept);
            for method in METHODS {
                let solution = solve(&system, method, 60, 1e-7);
                let found = distance(&solution.weights, &exact);
                assert!(found < 1e-5, "{method}, n = {n}, {kept:?}: {found:.1e}");
                assert_eq!(solution.stopped, Stopped::Tolerance, "{method} {kept:?}");
                let certificate = solution.certificate.unwrap();
                assert!(certificate.relative_residual <= 1e-7, "{method} {kept:?}");
                assert_eq!(certificate.relative_residuals.len(), k);
            }
        }
    }
}

#[test]
fn single_precision_is_enough_for_a_small_residual() {
    let n = TILE + 200;
    let (system, exact) = system::<f32>(n, 3, Some(Format::Full));
    for method in METHODS {
        let solution = solve(&system, method, 100, 1e-5);
        let residual = solution.residual.unwrap();
        assert!(
            residual.exact && residual.relative < 2e-5,
            "{method}: {residual:?}"
        );
        // The certificate, against a computation of its own in f64.
        let plain = problem::<f64>(n, 3, 3, Kernel::Rbf { gamma: 20.0 }, 2.0);
        let weights = Bordered {
            bias: solution.weights.bias.iter().map(|b| b.to_f64()).collect(),
            rows: solution.weights.rows.cast(),
        };
        let true_residual = plain.relative_residual(&weights);
        assert!((true_residual - residual.relative).abs() < 1e-5, "{method}");
        assert!(distance(&solution.weights, &exact) < 1e-3, "{method}");
    }
}

#[test]
fn the_number_of_threads_changes_rounding_only() {
    let (system, _) = system::<f64>(TILE + 77, 2, Some(Format::Full));
    for method in METHODS {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap().install(|| solve(&system, method, 50, 1e-8))
        };
        let (one, two, again, five) = (with(1), with(2), with(2), with(5));
        assert_eq!(two.weights, again.weights, "{method}: the same bits twice");
        for other in [one, five] {
            let found = distance(&other.weights, &two.weights);
            assert!(found < 1e-7, "{method}: {found:.1e}");
        }
    }
}

#[test]
fn duplicate_rows_and_low_rank_are_solved() {
    // A linear kernel of three features: Ω has rank 3, and more columns were asked
    // for than it has.
    for kept in STORES {
        let kernel = Kernel::Linear;
        let mut system = problem::<f64>(300, 3, 2, kernel, 5.0);
        let exact = solve(&system, Method::Exact, 1, 0.0).weights;
        if let Some(format) = kept {
            system.keep_kernel(format, &mut |_| true).unwrap();
        }
        for method in METHODS {
            let solution = solve(&system, method, 150, 1e-8);
            let found = distance(&solution.weights, &exact);
            assert!(found < 1e-5, "{method} {kept:?}: {found:.1e}");
        }
    }
}

#[test]
fn rows_that_repeat_spoil_no_preconditioner() {
    // Small whole numbers, so that some rows are there twice, and the columns of all of
    // them: C is singular, and rounding decides whether it can be factored.
    for seed in 890..910u64 {
        let mut state = seed;
        let mut draw = |_: usize, _: usize| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            match (state >> 33) as f64 / (1u64 << 31) as f64 {
                v if v < 0.6 => 0.0,
                v => v,
            }
        };
        let x = Matrix::from_fn(40, 3, &mut draw);
        let y = Matrix::from_fn(40, 2, |i, k| ((i * 3 + k) as f64).cos());
        let system = System::new(x, y, Kernel::Rbf { gamma: 2.0 }, 1.0).unwrap();
        let exact = solve(&system, Method::Exact, 1, 0.0).weights;
        let solution = solve(&system, Method::Pcg, 40, 1e-10);
        let found = distance(&solution.weights, &exact);
        assert!(found < 1e-6, "seed {seed}: {found:.1e}");
    }
}

#[test]
fn indicators_of_classes_need_no_column_for_the_bias() {
    let kernel = Kernel::Rbf { gamma: 20.0 };
    let n = TILE + 50;
    let plain = problem::<f64>(n, 3, 1, kernel, 2.0);
    for outputs in [2, 3] {
        let class = |i: usize| (i * i / 7) % outputs;
        let targets = Matrix::from_fn(n, outputs, |i, k| f64::from(u8::from(class(i) == k)));
        let x = plain.samples().points().clone();
        let system = System::new(x, targets, kernel, 2.0).unwrap();
        let exact = solve(&system, Method::Exact, 1, 0.0).weights;
        let solution = solve(&system, Method::Pcg, 40, 1e-10);
        let found = distance(&solution.weights, &exact);
        assert!(found < 1e-6, "{outputs} classes: {found:.1e}");
        let residual = solution.residual.unwrap();
        assert!(residual.exact && residual.relative <= 1e-10);
    }
}

#[test]
fn the_rank_grows_with_the_data_and_stays_below_them() {
    assert_eq!(rank_for(60_000, 784), 2400);
    // No more features than a thousand count.
    assert_eq!(rank_for(50_000, 3072), rank_for(50_000, 1000));
    for n in [1, 5, 99, 100, 1000] {
        assert!((1..=n).contains(&rank_for(n, 10)));
    }
}

#[test]
fn a_row_of_weight_two_is_two_equal_rows() {
    let kernel = Kernel::Rbf { gamma: 5.0 };
    let plain = problem::<f64>(50, 3, 2, kernel, 2.0);
    let twice: Vec<usize> = (0..50).chain(0..10).collect();
    let repeated = System::new(
        plain.samples().points().select_rows(&twice),
        plain.targets().select_rows(&twice),
        kernel,
        2.0,
    );
    let expected = solve(&repeated.unwrap(), Method::Exact, 1, 0.0).weights;
    let mut joined = Bordered::zeros(50, 2);
    joined.bias.copy_from_slice(&expected.bias);
    for (i, &row) in twice.iter().enumerate() {
        let pairs = joined.rows.row_mut(row).iter_mut();
        pairs
            .zip(expected.rows.row(i))
            .for_each(|(sum, &v)| *sum += v);
    }
    let weights: Vec<f64> = (0..50).map(|i| if i < 10 { 2.0 } else { 1.0 }).collect();
    let weighted = plain.with_weights(&weights).unwrap();
    for method in [
        Method::Exact,
        Method::Pcg,
        Method::GaussSeidel,
        Method::Mp,
        Method::Kaczmarz,
        Method::KaczmarzMp,
        Method::Nystrom,
    ] {
        // A block of all rows: one step is the solution.
        let solution = solve(&weighted, method, 20, 1e-9);
        let found = distance(&solution.weights, &joined);
        assert!(found < 1e-6, "{method}: {found:.1e}");
    }
}

/// F, from its definition.
fn objective(system: &System<f64>, w: &Bordered<f64>) -> f64 {
    let (n, theta) = (system.n(), theta(system));
    let omega = |i: usize, j: usize| match i == j {
        true => theta.get(i + 1, j + 1) - system.lambda(i),
        false => theta.get(i + 1, j + 1),
    };
    let mut sum = 0.0;
    for k in 0..system.outputs() {
        for i in 0..n {
            let score: f64 = (0..n).map(|j| omega(i, j) * w.rows.get(j, k)).sum();
            let misfit = system.targets().get(i, k) - score - w.bias[k];
            sum += 0.5 * w.rows.get(i, k) * score + 0.5 / system.lambda(i) * misfit * misfit;
        }
    }
    sum
}

#[test]
fn the_objective_never_falls_by_more_than_the_gap() {
    let system = weighted_problem::<f64>(60, 3, 2, Kernel::Rbf { gamma: 0.5 }, 8.0);
    let exact = solve(&system, Method::Exact, 1, 0.0);
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

/// Passes of Gauss–Seidel, as many as wished, on a system of several blocks.
fn passes(
    kept: Option<Format>,
    iterations: usize,
    observer: &mut dyn Observer,
) -> Result<Solution<f64>> {
    let (system, _) = system::<f64>(5 * TILE + 77, 2, kept);
    let plan = Plan {
        method: Method::GaussSeidel,
        block_size: TILE,
        seed: 3,
        averages: 1,
        rank: None,
        tolerance: 0.0,
        loo: false,
    };
    let limits = Limits::after(iterations);
    run(&system, &plan, &limits, &mut None, &mut None, 0, observer)
}

#[test]
fn the_first_pass_over_half_of_the_kernel_is_that_over_all_of_it() {
    for iterations in [1, 3] {
        let all = passes(Some(Format::Full), iterations, &mut Silent).unwrap();
        let half = passes(None, iterations, &mut Silent).unwrap();
        assert!(distance(&half.weights, &all.weights) < 1e-12);
        let (a, b) = (all.residual.unwrap(), half.residual.unwrap());
        assert!((a.relative - b.relative).abs() < 1e-9, "{a:?} {b:?}");
        assert!(half.certificate.is_some());
    }
}

/// Asks to stop the n-th time it is told how far a step is.
struct StopWithin(usize);

impl Observer for StopWithin {
    fn iteration(&mut self, _: &Iteration) -> Flow {
        match self.0 {
            0 => Flow::Stop,
            _ => Flow::Continue,
        }
    }

    fn progress(&mut self, done: f64) -> Flow {
        assert!((0.0..=1.0).contains(&done));
        self.0 = self.0.saturating_sub(1);
        match self.0 {
            0 => Flow::Stop,
            _ => Flow::Continue,
        }
    }
}

#[test]
fn a_pass_that_is_interrupted_leaves_the_model_so_far() {
    // The blocks' factors are told of first; then six blocks a pass.
    // On one thread, where none waits for another and tells so as long as it waits.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.unwrap();
    let one = pool.install(|| passes(None, 1, &mut Silent)).unwrap();
    let mut seen = Vec::new();
    for tellings in (1..60).step_by(2) {
        let Ok(stopped) = pool.install(|| passes(None, 2, &mut StopWithin(tellings))) else {
            // Before there was anything to keep.
            assert!(seen.is_empty());
            continue;
        };
        if stopped.stopped != Stopped::Interrupted {
            break;
        }
        assert_eq!(stopped.iterations, 1);
        let in_first = stopped.certificate.is_none();
        if !in_first {
            // The second pass was abandoned: this is the model of the first.
            assert_eq!(distance(&stopped.weights, &one.weights), 0.0);
        }
        seen.push(in_first);
    }
    assert!(seen.contains(&true) && seen.contains(&false), "{seen:?}");
    assert!(seen.is_sorted_by(|a, b| a >= b));
}
