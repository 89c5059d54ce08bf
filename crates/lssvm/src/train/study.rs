//! Rows of one preprocessing, for many kernels and values of c.

use std::sync::Arc;

use super::memory_plan::BASE_BYTES;
use super::prepare::{Prepared, Transformed, truth_of};
use super::{Config, Effective, Evaluation, StreamData, in_pool};
use crate::kernel::{FillBlock, Kernel, Relation, Samples};
use crate::linalg::{Levels, Matrix, Precision, Scalar};
use crate::solve::path::{Path, Point, points as points_of_path};
use crate::solve::{OpenBlock, Phase, Phases, Work};
use crate::system::{Cross, Format, Products, Store, System};
use crate::{Error, Result};

/// One value of c on a path, and how well it does.
#[derive(Debug, Clone, serde::Serialize)]
pub struct PathPoint {
    /// c
    pub c: f64,
    /// Leave-one-out error: share of wrong rows in percent, or RMSE.
    pub error: f64,
    /// Standard error of that.
    pub standard_error: f64,
    /// The same on validation rows, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_error: Option<f64>,
    /// Relative residual of the solution.
    pub residual: f64,
    /// Root mean square of the relative error of the diagonal that the leave-one-out scores
    /// are made with; 0 if they are exact.
    pub diagonal_error: f64,
    /// The numbers it was computed with: wider than asked for where rounding would show.
    pub precision: Precision,
}

/// Rounding of the factor, in units of λ, above which it is computed in `f64`.
const LARGEST_NOISE: f64 = 0.1;

/// Rows that tell how much the rows are alike.
const SAMPLED: usize = 200;

/// Rows that are ready for any kernel.
pub(crate) struct Study<T: Scalar> {
    rows: Transformed<T>,
    /// What kernels are functions of, as far as it was needed.
    products: Vec<Arc<Products<T>>>,
    pub(crate) phases: Phases,
}

impl<T: Scalar> Study<T> {
    /// Fits preprocessing and transforms the rows. Kernel and c are those of the
    /// configuration until others are asked for.
    pub(crate) fn new(data: impl Into<StreamData<T>>, config: &Config) -> Result<Self> {
        let rows = Prepared::new(data, config)?.transformed()?;
        Ok(Self {
            rows,
            products: Vec::new(),
            phases: Phases::default(),
        })
    }

    pub(crate) fn config(&self) -> &Effective {
        &self.rows.config
    }

    /// Whether leave-one-out errors of a path are exact.
    pub(crate) fn is_exact(&self) -> bool {
        Path::<T>::is_exact(self.rows.x.rows(), self.rows.targets.cols())
    }

    /// Errors for these values of c, with the kernel of `config`; what kernels have in
    /// common is kept for the next if `share`.
    ///
    /// # Errors
    /// [`Error::Numeric`] if the kernel matrix cannot be factored, [`Error::Memory`] if the
    /// budget does not allow it.
    pub(crate) fn path(
        &mut self,
        config: &Config,
        cs: &[f64],
        share: bool,
        progress: &mut (dyn FnMut(f64) -> bool + Send),
    ) -> Result<Vec<PathPoint>> {
        let largest = cs.iter().copied().fold(0.0, f64::max);
        let config = Config {
            c: Some(largest),
            ..config.clone()
        };
        let config = self.rows.resolve(&config)?;
        self.check_memory(&config, share)?;
        in_pool(config.threads, || self.solve(&config, cs, share, progress))
    }

    fn solve(
        &mut self,
        config: &Effective,
        cs: &[f64],
        share: bool,
        progress: &mut (dyn FnMut(f64) -> bool + Send),
    ) -> Result<Vec<PathPoint>> {
        let kernel = config.kernel_spec();
        let weights = self.rows.weights.as_deref();
        let kernel = kernel.resolve(&self.rows.x, weights)?;
        if !kernel.is_positive() && !self.is_exact() {
            return Err(Error::Numeric(
                "a path over c needs a kernel that is positive, or few rows".into(),
            ));
        }
        if self.needs_doubles(config, &kernel) {
            return judge(&self.system::<f64>(kernel, config)?, &self.rows, |system| {
                points(system, config, cs, &mut self.phases, progress)
            });
        }
        let mut system = self.system::<T>(kernel, config)?;
        if share && !self.is_exact() {
            let products = self.products_for(kernel.relation(), system.samples(), progress)?;
            system.use_products(products);
        }
        judge(&system, &self.rows, |system| {
            points(system, config, cs, &mut self.phases, progress)
        })
    }

    fn system<U: Scalar>(&self, kernel: Kernel, config: &Effective) -> Result<System<U>> {
        let rows = &self.rows;
        let system = System::new(rows.x.cast(), rows.targets.cast(), kernel, config.c)?;
        match &rows.weights {
            Some(weights) => system.with_weights(weights),
            None => Ok(system),
        }
    }

