//! Which rank has which rows.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::{Ranks, exchange};
use crate::linalg::{Matrix, Points, Scalar};

/// N rows in runs, one for each rank. A rank may have none.
#[derive(Debug, Clone)]
pub struct Shares {
    /// Where each run begins, and N.
    bounds: Arc<[usize]>,
    ranks: Ranks,
}

impl Shares {
    /// All rows are here, and nobody is asked.
    pub fn whole(n: usize) -> Self {
        Self {
            bounds: Arc::new([0, n]),
            ranks: Ranks::default(),
        }
    }

    /// Runs of about as many rows, each but the last a multiple of `unit` of them; where
    /// they do not come out even, the first ranks have more.
    pub fn even(n: usize, unit: usize, ranks: &Ranks) -> Self {
        let (units, size) = (n.div_ceil(unit), ranks.size());
        let bound = |rank: usize| {
            let before = rank * (units / size) + rank.min(units % size);
            (before * unit).min(n)
        };
        Self {
            bounds: (0..=size).map(bound).collect(),
            ranks: ranks.clone(),
        }
    }

    /// N
    pub fn n(&self) -> usize {
        self.bounds[self.bounds.len() - 1]
    }

    /// The ranks.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Whether there is one rank.
    pub fn is_alone(&self) -> bool {
        self.ranks.is_alone()
    }

    /// The rows of this rank.
    pub fn own(&self) -> Range<usize> {
        self.of(self.ranks.rank())
    }

    /// The rows of a rank.
    pub fn of(&self, rank: usize) -> Range<usize> {
        self.bounds[rank]..self.bounds[rank + 1]
    }

    /// The most rows that a rank has.
    pub fn largest(&self) -> usize {
        let runs = self.bounds.windows(2).map(|pair| pair[1] - pair[0]);
        runs.max().unwrap_or(0)
    }

    /// Which rank has a row.
    pub fn owner(&self, row: usize) -> usize {
        self.bounds.partition_point(|&bound| bound <= row) - 1
    }

    /// Where a row is among those of this rank, if it has it.
    pub fn place(&self, row: usize) -> Option<usize> {
        let own = self.own();
        own.contains(&row).then(|| row - own.start)
    }

