//! Captures of runs, unchanged and damaged.

mod damages;
mod formats;
mod runs;
mod support;
mod views;
