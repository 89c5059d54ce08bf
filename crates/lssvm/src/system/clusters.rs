//! An order of the rows in which each tile holds rows that resemble each other.
//!
//! The rows are cut in two across the direction in which they differ most, each part
//! again, and so on until a part is one tile. A preconditioner that treats the tiles on
//! Ω's diagonal exactly gains from it: what rows have in common with their neighbours
//! is then in those tiles.

use rayon::prelude::*;

use super::TILE;
use crate::linalg::{Points, Scalar};
use crate::random;
use crate::ranks::Shares;

/// Rows of a part that its direction is found from.
const SAMPLE: usize = 500;

/// Power iterations for the direction; a rough one will do.
const ROUNDS: usize = 4;

/// A permutation of the rows of `x`: row i of the new order is row `order[i]` of `x`.
pub fn in_clusters<T: Scalar>(x: &Points<T>, seed: u64) -> Vec<usize> {
    in_clusters_of(&Shares::whole(x.rows()), x, seed)
}

/// The same for rows of several ranks, of which this one has `own`; each knows the order of
/// all.
pub fn in_clusters_of<T: Scalar>(shares: &Shares, own: &Points<T>, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shares.n()).collect();
    // The first rows of a part are then a random sample of it.
    random::shuffle(&mut random::rng(seed), &mut order);
    split(shares, own, &mut order);
    order
}

fn split<T: Scalar>(shares: &Shares, own: &Points<T>, rows: &mut [usize]) {
    if rows.len() <= TILE {
        return;
    }
    let (left, right) = halve(shares, own, rows);
    if shares.is_alone() {
        rayon::join(|| split(shares, own, left), || split(shares, own, right));
    } else {
        // All ranks ask for the same rows at the same time.
        split(shares, own, left);
        split(shares, own, right);
    }
}

