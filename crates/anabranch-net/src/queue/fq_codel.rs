//! FlowQueue-CoDel. RFC 8290, and sch_fq_codel.c of Linux where it is more precise.
//!
//! Differences from Linux: sizes are those of IP packets, without a link-layer header. The limit is
//! that of the link, and there is no limit of memory. ECN is always on.

use std::cmp::Reverse;
use std::collections::VecDeque;

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::WithUnit;
use anabranch_wire::{Duration, Instant};

use super::codel::{ControlLaw, Head};
use super::{CheckQueue, CoDelConfig, FlowQueues, Invalid, Packet, PacketStore, QueueCapacity};
use crate::rng::stream_seed;
use crate::units::{ByteCount, FULL_SIZE_PACKET, QueueLimit, Rate};

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct FqCoDelConfig {
    /// Acceptable sojourn time.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Duration>"), schemars(extend("x-origin" = "RFC 8290 §5.2.2")))]
    pub target: Duration,
    /// Time for which the sojourn time may exceed the target before packets are dropped: a
    /// worst-case round-trip time.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Duration>"), schemars(extend("x-origin" = "RFC 8290 §5.2.1")))]
    pub interval: Duration,
    /// Bytes that a flow may send before the next flow's turn. A full-size packet is like Linux's 1514
    /// bytes, which count the Ethernet header.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<ByteCount>"), schemars(extend("x-origin" = "RFC 8290 §5.2.4")))]
    pub quantum: ByteCount,
    /// Number of queues, over which a hash distributes the flows.
    #[cfg_attr(feature = "serde", schemars(range(min = 1, max = 65_536), extend("x-origin" = "RFC 8290 §5.2.5")))]
    pub flows: u32,
}

impl Default for FqCoDelConfig {
    fn default() -> Self {
        let CoDelConfig { target, interval } = CoDelConfig::default();
        let quantum = ByteCount::new(FULL_SIZE_PACKET);
        FqCoDelConfig { target, interval, quantum, flows: FLOWS }
    }
}

/// RFC 8290 §5.2.5.
const FLOWS: u32 = 1_024;
/// The smallest quantum of Linux, in bytes.
const LEAST_QUANTUM: u64 = 256;
/// RFC 8290 §4.1: packets dropped at once when there is no room.
const DROP_BATCH: u64 = 64;

/// A queue for each flow, served by deficit round robin (DRR). CoDel manages each of them.
#[derive(Clone, Debug)]
pub(crate) struct FqCoDel {
    quantum: i64,
    capacity: QueueCapacity,
    hash_seed: u64,
    flows: Vec<FlowQueue>,
    /// Flows that have a turn, in their order: those whose queue was empty, and the others.
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    backlog: Backlog,
}

/// Packets in all queues together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backlog {
    pub(crate) packets: usize,
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct FlowQueue {
    packets: Fifo,
    /// Bytes that the flow may still send in this turn.
    deficit: i64,
    has_turn: bool,
    control: ControlLaw,
}

/// The packets of a flow, with their arrival times.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    waiting: VecDeque<(Packet, Instant)>,
    bytes: u64,
}

impl FqCoDel {
    pub(crate) fn new(
        config: FqCoDelConfig,
        limit: QueueLimit,
        rate: Rate,
        link_seed: u64,
    ) -> Self {
        let FqCoDelConfig { target, interval, quantum, flows } = config;
        let control = ControlLaw::new(CoDelConfig { target, interval });
        let flow = FlowQueue { control, ..FlowQueue::default() };
        FqCoDel {
            quantum: i64::try_from(quantum.as_u64()).unwrap_or(i64::MAX),
            capacity: QueueCapacity::new(limit, rate),
            hash_seed: stream_seed(link_seed, "fq_codel"),
            flows: vec![flow; flows as usize],
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.capacity.set_rate(rate);
    }

    /// RFC 8290 §4.1: enqueue `packet`. If there is no room, drop packets of the longest queue.
    pub(crate) fn enqueue(&mut self, now: Instant, packet: Packet, store: &mut impl PacketStore) {
        let hash = store.flow_hash(packet, self.hash_seed);
        let index = (hash % self.flows.len() as u64) as usize;
        let flow = &mut self.flows[index];
        flow.packets.push(packet, now, &mut self.backlog);
        if !flow.has_turn {
            flow.has_turn = true;
            flow.deficit = self.quantum;
            self.new_flows.push_back(index);
        }
        while self.backlog.packets > 0 && !self.fits() {
            self.drop_from_longest(store);
        }
    }

    /// The next packet to send. `signal` receives each packet to drop, and returns `true` if it has
    /// marked the packet instead.
    pub(crate) fn dequeue(
        &mut self,
        now: Instant,
        mut signal: impl FnMut(Packet) -> bool,
    ) -> Option<Packet> {
        self.serve(|flow, backlog| flow.dequeue(now, backlog, &mut signal))
    }

    /// Pass all packets to `lose`, and leave the dropping states.
    pub(crate) fn clear(&mut self, lose: impl FnMut(Packet)) {
        core::iter::from_fn(|| self.pop()).for_each(lose);
        self.flows.iter_mut().for_each(|flow| flow.control.leave());
    }

    /// The next packet of the round, without CoDel.
    fn pop(&mut self) -> Option<Packet> {
        self.serve(|flow, backlog| flow.packets.pop(backlog).map(|(packet, _)| packet))
    }

    /// RFC 8290 §4.2: the next packet of the round. `take` removes a packet from the flow whose turn
    /// it is.
    fn serve(
        &mut self,
        mut take: impl FnMut(&mut FlowQueue, &mut Backlog) -> Option<Packet>,
    ) -> Option<Packet> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            if let Some(packet) = take(flow, &mut self.backlog) {
                flow.deficit -= i64::from(packet.bytes);
                return Some(packet);
            }
            list.pop_front();
            // A flow that is new again and again must not starve the old ones.
            flow.has_turn = is_new && !self.old_flows.is_empty();
            if flow.has_turn {
                self.old_flows.push_back(index);
            }
        }
    }

    fn fits(&self) -> bool {
        self.capacity.fits(self.backlog.packets as u64 - 1, self.backlog.bytes)
    }

    /// Drop half of the bytes in the longest queue, but at most [`DROP_BATCH`] packets, from its head.
    #[cold]
    fn drop_from_longest(&mut self, store: &mut impl PacketStore) {
        let queues = self.new_flows.iter().chain(&self.old_flows);
        let longest =
            queues.max_by_key(|&&index| (self.flows[index].packets.bytes, Reverse(index)));
        let Some(flow) = longest.map(|&index| &mut self.flows[index]) else { return };
        let (half, mut count) = (flow.packets.bytes / 2, 0);
        while count < DROP_BATCH
            && flow.packets.bytes > half
            && let Some((packet, _)) = flow.packets.pop(&mut self.backlog)
        {
            store.drop(packet);
            count += 1;
        }
        flow.control.count_drops(count);
    }
}

