//! Randomised block Gauss–Seidel on S = Ω+λI.
//!
//! ```text
//!     for blocks s in random order:   S_ss Q = R_s,   V_s += Q,   R −= S[:, s] Q
//! ```
//!
//! V = [A ν] and R = [Y 1] − S V. No Gram matrix: a pass over all blocks costs one
//! look at all of Ω, and the factors of the blocks are kept from pass to pass, unless there are
//! so many rows that making them again takes little beside the values of Ω. The
//! rows must be in random order; blocks are runs of them. A step is one pass. The
//! error falls quickly in the first passes and slowly after that: for a small
//! residual take [`super::pcg`]. Before the tolerance is said to be met, and now and
//! then if Ω is kept in half precision, R is computed anew with true values of Ω.
//!
//! Where Ω is not kept, the first pass computes half of it: R is needed only in blocks that
//! are still to come, for V is zero there. After the pass R is computed anew, from the other
//! half so to speak, and with it comes the certificate: a model after one pass costs as
//! much as two looks at half of Ω. Where such a look takes long, it is left to the next
//! pass, if there is one, and the residual is estimated from some rows.
//!
//! Where rows live on several ranks, a block is of one of them: it factors S_ss and solves,
//! everybody gets Q (and the rows of the block, where Ω is not kept), and changes its own
//! rows of R.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;

use super::bordering::{LONG_LOOK, Reached, left_over, right_hand_sides, true_product};
use super::exact::factor_tiles;
use super::{Phase, Residual, Solver, State, Step, Work};
use crate::linalg::{Matrix, Scalar, TiledCholesky};
use crate::system::{Bordered, Certificate, Format, Store, System, TILE, product_bytes};
use crate::{Error, Result, random};

/// Factors are made again in every pass if that takes at most this share of the operations of
/// computing Ω, of so many rows that it is not kept on most machines.
const FACTOR_SHARE: f64 = 0.1;
const MANY_ROWS: usize = 1 << 18;

/// State of the iteration.
pub struct GaussSeidel<T: Scalar> {
    /// Tiles of a block.
    width: usize,
    rng: ChaCha8Rng,
    blocks: Vec<Block<T>>,
    /// Whether factors are made when they are needed, and forgotten.
    forgets: bool,
    v: Matrix<T>,
    r: Matrix<T>,
    /// Whether R is not what is left: the pass that made V looked at half of Ω.
    stale: bool,
    /// A look at Ω with more operations is left to the next pass.
    longest_look: f64,
    tolerance: f64,
    reached: Reached<T>,
}

struct Block<T: Scalar> {
    tiles: Range<usize>,
    /// If the rows are of this rank, and it is kept.
    factor: Option<TiledCholesky<T>>,
}

impl<T: Scalar> GaussSeidel<T> {
    /// Blocks of about `block_size` rows: whole tiles. `tolerance`: the relative
    /// residual that is aimed at.
    pub fn new(system: &System<T>, block_size: usize, seed: u64, tolerance: f64) -> Self {
        let rows = [system.own_rows(), system.n()];
        let features = system.samples().points().width();
        Self {
            width: tiles_of(block_size),
            rng: random::rng(seed),
            blocks: Vec::new(),
            forgets: forgets(rows, block_size, features),
            v: Matrix::zeros(system.own_rows(), system.outputs() + 1),
            r: right_hand_sides(system),
            stale: false,
            longest_look: LONG_LOOK,
            tolerance,
            reached: Reached::nowhere(system),
        }
    }

    /// Bytes that it needs beside the data and Ω, for so many rows on this rank and on all, and
    /// so many values of a row.
    pub fn bytes(rows: [usize; 2], block_size: usize, features: usize, outputs: usize) -> u64 {
        let [own, n] = rows;
        let block = rows_of_block(block_size).min(n);
        let blocks = match forgets(rows, block_size, features) {
            true => 1,
            false => own.div_ceil(block.max(1)) as u64,
        };
        let columns = 8 * (outputs as u64 + 1) * own as u64 * size_of::<T>() as u64;
        let factors = blocks * Store::<T>::bytes(block, Format::Full);
        factors + columns + product_bytes::<T>(rows, outputs + 1)
    }

