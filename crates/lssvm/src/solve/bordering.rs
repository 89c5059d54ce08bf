//! The bias from one more right-hand side.
//!
//! ```text
//!     S [A ν] = [Y 1],   S = Ω+λI,     b = 1ᵀA / 1ᵀν,     a = A − ν b
//! ```
//!
//! W = [b; a] solves ΘW = Z if A and ν are exact. If they are not, the sum of a is
//! still zero for every output, and the rest of the residual is
//! Y − Sa − 1b = (Y − SA) − (1 − Sν) b.
//!
//! From weights (b₀, a₀) of another run, A cannot be begun: A = a₀ + νb₀, and ν was not
//! kept. What is missing can be, from zero:
//!
//! ```text
//!     S [E ν] = [R₀ 1],   R₀ = Y − Sa₀ − 1b₀,     δ = 1ᵀ(a₀ + E) / 1ᵀν
//!     b = b₀ + δ,   a = a₀ + E − νδ
//! ```
//!
//! With a₀ = 0 and b₀ = 0 it is the system above. The smaller R₀ is, the smaller is δ and
//! the less exact must ν be, so that a start near the solution is one.

use super::{Phase, Residual, State, Work};
use crate::Result;
use crate::linalg::{Matrix, Scalar, sum_of_squares};
use crate::ranks::Ranks;
use crate::system::{Bordered, Certificate, Format, System, TILE, relative};

/// [Y 1]
pub(super) fn right_hand_sides<T: Scalar>(system: &System<T>) -> Matrix<T> {
    let k = system.outputs();
    Matrix::from_fn(system.own_rows(), k + 1, |i, c| match c < k {
        true => system.targets().get(i, c),
        false => T::ONE,
    })
}

/// The sum of each column, over the rows of all ranks.
fn sums<T: Scalar>(ranks: &Ranks, matrix: &Matrix<T>) -> Vec<f64> {
    let mut sums = vec![0.0; matrix.cols()];
    for row in matrix.values().chunks_exact(matrix.cols()) {
        let pairs = sums.iter_mut().zip(row);
        pairs.for_each(|(sum, v)| *sum += v.to_f64());
    }
    ranks.sum(&mut sums);
    sums
}

/// b and a of [A ν], or δ and E − νδ of [E ν] and the sums of a₀; δ is zero before ν is
/// anything.
fn weights<T: Scalar>(ranks: &Ranks, solution: &Matrix<T>, before: Option<&[f64]>) -> Bordered<T> {
    let (n, k) = (solution.rows(), solution.cols() - 1);
    let mut sums = sums(ranks, solution);
    let pairs = sums.iter_mut().zip(before.unwrap_or_default());
    pairs.for_each(|(sum, before)| *sum += before);
    let ones = sums[k];
    let bias = |c: usize| if ones == 0.0 { 0.0 } else { sums[c] / ones };
    let bias: Vec<f64> = (0..k).map(bias).collect();
    let rows = Matrix::from_fn(n, k, |i, c| {
        let row = solution.row(i);
        T::from_f64(row[c].to_f64() - row[k].to_f64() * bias[c])
    });
    Bordered {
        bias: bias.into_iter().map(T::from_f64).collect(),
        rows,
    }
}

/// ‖Z − ΘW‖, from [Y 1] − S[A ν] and the bias, or from [R₀ 1] − S[E ν] and δ.
fn residual_norm<T: Scalar>(ranks: &Ranks, residual: &Matrix<T>, factors: &[f64]) -> f64 {
    let k = factors.len();
    let mut squares = 0.0;
    for row in residual.values().chunks_exact(k + 1) {
        let ones = row[k].to_f64();
        for (r, b) in row.iter().zip(factors) {
            squares += (r.to_f64() - ones * b).powi(2);
        }
    }
    ranks.sum_of(squares).sqrt()
}

/// S[A ν] from scratch, timed: Ω as it is kept, but never in half precision.
pub(super) fn true_product<T: Scalar>(work: &mut Work<'_, T>, v: &Matrix<T>) -> Matrix<f64> {
    let system = work.system;
    let flops = system.true_product_flops(v.cols());
    work.phases
        .time(Phase::Certify, flops, || system.true_product(v))
}

