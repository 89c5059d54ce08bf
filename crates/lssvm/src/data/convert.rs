//! Making a file that can be read row by row of any other, in bounded memory.
//!
//! Tables and LIBSVM text are read piece by piece, LIBSVM text twice: the first time for
//! the number of its features. Parquet and Arrow files are read batch by batch. Everything
//! else is opened, and read in batches.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::bytes::{self, check_memory};
use super::labels::Builder;
use super::libsvm::Scan;
use super::options::DEFAULT_MAX_BYTES;
use super::read::refuse_columns;
use super::source::{SAMPLE, Source};
use super::store::Writer;
use super::table::{FIRST_LINES, Table};
use super::text::{self, Pieces};
use super::{Format, Labelled, ReadOptions, Stream, StreamParts, columnar, detect, open};
use crate::error::{Bytes, Place};
use crate::linalg::{Precision, Scalar};
use crate::{Error, Result};

/// Bytes of features that are written at once; few in tests, so that there are several.
const BATCH: usize = if cfg!(test) { 1 << 10 } else { 1 << 24 };

/// How the files are called that a training and a test part go to.
pub const PARTS: [&str; 2] = ["train.safetensors", "test.safetensors"];

/// Writes data of any format to a file of our own, which [`open`] reads row by row.
///
/// Features are bytes if all are whole numbers from 0 to 255, else they have this
/// precision. Text, Parquet and Arrow files of any length are converted in bounded memory.
/// If there is a test part, `out` is a folder for two files. A file appears as a whole or
/// not at all.
///
/// `go_on` is told which share is done, and says whether to go on.
///
/// ```
/// use lssvm::data::{ReadOptions, convert, open};
/// use lssvm::linalg::Precision;
/// # let dir = tempfile::tempdir().unwrap();
/// let (csv, out) = (dir.path().join("flowers.csv"), dir.path().join("flowers.safetensors"));
/// std::fs::write(&csv, "length,species\n5.1,setosa\n6.2,virginica\n").unwrap();
/// convert(&csv, &out, &ReadOptions::default(), Precision::F32, &mut |_| true)?;
/// let data = open::<f32>(&out, &ReadOptions::default())?.train;
/// assert_eq!(data.features.load()?.values(), [5.1, 6.2]);
/// # Ok::<(), lssvm::Error>(())
/// ```
///
/// # Errors
/// As [`open`], and [`Error::Io`] if a file cannot be written, [`Error::Interrupted`] if
/// `go_on` says no.
pub fn convert(
    path: &Path,
    out: &Path,
    options: &ReadOptions,
    precision: Precision,
    go_on: &mut dyn FnMut(f64) -> bool,
) -> Result<()> {
    match precision {
        Precision::F32 => convert_as::<f32>(path, out, options, go_on),
        Precision::F64 => convert_as::<f64>(path, out, options, go_on),
    }
}

/// Told the share that is done; an error if not to go on.
pub(super) type Progress<'a> = &'a mut dyn FnMut(f64) -> Result<()>;

fn convert_as<T: Scalar>(
    path: &Path,
    out: &Path,
    options: &ReadOptions,
    go_on: &mut dyn FnMut(f64) -> bool,
) -> Result<()> {
    options.check()?;
    let progress: Progress<'_> = &mut |share| match go_on(share) {
        true => Ok(()),
        false => Err(Error::Interrupted),
    };
    let Some(format) = format_in_pieces(path, options)? else {
        return convert_parts::<T>(open_parts(path, options)?, out, progress);
    };
    refuse_columns(path, format, options)?;
    match format {
        Format::Libsvm => convert_libsvm::<T>(path, out, options, progress),
        Format::Csv => convert_table::<T>(path, out, options, progress),
        _ => {
            let most = options.max_bytes.unwrap_or(DEFAULT_MAX_BYTES);
            let source = Source::open(path, Some(most))?;
            columnar::convert::<T>(source, format, out, options, progress)
        }
    }
}

/// Opens what is not text in one file.
fn open_parts<T: Scalar>(path: &Path, options: &ReadOptions) -> Result<StreamParts<T>> {
    let remedy = || match path.is_dir() {
        true => {
            "convert its files one by one (LIBSVM text with the same --features), or allow \
                 more memory"
        }
        false => "unpack it, save arrays as NPY in C order, or allow more memory",
    };
    open(path, options).map_err(|error| error.with_remedy(|| remedy().into()))
}

