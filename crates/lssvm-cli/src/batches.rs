//! Rows that a model is applied to, some at a time.

use std::ops::Range;

use lssvm::Error;
use lssvm::data::Rows;
use lssvm::linalg::{Levels, Scalar};
use lssvm::memory::Size;
use lssvm::model::Model;
use lssvm::ranks::Ranks;

/// What the program takes besides model and rows: its code, and the kernel values that the
/// threads work on.
const PROGRAM: u64 = 60_000_000;

/// The rows of each batch. They are as many as the model itself takes at once, so that
/// scores do not depend on the memory, unless there is too little for so many. `kept` is
/// what other results take.
pub fn batches<T: Scalar>(
    ranks: &Ranks,
    model: &Model<T>,
    rows: &dyn Rows<T>,
    budget: Size,
    kept: u64,
) -> lssvm::Result<Vec<Range<usize>>> {
    let size = ranks.agree(batch_rows(model, budget, kept))?;
    // Each rank may have another budget.
    let (n, size) = (rows.len(), ranks.least(size as u64) as usize);
    let starts = (0..n).step_by(size);
    Ok(starts.map(|start| start..(start + size).min(n)).collect())
}

/// Rows of a batch.
fn batch_rows<T: Scalar>(model: &Model<T>, budget: Size, kept: u64) -> lssvm::Result<usize> {
    // A row as it is read, as it is prepared, between two steps of that, and its scores,
    // as numbers and as text.
    let widths = 2 * model.n_features() + 2 * model.pipeline().n_features_out();
    let row = (widths * size_of::<T>() + 64 * model.n_outputs()) as u64;
    // And perhaps as bytes.
    let row = row + Levels::bytes(1, model.pipeline().n_features_out());
    let fixed = model.memory_bytes() + PROGRAM + kept;
    let fitting = budget.0.saturating_sub(fixed) / row;
    if fitting == 0 {
        return Err(Error::Memory {
            what: "the model and one row".into(),
            needed: fixed + row,
            available: budget.0,
            remedy: "allow more memory (--memory)".into(),
        });
    }
    Ok(model.batch_rows().min(fitting as usize))
}
