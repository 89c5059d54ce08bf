//! The paper's methods on the first 6,000 MNIST images, block by block as an independent
//! implementation draws them (`benchmarks/reference.py`, seed 0: numpy's generator, and an
//! explicit Θ): the errors on all 10,000 test images are its errors.
//!
//! Before convergence they depend on the blocks (by 0.17 % after one pass of `kaczmarz`), so that
//! only with the same ones a single run can be held to a number.

use std::path::Path;

use super::*;
use crate::data::{Dataset, ReadOptions, Targets, Task, read};
use crate::kernel::Kernel;

const ROWS: usize = 6_000;
const BLOCK: usize = 600;
/// Blocks in one pass over the data.
const PASS: usize = ROWS / BLOCK;
/// By how much errors may differ, in percent: three images of 10,000.
const TOLERANCE: f64 = 0.03;

/// numpy.random.default_rng(0).permutation(6001), six in turn.
fn permutations() -> Vec<Vec<usize>> {
    let file = include_bytes!("../../tests/mnist/permutations.npy");
    let values = &file[file.len() - 6 * size_of::<u16>() * (ROWS + 1)..];
    let values = values.chunks(2).map(|v| u16::from_le_bytes([v[0], v[1]]));
    let values: Vec<usize> = values.map(usize::from).collect();
    values.chunks(ROWS + 1).map(<[usize]>::to_vec).collect()
}

/// Each image less its mean, and of norm 1 (eqs. 61 and 62), and its digit.
fn prepared(images: &Dataset<f32>, rows: usize) -> (Matrix<f32>, Vec<u32>) {
    let row = |i: usize| {
        let row = images.features.row(i);
        let mean = row.iter().sum::<f32>() / row.len() as f32;
        let centred: Vec<f32> = row.iter().map(|v| v - mean).collect();
        let norm = centred.iter().map(|v| v * v).sum::<f32>().sqrt();
        centred.into_iter().map(move |v| v / norm)
    };
    let values = (0..rows).flat_map(row).collect();
    let features = Matrix::from_vec(rows, images.features.cols(), values);
    let labels = images.labels.as_ref().unwrap();
    let Targets::Classes { codes, .. } = labels.resolve(Task::Classification).unwrap() else {
        panic!("digits are classes");
    };
    (features, codes[..rows].to_vec())
}

#[test]
fn errors_are_those_of_the_reference() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/mnist");
    let parts = read::<f32>(&folder, &ReadOptions::default()).unwrap();
    let (train, digits) = prepared(&parts.train, ROWS);
    let (test, truth) = prepared(parts.test.as_ref().unwrap(), 10_000);
    let kernel = Kernel::Poly {
        gamma: 1.0,
        coef0: 0.0,
        degree: 4,
    };
    let targets = Truth::Classes(digits).targets(10);
    let system = System::new(train, targets, kernel, 1e4).unwrap();
    let followed = Followed::new(&system, test, Truth::Classes(truth), true);

    let errors = |solver: Box<dyn Solver<f32>>, method: Method, iterations: usize| -> Vec<f64> {
        let mut test = Some(followed.again());
        let (rows, course) = ([&mut test, &mut None], Course::default());
        let (limits, solver) = (Limits::after(iterations), (solver, method));
        let solution = run_on(&system, solver, &limits, rows, 1, &mut Silent, course).unwrap();
        let errors = solution.history.iter().map(|i| i.test_error.unwrap());
        errors.map(|error| 100.0 * error).collect()
    };
    let check = |method: Method, errors: Vec<f64>, expected: &[(usize, f64)]| {
        for &(iteration, expected) in expected {
            let error = errors[iteration - 1];
            let off = (error - expected).abs();
            assert!(
                off < TOLERANCE,
                "{method}, {iteration}: {error:.2}, not {expected}"
            );
        }
    };
    let blocks = || Blocks::of(permutations(), BLOCK);

    let solver = Box::new(matching_pursuit::MatchingPursuit::new(&system, blocks()));
    let found = errors(solver, Method::Mp, 4 * PASS);
    let expected = [(1, 5.49), (PASS, 3.25), (25, 3.10), (4 * PASS, 3.04)];
    check(Method::Mp, found, &expected);

    let solver = Box::new(kaczmarz::Kaczmarz::new(&system, blocks()));
    let found = errors(solver, Method::Kaczmarz, 6 * PASS);
    let expected = [(1, 7.27), (PASS, 3.58), (4 * PASS, 3.20), (6 * PASS, 3.10)];
    check(Method::Kaczmarz, found, &expected);

    let solver = Box::new(kaczmarz_mp::KaczmarzMp::new(&system, blocks()));
    let found = errors(solver, Method::KaczmarzMp, 3 * PASS);
    let expected = [(1, 21.80), (PASS, 3.48), (3 * PASS, 3.14)];
    check(Method::KaczmarzMp, found, &expected);

    let solver = Box::new(nystrom::Nystrom::new(&system, blocks()));
    let found = errors(solver, Method::Nystrom, PASS);
    let expected = [(1, 5.05), (6, 4.39), (PASS, 4.39)];
    check(Method::Nystrom, found, &expected);
}
