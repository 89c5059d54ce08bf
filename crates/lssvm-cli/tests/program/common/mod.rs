//! A folder of small files, and the program run in it.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assert_cmd::assert::OutputAssertExt;
use assert_cmd::cargo::CommandCargoExt;
use serde_json::Value;
use tempfile::TempDir;

/// MNIST as the repository has it.
pub const MNIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/mnist");

pub const METHODS: [&str; 5] = ["exact", "mp", "kaczmarz", "kaczmarz-mp", "nystrom"];

/// Classes of [`flowers`]; two have spaces.
pub const SPECIES: [&str; 3] = ["iris setosa", "iris versicolor", "virginica"];

/// A folder that is removed at the end of a test.
pub struct Folder(TempDir);

/// What the program wrote.
pub struct Written {
    pub stdout: String,
    pub stderr: String,
}

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A folder with `train.csv` and `test.csv`, rows of [`flowers`].
    pub fn with_flowers() -> Self {
        let folder = Self::new();
        folder.write("train.csv", flowers(0..150));
        folder.write("test.csv", flowers(150..210));
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// Names of all files, hidden ones too.
    pub fn names(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        entries
            .map(|entry| name(entry).into_string().unwrap())
            .collect()
    }

    /// The program in this folder; arguments are separated by spaces.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::cargo_bin("lssvm").unwrap();
        command
            .current_dir(self.0.path())
            .args(line.split_whitespace());
        command
    }

    /// Runs a command line that must succeed.
    #[track_caller]
    pub fn run(&self, line: &str) -> Written {
        let output = self.command(line).output().unwrap();
        let written = Written::new(&output);
        let code = output.status.code();
        assert_eq!(code, Some(0), "lssvm {line}: {}", written.stderr);
        written
    }

    /// Runs a command line that must fail: with this code, one line that holds
    /// all of `parts`, nothing on standard output and no file made or lost.
    #[track_caller]
    pub fn fails(&self, line: &str, code: i32, parts: &[&str]) {
        let before = self.names();
        let output = self.command(line).output().unwrap();
        let Written { stdout, stderr } = Written::new(&output);
        assert_eq!(output.status.code(), Some(code), "lssvm {line}: {stderr}");
        assert!(stderr.starts_with("error: "), "lssvm {line}: {stderr}");
        let lines = stderr.lines().count();
        assert_eq!(lines, 1, "lssvm {line}: {stderr}");
        for part in parts {
            assert!(stderr.contains(part), "lssvm {line}: '{part}' in {stderr}");
        }
        assert_eq!(stdout, "", "lssvm {line}");
        assert_eq!(self.names(), before, "lssvm {line}");
    }

    /// Runs a command line that clap refuses, in as many lines as it likes.
    #[track_caller]
    pub fn refused(&self, line: &str, parts: &[&str]) {
        let before = self.names();
        let assert = self.command(line).assert().code(2);
        let Written { stderr, .. } = Written::new(assert.get_output());
        assert!(stderr.starts_with("error: "), "lssvm {line}: {stderr}");
        for part in parts {
            assert!(stderr.contains(part), "lssvm {line}: '{part}' in {stderr}");
        }
        assert_eq!(self.names(), before, "lssvm {line}");
    }

    /// Predictions, one a line.
    #[track_caller]
    pub fn predictions(&self, line: &str) -> Vec<String> {
        let written = self.run(&format!("predict {line}"));
        assert_eq!(written.stderr, "", "predictions need no remarks");
        written.stdout.lines().map(str::to_string).collect()
    }
}

