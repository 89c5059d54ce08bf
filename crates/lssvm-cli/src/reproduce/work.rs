//! How much work all runs are, and how long the rest of it takes.
//!
//! Work is counted in floating-point operations, reckoned from sizes and method:
//!
//! ```text
//! system   n²m + 2ntm                   Ω of n training and t test rows, if it is kept
//! step     (nJ² + J³/3) / runs          Gram matrix and factor of a block, for all that draw it
//!          2nJm + 2tJm                  Ω of the block, if it is not kept
//!          4nJk + 2tJk                  products with the weights of k outputs
//! exact    n³/3     pcg, gauss-seidel   2n²k an iteration
//! ```
//!
//! Operations differ in speed, and this machine from others: what is left of a run goes
//! at the speed that the run has shown, and what has not begun at that of all so far.

use lssvm::linalg::Precision;
use lssvm::solve::Method;
use lssvm::train::Effective;

/// What costs depend on besides the settings.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub features: usize,
    pub outputs: usize,
    pub test_rows: usize,
}

/// A part of the work: a kernel matrix, or the iterations of a run.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    units: f64,
    done: f64,
    /// Wall time it has taken so far.
    seconds: f64,
}

impl Part {
    fn left(&self) -> f64 {
        (self.units - self.done).max(0.0)
    }
}

/// All that is to be done.
#[derive(Debug)]
pub struct Work {
    runs: Vec<Effective>,
    sizes: Sizes,
    /// Iterations of each run.
    steps: Vec<Part>,
    /// The kernel matrix of each system.
    kernels: Vec<Part>,
    /// Which runs are on which system.
    groups: Vec<Vec<usize>>,
    /// When something was last done.
    last: f64,
}

impl Work {
    pub fn new(runs: Vec<Effective>, groups: &[Vec<usize>], sizes: Sizes) -> Self {
        let mut work = Self {
            steps: vec![Part::default(); runs.len()],
            kernels: vec![Part::default(); groups.len()],
            groups: groups.to_vec(),
            runs,
            sizes,
            last: 0.0,
        };
        for (system, group) in groups.iter().enumerate() {
            let first = &work.runs[group[0]];
            let (n, t) = (first.train_rows as f64, sizes.test_rows as f64);
            let numbers = n * n / 2.0 + n * t;
            let bytes = match first.precision {
                Precision::F32 => 4.0,
                Precision::F64 => 8.0,
            };
            let kept = numbers * bytes < first.budget.0 as f64;
            work.begin(system, sizes.features, kept);
        }
        work
    }

    /// Reckons a system: so many features after preprocessing, Ω kept or not.
    pub fn begin(&mut self, system: usize, features: usize, kept: bool) {
        let (m, t) = (features as f64, self.sizes.test_rows as f64);
        let k = self.sizes.outputs as f64;
        for &run in &self.groups[system] {
            let config = &self.runs[run];
            let (n, j) = (config.train_rows as f64, config.block_size as f64);
            let blocks = |c: &Effective| (c.method.draws_blocks(), c.block_size, c.seed);
            let sharing = self.groups[system].iter().filter(|&&other| {
                let other = &self.runs[other];
                other.averages == 1 && blocks(other) == blocks(config)
            });
            let sharing = match config.averages {
                1 => sharing.count().max(1) as f64,
                _ => 1.0,
            };
            let step = match config.method {
                Method::Exact => n.powi(3) / 3.0,
                Method::Pcg | Method::GaussSeidel => 2.0 * n * n * k,
                _ => {
                    let omega = if kept { 0.0 } else { 2.0 * (n + t) * j * m };
                    let shared = n * j * j + j.powi(3) / 3.0 + omega;
                    shared / sharing + (4.0 * n + 2.0 * t) * j * k
                }
            };
            self.steps[run].units = step * (config.iterations * config.averages) as f64;
        }
        let n = self.runs[self.groups[system][0]].train_rows as f64;
        self.kernels[system].units = match kept {
            true => n * n * m + 2.0 * n * t * m,
            false => 0.0,
        };
    }

    /// The settings of a run, all decided.
    pub fn run(&self, run: usize) -> &Effective {
        &self.runs[run]
    }

    /// This share of a system's kernel matrix is computed, so many seconds after the
    /// start.
    pub fn kernel(&mut self, system: usize, share: f64, now: f64) {
        advance(&mut self.kernels[system], &mut self.last, share, now);
    }

    /// This share of a run's iterations is made.
    pub fn step(&mut self, run: usize, share: f64, now: f64) {
        advance(&mut self.steps[run], &mut self.last, share, now);
    }

