//! Bytes that arrived over each path, and the new ones among them.

use anabranch_net::Side;
use anabranch_wire::{Instant, Packet, Segment};

use super::block_delays::BlockDelays;
use super::handshakes::Handshakes;
use crate::host::SimulatedHost;
use crate::recorder::{DataFlow, flows};
use crate::scenario::{Path, Scenario};
use crate::topology;

/// Bytes that arrived, as one flow sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PathArrivals {
    /// Data of the flow.
    pub(super) payload: u64,
    /// The part of it that arrived first.
    pub(super) useful: u64,
    /// Data that the subflow received for the first time, whether or not another one did before.
    pub(super) received: u64,
    /// Headers of segments with data.
    pub(super) headers: u64,
    /// Segments without data.
    pub(super) control: u64,
    /// Packets that do not belong to the flow's connection.
    pub(super) other: u64,
}

/// Bytes that have arrived so far.
pub(crate) struct Arrivals {
    flows: Vec<DataFlow>,
    /// Whether a packet arrived at client and server in the present event.
    arriving: [bool; 2],
    /// The last path on which a packet arrived at client and server.
    last_path: [usize; 2],
    /// By flow and path.
    arrived: Vec<Vec<PathArrivals>>,
    /// Bytes that arrived at client and server, by path.
    bytes: [Vec<u64>; 2],
    /// By path: bytes that its links count for each packet in addition to the IP packet.
    overhead: Vec<u64>,
    /// By flow: data that the receiver has taken so far.
    taken: Vec<u64>,
    handshakes: Handshakes,
    block_delays: BlockDelays,
}

/// Bytes that have arrived for one flow by some time, or in some period.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrivalTotals {
    /// By path.
    arrived: Vec<PathArrivals>,
    /// Bytes of packets that arrived at client and server, by path.
    bytes: [Vec<u64>; 2],
    /// Bytes of the flow's data, as metrics count them.
    data: u64,
}

impl Arrivals {
    /// Nothing has arrived yet.
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let flows = flows(scenario);
        let overhead = |path: &Path| path.shaper.part().model().map_or(0, |model| model.overhead);
        let none = vec![PathArrivals::default(); scenario.paths.len()];
        Arrivals {
            handshakes: Handshakes::default(),
            block_delays: BlockDelays::new(scenario, &flows),
            arriving: [false; 2],
            last_path: [0; 2],
            arrived: vec![none; flows.len()],
            bytes: [0; 2].map(|zero| vec![zero; scenario.paths.len()]),
            overhead: scenario.paths.iter().map(|path| overhead(path).into()).collect(),
            taken: vec![0; flows.len()],
            flows,
        }
    }

    /// Components of the blocks' delays.
    pub(super) fn block_delays(&self) -> &BlockDelays {
        &self.block_delays
    }

    /// The SYNs of each connection.
    pub(super) fn handshakes(&self) -> &Handshakes {
        &self.handshakes
    }

    /// A packet leaves `sender` on `path`.
    pub(crate) fn on_sent(&mut self, now: Instant, sender: Side, path: usize, packet: &Packet) {
        self.handshakes.on_sent(sender, path, packet);
        self.block_delays.on_sent(now, sender, path, packet);
    }

    /// A packet arrives at `receiver` on `path`.
    pub(crate) fn on_arrival(
        &mut self,
        now: Instant,
        receiver: Side,
        path: usize,
        packet: &Packet,
    ) {
        self.handshakes.on_arrival(receiver, path, packet);
        self.block_delays.on_arrival(now, receiver, path, packet);
        self.arriving[receiver as usize] = true;
        self.last_path[receiver as usize] = path;
        let bytes = packet.wire_len() as u64 + self.overhead[path];
        self.bytes[receiver as usize][path] += bytes;
        let connection = match packet {
            Packet::Tcp(segment) => connection_of(receiver, segment),
            Packet::Udp(_) | Packet::TooBig(_) => None,
        };
        let payload = match packet {
            Packet::Tcp(segment) => segment.payload.len() as u64,
            Packet::Udp(_) | Packet::TooBig(_) => 0,
        };
        let flows = self.flows.iter().zip(&mut self.arrived);
        for (flow, arrived) in flows.filter(|(flow, _)| flow.sender != receiver) {
            let arrived = &mut arrived[path];
            if connection != Some(flow.connection) {
                arrived.other += bytes;
            } else if payload == 0 {
                arrived.control += bytes;
            } else {
                arrived.payload += payload;
                arrived.headers += bytes - payload;
            }
        }
    }

    /// The hosts have processed what arrived in one event. All of it came over one path, except on
    /// a shared link that delivers several packets at once.
    pub(crate) fn on_processed(&mut self, now: Instant, hosts: &[impl SimulatedHost; 2]) {
        for receiver in [Side::Client, Side::Server] {
            if std::mem::take(&mut self.arriving[receiver as usize]) {
                self.account(now, receiver, &hosts[receiver as usize]);
            }
        }
    }

    /// The run ends. A fallback may have delivered data without an arrival: data that waited for its
    /// mapping.
    pub(crate) fn on_end(&mut self, now: Instant, hosts: &[impl SimulatedHost; 2]) {
        for receiver in [Side::Client, Side::Server] {
            self.account(now, receiver, &hosts[receiver as usize]);
        }
    }

    fn account(&mut self, now: Instant, receiver: Side, host: &impl SimulatedHost) {
        let path = self.last_path[receiver as usize];
        for (number, flow) in self.flows.iter().enumerate() {
            if flow.sender == receiver {
                continue;
            }
            // A fallback drops data that arrives again. The host may have forgotten a connection that
            // the arrival ended.
            let open = host.stats(now, flow.connection);
            let Some(stats) = open.or_else(|| host.last_stats(flow.connection)) else { continue };
            let taken = stats.bytes_delivered + stats.out_of_order_bytes;
            let (arrived, before) = (&mut self.arrived[number], self.taken[number]);
            // First the path of the arrival, then those whose data waited for it.
            let mut paths = std::iter::once(path).chain(0..arrived.len());
            paths.try_fold(taken.abs_diff(before), |left, path| {
                let PathArrivals { payload, useful, .. } = &mut arrived[path];
                let part = if taken > before { *payload - *useful } else { *useful }.min(left);
                *useful = if taken > before { *useful + part } else { *useful - part };
                (left > part).then_some(left - part)
            });
            self.taken[number] = taken;
        }
    }

    /// Bytes that have arrived so far for a flow.
    pub(super) fn totals(&self, number: usize, hosts: &[impl SimulatedHost; 2]) -> ArrivalTotals {
        let flow = self.flows[number];
        let receiver = &hosts[flow.sender.opposite() as usize];
        let mut arrived = self.arrived[number].clone();
        for (path, each) in arrived.iter_mut().enumerate() {
            let ends = flow.received_over(receiver, |over| *over == path);
            each.received = ends.in_order + ends.out_of_order;
        }
        // Data that waits on a subflow has arrived as well.
        let on_subflows = receiver.waiting_on_subflows(flow.connection);
        for (subflow, bytes) in receiver.subflows(flow.connection).iter().zip(on_subflows) {
            if let Some(path) = flow.path_of(flow.sender.opposite(), subflow) {
                arrived[path].useful += bytes;
            }
        }
        ArrivalTotals {
            arrived,
            bytes: self.bytes.clone(),
            data: receiver.arrived(flow.connection),
        }
    }
}

