//! A table of numbers as colours, above all the confusion matrix.
//!
//! If rows and columns have the same names, the diagonal is what is right. Its
//! numbers are hundreds of times those of the errors, so the two have ramps of
//! their own: a pale one for the diagonal, and for the errors one that ends at
//! the largest error. Colours are shares of a row, so that rare classes count.
//!
//! Colours are laid over the ground at most [`STRONGEST`] opaque: then the ink
//! is readable on all of them, light or dark.

use serde::Serialize;

use crate::colours::{Colour, Theme};
use crate::escape::Escaped;
use crate::plot::{grouped, short};
use crate::svg::{Anchor, BOLD, Canvas, Svg, TEXT, TITLE, shortened, text_width, wrapped};

/// Opacity of the largest error, and of a full diagonal cell.
const STRONGEST: f64 = 0.62;
const DIAGONAL: f64 = 0.2;

/// Width of a cell at most, in pixels; cells of many classes are as small as
/// they must.
const LARGEST_CELL: f64 = 58.0;

/// Height of a cell at most.
const HIGHEST_CELL: f64 = 34.0;

/// Smaller cells touch, and their grid has lines this far apart.
const CELL_WITH_GRID: f64 = 8.0;

/// Cells must be this high and wide to hold a number.
const CELL_WITH_TEXT: f64 = 17.0;

/// Numbers in rows and columns, shown as colours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Heatmap {
    /// Stem of the file's name when it is saved.
    pub name: String,
    /// Title, drawn above.
    pub title: String,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// A list for each row.
    pub values: Vec<Vec<f64>>,
    /// What the rows are.
    pub row_label: String,
    /// What the columns are.
    pub column_label: String,
    /// What the numbers count; may be empty.
    pub unit: String,
    /// Digits after the point in the cells; as many as count if not given.
    pub decimals: Option<usize>,
}

/// Sizes of a drawing.
struct Layout {
    left: f64,
    top: f64,
    /// Height of the line that says what rows and columns are.
    labels: f64,
    /// Room for the names of the columns.
    names: f64,
    cell: (f64, f64),
    /// Column names stand on their heads.
    turned: bool,
    text: f64,
}

impl Heatmap {
    /// As an SVG file that stands alone: light, with fixed colours.
    pub fn to_svg(&self) -> String {
        self.draw(Canvas::wide(Theme::Fixed), "heatmap")
    }

    pub(crate) fn draw(&self, canvas: Canvas, class: &str) -> String {
        let mut svg = Svg::new(canvas.theme);
        let mut top = 6.0;
        for line in wrapped(&self.title, BOLD * TITLE, canvas.width - 16.0) {
            top += 19.0;
            let (at, look) = ((8.0, top), (TITLE, Colour::Ink));
            svg.text("title", at, Anchor::Start, look, &line);
        }
        let layout = self.layout(canvas, top);
        self.names(&mut svg, &layout);
        self.cells(&mut svg, &layout);
        let height = layout.top + layout.cell.1 * self.rows.len() as f64 + 14.0;
        svg.finish(canvas.width, height, class, &self.describe())
    }

    fn describe(&self) -> String {
        format!(
            "{}: {} in {} rows and {} columns, as colours",
            self.title,
            self.unit,
            self.rows.len(),
            self.columns.len()
        )
    }

    fn layout(&self, canvas: Canvas, top: f64) -> Layout {
        let n = self.columns.len().max(1) as f64;
        let text = if canvas.is_narrow() { TEXT - 2.0 } else { TEXT };
        let most = canvas.width * 0.28;
        let widest = |names: &[String]| {
            let widths = names.iter().map(|name| text_width(name, text));
            widths.fold(8.0, f64::max).min(most)
        };
        let left = widest(&self.rows) + 16.0;
        let cell = (canvas.width - left - 10.0) / n;
        let cell = cell.min(LARGEST_CELL);
        let turned = widest(&self.columns) + 4.0 > cell;
        let names = if turned {
            widest(&self.columns) + 4.0
        } else {
            text
        };
        Layout {
            left,
            top: top + 38.0 + names,
            labels: top + 20.0,
            names,
            cell: (cell, cell.min(HIGHEST_CELL)),
            turned,
            text,
        }
    }

    fn names(&self, svg: &mut Svg, layout: &Layout) {
        let Layout {
            left, top, text, ..
        } = *layout;
        let (width, height) = layout.cell;
        let labels = format!("rows: {}; columns: {}", self.row_label, self.column_label);
        let labels = match self.unit.as_str() {
            "" => labels,
            unit => format!("{labels}; {unit}"),
        };
        let look = (text, Colour::Soft);
        svg.text(
            "axis-label",
            (8.0, layout.labels),
            Anchor::Start,
            look,
            &labels,
        );
        let look = (text, Colour::Ink);
        let room = left - 14.0;
        let every = ((text + 1.0) / height).ceil().max(1.0) as usize;
        for (i, name) in self.rows.iter().enumerate().step_by(every) {
            let y = top + (i as f64 + 0.5) * height + 0.36 * text;
            let name = shortened(name, text, room);
            svg.text("row", (left - 8.0, y), Anchor::End, look, &name);
        }
        let every = match layout.turned {
            true => ((text + 1.0) / width).ceil().max(1.0) as usize,
            false => 1,
        };
        for (j, name) in self.columns.iter().enumerate().step_by(every) {
            let x = left + (j as f64 + 0.5) * width;
            if layout.turned {
                let (x, y) = (x + 0.36 * text, top - 7.0);
                svg.raw(format_args!("<g transform=\"rotate(-90 {x:.1} {y:.1})\">"));
                let name = shortened(name, text, layout.names);
                svg.text("column", (x, y), Anchor::Start, look, &name);
                svg.raw(format_args!("</g>"));
            } else {
                svg.text("column", (x, top - 7.0), Anchor::Middle, look, name);
            }
        }
    }

