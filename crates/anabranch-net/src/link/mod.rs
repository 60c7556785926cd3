//! A link in one direction: a queue, a transmitter, and the propagation to the far end.

mod config;
mod express;

use anabranch_wire::{Duration, Instant, Packet as IpPacket};

pub use config::{Capacity, LinkConfig, LinkStats, Mtu};
use express::{Express, Scheduled};

use crate::delay_line::DelayLine;
use crate::impairment::{GilbertElliott, Jitter, Loss, LossTrace};
use crate::node::Node;
use crate::opportunities::{Opportunities, PartlySent};
use crate::queue::{Packet, PacketStore, Queue};
use crate::schedule::{LinkChange, Schedule, ScheduledChange, StateChange};
use crate::serialiser::{Serialiser, WORK_PER_BYTE};
use crate::shaper::Shaper;
use crate::slab::Slab;
use crate::trace::OPPORTUNITY_BYTES;
use crate::units::{ByteCount, Rate};

/// A link. Packets wait in a queue, are sent one after the other at the link's rate, and arrive one
/// propagation delay later.
///
/// The link works lazily. Every call first executes all departures and changes that are due by its
/// `now`, each at its exact time. The outcome therefore does not depend on when the link is woken.
/// A driver wakes it once per delivery.
#[derive(Debug)]
pub struct Link {
    /// The usual link, until it changes. The stages below then go on.
    express: Option<Express>,
    packets: Slab,
    queue: Queue,
    serialiser: Serialiser,
    transmission: Option<Transmission>,
    outlet: Option<Box<Outlet>>,
    propagation: DelayLine,
    delay: Duration,
    jitter: Jitter,
    loss: Loss,
    burst_loss: Option<GilbertElliott>,
    loss_trace: Option<LossTrace>,
    mtu: Option<Mtu>,
    schedule: Schedule,
    down: bool,
    stats: LinkStats,
}

/// State of a link's transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupancy {
    /// It sends, or data waits for its next opportunity.
    Busy,
    /// It has had nothing to send since this time.
    Idle {
        /// When the last bit left.
        since: Instant,
    },
    /// The link is down or suspended.
    Unavailable,
}

/// Place of a packet inside a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketPlace {
    /// In the queue, or in front of a shaper's gate.
    Queue {
        /// Number of packets that leave before it.
        ahead: usize,
    },
    /// Sent in part by the opportunities of a trace.
    Opportunity {
        /// Bytes that wait for the next opportunities.
        bytes_left: u32,
    },
    /// In transmission.
    Transmission {
        /// When its last bit leaves.
        left_at: Instant,
        /// When it arrives, unless the link changes.
        delivery: Instant,
    },
    /// On the way to the far end.
    Propagation {
        /// When it arrives.
        delivery: Instant,
    },
}

/// The rule by which packets leave a link that is not plain.
#[derive(Debug)]
enum Outlet {
    /// The opportunities of a trace. The queue stays in use.
    Trace(Opportunities),
    /// The queue and the gate of a tool. The serialiser stays in use.
    Shaper(Shaper),
}

/// The packet in transmission, and its delivery time unless the link changes.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    packet: Packet,
    delivery: Instant,
}

/// The packets inside a link, and the counters of those that its queue marks or drops.
struct LinkPackets<'a> {
    packets: &'a mut Slab,
    stats: &'a mut LinkStats,
}

impl PacketStore for LinkPackets<'_> {
    fn flow_hash(&self, packet: Packet, seed: u64) -> u64 {
        self.packets.flow_hash(packet.slot, seed)
    }

    fn host_hashes(&self, packet: Packet, seed: u64) -> [u64; 2] {
        self.packets.host_hashes(packet.slot, seed)
    }

    #[inline]
    fn mark(&mut self, packet: Packet) -> bool {
        let marked = self.packets.mark(packet.slot);
        self.stats.marked += u64::from(marked);
        marked
    }

    #[inline]
    fn drop(&mut self, packet: Packet) {
        self.packets.remove(packet.slot);
        self.stats.count_drop_by_queue(packet.bytes);
    }
}

