//! Rows of one preprocessing, for many kernels and values of c.

use std::sync::Arc;

use super::memory_plan::BASE_BYTES;
use super::prepare::{Prepared, Transformed, truth_of};
use super::{Config, Data, Effective, Evaluation, in_pool};
use crate::kernel::{Relation, Samples};
use crate::linalg::{Matrix, Scalar};
use crate::solve::path::Path;
use crate::solve::{OpenBlock, Phase, Phases, Truth, Work};
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
}

/// Rows that are ready for any kernel.
pub(crate) struct Study<T: Scalar> {
    rows: Transformed<T>,
    truth: Truth,
    /// What kernels are functions of, as far as it was needed.
    products: Vec<Arc<Products<T>>>,
    pub(crate) phases: Phases,
}

impl<T: Scalar> Study<T> {
    /// Fits preprocessing and transforms the rows. Kernel and c are those of the
    /// configuration until others are asked for.
    pub(crate) fn new(data: Data<T>, config: &Config) -> Result<Self> {
        let rows = Prepared::new(data, config)?.transformed()?;
        Ok(Self {
            truth: truth_of(&rows.targets, &rows.outputs),
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
        let rows = &self.rows;
        let kernel = config.kernel_spec();
        let kernel = kernel.resolve(&rows.x, rows.weights.as_deref())?;
        if !kernel.is_positive() && !self.is_exact() {
            return Err(Error::Numeric(
                "a path over c needs a kernel that is positive, or few rows".into(),
            ));
        }
        let targets = rows.targets.clone();
        let mut system = System::new(rows.x.clone(), targets, kernel, config.c)?;
        if let Some(weights) = &rows.weights {
            system = system.with_weights(weights)?;
        }
        if share && !self.is_exact() {
            let products = self.products_for(kernel.relation(), system.samples(), progress)?;
            system.use_products(products);
        }
        let mut work = Work {
            system: &system,
            block: &mut OpenBlock::new(system.n()),
            phases: &mut self.phases,
            progress: &mut *progress,
        };
        let path = Path::new(&mut work, config.c, config.seed)?;
        let points = path.points(cs)?;
        let names = self.rows.outputs.names();
        let mut found = Vec::with_capacity(points.len());
        for point in &points {
            let loo = Evaluation::new(&point.leave_one_out, &self.truth, names)?;
            let (error, standard_error) = loo.error();
            found.push(PathPoint {
                c: point.c,
                error,
                standard_error,
                validation_error: None,
                residual: point.residual,
                diagonal_error: point.diagonal_error,
            });
        }
        if let Some((x, truth)) = &self.rows.validation {
            let cross = Cross::recomputed(Samples::new(x.clone(), &kernel));
            // The weights of all c beside each other: one pass over the kernel.
            let k = system.outputs();
            let all = Matrix::from_fn(system.n(), k * points.len(), |i, column| {
                points[column / k].weights.rows.get(i, column % k)
            });
            let scores = cross.product(&kernel, system.samples(), &all);
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
        let flops = n * n * samples.matrix().cols() as f64;
        let products = self.phases.time(Phase::Kernel, flops, || {
            Products::new(relation, samples, progress)
        })?;
        let products = Arc::new(products);
        self.products.push(Arc::clone(&products));
        Ok(products)
    }

    fn check_memory(&self, config: &Effective, share: bool) -> Result<()> {
        let (n, m) = (self.rows.x.rows(), self.rows.x.cols());
        let k = self.rows.targets.cols();
        let value = size_of::<T>() as u64;
        let others = self.rows.validation.as_ref().map_or(0, |(x, _)| x.rows());
        let data = value * (2 * n as u64 + 2 * others as u64) * (m as u64 + k as u64);
        let factor = Store::<T>::bytes(n, Format::Full);
        let matrices = if share { 2 * factor } else { factor };
        let needed = BASE_BYTES + data + matrices + Path::<T>::bytes(n, k);
        if needed > config.budget.0 {
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