/// Whether a path is a plain file, packed or not, that is read in pieces, and of which kind.
fn format_in_pieces(path: &Path, options: &ReadOptions) -> Result<Option<Format>> {
    if !path.is_file() {
        return Ok(None);
    }
    let mut sample = Vec::new();
    let file = TextFile::open(path)?;
    let length = file.done.length;
    file.reader
        .take(SAMPLE)
        .read_to_end(&mut sample)
        .map_err(|error| Error::io(path, "read the file", error))?;
    let format = match options.format {
        _ if sample.is_empty() => None,
        Some(format) => Some(format),
        // Whether a packed file is longer than the sample is not known, nor needed.
        None => detect::format(path, &sample, length.max(sample.len() as u64)).ok(),
    };
    let in_pieces = [Format::Csv, Format::Libsvm, Format::Parquet, Format::Arrow];
    Ok(format.filter(|format| in_pieces.contains(format)))
}

/// A text that is read from its beginning to its end, unpacked on the way.
struct TextFile {
    reader: Box<dyn Read>,
    done: Done,
}

/// How much of a file was read.
struct Done {
    read: Arc<AtomicU64>,
    length: u64,
}

impl Done {
    fn share(&self) -> f64 {
        let read = self.read.load(Ordering::Relaxed) as f64;
        (read / self.length.max(1) as f64).min(1.0)
    }
}

impl TextFile {
    fn open(path: &Path) -> Result<Self> {
        let cannot = |error| Error::io(path, "read the file", error);
        let file = bytes::open(path)?;
        let length = file.metadata().map_err(cannot)?.len();
        let read = Arc::new(AtomicU64::new(0));
        let counted = Counted {
            file,
            read: Arc::clone(&read),
        };
        let mut file = BufReader::with_capacity(1 << 18, counted);
        let packed = file.fill_buf().map_err(cannot)?.starts_with(&bytes::GZIP);
        let reader: Box<dyn Read> = match packed {
            true => Box::new(MultiGzDecoder::new(file)),
            false => Box::new(file),
        };
        Ok(Self {
            reader,
            done: Done { read, length },
        })
    }

    fn pieces(self, path: &Path) -> Result<(Pieces<Box<dyn Read>>, Done)> {
        Ok((Pieces::new(path, self.reader)?, self.done))
    }
}

