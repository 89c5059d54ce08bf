//! Training that can begin elsewhere than at zero, and survive its process.

use super::checkpoint::{About, Folder, start_state};
use super::prepare::{LaidOut, Prepared};
use super::{
    Checkpoint, Checkpoints, Config, Fitted, Report, StreamData, WarmStart, Watcher, in_pool,
    lay_out, solve_one, warm_start,
};
use crate::linalg::Scalar;
use crate::memory;
use crate::model::Model;
use crate::ranks::{Ranks, Shares};
use crate::solve::{Course, Keeper, State, write_checkpoint};
use crate::system::Bordered;
use crate::{Error, Result};

/// A run of training, with all that [`fit`](super::fit) has no argument for.
///
/// ```
/// use std::time::Duration;
/// use lssvm::data::{Dataset, Labels};
/// use lssvm::linalg::Matrix;
/// use lssvm::solve::{Method, Silent};
/// use lssvm::train::{Checkpoint, Checkpoints, Config, Data, Trainer};
/// let data = || {
///     let x = Matrix::from_fn(60, 2, |i, j| (i % 2) as f32 * 3.0 + ((i * 7 + j * 3) as f32).sin());
///     let mut train = Dataset::new("clouds".as_ref(), x);
///     train.labels = Some(Labels::from_text((0..60).map(|i| ["near", "far"][i % 2])));
///     Data { train, validation: None, test: None }
/// };
/// # let place = tempfile::tempdir().unwrap();
/// # let folder = place.path().join("run");
/// let config = Config { method: Some(Method::Mp), ..Config::default() };
/// let checkpoints = Checkpoints {
///     folder: folder.clone(),
///     every: Duration::from_secs(60),
///     notes: serde_json::Value::Null,
/// };
/// let (model, _) = Trainer::new(&config).checkpoints(checkpoints).fit(data(), &mut Silent)?;
/// // Had the process died, another would end with the same bits.
/// let found = Checkpoint::open(&folder)?;
/// let (again, _) = Trainer::resume(found).fit(data(), &mut Silent)?;
/// assert_eq!(model.to_bytes()?, again.to_bytes()?);
/// Checkpoint::remove(&folder)?;
/// // Another c, from where the first ended.
/// let config = Config { c: Some(20.0), ..Config::default() };
/// let (_, report) = Trainer::new(&config).warm_start(&model).fit(data(), &mut Silent)?;
/// assert_eq!(report.warm_start.unwrap().new, 0);
/// # Ok::<(), lssvm::Error>(())
/// ```
pub struct Trainer<'a, T: Scalar> {
    config: Config,
    warm_start: Option<&'a Model<T>>,
    checkpoints: Option<Checkpoints>,
    resumed: Option<Checkpoint>,
}

impl<'a, T: Scalar> Trainer<'a, T> {
    /// A run with these settings.
    pub fn new(config: &Config) -> Self {
        Self {
            config: config.clone(),
            warm_start: None,
            checkpoints: None,
            resumed: None,
        }
    }

    /// A run that goes on where another process left it, and is kept in the same folder.
    /// The data must be the same; all settings are those of the checkpoint.
    pub fn resume(checkpoint: Checkpoint) -> Self {
        Self {
            config: checkpoint.config().clone(),
            warm_start: None,
            checkpoints: None,
            resumed: Some(checkpoint),
        }
    }

    /// Keeps the state of the run in a folder, from time to time. The last good checkpoint
    /// stays there when the run has ended: see [`Checkpoint::remove`].
    pub fn checkpoints(mut self, checkpoints: Checkpoints) -> Self {
        self.checkpoints = Some(checkpoints);
        self
    }

    /// Begins at the weights of a model, and keeps its preprocessing and kernel.
    pub fn warm_start(mut self, model: &'a Model<T>) -> Self {
        self.warm_start = Some(model);
        self
    }

    /// Trains.
    ///
    /// # Errors
    /// As [`fit`](super::fit). Also if a checkpoint cannot be written when the run begins
    /// (later that is no error, but told: [`Report::checkpoints`]), if the run in the
    /// checkpoint is another, or if the settings contradict the model to begin with.
    pub fn fit(
        self,
        data: impl Into<StreamData<T>>,
        watcher: &mut dyn Watcher,
    ) -> Result<(Model<T>, Report)> {
        let (model, report) = self.fit_on(&Ranks::default(), data, watcher)?;
        let model = model.expect("the only rank is the first");
        Ok((model.into_model()?, report))
    }

    /// Trains on several ranks, each of which calls this with the same settings and data, and
    /// reads of the training rows its own. The first rank has the model in the end, and keeps
    /// checkpoints; all have the report.
    ///
    /// # Errors
    /// As [`Trainer::fit`]; an error of one rank is an error of all.
    pub fn fit_on(
        self,
        ranks: &Ranks,
        data: impl Into<StreamData<T>>,
        watcher: &mut dyn Watcher,
    ) -> Result<(Option<Fitted<T>>, Report)> {
        T::fit(self, ranks, data.into(), watcher)
    }

