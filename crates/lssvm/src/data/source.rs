//! The bytes of a file, read by their place.
//!
//! A plain file stays on disk. Its bytes are copied out when they are asked for, not
//! mapped: the pages of a map stay in memory as long as the system likes, and a file
//! that is cut while it is mapped kills the process. What cannot be read by place, a
//! packed file or a pipe, is held in memory.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::xxh3_64;

use super::bytes;
use crate::error::Place;
use crate::{Error, Result};

/// Bytes of a file that tell its format and what its head says: more than the longest
/// head of an NPY file of version 1.
pub(super) const SAMPLE: u64 = 1 << 17;

/// The content of a file.
#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    length: u64,
    content: Content,
    blocks: Option<Blocks>,
}

/// Bytes with a checksum for each piece of them, which is checked when the piece is read
/// for the first time.
#[derive(Debug)]
struct Blocks {
    bytes: Range<u64>,
    size: u64,
    sums: Vec<u64>,
    /// Those that were found to be good.
    good: Vec<AtomicBool>,
}

#[derive(Debug)]
enum Content {
    OnDisk(Positioned),
    InMemory(Vec<u8>),
}

impl Source {
    /// Opens a file. If it is packed, or no plain file, it is read, unless that takes
    /// more than `most` bytes. An empty file is an error.
    pub(super) fn open(path: &Path, most: Option<u64>) -> Result<Self> {
        let cannot = |source| Error::io(path, "read the file", source);
        let mut file = bytes::open(path)?;
        let data = file.metadata().map_err(cannot)?;
        if !data.is_file() {
            let content = bytes::read_all(path, file, 0, most)?;
            return Ok(Self::in_memory(path, bytes::unpack(path, content, most)?));
        }
        let length = data.len();
        let mut magic = Vec::new();
        (&mut file)
            .take(bytes::GZIP.len() as u64)
            .read_to_end(&mut magic)
            .map_err(cannot)?;
        if magic.is_empty() || magic == bytes::GZIP {
            file.rewind().map_err(cannot)?;
            let content = bytes::read_all(path, file, length, most)?;
            return Ok(Self::in_memory(path, bytes::unpack(path, content, most)?));
        }
        Ok(Self {
            path: path.to_path_buf(),
            length,
            content: Content::OnDisk(Positioned::new(file)),
            blocks: None,
        })
    }

    /// What is in memory already; `path` serves for messages.
    pub(super) fn in_memory(path: &Path, content: Vec<u8>) -> Self {
        Self {
            path: path.to_path_buf(),
            length: content.len() as u64,
            content: Content::InMemory(content),
            blocks: None,
        }
    }

    /// The same where pieces of `size` of these bytes, the last of which may be shorter,
    /// have these XXH3 checksums. What is in memory is checked at once.
    pub(super) fn with_blocks(
        mut self,
        bytes: Range<u64>,
        size: usize,
        sums: Vec<u64>,
    ) -> Result<Self> {
        let good = sums.iter().map(|_| AtomicBool::new(false)).collect();
        let blocks = Blocks {
            bytes,
            size: size as u64,
            sums,
            good,
        };
        if let Some(content) = self.bytes() {
            self.check_blocks(&blocks, 0, content)?;
        }
        self.blocks = Some(blocks);
        Ok(self)
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Number of bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// All bytes, if they are in memory.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match &self.content {
            Content::OnDisk(_) => None,
            Content::InMemory(content) => Some(content),
        }
    }

    /// Copies the bytes from `at` on.
    pub(super) fn read(&self, at: u64, out: &mut [u8]) -> Result<()> {
        self.copy(at, out)?;
        match &self.blocks {
            Some(blocks) => self.check_blocks(blocks, at, out),
            None => Ok(()),
        }
    }

    /// Checks the blocks that `found`, which was read at `at`, has a part in.
    fn check_blocks(&self, blocks: &Blocks, at: u64, found: &[u8]) -> Result<()> {
        let end = at + found.len() as u64;
        let (from, to) = (at.max(blocks.bytes.start), end.min(blocks.bytes.end));
        if from >= to {
            return Ok(());
        }
        let first = (from - blocks.bytes.start) / blocks.size;
        let last = (to - 1 - blocks.bytes.start) / blocks.size;
        let mut rest = Vec::new();
        for i in first..=last {
            let (Some(sum), Some(good)) =
                (blocks.sums.get(i as usize), blocks.good.get(i as usize))
            else {
                break;
            };
            if good.load(Ordering::Relaxed) {
                continue;
            }
            let start = blocks.bytes.start + i * blocks.size;
            let stop = (start + blocks.size).min(blocks.bytes.end);
            let block = if start >= at && stop <= end {
                &found[(start - at) as usize..(stop - at) as usize]
            } else {
                rest.resize((stop - start) as usize, 0);
                self.copy(start, &mut rest)?;
                &rest
            };
            if xxh3_64(block) != *sum {
                let problem = format!(
                    "the features from here to byte {stop} do not match their checksum, so the \
                     file is damaged; copy it again from where it was made, or convert the data \
                     again"
                );
                return Err(Error::file(&self.path, Place::Byte(start), problem));
            }
            good.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn copy(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let done = match &self.content {
            Content::OnDisk(file) => file.read_exact_at(at, out),
            Content::InMemory(content) => {
                let part = usize::try_from(at).ok().and_then(|at| content.get(at..));
                let part = part.and_then(|rest| rest.get(..out.len()));
                part.map(|part| out.copy_from_slice(part))
                    .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
            }
        };
        done.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                let problem = format!(
                    "the file had {} bytes when it was opened, and now has fewer; leave it alone \
                     while it is read",
                    self.length
                );
                Error::file(&self.path, Place::Byte(at), problem)
            }
            _ => Error::io(&self.path, "read the file", error),
        })
    }

    /// How the file begins.
    pub(super) fn sample(&self) -> Result<Cow<'_, [u8]>> {
        self.part(0, self.length.min(SAMPLE))
    }

    /// The bytes from one place to another, copied if they are on disk.
    pub(super) fn part(&self, start: u64, end: u64) -> Result<Cow<'_, [u8]>> {
        if let Some(bytes) = self.bytes() {
            let range = start as usize..end as usize;
            if let Some(part) = bytes.get(range) {
                return Ok(Cow::Borrowed(part));
            }
        }
        let length = end.saturating_sub(start);
        let mut part = bytes::room(&self.path, length)?;
        part.resize(length as usize, 0);
        self.read(start, &mut part)?;
        Ok(Cow::Owned(part))
    }

    /// The same held in memory, unless that takes more than `most` bytes.
    pub(super) fn held(self, most: Option<u64>) -> Result<Self> {
        match self.content {
            Content::InMemory(_) => Ok(self),
            Content::OnDisk(_) => {
                let path = self.path.clone();
                Ok(Self::in_memory(&path, self.into_bytes(most)?))
            }
        }
    }

    /// All bytes, unless they are more than `most`.
    pub(super) fn into_bytes(self, most: Option<u64>) -> Result<Vec<u8>> {
        bytes::check_length(&self.path, self.length, most)?;
        match self.content {
            Content::InMemory(content) => Ok(content),
            Content::OnDisk(_) => Ok(self.part(0, self.length)?.into_owned()),
        }
    }

    /// The bytes one after the other.
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader {
            source: self,
            at: 0,
        }
    }
}

