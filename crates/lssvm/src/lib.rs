//! Kernel least-squares support vector machines for data whose kernel matrix
//! is too large for a direct solve.
//!
//! Data flows through the modules in this order; a module uses only those
//! before it (but for `compiled`, by which the large functions are compiled with this crate):
//!
//! ```text
//! linalg → ranks → data → preprocess → kernel → system → solve → model → metrics → train → tune
//! ```
//!
//! The library never prints, never exits and keeps no global state.

mod compiled;
mod container;
pub mod data;
pub mod error;
mod files;
pub mod kernel;
pub mod linalg;
pub mod memory;
pub mod metrics;
pub mod model;
pub mod preprocess;
pub mod random;
pub mod ranks;
pub mod solve;
pub mod system;
pub mod train;
pub mod tune;

pub use error::{Error, Result};

/// Runs the examples of the documentation pages as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/prediction.md")]
#[doc = include_str!("../../../docs/data.md")]
struct DocumentationPages;
