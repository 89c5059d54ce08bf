//! A tile of a symmetric matrix times a few columns, from both of its sides.
//!
//! ```text
//! right = T · V        T: n × j,  V: j × k,  right: n × k
//! left  = Tᵀ · U       T: n × j,  U: n × k,  left:  j × k
//! ```
//!
//! The tile comes from memory once, a square block after the other. A block is widened if it is
//! kept in half precision, and written to the first-level cache as it is and on its side, so
//! that both products are the same loop: a few registers of a row, times one value of V or U
//! each, added to sums that stay in registers. Dot products of rows, which need no block on its
//! side, reach half of the speed of that loop, and rows of a tile where it lies, 4 kB apart, drive
//! each other out of the cache.
//!
//! With AVX-512 there are registers enough for products of the tile as it lies, panel after panel
//! of some rows. That took 1.15 times as long in `f32` and 1.3 times in half precision (Zen 5, 11
//! columns, `lssvm bench --full --rows 30000`), with a row of V padded to a register; with dot
//! products of two rows and a panel read twice it took 1.0 to 1.4 and 1.4 to 1.5 times as long.

use half::f16;

use super::half::Lanes;
use super::simd::{Arch, Job, LINE, MOST_LANES, Vector, dispatch, prefetch};
use super::skinny::{groups, with_group};
use super::{Aligned, MatRef, Scalar};

/// Bytes of a row of a block: a block and its mirror image leave room in the first-level cache
/// for what is fetched. With rows of 256 a product took 1.1 times as long, in some builds 1.4 (Zen 5).
const BLOCK_BYTES: usize = 128;

/// Registers of a row that share the loads of V or U.
const REGISTERS: usize = 2;

/// Rows of a block between two looks ahead.
const LOOK: usize = 8;

/// Values after each row of a block, so that rows do not all begin in the same lines of the
/// cache.
const GAP: usize = LINE / size_of::<f32>();

