//! Training by centres: which rows, how many, what is held in memory, on data that may
//! stay on disk.

use std::sync::Arc;

use super::checkpoint::Fixed;
use super::forecast::{Forecast, Rates};
use super::memory_plan::{BASE_BYTES, MemoryPlan, bytes_of_columns};
use super::prepare::{LaidOut, Prepared, Ready};
use super::{Effective, StreamData};
use crate::data::{Picked, Rows, Stream};
use crate::kernel::{Kernel, Samples};
use crate::linalg::{Csr, Matrix, Precision, Scalar};
use crate::preprocess::Preprocessed;
use crate::ranks::Shares;
use crate::solve::centers::{Centers, Problem, Source};
use crate::solve::{Phases, Truth};
use crate::system::{Cross, Keep, System, check_rows};
use crate::{Error, Result, random};

/// The most centres that are chosen without being asked for: their two squares of values
/// and P³ operations are then no more than some passes.
const MOST_CENTERS: usize = 20_000;

/// The fewest worth having.
const LEAST_CENTERS: usize = 100;

/// Passes over the rows that a run is reckoned to make, the first included.
const PASSES: f64 = 20.0;

/// Operations of all passes that are chosen without being asked for: ten minutes at
/// 10¹¹ a second.
const OPERATIONS: f64 = 6e13;

/// The share of the time limit that is planned with.
const TIME_SHARE: f64 = 0.7;

/// Rows whose kernel values tell the speed of the machine.
const TRIAL_ROWS: usize = 1024;

/// What is known before P is.
struct Sizes {
    /// The most rows that a rank has, and all of them.
    n: usize,
    all: usize,
    /// Raw, and after preprocessing.
    features: [usize; 2],
    outputs: usize,
    /// Validation and test rows.
    others: [usize; 2],
    /// What the columns of sparse rows need, in bytes.
    columns: u64,
    budget: u64,
}

/// How the memory is used for P centres.
struct Layout {
    bytes: u64,
    held: bool,
    precision: Precision,
    stored: [bool; 2],
}