impl Link {
    /// An idle link that is up. Its random draws come from `seed`. Give each link its own seed:
    /// [`stream_seed`](crate::rng::stream_seed) of the run's seed and the link's name.
    pub fn new(config: LinkConfig, seed: u64) -> Self {
        let rate = config.capacity.mean_rate();
        let shaper = Shaper::new(config.shaper, config.limit, rate, config.jitter_model);
        let express = Express::new(&config, Serialiser::new(rate));
        let outlet = match config.capacity {
            Capacity::Rate(_) => shaper.map(Outlet::Shaper),
            Capacity::Trace(trace) => Some(Outlet::Trace(Opportunities::new(trace))),
        };
        Link {
            express: express.filter(|_| outlet.is_none()),
            packets: Slab::default(),
            queue: Queue::new(config.discipline, config.limit, rate, seed),
            serialiser: Serialiser::new(rate),
            transmission: None,
            outlet: outlet.map(Box::new),
            propagation: DelayLine::new(config.jitter_model),
            delay: config.delay,
            jitter: Jitter::new(config.jitter, seed),
            loss: Loss::new(config.loss, seed),
            burst_loss: config.burst_loss.map(|config| GilbertElliott::new(config, seed)),
            loss_trace: config.loss_trace,
            mtu: config.mtu,
            schedule: Schedule::new(config.changes),
            down: false,
            stats: LinkStats::default(),
        }
    }

    /// Use the general form from the start, before packets enter.
    pub(crate) fn use_general_form(&mut self) {
        self.leave_express(Instant::ZERO);
    }

    /// Change the link at `now`, in addition to its scheduled changes.
    pub fn handle_change(&mut self, now: Instant, change: LinkChange) {
        self.catch_up(now);
        self.leave_express(now);
        self.apply(now, change);
    }

    /// Add a scheduled change whose time lies ahead, as if it had been in the link's configuration.
    pub(crate) fn schedule(&mut self, change: ScheduledChange) {
        self.schedule.add(change);
    }

    /// The largest packet that the link takes; `None` if it takes any.
    pub fn mtu(&self) -> Option<Mtu> {
        self.mtu
    }

    /// Count a packet that exceeds the MTU, and drop it.
    pub(crate) fn drop_too_big(&mut self, packet: &IpPacket) {
        let bytes = packet.wire_len() as u64;
        self.stats.packets_in += 1;
        self.stats.bytes_in += bytes;
        self.stats.dropped_too_big += 1;
        self.stats.bytes_dropped += bytes;
    }

    /// The counters at the last call with a time.
    pub fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// Packets in the queue, or in front of a shaper's gate, at the last call with a time. For the
    /// current number, call [`handle_timeout`](Node::handle_timeout) first.
    pub fn queue_packets(&self) -> u64 {
        match (&self.express, self.shaper()) {
            (Some(express), _) => express.packets_waiting(),
            (None, Some(shaper)) => shaper.packets(),
            (None, None) => self.queue.packets() as u64,
        }
    }

    /// Bytes in the queue at the last call with a time.
    pub fn queue_bytes(&self) -> u64 {
        match (&self.express, self.shaper()) {
            (Some(express), _) => express.bytes_waiting(),
            (None, Some(shaper)) => shaper.bytes(),
            (None, None) => self.queue.bytes(),
        }
    }

    /// Time that a packet arriving at `now` would wait before its first bit is sent, at the current
    /// rate. The duration of a suspension is not included. With a shaper, the time to send all
    /// packets in front of its gate, and to fill its bucket.
    pub fn queueing_delay(&self, now: Instant) -> Duration {
        let rate = self.serialiser.rate();
        let in_transmission = match (self.partly_sent(), &self.express) {
            (_, Some(express)) => express.leaves_at().saturating_since(now),
            (Some(partly_sent), None) => rate.time_for(ByteCount::new(partly_sent.bytes_left)),
            (None, None) if self.transmission.is_some() || self.shaper().is_some() => {
                Duration::from_nanos(self.serialiser.work_left(now) / rate.as_bits_per_second())
            }
            (None, None) => Duration::ZERO,
        };
        in_transmission + rate.time_for(ByteCount::new(self.queue_bytes()))
    }

