//! The linear system of a least-squares support vector machine.
//!
//! ```text
//!     Θ = [ 0   uᵀ    ]        Θ W = Z,   W = [ b ],   Z = [ 0 ],   λ = 1/c
//!         [ u   Ω+λI  ]                       [ a ]        [ Y ]
//! ```
//!
//! Ω is the N×N kernel matrix of the training rows, u a column of ones, Y the
//! N×K targets. Index 0 of Θ is the bias; index i ≥ 1 is training row i − 1. If rows
//! have weights wᵢ, the diagonal λI holds λᵢ = 1/(c wᵢ): a row of weight 2 is worth two
//! equal rows.
//!
//! Solvers see the system through strips of Θ ([`Strip`]), the whole of Ω+λI
//! ([`System::shifted_kernel`]) and products, never the data or the kernel.
//! Everything is written as "the bias row, then my rows, then sum", so that
//! rows can live on several machines: a system has the rows of one rank ([`Shares`]), and
//! so has what is said of them; the bias, and sums over rows, are on every rank.

mod bands;
mod certificate;
mod clusters;
mod columns;
mod cross;
mod grid;
mod products;
mod shifted;
mod store;
mod strip;

pub use certificate::Certificate;
pub use clusters::{in_clusters, in_clusters_of};
pub use columns::Columns;
pub use cross::{Cross, add_scores, kernel_matrix};
pub use grid::TILE;
pub use products::Products;
use shifted::Spare;
pub use shifted::product_bytes;
pub use store::{Format, Keep, Store, diagonal};
pub use strip::Strip;

use std::sync::Arc;

use rayon::prelude::*;

use crate::kernel::{FillBlock, Kernel, Samples};
use crate::linalg::factor::mirror_lower;
use crate::linalg::{MatMut, Matrix, Points, Scalar, sum_of_squares};
use crate::ranks::{Ranks, Shares};
use crate::{Error, Result};
use grid::Grid;

/// A matrix with N+1 rows, of which the first belongs to the bias. Where rows live on several
/// ranks, each has its own, and the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Bordered<T: Scalar> {
    /// Row 0: one value an output.
    pub bias: Vec<T>,
    /// Rows 1 to N, or those of them that this rank has.
    pub rows: Matrix<T>,
}

impl<T: Scalar> Bordered<T> {
    /// All zero.
    pub fn zeros(n: usize, outputs: usize) -> Self {
        Self {
            bias: vec![T::ZERO; outputs],
            rows: Matrix::zeros(n, outputs),
        }
    }

    /// Rows that are here, and outputs.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows.rows(), self.bias.len())
    }

    /// Row `index` of Θ's numbering.
    pub fn row(&self, index: usize) -> &[T] {
        match index {
            0 => &self.bias,
            i => self.rows.row(i - 1),
        }
    }

    /// Row `index` of Θ's numbering.
    pub fn row_mut(&mut self, index: usize) -> &mut [T] {
        match index {
            0 => &mut self.bias,
            i => self.rows.row_mut(i - 1),
        }
    }

    /// `self += scale · other`
    pub fn add_scaled(&mut self, other: &Self, scale: T) {
        let values = self.rows.values_mut().iter_mut().zip(other.rows.values());
        let bias = self.bias.iter_mut().zip(&other.bias);
        values.chain(bias).for_each(|(a, &b)| *a += scale * b);
    }

    /// √(Σ v²), summed in `f64`, of all rows on all ranks.
    pub fn norm(&self, ranks: &Ranks) -> f64 {
        let rows = ranks.sum_of(sum_of_squares(self.rows.values()));
        (sum_of_squares(&self.bias) + rows).sqrt()
    }
}

/// ΘW = Z for given training rows, targets, kernel and c.
#[derive(Debug)]
pub struct System<T: Scalar> {
    /// The training rows of this rank.
    samples: Samples<T>,
    kernel: Kernel,
    /// λᵢ of each of them.
    lambdas: Vec<f64>,
    targets: Matrix<T>,
    /// Which rank has which rows.
    shares: Shares,
    grid: Grid,
    store: Option<Store<T>>,
    /// What Ω is a map of, if that is kept.
    products: Option<Arc<Products<T>>>,
    /// Ω was given: it cannot be computed.
    given: bool,
    spare: Spare,
}

