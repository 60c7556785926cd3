//! CAKE: flow queueing that is fair between hosts first, and between the flows of a host then. Piece of
//! CAKE (Høiland-Jørgensen, Täht, Morton, LANMAN 2018), and sch_cake.c of Linux.
//!
//! The rate of the link is that of CAKE's shaper. All packets are of one class of traffic
//! (`besteffort`). Differences from Linux: flows and hosts never share a queue or a counter by a
//! collision of their hashes, and shares of a quantum are exact instead of rounded at random. Sizes are
//! those of IP packets, the limit is that of the link, and no acknowledgements are filtered.

use std::collections::{BTreeMap, VecDeque};

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::WithUnit;
use anabranch_wire::{Duration, Instant};

use super::cobalt::{Cobalt, Decision, Limits};
use super::fq_codel::{Backlog, Fifo};
use super::{CheckQueue, CoDelConfig, FlowQueues, Packet, PacketStore, QueueCapacity};
use crate::rng::{Draws, stream_seed};
use crate::units::{ByteCount, FULL_SIZE_PACKET, QueueLimit, Rate};

/// Hosts between which CAKE is fair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case"),
    schemars(inline)
)]
pub enum Isolation {
    /// Each flow's share shrinks with the number of flows of its source or its destination, whichever
    /// has more.
    #[default]
    TripleIsolate,
    /// Fair between sources, then between flows.
    DualSrchost,
    /// Fair between destinations, then between flows.
    DualDsthost,
    /// Fair between flows.
    Flows,
}

/// Parameters of CAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct CakeConfig {
    /// A worst-case round-trip time. The acceptable sojourn time is a twentieth of it, or the time of a
    /// few packets on slow links.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Duration>"), schemars(extend("x-origin" = "tc-cake(8), rtt")))]
    pub rtt: Duration,
    /// Hosts between which the queue is fair.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "tc-cake(8), triple-isolate")))]
    pub isolation: Isolation,
}

impl Default for CakeConfig {
    fn default() -> Self {
        CakeConfig { rtt: CoDelConfig::default().interval, isolation: Isolation::default() }
    }
}

/// sch_cake.c: quotient of `rtt` and the acceptable sojourn time.
const RTT_PER_TARGET: u64 = 20;
/// sch_cake.c: bounds of a quantum in bytes, of which a flow has 4,096 each second in between. A
/// full-size packet is like Linux's 1514 bytes, which count the Ethernet header.
const LEAST_QUANTUM: u64 = 300;
const QUANTA_PER_SECOND: u64 = 4_096;
/// Units of a byte in which deficits are counted, so that shares of a quantum are exact enough.
const FRACTIONS: i64 = 1 << 16;

/// A queue for each flow, served by deficit round robin (DRR++).
#[derive(Clone, Debug)]
pub(crate) struct Cake {
    config: CakeConfig,
    capacity: QueueCapacity,
    seed: u64,
    limits: Limits,
    /// A flow's share of a round in bytes, if it is the only one of its hosts.
    quantum: u64,
    /// The queues by the hash of their flow. Unused ones are kept.
    of_flow: BTreeMap<u64, usize>,
    flows: Vec<CakeFlow>,
    unused: Vec<usize>,
    /// Number of flows with a turn among the old ones, by the hash of their source or destination.
    hosts: BTreeMap<(Side, u64), u32>,
    /// Flows that have a turn, in their order.
    turns: Turns,
    backlog: Backlog,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Source,
    Destination,
}

#[derive(Clone, Debug, Default)]
struct Turns {
    /// Flows whose queue was empty.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    /// Flows without packets, whose queue management is not yet at rest.
    decaying: VecDeque<usize>,
}

#[derive(Clone, Debug, Default)]
struct CakeFlow {
    hash: u64,
    hosts: [u64; 2],
    packets: Fifo,
    /// Bytes that the flow may still send in this turn, in units of 1 / `FRACTIONS`.
    deficit: i64,
    state: FlowState,
    cobalt: Cobalt,
}

/// State of a flow, which decides about its list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FlowState {
    /// It has no turn.
    #[default]
    Unused,
    /// Its queue was empty, and it has sent no more than a quantum since then.
    Sparse,
    /// It has sent a quantum, but its queue is empty.
    SparseWait,
    /// It always has packets. Its hosts count it.
    Bulk,
    Decaying,
}

