//! The programs `lssvm` and `lssvm-mpi`: train, apply and examine kernel machines.
//!
//! `main` → `run` → exit code. What was typed (`args`) is turned once into
//! what it means (`settings`); the commands hold no option logic.
//!
//! This is a library for the sake of the second program, which is a crate of its own and
//! shares the work of some commands among ranks; it has no other use.

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
mod together;
mod train;
mod tune;

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use lssvm::ranks::Ranks;

use args::{Args, Command, SHARED_NAME, SharedArgs, SharedCommand};

/// Something failed.
const FAILURE: u8 = 1;
/// The command line or a parameter is wrong; clap uses the same code.
const WRONG_USAGE: u8 = 2;

/// The program `lssvm`: everything in one process.
pub fn run_alone() -> ExitCode {
    exit_code(run(Args::parse()))
}

/// The program `lssvm-mpi`: one of several ranks that share the work. `threads`: of each, if
/// none are asked for.
pub fn run_shared(ranks: &Ranks, threads: usize) -> ExitCode {
    output::speak_for(ranks, SHARED_NAME);
    let args = match SharedArgs::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and usage, once.
            if ranks.is_first() {
                let _ = error.print();
            }
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let threads = Some(threads);
    exit_code(match args.command {
        SharedCommand::Train(mut args) => {
            args.threads = args.threads.or(threads.filter(|_| args.resume.is_none()));
            train::run(ranks, &args)
        }
        SharedCommand::Predict(mut args) => {
            args.threads = args.threads.or(threads);
            predict::run(ranks, &args)
        }
        SharedCommand::Evaluate(mut args) => {
            args.threads = args.threads.or(threads);
            evaluate::run(ranks, &args)
        }
    })
}

/// Asks a run to end after the iteration, as Ctrl-C does.
pub fn ask_to_stop() {
    progress::ask_to_stop();
}

fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    if is_closed_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    output::complain(&error);
    let usage = matches!(
        error.downcast_ref(),
        Some(lssvm::Error::Parameter { .. } | lssvm::Error::Elsewhere { usage: true, .. })
    );
    ExitCode::from(if usage { WRONG_USAGE } else { FAILURE })
}

fn run(args: Args) -> anyhow::Result<()> {
    let alone = &Ranks::default();
    match args.command {
        Command::Train(args) => train::run(alone, &args),
        Command::Plan(args) => train::plan(&args),
        Command::Path(args) => path::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Predict(args) => predict::run(alone, &args),
        Command::Evaluate(args) => evaluate::run(alone, &args),
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