/// Whether a number can be c.
pub(crate) fn check_c(c: f64) -> Result<()> {
    if !(c > 0.0 && c.is_finite()) {
        return Err(Error::parameter(
            "c",
            c,
            "must be positive and finite: λ = 1/c keeps the system solvable where rows repeat; a \
             larger c follows the training data more closely",
        ));
    }
    Ok(())
}

/// Whether all values of preprocessed rows are finite.
pub(crate) fn check_rows<T: Scalar>(x: &Points<T>) -> Result<()> {
    check_rows_from(x, 0)
}

/// The same of rows that begin at this one.
fn check_rows_from<T: Scalar>(x: &Points<T>, first: usize) -> Result<()> {
    let Some(i) = x.values().iter().position(|v| !v.is_finite()) else {
        return Ok(());
    };
    let (row, column) = x.place(i);
    let (row, column) = (first + row + 1, column + 1);
    Err(Error::Data(format!(
        "row {row}, feature {column} is not finite after preprocessing; check the data for values \
         too large for this precision"
    )))
}

/// Rows of a band of Ω+λI that is computed before progress is told.
const BAND: usize = 1024;

/// Rows and columns of a tile: one sequential product, whose result is mapped
/// before it leaves the cache. See [`Strip`] for the measurement.
const BAND_TILE: usize = 512;

impl<T: Scalar> System<T> {
    /// `x`: preprocessed training rows; `targets`: one row for each.
    pub fn new(
        x: impl Into<Points<T>>,
        targets: Matrix<T>,
        kernel: Kernel,
        c: f64,
    ) -> Result<Self> {
        let x = x.into();
        let shares = Shares::whole(x.rows());
        Self::shared(shares, x, targets, kernel, c)
    }

    /// The part that this rank has of a system whose rows live on several: `x` and `targets`
    /// are its own rows of them. What is wrong with them, the other ranks do not know.
    pub fn shared(
        shares: Shares,
        x: impl Into<Points<T>>,
        targets: Matrix<T>,
        kernel: Kernel,
        c: f64,
    ) -> Result<Self> {
        let x = x.into();
        check_c(c)?;
        assert_eq!(
            x.rows(),
            shares.own().len(),
            "a rank has the rows of its share"
        );
        if shares.n() == 0 {
            return Err(Error::Data("there are no training rows".into()));
        }
        if x.rows() != targets.rows() {
            return Err(Error::Data(format!(
                "{} training rows, but {} targets",
                x.rows(),
                targets.rows()
            )));
        }
        check_rows_from(&x, shares.own().start)?;
        Ok(Self {
            lambdas: vec![1.0 / c; x.rows()],
            samples: Samples::new(x, &kernel),
            kernel,
            targets,
            grid: Grid::new(&shares),
            shares,
            store: None,
            products: None,
            given: false,
            spare: Spare::default(),
        })
    }

    /// A system whose Ω was computed elsewhere: square, symmetric (its lower half is
    /// read), with a row for each target. It has no training rows to predict with.
    pub fn of_kernel_matrix(omega: &Matrix<T>, targets: Matrix<T>, c: f64) -> Result<Self> {
        if omega.rows() != omega.cols() {
            return Err(Error::Data(format!(
                "a kernel matrix has as many rows as columns, and this has {} x {}",
                omega.rows(),
                omega.cols()
            )));
        }
        if let Some(i) = omega.values().iter().position(|v| !v.is_finite()) {
            let (row, column) = (i / omega.cols() + 1, i % omega.cols() + 1);
            return Err(Error::Data(format!(
                "row {row}, column {column} of the kernel matrix is not finite"
            )));
        }
        let nothing = Matrix::zeros(omega.rows(), 1);
        let mut system = Self::new(nothing, targets, Kernel::Linear, c)?;
        system.store = Some(Store::of_matrix(omega));
        system.given = true;
        Ok(system)
    }

    /// Gives each training row of this rank a weight, which must be positive: a row that
    /// counts for nothing is no training row.
    pub fn with_weights(mut self, weights: &[f64]) -> Result<Self> {
        if weights.len() != self.own_rows() {
            return Err(Error::Data(format!(
                "{} training rows, but {} weights",
                self.own_rows(),
                weights.len()
            )));
        }
        for (i, (lambda, &weight)) in self.lambdas.iter_mut().zip(weights).enumerate() {
            *lambda /= weight;
            if !(weight > 0.0 && *lambda > 0.0 && lambda.is_finite()) {
                return Err(Error::Data(format!(
                    "the weight of row {} is {weight}; weights must be positive and finite, and \
                     not too far from 1: leave out rows that shall not count",
                    i + 1
                )));
            }
        }
        Ok(self)
    }

