//! How many centres there are, and what is held in memory with so many.

use super::super::Effective;
use super::super::forecast::Rates;
use super::super::memory_plan::BASE_BYTES;
use crate::data::Rows;
use crate::kernel::{Kernel, Samples};
use crate::linalg::{Levels, Precision, Scalar};
use crate::solve::centers::{Centers, Select, pivots};
use crate::system::Cross;
use crate::{Error, Result};

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

/// Rows among which centres are chosen by pivots, for each of them: choosing then takes
/// 10 P³ operations.
const SAMPLE: usize = 10;

/// What is known before P is.
pub(super) struct Sizes {
    /// The most rows that a rank has, and all of them.
    pub(super) n: usize,
    pub(super) all: usize,
    /// Raw, and after preprocessing.
    pub(super) features: [usize; 2],
    pub(super) outputs: usize,
    /// Validation and test rows.
    pub(super) others: [usize; 2],
    /// What the columns of sparse rows need, in bytes.
    pub(super) columns: u64,
    pub(super) budget: u64,
}

/// How the memory is used for P centres.
pub(super) struct Layout {
    pub(super) bytes: u64,
    pub(super) held: bool,
    pub(super) precision: Precision,
    pub(super) stored: [bool; 2],
    /// Rows among which centres are chosen by pivots.
    pub(super) sample: usize,
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
        // Rows of pixels are kept as bytes, too; sparse rows are none.
        let levels = match held && self.columns == 0 {
            true => Levels::bytes(n, self.features[1]),
            false => 0,
        };
        self.fixed::<T>() + own as u64 + levels + solver
    }

    /// The best use of memory with P centres: first a preconditioner in full precision,
    /// then the rows, then the kernel values of rows that are followed.
    pub(super) fn layout<T: Scalar>(&self, centers: usize, config: &Effective) -> Result<Layout> {
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
                    0 if self.others == [0, 0] => "raise --memory".into(),
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
            let stored = config.follow > 0 && rows > 0 && bytes + needed <= self.budget;
            if stored {
                bytes += needed;
            }
            stored
        });
        let sample = match config.select.unwrap_or_default() {
            Select::Uniform => centers,
            Select::Pivoted => self.sample::<T>(centers),
        };
        let bytes = match sample > centers {
            true => bytes.max(self.choosing_bytes::<T>(centers, sample)),
            false => bytes,
        };
        Ok(Layout {
            bytes,
            held,
            precision,
            stored,
            sample,
        })
    }

    /// Bytes while P centres are chosen among `sample` rows: no solver is there yet.
    fn choosing_bytes<T: Scalar>(&self, centers: usize, sample: usize) -> u64 {
        let [raw, preprocessed] = self.features;
        // As they are read and transformed, and with the norms of each.
        let rows = sample * (raw + 2 * preprocessed + 2) * size_of::<T>();
        self.fixed::<T>() + rows as u64 + pivots::bytes::<T>(sample, centers)
    }

    /// Rows among which P centres are chosen by pivots, as many as memory allows.
    fn sample<T: Scalar>(&self, centers: usize) -> usize {
        let fits = |sample: usize| self.choosing_bytes::<T>(centers, sample) <= self.budget;
        most(centers, self.all.min(SAMPLE * centers), fits)
    }

    /// The most centres that fit in memory.
    fn most_centers<T: Scalar>(&self) -> usize {
        let fits = |p: usize| self.bytes::<T>(p, false, Precision::F32) <= self.budget;
        most(0, self.all.min(10 * MOST_CENTERS), fits)
    }
}

/// The largest of `least..=largest` that fits; `least` if none does.
fn most(least: usize, largest: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (least, largest + 1);
    while high - low > 1 {
        let middle = (low + high) / 2;
        match fits(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// As many centres as memory allows, and the time limit, or else a number of operations.
pub(super) fn how_many<T: Scalar>(
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