impl FlowQueues for FqCoDel {
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn waiting(&self) -> Vec<Packet> {
        let mut copy = self.clone();
        core::iter::from_fn(move || copy.pop()).collect()
    }
}

impl FlowQueue {
    fn dequeue(
        &mut self,
        now: Instant,
        backlog: &mut Backlog,
        signal: impl FnMut(Packet) -> bool,
    ) -> Option<Packet> {
        let take = || {
            let (packet, arrival) = self.packets.pop(backlog)?;
            // As in Linux, CoDel lets the packet pass if all queues together are short.
            Some(Head { packet, arrival, bytes_behind: backlog.bytes })
        };
        self.control.dequeue(now, take, signal)
    }
}

impl Fifo {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn push(&mut self, packet: Packet, now: Instant, backlog: &mut Backlog) {
        self.waiting.push_back((packet, now));
        self.bytes += u64::from(packet.bytes);
        backlog.packets += 1;
        backlog.bytes += u64::from(packet.bytes);
    }

    pub(super) fn pop(&mut self, backlog: &mut Backlog) -> Option<(Packet, Instant)> {
        let (packet, arrival) = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        backlog.packets -= 1;
        backlog.bytes -= u64::from(packet.bytes);
        Some((packet, arrival))
    }
}

impl Part for FqCoDelConfig {
    const NAME: &'static str = "fq_codel";
    const SUMMARY: &'static str =
        "Flow queueing with CoDel: a queue for each flow, and controlled delay in each.";
    const SOURCE: &'static str = "RFC 8290; sch_fq_codel.c of Linux";
}

