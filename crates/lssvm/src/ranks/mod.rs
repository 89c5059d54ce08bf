//! Several processes that solve one system together, each with some of its rows.
//!
//! ```text
//!     rank 0            rank 1            rank R−1
//!     rows 0 … n₀       n₀ … n₁           … N          [`Shares`]
//!        └──── sums, rows that all need, decisions ────┘   [`Ranks`]
//! ```
//!
//! A [`Communicator`] is what carries bytes between them: MPI in a crate of its own, and
//! [`Solo`], which is alone and carries nothing. Everything after this room is written as
//! "my rows, then sum"; where there is one rank, no call does anything, and a run has the
//! bits and the speed it would have without.
//!
//! All ranks make the same calls in the same order. What may go wrong on one of them alone
//! is told to all before the next call ([`Ranks::agree`]), so that nobody waits for a rank
//! that has given up.

mod exchange;
mod shares;
#[cfg(test)]
pub(crate) mod threads;

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

pub use shares::Shares;

use crate::linalg::{Precision, Scalar};
use crate::{Error, Result};

/// Carries bytes and sums between the ranks of a run. All ranks make the same calls in the
/// same order, with sizes that fit together.
pub trait Communicator: Send + Sync + Debug {
    /// Which rank this is, from 0 on.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// Adds each value over all ranks: the same bits on every one.
    fn sum_f32(&self, values: &mut [f32]);

    /// Adds each value over all ranks: the same bits on every one.
    fn sum_f64(&self, values: &mut [f64]);

    /// Gives everybody what rank `root` has.
    fn broadcast(&self, root: usize, bytes: &mut [u8]);

    /// Puts the bytes of all ranks, `counts` of each, one after the other in `all`.
    fn all_gather(&self, own: &[u8], counts: &[usize], all: &mut [u8]);

    /// Hands bytes to another rank, which receives as many.
    fn send(&self, to: usize, bytes: &[u8]);

    /// Takes the bytes that another rank sends.
    fn receive(&self, from: usize, bytes: &mut [u8]);
}

/// One process that has all rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Solo;

impl Communicator for Solo {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn sum_f32(&self, _: &mut [f32]) {}

    fn sum_f64(&self, _: &mut [f64]) {}

    fn broadcast(&self, _: usize, _: &mut [u8]) {}

    fn all_gather(&self, own: &[u8], _: &[usize], all: &mut [u8]) {
        all.copy_from_slice(own);
    }

    fn send(&self, _: usize, _: &[u8]) {}

    fn receive(&self, _: usize, _: &mut [u8]) {}
}

/// What this rank had a part in so far, in bytes of what was summed or handed over: how
/// often the network carries them is the communicator's business.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Sums over all ranks.
    pub summed: u64,
    /// Pieces of all ranks, put together on all.
    pub gathered: u64,
    /// What one rank gave to all.
    pub broadcast: u64,
    /// What one rank gave to another.
    pub sent: u64,
}

impl Traffic {
    /// All kinds together.
    pub fn total(&self) -> u64 {
        self.summed + self.gathered + self.broadcast + self.sent
    }

    /// Counts more.
    pub fn add(&mut self, more: &Self) {
        self.summed += more.summed;
        self.gathered += more.gathered;
        self.broadcast += more.broadcast;
        self.sent += more.sent;
    }

    /// What came after `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            summed: self.summed - before.summed,
            gathered: self.gathered - before.gathered,
            broadcast: self.broadcast - before.broadcast,
            sent: self.sent - before.sent,
        }
    }
}

/// The ranks of a run, as one of them sees the others. A clone is the same.
#[derive(Debug, Clone)]
pub struct Ranks(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    communicator: Box<dyn Communicator>,
    summed: AtomicU64,
    gathered: AtomicU64,
    broadcast: AtomicU64,
    sent: AtomicU64,
}

impl Default for Ranks {
    fn default() -> Self {
        Self::new(Solo)
    }
}

impl Ranks {
    /// Ranks that talk like this.
    pub fn new(communicator: impl Communicator + 'static) -> Self {
        Self(Arc::new(Inner {
            communicator: Box::new(communicator),
            summed: AtomicU64::new(0),
            gathered: AtomicU64::new(0),
            broadcast: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        }))
    }

    /// Which rank this is, from 0 on.
    pub fn rank(&self) -> usize {
        self.0.communicator.rank()
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.0.communicator.size()
    }

    /// Whether there is no other rank: every call here then does nothing.
    pub fn is_alone(&self) -> bool {
        self.size() == 1
    }

