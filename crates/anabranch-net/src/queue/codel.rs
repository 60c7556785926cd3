//! CoDel (controlled delay). RFC 8289.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::WithUnit;
use anabranch_wire::{Duration, Instant};

use super::{CheckQueue, DropTail, Packet, Timestamped};
use crate::units::{FULL_SIZE_PACKET, Rate};

/// Parameters of CoDel. The defaults are those of RFC 8289 §4.2 and §4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct CoDelConfig {
    /// Acceptable sojourn time.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Duration>"), schemars(extend("x-origin" = "RFC 8289 §4.3")))]
    pub target: Duration,
    /// Time for which the sojourn time may exceed the target before packets are dropped: a
    /// worst-case round-trip time.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Duration>"), schemars(extend("x-origin" = "RFC 8289 §4.2")))]
    pub interval: Duration,
}

impl Default for CoDelConfig {
    fn default() -> Self {
        CoDelConfig { target: TARGET, interval: INTERVAL }
    }
}

/// RFC 8289 §4.3.
const TARGET: Duration = Duration::from_millis(5);
/// RFC 8289 §4.2.
const INTERVAL: Duration = Duration::from_millis(100);

/// A drop-tail queue that also drops packets at its head while the sojourn time stays too long.
#[derive(Debug)]
pub(crate) struct CoDel {
    tail: Timestamped,
    control: ControlLaw,
}

impl CoDel {
    pub(crate) fn new(config: CoDelConfig, tail: DropTail) -> Self {
        CoDel { tail: Timestamped::new(tail), control: ControlLaw::new(config) }
    }

    pub(crate) fn tail(&self) -> &DropTail {
        self.tail.tail()
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.tail.set_rate(rate);
    }

    pub(crate) fn enqueue(&mut self, now: Instant, packet: Packet) -> bool {
        self.tail.enqueue(now, packet)
    }

    /// The next packet to send. `signal` receives each packet to drop, and returns `true` if it has
    /// marked the packet instead.
    pub(crate) fn dequeue(
        &mut self,
        now: Instant,
        signal: impl FnMut(Packet) -> bool,
    ) -> Option<Packet> {
        let take = || {
            let (packet, arrival) = self.tail.dequeue()?;
            Some(Head { packet, arrival, bytes_behind: self.tail.tail().bytes() })
        };
        self.control.dequeue(now, take, signal)
    }

    /// Pass all packets to `lose`, and leave the dropping state.
    pub(crate) fn clear(&mut self, lose: impl FnMut(Packet)) {
        self.tail.clear(lose);
        self.control.leave();
    }
}

/// The packet that a queue has just given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) packet: Packet,
    pub(crate) arrival: Instant,
    /// Bytes that wait behind it.
    pub(crate) bytes_behind: u64,
}

/// State of CoDel for one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControlLaw {
    config: CoDelConfig,
    /// When the sojourn time will have been above target for one interval; `None` while it is
    /// below.
    above_until: Option<Instant>,
    /// Time of the next drop; `None` outside the dropping state.
    drop_next: Option<Instant>,
    /// Time of the next drop in the current or previous dropping state.
    last_drop_next: Instant,
    /// Packets dropped in this dropping state, and the initial value of that count.
    count: u64,
    last_count: u64,
}

impl ControlLaw {
    pub(crate) fn new(config: CoDelConfig) -> Self {
        ControlLaw { config, ..ControlLaw::default() }
    }

    /// RFC 8289 §5.5: the next packet to send. `take` removes the head of the queue. `signal` receives
    /// each packet to drop. If it marks the packet instead, the packet is sent, as in Linux.
    pub(crate) fn dequeue(
        &mut self,
        now: Instant,
        mut take: impl FnMut() -> Option<Head>,
        mut signal: impl FnMut(Packet) -> bool,
    ) -> Option<Packet> {
        let (mut packet, mut may_drop) = self.judge(now, take());
        if self.drop_next.is_some() {
            if !may_drop {
                self.drop_next = None;
            }
            while let Some(at) = self.drop_next.filter(|at| *at <= now) {
                let marked = packet.is_some_and(&mut signal);
                self.count += 1;
                self.last_drop_next = self.next_drop(at);
                self.drop_next = Some(self.last_drop_next);
                if marked {
                    break;
                }
                (packet, may_drop) = self.judge(now, take());
                self.drop_next = self.drop_next.filter(|_| may_drop);
            }
        } else if may_drop {
            if !packet.is_some_and(&mut signal) {
                (packet, _) = self.judge(now, take());
            }
            self.begin_dropping(now);
        }
        packet
    }

