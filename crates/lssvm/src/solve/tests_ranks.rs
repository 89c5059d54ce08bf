//! Rows on several ranks: every method must end where it ends on one.

use std::sync::Arc;

use super::centers::{Centers, Problem, Source};
use super::*;
use crate::kernel::{Kernel, Samples};
use crate::linalg::{Csr, Points, Precision};
use crate::ranks::threads::on_ranks;
use crate::ranks::{Ranks, Shares, Traffic};
use crate::system::{Format, Keep, TILE};

const KERNEL: Kernel = Kernel::Rbf { gamma: 0.5 };

/// A problem without structure, of which each rank has a share.
struct Given {
    n: usize,
    outputs: usize,
    sparse: bool,
    kept: Option<Format>,
}

impl Given {
    fn dense(n: usize) -> Self {
        Self {
            n,
            outputs: 2,
            sparse: false,
            kept: None,
        }
    }

    fn wave(i: usize, j: usize) -> f64 {
        ((i * 37 + j * 101 + i * j) as f64 * 0.7311).sin()
    }

    fn system<T: Scalar>(&self, ranks: &Ranks, unit: usize, keep: Keep) -> System<T> {
        let shares = Shares::even(self.n, unit, ranks);
        let (own, first) = (shares.own().len(), shares.own().start);
        let value = |i: usize, j: usize| match self.sparse && (i + j).is_multiple_of(3) {
            true => T::ZERO,
            false => T::from_f64(Self::wave(i, j)),
        };
        let x = Matrix::from_fn(own, 4, |i, j| value(first + i, j));
        let x: Points<T> = match self.sparse {
            true => Csr::from_dense(&x).into(),
            false => x.into(),
        };
        let y = |i: usize, c: usize| T::from_f64(Self::wave(first + i + 7, c + 4));
        let y = Matrix::from_fn(own, self.outputs, y);
        let weights: Vec<f64> = (first..first + own)
            .map(|i| 0.25 + (i * 7 % 5) as f64)
            .collect();
        let system = System::shared(shares, x, y, KERNEL, 4.0).unwrap();
        let mut system = system.with_weights(&weights).unwrap();
        if let Some(format) = self.kept {
            system.keep_some(format, keep, &mut |_| true).unwrap();
        }
        system
    }
}

/// What a run ended with, all rows together.
struct Found<T: Scalar> {
    weights: Bordered<T>,
    iterations: usize,
    stopped: Stopped,
    residual: f64,
    history: Vec<Iteration>,
    traffic: Traffic,
}

/// Runs a plan on one rank of several; test rows are followed.
fn solved<T: Scalar>(given: &Given, plan: &Plan, limits: &Limits, ranks: &Ranks) -> Found<T> {
    let (unit, keep) = match plan.method {
        Method::GaussSeidel => (gauss_seidel::rows_of_block(plan.block_size), Keep::Rows),
        Method::Pcg => (TILE, Keep::Share),
        _ => (1, Keep::Share),
    };
    let system = given.system::<T>(ranks, unit, keep);
    let rows = Matrix::from_fn(11, 4, |i, j| T::from_f64(Given::wave(i + 1000, j)));
    let truth = Matrix::from_fn(11, given.outputs, Given::wave);
    let mut test = Some(Followed::new(&system, rows, Truth::Values(truth), true));
    let course = Course {
        ranks: ranks.clone(),
        ..Course::default()
    };
    let before = ranks.traffic();
    let solver = (plan.solver(&system).unwrap(), plan.method);
    let rows = [&mut test, &mut None];
    let solution = run_on(&system, solver, limits, rows, 1, &mut Silent, course).unwrap();
    let all = system
        .shares()
        .all_rows(&solution.weights.rows)
        .into_owned();
    Found {
        weights: Bordered {
            bias: solution.weights.bias,
            rows: all,
        },
        iterations: solution.iterations,
        stopped: solution.stopped,
        residual: solution.residual.map_or(0.0, |r| r.relative),
        history: solution.history,
        traffic: ranks.traffic().since(&before),
    }
}

fn plan(method: Method, n: usize, block_size: usize) -> Plan {
    Plan {
        method,
        block_size: match method {
            Method::GaussSeidel => TILE,
            _ => block_size.min(n + 1),
        },
        seed: 3,
        averages: 1,
        rank: Some(n.min(60)),
        tolerance: 1e-9,
        loo: false,
    }
}

