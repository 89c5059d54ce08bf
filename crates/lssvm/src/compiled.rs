//! The large entry points, compiled once for both number types, here.
//!
//! A generic function is compiled again in every crate that calls it, with all that it calls:
//! the program, the server, the Python module and each test would have a library of their own.
//! A function of a number type is compiled with this crate. So what people call is generic,
//! and calls the function of its number type, which is the generic one of the room that it
//! belongs to. That is why [`Scalar`], of the first room, knows of all others here; nothing
//! else needs to.

use std::path::Path;

use crate::Result;
use crate::data::{self, Dataset, Labels, Parts, ReadOptions, StreamParts};
use crate::kernel::{Samples, SamplesRef};
use crate::linalg::{MatMut, Matrix, Points, Scalar};
use crate::model::{self, Explanation, Model};
use crate::ranks::Ranks;
use crate::system::Bordered;
use crate::train::{
    self, CPath, Compression, Config, Data, Fitted, Forecast, Report, StreamData, Trainer, Watcher,
};
use crate::tune::{self, Outcome, Space, TuneLimits, TuneWatcher};

/// Functions of the number types, each by its name, and the generic function that it is.
macro_rules! compiled {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) -> $result:ty = $generic:path;)*) => {
        /// What is compiled for a number type as a whole.
        pub trait Compiled: Sized {
            $(
                #[doc(hidden)]
                fn $name($($argument: $kind),*) -> $result
                where
                    Self: Scalar;
            )*
        }
        compiled!(f32: $(fn $name($($argument: $kind),*) -> $result = $generic;)*);
        compiled!(f64: $(fn $name($($argument: $kind),*) -> $result = $generic;)*);
    };
    ($number:ty: $(
        fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty = $generic:path;
    )*) => {
        impl Compiled for $number {
            $(
                fn $name($($argument: $kind),*) -> $result {
                    $generic($($argument),*)
                }
            )*
        }
    };
}

compiled! {
    fn read(path: &Path, options: &ReadOptions) -> Result<Parts<Self>> = data::compiled::read;
    fn parse(path: &Path, bytes: Vec<u8>, options: &ReadOptions) -> Result<Parts<Self>>
        = data::compiled::parse;
    fn open(path: &Path, options: &ReadOptions) -> Result<StreamParts<Self>>
        = data::compiled::open;
    fn prepare(model: &Model<Self>, rows: Points<Self>) -> Result<Samples<Self>>
        = Model::transformed;
    fn score(
        model: &Model<Self>,
        scores: MatMut<'_, Self>,
        rows: SamplesRef<'_, Self>,
        first_row: usize,
    ) -> Result<()> = Model::add_scores;
    fn explain(
        model: &Model<Self>,
        x: Matrix<Self>,
        output: Option<usize>,
        count: usize,
    ) -> Result<Explanation> = Model::taken_apart;
    fn save(model: &Model<Self>, path: &Path) -> Result<()> = model::save::save;
    fn to_bytes(model: &Model<Self>) -> Result<Vec<u8>> = model::save::to_bytes;
    fn fit(
        trainer: Trainer<'_, Self>,
        ranks: &Ranks,
        data: StreamData<Self>,
        watcher: &mut dyn Watcher,
    ) -> Result<(Option<Fitted<Self>>, Report)> = Trainer::run;
    fn fit_kernel_matrix(
        omega: &Matrix<Self>,
        labels: Labels,
        weights: Option<Vec<f64>>,
        config: &Config,
        watcher: &mut dyn Watcher,
    ) -> Result<(Bordered<Self>, Report)> = train::solve_kernel_matrix;
    fn forecast(ranks: &Ranks, data: StreamData<Self>, config: &Config) -> Result<Forecast>
        = train::lay_out_forecast;
    fn compare(
        data: Data<Self>,
        configs: &[Config],
        watcher: &mut dyn Watcher,
    ) -> Result<Vec<Option<Report>>> = train::compare::compare_all;
    fn path(
        data: StreamData<Self>,
        config: &Config,
        cs: &[f64],
        watcher: &mut dyn Watcher,
    ) -> Result<CPath> = train::path::path_of;
    fn compress(
        model: &Model<Self>,
        centers: usize,
        seed: u64,
        threads: usize,
        watcher: &mut dyn Watcher,
    ) -> Result<(Model<Self>, Compression)> = train::compress::compress_model;
    fn tune(
        data: Dataset<Self>,
        space: &Space,
        base: &Config,
        limits: TuneLimits,
        watcher: &mut dyn TuneWatcher,
    ) -> Result<Outcome> = tune::search_all;
}
