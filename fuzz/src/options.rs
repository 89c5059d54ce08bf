//! Texts of settings: understood or refused. What is understood means the same when it is
//! written and read again, and can be run or is refused.

use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::sync::Arc;

use lssvm::data::{Augment, Column, Dataset, Format, ImageShape, Labels, Rows, Stream, Task};
use lssvm::kernel::{Gamma, KernelName};
use lssvm::linalg::Matrix;
use lssvm::memory::Size;
use lssvm::preprocess::{PipelineSpec, StepSpec};
use lssvm::solve::Method;
use lssvm::train::{ClassWeight, Config, Data, fit, forecast};

use super::checkpoint::Stop;

/// Any text as each of the settings, and as a file of them.
pub fn options(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    twice::<StepSpec>(text);
    twice::<KernelName>(text);
    twice::<Gamma>(text);
    twice::<ClassWeight>(text);
    twice::<ImageShape>(text);
    twice::<Column>(text);
    twice::<Format>(text);
    twice::<Task>(text);
    twice::<Method>(text);
    // Written with a unit, it is rounded.
    let _ = text.parse::<Size>();
    if let Some(spec) = twice::<PipelineSpec>(text) {
        preprocessed(&spec);
    }
    if let Some(augment) = twice::<Augment>(text) {
        augmented(&augment);
    }
    if let Ok(config) = toml::from_str::<Config>(text) {
        let json = serde_json::to_string(&config).expect("settings");
        assert_eq!(
            serde_json::from_str::<Config>(&json).expect("the same"),
            config
        );
        run(config);
    }
}

/// What the text means, if that is known.
fn twice<V: FromStr + Display + Debug>(text: &str) -> Option<V> {
    let value: V = text.parse().ok()?;
    let written = value.to_string();
    let again = written.parse::<V>().ok();
    // By their names: no NaN equals another.
    let (now, then) = (format!("{again:?}"), format!("{:?}", Some(&value)));
    assert_eq!(now, then, "{text:?} is written as {written:?}");
    Some(value)
}

/// Eight grey images of 4 × 4 pixels.
fn images() -> Matrix<f32> {
    Matrix::from_fn(8, 16, |i, j| ((i * 5 + j * 3) % 11) as f32)
}

fn preprocessed(spec: &PipelineSpec) {
    for image in [None, Some([1, 4, 4])] {
        let Ok((pipeline, made)) = spec.fit(images(), image) else {
            continue;
        };
        assert_eq!(pipeline.transform(images()).expect("as before"), made);
        assert_eq!(pipeline.spec(), *spec);
        let rows: Arc<dyn Rows<f32>> = Arc::new(images());
        assert_eq!(spec.fit_rows(&rows, image).expect("as before"), pipeline);
        let text = serde_json::to_string(&pipeline).expect("a pipeline");
        assert_eq!(
            serde_json::from_str::<lssvm::preprocess::Pipeline>(&text).expect("the same"),
            pipeline
        );
    }
}

fn augmented(augment: &Augment) {
    let stream = Stream::from(Dataset::new("images".as_ref(), images())).head(1);
    let seen = stream
        .augmented(augment, "4x4".parse().ok())
        .expect("images");
    assert_eq!(seen.n_samples(), augment.variants());
    let seen = seen.load().expect("they are in memory");
    assert!(seen.features.values().iter().all(|value| value.is_finite()));
}

/// A run with these settings, for an iteration.
fn run(config: Config) {
    let config = Config {
        threads: Some(1),
        time: config.time.map(|seconds| seconds.min(1.0)),
        ..config
    };
    let data = || {
        let mut train = Dataset::new("images".as_ref(), images());
        train.labels = Some(Labels::from_text((0..8).map(|i| ["0", "1.5"][i % 2])));
        Data {
            train,
            validation: None,
            test: None,
        }
    };
    if forecast(data(), &config).is_ok() {
        let _ = fit(data(), &config, &mut Stop(1));
    }
}
