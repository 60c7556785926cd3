//! Faults and attacks between two hosts in lockstep: the stream arrives exactly or the connection
//! ends with an error, nothing is left behind, and it does not take for ever. docs/reliability.md
//! says which faults.

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
