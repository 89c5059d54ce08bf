//! A kernel as the user names it, before the data decide `gamma`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Kernel;
use crate::data::{Rows, for_each_points};
use crate::linalg::{Points, Scalar};
use crate::ranks::Ranks;
use crate::{Error, Result};

/// Which kernel function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelName {
    /// ⟨x, z⟩
    Linear,
    /// (gamma·⟨x, z⟩ + coef0)^degree
    #[serde(alias = "polynomial")]
    Poly,
    /// exp(−gamma·‖x − z‖²)
    #[serde(alias = "gaussian")]
    Rbf,
    /// exp(−gamma·‖x − z‖₁)
    Laplacian,
    /// tanh(gamma·⟨x, z⟩ + coef0)
    Sigmoid,
}

impl FromStr for KernelName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "linear" => KernelName::Linear,
            "poly" | "polynomial" => KernelName::Poly,
            "rbf" | "gaussian" => KernelName::Rbf,
            "laplacian" => KernelName::Laplacian,
            "sigmoid" => KernelName::Sigmoid,
            _ => {
                return Err(Error::parameter(
                    "kernel",
                    text,
                    "the kernels are linear, poly, rbf (or gaussian), laplacian and sigmoid",
                ));
            }
        })
    }
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KernelName::Linear => "linear",
            KernelName::Poly => "poly",
            KernelName::Rbf => "rbf",
            KernelName::Laplacian => "laplacian",
            KernelName::Sigmoid => "sigmoid",
        })
    }
}

/// The kernel coefficient: a number, or a rule that makes one from the data.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Gamma {
    /// 1 / (n_features · variance of all feature values)
    #[default]
    Scale,
    /// 1 / n_features
    Auto,
    /// This number.
    Value(f64),
}

impl Gamma {
    /// The number, for these (preprocessed) training rows and their weights, if they
    /// have any: a row of weight 2 is worth two equal rows here too.
    pub fn resolve<T: Scalar>(self, x: &dyn Rows<T>, weights: Option<&[f64]>) -> Result<f64> {
        self.resolve_on(&Ranks::default(), x, weights)
    }

    /// The same for rows of several ranks, of which these are one's.
    pub fn resolve_on<T: Scalar>(
        self,
        ranks: &Ranks,
        x: &dyn Rows<T>,
        weights: Option<&[f64]>,
    ) -> Result<f64> {
        Ok(match self {
            Gamma::Value(gamma) => gamma,
            Gamma::Auto => 1.0 / x.n_features().max(1) as f64,
            Gamma::Scale => {
                let variance = match weights {
                    Some(weights) => weighted_variance(ranks, x, weights)?,
                    None => variance(ranks, x)?,
                };
                // scikit-learn's rule for data that are all the same.
                if variance > 0.0 {
                    1.0 / (x.n_features() as f64 * variance)
                } else {
                    1.0
                }
            }
        })
    }
}

/// Variance of all values together, in two passes so that a large offset does
/// not swallow it.
fn variance<T: Scalar>(ranks: &Ranks, x: &dyn Rows<T>) -> Result<f64> {
    let n = ranks.sum_of((x.len() * x.n_features()) as f64).max(1.0);
    let mean_of = |f: &dyn Fn(f64) -> f64| {
        let mut sum = 0.0;
        let summed = for_each_points(x, |_, batch| {
            batch.values().iter().for_each(|v| sum += f(v.to_f64()));
            sum += f(0.0) * zeros(batch) as f64;
            Ok(())
        });
        ranks.agree(summed)?;
        Ok::<f64, Error>(ranks.sum_of(sum) / n)
    };
    let mean = mean_of(&|v| v)?;
    mean_of(&|v| (v - mean).powi(2))
}

/// Values that are not kept.
fn zeros<T: Scalar>(rows: &Points<T>) -> usize {
    rows.rows() * rows.cols() - rows.values().len()
}

/// The same, each row with its weight.
fn weighted_variance<T: Scalar>(ranks: &Ranks, x: &dyn Rows<T>, weights: &[f64]) -> Result<f64> {
    let total = ranks.sum_of(weights.iter().sum()) * x.n_features().max(1) as f64;
    let mean_of = |f: &dyn Fn(f64) -> f64| {
        let mut sum = 0.0;
        let summed = for_each_points(x, |start, batch| {
            for (i, weight) in weights[start..start + batch.rows()].iter().enumerate() {
                let row = match batch {
                    Points::Dense(rows) => rows.row(i),
                    Points::Sparse(rows) => rows.row(i).1,
                };
                let zeros = batch.cols() - row.len();
                let row: f64 = row.iter().map(|v| f(v.to_f64())).sum();
                sum += weight * (row + f(0.0) * zeros as f64);
            }
            Ok(())
        });
        ranks.agree(summed)?;
        Ok::<f64, Error>(ranks.sum_of(sum) / total)
    };
    let mean = mean_of(&|v| v)?;
    mean_of(&|v| (v - mean).powi(2))
}

impl FromStr for Gamma {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "scale" => Ok(Gamma::Scale),
            "auto" => Ok(Gamma::Auto),
            _ => text.parse().map(Gamma::Value).map_err(|_| {
                Error::parameter("gamma", text, "give a number, \"scale\" or \"auto\"")
            }),
        }
    }
}

impl fmt::Display for Gamma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gamma::Scale => f.write_str("scale"),
            Gamma::Auto => f.write_str("auto"),
            Gamma::Value(value) => value.fmt(f),
        }
    }
}

