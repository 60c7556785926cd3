//! Interfaces for users of a network: sources of cross-traffic, and observers of packets.

use std::fmt;

use anabranch_wire::{Instant, Packet};

use super::LinkId;
use crate::side::Side;

/// A source of cross-traffic: it sends packets and expects no answer.
pub trait TrafficSource: fmt::Debug + Send {
    /// The next packet that is due by `now`, if there is one.
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet>;

    /// When the next packet is due; `None` if none is.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// Cross-traffic: a source, and the route of its packets.
#[derive(Debug)]
pub struct Traffic {
    /// Destination of the packets; the source is at the opposite host.
    pub towards: Side,
    /// Number of the path.
    pub path: usize,
    /// The source.
    pub source: Box<dyn TrafficSource>,
}

/// An observer of packets inside a network, for captures, fingerprints and checks. It does not see
/// packets at the hosts, because the driver handles those itself. `()` ignores all packets.
pub trait Tap {
    /// A packet enters a link.
    #[inline]
    fn on_enter(&mut self, _now: Instant, _link: LinkId, _packet: &Packet) {}

    /// A source of cross-traffic sends a packet.
    fn on_source(&mut self, _now: Instant, _towards: Side, _path: usize, _packet: &mut Packet) {}

    /// A packet leaves middleboxes.
    fn on_boxes(&mut self, _now: Instant, _packet: &mut Packet) {}
}

impl Tap for () {}
