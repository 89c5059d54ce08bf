//! The program `lssvm`.
fn main() {}
