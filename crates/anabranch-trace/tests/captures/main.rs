//! Captures of runs, unchanged and damaged.

mod damages;
mod data_in_syn;
mod encapsulations;
mod formats;
mod older;
mod runs;
mod support;
mod views;
