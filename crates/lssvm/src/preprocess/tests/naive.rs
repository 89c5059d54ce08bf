//! The equations as they are printed, with sums for transforms.

use std::f64::consts::TAU;

use super::Image;
use crate::preprocess::{FourierSpec, Order, Transform};

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

pub(super) fn center(x: &[f64]) -> Vec<f64> {
    x.iter().map(|v| v - mean(x)).collect()
}

pub(super) fn unit_norm(x: &[f64]) -> Vec<f64> {
    let norm = x.iter().map(|v| v * v).sum::<f64>().sqrt();
    x.iter().map(|v| v / norm).collect()
}

/// Pixels are counted from `first`.
pub(super) fn window(x: &[f64], c: f64, first: usize, [channels, h, w]: [usize; 3]) -> Vec<f64> {
    let mut out = x.to_vec();
    for k in 0..channels {
        for i in 0..h {
            for j in 0..w {
                let di = (i + first) as f64 - h as f64 / 2.0;
                let dj = (j + first) as f64 - w as f64 / 2.0;
                out[k * h * w + i * w + j] *= (-c * (di * di + dj * dj)).exp();
            }
        }
    }
    out
}

/// |DFT|, every value of it.
fn dft(x: &[f64]) -> Vec<f64> {
    let n = x.len();
    let size = |k: usize| {
        let angle = |m: usize| -TAU * (k * m % n) as f64 / n as f64;
        let re: f64 = (0..n).map(|m| x[m] * angle(m).cos()).sum();
        let im: f64 = (0..n).map(|m| x[m] * angle(m).sin()).sum();
        re.hypot(im)
    };
    (0..n).map(size).collect()
}

/// |DFT2| of an image at frequency (u, v).
fn dft2(x: &[f64], h: usize, w: usize, u: usize, v: usize) -> f64 {
    let (mut re, mut im) = (0.0, 0.0);
    for i in 0..h {
        for j in 0..w {
            let turns = (u * i) as f64 / h as f64 + (v * j) as f64 / w as f64;
            re += x[i * w + j] * (-TAU * turns).cos();
            im += x[i * w + j] * (-TAU * turns).sin();
        }
    }
    re.hypot(im)
}

pub(super) fn fourier(x: &[f64], spec: &FourierSpec, image: Image) -> Vec<f64> {
    let xi = center(x);
    let half = match (spec.transform, image, spec.order) {
        (Transform::OneD, Some([channels, h, w]), Order::Columns) => {
            let mut vector = Vec::new();
            for k in 0..channels {
                for j in 0..w {
                    vector.extend((0..h).map(|i| xi[k * h * w + i * w + j]));
                }
            }
            dft(&vector)[..x.len().div_ceil(2)].to_vec()
        }
        (Transform::OneD, ..) => dft(&xi)[..x.len().div_ceil(2)].to_vec(),
        (Transform::OneDChannel, image, order) => {
            let [_, h, w] = image.unwrap();
            let channel = |channel: &[f64]| {
                let mut vector = channel.to_vec();
                if order == Order::Columns {
                    for j in 0..w {
                        for i in 0..h {
                            vector[j * h + i] = channel[i * w + j];
                        }
                    }
                }
                dft(&vector)[..(h * w).div_ceil(2)].to_vec()
            };
            xi.chunks(h * w).flat_map(channel).collect()
        }
        (Transform::TwoD, image, order) => {
            let [_, h, w] = image.unwrap();
            let channel = |channel: &[f64]| {
                let mut vector = Vec::new();
                match order {
                    Order::Columns => {
                        for v in 0..w {
                            vector.extend((0..h).map(|u| dft2(channel, h, w, u, v)));
                        }
                    }
                    Order::Rows => {
                        for u in 0..h {
                            vector.extend((0..w).map(|v| dft2(channel, h, w, u, v)));
                        }
                    }
                }
                vector[..(h * w).div_ceil(2)].to_vec()
            };
            xi.chunks(h * w).flat_map(channel).collect()
        }
    };
    let phi: Vec<f64> = half.iter().map(|v| v.powf(spec.exponent)).collect();
    let (xi, phi) = (unit_norm(&xi), unit_norm(&center(&phi)));
    let both = xi.iter().chain(&phi);
    both.map(|v| v / 2f64.sqrt()).collect()
}
