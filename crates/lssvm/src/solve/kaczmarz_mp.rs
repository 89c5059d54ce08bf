//! The hybrid: a matching-pursuit step and a Kaczmarz step on the same block
//! (§3.4 of the paper).
//!
//! ```text
//!     MP:        Q = Θ_s† R,   W_s ← W_s + Q,   R ← R − Θ_s Q
//!     Kaczmarz:  W ← W + Θ_sᵀ† [ Z_s − Θ_sᵀ W ]
//! ```
//!
//! R is carried by the MP steps alone and is not the residual of W; that is the
//! only reading with the paper's cost. The paper leaves the order open. In this
//! one the error is in between those of the two methods from the first pass on, as
//! the paper has it; the other way round it is above both for two passes
//! (docs/performance.md). One strip, one Gram matrix and one factor serve both.

use super::bordering::residual_of;
use super::kaczmarz::{lacking, project, subtract};
use super::{Blocks, Residual, Solver, State, Step, Work};
use crate::Result;
use crate::linalg::Scalar;
use crate::system::{Bordered, System, relative};

/// State of the iteration.
#[derive(Debug)]
pub struct KaczmarzMp<T: Scalar> {
    blocks: Blocks,
    weights: Bordered<T>,
    right_hand_side: Bordered<T>,
    /// R of the MP steps.
    pursued: Bordered<T>,
    residual: Option<Residual>,
}

impl<T: Scalar> KaczmarzMp<T> {
    /// Starts at W = 0.
    pub fn new(system: &System<T>, blocks: Blocks) -> Self {
        Self {
            blocks,
            weights: system.zeros(),
            right_hand_side: system.right_hand_side(),
            pursued: system.right_hand_side(),
            residual: None,
        }
    }
}

impl<T: Scalar> Solver<T> for KaczmarzMp<T> {
    fn step(&mut self, work: &mut Work<'_, T>) -> Result<Step> {
        let indices = self.blocks.draw();
        let jitter = work.open_block(indices)?;
        // Before the MP step, which is made for this block: after it, its equations would
        // tell of a smaller residual than that of all.
        let (mut lacking, residual) = lacking(work, &self.weights, &self.right_hand_side);
        self.residual = Some(residual);
        let system = work.system;
        let pursuit = work.update(2, |strip, inverse| {
            let mut q = strip.transposed_product(&self.pursued);
            inverse.apply(&mut q);
            strip.scatter_add(&mut self.weights, &q);
            // Θ_s Q, by which R changes and what the equations lack does.
            let mut image = system.zeros();
            strip.add_product(&mut image, &q, T::ONE);
            self.pursued.add_scaled(&image, -T::ONE);
            subtract(&mut lacking, &strip.select(&image));
            q.frobenius_norm()
        });
        let change = project(work, &mut self.weights, lacking);
        Ok(Step {
            relative_change: relative(change + pursuit, self.weights.norm(work.system.ranks())),
            jitter,
            finished: false,
            abandoned: false,
        })
    }

    fn weights(&self) -> &Bordered<T> {
        &self.weights
    }

    fn residual(&self) -> Option<Residual> {
        self.residual
    }

    fn steps_per_pass(&self) -> usize {
        self.blocks.per_pass()
    }

    fn start_from(&mut self, work: &mut Work<'_, T>, weights: Bordered<T>) -> Result<()> {
        self.pursued = residual_of(work, &weights);
        self.weights = weights;
        Ok(())
    }

    fn save<'a>(&'a self, state: &mut State<'a>) {
        self.blocks.save(state);
        state.put_bordered("weights", &self.weights);
        state.put_bordered("pursued", &self.pursued);
        state.put_residual("residual", self.residual);
    }

    fn restore(&mut self, state: &mut State<'_>) -> Result<()> {
        let shape = self.weights.shape();
        self.blocks.restore(state)?;
        self.weights = state.take_bordered("weights", shape)?;
        self.pursued = state.take_bordered("pursued", shape)?;
        self.residual = state.take_residual("residual")?;
        Ok(())
    }
}
