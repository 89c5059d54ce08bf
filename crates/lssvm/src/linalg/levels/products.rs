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

use super::{LevelsRef, Spacing};
use crate::linalg::{MatMut, Scalar};

/// Rows of X from which it is worth packing Z.
const FEWEST_ROWS: usize = 6;

/// Bytes of a register's lane, which is a sum of 32 bits.
const LANE: usize = 4;

/// Sums of products by one instruction set: each lane of a register has values of another row
/// of Z, a few one after the other.
///
/// # Safety
/// Its functions need the instruction set.
#[allow(clippy::missing_safety_doc, reason = "said once, above, for all")]
pub(super) trait Dots {
    /// Values of X and of Z as it multiplies them.
    type X: Copy + Default;
    type Z: Copy + Default;
    /// Registers of values of X, of values of Z, and of sums.
    type Same: Copy;
    type Lanes: Copy;
    type Sums: Copy;
    /// Lanes of a register.
    const LANES: usize;
    fn x(byte: u8) -> Self::X;
    /// The byte less 128.
    fn z(byte: u8) -> Self::Z;
    unsafe fn zeros() -> Self::Sums;
    /// The values of one lane, in all lanes.
    unsafe fn same(x: *const Self::X) -> Self::Same;
    unsafe fn lanes(z: *const Self::Z) -> Self::Lanes;
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
    let per_lane = LANE / size_of::<D::X>();
    let depth = x.cols.next_multiple_of(per_lane);
    let mut packed = vec![D::Z::default(); columns * depth];
    let mut rows = vec![D::X::default(); ROWS * depth];
    let mut sums = vec![0i32; ROWS * columns];
    let mut of_z = vec![Factors::default(); columns];
    for left in (0..z.rows()).step_by(columns) {
        let width = columns.min(z.rows() - left);
        let part = z.range(left, left + width);
        for j in 0..width {
            pack::<D>(&mut packed, part.row(j), (j, columns), depth);
            of_z[j] = Factors::new(&part.spacing(j), z.cols);
        }
        for top in (0..x.rows()).step_by(ROWS) {
            let height = ROWS.min(x.rows() - top);
            for i in 0..height {
                let to = &mut rows[i * depth..(i + 1) * depth];
                let bytes = to.iter_mut().zip(x.row(top + i));
                bytes.for_each(|(to, &byte)| *to = D::x(byte));
            }
            // SAFETY: the caller has the instruction set; both have `depth` values a row.
            unsafe {
                multiply::<D, ROWS, REGISTERS>(&mut sums, &rows, &packed, depth);
            }
            for i in 0..height {
                let out = &mut out.row_mut(top + i)[left..left + width];
                let sums = &sums[i * columns..i * columns + width];
                finish(out, sums, &x.spacing(top + i), &of_z[..width]);
            }
        }
    }
}

