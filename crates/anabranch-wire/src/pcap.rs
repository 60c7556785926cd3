//! Packet captures in the pcapng format, which Wireshark and tcpdump read.
//!
//! The layout follows draft-ietf-opsawg-pcapng. A file is little-endian and has one section, one
//! interface description per interface and one enhanced packet block per packet. Times are in
//! nanoseconds.

use std::io::{self, ErrorKind, Write};

use crate::Instant;

/// Writes a capture file block by block, with one write per block unless it [holds](Self::holding) them.
#[derive(Debug)]
pub struct PcapWriter<W> {
    out: W,
    /// Maximum number of bytes that are kept of a packet.
    snap_length: u32,
    interfaces: u32,
    /// Bytes of all blocks that were begun and ended.
    written: u64,
    /// Whole blocks that wait to be written, and the block that was begun.
    blocks: Vec<u8>,
    /// Where that block begins in `blocks`.
    block_at: usize,
    /// Blocks wait until they have this number of bytes.
    hold: usize,
}

/// An interface of one capture file, numbered in the order of [`PcapWriter::add_interface`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceId(u32);

/// Direction in which a packet passes an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketDirection {
    /// Received by the interface.
    Inbound,
    /// Sent by the interface.
    Outbound,
}

impl<W: Write> PcapWriter<W> {
    /// Begin a capture of whole packets on `out`.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(out: W) -> io::Result<Self> {
        PcapWriter::with_snap_length(out, NO_SNAP_LENGTH)
    }

    /// Begin a capture on `out` that keeps at most `snap_length` bytes of each packet; all if it is
    /// 0.
    ///
    /// # Errors
    /// If writing fails.
    pub fn with_snap_length(out: W, snap_length: u32) -> io::Result<Self> {
        let mut writer = PcapWriter {
            out,
            snap_length,
            interfaces: 0,
            written: 0,
            blocks: Vec::new(),
            block_at: 0,
            hold: 0,
        };
        let body = writer.begin(SECTION_HEADER);
        body.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        body.extend(VERSION.map(u16::to_le_bytes).as_flattened());
        body.extend(SECTION_LENGTH_UNKNOWN.to_le_bytes());
        writer.end()?;
        Ok(writer)
    }

    /// From now on, keep blocks until they have `bytes` bytes, and write them at once. Blocks that wait
    /// are lost unless [`flush`](Self::flush) or [`finish`](Self::finish) is called.
    #[must_use]
    pub fn holding(mut self, bytes: usize) -> Self {
        self.hold = bytes;
        self
    }

    /// Declare an interface whose packets start with their IP header.
    ///
    /// # Errors
    /// If writing fails, or if `name` or `description` has more than 65535 bytes.
    pub fn add_interface(
        &mut self,
        name: &str,
        description: Option<&str>,
    ) -> io::Result<InterfaceId> {
        let id = InterfaceId(self.interfaces);
        let snap_length = self.snap_length;
        let body = self.begin(INTERFACE_DESCRIPTION);
        body.extend(LINKTYPE_RAW.to_le_bytes());
        body.extend([0; 2]);
        body.extend(snap_length.to_le_bytes());
        push_option(body, IF_NAME, name.as_bytes())?;
        if let Some(description) = description {
            push_option(body, IF_DESCRIPTION, description.as_bytes())?;
        }
        push_option(body, IF_TSRESOL, &[NANOSECONDS])?;
        push_option(body, END_OF_OPTIONS, &[])?;
        self.end()?;
        self.interfaces += 1;
        Ok(id)
    }

    /// Write one IP packet of `original` bytes, seen on `interface` at time `at`, with an optional comment
    /// for the reader. `bytes` are the packet, or at least the [kept](Self::captured) part of it. Time
    /// counts from the epoch of the capture.
    ///
    /// # Errors
    /// If writing fails, `interface` belongs to another capture, the comment has more than 65535
    /// bytes, or the packet does not fit into a block.
    ///
    /// # Panics
    /// If `bytes` are fewer than the kept ones.
    pub fn write_packet(
        &mut self,
        interface: InterfaceId,
        at: Instant,
        direction: PacketDirection,
        bytes: &[u8],
        original: usize,
        comment: Option<&str>,
    ) -> io::Result<()> {
        let captured = self.begin_packet(interface, at, original)?;
        self.blocks.extend_from_slice(&bytes[..captured]);
        self.end_packet(direction, comment)
    }

    /// Write one IP packet of `original` bytes, as [`write_packet`](Self::write_packet) does. `emit` appends
    /// the kept part of the packet to the file. It gets the length of this part in bytes.
    ///
    /// # Errors
    /// As [`write_packet`](Self::write_packet), or if `emit` fails. Nothing of the packet is then written.
    ///
    /// # Panics
    /// If `emit` appends another number of bytes.
    pub fn emit_packet<E: From<io::Error>>(
        &mut self,
        interface: InterfaceId,
        at: Instant,
        direction: PacketDirection,
        original: usize,
        emit: impl FnOnce(usize, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let captured = self.begin_packet(interface, at, original)?;
        let end = self.blocks.len() + captured;
        let emitted = emit(captured, &mut self.blocks);
        emitted.inspect_err(|_| self.blocks.truncate(self.block_at))?;
        assert_eq!(self.blocks.len(), end, "the kept part of a packet");
        Ok(self.end_packet(direction, None)?)
    }

    /// Begin the block of a packet. Returns the number of bytes of the packet that follow.
    fn begin_packet(
        &mut self,
        interface: InterfaceId,
        at: Instant,
        original: usize,
    ) -> io::Result<usize> {
        if interface.0 >= self.interfaces {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "interface belongs to another capture",
            ));
        }
        let nanos = at.as_nanos();
        let captured = self.captured(original);
        let words = [
            interface.0,
            (nanos >> 32) as u32,
            nanos as u32,
            length32(captured)?,
            length32(original)?,
        ];
        let body = self.begin(ENHANCED_PACKET);
        body.extend_from_slice(words.map(u32::to_le_bytes).as_flattened());
        Ok(captured)
    }

    /// End the block of a packet after its bytes.
    fn end_packet(&mut self, direction: PacketDirection, comment: Option<&str>) -> io::Result<()> {
        let body = &mut self.blocks;
        pad(body);
        if let Some(comment) = comment {
            push_option(body, COMMENT, comment.as_bytes())?;
        }
        push_short_option(body, PACKET_FLAGS, direction.flags().to_le_bytes());
        push_short_option(body, END_OF_OPTIONS, []);
        self.end()
    }

    /// Number of bytes that are kept of a packet with `len` bytes.
    pub fn captured(&self, len: usize) -> usize {
        if self.snap_length == NO_SNAP_LENGTH { len } else { len.min(self.snap_length as usize) }
    }

    /// Bytes of all blocks written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Begin a block. Returns the buffer to which its body is appended.
    fn begin(&mut self, block_type: u32) -> &mut Vec<u8> {
        // A block that failed leaves a part behind.
        self.blocks.truncate(self.block_at);
        let start = [block_type, 0].map(u32::to_le_bytes);
        self.blocks.extend_from_slice(start.as_flattened());
        &mut self.blocks
    }

    /// End the block: type, total length, body, total length again.
    fn end(&mut self) -> io::Result<()> {
        let length = length32(self.blocks.len() + size_of::<u32>() - self.block_at)?;
        self.blocks[self.block_at + 4..][..4].copy_from_slice(&length.to_le_bytes());
        self.blocks.extend_from_slice(&length.to_le_bytes());
        self.block_at = self.blocks.len();
        self.written += u64::from(length);
        if self.block_at < self.hold { Ok(()) } else { self.write_blocks() }
    }

    /// Write the blocks that wait.
    fn write_blocks(&mut self) -> io::Result<()> {
        let written = self.out.write_all(&self.blocks[..self.block_at]);
        // Even after an error: a second attempt could write the beginning twice.
        self.blocks.clear();
        self.block_at = 0;
        written
    }

    /// Write all blocks, and flush the underlying writer.
    ///
    /// # Errors
    /// If writing or flushing fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write_blocks()?;
        self.out.flush()
    }

    /// Write all blocks, flush, and return the underlying writer.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.out)
    }
}

