//! Points as lines, dots and bars.

use std::fmt::Write;

use super::frame::Frame;
use super::{Scale, Series, short};
use crate::colours::{Colour, dashes};
use crate::svg::Svg;

/// Lines with at most so many points get a dot for each.
const FEW_POINTS: usize = 15;

/// Lines with more points are thin.
const MANY_POINTS: usize = 250;

/// In a narrow drawing a cloud is thinned to so many dots: it has a third of
/// the area, and the page holds both drawings.
const NARROW_DOTS: usize = 1_500;

/// A path through the points, broken where one is missing.
pub fn line(svg: &mut Svg, frame: &Frame, series: &Series, index: usize) {
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
    // A noisy curve of many points would be a blot.
    let width = if series.points.len() > MANY_POINTS {
        1.2
    } else {
        1.8
    };
    let dash = match dashes(index) {
        "" => String::new(),
        pattern => format!(" stroke-dasharray=\"{pattern}\""),
    };
    svg.raw(format_args!(
        "<path d=\"{path}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\" \
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

pub fn dots(svg: &mut Svg, frame: &Frame, series: &Series, index: usize, narrow: bool) {
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
pub fn bars(svg: &mut Svg, frame: &Frame, series: &Series, place: (usize, usize, usize)) {
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
