//! What the rows of each class count in training.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

const NAME: &str = "class-weight";
const BALANCED: &str = "balanced";

/// Weights of classes, which multiply those of their rows.
///
/// ```
/// use lssvm::train::ClassWeight;
/// let weight: ClassWeight = "spam=5,ham=1".parse()?;
/// assert_eq!(weight.to_string(), "ham=1,spam=5");
/// assert_eq!("balanced".parse::<ClassWeight>()?, ClassWeight::Balanced);
/// # Ok::<(), lssvm::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub enum ClassWeight {
    /// N / (K · rows of the class): all classes count the same.
    Balanced,
    /// By name; classes that are not named count 1.
    Named(BTreeMap<String, f64>),
}

/// As files have it: a word, or a table.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Word(Word),
    Table(BTreeMap<String, f64>),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    Balanced,
}

impl From<Written> for ClassWeight {
    fn from(written: Written) -> Self {
        match written {
            Written::Word(Word::Balanced) => ClassWeight::Balanced,
            Written::Table(weights) => ClassWeight::Named(weights),
        }
    }
}

impl From<ClassWeight> for Written {
    fn from(weight: ClassWeight) -> Self {
        match weight {
            ClassWeight::Balanced => Written::Word(Word::Balanced),
            ClassWeight::Named(weights) => Written::Table(weights),
        }
    }
}

impl FromStr for ClassWeight {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == BALANCED {
            return Ok(ClassWeight::Balanced);
        }
        let pair = |part: &str| {
            let (name, weight) = part.rsplit_once('=')?;
            Some((name.trim().to_string(), weight.trim().parse().ok()?))
        };
        let weights: Option<BTreeMap<String, f64>> = text.split(',').map(pair).collect();
        weights.map(ClassWeight::Named).ok_or_else(|| {
            let requirement = "must be 'balanced', or classes with their weights: spam=5,ham=1";
            Error::parameter(NAME, text, requirement)
        })
    }
}

impl fmt::Display for ClassWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClassWeight::Balanced => f.write_str(BALANCED),
            ClassWeight::Named(weights) => {
                let pairs = weights.iter().map(|(name, w)| format!("{name}={w}"));
                f.write_str(&pairs.collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl ClassWeight {
    /// The weight of each class; `codes` are the classes of the training rows.
    pub(super) fn of_classes(&self, names: &[String], codes: &[u32]) -> Result<Vec<f64>> {
        match self {
            ClassWeight::Balanced => {
                let mut counts = vec![0usize; names.len()];
                codes.iter().for_each(|&code| counts[code as usize] += 1);
                let weight = |count: &usize| codes.len() as f64 / (names.len() * count) as f64;
                // A class without rows has no row to weigh.
                let weight = |count: &usize| if *count == 0 { 1.0 } else { weight(count) };
                Ok(counts.iter().map(weight).collect())
            }
            ClassWeight::Named(weights) => {
                for (name, &weight) in weights {
                    if !names.contains(name) {
                        return Err(Error::parameter(
                            NAME,
                            self,
                            format!("there is no class '{name}' among {}", names.join(", ")),
                        ));
                    }
                    if !(weight >= 0.0 && weight.is_finite()) {
                        let requirement = "weights must be finite and not negative";
                        return Err(Error::parameter(NAME, self, requirement));
                    }
                }
                let weight = |name| weights.get(name).copied().unwrap_or(1.0);
                Ok(names.iter().map(weight).collect())
            }
        }
    }

    /// For a task that has no classes.
    pub(super) fn refused(&self) -> Error {
        Error::parameter(NAME, self, "regression has no classes; give rows weights")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["ham", "spam"].map(String::from).to_vec()
    }

    #[test]
    fn balanced_classes_count_the_same() {
        let weights = ClassWeight::Balanced.of_classes(&names(), &[0, 0, 0, 1]);
        assert_eq!(weights.unwrap(), [4.0 / 6.0, 2.0]);
    }

    #[test]
    fn names_and_numbers_are_checked() {
        let weights = |text: &str| {
            let weight: ClassWeight = text.parse()?;
            weight.of_classes(&names(), &[0, 1])
        };
        assert_eq!(weights("spam=3").unwrap(), [1.0, 3.0]);
        for (text, expected) in [
            ("egg=3", "there is no class 'egg' among ham, spam"),
            ("spam=-1", "not negative"),
            ("spam=NaN", "not negative"),
            ("spam", "must be 'balanced'"),
            ("spam=much", "must be 'balanced'"),
        ] {
            let error = weights(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_word_or_a_table_in_files() {
        for (weight, json) in [
            (ClassWeight::Balanced, "\"balanced\""),
            ("a=2".parse().unwrap(), "{\"a\":2.0}"),
        ] {
            assert_eq!(serde_json::to_string(&weight).unwrap(), json);
            assert_eq!(serde_json::from_str::<ClassWeight>(json).unwrap(), weight);
        }
    }
}
