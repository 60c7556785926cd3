//! Streams over the simulated network, in virtual time.

mod http;
mod interception;
mod streams;
mod support;