    /// The factors of all blocks that are kept; returns the largest jitter.
    fn factor(&mut self, work: &mut Work<'_, T>) -> Result<f64> {
        let ranks = work.system.ranks();
        let all = work.system.tile_rows();
        let mut largest = 0f64;
        for start in (0..all).step_by(self.width) {
            let tiles = start..(start + self.width).min(all);
            let own = work.system.own_tiles().contains(&start);
            let factor = match own && !self.forgets {
                true => Some(self.factor_of(work, &tiles)),
                false => None,
            };
            let factor = ranks.agree(factor.transpose())?;
            let factor = factor.map(|(factor, jitter)| {
                largest = largest.max(jitter);
                factor
            });
            self.blocks.push(Block { tiles, factor });
        }
        Ok(ranks.each(largest).into_iter().fold(0.0, f64::max))
    }

    /// The factor of a block of this rank, and its jitter.
    fn factor_of(
        &self,
        work: &mut Work<'_, T>,
        tiles: &Range<usize>,
    ) -> Result<(TiledCholesky<T>, f64)> {
        let system = work.system;
        let rows = system.own_rows_of_tiles(tiles);
        let size = rows.len();
        let flops = match system.kept() {
            Some(_) => 0.0,
            None => system.kernel_flops(0.5 * (size * size) as f64),
        };
        let block =
            |system: &System<T>, _: &mut dyn FnMut(f64) -> bool| Ok(system.block_tiles(tiles));
        factor_tiles(work, rows, flops, &block)
    }

    /// The factor of a block in the middle of a pass, of which this share is done.
    fn factor_again(
        &self,
        work: &mut Work<'_, T>,
        tiles: &Range<usize>,
        done: f64,
    ) -> Result<(TiledCholesky<T>, f64)> {
        let share = 0.5 / self.blocks.len() as f64;
        let mut within = Work {
            system: work.system,
            block: &mut *work.block,
            phases: &mut *work.phases,
            progress: &mut |part| (work.progress)(done + share * part),
        };
        self.factor_of(&mut within, tiles)
    }
}

/// Whether factors of blocks are forgotten. One rank alone has time for it: others wait.
fn forgets([own, n]: [usize; 2], block_size: usize, features: usize) -> bool {
    let block = rows_of_block(block_size) as f64;
    let (factor, kernel) = (block * block / 3.0, 2.0 * n as f64 * features as f64);
    own == n && n >= MANY_ROWS && factor <= FACTOR_SHARE * kernel
}

/// V, R and the generator.
type Before<T> = (Matrix<T>, Matrix<T>, ChaCha8Rng);

impl<T: Scalar> GaussSeidel<T> {
    /// Computes what is left anew, and with it the certificate.
    fn look_again(&mut self, work: &mut Work<'_, T>) {
        let product = true_product(work, &self.v);
        self.r = left_over(&self.reached.right_hand_sides(work.system), &product);
        self.reached.certify(work.system, &product);
        self.stale = false;
    }

    /// Whether looking at all of Ω takes long; some rows are quickly had where one rank has
    /// them all.
    fn takes_long_to_look(&self, system: &System<T>) -> bool {
        let flops = system.true_product_flops(self.v.cols());
        system.shares().is_alone() && flops > self.longest_look
    }

    /// Goes back to where a pass began. Of the first one the weights are worth having.
    fn abandon(&mut self, (v, r, rng): Before<T>, first: bool, jitter: f64) -> Step {
        let relative_change = match first {
            true => self.reached.take_over(&self.v),
            false => 0.0,
        };
        (self.v, self.r, self.rng) = (v, r, rng);
        Step {
            relative_change,
            jitter,
            abandoned: true,
            ..Step::NONE
        }
    }
}