fn limits(iterations: usize) -> Limits {
    Limits {
        iterations,
        seconds: None,
        spent: 0.0,
        tolerance: 1e-9,
        patience: None,
    }
}

/// How far two matrices are apart, beside their size.
fn apart<T: Scalar>(a: &Bordered<T>, b: &Bordered<T>) -> f64 {
    let mut difference = a.clone();
    difference.add_scaled(b, -T::ONE);
    let alone = Ranks::default();
    difference.norm(&alone) / b.norm(&alone).max(f64::MIN_POSITIVE)
}

/// Compares runs on 2, 3 and 4 ranks with one on one rank.
fn check<T: Scalar>(given: &Given, plan: &Plan, iterations: usize, tolerance: f64) {
    let limits = limits(iterations);
    // In a pool of one thread, as the ranks are.
    let alone = on_ranks(1, |_| solved::<T>(given, plan, &limits, &Ranks::default()));
    let alone = &alone[0];
    for size in 1..5 {
        let what = format!("{} on {size} ranks, {} rows", plan.method, given.n);
        let all = on_ranks(size, |ranks| solved::<T>(given, plan, &limits, &ranks));
        for found in &all {
            // All ranks say the same, to the last bit.
            assert_eq!(found.weights, all[0].weights, "{what}");
            if given.kept != Some(Format::Half) {
                assert_eq!(found.iterations, alone.iterations, "{what}");
            }
            assert_eq!(found.stopped, alone.stopped, "{what}");
            assert!(
                (found.residual - alone.residual).abs() < tolerance,
                "{what}"
            );
            let far = apart(&found.weights, &alone.weights);
            assert!(far <= tolerance, "{what}: {far}");
            let lines = match given.kept {
                Some(Format::Half) => 0,
                _ => alone.history.len(),
            };
            for (line, expected) in found.history.iter().zip(&alone.history).take(lines) {
                let error = |line: &Iteration| line.test_error.unwrap();
                let difference = (error(line) - error(expected)).abs();
                assert!(difference <= tolerance * error(expected).max(1.0), "{what}");
            }
            assert_eq!(found.traffic.total() == 0, size == 1, "{what}");
        }
        if size == 1 {
            assert_eq!(all[0].weights, alone.weights, "{what}");
        }
    }
}

/// Rounding of sums in another order, beside weights of size one.
const ROUNDING: f64 = 1e-10;

#[test]
fn block_methods_end_where_one_rank_ends() {
    let methods = [
        Method::Mp,
        Method::Kaczmarz,
        Method::KaczmarzMp,
        Method::Nystrom,
    ];
    // Fewer rows than ranks, a row each, and rows that do not come out even.
    for n in [1, 3, 4, 50, 103] {
        for method in methods {
            let averages = if n == 50 { 2 } else { 1 };
            let plan = Plan {
                averages,
                ..plan(method, n, 12)
            };
            check::<f64>(&Given::dense(n), &plan, 20, ROUNDING);
        }
    }
    let sparse = Given {
        sparse: true,
        ..Given::dense(90)
    };
    check::<f64>(&sparse, &plan(Method::Mp, 90, 12), 20, ROUNDING);
    // In single precision sums are rounded to 6·10⁻⁸, and the Gram matrices of some steps
    // are ill-conditioned.
    check::<f32>(&Given::dense(103), &plan(Method::Mp, 103, 12), 20, 1e-4);
}

#[test]
fn methods_on_the_whole_matrix_end_where_one_rank_ends() {
    for method in [Method::Pcg, Method::GaussSeidel] {
        for n in [3, 2 * TILE + 301] {
            for kept in [None, Some(Format::Full)] {
                let given = Given {
                    kept,
                    ..Given::dense(n)
                };
                // Conjugate gradients magnify rounding from step to step.
                check::<f64>(&given, &plan(method, n, 0), 6, 1e-8);
            }
        }
        let sparse = Given {
            sparse: true,
            ..Given::dense(TILE + 30)
        };
        check::<f64>(&sparse, &plan(method, sparse.n, 0), 4, 1e-8);
        // The columns of a preconditioner are rounded to half precision on one rank alone, so
        // that several take another way to the same end.
        let half = Given {
            kept: Some(Format::Half),
            ..Given::dense(TILE + 30)
        };
        check::<f64>(&half, &plan(method, half.n, 0), 40, 1e-6);
    }
}

