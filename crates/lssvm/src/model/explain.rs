//! Why a row got its score: what each training row adds to it.
//!
//! ```text
//!     h_k(x) = b_k + Σₙ aₙₖ Ω(x, xₙ)
//! ```

use super::Model;
use crate::data::{Dataset, ImageShape};
use crate::kernel::FillBlock;
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// What a training row adds to a score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contribution {
    /// Which row of the model, counted from 0.
    pub row: usize,
    /// aₙₖ Ω(x, xₙ)
    pub value: f64,
    /// Ω(x, xₙ)
    pub kernel: f64,
}

/// A row's score for one output, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Scores of all outputs.
    pub scores: Vec<f64>,
    /// The output that is explained.
    pub output: usize,
    /// The training rows that add most, the greatest first.
    pub pro: Vec<Contribution>,
    /// The training rows that take most away, the greatest first.
    pub contra: Vec<Contribution>,
    /// What all other rows and the bias add.
    pub rest: f64,
}

impl<T: Scalar> Model<T> {
    /// Takes the score of one row of raw features apart: for an output, or for the one
    /// with the greatest score; at most `count` rows for it and as many against.
    ///
    /// # Errors
    /// As [`Model::decision_function`], and [`Error::Parameter`] if there is no such output.
    pub fn explain(
        &self,
        x: Matrix<T>,
        output: Option<usize>,
        count: usize,
    ) -> Result<Explanation> {
        T::explain(self, x, output, count)
    }

    pub(crate) fn taken_apart(
        &self,
        x: Matrix<T>,
        output: Option<usize>,
        count: usize,
    ) -> Result<Explanation> {
        if x.rows() != 1 {
            return Err(Error::Data(format!(
                "one row is explained at a time, and these are {}",
                x.rows()
            )));
        }
        let scores = self.decision_function(x.clone())?;
        let output = output.unwrap_or_else(|| super::argmax(&scores)[0] as usize);
        if output >= self.n_outputs() {
            let requirement = format!("the model has {} outputs", self.n_outputs());
            return Err(Error::parameter("output", output, requirement));
        }
        let z = self.samples(x.into())?;
        let mut omega = Matrix::zeros(1, self.n_support());
        self.kernel()
            .fill(omega.view_mut(), z.view(), self.support().view());
        let contribution = |row: usize| {
            let kernel = omega.get(0, row).to_f64();
            let value = kernel * self.weights().get(row, output).to_f64();
            Contribution { row, value, kernel }
        };
        let mut all: Vec<_> = (0..self.n_support()).map(contribution).collect();
        all.sort_by(|a, b| b.value.total_cmp(&a.value).then(a.row.cmp(&b.row)));
        let pro = all.iter().take_while(|c| c.value > 0.0).take(count);
        let pro: Vec<_> = pro.copied().collect();
        let contra = all.iter().rev().take_while(|c| c.value < 0.0).take(count);
        let contra: Vec<_> = contra.copied().collect();
        let scores: Vec<f64> = scores.values().iter().map(|v| v.to_f64()).collect();
        let told: f64 = pro.iter().chain(&contra).map(|c| c.value).sum();
        Ok(Explanation {
            rest: scores[output] - told,
            scores,
            output,
            pro,
            contra,
        })
    }

    /// The support rows of these contributions as images, after preprocessing; none if they
    /// are no images. What steps added to the pixels, such as Fourier features, is left out.
    pub fn images_of(&self, rows: &[Contribution]) -> Option<Dataset<T>> {
        let [channels, height, width] = self.input().image?;
        let shape = ImageShape {
            channels,
            height,
            width,
        };
        let support = self.support().points();
        if support.cols() < shape.len() {
            return None;
        }
        let pixels = rows
            .iter()
            .flat_map(|c| support.row(c.row)[..shape.len()].to_vec());
        let pixels = Matrix::from_vec(rows.len(), shape.len(), pixels.collect());
        let mut images = Dataset::new("support".as_ref(), pixels);
        images.image = Some(shape);
        Some(images)
    }
}
