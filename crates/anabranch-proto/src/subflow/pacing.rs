//! Pacing of a subflow, and the samples for congestion controls that model the path.

use anabranch_wire::Instant;

use super::Subflow;
use super::acknowledgement::AckSummary;
use crate::congestion::RateSample;

/// Losses and data in flight before an acknowledgement, in segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    marked_lost: u64,
    in_flight: u64,
}

impl Subflow {
    /// New data is about to be sent.
    #[inline]
    pub(super) fn before_transmission(&mut self, now: Instant) {
        if self.congestion.models_path() && self.board.segments_in_flight() == 0 {
            self.congestion.on_first_in_flight(now);
        }
    }

    /// A record is about to be sent again: its last transmission gives no sample.
    pub(super) fn replace_snapshot(&mut self, number: u64) {
        let order = self.board.get(number).map(|record| record.order);
        if let Some((sampler, order)) = self.congestion.sampler_mut().zip(order) {
            sampler.on_replaced(order);
        }
    }

    /// A segment with so many bytes was sent, new or not.
    #[inline]
    pub(super) fn pace(&mut self, now: Instant, bytes: u64) {
        if self.congestion.is_paced() {
            self.pace_segment(now, bytes);
        }
    }

    #[cold]
    fn pace_segment(&mut self, now: Instant, bytes: u64) {
        let nothing_before = self.board.len() == 1;
        let order = self.board.last_order();
        if let Some(sampler) = self.congestion.sampler_mut() {
            sampler.on_sent(now, order, nothing_before);
        }
        let (view, paced_window) = (self.view(), self.paced_window());
        let platform = self.config.platform;
        let largest = |fewest| platform.segments_at_a_time(&view, paced_window, fewest);
        self.congestion.pace(now, bytes, self.rtt.srtt(), largest);
    }

    /// The host has nothing more to send now, so the burst that began is over.
    #[inline]
    pub(crate) fn end_burst(&mut self, now: Instant) {
        self.congestion.end_burst(now);
    }

    /// Returns `true` if segments leave at a rate.
    #[inline]
    pub(crate) fn is_paced(&self) -> bool {
        self.congestion.is_paced()
    }

    /// Returns `true` if the next segment waits for its departure time.
    #[inline]
    pub(crate) fn waits_for_departure(&self) -> bool {
        self.congestion.waits_for_departure()
    }

    /// The application has written no more, and the subflow has room. draft-ietf-ccwg-bbr §4.1.2.4.
    pub(crate) fn on_application_limited(&mut self) {
        let in_flight = self.board.segments_in_flight();
        let has_room = self.cwnd_room(self.congestion.cwnd()) >= u64::from(self.mss);
        let none_lost = !self.board.has_lost();
        if let Some(sampler) = self.congestion.sampler_mut().filter(|_| has_room && none_lost) {
            sampler.on_application_limited(in_flight);
        }
    }

    /// State before an acknowledgement is processed, if congestion control models the path.
    #[inline]
    pub(super) fn before_ack(&self) -> Option<Before> {
        self.congestion.models_path().then(|| Before {
            marked_lost: self.board.marked_lost(),
            in_flight: self.board.segments_in_flight(),
        })
    }

    /// Give the acknowledgement to a congestion control that models the path.
    #[cold]
    pub(super) fn model(&mut self, now: Instant, before: Before, tally: &AckSummary) {
        let (min_rtt, segment) = (self.rtt.min_rtt(), self.advertised_mss());
        let Some(paced) = self.congestion.paced_mut() else { return };
        let next_departure = paced.pacer.next().max(now);
        let Some(sampler) = &mut paced.sampler else { return };
        let (acked, rate) = sampler.finish(now);
        let rate = rate.filter(|rate| rate.interval >= min_rtt);
        let is_short = tally.delivered < u64::from(self.mss);
        let sample = RateSample {
            now,
            rate,
            acked,
            lost: self.board.marked_lost() - before.marked_lost,
            delivered: sampler.delivered(),
            lost_in_all: self.board.marked_lost(),
            delivered_at: sampler.delivered_at(),
            prior_in_flight: before.in_flight,
            in_flight: self.board.segments_in_flight(),
            rtt: tally.clean.map(|(_, newest)| now.saturating_since(newest)),
            may_be_delayed: is_short && rate.is_some_and(|rate| rate.segments == 1),
            min_rtt,
            srtt: self.rtt.srtt(),
            next_departure,
            phase: self.recovery.phase(),
            segment,
        };
        self.congestion.on_rate_sample(&sample);
    }
}