/// Puts those rows first that lie on one side, and returns both sides.
fn halve<'a, T: Scalar>(
    shares: &Shares,
    own: &Points<T>,
    rows: &'a mut [usize],
) -> (&'a mut [usize], &'a mut [usize]) {
    let some = &rows[..SAMPLE.min(rows.len())];
    let direction = match shares.is_alone() {
        true => widest_direction(own, some),
        false => {
            let sample = shares.pick_points(own, some);
            let all: Vec<usize> = (0..sample.rows()).collect();
            widest_direction(&sample, &all)
        }
    };
    let key = |row: usize| {
        shares
            .place(row)
            .map_or(0.0, |row| dot(own, row, &direction))
    };
    let mut keys: Vec<f64> = rows.par_iter().map(|&row| key(row)).collect();
    shares.ranks().sum(&mut keys);
    let mut keyed: Vec<(f64, usize)> = keys.into_iter().zip(rows.iter().copied()).collect();
    // Whole tiles to the left; of equal rows the order stays random.
    let left = rows.len().div_ceil(TILE) / 2 * TILE;
    keyed.select_nth_unstable_by(left, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    for (row, (_, from)) in rows.iter_mut().zip(keyed) {
        *row = from;
    }
    rows.split_at_mut(left)
}

/// About the first principal direction of these rows; zero if they are all equal.
fn widest_direction<T: Scalar>(x: &Points<T>, rows: &[usize]) -> Vec<f64> {
    let m = x.cols();
    let mut mean = vec![0.0; m];
    for &row in rows {
        add(&mut mean, x, row, 1.0 / rows.len() as f64);
    }
    let middle = mean.iter().map(|v| v * v).sum::<f64>();
    // Begins at the row that is farthest from the mean.
    let distance = |row: usize| {
        let values = match x {
            Points::Dense(x) => x.row(row),
            Points::Sparse(x) => x.row(row).1,
        };
        let square: f64 = values.iter().map(|v| v.to_f64().powi(2)).sum();
        square - 2.0 * dot(x, row, &mean) + middle
    };
    let farthest = rows.iter().map(|&row| (distance(row), row));
    let farthest = farthest.max_by(|a, b| a.0.total_cmp(&b.0));
    let mut direction: Vec<f64> = mean.iter().map(|v| -v).collect();
    if let Some((_, row)) = farthest {
        add(&mut direction, x, row, 1.0);
    }
    for _ in 0..ROUNDS {
        let offset: f64 = mean.iter().zip(&direction).map(|(a, b)| a * b).sum();
        let mut next = vec![0.0; m];
        for &row in rows {
            // The mean need not be taken off twice: these factors sum to zero.
            let factor = dot(x, row, &direction) - offset;
            add(&mut next, x, row, factor);
        }
        let norm = next.iter().map(|v| v * v).sum::<f64>().sqrt();
        if norm == 0.0 || !norm.is_finite() {
            break;
        }
        next.iter_mut().for_each(|v| *v /= norm);
        direction = next;
    }
    direction
}

fn dot<T: Scalar>(x: &Points<T>, row: usize, direction: &[f64]) -> f64 {
    match x {
        Points::Dense(x) => {
            let pairs = x.row(row).iter().zip(direction);
            pairs.map(|(a, b)| a.to_f64() * b).sum()
        }
        Points::Sparse(x) => {
            let (columns, values) = x.row(row);
            let pairs = columns.iter().zip(values);
            pairs
                .map(|(&c, v)| v.to_f64() * direction[c as usize])
                .sum()
        }
    }
}

/// `sum += factor · row`
fn add<T: Scalar>(sum: &mut [f64], x: &Points<T>, row: usize, factor: f64) {
    match x {
        Points::Dense(x) => {
            for (sum, v) in sum.iter_mut().zip(x.row(row)) {
                *sum += factor * v.to_f64();
            }
        }
        Points::Sparse(x) => {
            let (columns, values) = x.row(row);
            for (&column, v) in columns.iter().zip(values) {
                sum[column as usize] += factor * v.to_f64();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Csr, Matrix};
    use crate::ranks::threads::on_ranks;

    #[test]
    fn tiles_hold_rows_that_resemble_each_other() {
        // Two clouds of a tile each, far apart, in turn.
        let x = Matrix::from_fn(2 * TILE, 3, |i, j| {
            (i % 2) as f32 * 50.0 + ((i * 7 + j * 3) as f32).sin()
        });
        let sparse = Points::from(Csr::from_dense(&x));
        let x = Points::from(x);
        let order = in_clusters(&x, 1);
        assert_eq!(order, in_clusters(&sparse, 1));
        let (left, right) = order.split_at(TILE);
        for part in [left, right] {
            assert!(part.iter().all(|row| row % 2 == part[0] % 2));
        }
        assert_eq!(order, in_clusters(&x, 1));
    }

    #[test]
    fn ranks_find_the_same_order_together() {
        let x = Matrix::from_fn(3 * TILE + 5, 3, |i, j| ((i * 7 + j * 3) as f32).sin());
        let expected = in_clusters(&x.clone().into(), 4);
        for size in 1..5 {
            let found = on_ranks(size, |ranks| {
                let shares = Shares::even(x.rows(), 1, &ranks);
                let own = Points::from(x.clone()).slice(shares.own());
                in_clusters_of(&shares, &own, 4)
            });
            assert!(found.iter().all(|order| *order == expected), "{size}");
        }
    }

    #[test]
    fn every_row_keeps_its_place_in_the_order() {
        // A rest, equal rows, few rows, none.
        for (n, same) in [
            (3 * TILE + 5, false),
            (2 * TILE + 1, true),
            (7, false),
            (0, false),
        ] {
            let x = Matrix::from_fn(n, 2, |i, j| match same {
                true => 1.0,
                false => ((i * 3 + j) as f64).cos(),
            });
            let mut order = in_clusters(&x.into(), 3);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..n));
        }
    }
}
