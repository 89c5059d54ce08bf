//! Drawing a plot: the frame with its grid, and what is inside.

use super::frame::Frame;
use super::labels::{self, Item};
use super::range::{drawable, ranges};
use super::ticks::Ticks;
use super::{Plot, Scale, SeriesStyle, series, short};
use crate::colours::Colour;
use crate::svg::{Anchor, BOLD, Canvas, Svg, TEXT, TITLE, text_width, wrapped};

/// Dots at the ends of a curve may reach over the frame by this much.
const OVERHANG: f64 = 5.0;

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
        let at_end = |item: &Item| item.reaches_end(x, self.x.scale);
        let right = labels::room(&items, canvas, at_end);
        let width = canvas.width - left - right;
        let mut x_ticks = Ticks::new(x, self.x.scale, ((width / 62.0) as usize).max(4));
        let mut places = self.series.iter().flat_map(|series| &series.points);
        if self.x.scale == Scale::Linear && places.all(|(x, _)| x.fract() == 0.0) {
            x_ticks = x_ticks.whole();
        }
        let frame = Frame {
            left,
            top: top + 30.0,
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
        let at = (8.0, top - 13.0);
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
        for (i, points) in self.series.iter().enumerate() {
            let label = crate::escape::Escaped(&points.label).to_string();
            svg.raw(format_args!("<g class=\"series\"><title>{label}</title>"));
            match points.style {
                SeriesStyle::Line => series::line(svg, frame, points, i),
                SeriesStyle::Dots => series::dots(svg, frame, points, i, narrow),
                SeriesStyle::Bars => {
                    series::bars(svg, frame, points, (i, bar, n_bars));
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
                "↑ up to",
                14.0,
                place(above.map(|p| p.0).reduce(f64::max)),
            ),
            (
                lowest,
                "↓ down to",
                frame.height - 6.0,
                place(below.map(|p| p.0).reduce(f64::max)),
            ),
        ];
        for (value, words, y, x) in notes {
            if let Some(value) = value {
                svg.raw(format_args!(
                    "<g paint-order=\"stroke\" stroke=\"{halo}\" stroke-width=\"4\">"
                ));
                let text = format!("{words} {}", short(value));
                let look = (TEXT - 1.0, Colour::Soft);
                svg.text("outside", (x, y), Anchor::Start, look, &text);
                svg.raw(format_args!("</g>"));
            }
        }
    }
}
