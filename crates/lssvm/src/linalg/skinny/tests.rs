//! Products against plain sums, on every instruction set and number of threads.

use super::*;
use crate::linalg::simd::{Avx2, Portable};

/// Values between −1 and 1 without a pattern, also for the tests of tiles.
pub(in crate::linalg) fn example<T: Scalar>(rows: usize, cols: usize, seed: usize) -> Matrix<T> {
    Matrix::from_fn(rows, cols, |i, j| {
        T::from_f64(((i * 7919 + j * 104_729 + seed * 31) % 1009) as f64 / 504.5 - 1.0)
    })
}

fn close<T: Scalar>(a: &Matrix<T>, b: impl Fn(usize, usize) -> f64, depth: usize) {
    let tolerance = 16.0 * T::EPSILON * (depth as f64).max(1.0);
    for i in 0..a.rows() {
        for j in 0..a.cols() {
            let difference = (a.get(i, j).to_f64() - b(i, j)).abs();
            assert!(difference <= tolerance, "({i}, {j}): {difference:.1e}");
        }
    }
}

fn agree_with_the_plain_sums<T: Scalar>() {
    for (n, j, k) in [
        (1, 1, 1),
        (3, 5, 2),
        (40, 33, 10),
        (701, 97, 11),
        (515, 1030, 26),
        (2, 600, 7),
        (0, 4, 2),
    ] {
        let (s, q, r) = (
            example::<T>(n, j, 1),
            example::<T>(j, k, 2),
            example::<T>(n, k, 3),
        );
        let start = example::<T>(n, k, 4);
        let mut out = start.clone();
        add_product(out.view_mut(), s.view(), q.view(), T::from_f64(-0.5));
        let plain = |i: usize, c: usize| {
            let sum: f64 = (0..j)
                .map(|l| s.get(i, l).to_f64() * q.get(l, c).to_f64())
                .sum();
            start.get(i, c).to_f64() - 0.5 * sum
        };
        close(&out, plain, j);
        let transposed = transposed_product(s.view(), r.view());
        let plain = |l: usize, c: usize| {
            (0..n)
                .map(|i| s.get(i, l).to_f64() * r.get(i, c).to_f64())
                .sum()
        };
        close(&transposed, plain, n);
    }
}

#[test]
fn agree_with_the_plain_sums_f32() {
    agree_with_the_plain_sums::<f32>();
}

#[test]
fn agree_with_the_plain_sums_f64() {
    agree_with_the_plain_sums::<f64>();
}

#[test]
fn every_instruction_set_gives_the_same_product() {
    let (s, q_t, r) = (
        example::<f32>(65, 70, 1),
        example::<f32>(11, 70, 2),
        example::<f32>(65, 11, 3),
    );
    let rows = |run: &dyn Fn(Rows<'_, f32>)| {
        let mut out = Matrix::<f32>::zeros(65, 11);
        run(Rows {
            out: out.view_mut(),
            s: s.view(),
            q_t: q_t.view(),
        });
        out
    };
    let columns = |run: &dyn Fn(Columns<'_, f32>)| {
        let mut sums = vec![0.0; 11 * 70];
        run(Columns {
            sums: &mut sums,
            s: s.view(),
            r: r.view(),
            sweep: SWEEP_ROWS,
            fetch: true,
        });
        Matrix::from_vec(11, 70, sums)
    };
    let best = (rows(&|job| dispatch(job)), columns(&|job| dispatch(job)));
    let portable = (
        rows(&|job| job.run::<Portable>()),
        columns(&|job| job.run::<Portable>()),
    );
    let narrow = (
        rows(&|job| job.run::<Avx2>()),
        columns(&|job| job.run::<Avx2>()),
    );
    for other in [portable, narrow] {
        close(&best.0, |i, j| other.0.get(i, j).to_f64(), 70);
        close(&best.1, |i, j| other.1.get(i, j).to_f64(), 70);
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (s, r) = (example::<f32>(3000, 130, 1), example::<f32>(3000, 10, 2));
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| transposed_product(s.view(), r.view()))
    };
    assert_eq!(run(1), run(3));
}
