//! Inner products of rows of levels.
//!
//! ```text
//!     ⟨x, z⟩ = α (α' ⟨q, q' − 128⟩ + (128 α' + β') s) + β u'
//!     s = Σ q,   u' = α' s' + M β' = Σ z
//! ```
//!
//! One factor has a sign and the other has none, as the instructions want it. Sums of products
//! are exact; the rest is done in `f64` and rounded once.
//!
//! As in matrix products everywhere: some rows of Z lie packed in the first-level cache, so
//! that a register has four values of each, and some rows of X at a time are multiplied with
//! them, all sums staying in registers.

use super::{LevelsRef, MOST_COLUMNS, Spacing};
use crate::linalg::{Aligned, MatMut, Scalar};

/// Rows of X from which it is worth packing Z.
const FEWEST_ROWS: usize = 6;

/// Sums of products by one instruction set: each lane of a register has values of another row
/// of Z, a few one after the other in 32 bits.
///
/// # Safety
/// Its functions need the instruction set.
#[allow(clippy::missing_safety_doc, reason = "said once, above, for all")]
pub(super) trait Dots {
    /// Registers of the same values in all lanes, of values, and of sums.
    type Same: Copy;
    type Lanes: Copy;
    type Sums: Copy;
    /// Lanes of a register, and values of a lane.
    const LANES: usize;
    const VALUES: usize;
    /// Values of X in a lane; if there are four they are the bytes as they are.
    fn of_x(bytes: &[u8]) -> i32;
    /// Values of Z in a lane, less 128.
    fn of_z(bytes: &[u8]) -> i32;
    unsafe fn zeros() -> Self::Sums;
    /// A lane, which need not lie where numbers of 32 bits do.
    unsafe fn same(x: *const i32) -> Self::Same;
    unsafe fn lanes(z: *const i32) -> Self::Lanes;
    unsafe fn add(sums: Self::Sums, x: Self::Same, z: Self::Lanes) -> Self::Sums;
    unsafe fn store(sums: Self::Sums, out: *mut i32);
}

