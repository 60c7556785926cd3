//! Observes packets during a run: digest, capture and round-trip check.

use anabranch_net::Side;
use anabranch_net::network::{LinkId, Tap};
use anabranch_wire::pcap::PacketDirection;
use anabranch_wire::{Instant, Packet};
use core::fmt;

use crate::capture::CaptureFile;
use crate::digest::Digest;
use crate::error::RunError;
use crate::ledger::Arrivals;

/// Observes every packet of a run.
pub struct Inspection<'c> {
    digest: Digest,
    /// Records of the packets at the hosts. Most runs keep none.
    records: Option<Box<Records<'c>>>,
    round_trip: bool,
    looks_at_sent: bool,
    /// The first error inside the network.
    error: Option<RunError>,
}

impl fmt::Debug for Inspection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspection").finish_non_exhaustive()
    }
}

/// Records of the packets that leave and reach the hosts.
struct Records<'c> {
    capture: Option<CaptureFile<'c>>,
    arrivals: Option<Arrivals>,
}

impl<'c> Inspection<'c> {
    /// Write packets to `capture`. With `round_trip`, also serialise each packet and parse it back.
    pub fn new(capture: Option<CaptureFile<'c>>, round_trip: bool) -> Self {
        Inspection::counting(capture, None, round_trip)
    }

    /// The same, and count the packets that arrive.
    pub(crate) fn counting(
        capture: Option<CaptureFile<'c>>,
        arrivals: Option<Arrivals>,
        round_trip: bool,
    ) -> Self {
        let any = capture.is_some() || arrivals.is_some();
        Inspection {
            digest: Digest::default(),
            records: any.then(|| Box::new(Records { capture, arrivals })),
            round_trip,
            looks_at_sent: any || round_trip,
            error: None,
        }
    }

    /// The packets that arrived, if they are counted.
    pub(crate) fn arrivals(&self) -> Option<&Arrivals> {
        self.records.as_ref()?.arrivals.as_ref()
    }

    /// The packets that arrived, if they are counted, for changes.
    pub(crate) fn arrivals_mut(&mut self) -> Option<&mut Arrivals> {
        self.records.as_mut()?.arrivals.as_mut()
    }

    /// Fingerprint of all packets that have entered a link.
    pub fn digest(&self) -> u64 {
        self.digest.value()
    }

    /// When the capture reached its limit.
    pub fn capture_full_at(&self) -> Option<Instant> {
        self.records.as_ref()?.capture.as_ref().and_then(CaptureFile::full_at)
    }

    /// Write the packets of the capture that wait.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish_capture(&mut self) -> Result<(), RunError> {
        let capture = self.records.as_mut().and_then(|records| records.capture.as_mut());
        capture.map_or(Ok(()), CaptureFile::finish)
    }

    /// The first error inside the network since the last call.
    #[inline]
    pub fn take_error(&mut self) -> Option<RunError> {
        self.error.take()
    }

    /// Returns `true` if [`Inspection::on_sent`] must be called, for a record or for the round-trip
    /// check.
    #[inline]
    pub fn looks_at_sent(&self) -> bool {
        self.looks_at_sent
    }

    /// A packet leaves `sender` on `path`.
    #[inline]
    pub fn on_sent(
        &mut self,
        now: Instant,
        sender: Side,
        path: usize,
        packet: &mut Packet,
    ) -> Result<(), RunError> {
        if let Some(records) = &mut self.records {
            if let Some(arrivals) = &mut records.arrivals {
                arrivals.on_sent(now, sender, path, packet);
            }
            records.capture(now, sender, path, PacketDirection::Outbound, packet)?;
        }
        if self.round_trip { round_trip(packet) } else { Ok(()) }
    }

    /// A packet arrives at `receiver` on `path`.
    #[inline]
    pub fn on_received(
        &mut self,
        now: Instant,
        receiver: Side,
        path: usize,
        packet: &Packet,
    ) -> Result<(), RunError> {
        match &mut self.records {
            Some(records) => records.on_received(now, receiver, path, packet),
            None => Ok(()),
        }
    }
}

impl Records<'_> {
    #[cold] // In a function of its own, so that runs without records are not slower.
    fn on_received(
        &mut self,
        now: Instant,
        receiver: Side,
        path: usize,
        packet: &Packet,
    ) -> Result<(), RunError> {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.on_arrival(now, receiver, path, packet);
        }
        self.capture(now, receiver, path, PacketDirection::Inbound, packet)
    }

    fn capture(
        &mut self,
        now: Instant,
        side: Side,
        path: usize,
        direction: PacketDirection,
        packet: &Packet,
    ) -> Result<(), RunError> {
        match &mut self.capture {
            Some(capture) => capture.write(now, path, side, direction, packet),
            None => Ok(()),
        }
    }
}

impl Tap for Inspection<'_> {
    #[inline]
    fn on_enter(&mut self, now: Instant, link: LinkId, packet: &Packet) {
        match packet {
            Packet::Tcp(segment) => self.digest.fold_segment(now, link.number(), segment),
            Packet::Udp(datagram) => self.digest.fold_datagram(now, link.number(), datagram),
            Packet::TooBig(message) => self.digest.fold_too_big(now, link.number(), message),
        }
    }

    fn on_source(&mut self, now: Instant, towards: Side, path: usize, packet: &mut Packet) {
        let sent = self.on_sent(now, towards.opposite(), path, packet);
        self.error = self.error.take().or(sent.err());
    }

    fn on_boxes(&mut self, _now: Instant, packet: &mut Packet) {
        if self.round_trip {
            self.error = self.error.take().or(round_trip(packet).err());
        }
    }
}

/// Serialise a packet and parse it back.
fn round_trip(packet: &mut Packet) -> Result<(), RunError> {
    let mut bytes = Vec::with_capacity(packet.wire_len());
    packet.emit(&mut bytes)?;
    *packet = Packet::parse(&bytes)?;
    Ok(())
}
