//! Randomness whose meaning does not change with the version of a dependency.
//!
//! The generator is ChaCha8, seeded by the bytes of the seed itself; the
//! shuffle and the bounded draw are our own, so that a seed gives the same
//! split and the same solver steps for years.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// The generator for a seed.
///
/// ```
/// let mut rng = lssvm::random::rng(7);
/// let mut items = [0, 1, 2, 3, 4];
/// lssvm::random::shuffle(&mut rng, &mut items);
/// let mut again = [0, 1, 2, 3, 4];
/// lssvm::random::shuffle(&mut lssvm::random::rng(7), &mut again);
/// assert_eq!(items, again);
/// ```
pub fn rng(seed: u64) -> ChaCha8Rng {
    // Not seed_from_u64: how it stretches the seed is rand_core's choice, and
    // ChaCha needs no well-mixed key.
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

/// A uniform draw from `0..bound`, without bias (Lemire 2019).
///
/// # Panics
/// If `bound` is 0.
pub fn below(rng: &mut ChaCha8Rng, bound: usize) -> usize {
    assert!(bound > 0, "a draw from an empty range");
    let bound = bound as u64;
    loop {
        let product = u128::from(rng.next_u64()) * u128::from(bound);
        // The lowest 2⁶⁴ mod bound products of each bucket are one too many.
        if product as u64 >= bound.wrapping_neg() % bound {
            return (product >> 64) as usize;
        }
    }
}

/// A uniform draw from the numbers k / 2⁵³ from 0 up to, and without, 1.
pub fn unit(rng: &mut ChaCha8Rng) -> f64 {
    const BITS: u32 = 53;
    (rng.next_u64() >> (u64::BITS - BITS)) as f64 / (1u64 << BITS) as f64
}

/// Puts the items in random order; each order is equally likely (Fisher–Yates).
pub fn shuffle<T>(rng: &mut ChaCha8Rng, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(rng, last + 1));
    }
}

/// So many of `0..n`, each set equally likely, in ascending order (Floyd's algorithm).
/// Memory for those that are drawn alone.
///
/// # Panics
/// If there are not so many.
pub fn sample(rng: &mut ChaCha8Rng, n: usize, count: usize) -> Vec<usize> {
    assert!(count <= n, "{count} of {n}");
    let mut drawn = std::collections::BTreeSet::new();
    for last in n - count..n {
        let item = below(rng, last + 1);
        if !drawn.insert(item) {
            drawn.insert(last);
        }
    }
    drawn.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_sets_and_equally_likely() {
        let mut rng = rng(3);
        let mut counts = std::collections::HashMap::new();
        for _ in 0..10_000 {
            let drawn = sample(&mut rng, 5, 2);
            assert!(drawn.len() == 2 && drawn[0] < drawn[1] && drawn[1] < 5);
            *counts.entry(drawn).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 10);
        assert!(
            counts.values().all(|&n| (850..1150).contains(&n)),
            "{counts:?}"
        );
        assert_eq!(sample(&mut rng, 4, 4), [0, 1, 2, 3]);
        assert!(sample(&mut rng, 4, 0).is_empty());
    }

    #[test]
    fn every_order_is_equally_likely() {
        let mut rng = rng(1);
        let mut counts = std::collections::HashMap::new();
        const DRAWS: usize = 24_000;
        for _ in 0..DRAWS {
            let mut items = [0, 1, 2, 3];
            shuffle(&mut rng, &mut items);
            *counts.entry(items).or_insert(0usize) += 1;
        }
        assert_eq!(counts.len(), 24);
        // 1000 expected of each; five standard deviations are 155.
        assert!(
            counts.values().all(|&n| n.abs_diff(1000) < 155),
            "{counts:?}"
        );
    }

    #[test]
    fn a_unit_is_everywhere_between_0_and_1_equally_often() {
        let mut rng = rng(5);
        let mut counts = [0usize; 4];
        for _ in 0..4000 {
            let unit = unit(&mut rng);
            assert!((0.0..1.0).contains(&unit));
            counts[(4.0 * unit) as usize] += 1;
        }
        // 1000 expected of each; five standard deviations are 137.
        assert!(counts.iter().all(|n| n.abs_diff(1000) < 137), "{counts:?}");
    }

    #[test]
    fn draws_stay_below_the_bound() {
        let mut rng = rng(2);
        for bound in [1, 2, 3, 10, usize::MAX] {
            assert!((0..100).all(|_| below(&mut rng, bound) < bound));
        }
    }

    #[test]
    fn large_bounds_are_not_biased() {
        // With bound = ¾·2⁶⁴, a draw by modulo would fall below 2⁶² half of
        // the time instead of a third.
        let mut rng = rng(3);
        let low = (0..3000).filter(|_| below(&mut rng, 3 << 62) < 1 << 62);
        assert!(low.count().abs_diff(1000) < 130);
    }

    #[test]
    fn a_seed_means_the_same_for_years() {
        let mut items: Vec<u32> = (0..10).collect();
        shuffle(&mut rng(42), &mut items);
        assert_eq!(items, PINNED);
    }

    const PINNED: [u32; 10] = [7, 6, 5, 1, 0, 4, 8, 9, 2, 3];
}
