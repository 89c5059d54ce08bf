//! Steps as text: `window:c=0.004,fourier:transform=2d`.
//!
//! The same words on the command line, in experiment files and in models.
//! Parameters that have their default value are left out when written.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{FourierSpec, Order, Transform, WindowSpec};
use crate::{Error, Result};

/// The name under which all of this is given.
const NAME: &str = "preprocess";
/// A pipeline without steps.
const NONE: &str = "none";

const CENTER: &str = "center";
const UNIT_NORM: &str = "unit-norm";
const WINDOW: &str = "window";
const FOURIER: &str = "fourier";
const STANDARDIZE: &str = "standardize";
const MAX_ABS: &str = "max-abs";
const MIN_MAX: &str = "min-max";
const STEPS: [&str; 7] = [
    CENTER,
    UNIT_NORM,
    WINDOW,
    FOURIER,
    STANDARDIZE,
    MAX_ABS,
    MIN_MAX,
];

/// Steps to be fitted, first to last; none leaves the data as they are.
///
/// Read from and written as text, also by serde:
///
/// ```
/// use lssvm::preprocess::PipelineSpec;
/// let spec: PipelineSpec = "window,fourier:exponent=0.5:transform=2d".parse()?;
/// assert_eq!(spec.to_string(), "window,fourier:transform=2d");
/// assert_eq!(PipelineSpec::default().to_string(), "none");
/// # Ok::<(), lssvm::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineSpec(pub Vec<StepSpec>);

/// One step to be fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum StepSpec {
    /// Subtracts from each row its mean.
    Center,
    /// Divides each row by its Euclidean norm.
    UnitNorm,
    /// Weakens the rim of images.
    Window(WindowSpec),
    /// Joins to each row the size of its Fourier transform.
    Fourier(FourierSpec),
    /// Each column to mean 0 and variance 1.
    Standardize,
    /// Each column by its greatest absolute value.
    MaxAbs,
    /// Each column to [0, 1].
    MinMax,
}

impl StepSpec {
    /// Whether the parameters are in their range.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            StepSpec::Window(spec) => spec.check(),
            StepSpec::Fourier(spec) => spec.check(),
            _ => Ok(()),
        }
    }
}

impl PipelineSpec {
    /// Whether every step may leave zeros as they are; `min-max` does or does not, depending
    /// on the data.
    pub fn may_keep_zeros(&self) -> bool {
        let keeps = |step: &StepSpec| {
            matches!(
                step,
                StepSpec::UnitNorm | StepSpec::MaxAbs | StepSpec::MinMax
            )
        };
        self.0.iter().all(keeps)
    }
}

impl FromStr for PipelineSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.is_empty() || text == NONE {
            return Ok(PipelineSpec::default());
        }
        text.split(',')
            .map(str::parse)
            .collect::<Result<_>>()
            .map(PipelineSpec)
    }
}

impl fmt::Display for PipelineSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(NONE);
        }
        for (k, step) in self.0.iter().enumerate() {
            let comma = if k == 0 { "" } else { "," };
            write!(f, "{comma}{step}")?;
        }
        Ok(())
    }
}

impl FromStr for StepSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.split(':').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let mut parameters = Parameters::read(name, parts)?;
        let step = match name {
            CENTER => StepSpec::Center,
            UNIT_NORM => StepSpec::UnitNorm,
            STANDARDIZE => StepSpec::Standardize,
            MAX_ABS => StepSpec::MaxAbs,
            MIN_MAX => StepSpec::MinMax,
            WINDOW => StepSpec::Window(WindowSpec {
                c: parameters.number("c")?,
                first: parameters.word("first", &[("1", 1), ("0", 0)])?,
            }),
            FOURIER => {
                let default = FourierSpec::default();
                let transforms = [
                    ("1d", Transform::OneD),
                    ("1d-channel", Transform::OneDChannel),
                    ("2d", Transform::TwoD),
                ];
                let orders = [("columns", Order::Columns), ("rows", Order::Rows)];
                StepSpec::Fourier(FourierSpec {
                    exponent: parameters.number("exponent")?.unwrap_or(default.exponent),
                    transform: parameters.word("transform", &transforms)?,
                    order: parameters.word("order", &orders)?,
                })
            }
            _ => {
                return Err(Error::parameter(
                    NAME,
                    name,
                    format!("is no step; the steps are {} (or {NONE})", STEPS.join(", ")),
                ));
            }
        };
        parameters.finish()?;
        step.check()?;
        Ok(step)
    }
}

