//! What users bring into a network: sources of traffic, and an observer of its packets.

use std::fmt;

use anabranch_wire::{Instant, Packet};

use super::LinkId;
use crate::side::Side;

/// Sends packets of its own accord, whatever becomes of them: cross-traffic.
pub trait Source: fmt::Debug + Send {
    /// The next packet that is due by `now`, if there is one.
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet>;

    /// When the next packet is due; `None` if none is.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// A source, and where its packets go.
#[derive(Debug)]
pub struct Traffic {
    /// The host that they go to; the source is at the other one.
    pub towards: Side,
    /// The path that they take.
    pub path: usize,
    /// The source.
    pub source: Box<dyn Source>,
}

/// Is told of packets inside a network, for captures, fingerprints and checks. What hosts send and
/// receive, their driver sees by itself. `()` does nothing.
pub trait Tap {
    /// A packet enters a link.
    #[inline]
    fn on_enter(&mut self, _now: Instant, _link: LinkId, _packet: &Packet) {}

    /// A source of the network sends a packet.
    fn on_source(&mut self, _now: Instant, _towards: Side, _path: usize, _packet: &mut Packet) {}

    /// Middleboxes let a packet out.
    fn on_boxes(&mut self, _now: Instant, _packet: &mut Packet) {}
}

impl Tap for () {}
