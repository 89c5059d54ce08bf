//! What can be typed, and the help that teaches it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Parser, Subcommand};
use lssvm::data::{Column, Format, ImageShape, Task};
use lssvm::kernel::{Gamma, KernelName};
use lssvm::linalg::Precision;
use lssvm::memory::Size;
use lssvm::preprocess::PipelineSpec;
use lssvm::solve::Method;
use lssvm::solve::centers::Select;
use lssvm::train::{AUTO, ClassWeight};

const AFTER_HELP: &str = "\
Examples:
  lssvm train data/mnist --model mnist.lssvm        train on a folder with a test part
  lssvm train flowers.csv --label species --model flowers.lssvm --validation 0.2
  lssvm tune flowers.csv --label species            choose the settings, then train --config best.toml
  lssvm predict flowers.lssvm new.csv               one prediction a line
  lssvm evaluate mnist.lssvm data/mnist             error rate and confusion matrix
  lssvm explain mnist.lssvm data/mnist --row 9      which training rows speak for it
  lssvm inspect mnist.lssvm                         what a model is made of
  lssvm serve mnist.lssvm --port 8080               a prediction server, and a page to draw on
  lssvm reproduce mnist --quick                     the paper's figures, small, in one page";

const TRAIN_EXAMPLES: &str = "\
Examples:
  lssvm train data/mnist --model mnist.lssvm
  lssvm train flowers.csv --label species --validation 0.2 --model flowers.lssvm";

const PATH_EXAMPLES: &str = "\
Examples:
  lssvm path flowers.csv --label species --report path.html
  lssvm path flowers.csv --label species --one-standard-error --model flowers.lssvm";

const TUNE_EXAMPLES: &str = "\
Examples:
  lssvm tune flowers.csv --label species --time 10m
  lssvm train flowers.csv --config best.toml --model flowers.lssvm";

const PREDICT_EXAMPLES: &str = "\
Examples:
  lssvm predict flowers.lssvm new.csv
  lssvm predict flowers.lssvm new.csv --probabilities --output probabilities.csv";

const SERVE_EXAMPLES: &str = "\
Examples:
  lssvm serve flowers.lssvm --port 8080
  lssvm serve flowers.lssvm --host 0.0.0.0 --no-page --max-body 8M";

const CONVERT_EXAMPLES: &str = "\
Examples:
  lssvm convert clicks.csv.gz clicks.safetensors --label clicked
  lssvm convert url_combined.svm url.safetensors --features 3231961";

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  lssvm reproduce mnist --quick
  lssvm reproduce mnist --only fig2a --report fig2a.html";

/// Kernel least-squares support vector machines for large data on ordinary
/// machines: classification and regression.
#[derive(Debug, Parser)]
#[command(name = "lssvm", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a model on a file or a folder
    #[command(after_help = TRAIN_EXAMPLES)]
    Train(Box<TrainArgs>),
    /// Say what train would do with the same options: method, memory, time
    Plan(Box<TrainArgs>),
    /// Leave-one-out errors for many values of c, from one factorisation
    #[command(after_help = PATH_EXAMPLES)]
    Path(Box<PathArgs>),
    /// Choose preprocessing, kernel, its parameters and c by leave-one-out errors
    #[command(after_help = TUNE_EXAMPLES)]
    Tune(Box<TuneArgs>),
    /// Make a file of any other that is read row by row, for data larger than memory
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ConvertArgs),
    /// Predict classes or values for the rows of a file
    #[command(after_help = PREDICT_EXAMPLES)]
    Predict(PredictArgs),
    /// Compare predictions with the labels of a file
    Evaluate(EvaluateArgs),
    /// Refit a model on fewer of its rows, and say what that costs
    #[command(after_help = COMPRESS_EXAMPLES)]
    Compress(CompressArgs),
    /// Say which training rows speak most for and against a prediction
    Explain(ExplainArgs),
    /// Show what a model is made of
    Inspect(InspectArgs),
    /// Answer prediction requests over HTTP (Open Inference Protocol), with a page to try the model
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Repeat the experiments of the paper (mnist, cifar10), or of a file of your own
    #[command(after_help = REPRODUCE_EXAMPLES)]
    Reproduce(ReproduceArgs),
    /// Measure this machine: the parts of a training step against bare matrix products
    Bench(BenchArgs),
    /// Print a completion script, e.g. lssvm completions bash > ~/.local/share/bash-completion/completions/lssvm
    Completions {
        /// The shell to complete in
        shell: clap_complete::Shell,
    },
}

