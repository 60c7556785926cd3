//! Read and write Multipath TCP packets: IPv4 and IPv6, TCP with all its options, UDP, and pcapng
//! captures.
//!
//! A [`Segment`] is a TCP segment as a plain value: addresses, header, options and payload, already
//! parsed and validated. [`Segment::parse`] reads one from the bytes of an IP packet, and
//! [`Segment::emit`] writes it back. A [`Packet`] is a segment, a UDP [`Datagram`] or a router's
//! message that a segment was too large ([`PacketTooBig`]). Links and
//! hosts exchange these values. Raw bytes appear only in captures ([`pcap`]) and on real devices.
//!
//! The crate reads no clock, and has no state but the memory of packets that are gone
//! ([`Pooled`]). It defines the types for time, [`Instant`] and
//! [`Duration`], because the engine and the links share them.
//!
//! ```
//! use anabranch_wire::{Flags, Segment};
//!
//! let syn = [
//!     0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 6, 0x26, 0xc6, // IPv4, TCP inside
//!     10, 0, 0, 1, 10, 0, 0, 2, // from 10.0.0.1 to 10.0.0.2
//!     0xc0, 0x00, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, // ports, sequence number, acknowledgement
//!     0x70, 0x02, 0xff, 0xff, 0x94, 0xc9, 0, 0, // seven words, SYN, window, checksum
//!     2, 4, 0x05, 0xb4, // maximum segment size 1460
//!     30, 4, 0x01, 0x01, // MP_CAPABLE: version 1, HMAC-SHA256
//! ];
//! let segment = Segment::parse(&syn)?;
//! assert!(segment.checksum_ok && segment.header.flags.contains(Flags::SYN));
//! assert_eq!(segment.destination.to_string(), "10.0.0.2:80");
//! assert_eq!(segment.options.mss, Some(1460));
//! let capable = segment.options.control.as_ref().and_then(|control| control.capable);
//! assert_eq!(capable.map(|capable| capable.version), Some(1));
//!
//! let mut bytes = Vec::new();
//! segment.emit(&mut bytes)?;
//! assert_eq!(bytes, syn);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod captured;
mod checksum;
mod datagram;
mod error;
mod fast_open;
mod ip;
pub mod mptcp;
mod packet;
pub mod pattern;
mod payload;
pub mod pcap;
mod pooled;
mod reader;
mod segment;
mod seq;
mod subtype;
mod tcp;
mod tcp_option;
mod time;
mod too_big;

pub use captured::{CapturedChecksum, CapturedSegment};
pub use checksum::{Checksum, dss_checksum};
pub use datagram::{Datagram, UDP_HEADER_BYTES};
pub use error::{EmitError, Lengths, ParseError};
pub use fast_open::FastOpenCookie;
pub use ip::{CE, ECT_0, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, ip_header_bytes};
pub use packet::Packet;
pub use payload::{Payload, Piece};
pub use pooled::{FreeBoxes, Pooled, Reuse};
pub use segment::{PooledSegment, Segment, SocketAddress};
pub use seq::{DataSeq, SeqNumber};
pub use tcp::{Flags, HEADER_BYTES as TCP_HEADER_BYTES, TcpHeader};
pub use tcp_option::{MAX_OPTION_BYTES, RawOptions, SackBlock, SackBlocks, TcpOptions, Timestamps};
pub use time::{Duration, Instant};
pub use too_big::PacketTooBig;