/// The product of few rows of X.
#[inline(always)]
fn one_by_one<T: Scalar>(mut out: MatMut<'_, T>, x: LevelsRef<'_>, z: LevelsRef<'_>) {
    for j in 0..z.rows() {
        let factors = [Factors::new(&z.spacing(j), z.cols)];
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

/// Row `j` of Z among `columns` that are packed: a lane's worth of each, one after the other.
#[inline(always)]
fn pack<D: Dots>(packed: &mut [D::Z], row: &[u8], (j, columns): (usize, usize), depth: usize) {
    let per_lane = LANE / size_of::<D::Z>();
    let lanes = packed.chunks_exact_mut(columns * per_lane);
    for (to, bytes) in lanes.zip(row[..depth].chunks_exact(per_lane)) {
        let to = to[j * per_lane..(j + 1) * per_lane].iter_mut();
        to.zip(bytes).for_each(|(to, &byte)| *to = D::z(byte));
    }
}

/// Sums of products of `ROWS` rows of X and the packed rows of Z.
///
/// # Safety
/// As [`Dots`]; `rows` has `ROWS · depth` values, `packed` has `depth` for each lane of
/// `REGISTERS` registers, and `sums` has room for all of their products.
#[inline(always)]
unsafe fn multiply<D: Dots, const ROWS: usize, const REGISTERS: usize>(
    sums: &mut [i32],
    rows: &[D::X],
    packed: &[D::Z],
    depth: usize,
) {
    let per_lane = LANE / size_of::<D::X>();
    let columns = REGISTERS * D::LANES;
    assert!(rows.len() == ROWS * depth && packed.len() == columns * depth);
    assert!(sums.len() == ROWS * columns);
    // SAFETY: the lengths were just asked; the caller has the instruction set.
    unsafe {
        let mut found = [[D::zeros(); REGISTERS]; ROWS];
        let (mut x, mut z) = (rows.as_ptr(), packed.as_ptr());
        for _ in 0..depth / per_lane {
            let mut lanes = [D::lanes(z); REGISTERS];
            for (r, lanes) in lanes.iter_mut().enumerate().skip(1) {
                *lanes = D::lanes(z.add(r * D::LANES * per_lane));
            }
            for (i, found) in found.iter_mut().enumerate() {
                let same = D::same(x.add(i * depth));
                for (found, lanes) in found.iter_mut().zip(lanes) {
                    *found = D::add(*found, same, lanes);
                }
            }
            x = x.add(per_lane);
            z = z.add(columns * per_lane);
        }
        for (i, found) in found.iter().enumerate() {
            for (r, found) in found.iter().enumerate() {
                let place = i * columns + r * D::LANES;
                D::store(*found, sums[place..place + D::LANES].as_mut_ptr());
            }
        }
    }
}

/// What a row of Z brings to a product beside its bytes: α', 128 α' + β', and u'.
#[derive(Debug, Clone, Copy, Default)]
struct Factors {
    step: f64,
    middle: f64,
    sum: f64,
}

impl Factors {
    fn new(spacing: &Spacing, cols: usize) -> Self {
        let Spacing { step, lowest, sum } = *spacing;
        Self {
            step,
            middle: 128.0 * step + lowest,
            sum: step * sum + cols as f64 * lowest,
        }
    }
}

/// Inner products from sums of products of bytes.
#[inline(always)]
fn finish<T: Scalar>(out: &mut [T], sums: &[i32], x: &Spacing, z: &[Factors]) {
    for ((out, &bytes), z) in out.iter_mut().zip(sums).zip(z) {
        let own = x.step * (z.step * f64::from(bytes) + z.middle * x.sum);
        *out = T::from_f64(own + x.lowest * z.sum);
    }
}

/// What every processor can do.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) struct Portable;

#[cfg(any(test, not(target_arch = "x86_64")))]
impl Dots for Portable {
    type X = u8;
    type Z = i8;
    type Same = [i32; 4];
    type Lanes = [i32; 16];
    type Sums = [i32; 4];
    const LANES: usize = 4;

    fn x(byte: u8) -> u8 {
        byte
    }
    fn z(byte: u8) -> i8 {
        (byte ^ 128) as i8
    }
    unsafe fn zeros() -> [i32; 4] {
        [0; 4]
    }
    unsafe fn same(x: *const u8) -> [i32; 4] {
        // SAFETY: a lane has four values.
        std::array::from_fn(|l| i32::from(unsafe { *x.add(l) }))
    }
    unsafe fn lanes(z: *const i8) -> [i32; 16] {
        // SAFETY: four lanes have sixteen values.
        std::array::from_fn(|l| i32::from(unsafe { *z.add(l) }))
    }
    unsafe fn add(sums: [i32; 4], x: [i32; 4], z: [i32; 16]) -> [i32; 4] {
        std::array::from_fn(|lane| {
            let products = (0..4).map(|l| x[l] * z[4 * lane + l]);
            sums[lane] + products.sum::<i32>()
        })
    }
    unsafe fn store(sums: [i32; 4], out: *mut i32) {
        // SAFETY: there is room for the lanes.
        (0..4).for_each(|l| unsafe { *out.add(l) = sums[l] });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Levels;
    use super::super::tests::pixels;
    use super::*;
    use crate::linalg::Matrix;

    /// A way to multiply.
    type Way<T> = fn(MatMut<'_, T>, LevelsRef<'_>, LevelsRef<'_>);

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
        // All of the highest level but one value.
        let cols = super::super::MOST_COLUMNS;
        let x = Matrix::from_fn(16, cols, |_, j| if j == 0 { 0.0f64 } else { 255.0 });
        let levels = Levels::whatever_they_cost(x.view()).unwrap();
        let all = levels.range(0, 16);
        let mut out = Matrix::<f64>::zeros(16, 16);
        let expected = 255.0 * 255.0 * (cols - 1) as f64;
        // SAFETY: it needs no instruction set.
        unsafe { blocks::<f64, Portable, 3, 2>(out.view_mut(), all, all) };
        assert!(out.values().iter().all(|&v| v == expected));
        #[cfg(target_arch = "x86_64")]
        for (name, way) in super::super::x86::ways::<f64>() {
            way(out.view_mut(), all, all);
            assert!(out.values().iter().all(|&v| v == expected), "{name}");
        }
    }
}