impl Serialize for Gamma {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Gamma::Value(value) => serializer.serialize_f64(*value),
            rule => serializer.collect_str(rule),
        }
    }
}

impl<'de> Deserialize<'de> for Gamma {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            Number(f64),
            Text(String),
        }
        match Raw::deserialize(deserializer)? {
            Raw::Number(value) => Ok(Gamma::Value(value)),
            Raw::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

/// A kernel as typed.
///
/// ```
/// use lssvm::kernel::{Gamma, Kernel, KernelName, KernelSpec};
/// use lssvm::linalg::Matrix;
/// let x = Matrix::from_rows(&[[1.0f32, -1.0], [-1.0, 1.0]]);
/// let spec = KernelSpec { name: KernelName::Rbf, gamma: Gamma::Scale, coef0: 0.0, degree: 3 };
/// assert_eq!(spec.resolve(&x, None).unwrap(), Kernel::Rbf { gamma: 0.5 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KernelSpec {
    /// Which function.
    pub name: KernelName,
    /// Coefficient, or the rule for it.
    pub gamma: Gamma,
    /// Constant term of `poly` and `sigmoid`.
    pub coef0: f64,
    /// Power of `poly`.
    pub degree: u32,
}

/// The highest power of `poly`: beyond it the kernel of unit vectors is the
/// identity matrix to rounding.
const HIGHEST_DEGREE: u32 = 100;

impl KernelSpec {
    /// Checks the numbers and works out `gamma` from (preprocessed) training rows, and
    /// their weights if they have any.
    pub fn resolve<T: Scalar>(&self, x: &dyn Rows<T>, weights: Option<&[f64]>) -> Result<Kernel> {
        self.resolve_on(&Ranks::default(), x, weights)
    }

    /// The same for rows of several ranks, of which these are one's.
    pub fn resolve_on<T: Scalar>(
        &self,
        ranks: &Ranks,
        x: &dyn Rows<T>,
        weights: Option<&[f64]>,
    ) -> Result<Kernel> {
        if !self.coef0.is_finite() {
            return Err(Error::parameter("coef0", self.coef0, "must be finite"));
        }
        if self.name == KernelName::Poly && !(1..=HIGHEST_DEGREE).contains(&self.degree) {
            let requirement = format!("must be from 1 to {HIGHEST_DEGREE}");
            return Err(Error::parameter("degree", self.degree, requirement));
        }
        let (coef0, degree) = (self.coef0, self.degree);
        if self.name == KernelName::Linear {
            return Ok(Kernel::Linear);
        }
        let gamma = self.gamma.resolve_on(ranks, x, weights)?;
        if !(gamma > 0.0 && gamma.is_finite()) {
            return Err(Error::parameter(
                "gamma",
                gamma,
                "must be positive and finite",
            ));
        }
        Ok(match self.name {
            KernelName::Linear => Kernel::Linear,
            KernelName::Poly => Kernel::Poly {
                gamma,
                coef0,
                degree,
            },
            KernelName::Rbf => Kernel::Rbf { gamma },
            KernelName::Laplacian => Kernel::Laplacian { gamma },
            KernelName::Sigmoid => Kernel::Sigmoid { gamma, coef0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;

    #[test]
    fn gamma_means_what_it_means_in_scikit_learn() {
        // X.var() of these is 1.25; two features.
        let x = Matrix::from_rows(&[[1.0f64, 2.0], [3.0, 4.0]]);
        assert!((Gamma::Scale.resolve(&x, None).unwrap() - 1.0 / (2.0 * 1.25)).abs() < 1e-15);
        assert_eq!(Gamma::Auto.resolve(&x, None).unwrap(), 0.5);
        let twice = x.select_rows(&[0, 1, 1]);
        let (weighted, repeated) = (
            Gamma::Scale.resolve(&x, Some(&[1.0, 2.0])).unwrap(),
            Gamma::Scale.resolve(&twice, None).unwrap(),
        );
        assert!((weighted - repeated).abs() < 1e-14);
        let same = Matrix::<f64>::zeros(3, 2);
        assert_eq!(Gamma::Scale.resolve(&same, None).unwrap(), 1.0);
    }

    #[test]
    fn gamma_reads_numbers_and_rules() {
        assert_eq!("scale".parse::<Gamma>().unwrap(), Gamma::Scale);
        assert_eq!("0.25".parse::<Gamma>().unwrap(), Gamma::Value(0.25));
        let json = serde_json::to_string(&[Gamma::Auto, Gamma::Value(2.0)]).unwrap();
        assert_eq!(json, "[\"auto\",2.0]");
        assert!("wide".parse::<Gamma>().is_err());
    }

    #[test]
    fn bad_numbers_are_refused() {
        let x = Matrix::from_rows(&[[1.0f64, 2.0]]);
        let spec = KernelSpec {
            name: KernelName::Poly,
            gamma: Gamma::Value(1.0),
            coef0: 0.0,
            degree: 4,
        };
        assert!(spec.resolve(&x, None).is_ok());
        for bad in [
            KernelSpec { degree: 0, ..spec },
            KernelSpec {
                coef0: f64::NAN,
                ..spec
            },
            KernelSpec {
                gamma: Gamma::Value(-1.0),
                ..spec
            },
            KernelSpec {
                gamma: Gamma::Value(f64::INFINITY),
                ..spec
            },
        ] {
            assert!(bad.resolve(&x, None).is_err(), "{bad:?}");
        }
    }
}
