//! Pages that show what a run did: one HTML file that needs no network.
//!
//! ```text
//! Run ─ training_page ─┐
//! anything else ───────┴─ Page ─┬─ to_html   one file: style, script, pictures inside
//!                               └─ to_json   the same numbers, without pictures
//! ```
//!
//! - [`Page`]: title, result, facts and sections of [`Block`]s, made by hand or
//!   by [`training_page`].
//! - [`Plot`] and [`Heatmap`]: drawn as SVG, by this crate alone.
//! - [`Gallery`]: small [`Picture`]s with captions.
//!
//! Text is escaped where it is written, so names may be anything.

mod colours;
mod escape;
mod heatmap;
mod machine;
mod page;
mod picture;
mod plot;
mod svg;
mod training;

pub use colours::variables;
pub use heatmap::Heatmap;
pub use machine::Machine;
pub use page::{Block, Fact, Gallery, Page, Section, Table, Tile};
pub use picture::{Picture, Pictures};
pub use plot::{Axis, Mark, Plot, Scale, Series, SeriesStyle, short};
pub use training::{Run, calibration, class_table, kernel_in_words, training_page};
