//! Before anything can be learned: reading the data, and the paper's normalisation of images.

use std::path::Path;
use std::time::Instant;

use lssvm::data::{ReadOptions, read};
use lssvm::preprocess::PipelineSpec;

use super::Table;
use crate::output::say;

/// All parts of the data are read and normalised.
pub fn measure(path: &Path, repeat: usize, table: &mut Table) -> anyhow::Result<()> {
    let steps: PipelineSpec = "center,unit-norm".parse()?;
    let (mut quickest, mut bytes) = ([f64::INFINITY; 2], 0.0);
    for _ in 0..repeat {
        let start = Instant::now();
        let parts = read::<f32>(path, &ReadOptions::default())?;
        let read = start.elapsed().as_secs_f64();
        let all = [Some(parts.train), parts.test];
        let features = all.into_iter().flatten().map(|part| part.features);
        let features: Vec<_> = features.collect();
        let values: usize = features.iter().map(|x| x.values().len()).sum();
        let start = Instant::now();
        for x in features {
            steps.fit(x, None)?;
        }
        let normalised = start.elapsed().as_secs_f64();
        // Of one and the same run.
        if read + normalised < quickest.iter().sum() {
            (quickest, bytes) = ([read, normalised], 4.0 * values as f64);
        }
    }
    say(format!("{}, f32", path.display()));
    let whole: f64 = quickest.iter().sum();
    let lines = [
        ("reading", quickest[0]),
        ("center, unit-norm", quickest[1]),
        ("both", whole),
    ];
    for (name, seconds) in lines {
        table.line(name, seconds, bytes / seconds / 1e9, "GB/s");
    }
    Ok(())
}
