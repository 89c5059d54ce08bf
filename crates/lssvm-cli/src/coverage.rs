//! `--interval` and `--sets`: what may be asked of which model.

use anyhow::bail;
use lssvm::Error;
use lssvm::linalg::Scalar;
use lssvm::model::{Model, Outputs};

use crate::args::CoverageArgs;

impl CoverageArgs {
    /// Refuses what the model cannot give, before rows are read.
    pub fn check<T: Scalar>(&self, model: &Model<T>) -> anyhow::Result<()> {
        match (model.outputs(), self.interval, self.sets) {
            (Outputs::Classes { .. }, Some(coverage), _) => bail!(Error::parameter(
                "interval",
                coverage,
                "this model predicts classes, which have no intervals; use --sets"
            )),
            (Outputs::Values { .. }, _, Some(coverage)) => bail!(Error::parameter(
                "sets",
                coverage,
                "this model predicts values, not classes; use --interval"
            )),
            (_, Some(coverage), _) => drop(model.margins(coverage)?),
            (_, _, Some(coverage)) => drop(model.largest_misfit(coverage)?),
            _ => {}
        }
        Ok(())
    }
}

/// A share as people say it: 0.9 is 90 %, without what rounding adds.
pub fn percent(share: f64) -> String {
    format!("{} %", (share * 1e6).round() / 1e4)
}