    /// The rows of all ranks, on every rank; `own`: those of this one.
    pub fn all_rows<'a, T: Scalar>(&self, own: &'a Matrix<T>) -> Cow<'a, Matrix<T>> {
        if self.is_alone() {
            return Cow::Borrowed(own);
        }
        let (cols, row) = (own.cols(), own.cols() * size_of::<T>());
        let counts = (0..self.ranks.size()).map(|rank| self.of(rank).len() * row);
        let counts: Vec<usize> = counts.collect();
        let own = bytemuck::cast_slice(own.values());
        let all = self.ranks.all_gather_known(own, &counts);
        let values = bytemuck::pod_collect_to_vec(&all);
        Cow::Owned(Matrix::from_vec(self.n(), cols, values))
    }

    /// The rows of all ranks, on rank 0; others get no rows.
    pub fn rows_at_first<T: Scalar>(&self, own: &Matrix<T>) -> Matrix<T> {
        let mut values: Vec<T> = Vec::new();
        self.ranks
            .gather_values(own.values(), |piece| values.extend(piece));
        let rows = if self.ranks.is_first() { self.n() } else { 0 };
        Matrix::from_vec(rows, own.cols(), values)
    }

    /// The same of rows that may be sparse.
    pub fn points_at_first<T: Scalar>(&self, own: &Points<T>) -> Points<T> {
        let mut pieces = Vec::new();
        self.ranks.gather(&exchange::to_bytes(own), |_, piece| {
            pieces.push(piece.to_vec())
        });
        exchange::from_bytes(&pieces, own)
    }

    /// Some rows on every rank, in this order; `own`: the rows of this rank.
    pub fn pick_rows<T: Scalar>(&self, own: &Matrix<T>, rows: &[usize]) -> Matrix<T> {
        if self.is_alone() {
            return own.select_rows(rows);
        }
        let mine = own.select_rows(&self.mine(rows));
        let width = own.cols() * size_of::<T>();
        let mut counts = vec![0; self.ranks.size()];
        rows.iter()
            .for_each(|&row| counts[self.owner(row)] += width);
        let mine = bytemuck::cast_slice(mine.values());
        let all = self.ranks.all_gather_known(mine, &counts);
        let found = bytemuck::pod_collect_to_vec(&all);
        let found = Matrix::from_vec(rows.len(), own.cols(), found);
        match self.places(rows) {
            Some(places) => found.select_rows(&places),
            None => found,
        }
    }

    /// The same of rows that may be sparse.
    pub fn pick_points<T: Scalar>(&self, own: &Points<T>, rows: &[usize]) -> Points<T> {
        if self.is_alone() {
            return own.select_rows(rows);
        }
        if let Points::Dense(own) = own {
            return self.pick_rows(own, rows).into();
        }
        let mine = own.select_rows(&self.mine(rows));
        let pieces = self.ranks.all_gather(&exchange::to_bytes(&mine));
        let found = exchange::from_bytes(&pieces, own);
        match self.places(rows) {
            Some(places) => found.select_rows(&places),
            None => found,
        }
    }

    /// A run of rows that one rank has, on every rank.
    pub fn give_points<T: Scalar>(&self, own: &Points<T>, rows: &Range<usize>) -> Points<T> {
        if self.is_alone() || rows.is_empty() {
            let here = if rows.is_empty() { 0..0 } else { rows.clone() };
            return own.slice(here);
        }
        let root = self.owner(rows.start);
        let mine = match self.place(rows.start) {
            Some(first) => exchange::to_bytes(&own.slice(first..first + rows.len())),
            None => Vec::new(),
        };
        let bytes = match own {
            Points::Dense(own) => {
                let mut bytes = mine;
                bytes.resize(rows.len() * own.cols() * size_of::<T>(), 0);
                self.ranks.broadcast_known(root, &mut bytes);
                bytes
            }
            Points::Sparse(_) => self.ranks.broadcast(root, mine),
        };
        exchange::from_bytes(&[bytes], own)
    }

    /// Gives everybody the values that the rank with this row has.
    pub fn give_values<T: Scalar>(&self, row: usize, values: &mut [T]) {
        let root = self.owner(row);
        let bytes = bytemuck::cast_slice_mut(values);
        self.ranks.broadcast_known(root, bytes);
    }

    /// Where those of these rows that are here are among the rows of this rank.
    fn mine(&self, rows: &[usize]) -> Vec<usize> {
        rows.iter().filter_map(|&row| self.place(row)).collect()
    }

    /// Where each of these rows is, if those of rank after rank lie one after the other;
    /// none if that is their own order.
    fn places(&self, rows: &[usize]) -> Option<Vec<usize>> {
        if rows.is_sorted() {
            return None;
        }
        let mut next = vec![0; self.ranks.size()];
        rows.iter().for_each(|&row| next[self.owner(row)] += 1);
        let mut before = 0;
        for count in &mut next {
            (*count, before) = (before, before + *count);
        }
        let place = |&row: &usize| {
            let next = &mut next[self.owner(row)];
            *next += 1;
            *next - 1
        };
        Some(rows.iter().map(place).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Csr;
    use crate::ranks::threads::on_ranks;

    #[test]
    fn every_row_has_one_owner() {
        for (n, unit) in [
            (0, 1),
            (1, 1),
            (3, 1),
            (10, 1),
            (10, 4),
            (4096, 1024),
            (5000, 1024),
        ] {
            for size in 1..5 {
                on_ranks(size, |ranks| {
                    let shares = Shares::even(n, unit, &ranks);
                    assert_eq!(shares.n(), n);
                    assert!(n == 0 || !shares.of(0).is_empty());
                    let mut seen = 0;
                    for rank in 0..size {
                        let own = shares.of(rank);
                        assert_eq!(own.start, seen);
                        assert!(own.start == n || own.start.is_multiple_of(unit));
                        assert!(own.clone().all(|row| shares.owner(row) == rank));
                        seen = own.end;
                    }
                    assert_eq!(seen, n);
                    assert!(unit > 1 || shares.largest() <= n.div_ceil(size));
                });
            }
        }
    }

    #[test]
    fn rows_of_others_are_those_they_have() {
        let all = Matrix::from_fn(11, 3, |i, j| ((i + j) % 3) as f32 * (i + 1) as f32);
        for size in 1..5 {
            on_ranks(size, |ranks| {
                let shares = Shares::even(11, 1, &ranks);
                let own: Vec<usize> = shares.own().collect();
                let own = all.select_rows(&own);
                assert_eq!(*shares.all_rows(&own), all);
                let first = shares.rows_at_first(&own);
                assert!(!ranks.is_first() || first == all);
                for rows in [&[0, 2, 9, 10][..], &[10, 0, 5, 5, 1], &[]] {
                    let expected = all.select_rows(rows);
                    assert_eq!(shares.pick_rows(&own, rows), expected);
                    let sparse = Points::from(Csr::from_dense(&own));
                    let found = shares.pick_points(&sparse, rows);
                    assert!(found.is_sparse());
                    assert_eq!(found.into_dense(), expected);
                }
                for points in [Points::from(own.clone()), Csr::from_dense(&own).into()] {
                    for rank in 0..size {
                        let rows = shares.of(rank);
                        let expected: Vec<usize> = rows.clone().collect();
                        let found = shares.give_points(&points, &rows).into_dense();
                        assert_eq!(found, all.select_rows(&expected));
                    }
                    let found = shares.points_at_first(&points).into_dense();
                    assert!(!ranks.is_first() || found == all);
                }
            });
        }
    }
}
