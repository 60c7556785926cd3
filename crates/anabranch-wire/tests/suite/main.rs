//! Parsing and emitting packets. One binary for all tests.

mod arbitrary;
mod datagram;
mod round_trip;
mod segment;
mod tcp_options;