/// The program whose ranks share the work.
pub const SHARED_NAME: &str = "lssvm-mpi";

const SHARED_EXAMPLES: &str = "\
Examples:
  mpirun -n 4 lssvm-mpi train clicks.safetensors --method mp --model clicks.lssvm
  mpirun -n 4 lssvm-mpi predict clicks.lssvm new.safetensors --output predictions.csv
  mpirun -n 4 lssvm-mpi evaluate clicks.lssvm new.safetensors";

/// Kernel least-squares support vector machines on several machines: commands of lssvm whose
/// work is shared by the ranks of an MPI job. Each reads its own rows of the data, which
/// must be where every rank finds them.
#[derive(Debug, Parser)]
#[command(name = SHARED_NAME, version, after_help = SHARED_EXAMPLES, max_term_width = 100,
    color = clap::ColorChoice::Never)]
pub struct SharedArgs {
    #[command(subcommand)]
    pub command: SharedCommand,
}

#[derive(Debug, Subcommand)]
pub enum SharedCommand {
    /// Train a model on a file or a folder (methods: pcg, gauss-seidel, centers, mp, kaczmarz,
    /// kaczmarz-mp, nystrom)
    Train(Box<TrainArgs>),
    /// Predict classes or values for the rows of a file
    Predict(PredictArgs),
    /// Compare predictions with the labels of a file
    Evaluate(EvaluateArgs),
}

/// How files are read.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Reading files")]
pub struct ReadArgs {
    /// idx, cifar10, libsvm, csv, npy, npz, parquet, arrow or lssvm [default: recognised from the content]
    #[arg(long)]
    pub format: Option<Format>,
    /// Label column by name, or else by number (1 is the first, -1 the last); several, with commas, are
    /// the targets of a multi-output regression [default: label, class, target or y, else the last]
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    pub label: Option<Vec<Column>>,
    /// Column of a table (CSV, Parquet, Arrow), by name or number, that says what each row counts in training
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub weights: Option<Column>,
    /// Whether the first line of a CSV file names the columns [default: guessed]
    #[arg(long)]
    pub header: Option<bool>,
    /// What separates the columns of a CSV file, e.g. ';' or '\t' [default: guessed]
    #[arg(long)]
    pub delimiter: Option<String>,
    /// Number of features, where LIBSVM text does not show them all [default: the largest index]
    #[arg(long, value_name = "M")]
    pub features: Option<usize>,
    /// Index of the first feature in LIBSVM text, 0 or 1 [default: 0 if a 0 occurs, else 1]
    #[arg(long)]
    pub index_base: Option<u32>,
}

