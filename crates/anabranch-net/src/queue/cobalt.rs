//! COBALT, the queue management of CAKE: CoDel, and BLUE for flows that do not respond to it. Piece of
//! CAKE (Høiland-Jørgensen, Täht, Morton, LANMAN 2018) §III-D, and sch_cake.c of Linux.

use anabranch_wire::{Duration, Instant};

/// sch_cake.c: steps of BLUE's drop probability, of 2³².
const BLUE_INCREASE: u32 = 1 << 24;
const BLUE_DECREASE: u32 = 1 << 20;

/// Parameters of COBALT at the present rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Acceptable sojourn time.
    pub(super) target: Duration,
    /// Time for which the sojourn time may exceed the target before packets are dropped.
    pub(super) interval: Duration,
    /// Transmission time of one and a half full-size packets. Four times that is always acceptable.
    pub(super) packet_time: Duration,
}

/// Decision about a packet that leaves the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Send,
    /// Mark the packet, or drop it if its sender does not support ECN.
    MarkOrDrop,
    Drop,
}

/// State of COBALT for one queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Cobalt {
    /// CoDel's number of drops, which the time between two of them follows from. It falls step by step
    /// after the queue has become short.
    count: u32,
    dropping: bool,
    /// Time of CoDel's next drop or step back. Without a count, the state is at rest from then on.
    next: Instant,
    /// BLUE's drop probability, of 2³², and the time of its last change.
    blue: u32,
    blue_changed: Instant,
}

impl Cobalt {
    /// A packet was dropped because the queue was the longest and there was no room.
    pub(super) fn overflow(&mut self, now: Instant, limits: &Limits) {
        if self.may_change_blue(now, limits) {
            self.blue = self.blue.saturating_add(BLUE_INCREASE);
            self.blue_changed = now;
        }
        self.dropping = true;
        self.next = now;
        self.count = self.count.max(1);
    }

    /// The queue was found empty.
    pub(super) fn empty(&mut self, now: Instant, limits: &Limits) {
        if self.blue > 0 && self.may_change_blue(now, limits) {
            self.blue = self.blue.saturating_sub(BLUE_DECREASE);
            self.blue_changed = now;
        }
        self.dropping = false;
        if self.count > 0 && self.next <= now {
            self.step_back(limits);
        }
    }

    /// Returns `true` if the state is that of a new queue, so that it may be forgotten.
    pub(super) fn is_at_rest(&self, now: Instant) -> bool {
        self.blue == 0 && self.count == 0 && self.next <= now
    }

    /// Judge a packet that leaves after waiting for `sojourn`. `draw` is uniform in [0, 2³²).
    pub(super) fn judge(
        &mut self,
        now: Instant,
        sojourn: Duration,
        draw: impl FnOnce() -> u32,
        limits: &Limits,
    ) -> Decision {
        let is_late = sojourn > limits.target.max(limits.packet_time * 4);
        let mut due = self.count > 0 && self.next <= now;
        if is_late {
            if !self.dropping {
                self.next = self.after(now, limits);
            }
            self.count = self.count.max(1);
        }
        self.dropping = is_late;
        let mut decision = Decision::Send;
        if due && self.dropping {
            decision = Decision::MarkOrDrop;
            self.count = self.count.saturating_add(1);
            self.next = self.after(self.next, limits);
        } else {
            while due {
                self.step_back(limits);
                due = self.count > 0 && self.next <= now;
            }
        }
        // Ignoring ECN is deliberate: the flow did not respond to it.
        if decision == Decision::Send && self.blue > 0 && draw() < self.blue {
            decision = Decision::Drop;
        }
        if self.count == 0 {
            self.next = now + limits.interval;
        } else if self.next < now && decision == Decision::Send {
            self.next = now;
        }
        decision
    }

    fn may_change_blue(&self, now: Instant, limits: &Limits) -> bool {
        now.saturating_since(self.blue_changed) > limits.target
    }

    fn step_back(&mut self, limits: &Limits) {
        self.count -= 1;
        self.next = self.after(self.next, limits);
    }

    /// As in CoDel, the interval shrinks with the square root of the number of drops.
    fn after(&self, from: Instant, limits: &Limits) -> Instant {
        let count = f64::from(self.count.max(1));
        from + Duration::from_secs_f64(limits.interval.as_secs_f64() / libm::sqrt(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        packet_time: Duration::from_micros(100),
    };

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn judge(cobalt: &mut Cobalt, now: u64, sojourn: u64) -> Decision {
        cobalt.judge(ms(now), Duration::from_millis(sojourn), || u32::MAX, &LIMITS)
    }

    #[test]
    fn a_standing_queue_is_dropped_from_at_a_growing_rate_after_one_interval() {
        // The first drop comes after 100 ms above target. The count is 2 then, so the next ones come
        // 100/√2, 100/√3 and 100/√4 ms later.
        let mut cobalt = Cobalt::default();
        let dropped: Vec<u64> =
            (50..500).filter(|now| judge(&mut cobalt, *now, 50) != Decision::Send).collect();
        assert_eq!(dropped[..4], [150, 221, 279, 329]);
    }

    #[test]
    fn drops_resume_sooner_if_the_queue_was_short_for_a_moment_only() {
        let mut cobalt = Cobalt::default();
        (0..400).for_each(|now| _ = judge(&mut cobalt, now, 50));
        // It drops each 45 ms by then. In 30 ms below target, nothing is due.
        (400..430).for_each(|now| _ = judge(&mut cobalt, now, 1));
        let next = (430..600).find(|now| judge(&mut cobalt, *now, 50) != Decision::Send);
        assert!(next.is_some_and(|next| (470..490).contains(&next)), "{next:?}");
        // In five seconds, the state steps back to rest.
        (600..5_600).for_each(|now| assert_eq!(judge(&mut cobalt, now, 1), Decision::Send));
        assert!(!cobalt.is_at_rest(ms(5_600)));
        assert!(cobalt.is_at_rest(ms(5_700)));
    }

    #[test]
    fn four_packets_may_always_wait() {
        // At 1 Mbit/s, a packet and a half take 18 ms.
        let limits = Limits { packet_time: Duration::from_millis(18), ..LIMITS };
        let mut cobalt = Cobalt::default();
        for now in 0..1_000 {
            let wait = Duration::from_millis(72);
            assert_eq!(cobalt.judge(ms(now), wait, || u32::MAX, &limits), Decision::Send);
        }
    }

    #[test]
    fn each_overflow_makes_blue_drop_more_and_each_empty_queue_less() {
        let mut cobalt = Cobalt::default();
        // Overflows within the target count once.
        for now in [10, 12, 20, 30] {
            cobalt.overflow(ms(now), &LIMITS);
        }
        assert_eq!(cobalt.blue, 3 * BLUE_INCREASE);
        let drop = |cobalt: &mut Cobalt, draw| {
            cobalt.judge(ms(31), Duration::ZERO, || draw, &LIMITS) == Decision::Drop
        };
        assert!(drop(&mut cobalt, 3 * BLUE_INCREASE - 1));
        assert!(!drop(&mut cobalt, 3 * BLUE_INCREASE));
        for step in 1..=3 * 16 {
            assert!(!cobalt.is_at_rest(ms(1_000)));
            cobalt.empty(ms(40 + 6 * step), &LIMITS);
        }
        assert_eq!(cobalt.blue, 0);
    }
}