impl ArrivalTotals {
    /// Bytes that have arrived since `before`.
    pub(super) fn since(&self, before: &ArrivalTotals) -> ArrivalTotals {
        let arrived = self.arrived.iter().zip(&before.arrived);
        let useful = arrived.clone().map(|(now, then)| now.useful as i64 - then.useful as i64);
        let data = self.data.saturating_sub(before.data);
        let useful = exactly(data, useful.collect());
        let arrived = arrived.zip(useful).map(|((now, then), useful)| PathArrivals {
            payload: now.payload - then.payload,
            useful,
            received: now.received.saturating_sub(then.received),
            headers: now.headers - then.headers,
            control: now.control - then.control,
            other: now.other - then.other,
        });
        let since = |now: &[u64], then: &[u64]| {
            now.iter().zip(then).map(|(now, then)| now - then).collect()
        };
        ArrivalTotals {
            arrived: arrived.collect(),
            bytes: [0, 1].map(|side| since(&self.bytes[side], &before.bytes[side])),
            data,
        }
    }

    /// Bytes that arrived on the paths that are `here`.
    pub(super) fn over(&self, here: impl Fn(&usize) -> bool) -> PathArrivals {
        let paths = self.arrived.iter().enumerate().filter(|(path, _)| here(path));
        paths.fold(PathArrivals::default(), |sum, (_, each)| PathArrivals {
            payload: sum.payload + each.payload,
            useful: sum.useful + each.useful,
            received: sum.received + each.received,
            headers: sum.headers + each.headers,
            control: sum.control + each.control,
            other: sum.other + each.other,
        })
    }

    /// Bytes of packets that arrived at `receiver` on the paths that are `here`.
    pub(super) fn bytes_at(&self, receiver: Side, here: impl Fn(usize) -> bool) -> u64 {
        let paths = self.bytes[receiver as usize].iter().enumerate();
        paths.filter(|(path, _)| here(*path)).map(|(_, bytes)| bytes).sum()
    }
}

/// The parts of `whole`, of which `parts` are the shares up to small differences: data that is stored
/// twice counts on both paths, and data that dies with its subflow arrives again on another one. The
/// largest part makes up for them.
fn exactly(whole: u64, parts: Vec<i64>) -> Vec<u64> {
    let mut parts: Vec<u64> = parts.into_iter().map(|part| part.max(0) as u64).collect();
    let sum: u64 = parts.iter().sum();
    let mut surplus = sum.saturating_sub(whole);
    let mut largest: Vec<usize> = (0..parts.len()).collect();
    largest.sort_by_key(|at| std::cmp::Reverse(parts[*at]));
    if let Some(first) = largest.first() {
        parts[*first] += whole.saturating_sub(sum);
    }
    for at in largest {
        let less = surplus.min(parts[at]);
        parts[at] -= less;
        surplus -= less;
    }
    parts
}

/// The connection of an arriving segment. The server's port identifies it.
fn connection_of(receiver: Side, segment: &Segment) -> Option<usize> {
    let server = match receiver {
        Side::Server => segment.destination,
        Side::Client => segment.source,
    };
    Some(topology::connection_of(server.port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_whole_add_up_to_it() {
        assert_eq!(exactly(100, vec![60, 40]), [60, 40]);
        assert_eq!(exactly(100, vec![90, 30]), [70, 30]);
        assert_eq!(exactly(100, vec![120, -30]), [100, 0]);
        assert_eq!(exactly(100, vec![20, 60]), [20, 80]);
        assert_eq!(exactly(10, vec![30, 20]), [0, 10]);
    }
}