/// How often the truth shall be held.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Coverage")]
pub struct CoverageArgs {
    /// For regression: intervals that hold this share of true values (0.9), each of several outputs
    /// for itself; the model must have been trained with --loo or --validation
    #[arg(long, value_name = "COVERAGE", value_parser = share, allow_hyphen_values = true,
        conflicts_with = "sets")]
    pub interval: Option<f64>,
    /// For classification: sets of classes that hold this share of true classes (0.9); the model must
    /// have been trained with --loo or --validation
    #[arg(long, value_name = "COVERAGE", value_parser = share, allow_hyphen_values = true)]
    pub sets: Option<f64>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct TrainArgs {
    /// A data file (IDX, CIFAR-10, LIBSVM, CSV, NPY, NPZ, also gzipped, or one that convert made), or a folder with MNIST's or
    /// CIFAR-10's files or train.* and test.*
    pub data: Option<PathBuf>,
    /// Where the model goes
    #[arg(long, short)]
    pub model: Option<PathBuf>,
    /// Test data: their error is followed and reported, and decides nothing
    #[arg(long)]
    pub test: Option<PathBuf>,
    /// Share of the training rows (0.1), or a file, whose error chooses the iteration and ends the run
    #[arg(long)]
    pub validation: Option<String>,
    /// A TOML file with any of these options; the command line comes first
    #[arg(long)]
    pub config: Option<PathBuf>,
    /// Write results as JSON to this file (- for the terminal)
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Write a page to look at (HTML) to this file, and its numbers beside it as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print the effective configuration as TOML and stop
    #[arg(long)]
    pub print_config: bool,

    /// Keep the state of the run in this folder, so that --resume can go on after a crash
    #[arg(long, value_name = "FOLDER", help_heading = "Long runs")]
    pub checkpoint: Option<PathBuf>,
    /// How often: 90s, 10m or 1h [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Long runs")]
    pub every: Option<f64>,
    /// Go on with the run in this folder; all settings are there
    #[arg(long, value_name = "FOLDER", help_heading = "Long runs", conflicts_with_all = ["checkpoint", "warm_start"])]
    pub resume: Option<PathBuf>,
    /// Begin at the weights of this model, with its preprocessing and kernel: more iterations,
    /// another c, other rows
    #[arg(long, value_name = "MODEL", help_heading = "Long runs")]
    pub warm_start: Option<PathBuf>,

    /// classification or regression [default: decided by the labels]
    #[arg(long, help_heading = "What to learn")]
    pub task: Option<Task>,
    /// Use the first N training rows only
    #[arg(long, value_name = "N", help_heading = "What to learn")]
    pub train_rows: Option<usize>,
    /// See each training image in other ways too: shift=1 (by up to one pixel in each
    /// direction: 9 times the rows), flip (left to right), rotate=10 (degrees); or several,
    /// as in shift=1,flip. Rows are made as they are needed, not stored
    #[arg(long, value_name = "WAYS", help_heading = "What to learn")]
    pub augment: Option<lssvm::data::Augment>,
    /// Shape of the image that a row is: 28x28, 3x32x32 [default: from the data]
    #[arg(long, help_heading = "What to learn")]
    pub image_shape: Option<ImageShape>,
    /// Steps applied to the features, with commas: center, unit-norm, window, fourier, standardize,
    /// max-abs, min-max; parameters follow colons (window:c=0.004,fourier:exponent=1:transform=2d);
    /// none for none [default: center,unit-norm for images, standardize for tables, unit-norm for
    /// sparse data]
    #[arg(long, value_name = "STEPS", help_heading = "What to learn")]
    pub preprocess: Option<PipelineSpec>,

    /// linear, poly, rbf, laplacian or sigmoid [default: poly for images, rbf for tables]
    #[arg(long, help_heading = "Kernel and regularisation")]
    pub kernel: Option<KernelName>,
    /// Kernel coefficient: a number, scale (1 / (features × variance)) or auto (1 / features)
    /// [default: scale]
    #[arg(
        long,
        allow_hyphen_values = true,
        help_heading = "Kernel and regularisation"
    )]
    pub gamma: Option<Gamma>,
    /// Constant term of poly and sigmoid [default: 0]
    #[arg(
        long,
        allow_hyphen_values = true,
        help_heading = "Kernel and regularisation"
    )]
    pub coef0: Option<f64>,
    /// Power of poly [default: 4]
    #[arg(long, help_heading = "Kernel and regularisation")]
    pub degree: Option<u32>,
    /// Regularisation weight: larger follows the data more closely [default: 1e4 for images, 10 for
    /// tables]
    #[arg(
        long,
        short,
        allow_hyphen_values = true,
        help_heading = "Kernel and regularisation"
    )]
    pub c: Option<f64>,
    /// What the rows of each class count: balanced (all classes the same), or weights by name:
    /// spam=5,ham=1
    #[arg(
        long,
        value_name = "WEIGHTS",
        help_heading = "Kernel and regularisation"
    )]
    pub class_weight: Option<ClassWeight>,

    /// auto, exact, pcg, gauss-seidel, centers, mp, kaczmarz, kaczmarz-mp or nystrom [default: auto:
    /// exact up to 15,000 rows, else pcg if the kernel matrix fits in memory, else gauss-seidel, or
    /// centers where that takes too long]
    #[arg(long, help_heading = "Method")]
    pub method: Option<MethodChoice>,
    /// J, the training rows of a block [default: a tenth of the rows, at most 2000; 4096 for
    /// gauss-seidel, more in a single pass]
    #[arg(long, value_name = "J", help_heading = "Method")]
    pub block_size: Option<usize>,
    /// Rank of the preconditioner of pcg [default: chosen from rows and features]
    #[arg(long, value_name = "M", help_heading = "Method")]
    pub rank: Option<usize>,

    /// P: makes a model of so many rows (--method centers), fitted on all [default: as
    /// many as memory and some minutes, or --time, allow]
    #[arg(long, value_name = "P", help_heading = "Method")]
    pub centers: Option<usize>,
    /// How centres are chosen: uniform, or pivoted (randomly pivoted Cholesky: rows that others
    /// tell little of) [default: uniform]
    #[arg(long, value_name = "WAY", help_heading = "Method")]
    pub select: Option<Select>,
    /// Most iterations [default: 300 for pcg, 50 for centers, 4 for gauss-seidel, 6 for nystrom, else
    /// two passes over the data]
    #[arg(long, short, help_heading = "Method")]
    pub iterations: Option<usize>,
    /// Most seconds, the kernel matrix included; the iteration that passes it is finished
    #[arg(
        long,
        value_name = "SECONDS",
        allow_hyphen_values = true,
        help_heading = "Method"
    )]
    pub time: Option<f64>,
    /// Stop at this relative residual, or when the weights change less than this in a whole pass
    /// [default: 1e-3 for pcg, gauss-seidel and centers, else 1e-4]
    #[arg(long, allow_hyphen_values = true, help_heading = "Method")]
    pub tolerance: Option<f64>,
    /// Stop when the validation error has not improved for so many iterations [default: 20 for pcg, 2
    /// for gauss-seidel, else a pass over the data]
    #[arg(long, help_heading = "Method")]
    pub patience: Option<usize>,
    /// Also tell the leave-one-out error: every training row judged by a model that never saw it,
    /// without training one; in closed form with exact, as an estimate whose error is stated with
    /// pcg (the choice for many rows)
    #[arg(long, help_heading = "Method")]
    pub loo: bool,
    /// Average the weights of S runs with different seeds
    #[arg(long, value_name = "S", help_heading = "Method")]
    pub averages: Option<usize>,
    /// Follow test and validation error every so many iterations; 0: only at the end [default: 1]
    #[arg(long, value_name = "EVERY", help_heading = "Method")]
    pub follow: Option<usize>,

    /// Seed of everything random [default: 1]
    #[arg(long, allow_hyphen_values = true, help_heading = "Machine")]
    pub seed: Option<u64>,
    /// Number of threads [default: all cores]
    #[arg(long, short, help_heading = "Machine")]
    pub threads: Option<usize>,
    /// Most memory to use: 8G, 2500M [default: three quarters of what is free]
    #[arg(long, help_heading = "Machine")]
    pub memory: Option<Size>,
    /// f32 or f64 [default: f32]
    #[arg(long, value_parser = precision, help_heading = "Machine")]
    pub precision: Option<Precision>,

    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Debug, clap::Args)]
