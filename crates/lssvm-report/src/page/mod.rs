//! A page: what it holds, and the same as JSON. [`html`] writes it.

mod html;

use serde::Serialize;

use crate::heatmap::Heatmap;
use crate::picture::Picture;
use crate::plot::Plot;

/// A page of results.
///
/// ```
/// use lssvm_report::{Block, Page, Section, Table};
/// let mut page = Page::new("Digits", "1.1 % of 10,000 test rows are wrong.");
/// page.fact("kernel", "poly");
/// let mut section = Section::new("classes", "Classes");
/// section.blocks.push(Block::Table(Table::new("Recall", ["class", "recall"], [["0", "0.99"]])));
/// page.sections.push(section);
/// assert!(page.to_html().starts_with("<!doctype html>"));
/// assert_eq!(page.to_json()["facts"][0]["value"], "poly");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page {
    /// What it is about.
    pub title: String,
    /// The result, in one sentence.
    pub lead: String,
    /// Settings and figures.
    pub facts: Vec<Fact>,
    /// The rest, in order.
    pub sections: Vec<Section>,
}

/// A name and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What it is.
    pub name: String,
    /// Its value, with the unit.
    pub value: String,
}

/// A part of a page, with a heading.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    /// Anchor, such as `fig2a`.
    pub id: String,
    /// Heading.
    pub title: String,
    /// Paragraphs before the blocks.
    pub text: Vec<String>,
    /// Plots, tables and pictures.
    pub blocks: Vec<Block>,
}

/// Something to look at. In JSON each has a field `kind`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Block {
    /// Curves, dots or bars.
    Plot(Plot),
    /// Text in rows and columns.
    Table(Table),
    /// Numbers as colours.
    Heatmap(Heatmap),
    /// Pictures with captions.
    Gallery(Gallery),
}

/// Text in rows and columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// Cells, row after row; the first names its row.
    pub rows: Vec<Vec<String>>,
    /// Which columns hold numbers, to be lined up at the right.
    pub numeric: Vec<bool>,
}

/// Pictures with captions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gallery {
    /// What it shows.
    pub title: String,
    /// The pictures, in order.
    pub tiles: Vec<Tile>,
    /// A remark below the title.
    pub note: Option<String>,
}

/// One picture of a gallery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tile {
    /// What is seen.
    pub picture: Picture,
    /// A few words below; may be empty.
    pub caption: String,
    /// More words, shown when pointed at.
    pub title: String,
}

impl Page {
    /// A page without facts and sections.
    pub fn new(title: impl Into<String>, lead: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            lead: lead.into(),
            facts: Vec::new(),
            sections: Vec::new(),
        }
    }

    /// Adds a fact.
    pub fn fact(&mut self, name: impl Into<String>, value: impl ToString) {
        self.facts.push(Fact {
            name: name.into(),
            value: value.to_string(),
        });
    }

    /// The page as one HTML file that needs nothing else.
    pub fn to_html(&self) -> String {
        html::write(self)
    }

    /// Everything but the pixels of pictures. Values that are not finite are
    /// `null`.
    pub fn to_json(&self) -> serde_json::Value {
        // Only maps with odd keys can fail, and there are none.
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Section {
    /// A section without text and blocks.
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            text: Vec::new(),
            blocks: Vec::new(),
        }
    }
}

impl Table {
    /// A table whose columns of numbers are found by looking.
    pub fn new<S: ToString, H: AsRef<[S]>, C: ToString, R: AsRef<[C]>>(
        caption: impl Into<String>,
        header: H,
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        let header: Vec<String> = header.as_ref().iter().map(S::to_string).collect();
        let strings = |row: R| row.as_ref().iter().map(C::to_string).collect();
        let rows: Vec<Vec<String>> = rows.into_iter().map(strings).collect();
        let numeric = (0..header.len()).map(|j| {
            let mut cells = rows.iter().filter_map(|row| row.get(j)).peekable();
            cells.peek().is_some() && cells.all(|cell| is_number(cell))
        });
        Self {
            caption: caption.into(),
            numeric: numeric.collect(),
            header,
            rows,
        }
    }
}

/// A number as people write it: with commas, a unit, ± or a dash for none.
fn is_number(cell: &str) -> bool {
    let cell = cell.trim();
    let digits = cell.chars().filter(char::is_ascii_digit).count();
    let first = cell.chars().next();
    let starts = first.is_some_and(|c| c.is_ascii_digit() || "+-−±.<>≈".contains(c));
    cell.is_empty() || cell == "–" || cell == "-" || (starts && digits > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_numbers_are_found() {
        let rows = [
            ["mp", "1.12 %", "–", "2 ± 1"],
            ["kaczmarz", "60,000", "−1e-5", ""],
        ];
        let table = Table::new("t", ["method", "a", "b", "c"], rows);
        assert_eq!(table.numeric, [false, true, true, true]);
    }
}