    /// Whether this is the rank that speaks and writes for all.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// What was communicated so far.
    pub fn traffic(&self) -> Traffic {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            summed: count(&self.0.summed),
            gathered: count(&self.0.gathered),
            broadcast: count(&self.0.broadcast),
            sent: count(&self.0.sent),
        }
    }

    /// Adds each value over all ranks: the same bits on every one.
    pub fn sum<T: Scalar>(&self, values: &mut [T]) {
        if self.is_alone() {
            return;
        }
        count(&self.0.summed, size_of_val(values));
        let communicator = &self.0.communicator;
        match T::PRECISION {
            Precision::F32 => communicator.sum_f32(bytemuck::cast_slice_mut(values)),
            Precision::F64 => communicator.sum_f64(bytemuck::cast_slice_mut(values)),
        }
    }

    /// The sum of one number over all ranks.
    pub fn sum_of(&self, value: f64) -> f64 {
        let mut values = [value];
        self.sum(&mut values);
        values[0]
    }

    /// The values of all ranks, rank after rank.
    pub fn each(&self, own: f64) -> Vec<f64> {
        let pieces = self.all_gather(&own.to_le_bytes());
        pieces.iter().map(|piece| number(piece)).collect()
    }

    /// The largest of a number over all ranks.
    pub fn largest(&self, value: u64) -> u64 {
        self.counts(value).into_iter().max().unwrap_or(value)
    }

    /// The least of a number over all ranks.
    pub fn least(&self, value: u64) -> u64 {
        self.counts(value).into_iter().min().unwrap_or(value)
    }

    /// Whether it is so on every rank.
    pub fn all(&self, own: bool) -> bool {
        self.least(u64::from(own)) == 1
    }

    /// Whether it is so on some rank.
    pub fn any(&self, own: bool) -> bool {
        !self.all(!own)
    }

    /// One number of each rank.
    fn counts(&self, own: u64) -> Vec<u64> {
        if self.is_alone() {
            return vec![own];
        }
        let mut all = vec![0; self.size() * size_of::<u64>()];
        let counts = vec![size_of::<u64>(); self.size()];
        let communicator = &self.0.communicator;
        communicator.all_gather(&own.to_le_bytes(), &counts, &mut all);
        bytemuck::pod_collect_to_vec(&all)
    }

    /// The bytes of every rank, on every rank.
    pub fn all_gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        if self.is_alone() {
            return vec![own.to_vec()];
        }
        let counts = self.counts(own.len() as u64);
        let counts: Vec<usize> = counts.into_iter().map(|count| count as usize).collect();
        let all = self.all_gather_known(own, &counts);
        let mut rest = all.as_slice();
        let piece = |&count: &usize| {
            let (piece, after) = rest.split_at(count);
            rest = after;
            piece.to_vec()
        };
        counts.iter().map(piece).collect()
    }

    /// The bytes of every rank, one after the other, where all know how many there are.
    pub(crate) fn all_gather_known(&self, own: &[u8], counts: &[usize]) -> Vec<u8> {
        let mut all = vec![0; counts.iter().sum()];
        count(&self.0.gathered, all.len());
        self.0.communicator.all_gather(own, counts, &mut all);
        all
    }

    /// What rank `root` has, on every rank, where all know how many bytes there are.
    pub(crate) fn broadcast_known(&self, root: usize, bytes: &mut [u8]) {
        if !self.is_alone() {
            count(&self.0.broadcast, bytes.len());
            self.0.communicator.broadcast(root, bytes);
        }
    }

    /// What rank `root` has, on every rank; what others give does not matter.
    pub fn broadcast(&self, root: usize, bytes: Vec<u8>) -> Vec<u8> {
        if self.is_alone() {
            return bytes;
        }
        let mut length = (bytes.len() as u64).to_le_bytes();
        self.broadcast_known(root, &mut length);
        let mut bytes = bytes;
        bytes.resize(u64::from_le_bytes(length) as usize, 0);
        self.broadcast_known(root, &mut bytes);
        bytes
    }

    /// Gives everybody the numbers of rank 0.
    pub fn give(&self, numbers: &mut [f64]) {
        self.broadcast_known(0, bytemuck::cast_slice_mut(numbers));
    }

    /// What rank 0 says.
    pub fn decide(&self, own: bool) -> bool {
        let mut byte = [u8::from(own)];
        self.broadcast_known(0, &mut byte);
        byte[0] != 0
    }

    /// The bytes of every rank, one rank after the other, on rank 0 alone: it is shown each
    /// piece with its rank, and keeps what it likes.
    pub fn gather(&self, own: &[u8], mut show: impl FnMut(usize, &[u8])) {
        if self.is_alone() {
            return show(0, own);
        }
        let counts = self.counts(own.len() as u64);
        if !self.is_first() {
            count(&self.0.sent, own.len());
            return self.0.communicator.send(0, own);
        }
        show(0, own);
        for (rank, &length) in counts.iter().enumerate().skip(1) {
            let mut bytes = vec![0; length as usize];
            count(&self.0.sent, bytes.len());
            self.0.communicator.receive(rank, &mut bytes);
            show(rank, &bytes);
        }
    }

    /// The same of numbers; rank 0 is given those of each rank in turn.
    pub fn gather_values<T: Scalar>(&self, own: &[T], mut show: impl FnMut(Vec<T>)) {
        self.gather(bytemuck::cast_slice(own), |_, piece| {
            show(bytemuck::pod_collect_to_vec(piece));
        });
    }

    /// The result if every rank has one, else the error of the first rank that has none.
    ///
    /// # Errors
    /// The rank's own, or [`Error::Elsewhere`].
    pub fn agree<V>(&self, own: Result<V>) -> Result<V> {
        if self.is_alone() {
            return own;
        }
        let told = match &own {
            Ok(_) => Vec::new(),
            Err(Error::Interrupted) => vec![INTERRUPTED],
            Err(error) => {
                let usage = matches!(error, Error::Parameter { .. });
                let mut told = vec![if usage { WRONG_USAGE } else { FAILED }];
                told.extend(error.to_string().into_bytes());
                told
            }
        };
        let told = self.all_gather(&told);
        let failed = told.iter().enumerate().find_map(|(rank, told)| {
            let (kind, problem) = told.split_first()?;
            Some((rank, *kind, String::from_utf8_lossy(problem).into_owned()))
        });
        match (failed, own) {
            (None, own) => own,
            (Some((rank, ..)), Err(own)) if rank == self.rank() => Err(own),
            (Some((_, INTERRUPTED, _)), _) => Err(Error::Interrupted),
            (Some((rank, kind, problem)), _) => Err(Error::Elsewhere {
                rank,
                problem,
                usage: kind == WRONG_USAGE,
            }),
        }
    }
}

