//! Which part of the values a plot shows.
//!
//! A learning curve starts far from where it ends: a few first points that
//! take most of the height leave the rest a flat line. So a linear y axis may
//! leave out the farthest tenth of a curve's points, if the rest then has
//! much more room; where curves leave the plot is said in it.

use super::{Axis, Plot, Scale, SeriesStyle};

/// Beyond this, differences of two values are no longer finite.
const LARGEST: f64 = 1e300;

/// Below this, values are as good as equal: their digits cannot be written.
const SMALLEST: f64 = 1e-290;

/// Curves with fewer points are shown whole.
const FEW_POINTS: usize = 12;

/// The share of a curve's points that may be left out at either end.
const OUTSIDE: f64 = 0.1;

/// Points are left out if showing them takes this many times the height.
const WORTH: f64 = 1.7;

/// Empty room beside the outermost points, as a share of the range.
const MARGIN: f64 = 0.05;

/// Whether a value can be drawn.
pub fn drawable(value: f64, scale: Scale) -> bool {
    value.abs() <= LARGEST && (scale == Scale::Linear || value > 1.0 / LARGEST)
}

/// The ranges of x and y; none if there is nothing to draw.
pub fn ranges(plot: &Plot) -> Option<[(f64, f64); 2]> {
    let (mut xs, mut ys) = (Extent::default(), Extent::default());
    let (mut bars, mut clouds) = (false, false);
    for series in &plot.series {
        let shown = |p: &&(f64, f64)| drawable(p.0, plot.x.scale) && drawable(p.1, plot.y.scale);
        let points: Vec<_> = series.points.iter().filter(shown).copied().collect();
        points.iter().for_each(|p| xs.add(p.0));
        clouds |= series.style == SeriesStyle::Dots;
        bars |= series.style == SeriesStyle::Bars && !points.is_empty();
        ys.add_series(series.style, points.iter().map(|p| p.1).collect());
    }
    if xs.is_empty() {
        return None;
    }
    let mut y = ys.robust(plot.y.scale);
    for mark in &plot.marks {
        for side in [-1.0, 1.0] {
            let end = mark.value + side * mark.spread.unwrap_or(0.0).abs();
            if drawable(end, plot.y.scale) {
                y = (y.0.min(end), y.1.max(end));
            }
        }
    }
    if bars && plot.y.scale == Scale::Linear {
        y = (y.0.min(0.0), y.1.max(0.0));
    }
    let x = match (bars, clouds) {
        // A curve begins at the axis; bars and dots need their own width.
        (true, _) => padded((xs.low, xs.high), plot.x.scale, bar_margin(plot)),
        (_, true) => padded((xs.low, xs.high), plot.x.scale, MARGIN / 2.0),
        _ => (xs.low, xs.high),
    };
    let y = padded(y, plot.y.scale, MARGIN);
    Some([limited(x, &plot.x), limited(y, &plot.y)])
}

/// Half a bar beside the first and the last.
fn bar_margin(plot: &Plot) -> f64 {
    let most = plot.series.iter().map(|s| s.points.len()).max();
    0.6 / most.unwrap_or(1).saturating_sub(1).max(1) as f64
}

/// The least and the greatest value, and what is left without a few.
struct Extent {
    low: f64,
    high: f64,
    inner: (f64, f64),
}

impl Default for Extent {
    fn default() -> Self {
        let nothing = (f64::INFINITY, f64::NEG_INFINITY);
        Self {
            low: nothing.0,
            high: nothing.1,
            inner: nothing,
        }
    }
}

impl Extent {
    fn is_empty(&self) -> bool {
        self.low > self.high
    }

    fn add(&mut self, value: f64) {
        self.low = self.low.min(value);
        self.high = self.high.max(value);
    }

