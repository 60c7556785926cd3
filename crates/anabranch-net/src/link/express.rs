//! The usual link in its short form: a fixed rate and delay, and a drop-tail queue.
//!
//! Nothing that happens later changes the times of an accepted packet, so they are computed when it
//! arrives, and one ring holds the packets that wait, are sent and propagate. A [`Link`] that changes
//! goes on in its general form, with the state that it would have had there.
//!
//! [`Link`]: crate::link::Link

use std::collections::VecDeque;

use anabranch_wire::{Duration, Instant, Packet as IpPacket};

use super::{LinkConfig, PacketPlace};
use crate::impairment::JitterModel;
use crate::queue::{Discipline, QueueCapacity};
use crate::serialiser::Serialiser;

/// Queue, transmitter and propagation of a link.
#[derive(Debug)]
pub(crate) struct Express {
    /// All packets inside, in the order of arrival: they propagate, are being sent, or wait.
    packets: VecDeque<Scheduled>,
    /// Number of them that do not wait any more.
    begun: usize,
    /// When the packet whose transmission began last has left.
    leaves_at: Instant,
    waiting_bytes: u64,
    /// Time of the last call.
    now: Instant,
    capacity: QueueCapacity,
    /// The transmitter after all packets.
    serialiser: Serialiser,
    delay: Duration,
}

/// A packet inside the link.
#[derive(Debug)]
pub(crate) struct Scheduled {
    pub(crate) packet: IpPacket,
    /// Arrival number at the link.
    pub(crate) number: u64,
    /// Length of the IP packet in bytes.
    pub(crate) bytes: u32,
    /// When its last bit leaves, and what then remains of a nanosecond's work.
    leaves_at: Instant,
    remainder: u64,
}

/// The stages of a link in its general form.
pub(crate) struct Stages {
    /// In the order in which they are delivered, with the times.
    pub(crate) propagating: Vec<(Scheduled, Instant)>,
    /// With its delivery, unless the link changes.
    pub(crate) in_transmission: Option<(Scheduled, Instant)>,
    /// The transmitter, which sends that packet.
    pub(crate) serialiser: Serialiser,
    pub(crate) waiting: Vec<Scheduled>,
}

impl Express {
    /// The short form of a link with this configuration, if it has one. `serialiser` is idle.
    pub(crate) fn new(config: &LinkConfig, serialiser: Serialiser) -> Option<Self> {
        let fixed = config.jitter.is_zero() && config.jitter_model == JitterModel::Fifo;
        (fixed && config.discipline == Discipline::default()).then(|| Express {
            packets: VecDeque::new(),
            begun: 0,
            leaves_at: Instant::ZERO,
            waiting_bytes: 0,
            now: Instant::ZERO,
            capacity: QueueCapacity::new(config.limit, serialiser.rate()),
            serialiser,
            delay: config.delay,
        })
    }

    /// Begin the transmissions that are due by `now`.
    #[inline]
    pub(crate) fn catch_up(&mut self, now: Instant) {
        self.now = now;
        while self.leaves_at <= now
            && let Some(next) = self.packets.get(self.begun)
        {
            self.begun += 1;
            self.leaves_at = next.leaves_at;
            self.waiting_bytes -= u64::from(next.bytes);
        }
    }

    /// Accept a packet, after [`Express::catch_up`]. Returns `false` if the queue has no room for
    /// it.
    #[inline]
    pub(crate) fn accept(
        &mut self,
        now: Instant,
        number: u64,
        packet: IpPacket,
        bytes: u32,
    ) -> bool {
        let waits = self.leaves_at > now;
        let (packets_waiting, bytes_waiting) =
            (self.packets_waiting(), self.waiting_bytes + u64::from(bytes));
        if waits && !self.capacity.fits(packets_waiting, bytes_waiting) {
            return false;
        }
        self.serialiser.start(self.serialiser.free_at().max(now), bytes);
        let (leaves_at, remainder) = self.serialiser.end();
        if waits {
            self.waiting_bytes = bytes_waiting;
        } else {
            self.begun += 1;
            self.leaves_at = leaves_at;
        }
        self.packets.push_back(Scheduled { packet, number, bytes, leaves_at, remainder });
        true
    }

    /// The next packet at the far end, and its length in bytes, if it is due by `now`.
    #[inline]
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(IpPacket, u32)> {
        if self.next_due()? > now {
            return None;
        }
        self.catch_up(now);
        let first = self.packets.pop_front()?;
        self.begun -= 1;
        Some((first.packet, first.bytes))
    }

