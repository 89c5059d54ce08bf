//! Runs that are stopped, written to a file and gone on with, against runs that never
//! stop: the same bits. Runs that begin at the weights of others: the same solution.

use std::time::Duration;

use super::*;
use crate::kernel::Kernel;
use crate::random;
use crate::ranks::Ranks;
use crate::system::tests::{problem, weighted_problem};
use crate::system::{Format, TILE};

const KERNEL: Kernel = Kernel::Rbf { gamma: 3.0 };
const ROWS: usize = 30;

/// The solver of a plan.
fn made<T: Scalar>(plan: &Plan, system: &System<T>) -> (Box<dyn Solver<T>>, Method) {
    (plan.solver(system).unwrap(), plan.method)
}

fn plan(method: Method, n: usize) -> Plan {
    Plan {
        method,
        block_size: match method.wants_kernel() {
            true => TILE,
            false => n / 4,
        },
        seed: 5,
        averages: 1,
        rank: Some(10),
        tolerance: 0.0,
        loo: false,
    }
}

fn limits(iterations: usize, tolerance: f64) -> Limits {
    Limits {
        iterations,
        seconds: None,
        spent: 0.0,
        tolerance,
        patience: None,
    }
}

/// Stops after one iteration more.
struct StopAtOnce;

impl Observer for StopAtOnce {
    fn iteration(&mut self, _: &Iteration) -> Flow {
        Flow::Stop
    }
}

/// Change, residual, test and validation error of an iteration.
type Line = (f64, Option<Residual>, Option<f64>, Option<f64>);

/// What a run ended with, without times.
#[derive(Debug, PartialEq)]
struct Outcome {
    weights: Vec<u64>,
    iterations: usize,
    best: usize,
    jitter: f64,
    history: Vec<Line>,
    certificate: Option<Certificate>,
    scores: Vec<u64>,
}

fn bits<T: Scalar>(values: &[T]) -> Vec<u64> {
    values.iter().map(|v| v.to_f64().to_bits()).collect()
}

struct Case<'a, T: Scalar> {
    system: &'a System<T>,
    plan: Plan,
    iterations: usize,
    start: Option<Bordered<T>>,
}

impl<T: Scalar> Case<'_, T> {
    fn rows(&self, shift: f64) -> Option<Followed<T>> {
        let width = self.system.samples().points().cols();
        let x = Matrix::from_fn(ROWS, width, |i, j| {
            T::from_f64(((i * 13 + j * 7) as f64 + shift).sin())
        });
        let truth = (0..ROWS as u32).map(|i| i % self.system.outputs() as u32);
        let truth = Truth::Classes(truth.collect());
        Some(Followed::new(self.system, x, truth, shift > 0.5))
    }

    /// Runs in one go, or stops after every iteration and goes on from the file.
    fn run(&self, stops: bool) -> Outcome {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint");
        let about = serde_json::Value::Null;
        let mut keeper = Keeper::new(path.clone(), about, Duration::MAX, 0);
        let mut state = None;
        let limits = limits(self.iterations, 0.0);
        loop {
            // Everything new, as in a new process.
            let (mut test, mut validation) = (self.rows(0.1), self.rows(0.9));
            let rows = [&mut test, &mut validation];
            let observer: &mut dyn Observer = match stops {
                true => &mut StopAtOnce,
                false => &mut Silent,
            };
            let course = Course {
                state,
                start: self.start.clone(),
                keeper: Some(&mut keeper),
                ..Course::default()
            };
            let (system, plan) = (self.system, &self.plan);
            let solution = run_on(
                system,
                made(plan, system),
                &limits,
                rows,
                2,
                observer,
                course,
            )
            .unwrap();
            if solution.stopped == Stopped::Interrupted
                && solution.iterations < self.iterations.min(10)
            {
                assert_eq!(keeper.told().iteration, solution.iterations);
                state = Some(read_checkpoint(&path).unwrap().1);
                continue;
            }
            if solution.stopped == Stopped::Interrupted {
                // The rest in one go.
                state = Some(read_checkpoint(&path).unwrap().1);
                let (mut test, mut validation) = (self.rows(0.1), self.rows(0.9));
                let rows = [&mut test, &mut validation];
                let course = Course {
                    state,
                    start: None,
                    keeper: None,
                    ..Course::default()
                };
                let solution = run_on(
                    system,
                    made(plan, system),
                    &limits,
                    rows,
                    2,
                    &mut Silent,
                    course,
                );
                return outcome(solution.unwrap(), &test.unwrap());
            }
            return outcome(solution, &test.unwrap());
        }
    }

    fn check(&self) {
        let (whole, pieces) = (self.run(false), self.run(true));
        assert_eq!(whole.history.len(), self.iterations);
        assert_eq!(pieces, whole, "{:?}", self.plan);
    }
}

