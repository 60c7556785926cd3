//! Bounds on rate and data in flight that losses set, in the long term and in the short term, and the
//! deliveries of a round trip from which they come.

use crate::congestion::bandwidth::Bandwidth;
use crate::congestion::{DeliveryRate, RateSample};

/// A round trip with losses reduces a bound to this percentage at most. Draft: `BBR.Beta`.
const BETA_PERCENT: u64 = 70;
/// Part of the long-term bound that is left to others, in per cent. Draft: `BBR.Headroom`.
const HEADROOM_PERCENT: u64 = 15;
/// Losses in per cent that are tolerated in a round trip. Draft: `BBR.LossThresh`.
const LOSS_PERCENT: u64 = 2;

/// Returns `true` if losses suggest that too much was in flight. Draft: `IsInflightTooHigh`.
pub(super) fn is_too_high(lost: u64, in_flight: u64) -> bool {
    lost * 100 > in_flight * LOSS_PERCENT
}

/// Segments in flight when losses passed the threshold: the last of `in_flight` segments was also the
/// last one of `lost`. Draft: `InflightAtLoss`.
pub(super) fn in_flight_at_loss(in_flight: u64, lost: u64) -> u64 {
    let (in_flight, lost) = (in_flight.saturating_sub(1), lost.saturating_sub(1));
    let prefix = (in_flight * LOSS_PERCENT).saturating_sub(lost * 100) / (100 - LOSS_PERCENT);
    in_flight + prefix
}

/// A value after a reduction by [`BETA_PERCENT`].
pub(super) fn reduced(value: u64) -> u64 {
    value * BETA_PERCENT / 100
}

/// The bounds; `None` is infinite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Rate, until the bandwidth is probed again. Draft: `BBR.bw_shortterm`.
    pub(super) bandwidth: Option<Bandwidth>,
    /// Segments in flight, until the bandwidth is probed again. Draft: `BBR.inflight_shortterm`.
    pub(super) in_flight: Option<u64>,
    /// Segments in flight in the long term. Draft: `BBR.inflight_longterm`.
    pub(super) long_term: Option<u64>,
}

impl Bounds {
    /// Forget the short-term bounds.
    pub(super) fn reset_short_term(&mut self) {
        (self.bandwidth, self.in_flight) = (None, None);
    }

    /// A round trip with losses ended, whose deliveries are `latest`. `bandwidth` and `cwnd` apply
    /// without short-term bounds. Draft: `InitLowerBounds`, `LossLowerBounds`.
    pub(super) fn lower(&mut self, latest: &Latest, bandwidth: Bandwidth, cwnd: u64) {
        let bandwidth = reduced(self.bandwidth.unwrap_or(bandwidth).0);
        let in_flight = reduced(self.in_flight.unwrap_or(cwnd));
        self.bandwidth = Some(latest.bandwidth.max(Bandwidth(bandwidth)));
        self.in_flight = Some(latest.delivered.max(in_flight));
    }

    /// The losses after `before` were spurious. Each bound returns at least to its earlier value.
    pub(super) fn undo(&mut self, before: Bounds) {
        self.bandwidth = larger(self.bandwidth, before.bandwidth);
        self.in_flight = larger(self.in_flight, before.in_flight);
        self.long_term = larger(self.long_term, before.long_term);
    }

    /// The long-term bound less some room for others. Draft: `InflightWithHeadroom`.
    pub(super) fn with_headroom(&self, fewest: u64) -> Option<u64> {
        let bound = self.long_term?;
        let headroom = (bound * HEADROOM_PERCENT / 100).max(1);
        Some(bound.saturating_sub(headroom).max(fewest))
    }
}

/// The larger one of two bounds.
fn larger<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.zip(other).map(|(one, other)| one.max(other))
}

