//! The machine that a run was made on, as far as it can be told.

use std::fs;

use lssvm::error::Bytes;
use serde::Serialize;

/// What times depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Model of the processor.
    pub cpu: String,
    /// Threads that can run at once.
    pub threads: usize,
    /// Main memory.
    pub memory_bytes: Option<u64>,
    /// Operating system and architecture.
    pub system: String,
}

impl Machine {
    /// Reads what Linux tells; elsewhere only what the standard library knows.
    pub fn detect() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let system = match field(&release, "PRETTY_NAME", '=') {
            Some(name) => name.trim_matches('"').to_string(),
            None => std::env::consts::OS.to_string(),
        };
        Self {
            cpu: field(&cpuinfo, "model name", ':').unwrap_or("unknown processor".into()),
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            memory_bytes: field(&meminfo, "MemTotal", ':').and_then(|size| kilobytes(&size)),
            system: format!("{system}, {}", std::env::consts::ARCH),
        }
    }

    /// In one line.
    pub fn describe(&self) -> String {
        let plural = if self.threads == 1 { "" } else { "s" };
        let mut out = format!("{}, {} thread{plural}", self.cpu, self.threads);
        if let Some(bytes) = self.memory_bytes {
            out += &format!(", {} of memory", Bytes(bytes));
        }
        format!("{out}, {}", self.system)
    }
}

/// The value of the first line with this name.
fn field(text: &str, name: &str, separator: char) -> Option<String> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(separator));
    let value = pairs.find(|(key, _)| key.trim() == name)?.1.trim();
    (!value.is_empty()).then(|| value.to_string())
}

/// `16301252 kB` in bytes; the kernel means 1,024 by kB.
fn kilobytes(size: &str) -> Option<u64> {
    let number = size.strip_suffix("kB")?.trim();
    number.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_from_what_linux_writes() {
        let text = "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nmodel name\t: other\n";
        assert_eq!(field(text, "model name", ':').unwrap(), "A CPU @ 2 GHz");
        assert_eq!(field(text, "MemTotal", ':'), None);
        assert_eq!(kilobytes("16 kB"), Some(16_384));
        assert_eq!(kilobytes("many"), None);
        assert!(Machine::detect().threads >= 1);
    }
}