    fn add_series(&mut self, style: SeriesStyle, mut values: Vec<f64>) {
        values.iter().for_each(|&v| self.add(v));
        values.sort_unstable_by(f64::total_cmp);
        let Some(last) = values.len().checked_sub(1) else {
            return;
        };
        let out = match style == SeriesStyle::Line && values.len() >= FEW_POINTS {
            true => (OUTSIDE * values.len() as f64) as usize,
            false => 0,
        };
        self.inner.0 = self.inner.0.min(values[out]);
        self.inner.1 = self.inner.1.max(values[last - out]);
    }

    /// All of it, or without the far ends if they cost too much height.
    fn robust(&self, scale: Scale) -> (f64, f64) {
        if scale == Scale::Log || self.inner.0 >= self.inner.1 {
            return (self.low, self.high);
        }
        let (mut low, mut high) = (self.low, self.high);
        // One end at a time: most curves have one far end.
        if high - low > WORTH * (self.inner.1 - low) {
            high = self.inner.1 + 0.25 * (self.inner.1 - low);
        }
        if high - low > WORTH * (high - self.inner.0) {
            low = self.inner.0 - 0.25 * (high - self.inner.0);
        }
        (low, high)
    }
}

/// With a margin; never empty, and not below zero for its sake.
fn padded((low, high): (f64, f64), scale: Scale, margin: f64) -> (f64, f64) {
    match scale {
        Scale::Log => {
            let by = (margin * (high.ln() - low.ln())).exp().clamp(1.05, 1e6);
            (low / by, high * by)
        }
        Scale::Linear => {
            let span = match high - low {
                0.0 if low == 0.0 => 1.0,
                0.0 => low.abs(),
                span => span,
            };
            let below = low - margin * span;
            let low = if low >= 0.0 { below.max(0.0) } else { below };
            (low, high + margin * span)
        }
    }
}

/// As the axis says where it does; the result is never empty.
fn limited((low, high): (f64, f64), axis: &Axis) -> (f64, f64) {
    let given = |limit: Option<f64>| limit.filter(|&v| drawable(v, axis.scale));
    let low = given(axis.from).unwrap_or(low);
    let high = given(axis.to).unwrap_or(high);
    if high - low > SMALLEST {
        return (low, high);
    }
    match axis.scale {
        Scale::Log => (low / 2.0, low * 2.0),
        Scale::Linear => {
            let by = if low.abs() < SMALLEST {
                1.0
            } else {
                0.1 * low.abs()
            };
            (low - by, low + by)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Series;

    fn y_range(values: &[f64], axis: Axis) -> (f64, f64) {
        let points = values.iter().enumerate().map(|(i, &v)| (i as f64, v));
        let mut plot = Plot::new("p", "p", Axis::new("x"), axis);
        plot.series.push(Series::line("s", points.collect()));
        ranges(&plot).unwrap()[1]
    }

    #[test]
    fn a_far_start_leaves_room_for_the_rest() {
        let curve: Vec<f64> = (0..600)
            .map(|i| 1.1 + 3.0 * (-f64::from(i) / 6.0).exp())
            .collect();
        let (low, high) = y_range(&curve, Axis::new("y"));
        assert!(low > 0.9 && high < 2.0, "{low} to {high}");
        let (_, high) = y_range(&curve, Axis::new("y").to(5.0));
        assert_eq!(high, 5.0);
    }

    #[test]
    fn ordinary_curves_are_shown_whole() {
        let curve: Vec<f64> = (0..100).map(f64::from).collect();
        let (low, high) = y_range(&curve, Axis::new("y"));
        assert!(low <= 0.0 && high >= 99.0);
    }

    #[test]
    fn no_range_is_empty() {
        for values in [&[0.0][..], &[5.0], &[-3.0, -3.0], &[f64::NAN, 2.0]] {
            let (low, high) = y_range(values, Axis::new("y"));
            assert!(low < high, "{low} to {high}");
            let (low, high) = y_range(values, Axis::new("y").from(7.0).to(7.0));
            assert!(low < high, "{low} to {high}");
        }
        let plot = Plot::new("p", "p", Axis::new("x"), Axis::new("y"));
        assert_eq!(ranges(&plot), None);
    }
}
