//! Images seen in other ways: shifted, mirrored, turned. Rows are multiplied without being
//! stored.

use std::f64::consts::PI;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{ImageShape, Rows, Stream};
use crate::linalg::{Matrix, Scalar};
use crate::{Error, Result};

/// In which other ways each image is seen, written as `shift=1,flip,rotate=10`.
///
/// ```
/// use lssvm::data::Augment;
/// let augment: Augment = "shift=1,flip".parse()?;
/// assert_eq!(augment.variants(), 18);
/// assert_eq!(augment.to_string(), "shift=1,flip");
/// # Ok::<(), lssvm::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Augment {
    /// Shifted by up to so many pixels in each direction: (2s + 1)² ways.
    shift: usize,
    /// Mirrored left to right, and not.
    flip: bool,
    /// Turned by so many degrees to either side, and not; 0 for never.
    rotate: f64,
}

/// The largest shift: more than that, and an image is hardly in the picture.
const LARGEST_SHIFT: usize = 16;

impl Augment {
    /// How many rows each row becomes, itself included.
    pub fn variants(&self) -> usize {
        let shifts = (2 * self.shift + 1).pow(2);
        let turns = if self.rotate > 0.0 { 3 } else { 1 };
        shifts * turns * if self.flip { 2 } else { 1 }
    }

    /// What becomes of the pixels of an image in each way; the first leaves them alone.
    fn maps(&self, image: ImageShape) -> Vec<Map> {
        let s = self.shift as i64;
        let mut shifts: Vec<(i64, i64)> = (-s..=s)
            .flat_map(|y| (-s..=s).map(move |x| (y, x)))
            .collect();
        // As it is first, then the nearest.
        shifts.sort_by_key(|(y, x)| y * y + x * x);
        let turns: &[f64] = match self.rotate > 0.0 {
            true => &[0.0, 1.0, -1.0],
            false => &[0.0],
        };
        let flips: &[bool] = if self.flip { &[false, true] } else { &[false] };
        let mut maps = Vec::with_capacity(self.variants());
        for &turn in turns {
            for &flip in flips {
                for &(dy, dx) in &shifts {
                    let angle = turn * self.rotate * PI / 180.0;
                    maps.push(Map::new(image, (dy, dx), flip, angle));
                }
            }
        }
        maps
    }
}

impl FromStr for Augment {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |requirement: &str| Error::parameter("augment", text, requirement);
        let mut augment = Augment::default();
        for part in text.split(',') {
            match part.trim().split_once('=') {
                None if part.trim() == "flip" => augment.flip = true,
                Some(("shift", pixels)) => {
                    let pixels = pixels.parse().ok();
                    let pixels = pixels.filter(|p| (1..=LARGEST_SHIFT).contains(p));
                    augment.shift = pixels.ok_or_else(|| {
                        wrong("shift must be a whole number of pixels from 1 to 16, as in shift=1")
                    })?;
                }
                Some(("rotate", degrees)) => {
                    let degrees = degrees.parse().ok();
                    let degrees = degrees.filter(|d: &f64| *d > 0.0 && *d <= 90.0);
                    augment.rotate = degrees.ok_or_else(|| {
                        wrong("rotate must be an angle in degrees up to 90, as in rotate=10")
                    })?;
                }
                _ => return Err(wrong("give shift=PIXELS, flip, rotate=DEGREES, or several")),
            }
        }
        Ok(augment)
    }
}

impl fmt::Display for Augment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.shift > 0 {
            parts.push(format!("shift={}", self.shift));
        }
        if self.flip {
            parts.push("flip".into());
        }
        if self.rotate > 0.0 {
            parts.push(format!("rotate={}", self.rotate));
        }
        f.write_str(&parts.join(","))
    }
}