    /// Packets inside the link: in the queue, in transmission, or propagating and not yet
    /// collected.
    pub fn packets_inside(&self) -> u64 {
        let inside = self.express.as_ref().map_or(self.packets.len(), Express::len);
        inside as u64
    }

    /// The packets inside the link and their places, at the last call with a time. Those that wait
    /// come first, in the order in which they leave.
    pub fn packets(&self) -> impl Iterator<Item = (PacketPlace, &IpPacket)> + '_ {
        let gate = self.shaper().into_iter().flat_map(Shaper::waiting);
        let waiting = self.queue.waiting().map(|packet| packet.slot).chain(gate);
        let waiting = waiting.enumerate().map(|(ahead, slot)| (PacketPlace::Queue { ahead }, slot));
        let partly = self.partly_sent().map(|sent| {
            let bytes_left = sent.bytes_left.min(u64::from(u32::MAX)) as u32;
            (PacketPlace::Opportunity { bytes_left }, sent.packet.slot)
        });
        let sending = self.transmission.map(|Transmission { packet, delivery }| {
            (
                PacketPlace::Transmission { left_at: self.serialiser.free_at(), delivery },
                packet.slot,
            )
        });
        let gone = self.propagation.iter();
        let gone = gone.map(|(delivery, slot)| (PacketPlace::Propagation { delivery }, slot));
        let all = waiting.chain(partly).chain(sending).chain(gone);
        let all = all.filter_map(|(place, slot)| Some((place, self.packets.get(slot)?)));
        self.express.iter().flat_map(Express::packets).chain(all)
    }

    /// The current rate, or the mean rate of a trace.
    pub fn rate(&self) -> Rate {
        self.serialiser.rate()
    }

    /// The current delay, without jitter.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Returns `true` if the link is up.
    pub fn is_up(&self) -> bool {
        !self.down
    }

    /// Returns `true` if the transmitter is suspended.
    pub fn is_suspended(&self) -> bool {
        self.serialiser.is_suspended()
    }

    /// State of the transmitter at `now`, the time of the last call with a time. A token bucket counts
    /// as busy until it is full again, so the busy time accounts for all bytes sent.
    pub fn occupancy(&self, now: Instant) -> Occupancy {
        if let Some(express) = &self.express {
            let idle = Occupancy::Idle { since: express.leaves_at() };
            return if express.is_sending() { Occupancy::Busy } else { idle };
        }
        let waits = self.queue.packets() > 0 || self.partly_sent().is_some();
        let paces = |shaper: &Shaper| shaper.is_busy() || self.serialiser.free_at() > now;
        if self.down || self.is_suspended() {
            Occupancy::Unavailable
        } else if self.transmission.is_some() || waits || self.shaper().is_some_and(paces) {
            Occupancy::Busy
        } else {
            let emptied_at = self.opportunities().map(|each| each.emptied_at());
            Occupancy::Idle { since: emptied_at.unwrap_or_else(|| self.serialiser.free_at()) }
        }
    }

    /// Returns `true` if the link follows a trace.
    pub fn follows_trace(&self) -> bool {
        self.opportunities().is_some()
    }

    /// Bytes that the opportunities of a trace could have carried when the data ran out; 0 on a link
    /// with a rate.
    pub fn bytes_unfilled(&self) -> u64 {
        self.opportunities().map_or(0, Opportunities::unfilled)
    }

    /// Capacity of the link from `from` until `until`, at its present rate or with the
    /// opportunities of its trace, in [`WORK_PER_BYTE`]-ths of a byte.
    pub fn capacity_between(&self, from: Instant, until: Instant) -> u128 {
        match self.opportunities() {
            None => {
                let nanos = until.saturating_since(from).as_nanos();
                u128::from(nanos) * u128::from(self.rate().as_bits_per_second())
            }
            Some(opportunities) => {
                let opportunities = opportunities.trace().opportunities_between(from, until);
                u128::from(opportunities) * u128::from(OPPORTUNITY_BYTES * WORK_PER_BYTE)
            }
        }
    }

    /// Execute all departures and changes that are due by `now`, in chronological order.
    #[inline]
    fn catch_up(&mut self, now: Instant) {
        if let Some(express) = &mut self.express {
            let change = self.schedule.next_at();
            if change > now {
                return express.catch_up(now);
            }
            self.leave_express(change);
        }
        self.catch_up_in_stages(now);
    }

    fn catch_up_in_stages(&mut self, now: Instant) {
        loop {
            let departure = self.departure();
            let change = self.schedule.next_at();
            let next = departure.min(change);
            if next > now || next == Instant::FAR_FUTURE {
                return;
            }
            if departure <= change {
                self.depart(departure);
            } else if let Some(scheduled) = self.schedule.take() {
                self.apply(scheduled.at, scheduled.change);
            }
        }
    }

    /// Go on in the general form at `now`.
    #[cold]
    fn leave_express(&mut self, now: Instant) {
        let Some(mut express) = self.express.take() else { return };
        express.catch_up(now);
        let stages = express.into_stages();
        let Link { packets, propagation, .. } = self;
        let mut store = |scheduled: Scheduled| {
            let Scheduled { packet, number, bytes, .. } = scheduled;
            Packet { number, slot: packets.insert(packet), bytes }
        };
        for (scheduled, delivery) in stages.propagating {
            propagation.push(store(scheduled), delivery);
        }
        self.transmission = stages
            .in_transmission
            .map(|(scheduled, delivery)| Transmission { packet: store(scheduled), delivery });
        for packet in stages.waiting.into_iter().map(store).collect::<Vec<_>>() {
            let fits = self.enqueue(now, packet);
            debug_assert!(fits, "it had room before");
        }
        self.serialiser = stages.serialiser;
    }

    /// The end of the current transmission, or when the outlet sends next; [`Instant::FAR_FUTURE`] if
    /// there is nothing to send.
    #[inline]
    fn departure(&self) -> Instant {
        match (&self.transmission, &self.outlet) {
            (Some(_), _) => self.serialiser.free_at(),
            (None, None) => Instant::FAR_FUTURE,
            (None, Some(outlet)) => self.next_use(outlet),
        }
    }

    /// The next opportunity, if there is data to send, or when the shaper lets a packet pass;
    /// [`Instant::FAR_FUTURE`] otherwise.
    #[cold] // Only as seen from a plain link, which is not to pay for this one.
    fn next_use(&self, outlet: &Outlet) -> Instant {
        match outlet {
            Outlet::Shaper(shaper) => shaper.opens_at(&self.serialiser),
            Outlet::Trace(opportunities) => {
                let waiting = opportunities.partly_sent().is_some() || self.queue.packets() > 0;
                if waiting && !self.serialiser.is_suspended() {
                    opportunities.next_at()
                } else {
                    Instant::FAR_FUTURE
                }
            }
        }
    }

    fn opportunities(&self) -> Option<&Opportunities> {
        match self.outlet.as_deref() {
            Some(Outlet::Trace(opportunities)) => Some(opportunities),
            Some(Outlet::Shaper(_)) | None => None,
        }
    }

    fn shaper(&self) -> Option<&Shaper> {
        match self.outlet.as_deref() {
            Some(Outlet::Shaper(shaper)) => Some(shaper),
            Some(Outlet::Trace(_)) | None => None,
        }
    }

    /// The packet that opportunities have sent in part.
    fn partly_sent(&self) -> Option<PartlySent> {
        self.opportunities().and_then(Opportunities::partly_sent)
    }

    /// Complete the current transmission at `now` and start the next one. With an outlet, send what
    /// it sends at `now`.
    fn depart(&mut self, now: Instant) {
        if self.outlet.is_some() {
            return self.use_outlet(now);
        }
        if let Some(Transmission { packet, delivery }) = self.transmission.take() {
            self.propagation.push(packet, delivery);
        }
        self.transmit_next(now);
    }

    #[cold] // As above.
    fn use_outlet(&mut self, now: Instant) {
        let Some(mut outlet) = self.outlet.take() else { return };
        match &mut *outlet {
            Outlet::Trace(opportunities) => self.fill(now, opportunities),
            Outlet::Shaper(shaper) => self.pass(now, shaper),
        }
        self.outlet = Some(outlet);
    }

    /// Complete the current transmission, or let the next packet pass the shaper's gate.
    fn pass(&mut self, now: Instant, shaper: &mut Shaper) {
        if let Some(Transmission { packet, delivery }) = self.transmission.take() {
            return self.propagation.push(packet, delivery);
        }
        let Some(packet) = shaper.pass(now, &mut self.serialiser) else { return };
        if shaper.sends_at_once() {
            let delivery = self.shaped_delivery_of(packet, now, shaper);
            self.propagation.push(packet, delivery);
        } else {
            let delivery =
                self.shaped_delivery_of(packet, shaper.leaves_at(&self.serialiser), shaper);
            self.transmission = Some(Transmission { packet, delivery });
        }
    }

    /// When a packet is delivered that leaves the shaper at `left_at`.
    fn shaped_delivery_of(&self, packet: Packet, left_at: Instant, shaper: &Shaper) -> Instant {
        let delay = self.jitter.delay_of(packet.number, self.delay);
        self.propagation.admissible(left_at + shaper.delay_after(delay))
    }

    /// Send as many bytes as the next opportunities carry. Opportunities without data are wasted.
    fn fill(&mut self, now: Instant, opportunities: &mut Opportunities) {
        let mut bytes = opportunities.take();
        while bytes > 0 {
            let next = opportunities.partly_sent().or_else(|| {
                let packet = self.dequeue(now)?;
                Some(PartlySent { packet, bytes_left: u64::from(packet.bytes) })
            });
            let Some(PartlySent { packet, bytes_left }) = next else {
                return opportunities.run_empty(now, bytes);
            };
            let sent = bytes.min(bytes_left);
            bytes -= sent;
            let bytes_left = bytes_left - sent;
            if bytes_left > 0 {
                opportunities.set_partly_sent(Some(PartlySent { packet, bytes_left }));
            } else {
                opportunities.set_partly_sent(None);
                let delay = self.jitter.delay_of(packet.number, self.delay);
                self.propagation.push(packet, self.propagation.admissible(now + delay));
            }
        }
        if opportunities.partly_sent().is_none() && self.queue.packets() == 0 {
            opportunities.run_empty(now, 0);
        }
    }

    fn transmit_next(&mut self, now: Instant) {
        if let Some(packet) = self.dequeue(now) {
            self.transmit(now, packet);
        }
    }

    /// The next packet to send. Counts the packets that the discipline marks or drops on the way.
    #[inline(always)]
    fn dequeue(&mut self, now: Instant) -> Option<Packet> {
        let Link { packets, queue, stats, .. } = self;
        queue.dequeue(now, &mut LinkPackets { packets, stats })
    }

    #[inline]
    fn transmit(&mut self, now: Instant, packet: Packet) {
        self.serialiser.start(now, packet.bytes);
        self.transmission = Some(Transmission { packet, delivery: self.delivery_of(packet) });
    }

    /// When the packet in transmission is delivered, unless the link changes.
    fn delivery_of(&self, packet: Packet) -> Instant {
        let delay = self.jitter.delay_of(packet.number, self.delay);
        self.propagation.admissible(self.serialiser.free_at() + delay)
    }

    /// Send the arriving packet at once, enqueue it, or drop it.
    #[inline]
    fn accept(&mut self, now: Instant, packet: IpPacket, bytes: u32) {
        let number = self.stats.packets_in - 1;
        if let Some(express) = &mut self.express {
            match express.accept(now, number, packet, bytes) {
                true => self.note_queue(),
                false => self.stats.count_drop_by_queue(bytes),
            }
            return;
        }
        let packet = Packet { number, slot: self.packets.insert(packet), bytes };
        if self.outlet.is_some() {
            self.accept_for_outlet(now, packet);
        } else if self.transmission.is_none() && !self.serialiser.is_suspended() {
            self.transmit(now, packet);
        } else {
            self.enqueue_or_drop(now, packet);
        }
    }

    #[inline]
    fn enqueue_or_drop(&mut self, now: Instant, packet: Packet) {
        if self.enqueue(now, packet) {
            self.note_queue();
        } else {
            self.drop_by_queue(packet);
        }
    }

    /// The queue may be longer than ever.
    #[inline]
    fn note_queue(&mut self) {
        let (packets, bytes) = (self.queue_packets(), self.queue_bytes());
        self.stats.queue_packets_max = self.stats.queue_packets_max.max(packets);
        self.stats.queue_bytes_max = self.stats.queue_bytes_max.max(bytes);
    }

    fn drop_by_queue(&mut self, packet: Packet) {
        let Link { packets, stats, .. } = self;
        LinkPackets { packets, stats }.drop(packet);
    }

    #[cold] // As above.
    fn accept_for_outlet(&mut self, now: Instant, packet: Packet) {
        match self.outlet.as_deref_mut() {
            Some(Outlet::Shaper(shaper)) => {
                let delay = self.jitter.delay_of(packet.number, self.delay);
                let is_sending = self.transmission.is_some();
                if !shaper.enqueue(now, packet, delay, is_sending) {
                    return self.drop_by_queue(packet);
                }
                // The packet may leave at once.
                self.handle_timeout(now);
                self.note_queue();
            }
            Some(Outlet::Trace(opportunities)) => {
                // Past opportunities cannot carry this packet.
                opportunities.skip(now);
                self.enqueue_or_drop(now, packet);
            }
            None => {}
        }
    }

    #[inline]
    fn enqueue(&mut self, now: Instant, packet: Packet) -> bool {
        let Link { packets, queue, stats, .. } = self;
        queue.enqueue(now, packet, &mut LinkPackets { packets, stats })
    }

    /// Returns `true` if the arriving packet `number` is lost, at random or by the trace.
    fn is_lost(&mut self, number: u64) -> bool {
        let in_burst = self.burst_loss.as_mut().is_some_and(|channel| channel.loses(number));
        let in_trace = self.loss_trace.as_ref().is_some_and(|trace| trace.loses(number));
        in_burst || in_trace || self.loss.loses(number)
    }

    fn apply(&mut self, now: Instant, change: LinkChange) {
        if let Some(rate) = change.rate.filter(|_| !self.follows_trace()) {
            self.serialiser.set_rate(now, rate);
            self.queue.set_rate(rate);
            if let Some(Outlet::Shaper(shaper)) = self.outlet.as_deref_mut() {
                shaper.set_rate(rate);
            }
        }
        self.delay = change.delay.unwrap_or(self.delay);
        if let Some(jitter) = change.jitter {
            self.jitter.set_amount(jitter);
        }
        if let Some(loss) = change.loss {
            self.loss.set_probability(loss);
        }
        if let Some(state) = change.state {
            self.change_state(now, state);
        }
        if let Some(Transmission { packet, .. }) = self.transmission {
            let delivery = match self.shaper() {
                None => self.delivery_of(packet),
                Some(shaper) => {
                    self.shaped_delivery_of(packet, shaper.leaves_at(&self.serialiser), shaper)
                }
            };
            self.transmission = Some(Transmission { packet, delivery });
        }
    }

    fn change_state(&mut self, now: Instant, state: StateChange) {
        match state {
            StateChange::Up => self.down = false,
            StateChange::Down => {
                self.down = true;
                self.lose_everything(now);
            }
            StateChange::Suspend => self.serialiser.suspend(now),
            StateChange::Resume => {
                self.serialiser.resume(now);
                match self.outlet.as_deref_mut() {
                    Some(Outlet::Trace(opportunities)) => opportunities.skip(now),
                    Some(Outlet::Shaper(shaper)) => shaper.resume(now),
                    None if self.transmission.is_none() => self.transmit_next(now),
                    None => {}
                }
            }
        }
    }

    /// Drop all packets inside the link, except packets that were delivered but not yet collected.
    fn lose_everything(&mut self, now: Instant) {
        let Link { packets, queue, propagation, outlet, stats, .. } = self;
        let mut lose = |packet: Packet| {
            packets.remove(packet.slot);
            stats.dropped_down += 1;
            stats.bytes_dropped += u64::from(packet.bytes);
        };
        self.transmission.take().into_iter().for_each(|transmission| lose(transmission.packet));
        match outlet.as_deref_mut() {
            Some(Outlet::Trace(opportunities)) => {
                let partly_sent = opportunities.partly_sent().into_iter();
                partly_sent.for_each(|partly_sent| lose(partly_sent.packet));
                opportunities.set_partly_sent(None);
            }
            Some(Outlet::Shaper(shaper)) => shaper.clear(now, &mut lose),
            None => {}
        }
        queue.clear(now, &mut lose);
        propagation.clear(now, lose);
        self.serialiser.clear(now);
    }

    /// When the next packet could arrive.
    fn next_in_stages(&self) -> Option<Instant> {
        let deliveries = [
            self.propagation.next_due(),
            self.transmission.map(|transmission| transmission.delivery),
            self.earliest_from_queue(),
        ];
        deliveries.into_iter().flatten().min()
    }

    /// The earliest time at which a waiting packet could arrive, if it may be the next packet to
    /// arrive. This happens if jitter lets it overtake the packet in transmission, or if the outlet
    /// sends it next.
    #[inline]
    fn earliest_from_queue(&self) -> Option<Instant> {
        if self.outlet.is_some() {
            return self.earliest_from_outlet();
        }
        let may = self.propagation.reorders() && self.queue.packets() > 0;
        may.then(|| self.departure() + self.jitter.shortest(self.delay))
    }

    #[cold] // As above.
    fn earliest_from_outlet(&self) -> Option<Instant> {
        let departure = self.departure();
        let shortest = self.jitter.shortest(self.delay);
        let delay = self.shaper().map_or(shortest, |shaper| shaper.delay_after(shortest));
        (departure != Instant::FAR_FUTURE).then(|| departure + delay)
    }
}