/// How a rank tells the others of an error.
const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;
const INTERRUPTED: u8 = 3;

fn count(counter: &AtomicU64, bytes: usize) {
    counter.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// What [`Ranks::each`] sent.
fn number(bytes: &[u8]) -> f64 {
    let bytes = bytes.try_into().expect("a number has 8 bytes");
    f64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::threads::on_ranks;
    use super::*;

    #[test]
    fn everybody_learns_the_same() {
        for size in 1..5 {
            let found = on_ranks(size, |ranks| {
                let rank = ranks.rank();
                let mut sums = [rank as f32, 1.0];
                ranks.sum(&mut sums);
                let pieces = ranks.all_gather(&vec![rank as u8; rank]);
                let said = ranks.broadcast(size - 1, vec![7; rank]);
                let mut shown = Vec::new();
                ranks.gather(&[rank as u8], |rank, piece| {
                    shown.push((rank, piece.to_vec()))
                });
                let expected = if rank == 0 { size } else { 0 };
                assert!(shown.len() == expected || size == 1);
                assert!(shown.iter().all(|(rank, piece)| piece == &[*rank as u8]));
                assert!(ranks.any(rank == 0) && ranks.all(true));
                assert_eq!(ranks.all(rank == 0), size == 1);
                assert!(ranks.decide(rank == 0));
                assert_eq!(ranks.largest(rank as u64), size as u64 - 1);
                (sums, pieces, said)
            });
            let total = (0..size).sum::<usize>() as f32;
            for (sums, pieces, said) in found {
                assert_eq!(sums, [total, size as f32]);
                assert_eq!(pieces.len(), size);
                assert!(
                    pieces
                        .iter()
                        .enumerate()
                        .all(|(r, p)| p == &vec![r as u8; r])
                );
                assert_eq!(said, vec![7; size - 1]);
            }
        }
    }

    #[test]
    fn an_error_of_one_rank_is_one_of_all() {
        let found = on_ranks(3, |ranks| {
            let own = match ranks.rank() {
                1 => Err(Error::Data("row 7 is odd".into())),
                rank => Ok(rank),
            };
            ranks.agree(own).unwrap_err().to_string()
        });
        assert_eq!(found[1], "row 7 is odd");
        assert_eq!(found[0], found[2]);
        assert_eq!(found[0], "rank 1: row 7 is odd");
        let fine = on_ranks(3, |ranks| ranks.agree(Ok(ranks.rank())).unwrap());
        assert_eq!(fine, [0, 1, 2]);
    }
}
