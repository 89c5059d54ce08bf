//! One block of kernel values: matrix product, then the map, in cache.

use super::{FillBlock, Kernel, sparse};
use crate::linalg::simd::{Arch, Job, Vector, dispatch, mul_add};
use crate::linalg::{
    Levels, LevelsRef, MatMut, MatRef, Output, Parallel, Points, PointsRef, Scalar, levels,
    sum_of_squares,
};

/// Rows with what a kernel needs to know of each.
#[derive(Debug, Clone)]
pub struct Samples<T: Scalar> {
    rows: Points<T>,
    /// ‖x‖² of each row, for kernels of the distance; else empty.
    squared_norms: Vec<T>,
    /// The rows as bytes, as far as they are of that form, if the kernel is one of inner
    /// products.
    levels: Option<Levels>,
}

impl<T: Scalar> Samples<T> {
    /// Prepares rows for this kernel.
    pub fn new(rows: impl Into<Points<T>>, kernel: &Kernel) -> Self {
        let rows = rows.into();
        let levels = match (&rows, kernel.relation()) {
            (Points::Dense(rows), Relation::Products) => Levels::of(rows.view()),
            _ => None,
        };
        Self::with_levels(rows, kernel, levels)
    }

    /// Prepares rows that kernel values between them and `these` are wanted of.
    pub fn beside(these: SamplesRef<'_, T>, rows: impl Into<Points<T>>, kernel: &Kernel) -> Self {
        let rows = rows.into();
        let levels = match (&rows, these.levels) {
            (Points::Dense(rows), Some(_)) => Some(Levels::of_some(rows.view())),
            _ => None,
        };
        Self::with_levels(rows, kernel, levels)
    }

    fn with_levels(rows: Points<T>, kernel: &Kernel, levels: Option<Levels>) -> Self {
        let squares = |i: usize| match &rows {
            Points::Dense(rows) => sum_of_squares(rows.row(i)),
            Points::Sparse(rows) => sum_of_squares(rows.row(i).1),
        };
        let squared_norms = match kernel.needs_norms() {
            true => (0..rows.rows()).map(|i| T::from_f64(squares(i))).collect(),
            false => Vec::new(),
        };
        Self {
            rows,
            squared_norms,
            levels,
        }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        let levels = self.levels.as_ref().map_or(0, Levels::size_bytes);
        self.rows.bytes() + levels + size_of_val(&self.squared_norms[..]) as u64
    }

    /// Bytes of rows once they are prepared, and of `others` that are prepared beside them. At
    /// most: whether they are levels too is told by one of them.
    pub fn bytes_of(rows: &Points<T>, others: &[&Points<T>]) -> [u64; 2] {
        let (levels, cols) = match rows {
            Points::Dense(rows) => (Levels::most_bytes(rows.view()), rows.cols()),
            Points::Sparse(_) => (0, 0),
        };
        let norms = |rows: &Points<T>| (size_of::<T>() * rows.rows()) as u64;
        let of_other = |other: &&Points<T>| {
            let levels = if levels > 0 {
                Levels::bytes(other.rows(), cols)
            } else {
                0
            };
            other.bytes() + levels + norms(other)
        };
        let others = others.iter().map(of_other).sum();
        [rows.bytes() + levels + norms(rows), others]
    }

    /// The rows.
    pub fn points(&self) -> &Points<T> {
        &self.rows
    }

    /// The rows, given back.
    pub fn into_points(self) -> Points<T> {
        self.rows
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.rows.rows()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether they were prepared for `kernel`, or for one that needs the same.
    pub fn fits(&self, kernel: &Kernel) -> bool {
        !kernel.needs_norms() || self.squared_norms.len() == self.len()
    }

    /// A view of all rows.
    pub fn view(&self) -> SamplesRef<'_, T> {
        self.range(0, self.len())
    }