/// The values of a tile, row after row.
#[derive(Debug, Clone, Copy)]
pub enum Tile<'a, T> {
    /// As they are.
    Full(&'a [T]),
    /// In half precision, relative to a scale.
    Half(&'a [f16], T),
}

/// Room for the products of tiles with `k` columns, one tile after the other.
#[derive(Debug)]
pub struct TwoSided<T> {
    k: usize,
    right: Side<T>,
    left: Side<T>,
    /// A block, and the same on its side.
    block: Aligned<T>,
    turned: Aligned<T>,
}

/// One of the two products.
#[derive(Debug)]
struct Side<T> {
    /// V or U, with rows of zeros up to a whole block.
    columns: Vec<T>,
    /// The sums: for each block of [`edge`] rows, column after column.
    sums: Aligned<T>,
    /// What they are relative to.
    scale: T,
}

/// Rows and columns of a block.
const fn edge<T>() -> usize {
    BLOCK_BYTES / size_of::<T>()
}

impl<T: Scalar> TwoSided<T> {
    /// For so many columns.
    pub fn new(k: usize) -> Self {
        let side = || Side {
            columns: Vec::new(),
            sums: Aligned::default(),
            scale: T::ONE,
        };
        Self {
            k,
            right: side(),
            left: side(),
            block: Aligned::default(),
            turned: Aligned::default(),
        }
    }

    /// Multiplies a tile of `n` × `j` values by `v`, and its mirror image by `u`, on this thread.
    /// What follows it in memory is fetched meanwhile.
    pub fn multiply(
        &mut self,
        tile: Tile<'_, T>,
        shape: (usize, usize),
        v: Option<MatRef<'_, T>>,
        u: Option<MatRef<'_, T>>,
    ) {
        let (n, j) = shape;
        let given = |given: Option<MatRef<'_, T>>| given.map(|m| (m.rows(), m.cols()));
        assert!(given(v).is_none_or(|given| given == (j, self.k)));
        assert!(given(u).is_none_or(|given| given == (n, self.k)));
        dispatch(Multiply {
            room: self,
            tile,
            shape,
            v,
            u,
        });
    }

    /// Tells `f` row, column and value of all of T·V, for the last tile.
    pub fn each_right(&self, rows: usize, f: impl FnMut(usize, usize, T)) {
        self.right.each(rows, self.k, f);
    }

    /// The same of Tᵀ·U.
    pub fn each_left(&self, rows: usize, f: impl FnMut(usize, usize, T)) {
        self.left.each(rows, self.k, f);
    }

    /// Zeros to add products of so many rows to, in this memory if it has the room.
    pub fn sums(&self, rows: usize, mut memory: Vec<f64>) -> Sums {
        let edge = edge::<T>();
        memory.clear();
        memory.resize(rows.next_multiple_of(edge) * self.k, 0.0);
        Sums {
            rows,
            k: self.k,
            edge,
            values: memory,
        }
    }

    /// Adds all of T·V, for the last tile.
    pub fn add_right(&self, sums: &mut Sums) {
        self.right.add_to(sums);
    }

    /// The same of Tᵀ·U.
    pub fn add_left(&self, sums: &mut Sums) {
        self.left.add_to(sums);
    }

    /// Both products by blocks.
    #[inline(always)]
    fn by_blocks<A: Arch>(
        &mut self,
        tile: Tile<'_, T>,
        shape: (usize, usize),
        v: Option<MatRef<'_, T>>,
        u: Option<MatRef<'_, T>>,
    ) {
        let room = edge::<T>() * (edge::<T>() + GAP);
        self.block.reset(room);
        self.turned.reset(room);
        let scale = match tile {
            Tile::Full(_) => T::ONE,
            Tile::Half(_, scale) => scale,
        };
        let both = [(&mut self.right, v, shape.0), (&mut self.left, u, shape.1)];
        for (side, given, rows) in both {
            if let Some(given) = given {
                side.begin(given, rows, scale);
            }
        }
        let sides = (v.is_some(), u.is_some());
        match tile {
            Tile::Full(values) => Walk {
                room: self,
                values,
                shape,
                sides,
            }
            .run::<A>(),
            Tile::Half(values, _) => Walk {
                room: self,
                values,
                shape,
                sides,
            }
            .run::<A>(),
        }
    }
}

impl<T: Scalar> Side<T> {
    /// For a product of so many rows.
    fn begin(&mut self, given: MatRef<'_, T>, rows: usize, scale: T) {
        let k = given.cols();
        self.sums.reset(rows.next_multiple_of(edge::<T>()) * k);
        self.scale = scale;
        self.columns.clear();
        (0..given.rows()).for_each(|i| self.columns.extend_from_slice(given.row(i)));
        let whole = given.rows().next_multiple_of(edge::<T>());
        self.columns.resize(whole * k, T::ZERO);
    }

    fn add_to(&self, sums: &mut Sums) {
        assert_eq!(sums.values.len(), self.sums.len());
        dispatch(Add {
            sums: &mut sums.values,
            side: self,
        });
    }

    fn each(&self, rows: usize, k: usize, mut f: impl FnMut(usize, usize, T)) {
        let sums = self.sums.chunks_exact((edge::<T>() * k).max(1));
        each(sums, (rows, k), |i, c, v| f(i, c, self.scale * v));
    }
}

/// Tells `f` row, column and value of sums, of which each block has one column after the other.
#[inline(always)]
fn each<'a, V: Copy + 'a>(
    blocks: impl Iterator<Item = &'a [V]>,
    (rows, k): (usize, usize),
    mut f: impl FnMut(usize, usize, V),
) {
    let mut top = 0;
    for block in blocks {
        let edge = block.len() / k;
        let height = edge.min(rows - top);
        for (c, column) in block.chunks_exact(edge).enumerate() {
            for (i, &sum) in column[..height].iter().enumerate() {
                f(top + i, c, sum);
            }
        }
        top += height;
    }
}

/// Sums of products of several tiles, in `f64`; of equal tile rows.
#[derive(Debug)]
pub struct Sums {
    rows: usize,
    k: usize,
    edge: usize,
    values: Vec<f64>,
}

impl Sums {
    /// Tells `f` row, column and value of all.
    pub fn each(&self, f: impl FnMut(usize, usize, f64)) {
        let blocks = self.values.chunks_exact((self.edge * self.k).max(1));
        each(blocks, (self.rows, self.k), f);
    }

    /// Their memory, for others.
    pub fn into_memory(self) -> Vec<f64> {
        self.values
    }
}

/// Adds what one tile gave.
struct Add<'a, T: Scalar> {
    sums: &'a mut [f64],
    side: &'a Side<T>,
}