impl Cake {
    pub(crate) fn new(config: CakeConfig, limit: QueueLimit, rate: Rate, link_seed: u64) -> Self {
        let mut cake = Cake {
            config,
            capacity: QueueCapacity::new(limit, rate),
            seed: stream_seed(link_seed, "cake"),
            limits: limits(rate, config.rtt),
            quantum: 0,
            of_flow: BTreeMap::new(),
            flows: Vec::new(),
            unused: Vec::new(),
            hosts: BTreeMap::new(),
            turns: Turns::default(),
            backlog: Backlog::default(),
        };
        cake.set_rate(rate);
        cake
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.capacity.set_rate(rate);
        self.limits = limits(rate, self.config.rtt);
        let quantum = rate.as_bits_per_second() / 8 / QUANTA_PER_SECOND;
        self.quantum = quantum.clamp(LEAST_QUANTUM, FULL_SIZE_PACKET);
    }

    /// Enqueue `packet`. If there is no room, drop packets of the longest queue.
    pub(crate) fn enqueue(&mut self, now: Instant, packet: Packet, store: &mut impl PacketStore) {
        let index = self.find(packet, store);
        let flow = &mut self.flows[index];
        flow.packets.push(packet, now, &mut self.backlog);
        match flow.state {
            FlowState::Unused | FlowState::Decaying => {
                if flow.state == FlowState::Decaying {
                    self.turns.decaying.retain(|each| *each != index);
                }
                flow.state = FlowState::Sparse;
                self.turns.new.push_back(index);
                self.flows[index].deficit = self.share(index);
            }
            // It is in the old flows' round.
            FlowState::SparseWait => self.count_as_bulk(index),
            FlowState::Sparse | FlowState::Bulk => {}
        }
        while self.backlog.packets > 0
            && !self.capacity.fits(self.backlog.packets as u64 - 1, self.backlog.bytes)
        {
            self.drop_from_longest(now, store);
        }
    }

    /// The next packet to send.
    pub(crate) fn dequeue(&mut self, now: Instant, store: &mut impl PacketStore) -> Option<Packet> {
        let (limits, draws) = (self.limits, Draws::new(self.seed));
        self.serve(
            |flow, backlog| flow.dequeue(now, &limits, draws, backlog, store),
            |cobalt| {
                cobalt.empty(now, &limits);
                cobalt.is_at_rest(now)
            },
        )
    }

    /// Pass all packets to `lose`, and forget all flows.
    pub(crate) fn clear(&mut self, lose: impl FnMut(Packet)) {
        core::iter::from_fn(|| self.pop()).for_each(lose);
        self.of_flow.clear();
        self.flows.clear();
        self.unused.clear();
        self.hosts.clear();
        self.turns = Turns::default();
    }

    /// The next packet of the round, without queue management.
    fn pop(&mut self) -> Option<Packet> {
        self.serve(|flow, backlog| flow.packets.pop(backlog).map(|(packet, _)| packet), |_| true)
    }

    /// The queue of a packet's flow.
    fn find(&mut self, packet: Packet, store: &impl PacketStore) -> usize {
        let hash = store.flow_hash(packet, self.seed);
        if let Some(index) = self.of_flow.get(&hash) {
            return *index;
        }
        let index = self.unused.pop().unwrap_or_else(|| {
            self.flows.push(CakeFlow::default());
            self.flows.len() - 1
        });
        self.of_flow.insert(hash, index);
        let flow = &mut self.flows[index];
        (flow.hash, flow.hosts) = (hash, store.host_hashes(packet, self.seed));
        flow.cobalt = Cobalt::default();
        index
    }

