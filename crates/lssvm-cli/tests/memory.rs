//! The memory promise: what is planned is kept, whatever the budget.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assert_cmd::assert::OutputAssertExt;
use common::{Folder, Written, number};

/// A control group that kills who takes more memory than this; none where groups
/// cannot be made, which takes an administrator.
struct Limit(PathBuf);

impl Limit {
    fn new(bytes: u64, name: &str) -> Option<Self> {
        let versions = [
            ("/sys/fs/cgroup", "memory.max"),
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        ];
        versions.into_iter().find_map(|(root, file)| {
            let name = format!("lssvm-{}-{name}", std::process::id());
            let folder = Path::new(root).join(name);
            fs::create_dir(&folder).ok()?;
            let group = Self(folder);
            // Where version 1 is in use, the root of version 2 is a plain folder.
            let real = group.0.join("cgroup.procs").exists();
            let set = real.then(|| fs::write(group.0.join(file), bytes.to_string()));
            set?.is_ok().then_some(group)
        })
    }

    /// The same command, in this group.
    fn around(&self, program: &Command) -> Command {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(self.0.join("cgroup.procs"))
            .arg(program.get_program())
            .args(program.get_args());
        if let Some(folder) = program.get_current_dir() {
            shell.current_dir(folder);
        }
        shell
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

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
    // All of it; with a smaller preconditioner; rounded; not at all.
    let cases = [
        (250, Some("full")),
        (180, Some("full")),
        (170, Some("half")),
        (150, None),
    ];
    for (megabytes, kept) in cases {
        let budget = megabytes * 1_000_000;
        let line = format!(
            "train waves.csv --method pcg --iterations 3 --threads 2 --memory {megabytes}M \
             --json r.json"
        );
        let program = folder.command(&line);
        match Limit::new(budget, &megabytes.to_string()) {
            Some(limit) => limit.around(&program).assert().success(),
            None => {
                let mut program = program;
                program.assert().success()
            }
        };
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
    let written = folder.run("plan waves.csv --memory 150M --method pcg");
    assert!(written.stdout.contains("recomputed"), "{}", written.stdout);
}

#[test]
fn a_control_group_limits_the_default_budget() {
    let folder = Folder::new();
    folder.write("waves.csv", waves());
    let Some(limit) = Limit::new(400_000_000, "default") else {
        return;
    };
    let program = folder.command("plan waves.csv");
    let assert = limit.around(&program).assert().success();
    let said = Written::new(assert.get_output()).stdout;
    // "up to 145.2 MB, of 283.1 MB": three quarters of what is left of 400.
    let budget = said
        .split(", of ")
        .nth(1)
        .and_then(|rest| rest.split_once(" MB"));
    let budget: f64 = budget.expect("a budget in MB").0.parse().unwrap();
    assert!((200.0..=300.0).contains(&budget), "{said}");
}