    /// A view of rows `start..end`.
    pub fn range(&self, start: usize, end: usize) -> SamplesRef<'_, T> {
        SamplesRef {
            rows: self.rows.range(start, end),
            squared_norms: self.squared_norms.get(start..end).unwrap_or(&[]),
            levels: self.levels.as_ref().map(|l| l.range(start, end)),
        }
    }

    /// The same rows in another order: dense ones in the same memory.
    pub fn reordered(self, order: &[usize]) -> Self {
        Self {
            squared_norms: self.norms_of(order),
            levels: self.levels.map(|l| l.select_rows(order)),
            rows: self.rows.reordered(order),
        }
    }

    /// The rows with these indices, copied in this order.
    pub fn select(&self, indices: &[usize]) -> Self {
        Self {
            rows: self.rows.select_rows(indices),
            squared_norms: self.norms_of(indices),
            levels: self.levels.as_ref().map(|l| l.select_rows(indices)),
        }
    }

    /// ‖x‖² of these rows, if they are kept.
    fn norms_of(&self, indices: &[usize]) -> Vec<T> {
        match self.squared_norms.is_empty() {
            true => Vec::new(),
            false => indices.iter().map(|&i| self.squared_norms[i]).collect(),
        }
    }
}

/// A view of [`Samples`].
#[derive(Clone, Copy)]
pub struct SamplesRef<'a, T> {
    rows: PointsRef<'a, T>,
    squared_norms: &'a [T],
    levels: Option<LevelsRef<'a>>,
}

impl<'a, T: Scalar> SamplesRef<'a, T> {
    /// How many rows.
    pub fn len(&self) -> usize {
        self.rows.rows()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows `start..end`.
    pub fn range(&self, start: usize, end: usize) -> SamplesRef<'a, T> {
        SamplesRef {
            rows: self.rows.range(start, end),
            squared_norms: self.squared_norms.get(start..end).unwrap_or(&[]),
            levels: self.levels.map(|l| l.range(start, end)),
        }
    }
}

impl<T: Scalar> FillBlock<T> for Kernel {
    fn fill(&self, mut out: MatMut<'_, T>, x: SamplesRef<'_, T>, z: SamplesRef<'_, T>) {
        self.relation().fill(out.reborrow(), x, z);
        self.map(out, x, z);
    }
}

impl Kernel {
    /// What its values are a function of.
    pub fn relation(&self) -> Relation {
        match self {
            Kernel::Laplacian { .. } => Relation::Distances,
            _ => Relation::Products,
        }
    }

    /// Turns what [`Kernel::relation`] says of these rows into kernel values.
    pub fn map<T: Scalar>(&self, out: MatMut<'_, T>, x: SamplesRef<'_, T>, z: SamplesRef<'_, T>) {
        dispatch(Map {
            kernel: self,
            out,
            x_norms: x.squared_norms,
            z_norms: z.squared_norms,
        });
    }
}

/// What kernel values are made of: the same for all kernels of a kind, whatever their
/// parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// ⟨x, z⟩
    Products,
    /// ‖x − z‖₁
    Distances,
}

impl<T: Scalar> FillBlock<T> for Relation {
    fn fill(&self, mut out: MatMut<'_, T>, x: SamplesRef<'_, T>, z: SamplesRef<'_, T>) {
        assert_eq!((out.rows(), out.cols()), (x.len(), z.len()));
        assert_eq!(x.rows.cols(), z.rows.cols());
        if let (Relation::Products, Some(x_levels), Some(z_levels)) = (self, x.levels, z.levels)
            && z_levels.is_whole()
        {
            // Rows that are none are multiplied together with all, so that their bits do not
            // depend on which others are none.
            if x_levels.runs().any(|(_, fit)| !fit) {
                self.of_numbers(out.reborrow(), x.rows, z.rows);
            }
            for (rows, _) in x_levels.runs().filter(|(_, fit)| *fit) {
                let out = out.reborrow().row_range(rows.start, rows.end);
                levels::products(out, x_levels.range(rows.start, rows.end), z_levels);
            }
            return;
        }
        self.of_numbers(out, x.rows, z.rows);
    }
}

impl Relation {
    /// The same whatever the rows are.
    fn of_numbers<T: Scalar>(self, out: MatMut<'_, T>, x: PointsRef<'_, T>, z: PointsRef<'_, T>) {
        match (x, z) {
            (PointsRef::Dense(x), PointsRef::Dense(z)) => match self {
                Relation::Distances => dispatch(Distances { out, x, z }),
                Relation::Products => {
                    T::gemm_nt(out, Output::Replace, x, z, T::ONE, Parallel::No);
                }
            },
            (PointsRef::Sparse(x), PointsRef::Sparse(z)) => match self {
                Relation::Distances => sparse::distances(out, x, z),
                Relation::Products => sparse::products(out, x, z),
            },
            // Right, and slow: callers make the two alike where it matters.
            (x, z) => {
                let (x, z) = (x.to_sparse(), z.to_sparse());
                let (x, z) = (x.range(0, x.rows()), z.range(0, z.rows()));
                match self {
                    Relation::Distances => sparse::distances(out, x, z),
                    Relation::Products => sparse::products(out, x, z),
                }
            }
        }
    }
}

