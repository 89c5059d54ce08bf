//! What stands for the readers of Parquet and Arrow files in a library that is built
//! without them: errors that say how to build it.

use std::path::Path;

use super::convert::Progress;
use super::source::Source;
use super::{Dataset, Format, ReadOptions};
use crate::error::Place;
use crate::linalg::Scalar;
use crate::{Error, Result};

pub(super) fn read<T: Scalar>(
    source: Source,
    format: Format,
    _options: &ReadOptions,
) -> Result<Dataset<T>> {
    Err(absent(source.path(), format))
}

#[expect(
    clippy::extra_unused_type_parameters,
    reason = "as the readers themselves have it"
)]
pub(super) fn convert<T: Scalar>(
    source: Source,
    format: Format,
    _out: &Path,
    _options: &ReadOptions,
    _progress: Progress<'_>,
) -> Result<()> {
    Err(absent(source.path(), format))
}

fn absent(path: &Path, format: Format) -> Error {
    let format = match format {
        Format::Arrow => "an Arrow",
        _ => "a Parquet",
    };
    let problem = format!(
        "this is {format} file, and lssvm was built without the feature that reads it; build it \
         with `cargo build --release --features parquet`, or save the data as CSV or NPY"
    );
    Error::file(path, Place::Whole, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_feature_is_named() {
        for (bytes, what) in [
            (&b"PAR1\x15\x04\x15\x04PAR1"[..], "a Parquet file"),
            (b"ARROW1\0\0\xff\xff\xff\xff", "an Arrow file"),
        ] {
            let source =
                crate::data::parse::<f32>(Path::new("d"), bytes.to_vec(), &ReadOptions::default());
            let message = source.unwrap_err().to_string();
            assert!(message.contains(what), "{message}");
            assert!(message.contains("--features parquet"), "{message}");
        }
    }
}
