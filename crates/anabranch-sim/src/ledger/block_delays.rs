//! Where each block of data spent its delay.

use std::collections::BTreeMap;

use anabranch_net::network::Paths;
use anabranch_net::units::ByteCount;
use anabranch_net::{Link, Side};
use anabranch_table::{Builder, Table, row};
use anabranch_wire::mptcp::{CapableKeys, WideOrNarrow};
use anabranch_wire::{Duration, Instant, Packet, Segment};

use crate::app::App;
use crate::recorder::{DataFlow, block_times};
use crate::scenario::Scenario;
use crate::statistics::Hosts;
use crate::topology;

/// The segments of the flows whose blocks have delays.
pub(crate) struct BlockDelays {
    /// By flow; `None` for flows without blocks.
    flows: Vec<Option<FlowDelays>>,
    senders: Vec<DataFlow>,
}

/// All transmissions of one flow's data.
#[derive(Default)]
struct FlowDelays {
    /// Numbering of the stream's bytes by the sequence numbers on the wire.
    numbers: Option<Numbers>,
    /// Transmissions by the offset of their first byte.
    copies: BTreeMap<u64, Vec<Copy>>,
    /// Offset after the last byte sent.
    end: u64,
}

/// A sequence number, and the offset in the stream that it stands for.
#[derive(Clone, Copy)]
struct Numbers {
    is_data_level: bool,
    number: u32,
    offset: u64,
}

/// One transmission of a piece of data.
#[derive(Clone, Copy)]
struct Copy {
    end: u64,
    wire_bytes: u64,
    path: usize,
    sent: Instant,
    /// The sender's clock in the segment tells transmissions of the same data apart.
    stamp: Option<u32>,
    arrived: Option<Instant>,
}

/// The parts of a block's delay.
#[derive(Clone, Copy, Default)]
struct Parts {
    send_wait: Duration,
    retransmission: Duration,
    queueing: Duration,
    transmission: Duration,
    propagation: Duration,
    out_of_order: Duration,
    unknown: Duration,
    path: Option<usize>,
    behind: Option<usize>,
}

row! {
    /// The parts of a block's delay.
    struct BlockParts {
        connection: u32,
        block: u64,
        accepted_ns: u64,
        delivered_ns: u64,
        send_wait_ns: u64,
        retransmission_ns: u64,
        queueing_ns: u64,
        transmission_ns: u64,
        propagation_ns: u64,
        out_of_order_ns: u64,
        unknown_ns: u64,
        path: Option<u32>,
        behind: Option<u32>,
    }
}

impl BlockDelays {
    /// Nothing was sent yet.
    pub(crate) fn new(scenario: &Scenario, flows: &[DataFlow]) -> Self {
        let flow_delays = |flow: &DataFlow| {
            let connection = &scenario.connections[flow.connection];
            // Whether there are blocks does not depend on the seed.
            let receiver = App::new(flow.sender.opposite(), connection, 0);
            (receiver.sink().block_size(0) > 0).then(FlowDelays::default)
        };
        BlockDelays { flows: flows.iter().map(flow_delays).collect(), senders: flows.to_vec() }
    }

    /// A packet leaves `sender` on `path`.
    pub(crate) fn on_sent(&mut self, now: Instant, sender: Side, path: usize, packet: &Packet) {
        if let Some((flow_delays, segment)) = self.data_segment_of(sender, packet) {
            flow_delays.on_sent(now, path, segment);
        }
    }

    /// A packet arrives at `receiver` on `path`.
    pub(crate) fn on_arrival(
        &mut self,
        now: Instant,
        receiver: Side,
        path: usize,
        packet: &Packet,
    ) {
        if let Some((flow_delays, segment)) = self.data_segment_of(receiver.opposite(), packet) {
            flow_delays.on_arrival(now, path, segment);
        }
    }