pub struct PathArgs {
    /// Number of values of c
    #[arg(long, default_value_t = 50, value_name = "N", help_heading = "Path")]
    pub values: usize,
    /// The smallest c
    #[arg(long, default_value_t = 1e-3, value_name = "C", help_heading = "Path")]
    pub from: f64,
    /// The largest c
    #[arg(long, default_value_t = 1e4, value_name = "C", help_heading = "Path")]
    pub to: f64,
    /// Choose the smallest c within one standard error of the best
    #[arg(long, help_heading = "Path")]
    pub one_standard_error: bool,
    /// Write the settings with the chosen c to this file, for train --config
    #[arg(long, short, value_name = "FILE", help_heading = "Path")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub train: TrainArgs,
}

#[derive(Debug, clap::Args)]
pub struct TuneArgs {
    /// Training data, as for train; a test part is not looked at
    pub data: PathBuf,
    /// Where the chosen settings go, for train --config
    #[arg(long, short, default_value = "best.toml", value_name = "FILE")]
    pub output: PathBuf,
    /// Most time: 90s, 10m or 1h; what is best by then is kept
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub time: Option<f64>,
    /// Most rows of the last round [default: 15000, or as many as fit in memory]
    #[arg(long, value_name = "N")]
    pub rows: Option<usize>,
    /// Try every setting on the rows of the last round, not only the better ones
    #[arg(long)]
    pub exhaustive: bool,
    /// A TOML file with lists to search: preprocess, kernels, gamma (multiples of scale), degree, c
    /// [default: what is worth trying for images or tables]
    #[arg(long, value_name = "FILE")]
    pub space: Option<PathBuf>,
    /// Of settings that differ in c alone, take the smallest c within one standard error of the best
    #[arg(long)]
    pub one_standard_error: bool,
    /// Write all trials as JSON to this file (- for the terminal)
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Write a page to look at (HTML) to this file
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// classification or regression [default: decided by the labels]
    #[arg(long)]
    pub task: Option<Task>,
    /// Shape of the image that a row is: 28x28, 3x32x32 [default: from the data]
    #[arg(long)]
    pub image_shape: Option<ImageShape>,
    /// What the rows of each class count: balanced, or weights by name: spam=5,ham=1
    #[arg(long, value_name = "WEIGHTS")]
    pub class_weight: Option<ClassWeight>,
    /// Seed of the samples of rows [default: 1]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Number of threads [default: all cores]
    #[arg(long, short)]
    pub threads: Option<usize>,
    /// Most memory to use: 8G, 2500M [default: three quarters of what is free]
    #[arg(long)]
    pub memory: Option<Size>,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Debug, clap::Args)]
