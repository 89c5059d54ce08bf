//! Ranks that are threads of one process, for tests: several ranks without MPI.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::{Communicator, Ranks};

/// A rank that hears nothing for so long has been left alone: a test fails instead of
/// waiting for ever.
const PATIENCE: Duration = Duration::from_secs(120);

/// One of several threads.
#[derive(Debug)]
struct Threads {
    rank: usize,
    to: Vec<Mutex<Sender<Vec<u8>>>>,
    from: Vec<Mutex<Receiver<Vec<u8>>>>,
}

impl Communicator for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn sum_f32(&self, values: &mut [f32]) {
        self.sum(values);
    }

    fn sum_f64(&self, values: &mut [f64]) {
        self.sum(values);
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) {
        if self.rank == root {
            let others = (0..self.size()).filter(|&rank| rank != root);
            others.for_each(|rank| self.send(rank, bytes));
        } else {
            self.receive(root, bytes);
        }
    }

    fn all_gather(&self, own: &[u8], counts: &[usize], all: &mut [u8]) {
        assert_eq!(own.len(), counts[self.rank]);
        (0..self.size()).for_each(|rank| self.send(rank, own));
        let mut rest = all;
        for (rank, &count) in counts.iter().enumerate() {
            let (piece, after) = rest.split_at_mut(count);
            self.receive(rank, piece);
            rest = after;
        }
    }

    fn send(&self, to: usize, bytes: &[u8]) {
        let sender = self.to[to].lock().unwrap();
        sender
            .send(bytes.to_vec())
            .expect("the other rank is there");
    }

    fn receive(&self, from: usize, bytes: &mut [u8]) {
        let receiver = self.from[from].lock().unwrap();
        let found = receiver
            .recv_timeout(PATIENCE)
            .expect("the other rank calls too");
        bytes.copy_from_slice(&found);
    }
}

impl Threads {
    /// In the order of ranks, on every rank.
    fn sum<V: bytemuck::Pod + std::ops::AddAssign + Default>(&self, values: &mut [V]) {
        let own = bytemuck::cast_slice::<V, u8>(values).to_vec();
        let mut all = vec![0; own.len() * self.size()];
        self.all_gather(&own, &vec![own.len(); self.size()], &mut all);
        values.fill(V::default());
        for piece in all.chunks_exact(own.len().max(1)) {
            let piece: Vec<V> = bytemuck::pod_collect_to_vec(piece);
            values.iter_mut().zip(piece).for_each(|(sum, v)| *sum += v);
        }
    }
}

/// What each of so many ranks makes of it. Each has a thread, and a pool of one, of its own.
pub(crate) fn on_ranks<V: Send>(size: usize, f: impl Fn(Ranks) -> V + Sync) -> Vec<V> {
    let mut to: Vec<Vec<_>> = (0..size).map(|_| Vec::new()).collect();
    let mut from: Vec<Vec<_>> = (0..size).map(|_| Vec::new()).collect();
    for sender in &mut to {
        for receivers in &mut from {
            let (send, receive) = channel();
            sender.push(Mutex::new(send));
            receivers.push(Mutex::new(receive));
        }
    }
    let ends = to.into_iter().zip(from).enumerate();
    let ranks = ends.map(|(rank, (to, from))| Threads { rank, to, from });
    let f = &f;
    std::thread::scope(|scope| {
        let start = |rank: Threads| {
            scope.spawn(move || {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
                pool.unwrap().install(|| f(Ranks::new(rank)))
            })
        };
        let threads: Vec<_> = ranks.map(start).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|result| result.expect("a rank panicked"))
            .collect()
    })
}