    /// Count packets that were dropped for lack of room, so that the drop rate grows.
    pub(crate) fn count_drops(&mut self, packets: u64) {
        self.count += packets;
    }

    /// Leave the dropping state.
    pub(crate) fn leave(&mut self) {
        self.above_until = None;
        self.drop_next = None;
    }

    /// RFC 8289 §5.5: a dropping state that starts soon after the previous one resumes its drop
    /// rate.
    fn begin_dropping(&mut self, now: Instant) {
        let delta = self.count - self.last_count;
        let soon = now.saturating_since(self.last_drop_next) < self.config.interval * 16;
        self.count = if delta > 1 && soon { delta } else { 1 };
        self.last_count = self.count;
        self.last_drop_next = self.next_drop(now);
        self.drop_next = Some(self.last_drop_next);
    }

    /// RFC 8289 §3.2: the interval shrinks with the square root of the number of drops.
    fn next_drop(&self, from: Instant) -> Instant {
        let interval = self.config.interval.as_secs_f64() / libm::sqrt(self.count as f64);
        from + Duration::from_secs_f64(interval)
    }

    /// RFC 8289 §5.6: the packet at the head, and whether it may be dropped.
    fn judge(&mut self, now: Instant, head: Option<Head>) -> (Option<Packet>, bool) {
        let Some(Head { packet, arrival, bytes_behind }) = head else {
            self.above_until = None;
            return (None, false);
        };
        let sojourn = now.saturating_since(arrival);
        if sojourn < self.config.target || bytes_behind <= FULL_SIZE_PACKET {
            self.above_until = None;
            return (Some(packet), false);
        }
        let until = *self.above_until.get_or_insert(now + self.config.interval);
        (Some(packet), now >= until)
    }
}

impl Part for CoDelConfig {
    const NAME: &'static str = "codel";
    const SUMMARY: &'static str =
        "Controlled delay: drops packets while the sojourn time stays too long.";
    const SOURCE: &'static str = "RFC 8289";
}

impl CheckQueue for CoDelConfig {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::QueueLimit;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn codel() -> CoDel {
        let tail = DropTail::new(QueueLimit::Infinite, Rate::from_bits_per_second(8_000_000));
        CoDel::new(CoDelConfig::default(), tail)
    }

    fn packet(number: u64) -> Packet {
        Packet { number, slot: 0, bytes: 1_500 }
    }

    #[test]
    fn a_queue_below_target_drops_nothing() {
        let mut queue = codel();
        for n in 0..1_000 {
            assert!(queue.enqueue(ms(n), packet(n)));
            let out = queue.dequeue(ms(n + 4), |_| panic!("no packet may be dropped"));
            assert_eq!(out.map(|packet| packet.number), Some(n));
        }
    }

    #[test]
    fn a_standing_queue_is_dropped_from_at_a_growing_rate_after_one_interval() {
        // One packet per millisecond, each sent 50 ms after its arrival. RFC 8289 §3.2: the first
        // drop comes after 100 ms above target, then 100 ms later (count 1), then 100/√2, 100/√3.
        let mut queue = codel();
        let mut dropped = Vec::new();
        for n in 0..600 {
            queue.enqueue(ms(n), packet(n));
            if n >= 50 {
                queue.dequeue(ms(n), |_| {
                    dropped.push(n);
                    false
                });
            }
        }
        let first: Vec<u64> = dropped.iter().take(4).copied().collect();
        assert_eq!(first, [150, 250, 321, 379]);
    }

    #[test]
    fn markable_packets_are_marked_at_the_same_times_and_sent() {
        // RFC 3168 §5. As above, but every packet is sent.
        let mut queue = codel();
        let (mut marked, mut sent) = (Vec::new(), 0);
        for n in 0..600 {
            queue.enqueue(ms(n), packet(n));
            if n >= 50 {
                let out = queue.dequeue(ms(n), |packet| {
                    marked.push((n, packet.number));
                    true
                });
                assert_eq!(out.map(|packet| packet.number), Some(sent));
                sent += 1;
            }
        }
        assert_eq!(marked[..4], [(150, 100), (250, 200), (321, 271), (379, 329)]);
    }
}