impl Written {
    pub fn new(output: &std::process::Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self {
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }
}

/// A number from -1 to 1 that looks random.
pub fn noise(i: usize) -> f64 {
    let mut z = (i as u64)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Three features around the centre of class `i % 3`; classes hardly overlap.
pub fn flower(i: usize) -> [f64; 3] {
    let centres = [[0.0, 0.0, 5.0], [4.0, 1.0, 0.0], [1.0, 5.0, 1.0]];
    let centre = centres[i % 3];
    [0, 1, 2].map(|j| centre[j] + 1.5 * noise(3 * i + j))
}

/// A CSV table with a header and the species in its last column.
pub fn flowers(rows: std::ops::Range<usize>) -> String {
    let mut text = String::from("length,width,height,species\n");
    for i in rows {
        let [a, b, c] = flower(i);
        writeln!(text, "{a:.4},{b:.4},{c:.4},{}", SPECIES[i % 3]).unwrap();
    }
    text
}

/// The flowers with -1 and +1 as sparse text: feature 3 only where it is large.
pub fn libsvm(rows: std::ops::Range<usize>, third: bool) -> String {
    let mut text = String::new();
    for i in rows {
        let [a, b, c] = flower(i);
        let label = if i % 3 == 0 { "+1" } else { "-1" };
        write!(text, "{label} 1:{a:.4} 2:{b:.4}").unwrap();
        if third && c > 1.0 {
            write!(text, " 3:{c:.4}").unwrap();
        }
        text.push('\n');
    }
    text
}

/// Two features and two smooth targets of them: `u,v,a,b`.
pub fn curves(rows: std::ops::Range<usize>) -> String {
    let mut text = String::from("u,v,a,b\n");
    for i in rows {
        let (u, v) = (2.0 * noise(2 * i), noise(2 * i + 1));
        let (a, b) = (u.sin() + v, 10.0 * u * v);
        writeln!(text, "{u:.5},{v:.5},{a:.5},{b:.5}").unwrap();
    }
    text
}

/// An IDX file of bytes.
pub fn idx(shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, shape.len() as u8];
    for &size in shape {
        file.extend((size as u32).to_be_bytes());
    }
    file.extend(bytes);
    file
}

/// Images of 4 x 4: bars of three directions, and their labels 0, 1, 2.
pub fn bars(rows: usize) -> (Vec<u8>, Vec<u8>) {
    let pixel = |i: usize, p: usize| {
        let (y, x, at) = (p / 4, p % 4, (i / 3) % 4);
        let on = [y == at, x == at, (x + y) % 4 == at][i % 3];
        (100.0 + 20.0 * noise(16 * i + p) + if on { 100.0 } else { 0.0 }) as u8
    };
    let images = (0..16 * rows).map(|at| pixel(at / 16, at % 16)).collect();
    let labels = (0..rows).map(|i| (i % 3) as u8).collect();
    (images, labels)
}

/// Writes the IDX files of one part of a data set in MNIST's manner.
pub fn write_bars(folder: &Folder, part: &str, rows: usize) {
    let (images, labels) = bars(rows);
    let images = idx(&[rows, 4, 4], &images);
    folder.write(&format!("{part}-images-idx3-ubyte"), images);
    folder.write(&format!("{part}-labels-idx1-ubyte"), idx(&[rows], &labels));
}

/// An NPY file of little-endian f64.
pub fn npy(shape: &[usize], values: &[f64]) -> Vec<u8> {
    let shape: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    values.iter().for_each(|v| file.extend(v.to_le_bytes()));
    file
}

/// A number in JSON.
#[track_caller]
pub fn number(value: &Value, key: &str) -> f64 {
    value[key]
        .as_f64()
        .unwrap_or_else(|| panic!("no number {key} in {value}"))
}

/// The share of lines that differ, in percent.
#[track_caller]
pub fn percent_wrong(predicted: &[String], truth: &[String]) -> f64 {
    assert_eq!(predicted.len(), truth.len());
    let wrong = predicted.iter().zip(truth).filter(|(p, t)| p != t).count();
    100.0 * wrong as f64 / truth.len() as f64
}

/// The last field of every row of a table with a header.
pub fn last_column(table: &str) -> Vec<String> {
    let last = |line: &str| line.rsplit(',').next().unwrap().to_string();
    table.lines().skip(1).map(last).collect()
}

pub fn exists(path: &Path) -> bool {
    path.try_exists().unwrap()
}
