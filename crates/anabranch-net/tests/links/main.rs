//! Links driven in virtual time.

mod derived;
mod properties;
mod support;
mod trace;
