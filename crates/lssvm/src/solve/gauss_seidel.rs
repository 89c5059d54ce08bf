//! Randomised block Gauss–Seidel on S = Ω+λI.
//!
//! ```text
//!     for blocks s in random order:   S_ss Q = R_s,   V_s += Q,   R −= S[:, s] Q
//! ```
//!
//! V = [A ν] and R = [Y 1] − S V. No Gram matrix: a pass over all blocks costs one
//! look at all of Ω, and the factors of the blocks are kept from pass to pass. The
//! rows must be in random order; blocks are runs of them. A step is one pass. The
//! error falls quickly in the first passes and slowly after that: for a small
//! residual take [`super::pcg`].

use rand_chacha::ChaCha8Rng;

use super::bordering::{residual_norm, right_hand_sides, weights};
use super::{Phase, Residual, Solver, Step, Work};
use crate::linalg::{Cholesky, Matrix, Scalar};
use crate::system::{Bordered, System, TILE, relative};
use crate::{Result, random};

/// State of the iteration.
pub struct GaussSeidel<T: Scalar> {
    /// Tiles of a block.
    width: usize,
    rng: ChaCha8Rng,
    blocks: Vec<Block<T>>,
    v: Matrix<T>,
    r: Matrix<T>,
    weights: Bordered<T>,
    residual: Option<Residual>,
}

struct Block<T: Scalar> {
    tiles: std::ops::Range<usize>,
    factor: Cholesky<T>,
}

impl<T: Scalar> GaussSeidel<T> {
    /// Blocks of about `block_size` rows: whole tiles.
    pub fn new(system: &System<T>, block_size: usize, seed: u64) -> Self {
        Self {
            width: tiles_of(block_size),
            rng: random::rng(seed),
            blocks: Vec::new(),
            v: Matrix::zeros(system.n(), system.outputs() + 1),
            r: right_hand_sides(system),
            weights: Bordered::zeros(system.n(), system.outputs()),
            residual: None,
        }
    }

    /// Bytes that it needs beside the data and Ω.
    pub fn bytes(n: usize, block_size: usize, outputs: usize) -> u64 {
        let block = (tiles_of(block_size) * TILE).min(n) as u64;
        let columns = 6 * (outputs as u64 + 1) * n as u64;
        ((n as u64 + 2 * block) * block + columns) * size_of::<T>() as u64
    }

    /// The factors of all blocks; returns the largest jitter.
    fn factor(&mut self, work: &mut Work<'_, T>) -> Result<f64> {
        let system = work.system;
        let all = system.tile_rows();
        let mut jitter = 0f64;
        for start in (0..all).step_by(self.width) {
            let tiles = start..(start + self.width).min(all);
            let size = system.rows_of_tiles(&tiles).len() as f64;
            let flops = match system.kept() {
                Some(_) => 0.0,
                None => system.kernel_flops(0.5 * size * size),
            };
            let block = work
                .phases
                .time(Phase::Kernel, flops, || system.shifted_block(&tiles));
            let flops = size * size * size / 3.0;
            let factor = work.phases.time(Phase::Factor, flops, || {
                Cholesky::of_full(block, &mut |_| true)
            })?;
            jitter = jitter.max(factor.jitter());
            self.blocks.push(Block { tiles, factor });
            if !(work.progress)(0.0) {
                return Err(crate::Error::Interrupted);
            }
        }
        Ok(jitter)
    }
}

/// Whole tiles, about as many rows.
fn tiles_of(block_size: usize) -> usize {
    ((block_size + TILE / 2) / TILE).max(1)
}

impl<T: Scalar> Solver<T> for GaussSeidel<T> {
    fn step(&mut self, work: &mut Work<'_, T>) -> Result<Step> {
        let jitter = match self.blocks.is_empty() {
            true => self.factor(work)?,
            false => 0.0,
        };
        let system = work.system;
        let (n, k) = (system.n() as f64, self.r.cols());
        let mut order: Vec<usize> = (0..self.blocks.len()).collect();
        random::shuffle(&mut self.rng, &mut order);
        for block in order {
            let Block { tiles, factor } = &self.blocks[block];
            let within = system.rows_of_tiles(tiles);
            let values = self.r.values()[within.start * k..within.end * k].to_vec();
            let mut change = Matrix::from_vec(within.len(), k, values);
            let size = within.len() as f64;
            let kernel = match system.kept() {
                Some(_) => 0.0,
                None => system.kernel_flops(n * size),
            };
            let flops = kernel + 2.0 * (n + size) * size * k as f64;
            let (v, r) = (&mut self.v, &mut self.r);
            work.phases.time(Phase::Product, flops, || {
                factor.solve(change.view_mut());
                let own = &mut v.values_mut()[within.start * k..within.end * k];
                let pairs = own.iter_mut().zip(change.values());
                pairs.for_each(|(v, &c)| *v += c);
                system.subtract_columns(r, tiles, &change);
            });
        }
        let weights = weights(&self.v);
        let mut change = weights.clone();
        change.add_scaled(&self.weights, -T::ONE);
        self.weights = weights;
        let scale = system.targets().frobenius_norm();
        self.residual = Some(Residual {
            relative: relative(residual_norm(&self.r, &self.weights.bias), scale),
            exact: false,
        });
        Ok(Step {
            relative_change: relative(change.norm(), self.weights.norm()),
            jitter,
            finished: false,
        })
    }

    fn weights(&self) -> &Bordered<T> {
        &self.weights
    }

    fn residual(&self) -> Option<Residual> {
        self.residual
    }

    fn steps_per_pass(&self) -> usize {
        // The residual says when it is time to stop, small changes do not.
        usize::MAX
    }
}
