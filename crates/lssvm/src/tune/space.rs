//! What is searched.

use serde::{Deserialize, Serialize};

use super::{Candidate, scale_of};
use crate::data::{Dataset, ImageShape};
use crate::kernel::{Gamma, KernelName};
use crate::linalg::Scalar;
use crate::preprocess::PipelineSpec;
use crate::train::Config;
use crate::{Error, Result};

/// All combinations of these are candidates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Space {
    /// Steps applied to the features.
    pub preprocess: Vec<PipelineSpec>,
    /// Kernel functions.
    pub kernels: Vec<KernelName>,
    /// γ, as multiples of `scale`, for kernels that have it.
    pub gamma: Vec<f64>,
    /// Powers of `poly`, whose γ is `scale` and whose constant is 1 (or 1 and 0 for rows of
    /// unit length).
    pub degree: Vec<u32>,
    /// Regularisation weights.
    pub c: Vec<f64>,
}

impl Space {
    /// What is worth trying: for images with rows of unit length, polynomials and
    /// Gaussians; for tables scaled columns and all kernels that are positive.
    pub fn for_rows(image: Option<ImageShape>) -> Self {
        let steps = |text: &str| text.parse().unwrap_or_default();
        match image {
            Some(_) => Self {
                preprocess: vec![steps("center,unit-norm"), steps("fourier:exponent=1")],
                kernels: vec![KernelName::Poly, KernelName::Rbf],
                gamma: vec![0.3, 1.0, 3.0, 10.0],
                degree: vec![3, 4, 6, 8],
                c: half_decades(-1, 4),
            },
            None => Self {
                preprocess: vec![steps("standardize"), steps("min-max")],
                kernels: vec![
                    KernelName::Linear,
                    KernelName::Rbf,
                    KernelName::Laplacian,
                    KernelName::Poly,
                ],
                gamma: vec![0.1, 0.3, 1.0, 3.0],
                degree: vec![2, 3],
                c: half_decades(-2, 4),
            },
        }
    }

    /// Every combination, with γ worked out for these rows.
    pub(super) fn candidates<T: Scalar>(
        &self,
        rows: &Dataset<T>,
        base: &Config,
    ) -> Result<Vec<Candidate>> {
        let mut all = Vec::new();
        for steps in &self.preprocess {
            let base = Config {
                preprocess: Some(steps.clone()),
                ..base.clone()
            };
            let scale = scale_of(rows, &base)?;
            for &kernel in &self.kernels {
                for shaped in self.shapes(kernel, scale, rows.n_features(), &base) {
                    for &c in &self.c {
                        let config = Config {
                            c: Some(c),
                            ..shaped.clone()
                        };
                        all.push((all.len(), config));
                    }
                }
            }
        }
        match all.is_empty() {
            true => Err(Error::Data("there is nothing to search".into())),
            false => Ok(all),
        }
    }

    /// A kernel with each of its parameters.
    fn shapes(
        &self,
        kernel: KernelName,
        scale: f64,
        features: usize,
        base: &Config,
    ) -> Vec<Config> {
        let kernel_alone = Config {
            kernel: Some(kernel),
            ..base.clone()
        };
        let with_gamma = |gamma: f64| Config {
            gamma: Some(Gamma::Value(gamma)),
            ..kernel_alone.clone()
        };
        match kernel {
            KernelName::Linear => vec![kernel_alone.clone()],
            KernelName::Poly => {
                let degree = |&degree: &u32| Config {
                    degree: Some(degree),
                    coef0: Some(1.0),
                    ..with_gamma(scale.min(1.0))
                };
                self.degree.iter().map(degree).collect()
            }
            // |x − z| sums over features where ‖x − z‖² averages: the scale of an L1
            // distance of standardised features is their number.
            KernelName::Laplacian => {
                let unit = (scale / features.max(1) as f64).sqrt();
                self.gamma.iter().map(|g| with_gamma(g * unit)).collect()
            }
            _ => self.gamma.iter().map(|g| with_gamma(g * scale)).collect(),
        }
    }
}

/// Values from one power of ten to another, two to each; all of them cost little more than
/// one.
fn half_decades(from: i32, to: i32) -> Vec<f64> {
    let at = |i: i32| {
        let digit = if i.rem_euclid(2) == 0 { 1.0 } else { 3.0 };
        // Divided by a power that is exact, so that 0.3 is 0.3.
        match i.div_euclid(2) {
            power @ 0.. => digit * 10f64.powi(power),
            power => digit / 10f64.powi(-power),
        }
    };
    (2 * from..=2 * to).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_c_are_those_one_would_write() {
        let expected = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
        assert_eq!(half_decades(-2, 1), expected);
    }
}
