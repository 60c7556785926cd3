//! Pacing of a subflow, and the samples for congestion controls that model the path.

use anabranch_wire::Instant;

use super::Subflow;
use super::acknowledgement::{AckSummary, BeforeAck};
use super::rate_sampler::Transmission;
use crate::congestion::RateSample;
use crate::view::SubflowView;

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

    /// A segment with `bytes` bytes was sent, new or not.
    #[inline]
    pub(super) fn pace(&mut self, now: Instant, bytes: u64) {
        if self.congestion.is_paced() {
            self.pace_segment(now, bytes);
        }
    }

    #[cold]
    fn pace_segment(&mut self, now: Instant, bytes: u64) {
        let transmission = Transmission {
            order: self.board.last_order(),
            nothing_outstanding: self.board.has_only_a_new_record(),
            in_flight: self.board.segments_in_flight(),
            lost: self.board.marked_lost(),
        };
        if let Some(sampler) = self.congestion.sampler_mut() {
            sampler.on_sent(now, transmission);
        }
        let largest = self.segments_at_a_time(&self.view());
        self.congestion.pace(now, bytes, self.rtt.srtt(), largest);
    }

    /// Segments that the host sends at a time on this subflow, whose view is `view`.
    pub(crate) fn segments_at_a_time(&self, view: &SubflowView) -> u64 {
        let fewest = self.congestion.fewest_at_a_time();
        self.config.platform.segments_at_a_time(view, self.paced_window(), fewest)
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

    /// The subflow has nothing more to send. If it has room, the application limits it. Linux:
    /// `tcp_rate_check_app_limited`.
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
    pub(super) fn before_ack(&self) -> Option<BeforeAck> {
        self.congestion.models_path().then(|| BeforeAck {
            marked_lost: self.board.marked_lost(),
            in_flight: self.board.segments_in_flight(),
        })
    }

    /// Give the acknowledgement to a congestion control that models the path.
    #[cold]
    pub(super) fn model(&mut self, now: Instant, before: BeforeAck, summary: &AckSummary) {
        let lost = self.board.marked_lost();
        for (number, record) in self.board.newly_lost(lost - before.marked_lost) {
            self.congestion.on_segment_lost(now, record.order, number, lost);
        }
        let Some(deliveries) = self.congestion.finish_ack(now, lost) else { return };
        let min_rtt = self.rtt.min_rtt();
        let rate = deliveries.rate.filter(|rate| rate.interval >= min_rtt);
        let is_short = summary.delivered < u64::from(self.mss);
        let sample = RateSample {
            now,
            rate,
            acked: deliveries.acked,
            lost: lost - before.marked_lost,
            delivered: deliveries.delivered,
            lost_in_all: lost,
            delivered_at: deliveries.delivered_at,
            prior_in_flight: before.in_flight,
            in_flight: self.board.segments_in_flight(),
            rtt: summary.clean.map(|(_, newest)| now.saturating_since(newest)),
            may_be_delayed: is_short && rate.is_some_and(|rate| rate.segments == 1),
            min_rtt,
            srtt: self.rtt.srtt(),
            next_departure: deliveries.next_departure,
            phase: self.recovery.phase(),
            segment: self.advertised_mss(),
        };
        self.congestion.on_rate_sample(&sample);
    }
}