pub struct ConvertArgs {
    /// A data file or a folder, as for train; CSV and LIBSVM text, also gzipped, may be larger than memory
    pub data: PathBuf,
    /// Where the converted data go; if there is a test part, a folder for two files
    pub out: PathBuf,
    /// Features are f32 or f64, unless all are whole numbers from 0 to 255, which are kept as bytes
    #[arg(long, value_parser = precision, default_value_t)]
    pub precision: Precision,
    /// Most memory for what cannot be read piece by piece: 8G, 2500M [default: three quarters of what
    /// is free]
    #[arg(long)]
    pub memory: Option<Size>,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Debug, clap::Args)]
pub struct PredictArgs {
    /// The model
    pub model: PathBuf,
    /// Rows to predict: any format that train reads; labels are not needed; - for standard input
    #[arg(value_parser = or_stdin())]
    pub data: PathBuf,
    /// Where the predictions go [default: the terminal]
    #[arg(long, short)]
    pub output: Option<PathBuf>,
    /// Write a CSV table with the score of each class (or output)
    #[arg(long, conflicts_with_all = ["probabilities", "interval", "sets"])]
    pub scores: bool,
    /// Write a CSV table with the probability of each class: calibrated if the model was trained with
    /// --loo or --validation, else the softmax of the scores, which claims too little
    #[arg(long, conflicts_with_all = ["interval", "sets"])]
    pub probabilities: bool,
    /// Write JSON: one object a row
    #[arg(long)]
    pub json: bool,
    /// Number of threads [default: all cores]
    #[arg(long, short)]
    pub threads: Option<usize>,
    /// Most memory to use: 8G, 2500M; rows are read as they are needed where the format allows that
    /// [default: three quarters of what is free]
    #[arg(long)]
    pub memory: Option<Size>,
    #[command(flatten)]
    pub coverage: CoverageArgs,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Debug, clap::Args)]
