//! Delivery rate of a subflow. draft-cheng-iccrg-delivery-rate-estimation; Linux: `tcp_rate.c`.
//!
//! Only congestion controls that model the path need it, so only their subflows have a sampler.

use std::collections::VecDeque;

use anabranch_wire::Instant;

use super::scoreboard::Delivered;
use crate::congestion::{DeliveryRate, LostSegment};

/// Counts delivered segments, and remembers the count at each transmission.
#[derive(Debug)]
pub(super) struct RateSampler {
    /// Segments delivered so far.
    delivered: u64,
    /// Time of the last delivery, or of the transmission that found nothing outstanding.
    delivered_at: Instant,
    /// Transmission time of the segment that was acknowledged last.
    first_sent_at: Instant,
    /// The sender had nothing to send; samples count as limited by the application until this
    /// number of segments is delivered.
    limited_until: Option<u64>,
    /// Snapshots of the transmissions from number `base` on; `None` once they gave their sample.
    snapshots: VecDeque<Option<Snapshot>>,
    /// Number of the first transmission with a snapshot.
    base: u64,
    /// The acknowledgement being processed.
    current: Current,
}

/// A transmission of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    /// Number of the transmission.
    pub(super) order: u64,
    /// No data awaited an acknowledgement before it.
    pub(super) nothing_outstanding: bool,
    /// Segments in flight after it.
    pub(super) in_flight: u64,
    /// Segments deemed lost so far.
    pub(super) lost: u64,
}

/// State of the sampler when a segment was sent.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    app_limited: bool,
    /// Segments in flight after the transmission.
    in_flight: u64,
    /// Segments deemed lost before it.
    lost: u64,
}

/// Sample of the acknowledgement being processed.
#[derive(Clone, Copy, Debug, Default)]
struct Current {
    acked: u64,
    /// Snapshot, transmission time and end of the delivered segment that was sent last.
    newest: Option<(Snapshot, Instant, u64)>,
}

impl RateSampler {
    pub(super) fn new() -> Self {
        RateSampler {
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            limited_until: None,
            snapshots: VecDeque::new(),
            base: 0,
            current: Current::default(),
        }
    }

    /// A transmission is made.
    pub(super) fn on_sent(&mut self, now: Instant, transmission: Transmission) {
        let Transmission { order, nothing_outstanding, in_flight, lost } = transmission;
        if nothing_outstanding {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        if self.snapshots.is_empty() {
            self.base = order;
        }
        let snapshot = Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.limited_until.is_some(),
            in_flight,
            lost,
        };
        // Segments without data have numbers as well.
        self.snapshots.resize((order - self.base) as usize, None);
        self.snapshots.push_back(Some(snapshot));
    }

    /// The transmission number `order` was replaced by a retransmission.
    #[cold]
    pub(super) fn on_replaced(&mut self, order: u64) {
        self.take(order);
    }

    fn take(&mut self, order: u64) -> Option<Snapshot> {
        let place = usize::try_from(order.checked_sub(self.base)?).ok()?;
        let snapshot = self.snapshots.get_mut(place)?.take();
        while self.snapshots.front().is_some_and(Option::is_none) {
            self.snapshots.pop_front();
            self.base += 1;
        }
        snapshot
    }

    /// A segment was acknowledged, cumulatively or selectively.
    #[cold]
    pub(super) fn on_delivered(&mut self, record: &Delivered) {
        self.delivered += 1;
        self.current.acked += 1;
        let Some(snapshot) = self.take(record.order) else { return };
        let is_newest = self
            .current
            .newest
            .is_none_or(|(_, sent_at, end)| (record.sent_at, record.end) > (sent_at, end));
        if is_newest {
            self.current.newest = Some((snapshot, record.sent_at, record.end));
        }
    }

    /// The transmission number `order` is deemed lost. `lost` segments are deemed lost so far, with
    /// this one. Returns `None` if it had no snapshot.
    #[cold]
    pub(super) fn lost(
        &self,
        now: Instant,
        order: u64,
        number: u64,
        lost: u64,
    ) -> Option<LostSegment> {
        let place = usize::try_from(order.checked_sub(self.base)?).ok()?;
        let snapshot = (*self.snapshots.get(place)?)?;
        Some(LostSegment {
            now,
            number,
            delivered: self.delivered,
            in_flight: snapshot.in_flight,
            lost: lost - snapshot.lost,
            app_limited: snapshot.app_limited,
        })
    }