    /// The next packet of the round (DRR++). `take` removes a packet from the flow whose turn it is.
    /// `rest` tells an empty flow's queue management, and returns `true` if it is at rest.
    fn serve(
        &mut self,
        mut take: impl FnMut(&mut CakeFlow, &mut Backlog) -> Option<Packet>,
        mut rest: impl FnMut(&mut Cobalt) -> bool,
    ) -> Option<Packet> {
        // As in Linux, one flow without packets has a turn each time.
        let mut decays = !self.turns.decaying.is_empty();
        while self.backlog.packets > 0 {
            let list = self.turns.next(core::mem::take(&mut decays));
            let index = *list.front().expect("a flow with packets has a turn");
            list.pop_front();
            let flow = &mut self.flows[index];
            if flow.deficit <= 0 {
                match (flow.state, flow.packets.is_empty()) {
                    (FlowState::Sparse, false) => self.count_as_bulk(index),
                    (FlowState::Sparse, true) => flow.state = FlowState::SparseWait,
                    _ => {}
                }
                self.flows[index].deficit += self.share(index);
                self.turns.old.push_back(index);
                continue;
            }
            if let Some(packet) = take(flow, &mut self.backlog) {
                flow.deficit -= i64::from(packet.bytes) * FRACTIONS;
                // It keeps its turn.
                let list = if flow.state == FlowState::Sparse {
                    &mut self.turns.new
                } else {
                    &mut self.turns.old
                };
                list.push_front(index);
                return Some(packet);
            }
            if flow.state == FlowState::Bulk {
                self.count_hosts(index, |flows| flows - 1);
            }
            let flow = &mut self.flows[index];
            if rest(&mut flow.cobalt) {
                flow.state = FlowState::Unused;
                self.of_flow.remove(&flow.hash);
                self.unused.push(index);
            } else {
                flow.state = FlowState::Decaying;
                self.turns.decaying.push_back(index);
            }
        }
        None
    }

    fn count_as_bulk(&mut self, index: usize) {
        self.flows[index].state = FlowState::Bulk;
        self.count_hosts(index, |flows| flows + 1);
    }

    fn count_hosts(&mut self, index: usize, change: impl Fn(u32) -> u32) {
        let [source, destination] = self.flows[index].hosts;
        for host in [(Side::Source, source), (Side::Destination, destination)] {
            let flows = self.hosts.entry(host).or_default();
            *flows = change(*flows);
            if *flows == 0 {
                self.hosts.remove(&host);
            }
        }
    }

    /// A flow's share of a round, in units of 1 / `FRACTIONS` bytes.
    fn share(&self, index: usize) -> i64 {
        let [source, destination] = self.flows[index].hosts;
        let flows = |side, host| self.hosts.get(&(side, host)).copied().unwrap_or(0);
        let of_hosts = match self.config.isolation {
            Isolation::TripleIsolate => {
                flows(Side::Source, source).max(flows(Side::Destination, destination))
            }
            Isolation::DualSrchost => flows(Side::Source, source),
            Isolation::DualDsthost => flows(Side::Destination, destination),
            Isolation::Flows => 1,
        };
        self.quantum.cast_signed() * FRACTIONS / i64::from(of_hosts.max(1))
    }

    /// Drop the packet at the head of the longest queue.
    #[cold]
    fn drop_from_longest(&mut self, now: Instant, store: &mut impl PacketStore) {
        let longest = self.flows.iter_mut().rev().max_by_key(|flow| flow.packets.bytes());
        let Some(flow) = longest else { return };
        if let Some((packet, _)) = flow.packets.pop(&mut self.backlog) {
            flow.cobalt.overflow(now, &self.limits);
            store.drop(packet);
        }
    }
}

impl FlowQueues for Cake {
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn waiting(&self) -> Vec<Packet> {
        let mut copy = self.clone();
        core::iter::from_fn(move || copy.pop()).collect()
    }
}

impl Turns {
    /// The list whose turn it is.
    fn next(&mut self, decays: bool) -> &mut VecDeque<usize> {
        match (decays, self.new.is_empty(), self.old.is_empty()) {
            (true, ..) | (false, true, true) => &mut self.decaying,
            (false, false, _) => &mut self.new,
            (false, true, false) => &mut self.old,
        }
    }
}

impl CakeFlow {
    /// The next packet, unless queue management drops all. The last packet is never dropped.
    fn dequeue(
        &mut self,
        now: Instant,
        limits: &Limits,
        draws: Draws,
        backlog: &mut Backlog,
        store: &mut impl PacketStore,
    ) -> Option<Packet> {
        loop {
            let (packet, arrival) = self.packets.pop(backlog)?;
            let draw = || (draws.bits(packet.number) >> 32) as u32;
            let sojourn = now.saturating_since(arrival);
            let decision = self.cobalt.judge(now, sojourn, draw, limits);
            let drops = match decision {
                Decision::Send => false,
                Decision::MarkOrDrop => !store.mark(packet),
                Decision::Drop => true,
            };
            if !drops || self.packets.is_empty() {
                return Some(packet);
            }
            store.drop(packet);
        }
    }
}

