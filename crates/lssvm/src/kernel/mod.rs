//! Kernel functions Ω(x, z), a block at a time.
//!
//! | name | Ω(x, z) |
//! |---|---|
//! | `linear` | ⟨x, z⟩ |
//! | `poly` | (gamma·⟨x, z⟩ + coef0)^degree |
//! | `rbf` (Gaussian) | exp(−gamma·‖x − z‖²) |
//! | `laplacian` | exp(−gamma·‖x − z‖₁) |
//! | `sigmoid` | tanh(gamma·⟨x, z⟩ + coef0) |
//!
//! All but `laplacian` are a matrix product followed by one elementwise map,
//! which is applied while the block is still in the cache. The names and the
//! meaning of `gamma = "scale"` and `"auto"` are scikit-learn's. Products of rows of
//! pixels, centred and scaled or not, are made in bytes ([`crate::linalg::levels`]). The sigmoid
//! kernel is not positive definite: only `exact` solves with it reliably.

mod block;
mod sparse;
mod spec;

pub use block::{Relation, Samples, SamplesRef};
pub use spec::{Gamma, KernelName, KernelSpec};

use serde::{Deserialize, Serialize};

use crate::linalg::{MatMut, Scalar};

/// A kernel with all its numbers known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase")]
pub enum Kernel {
    /// ⟨x, z⟩
    Linear,
    /// (gamma·⟨x, z⟩ + coef0)^degree
    Poly {
        /// Factor of the inner product.
        gamma: f64,
        /// Added to the inner product.
        coef0: f64,
        /// The power.
        degree: u32,
    },
    /// exp(−gamma·‖x − z‖²)
    Rbf {
        /// 1 / (2·width²)
        gamma: f64,
    },
    /// exp(−gamma·‖x − z‖₁)
    Laplacian {
        /// 1 / width
        gamma: f64,
    },
    /// tanh(gamma·⟨x, z⟩ + coef0)
    Sigmoid {
        /// Factor of the inner product.
        gamma: f64,
        /// Added to the inner product.
        coef0: f64,
    },
}

/// Fills blocks of kernel values: the seam between kernels and the rest.
pub trait FillBlock<T: Scalar>: Sync {
    /// `out[i][j] = Ω(x_i, z_j)`, on the calling thread.
    fn fill(&self, out: MatMut<'_, T>, x: SamplesRef<'_, T>, z: SamplesRef<'_, T>);
}

impl Kernel {
    /// Whether the kernel matrix of any data has no negative eigenvalue.
    pub fn is_positive(&self) -> bool {
        match *self {
            Kernel::Linear | Kernel::Rbf { .. } | Kernel::Laplacian { .. } => true,
            Kernel::Poly { gamma, coef0, .. } => gamma >= 0.0 && coef0 >= 0.0,
            Kernel::Sigmoid { .. } => false,
        }
    }

    /// Floating-point operations for one value, with `n_features` features.
    pub fn flops(&self, n_features: usize) -> f64 {
        match self {
            Kernel::Laplacian { .. } => 3.0 * n_features as f64,
            _ => 2.0 * n_features as f64,
        }
    }

    fn needs_norms(&self) -> bool {
        matches!(self, Kernel::Rbf { .. })
    }
}
