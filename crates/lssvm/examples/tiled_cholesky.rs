//! How close the tiled Cholesky factorisation comes to the speed of its
//! products: `cargo run --release -p lssvm --example tiled_cholesky [tiles a side]`.
//!
//! Prints the speed of the product of two tiles on one thread, before and after
//! the factorisation since other programs disturb both, the speed of the
//! factorisation on all threads, and its share of threads × the former.

#![allow(clippy::print_stdout)]

use std::time::Instant;

use lssvm::linalg::dense::Backend;
use lssvm::linalg::{Matrix, Output, Parallel, TiledCholesky};

/// Rows of a tile, as in the store of Ω.
const TILE: usize = 1024;

/// Tiles a side, if no other number is given.
const SIDE: usize = 12;

/// Products timed together for the speed of one thread.
const PRODUCTS: usize = 20;

/// Columns of the right-hand side: ten classes and the bias.
const COLUMNS: usize = 11;

const GIGA: f64 = 1e9;

fn main() -> lssvm::Result<()> {
    let side = std::env::args().nth(1).and_then(|a| a.parse().ok());
    let side: usize = side.unwrap_or(SIDE);
    let (n, threads) = (side * TILE, rayon::current_num_threads());
    println!("n = {n} in f32, tiles of {TILE}, {threads} threads");

    let before = product_speed();
    let places = (0..side).flat_map(|row| (0..=row).map(move |column| (row, column)));
    let tiles = places.map(|(row, column)| tile(row, column, n)).collect();
    let start = Instant::now();
    let factor = TiledCholesky::new(tiles, n, TILE, 0.0, &mut |_| true)?;
    let seconds = start.elapsed().as_secs_f64();
    let after = product_speed();
    println!("product of tiles, one thread: {before:.1} GFLOP/s before, {after:.1} after");

    let speed = (n as f64).powi(3) / 3.0 / seconds / GIGA;
    let possible = threads as f64 * (before + after) / 2.0;
    println!(
        "factorisation: {seconds:.2} s, {speed:.1} GFLOP/s, {:.0} % of {possible:.1}",
        100.0 * speed / possible
    );

    let Some(factor) = factor else {
        println!("not positive definite");
        return Ok(());
    };
    // The rows of A sum to almost the same number: A x = 1 has |x| near 1 / sum.
    let mut x = Matrix::from_fn(n, COLUMNS, |_, _| 1.0);
    let start = Instant::now();
    factor.solve(&mut x);
    let seconds = start.elapsed().as_secs_f64();
    let bytes = 2.0 * (n * n / 2 * size_of::<f32>()) as f64;
    println!(
        "solve with {COLUMNS} columns: {seconds:.2} s, {:.1} GB/s",
        bytes / seconds / GIGA
    );
    println!("log det {:.1}, x₀ = {:.3e}", factor.log_det(), x.get(0, 0));
    Ok(())
}

/// A tile of noise between −1 and 1 with n on the diagonal: positive definite.
fn tile(row: usize, column: usize, n: usize) -> Matrix<f32> {
    Matrix::from_fn(TILE, TILE, |i, j| {
        let (i, j) = (row * TILE + i, column * TILE + j);
        let noise = ((i.min(j) * 7919 + i.max(j) * 104_729) % 1009) as f32 / 504.5 - 1.0;
        if i == j { n as f32 } else { noise }
    })
}

/// GFLOP/s of C −= A·Bᵀ for tiles, on one thread.
fn product_speed() -> f64 {
    let (a, b) = (tile(1, 0, 1), tile(2, 0, 1));
    let mut c = tile(2, 1, 1);
    let mut update = || {
        let (a, b) = (a.view(), b.view());
        f32::gemm_nt(c.view_mut(), Output::Add, a, b, -1.0, Parallel::No);
    };
    update();
    let start = Instant::now();
    (0..PRODUCTS).for_each(|_| update());
    let flops = (PRODUCTS * 2 * TILE.pow(3)) as f64;
    flops / start.elapsed().as_secs_f64() / GIGA
}
