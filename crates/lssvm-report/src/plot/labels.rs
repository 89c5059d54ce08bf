//! Names of curves: at their ends, where the eye is, and in a legend.

use super::frame::Frame;
use super::{Mark, Plot, Series, SeriesStyle, short};
use crate::colours::{Colour, dashes};
use crate::svg::{Anchor, Canvas, Svg, TEXT, shortened, text_width};

/// Room at the right of a frame without labels.
pub const NO_LABELS: f64 = 16.0;

/// The most room that labels may take.
const MOST_ROOM: f64 = 165.0;

/// From one label to the next.
const SPACING: f64 = 16.0;

/// From the frame to the labels; lines lead over to labels that had to move.
const LEAD: f64 = 16.0;

/// Something with a name.
pub enum Item<'a> {
    /// Number, and points.
    Series(usize, &'a Series),
    /// A reference line.
    Mark(&'a Mark),
    /// y = x
    Diagonal,
}

impl Item<'_> {
    fn label(&self) -> String {
        match self {
            Item::Series(_, series) => series.label.clone(),
            Item::Mark(mark) => match mark.spread {
                Some(spread) => {
                    format!("{} {} ± {}", mark.label, short(mark.value), short(spread))
                }
                None => format!("{} {}", mark.label, short(mark.value)),
            },
            Item::Diagonal => "y = x".into(),
        }
    }

    /// Without the spread, which the band shows.
    fn end_label(&self) -> String {
        match self {
            Item::Mark(mark) => format!("{} {}", mark.label, short(mark.value)),
            other => other.label(),
        }
    }

    fn colour(&self) -> Colour {
        match self {
            Item::Series(index, _) => Colour::Series(*index),
            Item::Mark(_) => Colour::Mark,
            Item::Diagonal => Colour::Soft,
        }
    }
}

/// What has to be told apart; nothing if there is only one thing.
pub fn items(plot: &Plot) -> Vec<Item<'_>> {
    let series = plot.series.iter().enumerate();
    let series = series.filter(|(_, s)| !s.points.is_empty());
    let mut items: Vec<_> = series.map(|(i, s)| Item::Series(i, s)).collect();
    items.extend(plot.marks.iter().map(Item::Mark));
    if plot.diagonal {
        items.push(Item::Diagonal);
    }
    if items.len() < 2 {
        items.clear();
    }
    items
}

/// Draws the legend from this height on, and says where it ends.
pub fn legend(svg: &mut Svg, items: &[Item], width: f64, top: f64) -> f64 {
    const SAMPLE: f64 = 26.0;
    let (mut x, mut y) = (8.0, top);
    if items.is_empty() {
        return top;
    }
    y += 14.0;
    for item in items {
        let label = shortened(&item.label(), TEXT, width - SAMPLE - 24.0);
        let needed = SAMPLE + 6.0 + text_width(&label, TEXT) + 16.0;
        if x > 8.0 && x + needed - 16.0 > width - 8.0 {
            x = 8.0;
            y += 20.0;
        }
        sample(svg, item, (x, y - 4.5), SAMPLE);
        let (at, look) = ((x + SAMPLE + 6.0, y), (TEXT, Colour::Ink));
        svg.text("legend", at, Anchor::Start, look, &label);
        x += needed;
    }
    y + 6.0
}

/// What an item looks like, in little.
fn sample(svg: &mut Svg, item: &Item, (x, y): (f64, f64), width: f64) {
    let colour = item.colour();
    let paint = colour.paint(svg.theme);
    let more = match item {
        Item::Series(_, series) if series.style == SeriesStyle::Bars => {
            svg.raw(format_args!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"12\" height=\"10\" fill=\"{paint}\"/>",
                x + 7.0,
                y - 5.0
            ));
            return;
        }
        Item::Series(_, series) if series.style == SeriesStyle::Dots => {
            svg.raw(format_args!(
                "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{paint}\"/>",
                x + width / 2.0
            ));
            return;
        }
        Item::Series(index, _) => {
            format!(
                " stroke-width=\"2.2\" stroke-dasharray=\"{}\"",
                dashes(*index)
            )
        }
        _ => " stroke-width=\"1.5\" stroke-dasharray=\"6 4\"".into(),
    };
    let more = more.replace(" stroke-dasharray=\"\"", "");
    svg.line((x, y), (x + width, y), colour, &more);
}