/// Whether this processor has instructions that make it worth while.
pub fn are_quick() -> bool {
    #[cfg(target_arch = "x86_64")]
    return super::x86::is_there();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// `out[i][j] = ⟨x_i, z_j⟩`, on this thread.
pub fn products<T: Scalar>(out: MatMut<'_, T>, x: LevelsRef<'_>, z: LevelsRef<'_>) {
    assert_eq!((out.rows(), out.cols()), (x.rows(), z.rows()));
    assert_eq!((x.cols, x.stride), (z.cols, z.stride));
    assert!(x.cols <= MOST_COLUMNS, "sums would overflow");
    #[cfg(target_arch = "x86_64")]
    super::x86::products(out, x, z);
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: it needs no instruction set.
    unsafe {
        blocks::<T, Portable, 4, 2>(out, x, z);
    }
}

/// The product in blocks of `ROWS` rows of X and `REGISTERS` registers of rows of Z.
///
/// # Safety
/// As [`Dots`].
#[inline(always)]
pub(super) unsafe fn blocks<T: Scalar, D: Dots, const ROWS: usize, const REGISTERS: usize>(
    mut out: MatMut<'_, T>,
    x: LevelsRef<'_>,
    z: LevelsRef<'_>,
) {
    if x.rows() < FEWEST_ROWS {
        return one_by_one(out, x, z);
    }
    let columns = REGISTERS * D::LANES;
    let depth = x.cols.div_ceil(D::VALUES);
    let mut packed = Aligned::zeros(columns * depth);
    let mut rows = vec![0; if D::VALUES == 4 { 0 } else { ROWS * depth }];
    let mut sums = Aligned::zeros(ROWS * columns);
    let mut of_z = Factors::default();
    for left in (0..z.rows()).step_by(columns) {
        let width = columns.min(z.rows() - left);
        let part = z.range(left, left + width);
        (0..width).for_each(|j| pack::<D>(&mut packed, part.row(j), (j, columns)));
        of_z.renew(part);
        for top in (0..x.rows()).step_by(ROWS) {
            let height = ROWS.min(x.rows() - top);
            // What is missing at the end is the last row again.
            let bytes = |i: usize| x.row(top + i.min(height - 1));
            if D::VALUES < 4 {
                for (i, lanes) in rows.chunks_exact_mut(depth).enumerate() {
                    let values = lanes.iter_mut().zip(bytes(i).chunks_exact(D::VALUES));
                    values.for_each(|(lane, bytes)| *lane = D::of_x(bytes));
                }
            }
            let mut pointers = [rows.as_ptr(); ROWS];
            for (i, pointer) in pointers.iter_mut().enumerate() {
                *pointer = match D::VALUES {
                    4 => bytes(i).as_ptr().cast(),
                    _ => rows[i * depth..].as_ptr(),
                };
            }
            // SAFETY: the caller has the instruction set; there are `depth` lanes a row,
            // since rows of bytes are whole lines.
            unsafe {
                multiply::<D, ROWS, REGISTERS>(&mut sums, pointers, &packed, depth);
            }
            for i in 0..height {
                let out = &mut out.row_mut(top + i)[left..left + width];
                let sums = &sums[i * columns..i * columns + width];
                finish(out, sums, &x.spacing(top + i), &of_z);
            }
        }
    }
}

/// The product of few rows of X.
#[inline(always)]
fn one_by_one<T: Scalar>(mut out: MatMut<'_, T>, x: LevelsRef<'_>, z: LevelsRef<'_>) {
    let mut factors = Factors::default();
    for j in 0..z.rows() {
        factors.renew(z.range(j, j + 1));
        for i in 0..x.rows() {
            let spacing = x.spacing(i);
            let pairs = x.row(i).iter().zip(z.row(j));
            // Less than 2³²; what is added for the sign is less than 2³¹.
            let products: u32 = pairs.map(|(&a, &b)| u32::from(a) * u32::from(b)).sum();
            let sums = [(i64::from(products) - 128 * spacing.sum as i64) as i32];
            finish(&mut out.row_mut(i)[j..=j], &sums, &spacing, &factors);
        }
    }
}

/// Row `j` of Z among `columns` that are packed: a lane of each, one after the other.
#[inline(always)]
fn pack<D: Dots>(packed: &mut [i32], row: &[u8], (j, columns): (usize, usize)) {
    let lanes = packed[j..].iter_mut().step_by(columns);
    for (lane, bytes) in lanes.zip(row.chunks_exact(D::VALUES)) {
        *lane = D::of_z(bytes);
    }
}

/// Sums of products of `ROWS` rows of X and the packed rows of Z.
///
/// # Safety
/// As [`Dots`]; each row of X has `depth` lanes.
#[inline(always)]
unsafe fn multiply<D: Dots, const ROWS: usize, const REGISTERS: usize>(
    sums: &mut [i32],
    rows: [*const i32; ROWS],
    packed: &[i32],
    depth: usize,
) {
    let columns = REGISTERS * D::LANES;
    assert!(packed.len() == columns * depth && sums.len() == ROWS * columns);
    // SAFETY: the lengths were just asked; the caller knows the rest.
    unsafe {
        let mut found = [[D::zeros(); REGISTERS]; ROWS];
        let mut z = packed.as_ptr();
        for at in 0..depth {
            let mut lanes = [D::lanes(z); REGISTERS];
            for (r, lanes) in lanes.iter_mut().enumerate().skip(1) {
                *lanes = D::lanes(z.add(r * D::LANES));
            }
            for (found, row) in found.iter_mut().zip(rows) {
                let same = D::same(row.add(at));
                for (found, lanes) in found.iter_mut().zip(lanes) {
                    *found = D::add(*found, same, lanes);
                }
            }
            z = z.add(columns);
        }
        for (i, found) in found.iter().enumerate() {
            for (r, found) in found.iter().enumerate() {
                let place = i * columns + r * D::LANES;
                D::store(*found, sums[place..place + D::LANES].as_mut_ptr());
            }
        }
    }
}

/// What rows of Z bring to a product beside their bytes: α', 128 α' + β', and u'.
#[derive(Debug, Default)]
struct Factors {
    steps: Vec<f64>,
    middles: Vec<f64>,
    sums: Vec<f64>,
}

impl Factors {
    /// For these rows.
    fn renew(&mut self, z: LevelsRef<'_>) {
        self.steps.clear();
        self.middles.clear();
        self.sums.clear();
        for j in 0..z.rows() {
            let Spacing { step, lowest, sum } = z.spacing(j);
            self.steps.push(step);
            self.middles.push(128.0 * step + lowest);
            self.sums.push(step * sum + z.cols as f64 * lowest);
        }
    }
}

/// Inner products from sums of products of bytes.
#[inline(always)]
fn finish<T: Scalar>(out: &mut [T], sums: &[i32], x: &Spacing, z: &Factors) {
    let n = out.len();
    let (steps, middles) = (&z.steps[..n], &z.middles[..n]);
    let (sums, of_z) = (&sums[..n], &z.sums[..n]);
    for j in 0..n {
        let own = x.step * (steps[j] * f64::from(sums[j]) + middles[j] * x.sum);
        out[j] = T::from_f64(own + x.lowest * of_z[j]);
    }
}

/// Four bytes as a lane of Z: the highest bit turned over is 128 less.
#[inline(always)]
pub(super) fn four_signed(bytes: &[u8]) -> i32 {
    four(bytes) ^ i32::from_ne_bytes([128; 4])
}

/// Four bytes as a lane.
#[inline(always)]
pub(super) fn four(bytes: &[u8]) -> i32 {
    i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// What every processor can do.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) struct Portable;

#[cfg(any(test, not(target_arch = "x86_64")))]
impl Dots for Portable {
    type Same = [i32; 4];
    type Lanes = [[i32; 4]; 4];
    type Sums = [i32; 4];
    const LANES: usize = 4;
    const VALUES: usize = 4;

    fn of_x(bytes: &[u8]) -> i32 {
        four(bytes)
    }
    fn of_z(bytes: &[u8]) -> i32 {
        four_signed(bytes)
    }
    unsafe fn zeros() -> [i32; 4] {
        [0; 4]
    }
    unsafe fn same(x: *const i32) -> [i32; 4] {
        // SAFETY: it is a lane.
        let lane = unsafe { x.read_unaligned() };
        lane.to_ne_bytes().map(i32::from)
    }
    unsafe fn lanes(z: *const i32) -> [[i32; 4]; 4] {
        std::array::from_fn(|l| {
            // SAFETY: there are four lanes.
            let lane = unsafe { *z.add(l) };
            lane.to_ne_bytes().map(|byte| i32::from(byte as i8))
        })
    }
    unsafe fn add(sums: [i32; 4], x: [i32; 4], z: [[i32; 4]; 4]) -> [i32; 4] {
        std::array::from_fn(|lane| sums[lane] + (0..4).map(|l| x[l] * z[lane][l]).sum::<i32>())
    }
    unsafe fn store(sums: [i32; 4], out: *mut i32) {
        // SAFETY: there is room for the lanes.
        (0..4).for_each(|l| unsafe { *out.add(l) = sums[l] });
    }
}

/// A way to multiply, by some instruction set.
#[cfg(test)]
pub(super) type Way<T> = fn(MatMut<'_, T>, LevelsRef<'_>, LevelsRef<'_>);

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::super::Levels;
    use super::super::tests::pixels;
    use super::*;
    use crate::linalg::Matrix;

    /// Products are the plain sums over the values that the levels stand for.
    fn check<T: Scalar>(name: &str, way: Way<T>, tolerance: f64) {
        for (n, m, cols) in [(1, 1, 32), (16, 70, 784), (53, 33, 65), (7, 130, 67)] {
            let (x, z) = (pixels::<T>(n, cols, 1), pixels::<T>(m + 2, cols, 5));
            let levels = |x: &Matrix<T>| Levels::whatever_they_cost(x.view()).unwrap();
            let mut out = Matrix::zeros(n, m);
            let (of_x, of_z) = (levels(&x), levels(&z));
            way(out.view_mut(), of_x.range(0, n), of_z.range(1, m + 1));
            for i in 0..n {
                for j in 0..m {
                    let pairs = x.row(i).iter().zip(z.row(j + 1));
                    let products = pairs.map(|(a, b)| a.to_f64() * b.to_f64());
                    let (plain, size) =
                        products.fold((0.0, 0.0), |(sum, size), v| (sum + v, size + f64::abs(v)));
                    let off = (out.get(i, j).to_f64() - plain).abs();
                    assert!(off <= tolerance * size, "{name} {i} {j}: {off} {size}");
                }
            }
        }
    }

    #[test]
    fn products_are_the_plain_sums() {
        let portable = |out: MatMut<'_, f32>, x: LevelsRef<'_>, z: LevelsRef<'_>| {
            // SAFETY: it needs no instruction set.
            unsafe { blocks::<f32, Portable, 3, 2>(out, x, z) }
        };
        check("portable", portable, 1e-6);
        #[cfg(target_arch = "x86_64")]
        if are_quick() {
            check::<f32>("this processor's", products, 1e-6);
            check::<f64>("this processor's", products, 1e-14);
        }
        #[cfg(target_arch = "x86_64")]
        for (name, way) in super::super::x86::ways::<f32>() {
            check(name, way, 1e-6);
        }
    }

    #[test]
    fn a_row_has_the_same_bits_alone_and_among_others() {
        let rows = pixels::<f32>(40, 100, 1);
        let levels = Levels::of_some(rows.view());
        let all = |x: LevelsRef<'_>| {
            let mut out = Matrix::<f32>::zeros(x.rows(), 40);
            // SAFETY: it needs no instruction set.
            unsafe { blocks::<f32, Portable, 3, 2>(out.view_mut(), x, levels.range(0, 40)) };
            #[cfg(target_arch = "x86_64")]
            for (name, way) in super::super::x86::ways::<f32>() {
                let mut other = Matrix::zeros(x.rows(), 40);
                way(other.view_mut(), x, levels.range(0, 40));
                assert_eq!(out.values(), other.values(), "{name}");
            }
            out
        };
        let together = all(levels.range(0, 40));
        for i in 0..40 {
            assert_eq!(all(levels.range(i, i + 1)).values(), together.row(i));
        }
    }

    #[test]
    fn the_largest_sums_do_not_overflow() {
        let cols = super::super::MOST_COLUMNS;
        // All of the highest level but one, and all of the lowest but one.
        let high = |j: usize| if j == 0 { 0.0 } else { 255.0 };
        let low = |j: usize| if j == 0 { 255.0 } else { 0.0 };
        let x = Matrix::from_fn(32, cols, |i, j| if i < 16 { high(j) } else { low(j) });
        let levels = Levels::whatever_they_cost::<f64>(x.view()).unwrap();
        let expected = |i: usize, j: usize| match (i < 16, j < 16) {
            (true, true) => 255.0 * 255.0 * (cols - 1) as f64,
            (false, false) => 255.0 * 255.0,
            _ => 0.0,
        };
        let check = |name: &str, way: Way<f64>, rows: Range<usize>| {
            let mut out = Matrix::<f64>::zeros(rows.len(), 32);
            let x = levels.range(rows.start, rows.end);
            way(out.view_mut(), x, levels.range(0, 32));
            for (i, row) in rows.enumerate() {
                for j in 0..32 {
                    assert_eq!(out.get(i, j), expected(row, j), "{name} {row} {j}");
                }
            }
        };
        // SAFETY: it needs no instruction set.
        let portable: Way<f64> = |out, x, z| unsafe { blocks::<f64, Portable, 3, 2>(out, x, z) };
        // One by one, too.
        for rows in [0..32, 14..18] {
            check("portable", portable, rows.clone());
            #[cfg(target_arch = "x86_64")]
            for (name, way) in super::super::x86::ways::<f64>() {
                check(name, way, rows.clone());
            }
        }
    }
}
