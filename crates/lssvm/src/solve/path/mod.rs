//! The whole path over c from one factorisation.
//!
//! ```text
//!     S(μ) = Ω + μ Λ,    Λ = diag(λᵢ),  λᵢ = 1/(c₀ wᵢ),    μ = c₀/c ≥ 1
//!     S̃(μ) = Λ^-½ S(μ) Λ^-½ = Ω̃ + μ I,     Ω̃ + I = L Lᵀ
//! ```
//!
//! c₀ is the largest c. In a space W of a few hundred vectors, W Ω̃ Wᵀ = Zᵀ diag(θ) Z, and
//! the solution for any μ costs two thin products: Ã(μ) = (ZW)ᵀ diag(1/(θ+μ)) ZW B̃. The
//! space holds what the solutions are made of:
//!
//! - B̃ = Λ^-½ [Y 1] and what powers of Ω̃ and of (Ω̃ + I)⁻¹ make of it (an extended Krylov
//!   space: Druskin and Knizhnerman, 1998): the first serve small c, the second large c;
//! - for some rows, the probes: eᵢ, and Ω̃ and (Ω̃ + I)⁻¹ applied to it up to three times, which
//!   give (S̃⁻¹)ᵢᵢ at every μ to a percent or better. `spread` goes from them to all rows.
//!
//! Leave-one-out scores follow from solution and diagonal as in
//! `leave_one_out`. Where the space would be half of all there is, it is all
//! there is, or each c has a factorisation of its own (`each`), and nothing is approximate.
//! What is not exact is said: the relative residual of the solution, and the error of the
//! diagonal as seen on the probes.

mod basis;
mod each;
mod space;
mod spread;
#[cfg(test)]
mod tests;

use self::basis::product;
use self::space::{Space, scale_columns, scaled_right, space_for};
use self::spread::{Diagonal, Spread};
use super::Work;
use crate::Result;
use crate::linalg::skinny::transpose_scaled;
use crate::linalg::{Matrix, Scalar, TiledCholesky};
use crate::system::{Bordered, System, relative};

/// Values of c whose residuals are computed together.
const BATCH: usize = 16;

/// Values of c up to which few rows have a factorisation for each: 1,000 rows of 64 features, ten
/// classes, take 6 ms a value on two threads (Zen 5), and by their eigenvectors 120 ms for all.
const MOST_FACTORS: usize = 16;

/// Solutions of the system, whose c is `largest_c`, for values of c that are none larger.
///
/// # Errors
/// As the exact solver; the kernel must be positive, or the rows few.
pub fn points<T: Scalar>(
    work: &mut Work<'_, T>,
    largest_c: f64,
    seed: u64,
    cs: &[f64],
) -> Result<Vec<Point<T>>> {
    let system = work.system;
    if cs.len() <= MOST_FACTORS && Path::<T>::is_exact(system.n(), system.outputs()) {
        let scale = scale_of(system);
        if let Some(points) = each::points(work, &scale, largest_c, cs)? {
            return Ok(points);
        }
    }
    Path::new(work, largest_c, seed)?.points(cs)
}

/// λᵢ^-½
fn scale_of<T: Scalar>(system: &System<T>) -> Vec<f64> {
    let all = 0..system.n();
    all.map(|i| system.lambda(i).powf(-0.5)).collect()
}

/// Everything that any c needs.
pub struct Path<T: Scalar> {
    /// c₀
    largest_c: f64,
    /// λᵢ^-½
    scale: Vec<f64>,
    targets: Matrix<T>,
    /// θ, and ZW, a vector a row.
    values: Vec<f64>,
    vectors: Matrix<T>,
    /// ZW B̃
    right: Matrix<f64>,
    shifted: Shifted<T>,
    /// How the diagonal goes from the probes to all rows; none if all rows are probes.
    spread: Option<Spread>,
    probes: Vec<usize>,
}

/// Ω̃ + I.
enum Shifted<T: Scalar> {
    /// By its factor, with ZW Λ^-½ L.
    Factored(TiledCholesky<T>, Matrix<T>),
    Whole(Matrix<T>),
}

