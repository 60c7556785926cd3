//! Middleboxes: devices on a path that change, delay, answer or drop packets.
//!
//! A middlebox sees both directions of the path and has two sides. It acts only on flows whose SYNs
//! it saw; segments of other flows pass unchanged. UDP passes unchanged, except that a NAT
//! translates its addresses. State is bounded: a middlebox remembers [`MAX_FLOWS`] flows and evicts
//! the flow that was idle longest.

mod bare_segments;
mod blackhole_options;
mod chain;
mod clamp_mss;
mod coalesce;
mod flows;
mod hole_refusal;
mod ingress_filter;
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

use anabranch_config::parts;
use anabranch_wire::{
    Instant, Packet, SackBlock, SackBlocks, SeqNumber, SocketAddress, TcpOptions,
};

use crate::side::Side;

pub use bare_segments::BareSegmentsConfig;
pub use blackhole_options::{BlackholeOptionsConfig, BlackholedSyns};
pub use chain::{Chain, Placed};
pub use clamp_mss::ClampMssConfig;
pub use coalesce::CoalesceConfig;
pub use flows::MAX_FLOWS;
pub use hole_refusal::HoleRefusalConfig;
pub use ingress_filter::IngressFilterConfig;
pub use nat::NatConfig;
pub use normalise::NormaliseConfig;
pub use proactive_ack::ProactiveAckConfig;
pub use rewrite_isn::RewriteIsnConfig;
pub use rewrite_payload::{PayloadChange, RewritePayloadConfig};
pub use shrink_window::ShrinkWindowConfig;
pub use split_segments::{OptionCopies, SplitSegmentsConfig};
pub use strip_options::{OptionName, SegmentClass, StripOptionsConfig};

parts! {
    /// A middlebox with its parameters.
    pub enum MiddleboxConfig: "kind", dyn BuildMiddlebox {
        StripOptions(StripOptionsConfig),
        Nat(NatConfig),
        RewriteIsn(RewriteIsnConfig),
        SplitSegments(SplitSegmentsConfig),
        Coalesce(CoalesceConfig),
        RewritePayload(RewritePayloadConfig),
        ProactiveAck(ProactiveAckConfig),
        Normalise(NormaliseConfig),
        HoleRefusal(HoleRefusalConfig),
        BlackholeOptions(BlackholeOptionsConfig),
        ShrinkWindow(ShrinkWindowConfig),
        BareSegments(BareSegmentsConfig),
        ClampMss(ClampMssConfig),
        IngressFilter(IngressFilterConfig),
    }
}

/// Parameters of a middlebox, and its constructor.
pub trait BuildMiddlebox {
    /// Creates the middlebox.
    fn build(&self, site: Site) -> Box<dyn Middlebox>;
}

/// Size in bytes of the largest IP packet. RFC 791 §3.1.
const MAX_PACKET: usize = 65_535;

/// The directions that a middlebox acts upon. Forward means from server to client, as everywhere in a
/// scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case"),
    schemars(inline)
)]
pub enum Directions {
    /// Towards the client.
    Forward,
    /// Towards the server.
    Reverse,
    /// Both directions.
    #[default]
    Both,
}

impl Directions {
    fn include(self, towards: Side) -> bool {
        match self {
            Directions::Forward => towards == Side::Client,
            Directions::Reverse => towards == Side::Server,
            Directions::Both => true,
        }
    }
}

/// A middlebox between the two sides of a path. Its methods have the same names as those of
/// [`Node`](crate::Node) and of the engine. In addition, each packet has a direction, and a
/// middlebox may send a packet back.
pub trait Middlebox: fmt::Debug + Send {
    /// Handle a packet that arrives at `now`.
    fn handle_packet(&mut self, now: Instant, towards: Side, packet: Packet);

    /// Do the work that is due at `now`. Early, late and unnecessary calls are harmless.
    fn handle_timeout(&mut self, now: Instant);

    /// The next packet that leaves the middlebox by `now`, and its direction; `None` if there is
    /// none.
    fn poll_transmit(&mut self, now: Instant) -> Option<(Side, Packet)>;

    /// When to call [`handle_timeout`](Middlebox::handle_timeout); `None` if the middlebox waits
    /// only for packets.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Returns `true` if segments can leave the middlebox with more payload than any that entered
    /// it.
    fn enlarges_segments(&self) -> bool {
        false
    }

    /// The client's endpoint that this middlebox translates to `public`, or last translated to it.
    fn original(&self, _public: SocketAddress) -> Option<SocketAddress> {
        None
    }
}

/// The inputs of a middlebox besides the values of its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Seed of the middlebox's own random draws.
    pub seed: u64,
    /// The client's address on the path.
    pub client: IpAddr,
    /// Address that the middlebox may show to servers instead of the client's.
    pub address: IpAddr,
}

/// A middlebox that decides immediately. It passes each packet, changed or not, or drops it.
trait Filter: fmt::Debug + Send {
    /// Change `packet`, and return false to drop it.
    fn pass(&mut self, now: Instant, towards: Side, packet: &mut Packet) -> bool;

    /// As [`Middlebox::original`].
    fn original(&self, _public: SocketAddress) -> Option<SocketAddress> {
        None
    }
}

/// A filter and the packets that it has passed.
#[derive(Debug)]
struct Filtering<F> {
    filter: F,
    passed: VecDeque<(Side, Packet)>,
}

fn filter<F: Filter + 'static>(filter: F) -> Box<dyn Middlebox> {
    Box::new(Filtering { filter, passed: VecDeque::new() })
}

impl<F: Filter> Middlebox for Filtering<F> {
    fn handle_packet(&mut self, now: Instant, towards: Side, mut packet: Packet) {
        if self.filter.pass(now, towards, &mut packet) {
            self.passed.push_back((towards, packet));
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Side, Packet)> {
        self.passed.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn original(&self, public: SocketAddress) -> Option<SocketAddress> {
        self.filter.original(public)
    }
}

/// Map both edges of every SACK block.
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
