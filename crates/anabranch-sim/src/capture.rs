//! Captures all interfaces of a scenario.

use std::io::Write;

use anabranch_net::Side;
use anabranch_wire::pcap::{Direction, InterfaceId, PcapWriter};
use anabranch_wire::{Instant, Packet};

use crate::error::RunError;
use crate::scenario::Scenario;

/// A pcapng file with one interface per host and path.
pub struct CaptureFile<'a> {
    writer: PcapWriter<&'a mut dyn Write>,
    /// For each path, the interfaces of client and server.
    interfaces: Vec<[InterfaceId; 2]>,
    bytes: Vec<u8>,
    /// Maximum size of the file in bytes.
    limit: u64,
    full_at: Option<Instant>,
}

/// Maximum overhead of a packet in the file, in bytes.
const PACKET_OVERHEAD: u64 = 64;

impl<'a> CaptureFile<'a> {
    /// Start a capture. With a `limit` in bytes, the capture ends before the first packet that
    /// would exceed it.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(
        out: &'a mut dyn Write,
        limit: Option<u64>,
        scenario: &Scenario,
    ) -> Result<Self, RunError> {
        let mut writer = PcapWriter::new(out)?;
        let mut interfaces = Vec::new();
        for path in &scenario.paths {
            let mut add = |side: Side| {
                let description = format!("{side} end of path {}", path.name);
                writer.add_interface(&format!("{side}-{}", path.name), Some(&description))
            };
            interfaces.push([add(Side::Client)?, add(Side::Server)?]);
        }
        let limit = limit.unwrap_or(u64::MAX);
        Ok(CaptureFile { writer, interfaces, bytes: Vec::new(), limit, full_at: None })
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
        direction: Direction,
        packet: &Packet,
    ) -> Result<(), RunError> {
        if self.full_at.is_some() {
            return Ok(());
        }
        self.bytes.clear();
        packet.emit(&mut self.bytes)?;
        if self.writer.written() + self.bytes.len() as u64 + PACKET_OVERHEAD > self.limit {
            self.full_at = Some(now);
            return Ok(());
        }
        let interface = self.interfaces[path][side as usize];
        self.writer.write_packet(interface, now, direction, &self.bytes, None)?;
        Ok(())
    }
}
