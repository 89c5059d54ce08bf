//! What a step works with: the system, the block it opened, and clocks.
//!
//! All block methods begin with the strip of a block and the factor of its Gram
//! matrix, which cost far more than the rest of a step. The block that was opened
//! last stays open, so that methods that run together on the same blocks pay for
//! it once ([`super::run_together`]).

use super::{BlockInverse, Phase, Phases, State};
use crate::Result;
use crate::linalg::Scalar;
use crate::ranks::Shares;
use crate::system::{Strip, System};

/// A strip and the factor of its Gram matrix.
pub struct OpenBlock<T: Scalar> {
    strip: Strip<T>,
    inverse: Option<BlockInverse<T>>,
    /// Where the time went that it took to open it.
    cost: Phases,
    /// Seconds that were not spent because a block was open already.
    saved: f64,
    /// Columns and jitter of the block that a run was at when it was saved.
    before: Option<(usize, f64)>,
}

impl<T: Scalar> OpenBlock<T> {
    /// Nothing is open yet.
    pub fn new(shares: &Shares) -> Self {
        Self {
            strip: Strip::new(shares),
            inverse: None,
            cost: Phases::default(),
            saved: 0.0,
            before: None,
        }
    }

    /// What the next block begins with: columns and jitter of this one.
    fn last(&self) -> Option<(usize, f64)> {
        let open = self.inverse.as_ref();
        let open = open.map(|inverse| (self.strip.columns(), inverse.jitter()));
        open.or(self.before)
    }

    /// Notes what the next block begins with.
    pub(super) fn save(&self, state: &mut State<'_>) {
        let last = self.last();
        state.put_counts("columns", last.map(|(columns, _)| columns));
        state.put_numbers("jitter", last.map(|(_, jitter)| jitter).as_slice());
    }

    /// Takes that back.
    pub(super) fn restore(&mut self, state: &mut State<'_>) -> Result<()> {
        let (columns, jitter) = (state.take_counts("columns")?, state.take_numbers("jitter")?);
        self.before = columns.first().copied().zip(jitter.first().copied());
        Ok(())
    }

    /// Seconds saved since this was asked for the last time.
    pub(super) fn take_saved(&mut self) -> f64 {
        std::mem::take(&mut self.saved)
    }
}

/// What a step may use.
pub struct Work<'a, T: Scalar> {
    /// The system to solve.
    pub system: &'a System<T>,
    /// The block that was opened last, by this method or another.
    pub block: &'a mut OpenBlock<T>,
    /// Where the time goes.
    pub phases: &'a mut Phases,
    /// Told the share of a long step that is done; false asks to give up.
    pub progress: &'a mut dyn FnMut(f64) -> bool,
}

impl<T: Scalar> Work<'_, T> {
    /// Makes the strip of a block and the factor of its Gram matrix ready for
    /// [`Work::update`], and returns the jitter the factor needed.
    pub fn open_block(&mut self, indices: &[usize]) -> Result<f64> {
        let block = &mut *self.block;
        match &block.inverse {
            Some(_) if block.strip.indices() == indices => block.saved += block.cost.seconds(),
            _ => {
                // Blocks of one size resemble each other, also in being singular.
                let alike = block.last().filter(|last| last.0 == indices.len());
                let jitter = alike.map_or(0.0, |(_, jitter)| jitter);
                let memory = block.inverse.take().map(BlockInverse::into_memory);
                let mut gram = memory.unwrap_or_default();
                let (n, j) = (self.system.own_rows() as f64, indices.len() as f64);
                let flops = match self.system.kept() {
                    Some(_) => 0.0,
                    None => self.system.kernel_flops(n * j),
                };
                let (strip, cost) = (&mut block.strip, &mut block.cost);
                *cost = Phases::default();
                cost.time(Phase::Kernel, flops, || strip.fill(self.system, indices));
                cost.time(Phase::Gram, n * j * j, || strip.gram(&mut gram));
                let inverse = cost.time(Phase::Factor, j * j * j / 3.0, || {
                    BlockInverse::new(gram, indices.len(), jitter)
                })?;
                block.inverse = Some(inverse);
            }
        }
        self.phases.add(&block.cost);
        Ok(block.inverse.as_ref().map_or(0.0, BlockInverse::jitter))
    }

    /// Times products of the open strip with K columns.
    pub fn update<R>(
        &mut self,
        products: usize,
        f: impl FnOnce(&Strip<T>, &BlockInverse<T>) -> R,
    ) -> R {
        let strip = &self.block.strip;
        let inverse = self.block.inverse.as_ref().expect("a block is open");
        let (j, k) = (strip.columns(), self.system.outputs());
        let n = self.system.own_rows();
        let flops = 2.0 * products as f64 * n as f64 * j as f64 * k as f64;
        self.phases.time(Phase::Update, flops, || f(strip, inverse))
    }
}
