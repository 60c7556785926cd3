//! The SYNs of each connection, and which of them arrived.

use std::collections::BTreeMap;

use anabranch_net::Side;
use anabranch_table::{Builder, Name, Named, Table, row};
use anabranch_wire::{Flags, Packet, Segment};

use crate::recorder::DataFlow;
use crate::topology;

/// The Multipath TCP option of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Carries {
    Nothing,
    Capable,
    Join,
}

impl Named for Carries {
    const NAMES: &'static [&'static str] = &["", "mp_capable", "mp_join"];

    fn index(self) -> u8 {
        self as u8
    }
}

row! {
    /// SYNs and SYN/ACKs of a connection on a path.
    struct HandshakeRow {
        connection: u32,
        path: u32,
        option: Name<Carries>,
        syns_sent: u64,
        syns_arrived: u64,
        answers_sent: u64,
        answers_arrived: u64,
    }
}

/// Numbers of SYNs, and of SYN/ACKs, that were sent and that arrived.
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
    pub(super) fn finish(&self, flows: &[DataFlow]) -> Table {
        let mut table = Builder::new("handshakes");
        for (number, flow) in flows.iter().enumerate() {
            let own = self.counts.iter().filter(|((each, ..), _)| *each == flow.connection);
            for ((_, path, option), counts) in own {
                let Counts { sent, arrived } = counts;
                table.push(HandshakeRow {
                    connection: number as u32,
                    path: *path as u32,
                    option: Name(*option),
                    syns_sent: sent[0],
                    syns_arrived: arrived[0],
                    answers_sent: sent[1],
                    answers_arrived: arrived[1],
                });
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
