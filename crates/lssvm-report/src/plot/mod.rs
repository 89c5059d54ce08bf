//! Plots of points: lines, dots and bars over two axes, as SVG.
//!
//! ```text
//! points ─ range (what is shown) ─ frame, ticks ─ draw ─┬─ series (lines, dots, bars)
//!                                                      └─ labels (ends, legend)
//! ```
//!
//! Values that are not numbers leave gaps; a plot without any point says so.

mod draw;
mod frame;
mod labels;
mod range;
mod series;
mod ticks;

use serde::Serialize;

pub(crate) use ticks::grouped;

use crate::colours::Theme;
use crate::svg::Canvas;

/// Curves, dots or bars over two axes.
///
/// ```
/// use lssvm_report::{Axis, Mark, Plot, Series};
/// let mut plot = Plot::new("error", "Test error", Axis::new("iteration"), Axis::new("error, %"));
/// plot.series.push(Series::line("mp", vec![(1.0, 2.5), (2.0, 1.4), (3.0, 1.2)]));
/// plot.marks.push(Mark::new("paper", 1.1));
/// assert!(plot.to_svg().starts_with("<svg"));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plot {
    /// Stem of the file's name when it is saved.
    pub name: String,
    /// Title, drawn above.
    pub title: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Horizontal reference lines.
    pub marks: Vec<Mark>,
    /// Whether y = x is drawn.
    pub diagonal: bool,
}

/// One of the two axes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// How values are spread over it.
    pub scale: Scale,
    /// Least value shown; chosen from the points if not given.
    pub from: Option<f64>,
    /// Greatest value shown; chosen from the points if not given.
    pub to: Option<f64>,
}

/// How values are spread over an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By their logarithm; values that are not positive are left out.
    Log,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Name in the legend.
    pub label: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
    /// How they are drawn.
    pub style: SeriesStyle,
}

/// How points are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SeriesStyle {
    /// Joined in their order; few points get a dot each.
    Line,
    /// A dot each.
    Dots,
    /// A bar each, from zero.
    Bars,
}

/// A horizontal reference line, such as a published value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    /// Name in the legend.
    pub label: String,
    /// Height of the line.
    pub value: f64,
    /// Half the height of a band around it.
    pub spread: Option<f64>,
}

impl Plot {
    /// A plot without points.
    pub fn new(name: impl Into<String>, title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            x,
            y,
            series: Vec::new(),
            marks: Vec::new(),
            diagonal: false,
        }
    }

    /// As an SVG file that stands alone: light, with fixed colours.
    pub fn to_svg(&self) -> String {
        self.draw(Canvas::wide(Theme::Fixed), "plot")
    }

    /// What a reader who cannot see it is told.
    pub(crate) fn describe(&self) -> String {
        let curves: Vec<_> = self.series.iter().map(Series::describe).collect();
        format!(
            "{}: {} against {}. {}",
            self.title,
            self.y.label,
            self.x.label,
            curves.join("; ")
        )
    }
}

impl Axis {
    /// A linear axis that shows all points, but for a few far away.
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            scale: Scale::Linear,
            from: None,
            to: None,
        }
    }

    /// The same, with this scale.
    pub fn scale(self, scale: Scale) -> Self {
        Self { scale, ..self }
    }

    /// The same, from here.
    pub fn from(self, from: f64) -> Self {
        Self {
            from: Some(from),
            ..self
        }
    }

    /// The same, to here.
    pub fn to(self, to: f64) -> Self {
        Self {
            to: Some(to),
            ..self
        }
    }
}

impl Series {
    /// A curve.
    pub fn line(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(label, points, SeriesStyle::Line)
    }

    /// A cloud of dots.
    pub fn dots(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(label, points, SeriesStyle::Dots)
    }

    /// A row of bars.
    pub fn bars(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(label, points, SeriesStyle::Bars)
    }

    fn new(label: impl Into<String>, points: Vec<(f64, f64)>, style: SeriesStyle) -> Self {
        Self {
            label: label.into(),
            points,
            style,
        }
    }

    /// Its name, and where it ends.
    fn describe(&self) -> String {
        let last = self.points.iter().rev().find(|p| p.1.is_finite());
        match (self.style, last) {
            (_, None) => format!("{}: no values", self.label),
            (SeriesStyle::Line, Some((x, y))) => {
                format!("{}: {} at {} at the end", self.label, short(*y), short(*x))
            }
            _ => format!("{}: {} points", self.label, self.points.len()),
        }
    }
}

impl Mark {
    /// A line without a band.
    pub fn new(label: impl Into<String>, value: f64) -> Self {
        Self {
            label: label.into(),
            value,
            spread: None,
        }
    }

    /// The same, with a band of ± this.
    pub fn spread(self, spread: f64) -> Self {
        Self {
            spread: Some(spread),
            ..self
        }
    }
}

/// A number with four digits that count.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        format!("{value}")
    } else if !(1e-4..1e7).contains(&size) {
        format!("{value:.3e}")
    } else {
        let decimals = (3 - size.log10().floor() as i32).max(0) as usize;
        let text = format!("{value:.decimals$}");
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        } else {
            grouped(value, 0)
        }
    }
}
