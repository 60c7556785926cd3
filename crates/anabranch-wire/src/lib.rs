//! Octets ⇄ values: the formats that hosts and links exchange. No state, no clock.
//!
//! A [`Segment`] is the value that travels through the emulated network: header, options and
//! payload already parsed. It becomes octets ([`Segment::emit`]) only for a capture, a real
//! device or a round-trip check, and octets become a segment through [`Segment::parse`].

mod checksum;
mod error;
mod ip;
pub mod mptcp;
pub mod pattern;
mod payload;
pub mod pcap;
mod segment;
mod seq;
mod tcp;
mod tcp_option;
mod time;

pub use error::ParseError;
pub use payload::{Payload, Piece};
pub use segment::{Endpoint, Segment};
pub use seq::{DataSeq, SeqNumber};
pub use tcp::{Flags, TcpHeader};
pub use tcp_option::{MAX_OPTION_OCTETS, SackBlock, SackBlocks, TcpOptions, Timestamps};
pub use time::{Duration, Instant};
