//! A committee of randomised Nyström solutions (§3.1 of the paper).
//!
//! ```text
//!     W(t) = Θ_(J,N)† Θ_(J,J) Θ_(N,J)† Z
//!          = Θ_s G⁻¹ Θ_ss G⁻¹ Θ_sᵀ Z,     G = Θ_sᵀ Θ_s
//!     W = mean of W(1), …, W(T)
//! ```
//!
//! The mean has the same largest class as the paper's sum, and keeps the scale
//! of scores and regression values. The quickest method, and the roughest: the
//! error is flat after a few members, at a height set by J.

use super::{Blocks, Method, Residual, Solver, State, Step, Work};
use crate::Result;
use crate::linalg::{Matrix, Output, Parallel, Scalar};
use crate::system::{Bordered, System, relative};

/// State of the committee.
#[derive(Debug)]
pub struct Nystrom<T: Scalar> {
    blocks: Blocks,
    members: usize,
    weights: Bordered<T>,
    right_hand_side: Bordered<T>,
}

impl<T: Scalar> Nystrom<T> {
    /// A committee without members.
    pub fn new(system: &System<T>, blocks: Blocks) -> Self {
        Self {
            blocks,
            members: 0,
            weights: system.zeros(),
            right_hand_side: system.right_hand_side(),
        }
    }
}

impl<T: Scalar> Solver<T> for Nystrom<T> {
    fn step(&mut self, work: &mut Work<'_, T>) -> Result<Step> {
        let indices = self.blocks.draw();
        let jitter = work.open_block(indices)?;
        let member = work.update(2, |strip, inverse| {
            let mut inner = strip.transposed_product(&self.right_hand_side);
            inverse.apply(&mut inner);
            let square = strip.square();
            let mut outer = Matrix::zeros(inner.rows(), inner.cols());
            let (out, s, q) = (outer.view_mut(), square.view(), inner.view());
            T::gemm_nn(out, Output::Replace, s, q, T::ONE, Parallel::Pool);
            inverse.apply(&mut outer);
            let mut member = Bordered::zeros(self.weights.rows.rows(), inner.cols());
            strip.add_product(&mut member, &outer, T::ONE);
            member
        });
        // mean ← mean + (member − mean) / (t + 1)
        self.members += 1;
        let mut change = member;
        change.add_scaled(&self.weights, -T::ONE);
        let share = 1.0 / self.members as f64;
        self.weights.add_scaled(&change, T::from_f64(share));
        let ranks = work.system.ranks();
        Ok(Step {
            relative_change: relative(share * change.norm(ranks), self.weights.norm(ranks)),
            jitter,
            finished: false,
            abandoned: false,
        })
    }

    fn weights(&self) -> &Bordered<T> {
        &self.weights
    }

    fn residual(&self) -> Option<Residual> {
        None
    }

    fn steps_per_pass(&self) -> usize {
        self.blocks.per_pass()
    }

    fn start_from(&mut self, _: &mut Work<'_, T>, _: Bordered<T>) -> Result<()> {
        Method::Nystrom.expect_start()
    }

    fn save<'a>(&'a self, state: &mut State<'a>) {
        self.blocks.save(state);
        state.put_counts("members", [self.members]);
        state.put_bordered("weights", &self.weights);
    }

    fn restore(&mut self, state: &mut State<'_>) -> Result<()> {
        self.blocks.restore(state)?;
        self.members = state.take_count("members")?;
        self.weights = state.take_bordered("weights", self.weights.shape())?;
        Ok(())
    }
}
