//! Links driven in virtual time.

mod derived;
mod properties;
mod shapers;
mod support;
mod trace;
