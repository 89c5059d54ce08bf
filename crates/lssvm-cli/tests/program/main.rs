//! The program, tested by its commands: one file a subject.
//!
//! One test program for all, since building it takes longer than most of them run.

mod common;

mod browser;
mod centers;
mod convert;
mod coverage;
mod crash;
mod errors;
mod help;
mod interrupt;
mod memory;
mod parquet;
mod path;
mod predict;
mod reproduce;
mod serve;
mod settings;
mod sparse;
mod train;
mod tune;
