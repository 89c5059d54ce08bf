//! Drawing a plot: the frame with its grid, and what is inside.

use std::fmt::Write;

use super::labels::{self, Item};
use super::range::{drawable, ranges};
use super::ticks::Ticks;
use super::{Plot, Scale, Series, SeriesStyle, short};
use crate::colours::{Colour, dashes};
use crate::svg::{Anchor, BOLD, Canvas, Svg, TEXT, TITLE, text_width, wrapped};

/// Lines with at most so many points get a dot for each.
const FEW_POINTS: usize = 15;

/// In a narrow drawing a cloud is thinned to so many dots: it has a third of
/// the area, and the page holds both drawings.
const NARROW_DOTS: usize = 1_500;

/// Dots at the ends of a curve may reach over the frame by this much.
const OVERHANG: f64 = 5.0;

/// The rectangle of the data, and what it shows.
pub struct Frame {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    x: (f64, f64),
    y: (f64, f64),
    scales: (Scale, Scale),
}

impl Frame {
    /// Across, from the left of the frame.
    fn across(&self, value: f64) -> f64 {
        self.width * share(value, self.x, self.scales.0)
    }

    /// Down, from the top of the frame.
    pub fn down(&self, value: f64) -> f64 {
        self.height * (1.0 - share(value, self.y, self.scales.1))
    }

    fn shows(&self, point: &(f64, f64)) -> bool {
        drawable(point.0, self.scales.0) && drawable(point.1, self.scales.1)
    }
}

/// Where a value is in a range, from 0 to 1.
fn share(value: f64, (low, high): (f64, f64), scale: Scale) -> f64 {
    let share = match scale {
        Scale::Linear => (value - low) / (high - low),
        Scale::Log => (value.ln() - low.ln()) / (high.ln() - low.ln()),
    };
    // Far outside is outside: coordinates stay short and valid.
    share.clamp(-10.0, 10.0)
}

impl Plot {
    /// The drawing for this canvas.
    pub(crate) fn draw(&self, canvas: Canvas, class: &str) -> String {
        let mut svg = Svg::new(canvas.theme);
        let mut top = 6.0;
        for line in wrapped(&self.title, BOLD * TITLE, canvas.width - 16.0) {
            top += 19.0;
            let (at, look) = ((8.0, top), (TITLE, Colour::Ink));
            svg.text("title", at, Anchor::Start, look, &line);
        }
        let Some([x, y]) = ranges(self) else {
            let (at, look) = ((8.0, top + 30.0), (TEXT, Colour::Soft));
            svg.text(
                "empty",
                at,
                Anchor::Start,
                look,
                "There are no values to show.",
            );
            return svg.finish(canvas.width, top + 50.0, class, &self.describe());
        };
        let items = labels::items(self);
        top = labels::legend(&mut svg, &items, canvas.width, top + 8.0);

        let height = match (canvas.is_narrow(), self.diagonal) {
            (false, false) => 290.0,
            (false, true) => 360.0,
            (true, _) => 220.0,
        };
        let y_ticks = Ticks::new(y, self.y.scale, (height / 45.0) as usize);
        let widest = y_ticks.marks.iter().map(|m| text_width(&m.1, TEXT));
        let left = widest.fold(24.0, f64::max) + 14.0;
        let right = labels::room(&items, canvas);
        let width = canvas.width - left - right;
        let x_ticks = Ticks::new(x, self.x.scale, ((width / 62.0) as usize).max(4));
        let frame = Frame {
            left,
            top: top + 26.0,
            width,
            height,
            x,
            y,
            scales: (self.x.scale, self.y.scale),
        };
        self.axes(&mut svg, &frame, &x_ticks, &y_ticks);
        self.inside(&mut svg, &frame, canvas.is_narrow());
        if right > labels::NO_LABELS {
            labels::ends(&mut svg, &items, &frame, right);
        }
        let bottom = frame.top + height + 48.0;
        svg.finish(canvas.width, bottom, class, &self.describe())
    }

