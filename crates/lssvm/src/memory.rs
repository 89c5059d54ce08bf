//! How much memory there is, how much may be used, and how much was.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Bytes;
use crate::{Error, Result};

/// The share of the free memory that is used when no budget is given.
const DEFAULT_SHARE: f64 = 0.75;

/// Assumed where the system does not say how much is free.
const UNKNOWN_FREE: u64 = 4_000_000_000;

/// A number of bytes as people write it: `8G`, `2500M`, `1.5GB`, `123456`.
///
/// Units are powers of ten (`K`, `M`, `G`, `T`), or of two with an `i` (`GiB`).
///
/// ```
/// use lssvm::memory::Size;
/// assert_eq!("2500M".parse::<Size>()?, Size(2_500_000_000));
/// assert_eq!("1GiB".parse::<Size>()?, Size(1 << 30));
/// # Ok::<(), lssvm::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            let requirement = "give a size such as 8G, 2500M or 1GiB";
            Error::parameter("memory", text, requirement)
        };
        let trimmed = text.trim();
        let end = trimmed
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        let unit = unit.to_ascii_lowercase();
        let unit = unit.strip_suffix('b').unwrap_or(&unit);
        let (letter, base) = match unit.strip_suffix('i') {
            Some(letter) => (letter, 1024f64),
            None => (unit, 1000f64),
        };
        let power = match letter {
            "" if unit.is_empty() => 0,
            "k" => 1,
            "m" => 2,
            "g" => 3,
            "t" => 4,
            _ => return Err(wrong()),
        };
        let bytes = number * base.powi(power);
        if !(1.0..1e18).contains(&bytes) {
            return Err(wrong());
        }
        Ok(Size(bytes as u64))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytes(self.0).fmt(f)
    }
}

impl Serialize for Size {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            Number(u64),
            Text(String),
        }
        match Raw::deserialize(deserializer)? {
            Raw::Number(bytes) => Ok(Size(bytes)),
            Raw::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

/// Three quarters of the memory that is free, within the limit of the
/// process's control group.
pub fn default_budget() -> Size {
    let free = free().unwrap_or(UNKNOWN_FREE);
    Size((DEFAULT_SHARE * free as f64) as u64)
}

/// Bytes that can be had without swapping, within the limits of the control groups that
/// this process is in.
pub fn free() -> Option<u64> {
    let machine = kilobytes("/proc/meminfo", "MemAvailable:");
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = group_folders(&own);
    let left = groups.iter().filter_map(|folder| left_in(folder));
    machine.into_iter().chain(left).min()
}

/// Where the limits of these control groups are, as `/proc/self/cgroup` names them, and
/// of those around them.
fn group_folders(own: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in own.lines() {
        // number:controllers:path; version 2 has no controllers.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let root = match controllers {
            "" => "/sys/fs/cgroup",
            c if c.split(',').any(|c| c == "memory") => "/sys/fs/cgroup/memory",
            _ => continue,
        };
        // In a container the path may be that of the host: then the root is ours.
        let path = Path::new(root).join(path.trim_start_matches('/'));
        let around = path.ancestors().take_while(|a| a.starts_with(root));
        folders.extend(around.map(Path::to_path_buf));
    }
    folders
}

/// What a control group may still take.
fn left_in(folder: &Path) -> Option<u64> {
    let number = |name: &str| {
        fs::read_to_string(folder.join(name))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    let pairs = [
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ];
    pairs.into_iter().find_map(|(limit, used)| {
        let (limit, used): (u64, u64) = (number(limit)?, number(used)?);
        Some(limit.saturating_sub(used))
    })
}

/// The most memory this process ever held, in bytes.
pub fn peak() -> Option<u64> {
    kilobytes("/proc/self/status", "VmHWM:")
}

fn kilobytes(path: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    let number = line[key.len()..].split_whitespace().next()?;
    Some(number.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("8G", 8_000_000_000),
            ("1.5 GB", 1_500_000_000),
            ("512MiB", 512 << 20),
            ("123456", 123_456),
            ("4k", 4_000),
        ] {
            assert_eq!(text.parse::<Size>().unwrap(), Size(bytes), "{text}");
        }
        for text in ["", "G", "-1G", "8X", "0", "1e30G", "8 G G", "i"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn control_groups_are_found() {
        let names = |own: &str| {
            let folders = group_folders(own);
            folders
                .iter()
                .map(|f| f.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names("0::/user.slice/job\n"),
            [
                "/sys/fs/cgroup/user.slice/job",
                "/sys/fs/cgroup/user.slice",
                "/sys/fs/cgroup"
            ]
        );
        assert_eq!(
            names("5:cpu,cpuacct:/a\n4:memory:/b\n"),
            ["/sys/fs/cgroup/memory/b", "/sys/fs/cgroup/memory"]
        );
        assert!(names("nonsense\n\n3:").is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_says_what_is_free_and_used() {
        assert!(free().unwrap() > 0);
        assert!(peak().unwrap() > 0);
    }
}
