//! The memory promise: what is planned is kept, whatever the budget.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Folder, MNIST, Written, number};
use assert_cmd::assert::OutputAssertExt;

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
fn rows_that_grow_are_in_the_plan() {
    let folder = Folder::new();
    // 72,000 rows of 784 numbers, which Fourier features make 1,176: more than all else.
    let line = format!(
        "train {MNIST} --train-rows 8000 --augment shift=1 --preprocess fourier --method mp \
         --block-size 50 --iterations 2 --follow 0 --threads 2 --json r.json"
    );
    folder.run(&line);
    let report = folder.json("r.json");
    let [peak, planned] = ["peak_memory_bytes", "planned_memory_bytes"].map(|k| number(&report, k));
    assert!(peak <= planned, "{peak} bytes, {planned} planned");
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

/// An NPY file of so many rows of 1,000 numbers, and labels beside it.
fn wide(folder: &Folder, rows: usize) {
    use std::io::Write;
    let head = |descr: &str, shape: String| {
        let head = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\0".to_vec();
        bytes.extend((head.len() as u16).to_le_bytes());
        bytes.extend(head.as_bytes());
        bytes
    };
    let file = fs::File::create(folder.path("X.npy")).unwrap();
    let mut file = std::io::BufWriter::new(file);
    file.write_all(&head("<f4", format!("({rows}, 1000)")))
        .unwrap();
    for i in 0..rows as u32 {
        let row = (0..1000).flat_map(|j| ((i * 31 + j * j) % 97 + 50 * (i % 2)).to_le_bytes());
        // Whole numbers as bits of small floats would be subnormal: make numbers of them.
        let row: Vec<u8> = row
            .collect::<Vec<u8>>()
            .chunks_exact(4)
            .flat_map(|b| (u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as f32).to_le_bytes())
            .collect();
        file.write_all(&row).unwrap();
    }
    file.flush().unwrap();
    let labels: Vec<u8> = (0..rows).map(|i| (i % 2) as u8).collect();
    let labels = [head("|u1", format!("({rows},)")), labels].concat();
    folder.write("y.npy", labels);
}

/// The command must succeed in so much memory.
fn run_within(folder: &Folder, megabytes: u64, name: &str, line: &str) {
    let mut program = folder.command(line);
    match Limit::new(megabytes * 1_000_000, name) {
        Some(limit) => limit.around(&program).assert().success(),
        None => program.assert().success(),
    };
}

#[test]
fn rows_larger_than_the_budget_are_predicted() {
    let folder = Folder::new();
    wide(&folder, 100);
    folder.run("train X.npy --method exact --model m");
    // 320 MB in 110.
    wide(&folder, 80_000);
    let line = "evaluate m X.npy --threads 2 --memory 110M --json r.json";
    run_within(&folder, 110, "evaluate", line);
    let report = folder.json("r.json");
    let peak = number(&report, "peak_memory_bytes");
    assert!(peak <= 110e6, "{peak}");
    assert_eq!(number(&report, "rows"), 80_000.0);
    let line = "predict m X.npy --threads 2 --memory 110M --output p.txt";
    run_within(&folder, 110, "predict", line);
    let predicted = folder.read("p.txt");
    assert_eq!(predicted.lines().count(), 80_000);
    folder.run("predict m X.npy --threads 2 --output all.txt");
    assert_eq!(folder.read("all.txt"), predicted);
    folder.fails("predict m X.npy --memory 50M", 1, &["--memory"]);
}

#[test]
fn text_larger_than_the_limit_is_converted() {
    let folder = Folder::new();
    folder.write("waves.csv", waves());
    folder.run("convert waves.csv small");
    // 120 MB in 110.
    let text = waves();
    folder.write("waves.csv", text.repeat(120_000_000 / text.len()));
    run_within(&folder, 110, "convert", "convert waves.csv large");
    let size = |name: &str| fs::metadata(folder.path(name)).unwrap().len();
    assert!(size("large") > 100 * size("small"));
    folder.fails(
        "train waves.csv --memory 100M --method mp",
        1,
        &["100.0 MB"],
    );
}