/// Z − ΘW of these weights: one look at all of Ω.
pub(super) fn residual_of<T: Scalar>(work: &mut Work<'_, T>, w: &Bordered<T>) -> Bordered<T> {
    let targets = work.system.targets();
    let product = true_product(work, &w.rows);
    let rows = Matrix::from_fn(targets.rows(), targets.cols(), |i, c| {
        let known = product.get(i, c) + w.bias[c].to_f64();
        T::from_f64(targets.get(i, c).to_f64() - known)
    });
    Bordered {
        bias: sums(work.system.ranks(), &w.rows)
            .into_iter()
            .map(|s| T::from_f64(-s))
            .collect(),
        rows,
    }
}

/// `right` − `product`, rounded once.
pub(super) fn left_over<T: Scalar>(right: &Matrix<T>, product: &Matrix<f64>) -> Matrix<T> {
    let pairs = right.values().iter().zip(product.values());
    let left = pairs.map(|(b, p)| T::from_f64(b.to_f64() - p)).collect();
    Matrix::from_vec(right.rows(), right.cols(), left)
}

/// Where a solver of S [A ν] = [Y 1] stands: W, and how far it is from the solution.
#[derive(Debug)]
pub(super) struct Reached<T: Scalar> {
    ranks: Ranks,
    weights: Bordered<T>,
    residual: Option<Residual>,
    certificate: Option<Certificate>,
    /// The relative residual when it was last known for certain.
    certain: f64,
    start: Option<Start<T>>,
}

/// Weights that a run began with.
#[derive(Debug)]
struct Start<T: Scalar> {
    weights: Bordered<T>,
    /// The sums of a₀.
    sums: Vec<f64>,
    /// R₀
    left: Matrix<T>,
}

impl<T: Scalar> Start<T> {
    fn new(ranks: &Ranks, weights: Bordered<T>, left: Matrix<T>) -> Self {
        Self {
            sums: sums(ranks, &weights.rows),
            weights,
            left,
        }
    }
}

/// Operations of a look at all of Ω that takes long: some seconds on two cores.
pub(crate) const LONG_LOOK: f64 = 1e12;

/// Rows from which a residual is estimated: it is then known to about 2 %.
const SOME_ROWS: usize = 4 * TILE;

/// In half precision, the share of a residual at which it is computed anew: below that
/// it says more about the rounding of Ω than about the solution.
const HALF_DROP: f64 = 0.01;

impl<T: Scalar> Reached<T> {
    /// At W = 0, before the first step.
    pub(super) fn nowhere(system: &System<T>) -> Self {
        Self {
            ranks: system.ranks().clone(),
            weights: system.zeros(),
            residual: None,
            certificate: None,
            certain: 1.0,
            start: None,
        }
    }

    /// Begins at these weights: one look at all of Ω.
    pub(super) fn start_from(&mut self, work: &mut Work<'_, T>, weights: Bordered<T>) {
        let system = work.system;
        let left = residual_of(work, &weights);
        self.weights = weights.clone();
        self.start = Some(Start::new(&self.ranks, weights, left.rows));
        let nothing = Matrix::zeros(system.own_rows(), system.outputs() + 1);
        self.certify(system, &nothing);
    }

    /// [Y 1], or [R₀ 1].
    pub(super) fn right_hand_sides(&self, system: &System<T>) -> Matrix<T> {
        let Some(start) = &self.start else {
            return right_hand_sides(system);
        };
        let k = system.outputs();
        Matrix::from_fn(system.own_rows(), k + 1, |i, c| match c < k {
            true => start.left.get(i, c),
            false => T::ONE,
        })
    }

    /// b, or δ: what ν is multiplied by.
    fn factor_of_ones(&self, output: usize) -> f64 {
        let before = self.start.as_ref().map(|start| start.weights.bias[output]);
        self.weights.bias[output].to_f64() - before.map_or(0.0, T::to_f64)
    }

    /// Takes over [A ν] or [E ν], and returns the relative change of W.
    pub(super) fn take_over(&mut self, v: &Matrix<T>) -> f64 {
        let start = self.start.as_ref();
        let mut weights = weights(&self.ranks, v, start.map(|start| &start.sums[..]));
        if let Some(start) = start {
            weights.add_scaled(&start.weights, T::ONE);
        }
        let mut change = weights.clone();
        change.add_scaled(&self.weights, -T::ONE);
        self.weights = weights;
        (self.residual, self.certificate) = (None, None);
        relative(change.norm(&self.ranks), self.weights.norm(&self.ranks))
    }

