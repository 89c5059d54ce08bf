//! What a run will do, told before it begins: method, store, memory and time.
//!
//! The time is reckoned from rates measured on the data themselves, in a fraction
//! of a second: one tile of Ω and one product with it on every thread. It is right
//! within a factor of two or so; the number of iterations an iterative method needs
//! is a guess where it is not given.

use std::fmt;
use std::time::Instant;

use serde::Serialize;

use super::Effective;
use super::memory_plan::MemoryPlan;
use crate::error::Bytes;
use crate::kernel::{FillBlock, Kernel, Samples};
use crate::linalg::two_sided::{Tile, TwoSided};
use crate::linalg::{Matrix, Output, Parallel, Scalar};
use crate::ranks::Ranks;
use crate::solve::{LEFT_OUT_BATCHES, LEFT_OUT_COLUMNS, LONG_LOOK, Method, rank_for};
use crate::system::{Format, TILE};

/// Iterations after which `pcg` is expected to have met a tolerance: 15 for 10⁻² and
/// 45 for 10⁻³, as on all of MNIST.
fn expected_iterations(tolerance: f64) -> f64 {
    let orders = -tolerance.max(1e-12).log10();
    15.0 * (orders - 1.0).max(0.3).powf(1.6)
}

/// Iterations that each batch of leave-one-out estimates is expected to take.
const LEFT_OUT_ITERATIONS: f64 = 20.0;

/// Iterations after which `centers` is expected to have met its tolerance.
const CENTERS_ITERATIONS: f64 = 20.0;

/// A plan for a run.
#[derive(Debug, Clone, Serialize)]
pub struct Forecast {
    /// The settings, all decided.
    pub config: Effective,
    /// Training rows, features after preprocessing, and outputs.
    pub shape: [usize; 3],
    /// How the kernel matrix is kept in memory, if it is.
    pub kernel_kept: Option<Format>,
    /// The most memory the run needs, in bytes.
    pub memory_bytes: u64,
    /// The time it takes, about.
    pub seconds: f64,
    /// Why this method.
    pub why: String,
    /// Ranks that share the training rows.
    pub ranks: usize,
}

/// Seconds that one thread takes for a tile of [`TILE`] rows and columns.
pub(super) struct Rates {
    /// Computing it.
    kernel: f64,
    /// A product of it with a few columns, one of the two that are made at once.
    product: f64,
    /// A product of it with another tile.
    square: f64,
}

impl Rates {
    pub(super) fn measure<T: Scalar>(
        kernel: &Kernel,
        samples: &Samples<T>,
        outputs: usize,
    ) -> Self {
        let rows = samples.len().min(TILE);
        let part = samples.range(0, rows);
        let whole = (TILE * TILE) as f64 / (rows * rows).max(1) as f64;
        // All threads at once, as in the run: they share memory and clock.
        let times = rayon::broadcast(|_| {
            let mut tile = Matrix::zeros(rows, rows);
            kernel.fill(tile.view_mut(), part, part);
            let start = Instant::now();
            kernel.fill(tile.view_mut(), part, part);
            let filled = start.elapsed().as_secs_f64();
            let v = Matrix::from_fn(rows, outputs + 1, |_, _| T::ONE);
            let mut products = TwoSided::new(outputs + 1);
            let (values, both) = (Tile::Full(tile.values()), Some(v.view()));
            let start = Instant::now();
            products.multiply(values, (rows, rows), both, both);
            let multiplied = start.elapsed().as_secs_f64() / 2.0;
            let mut square = Matrix::zeros(rows, rows);
            let (a, out) = (tile.view(), square.view_mut());
            let start = Instant::now();
            T::gemm_nt(out, Output::Replace, a, a, T::ONE, Parallel::No);
            [filled, multiplied, start.elapsed().as_secs_f64()]
        });
        let slowest = |which: usize| times.iter().map(|t| t[which]).fold(0.0, f64::max);
        Self {
            kernel: slowest(0) * whole,
            product: slowest(1) * whole,
            square: slowest(2) * whole * TILE as f64 / rows.max(1) as f64,
        }
    }
}

impl Rates {
    /// Seconds of one thread for one kernel value that is used in two products.
    pub(super) fn of_a_pass(&self) -> f64 {
        (self.kernel + 2.0 * self.product) / (TILE * TILE) as f64
    }
}

impl Forecast {
    pub(super) fn new<T: Scalar>(
        config: &Effective,
        shape: [usize; 3],
        memory: &MemoryPlan,
        kernel: &Kernel,
        samples: &Samples<T>,
    ) -> Self {
        let rates = Rates::measure(kernel, samples, shape[2]);
        let width = samples.points().width();
        Self {
            config: config.clone(),
            shape,
            kernel_kept: memory.kernel,
            memory_bytes: memory.bytes,
            seconds: seconds(config, [shape[0], width, shape[2]], memory.kernel, &rates),
            why: config.why.clone().unwrap_or("it was asked for".into()),
            ranks: 1,
        }
    }
}

