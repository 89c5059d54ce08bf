//! Rows that stand for all others, by randomly pivoted Cholesky: the next centre is drawn
//! in proportion to what those before it miss of each row.
//!
//! ```text
//!     d = diag Ω
//!     repeat:  draw s with probability wₛdₛ / Σwd        w: what the rows count
//!              f = (Ω[:, s] − F F[s, :]ᵀ) / √dₛ,   d ← d − f²,   F ← [F f]
//! ```
//!
//! (Chen, Epperly, Tropp, Webber, "Randomly pivoted Cholesky", 2022.) Rows in sparse
//! regions come to their centres, and a row that repeats a centre has d = 0 and is never
//! drawn. Rows are drawn a block at a time and kept or left as one after the other would
//! have been (Epperly, Tropp, Webber, "Embrace rejection", 2024), so that all but little
//! is matrix products: n P² operations and n·P values of memory for P of n rows.

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::problem::rounding;
use crate::kernel::{FillBlock, Kernel, Samples};
use crate::linalg::dense::Backend;
use crate::linalg::{MatMut, MatRef, Matrix, Output, Parallel, Scalar, sum_of_squares};
use crate::system::{diagonal, kernel_matrix};
use crate::{Error, Result, random};

/// Rows that are drawn at once. Fewer, and products are slow; more, and most of them are
/// left again where few rows tell all.
const BLOCK: usize = 128;

/// Rows whose part of F one task computes.
const TASK_ROWS: usize = 512;

/// Chooses `count` of the rows, in ascending order. `weights`: what each row counts, if
/// not all count the same.
///
/// Where fewer rows tell all that can be told of the others in this precision, the rest is
/// drawn uniformly.
///
/// # Errors
/// [`Error::Interrupted`] if `progress`, told the share of the work done, returned false;
/// [`Error::Numeric`] if kernel values are not finite.
///
/// # Panics
/// If there are not so many rows.
pub fn pivots<T: Scalar>(
    (kernel, samples): (&Kernel, &Samples<T>),
    weights: Option<&[f64]>,
    count: usize,
    rng: &mut ChaCha8Rng,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Vec<usize>> {
    let n = samples.len();
    assert!(count <= n, "{count} of {n}");
    let mut pivoted = Pivoted::new(kernel, samples, count);
    if pivoted.left.iter().any(|left| !left.is_finite()) {
        return Err(Error::Numeric(
            "the kernel has values that are not finite; scale the features or lower its degree \
             or gamma"
                .into(),
        ));
    }
    while pivoted.chosen.len() < count {
        // The work grows with the square.
        let share = pivoted.chosen.len() as f64 / count as f64;
        if !progress(share * share) {
            return Err(Error::Interrupted);
        }
        if !pivoted.add(weights, rng) {
            break;
        }
    }
    let mut chosen = pivoted.chosen;
    let mut others: Vec<usize> = (0..n).collect();
    chosen.iter().for_each(|&row| others[row] = n);
    others.retain(|&row| row < n);
    let rest = random::sample(rng, others.len(), count - chosen.len());
    chosen.extend(rest.into_iter().map(|place| others[place]));
    chosen.sort_unstable();
    Ok(chosen)
}

/// What each centre stands for: its own weight, and those of the rows that are nearer to it
/// than to any other, ‖φ(x) − φ(c)‖² = Ω(x, x) + Ω(c, c) − 2 Ω(x, c). Centres that were not
/// drawn uniformly say little of where the rows are without it.
pub fn shares<T: Scalar>(
    (kernel, samples): (&Kernel, &Samples<T>),
    weights: Option<&[f64]>,
    centers: &Samples<T>,
    mut own: Vec<f64>,
) -> Vec<f64> {
    let squares = diagonal(kernel, centers);
    let starts: Vec<usize> = (0..samples.len()).step_by(TASK_ROWS).collect();
    let nearest = starts.into_par_iter().map_init(Vec::new, |tile, first| {
        let rows = TASK_ROWS.min(samples.len() - first);
        let x = samples.range(first, first + rows);
        let mut found = vec![(f64::INFINITY, 0); rows];
        for left in (0..centers.len()).step_by(TASK_ROWS) {
            let width = TASK_ROWS.min(centers.len() - left);
            tile.clear();
            tile.resize(rows * width, T::ZERO);
            let mut block = MatMut::new(rows, width, tile);
            kernel.fill(block.reborrow(), x, centers.range(left, left + width));
            let block = block.as_ref();
            for (i, best) in found.iter_mut().enumerate() {
                for (j, value) in block.row(i).iter().enumerate() {
                    let distance = squares[left + j] - 2.0 * value.to_f64();
                    if distance < best.0 {
                        *best = (distance, left + j);
                    }
                }
            }
        }
        found
    });
    let nearest: Vec<Vec<(f64, usize)>> = nearest.collect();
    for (row, (_, center)) in nearest.into_iter().flatten().enumerate() {
        own[center] += weights.map_or(1.0, |weights| weights[row]);
    }
    own
}

/// Operations of a choice among `n` rows of which so many values are kept.
pub fn flops(n: usize, count: usize, width: usize) -> f64 {
    let values = n as f64 * count as f64;
    values * (count + 2 * width) as f64
}

/// Bytes of a choice among `n` rows, beside the rows themselves.
pub fn bytes<T>(n: usize, count: usize) -> u64 {
    let threads = rayon::current_num_threads();
    let tiles = BLOCK * (2 * threads * TASK_ROWS + count);
    let numbers = size_of::<f64>() * (4 * n + BLOCK * (count + 3 * BLOCK));
    (size_of::<T>() * (n * count + tiles) + numbers) as u64
}

/// The factor so far: Ω ≈ F Fᵀ.
struct Pivoted<'a, T: Scalar> {
    kernel: &'a Kernel,
    samples: &'a Samples<T>,
    /// F; as many columns as rows are chosen hold something.
    factor: Matrix<T>,
    chosen: Vec<usize>,
    /// d: what is missed of each row; zero where that is rounding.
    left: Vec<f64>,
    /// What is rounding.
    floor: Vec<f64>,
}