/// Turns inner products, or L1 distances, into kernel values.
struct Map<'a, T> {
    kernel: &'a Kernel,
    out: MatMut<'a, T>,
    x_norms: &'a [T],
    z_norms: &'a [T],
}

impl<T: Scalar> Job for Map<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(mut self) {
        let number = T::from_f64;
        for i in 0..self.out.rows() {
            let row = self.out.row_mut(i);
            match *self.kernel {
                Kernel::Linear => {}
                Kernel::Poly {
                    gamma,
                    coef0,
                    degree,
                } => powers::<A, T>(row, number(gamma), number(coef0), degree),
                Kernel::Rbf { gamma } => {
                    let (gamma, two, x_norm) = (number(-gamma), number(2.0), self.x_norms[i]);
                    for (v, &z_norm) in row.iter_mut().zip(self.z_norms) {
                        // Rounding can make the distance of near rows negative.
                        let squared = x_norm + z_norm - two * *v;
                        let squared = if squared > T::ZERO { squared } else { T::ZERO };
                        *v = (gamma * squared).exp();
                    }
                }
                Kernel::Laplacian { gamma } => {
                    let gamma = number(-gamma);
                    for v in row {
                        *v = (gamma * *v).exp();
                    }
                }
                Kernel::Sigmoid { gamma, coef0 } => {
                    let (gamma, coef0) = (number(2.0 * gamma), number(2.0 * coef0));
                    for v in row {
                        // tanh(y) = 1 − 2 / (e²ʸ + 1)
                        let exponential = mul_add::<A, T>(gamma, *v, coef0).exp();
                        *v = T::ONE - number(2.0) / (exponential + T::ONE);
                    }
                }
            }
        }
    }
}

/// `v ← (gamma·v + coef0)^degree`
#[inline(always)]
fn powers<A: Arch, T: Scalar>(row: &mut [T], gamma: T, coef0: T, degree: u32) {
    // The usual degrees apart, so that the compiler sees a fixed product.
    match degree {
        1 => row.iter_mut().for_each(|v| *v = gamma * *v + coef0),
        2 => {
            for v in row {
                let u = mul_add::<A, T>(gamma, *v, coef0);
                *v = u * u;
            }
        }
        3 => {
            for v in row {
                let u = mul_add::<A, T>(gamma, *v, coef0);
                *v = u * u * u;
            }
        }
        4 => {
            for v in row {
                let u = mul_add::<A, T>(gamma, *v, coef0);
                let square = u * u;
                *v = square * square;
            }
        }
        _ => {
            for v in row {
                let (mut base, mut power) = (mul_add::<A, T>(gamma, *v, coef0), T::ONE);
                let mut exponent = degree;
                while exponent > 0 {
                    if exponent & 1 == 1 {
                        power *= base;
                    }
                    base *= base;
                    exponent >>= 1;
                }
                *v = power;
            }
        }
    }
}

/// Rows of Z whose distances to one row of X are summed together.
const TOGETHER: usize = 4;

/// `out[i][j] = ‖x_i − z_j‖₁`
struct Distances<'a, T> {
    out: MatMut<'a, T>,
    x: MatRef<'a, T>,
    z: MatRef<'a, T>,
}

impl<T: Scalar> Job for Distances<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(mut self) {
        let whole = self.z.rows() / TOGETHER * TOGETHER;
        for i in 0..self.x.rows() {
            let x = self.x.row(i);
            let out = self.out.row_mut(i);
            for j in (0..whole).step_by(TOGETHER) {
                let z: [&[T]; TOGETHER] = std::array::from_fn(|c| self.z.row(j + c));
                // SAFETY: this is `run`, for its own `A`.
                let sums = unsafe { distances::<T, A, TOGETHER>(x, z) };
                out[j..j + TOGETHER].copy_from_slice(&sums);
            }
            for (j, out) in out.iter_mut().enumerate().skip(whole) {
                // SAFETY: this is `run`, for its own `A`.
                [*out] = unsafe { distances::<T, A, 1>(x, [self.z.row(j)]) };
            }
        }
    }
}

