//! Captures of runs, unchanged and damaged.

mod damages;
mod encapsulations;
mod formats;
mod older;
mod runs;
mod support;
mod views;
