//! The shape of an image whose pixels are the features.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The shape of the image that a row of features holds, plane after plane,
/// each plane row after row.
///
/// ```
/// use lssvm::data::ImageShape;
/// let shape: ImageShape = "3x32x32".parse()?;
/// assert_eq!((shape.channels, shape.len()), (3, 3072));
/// assert_eq!("28x28".parse::<ImageShape>()?.to_string(), "28x28");
/// # Ok::<(), lssvm::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct ImageShape {
    /// Colour planes: 1 for grey, 3 for red, green and blue.
    pub channels: usize,
    /// Pixels from top to bottom.
    pub height: usize,
    /// Pixels from left to right.
    pub width: usize,
}

/// As people write it, or as a configuration that was printed has it.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a shape such as '28x28' or '3x32x32'")]
enum Written {
    Text(String),
    Sizes {
        channels: usize,
        height: usize,
        width: usize,
    },
}

impl TryFrom<Written> for ImageShape {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self> {
        match written {
            Written::Text(text) => text.parse(),
            Written::Sizes {
                channels,
                height,
                width,
            } => format!("{channels}x{height}x{width}").parse(),
        }
    }
}

impl ImageShape {
    /// Number of features: `channels * height * width`.
    #[allow(clippy::len_without_is_empty)] // no image is empty
    pub fn len(&self) -> usize {
        self.channels * self.height * self.width
    }
}

impl fmt::Display for ImageShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.channels {
            1 => write!(f, "{}x{}", self.height, self.width),
            channels => write!(f, "{channels}x{}x{}", self.height, self.width),
        }
    }
}

impl FromStr for ImageShape {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let sizes: Option<Vec<usize>> = text
            .split('x')
            .map(|size| size.parse().ok().filter(|&size| size > 0))
            .collect();
        let (channels, height, width) = match sizes.as_deref() {
            Some(&[height, width]) => (1, height, width),
            Some(&[channels, height, width]) => (channels, height, width),
            _ => {
                return Err(Error::parameter(
                    "image shape",
                    text,
                    "write HEIGHTxWIDTH or CHANNELSxHEIGHTxWIDTH, such as 28x28 or 3x32x32",
                ));
            }
        };
        if channels
            .checked_mul(height)
            .and_then(|n| n.checked_mul(width))
            .is_none()
        {
            return Err(Error::parameter(
                "image shape",
                text,
                "such an image is too large",
            ));
        }
        Ok(Self {
            channels,
            height,
            width,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_read_and_write() {
        for text in ["28x28", "3x32x32", "1x5"] {
            assert_eq!(text.parse::<ImageShape>().unwrap().to_string(), text);
        }
        for text in ["", "28", "0x3", "2x2x2x2", "axb", "-1x3"] {
            let message = text.parse::<ImageShape>().unwrap_err().to_string();
            assert!(message.contains("such as 28x28"), "{message}");
        }
        let shape: ImageShape = "3x4x5".parse().unwrap();
        let sizes = serde_json::json!({"channels": 3, "height": 4, "width": 5});
        for written in [sizes, "3x4x5".into(), serde_json::to_value(shape).unwrap()] {
            assert_eq!(
                serde_json::from_value::<ImageShape>(written).unwrap(),
                shape
            );
        }
        for wrong in [
            serde_json::json!({"channels": 0, "height": 4, "width": 5}),
            3.into(),
        ] {
            let message = serde_json::from_value::<ImageShape>(wrong).unwrap_err();
            assert!(message.to_string().contains("28x28"), "{message}");
        }
        let huge = format!("{0}x{0}", usize::MAX);
        assert!(huge.parse::<ImageShape>().is_err());
    }
}
