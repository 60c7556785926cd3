//! Segments and bytes, both ways. One binary for all.

mod arbitrary;
mod datagram;
mod round_trip;
mod segment;
mod tcp_options;
