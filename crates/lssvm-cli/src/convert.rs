//! `lssvm convert`

use std::path::Path;

use anyhow::bail;
use lssvm::data::{PARTS, ReadOptions, Stream, convert, open};
use lssvm::error::Bytes;
use lssvm::{Error, memory};

use crate::args::ConvertArgs;
use crate::output::{self, fact};
use crate::progress::{bar, catch_interrupts, leave_nothing_unfinished, was_interrupted};
use crate::settings::read_options;

pub fn run(args: &ConvertArgs) -> anyhow::Result<()> {
    let budget = args.memory.unwrap_or_else(memory::default_budget);
    let options = ReadOptions {
        max_bytes: Some(budget.0),
        ..read_options(&args.read)?
    };
    catch_interrupts();
    // The parts of a folder come before the folder.
    for name in PARTS {
        leave_nothing_unfinished(&args.out.join(name));
    }
    leave_nothing_unfinished(&args.out);
    let bar = bar(format!("converting {}", args.data.display()));
    let done = convert(
        &args.data,
        &args.out,
        &options,
        args.precision,
        &mut |share| {
            bar.set_position((bar.length().unwrap_or(1) as f64 * share) as u64);
            !was_interrupted()
        },
    );
    bar.finish_and_clear();
    match done {
        Err(Error::Interrupted) => bail!("interrupted; nothing was written"),
        done => done?,
    }
    let parts = open::<f32>(&args.out, &ReadOptions::default())?;
    for data in [Some(&parts.train), parts.test.as_ref()]
        .into_iter()
        .flatten()
    {
        say(data)?;
    }
    Ok(())
}

/// What was written.
fn say(data: &Stream<f32>) -> anyhow::Result<()> {
    let path: &Path = &data.source;
    fact(
        "written",
        format!(
            "{}: {} rows of {} features, {}",
            path.display(),
            data.n_samples(),
            data.n_features(),
            Bytes(output::size(path)?)
        ),
    );
    Ok(())
}