/// L1 distances of one row to `C` others.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
unsafe fn distances<T: Scalar, A: Arch, const C: usize>(x: &[T], z: [&[T]; C]) -> [T; C] {
    let lanes = T::Vector::<A>::LANES;
    let length = x.len();
    assert!(z.iter().all(|row| row.len() == length));
    let whole = length / lanes * lanes;
    // SAFETY: the slices are `lanes` long; the caller has the instruction set.
    unsafe {
        let mut sums = [T::Vector::<A>::splat(T::ZERO); C];
        for at in (0..whole).step_by(lanes) {
            let x = T::Vector::<A>::load(x.get_unchecked(at..at + lanes));
            for c in 0..C {
                let z = T::Vector::<A>::load(z[c].get_unchecked(at..at + lanes));
                sums[c] = sums[c].add_distance(x, z);
            }
        }
        let mut out = [T::ZERO; C];
        for c in 0..C {
            out[c] = sums[c].sum();
            for at in whole..length {
                out[c] += (x[at] - z[c][at]).abs();
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Csr, Matrix};
    use proptest::prelude::*;

    const KERNELS: [Kernel; 7] = [
        Kernel::Linear,
        Kernel::Poly {
            gamma: 0.7,
            coef0: 0.3,
            degree: 1,
        },
        Kernel::Poly {
            gamma: 1.0,
            coef0: 0.0,
            degree: 4,
        },
        Kernel::Poly {
            gamma: 0.5,
            coef0: 1.0,
            degree: 7,
        },
        Kernel::Rbf { gamma: 0.4 },
        Kernel::Laplacian { gamma: 0.2 },
        Kernel::Sigmoid {
            gamma: 0.3,
            coef0: -0.2,
        },
    ];

    /// The definition, in `f64`.
    fn value(kernel: &Kernel, x: &[f64], z: &[f64]) -> f64 {
        let dot: f64 = x.iter().zip(z).map(|(a, b)| a * b).sum();
        match *kernel {
            Kernel::Linear => dot,
            Kernel::Poly {
                gamma,
                coef0,
                degree,
            } => (gamma * dot + coef0).powi(degree as i32),
            Kernel::Rbf { gamma } => {
                let squares = x.iter().zip(z).map(|(a, b)| (a - b).powi(2));
                (-gamma * squares.sum::<f64>()).exp()
            }
            Kernel::Laplacian { gamma } => {
                let distances = x.iter().zip(z).map(|(a, b)| (a - b).abs());
                (-gamma * distances.sum::<f64>()).exp()
            }
            Kernel::Sigmoid { gamma, coef0 } => (gamma * dot + coef0).tanh(),
        }
    }

    fn block<T: Scalar>(kernel: &Kernel, x: &Matrix<f64>, z: &Matrix<f64>) -> Matrix<T> {
        let (x, z) = (
            Samples::new(x.cast(), kernel),
            Samples::new(z.cast(), kernel),
        );
        let mut out = Matrix::zeros(x.len(), z.len());
        kernel.fill(out.view_mut(), x.view(), z.view());
        out
    }

    /// Dense and sparse in all combinations.
    fn agrees<T: Scalar>(kernel: &Kernel, x: &Matrix<f64>, z: &Matrix<f64>, tolerance: f64) {
        let out = block::<T>(kernel, x, z);
        let kinds = |rows: &Matrix<f64>| {
            let rows = rows.cast::<T>();
            let sparse = Points::Sparse(Csr::from_dense(&rows));
            [rows.into(), sparse].map(|rows: Points<T>| Samples::new(rows, kernel))
        };
        for (i, x) in kinds(x).iter().enumerate() {
            for (j, z) in kinds(z).iter().enumerate().filter(|(j, _)| i + j > 0) {
                let mut other = Matrix::zeros(x.len(), z.len());
                kernel.fill(other.view_mut(), x.view(), z.view());
                for (a, b) in out.values().iter().zip(other.values()) {
                    let difference = (a.to_f64() - b.to_f64()).abs();
                    let most = tolerance * a.to_f64().abs().max(1.0);
                    assert!(difference <= most, "{kernel:?} {i} {j}: {a} {b}");
                }
            }
        }
        for i in 0..x.rows() {
            for j in 0..z.rows() {
                let expected = value(kernel, x.row(i), z.row(j));
                let difference = (out.get(i, j).to_f64() - expected).abs();
                assert!(
                    difference <= tolerance * expected.abs().max(1.0),
                    "{kernel:?} ({i}, {j}): {} is not {expected}",
                    out.get(i, j)
                );
            }
        }
    }

    fn example(rows: usize, cols: usize) -> impl Strategy<Value = Matrix<f64>> {
        prop::collection::vec(-1.0f64..1.0, rows * cols)
            .prop_map(move |values| Matrix::from_vec(rows, cols, values))
    }

    fn sparse_example(rows: usize, cols: usize) -> impl Strategy<Value = Matrix<f64>> {
        let value = prop_oneof![9 => Just(0.0), 1 => -1.0f64..1.0];
        prop::collection::vec(value, rows * cols)
            .prop_map(move |values| Matrix::from_vec(rows, cols, values))
    }

    /// Rows of pixels that were centred and scaled.
    fn rows_of_levels(rows: usize, cols: usize) -> impl Strategy<Value = Matrix<f64>> {
        let row = prop::collection::vec(0u8..=255, cols);
        let rows = prop::collection::vec((row, 0.5f64..2.0), rows);
        rows.prop_map(move |rows| {
            let values = |(row, scale): (Vec<u8>, f64)| {
                let scaled = move |v| scale * (f64::from(v) - 90.0) / 255.0 / (cols as f64).sqrt();
                row.into_iter().map(scaled)
            };
            let values: Vec<f64> = rows.into_iter().flat_map(values).collect();
            Matrix::from_vec(values.len() / cols, cols, values)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn blocks_of_sparse_rows_agree_with_the_definition(
            (x, z) in (1usize..70, 1usize..40, 1usize..90)
                .prop_flat_map(|(n, m, d)| (sparse_example(n, d), sparse_example(m, d)))
        ) {
            for kernel in &KERNELS {
                agrees::<f64>(kernel, &x, &z, 1e-12);
                agrees::<f32>(kernel, &x, &z, 2e-4);
            }
        }

        #[test]
        fn blocks_agree_with_the_definition(
            (x, z) in (1usize..20, 1usize..40, 1usize..40)
                .prop_flat_map(|(n, m, d)| (example(n, d), example(m, d)))
        ) {
            for kernel in &KERNELS {
                agrees::<f64>(kernel, &x, &z, 1e-12);
                agrees::<f32>(kernel, &x, &z, 2e-4);
            }
        }

        #[test]
        fn blocks_of_levels_agree_with_the_definition(
            (x, z) in (1usize..20, 1usize..40, 32usize..90)
                .prop_flat_map(|(n, m, d)| (rows_of_levels(n, d), rows_of_levels(m, d))),
            other in 0usize..30,
        ) {
            // Perhaps one row of X is not of the form.
            let mut x = x;
            if other < x.rows() {
                x.set(other, 7, 0.123_456_789);
            }
            for kernel in &KERNELS {
                let support = Samples::new(z.clone(), kernel);
                let wanted = levels::are_quick() && kernel.relation() == Relation::Products;
                prop_assert_eq!(support.levels.is_some(), wanted);
                let queries = Samples::beside(support.view(), x.clone(), kernel);
                let mut out = Matrix::zeros(x.rows(), z.rows());
                kernel.fill(out.view_mut(), queries.view(), support.view());
                for i in 0..x.rows() {
                    for j in 0..z.rows() {
                        let off = out.get(i, j) - value(kernel, x.row(i), z.row(j));
                        prop_assert!(off.abs() < 1e-11 * out.get(i, j).abs().max(1.0));
                    }
                }
                agrees::<f32>(kernel, &x, &z, 2e-4);
            }
        }

        #[test]
        fn the_matrix_is_symmetric_and_positive(x in (1usize..12, 1usize..9)
            .prop_flat_map(|(n, d)| example(n, d)), weights in prop::collection::vec(-1.0f64..1.0, 12)
        ) {
            for kernel in KERNELS.iter().filter(|k| k.is_positive()) {
                let matrix = block::<f64>(kernel, &x, &x);
                let mut form = 0.0;
                for i in 0..x.rows() {
                    for j in 0..x.rows() {
                        prop_assert!((matrix.get(i, j) - matrix.get(j, i)).abs() < 1e-12);
                        form += weights[i] * weights[j] * matrix.get(i, j);
                    }
                }
                prop_assert!(form > -1e-9 * matrix.frobenius_norm(), "{kernel:?}: {form}");
            }
        }
    }
}