impl TryFrom<String> for Augment {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Augment> for String {
    fn from(augment: Augment) -> String {
        augment.to_string()
    }
}

/// Where the pixels of an image come from. What would come from outside is the pixel at
/// the edge.
enum Map {
    /// One pixel each.
    Moved(Vec<u32>),
    /// Four neighbours each, with their shares.
    Blended(Vec<[(u32, f64); 4]>),
}

impl Map {
    fn new(image: ImageShape, (dy, dx): (i64, i64), flip: bool, angle: f64) -> Self {
        let (height, width) = (image.height as i64, image.width as i64);
        let inside = |value: i64, size: i64| value.clamp(0, size - 1);
        let place = |channel: usize, y: i64, x: i64| {
            let (y, x) = (inside(y, height), inside(x, width));
            ((channel as i64 * height + y) * width + x) as u32
        };
        let mirrored = |x: i64| if flip { width - 1 - x } else { x };
        let pixels = (0..image.channels).flat_map(|channel| {
            (0..height).flat_map(move |y| (0..width).map(move |x| (channel, y, x)))
        });
        if angle == 0.0 {
            let from = |(channel, y, x)| place(channel, y - dy, mirrored(inside(x - dx, width)));
            return Map::Moved(pixels.map(from).collect());
        }
        let (sin, cos) = angle.sin_cos();
        let middle = ((height - 1) as f64 / 2.0, (width - 1) as f64 / 2.0);
        let from = |(channel, y, x): (usize, i64, i64)| {
            // Shifted back, turned back about the middle, mirrored back.
            let (v, u) = ((y - dy) as f64 - middle.0, (x - dx) as f64 - middle.1);
            let (v, u) = (cos * v - sin * u + middle.0, sin * v + cos * u + middle.1);
            let (top, left) = (v.floor(), u.floor());
            let (down, right) = (v - top, u - left);
            let corner = |y: f64, x: f64| {
                let x = inside(x as i64, width);
                place(channel, y as i64, mirrored(x))
            };
            [
                (corner(top, left), (1.0 - down) * (1.0 - right)),
                (corner(top, left + 1.0), (1.0 - down) * right),
                (corner(top + 1.0, left), down * (1.0 - right)),
                (corner(top + 1.0, left + 1.0), down * right),
            ]
        };
        Map::Blended(pixels.map(from).collect())
    }

    fn apply<T: Scalar>(&self, image: &[T], out: &mut [T]) {
        match self {
            Map::Moved(places) => {
                for (out, &place) in out.iter_mut().zip(places) {
                    *out = image[place as usize];
                }
            }
            Map::Blended(places) => {
                for (out, four) in out.iter_mut().zip(places) {
                    let parts = four
                        .iter()
                        .map(|&(place, share)| share * image[place as usize].to_f64());
                    *out = T::from_f64(parts.sum());
                }
            }
        }
    }
}

/// Rows of images in all ways: those of one image follow each other, itself first.
pub struct Augmented<T: Scalar> {
    rows: Arc<dyn Rows<T>>,
    maps: Vec<Map>,
}

impl<T: Scalar> Augmented<T> {
    /// Images of this shape, one a row.
    ///
    /// # Panics
    /// If rows have another number of features.
    pub fn new(rows: Arc<dyn Rows<T>>, augment: &Augment, image: ImageShape) -> Self {
        assert_eq!(rows.n_features(), image.len(), "features of an image");
        Self {
            rows,
            maps: augment.maps(image),
        }
    }

    /// Applies maps to images that lie one after the other: `(image, map)` of each row.
    fn apply(
        &self,
        images: &Matrix<T>,
        which: impl Fn(usize) -> (usize, usize) + Sync,
        out: &mut [T],
    ) {
        let rows = out.par_chunks_mut(self.n_features().max(1)).enumerate();
        rows.for_each(|(at, out)| {
            let (image, map) = which(at);
            self.maps[map].apply(images.row(image), out);
        });
    }
}

impl<T: Scalar> Rows<T> for Augmented<T> {
    fn len(&self) -> usize {
        self.rows.len() * self.maps.len()
    }

    fn n_features(&self) -> usize {
        self.rows.n_features()
    }

    fn read(&self, rows: Range<usize>, out: &mut [T]) -> Result<()> {
        let ways = self.maps.len();
        let first = rows.start / ways;
        let images = self
            .rows
            .matrix(first..rows.end.div_ceil(ways).max(first))?;
        let which = |at: usize| ((rows.start + at) / ways - first, (rows.start + at) % ways);
        self.apply(&images, which, out);
        Ok(())
    }