impl PacketDirection {
    /// The direction bits in the flags word of an enhanced packet block.
    const fn flags(self) -> u32 {
        match self {
            PacketDirection::Inbound => 0b01,
            PacketDirection::Outbound => 0b10,
        }
    }
}

/// Append an option: code, length of its value, value, padding.
fn push_option(body: &mut Vec<u8>, code: u16, value: &[u8]) -> io::Result<()> {
    let len = u16::try_from(value.len())
        .map_err(|_| io::Error::new(ErrorKind::InvalidInput, "text longer than 65535 bytes"))?;
    body.extend_from_slice([code, len].map(u16::to_le_bytes).as_flattened());
    body.extend_from_slice(value);
    pad(body);
    Ok(())
}

/// Append an option whose value has 4 bytes or none.
fn push_short_option<const LEN: usize>(body: &mut Vec<u8>, code: u16, value: [u8; LEN]) {
    const { assert!(LEN.is_multiple_of(4)) };
    body.extend_from_slice([code, LEN as u16].map(u16::to_le_bytes).as_flattened());
    body.extend_from_slice(&value);
}

/// Pad to a 32-bit boundary, where every field of variable length ends.
fn pad(body: &mut Vec<u8>) {
    let end = body.len().next_multiple_of(4);
    // With a constant length, both calls take a few instructions.
    body.extend_from_slice(&[0; 3]);
    body.truncate(end);
}