/// Room that the labels at the ends need, at the right of the frame.
pub fn room(items: &[Item], canvas: Canvas, at_end: impl Fn(&Item) -> bool) -> f64 {
    let ending = items.iter().filter(|item| at_end(item));
    let widths = ending.map(|item| text_width(&item.end_label(), TEXT - 1.0));
    match widths.reduce(f64::max) {
        // A narrow drawing needs its width for the curves; it has the legend.
        Some(width) if !canvas.is_narrow() => (width + LEAD + 8.0).clamp(NO_LABELS, MOST_ROOM),
        _ => NO_LABELS,
    }
}

/// Writes the names beside the ends of the curves.
pub fn ends(svg: &mut Svg, items: &[Item], frame: &Frame, room: f64) {
    let mut ends: Vec<_> = items
        .iter()
        .filter_map(|item| Some((item, item.end(frame)?)))
        .collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let wanted: Vec<f64> = ends.iter().map(|e| e.1).collect();
    let right = frame.left + frame.width;
    for ((item, end), place) in ends.into_iter().zip(apart(&wanted, frame.height)) {
        let colour = item.colour();
        let (from, to) = (frame.top + end, frame.top + place);
        let lead = [(right + 2.0, from), (right + LEAD - 3.0, to)];
        svg.line(lead[0], lead[1], colour, " stroke-opacity=\"0.7\"");
        let label = shortened(&item.end_label(), TEXT - 1.0, room - LEAD - 4.0);
        let at = (right + LEAD, to + 4.0);
        svg.text("end-label", at, Anchor::Start, (TEXT - 1.0, colour), &label);
    }
}

/// Places near the wanted ones, in the same order, none closer to the next
/// than a line of text: neighbours that touch share the shift.
fn apart(wanted: &[f64], height: f64) -> Vec<f64> {
    // Groups of touching labels, as sum of (wanted − offset) and size.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    let start = |&(sum, n): &(f64, usize)| {
        let free = sum / n as f64;
        let last = height - SPACING * (n - 1) as f64;
        free.min(last).max(0.0)
    };
    for &place in wanted {
        groups.push((place, 1));
        while let [.., above, below] = groups[..] {
            if start(&above) + SPACING * above.1 as f64 <= start(&below) {
                break;
            }
            groups.pop();
            groups.pop();
            let shifted = below.0 - SPACING * (above.1 * below.1) as f64;
            groups.push((above.0 + shifted, above.1 + below.1));
        }
    }
    let places = |group: &(f64, usize)| {
        let first = start(group);
        (0..group.1).map(move |i| first + SPACING * i as f64)
    };
    groups.iter().flat_map(places).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_apart_and_in_order() {
        for wanted in [
            vec![10.0, 11.0, 12.0, 200.0],
            vec![290.0, 290.0, 290.0],
            vec![0.0, 0.0, 5.0, 40.0, 41.0],
            vec![50.0],
            vec![],
        ] {
            let places = apart(&wanted, 290.0);
            assert_eq!(places.len(), wanted.len());
            assert!(
                places.windows(2).all(|w| w[1] - w[0] >= SPACING - 1e-9),
                "{places:?}"
            );
            assert!(
                places.iter().all(|p| (0.0..=290.0).contains(p)),
                "{places:?}"
            );
        }
        assert_eq!(apart(&[10.0, 100.0], 290.0), [10.0, 100.0]);
        assert_eq!(apart(&[100.0, 100.0], 290.0), [92.0, 108.0]);
    }
}