    fn axes(&self, svg: &mut Svg, frame: &Frame, x: &Ticks, y: &Ticks) {
        let (left, top) = (frame.left, frame.top);
        let (right, bottom) = (left + frame.width, top + frame.height);
        for (value, text) in &y.marks {
            let at = top + frame.down(*value);
            svg.line((left, at), (right, at), Colour::Grid, "");
            let look = (TEXT, Colour::Soft);
            svg.text("y-tick", (left - 7.0, at + 4.5), Anchor::End, look, text);
        }
        for (value, text) in &x.marks {
            let at = left + frame.across(*value);
            svg.line((at, top), (at, bottom), Colour::Grid, "");
            svg.line((at, bottom), (at, bottom + 4.0), Colour::Axis, "");
            // The last label may not stick out of the drawing.
            let half = text_width(text, TEXT) / 2.0;
            let middle = at.min(right + labels::NO_LABELS - half);
            let look = (TEXT, Colour::Soft);
            svg.text(
                "x-tick",
                (middle, bottom + 20.0),
                Anchor::Middle,
                look,
                text,
            );
        }
        svg.line((left, bottom), (right, bottom), Colour::Axis, "");
        let named = |label: &str, ticks: &Ticks| match ticks.factor() {
            Some(factor) => format!("{label} ({factor})"),
            None => label.to_string(),
        };
        let look = (TEXT, Colour::Ink);
        // Above the axis and level: it reads better than a turned one, and
        // takes no width.
        let at = (8.0, top - 10.0);
        svg.text("y-label", at, Anchor::Start, look, &named(&self.y.label, y));
        let at = (left + frame.width / 2.0, bottom + 40.0);
        svg.text(
            "x-label",
            at,
            Anchor::Middle,
            look,
            &named(&self.x.label, x),
        );
    }

    /// Everything that the frame cuts off. A nested element clips without an
    /// id, which would have to differ between the drawings of a page.
    fn inside(&self, svg: &mut Svg, frame: &Frame, narrow: bool) {
        let (width, height) = (frame.width + 2.0 * OVERHANG, frame.height);
        svg.raw(format_args!(
            "<svg x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             overflow=\"hidden\"><g transform=\"translate({OVERHANG} 0)\">",
            frame.left - OVERHANG,
            frame.top
        ));
        self.bands(svg, frame);
        let bars = self.series.iter().filter(|s| s.style == SeriesStyle::Bars);
        let (n_bars, mut bar) = (bars.count(), 0);
        for (i, series) in self.series.iter().enumerate() {
            let label = crate::escape::Escaped(&series.label).to_string();
            svg.raw(format_args!("<g class=\"series\"><title>{label}</title>"));
            match series.style {
                SeriesStyle::Line => line(svg, frame, series, i),
                SeriesStyle::Dots => dots(svg, frame, series, i, narrow),
                SeriesStyle::Bars => {
                    bars_of(svg, frame, series, (i, bar, n_bars));
                    bar += 1;
                }
            }
            svg.raw(format_args!("</g>"));
        }
        // Over the dots, which would hide it.
        if self.diagonal {
            let (low, high) = (frame.x.0.max(frame.y.0), frame.x.1.min(frame.y.1));
            let point = |v: f64| (frame.across(v), frame.down(v));
            let dash = " stroke-width=\"1.3\" stroke-dasharray=\"5 4\"";
            svg.line(point(low), point(high), Colour::Soft, dash);
        }
        self.say_what_is_outside(svg, frame);
        svg.raw(format_args!("</g></svg>"));
    }