fn length32(bytes: usize) -> io::Result<u32> {
    u32::try_from(bytes)
        .map_err(|_| io::Error::new(ErrorKind::InvalidInput, "packet longer than a block"))
}

/// Block types.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Major and minor version of the format.
const VERSION: [u16; 2] = [1, 0];
const SECTION_LENGTH_UNKNOWN: u64 = u64::MAX;

/// Packets begin with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;
/// Packets are captured whole.
const NO_SNAP_LENGTH: u32 = 0;

/// Option codes.
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const PACKET_FLAGS: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;

/// Timestamp resolution: units of 10⁻⁹ s.
const NANOSECONDS: u8 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    /// The type and body of each block in a capture, after checking both copies of the length.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let word = |at: &[u8]| u32::from_le_bytes(at[..4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !bytes.is_empty() {
            let total = word(&bytes[4..]) as usize;
            assert_eq!(total % 4, 0);
            assert_eq!(word(&bytes[total - 4..]) as usize, total);
            blocks.push((word(bytes), bytes[8..total - 4].to_vec()));
            bytes = &bytes[total..];
        }
        blocks
    }

    #[test]
    fn a_capture_begins_with_the_section_header() {
        let bytes = PcapWriter::new(Vec::new()).unwrap().finish().unwrap();
        let expected = [
            0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 0xff, 0xff,
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 28, 0, 0, 0,
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn an_interface_states_name_description_and_nanoseconds() {
        let mut capture = PcapWriter::new(Vec::new()).unwrap();
        capture.add_interface("wifi", Some("up")).unwrap();
        let blocks = blocks(&capture.finish().unwrap());
        let mut expected = vec![101, 0, 0, 0, 0, 0, 0, 0];
        expected.extend([2, 0, 4, 0, b'w', b'i', b'f', b'i', 3, 0, 2, 0, b'u', b'p', 0, 0]);
        expected.extend([9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(blocks[1], (1, expected));
    }

    #[test]
    fn a_packet_carries_time_direction_bytes_and_comment() {
        let mut capture = PcapWriter::new(Vec::new()).unwrap();
        capture.add_interface("a", None).unwrap();
        let second = capture.add_interface("b", None).unwrap();
        let at = Instant::from_nanos(0x0102_0304_0506_0708);
        capture
            .write_packet(second, at, PacketDirection::Outbound, b"abcde", 5, Some("why"))
            .unwrap();
        let blocks = blocks(&capture.finish().unwrap());
        let mut expected = vec![1, 0, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5, 5, 0, 0, 0, 5, 0, 0, 0];
        expected.extend(b"abcde\0\0\0");
        expected.extend([1, 0, 3, 0, b'w', b'h', b'y', 0, 2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(blocks[3], (6, expected));
    }

    #[test]
    fn a_snap_length_cuts_packets_and_keeps_their_original_lengths() {
        let mut capture = PcapWriter::with_snap_length(Vec::new(), 3).unwrap();
        let only = capture.add_interface("a", None).unwrap();
        capture
            .write_packet(only, Instant::ZERO, PacketDirection::Outbound, b"abcd", 5, None)
            .unwrap();
        let blocks = blocks(&capture.finish().unwrap());
        assert_eq!(blocks[1].1[4..8], [3, 0, 0, 0]);
        assert_eq!(blocks[2].1[12..24], [3, 0, 0, 0, 5, 0, 0, 0, b'a', b'b', b'c', 0]);
    }

    #[test]
    fn emitted_and_held_packets_make_the_same_file() {
        let packets: Vec<Vec<u8>> = (0..200).map(|len| vec![len as u8; len]).collect();
        for snap_length in [0, 3, 50] {
            let begun = || PcapWriter::with_snap_length(Vec::new(), snap_length).unwrap();
            let (mut plain, mut held) = (begun(), begun().holding(1_000));
            for (n, packet) in packets.iter().enumerate() {
                let at = Instant::from_nanos(n as u64);
                if n % 50 == 0 {
                    plain.add_interface("a", None).unwrap();
                    held.add_interface("a", None).unwrap();
                }
                let len = packet.len();
                plain
                    .write_packet(InterfaceId(0), at, PacketDirection::Inbound, packet, len, None)
                    .unwrap();
                let emit = |kept: usize, out: &mut Vec<u8>| {
                    out.extend_from_slice(&packet[..kept]);
                    io::Result::Ok(())
                };
                held.emit_packet(InterfaceId(0), at, PacketDirection::Inbound, len, emit).unwrap();
                assert_eq!(held.written(), plain.written());
            }
            assert_eq!(held.finish().unwrap(), plain.finish().unwrap());
        }
    }

    #[test]
    fn a_packet_that_cannot_be_emitted_leaves_nothing_behind() {
        let mut capture = PcapWriter::new(Vec::new()).unwrap().holding(1_000);
        let only = capture.add_interface("a", None).unwrap();
        let emit = |_, out: &mut Vec<u8>| {
            out.push(1);
            Err(io::Error::other("why"))
        };
        assert!(
            capture.emit_packet(only, Instant::ZERO, PacketDirection::Inbound, 5, emit).is_err()
        );
        assert_eq!(blocks(&capture.finish().unwrap()).len(), 2);
    }

    #[test]
    fn misuse_is_an_error_and_writes_nothing() {
        let mut capture = PcapWriter::new(Vec::new()).unwrap();
        let unknown = InterfaceId(0);
        let at = Instant::ZERO;
        assert!(capture.write_packet(unknown, at, PacketDirection::Inbound, b"", 0, None).is_err());
        let long = "x".repeat(65_536);
        assert!(capture.add_interface(&long, None).is_err());
        let known = capture.add_interface("a", None).unwrap();
        assert!(
            capture.write_packet(known, at, PacketDirection::Inbound, b"", 0, Some(&long)).is_err()
        );
        assert_eq!(blocks(&capture.finish().unwrap()).len(), 2);
    }
}
