//! Preconditioned conjugate gradients on S = Ω+λI.
//!
//! ```text
//!     S V = [Y 1],   R = [Y 1] − S V,   Z = P⁻¹R
//!     α = ⟨R,Z⟩/⟨D,SD⟩,   V += αD,   R −= αSD,   D ← Z + βD,   β = ⟨R,Z⟩ new/old
//! ```
//!
//! One product with S serves all columns; each has its own α and β, and rests when
//! its residual is small enough. P is a Nyström approximation
//! (see `preconditioner`). A step is one iteration: N² values of Ω are read,
//! or computed again if they are not kept. The choice for the full solution of
//! large systems: the residual is known, and falls by orders of magnitude where the
//! paper's methods take the square of the condition.
//!
//! R follows from its own recursion and drifts from the true residual by rounding;
//! it is computed anew from time to time.

use super::bordering::{residual_norm, right_hand_sides, weights};
use super::preconditioner::{Preconditioner, rank_for};
use super::{Phase, Residual, Solver, Step, Work};
use crate::Result;
use crate::linalg::{Matrix, Scalar};
use crate::system::{Bordered, System, relative};

/// Iterations after which R is computed anew.
const FRESH_EVERY: usize = 50;

/// A column rests when its own residual is so much of the tolerance for all.
const COLUMN_SHARE: f64 = 0.3;

/// State of the iteration.
pub struct Pcg<T: Scalar> {
    rank: usize,
    tolerance: f64,
    state: Option<State<T>>,
    weights: Bordered<T>,
    residual: Option<Residual>,
    iterations: usize,
}

struct State<T: Scalar> {
    preconditioner: Preconditioner<T>,
    /// [Y 1] and the norms of its columns.
    right: Matrix<T>,
    scale: Vec<f64>,
    v: Matrix<T>,
    r: Matrix<T>,
    /// Directions and ⟨R, Z⟩ of all columns.
    d: Matrix<T>,
    rz: Vec<f64>,
}

impl<T: Scalar> Pcg<T> {
    /// `rank` of the preconditioner (none: chosen from the size), and the relative
    /// residual at which a column may rest.
    pub fn new(system: &System<T>, rank: Option<usize>, tolerance: f64) -> Self {
        let features = system.samples().matrix().cols();
        let rank = rank.unwrap_or_else(|| rank_for(system.n(), features));
        Self {
            rank: rank.clamp(1, system.n()),
            tolerance: COLUMN_SHARE * tolerance,
            state: None,
            weights: Bordered::zeros(system.n(), system.outputs()),
            residual: None,
            iterations: 0,
        }
    }

    /// Bytes that it needs beside the data and Ω.
    pub fn bytes(n: usize, rank: usize, outputs: usize) -> u64 {
        let columns = 10 * (outputs as u64 + 1) * n as u64 * size_of::<T>() as u64;
        Preconditioner::<T>::bytes(n, rank) + columns
    }

    fn begin(&self, work: &mut Work<'_, T>) -> Result<State<T>> {
        let preconditioner = Preconditioner::new(work, self.rank)?;
        let right = right_hand_sides(work.system);
        let (n, k) = (right.rows(), right.cols());
        Ok(State {
            scale: dots(&right, &right).into_iter().map(f64::sqrt).collect(),
            v: Matrix::zeros(n, k),
            r: right.clone(),
            d: Matrix::zeros(n, k),
            rz: vec![0.0; k],
            preconditioner,
            right,
        })
    }
}

impl<T: Scalar> State<T> {
    /// Columns whose residual is not yet small enough.
    fn awake(&self, tolerance: f64) -> Vec<usize> {
        let norms = dots(&self.r, &self.r);
        let awake = |&c: &usize| norms[c].sqrt() > tolerance * self.scale[c];
        (0..norms.len()).filter(awake).collect()
    }