    fn bands(&self, svg: &mut Svg, frame: &Frame) {
        let paint = Colour::Mark.paint(svg.theme);
        let marks = self.marks.iter();
        for mark in marks.filter(|m| drawable(m.value, self.y.scale)) {
            let spread = mark.spread.unwrap_or(0.0).abs();
            let (above, below) = (mark.value + spread, mark.value - spread);
            if spread > 0.0 && drawable(below, self.y.scale) && drawable(above, self.y.scale) {
                let (top, bottom) = (frame.down(above), frame.down(below));
                svg.raw(format_args!(
                    "<rect x=\"0\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                     fill=\"{paint}\" fill-opacity=\"0.14\"/>",
                    frame.width,
                    bottom - top
                ));
            }
            let at = frame.down(mark.value);
            let dash = " stroke-width=\"1.3\" stroke-dasharray=\"6 4\"";
            svg.line((0.0, at), (frame.width, at), Colour::Mark, dash);
        }
    }

    /// A curve that leaves the frame says how far it goes.
    fn say_what_is_outside(&self, svg: &mut Svg, frame: &Frame) {
        let lines = self.series.iter().filter(|s| s.style != SeriesStyle::Bars);
        let points: Vec<_> = lines
            .flat_map(|s| &s.points)
            .filter(|p| frame.shows(p) && p.0 >= frame.x.0 && p.0 <= frame.x.1)
            .collect();
        let above = points.iter().filter(|p| p.1 > frame.y.1);
        let below = points.iter().filter(|p| p.1 < frame.y.0);
        let highest = above.clone().map(|p| p.1).reduce(f64::max);
        let lowest = below.clone().map(|p| p.1).reduce(f64::min);
        let place = |outside: Option<f64>| {
            let x = outside.map_or(0.0, |x| frame.across(x)) + 10.0;
            x.min(frame.width - 90.0).max(4.0)
        };
        let halo = Colour::Surface.paint(svg.theme);
        let notes = [
            (
                highest,
                '↑',
                14.0,
                place(above.map(|p| p.0).reduce(f64::max)),
            ),
            (
                lowest,
                '↓',
                frame.height - 6.0,
                place(below.map(|p| p.0).reduce(f64::max)),
            ),
        ];
        for (value, arrow, y, x) in notes {
            if let Some(value) = value {
                svg.raw(format_args!(
                    "<g paint-order=\"stroke\" stroke=\"{halo}\" stroke-width=\"4\">"
                ));
                let text = format!("{arrow} {} outside", short(value));
                let look = (TEXT - 1.0, Colour::Soft);
                svg.text("outside", (x, y), Anchor::Start, look, &text);
                svg.raw(format_args!("</g>"));
            }
        }
    }
}

/// A path through the points, broken where one is missing.
fn line(svg: &mut Svg, frame: &Frame, series: &Series, index: usize) {
    let mut path = String::new();
    let mut alone = Vec::new();
    for run in series.points.split(|p| !frame.shows(p)) {
        let places: Vec<_> = run
            .iter()
            .map(|p| (frame.across(p.0), frame.down(p.1)))
            .collect();
        if let [only] = places[..] {
            alone.push(only);
        }
        for (i, (x, y)) in thinned(&places).into_iter().enumerate() {
            let verb = if i == 0 { 'M' } else { 'L' };
            // Writing to a String cannot fail.
            let _ = write!(path, "{verb}{x:.1} {y:.1}");
        }
    }
    let stroke = Colour::Series(index).paint(svg.theme);
    let dash = match dashes(index) {
        "" => String::new(),
        pattern => format!(" stroke-dasharray=\"{pattern}\""),
    };
    svg.raw(format_args!(
        "<path d=\"{path}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"1.8\" \
         stroke-linejoin=\"round\"{dash}/>"
    ));
    let all = || series.points.iter().filter(|p| frame.shows(p));
    if all().count() <= FEW_POINTS {
        alone = all()
            .map(|p| (frame.across(p.0), frame.down(p.1)))
            .collect();
    }
    dot_path(svg, &alone, (7.0, 1.0), index);
}