impl<T: Scalar> Job for Add<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let scale = self.side.scale;
        for (sum, &v) in self.sums.iter_mut().zip(&*self.side.sums) {
            *sum += (scale * v).to_f64();
        }
    }
}

/// Both products, as this processor likes them.
struct Multiply<'a, T: Scalar> {
    room: &'a mut TwoSided<T>,
    tile: Tile<'a, T>,
    shape: (usize, usize),
    v: Option<MatRef<'a, T>>,
    u: Option<MatRef<'a, T>>,
}

impl<T: Scalar> Job for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let room = self.room;
        room.by_blocks::<A>(self.tile, self.shape, self.v, self.u);
    }
}

/// All blocks of a tile.
struct Walk<'a, T: Scalar, V> {
    room: &'a mut TwoSided<T>,
    values: &'a [V],
    shape: (usize, usize),
    sides: (bool, bool),
}

impl<T: Scalar, V: Lanes<T>> Walk<'_, T, V> {
    #[inline(always)]
    fn run<A: Arch>(self) {
        let (n, j) = self.shape;
        let (edge, k) = (edge::<T>(), self.room.k);
        let room = self.room;
        let width = REGISTERS * T::Vector::<A>::LANES;
        let count = groups::<A>(k, REGISTERS).count();
        let calls = (usize::from(self.sides.0) + usize::from(self.sides.1)) * count * edge / width;
        let lines = edge * edge * size_of::<V>() / LINE;
        let fetch = lines.div_ceil(calls.max(1));
        for top in (0..n).step_by(edge) {
            for left in (0..j).step_by(edge) {
                let part = Part {
                    values: self.values,
                    stride: j,
                    rows: (top, (top + edge).min(n)),
                    columns: (left, (left + edge).min(j)),
                };
                // SAFETY: this is `run`, for its own `A`.
                unsafe { part.copy::<T, A>(&mut room.block, &mut room.turned, self.sides) };
                // The next rows of blocks, as many lines with each block.
                let next = (top + edge) * j + left * edge;
                let mut ahead = self.values.as_ptr().wrapping_add(next).cast::<u8>();
                let both = [
                    (self.sides.0, &room.turned, &mut room.right, left, top),
                    (self.sides.1, &room.block, &mut room.left, top, left),
                ];
                for (wanted, block, side, from, to) in both {
                    if !wanted {
                        continue;
                    }
                    let columns = &side.columns[from * k..(from + edge) * k];
                    let sums = &mut side.sums[to * k..(to + edge) * k];
                    for at in (0..edge).step_by(width) {
                        for (first, last) in groups::<A>(k, REGISTERS) {
                            with_group!(last - first, G => {
                                // SAFETY: this is `run`, for its own `A`.
                                unsafe {
                                    add_block::<T, A, G>((sums, at), block, columns, first, (ahead, fetch));
                                }
                            });
                            ahead = ahead.wrapping_add(fetch * LINE);
                        }
                    }
                }
            }
        }
    }
}

/// A block of a tile.
struct Part<'a, V> {
    values: &'a [V],
    stride: usize,
    rows: (usize, usize),
    columns: (usize, usize),
}

