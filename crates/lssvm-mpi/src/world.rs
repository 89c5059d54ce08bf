//! The communicator of all ranks of an MPI job.
//!
//! Sums are MPI's own: every rank gets the same bits, and the same job gets them again, since
//! the order of the additions depends on the number of ranks and values alone. Counts of MPI
//! are 32 bits wide, so that what is longer goes in pieces.

use lssvm::ranks::Communicator;
use mpi::Count;
use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{
    Communicator as _, CommunicatorCollectives, Destination, Equivalence, Root, Source,
};

/// All ranks. The handle of MPI belongs to the thread that asks for it, and is asked for in
/// each call: it costs nothing, and calls come from any thread of the pool.
#[derive(Debug, Clone, Copy)]
pub struct World;

/// Values or bytes that are handed over at once.
const PIECE: usize = 1 << 26;

/// Ends the job at once.
pub fn abort() -> ! {
    SimpleCommunicator::world().abort(1)
}

impl Communicator for World {
    fn rank(&self) -> usize {
        SimpleCommunicator::world().rank() as usize
    }

    fn size(&self) -> usize {
        SimpleCommunicator::world().size() as usize
    }

    fn sum_f32(&self, values: &mut [f32]) {
        sum(values);
    }

    fn sum_f64(&self, values: &mut [f64]) {
        sum(values);
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) {
        let world = SimpleCommunicator::world();
        let root = world.process_at_rank(root as i32);
        for piece in bytes.chunks_mut(PIECE) {
            root.broadcast_into(piece);
        }
    }

    fn all_gather(&self, own: &[u8], counts: &[usize], all: &mut [u8]) {
        if all.len() <= PIECE {
            return gather_at_once(own, counts, all);
        }
        // Each in turn gives its part to all.
        let rank = self.rank();
        let mut rest = all;
        for (root, &count) in counts.iter().enumerate() {
            let (part, after) = rest.split_at_mut(count);
            if root == rank {
                part.copy_from_slice(own);
            }
            self.broadcast(root, part);
            rest = after;
        }
    }

    fn send(&self, to: usize, bytes: &[u8]) {
        let world = SimpleCommunicator::world();
        let to = world.process_at_rank(to as i32);
        bytes.chunks(PIECE).for_each(|piece| to.send(piece));
    }

    fn receive(&self, from: usize, bytes: &mut [u8]) {
        let world = SimpleCommunicator::world();
        let from = world.process_at_rank(from as i32);
        for piece in bytes.chunks_mut(PIECE) {
            from.receive_into(piece);
        }
    }
}

fn sum<V>(values: &mut [V])
where
    [V]: mpi::traits::Buffer + mpi::traits::BufferMut,
    V: Copy + Equivalence,
{
    let world = SimpleCommunicator::world();
    for piece in values.chunks_mut(PIECE) {
        let own = piece.to_vec();
        world.all_reduce_into(&own[..], piece, SystemOperation::sum());
    }
}

fn gather_at_once(own: &[u8], counts: &[usize], all: &mut [u8]) {
    if all.is_empty() {
        return;
    }
    // The address of nothing may be 1, which Open MPI takes for MPI_IN_PLACE.
    let nothing = [0];
    let own = if own.is_empty() { &nothing[..0] } else { own };
    let counts: Vec<Count> = counts.iter().map(|&count| count as Count).collect();
    let mut before = 0;
    let places = counts.iter().map(|&count| {
        before += count;
        before - count
    });
    let places: Vec<Count> = places.collect();
    let mut parts = PartitionMut::new(all, counts, places);
    SimpleCommunicator::world().all_gather_varcount_into(own, &mut parts);
}
