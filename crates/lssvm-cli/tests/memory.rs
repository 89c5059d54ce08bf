//! The memory promise: what is planned is kept, whatever the budget.

mod common;

use std::process::Command;

use assert_cmd::assert::OutputAssertExt;
use common::{Folder, number};

/// Address space beyond the budget: code, stacks and what the allocator sets aside
/// without using it.
const BESIDE: u64 = 400_000_000;

/// 4,000 rows of waves in two classes: the lower half of Ω takes 42 MB.
fn waves() -> String {
    let mut text = String::new();
    for i in 0..4000 {
        for j in 0..12 {
            let value = ((i * 37 + j * 101 + i * j) as f64 * 0.7311).sin();
            text += &format!("{value:.5},");
        }
        text += ["a\n", "b\n"][(i / 3) % 2];
    }
    text
}

#[test]
fn a_budget_is_kept_under_a_hard_limit() {
    let folder = Folder::new();
    folder.write("waves.csv", waves());
    for (megabytes, kept) in [(250, Some("full")), (150, Some("half")), (122, None)] {
        let budget = megabytes * 1_000_000;
        let line = format!(
            "train waves.csv --method pcg --iterations 3 --threads 2 --memory {megabytes}M \
             --json r.json"
        );
        // The shell limits the address space of the program that takes its place.
        let program = folder.command(&line);
        let mut shell = Command::new("sh");
        shell
            .current_dir(folder.path("."))
            .env("MALLOC_ARENA_MAX", "2")
            .args(["-c", "ulimit -v $0 && exec \"$@\""])
            .arg(((budget + BESIDE) / 1024).to_string())
            .arg(program.get_program())
            .args(program.get_args());
        shell.assert().success();
        let report = folder.json("r.json");
        assert_eq!(report["kernel_kept"].as_str(), kept, "{megabytes} MB");
        for what in ["peak_memory_bytes", "planned_memory_bytes"] {
            let bytes = number(&report, what);
            assert!(
                bytes <= budget as f64,
                "{what} with {megabytes} MB: {bytes}"
            );
        }
    }
}

#[test]
fn too_little_memory_is_said_before_any_is_taken() {
    let folder = Folder::new();
    folder.write("waves.csv", waves());
    folder.fails(
        "train waves.csv --method pcg --memory 105M",
        1,
        &["--memory"],
    );
    // A matrix that is not kept is no reason to give up.
    let written = folder.run("plan waves.csv --memory 122M --method pcg");
    assert!(written.stdout.contains("recomputed"), "{}", written.stdout);
}
