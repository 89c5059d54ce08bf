//! Random blocks of indices, drawn without replacement.

use rand_chacha::ChaCha8Rng;

use crate::random;

/// The bias and J − 1 training rows: contiguous pieces of a random permutation
/// of the rows, which is shuffled again when too few are left (§3.1 of the
/// paper).
///
/// The bias is in every block. Drawn like the others it would be in one block
/// of N/J, and the constraint it stands for (the weights sum to 0) would be lost
/// in between. docs/performance.md compares the two.
#[derive(Debug, Clone)]
pub struct Blocks {
    permutation: Vec<usize>,
    next: usize,
    block: Vec<usize>,
    block_size: usize,
    rng: ChaCha8Rng,
}

impl Blocks {
    /// `size` is N+1, the rows and the bias; `block_size` is J.
    pub fn new(size: usize, block_size: usize, seed: u64) -> Self {
        Self {
            permutation: (1..size).collect(),
            next: size,
            block: Vec::with_capacity(block_size),
            block_size,
            rng: random::rng(seed),
        }
    }

    /// The next block; the bias, index 0, comes first.
    pub fn draw(&mut self) -> &[usize] {
        let rows = self.block_size - 1;
        if self.next + rows > self.permutation.len() {
            random::shuffle(&mut self.rng, &mut self.permutation);
            self.next = 0;
        }
        self.block.clear();
        self.block.push(0);
        let drawn = &self.permutation[self.next..self.next + rows];
        self.block.extend_from_slice(drawn);
        self.next += rows;
        &self.block
    }

    /// Blocks in one permutation.
    pub fn per_pass(&self) -> usize {
        (self.permutation.len() / (self.block_size - 1).max(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_has_no_row_twice_and_every_block_the_bias() {
        let mut blocks = Blocks::new(104, 11, 1);
        assert_eq!(blocks.per_pass(), 10);
        for _ in 0..3 {
            let mut seen = Vec::new();
            for _ in 0..10 {
                let block = blocks.draw();
                assert_eq!((block.len(), block[0]), (11, 0));
                seen.extend_from_slice(&block[1..]);
            }
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