    /// Whether rounding of the factor in `f32` would be as large as λ: with many rows that
    /// are much alike, and a large c. A factor in `f64` must fit in memory, too.
    fn needs_doubles(&self, config: &Effective, kernel: &Kernel) -> bool {
        if T::PRECISION == Precision::F64 || self.is_exact() {
            return false;
        }
        let n = self.rows.x.rows();
        let step = n.div_ceil(SAMPLED);
        let few: Vec<usize> = (0..n).step_by(step).collect();
        let samples = Samples::new(self.rows.x.select_rows(&few), kernel);
        let mut omega = Matrix::<T>::zeros(few.len(), few.len());
        kernel.fill(omega.view_mut(), samples.view(), samples.view());
        let diagonal = (0..few.len()).map(|i| omega.get(i, i).to_f64());
        let (sum, squares) = diagonal.fold((0.0, 0.0), |(s, q), v| (s + v, q + v * v));
        let (mean, count) = (sum / few.len() as f64, few.len() as f64);
        let others = omega.frobenius_norm().powi(2) - squares;
        let alike = others / (count * (count - 1.0) * mean * mean);
        // Sums of n products of this size in each value, and n of those in each direction.
        let noise = n as f64 * T::EPSILON * config.c * mean * alike;
        noise > LARGEST_NOISE && self.bytes::<f64>(false) <= config.budget.0
    }

    /// Inner products or distances of the rows, computed at the first call.
    fn products_for(
        &mut self,
        relation: Relation,
        samples: &Samples<T>,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Arc<Products<T>>> {
        let known = self.products.iter().find(|p| p.relation() == relation);
        if let Some(products) = known {
            return Ok(Arc::clone(products));
        }
        // One at a time: kernels come in order.
        self.products.clear();
        let n = samples.len() as f64;
        let flops = n * n * samples.points().width() as f64;
        let products = self.phases.time(Phase::Kernel, flops, || {
            Products::new(relation, samples, progress)
        })?;
        let products = Arc::new(products);
        self.products.push(Arc::clone(&products));
        Ok(products)
    }

    /// What a path takes.
    fn bytes<U: Scalar>(&self, share: bool) -> u64 {
        let (n, m) = (self.rows.x.rows(), self.rows.x.cols());
        let others = self.rows.validation.as_ref().map_or(0, |(x, _)| x.rows());
        let shape = (n, m, self.rows.targets.cols());
        BASE_BYTES + path_bytes::<U>(shape, others, share)
    }

    fn check_memory(&self, config: &Effective, share: bool) -> Result<()> {
        let needed = self.bytes::<T>(share);
        if needed > config.budget.0 {
            let (n, m) = (self.rows.x.rows(), self.rows.x.cols());
            return Err(Error::Memory {
                what: format!("a path over c on {n} rows of {m} features"),
                needed,
                available: config.budget.0,
                remedy: "use fewer rows (--train-rows), or raise --memory".into(),
            });
        }
        Ok(())
    }
}

/// What a path over c takes for rows of so many features and outputs, and `others` to validate.
pub(crate) fn path_bytes<U: Scalar>(
    (n, m, k): (usize, usize, usize),
    others: usize,
    share: bool,
) -> u64 {
    let value = size_of::<U>() as u64;
    let data = value * (2 * n as u64 + 2 * others as u64) * (m as u64 + k as u64);
    let factor = Store::<U>::bytes(n, Format::Full);
    let matrices = if share { 2 * factor } else { factor };
    // Rows of levels are kept as bytes, too.
    let levels = Levels::bytes(n + others, m);
    data + levels + matrices + Path::<U>::bytes(n, k)
}

fn points<U: Scalar>(
    system: &System<U>,
    config: &Effective,
    cs: &[f64],
    phases: &mut Phases,
    progress: &mut (dyn FnMut(f64) -> bool + Send),
) -> Result<Vec<Point<U>>> {
    let mut work = Work {
        system,
        block: &mut OpenBlock::new(system.shares()),
        phases,
        progress,
    };
    points_of_path(&mut work, config.c, config.seed, cs)
}

/// Solutions, and how well they do.
fn judge<T: Scalar, U: Scalar>(
    system: &System<U>,
    rows: &Transformed<T>,
    solve: impl FnOnce(&System<U>) -> Result<Vec<Point<U>>>,
) -> Result<Vec<PathPoint>> {
    let points = solve(system)?;
    let names = rows.outputs.names();
    let truth = truth_of(&rows.targets, &rows.outputs);
    let mut found = Vec::with_capacity(points.len());
    for point in &points {
        let loo = Evaluation::new(&point.leave_one_out, &truth, names)?;
        let (error, standard_error) = loo.error();
        found.push(PathPoint {
            c: point.c,
            error,
            standard_error,
            validation_error: None,
            residual: point.residual,
            diagonal_error: point.diagonal_error,
            precision: U::PRECISION,
        });
    }
    if let Some((x, truth)) = &rows.validation {
        let cross = Cross::recomputed(Samples::beside(
            system.samples().view(),
            x.cast::<U>(),
            system.kernel(),
        ));
        // The weights of all c beside each other: one pass over the kernel.
        let k = system.outputs();
        let all = Matrix::from_fn(system.n(), k * points.len(), |i, column| {
            points[column / k].weights.rows.get(i, column % k)
        });
        let scores = cross.product(system.kernel(), system.samples(), &all);
        for (at, (point, found)) in points.iter().zip(&mut found).enumerate() {
            let own = Matrix::from_fn(scores.rows(), k, |i, column| {
                scores.get(i, at * k + column) + point.weights.bias[column]
            });
            let error = Evaluation::new(&own, truth, names)?.error().0;
            found.validation_error = Some(error);
        }
    }
    Ok(found)
}
