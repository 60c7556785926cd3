//! A capture of the packets on the uplinks.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;

use anabranch_wire::Packet;
use anabranch_wire::pcap::{InterfaceId, PacketDirection, PcapWriter};
use tracing::warn;

use crate::clock;
use crate::orders::{CaptureOrder, Uplink};

/// A capture, until it ends.
pub(super) struct Capture(Option<Running>);

struct Running {
    /// Without a buffer: a signal may end the process at any time.
    writer: PcapWriter<File>,
    interfaces: Vec<(IpAddr, InterfaceId)>,
    limit: u64,
    bytes: Vec<u8>,
}

impl Capture {
    /// Begin a capture. The supervisor has opened the file as the standard output of this process,
    /// which may not open files.
    ///
    /// # Errors
    /// If writing fails.
    pub(super) fn begin(order: CaptureOrder, uplinks: &[Uplink]) -> io::Result<Self> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let mut writer = PcapWriter::with_snap_length(file, order.snap)?;
        let mut interfaces = Vec::new();
        for uplink in uplinks {
            let id = writer.add_interface(&uplink.interface, None)?;
            interfaces.extend(uplink.addresses.iter().map(|address| (*address, id)));
        }
        let limit = order.limit;
        Ok(Capture(Some(Running { writer, interfaces, limit, bytes: Vec::new() })))
    }

    /// No capture.
    pub(super) fn none() -> Self {
        Capture(None)
    }

    /// Write a packet of the uplink with this address.
    pub(super) fn write(&mut self, address: IpAddr, direction: PacketDirection, packet: &Packet) {
        let Some(running) = &mut self.0 else { return };
        let problem = match running.write(address, direction, packet) {
            Ok(()) if running.writer.written() < running.limit => return,
            Ok(()) => format!("it has reached its limit of {} bytes", running.limit),
            Err(error) => error.to_string(),
        };
        warn!(problem, "the capture has ended");
        self.0 = None;
    }
}

impl Running {
    fn write(
        &mut self,
        address: IpAddr,
        direction: PacketDirection,
        packet: &Packet,
    ) -> io::Result<()> {
        let found = self.interfaces.iter().find(|(own, _)| *own == address);
        let Some((_, interface)) = found else { return Ok(()) };
        self.bytes.clear();
        let original = packet.wire_len();
        let captured = self.writer.captured(original);
        packet.emit_start(captured, &mut self.bytes).map_err(io::Error::other)?;
        let at = clock::calendar();
        self.writer.write_packet(*interface, at, direction, &self.bytes, original, None)
    }
}
