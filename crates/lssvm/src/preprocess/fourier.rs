//! `fourier`, eqs. (69)–(75): a row and the size of its Fourier transform.
//!
//! ```text
//! ξ = x − ⟨x⟩     φ = |FFT(ξ)|^exponent, first half     φ ← φ − ⟨φ⟩
//! x ← [ξ/‖ξ‖, φ/‖φ‖] / √2
//! ```
//!
//! The size of the transform does not change when an image is shifted, which
//! is what it adds to the pixels: in the paper 1.1 → 0.85 % error on MNIST. A
//! row grows by half: 784 → 1176. The transform of real numbers is symmetric,
//! so the first ⌈M/2⌉ values say all.
//!
//! `transform=1d` transforms the whole row as one signal, channels one after
//! the other; `1d-channel` transforms each channel as one signal, and `2d` each
//! channel as an image, and both keep the first half of each spectrum. `order`
//! says how an image becomes a vector, before a 1-D transform and for "the first
//! half" of a 2-D spectrum. The exponent acts on |FFT|: who reads ½ as that of
//! |FFT|² means exponent 1.

use std::sync::Arc;

use rayon::prelude::*;
use realfft::{RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};
use serde::{Deserialize, Serialize};

use super::{check_image, need_image, rows};
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// Rows that are copied before they grow over each other, enough for all threads.
const ROWS_THAT_MOVE: usize = 64 * rows::ROWS_PER_TASK;

/// Which transform `fourier` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Transform {
    /// One transform of the whole row, as in the paper.
    #[default]
    #[serde(rename = "1d")]
    OneD,
    /// One transform of each channel, whose pixels are one signal.
    #[serde(rename = "1d-channel")]
    OneDChannel,
    /// A two-dimensional transform of each channel.
    #[serde(rename = "2d")]
    TwoD,
}

impl Transform {
    /// The step's name in errors, if it needs to know the channels.
    fn by_channel(self) -> Option<&'static str> {
        match self {
            Transform::OneD => None,
            Transform::OneDChannel => Some("fourier:transform=1d-channel"),
            Transform::TwoD => Some("fourier:transform=2d"),
        }
    }
}

/// In which order the pixels of an image are made a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Column after column, as in the paper. Without an image shape the row is
    /// taken as it is.
    #[default]
    Columns,
    /// Row after row, which is how the data lie.
    Rows,
}

/// The parameters of `fourier`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FourierSpec {
    /// The power to which |FFT| is raised; 0.5 by default.
    pub exponent: f64,
    /// One- or two-dimensional, of the whole row or of each channel.
    pub transform: Transform,
    /// How an image becomes a vector.
    pub order: Order,
}

impl Default for FourierSpec {
    fn default() -> Self {
        FourierSpec {
            exponent: 0.5,
            transform: Transform::default(),
            order: Order::default(),
        }
    }
}

impl FourierSpec {
    /// Whether the parameters are in their range.
    pub(super) fn check(&self) -> Result<()> {
        if self.exponent.is_finite() && self.exponent > 0.0 {
            return Ok(());
        }
        Err(Error::parameter(
            "fourier:exponent",
            self.exponent,
            "must be a number above 0",
        ))
    }
}

/// `fourier` for images of a known shape, or for rows that are none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Fourier {
    pub(super) spec: FourierSpec,
    image: Option<[usize; 3]>,
}

impl Fourier {
    pub(super) fn fit(spec: FourierSpec, image: Option<[usize; 3]>) -> Result<Self> {
        if let Some(step) = spec.transform.by_channel() {
            need_image(step, image)?;
        }
        Ok(Fourier { spec, image })
    }

    /// Whether it can be applied to rows of `n_features` values, and how many
    /// it makes of them.
    pub(super) fn check(&self, n_features: usize) -> Result<usize> {
        self.spec.check()?;
        let kept = match self.spec.transform.by_channel() {
            Some(step) => {
                let [channels, height, width] = need_image(step, self.image)?;
                check_image([channels, height, width], n_features)?;
                channels * (height * width).div_ceil(2)
            }
            None => {
                let image = self.image;
                image.map_or(Ok(()), |image| check_image(image, n_features))?;
                n_features.div_ceil(2)
            }
        };
        n_features
            .checked_add(kept)
            .ok_or_else(|| Error::Data(format!("{n_features} features are too many for fourier")))
    }

    /// Rows grow in the memory they have, from the last to the first: a second matrix beside
    /// them would be the most that a run ever needs.
    pub(super) fn apply<T: Scalar>(&self, x: Matrix<T>) -> Result<Matrix<T>> {
        let (n, n_in) = (x.rows(), x.cols());
        let n_out = self.check(n_in)?;
        if n_out == 0 {
            return Ok(x);
        }
        let spectrum = Spectrum::new(self, n_in);
        let mut values = x.into_values();
        values.reserve_exact(n * n_out - values.len());
        values.resize(n * n_out, T::ZERO);
        let mut from = Vec::new();
        for top in (0..n).step_by(ROWS_THAT_MOVE).rev() {
            let bottom = (top + ROWS_THAT_MOVE).min(n);
            from.clear();
            from.extend_from_slice(&values[top * n_in..bottom * n_in]);
            values[top * n_out..bottom * n_out]
                .par_chunks_mut(rows::ROWS_PER_TASK * n_out)
                .zip(from.par_chunks(rows::ROWS_PER_TASK * n_in))
                .for_each_init(
                    || spectrum.workspace(),
                    |work, (out, x)| {
                        let pairs = out.chunks_exact_mut(n_out).zip(x.chunks_exact(n_in));
                        pairs.for_each(|(out, x)| spectrum.apply_row(x, out, work));
                    },
                );
        }
        Ok(Matrix::from_vec(n, n_out, values))
    }
}