impl<'a, T: Scalar> Pivoted<'a, T> {
    fn new(kernel: &'a Kernel, samples: &'a Samples<T>, count: usize) -> Self {
        let left = diagonal(kernel, samples);
        let mean = left.iter().sum::<f64>() / left.len().max(1) as f64;
        Self {
            kernel,
            samples,
            factor: Matrix::zeros(samples.len(), count),
            chosen: Vec::with_capacity(count),
            // As much as the solver adds to the diagonal, since it would see no more.
            floor: left
                .iter()
                .map(|d| rounding::<T>(count) * d.max(mean))
                .collect(),
            left,
        }
    }

    /// Draws a block, and adds to the factor what is kept of it. False if nothing is left.
    fn add(&mut self, weights: Option<&[f64]>, rng: &mut ChaCha8Rng) -> bool {
        let room = self.factor.cols() - self.chosen.len();
        let Some(drawn) = draw(&self.left, weights, BLOCK.min(2 * room), rng) else {
            return false;
        };
        let (kept, triangle) = self.keep(&drawn, room, rng);
        if kept.is_empty() {
            return true;
        }
        let pivots = self.samples.select(&kept);
        let (done, width) = (self.chosen.len(), kept.len());
        let before = self.factor.select_rows(&kept);
        let before = before.view().col_range(0, done);
        let (kernel, samples, columns) = (self.kernel, self.samples, self.factor.cols());
        let rows = self.factor.values_mut().par_chunks_mut(TASK_ROWS * columns);
        let left = self.left.par_chunks_mut(TASK_ROWS);
        let tasks = rows.zip(left).enumerate();
        tasks.for_each_init(Vec::new, |tile, (task, (rows, left))| {
            let (first, count) = (task * TASK_ROWS, left.len());
            tile.clear();
            tile.resize(count * width, T::ZERO);
            let mut new = MatMut::new(count, width, tile);
            let x = samples.range(first, first + count);
            kernel.fill(new.reborrow(), x, pivots.view());
            let own = MatRef::strided(count, done, columns, rows);
            T::gemm_nt(
                new.reborrow(),
                Output::Add,
                own,
                before,
                -T::ONE,
                Parallel::No,
            );
            T::solve_upper_right(triangle.view(), new.reborrow(), Parallel::No);
            for (i, (row, left)) in rows.chunks_mut(columns).zip(left).enumerate() {
                let new = new.as_ref();
                row[done..done + width].copy_from_slice(new.row(i));
                *left -= sum_of_squares(new.row(i));
            }
        });
        for (left, floor) in self.left.iter_mut().zip(&self.floor) {
            if *left <= *floor {
                *left = 0.0;
            }
        }
        kept.iter().for_each(|&row| self.left[row] = 0.0);
        self.chosen.extend(kept);
        true
    }