#[test]
fn rows_begin_anywhere_in_a_product() {
    // Shares that are not whole tiles, as those of block methods are.
    let given = Given::dense(TILE + 500);
    let product = |ranks: &Ranks, kept: Option<Keep>| {
        let mut system = given.system::<f64>(ranks, 1, Keep::Share);
        if let Some(keep) = kept {
            let format = Format::Full;
            system.keep_some(format, keep, &mut |_| true).unwrap();
        }
        let w = system.right_hand_side();
        let certificate = system.certify(&w);
        let product = system.shifted_product(&w.rows);
        (system.shares().all_rows(&product).into_owned(), certificate)
    };
    let (expected, certain) = product(&Ranks::default(), None);
    for size in 2..5 {
        for kept in [None, Some(Keep::Share), Some(Keep::Rows)] {
            for (found, certificate) in on_ranks(size, |ranks| product(&ranks, kept)) {
                let pairs = found.values().iter().zip(expected.values());
                let off = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(off < 1e-10, "{off}");
                let off = (certificate.objective / certain.objective - 1.0).abs();
                assert!(off < 1e-10, "{off}");
            }
        }
    }
}

#[test]
fn a_model_of_centres_is_that_of_one_rank() {
    let (n, k) = (1300, 2);
    let centers: Vec<usize> = (0..n).step_by(17).collect();
    let fitted = |ranks: &Ranks, held: bool| {
        let all = Given::dense(n).system::<f64>(&Ranks::default(), 1, Keep::Share);
        let shares = Shares::even(n, 1, ranks);
        let own: Vec<usize> = shares.own().collect();
        let points = all.samples().points();
        let system = System::new(
            points.select_rows(&centers),
            all.targets().select_rows(&centers),
            KERNEL,
            4.0,
        );
        let x = points.select_rows(&own);
        let problem = Problem {
            source: match held {
                true => Source::Held(Samples::new(x, &KERNEL)),
                false => Source::Read(Arc::new(x.into_dense())),
            },
            truth: Truth::Values(all.targets().select_rows(&own)),
            outputs: k,
            weights: Some(own.iter().map(|&i| 1.0 + (i % 3) as f64).collect()),
            centers: all.samples().select(&centers),
            center_weights: centers.iter().map(|&i| 1.0 + (i % 3) as f64).collect(),
            kernel: KERNEL,
            lambda: 0.25,
            ranks: ranks.clone(),
        };
        let solver = Centers::new(problem, 1e-9, Precision::F64).unwrap();
        let course = Course {
            ranks: ranks.clone(),
            ..Course::default()
        };
        let solver: (Box<dyn Solver<f64>>, _) = (Box::new(solver), Method::Centers);
        let rows = [&mut None, &mut None];
        let system = system.unwrap();
        let limits = limits(30);
        run_on(&system, solver, &limits, rows, 0, &mut Silent, course).unwrap()
    };
    let expected = fitted(&Ranks::default(), true);
    for size in 2..5 {
        for held in [true, false] {
            for found in on_ranks(size, |ranks| fitted(&ranks, held)) {
                assert_eq!(found.iterations, expected.iterations);
                let far = apart(&found.weights, &expected.weights);
                assert!(far < 1e-6, "{size} ranks: {far}");
            }
        }
    }
}

/// The bytes of a step, as docs/distributed.md reckons them.
#[test]
fn a_step_of_a_block_method_costs_what_is_said() {
    let (n, j, m, k) = (60, 10, 4, 2);
    let given = Given::dense(n);
    let of = |method: Method, iterations: usize| {
        let limits = Limits {
            tolerance: 0.0,
            ..limits(iterations)
        };
        let plan = plan(method, n, j);
        on_ranks(3, |ranks| {
            solved::<f64>(&given, &plan, &limits, &ranks).traffic
        })[0]
    };
    let step = |method: Method| {
        let (few, many) = (of(method, 4), of(method, 5));
        (many.summed - few.summed, many.gathered - few.gathered)
    };
    let value = size_of::<f64>() as u64;
    let (summed, gathered) = step(Method::Mp);
    // The J rows, and the outcome of the step, which is told by nobody who succeeds.
    assert_eq!(gathered, value * (j * m) as u64);
    // The Gram matrix, Θ_sᵀR, two norms, and the scores of 11 test rows.
    let sums = j * (j + 1) / 2 + j * k + 2 + 11 * k;
    assert_eq!(summed, value * sums as u64);
}
