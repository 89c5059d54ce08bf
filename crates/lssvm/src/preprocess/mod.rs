//! Steps that turn raw features into what the kernel sees.
//!
//! With x a row (a sample) of M values, ⟨x⟩ its mean and ‖x‖ its length, and
//! equation numbers of Andrecut (2016):
//!
//! | step | what it does | learns |
//! |---|---|---|
//! | `center` | x ← x − ⟨x⟩ (61) | nothing |
//! | `unit-norm` | x ← x / ‖x‖ (62) | nothing |
//! | `window` | xᵢⱼ ← xᵢⱼ exp(−c[(i−H/2)² + (j−W/2)²]), i and j from 1 or 0 (76) | the image shape |
//! | `fourier` | ξ = x − ⟨x⟩, φ = \|FFT ξ\|^½ − ⟨·⟩, x ← \[ξ/‖ξ‖, φ/‖φ‖\]/√2 (69)–(75) | the image shape |
//! | `standardize` | column ← (column − its mean) / its standard deviation | means, deviations |
//! | `max-abs` | column ← column / its greatest absolute value | the greatest |
//! | `min-max` | column ← (column − its least) / (its greatest − its least) | least, greatest |
//!
//! A row without length, a column without spread, becomes zero instead of a
//! division by zero.
//!
//! `unit-norm` and `max-abs` leave zeros as they are, and `min-max` does where the least
//! values are zero: sparse rows then stay sparse. Other steps make them dense.
//!
//! Steps are written as text, parameters after colons, and applied from left
//! to right: `window:c=0.004,fourier:transform=2d`. That text is a
//! [`PipelineSpec`]; fitted on training data it gives a [`Pipeline`], which is
//! saved in the model and treats each row alone: a row gives the same bits
//! whatever the batch it comes in.
//!
//! ```
//! use lssvm::{linalg::Matrix, preprocess::PipelineSpec};
//! let spec: PipelineSpec = "center,unit-norm".parse()?;
//! let (pipeline, x) = spec.fit(Matrix::from_rows(&[[1.0f32, 7.0, 4.0, 4.0]]), None)?;
//! let h = 0.5f32.sqrt();
//! assert_eq!(x.row(0), &[-h, h, 0.0, 0.0]);
//! assert_eq!(pipeline.transform(Matrix::from_rows(&[[0.0f32, 0.0, 0.0, 0.0]]))?.row(0), &[0.0; 4]);
//! # Ok::<(), lssvm::Error>(())
//! ```
//!
//! To add a step: a file with its `fit` and `apply`, a variant of [`StepSpec`]
//! with its words in `spec.rs`, and a variant of `Step` in `pipeline.rs`.

mod center;
mod columns;
mod fourier;
mod max_abs;
mod min_max;
mod pipeline;
mod rows;
mod spec;
mod standardize;
#[cfg(test)]
mod tests;
mod unit_norm;
mod window;

pub use fourier::{FourierSpec, Order, Transform};
pub use pipeline::{Pipeline, Preprocessed};
pub use spec::{PipelineSpec, StepSpec};
pub use window::WindowSpec;

use crate::{Error, Result};

/// The shape of the images for a step that cannot do without.
fn need_image(step: &str, image: Option<[usize; 3]>) -> Result<[usize; 3]> {
    image.ok_or_else(|| {
        Error::Data(format!(
            "{step} works on images, and their shape is not known here: give --image-shape 28x28 \
             (with your height and width), and put {step} before any other fourier, whose result \
             is no image"
        ))
    })
}

/// Whether images of this shape have `n_features` values. No image is empty:
/// in a damaged file a zero could hide two sizes beyond all memory.
fn check_image([channels, height, width]: [usize; 3], n_features: usize) -> Result<()> {
    let pixels = height
        .checked_mul(width)
        .and_then(|p| p.checked_mul(channels));
    if pixels == Some(n_features) && n_features > 0 {
        return Ok(());
    }
    Err(Error::Data(format!(
        "images of {channels} channel(s) of {height} x {width} pixels do not fit {n_features} \
         features: correct --image-shape"
    )))
}
