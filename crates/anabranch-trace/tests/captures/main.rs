//! Captures of runs, whole and damaged.

mod damages;
mod formats;
mod runs;
mod support;
