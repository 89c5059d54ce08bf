//! The program `lssvm-mpi`: what `lssvm` does, by the ranks of an MPI job.
//!
//! ```text
//! mpirun -n 4 lssvm-mpi train DATA --model FILE
//! ```
//!
//! All but the carrying of bytes (`world`) is the program `lssvm` itself. Here it is seen to
//! that no rank waits for another that has died: a panic ends the job, and a job that is
//! ended from outside says so.

mod world;

use std::fs;
use std::io::Write;
use std::process::ExitCode;
use std::thread;

use lssvm::ranks::Ranks;
use mpi::Threading;
use mpi::environment::processor_name;
use signal_hook::consts::{SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use world::World;

fn main() -> ExitCode {
    // One thread of many calls MPI at a time, and not always the same.
    let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Serialized) else {
        complain("error: MPI was started before; call this program by mpirun or srun");
        return ExitCode::FAILURE;
    };
    if threading < Threading::Serialized {
        complain("error: this MPI allows calls from one thread only; use one built with threads");
        return ExitCode::FAILURE;
    }
    let ranks = Ranks::new(World);
    end_all_on_panic(ranks.rank());
    hear_signals(ranks.rank());
    let code = lssvm_cli::run_shared(&ranks, threads(&ranks));
    drop(universe);
    code
}

/// The others would wait for ever for a rank that has panicked.
fn end_all_on_panic(rank: usize) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        before(panic);
        complain(&format!("rank {rank}: this is a bug; the job is ended"));
        world::abort();
    }));
}

/// SIGUSR1, which mpirun and Slurm pass on, asks to stop after the iteration. SIGTERM is what
/// mpirun sends to all ranks when one has died.
fn hear_signals(rank: usize) {
    // Without a handler both end the program, which is no loss.
    let Ok(mut signals) = Signals::new([SIGUSR1, SIGTERM]) else {
        return;
    };
    thread::spawn(move || {
        for signal in &mut signals {
            if signal == SIGUSR1 {
                if rank == 0 {
                    complain("stopping after this iteration");
                }
                lssvm_cli::ask_to_stop();
                continue;
            }
            complain(&format!(
                "rank {rank}: the job was ended, because a rank has died or somebody wished it; \
                 with --checkpoint FOLDER a run goes on: lssvm-mpi train --resume FOLDER"
            ));
            let _ = emulate_default_handler(signal);
        }
    });
}

/// The cores that this rank may use, shared with the ranks that may use the same.
fn threads(ranks: &Ranks) -> usize {
    let available = thread::available_parallelism().map_or(1, |cores| cores.get());
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status
        .lines()
        .find(|line| line.starts_with("Cpus_allowed_list"));
    let machine = processor_name().unwrap_or_default();
    let own = format!("{machine} {}", allowed.unwrap_or_default());
    let all = ranks.all_gather(own.as_bytes());
    let same = all.iter().filter(|other| *other == own.as_bytes()).count();
    (available / same.max(1)).max(1)
}

fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
