//! The SYNs of each connection, and which of them arrived.

use std::collections::BTreeMap;

use anabranch_net::Side;
use anabranch_wire::{Flags, Packet, Segment};

use crate::recorder::{Builder, Flow, Kind, Table};
use crate::topology;

/// The Multipath TCP option of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Carries {
    Nothing,
    Capable,
    Join,
}

/// How many SYNs, and SYN/ACKs, were sent and arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sent: [u64; 2],
    arrived: [u64; 2],
}

/// The SYNs so far, by connection, path and option.
#[derive(Default)]
pub(super) struct Handshakes {
    counts: BTreeMap<(usize, usize, Carries), Counts>,
}

impl Handshakes {
    /// A packet leaves `sender` on `path`.
    pub(super) fn on_sent(&mut self, sender: Side, path: usize, packet: &Packet) {
        if let Some((counts, way)) = self.of(sender, path, packet) {
            counts.sent[way] += 1;
        }
    }

    /// A packet arrives at `receiver` on `path`.
    pub(super) fn on_arrival(&mut self, receiver: Side, path: usize, packet: &Packet) {
        if let Some((counts, way)) = self.of(receiver.opposite(), path, packet) {
            counts.arrived[way] += 1;
        }
    }

    /// The counts of a SYN from `sender`, and which of them are its.
    fn of(&mut self, sender: Side, path: usize, packet: &Packet) -> Option<(&mut Counts, usize)> {
        let Packet::Tcp(segment) = packet else { return None };
        if !segment.header.flags.contains(Flags::SYN) {
            return None;
        }
        let server = match sender {
            Side::Client => segment.destination,
            Side::Server => segment.source,
        };
        let connection = topology::connection_of(server.port);
        let is_answer = segment.header.flags.contains(Flags::ACK);
        let counts = self.counts.entry((connection, path, carries(segment))).or_default();
        Some((counts, usize::from(is_answer)))
    }

    /// The table of SYNs.
    pub(super) fn finish(&self, flows: &[Flow]) -> Table {
        let mut table = Builder::new(
            "handshakes",
            &[
                ("connection", Kind::Index),
                ("path", Kind::Index),
                ("option", Kind::Flag),
                ("syns_sent", Kind::Count),
                ("syns_arrived", Kind::Count),
                ("answers_sent", Kind::Count),
                ("answers_arrived", Kind::Count),
            ],
        );
        for (number, flow) in flows.iter().enumerate() {
            let own = self.counts.iter().filter(|((each, ..), _)| *each == flow.connection);
            for ((_, path, option), counts) in own {
                let Counts { sent, arrived } = counts;
                let [path, option] = [*path as u64, *option as u64];
                table.push([number as u64, path, option, sent[0], arrived[0], sent[1], arrived[1]]);
            }
        }
        table.finish()
    }
}

fn carries(segment: &Segment) -> Carries {
    let control = segment.options.control.as_deref();
    match control {
        Some(control) if control.capable.is_some() => Carries::Capable,
        Some(control) if control.join.is_some() => Carries::Join,
        _ => Carries::Nothing,
    }
}
