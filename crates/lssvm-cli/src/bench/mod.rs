//! `lssvm bench`: what the hot parts cost beside the bare products they need.
//!
//! Everything is measured in one process, best of a few repetitions, so that
//! ratios mean something on a noisy machine.

mod full;
mod reading;

use std::hint::black_box;
use std::time::Instant;

use lssvm::Error;
use lssvm::kernel::{Kernel, Samples};
use lssvm::linalg::dense::Backend;
use lssvm::linalg::simd::{Arch, Job, Vector, dispatch};
use lssvm::linalg::{Cholesky, MatMut, Matrix, Output, Parallel, Scalar, skinny, sum_of_squares};
use lssvm::solve::{Limits, Method, Plan, Silent, run as solve};
use lssvm::system::{Strip, System, add_scores};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::args::BenchArgs;
use crate::output::{self, say};
use crate::settings::pool;

pub fn run(args: &BenchArgs) -> anyhow::Result<()> {
    check(args)?;
    output::expect_json(args.json.as_deref())?;
    let pool = pool(args.threads)?;
    let mut table = Table::default();
    let result = pool.install(|| match &args.data {
        Some(data) => reading::measure(data, args.repeat, &mut table),
        None if args.full => full::measure(args, &mut table),
        None => measure(args, &mut table),
    });
    result?;
    if let Some(path) = &args.json {
        output::json(path, &table.values)?;
    }
    Ok(())
}

fn check(args: &BenchArgs) -> Result<(), Error> {
    for (name, size) in [
        ("rows", args.rows),
        ("features", args.features),
        ("outputs", args.outputs),
        ("block-size", args.block_size),
        ("queries", args.queries),
        ("repeat", args.repeat),
    ] {
        if size == 0 {
            return Err(Error::parameter(name, size, "must be at least 1"));
        }
    }
    if args.block_size > args.rows {
        let requirement = format!("must be at most {}, the number of rows", args.rows);
        return Err(Error::parameter("block-size", args.block_size, requirement));
    }
    Ok(())
}

#[derive(Default)]
struct Table {
    values: Map<String, Value>,
}

impl Table {
    fn line(&mut self, name: &str, seconds: f64, value: f64, unit: &str) {
        say(format!("{name:<34} {seconds:>9.4} s {value:>9.1} {unit}"));
        let entry = json!({"seconds": seconds, "value": value, "unit": unit});
        self.values.insert(name.to_string(), entry);
    }

    fn ratio(&mut self, name: &str, value: f64) {
        say(format!("{name:<34} {value:>9.3}"));
        self.values
            .insert(name.to_string(), json!({"ratio": value}));
    }
}

fn best(repeat: usize, mut f: impl FnMut()) -> f64 {
    let once = |f: &mut dyn FnMut()| {
        let start = Instant::now();
        f();
        start.elapsed().as_secs_f64()
    };
    (0..repeat.max(1))
        .map(|_| once(&mut f))
        .fold(f64::INFINITY, f64::min)
}