pub struct EvaluateArgs {
    /// The model
    pub model: PathBuf,
    /// Rows with labels; of a folder, its test part; - for standard input
    #[arg(value_parser = or_stdin())]
    pub data: PathBuf,
    /// Write results as JSON to this file (- for the terminal)
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Number of threads [default: all cores]
    #[arg(long, short)]
    pub threads: Option<usize>,
    /// Most memory to use: 8G, 2500M; rows are read as they are needed where the format allows that
    /// [default: three quarters of what is free]
    #[arg(long)]
    pub memory: Option<Size>,
    #[command(flatten)]
    pub coverage: CoverageArgs,
    #[command(flatten)]
    pub read: ReadArgs,
}

const COMPRESS_EXAMPLES: &str = "\
Examples:
  lssvm compress m.lssvm --centers 2000 --output small.lssvm
  lssvm compress m.lssvm --centers 2000 --output small.lssvm --test data/mnist";

#[derive(Debug, clap::Args)]
pub struct CompressArgs {
    /// The model
    pub model: PathBuf,
    /// Rows that the smaller model is made of
    #[arg(long, value_name = "P")]
    pub centers: usize,
    /// Where the smaller model goes
    #[arg(long, short)]
    pub output: PathBuf,
    /// Rows with labels, on which both models are compared; of a folder, its test part
    #[arg(long, value_name = "DATA")]
    pub test: Option<PathBuf>,
    /// Write what it cost as JSON to this file (- for the terminal)
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Seed of the choice of rows
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of threads [default: all cores]
    #[arg(long, short)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// The model
    pub model: PathBuf,
    /// Rows, one of which is explained; of a folder, its test part
    pub data: PathBuf,
    /// Which row, counted from 1
    #[arg(long, value_name = "I")]
    pub row: usize,
    /// Explain the score of this class [default: the one that is predicted]
    #[arg(long)]
    pub class: Option<String>,
    /// Training rows shown for it, and as many against it
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub count: usize,
    /// Write the rows as pictures (HTML) to this file, if they are images
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    /// The model
    pub model: PathBuf,
    /// Print everything as JSON
    #[arg(long, conflicts_with = "config")]
    pub json: bool,
    /// Print the configuration it was trained with as TOML, for train --config
    #[arg(long)]
    pub config: bool,
}

#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// The model
    pub model: PathBuf,
    /// Port to listen at; 0 for any that is free
    #[arg(long, short, default_value_t = 8080)]
    pub port: u16,
    /// Address to listen at: 0.0.0.0 or :: for all of this machine, which others can then reach
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    pub host: IpAddr,
    /// Name of the model in paths [default: that of the file]
    #[arg(long)]
    pub name: Option<String>,
    /// Neither the page at / nor explanations, both of which show training rows
    #[arg(long)]
    pub no_page: bool,
    /// Number of threads that predict [default: all cores]
    #[arg(long, short)]
    pub threads: Option<usize>,
    /// Most bytes of a request: 64M
    #[arg(
        long,
        default_value = "64M",
        value_name = "SIZE",
        help_heading = "Limits"
    )]
    pub max_body: Size,
    /// Most connections at the same time
    #[arg(long, default_value_t = 64, value_name = "N", help_heading = "Limits")]
    pub max_connections: usize,
    /// Most time from the first byte of a request to the last of its answer: 60s
    #[arg(long, default_value = "60s", value_parser = duration, help_heading = "Limits")]
    pub timeout: f64,
    /// Most time for the headers of a request: 10s
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIMEOUT", help_heading = "Limits")]
    pub header_timeout: f64,
    /// How long a connection may stay open without a request: 60s
    #[arg(long, default_value = "60s", value_parser = duration, value_name = "TIMEOUT", help_heading = "Limits")]
    pub idle_timeout: f64,
}

