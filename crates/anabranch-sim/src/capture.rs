//! A capture of all interfaces of a scenario.

use std::io::Write;

use anabranch_net::Side;
use anabranch_wire::pcap::{Direction, InterfaceId, PcapWriter};
use anabranch_wire::{Instant, Packet};

use crate::error::RunError;
use crate::scenario::Scenario;

/// A pcapng file with an interface of each host on each path.
pub struct CaptureFile<'a> {
    writer: PcapWriter<&'a mut dyn Write>,
    /// Client's and server's interface on each path.
    interfaces: Vec<[InterfaceId; 2]>,
    bytes: Vec<u8>,
}

impl<'a> CaptureFile<'a> {
    /// Begin a capture.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(out: &'a mut dyn Write, scenario: &Scenario) -> Result<Self, RunError> {
        let mut writer = PcapWriter::new(out)?;
        let mut interfaces = Vec::new();
        for path in &scenario.paths {
            let mut add = |side: Side| {
                let description = format!("{side} end of path {}", path.name);
                writer.add_interface(&format!("{side}-{}", path.name), Some(&description))
            };
            interfaces.push([add(Side::Client)?, add(Side::Server)?]);
        }
        Ok(CaptureFile { writer, interfaces, bytes: Vec::new() })
    }

    /// Write a packet that passes an interface of `side`.
    ///
    /// # Errors
    /// If writing fails, or the packet has no form in bytes.
    pub fn write(
        &mut self,
        now: Instant,
        path: usize,
        side: Side,
        direction: Direction,
        packet: &Packet,
    ) -> Result<(), RunError> {
        self.bytes.clear();
        packet.emit(&mut self.bytes)?;
        let interface = self.interfaces[path][side as usize];
        self.writer.write_packet(interface, now, direction, &self.bytes, None)?;
        Ok(())
    }
}
