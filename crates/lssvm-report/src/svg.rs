//! An SVG document as it grows, and the widths of texts in it.
//!
//! There is no font to measure with, so widths are estimates for DejaVu Sans,
//! the widest of the common sans-serif faces: a gap is better than an overlap.

use std::fmt::Write;

use crate::colours::{Colour, Theme};
use crate::escape::Escaped;

/// Size of plain text, in pixels at the drawing's own size.
pub const TEXT: f64 = 13.0;

/// Size of a title.
pub const TITLE: f64 = 15.0;

/// What a drawing is made for.
#[derive(Debug, Clone, Copy)]
pub struct Canvas {
    /// Width, in pixels.
    pub width: f64,
    /// Where its colours come from.
    pub theme: Theme,
}

impl Canvas {
    /// A drawing of ordinary width.
    pub const fn wide(theme: Theme) -> Self {
        Self {
            width: 640.0,
            theme,
        }
    }

    /// A drawing for a telephone: a wide one made small has unreadable text.
    pub const fn narrow(theme: Theme) -> Self {
        Self {
            width: 350.0,
            theme,
        }
    }

    /// Whether there is little room.
    pub fn is_narrow(&self) -> bool {
        self.width < 500.0
    }
}

/// Which point of a text is at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

/// The inside of an SVG element.
pub struct Svg {
    pub body: String,
    pub theme: Theme,
}

impl Svg {
    pub fn new(theme: Theme) -> Self {
        Self {
            body: String::new(),
            theme,
        }
    }

    /// Adds what is written; the caller escapes.
    pub fn raw(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(text);
    }

    /// A line of text of this size; `class` says what it is to tests and tools.
    pub fn text(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        anchor: Anchor,
        (size, colour): (f64, Colour),
        text: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = match class {
            "title" => " font-weight=\"600\"",
            _ => "",
        };
        let fill = colour.paint(self.theme);
        self.raw(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" \
             font-size=\"{size}\" fill=\"{fill}\"{weight}>{}</text>",
            Escaped(text)
        ));
    }

    /// A thin line from one point to another.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: Colour, more: &str) {
        let stroke = colour.paint(self.theme);
        self.raw(format_args!(
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"{stroke}\" fill=\"none\"{more}/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// The whole element, with a ground so that a saved picture has one.
    pub fn finish(self, width: f64, height: f64, class: &str, label: &str) -> String {
        let label = Escaped(label);
        // A <title> would be a tooltip over all of a page's drawing, so only
        // files of their own have it.
        let title = match self.theme {
            Theme::Page => String::new(),
            Theme::Fixed => format!("<title>{label}</title>"),
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" viewBox=\"0 0 {width:.0} \
             {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" \
             aria-label=\"{label}\" font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, \
             'Liberation Sans', sans-serif\">{title}<rect width=\"100%\" height=\"100%\" \
             fill=\"{}\"/>{}</svg>",
            Colour::Surface.paint(self.theme),
            self.body
        )
    }
}

/// Bold text is this much wider.
pub const BOLD: f64 = 1.12;

/// About how wide a text is.
pub fn text_width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' | ' ' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '-' | '/' => 0.41,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '±' | '→' | '=' | '−' => 0.9,
        'A'..='Z' => 0.72,
        '⁰'..='ₜ' => 0.42,
        c if (c as u32) >= 0x1100 => 1.05,
        _ => 0.62,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// The text, or its beginning and an ellipsis if it is too wide.
pub fn shortened(text: &str, size: f64, room: f64) -> String {
    if text_width(text, size) <= room {
        return text.into();
    }
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        if text_width(&out, size) + size > room {
            break;
        }
    }
    out.push('…');
    out
}

/// The text in lines that are not wider than the room; at most three.
pub fn wrapped(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let joined = lines.last().map(|line| format!("{line} {word}"));
        match joined.filter(|line| text_width(line, size) <= room) {
            Some(line) => {
                lines.pop();
                lines.push(line);
            }
            None => lines.push(shortened(word, size, room)),
        }
    }
    lines.truncate(3);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_wrapped() {
        assert_eq!(shortened("short", 10.0, 100.0), "short");
        let cut = shortened(&"x".repeat(100), 10.0, 100.0);
        assert!(cut.ends_with('…') && text_width(&cut, 10.0) <= 105.0);
        let lines = wrapped("some words that need more than a line", 10.0, 100.0);
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|l| text_width(l, 10.0) <= 100.0));
        assert!(wrapped("", 10.0, 100.0).is_empty());
    }
}
