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

use anabranch_wire::entry::{Entry, Kind, Parameter, Value, Values};
use anabranch_wire::{
    Instant, Packet, SackBlock, SackBlocks, SeqNumber, SocketAddress, TcpOptions,
};

use crate::side::Side;

pub use chain::{Chain, Placed};
pub use flows::MAX_FLOWS;

/// A middlebox that can be chosen by name.
pub type MiddleboxEntry = Entry<Make>;

/// Makes a box from the values of its parameters.
pub type Make = fn(&Values, Site) -> Box<dyn Middlebox>;

/// All middleboxes.
pub const ALL: &[MiddleboxEntry] = &[
    strip_options::ENTRY,
    nat::ENTRY,
    rewrite_isn::ENTRY,
    split_segments::ENTRY,
    coalesce::ENTRY,
    rewrite_payload::ENTRY,
    proactive_ack::ENTRY,
    normalise::ENTRY,
    hole_refusal::ENTRY,
    blackhole_options::ENTRY,
    shrink_window::ENTRY,
    bare_segments::ENTRY,
];

/// Bytes of the largest IP packet. RFC 791 §3.1.
const MAX_PACKET: usize = 65_535;

/// The directions that a box acts upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Directions {
    /// Both.
    Both,
    /// One.
    Only(Side),
}

/// A box between two sides of a path. The verbs are the engine's, as [`Node`](crate::Node)'s are,
/// but a packet comes and goes with a direction, and a box may send one back to where it came from.
pub trait Middlebox: fmt::Debug + Send {
    /// Take a packet that arrives at `now`.
    fn handle_packet(&mut self, now: Instant, towards: Side, packet: Packet);

    /// Do what is due at `now`. A call that comes early, late or for no reason is harmless.
    fn handle_timeout(&mut self, now: Instant);

    /// The next packet that leaves the box by `now`, and which way, if there is one.
    fn poll_transmit(&mut self, now: Instant) -> Option<(Side, Packet)>;

    /// When to call [`handle_timeout`](Middlebox::handle_timeout); `None` while only a new packet
    /// can make anything happen.
    fn poll_timeout(&self) -> Option<Instant>;

    /// May segments leave the box with more payload than any that entered it?
    fn enlarges_segments(&self) -> bool {
        false
    }

    /// The client's endpoint that this box shows, or showed last, to servers as `public`.
    fn original(&self, _public: SocketAddress) -> Option<SocketAddress> {
        None
    }
}

/// What a box is given besides the values of its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Seed of its random draws, its own.
    pub seed: u64,
    /// Address that it may show to servers in place of the client's.
    pub address: IpAddr,
}

impl Directions {
    /// What [`APPLIES_TO`] says.
    fn new(values: &Values) -> Self {
        meant(&DIRECTIONS, values.choice(APPLIES_TO.name))
    }

    fn include(self, towards: Side) -> bool {
        match self {
            Directions::Both => true,
            Directions::Only(only) => only == towards,
        }
    }
}

/// Forward is from server to client, as in all of a scenario.
const DIRECTIONS: [(&str, Directions); 3] = [
    ("forward", Directions::Only(Side::Client)),
    ("reverse", Directions::Only(Side::Server)),
    ("both", Directions::Both),
];

/// The parameter of the boxes that can act upon one direction alone.
const APPLIES_TO: Parameter = Parameter {
    name: "applies_to",
    meaning: "which direction is changed",
    kind: Kind::Choice(&names(&DIRECTIONS)),
    default: Value::Choice("both"),
    origin: "ours",
    only_with: None,
};

/// The names in a table of names and what they mean.
const fn names<T, const N: usize>(table: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = table[index].0;
        index += 1;
    }
    names
}

/// What `name` means, which is in the table.
fn meant<T: Copy>(table: &[(&str, T)], name: &str) -> T {
    table.iter().find(|(each, _)| *each == name).expect("a name from the table").1
}

/// A box that decides on the spot: each packet goes on, changed or not, or is dropped.
trait Filter: fmt::Debug + Send {
    /// Change `packet`; false drops it.
    fn pass(&mut self, now: Instant, towards: Side, packet: &mut Packet) -> bool;

    /// As [`Middlebox::original`].
    fn original(&self, _public: SocketAddress) -> Option<SocketAddress> {
        None
    }
}

/// A filter with what it has let pass.
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