/// Transforms nothing but what is kept, and decides how many centres there are.
pub(super) fn lay_out<T: Scalar>(prepared: Prepared<T>) -> Result<LaidOut<T>> {
    let mut config = prepared.config;
    let StreamData {
        train,
        validation,
        test,
    } = prepared.data;
    let image = prepared.input.image;
    let ranks = &prepared.ranks;
    let (n, k) = (train.n_samples(), prepared.outputs.names().len());
    let shares = Shares::even(n, 1, ranks);
    let (raw, raw_kept) = (train.n_features(), train.features.kept_values());
    let (pipeline, kernel) = match prepared.fixed {
        Some(Fixed { pipeline, kernel }) => (pipeline, Some(kernel)),
        None => {
            let own = own_rows(&shares, &train.features);
            (config.preprocess.fit_rows_on(ranks, &own, image)?, None)
        }
    };
    // Of all rows centres are picked; those of this rank are passed over.
    let own = Preprocessed::new(own_rows(&shares, &train.features), pipeline.clone())?;
    let all = Preprocessed::new(train.features, pipeline.clone())?;
    let (rows, all): (Arc<dyn Rows<T>>, Arc<dyn Rows<T>>) = (Arc::new(own), Arc::new(all));
    let kernel = match kernel {
        Some(kernel) => kernel,
        None => {
            let spec = config.kernel_spec();
            let weights = prepared.weights.as_ref().map(|all| &all[shares.own()]);
            spec.resolve_on(ranks, &*rows, weights)?
        }
    };
    let count = |part: &Option<Stream<T>>| part.as_ref().map_or(0, |p| p.n_samples());
    // As values that take the same room.
    let width = |kept: Option<usize>, features: usize| match kept {
        Some(kept) => (Csr::<T>::bytes(n, kept) as usize / size_of::<T>()).div_ceil(n.max(1)),
        None => features,
    };
    let sizes = Sizes {
        n: shares.largest(),
        all: n,
        features: [
            width(raw_kept, raw),
            width(all.kept_values(), pipeline.n_features_out()),
        ],
        outputs: k,
        others: [count(&validation), count(&test)],
        columns: raw_kept.map_or(0, |_| bytes_of_columns(raw)),
        budget: config.budget.0,
    };
    let centers = match config.centers {
        Some(centers) => centers,
        None => {
            let most = how_many(&sizes, &config, &kernel, &*rows);
            // Clocks differ.
            let mut most = [ranks.agree(most)? as f64];
            ranks.give(&mut most);
            most[0] as usize
        }
    };
    config.centers = Some(centers);
    let layout = sizes.layout::<T>(centers, config.follow > 0)?;
    let chosen = random::sample(&mut random::rng(config.seed), n, centers);
    let x = ranks.agree(all.picked_points(&chosen))?;
    let targets: Matrix<T> = prepared.truth.select(&chosen).targets(k);
    let system = ranks.agree(System::new(x, targets, kernel, config.c))?;
    let weights = prepared.weights;
    let center_weights = match &weights {
        Some(weights) => chosen.iter().map(|&row| weights[row]).collect(),
        None => vec![1.0; centers],
    };
    let held = |rows: Arc<dyn Rows<T>>| {
        let x = rows.into_points()?;
        check_rows(&x)?;
        Ok(Source::Held(Samples::new(x, &kernel)))
    };
    let problem = Problem {
        source: match layout.held {
            // Those that are read are looked at by their sums.
            true => {
                drop(all);
                ranks.agree(held(rows))?
            }
            false => Source::Read(rows),
        },
        truth: match ranks.is_alone() {
            true => prepared.truth,
            false => prepared.truth.select(&shares.own().collect::<Vec<_>>()),
        },
        outputs: k,
        centers: system.samples().clone(),
        center_weights,
        weights: weights.map(|all| all[shares.own()].to_vec()),
        kernel,
        lambda: 1.0 / config.c,
        ranks: ranks.clone(),
    };
    let memory = MemoryPlan {
        bytes: layout.bytes,
        stored: layout.stored,
        follow_every: config.follow,
        kernel: None,
        rank: None,
    };
    let shape = [n, pipeline.n_features_out(), k];
    let forecast = Forecast::new(&config, shape, &memory, &kernel, system.samples()).on(ranks);
    let solver = Centers::new(problem, config.tolerance, layout.precision)?;
    let transformed = |part: Option<Stream<T>>, truth: Option<Truth>| {
        let part = part.map(|part| pipeline.transform_points(part.features.into_points()?));
        Ok::<_, Error>(part.transpose()?.zip(truth))
    };
    Ok(LaidOut {
        forecast,
        validation: ranks.agree(transformed(validation, prepared.validation_truth))?,
        test: ranks.agree(transformed(test, prepared.test_truth))?,
        ready: Ready {
            validation: None,
            test: None,
            config,
            shape,
            order: None,
            centers: Some(chosen),
            solver: Some(Box::new(solver)),
            phases: Phases::default(),
            kernel,
            pipeline,
            system,
            outputs: prepared.outputs,
            input: prepared.input,
            memory,
            ranks: prepared.ranks,
            keep: Keep::Share,
            whole: None,
            start: prepared.start,
        },
    })
}

/// The rows of this rank.
fn own_rows<T: Scalar>(shares: &Shares, all: &Arc<dyn Rows<T>>) -> Arc<dyn Rows<T>> {
    match shares.is_alone() {
        true => Arc::clone(all),
        false => Arc::new(Picked::new(Arc::clone(all), shares.own().collect())),
    }
}