/// At most four points a pixel column: the first, the least, the greatest and
/// the last. The picture is the same.
fn thinned(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let columns = places.chunk_by(|a, b| a.0.floor() == b.0.floor());
    let mut kept = Vec::new();
    for column in columns {
        if column.len() <= 4 {
            kept.extend_from_slice(column);
            continue;
        }
        let by_height = |&i: &usize, &j: &usize| column[i].1.total_cmp(&column[j].1);
        let (all, last) = (0..column.len(), column.len() - 1);
        let low = all.clone().min_by(by_height).unwrap_or(0);
        let high = all.max_by(by_height).unwrap_or(0);
        let mut order = [0, low, high, last];
        order.sort_unstable();
        kept.extend(order.map(|i| column[i]));
    }
    kept
}

fn dots(svg: &mut Svg, frame: &Frame, series: &Series, index: usize, narrow: bool) {
    let shown: Vec<_> = series.points.iter().filter(|p| frame.shows(p)).collect();
    let every = match narrow {
        true => shown.len().div_ceil(NARROW_DOTS).max(1),
        false => 1,
    };
    let places: Vec<_> = shown
        .iter()
        .step_by(every)
        .map(|p| (frame.across(p.0), frame.down(p.1)))
        .collect();
    let look = match places.len() {
        0..=60 => (6.0, 0.9),
        61..=500 => (4.5, 0.8),
        501..=1_500 => (3.2, 0.8),
        _ => (2.2, 0.8),
    };
    dot_path(svg, &places, look, index);
}

/// Dots as round ends of lines without length: twelve bytes each, where a
/// circle takes forty. As one path they do not add up where they overlap, so
/// density is seen by small dots, not by opacity.
fn dot_path(svg: &mut Svg, places: &[(f64, f64)], (size, opacity): (f64, f64), index: usize) {
    if places.is_empty() {
        return;
    }
    let mut path = String::new();
    for (x, y) in places {
        // Writing to a String cannot fail.
        let _ = write!(path, "M{x:.1} {y:.1}h0");
    }
    let stroke = Colour::Series(index).paint(svg.theme);
    svg.raw(format_args!(
        "<path d=\"{path}\" stroke=\"{stroke}\" stroke-width=\"{size}\" \
         stroke-opacity=\"{opacity}\" stroke-linecap=\"round\"/>"
    ));
}

/// `place`: which series it is, which of the bar series, and of how many.
fn bars_of(svg: &mut Svg, frame: &Frame, series: &Series, place: (usize, usize, usize)) {
    let (index, bar, of) = place;
    let mut xs: Vec<f64> = series.points.iter().map(|p| frame.across(p.0)).collect();
    xs.retain(|x| x.is_finite());
    xs.sort_unstable_by(f64::total_cmp);
    let gaps = xs.windows(2).map(|w| w[1] - w[0]).filter(|g| *g > 0.0);
    let slot = gaps.fold(frame.width / 3.0, f64::min) * 0.8;
    let width = (slot / of as f64).max(1.0);
    let ground = match frame.scales.1 {
        Scale::Linear => frame.down(0.0).clamp(0.0, frame.height),
        Scale::Log => frame.height,
    };
    let fill = Colour::Series(index).paint(svg.theme);
    for point in series.points.iter().filter(|p| frame.shows(p)) {
        let (x, y) = (frame.across(point.0), frame.down(point.1));
        let left = x - slot / 2.0 + bar as f64 * width;
        svg.raw(format_args!(
            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{fill}\" \
             fill-opacity=\"0.85\"><title>{}: {}</title></rect>",
            y.min(ground),
            (width - 1.0).max(1.0),
            (y - ground).abs(),
            short(point.0),
            short(point.1)
        ));
    }
}

impl Item<'_> {
    /// How far down in the frame it ends, if it is labelled there.
    pub fn end(&self, frame: &Frame) -> Option<f64> {
        let value = match self {
            Item::Mark(mark) => Some(mark.value),
            Item::Series(_, series) if series.style == SeriesStyle::Line => {
                let mut drawn = series.points.iter().rev().filter(|p| frame.shows(p));
                drawn.find(|p| p.0 <= frame.x.1).map(|p| p.1)
            }
            _ => None,
        };
        let value = value.filter(|&v| drawable(v, frame.scales.1))?;
        Some(frame.down(value).clamp(0.0, frame.height))
    }
}
