//! The tests of this crate, in one binary.

mod conformance;
mod judge;
mod language;
