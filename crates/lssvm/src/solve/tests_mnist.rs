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
const TEST_ROWS: usize = 10_000;
/// By how many wrong images of these results may differ.
const TOLERANCE: usize = 5;

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
    let (test, truth) = prepared(parts.test.as_ref().unwrap(), TEST_ROWS);
    let kernel = Kernel::Poly {
        gamma: 1.0,
        coef0: 0.0,
        degree: 4,
    };
    let targets = Truth::Classes(digits).targets(10);
    let system = System::new(train, targets, kernel, 1e4).unwrap();
    let followed = Followed::new(&system, test, Truth::Classes(truth), true);

    let wrong = |solver: Box<dyn Solver<f32>>, method: Method, iterations: usize| -> Vec<usize> {
        let mut test = Some(followed.again());
        let (rows, course) = ([&mut test, &mut None], Course::default());
        let (limits, solver) = (Limits::after(iterations), (solver, method));
        let solution = run_on(&system, solver, &limits, rows, 1, &mut Silent, course).unwrap();
        let errors = solution.history.iter().map(|i| i.test_error.unwrap());
        let wrong = errors.map(|error| (error * TEST_ROWS as f64).round() as usize);
        wrong.collect()
    };
    let check = |method: Method, found: Vec<usize>, expected: &[(usize, usize)]| {
        for &(iteration, expected) in expected {
            let found = found[iteration - 1];
            let off = found.abs_diff(expected);
            assert!(
                off <= TOLERANCE,
                "{method}, {iteration}: {found} wrong, not {expected}"
            );
        }
    };
    let blocks = || Blocks::of(permutations(), BLOCK);

    let solver = Box::new(matching_pursuit::MatchingPursuit::new(&system, blocks()));
    let found = wrong(solver, Method::Mp, 4 * PASS);
    let expected = [(1, 549), (PASS, 325), (25, 310), (4 * PASS, 304)];
    check(Method::Mp, found, &expected);

    let solver = Box::new(kaczmarz::Kaczmarz::new(&system, blocks()));
    let found = wrong(solver, Method::Kaczmarz, 6 * PASS);
    let expected = [(1, 727), (PASS, 358), (4 * PASS, 320), (6 * PASS, 310)];
    check(Method::Kaczmarz, found, &expected);

    let solver = Box::new(kaczmarz_mp::KaczmarzMp::new(&system, blocks()));
    let found = wrong(solver, Method::KaczmarzMp, 3 * PASS);
    let expected = [(1, 2180), (PASS, 348), (3 * PASS, 314)];
    check(Method::KaczmarzMp, found, &expected);

    let solver = Box::new(nystrom::Nystrom::new(&system, blocks()));
    let found = wrong(solver, Method::Nystrom, PASS);
    let expected = [(1, 505), (6, 439), (PASS, 439)];
    check(Method::Nystrom, found, &expected);
}