    /// Of rows that were drawn at once, those that would have been drawn one after the
    /// other, at most `room`; and the upper triangle of Cholesky of what is missed of them.
    ///
    /// A row that was drawn with probability dₛ, and of which the rows kept before it leave
    /// d′ₛ, is kept with probability d′ₛ / dₛ.
    fn keep(
        &mut self,
        drawn: &[usize],
        room: usize,
        rng: &mut ChaCha8Rng,
    ) -> (Vec<usize>, Matrix<T>) {
        let own = self.samples.select(drawn);
        let mut missed: Matrix<f64> = kernel_matrix(self.kernel, &own, &own).cast();
        let before: Matrix<f64> = self.factor.select_rows(drawn).cast();
        let before = before.view().col_range(0, self.chosen.len());
        let (out, parallel) = (missed.view_mut(), Parallel::Pool);
        f64::gemm_nt(out, Output::Add, before, before, -1.0, parallel);
        let size = drawn.len();
        let mut kept = Vec::new();
        for (place, &row) in drawn.iter().enumerate() {
            let (d, chance) = (missed.get(place, place), random::unit(rng));
            if d <= self.floor[row] && kept.is_empty() {
                // Two ways to compute it do not agree on what is rounding.
                self.left[row] = 0.0;
            }
            if kept.len() == room || d <= self.floor[row] || chance * self.left[row] >= d {
                continue;
            }
            let root = d.sqrt();
            missed.row_mut(place)[place..]
                .iter_mut()
                .for_each(|v| *v /= root);
            let column = missed.row(place).to_vec();
            for i in place + 1..size {
                let rest = missed.row_mut(i)[i..].iter_mut().zip(&column[i..]);
                rest.for_each(|(v, c)| *v -= column[i] * c);
            }
            kept.push(place);
        }
        let upper = |i: usize, j: usize| match j >= i {
            true => T::from_f64(missed.get(kept[i], kept[j])),
            false => T::ZERO,
        };
        let triangle = Matrix::from_fn(kept.len(), kept.len(), upper);
        (kept.iter().map(|&place| drawn[place]).collect(), triangle)
    }
}

