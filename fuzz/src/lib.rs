//! What is done with bytes that anybody may have made: one function for each fuzz target.
//!
//! None of them panics, whatever the bytes are; that is the test. The ordinary tests include
//! this folder too, and give every file in `corpus/` to the same functions
//! (`crates/lssvm-cli/tests/fuzz_corpus.rs`).
//!
//! A checksum keeps a fuzzer out: nearly every changed file is refused before anything else is
//! looked at. Where a format has one, an input that begins with `{` is not a file but what to make
//! one of: a JSON header, a line end, and bytes. Lengths, places and checksums that the header
//! leaves out are put in ([`seal`]), so that whatever else is changed gets past the door.

pub mod checkpoint;
pub mod data;
pub mod model;
pub mod options;
pub mod request;
pub mod seal;
pub mod seeds;

pub use checkpoint::checkpoint;
pub use data::{convert, data, open};
pub use model::model;
pub use options::options;
pub use request::request;