fn outcome<T: Scalar>(solution: Solution<T>, test: &Followed<T>) -> Outcome {
    let weights = &solution.weights;
    let line = |i: &Iteration| {
        (
            i.relative_change,
            i.residual,
            i.test_error,
            i.validation_error,
        )
    };
    Outcome {
        weights: [bits(&weights.bias), bits(weights.rows.values())].concat(),
        iterations: solution.iterations,
        best: solution.best_iteration,
        jitter: solution.jitter,
        history: solution.history.iter().map(line).collect(),
        certificate: solution.certificate,
        scores: bits(test.scores().values()),
    }
}

#[test]
fn block_methods_go_on_with_the_same_bits() {
    let n = 101;
    let system = weighted_problem::<f32>(n, 4, 3, KERNEL, 50.0);
    for method in [
        Method::Nystrom,
        Method::Kaczmarz,
        Method::Mp,
        Method::KaczmarzMp,
    ] {
        for averages in [1, 3] {
            let plan = Plan {
                averages,
                ..plan(method, n)
            };
            let case = Case {
                system: &system,
                plan,
                iterations: 13,
                start: None,
            };
            case.check();
        }
    }
}

#[test]
fn jitter_of_the_last_block_is_remembered() {
    // Rows that repeat make every Gram matrix singular; a block of everything is opened once.
    let x = Matrix::from_fn(60, 3, |i, j| ((i % 10 * 7 + j * 3) as f32).sin());
    let y = Matrix::from_fn(60, 2, |i, j| ((i * 5 + j) as f32).cos());
    let system = System::new(x, y, KERNEL, 1e7).unwrap();
    for block_size in [30, 61] {
        let case = Case {
            system: &system,
            plan: Plan {
                block_size,
                ..plan(Method::Mp, 60)
            },
            iterations: 6,
            start: None,
        };
        assert!(case.run(false).jitter > 0.0);
        case.check();
    }
}

#[test]
fn methods_on_all_rows_go_on_with_the_same_bits() {
    let n = TILE + 70;
    for kept in [None, Some(Format::Full), Some(Format::Half)] {
        let mut system = weighted_problem::<f32>(n, 3, 2, Kernel::Rbf { gamma: 20.0 }, 2.0);
        if let Some(format) = kept {
            system.keep_kernel(format, &mut |_| true).unwrap();
        }
        for method in [Method::Pcg, Method::GaussSeidel] {
            let case = Case {
                system: &system,
                plan: plan(method, n),
                iterations: 12,
                start: None,
            };
            case.check();
        }
    }
}

#[test]
fn a_run_from_given_weights_goes_on_with_the_same_bits() {
    let n = 90;
    let system = problem::<f32>(n, 4, 2, KERNEL, 50.0);
    let others = problem::<f32>(n, 4, 2, KERNEL, 20.0);
    let start = solve(&others, Method::Exact, 1, 0.0, None).weights;
    for method in Method::ALL
        .into_iter()
        .filter(|m| m.takes_start() && *m != Method::Centers)
    {
        let case = Case {
            system: &system,
            plan: plan(method, n),
            iterations: 5,
            start: Some(start.clone()),
        };
        case.check();
    }
}

#[test]
fn a_state_of_another_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let saved = |n: usize, method: Method| {
        let system = problem::<f64>(n, 4, 2, KERNEL, 50.0);
        let about = serde_json::Value::Null;
        let mut keeper = Keeper::new(path.clone(), about, Duration::MAX, 0);
        let course = Course {
            keeper: Some(&mut keeper),
            ..Course::default()
        };
        let rows = [&mut None, &mut None];
        let (plan, limits) = (plan(method, n), limits(9, 0.0));
        run_on(
            &system,
            made(&plan, &system),
            &limits,
            rows,
            0,
            &mut StopAtOnce,
            course,
        )
        .unwrap();
        read_checkpoint(&path).unwrap().1
    };
    let go_on = |state: State<'static>, n: usize, method: Method| {
        let system = problem::<f64>(n, 4, 2, KERNEL, 50.0);
        let course = Course {
            state: Some(state),
            ..Course::default()
        };
        let rows = [&mut None, &mut None];
        let (plan, limits) = (plan(method, n), limits(9, 0.0));
        run_on(
            &system,
            made(&plan, &system),
            &limits,
            rows,
            0,
            &mut Silent,
            course,
        )
    };
    for method in [Method::Mp, Method::Pcg, Method::GaussSeidel] {
        assert!(go_on(saved(50, method), 50, method).is_ok());
        for (n, other) in [
            (51, method),
            (50, Method::Kaczmarz),
            (50, Method::KaczmarzMp),
        ] {
            let error = go_on(saved(50, method), n, other).unwrap_err();
            let said = error.to_string();
            assert!(said.contains("does not fit this run"), "{said}");
        }
    }
}

fn solve<T: Scalar>(
    system: &System<T>,
    method: Method,
    iterations: usize,
    tolerance: f64,
    start: Option<&Bordered<T>>,
) -> Solution<T> {
    let plan = Plan {
        tolerance,
        ..plan(method, system.n())
    };
    let course = Course {
        start: start.cloned(),
        ..Course::default()
    };
    let rows = [&mut None, &mut None];
    let limits = limits(iterations, tolerance);
    run_on(
        system,
        made(&plan, system),
        &limits,
        rows,
        0,
        &mut Silent,
        course,
    )
    .unwrap()
}

