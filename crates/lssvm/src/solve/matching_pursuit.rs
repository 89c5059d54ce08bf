//! Randomised block matching pursuit (§3.3 of the paper).
//!
//! ```text
//!     W(0) = 0,  R(0) = Z
//!     Q = Θ_s† R(t) = (Θ_sᵀ Θ_s)⁻¹ Θ_sᵀ R(t)
//!     W_s(t+1) = W_s(t) + Q
//!     R(t+1) = R(t) − Θ_s Q
//! ```
//!
//! ‖R‖ never rises, and R is the true residual of W. Choose it when the kernel
//! matrix does not fit in memory and a smooth curve is wanted.

use super::bordering::residual_of;
use super::{Blocks, Residual, Solver, State, Step, Update, Work};
use crate::Result;
use crate::linalg::{Matrix, Scalar};
use crate::ranks::Ranks;
use crate::system::{Bordered, System, relative};

/// State of the iteration.
#[derive(Debug)]
pub struct MatchingPursuit<T: Scalar> {
    blocks: Blocks,
    indices: Vec<usize>,
    change: Matrix<T>,
    weights: Bordered<T>,
    residual: Bordered<T>,
    /// ‖Z‖
    scale: f64,
    /// ‖R‖ / ‖Z‖, where it is known.
    relative: Option<f64>,
}

impl<T: Scalar> MatchingPursuit<T> {
    /// Starts at W = 0.
    pub fn new(system: &System<T>, blocks: Blocks) -> Self {
        let residual = system.right_hand_side();
        Self {
            blocks,
            indices: Vec::new(),
            change: Matrix::zeros(0, system.outputs()),
            weights: system.zeros(),
            scale: residual.norm(system.ranks()),
            residual,
            relative: None,
        }
    }
}

impl<T: Scalar> MatchingPursuit<T> {
    fn measure(&mut self, ranks: &Ranks) {
        self.relative = Some(relative(self.residual.norm(ranks), self.scale));
    }
}

impl<T: Scalar> Solver<T> for MatchingPursuit<T> {
    fn step(&mut self, work: &mut Work<'_, T>) -> Result<Step> {
        self.indices = self.blocks.draw().to_vec();
        let jitter = work.open_block(&self.indices)?;
        work.update(2, |strip, inverse| {
            let mut q = strip.transposed_product(&self.residual);
            inverse.apply(&mut q);
            strip.scatter_add(&mut self.weights, &q);
            strip.add_product(&mut self.residual, &q, -T::ONE);
            self.change = q;
        });
        let ranks = work.system.ranks();
        self.measure(ranks);
        let weights = self.weights.norm(ranks);
        Ok(Step {
            relative_change: relative(self.change.frobenius_norm(), weights),
            jitter,
            finished: false,
            abandoned: false,
        })
    }

    fn weights(&self) -> &Bordered<T> {
        &self.weights
    }

    fn residual(&self) -> Option<Residual> {
        self.relative.map(|relative| Residual {
            relative,
            exact: true,
        })
    }

    fn updates(&self, tell: &mut dyn FnMut(Update<'_, T>, T)) {
        let (indices, change) = (&self.indices, &self.change);
        tell(Update::Rows { indices, change }, T::ONE);
    }

    fn steps_per_pass(&self) -> usize {
        self.blocks.per_pass()
    }

    fn start_from(&mut self, work: &mut Work<'_, T>, weights: Bordered<T>) -> Result<()> {
        self.residual = residual_of(work, &weights);
        self.weights = weights;
        self.measure(work.system.ranks());
        Ok(())
    }

    fn save<'a>(&'a self, state: &mut State<'a>) {
        self.blocks.save(state);
        state.put_bordered("weights", &self.weights);
        state.put_bordered("residual", &self.residual);
    }

    fn restore(&mut self, state: &mut State<'_>) -> Result<()> {
        let shape = self.weights.shape();
        self.blocks.restore(state)?;
        self.weights = state.take_bordered("weights", shape)?;
        self.residual = state.take_bordered("residual", shape)?;
        Ok(())
    }
}