    pub(crate) fn run(
        mut self,
        ranks: &Ranks,
        data: StreamData<T>,
        watcher: &mut dyn Watcher,
    ) -> Result<(Option<Fitted<T>>, Report)> {
        let first = ranks.is_first();
        // Before anything is computed.
        let folder = self.checkpoints.as_ref().filter(|_| first);
        let folder = folder.map(|c| Folder::begin(&c.folder)).transpose();
        let folder = ranks.agree(folder)?;
        let config = ranks.agree(match (&self.resumed, self.warm_start) {
            (Some(found), _) => Ok(found.settings()),
            (None, Some(model)) => warm_start::settings(model, &self.config),
            (None, None) => Ok(self.config.clone()),
        })?;
        let mut prepared = Prepared::shared(ranks.clone(), data, &config)?;
        if let Some(found) = &self.resumed {
            found.correct(&mut prepared.config);
            let same = match first {
                true => prepared
                    .fingerprint()
                    .and_then(|now| found.expect_data(&now, prepared.source())),
                false => Ok(()),
            };
            ranks.agree(same)?;
            prepared.fixed.clone_from(&found.about().fixed);
            prepared.centers.clone_from(&found.about().centers);
        } else if let Some(model) = self.warm_start {
            prepared.fixed = Some(warm_start::fixed(model));
            if self.config.method.is_none() {
                prepared.config.why = Some("it can begin at the weights of a model".into());
            }
        }
        let folder = folder.map(|folder| Ok((folder, prepared.fingerprint()?)));
        let folder = ranks.agree(folder.transpose())?;
        let fixed = prepared.fixed.clone();
        in_pool(prepared.config.threads, || {
            let mut laid_out = lay_out(prepared)?;
            if let Some(found) = self.resumed.take() {
                let begun = ranks.agree(Begun::again(found, &laid_out))?;
                watcher.begin(&laid_out.forecast);
                return begun.run(laid_out, watcher);
            }
            watcher.begin(&laid_out.forecast);
            laid_out.choose_centers(self.warm_start, watcher)?;
            let mut begun = Begun::new(self.warm_start, &laid_out)?;
            if let Some(checkpoints) = self.checkpoints.take() {
                let kept = folder.map(|(folder, fingerprint)| {
                    let ready = &laid_out.ready;
                    let about = About::new(&config, ready, fixed, fingerprint, checkpoints);
                    (folder, about)
                });
                begun = begun.kept(kept, laid_out.ready.system.shares(), ranks)?;
            }
            begun.run(laid_out, watcher)
        })
    }
}

/// A run before its first step.
struct Begun<T: Scalar> {
    state: Option<State<'static>>,
    start: Option<Bordered<T>>,
    rows: Option<WarmStart>,
    /// The folder is nobody else's as long as it is open.
    kept: Option<(Folder, Keeper)>,
}

impl<T: Scalar> Begun<T> {
    /// From zero, or from the weights of a model.
    fn new(model: Option<&Model<T>>, laid_out: &LaidOut<T>) -> Result<Self> {
        let ready = &laid_out.ready;
        let order = ready.order.as_deref();
        let start =
            model.map(|model| warm_start::weights(model, &ready.outputs, &ready.system, order));
        let (start, rows) = start.transpose()?.unzip();
        Ok(Self {
            state: None,
            start,
            rows,
            kept: None,
        })
    }

    /// Writes the first checkpoint: from here on the run survives its process.
    /// The first rank has the folder.
    fn kept(
        mut self,
        kept: Option<(Folder, About)>,
        shares: &Shares,
        ranks: &Ranks,
    ) -> Result<Self> {
        let state = start_state(shares, self.start.as_ref());
        let kept = kept.map(|(folder, about)| {
            let value = about.to_value()?;
            write_checkpoint(&folder.file(), &value, &state)?;
            let keeper = Keeper::new(folder.file(), value, about.every(), 0);
            Ok((folder, keeper))
        });
        self.kept = ranks.agree(kept.transpose())?;
        Ok(self)
    }

    /// From a checkpoint.
    fn again(found: Checkpoint, laid_out: &LaidOut<T>) -> Result<Self> {
        let ready = &laid_out.ready;
        found.expect_settings(&ready.config)?;
        expect_memory(laid_out)?;
        let (about, iteration) = (found.about(), found.iterations());
        let (value, every) = (about.to_value()?, about.every());
        let (folder, state, start) = found.into_course(&ready.system)?;
        let keeper = Keeper::new(folder.file(), value, every, iteration);
        let first = ready.ranks.is_first();
        Ok(Self {
            state,
            start,
            rows: None,
            kept: first.then_some((folder, keeper)),
        })
    }

    fn run(
        mut self,
        laid_out: LaidOut<T>,
        watcher: &mut dyn Watcher,
    ) -> Result<(Option<Fitted<T>>, Report)> {
        let course = Course {
            state: self.state,
            start: self.start,
            keeper: self.kept.as_mut().map(|(_, keeper)| keeper),
            ranks: laid_out.ready.ranks.clone(),
        };
        let (model, mut report) = solve_one(laid_out.ready(watcher)?, watcher, course)?;
        report.checkpoints = self.kept.map(|(_, keeper)| keeper.told().clone());
        report.warm_start = self.rows;
        Ok((model, report))
    }
}

/// The plan of a run that goes on was made for memory that was free then.
fn expect_memory<T: Scalar>(laid_out: &LaidOut<T>) -> Result<()> {
    let (config, needed) = (&laid_out.ready.config, laid_out.ready.memory.bytes);
    let free = memory::free().unwrap_or(u64::MAX);
    if config.memory.is_some() || needed <= free {
        return Ok(());
    }
    Err(Error::Memory {
        what: "the run as it was begun".into(),
        needed,
        available: free,
        remedy: "end other programs, or start the run again with --memory".into(),
    })
}
