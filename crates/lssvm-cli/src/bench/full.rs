//! The kernel matrix kept in memory: what computing it and products with it cost.
//!
//! T₁ is the time of its lower half as bare matrix products; the rest is told in
//! units of it, or of a plain read of the same bytes.

use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use lssvm::kernel::Kernel;
use lssvm::linalg::dense::Backend;
use lssvm::linalg::{Levels, MatMut, Matrix, Output, Parallel, levels, sum_of_squares};
use lssvm::solve::{Limits, Method, Plan, Silent, run as solve};
use lssvm::system::{Format, Store, System, TILE};
use rayon::prelude::*;

use super::{Table, best};
use crate::args::BenchArgs;

/// Steps of a method: in half precision these rows, which repeat, carry it off after some more.
const MOST_STEPS: usize = 4;

pub fn measure(args: &BenchArgs, table: &mut Table) -> anyhow::Result<()> {
    let (n, m, k) = (args.rows, args.features, args.outputs);
    let wave = |i: usize, c: usize| ((i * 7919 + c * 104_729) % 1009) as f32 / 504.5 - 1.0;
    let scale = (m as f32 / 3.0).sqrt();
    let x = Matrix::from_fn(n, m, |i, c| wave(i, c) / scale);
    let y = Matrix::from_fn(n, k, |i, c| if i % k == c { 1.0 } else { 0.0 });

    let unit = lower_half(n, |out, rows, columns| {
        let part = |rows: Range<usize>| x.row_range(rows.start, rows.end);
        let (a, b) = (part(rows), part(columns));
        f32::gemm_nt(out, Output::Replace, a, b, 1.0, Parallel::No);
    });
    let flops = n as f64 * n as f64 * m as f64;
    table.line(
        "T₁: lower half, bare products",
        unit,
        flops / unit / 1e9,
        "GFLOP/s",
    );
    let pixel = |i: usize, c: usize| ((i * 7919 + c * c * 31) % 256) as f32;
    if let Some(pixels) = Levels::of(Matrix::from_fn(n, m, pixel).view()) {
        let seconds = lower_half(n, |out, rows, columns| {
            let part = |rows: Range<usize>| pixels.range(rows.start, rows.end);
            levels::products(out, part(rows), part(columns));
        });
        table.line("the same of pixels", seconds, seconds / unit, "T₁");
    }
    let kernel = Kernel::Poly {
        gamma: 1.0,
        coef0: 0.0,
        degree: 4,
    };
    let mut system = System::new(x, y, kernel, 1e4)?;
    let v = Matrix::from_fn(n, k + 1, |i, c| wave(i, c) / n as f32);
    for (format, name) in [(Format::Full, "f32"), (Format::Half, "f16")] {
        let start = Instant::now();
        system.keep_kernel(format, &mut |_| true)?;
        let seconds = start.elapsed().as_secs_f64();
        table.line(
            &format!("kernel matrix kept in {name}"),
            seconds,
            seconds / unit,
            "T₁",
        );
        let bytes = Store::<f32>::bytes(n, format) as f64;
        let read = plain_read(bytes as usize, args.repeat);
        table.line(
            &format!("plain read of {name} bytes"),
            read,
            bytes / read / 1e9,
            "GB/s",
        );
        let product = best(args.repeat, || {
            black_box(system.shifted_product(&v));
        });
        let columns = k + 1;
        let name = format!("product, {columns} columns, {name}");
        table.line(&name, product, bytes / product / 1e9, "GB/s");
        table.ratio(&format!("{name} / plain read"), read / product);
    }
    let quick = |system: &System<f32>, method, iterations| {
        let plan = Plan {
            method,
            block_size: 4 * TILE,
            seed: 1,
            averages: 1,
            rank: None,
            tolerance: 0.0,
            loo: false,
        };
        let limits = Limits::after(iterations);
        solve(system, &plan, &limits, &mut None, &mut None, 0, &mut Silent)
    };
    for method in [Method::Pcg, Method::GaussSeidel] {
        let solution = quick(&system, method, 1 + args.repeat.min(MOST_STEPS))?;
        let seconds: Vec<f64> = solution.history.iter().map(|i| i.seconds).collect();
        let steps = seconds.windows(2).map(|pair| pair[1] - pair[0]);
        let step = steps.fold(f64::INFINITY, f64::min);
        let setup = seconds[0] - step;
        table.line(&format!("{method}: setup"), setup, setup / unit, "T₁");
        table.line(&format!("{method}: a step, f16"), step, step / unit, "T₁");
    }
    Ok(())
}

/// Seconds for all tiles of the lower half of a matrix of inner products, each by `fill` on one
/// thread; nothing is kept.
fn lower_half(n: usize, fill: impl Fn(MatMut<'_, f32>, Range<usize>, Range<usize>) + Sync) -> f64 {
    let tiles: Vec<(usize, usize)> = (0..n.div_ceil(TILE))
        .flat_map(|row| (0..=row).map(move |column| (row, column)))
        .collect();
    let part = |tile: usize| tile * TILE..((tile + 1) * TILE).min(n);
    let start = Instant::now();
    tiles.par_iter().for_each_init(
        || Matrix::<f32>::zeros(TILE, TILE),
        |out, &(row, column)| {
            let (rows, columns) = (part(row), part(column));
            let values = &mut out.values_mut()[..rows.len() * columns.len()];
            fill(
                MatMut::new(rows.len(), columns.len(), values),
                rows,
                columns,
            );
        },
    );
    start.elapsed().as_secs_f64()
}

/// Seconds to read so many bytes on all threads.
fn plain_read(bytes: usize, repeat: usize) -> f64 {
    // A part of them, so that they fit beside the matrix itself.
    const MOST: usize = 1 << 30;
    let part = bytes.clamp(4, MOST);
    let values = vec![1f32; part / 4];
    let read = best(repeat, || {
        let sums = values.par_chunks(1 << 16).map(sum_of_squares);
        black_box(sums.sum::<f64>());
    });
    read * bytes as f64 / part as f64
}