    /// Computes Ω and keeps it ([`Store::bytes`] of memory): from then on strips
    /// are copied. `progress` is told the share that is done and may return false to give up,
    /// which ends in an error.
    pub fn keep_kernel(
        &mut self,
        format: Format,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<()> {
        self.keep_some(format, Keep::Share, progress)
    }

    /// The same where a rank may need more of Ω than its share of a product.
    pub fn keep_some(
        &mut self,
        format: Format,
        keep: Keep,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<()> {
        let largest = match format {
            Format::Full => 1.0,
            Format::Half => {
                let own = store::largest_of_diagonal(&self.kernel, &self.samples);
                let largest = self.ranks().each(own).into_iter().fold(0.0, f64::max);
                if largest > 0.0 { largest } else { 1.0 }
            }
        };
        let mut store = Store::new(format, &self.grid, keep, largest);
        self.in_bands(|band| {
            let places = band.places(|place| store.keeps(place));
            let filled = store.fill(
                &places,
                &mut |done| progress(band.done(done)),
                &|place, out: &mut [T]| band.fill(place, out),
            );
            self.ranks().agree(filled)
        })?;
        self.store = Some(store);
        Ok(())
    }

    /// Makes [`System::tiles`] of what was computed for other kernels of the same rows.
    ///
    /// # Panics
    /// If the kernel is a function of something else.
    pub fn use_products(&mut self, products: Arc<Products<T>>) {
        assert_eq!(products.relation(), self.kernel.relation());
        self.products = Some(products);
    }

    /// The lower half of Ω in tiles of [`TILE`] rows, row after row, to be worked
    /// on: copied if Ω is kept, else computed. `progress` as for [`System::keep_kernel`]. One
    /// rank must have all rows.
    pub fn tiles(&self, progress: &mut dyn FnMut(f64) -> bool) -> Result<Vec<Matrix<T>>> {
        let (kernel, samples) = (&self.kernel, &self.samples);
        match (
            self.store.as_ref().and_then(Store::copy_tiles),
            &self.products,
        ) {
            (Some(tiles), _) => Ok(tiles),
            (None, Some(products)) => products.tiles(kernel, samples, progress),
            (None, None) => store::compute_tiles(kernel, samples, progress),
        }
    }

    /// How Ω is kept, if it is.
    pub fn kept(&self) -> Option<Format> {
        self.store.as_ref().map(Store::format)
    }

    /// N, the number of training rows on all ranks. Θ has one row more.
    pub fn n(&self) -> usize {
        self.shares.n()
    }

    /// The number of training rows that this rank has; N if there is no other.
    pub fn own_rows(&self) -> usize {
        self.samples.len()
    }

    /// Which rank has which rows.
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// The ranks that the rows live on.
    pub fn ranks(&self) -> &Ranks {
        self.shares.ranks()
    }

    /// Weights that are all zero.
    pub fn zeros(&self) -> Bordered<T> {
        Bordered::zeros(self.own_rows(), self.outputs())
    }

    /// K, the number of classes or outputs.
    pub fn outputs(&self) -> usize {
        self.targets.cols()
    }

    /// λᵢ = 1/(c wᵢ) of one of the training rows that this rank has, by its place there.
    pub fn lambda(&self, row: usize) -> f64 {
        self.lambdas[row]
    }

    /// Adds λᵢ to the diagonal of tiles of Ω's lower half, row after row, whose first
    /// row is this one of this rank's.
    pub fn shift_tiles(&self, tiles: &mut [Matrix<T>], first: usize) {
        let (mut at, mut start) = (0, first);
        for tile_row in 1.. {
            let Some(tile) = tiles.get_mut(at) else { break };
            let (rows, columns) = (tile.rows(), tile.cols());
            let lambdas = &self.lambdas[start..start + rows];
            let diagonal = tile.values_mut().iter_mut().step_by(columns + 1);
            let pairs = diagonal.zip(lambdas);
            pairs.for_each(|(v, &lambda)| *v += T::from_f64(lambda));
            (at, start) = (at + tile_row + 1, start + rows);
        }
    }

    /// The kernel function.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Y of the rows of this rank.
    pub fn targets(&self) -> &Matrix<T> {
        &self.targets
    }

    /// The training rows of this rank.
    pub fn samples(&self) -> &Samples<T> {
        &self.samples
    }

    /// The training rows, given back.
    pub fn into_samples(self) -> Samples<T> {
        self.samples
    }

    /// Z
    pub fn right_hand_side(&self) -> Bordered<T> {
        Bordered {
            bias: vec![T::ZERO; self.outputs()],
            rows: self.targets.clone(),
        }
    }

    /// Values that are kept of a training row, on average over all ranks.
    pub fn width(&self) -> usize {
        let points = self.samples.points();
        match points.is_sparse() && !self.shares.is_alone() {
            true => {
                let kept = self.ranks().sum_of(points.values().len() as f64);
                (kept as usize).div_ceil(self.n())
            }
            false => points.width(),
        }
    }

    /// Floating-point operations to compute `values` values of Ω.
    pub fn kernel_flops(&self, values: f64) -> f64 {
        values * self.kernel.flops(self.samples.points().width())
    }

    /// Ω(x, x) of the training rows of this rank.
    pub fn diagonal(&self) -> Vec<f64> {
        match (&self.store, self.given) {
            (Some(store), true) => store.diagonal(),
            _ => store::diagonal(&self.kernel, &self.samples),
        }
    }

    /// Σ Ω(x, x) over the training rows of this rank.
    pub fn trace(&self) -> f64 {
        self.diagonal().iter().sum()
    }

    /// Ω+λI, both triangles. One rank must have all rows.
    ///
    /// `progress` is told the share of the work done and may return false to
    /// give up, which ends in an error.
    pub fn shifted_kernel(&self, progress: &mut dyn FnMut(f64) -> bool) -> Result<Matrix<T>> {
        let n = self.n();
        let mut out = Matrix::zeros(n, n);
        for start in (0..n).step_by(BAND) {
            let end = (start + BAND).min(n);
            // The lower triangle's rows start..end, in tiles over the pool.
            let band = &mut out.values_mut()[start * n..end * n];
            let tile_rows = (end - start)
                .div_ceil(rayon::current_num_threads())
                .min(BAND_TILE);
            band.par_chunks_mut(tile_rows * n)
                .enumerate()
                .for_each(|(t, rows)| {
                    let top = start + t * tile_rows;
                    let bottom = top + rows.len() / n;
                    for left in (0..bottom).step_by(BAND_TILE) {
                        let right = (left + BAND_TILE).min(bottom);
                        let tile =
                            MatMut::strided(bottom - top, right - left, n, &mut rows[left..]);
                        let (x, z) = (&self.samples, &self.samples);
                        self.kernel
                            .fill(tile, x.range(top, bottom), z.range(left, right));
                    }
                });
            let done = end as f64 / n as f64;
            if !progress(done * done) {
                return Err(Error::Interrupted);
            }
        }
        let diagonal = out.values_mut().iter_mut().step_by(n + 1);
        let pairs = diagonal.zip(&self.lambdas);
        pairs.for_each(|(v, &lambda)| *v += T::from_f64(lambda));
        mirror_lower(out.view_mut());
        Ok(out)
    }

    /// Θ · W, computing all of Ω once and keeping none of it. One rank must have all rows.
    pub fn product(&self, w: &Bordered<T>) -> Bordered<T> {
        let mut out = w.clone();
        let rows = out.rows.values_mut().chunks_mut(self.outputs().max(1));
        for (row, &lambda) in rows.zip(&self.lambdas) {
            let lambda = T::from_f64(lambda);
            row.iter_mut()
                .zip(&w.bias)
                .for_each(|(v, &b)| *v = lambda * *v + b);
        }
        let x = self.samples.view();
        add_scores(out.rows.view_mut(), &self.kernel, x, x, w.rows.view());
        for (k, bias) in out.bias.iter_mut().enumerate() {
            let sum = (0..self.n()).map(|i| w.rows.get(i, k).to_f64()).sum();
            *bias = T::from_f64(sum);
        }
        out
    }

    /// ‖Z − ΘW‖ / ‖Z‖, computing all of Ω once.
    pub fn relative_residual(&self, w: &Bordered<T>) -> f64 {
        let mut residual = self.product(w);
        let z = self.right_hand_side();
        residual.add_scaled(&z, -T::ONE);
        relative(residual.norm(self.ranks()), z.norm(self.ranks()))
    }
}

/// `part / whole`, and 0 for a part of nothing.
pub fn relative(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { part }
}

#[cfg(test)]
pub(crate) mod tests;