impl<V> Part<'_, V> {
    /// Copies it to `block`, and on its side to `turned`, as far as each is used; what is
    /// missing at the end of the tile is zero.
    ///
    /// # Safety
    /// As [`Vector`].
    #[inline(always)]
    unsafe fn copy<T: Scalar, A: Arch>(
        &self,
        block: &mut [T],
        turned: &mut [T],
        (turn, keep): (bool, bool),
    ) where
        V: Lanes<T>,
    {
        let (edge, lanes) = (edge::<T>(), T::Vector::<A>::LANES);
        let stride = edge + GAP;
        let ((top, bottom), (left, right)) = (self.rows, self.columns);
        if bottom - top < edge || right - left < edge {
            block.fill(T::ZERO);
            turned.fill(T::ZERO);
            for i in 0..bottom - top {
                let start = (top + i) * self.stride + left;
                for (l, v) in self.values[start..start + right - left].iter().enumerate() {
                    block[i * stride + l] = v.widened();
                    turned[l * stride + i] = v.widened();
                }
            }
            return;
        }
        assert!(self.values.len() >= (bottom - 1) * self.stride + right);
        assert!(block.len() >= edge * stride && turned.len() >= edge * stride);
        // SAFETY: the assertions say that all places are there; the caller has the
        // instruction set.
        unsafe {
            for i in (0..edge).step_by(lanes) {
                for l in (0..edge).step_by(lanes) {
                    let mut square = [T::Vector::<A>::splat(T::ZERO); MOST_LANES];
                    for (r, row) in square.iter_mut().enumerate().take(lanes) {
                        let start = (top + i + r) * self.stride + left + l;
                        *row = V::load::<A>(self.values.get_unchecked(start..start + lanes));
                        if keep {
                            let place = (i + r) * stride + l;
                            row.store(block.get_unchecked_mut(place..place + lanes));
                        }
                    }
                    if turn {
                        T::Vector::<A>::turn(&mut square);
                        for (r, row) in square.iter().enumerate().take(lanes) {
                            let place = (l + r) * stride + i;
                            row.store(turned.get_unchecked_mut(place..place + lanes));
                        }
                    }
                }
            }
        }
    }
}

