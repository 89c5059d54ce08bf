//! The tiled factor against the dense one, and against its promises.

use proptest::prelude::*;

use super::*;
use crate::linalg::Cholesky;

/// Sides of tiles; most do not divide most `n`.
const TILES: [usize; 4] = [1, 4, 7, 50];

/// Symmetric; positive definite if `shift` exceeds n / 2.
fn symmetric<T: Scalar>(n: usize, shift: f64) -> Matrix<T> {
    Matrix::from_fn(n, n, |i, j| {
        let (i, j) = (i.min(j), i.max(j));
        let noise = ((i * 31 + j * 17) % 101) as f64 / 101.0 - 0.5;
        T::from_f64(if i == j { noise + shift } else { noise })
    })
}

fn cut<T: Scalar>(a: &Matrix<T>, tile: usize) -> Vec<Matrix<T>> {
    let n = a.rows();
    let mut tiles = Vec::new();
    for row in 0..n.div_ceil(tile) {
        for column in 0..=row {
            let (rows, columns) = (extent(row, n, tile), extent(column, n, tile));
            tiles.push(Matrix::from_fn(rows.len(), columns.len(), |i, j| {
                a.get(rows.start + i, columns.start + j)
            }));
        }
    }
    tiles
}

fn factor<T: Scalar>(a: &Matrix<T>, tile: usize, shift: f64) -> Option<TiledCholesky<T>> {
    TiledCholesky::new(cut(a, tile), a.rows(), tile, shift, &mut |_| true).unwrap()
}

fn right_hand_side<T: Scalar>(n: usize) -> Matrix<T> {
    Matrix::from_fn(n, 3, |i, k| T::from_f64((i * 5 + k * 3) as f64 % 7.0 - 3.0))
}

/// max |a − b| / max |b|
fn difference<T: Scalar>(a: &[T], b: &[f64]) -> f64 {
    let largest = b.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let pairs = a.iter().zip(b);
    let difference = pairs.map(|(a, b)| (a.to_f64() - b).abs());
    difference.fold(0.0, f64::max) / largest
}

fn on_threads<R: Send>(threads: usize, f: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(f)
}

/// Solution, log det and diagonal of the inverse, by the dense factor in `f64`.
fn reference<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) -> (Matrix<f64>, f64, Vec<f64>) {
    let (n, mut x) = (a.rows(), b.cast::<f64>());
    let dense = Cholesky::new(a.cast::<f64>()).unwrap();
    assert_eq!(dense.jitter(), 0.0);
    dense.solve(x.view_mut());
    let mut inverse = Matrix::from_fn(n, n, |i, j| f64::from(i == j));
    dense.solve(inverse.view_mut());
    let diagonal = (0..n).map(|i| inverse.get(i, i)).collect();
    let pivots = (0..n).map(|i| dense.buffer().row(i)[i]);
    (x, 2.0 * pivots.map(f64::ln).sum::<f64>(), diagonal)
}

/// The condition numbers here are below 4 or so: errors stay near rounding.
fn agrees_with_the_dense_factor<T: Scalar>(a: &Matrix<T>, tile: usize) {
    let n = a.rows();
    let tolerance = 16.0 * T::EPSILON * (n as f64).sqrt();
    let b = right_hand_side(n);
    let (expected, log_det, diagonal) = reference(a, &b);
    let tiled = factor(a, tile, 0.0).unwrap();
    let mut x = b;
    tiled.solve(&mut x);
    let error = difference(x.values(), expected.values());
    assert!(error < tolerance, "n = {n}, tile {tile}: {error:.1e}");
    let error = (tiled.log_det() - log_det).abs();
    assert!(
        error < tolerance * n as f64,
        "n = {n}, tile {tile}: log det {error:.1e}"
    );
    let inverse = tiled.inverse_diagonal(&mut |_| true).unwrap();
    let error = difference(&inverse, &diagonal);
    assert!(
        error < tolerance,
        "n = {n}, tile {tile}: inverse {error:.1e}"
    );
}

