//! What the program writes: results to standard output, complaints and
//! progress to standard error, files under a temporary name until complete.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use console::style;
use lssvm::Error;
use lssvm::model::{check_writable, temporary_prefix};
use lssvm::ranks::Ranks;
use lssvm::train::Evaluation;
use serde::Serialize;

/// One clear line.
#[expect(clippy::print_stderr, reason = "this is where the program speaks")]
pub fn complain(error: &anyhow::Error) {
    if is_silent() {
        return;
    }
    // The library's messages already hold what the system said.
    let message = match error.downcast_ref::<Error>() {
        Some(error) => error.to_string(),
        None => format!("{error:#}"),
    };
    let message = message.replace('\n', " ");
    eprintln!("{} {message}", style("error:").for_stderr().red().bold());
}

/// Whether another rank speaks.
static SILENT: AtomicBool = AtomicBool::new(false);

/// The program, as the user calls it.
static PROGRAM: OnceLock<&str> = OnceLock::new();

/// Of several ranks the first speaks, as this program.
pub fn speak_for(ranks: &Ranks, program: &'static str) {
    SILENT.store(!ranks.is_first(), Ordering::Relaxed);
    // What starts ranks may show them a terminal where there is none.
    console::set_colors_enabled(false);
    console::set_colors_enabled_stderr(false);
    let _ = PROGRAM.set(program);
}

/// Whether this is one of the ranks of a job, be it the only one.
pub fn is_shared() -> bool {
    PROGRAM.get().is_some()
}

/// Whether another rank speaks.
fn is_silent() -> bool {
    SILENT.load(Ordering::Relaxed)
}

/// The program, as the user calls it.
pub fn program() -> &'static str {
    PROGRAM.get().copied().unwrap_or("lssvm")
}

/// Whether standard output is for JSON alone.
static ONLY_JSON: AtomicBool = AtomicBool::new(false);

/// Prepares for `--json PATH`: a file must have a place before the work
/// begins, and `-` takes standard output for itself, so that a program can
/// read it; what people read then goes to standard error.
pub fn expect_json(path: Option<&Path>) -> anyhow::Result<()> {
    match path {
        Some(path) if path == Path::new("-") => ONLY_JSON.store(true, Ordering::Relaxed),
        Some(path) => check_writable(path)?,
        None => {}
    }
    Ok(())
}

/// Refuses two results in one file, of which the later would replace the earlier: each
/// with the option that asks for it.
pub fn expect_distinct(outputs: &[(&'static str, Option<&Path>)]) -> anyhow::Result<()> {
    let files = outputs.iter().filter_map(|&(option, path)| {
        let path = path.filter(|path| *path != Path::new("-"))?;
        Some((option, path, absolute(path)))
    });
    let files: Vec<_> = files.collect();
    for (i, (option, path, file)) in files.iter().enumerate() {
        if let Some((other, ..)) = files[..i].iter().find(|(.., earlier)| earlier == file) {
            let requirement = match other == option {
                true => "its numbers go beside it as JSON, to the same file; name a page .html"
                    .to_string(),
                false => format!("{other} goes to the same file; choose another for one of them"),
            };
            anyhow::bail!(Error::parameter(option, path.display(), requirement));
        }
    }
    Ok(())
}

/// The same for every way to write the path of a file, which may not exist yet.
fn absolute(path: &Path) -> PathBuf {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_path_buf(),
    }
}

/// How large a file is.
pub fn size(path: &Path) -> anyhow::Result<u64> {
    let about = std::fs::metadata(path).map_err(|e| Error::io(path, "look at the file", e))?;
    Ok(about.len())
}

/// A line of the result.
pub fn say(line: impl std::fmt::Display) {
    if ONLY_JSON.load(Ordering::Relaxed) {
        remark(line);
    } else {
        print(line);
    }
}

fn print(line: impl std::fmt::Display) {
    if is_silent() {
        return;
    }
    // A closed pipe ends the program quietly, not with a panic.
    let _ = writeln!(io::stdout(), "{line}");
}

/// A remark beside the result.
pub fn remark(line: impl std::fmt::Display) {
    if is_silent() {
        return;
    }
    let _ = writeln!(io::stderr(), "{line}");
}

/// A name and its value, aligned.
pub fn fact(name: &str, value: impl std::fmt::Display) {
    say(format!("{} {value}", style(format!("{name:<14}")).dim()));
}

/// Writes JSON to a file, or to standard output for `-`.
pub fn json(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    if path == Path::new("-") {
        print(text);
        return Ok(());
    }
    whole(path, |file| {
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")
    })
}

/// Writes text to a file.
pub fn text(path: &Path, text: &str) -> anyhow::Result<()> {
    whole(path, |file| file.write_all(text.as_bytes()))
}

/// Writes a file under a temporary name and renames it when it is complete.
pub fn whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    whole_or(path, |out| Ok(write(out)?))
}

/// The same where more can go wrong than the writing.
pub fn whole_or(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let failed = |e| Error::io(path, "write the file", e);
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let prefix = temporary_prefix(path.file_name().unwrap_or_default());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix);
    // As open as other files, not private as temporary ones mostly are.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder).map_err(plain).map_err(failed)?;
    {
        let mut buffered = io::BufWriter::new(&mut file);
        write(&mut buffered).map_err(|error| match error.downcast() {
            Ok(error) => failed(plain(error)).into(),
            Err(error) => error,
        })?;
        buffered.flush().map_err(plain).map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    Ok(())
}

/// What the system said, without the temporary name that nobody knows.
fn plain(error: io::Error) -> io::Error {
    let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref());
    let cause = cause
        .and_then(io::Error::raw_os_error)
        .or(error.raw_os_error());
    cause.map_or(error, io::Error::from_raw_os_error)
}

/// The result of a comparison, in a few lines.
pub fn evaluation(name: &str, evaluation: &Evaluation) {
    if let (Some(error), Some((low, high))) =
        (evaluation.error_percent, evaluation.error_percent_interval)
    {
        let error = style(format!("{error:.2} %")).bold();
        let rows = evaluation.rows;
        let about = evaluation.estimate.map_or(String::new(), |estimate| {
            format!(" ± {:.2} %", estimate.standard_error)
        });
        fact(
            name,
            format!("{error}{about} wrong of {rows} rows (95 %: {low:.2} to {high:.2} %)"),
        );
    }
    if let Some(scores) = &evaluation.regression {
        let rmse = style(format!("{:.5}", scores.rmse)).bold();
        let (mae, r2, rows) = (scores.mae, scores.r2, evaluation.rows);
        let interval = scores.rmse_interval.map_or(String::new(), |(low, high)| {
            format!(" (95 %: {low:.5} to {high:.5})")
        });
        let about = evaluation.estimate.map_or(String::new(), |estimate| {
            format!(" ± {:.5}", estimate.standard_error)
        });
        fact(
            name,
            format!("RMSE {rmse}{about}{interval}, MAE {mae:.5}, R² {r2:.4} on {rows} rows"),
        );
    }
    if let Some(estimate) = evaluation.estimate {
        fact("", estimate);
    }
}