/// How a row is transformed, worked out once for all rows.
///
/// The row, in vector order, is a number of blocks, each `outer` × `inner`
/// values: the real transform runs over `outer`, the complex one over `inner`,
/// and the spectrum comes out in vector order. One dimension is one block with
/// `inner` = 1 or a block a channel, two dimensions are a block a channel.
struct Spectrum {
    exponent: f64,
    /// Where in the row the values of the vector lie.
    source: Vec<usize>,
    outer: usize,
    inner: usize,
    over_outer: Arc<dyn RealToComplex<f64>>,
    over_inner: Option<Arc<dyn Fft<f64>>>,
}

/// What a thread writes to while it transforms a row.
struct Workspace {
    xi: Vec<f64>,
    phi: Vec<f64>,
    signal: Vec<f64>,
    signal_spectrum: Vec<Complex<f64>>,
    block_spectrum: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

impl Spectrum {
    fn new(step: &Fourier, n_features: usize) -> Self {
        let order = step.spec.order;
        let (outer, inner) = match (step.spec.transform, step.image, order) {
            (Transform::TwoD, Some([_, height, width]), Order::Columns) => (width, height),
            (Transform::TwoD, Some([_, height, width]), Order::Rows) => (height, width),
            (Transform::OneDChannel, Some([_, height, width]), _) => (height * width, 1),
            _ => (n_features, 1),
        };
        let source = match (step.image, order) {
            (Some(image), Order::Columns) => columns_first(image),
            _ => (0..n_features).collect(),
        };
        Spectrum {
            exponent: step.spec.exponent,
            source,
            outer,
            inner,
            over_outer: RealFftPlanner::new().plan_fft_forward(outer),
            over_inner: (inner > 1).then(|| FftPlanner::new().plan_fft_forward(inner)),
        }
    }

    fn workspace(&self) -> Workspace {
        let zero = Complex::new(0.0, 0.0);
        let half = self.outer / 2 + 1;
        let over_inner = self.over_inner.as_ref();
        let scratch = self
            .over_outer
            .get_scratch_len()
            .max(over_inner.map_or(0, |fft| fft.get_inplace_scratch_len()));
        Workspace {
            xi: Vec::with_capacity(self.source.len()),
            phi: Vec::with_capacity(self.source.len()),
            signal: vec![0.0; self.outer],
            signal_spectrum: vec![zero; half],
            block_spectrum: vec![zero; half * self.inner],
            scratch: vec![zero; scratch],
        }
    }

    /// Equations (69) to (75). All in `f64`, also for `f32` data: the root makes
    /// rounding noise of 1e-7 in a small |FFT| one of 3e-4, and 60,000 rows of
    /// MNIST take 0.28 s on two cores as it is.
    fn apply_row<T: Scalar>(&self, x: &[T], out: &mut [T], work: &mut Workspace) {
        let mean = rows::mean(x);
        work.xi.clear();
        work.xi.extend(x.iter().map(|v| v.to_f64() - mean));
        // To unit length before the transform and not after it: the length of ξ
        // is a factor of φ, which the division by ‖φ‖ takes out again, and no
        // input is too large for the squares below.
        rows::to_unit_norm(&mut work.xi);

        work.phi.clear();
        let block = self.outer * self.inner;
        for source in self.source.chunks_exact(block) {
            self.transform_block(source, work);
            let kept = work.block_spectrum[..block.div_ceil(2)].iter();
            work.phi.extend(kept.map(|z| self.power(z.norm_sqr())));
        }
        if block == self.source.len() {
            // The sum of ξ, which is zero; rounding left a trace of it.
            work.phi[0] = 0.0;
        }
        let mean = rows::mean(&work.phi);
        work.phi.iter_mut().for_each(|v| *v -= mean);
        rows::to_unit_norm(&mut work.phi);

        let both = work.xi.iter().chain(&work.phi);
        for (out, v) in out.iter_mut().zip(both) {
            *out = T::from_f64(v * std::f64::consts::FRAC_1_SQRT_2);
        }
    }

    /// The first half of the transform of the values at `source`, or a little
    /// more, into `work.block_spectrum`.
    fn transform_block(&self, source: &[usize], work: &mut Workspace) {
        let inner = self.inner;
        for i in 0..inner {
            for (o, v) in work.signal.iter_mut().enumerate() {
                *v = work.xi[source[o * inner + i]];
            }
            self.over_outer
                .process_with_scratch(
                    &mut work.signal,
                    &mut work.signal_spectrum,
                    &mut work.scratch[..self.over_outer.get_scratch_len()],
                )
                .expect("the workspace was made for this transform");
            for (o, z) in work.signal_spectrum.iter().enumerate() {
                work.block_spectrum[o * inner + i] = *z;
            }
        }
        if let Some(fft) = &self.over_inner {
            fft.process_with_scratch(&mut work.block_spectrum, &mut work.scratch);
        }
    }

    /// |z|^exponent from |z|². ½ and 1 are the exponents that are used, and with
    /// `powf` the whole step takes 0.38 instead of 0.28 s on MNIST.
    fn power(&self, square: f64) -> f64 {
        match self.exponent {
            0.5 => square.sqrt().sqrt(),
            1.0 => square.sqrt(),
            exponent => square.powf(exponent / 2.0),
        }
    }
}

/// Where the pixels of row-major images lie, column after column, a channel
/// after the other.
fn columns_first([channels, height, width]: [usize; 3]) -> Vec<usize> {
    let mut source = Vec::with_capacity(channels * height * width);
    for channel in 0..channels {
        for j in 0..width {
            source.extend((0..height).map(|i| (channel * height + i) * width + j));
        }
    }
    source
}