    /// The acknowledgement is processed, after which `lost` segments are deemed lost. Returns the
    /// segments that it delivered, and the delivery rate that it shows.
    pub(super) fn finish(&mut self, now: Instant, lost: u64) -> (u64, Option<DeliveryRate>) {
        if self.limited_until.is_some_and(|end| self.delivered > end) {
            self.limited_until = None;
        }
        let Current { acked, newest } = std::mem::take(&mut self.current);
        if acked > 0 {
            self.delivered_at = now;
        }
        let rate = newest.map(|(snapshot, sent_at, _)| {
            self.first_sent_at = sent_at;
            let sending = sent_at.saturating_since(snapshot.first_sent_at);
            let arriving = now.saturating_since(snapshot.delivered_at);
            DeliveryRate {
                segments: self.delivered - snapshot.delivered,
                interval: sending.max(arriving),
                prior_delivered: snapshot.delivered,
                app_limited: snapshot.app_limited,
                in_flight: snapshot.in_flight,
                lost: lost - snapshot.lost,
            }
        });
        (acked, rate)
    }

    /// The sender has room and nothing to send, with `in_flight` segments in flight.
    pub(super) fn on_application_limited(&mut self, in_flight: u64) {
        self.limited_until = Some(self.delivered + in_flight);
    }

    /// Segments delivered so far.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Time of the last delivery.
    pub(super) fn delivered_at(&self) -> Instant {
        self.delivered_at
    }

    /// Returns `true` if samples count as limited by the application.
    pub(super) fn is_application_limited(&self) -> bool {
        self.limited_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Duration;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn sent(order: u64, nothing_outstanding: bool) -> Transmission {
        Transmission { order, nothing_outstanding, in_flight: order + 1, lost: 0 }
    }

    fn record(order: u64, sent_at: Instant) -> Delivered {
        Delivered { len: 1000, end: 1000 * (order + 1), sent_at, order, retransmitted: false }
    }

    #[test]
    fn a_rate_covers_the_longer_of_sending_and_arriving() {
        // Ten segments are sent in 9 ms, and acknowledged in 18 ms.
        let mut sampler = RateSampler::new();
        for n in 0..10 {
            sampler.on_sent(at(100 + n), sent(n, n == 0));
        }
        let mut last = None;
        for n in 0..10 {
            sampler.on_delivered(&record(n, at(100 + n)));
            (_, last) = sampler.finish(at(200 + 2 * n), 0);
        }
        let last = last.expect("a sample");
        // The last one was sent before anything was delivered.
        assert_eq!((last.segments, last.interval), (10, Duration::from_millis(118)));
        assert_eq!((last.prior_delivered, last.app_limited), (0, false));
        sampler.on_sent(at(218), sent(10, true));
        sampler.on_delivered(&record(10, at(218)));
        let (acked, rate) = sampler.finish(at(318), 0);
        let rate = rate.expect("a sample");
        assert_eq!((acked, rate.segments, rate.interval), (1, 1, Duration::from_millis(100)));
        assert_eq!((sampler.delivered(), sampler.snapshots.len()), (11, 0));
    }

    #[test]
    fn samples_are_limited_by_the_application_until_the_gap_is_delivered() {
        let mut sampler = RateSampler::new();
        sampler.on_sent(at(0), sent(0, true));
        sampler.on_application_limited(1);
        sampler.on_sent(at(5), sent(1, false));
        sampler.on_delivered(&record(0, at(0)));
        assert_eq!(sampler.finish(at(100), 0).1.map(|rate| rate.app_limited), Some(false));
        assert!(sampler.is_application_limited());
        sampler.on_delivered(&record(1, at(5)));
        assert_eq!(sampler.finish(at(105), 0).1.map(|rate| rate.app_limited), Some(true));
        assert!(!sampler.is_application_limited());
    }

    #[test]
    fn only_the_last_transmission_of_a_segment_gives_a_sample() {
        let mut sampler = RateSampler::new();
        sampler.on_sent(at(0), sent(0, true));
        sampler.on_sent(at(1), sent(1, false));
        sampler.on_replaced(0);
        sampler.on_sent(at(50), sent(2, false));
        let resent = Delivered { order: 2, sent_at: at(50), ..record(0, at(0)) };
        sampler.on_delivered(&resent);
        let (_, rate) = sampler.finish(at(150), 0);
        assert_eq!(rate.map(|rate| rate.interval), Some(Duration::from_millis(150)));
        sampler.on_delivered(&record(1, at(1)));
        let (acked, _) = sampler.finish(at(151), 0);
        assert_eq!((acked, sampler.snapshots.len()), (1, 0));
    }
}