impl Sizes {
    /// Bytes of what does not depend on P: labels and weights, and rows that are not
    /// learned from.
    fn fixed<T>(&self) -> u64 {
        let labels = self.n * (3 * size_of::<f64>() + size_of::<u64>());
        let others: usize = self.others.iter().sum();
        let [raw, preprocessed] = self.features;
        let others = others * (raw + preprocessed + 2 * self.outputs) * size_of::<T>();
        BASE_BYTES + self.columns + (labels + others) as u64
    }

    /// Bytes with P centres.
    fn bytes<T: Scalar>(&self, centers: usize, held: bool, precision: Precision) -> u64 {
        let own = 2 * centers * (self.features[1] + self.outputs) * size_of::<T>();
        let (n, k) = (self.n, self.outputs);
        let solver = Centers::<T>::bytes(n, centers, k, self.features, held, precision);
        self.fixed::<T>() + own as u64 + solver
    }

    /// The best use of memory with P centres: first a preconditioner in full precision,
    /// then the rows, then the kernel values of rows that are followed.
    fn layout<T: Scalar>(&self, centers: usize, follow: bool) -> Result<Layout> {
        let least = self.bytes::<T>(centers, false, Precision::F32);
        if least > self.budget {
            let most = self.most_centers::<T>();
            return Err(Error::Memory {
                what: format!(
                    "a model of {centers} centres on {} rows of {} features",
                    self.n, self.features[1]
                ),
                needed: least,
                available: self.budget,
                remedy: match most {
                    0 => "keep fewer rows for validation and test, or raise --memory".into(),
                    most => format!("use --centers {most}, or raise --memory"),
                },
            });
        }
        let fits = |held, precision| self.bytes::<T>(centers, held, precision) <= self.budget;
        let precision = match fits(false, Precision::F64) {
            true => Precision::F64,
            false => Precision::F32,
        };
        let held = fits(true, precision);
        let mut bytes = self.bytes::<T>(centers, held, precision);
        let stored = self.others.map(|rows| {
            let needed = Cross::<T>::stored_bytes(rows, centers);
            let stored = follow && rows > 0 && bytes + needed <= self.budget;
            if stored {
                bytes += needed;
            }
            stored
        });
        Ok(Layout {
            bytes,
            held,
            precision,
            stored,
        })
    }

    /// The most centres that fit in memory.
    fn most_centers<T: Scalar>(&self) -> usize {
        let fits = |&p: &usize| self.bytes::<T>(p, false, Precision::F32) <= self.budget;
        let (mut low, mut high) = (0, self.all.min(10 * MOST_CENTERS) + 1);
        while high - low > 1 {
            let middle = (low + high) / 2;
            match fits(&middle) {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }
}

/// As many centres as memory allows, and the time limit, or else a number of operations.
fn how_many<T: Scalar>(
    sizes: &Sizes,
    config: &Effective,
    kernel: &Kernel,
    rows: &dyn Rows<T>,
) -> Result<usize> {
    // Half of the memory for centres: the rest is for rows.
    let halved = Sizes {
        budget: sizes.budget / 2,
        ..*sizes
    };
    let by_memory = match halved.most_centers::<T>() {
        few if few < LEAST_CENTERS => sizes.most_centers::<T>(),
        enough => enough,
    };
    let n = sizes.n as f64;
    let by_time = match config.time {
        Some(seconds) => {
            let trial = Samples::new(rows.points(0..TRIAL_ROWS.min(sizes.n))?, kernel);
            let rates = Rates::measure(kernel, &trial, sizes.outputs);
            let a_center = n * rates.of_a_pass() / config.threads as f64;
            TIME_SHARE * seconds / (PASSES * a_center)
        }
        None => {
            let a_center = 2.0 * sizes.all as f64 * (sizes.features[1] + 2 * sizes.outputs) as f64;
            OPERATIONS / (PASSES * a_center)
        }
    };
    let most = by_memory.min(by_time as usize).min(MOST_CENTERS);
    Ok(most.max(LEAST_CENTERS).min(sizes.all))
}