/// Adds the rows of a block, times `G` columns from `first` on, to the sums from `at` on, and
/// fetches so many lines from `ahead` on into the cache.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
unsafe fn add_block<T: Scalar, A: Arch, const G: usize>(
    (sums, at): (&mut [T], usize),
    block: &[T],
    columns: &[T],
    first: usize,
    (ahead, lines): (*const u8, usize),
) {
    let (edge, lanes) = (edge::<T>(), T::Vector::<A>::LANES);
    let k = columns.len() / edge;
    assert!(first + G <= k && at + REGISTERS * lanes <= edge);
    assert!(sums.len() == edge * k && block.len() >= edge * (edge + GAP));
    let at_once = (lines * LOOK).div_ceil(edge);
    let mut ahead = ahead;
    // SAFETY: the assertions say that all places are there; the caller has the instruction
    // set.
    unsafe {
        // From zero for each block, so that fewer values are added one after the other.
        let mut acc = [[T::Vector::<A>::splat(T::ZERO); REGISTERS]; G];
        for start in (0..edge).step_by(LOOK) {
            for _ in 0..at_once {
                prefetch(ahead);
                ahead = ahead.wrapping_add(LINE);
            }
            for i in start..start + LOOK {
                let row = block.get_unchecked(i * (edge + GAP) + at..);
                let mut now = [T::Vector::<A>::splat(T::ZERO); REGISTERS];
                for (v, now) in now.iter_mut().enumerate() {
                    *now = T::Vector::<A>::load(row.get_unchecked(v * lanes..));
                }
                let columns = columns.get_unchecked(i * k + first..);
                for (g, acc) in acc.iter_mut().enumerate() {
                    let value = T::Vector::<A>::splat(*columns.get_unchecked(g));
                    for (acc, now) in acc.iter_mut().zip(now) {
                        *acc = acc.add_product(now, value);
                    }
                }
            }
        }
        let one = T::Vector::<A>::splat(T::ONE);
        for (g, acc) in acc.iter().enumerate() {
            for (v, acc) in acc.iter().enumerate() {
                let place = (first + g) * edge + at + v * lanes;
                let sums = sums.get_unchecked_mut(place..place + lanes);
                T::Vector::<A>::load(sums)
                    .add_product(*acc, one)
                    .store(sums);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::half::narrow;
    use crate::linalg::simd::Portable;
    use crate::linalg::skinny::tests::example;

    /// Products of a tile are the plain sums: by the registers of this processor, and by portable
    /// ones.
    fn check<T: Scalar>((n, j): (usize, usize), k: usize, half: bool) {
        let t = example::<T>(n, j, 1);
        let (v, u) = (example::<T>(j, k, 2), example::<T>(n, k, 3));
        let mut narrowed = vec![f16::ZERO; n * j];
        narrow(t.values(), &mut narrowed, 4.0);
        let tile = match half {
            true => Tile::Half(&narrowed, T::from_f64(4.0)),
            false => Tile::Full(t.values()),
        };
        let value = |i: usize, l: usize| match half {
            true => 4.0 * narrowed[i * j + l].to_f64(),
            false => t.get(i, l).to_f64(),
        };
        let tolerance = 16.0 * T::EPSILON * (n + j) as f64;
        let mut room = TwoSided::<T>::new(k);
        // Each product once by itself, and twice in sums.
        let twice = |room: &TwoSided<T>, rows, add: fn(&TwoSided<T>, &mut Sums)| {
            let mut sums = room.sums(rows, vec![7.0; 9]);
            (0..2).for_each(|_| add(room, &mut sums));
            let mut all = vec![0.0; rows * k];
            sums.each(|i, c, v| all[i * k + c] = v);
            all
        };
        for (right, left) in [(true, true), (true, false), (false, true)] {
            let (v, u) = (right.then_some(v.view()), left.then_some(u.view()));
            for portable in [false, true] {
                match portable {
                    false => room.multiply(tile, (n, j), v, u),
                    true => room.by_blocks::<Portable>(tile, (n, j), v, u),
                }
                let mut seen = 0;
                if let Some(v) = v {
                    let twice = twice(&room, n, TwoSided::add_right);
                    room.each_right(n, |i, c, found| {
                        assert_eq!(twice[i * k + c], 2.0 * found.to_f64());
                        let plain: f64 = (0..j).map(|l| value(i, l) * v.row(l)[c].to_f64()).sum();
                        assert!((found.to_f64() - plain).abs() <= tolerance, "({i}, {c})");
                        seen += 1;
                    });
                }
                if let Some(u) = u {
                    let twice = twice(&room, j, TwoSided::add_left);
                    room.each_left(j, |l, c, found| {
                        assert_eq!(twice[l * k + c], 2.0 * found.to_f64());
                        let plain: f64 = (0..n).map(|i| value(i, l) * u.row(i)[c].to_f64()).sum();
                        assert!((found.to_f64() - plain).abs() <= tolerance, "({l}, {c})");
                        seen += 1;
                    });
                }
                assert_eq!(seen, usize::from(right) * n * k + usize::from(left) * j * k);
            }
        }
    }

    #[test]
    fn both_products_are_the_plain_sums() {
        let shapes = [
            (1, 1),
            (64, 64),
            (65, 130),
            (128, 64),
            (3, 200),
            (0, 5),
            (5, 0),
        ];
        for (shape, k) in shapes.into_iter().zip([1, 11, 2, 13, 27, 3, 3]) {
            for half in [false, true] {
                check::<f32>(shape, k, half);
                check::<f64>(shape, k, half);
            }
        }
    }
}