/// Rows of a block: a rank must have whole blocks.
pub fn rows_of_block(block_size: usize) -> usize {
    tiles_of(block_size) * TILE
}

/// Whole tiles, about as many rows.
fn tiles_of(block_size: usize) -> usize {
    ((block_size + TILE / 2) / TILE).max(1)
}

impl<T: Scalar> Solver<T> for GaussSeidel<T> {
    fn step(&mut self, work: &mut Work<'_, T>) -> Result<Step> {
        let mut jitter = match self.blocks.is_empty() {
            true => self.factor(work)?,
            false => 0.0,
        };
        if self.stale {
            self.look_again(work);
        }
        let system = work.system;
        let k = self.r.cols();
        let ranks = system.ranks();
        let first = ranks.all(self.v.values().iter().all(|&v| v == T::ZERO));
        let ahead_only = first && system.kept().is_none();
        let before = (self.v.clone(), self.r.clone(), self.rng.clone());
        let mut order: Vec<usize> = (0..self.blocks.len()).collect();
        random::shuffle(&mut self.rng, &mut order);
        let mut wanted = vec![true; system.tile_rows()];
        for (done, &block) in order.iter().enumerate() {
            if !ranks.all((work.progress)(done as f64 / order.len() as f64)) {
                return Ok(self.abandon(before, first, jitter));
            }
            let tiles = self.blocks[block].tiles.clone();
            let mut made = None;
            if self.forgets {
                let place = done as f64 / order.len() as f64;
                match self.factor_again(work, &tiles, place) {
                    Ok((factor, more)) => (made, jitter) = (Some(factor), jitter.max(more)),
                    Err(Error::Interrupted) => return Ok(self.abandon(before, first, jitter)),
                    Err(error) => return Err(error),
                }
            }
            let (tiles, factor) = (&tiles, made.as_ref().or(self.blocks[block].factor.as_ref()));
            if ahead_only {
                wanted[tiles.clone()].fill(false);
            }
            let tiles_ahead = wanted[system.own_tiles()].iter();
            let tiles_ahead = tiles_ahead.filter(|wanted| **wanted).count();
            let n = (tiles_ahead * TILE).min(system.own_rows()) as f64;
            let within = system.rows_of_tiles(tiles);
            let own = system.shares().place(within.start);
            let own = own.map(|start| start * k..(start + within.len()) * k);
            let size = within.len() as f64;
            let kernel = match system.kept() {
                Some(_) => 0.0,
                None => system.kernel_flops(n * size),
            };
            let flops = kernel + 2.0 * (n + size) * size * k as f64;
            let (v, r) = (&mut self.v, &mut self.r);
            work.phases.time(Phase::Product, flops, || {
                let mut change = Matrix::zeros(within.len(), k);
                if let (Some(factor), Some(own)) = (factor, own) {
                    change
                        .values_mut()
                        .copy_from_slice(&r.values()[own.clone()]);
                    factor.solve(&mut change);
                    let own = &mut v.values_mut()[own];
                    let pairs = own.iter_mut().zip(change.values());
                    pairs.for_each(|(v, &c)| *v += c);
                }
                system
                    .shares()
                    .give_values(within.start, change.values_mut());
                system.subtract_columns(r, tiles, &change, |tile| wanted[tile]);
            });
        }
        let change = self.reached.take_over(&self.v);
        self.stale = ahead_only;
        if !ahead_only {
            self.reached.estimate(system, &self.r);
        } else if self.takes_long_to_look(system) {
            self.reached.estimate_from_some(work, &self.v);
        }
        let unknown = self.reached.residual().is_none();
        if unknown || !ahead_only && self.reached.is_due(system, self.tolerance) {
            self.look_again(work);
        }
        Ok(Step {
            relative_change: change,
            jitter,
            finished: false,
            abandoned: false,
        })
    }

