//! Training by centres: which rows they are, on data that may stay on disk.

mod sizes;

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use super::checkpoint::Fixed;
use super::forecast::Forecast;
use super::memory_plan::{MemoryPlan, bytes_of_columns};
use super::prepare::{LaidOut, Prepared, Ready};
use super::warm_start::rows_of_model;
use super::{StreamData, Watcher};
use crate::data::{Picked, Rows, Stream};
use crate::kernel::{Kernel, Samples};
use crate::linalg::{Csr, Matrix, Precision, Scalar};
use crate::model::Model;
use crate::preprocess::Preprocessed;
use crate::ranks::{Ranks, Shares};
use crate::solve::centers::{Centers, Problem, Select, Source, expect_positive, pivots};
use crate::solve::{Flow, Phase, Phases, Truth};
use crate::system::{Keep, System, check_rows};
use crate::{Error, Result, random};
use sizes::{Sizes, how_many};

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
    expect_alone(ranks, config.select)?;
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
    expect_positive(&kernel)?;
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
    let layout = sizes.layout::<T>(centers, &config)?;
    let chosen = match prepared.centers {
        Some(chosen) => chosen,
        None => random::sample(&mut random::rng(config.seed), n, centers),
    };
    let centered = Centered {
        rows,
        all,
        shares,
        truth: prepared.truth,
        outputs: k,
        weights: prepared.weights,
        kernel,
        c: config.c,
        held: layout.held,
        precision: layout.precision,
        sample: layout.sample,
    };
    let system = centered.system(&chosen)?;
    let memory = MemoryPlan {
        bytes: layout.bytes,
        stored: layout.stored,
        follow_every: config.follow,
        kernel: None,
        rank: None,
    };
    let shape = [n, pipeline.n_features_out(), k];
    let forecast = Forecast::new(&config, shape, &memory, &kernel, system.samples()).on(ranks);
    let transformed = |part: Option<Stream<T>>, truth: Option<Truth>| {
        let part = part.map(|part| pipeline.transform_points(part.features.into_points()?));
        Ok::<_, Error>(part.transpose()?.zip(truth))
    };
    Ok(LaidOut {
        forecast,
        validation: ranks.agree(transformed(validation, prepared.validation_truth))?,
        test: ranks.agree(transformed(test, prepared.test_truth))?,
        centered: Some(centered),
        ready: Ready {
            validation: None,
            test: None,
            config,
            shape,
            order: None,
            centers: Some(chosen),
            solver: None,
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

/// Refuses a choice that is made on one machine, if there are several.
fn expect_alone(ranks: &Ranks, select: Option<Select>) -> Result<()> {
    match select.filter(|&select| select != Select::Uniform && !ranks.is_alone()) {
        Some(select) => Err(Error::parameter(
            "select",
            select,
            "is a choice that one machine makes; leave it out where several share the rows",
        )),
        None => Ok(()),
    }
}

/// The rows of this rank.
fn own_rows<T: Scalar>(shares: &Shares, all: &Arc<dyn Rows<T>>) -> Arc<dyn Rows<T>> {
    match shares.is_alone() {
        true => Arc::clone(all),
        false => Arc::new(Picked::new(Arc::clone(all), shares.own().collect())),
    }
}

/// Rows, and what they count if not all count the same.
type Sample<T> = (Samples<T>, Option<Vec<f64>>);

/// The rows that centres are chosen from and fitted to.
pub(super) struct Centered<T: Scalar> {
    /// Those of this rank, and those of all; truth and weights are of all.
    rows: Arc<dyn Rows<T>>,
    all: Arc<dyn Rows<T>>,
    shares: Shares,
    truth: Truth,
    outputs: usize,
    weights: Option<Vec<f64>>,
    kernel: Kernel,
    c: f64,
    held: bool,
    precision: Precision,
    /// Rows among which centres are chosen by pivots.
    sample: usize,
}

impl<T: Scalar> Centered<T> {
    /// The rows with these indices.
    fn system(&self, chosen: &[usize]) -> Result<System<T>> {
        let ranks = self.shares.ranks();
        let x = ranks.agree(self.all.picked_points(chosen))?;
        let targets: Matrix<T> = self.truth.select(chosen).targets(self.outputs);
        ranks.agree(System::new(x, targets, self.kernel, self.c))
    }

    /// What rows count, if not all count the same.
    fn weights_of(&self, rows: &[usize]) -> Option<Vec<f64>> {
        let weights = self.weights.as_ref();
        weights.map(|weights| rows.iter().map(|&row| weights[row]).collect())
    }

    /// Some rows, each equally likely: where they are, and what they count.
    fn sample(&self, rng: &mut ChaCha8Rng) -> Result<(Vec<usize>, Sample<T>)> {
        let sample = random::sample(rng, self.all.len(), self.sample);
        let samples = Samples::new(self.all.picked_points(&sample)?, &self.kernel);
        check_rows(samples.points())?;
        let weights = self.weights_of(&sample);
        Ok((sample, (samples, weights)))
    }

    /// So many rows by pivots among a uniform sample of them.
    fn pivots(
        &self,
        count: usize,
        seed: u64,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Vec<usize>> {
        let mut rng = random::rng(seed);
        let (sample, (samples, weights)) = self.sample(&mut rng)?;
        let among = (&self.kernel, &samples);
        let chosen = pivots::pivots(among, weights.as_deref(), count, &mut rng, progress)?;
        Ok(chosen.into_iter().map(|place| sample[place]).collect())
    }

    /// So many rows that are none of these, which are in ascending order.
    fn others(&self, but: &[usize], count: usize, seed: u64) -> Vec<usize> {
        let left = self.all.len() - but.len();
        let mut drawn = random::sample(&mut random::rng(seed), left, count);
        // From places among the rows that are left to places among all.
        let mut before = 0;
        for row in &mut drawn {
            while before < but.len() && but[before] <= *row + before {
                before += 1;
            }
            *row += before;
        }
        drawn
    }

    /// What fits a model of these rows to all.
    pub(super) fn solver(self, ready: &Ready<T>) -> Result<Centers<T>> {
        let chosen = ready.centers.as_deref().unwrap_or_default();
        let center_weights = self.weights_of(chosen);
        let mut center_weights = center_weights.unwrap_or_else(|| vec![1.0; chosen.len()]);
        if self.sample > chosen.len() {
            let (_, (samples, weights)) = self.sample(&mut random::rng(ready.config.seed))?;
            let (among, centers) = ((&self.kernel, &samples), ready.system.samples());
            let weights = weights.as_deref();
            center_weights = pivots::shares(among, weights, centers, center_weights);
        }
        let (ranks, own) = (self.shares.ranks().clone(), self.shares.own());
        drop(self.all);
        let held = |rows: Arc<dyn Rows<T>>| {
            let x = rows.into_points()?;
            check_rows(&x)?;
            Ok(Source::Held(Samples::new(x, &self.kernel)))
        };
        let problem = Problem {
            center_weights,
            source: match self.held {
                // Those that are read are looked at by their sums.
                true => ranks.agree(held(self.rows))?,
                false => Source::Read(self.rows),
            },
            truth: match ranks.is_alone() {
                true => self.truth,
                false => self.truth.select(&own.clone().collect::<Vec<_>>()),
            },
            outputs: self.outputs,
            centers: ready.system.samples().clone(),
            weights: self.weights.map(|all| all[own].to_vec()),
            kernel: self.kernel,
            lambda: 1.0 / self.c,
            ranks,
        };
        Centers::new(problem, ready.config.tolerance, self.precision)
    }
}

impl<T: Scalar> LaidOut<T> {
    /// Chooses the centres, if that is more than a draw: those of the model to begin with
    /// that are among the rows, and else by pivots.
    pub(super) fn choose_centers(
        &mut self,
        model: Option<&Model<T>>,
        watcher: &mut dyn Watcher,
    ) -> Result<()> {
        let Some(centered) = &self.centered else {
            return Ok(());
        };
        let ready = &mut self.ready;
        let (count, seed) = (ready.system.n(), ready.config.seed);
        let chosen = match model {
            Some(model) => {
                let known = rows_of_model(model, &*centered.all);
                let known = centered.shares.ranks().agree(known)?;
                match known.len() {
                    0 => return Ok(()),
                    many if many >= count => {
                        let places = random::sample(&mut random::rng(seed), many, count);
                        places.into_iter().map(|place| known[place]).collect()
                    }
                    few => {
                        let mut all = centered.others(&known, count - few, seed);
                        all.extend(known);
                        all.sort_unstable();
                        all
                    }
                }
            }
            None if centered.sample > count => {
                let width = ready.system.samples().points().width();
                let flops = pivots::flops(centered.sample, count, width);
                let mut progress = |done: f64| watcher.progress(done) == Flow::Continue;
                ready.phases.time(Phase::Select, flops, || {
                    centered.pivots(count, seed, &mut progress)
                })?
            }
            None => return Ok(()),
        };
        ready.system = centered.system(&chosen)?;
        ready.centers = Some(chosen);
        Ok(())
    }
}