    fn step(&mut self, work: &mut Work<'_, T>, tolerance: f64, fresh: bool) {
        let system = work.system;
        let awake = self.awake(tolerance);
        if awake.is_empty() {
            return;
        }
        let (n, k) = (system.n() as f64, awake.len() as f64);
        let r = columns(&self.r, &awake);
        let flops = 4.0 * n * self.preconditioner_rank() * k;
        let z = work
            .phases
            .time(Phase::Precondition, flops, || self.preconditioner.apply(&r));
        let rz = dots(&r, &z);
        let mut d = columns(&self.d, &awake);
        for (c, &place) in awake.iter().enumerate() {
            let beta = match self.rz[place] {
                0.0 => 0.0,
                before => rz[c] / before,
            };
            add_column(&mut d, c, beta, &z);
            self.rz[place] = rz[c];
        }
        let product = product(work, &d);
        let curvature = dots(&d, &product);
        for (c, &place) in awake.iter().enumerate() {
            // Zero only for a direction of rounding noise, which is no use.
            let alpha = match curvature[c] > 0.0 {
                true => rz[c] / curvature[c],
                false => 0.0,
            };
            let alpha = T::from_f64(alpha);
            for i in 0..d.rows() {
                let step = alpha * d.get(i, c);
                self.v.row_mut(i)[place] += step;
                self.r.row_mut(i)[place] -= alpha * product.get(i, c);
                self.d.row_mut(i)[place] = d.get(i, c);
            }
        }
        if fresh {
            let product = self::product(work, &self.v);
            let values = self.right.values().iter().zip(product.values());
            let r = values.map(|(&b, &p)| b - p).collect();
            self.r = Matrix::from_vec(self.right.rows(), self.right.cols(), r);
        }
    }

    fn preconditioner_rank(&self) -> f64 {
        self.preconditioner.rank() as f64
    }
}

impl<T: Scalar> Solver<T> for Pcg<T> {
    fn step(&mut self, work: &mut Work<'_, T>) -> Result<Step> {
        let mut state = match self.state.take() {
            Some(state) => state,
            None => self.begin(work)?,
        };
        self.iterations += 1;
        let fresh = self.iterations.is_multiple_of(FRESH_EVERY);
        state.step(work, self.tolerance, fresh);
        let weights = weights(&state.v);
        let mut change = weights.clone();
        change.add_scaled(&self.weights, -T::ONE);
        self.weights = weights;
        let scale = work.system.targets().frobenius_norm();
        self.residual = Some(Residual {
            relative: relative(residual_norm(&state.r, &self.weights.bias), scale),
            exact: false,
        });
        self.state = Some(state);
        Ok(Step {
            relative_change: relative(change.norm(), self.weights.norm()),
            jitter: 0.0,
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

/// S · V, timed.
fn product<T: Scalar>(work: &mut Work<'_, T>, v: &Matrix<T>) -> Matrix<T> {
    let system = work.system;
    let n = system.n() as f64;
    let kernel = match system.kept() {
        Some(_) => 0.0,
        None => system.kernel_flops(0.5 * n * n),
    };
    let flops = kernel + 2.0 * n * n * v.cols() as f64;
    let product = work
        .phases
        .time(Phase::Product, flops, || system.shifted_product(v));
    product.cast()
}

/// ⟨a, b⟩ of each column, in `f64`.
fn dots<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) -> Vec<f64> {
    let k = a.cols();
    let mut sums = vec![0.0; k];
    let rows = a.values().chunks_exact(k).zip(b.values().chunks_exact(k));
    for (a, b) in rows {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a.to_f64() * b.to_f64();
        }
    }
    sums
}

/// Some columns, copied.
fn columns<T: Scalar>(a: &Matrix<T>, which: &[usize]) -> Matrix<T> {
    Matrix::from_fn(a.rows(), which.len(), |i, c| a.row(i)[which[c]])
}

/// Column `c` of `d` ← `beta` · itself + column `c` of `z`.
fn add_column<T: Scalar>(d: &mut Matrix<T>, c: usize, beta: f64, z: &Matrix<T>) {
    let beta = T::from_f64(beta);
    for i in 0..d.rows() {
        let value = beta * d.get(i, c) + z.get(i, c);
        d.set(i, c, value);
    }
}