#[test]
fn agrees_with_the_dense_factor_for_all_shapes() {
    for n in 1..=40 {
        for tile in TILES {
            agrees_with_the_dense_factor(&symmetric::<f64>(n, n as f64 + 1.0), tile);
            agrees_with_the_dense_factor(&symmetric::<f32>(n, n as f64 + 1.0), tile);
        }
    }
}

#[test]
fn agrees_with_the_dense_factor_in_larger_tiles() {
    // More than one task of the inverse a tile, and a short last tile.
    let (n, tile) = (500, INVERSE_COLUMNS + 50);
    agrees_with_the_dense_factor(&symmetric::<f64>(n, n as f64), tile);
    agrees_with_the_dense_factor(&symmetric::<f32>(n, n as f64), tile);
}

#[test]
fn the_tiles_are_those_of_the_factor() {
    let (n, tile) = (23, 7);
    let a = symmetric::<f64>(n, n as f64);
    let shifted = symmetric::<f64>(n, n as f64 + 2.5);
    let dense = Cholesky::new(shifted).unwrap();
    let tiles = factor(&a, tile, 2.5).unwrap().into_tiles();
    for row in 0..n {
        for column in 0..=row {
            let found = tiles[place(row / tile, column / tile)].get(row % tile, column % tile);
            let error = (found - dense.buffer().row(column)[row]).abs();
            assert!(error < 1e-13, "({row}, {column}): {error:.1e}");
        }
    }
    let corner = &tiles[0];
    assert_eq!(corner.get(1, 4), corner.get(4, 1));
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for (n, tile) in [(40, 4), (40, 7), (300, 33), (700, 130)] {
        let a = symmetric::<f32>(n, n as f64);
        let run = || {
            let factor = factor(&a, tile, 0.5).unwrap();
            let mut x = right_hand_side(n);
            factor.solve(&mut x);
            let inverse = factor.inverse_diagonal(&mut |_| true).unwrap();
            (factor.into_tiles(), x, inverse)
        };
        let alone = on_threads(1, run);
        for threads in [2, 5] {
            for _ in 0..4 {
                assert!(
                    on_threads(threads, run) == alone,
                    "n = {n}, {threads} threads"
                );
            }
        }
        // Not from a thread of a pool.
        assert!(run() == alone, "n = {n}");
    }
}

#[test]
fn two_factorisations_share_a_pool() {
    let a = symmetric::<f64>(60, 60.0);
    for threads in [1, 2, 5] {
        on_threads(threads, || {
            for _ in 0..20 {
                let (x, y) = rayon::join(|| factor(&a, 4, 0.0), || factor(&a, 4, 0.0));
                assert!(x.unwrap().into_tiles() == y.unwrap().into_tiles());
            }
        });
    }
}

#[test]
fn a_matrix_that_is_not_positive_definite_is_answered() {
    for threads in [1, 2, 5] {
        for tile in TILES {
            let mut a = symmetric::<f32>(40, 40.0);
            a.set(33, 33, -1.0);
            assert!(on_threads(threads, || factor(&a, tile, 0.0)).is_none());
            assert!(on_threads(threads, || factor(&a, tile, 40.0)).is_some());
            for value in [f32::NAN, f32::INFINITY] {
                a.set(33, 33, value);
                assert!(on_threads(threads, || factor(&a, tile, 0.0)).is_none());
            }
        }
    }
    assert!(factor(&Matrix::<f64>::zeros(9, 9), 4, 0.0).is_none());
}

#[test]
fn nothing_is_factored_into_nothing() {
    let empty = factor(&Matrix::<f64>::zeros(0, 0), 4, 0.0).unwrap();
    empty.solve(&mut Matrix::zeros(0, 3));
    assert_eq!(empty.log_det(), 0.0);
    assert!(empty.inverse_diagonal(&mut |_| true).unwrap().is_empty());
}

