//! What a model knows besides its tensors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Conformal, Scaling};
use crate::kernel::Kernel;
use crate::preprocess::Pipeline;
use crate::{Error, Result};

/// All of a model that is not a tensor. It is the JSON text in a model file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Ω
    pub kernel: Kernel,
    /// What is done to raw features.
    pub pipeline: Pipeline,
    /// What the outputs mean.
    pub outputs: Outputs,
    /// What prediction needs to know about input files.
    pub input: Input,
    /// The effective configuration of the training run.
    pub config: Value,
    /// How training went: residual, iterations, why it stopped.
    pub summary: Value,
    /// How the scores of classes become probabilities; none: by their bare softmax.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// How far off it is on rows that it did not learn from; none: that is not known, as in
    /// files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conformal: Option<Conformal>,
    /// What a caller wants to find again; means nothing here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, String>,
}

/// What the outputs of a model mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Outputs {
    /// One score a class; the greatest decides.
    Classes {
        /// Names of the classes.
        names: Vec<String>,
    },
    /// Real numbers.
    Values {
        /// Names of the values; empty where they have none.
        names: Vec<String>,
    },
}

impl Outputs {
    /// Their names.
    pub fn names(&self) -> &[String] {
        match self {
            Outputs::Classes { names } | Outputs::Values { names } => names,
        }
    }
}

/// What prediction needs to know about input files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Input {
    /// Number of raw features.
    pub n_features: usize,
    /// Names of the features, if the training file had them.
    pub feature_names: Option<Vec<String>>,
    /// Names of the columns that held labels, so that they are not taken for
    /// features; may be empty.
    pub label_names: Vec<String>,
    /// Where the labels were among the columns of the training file, counted from 1
    /// without the column of weights: what a table without a header is read by. Empty
    /// if the labels had a place of their own, and in files of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub label_places: Vec<usize>,
    /// Name of the column that held the weights of the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_name: Option<String>,
    /// Where that column was in the training file, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_place: Option<usize>,
    /// The index of the first feature in sparse text files.
    pub index_base: Option<u32>,
    /// `[channels, height, width]` if the rows are images.
    pub image: Option<[usize; 3]>,
}

impl Description {
    /// Whether it fits tensors with these sizes, and can be saved.
    pub(super) fn check(&self, support_features: usize, n_outputs: usize) -> Result<()> {
        let names = self.outputs.names().len();
        if names != n_outputs {
            return Err(Error::Data(format!(
                "{names} names for {n_outputs} outputs: give one name an output"
            )));
        }
        let (into, out_of) = (
            self.pipeline.n_features_in(),
            self.pipeline.n_features_out(),
        );
        if out_of != support_features || into != self.input.n_features || into == 0 {
            return Err(Error::Data(format!(
                "the number of features is not the same everywhere: {} in the input, {into} into \
                 and {out_of} out of preprocessing, {support_features} in the support rows; give \
                 the support rows as the pipeline made them",
                self.input.n_features
            )));
        }
        self.check_input()?;
        if let Some(scaling) = &self.scaling {
            scaling.check(n_outputs)?;
        }
        if let Some(conformal) = &self.conformal {
            conformal.check(&self.outputs)?;
        }
        self.check_kernel()
    }

    fn check_input(&self) -> Result<()> {
        let n_features = self.input.n_features;
        if let Some(names) = &self.input.feature_names
            && names.len() != n_features
        {
            return Err(Error::Data(format!(
                "{} feature names for {n_features} features: give one name a feature, or none",
                names.len()
            )));
        }
        if let Some([channels, height, width]) = self.input.image {
            let pixels = channels
                .checked_mul(height)
                .and_then(|p| p.checked_mul(width));
            if pixels != Some(n_features) {
                return Err(Error::Data(format!(
                    "images of {channels} channel(s) of {height} x {width} pixels do not fit \
                     {n_features} features: correct the image shape"
                )));
            }
        }
        Ok(())
    }

    /// JSON has no infinity and no NaN: they would be found missing at loading.
    fn check_kernel(&self) -> Result<()> {
        let finite = match self.kernel {
            Kernel::Linear => true,
            Kernel::Rbf { gamma } | Kernel::Laplacian { gamma } => gamma.is_finite(),
            Kernel::Poly { gamma, coef0, .. } | Kernel::Sigmoid { gamma, coef0 } => {
                gamma.is_finite() && coef0.is_finite()
            }
        };
        match finite {
            true => Ok(()),
            false => Err(Error::parameter(
                "kernel",
                format!("{:?}", self.kernel),
                "its numbers must be finite",
            )),
        }
    }
}
