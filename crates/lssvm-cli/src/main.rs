//! The program `lssvm`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lssvm_cli::run_alone()
}
