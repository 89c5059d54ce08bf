//! What ranks that share a command say to each other.

use lssvm::Error;
use lssvm::ranks::Ranks;

/// The result if every rank has one, else the error of the first that has none, on all.
pub fn agree<V>(ranks: &Ranks, own: anyhow::Result<V>) -> anyhow::Result<V> {
    if ranks.is_alone() {
        return own;
    }
    let own = own.map_err(|error| match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::Data(format!("{error:#}")),
    });
    Ok(ranks.agree(own)?)
}

/// Rounds of batches, one for each rank: the number of the first, until all are done.
pub fn rounds(ranks: &Ranks, batches: usize) -> impl Iterator<Item = usize> + use<> {
    (0..batches).step_by(ranks.size())
}
