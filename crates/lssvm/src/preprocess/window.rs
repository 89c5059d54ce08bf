//! `window`, eq. (76): weakens the rim of an image.
//!
//! Pixel (i, j), counted from `first`, of each channel of H × W pixels is multiplied
//! by G = exp(−c[(i − H/2)² + (j − W/2)²]). For pictures whose subject is in
//! the middle. The paper counts from 1, so its centre is half a pixel up and left
//! of the true one, which is ((H + 1)/2, (W + 1)/2); counted from 0 it is half a
//! pixel down and right of it.

use serde::{Deserialize, Serialize};

use super::{check_image, need_image, rows};
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// The parameters of `window`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WindowSpec {
    /// How fast the weight falls with the squared distance from the middle, in
    /// pixels; `None` is 4/(H·W), the paper's 4L⁻² for a square image.
    pub c: Option<f64>,
    /// What the pixels of a row and a column are counted from: 1, as in the paper,
    /// or 0. Models of before there was a choice have 1.
    #[serde(default = "from_one")]
    pub first: u8,
}

fn from_one() -> u8 {
    1
}

impl Default for WindowSpec {
    fn default() -> Self {
        WindowSpec {
            c: None,
            first: from_one(),
        }
    }
}

impl WindowSpec {
    /// Whether the parameters are in their range.
    pub(super) fn check(&self) -> Result<()> {
        if self.first > 1 {
            let requirement = "pixels are counted from 1 or 0";
            return Err(Error::parameter("window:first", self.first, requirement));
        }
        match self.c {
            Some(c) if !(c.is_finite() && c >= 0.0) => Err(Error::parameter(
                "window:c",
                c,
                "must be a number that is 0 or more",
            )),
            _ => Ok(()),
        }
    }
}

/// `window` for images of a known shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Window {
    pub(super) spec: WindowSpec,
    image: [usize; 3],
}

impl Window {
    pub(super) fn fit(spec: WindowSpec, image: Option<[usize; 3]>) -> Result<Self> {
        Ok(Window {
            spec,
            image: need_image("window", image)?,
        })
    }

    /// Whether it can be applied to rows of `n_features` values.
    pub(super) fn check(&self, n_features: usize) -> Result<()> {
        self.spec.check()?;
        check_image(self.image, n_features)
    }

    /// G, row after row.
    fn weights(&self) -> Vec<f64> {
        let [_, height, width] = self.image;
        let (h, w) = (height as f64, width as f64);
        let c = self.spec.c.unwrap_or(4.0 / (h * w));
        let mut weights = Vec::with_capacity(height * width);
        let first = usize::from(self.spec.first);
        for i in first..first + height {
            for j in first..first + width {
                let distance = (i as f64 - h / 2.0).powi(2) + (j as f64 - w / 2.0).powi(2);
                weights.push((-c * distance).exp());
            }
        }
        weights
    }

    pub(super) fn apply<T: Scalar>(&self, x: &mut Matrix<T>) {
        let weights = self.weights();
        if weights.is_empty() {
            return;
        }
        rows::for_each(x, |row| {
            for channel in row.chunks_exact_mut(weights.len()) {
                for (v, weight) in channel.iter_mut().zip(&weights) {
                    *v = T::from_f64(v.to_f64() * weight);
                }
            }
        });
    }
}