impl fmt::Display for StepSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepSpec::Center => f.write_str(CENTER),
            StepSpec::UnitNorm => f.write_str(UNIT_NORM),
            StepSpec::Standardize => f.write_str(STANDARDIZE),
            StepSpec::MaxAbs => f.write_str(MAX_ABS),
            StepSpec::MinMax => f.write_str(MIN_MAX),
            StepSpec::Window(spec) => {
                f.write_str(WINDOW)?;
                if let Some(c) = spec.c {
                    write!(f, ":c={}", Number(c))?;
                }
                if spec.first != WindowSpec::default().first {
                    write!(f, ":first={}", spec.first)?;
                }
                Ok(())
            }
            StepSpec::Fourier(spec) => {
                f.write_str(FOURIER)?;
                if spec.exponent != FourierSpec::default().exponent {
                    write!(f, ":exponent={}", Number(spec.exponent))?;
                }
                match spec.transform {
                    Transform::OneD => {}
                    Transform::OneDChannel => f.write_str(":transform=1d-channel")?,
                    Transform::TwoD => f.write_str(":transform=2d")?,
                }
                if spec.order == Order::Rows {
                    f.write_str(":order=rows")?;
                }
                Ok(())
            }
        }
    }
}

/// The parameters of a step that have not been asked for yet.
struct Parameters<'a> {
    step: &'a str,
    given: Vec<(&'a str, &'a str)>,
    known: Vec<&'static str>,
}

impl<'a> Parameters<'a> {
    fn read(step: &'a str, parts: impl Iterator<Item = &'a str>) -> Result<Self> {
        let mut given: Vec<(&str, &str)> = Vec::new();
        for part in parts {
            let Some((key, value)) = part.split_once('=') else {
                let what = format!("{step}:{part}");
                let how = "a parameter is written name=value, as in window:c=0.004";
                return Err(Error::parameter(NAME, what, how));
            };
            let (key, value) = (key.trim(), value.trim());
            if given.iter().any(|(k, _)| *k == key) {
                let what = format!("{step}:{key}={value}");
                return Err(Error::parameter(NAME, what, "is given twice; give it once"));
            }
            given.push((key, value));
        }
        Ok(Parameters {
            step,
            given,
            known: Vec::new(),
        })
    }

    fn take(&mut self, key: &'static str) -> Option<&'a str> {
        self.known.push(key);
        let at = self.given.iter().position(|(k, _)| *k == key)?;
        Some(self.given.remove(at).1)
    }

    fn number(&mut self, key: &'static str) -> Result<Option<f64>> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let number = value.parse();
        number
            .map(Some)
            .map_err(|_| self.wrong(key, value, "must be a number"))
    }

    /// The choice that is named, or the first one.
    fn word<C: Copy>(&mut self, key: &'static str, choices: &[(&str, C)]) -> Result<C> {
        let value = self.take(key).unwrap_or(choices[0].0);
        match choices.iter().find(|(word, _)| *word == value) {
            Some((_, choice)) => Ok(*choice),
            None => {
                let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
                Err(self.wrong(key, value, format!("must be {}", words.join(" or "))))
            }
        }
    }

    fn wrong(&self, key: &str, value: &str, requirement: impl Into<String>) -> Error {
        Error::parameter(NAME, format!("{}:{key}={value}", self.step), requirement)
    }

    /// Refuses what nobody asked for.
    fn finish(self) -> Result<()> {
        let Some((key, value)) = self.given.first() else {
            return Ok(());
        };
        let requirement = if self.known.is_empty() {
            format!("{} has no parameters", self.step)
        } else {
            let known = self.known.join(", ");
            format!("the parameters of {} are {known}", self.step)
        };
        Err(self.wrong(key, value, requirement))
    }
}

/// A number in the shorter of the two notations, read back to the same bits.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plain, scientific) = (format!("{}", self.0), format!("{:e}", self.0));
        let shorter = plain.len() <= scientific.len() + 3;
        f.write_str(if shorter { &plain } else { &scientific })
    }
}

/// serde as the text above.
macro_rules! serde_as_text {
    ($t:ty) => {
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}
serde_as_text!(PipelineSpec);
serde_as_text!(StepSpec);
