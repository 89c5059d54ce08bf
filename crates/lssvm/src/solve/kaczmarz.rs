//! Randomised block Kaczmarz with standardised rows (§3.2 of the paper).
//!
//! ```text
//!     W(t+1) = W(t) + Θ̂_s† [ Ẑ_s − Θ̂_s W(t) ],    Θ̂_s† = Θ̂_sᵀ (Θ̂_s Θ̂_sᵀ)⁻¹
//! ```
//!
//! Θ_s are J rows of Θ, divided by their norms; Θ is symmetric, so they are the
//! transpose of the strip. W is projected on the solutions of these J
//! equations: its distance to the solution never rises. All rows of W change
//! in a step, so that following the error costs a full product.

use super::{Blocks, Residual, Solver, State, Step, Work};
use crate::Result;
use crate::linalg::{Matrix, Scalar, sum_of_squares};
use crate::system::{Bordered, System, relative};

/// State of the iteration.
#[derive(Debug)]
pub struct Kaczmarz<T: Scalar> {
    blocks: Blocks,
    weights: Bordered<T>,
    right_hand_side: Bordered<T>,
    residual: Option<Residual>,
}

impl<T: Scalar> Kaczmarz<T> {
    /// Starts at W = 0.
    pub fn new(system: &System<T>, blocks: Blocks) -> Self {
        Self {
            blocks,
            weights: system.zeros(),
            right_hand_side: system.right_hand_side(),
            residual: None,
        }
    }
}

/// What the open block's equations lack, Z_s − Θ_sᵀ W, and an estimate of the residual of
/// all equations.
pub(super) fn lacking<T: Scalar>(
    work: &mut Work<'_, T>,
    weights: &Bordered<T>,
    right_hand_side: &Bordered<T>,
) -> (Matrix<T>, Residual) {
    let (system, size) = (work.system, work.system.n() + 1);
    work.update(1, |strip, _| {
        let mut difference = strip.select(right_hand_side);
        subtract(&mut difference, &strip.transposed_product(weights));
        // The rows of a block are a random sample of all rows. The bias is not: scaled
        // like them, its one equation made the estimate jump once in every pass.
        let bias = strip.indices().iter().filter(|&&i| i == 0).count();
        let (first, rows) = difference.values().split_at(bias * difference.cols());
        let scale = (size - 1) as f64 / (strip.columns() - bias).max(1) as f64;
        let sampled = sum_of_squares(first) + sum_of_squares(rows) * scale;
        let residual = Residual {
            relative: relative(sampled.sqrt(), right_hand_side.norm(system.ranks())),
            exact: false,
        };
        (difference, residual)
    })
}

/// Projects `weights` on the solutions of the open block's equations, which lack so much, and
/// returns the size of the change.
pub(super) fn project<T: Scalar>(
    work: &mut Work<'_, T>,
    weights: &mut Bordered<T>,
    mut lacking: Matrix<T>,
) -> f64 {
    let system = work.system;
    work.update(1, |strip, inverse| {
        inverse.apply(&mut lacking);
        let mut change = system.zeros();
        strip.add_product(&mut change, &lacking, T::ONE);
        weights.add_scaled(&change, T::ONE);
        change.norm(system.ranks())
    })
}

/// `from -= what`
pub(super) fn subtract<T: Scalar>(from: &mut Matrix<T>, what: &Matrix<T>) {
    let pairs = from.values_mut().iter_mut().zip(what.values());
    pairs.for_each(|(v, &w)| *v -= w);
}

impl<T: Scalar> Solver<T> for Kaczmarz<T> {
    fn step(&mut self, work: &mut Work<'_, T>) -> Result<Step> {
        let indices = self.blocks.draw();
        let jitter = work.open_block(indices)?;
        let (lacking, residual) = lacking(work, &self.weights, &self.right_hand_side);
        self.residual = Some(residual);
        let change = project(work, &mut self.weights, lacking);
        Ok(Step {
            relative_change: relative(change, self.weights.norm(work.system.ranks())),
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

    fn start_from(&mut self, _: &mut Work<'_, T>, weights: Bordered<T>) -> Result<()> {
        self.weights = weights;
        Ok(())
    }

    fn save<'a>(&'a self, state: &mut State<'a>) {
        self.blocks.save(state);
        state.put_bordered("weights", &self.weights);
        state.put_residual("residual", self.residual);
    }

    fn restore(&mut self, state: &mut State<'_>) -> Result<()> {
        self.blocks.restore(state)?;
        self.weights = state.take_bordered("weights", self.weights.shape())?;
        self.residual = state.take_residual("residual")?;
        Ok(())
    }
}
