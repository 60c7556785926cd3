//! Middleboxes: what stands on a path and changes, delays, answers or drops what it sees.
//!
//! A box sees both directions of the path and has two sides. It knows the flows whose SYNs it saw;
//! what belongs to others passes as it is, as does UDP but for translated addresses. State is
//! bounded: a box remembers [`MAX_FLOWS`] flows, and forgets the one that was silent longest.

mod bare_segments;
mod blackhole_options;
mod chain;
mod coalesce;
mod flows;
mod hole_refusal;
mod nat;
mod normalise;
mod proactive_ack;
mod relay;
mod rewrite_isn;
mod rewrite_payload;
mod shrink_window;
mod split_segments;
mod strip_options;
#[cfg(test)]
mod testing;

use core::fmt;
use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_wire::{Endpoint, Instant, Packet, SackBlock, SackBlocks, SeqNumber, TcpOptions};

pub use bare_segments::BareSegmentsConfig;
pub use blackhole_options::BlackholedSyns;
pub use chain::{Chain, Placed};
pub use coalesce::CoalesceConfig;
pub use flows::MAX_FLOWS;
pub use nat::NatConfig;
pub use proactive_ack::ProactiveAckConfig;
pub use rewrite_payload::{PayloadChange, RewritePayloadConfig};
pub use shrink_window::ShrinkWindowConfig;
pub use split_segments::{OptionCopies, SplitSegmentsConfig};
pub use strip_options::{OptionName, SegmentClass, StripOptionsConfig};

/// Octets of the largest IP packet. RFC 791 §3.1.
const MAX_PACKET: usize = 65_535;

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Towards {
    /// To the host that opens connections.
    Client,
    /// To the host that accepts them.
    Server,
}

/// The directions that a box acts upon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directions {
    /// Both.
    #[default]
    Both,
    /// One.
    Only(Towards),
}

/// A box between two sides of a path. The verbs are the engine's, as [`Node`](crate::Node)'s are,
/// but a packet comes and goes with a direction, and a box may send one back to where it came from.
pub trait Middlebox: fmt::Debug + Send {
    /// Take a packet that arrives at `now`.
    fn handle_packet(&mut self, now: Instant, towards: Towards, packet: Packet);

    /// Do what is due at `now`. A call that comes early, late or for no reason is harmless.
    fn handle_timeout(&mut self, now: Instant);

    /// The next packet that leaves the box by `now`, and which way, if there is one.
    fn poll_transmit(&mut self, now: Instant) -> Option<(Towards, Packet)>;

    /// When to call [`handle_timeout`](Middlebox::handle_timeout); `None` while only a new packet
    /// can make anything happen.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The client's endpoint that this box shows, or showed last, to servers as `public`.
    fn original(&self, _public: Endpoint) -> Option<Endpoint> {
        None
    }
}

/// What a box does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MiddleboxConfig {
    /// Remove options.
    StripOptions(StripOptionsConfig),
    /// Translate the client's address and port.
    Nat(NatConfig),
    /// Choose other initial sequence numbers than the hosts did.
    RewriteIsn,
    /// Split segments.
    SplitSegments(SplitSegmentsConfig),
    /// Merge segments.
    Coalesce(CoalesceConfig),
    /// Change the octets of the stream.
    RewritePayload(RewritePayloadConfig),
    /// Acknowledge data before its receiver does.
    ProactiveAck(ProactiveAckConfig),
    /// Replace the content of retransmissions by what was seen first.
    Normalise,
    /// Drop data beyond a hole, and acknowledgements of data that was not seen.
    HoleRefusal,
    /// Drop SYNs.
    BlackholeOptions(BlackholedSyns),
    /// Move the right edge of windows back for a while.
    ShrinkWindow(ShrinkWindowConfig),
    /// Add segments without options of Multipath TCP.
    BareSegments(BareSegmentsConfig),
}

/// What a box is given besides its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Seed of its random draws, its own.
    pub seed: u64,
    /// Address that it may show to servers in place of the client's.
    pub address: IpAddr,
}

impl MiddleboxConfig {
    /// The box.
    pub fn build(&self, site: Site) -> Box<dyn Middlebox> {
        match self {
            MiddleboxConfig::StripOptions(config) => {
                filter(strip_options::StripOptions::new(config))
            }
            MiddleboxConfig::Nat(config) => filter(nat::Nat::new(config, site)),
            MiddleboxConfig::RewriteIsn => filter(rewrite_isn::RewriteIsn::new(site.seed)),
            MiddleboxConfig::SplitSegments(config) => {
                Box::new(split_segments::SplitSegments::new(config))
            }
            MiddleboxConfig::Coalesce(config) => Box::new(coalesce::Coalesce::new(config)),
            MiddleboxConfig::RewritePayload(config) => {
                filter(rewrite_payload::RewritePayload::new(config))
            }
            MiddleboxConfig::ProactiveAck(config) => {
                Box::new(proactive_ack::ProactiveAck::new(config))
            }
            MiddleboxConfig::Normalise => filter(normalise::Normalise::default()),
            MiddleboxConfig::HoleRefusal => filter(hole_refusal::HoleRefusal::default()),
            MiddleboxConfig::BlackholeOptions(syns) => {
                filter(blackhole_options::BlackholeOptions::new(*syns))
            }
            MiddleboxConfig::ShrinkWindow(config) => {
                Box::new(shrink_window::ShrinkWindow::new(config, site.seed))
            }
            MiddleboxConfig::BareSegments(config) => {
                Box::new(bare_segments::BareSegments::new(config, site.seed))
            }
        }
    }
}

impl Towards {
    /// The other way.
    pub const fn opposite(self) -> Self {
        match self {
            Towards::Client => Towards::Server,
            Towards::Server => Towards::Client,
        }
    }
}

impl Directions {
    fn include(self, towards: Towards) -> bool {
        match self {
            Directions::Both => true,
            Directions::Only(only) => only == towards,
        }
    }
}

/// A box that decides on the spot: each packet goes on, changed or not, or is dropped.
trait Filter: fmt::Debug + Send {
    /// Change `packet`; false drops it.
    fn pass(&mut self, now: Instant, towards: Towards, packet: &mut Packet) -> bool;

    /// As [`Middlebox::original`].
    fn original(&self, _public: Endpoint) -> Option<Endpoint> {
        None
    }
}

/// A filter with what it has let pass.
#[derive(Debug)]
struct Filtering<F> {
    filter: F,
    passed: VecDeque<(Towards, Packet)>,
}

fn filter<F: Filter + 'static>(filter: F) -> Box<dyn Middlebox> {
    Box::new(Filtering { filter, passed: VecDeque::new() })
}

impl<F: Filter> Middlebox for Filtering<F> {
    fn handle_packet(&mut self, now: Instant, towards: Towards, mut packet: Packet) {
        if self.filter.pass(now, towards, &mut packet) {
            self.passed.push_back((towards, packet));
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Towards, Packet)> {
        self.passed.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn original(&self, public: Endpoint) -> Option<Endpoint> {
        self.filter.original(public)
    }
}

/// Replace each end of each SACK block.
fn map_sack_blocks(options: &mut TcpOptions, mut map: impl FnMut(SeqNumber) -> SeqNumber) {
    if options.sack.is_empty() {
        return;
    }
    let mut mapped = SackBlocks::default();
    for SackBlock { start, end } in options.sack.as_slice() {
        mapped.push(SackBlock { start: map(*start), end: map(*end) });
    }
    options.sack = mapped;
}