/// Deliveries and losses of the present round trip. Draft: `BBR.bw_latest`, `BBR.inflight_latest`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latest {
    /// Largest delivery rate.
    pub(super) bandwidth: Bandwidth,
    /// Most segments delivered from the transmission of a segment to its acknowledgement.
    pub(super) delivered: u64,
    /// A loss was detected. Draft: `BBR.is_loss_in_round`.
    pub(super) has_loss: bool,
    /// The round trip ends when a segment sent after this number of deliveries is delivered.
    round_end: u64,
    /// The last acknowledgement ended the round trip. Draft: `BBR.loss_round_start`.
    pub(super) has_ended: bool,
}

impl Latest {
    /// A loss was detected after `delivered` deliveries. Returns `true` if it is the first one of
    /// the round trip. Draft: `NoteLoss`.
    pub(super) fn on_loss(&mut self, delivered: u64) -> bool {
        let is_first = !self.has_loss;
        if is_first {
            self.round_end = delivered;
        }
        self.has_loss = true;
        is_first
    }

    /// Draft: `UpdateLatestDeliverySignals`.
    pub(super) fn update(&mut self, sample: &RateSample, rate: &DeliveryRate) {
        self.bandwidth = self.bandwidth.max(Bandwidth::of(rate.segments, rate.interval));
        self.delivered = self.delivered.max(rate.segments);
        self.has_ended = rate.prior_delivered >= self.round_end;
        if self.has_ended {
            self.round_end = sample.delivered;
        }
    }

    /// If a round trip ended, the next one begins with this sample. Draft:
    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance(&mut self, rate: &DeliveryRate) {
        if self.has_ended {
            self.bandwidth = Bandwidth::of(rate.segments, rate.interval);
            self.delivered = rate.segments;
        }
    }

    /// Draft: `ResetCongestionSignals`.
    pub(super) fn reset(&mut self) {
        *self =
            Latest { round_end: self.round_end, has_ended: self.has_ended, ..Latest::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bandwidth(segments: u64) -> Bandwidth {
        Bandwidth::of(segments, anabranch_wire::Duration::from_secs(1))
    }

    #[test]
    fn more_than_two_per_cent_of_losses_are_too_many() {
        assert!(!is_too_high(2, 100));
        assert!(is_too_high(3, 100));
        assert!(!is_too_high(0, 0));
    }

    #[test]
    fn the_prefix_of_a_flight_without_too_many_losses() {
        // (0.02 · 199 - 0) / 0.98 = 4.06, and 0.02 · 99 - 2 < 0.
        assert_eq!(in_flight_at_loss(200, 1), 203);
        assert_eq!(in_flight_at_loss(100, 3), 99);
    }

    #[test]
    fn a_round_trip_with_losses_reduces_by_three_tenths_at_most() {
        let mut bounds = Bounds::default();
        let latest = Latest { bandwidth: bandwidth(90), delivered: 50, ..Latest::default() };
        bounds.lower(&latest, bandwidth(100), 100);
        assert_eq!(bounds.bandwidth, Some(bandwidth(90)));
        assert_eq!(bounds.in_flight, Some(70));
        bounds.lower(&latest, bandwidth(100), 100);
        assert_eq!(bounds.in_flight, Some(50));
    }

    #[test]
    fn an_undone_recovery_leaves_no_bound_below_what_it_was() {
        let before = Bounds { bandwidth: None, in_flight: Some(80), long_term: Some(120) };
        let mut bounds =
            Bounds { bandwidth: Some(bandwidth(9)), in_flight: Some(56), long_term: Some(130) };
        bounds.undo(before);
        assert_eq!(bounds, Bounds { bandwidth: None, in_flight: Some(80), long_term: Some(130) });
    }

    #[test]
    fn fifteen_per_cent_of_the_bound_are_left_to_others() {
        let bounds = Bounds { long_term: Some(100), ..Bounds::default() };
        assert_eq!(bounds.with_headroom(4), Some(85));
        let small = Bounds { long_term: Some(4), ..Bounds::default() };
        assert_eq!(small.with_headroom(4), Some(4));
        assert_eq!(Bounds::default().with_headroom(4), None);
    }
}
