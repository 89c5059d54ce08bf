//! The program `lssvm`: trains, applies and examines kernel machines.
//!
//! `main` → `run` → exit code. What was typed ([`args`]) is turned once into
//! what it means ([`settings`]); the commands hold no option logic.

mod args;
mod batches;
mod bench;
mod compress;
mod convert;
mod coverage;
mod evaluate;
mod explain;
mod inspect;
mod output;
mod path;
mod predict;
mod progress;
mod reproduce;
mod resume;
mod serve;
mod settings;
mod train;
mod tune;

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command};

/// Something failed.
const FAILURE: u8 = 1;
/// The command line or a parameter is wrong; clap uses the same code.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            let parameter = matches!(error.downcast_ref(), Some(lssvm::Error::Parameter { .. }));
            ExitCode::from(if parameter { WRONG_USAGE } else { FAILURE })
        }
    }
}

fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        Command::Train(args) => train::run(&args),
        Command::Plan(args) => train::plan(&args),
        Command::Path(args) => path::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Evaluate(args) => evaluate::run(&args),
        Command::Compress(args) => compress::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Completions { shell } => {
            let mut command = Args::command();
            clap_complete::generate(shell, &mut command, "lssvm", &mut io::stdout());
            Ok(())
        }
    }
}

/// `lssvm predict … | head` closes our output early; that is not a failure.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}