    fn weights(&self) -> &Bordered<T> {
        self.reached.weights()
    }

    fn residual(&self) -> Option<Residual> {
        self.reached.residual()
    }

    fn certificate(&self) -> Option<&Certificate> {
        self.reached.certificate()
    }

    fn steps_per_pass(&self) -> usize {
        // The residual says when it is time to stop, small changes do not.
        usize::MAX
    }

    fn start_from(&mut self, work: &mut Work<'_, T>, weights: Bordered<T>) -> Result<()> {
        self.reached.start_from(work, weights);
        self.r = self.reached.right_hand_sides(work.system);
        Ok(())
    }

    fn save<'a>(&'a self, state: &mut State<'a>) {
        state.put_position("random", &self.rng);
        state.put_rows("v", &self.v);
        state.put_rows("r", &self.r);
        state.put_numbers("stale", &[f64::from(u8::from(self.stale))]);
        self.reached.save(state);
    }

    fn restore(&mut self, state: &mut State<'_>) -> Result<()> {
        let shape = (self.v.rows(), self.v.cols());
        state.take_position("random", &mut self.rng)?;
        self.v = state.take_rows("v", shape)?;
        self.r = state.take_rows("r", shape)?;
        let [stale] = state.take_exactly("stale")?;
        self.stale = stale != 0.0;
        self.reached.restore(state, &self.v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::solve::{Course, Limits, Method, Silent, Solution, run_on};
    use crate::system::tests::problem;

    /// Passes over an Ω that is not kept, by a solver that was changed.
    fn passes(iterations: usize, change: fn(&mut GaussSeidel<f64>)) -> Solution<f64> {
        let system = problem(6 * TILE + 77, 3, 2, Kernel::Rbf { gamma: 0.3 }, 2.0);
        let mut solver = GaussSeidel::new(&system, TILE, 3, 0.0);
        change(&mut solver);
        let limits = Limits::after(iterations);
        let solver = (
            Box::new(solver) as Box<dyn Solver<f64>>,
            Method::GaussSeidel,
        );
        let nobody = [&mut None, &mut None];
        let course = Course::default();
        run_on(&system, solver, &limits, nobody, 0, &mut Silent, course).unwrap()
    }

    #[test]
    fn a_look_that_takes_long_is_left_to_the_next_pass() {
        for iterations in [1, 3] {
            let known = passes(iterations, |_| {});
            let left = passes(iterations, |solver| solver.longest_look = 0.0);
            assert_eq!(known.weights.rows, left.weights.rows);
            let [exact, about] = [&known, &left].map(|s| s.history[0].residual.unwrap());
            assert!(exact.exact && !about.exact);
            let ratio = about.relative / exact.relative;
            assert!((ratio - 1.0).abs() < 0.1, "{ratio}");
            let [a, b] = [&known, &left].map(|s| s.history[iterations - 1].residual.unwrap());
            assert!(iterations == 1 || a == b);
        }
    }

    #[test]
    fn factors_that_are_made_again_are_the_same() {
        let kept = passes(3, |_| {});
        let forgotten = passes(3, |solver| solver.forgets = true);
        assert_eq!(kept.weights.rows, forgotten.weights.rows);
    }

    #[test]
    fn factors_are_kept_where_they_are_dear() {
        let bytes = |n: usize, block| GaussSeidel::<f32>::bytes([n, n], block, 784, 10);
        assert!(!forgets([60_000; 2], 4096, 784) && forgets([513_000; 2], 4096, 784));
        assert!(!forgets([300_000; 2], 16_384, 784) && !forgets([513_000; 2], 4096, 10));
        assert!(!forgets([256_500, 513_000], 4096, 784), "others would wait");
        // 126 factors of 4096 rows take 4.2 GB.
        assert!(bytes(513_000, 4096) < 2_000_000_000);
        assert!(bytes(300_000, 16_384) > 9_000_000_000);
    }
}