fn measure(args: &BenchArgs, table: &mut Table) -> anyhow::Result<()> {
    let (n, m, k, j) = (args.rows, args.features, args.outputs, args.block_size);
    let (nf, mf, kf, jf) = (n as f64, m as f64, k as f64, j as f64);
    let threads = rayon::current_num_threads();
    say(format!(
        "N = {n}, M = {m}, K = {k}, J = {j}, f32, {threads} threads"
    ));

    let peak = peak_flops(args.repeat);
    table.line("fused multiply-add, peak", 0.0, peak / 1e9, "GFLOP/s");
    let wave = |i: usize, c: usize| ((i * 7919 + c * 104_729) % 1009) as f32 / 504.5 - 1.0;
    let scale = (mf / 3.0).sqrt() as f32;
    let x = Matrix::from_fn(n, m, |i, c| wave(i, c) / scale);
    let y = Matrix::from_fn(n, k, |i, c| if i % k == c { 1.0 } else { 0.0 });

    // The bare parts of one step, as single calls of the library beneath.
    let mut strip = vec![0f32; n * j];
    let block = x.row_range(0, j.min(n));
    let rate = |table: &mut Table, name: &str, seconds: f64, flops: f64| {
        table.line(name, seconds, flops / seconds / 1e9, "GFLOP/s");
        seconds
    };
    let gemm = best(args.repeat, || {
        let out = MatMut::new(n, j, &mut strip);
        f32::gemm_nt(out, Output::Replace, x.view(), block, 1.0, Parallel::Pool);
    });
    let gemm = rate(table, "bare product N×M · M×J", gemm, 2.0 * nf * mf * jf);
    let body = Matrix::from_vec(n, j, strip);
    let mut gram = Matrix::<f32>::zeros(j, j);
    let syrk = best(args.repeat, || {
        let out = gram.view_mut();
        f32::syrk_upper(out, Output::Replace, body.view(), 1.0, Parallel::Pool);
    });
    let syrk = rate(table, "bare SYRK J×N · N×J", syrk, nf * jf * jf);
    (0..j).for_each(|i| gram.set(i, i, gram.get(i, i) * 2.0 + 1.0));
    let factor = best(args.repeat, || {
        let mut copy = gram.clone();
        black_box(f32::cholesky_upper(copy.view_mut(), Parallel::Pool));
    });
    let factor = rate(table, "bare Cholesky J×J", factor, jf.powi(3) / 3.0);
    let own = best(args.repeat, || {
        black_box(
            Cholesky::new(gram.clone())
                .map(|c| c.jitter())
                .unwrap_or(f64::NAN),
        );
    });
    rate(table, "Cholesky J×J in panels", own, jf.powi(3) / 3.0);

    // Products with a few columns, by the bytes of the tall matrix.
    let bytes = 4.0 * nf * jf;
    let read = best(args.repeat, || {
        let sums = body.values().par_chunks(1 << 16).map(sum_of_squares);
        black_box(sums.sum::<f64>());
    });
    table.line("plain read of N×J", read, bytes / read / 1e9, "GB/s");
    let q = Matrix::from_fn(j, k, &wave);
    let mut out = Matrix::<f32>::zeros(n, k);
    let forward = best(args.repeat, || {
        skinny::add_product(out.view_mut(), body.view(), q.view(), 1.0);
    });
    table.line(
        "skinny product S · Q",
        forward,
        bytes / forward / 1e9,
        "GB/s",
    );
    let backward = best(args.repeat, || {
        black_box(skinny::transposed_product(body.view(), y.view()));
    });
    table.line(
        "skinny product Sᵀ · R",
        backward,
        bytes / backward / 1e9,
        "GB/s",
    );
    drop((body, gram, out));

    // Steps of the methods.
    let kernel = Kernel::Poly {
        gamma: 1.0,
        coef0: 0.0,
        degree: 4,
    };
    let system = System::new(x, y, kernel, 1e4)?;
    let mut strip = Strip::new(system.shares());
    let indices: Vec<usize> = (0..j).collect();
    strip.fill(&system, &indices);
    let fill = best(args.repeat, || strip.fill(&system, &indices));
    rate(
        table,
        "strip of Θ, kernel and all",
        fill,
        2.0 * nf * mf * jf,
    );
    drop(strip);
    let bare = gemm + syrk + factor;
    let methods = [Method::Mp, Method::Kaczmarz, Method::KaczmarzMp];
    let mut steps = [f64::INFINITY; 3];
    // In two rounds: in one, mp, which came first, was 9 % slower than
    // kaczmarz-mp, which does more.
    for _ in 0..2 {
        for (method, best) in methods.iter().zip(&mut steps) {
            *best = best.min(quickest_step(&system, *method, j, args.repeat)?);
        }
    }
    for (method, step) in methods.iter().zip(steps) {
        let flops = 2.0 * nf * mf * jf + nf * jf * jf + jf.powi(3) / 3.0;
        let name = format!("one iteration of {method}");
        table.line(&name, step, flops / step / 1e9, "GFLOP/s");
        table.ratio(&format!("{method} / bare parts"), step / bare);
        table.ratio(&format!("{method} / peak"), flops / step / peak);
    }

    // Prediction.
    let queries = Matrix::from_fn(args.queries, m, |i, c| wave(i + 3, c) / scale);
    let queries = Samples::beside(system.samples().view(), queries, &kernel);
    let weights = system.targets();
    let flops = 2.0 * args.queries as f64 * nf * mf;
    // The bare product of the same size, at the rate of the one above; measured
    // directly it is slower, because its result does not fit in the cache.
    let product = gemm * flops / (2.0 * nf * mf * jf);
    let mut scores = Matrix::<f32>::zeros(args.queries, k);
    let support = system.samples();
    let predict = best(args.repeat, || {
        let out = scores.view_mut();
        add_scores(out, &kernel, queries.view(), support.view(), weights.view());
    });
    rate(
        table,
        "prediction",
        predict,
        flops + 2.0 * args.queries as f64 * nf * kf,
    );
    table.ratio("prediction / bare product", predict / product);
    Ok(())
}

/// Seconds of the quickest of some iterations; the first, which also pays for
/// fresh memory, does not count.
fn quickest_step(
    system: &System<f32>,
    method: Method,
    block_size: usize,
    repeat: usize,
) -> anyhow::Result<f64> {
    let plan = Plan {
        loo: false,
        method,
        block_size,
        seed: 1,
        averages: 1,
        rank: None,
        tolerance: 0.0,
    };
    let limits = Limits::after(repeat.max(1) + 1);
    let solution = solve(system, &plan, &limits, &mut None, &mut None, 0, &mut Silent)?;
    let times: Vec<f64> = solution.history.iter().map(|i| i.seconds).collect();
    let steps = times.windows(2).map(|w| w[1] - w[0]);
    Ok(steps.fold(f64::INFINITY, f64::min))
}

/// Multiply-adds on registers alone, on all threads.
fn peak_flops(repeat: usize) -> f64 {
    const ROUNDS: usize = 20_000_000;
    let threads = rayon::current_num_threads();
    let lanes = dispatch(PeakLanes);
    let seconds = best(repeat, || {
        // Not a parallel iterator, which may run both halves in one thread.
        rayon::broadcast(|_| black_box(dispatch(Peak(ROUNDS))));
    });
    2.0 * (ROUNDS * CHAINS * lanes * threads) as f64 / seconds
}

/// Independent chains of multiply-adds: enough to hide their latency.
const CHAINS: usize = 10;

struct PeakLanes;

impl Job for PeakLanes {
    type Output = usize;

    #[inline(always)]
    fn run<A: Arch>(self) -> usize {
        <f32 as Scalar>::Vector::<A>::LANES
    }
}

struct Peak(usize);

impl Job for Peak {
    type Output = f32;

    #[inline(always)]
    fn run<A: Arch>(self) -> f32 {
        // SAFETY: this is `run`, for its own `A`.
        unsafe {
            let factor = <f32 as Scalar>::Vector::<A>::splat(black_box(0.5));
            let one = <f32 as Scalar>::Vector::<A>::splat(black_box(1.0));
            let mut chains = [one; CHAINS];
            for _ in 0..self.0 {
                for chain in &mut chains {
                    *chain = one.add_product(*chain, factor);
                }
            }
            let mut sum = 0.0;
            for chain in chains {
                sum += chain.sum();
            }
            sum
        }
    }
}