    fn cells(&self, svg: &mut Svg, layout: &Layout) {
        let square = self.rows == self.columns;
        let shares = self.shares();
        let errors = |i: usize, j: usize| !(square && i == j);
        let mut greatest = 0f64;
        for (i, row) in shares.iter().enumerate() {
            for (j, share) in row.iter().enumerate() {
                if errors(i, j) && share.is_finite() {
                    greatest = greatest.max(*share);
                }
            }
        }
        let gap = if layout.cell.1 >= CELL_WITH_GRID {
            1.0
        } else {
            0.0
        };
        let size = (layout.cell.1 * 0.5).min(layout.text);
        let with_text = layout.cell.0.min(layout.cell.1 * 1.2) >= CELL_WITH_TEXT;
        for (i, row) in self.values.iter().enumerate().take(self.rows.len()) {
            for (j, &value) in row.iter().enumerate().take(self.columns.len()) {
                // Empty cells are drawn as nothing: what is there stands out.
                if !value.is_finite() || (value == 0.0 && errors(i, j)) {
                    continue;
                }
                let share = shares[i][j].clamp(0.0, 1.0);
                let (colour, opacity) = match errors(i, j) {
                    true => (
                        Colour::Wrong,
                        STRONGEST * (share / greatest.max(f64::MIN_POSITIVE)).sqrt(),
                    ),
                    false => (Colour::Right, 0.04 + (DIAGONAL - 0.04) * share),
                };
                let (x, y) = (
                    layout.left + j as f64 * layout.cell.0,
                    layout.top + i as f64 * layout.cell.1,
                );
                let paint = colour.paint(svg.theme);
                svg.raw(format_args!(
                    "<g class=\"cell\"><title>{} → {}: {} {}</title><rect x=\"{x:.1}\" \
                     y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{paint}\" \
                     fill-opacity=\"{opacity:.2}\"/>",
                    Escaped(&self.rows[i]),
                    Escaped(&self.columns[j]),
                    cell_text(value),
                    Escaped(&self.unit),
                    layout.cell.0 - gap,
                    layout.cell.1 - gap
                ));
                let text = match self.decimals {
                    Some(decimals) => grouped(value, decimals),
                    None => cell_text(value),
                };
                let fitted = size.min(size * (layout.cell.0 - 4.0) / text_width(&text, size));
                if with_text && fitted >= 7.0 {
                    let (x, y) = (x + layout.cell.0 / 2.0, y + layout.cell.1 / 2.0);
                    let (at, look) = ((x - 0.5, y + 0.34 * fitted), (round(fitted), Colour::Ink));
                    svg.text("value", at, Anchor::Middle, look, &text);
                }
                svg.raw(format_args!("</g>"));
            }
        }
        self.grid(svg, layout);
    }

    /// Each value as a share of its row's sum.
    fn shares(&self) -> Vec<Vec<f64>> {
        let row = |row: &Vec<f64>| {
            let sum: f64 = row.iter().filter(|v| v.is_finite()).map(|v| v.abs()).sum();
            let sum = sum.max(f64::MIN_POSITIVE);
            row.iter().map(|v| v.abs() / sum).collect()
        };
        self.values.iter().map(row).collect()
    }

    /// Thin lines, so that empty cells can be counted.
    fn grid(&self, svg: &mut Svg, layout: &Layout) {
        let (rows, columns) = (self.rows.len() as f64, self.columns.len() as f64);
        let (right, bottom) = (
            layout.left + columns * layout.cell.0 - 0.5,
            layout.top + rows * layout.cell.1 - 0.5,
        );
        // Finer grids would be all lines.
        let every = (CELL_WITH_GRID / layout.cell.1).ceil().max(1.0) as usize;
        for i in (0..=self.rows.len()).step_by(every) {
            let y = layout.top + i as f64 * layout.cell.1 - 0.5;
            svg.line((layout.left - 0.5, y), (right, y), Colour::Grid, "");
        }
        for j in (0..=self.columns.len()).step_by(every) {
            let x = layout.left + j as f64 * layout.cell.0 - 0.5;
            svg.line((x, layout.top - 0.5), (x, bottom), Colour::Grid, "");
        }
    }
}

fn cell_text(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 1e9 {
        true => grouped(value, 0),
        false => short(value),
    }
}

fn round(size: f64) -> f64 {
    (size * 10.0).round() / 10.0
}
