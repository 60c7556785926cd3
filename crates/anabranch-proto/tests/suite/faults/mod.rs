//! Faults and attacks between two hosts in lockstep. Either the stream arrives exactly or the
//! connection ends with an error. No state is left behind, and no test runs without end.
//! docs/reliability.md lists the faults.

mod addresses;
mod clocks;
mod closing;
mod data;
mod handshake;
mod injection;
mod mappings;
mod options;
mod resets;
mod storms;
mod support;
