//! The rectangle of a plot's data: from values to places.

use super::labels::Item;
use super::range::drawable;
use super::{Scale, SeriesStyle};

/// A curve that ends farther left, as a share of the width, is named in the
/// legend only.
const NEAR_END: f64 = 0.85;

/// The rectangle of the data, and what it shows.
pub struct Frame {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    pub x: (f64, f64),
    pub y: (f64, f64),
    pub scales: (Scale, Scale),
}

impl Frame {
    /// Across, from the left of the frame.
    pub fn across(&self, value: f64) -> f64 {
        self.width * share(value, self.x, self.scales.0)
    }

    /// Down, from the top of the frame.
    pub fn down(&self, value: f64) -> f64 {
        self.height * (1.0 - share(value, self.y, self.scales.1))
    }

    /// Whether a point can be drawn, inside or outside.
    pub fn shows(&self, point: &(f64, f64)) -> bool {
        drawable(point.0, self.scales.0) && drawable(point.1, self.scales.1)
    }
}

/// Where a value is in a range, from 0 to 1.
pub fn share(value: f64, (low, high): (f64, f64), scale: Scale) -> f64 {
    let share = match scale {
        Scale::Linear => (value - low) / (high - low),
        Scale::Log => (value.ln() - low.ln()) / (high.ln() - low.ln()),
    };
    // Far outside is outside: coordinates stay short and valid.
    share.clamp(-10.0, 10.0)
}

impl Item<'_> {
    /// Whether it ends near the right of the frame, so that a label there is
    /// its own.
    pub fn reaches_end(&self, x: (f64, f64), scale: Scale) -> bool {
        match self {
            Item::Mark(_) => true,
            Item::Series(_, series) if series.style == SeriesStyle::Line => {
                let xs = series.points.iter().map(|p| p.0);
                let last = xs.filter(|&v| drawable(v, scale)).reduce(f64::max);
                last.is_some_and(|last| share(last, x, scale) >= NEAR_END)
            }
            _ => false,
        }
    }

    /// How far down in the frame it ends, if it is labelled there.
    pub fn end(&self, frame: &Frame) -> Option<f64> {
        if !self.reaches_end(frame.x, frame.scales.0) {
            return None;
        }
        let value = match self {
            Item::Mark(mark) => Some(mark.value),
            Item::Series(_, series) => {
                let mut drawn = series.points.iter().rev().filter(|p| frame.shows(p));
                drawn.find(|p| p.0 <= frame.x.1).map(|p| p.1)
            }
            Item::Diagonal => None,
        };
        let value = value.filter(|&v| drawable(v, frame.scales.1))?;
        Some(frame.down(value).clamp(0.0, frame.height))
    }
}