/// The solution for one c.
pub struct Point<T: Scalar> {
    /// c
    pub c: f64,
    /// W
    pub weights: Bordered<T>,
    /// Scores of the training rows by models that never saw them, N × K.
    pub leave_one_out: Matrix<T>,
    /// ‖Z − ΘW‖ / ‖Z‖
    pub residual: f64,
    /// Root mean square of the relative error of the diagonal that leave-one-out scores are
    /// made with, as the probes tell; 0 if it is exact.
    pub diagonal_error: f64,
}

impl<T: Scalar> Path<T> {
    /// Factors the system, whose c is `largest_c`, and makes the space.
    ///
    /// # Errors
    /// As the exact solver; the kernel must be positive, or the rows few.
    pub fn new(work: &mut Work<'_, T>, largest_c: f64, seed: u64) -> Result<Self> {
        let system = work.system;
        let scale = scale_of(system);
        let space = match space_for(system.n(), system.outputs()) {
            Some(_) => Space::factored(work, &scale, seed)?,
            None => Space::whole(work, &scale)?,
        };
        let right = scaled_right(system, &scale);
        Ok(Self {
            right: coefficients(&space.vectors, &right),
            targets: system.targets().clone(),
            largest_c,
            scale,
            values: space.values,
            vectors: space.vectors,
            shifted: space.shifted,
            spread: space.spread,
            probes: space.probes,
        })
    }

    /// Bytes that it needs beside the data and the kernel matrix, with its factor.
    pub fn bytes(n: usize, outputs: usize) -> u64 {
        let value = size_of::<T>() as u64;
        let (n, wide) = (n as u64, space_for(n, outputs));
        match wide {
            // Ω̃ in both precisions, its vectors in both, and room to find them.
            None => n * n * (2 * value + 4 * 8),
            Some(space) => {
                let width = space.width(outputs) as u64;
                let threads = rayon::current_num_threads() as u64;
                let inverse = 2 * threads * n * crate::linalg::INVERSE_COLUMNS as u64 * value;
                let batch = (BATCH * (outputs + 1)) as u64;
                inverse + n * value * (4 * width + 4 * batch) + 5 * 8 * width * width
            }
        }
    }

    /// Whether these rows are few enough for an exact path.
    pub fn is_exact(n: usize, outputs: usize) -> bool {
        space_for(n, outputs).is_none()
    }

    /// Solutions for values of c, none larger than that of the system.
    pub fn points(&self, cs: &[f64]) -> Result<Vec<Point<T>>> {
        let mut points = Vec::with_capacity(cs.len());
        for batch in cs.chunks(BATCH) {
            let rows = self.right.cols();
            // Each c has a row for each output, and one for ν.
            let mut coefficients = Matrix::<T>::zeros(batch.len() * rows, self.values.len());
            for (at, c) in batch.iter().enumerate() {
                for k in 0..rows {
                    let row = coefficients.row_mut(at * rows + k).iter_mut();
                    row.zip(0..).for_each(|(v, j)| {
                        let mu = self.largest_c / c;
                        *v = T::from_f64(self.right.get(j, k) / (self.values[j] + mu));
                    });
                }
            }
            let solutions = product(coefficients.view(), self.vectors.view());
            let products = self.shifted_products(&coefficients, &solutions);
            for (at, &c) in batch.iter().enumerate() {
                let range = (at * rows, (at + 1) * rows);
                let solution = solutions.row_range(range.0, range.1);
                let product = products.row_range(range.0, range.1);
                let own = |a: crate::linalg::MatRef<'_, T>| transpose_scaled(a, T::ONE);
                let mu = self.largest_c / c;
                points.push(point(
                    (&self.targets, &self.scale),
                    (c, mu),
                    &own(solution),
                    &own(product),
                    &self.diagonal(mu)?,
                ));
            }
        }
        Ok(points)
    }