/// A file of which is known how much was read.
struct Counted {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read(out)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

fn convert_table<T: Scalar>(
    path: &Path,
    out: &Path,
    options: &ReadOptions,
    progress: Progress<'_>,
) -> Result<()> {
    let (mut pieces, read) = TextFile::open(path)?.pieces(path)?;
    let first = pieces.first_lines(FIRST_LINES)?;
    let table = Table::new(path, first, options)?;
    let mut skipped = table.start;
    let about = table.about(path, table.no_labels(), Vec::new());
    let mut writer = Writer::new(out, &about, table.n_features(), T::PRECISION)?;
    let (mut labels, mut weights) = (table.no_labels(), Vec::new());
    let most = options.max_rows.unwrap_or(usize::MAX);
    while writer.rows() < most {
        let Some((text, lines)) = pieces.next(|text| table.last_row_end(text))? else {
            break;
        };
        let start = skipped.min(text.len());
        let parts = table.rows::<T>(text, start..text.len(), most - writer.rows());
        let parts = parts.map_err(|problem| problem.after(lines, path, text))?;
        let length = text.len();
        for part in parts {
            writer.push(&part.values)?;
            labels.append(part.labels);
            weights.extend(part.weights);
        }
        pieces.take(length);
        skipped -= start;
        progress(read.share())?;
    }
    writer.finish(&table.about(path, labels, weights))
}

fn convert_libsvm<T: Scalar>(
    path: &Path,
    out: &Path,
    options: &ReadOptions,
    progress: Progress<'_>,
) -> Result<()> {
    let most = options.max_rows.unwrap_or(usize::MAX);
    let (mut pieces, read) = TextFile::open(path)?.pieces(path)?;
    let mut scan = Scan::new();
    while scan.rows() < most {
        let Some((text, lines)) = pieces.next(text::last_line_end)? else {
            break;
        };
        scan.add(path, text, lines, most)?;
        let length = text.len();
        pieces.take(length);
        progress(read.share() / 2.0)?;
    }
    let (rows, sparse) = (scan.rows(), scan.is_sparse());
    let filler = scan.finish(path, options)?;
    if sparse(filler.width) {
        refuse_sparse::<T>(path, rows, filler.width)?;
    }
    check_memory::<T>(path, 1, filler.width, options)?;
    let batch = (BATCH / size_of::<T>() / filler.width).max(1);

    let about = filler.about(path, Builder::new(1).finish(), options);
    let mut writer = Writer::new(out, &about, filler.width, T::PRECISION)?;
    let (mut pieces, read) = TextFile::open(path)?.pieces(path)?;
    let mut labels = Builder::new(1);
    while writer.rows() < most {
        let Some((text, lines)) = pieces.next(text::last_line_end)? else {
            break;
        };
        let mut done = 0;
        while done < text.len() && writer.rows() < most {
            let rows = batch.min(most - writer.rows());
            let filled = filler.rows::<T>(&text[done..], rows);
            let (values, own, length) = filled.map_err(|mut problem| {
                problem.byte += done;
                problem.after(lines, path, text)
            })?;
            writer.push(&values)?;
            labels.append(own);
            done += length;
            progress(0.5 + read.share() / 2.0)?;
        }
        let length = text.len();
        pieces.take(length);
    }
    writer.finish(&filler.about(path, labels.finish(), options))
}

/// Bytes from which on it matters that sparse rows are written with their zeros.
const MANY_ZEROS: u128 = 1 << 30;

/// Refuses to write the zeros of many sparse rows.
fn refuse_sparse<T: Scalar>(path: &Path, rows: usize, cols: usize) -> Result<()> {
    let bytes = rows as u128 * cols as u128 * size_of::<T>() as u128;
    if bytes < MANY_ZEROS {
        return Ok(());
    }
    let problem = format!(
        "there are {rows} rows of {cols} features, nearly all of them zero, which would take {} \
         with their zeros; use the file as it is: zeros are not kept in memory",
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    );
    Err(Error::file(path, Place::Whole, problem))
}

/// One or two parts that are open.
fn convert_parts<T: Scalar>(
    parts: StreamParts<T>,
    out: &Path,
    progress: Progress<'_>,
) -> Result<()> {
    let Some(test) = parts.test else {
        return convert_rows(parts.train, out, progress);
    };
    let made = !out.exists();
    if made {
        fs::create_dir(out).map_err(|error| Error::io(out, "create the folder", error))?;
    }
    let share = test.n_samples() as f64 / (test.n_samples() + parts.train.n_samples()) as f64;
    let [train_out, test_out] = PARTS.map(|name| -> PathBuf { out.join(name) });
    let done = convert_rows(test, &test_out, &mut |done| progress(share * done)).and_then(|()| {
        let rest = 1.0 - share;
        let told = &mut |done| progress(share + rest * done);
        convert_rows(parts.train, &train_out, told)
    });
    if done.is_err() && made {
        // The error is what to tell.
        let _ = fs::remove_dir_all(out);
    }
    done
}

fn convert_rows<T: Scalar>(data: Stream<T>, out: &Path, progress: Progress<'_>) -> Result<()> {
    let (n, cols) = (data.n_samples(), data.n_features());
    if data.features.kept_values().is_some() {
        refuse_sparse::<T>(&data.source, n, cols)?;
    }
    let features = Arc::clone(&data.features);
    let about: Labelled<()> = data.with_features(());
    let mut writer = Writer::new(out, &about, cols, T::PRECISION)?;
    let batch = (BATCH / size_of::<T>() / cols).clamp(1, n);
    let mut values = vec![T::ZERO; batch * cols];
    for start in (0..n).step_by(batch) {
        let rows = start..(start + batch).min(n);
        let values = &mut values[..rows.len() * cols];
        let end = rows.end;
        features.read(rows, values)?;
        writer.push(values)?;
        progress(end as f64 / n as f64)?;
    }
    writer.finish(&about)
}