#[derive(Debug, clap::Args)]
pub struct ReproduceArgs {
    /// mnist, cifar10, or a TOML file of the same kind
    pub experiment: String,
    /// Folder of the data [default: what the experiment says]
    #[arg(long)]
    pub data: Option<PathBuf>,
    /// A small version that takes minutes: fewer rows and iterations
    #[arg(long)]
    pub quick: bool,
    /// Only these figures, with commas: fig2a,fig2c
    #[arg(long, value_delimiter = ',', value_name = "FIGURES")]
    pub only: Vec<String>,
    /// Where the page goes; its numbers go beside it as JSON [default: EXPERIMENT.html]
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write every plot as an SVG file to this folder
    #[arg(long, value_name = "FOLDER")]
    pub svg: Option<PathBuf>,
    /// Number of threads [default: all cores]
    #[arg(long, short)]
    pub threads: Option<usize>,
    /// Most memory to use; the kernel matrix is kept if it fits [default: three quarters of what is
    /// free]
    #[arg(long)]
    pub memory: Option<Size>,
}

#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    /// N, training rows
    #[arg(long, default_value_t = 60_000)]
    pub rows: usize,
    /// M, features
    #[arg(long, default_value_t = 784)]
    pub features: usize,
    /// K, classes
    #[arg(long, default_value_t = 10)]
    pub outputs: usize,
    /// J, rows of a block
    #[arg(long, default_value_t = 2_000)]
    pub block_size: usize,
    /// Rows to predict
    #[arg(long, default_value_t = 10_000)]
    pub queries: usize,
    /// Measure products with the whole kernel matrix instead, kept in memory: 4 × N²/2 bytes
    #[arg(long)]
    pub full: bool,
    /// Measure instead how long reading these data takes, and normalising their rows
    #[arg(long, value_name = "DATA", conflicts_with = "full")]
    pub data: Option<PathBuf>,
    /// Repetitions; the best counts
    #[arg(long, default_value_t = 3)]
    pub repeat: usize,
    /// Number of threads [default: all cores]
    #[arg(long, short)]
    pub threads: Option<usize>,
    /// Write results as JSON to this file (- for the terminal)
    #[arg(long)]
    pub json: Option<PathBuf>,
}

/// A method by its name; none for `auto`.
#[derive(Debug, Clone, Copy)]
pub struct MethodChoice(pub Option<Method>);

impl FromStr for MethodChoice {
    type Err = lssvm::Error;

    fn from_str(text: &str) -> lssvm::Result<Self> {
        match text {
            AUTO => Ok(Self(None)),
            name => name.parse().map(|method| Self(Some(method))),
        }
    }
}

/// A path; `-` is standard input.
fn or_stdin() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| match path == Path::new("-") && cfg!(unix) {
        true => PathBuf::from("/dev/stdin"),
        false => path,
    })
}

/// Seconds of 90s, 10m or 1h; a bare number is seconds.
pub fn duration(text: &str) -> Result<f64, String> {
    let (number, factor) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        _ => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value * factor),
        _ => Err("must be a time such as 90s, 10m or 1h".to_string()),
    }
}

/// A share between 0 and 1.
fn share(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value < 1.0 => Ok(value),
        _ => Err("must be between 0 and 1, such as 0.9 for 90 %".to_string()),
    }
}

fn precision(text: &str) -> Result<Precision, String> {
    match text {
        "f32" => Ok(Precision::F32),
        "f64" => Ok(Precision::F64),
        _ => Err("must be f32 or f64".to_string()),
    }
}