impl Forecast {
    /// The same if so many ranks share the work: if they speak little with each other, the
    /// time is shared too.
    pub(super) fn on(mut self, ranks: &Ranks) -> Self {
        self.ranks = ranks.size();
        self.seconds /= self.ranks as f64;
        self
    }

    /// The time as people say it.
    pub fn duration(&self) -> String {
        Duration(self.seconds).to_string()
    }
}

/// Seconds of all that the method does, from those of a tile.
fn seconds(config: &Effective, [n, m, k]: [usize; 3], kept: Option<Format>, rates: &Rates) -> f64 {
    let threads = config.threads as f64;
    let side = n as f64 / TILE as f64;
    let all_kernel = side * side * rates.kernel / threads;
    let all_product = side * side * rates.product / threads;
    // Operations a second of a matrix product.
    let rate = threads * 2.0 * (TILE as f64).powi(3) / rates.square;
    let (n, iterations) = (n as f64, config.iterations as f64);
    let pass = match kept {
        Some(_) => all_product,
        None => all_product + 0.5 * all_kernel,
    };
    let half = 0.5 * all_kernel;
    let runs = config.averages as f64;
    // The inverse takes as long as the factor.
    let looks = if config.loo { 2.0 } else { 1.0 };
    runs * match config.method {
        Method::Exact => half + looks * n.powi(3) / 3.0 / rate + 2.0 * pass,
        Method::Pcg => {
            let rank = config.rank.unwrap_or_else(|| rank_for(n as usize, m)) as f64;
            let setup = 2.0 * n * rank * rank / rate;
            let left_out = match config.loo {
                true => {
                    let columns = LEFT_OUT_COLUMNS as f64 / (k + 1) as f64;
                    let kernel = LEFT_OUT_BATCHES as f64 * (pass - all_product);
                    LEFT_OUT_ITERATIONS * (columns * all_product + kernel)
                }
                false => 0.0,
            };
            half + setup
                + left_out
                + iterations.min(expected_iterations(config.tolerance))
                    * pass
                    * (1.0 + 2.0 * rank / n)
        }
        Method::Centers => {
            let p = config.centers.unwrap_or(0) as f64;
            let passes = iterations.min(CENTERS_ITERATIONS) + 1.0;
            passes * n * p * rates.of_a_pass() / threads + 2.0 * p.powi(3) / rate
        }
        Method::GaussSeidel => {
            let j = config.block_size as f64;
            // Computed anew, a pass and what follows it look at all of Ω, or twice at half;
            // but after a single one that takes long nothing follows.
            let (first, long) = match kept {
                Some(_) => (half, false),
                None => (0.0, n * n * m as f64 > LONG_LOOK),
            };
            let looks = if long && iterations == 1.0 { 1.0 } else { 2.0 };
            first + n * j * j / 3.0 / rate + iterations * looks * pass
        }
        _ => {
            let j = config.block_size as f64;
            let strip = j / n * all_kernel + n * j * j / rate + 4.0 * j / n * all_product;
            iterations * strip
        }
    }
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [n, m, k] = self.shape;
        let config = &self.config;
        let store = match (config.centers, self.kernel_kept) {
            (Some(centers), _) => format!("{centers} centres, fitted on all rows"),
            (_, Some(Format::Full)) => "kernel matrix kept in memory".into(),
            (_, Some(Format::Half)) => "kernel matrix kept in half precision".into(),
            (_, None) => "kernel matrix recomputed as needed".into(),
        };
        let ranks = match self.ranks {
            1 => String::new(),
            ranks => format!(" on each of {ranks} ranks"),
        };
        write!(
            f,
            "{n} rows, {m} features, {k} output{}; {} ({}) with c = {}; {} kernel; {store}; {} in {} \
             thread{}{ranks}; up to {}, about {}",
            plural(k),
            config.method,
            self.why,
            short(config.c),
            config.kernel,
            config.precision,
            config.threads,
            plural(config.threads),
            Bytes(self.memory_bytes),
            Duration(self.seconds),
        )
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A positive number without a row of zeros.
fn short(number: f64) -> String {
    match (1e-4..1e6).contains(&number) {
        true => number.to_string(),
        false => format!("{number:e}"),
    }
}

/// Seconds as people say them.
struct Duration(f64);

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            s if s < 1.0 => write!(f, "1 s"),
            s if s < 100.0 => write!(f, "{s:.0} s"),
            s if s < 6000.0 => write!(f, "{:.0} min", s / 60.0),
            s => write!(f, "{:.1} h", s / 3600.0),
        }
    }
}
