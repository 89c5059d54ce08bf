//! Small pictures: pixels, PNG, and images taken from data sets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lssvm::data::{Dataset, ImageShape};
use lssvm::linalg::Scalar;
use serde::Serialize;

/// A grey or coloured picture.
///
/// ```
/// use lssvm_report::Picture;
/// let grey = Picture { width: 2, height: 1, channels: 1, pixels: vec![0, 255] };
/// assert!(grey.data_uri().unwrap().starts_with("data:image/png;base64,"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Picture {
    /// Pixels from left to right.
    pub width: usize,
    /// Pixels from top to bottom.
    pub height: usize,
    /// 1 for grey, 3 for red, green and blue.
    pub channels: usize,
    /// Row after row, the channels of a pixel side by side. Not in the JSON:
    /// a few hundred pictures would be most of it.
    #[serde(skip)]
    pub pixels: Vec<u8>,
}

impl Picture {
    /// As a PNG file; none if the sizes do not agree with the pixels.
    pub fn to_png(&self) -> Option<Vec<u8>> {
        let pixels = self.width.checked_mul(self.height)?;
        let whole = pixels.checked_mul(self.channels) == Some(self.pixels.len());
        let (width, height) = (self.width.try_into().ok()?, self.height.try_into().ok()?);
        if !whole || pixels == 0 {
            return None;
        }
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(match self.channels {
            1 => png::ColorType::Grayscale,
            3 => png::ColorType::Rgb,
            _ => return None,
        });
        encoder.set_depth(png::BitDepth::Eight);
        // Most images of a report are tiny; filters only help large ones.
        encoder.set_compression(png::Compression::High);
        let mut writer = encoder.write_header().ok()?;
        writer.write_image_data(&self.pixels).ok()?;
        writer.finish().ok()?;
        Some(file)
    }

    /// As the address of an image, with the PNG inside.
    pub fn data_uri(&self) -> Option<String> {
        let file = self.to_png()?;
        Some(format!("data:image/png;base64,{}", STANDARD.encode(file)))
    }
}

/// The images of a data set, a byte a value.
#[derive(Debug, Clone)]
pub struct Pictures {
    shape: ImageShape,
    values: Vec<u8>,
}

impl Pictures {
    /// Takes the raw features, before any preprocessing; none if they are not
    /// grey or RGB images.
    ///
    /// Whole numbers from 0 to 255 are bytes already. All else is stretched
    /// from the least to the greatest value of the whole set, so that images
    /// can be compared with one another.
    pub fn new<T: Scalar>(data: &Dataset<T>) -> Option<Self> {
        let shape = data.image?;
        let fits = shape.len() == data.n_features() && matches!(shape.channels, 1 | 3);
        if !fits || data.n_samples() == 0 {
            return None;
        }
        let values = || data.features.values().iter().map(|v| v.to_f64());
        let bytes = values().all(|v| (0.0..=255.0).contains(&v) && v.fract() == 0.0);
        let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
            (l.min(v), h.max(v))
        });
        // A set of zeros and ones are black and white, not two kinds of black.
        let (low, scale) = match bytes && high > 1.0 {
            true => (0.0, 1.0),
            false => (low, 255.0 / (high - low).max(f64::MIN_POSITIVE)),
        };
        let values = values().map(|v| ((v - low) * scale).round() as u8);
        Some(Self {
            shape,
            values: values.collect(),
        })
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.values.len() / self.shape.len().max(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The image of a row, if there is such a row.
    pub fn picture(&self, row: usize) -> Option<Picture> {
        let ImageShape {
            channels,
            height,
            width,
        } = self.shape;
        let start = row.checked_mul(self.shape.len())?;
        let planes = self.values.get(start..start + self.shape.len())?;
        // Features are plane after plane; a picture has pixel after pixel.
        let size = height * width;
        let pixels = (0..size).flat_map(|i| (0..channels).map(move |c| planes[c * size + i]));
        Some(Picture {
            width,
            height,
            channels,
            pixels: pixels.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lssvm::linalg::Matrix;

    fn dataset(values: Vec<f32>, cols: usize, shape: &str) -> Dataset<f32> {
        let x = Matrix::from_vec(values.len() / cols, cols, values);
        let mut data = Dataset::new("images".as_ref(), x);
        data.image = Some(shape.parse().unwrap());
        data
    }

    #[test]
    fn bytes_stay_and_other_ranges_are_stretched() {
        let bytes = Pictures::new(&dataset(vec![0.0, 7.0, 200.0, 3.0], 2, "1x2")).unwrap();
        assert_eq!(bytes.len(), 2);
        assert_eq!(bytes.picture(0).unwrap().pixels, [0, 7]);
        let shares = Pictures::new(&dataset(vec![-1.0, 0.0, 1.0, 1.0], 2, "1x2")).unwrap();
        assert_eq!(shares.picture(0).unwrap().pixels, [0, 128]);
        assert!(shares.picture(2).is_none());
        let constant = Pictures::new(&dataset(vec![0.5; 4], 2, "1x2")).unwrap();
        assert_eq!(constant.picture(1).unwrap().pixels, [0, 0]);
    }

    #[test]
    fn planes_become_pixels() {
        let values = vec![255.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let pictures = Pictures::new(&dataset(values, 6, "3x1x2")).unwrap();
        assert_eq!(pictures.picture(0).unwrap().pixels, [255, 3, 5, 2, 4, 6]);
    }

    #[test]
    fn rows_that_are_no_images_have_no_pictures() {
        let mut data = dataset(vec![0.0; 4], 2, "1x2");
        data.image = None;
        assert!(Pictures::new(&data).is_none());
        assert!(Pictures::new(&dataset(vec![0.0; 4], 4, "2x1x2")).is_none());
        let broken = Picture {
            width: 3,
            height: 2,
            channels: 1,
            pixels: vec![0; 5],
        };
        assert!(broken.to_png().is_none());
    }
}