/// sch_cake.c: slow links get time for a few packets.
fn limits(rate: Rate, rtt: Duration) -> Limits {
    let packet_time = rate.time_for(ByteCount::new(FULL_SIZE_PACKET * 3 / 2));
    let from_rtt = rtt / RTT_PER_TARGET;
    let target = from_rtt.max(packet_time * 3 / 2);
    let interval = (rtt + target.saturating_sub(from_rtt)).max(target * 2);
    Limits { target, interval, packet_time }
}

impl Part for CakeConfig {
    const NAME: &'static str = "cake";
    const SUMMARY: &'static str =
        "CAKE: a queue for each flow, fair between hosts first, with controlled delay in each.";
    const SOURCE: &'static str = "Piece of CAKE, LANMAN 2018; sch_cake.c of Linux";
}

impl CheckQueue for CakeConfig {}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn queue(isolation: Isolation, limit: &str) -> Cake {
        let config = CakeConfig { isolation, ..CakeConfig::default() };
        Cake::new(config, limit.parse().unwrap(), Rate::from_bits_per_second(100_000_000), 1)
    }

    /// Packets whose flow is their slot. Tens of it are the source, and hundreds are the destination.
    #[derive(Default)]
    struct Slots {
        dropped: Vec<Packet>,
    }

    impl PacketStore for Slots {
        fn flow_hash(&self, packet: Packet, _: u64) -> u64 {
            packet.slot.into()
        }

        fn host_hashes(&self, packet: Packet, _: u64) -> [u64; 2] {
            [u64::from(packet.slot) / 10 % 10, u64::from(packet.slot) / 100]
        }

        fn mark(&mut self, _: Packet) -> bool {
            false
        }

        fn drop(&mut self, packet: Packet) {
            self.dropped.push(packet);
        }
    }

    fn packet(number: u64, flow: u32, bytes: u32) -> Packet {
        Packet { number, slot: flow, bytes }
    }

    /// The number of packets of each flow among 600, if all flows always have some.
    fn shares<const N: usize>(isolation: Isolation, flows: [u32; N]) -> [usize; N] {
        let (mut queue, mut slots) = (queue(isolation, "infinite"), Slots::default());
        for number in 0..1_000 {
            flows.iter().for_each(|flow| {
                queue.enqueue(ms(0), packet(number, *flow, 1_500), &mut slots);
            });
        }
        let sent: Vec<_> =
            core::iter::from_fn(|| queue.dequeue(ms(0), &mut slots)).take(600).collect();
        flows.map(|flow| sent.iter().filter(|packet| packet.slot == flow).count())
    }

    fn near<const N: usize>(shares: [usize; N], expected: [usize; N]) -> bool {
        shares.iter().zip(expected).all(|(share, expected)| share.abs_diff(expected) <= 3)
    }

    #[test]
    fn hosts_share_first_and_flows_of_a_host_then() {
        // Source 1 has three flows and source 2 has one. All have one destination.
        let flows = [11, 12, 13, 21];
        for (isolation, expected) in [
            (Isolation::DualSrchost, [100, 100, 100, 300]),
            (Isolation::Flows, [150; 4]),
            // The only destination has four flows, more than each source.
            (Isolation::TripleIsolate, [150; 4]),
            (Isolation::DualDsthost, [150; 4]),
        ] {
            let found = shares(isolation, flows);
            assert!(near(found, expected), "{isolation:?}: {found:?}");
        }
        // The source with three flows sends to three destinations.
        let found = shares(Isolation::TripleIsolate, [11, 112, 213, 321]);
        assert!(near(found, [100, 100, 100, 300]), "{found:?}");
        let found = shares(Isolation::DualDsthost, [11, 112, 213, 321]);
        assert!(near(found, [150; 4]), "{found:?}");
    }

    #[test]
    fn flows_with_different_packet_sizes_send_equal_bytes() {
        let (mut queue, mut slots) = (queue(Isolation::Flows, "infinite"), Slots::default());
        for number in 0..3_000 {
            queue.enqueue(ms(0), packet(number, 1, 1_500), &mut slots);
            queue.enqueue(ms(0), packet(number, 2, 200), &mut slots);
        }
        let mut sent = [0, 0];
        for _ in 0..2_000 {
            let out = queue.dequeue(ms(0), &mut slots).unwrap();
            sent[out.slot as usize - 1] += i64::from(out.bytes);
        }
        assert!((sent[0] - sent[1]).abs() <= 1_500 + 1_500 + 200, "{sent:?}");
    }

    #[test]
    fn a_sparse_flow_waits_for_one_packet_at_most() {
        let (mut queue, mut slots) = (queue(Isolation::Flows, "infinite"), Slots::default());
        for number in 0..100 {
            queue.enqueue(ms(0), packet(number, 1, 1_500), &mut slots);
        }
        for number in 0..50 {
            queue.dequeue(ms(0), &mut slots);
            queue.enqueue(ms(0), packet(number, 2, 100), &mut slots);
            assert_eq!(queue.dequeue(ms(0), &mut slots), Some(packet(number, 2, 100)));
        }
    }

    #[test]
    fn a_flow_that_sends_its_share_is_not_sparse_although_its_queue_is_often_empty() {
        let (mut queue, mut slots) = (queue(Isolation::Flows, "infinite"), Slots::default());
        for number in 0..40 {
            queue.enqueue(ms(0), packet(number, 1, 1_500), &mut slots);
        }
        let mut turns = [0, 0];
        for number in 0..40 {
            queue.enqueue(ms(0), packet(number, 2, 1_500), &mut slots);
            turns[queue.dequeue(ms(0), &mut slots).unwrap().slot as usize - 1] += 1;
        }
        assert!(turns[0] >= 19, "{turns:?}");
    }

    #[test]
    fn the_longest_queue_loses_its_oldest_packet_when_there_is_no_room() {
        let (mut queue, mut slots) = (queue(Isolation::Flows, "20packets"), Slots::default());
        for number in 0..15 {
            queue.enqueue(ms(0), packet(number, 1, 1_500), &mut slots);
        }
        for number in 0..7 {
            queue.enqueue(ms(0), packet(number, 2, 1_500), &mut slots);
        }
        assert_eq!(slots.dropped, [packet(0, 1, 1_500), packet(1, 1, 1_500)]);
        assert_eq!((queue.backlog().packets, queue.backlog().bytes), (20, 20 * 1_500));
    }

    #[test]
    fn a_flow_is_forgotten_when_its_queue_management_is_at_rest() {
        let (mut queue, mut slots) = (queue(Isolation::default(), "infinite"), Slots::default());
        for number in 0..50 {
            queue.enqueue(ms(0), packet(number, number as u32, 1_500), &mut slots);
        }
        // The last packet of each flow leaves although all waited for too long.
        let left = core::iter::from_fn(|| queue.dequeue(ms(90), &mut slots)).count();
        assert_eq!((left, queue.hosts.len()), (50, 0));
        // One other flow sends. With each of its packets, another flow has a turn.
        for now in 300..420 {
            queue.enqueue(ms(now), packet(now, 99, 1_500), &mut slots);
            queue.enqueue(ms(now), packet(now, 99, 1_500), &mut slots);
            queue.dequeue(ms(now), &mut slots);
        }
        assert_eq!(queue.of_flow.keys().collect::<Vec<_>>(), [&99]);
        assert!(slots.dropped.iter().all(|packet| packet.slot == 99));
    }

    #[test]
    fn the_order_of_waiting_packets_is_the_order_in_which_they_leave() {
        let (mut queue, mut slots) = (queue(Isolation::default(), "infinite"), Slots::default());
        for number in 0..60 {
            let flow = number as u32 % 7 % 3;
            queue.enqueue(ms(0), packet(number, flow, 100 + 400 * flow), &mut slots);
        }
        queue.dequeue(ms(0), &mut slots);
        let waiting = queue.waiting();
        let left: Vec<_> = core::iter::from_fn(|| queue.dequeue(ms(0), &mut slots)).collect();
        assert_eq!((waiting.len(), waiting), (59, left));
    }

    #[test]
    fn slow_links_get_time_for_a_few_packets() {
        let rtt = Duration::from_millis(100);
        let at = |rate| limits(Rate::from_bits_per_second(rate), rtt);
        let fast = at(100_000_000);
        assert_eq!((fast.target, fast.interval), (rtt / 20, rtt));
        // 2250 bytes take 18 ms.
        let slow = at(1_000_000);
        assert_eq!(slow.packet_time, Duration::from_millis(18));
        assert_eq!(slow.target, Duration::from_millis(27));
        assert_eq!(slow.interval, Duration::from_millis(122));
    }
}