    fn data_segment_of<'p>(
        &mut self,
        sender: Side,
        packet: &'p Packet,
    ) -> Option<(&mut FlowDelays, &'p Segment)> {
        let Packet::Tcp(segment) = packet else { return None };
        if segment.payload.is_empty() {
            return None;
        }
        let server = match sender {
            Side::Client => segment.destination,
            Side::Server => segment.source,
        };
        let connection = topology::connection_of(server.port);
        let wanted = |flow: &DataFlow| flow.connection == connection && flow.sender == sender;
        let number = self.senders.iter().position(wanted)?;
        Some((self.flows[number].as_mut()?, segment))
    }

    /// Write the parts of the delays of all delivered blocks.
    pub(super) fn finish(&self, hosts: Hosts<'_>, paths: &Paths) -> Table {
        let mut table = Builder::new("block_parts");
        for (number, flow) in self.senders.iter().enumerate() {
            let Some(flow_delays) = &self.flows[number] else { continue };
            let arrivals = flow_delays.arrivals();
            let mut start = 0;
            for (block, (bytes, accepted, delivered)) in block_times(*flow, hosts).enumerate() {
                let range = start..start + bytes;
                start = range.end;
                // A pushed block may be delivered before the stack has accepted its last byte.
                let accepted = accepted.min(delivered);
                let route = Route { paths, towards: flow.sender.opposite() };
                let parts = flow_delays.parts(range, accepted, delivered, &arrivals, route);
                table.push(BlockParts {
                    connection: number as u32,
                    block: block as u64,
                    accepted_ns: accepted.as_nanos(),
                    delivered_ns: delivered.as_nanos(),
                    send_wait_ns: parts.send_wait.as_nanos(),
                    retransmission_ns: parts.retransmission.as_nanos(),
                    queueing_ns: parts.queueing.as_nanos(),
                    transmission_ns: parts.transmission.as_nanos(),
                    propagation_ns: parts.propagation.as_nanos(),
                    out_of_order_ns: parts.out_of_order.as_nanos(),
                    unknown_ns: parts.unknown.as_nanos(),
                    path: parts.path.map(|path| path as u32),
                    behind: parts.behind.map(|path| path as u32),
                });
            }
        }
        table.finish()
    }
}

impl FlowDelays {
    fn on_sent(&mut self, now: Instant, path: usize, segment: &Segment) {
        let Some(start) = self.offset_of(segment) else { return };
        let len = segment.payload.len() as u64;
        self.end = self.end.max(start + len);
        self.copies.entry(start).or_default().push(Copy {
            end: start + len,
            wire_bytes: segment.wire_len() as u64,
            path,
            sent: now,
            stamp: segment.options.timestamps.map(|stamps| stamps.value),
            arrived: None,
        });
    }

    fn on_arrival(&mut self, now: Instant, path: usize, segment: &Segment) {
        let Some(start) = self.offset_of(segment) else { return };
        let stamp = segment.options.timestamps.map(|stamps| stamps.value);
        let copies = self.copies.get_mut(&start).into_iter().flatten();
        let mut same = copies
            .filter(|copy| copy.path == path && copy.stamp == stamp && copy.arrived.is_none());
        if let Some(copy) = same.next() {
            copy.arrived = Some(now);
        }
    }

    /// The offset in the stream of a segment's payload, as far as its numbers tell.
    fn offset_of(&mut self, segment: &Segment) -> Option<u64> {
        let control = segment.options.control.as_deref();
        let capable = control.and_then(|control| control.capable);
        if capable.is_some_and(|option| matches!(option.keys, CapableKeys::WithData { .. })) {
            return Some(0);
        }
        let mapping = segment.options.dss.and_then(|dss| dss.mapping);
        let number = match mapping.map(|mapping| mapping.data_seq) {
            Some(WideOrNarrow::Wide(seq)) => seq.low32(),
            Some(WideOrNarrow::Narrow(low)) => low,
            None => segment.header.seq.0,
        };
        let is_data_level = mapping.is_some();
        // The first number of a stream stands for the data after that of MP_CAPABLE.
        let known =
            *self.numbers.get_or_insert(Numbers { is_data_level, number, offset: self.end });
        if known.is_data_level != is_data_level {
            return None; // after a fallback
        }
        let distance = number.wrapping_sub(known.number).cast_signed();
        let offset = known.offset.checked_add_signed(distance.into())?;
        if distance > 0 {
            self.numbers = Some(Numbers { is_data_level, number, offset });
        }
        Some(offset)
    }