/// Draws so many rows in proportion to what is left of them, with repetitions. None if
/// nothing is left.
fn draw(
    left: &[f64],
    weights: Option<&[f64]>,
    count: usize,
    rng: &mut ChaCha8Rng,
) -> Option<Vec<usize>> {
    let mut total = 0.0;
    let sum = |(row, left): (usize, &f64)| {
        total += left * weights.map_or(1.0, |weights| weights[row]);
        total
    };
    let sums: Vec<f64> = left.iter().enumerate().map(sum).collect();
    let total = *sums.last()?;
    let one = |_| {
        let place = random::unit(rng) * total;
        // Of rows with nothing left, whose sum is that of the row before, none is the first.
        let row = sums.partition_point(|&sum| sum <= place);
        row.min(sums.partition_point(|&sum| sum < total))
    };
    (total > 0.0).then(|| (0..count).map(one).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::system::tests::problem;

    const KERNEL: Kernel = Kernel::Rbf { gamma: 0.5 };

    /// Cholesky with pivots in this order, written out: what is left of each row.
    fn plain(omega: &Matrix<f64>, pivots: &[usize]) -> Vec<f64> {
        let n = omega.rows();
        let mut left = omega.clone();
        for &s in pivots {
            let column: Vec<f64> = (0..n).map(|i| left.get(i, s)).collect();
            for i in 0..n {
                for j in 0..n {
                    let v = left.get(i, j) - column[i] * column[j] / column[s];
                    left.set(i, j, v);
                }
            }
        }
        (0..n).map(|i| left.get(i, i)).collect()
    }

    fn choose<T: Scalar>(
        samples: &Samples<T>,
        kernel: &Kernel,
        count: usize,
        seed: u64,
    ) -> Vec<usize> {
        let rng = &mut random::rng(seed);
        pivots((kernel, samples), None, count, rng, &mut |_| true).unwrap()
    }

    /// Most rows in one heap, and a few in many others.
    fn clustered(n: usize) -> Samples<f64> {
        let wave = |i: usize, j: usize| ((i * 37 + j * 61) as f64 * 0.7).sin();
        let x = Matrix::from_fn(n, 3, |i, j| match i % 10 {
            0 => 20.0 * wave(i / 10 % 12, j) + 0.1 * wave(i, j + 1),
            _ => 0.2 * wave(i, j),
        });
        Samples::new(x, &KERNEL)
    }

    #[test]
    fn what_is_left_is_that_of_plain_cholesky() {
        let kernels = [KERNEL, Kernel::Laplacian { gamma: 0.3 }];
        for (kernel, n, count) in kernels
            .into_iter()
            .flat_map(|k| [(k, 60, 9), (k, 700, 300)])
        {
            let system = problem::<f64>(n, 4, 1, kernel, 1.0);
            let omega = kernel_matrix(&kernel, system.samples(), system.samples());
            let mut pivoted = Pivoted::new(&kernel, system.samples(), count);
            let rng = &mut random::rng(4);
            while pivoted.chosen.len() < count && pivoted.add(None, rng) {
                assert!(pivoted.left.iter().all(|&left| left >= 0.0));
            }
            let expected = plain(&omega, &pivoted.chosen);
            for (left, expected) in pivoted.left.iter().zip(&expected) {
                assert!((left - expected).abs() < 1e-10, "{left} {expected}");
            }
        }
    }

    /// Sets of two of four rows come as often as draws one after the other give them.
    #[test]
    fn sets_are_as_likely_as_drawn_one_after_the_other() {
        const DRAWS: usize = 20_000;
        let x = Matrix::from_rows(&[[0.0], [0.3], [1.0], [2.5]]);
        let samples = Samples::new(x, &KERNEL);
        let omega = kernel_matrix(&KERNEL, &samples, &samples);
        for weights in [None, Some([1.0, 2.0, 0.5, 1.0])] {
            let share = |left: &[f64], row: usize| {
                let of = |i: usize| left[i] * weights.map_or(1.0, |w| w[i]);
                of(row) / (0..4).map(of).sum::<f64>()
            };
            let mut likely: HashMap<[usize; 2], f64> = HashMap::new();
            for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))) {
                if a != b {
                    let chance = share(&plain(&omega, &[]), a) * share(&plain(&omega, &[a]), b);
                    *likely.entry([a.min(b), a.max(b)]).or_default() += chance;
                }
            }
            let mut counts: HashMap<[usize; 2], f64> = HashMap::new();
            let rng = &mut random::rng(9);
            for _ in 0..DRAWS {
                let among = (&KERNEL, &samples);
                let chosen = pivots(among, weights.as_ref().map(|w| &w[..]), 2, rng, &mut |_| {
                    true
                });
                *counts
                    .entry(chosen.unwrap().try_into().unwrap())
                    .or_default() += 1.0;
            }
            for (set, chance) in likely {
                let (count, expected) = (counts[&set], chance * DRAWS as f64);
                let deviation = (expected * (1.0 - chance)).sqrt();
                assert!(
                    (count - expected).abs() < 4.0 * deviation,
                    "{set:?} {count} {expected}"
                );
            }
        }
    }

    #[test]
    fn heaps_of_few_rows_get_their_centres() {
        let samples = clustered(1000);
        let omega = kernel_matrix(&KERNEL, &samples, &samples);
        for seed in 1..4 {
            let chosen = choose(&samples, &KERNEL, 30, seed);
            assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]) && chosen[29] < 1000);
            let uniform = random::sample(&mut random::rng(seed), 1000, 30);
            let missed = |rows: &[usize]| plain(&omega, rows).iter().sum::<f64>();
            let (pivoted, uniform) = (missed(&chosen), missed(&uniform));
            assert!(pivoted < 0.2 * uniform, "{pivoted} {uniform}");
        }
    }

    #[test]
    fn rows_that_repeat_are_chosen_once_while_others_are_left() {
        // Each row five times, far enough from all others.
        let x = Matrix::from_fn(200, 2, |i, j| {
            ((i / 5 * 13 + j * 29) as f32 * 0.9).sin() * 9.0
        });
        let samples = Samples::new(x, &KERNEL);
        let chosen = choose(&samples, &KERNEL, 40, 2);
        let mut different: Vec<usize> = chosen.iter().map(|row| row / 5).collect();
        different.dedup();
        assert_eq!(different.len(), 40);
        // And when none is left, any.
        let more = choose(&samples, &KERNEL, 200, 2);
        assert_eq!(more, (0..200).collect::<Vec<_>>());
    }

    #[test]
    fn few_directions_are_told_by_few_rows() {
        let system = problem::<f32>(300, 3, 1, Kernel::Linear, 1.0);
        let chosen = choose(system.samples(), &Kernel::Linear, 50, 1);
        assert_eq!(chosen.len(), 50);
        assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]));
        let zero = Samples::new(Matrix::<f32>::zeros(7, 2), &Kernel::Linear);
        assert_eq!(choose(&zero, &Kernel::Linear, 3, 1).len(), 3);
    }

    #[test]
    fn centres_stand_for_the_rows_nearest_to_them() {
        let system = problem::<f64>(1300, 3, 1, KERNEL, 1.0);
        let (samples, rows) = (system.samples(), [3, 700, 1111]);
        let weights: Vec<f64> = (0..1300).map(|i| 1.0 + (i % 3) as f64).collect();
        let among = (&KERNEL, samples);
        let found = shares(among, Some(&weights), &samples.select(&rows), vec![0.5; 3]);
        let points = samples.points();
        let mut expected = [0.5; 3];
        for (i, weight) in weights.iter().enumerate() {
            let distance = |row: usize| {
                let (x, c) = (points.row(i), points.row(row));
                let squares = x.iter().zip(c.iter()).map(|(x, c)| (x - c) * (x - c));
                squares.sum::<f64>()
            };
            let nearest = (0..3).min_by(|&a, &b| distance(rows[a]).total_cmp(&distance(rows[b])));
            expected[nearest.unwrap()] += weight;
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn a_choice_can_be_interrupted() {
        let (samples, rng) = (clustered(100), &mut random::rng(1));
        let refused = pivots((&KERNEL, &samples), None, 9, rng, &mut |_| false);
        assert!(matches!(refused, Err(Error::Interrupted)));
    }
}
