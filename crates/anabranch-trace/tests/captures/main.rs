//! Captures of runs, whole and damaged.

mod runs;
mod support;