    /// (Ω̃ + I) of the solutions, which are rows.
    fn shifted_products(&self, coefficients: &Matrix<T>, solutions: &Matrix<T>) -> Matrix<T> {
        match &self.shifted {
            Shifted::Whole(matrix) => product(solutions.view(), matrix.view()),
            Shifted::Factored(factor, half) => {
                let between = product(coefficients.view(), half.view());
                let mut out = factor.rows_times_upper(&between);
                scale_columns(&mut out, &self.scale);
                out
            }
        }
    }

    /// The diagonal of S̃⁻¹.
    fn diagonal(&self, mu: f64) -> Result<Diagonal> {
        let shares: Vec<f64> = self.values.iter().map(|v| 1.0 / (v + mu)).collect();
        let known: Vec<f64> = self.probes.iter().map(|&i| self.own(i, &shares)).collect();
        match &self.spread {
            Some(spread) => spread.at(mu, &known),
            None => Ok(Diagonal {
                values: known,
                error: 0.0,
            }),
        }
    }

    /// Σₖ uₖᵢ² sharesₖ / Σₖ uₖᵢ²; the divisor is 1 but for rounding, as eᵢ is in the space.
    fn own(&self, i: usize, shares: &[f64]) -> f64 {
        let (mut sum, mut squares) = (0.0, 0.0);
        for (k, share) in shares.iter().enumerate() {
            let square = self.vectors.get(k, i).to_f64().powi(2);
            sum += square * share;
            squares += square;
        }
        sum / squares
    }
}

/// W, residual and leave-one-out scores for c and μ, from [Ã ν̃] and (Ω̃ + I)[Ã ν̃], N × (K+1),
/// and the diagonal of S̃⁻¹.
fn point<T: Scalar, U: Scalar>(
    (targets, scale): (&Matrix<T>, &[f64]),
    (c, mu): (f64, f64),
    solution: &Matrix<U>,
    its_product: &Matrix<U>,
    diagonal: &Diagonal,
) -> Point<T> {
    let (n, k) = (solution.rows(), solution.cols() - 1);
    let mut sums = vec![0.0; k + 1];
    for (i, scale) in scale.iter().enumerate() {
        let pairs = sums.iter_mut().zip(solution.row(i));
        pairs.for_each(|(sum, v)| *sum += scale * v.to_f64());
    }
    let ones = sums[k];
    let bias: Vec<f64> = sums[..k].iter().map(|sum| sum / ones).collect();
    let (mut left, mut whole) = (0.0, 0.0);
    let mut rows = Matrix::<T>::zeros(n, k);
    let mut leave_one_out = Matrix::<T>::zeros(n, k);
    for (i, &scale) in scale.iter().enumerate() {
        let nu = solution.get(i, k).to_f64();
        // Of S̃, and with the border of the bias.
        let inverse = diagonal.values[i] - nu * nu / ones;
        let left_of = |column: usize, right: f64| {
            let of_shift = (mu - 1.0) * solution.get(i, column).to_f64();
            right - (its_product.get(i, column).to_f64() + of_shift) / scale
        };
        let left_of_ones = left_of(k, 1.0);
        for (column, bias) in bias.iter().enumerate() {
            let weight = solution.get(i, column).to_f64() - nu * bias;
            let target = targets.get(i, column).to_f64();
            rows.set(i, column, T::from_f64(scale * weight));
            let misfit = weight / (scale * inverse);
            leave_one_out.set(i, column, T::from_f64(target - misfit));
            left += (left_of(column, target) - left_of_ones * bias).powi(2);
            whole += target * target;
        }
    }
    Point {
        c,
        weights: Bordered {
            bias: bias.into_iter().map(T::from_f64).collect(),
            rows,
        },
        leave_one_out,
        residual: relative(left.sqrt(), whole.sqrt()),
        diagonal_error: diagonal.error,
    }
}

/// Products of vectors and right-hand sides, which both are rows.
fn coefficients<T: Scalar>(vectors: &Matrix<T>, right: &Matrix<T>) -> Matrix<f64> {
    Matrix::from_fn(vectors.rows(), right.rows(), |j, k| {
        let pairs = vectors.row(j).iter().zip(right.row(k));
        pairs.map(|(a, b)| a.to_f64() * b.to_f64()).sum()
    })
}