fn distance(a: &Bordered<f64>, b: &Bordered<f64>) -> f64 {
    let mut difference = a.clone();
    difference.add_scaled(b, -1.0);
    let alone = Ranks::default();
    difference.norm(&alone) / b.norm(&alone)
}

/// These of the rows of a smooth function with some noise.
fn smooth(rows: &[usize], c: f64) -> System<f64> {
    let mut rng = random::rng(9);
    let mut number = || random::below(&mut rng, 1 << 30) as f64 / (1 << 29) as f64 - 1.0;
    let x = Matrix::from_fn(2 * TILE, 3, |_, _| number());
    let y = Matrix::from_fn(x.rows(), 2, |i, k| {
        (3.0 * x.get(i, k)).sin() + x.get(i, 2) + 0.1 * number() + 1.0
    });
    let kernel = Kernel::Rbf { gamma: 2.0 };
    System::new(x.select_rows(rows), y.select_rows(rows), kernel, c).unwrap()
}

#[test]
fn a_start_near_the_solution_saves_iterations() {
    let (tolerance, most) = (1e-3, 4000);
    let solution = |system: &System<f64>| solve(system, Method::Exact, 1, 0.0, None).weights;
    for method in Method::ALL
        .into_iter()
        .filter(|m| m.takes_start() && *m != Method::Centers)
    {
        let n = match method {
            // More than one tile.
            Method::Pcg | Method::GaussSeidel => 2 * TILE,
            _ => 330,
        };
        // New rows lie among the others.
        let all: Vec<usize> = (0..n).collect();
        let old: Vec<usize> = (0..n).filter(|i| i % 11 != 3).collect();
        let first = smooth(&old, 2.0);
        let converged = solve(&first, method, most, tolerance / 10.0, None);
        let start = converged.weights;
        let again = solve(&first, method, most, tolerance, Some(&start));
        assert_eq!(again.iterations, 1, "{method}");
        assert_eq!(again.stopped, Stopped::Tolerance, "{method}");
        assert!(distance(&again.weights, &solution(&first)) < 0.1);

        let mut grown = Bordered::zeros(n, 2);
        grown.bias.clone_from(&start.bias);
        for (place, &row) in old.iter().enumerate() {
            grown
                .rows
                .row_mut(row)
                .copy_from_slice(start.rows.row(place));
        }
        for (system, start) in [(smooth(&old, 2.5), &start), (smooth(&all, 2.0), &grown)] {
            let cold = solve(&system, method, most, tolerance, None);
            let warm = solve(&system, method, most, tolerance, Some(start));
            for run in [&cold, &warm] {
                assert_ne!(run.stopped, Stopped::Iterations, "{method}");
                let found = distance(&run.weights, &solution(&system));
                assert!(found < 0.1, "{method}: {found:.1e}");
            }
            let (fewer, many) = (warm.iterations, cold.iterations);
            assert!(fewer < many, "{method}: {fewer} against {many}");
        }
    }
}

#[test]
fn rows_that_are_gone_do_not_spoil_a_start() {
    // The sum of the weights that are left is far from zero.
    let (n, kernel) = (150, Kernel::Rbf { gamma: 8.0 });
    let more = solve(
        &problem::<f64>(n, 3, 2, kernel, 2.0),
        Method::Exact,
        1,
        0.0,
        None,
    );
    let fewer = problem::<f64>(n - 30, 3, 2, kernel, 2.0);
    let exact = solve(&fewer, Method::Exact, 1, 0.0, None).weights;
    let start = Bordered {
        bias: more.weights.bias.clone(),
        rows: more
            .weights
            .rows
            .select_rows(&(0..n - 30).collect::<Vec<_>>()),
    };
    for method in Method::ALL
        .into_iter()
        .filter(|m| m.takes_start() && *m != Method::Centers)
    {
        let found = solve(&fewer, method, 4000, 1e-8, Some(&start));
        assert!(distance(&found.weights, &exact) < 1e-5, "{method}");
        let certificate = found.certificate.unwrap();
        let residual = fewer.relative_residual(&found.weights);
        assert!((certificate.relative_residual - residual).abs() < 1e-12);
    }
}

#[test]
fn methods_without_a_use_for_a_start_refuse_it() {
    let system = problem::<f64>(30, 3, 2, KERNEL, 2.0);
    for method in [Method::Exact, Method::Nystrom] {
        let course = Course {
            start: Some(Bordered::zeros(30, 2)),
            ..Course::default()
        };
        let rows = [&mut None, &mut None];
        let (plan, limits) = (plan(method, 30), limits(2, 0.0));
        let error = run_on(
            &system,
            made(&plan, &system),
            &limits,
            rows,
            0,
            &mut Silent,
            course,
        )
        .unwrap_err();
        assert!(error.to_string().contains(&method.to_string()), "{error}");
    }
}
