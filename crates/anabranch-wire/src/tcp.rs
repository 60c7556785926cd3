//! The TCP header. RFC 9293 §3.1.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

use crate::reader::Reader;
use crate::{ParseError, SeqNumber};

/// Bytes of a TCP header without options.
pub const HEADER_BYTES: usize = 20;

/// The fixed part of a TCP header, except ports and checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    /// Sequence number of the first payload byte, or of the SYN.
    pub seq: SeqNumber,
    /// Next sequence number expected. Valid only with [`Flags::ACK`].
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: Flags,
    /// Receive window as sent on the wire, without scaling.
    pub window: u16,
    /// Urgent pointer. It is transmitted but never acted upon.
    pub urgent: u16,
}

/// TCP control bits. RFC 9293 §3.1; ECE and CWR from RFC 3168.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// The sender has no more data.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset.
    pub const RST: Flags = Flags(0x04);
    /// Push.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer is significant.
    pub const URG: Flags = Flags(0x20);
    /// ECN echo.
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced.
    pub const CWR: Flags = Flags(0x80);

    /// Returns `true` if all bits of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns `true` if any bit of `other` is set.
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, rhs: Flags) -> Flags {
        Flags(self.0 | rhs.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, rhs: Flags) {
        self.0 |= rhs.0;
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let set = names.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        let set: Vec<_> = set.map(|(_, name)| *name).collect();
        f.write_str(&set.join("|"))
    }
}

/// A TCP segment with a parsed header, and options and payload as raw bytes.
pub(crate) struct RawSegment<'a> {
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) header: TcpHeader,
    pub(crate) options: &'a [u8],
    /// Bytes of all options according to the data offset.
    pub(crate) options_len: usize,
    pub(crate) payload: &'a [u8],
}

impl TcpHeader {
    /// Append the header of a segment with `option_bytes` bytes of options (a multiple of 4, at
    /// most 40). The checksum field at [`CHECKSUM_AT`] is 0.
    pub(crate) fn emit(
        &self,
        source_port: u16,
        destination_port: u16,
        option_bytes: usize,
        out: &mut Vec<u8>,
    ) {
        let words = (HEADER_BYTES + option_bytes) / 4;
        let mut header = [0; HEADER_BYTES];
        header[0..2].copy_from_slice(&source_port.to_be_bytes());
        header[2..4].copy_from_slice(&destination_port.to_be_bytes());
        header[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        header[8..12].copy_from_slice(&self.ack.0.to_be_bytes());
        header[12] = (words as u8) << 4;
        header[13] = self.flags.0;
        header[14..16].copy_from_slice(&self.window.to_be_bytes());
        header[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        out.extend_from_slice(&header);
    }
}

/// Parse a TCP header. The checksum is not verified, and the reserved bits are ignored.
pub(crate) fn parse(bytes: &[u8]) -> Result<RawSegment<'_>, ParseError> {
    let raw = parse_cut(bytes)?;
    if raw.options.len() == raw.options_len {
        return Ok(raw);
    }
    Err(ParseError::Truncated {
        what: "TCP header",
        needed: HEADER_BYTES + raw.options_len,
        available: bytes.len(),
    })
}

/// Parse a TCP header from a capture, which may have truncated the options.
pub(crate) fn parse_cut(bytes: &[u8]) -> Result<RawSegment<'_>, ParseError> {
    let mut reader = Reader::new("TCP header", bytes);
    let (source_port, destination_port) = (reader.u16()?, reader.u16()?);
    let (seq, ack) = (SeqNumber(reader.u32()?), SeqNumber(reader.u32()?));
    let [offset, flags] = reader.array()?;
    let window = reader.u16()?;
    let _checksum = reader.u16()?;
    let urgent = reader.u16()?;

    // RFC 9293 §3.1: the data offset counts 32-bit words.
    let header_bytes = usize::from(offset >> 4) * 4;
    let options_len = header_bytes
        .checked_sub(HEADER_BYTES)
        .ok_or(ParseError::TcpDataOffset { found: header_bytes })?;
    let rest = reader.rest();
    let (options, payload) = rest.split_at(options_len.min(rest.len()));
    let header = TcpHeader { seq, ack, flags: Flags(flags), window, urgent };
    Ok(RawSegment { source_port, destination_port, header, options, options_len, payload })
}

/// Offset of the checksum in a TCP header. RFC 9293 §3.1.
pub(crate) const CHECKSUM_AT: usize = 16;