impl CheckQueue for FqCoDelConfig {
    fn check(&self) -> Result<(), Invalid> {
        if self.quantum.as_u64() >= LEAST_QUANTUM {
            return Ok(());
        }
        let problem =
            format!("\"{}\": must be at least {LEAST_QUANTUM}B, as in Linux", self.quantum);
        Err(Invalid { parameter: "quantum", problem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A queue for packets whose flow is their slot.
    fn queue(limit: &str) -> FqCoDel {
        let rate = Rate::from_bits_per_second(8_000_000);
        FqCoDel::new(FqCoDelConfig::default(), limit.parse().unwrap(), rate, 1)
    }

    #[derive(Default)]
    struct Slots {
        dropped: Vec<Packet>,
    }

    impl PacketStore for Slots {
        fn flow_hash(&self, packet: Packet, _: u64) -> u64 {
            packet.slot.into()
        }

        fn host_hashes(&self, packet: Packet, _: u64) -> [u64; 2] {
            [packet.slot.into(); 2]
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

    #[test]
    fn flows_with_different_packet_sizes_send_equal_bytes() {
        let (mut queue, mut slots) = (queue("infinite"), Slots::default());
        for number in 0..3_000 {
            queue.enqueue(ms(0), packet(number, 1, 1_500), &mut slots);
            queue.enqueue(ms(0), packet(number, 2, 200), &mut slots);
        }
        let mut sent = [0, 0];
        for _ in 0..2_000 {
            let out = queue.dequeue(ms(0), |_| false).unwrap();
            sent[out.slot as usize - 1] += i64::from(out.bytes);
        }
        // DRR: at any time, two flows differ by at most a quantum and a packet of each.
        assert!((sent[0] - sent[1]).abs() <= 1_500 + 1_500 + 200, "{sent:?}");
        assert!(sent[0] > 350_000, "{sent:?}");
    }

    #[test]
    fn a_sparse_flow_waits_for_one_packet_at_most() {
        // Flow 1 is always backlogged. Each packet of flow 2 finds an empty queue, so the flow is new,
        // and its packet is the next to leave.
        let (mut queue, mut slots) = (queue("infinite"), Slots::default());
        for number in 0..100 {
            queue.enqueue(ms(0), packet(number, 1, 1_500), &mut slots);
        }
        for number in 0..50 {
            queue.dequeue(ms(0), |_| false);
            queue.enqueue(ms(0), packet(number, 2, 100), &mut slots);
            assert_eq!(queue.dequeue(ms(0), |_| false), Some(packet(number, 2, 100)));
        }
    }

    #[test]
    fn a_flow_that_is_new_again_and_again_does_not_starve_old_ones() {
        // RFC 8290 §4.2: when a new flow's queue is empty, an old flow has its turn before the flow
        // may be new again.
        let (mut queue, mut slots) = (queue("infinite"), Slots::default());
        for number in 0..40 {
            queue.enqueue(ms(0), packet(number, 1, 1_500), &mut slots);
        }
        let mut turns = [0, 0];
        for number in 0..40 {
            queue.enqueue(ms(0), packet(number, 2, 1_500), &mut slots);
            turns[queue.dequeue(ms(0), |_| false).unwrap().slot as usize - 1] += 1;
        }
        assert_eq!(turns, [20, 20]);
    }

    #[test]
    fn the_longest_queue_loses_half_of_its_bytes_when_there_is_no_room() {
        let (mut queue, mut slots) = (queue("110packets"), Slots::default());
        for number in 0..10 {
            queue.enqueue(ms(0), packet(number, 2, 1_500), &mut slots);
        }
        for number in 0..100 {
            queue.enqueue(ms(0), packet(number, 1, 1_500), &mut slots);
        }
        assert!(slots.dropped.is_empty());
        // The packet of flow 2 enters. Flow 1 has 150 kB, and loses its 50 oldest packets.
        queue.enqueue(ms(0), packet(10, 2, 1_500), &mut slots);
        let dropped: Vec<_> = slots.dropped.iter().map(|each| (each.slot, each.number)).collect();
        assert_eq!(dropped, (0..50).map(|number| (1, number)).collect::<Vec<_>>());
        assert_eq!((queue.backlog().packets, queue.backlog().bytes), (61, 61 * 1_500));
    }

    #[test]
    fn at_most_64_packets_are_dropped_at_once() {
        let (mut queue, mut slots) = (queue("200packets"), Slots::default());
        for number in 0..201 {
            queue.enqueue(ms(0), packet(number, 1, 1_500), &mut slots);
        }
        assert_eq!((slots.dropped.len(), queue.backlog().packets), (64, 137));
    }

    #[test]
    fn each_flow_has_its_own_codel() {
        // A packet leaves each millisecond. In 100 ms, two flows offer 48 packets each and a third offers
        // five: one too many, which CoDel drops from the first two. Their delay stays near its target.
        let (mut queue, mut slots) = (queue("infinite"), Slots::default());
        let (mut dropped, mut sojourns) = ([0; 3], [const { Vec::new() }; 3]);
        for now in 0..60_000 {
            let arrives = [now * 12 % 25 < 12, now * 12 % 25 < 12, now % 20 == 10];
            for flow in (0..3).filter(|flow| arrives[*flow as usize]) {
                queue.enqueue(ms(now), packet(now, flow, 1_500), &mut slots);
            }
            let out = queue.dequeue(ms(now), |lost| {
                dropped[lost.slot as usize] += 1;
                false
            });
            if let Some(out) = out.filter(|_| now >= 30_000) {
                sojourns[out.slot as usize].push(now - out.number);
            }
        }
        let means = sojourns.map(|all| all.iter().sum::<u64>() as f64 / all.len() as f64);
        assert!(dropped[0] > 100 && dropped[1] > 100 && dropped[2] == 0, "{dropped:?}");
        assert!((3.0..10.0).contains(&means[0]) && (3.0..10.0).contains(&means[1]), "{means:?}");
        assert!(means[2] < 1.0, "{means:?}");
    }

    #[test]
    fn the_order_of_waiting_packets_is_the_order_in_which_they_leave() {
        let (mut queue, mut slots) = (queue("infinite"), Slots::default());
        for number in 0..60 {
            let flow = number as u32 % 7 % 3;
            queue.enqueue(ms(0), packet(number, flow, 100 + 400 * flow), &mut slots);
        }
        queue.dequeue(ms(0), |_| false);
        let waiting = queue.waiting();
        let left: Vec<_> = core::iter::from_fn(|| queue.dequeue(ms(0), |_| false)).collect();
        assert_eq!((waiting.len(), waiting), (59, left));
    }
}