    /// Estimates the residual from what is left of the right-hand sides, as the solver
    /// knows it.
    pub(super) fn estimate(&mut self, system: &System<T>, left: &Matrix<T>) {
        let scale = self.ranks.sum_of(sum_of_squares(system.targets().values()));
        let scale = scale.sqrt();
        let factors = (0..system.outputs()).map(|c| self.factor_of_ones(c));
        let factors: Vec<f64> = factors.collect();
        self.residual = Some(Residual {
            relative: relative(residual_norm(&self.ranks, left, &factors), scale),
            exact: false,
        });
    }

    /// Estimates the residual of W from that of some rows, which lie evenly between all. For
    /// one rank alone.
    pub(super) fn estimate_from_some(&mut self, work: &mut Work<'_, T>, v: &Matrix<T>) {
        let (system, n) = (work.system, work.system.n());
        let count = SOME_ROWS.min(n);
        let some: Vec<usize> = (0..count).map(|i| i * n / count).collect();
        let values = count as f64 * n as f64;
        let flops = system.kernel_flops(values) + 2.0 * values * v.cols() as f64;
        let product = work.phases.time(Phase::Certify, flops, || {
            system.some_rows_of_product(&some, v)
        });
        let right = self.right_hand_sides(system).select_rows(&some);
        self.estimate(system, &left_over(&right, &product));
        if let Some(residual) = &mut self.residual {
            residual.relative *= (n as f64 / count as f64).sqrt();
        }
    }

    /// Certifies W by the product of [A ν], or [E ν], with S, from scratch.
    pub(super) fn certify(&mut self, system: &System<T>, product: &Matrix<f64>) {
        let k = system.outputs();
        // S a₀ = Y − R₀ − 1b₀
        let before = |i: usize, c: usize| match &self.start {
            Some(start) => {
                let (y, left) = (system.targets().get(i, c), start.left.get(i, c));
                y.to_f64() - left.to_f64() - start.weights.bias[c].to_f64()
            }
            None => 0.0,
        };
        let own = Matrix::from_fn(system.own_rows(), k, |i, c| {
            before(i, c) + product.get(i, c) - product.get(i, k) * self.factor_of_ones(c)
        });
        // The sum of a is zero, so that 1ᵀS1 does not matter.
        let certificate = Certificate::new(system, &self.weights, &own, 0.0);
        self.residual = Some(Residual {
            relative: certificate.relative_residual,
            exact: true,
        });
        self.certain = certificate.relative_residual;
        self.certificate = Some(certificate);
    }

    /// Notes what does not follow from [A ν].
    pub(super) fn save<'a>(&'a self, state: &mut State<'a>) {
        if let Some(start) = &self.start {
            state.put_bordered("start", &start.weights);
            state.put_rows("start-left", &start.left);
        }
        state.put_residual("residual", self.residual);
        state.put_certificate("certificate", self.certificate.as_ref());
        state.put_numbers("certain", &[self.certain]);
    }

    /// Takes that back, for this [A ν].
    pub(super) fn restore(&mut self, state: &mut State<'_>, v: &Matrix<T>) -> Result<()> {
        if state.has("start") {
            let shape = self.weights.shape();
            let weights = state.take_bordered("start", shape)?;
            let left = state.take_rows("start-left", shape)?;
            self.start = Some(Start::new(&self.ranks, weights, left));
        }
        self.take_over(v);
        self.residual = state.take_residual("residual")?;
        self.certificate = state.take_certificate("certificate")?;
        [self.certain] = state.take_exactly("certain")?;
        Ok(())
    }

    pub(super) fn weights(&self) -> &Bordered<T> {
        &self.weights
    }

    pub(super) fn residual(&self) -> Option<Residual> {
        self.residual
    }

    /// Of the weights as they are, if it is known.
    pub(super) fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }

    /// Whether the residual must be known for certain now: it seems to be within the
    /// tolerance, or Ω is in half precision and it has fallen far since it was.
    pub(super) fn is_due(&self, system: &System<T>, tolerance: f64) -> bool {
        let relative = self.residual.map_or(f64::INFINITY, |r| r.relative);
        let half = system.kept() == Some(Format::Half);
        relative <= tolerance || (half && relative <= HALF_DROP * self.certain)
    }
}
