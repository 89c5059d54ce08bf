//! Random blocks of indices, drawn without replacement.

use rand_chacha::ChaCha8Rng;

use super::State;
use super::state::unfit;
use crate::{Result, random};

/// Contiguous pieces of a random permutation of `0..size`, which is shuffled
/// again when fewer than `block_size` indices are left (§3.1 of the paper).
///
/// The bias is an index like the others, as in the paper. In every block it did
/// worse on validation rows (docs/performance.md).
#[derive(Debug, Clone)]
pub struct Blocks {
    permutation: Vec<usize>,
    next: usize,
    block_size: usize,
    rng: ChaCha8Rng,
    /// What comes before the generator's permutations, the first one last.
    #[cfg(test)]
    given: Vec<Vec<usize>>,
}

impl Blocks {
    /// `size` is N+1: the bias is an index like the others.
    pub fn new(size: usize, block_size: usize, seed: u64) -> Self {
        Self {
            permutation: (0..size).collect(),
            next: size,
            block_size,
            rng: random::rng(seed),
            #[cfg(test)]
            given: Vec::new(),
        }
    }

    /// Pieces of these permutations, one after the other.
    #[cfg(test)]
    pub fn of(mut permutations: Vec<Vec<usize>>, block_size: usize) -> Self {
        permutations.reverse();
        Self {
            given: permutations,
            ..Self::new(0, block_size, 0)
        }
    }

    /// The next block, in ascending order: the bias, index 0, comes first.
    pub fn draw(&mut self) -> &[usize] {
        if self.next + self.block_size > self.permutation.len() {
            self.shuffle();
            self.next = 0;
        }
        let block = &mut self.permutation[self.next..self.next + self.block_size];
        self.next += self.block_size;
        // Order within a block means nothing; neighbours in memory are read together.
        block.sort_unstable();
        block
    }

    fn shuffle(&mut self) {
        #[cfg(test)]
        if let Some(given) = self.given.pop() {
            self.permutation = given;
            return;
        }
        random::shuffle(&mut self.rng, &mut self.permutation);
    }

    /// Notes where it is; sizes and seed follow from the plan.
    pub fn save(&self, state: &mut State<'_>) {
        state.put_counts("permutation", self.permutation.iter().copied());
        state.put_counts("next", [self.next]);
        state.put_position("random", &self.rng);
    }

    /// Goes on where another of the same sizes and seed was.
    pub fn restore(&mut self, state: &mut State<'_>) -> Result<()> {
        let permutation = state.take_counts("permutation")?;
        let mut sorted = permutation.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..self.permutation.len()) {
            return Err(unfit("permutation", "is not one of all rows and the bias"));
        }
        let next = state.take_count("next")?;
        if next > permutation.len() {
            return Err(unfit("next", "lies behind the last row"));
        }
        (self.permutation, self.next) = (permutation, next);
        state.take_position("random", &mut self.rng)
    }

    /// Blocks in one permutation.
    pub fn per_pass(&self) -> usize {
        (self.permutation.len() / self.block_size.max(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_has_no_index_twice() {
        let mut blocks = Blocks::new(103, 10, 1);
        assert_eq!(blocks.per_pass(), 10);
        for _ in 0..3 {
            let mut seen: Vec<usize> = (0..10).flat_map(|_| blocks.draw().to_vec()).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 100);
        }
    }

    #[test]
    fn a_block_can_be_everything_and_seeds_differ() {
        let mut all = Blocks::new(5, 5, 1).draw().to_vec();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        let draw = |seed| Blocks::new(1000, 50, seed).draw().to_vec();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