/// Reads the bytes of a source one after the other.
pub(super) struct Reader<'a> {
    source: &'a Source,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.source.length.saturating_sub(self.at);
        let n = left.min(out.len() as u64) as usize;
        self.source
            .read(self.at, &mut out[..n])
            .map_err(io::Error::other)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.source.length.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// A file that many threads read at places of their own.
#[cfg(unix)]
#[derive(Debug)]
struct Positioned(File);

#[cfg(unix)]
impl Positioned {
    fn new(file: File) -> Self {
        Self(file)
    }

    fn read_exact_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.0, out, at)
    }
}

/// A file that many threads read at places of their own, one after the other.
#[cfg(not(unix))]
#[derive(Debug)]
struct Positioned(std::sync::Mutex<File>);

#[cfg(not(unix))]
impl Positioned {
    fn new(file: File) -> Self {
        Self(std::sync::Mutex::new(file))
    }

    fn read_exact_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        // Where another thread that failed left the file does not matter.
        let mut file = self.0.lock().unwrap_or_else(|broken| broken.into_inner());
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(content: &[u8]) -> (tempfile::TempDir, [Source; 2]) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d");
        std::fs::write(&path, content).unwrap();
        let on_disk = Source::open(&path, Some(0)).unwrap();
        assert!(on_disk.bytes().is_none());
        let held = Source::open(&path, None).unwrap().held(None).unwrap();
        (dir, [on_disk, held])
    }

    #[test]
    fn bytes_are_read_by_their_place() {
        let (_dir, sources) = sources(b"0123456789");
        for source in sources {
            let mut out = [0; 4];
            source.read(3, &mut out).unwrap();
            assert_eq!(&out, b"3456");
            let mut reader = source.reader();
            reader.seek(SeekFrom::End(-3)).unwrap();
            let mut rest = String::new();
            reader.read_to_string(&mut rest).unwrap();
            assert_eq!(rest, "789");
            let message = source.read(8, &mut out).unwrap_err().to_string();
            assert!(
                message.contains("had 10 bytes when it was opened"),
                "{message}"
            );
            assert!(source.read(u64::MAX, &mut out).is_err());
            let message = source.into_bytes(Some(9)).unwrap_err().to_string();
            assert!(message.contains("needs 10 bytes"), "{message}");
        }
    }

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        let (dir, [source, _]) = sources(&[7; 100]);
        std::fs::write(dir.path().join("d"), [7; 50]).unwrap();
        let mut out = [0; 30];
        source.read(0, &mut out).unwrap();
        let message = source.read(40, &mut out).unwrap_err().to_string();
        assert!(message.contains("now has fewer"), "{message}");
    }
}