    /// A run has ended, earlier than it might have or not.
    pub fn ended(&mut self, run: usize, now: f64) {
        self.step(run, 1.0, now);
    }

    /// Seconds that the rest takes; none if nothing has been measured.
    pub fn left(&self) -> Option<f64> {
        let speed = |parts: &[Part]| {
            let done: f64 = parts.iter().map(|part| part.done).sum();
            let seconds: f64 = parts.iter().map(|part| part.seconds).sum();
            (done > 0.0 && seconds > 0.0).then(|| seconds / done)
        };
        let (steps, kernels) = (speed(&self.steps), speed(&self.kernels));
        let rest = |parts: &[Part], otherwise: f64| {
            let seconds = |part: &Part| match part.done > 0.0 {
                true => part.left() * part.seconds / part.done,
                false => part.left() * otherwise,
            };
            parts.iter().map(seconds).sum::<f64>()
        };
        let for_steps = steps.or(kernels)?;
        let for_kernels = kernels.or(steps)?;
        Some(rest(&self.steps, for_steps) + rest(&self.kernels, for_kernels))
    }
}

/// The time since something was last done went into this part.
fn advance(part: &mut Part, last: &mut f64, share: f64, now: f64) {
    part.done = part.done.max(part.units * share.clamp(0.0, 1.0));
    part.seconds += (now - *last).max(0.0);
    *last = now;
}

#[cfg(test)]
mod tests {
    use super::*;
    use lssvm::memory::Size;
    use lssvm::train::{Config, Shape};

    const SIZES: Sizes = Sizes {
        features: 700,
        outputs: 10,
        test_rows: 10_000,
    };

    fn run(method: Method, block_size: usize, iterations: usize) -> Effective {
        let config = Config {
            method: Some(method),
            block_size: Some(block_size),
            iterations: Some(iterations),
            memory: Some(Size(16_000_000_000)),
            ..Config::default()
        };
        let shape = Shape {
            rows: 60_000,
            features: SIZES.features,
            outputs: SIZES.outputs,
            others: SIZES.test_rows,
            validation: false,
            image: None,
            kept: None,
            ranks: 1,
        };
        config.resolve(shape).unwrap()
    }

    fn near(a: Option<f64>, b: f64) {
        let a = a.unwrap();
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn all_systems_count() {
        // Twice the same work, on two systems.
        let runs = vec![run(Method::Mp, 2000, 100), run(Method::Mp, 2000, 100)];
        let mut work = Work::new(runs, &[vec![0], vec![1]], SIZES);
        assert_eq!(work.left(), None);
        work.kernel(0, 1.0, 50.0);
        work.step(0, 0.5, 150.0);
        // Half of this run, and all of the other, its kernel matrix too.
        near(work.left(), 100.0 + 50.0 + 200.0);
        work.ended(0, 250.0);
        near(work.left(), 250.0);
        work.kernel(1, 1.0, 300.0);
        work.ended(1, 500.0);
        near(work.left(), 0.0);
    }

    #[test]
    fn a_step_counts_by_what_it_costs() {
        // Blocks of ten times the size: about a hundred times the work a step.
        let runs = vec![run(Method::Nystrom, 1000, 6), run(Method::Mp, 10_000, 6)];
        let mut work = Work::new(runs, &[vec![0, 1]], SIZES);
        work.kernel(0, 1.0, 0.0);
        work.ended(0, 6.0);
        let left = work.left().unwrap();
        assert!((300.0..700.0).contains(&left), "{left}");
        // What is measured counts more than what was reckoned.
        work.step(1, 0.5, 36.0);
        near(work.left(), 30.0);
    }

    #[test]
    fn runs_on_the_same_blocks_share_their_cost() {
        let alone = Work::new(vec![run(Method::Mp, 2000, 600)], &[vec![0]], SIZES);
        let three = [Method::Kaczmarz, Method::Mp, Method::KaczmarzMp];
        let runs = three.map(|method| run(method, 2000, 600)).to_vec();
        let together = Work::new(runs, &[vec![0, 1, 2]], SIZES);
        let units = |work: &Work| work.steps.iter().map(|part| part.units).sum::<f64>();
        let ratio = units(&together) / units(&alone);
        assert!((1.0..1.2).contains(&ratio), "{ratio}");
    }

    #[test]
    fn what_is_known_at_the_beginning_of_a_system_counts() {
        let runs = vec![run(Method::Mp, 2000, 100)];
        let mut work = Work::new(runs, &[vec![0]], SIZES);
        let kept = work.steps[0].units;
        work.begin(0, 1000, false);
        assert_eq!(work.kernels[0].units, 0.0);
        assert!(work.steps[0].units > 1.5 * kept);
    }
}
