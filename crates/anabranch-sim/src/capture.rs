//! Captures the interfaces of a scenario's hosts.

use core::fmt;
use std::io::Write;

use anabranch_net::Side;
use anabranch_wire::pcap::{InterfaceId, PacketDirection, PcapWriter};
use anabranch_wire::{Instant, Packet};

use crate::error::RunError;
use crate::scenario::Scenario;

/// A capture to write.
pub struct Capture<'a> {
    /// Where the capture (pcapng) goes.
    pub out: Box<dyn Write + Send + 'a>,
    /// The hosts whose interfaces are captured (default: the sending hosts). A packet occurs once
    /// for each of them that it passes.
    pub at: Option<&'static [Side]>,
    /// Maximum number of bytes that are kept of a packet (default: all).
    pub snap_length: Option<u32>,
    /// Maximum size in bytes (default: unlimited). After that, the run continues without a capture.
    pub limit: Option<u64>,
}

impl fmt::Debug for Capture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture")
            .field("at", &self.at)
            .field("snap_length", &self.snap_length)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl<'a> Capture<'a> {
    /// A capture of whole packets at the sending hosts.
    pub fn new(out: impl Write + Send + 'a) -> Self {
        Capture { out: Box::new(out), at: None, snap_length: None, limit: None }
    }
}

/// A pcapng file with one interface per captured host and path. Call [`finish`](Self::finish) at the end.
pub struct CaptureFile<'a> {
    writer: PcapWriter<Box<dyn Write + Send + 'a>>,
    /// For each path, the interfaces of client and server, if they are captured.
    interfaces: Vec<[Option<InterfaceId>; 2]>,
    /// Maximum size of the file in bytes.
    limit: u64,
    full_at: Option<Instant>,
}

impl fmt::Debug for CaptureFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureFile").finish_non_exhaustive()
    }
}

/// Maximum overhead of a packet in the file, in bytes.
const PACKET_OVERHEAD: u64 = 64;

/// Bytes that wait for a write. Linux 6.18 with ext4 takes half as much time again for writes of 64 KiB,
/// and six times as much for 4 MiB.
const HELD_BYTES: usize = 1 << 19;

impl<'a> CaptureFile<'a> {
    /// Start a capture. It ends before the first packet that would exceed its limit.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(capture: Capture<'a>, scenario: &Scenario) -> Result<Self, RunError> {
        let Capture { out, at, snap_length, limit } = capture;
        let is_captured = |side: Side| match at {
            Some(sides) => sides.contains(&side),
            None => {
                scenario.connections.iter().any(|each| each.direction.senders().contains(&side))
            }
        };
        let mut writer =
            PcapWriter::with_snap_length(out, snap_length.unwrap_or(0))?.holding(HELD_BYTES);
        let mut interfaces = Vec::new();
        for path in &scenario.paths {
            let mut add = |side: Side| {
                let name = format!("{side}-{}", path.name);
                let description = format!("{side} end of path {}", path.name);
                is_captured(side)
                    .then(|| writer.add_interface(&name, Some(&description)))
                    .transpose()
            };
            interfaces.push([add(Side::Client)?, add(Side::Server)?]);
        }
        let limit = limit.unwrap_or(u64::MAX);
        Ok(CaptureFile { writer, interfaces, limit, full_at: None })
    }

    /// When the first packet was omitted because of the limit.
    pub fn full_at(&self) -> Option<Instant> {
        self.full_at
    }

    /// Write a packet that passes an interface of `side`.
    ///
    /// # Errors
    /// If writing fails, or the packet cannot be represented in bytes.
    pub fn write(
        &mut self,
        now: Instant,
        path: usize,
        side: Side,
        direction: PacketDirection,
        packet: &Packet,
    ) -> Result<(), RunError> {
        let Some(interface) = self.interfaces[path][side as usize] else { return Ok(()) };
        if self.full_at.is_some() {
            return Ok(());
        }
        let original = packet.wire_len();
        let captured = self.writer.captured(original);
        if self.writer.written() + captured as u64 + PACKET_OVERHEAD > self.limit {
            self.full_at = Some(now);
            return Ok(());
        }
        self.writer.emit_packet(interface, now, direction, original, |kept, out| {
            Ok(packet.emit_start(kept, out)?)
        })
    }

    /// Write all packets, and flush.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(&mut self) -> Result<(), RunError> {
        Ok(self.writer.flush()?)
    }
}

impl Drop for CaptureFile<'_> {
    /// A run that was stopped still leaves its packets.
    fn drop(&mut self) {
        let _ = self.writer.flush();
    }
}