    /// When the next packet is delivered.
    #[inline]
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.packets.front().map(|first| first.leaves_at + self.delay)
    }

    /// Number of packets that wait.
    #[inline]
    pub(crate) fn packets_waiting(&self) -> u64 {
        (self.packets.len() - self.begun) as u64
    }

    /// Bytes of the packets that wait.
    #[inline]
    pub(crate) fn bytes_waiting(&self) -> u64 {
        self.waiting_bytes
    }

    /// Number of packets inside the link.
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// The packets inside the link and their places, in the order of [`Link::packets`].
    ///
    /// [`Link::packets`]: super::Link::packets
    pub(super) fn packets(&self) -> impl Iterator<Item = (PacketPlace, &IpPacket)> + '_ {
        let waiting = self.packets.range(self.begun..).enumerate();
        let waiting = waiting.map(|(ahead, each)| (PacketPlace::Queue { ahead }, &each.packet));
        let gone = self.begun - usize::from(self.is_sending());
        let place = |each: &Scheduled, sending| {
            let (left_at, delivery) = (each.leaves_at, each.leaves_at + self.delay);
            if sending {
                PacketPlace::Transmission { left_at, delivery }
            } else {
                PacketPlace::Propagation { delivery }
            }
        };
        let sending = self.packets.range(gone..self.begun);
        let sending = sending.map(move |each| (place(each, true), &each.packet));
        let gone = self.packets.range(..gone);
        let gone = gone.map(move |each| (place(each, false), &each.packet));
        waiting.chain(sending).chain(gone)
    }

    /// Returns `true` if a packet is being sent, at the time of the last call.
    pub(super) fn is_sending(&self) -> bool {
        self.leaves_at > self.now
    }

    /// When the packet whose transmission began last has left.
    pub(crate) fn leaves_at(&self) -> Instant {
        self.leaves_at
    }

    /// The state at the time of the last call, as that of a link in its general form.
    pub(crate) fn into_stages(self) -> Stages {
        let is_sending = self.is_sending();
        let Express { packets, begun, serialiser, delay, .. } = self;
        let mut stages = Stages {
            propagating: Vec::new(),
            in_transmission: None,
            serialiser,
            waiting: Vec::new(),
        };
        for (index, scheduled) in packets.into_iter().enumerate() {
            let delivery = scheduled.leaves_at + delay;
            if index >= begun {
                stages.waiting.push(scheduled);
            } else if index + 1 == begun && is_sending {
                stages.serialiser.end_at(scheduled.leaves_at, scheduled.remainder);
                stages.in_transmission = Some((scheduled, delivery));
            } else {
                stages.propagating.push((scheduled, delivery));
            }
        }
        stages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Capacity, Link};
    use crate::node::Node;
    use crate::schedule::{LinkChange, ScheduledChange, StateChange};
    use crate::units::{QueueLimit, Rate};
    use anabranch_wire::{Datagram, Piece, SocketAddress};
    use proptest::prelude::*;

    fn packet(bytes: u32) -> IpPacket {
        let address = SocketAddress::new([10, 0, 0, 1].into(), 9);
        let payload = Piece::pattern(0, bytes).into();
        Datagram { source: address, destination: address, payload, ecn: 0 }.into()
    }

    /// All that a link shows at `now`.
    fn seen(link: &Link, now: Instant) -> String {
        let queue = (link.queue_packets(), link.queue_bytes(), link.queueing_delay(now));
        let inside = (link.packets_inside(), link.occupancy(now), link.poll_timeout());
        let packets: Vec<_> = link.packets().collect();
        format!("{queue:?} {inside:?} {:?} {packets:?}", link.stats())
    }

    fn change() -> impl Strategy<Value = LinkChange> {
        let none = LinkChange::default();
        let state = |state| Just(LinkChange { state: Some(state), ..none });
        prop_oneof![
            (1u64..20_000_000).prop_map(move |bits| {
                LinkChange { rate: Some(Rate::from_bits_per_second(bits)), ..none }
            }),
            (0u64..20).prop_map(move |ms| {
                LinkChange { delay: Some(Duration::from_millis(ms)), ..none }
            }),
            (0u64..5).prop_map(move |ms| {
                LinkChange { jitter: Some(Duration::from_millis(ms)), ..none }
            }),
            state(StateChange::Down),
            state(StateChange::Up),
            state(StateChange::Suspend),
            state(StateChange::Resume),
        ]
    }

    fn limit() -> impl Strategy<Value = QueueLimit> {
        let limits = ["1packets", "7packets", "9kB", "20ms"];
        prop::sample::select(limits.to_vec()).prop_map(|limit| limit.parse().expect("a limit"))
    }

    /// A change, with its time in µs or the number of its step.
    fn change_at(times: core::ops::Range<u64>) -> impl Strategy<Value = Option<(u64, LinkChange)>> {
        prop::option::of((times, change()))
    }

    proptest! {
        /// The short form and the general form of a link show the same at all times.
        #[test]
        fn both_forms_of_a_link_agree(
            limit in limit(),
            rate in 1_000u64..30_000_000,
            scheduled in change_at(0..60_000),
            made in change_at(0..150),
            steps in prop::collection::vec((0u64..3_000, 1u32..1_400, 0u8..4), 1..150),
        ) {
            let rate = Capacity::Rate(Rate::from_bits_per_second(rate));
            let mut config = LinkConfig::new(rate, Duration::from_millis(10), limit);
            config.changes.extend(scheduled.map(|(at, change)| {
                ScheduledChange { at: Instant::from_nanos(at * 1_000), change }
            }));
            let mut links = [Link::new(config.clone(), 1), Link::new(config, 1)];
            links[1].use_general_form();
            let mut now = Instant::ZERO;
            for (number, (micros, bytes, kind)) in (0..).zip(steps) {
                now += Duration::from_nanos(micros * 1_000);
                let [short, general] = links.each_mut().map(|link| {
                    let mut delivered = Vec::new();
                    match kind {
                        0 => link.handle_timeout(now),
                        1 => delivered.extend(std::iter::from_fn(|| link.poll_transmit(now))),
                        _ => link.handle_packet(now, packet(bytes)),
                    }
                    if let Some((_, change)) = made.filter(|(at, _)| *at == number) {
                        link.handle_change(now, change);
                    }
                    (delivered, seen(link, now))
                });
                prop_assert_eq!(short, general);
            }
        }
    }
}
