//! The library as those use it who depend on it: one file a subject.
//!
//! One test program for all, since building it takes longer than most of them run.

mod coverage;
mod leave_one_out;
mod long_runs;
mod mnist;
mod sparse;
