//! Octets ⇄ values: the formats that hosts and links exchange. No state, no clock.
//!
//! A [`Segment`] is the value that travels through the emulated network: header, options and
//! payload already parsed. It becomes octets ([`Segment::emit`]) only for a capture, a real
//! device or a round-trip check, and octets become a segment through [`Segment::parse`]. A
//! [`Packet`] is a segment or a UDP [`Datagram`].

mod captured;
mod checksum;
mod datagram;
mod error;
mod ip;
pub mod mptcp;
mod packet;
pub mod pattern;
mod payload;
pub mod pcap;
mod reader;
mod segment;
mod seq;
mod tcp;
mod tcp_option;
mod time;

pub use captured::CapturedSegment;
pub use checksum::{Checksum, dss_checksum};
pub use datagram::{Datagram, UDP_HEADER_OCTETS};
pub use error::{EmitError, Lengths, ParseError};
pub use ip::{CE, ECT_0, IPV4_HEADER_OCTETS, IPV6_HEADER_OCTETS, ip_header_octets};
pub use packet::Packet;
pub use payload::{Payload, Piece};
pub use segment::{Endpoint, Segment};
pub use seq::{DataSeq, SeqNumber};
pub use tcp::{Flags, HEADER_OCTETS as TCP_HEADER_OCTETS, TcpHeader};
pub use tcp_option::{
    MAX_OPTION_OCTETS, RawOptions, SackBlock, SackBlocks, TcpOptions, Timestamps,
};
pub use time::{Duration, Instant};