impl Node for Link {
    #[inline]
    fn handle_packet(&mut self, now: Instant, packet: IpPacket) {
        self.catch_up(now);
        let bytes = packet.wire_len() as u32;
        self.stats.packets_in += 1;
        self.stats.bytes_in += u64::from(bytes);
        if self.down {
            self.stats.dropped_down += 1;
        } else if self.is_lost(self.stats.packets_in - 1) {
            self.stats.dropped_by_loss += 1;
        } else {
            return self.accept(now, packet, bytes);
        }
        self.stats.bytes_dropped += u64::from(bytes);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.catch_up(now);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<IpPacket> {
        self.catch_up(now);
        let (packet, bytes) = match &mut self.express {
            Some(express) => express.pop(now)?,
            None => {
                let packet = self.propagation.pop(now)?;
                (self.packets.remove(packet.slot), packet.bytes)
            }
        };
        self.stats.packets_delivered += 1;
        self.stats.bytes_delivered += u64::from(bytes);
        Some(packet)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        let delivery = match &self.express {
            Some(express) => express.next_due(),
            None => self.next_in_stages(),
        };
        let next = delivery.unwrap_or(Instant::FAR_FUTURE).min(self.schedule.next_at());
        (next != Instant::FAR_FUTURE).then_some(next)
    }
}