    /// The path of the data that arrived last at each time.
    fn arrivals(&self) -> BTreeMap<Instant, usize> {
        let copies = self.copies.values().flatten();
        copies.filter_map(|copy| Some((copy.arrived?, copy.path))).collect()
    }

    fn parts(
        &self,
        range: std::ops::Range<u64>,
        accepted: Instant,
        delivered: Instant,
        arrivals: &BTreeMap<Instant, usize>,
        route: Route<'_>,
    ) -> Parts {
        let Some((first_sent, copy, arrived)) = self.last_piece(range) else {
            return Parts { unknown: delivered.saturating_since(accepted), ..Parts::default() };
        };
        let within = |at: Instant| at.clamp(accepted, delivered);
        let [sent_first, sent, arrived] = [first_sent, copy.sent, arrived].map(within);
        let mut network = arrived.saturating_since(sent);
        let mut take = |part: Duration| {
            let taken = part.min(network);
            network = network.saturating_sub(taken);
            taken
        };
        let propagation = take(route.delay(copy.path));
        let transmission = take(route.time_for(copy.path, copy.wire_bytes));
        let out_of_order = delivered.saturating_since(arrived);
        Parts {
            send_wait: sent_first.saturating_since(accepted),
            retransmission: sent.saturating_since(sent_first),
            queueing: network,
            transmission,
            propagation,
            out_of_order,
            unknown: Duration::ZERO,
            path: Some(copy.path),
            behind: arrivals.get(&delivered).copied().filter(|_| out_of_order > Duration::ZERO),
        }
    }

    /// The piece that arrived last among those that overlap `range`: when it was first sent, and
    /// the transmission of it that arrived first.
    fn last_piece(&self, range: std::ops::Range<u64>) -> Option<(Instant, Copy, Instant)> {
        // A piece that begins before the block may reach into it.
        let before = self.copies.range(..range.start).next_back();
        let pieces = before.into_iter().chain(self.copies.range(range.clone()));
        let overlapping = pieces.filter(|(_, copies)| copies.iter().any(|c| c.end > range.start));
        let each = overlapping.filter_map(|(_, copies)| {
            let first_sent = copies.iter().map(|copy| copy.sent).min()?;
            let arrived = copies.iter().filter_map(|copy| Some((*copy, copy.arrived?)));
            let (copy, at) = arrived.min_by_key(|(_, at)| *at)?;
            Some((first_sent, copy, at))
        });
        each.max_by_key(|(_, _, at)| *at)
    }
}

/// The links that the data crosses.
#[derive(Clone, Copy)]
struct Route<'p> {
    paths: &'p Paths,
    towards: Side,
}

impl<'p> Route<'p> {
    /// Propagation delay without jitter, as it is at the end of the run.
    fn delay(self, path: usize) -> Duration {
        self.links(path).fold(Duration::ZERO, |sum, link| sum + link.delay())
    }

    /// Time to send this many bytes over each link, at the rate at the end of the run.
    fn time_for(self, path: usize, bytes: u64) -> Duration {
        let bytes = ByteCount::new(bytes);
        self.links(path).fold(Duration::ZERO, |sum, link| sum + link.rate().time_for(bytes))
    }

    fn links(self, path: usize) -> impl Iterator<Item = &'p Link> {
        let crossed = self.paths.crossed(path, self.towards);
        crossed.map(|(path, towards)| self.paths.link_of(path, towards))
    }
}