    fn pick(&self, rows: &[usize], out: &mut [T]) -> Result<()> {
        let ways = self.maps.len();
        let images: Vec<usize> = rows.iter().map(|row| row / ways).collect();
        let images = self.rows.picked(&images)?;
        self.apply(&images, |at| (at, rows[at] % ways), out);
        Ok(())
    }
}

impl<T: Scalar> Stream<T> {
    /// Each sample in all ways, with its label and weight. Nothing is stored but these.
    ///
    /// # Errors
    /// [`Error::Data`] if the samples are not images of this shape.
    pub fn augmented(&self, augment: &Augment, image: Option<ImageShape>) -> Result<Self> {
        let image = image.filter(|image| image.len() == self.n_features());
        let image = image.ok_or_else(|| {
            Error::Data(format!(
                "{}: augmentation works on images, and their shape is not known here: give \
                 --image-shape 28x28 (with your height and width)",
                self.source.display()
            ))
        })?;
        let ways = augment.variants();
        let rows: Vec<usize> = (0..self.n_samples() * ways).map(|row| row / ways).collect();
        let features = Augmented::new(Arc::clone(&self.features), augment, image);
        Ok(self.selected(&rows, Arc::new(features)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Labels;

    fn stream(rows: usize, image: &str) -> (Stream<f32>, ImageShape) {
        let image: ImageShape = image.parse().unwrap();
        let x = Matrix::from_fn(rows, image.len(), |i, j| (100 * i + j) as f32);
        let mut stream = Stream::new("images".as_ref(), Arc::new(x) as Arc<dyn Rows<f32>>);
        stream.labels = Some(Labels::from_text((0..rows).map(|i| ["a", "b"][i % 2])));
        stream.weights = Some((0..rows).map(|i| i as f64).collect());
        (stream, image)
    }

    #[test]
    fn shifts_move_all_pixels_and_repeat_the_edge() {
        let (data, image) = stream(2, "2x3");
        let shifted = data
            .augmented(&"shift=1".parse().unwrap(), Some(image))
            .unwrap();
        assert_eq!(shifted.n_samples(), 18);
        let all = shifted.features.load().unwrap();
        assert_eq!(all.row(0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(all.row(9), [100.0, 101.0, 102.0, 103.0, 104.0, 105.0]);
        let rows: Vec<&[f32]> = (0..9).map(|i| all.row(i)).collect();
        // To the right, down, and up to the left.
        for expected in [
            [0.0, 0.0, 1.0, 3.0, 3.0, 4.0],
            [0.0, 1.0, 2.0, 0.0, 1.0, 2.0],
            [4.0, 5.0, 5.0, 4.0, 5.0, 5.0],
        ] {
            assert!(rows.contains(&&expected[..]), "{expected:?} in {rows:?}");
        }
        let labels = shifted.labels.unwrap();
        assert_eq!(labels.len(), 18);
        assert_eq!(shifted.weights.unwrap()[8..10], [0.0, 1.0]);
    }

    #[test]
    fn flips_and_turns() {
        let (data, image) = stream(1, "2x3");
        let flipped = data
            .augmented(&"flip".parse().unwrap(), Some(image))
            .unwrap();
        let all = flipped.features.load().unwrap();
        assert_eq!(all.row(1), [2.0, 1.0, 0.0, 5.0, 4.0, 3.0]);
        // Channels are turned each by itself; the middle stays.
        let (data, image) = stream(1, "2x3x3");
        let turned = data
            .augmented(&"rotate=90".parse().unwrap(), Some(image))
            .unwrap();
        let all = turned.features.load().unwrap();
        assert_eq!(all.rows(), 3);
        let mut quarter = all.row(1).to_vec();
        let mut back = all.row(2).to_vec();
        for row in [&mut quarter, &mut back] {
            row.iter_mut().for_each(|v| *v = (*v * 1e4).round() / 1e4);
        }
        let one = [2.0, 5.0, 8.0, 1.0, 4.0, 7.0, 0.0, 3.0, 6.0];
        let other = [6.0, 3.0, 0.0, 7.0, 4.0, 1.0, 8.0, 5.0, 2.0];
        let found = [quarter[..9].to_vec(), back[..9].to_vec()];
        assert!(
            found.contains(&one.to_vec()) && found.contains(&other.to_vec()),
            "{found:?}"
        );
        assert_eq!(quarter[9 + 4], 13.0);
    }

    #[test]
    fn any_rows_can_be_read() {
        let (data, image) = stream(5, "2x3");
        let all = data
            .augmented(&"shift=1,flip".parse().unwrap(), Some(image))
            .unwrap();
        let whole = all.features.load().unwrap();
        for range in [0..1, 17..19, 20..71, 89..90, 40..40] {
            let rows: Vec<usize> = range.clone().collect();
            assert_eq!(
                all.features.matrix(range).unwrap(),
                whole.select_rows(&rows)
            );
        }
        let some = [80, 3, 3, 19];
        assert_eq!(
            all.features.picked(&some).unwrap(),
            whole.select_rows(&some)
        );
    }

    #[test]
    fn wrong_words_are_refused() {
        for bad in [
            "",
            "shift",
            "shift=0",
            "shift=1.5",
            "shift=99",
            "rotate=0",
            "rotate=x",
            "zoom=2",
        ] {
            assert!(bad.parse::<Augment>().is_err(), "{bad}");
        }
        let (data, _) = stream(2, "2x3");
        let augment = "flip".parse().unwrap();
        let error = data.augmented(&augment, None).unwrap_err();
        assert!(error.to_string().contains("--image-shape"), "{error}");
    }
}