#[test]
fn progress_grows_to_one_and_can_give_up() {
    let (n, tile) = (40, 4);
    let a = symmetric::<f64>(n, n as f64);
    for threads in [1, 2, 5] {
        let shares = on_threads(threads, || {
            let mut shares = Vec::new();
            let mut progress = |share| {
                shares.push(share);
                true
            };
            TiledCholesky::new(cut(&a, tile), n, tile, 0.0, &mut progress).unwrap();
            shares
        });
        assert!(shares.is_sorted(), "{threads} threads");
        assert_eq!(shares.last(), Some(&1.0), "{threads} threads");
        for limit in [0.0, 0.5, 1.0] {
            let mut calls_after = 0;
            let outcome = on_threads(threads, || {
                let mut progress = |share| {
                    calls_after += usize::from(share >= limit);
                    share < limit
                };
                TiledCholesky::new(cut(&a, tile), n, tile, 0.0, &mut progress)
            });
            assert!(
                matches!(outcome, Err(Error::Interrupted)),
                "{threads} threads"
            );
            assert_eq!(calls_after, 1, "{threads} threads");
        }
    }
    let factor = factor(&a, tile, 0.0).unwrap();
    let outcome = factor.inverse_diagonal(&mut |share| share < 0.5);
    assert!(matches!(outcome, Err(Error::Interrupted)));
}

#[test]
fn a_panic_of_the_caller_does_not_lock_up() {
    let outcome = std::panic::catch_unwind(|| {
        let a = symmetric::<f64>(40, 40.0);
        on_threads(5, || {
            let mut progress = |share: f64| -> bool { panic!("at {share}") };
            let _ = TiledCholesky::new(cut(&a, 4), 40, 4, 0.0, &mut progress);
        });
    });
    assert!(outcome.is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A = G Gᵀ + I of random G: ‖b − (A + shift·I) x‖ is within rounding.
    #[test]
    fn residuals_of_random_matrices_are_small(
        (n, g) in (1usize..40).prop_flat_map(|n| {
            (Just(n), prop::collection::vec(-1.0..1.0f64, n * n))
        }),
        tile in 1usize..20,
        shift in 0.0..2.0f64,
    ) {
        let g = Matrix::from_vec(n, n, g);
        let a = Matrix::from_fn(n, n, |i, j| {
            let dot: f64 = g.row(i).iter().zip(g.row(j)).map(|(x, y)| x * y).sum();
            dot + f64::from(i == j)
        });
        let b = right_hand_side::<f64>(n);
        let mut x = b.clone();
        factor(&a, tile, shift).unwrap().solve(&mut x);
        let product: Vec<f64> = (0..n * 3)
            .map(|p| {
                let (i, k) = (p / 3, p % 3);
                let dot: f64 = (0..n).map(|j| a.get(i, j) * x.get(j, k)).sum();
                dot + shift * x.get(i, k)
            })
            .collect();
        // Backward stable: the residual is of the order of ε ‖A‖ ‖x‖.
        let scale = a.frobenius_norm() * x.frobenius_norm() + b.frobenius_norm();
        let residual = b.values().iter().zip(&product).map(|(b, p)| (b - p).abs());
        prop_assert!(residual.fold(0.0, f64::max) < 32.0 * f64::EPSILON * scale);
    }
}

#[test]
fn products_and_solves_of_rows_are_those_of_the_matrix() {
    for tile in TILES {
        for (n, threads) in [(1, 1), (9, 2), (53, 3)] {
            let shift = n as f64;
            let a = symmetric::<f64>(n, 0.0);
            let factor = factor(&a, tile, shift).unwrap();
            let columns = right_hand_side::<f64>(n);
            let rows = transpose_scaled(columns.view(), 1.0);
            let product = Matrix::from_fn(n, 3, |i, k| {
                let sum: f64 = (0..n).map(|j| a.get(i, j) * columns.get(j, k)).sum();
                sum + shift * columns.get(i, k)
            });
            let across = transpose_scaled(product.view(), 1.0);
            on_threads(threads, || {
                let found = factor.multiply(&columns);
                assert!(difference(found.values(), product.values()) < 1e-13);
                let found = factor.rows_times_upper(&factor.rows_times_lower(&rows));
                assert!(difference(found.values(), across.values()) < 1e-13);
                let found = factor.solve_rows(&across);
                assert!(difference(found.values(), rows.values()) < 1e-12);
            });
        }
    }
}
