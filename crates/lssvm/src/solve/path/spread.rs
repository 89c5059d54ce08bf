//! The diagonal of the inverse for every μ, from what is known of it at μ = 1 for all rows
//! and at every μ for a few of them, the probes.
//!
//! ```text
//!     1/(S⁻¹)ᵢᵢ = μ + vᵢ(μ),      vᵢ(1) ≤ vᵢ(μ) ≤ vᵢ(∞) = Ωᵢᵢ,      vᵢ(μ) = vᵢ(1)¹⁻ᵗ Ωᵢᵢᵗ
//! ```
//!
//! vᵢ is what the other rows leave unexplained of row i. How far it has come from one end
//! to the other, t, is much the same for all rows; the probes tell how it goes with what
//! each row looks like: log(vᵢ(1)/Ωᵢᵢ) and log(Σⱼ Ωᵢⱼ²/Ωᵢᵢ²), up to their squares. How well
//! that does is seen on each probe by the fit to the others.

use crate::Result;
use crate::linalg::{Cholesky, Matrix};

/// 1, two features, their squares and their product.
const TERMS: usize = 6;

/// Features count up to so many standard deviations from the probes' mean.
const FAR: f64 = 3.0;

/// A share of Ωᵢᵢ below which nothing is left to explain.
const NOTHING: f64 = 1e-9;

/// What is known of the diagonal.
pub(super) struct Spread {
    /// vᵢ at μ = 1, and Ωᵢᵢ.
    ends: Vec<(f64, f64)>,
    terms: Vec<[f64; TERMS]>,
    probes: Vec<usize>,
}

/// The diagonal at one μ.
pub(super) struct Diagonal {
    /// (S⁻¹)ᵢᵢ
    pub(super) values: Vec<f64>,
    /// Root mean square of its relative error, as the probes tell.
    pub(super) error: f64,
}

impl Spread {
    /// `first`: the diagonal of S⁻¹ at μ = 1; `omega`: that of Ω; `squares`: Σⱼ Ωᵢⱼ² over
    /// the other rows.
    pub(super) fn new(first: &[f64], omega: &[f64], squares: &[f64], probes: Vec<usize>) -> Self {
        let pairs = first.iter().zip(omega);
        let ends: Vec<(f64, f64)> = pairs
            .map(|(&d, &top)| {
                let top = top.max(f64::MIN_POSITIVE);
                ((1.0 / d - 1.0).clamp(NOTHING * top, top), top)
            })
            .collect();
        let raw: Vec<[f64; 2]> = ends
            .iter()
            .zip(squares)
            .map(|(&(v, top), &sum)| [(v / top).ln(), (sum / (top * top)).max(NOTHING).ln()])
            .collect();
        let among = |f: &dyn Fn(usize) -> f64| {
            probes.iter().map(|&i| f(i)).sum::<f64>() / probes.len().max(1) as f64
        };
        let scale = [0, 1].map(|at| {
            let mean = among(&|i| raw[i][at]);
            let variance = among(&|i| (raw[i][at] - mean).powi(2));
            (mean, variance.sqrt().max(1e-6))
        });
        let terms = raw.iter().map(|raw| {
            let [x, z] = [0, 1].map(|at| {
                let (mean, deviation) = scale[at];
                ((raw[at] - mean) / deviation).clamp(-FAR, FAR)
            });
            [1.0, x, z, x * x, z * z, x * z]
        });
        Self {
            terms: terms.collect(),
            ends,
            probes,
        }
    }

    /// The diagonal at `mu`, of which that of the probes is known.
    pub(super) fn at(&self, mu: f64, known: &[f64]) -> Result<Diagonal> {
        let fit = Fit::new(self, mu, known)?;
        let value = |t: f64, i: usize| {
            let (v, top) = self.ends[i];
            1.0 / (mu + v * (t.clamp(0.0, 1.0) * (top / v).ln()).exp())
        };
        let all = 0..self.ends.len();
        let mut values: Vec<f64> = all.map(|i| value(fit.at(&self.terms[i]), i)).collect();
        let mut squares = 0.0;
        for (place, &i) in self.probes.iter().enumerate() {
            let told = value(fit.without(place), i);
            squares += (told / known[place] - 1.0).powi(2);
            values[i] = known[place];
        }
        let error = (squares / self.probes.len().max(1) as f64).sqrt();
        Ok(Diagonal { values, error })
    }
}

/// t of the probes by least squares, each with the weight that it has in the diagonal.
struct Fit {
    coefficients: [f64; TERMS],
    /// For each probe: t by the fit to the other probes.
    others: Vec<f64>,
}

impl Fit {
    fn new(spread: &Spread, mu: f64, known: &[f64]) -> Result<Self> {
        let probes = spread.probes.iter().zip(known);
        let points: Vec<([f64; TERMS], f64, f64)> = probes
            .map(|(&i, &d)| {
                let (v, top) = spread.ends[i];
                let range = (top / v).ln().max(1e-6);
                let now = (1.0 / d - mu).clamp(v, top);
                // How the logarithm of the diagonal goes with t.
                let weight = (now / (now + mu) * range).max(1e-9);
                (spread.terms[i], (now / v).ln() / range, weight)
            })
            .collect();
        let mut normal = Matrix::<f64>::zeros(TERMS, TERMS);
        let mut right = Matrix::<f64>::zeros(TERMS, 1);
        let most = points.iter().map(|(_, _, w)| w * w).fold(0.0, f64::max);
        for (terms, t, weight) in &points {
            let weight = weight * weight / most;
            for a in 0..TERMS {
                for b in 0..TERMS {
                    let sum = normal.get(a, b) + weight * terms[a] * terms[b];
                    normal.set(a, b, sum);
                }
                right.set(a, 0, right.get(a, 0) + weight * terms[a] * t);
            }
        }
        // A little towards t = 0, so that few or equal probes are no harm.
        for a in 0..TERMS {
            normal.set(a, a, normal.get(a, a) + 1e-6);
        }
        let factor = Cholesky::new(normal)?;
        factor.solve(right.view_mut());
        let coefficients: [f64; TERMS] = std::array::from_fn(|a| right.get(a, 0));
        let others = points.iter().map(|(terms, t, weight)| {
            let mut own = Matrix::from_fn(TERMS, 1, |a, _| terms[a]);
            factor.solve(own.view_mut());
            let lever: f64 = (0..TERMS).map(|a| terms[a] * own.get(a, 0)).sum();
            let lever = (lever * weight * weight / most).min(0.99);
            let told = dot(&coefficients, terms);
            // What is left of its own point, had it not been there.
            t - (t - told) / (1.0 - lever)
        });
        Ok(Self {
            others: others.collect(),
            coefficients,
        })
    }

    fn at(&self, terms: &[f64; TERMS]) -> f64 {
        dot(&self.coefficients, terms)
    }

    fn without(&self, place: usize) -> f64 {
        self.others[place]
    }
}

fn dot(a: &[f64; TERMS], b: &[f64; TERMS]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
