//! The congestion window of a subflow: its control, and what part of it is in use.

use std::ops::Range;

use anabranch_wire::{Duration, Instant};

use super::pacer::Pacer;
use super::rate_sampler::RateSampler;
use super::scoreboard::Delivered;
use crate::config::ConnectionConfig;
use crate::congestion::{
    AckSample, CongestionControl, CongestionEvent, DeliveryRate, ExternalReduction, RateSample,
    Start,
};
use crate::platform::{Cwnd, CwndUsage, Platform};
use crate::view::{Slot, SubflowView};

/// Congestion control, and the record of its use.
#[derive(Debug)]
pub(super) struct Congestion {
    control: Box<dyn CongestionControl>,
    /// Congestion window and slow-start threshold of the control.
    cwnd: u64,
    ssthresh: u64,
    usage: CwndUsage,
    /// Bytes that pacing would send in one round-trip time, as of the last acknowledgement.
    paced_window: u64,
    last_data_sent: Instant,
    /// Departure times and delivery rate, if the subflow is paced.
    paced: Option<Box<Paced>>,
}

/// Departure times of a paced subflow, and its delivery rate.
#[derive(Debug)]
struct Paced {
    pacer: Pacer,
    /// The delivery rate, for a control that models the path.
    sampler: Option<RateSampler>,
}

/// Deliveries of an acknowledgement, as a control that models the path counts them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deliveries {
    /// Segments that the acknowledgement delivered.
    pub(super) acked: u64,
    pub(super) rate: Option<DeliveryRate>,
    /// Segments delivered so far.
    pub(super) delivered: u64,
    pub(super) delivered_at: Instant,
    /// Earliest time at which pacing lets the next segment leave.
    pub(super) next_departure: Instant,
}

impl Congestion {
    pub(super) fn new(config: &ConnectionConfig, start: &Start) -> Self {
        let control = (config.congestion_control)(start);
        let models = control.models_path();
        let paced = (models || config.tcp.pacing).then(|| {
            Box::new(Paced { pacer: Pacer::new(), sampler: models.then(RateSampler::new) })
        });
        Congestion {
            cwnd: control.cwnd(),
            ssthresh: control.ssthresh(),
            control,
            usage: CwndUsage::new(config.platform.growth),
            paced_window: 0,
            last_data_sent: Instant::ZERO,
            paced,
        }
    }

    /// Returns `true` if segments leave at a rate.
    #[inline]
    pub(super) fn is_paced(&self) -> bool {
        self.paced.is_some()
    }

    /// Nothing can be added to the burst that began.
    #[inline]
    pub(super) fn end_burst(&mut self, now: Instant) {
        if let Some(paced) = &mut self.paced {
            paced.pacer.end_burst(now);
        }
    }

    /// An acknowledgement showed that the segment `number`, whose transmission was number `order`,
    /// is lost. `lost` segments are deemed lost so far.
    pub(super) fn on_segment_lost(&mut self, now: Instant, order: u64, number: u64, lost: u64) {
        let found = self.sampler_mut().and_then(|sampler| sampler.lost(now, order, number, lost));
        if let Some(lost) = found {
            self.control.on_segment_lost(&lost);
            self.cache_window();
        }
    }

    /// An acknowledgement is processed, and `lost` segments are deemed lost so far. Returns its
    /// deliveries if the control models the path.
    pub(super) fn finish_ack(&mut self, now: Instant, lost: u64) -> Option<Deliveries> {
        let Paced { pacer, sampler } = self.paced.as_deref_mut()?;
        let sampler = sampler.as_mut()?;
        let (acked, rate) = sampler.finish(now, lost);
        Some(Deliveries {
            acked,
            rate,
            delivered: sampler.delivered(),
            delivered_at: sampler.delivered_at(),
            next_departure: pacer.next().max(now),
        })
    }

    /// The delivery rate, for a control that models the path.
    #[inline]
    pub(super) fn sampler_mut(&mut self) -> Option<&mut RateSampler> {
        self.paced.as_mut()?.sampler.as_mut()
    }

    /// A segment was acknowledged, cumulatively or selectively.
    #[inline]
    pub(super) fn on_delivered(&mut self, record: &Delivered) {
        if let Some(sampler) = self.sampler_mut() {
            sampler.on_delivered(record);
        }
    }

    /// Returns `true` if the control models the path.
    #[inline]
    pub(super) fn models_path(&self) -> bool {
        self.paced.as_ref().is_some_and(|paced| paced.sampler.is_some())
    }

    /// A segment is about to be sent, and nothing is in flight.
    #[cold]
    pub(super) fn on_first_in_flight(&mut self, now: Instant) {
        if let Some(sampler) = self.paced.as_ref().and_then(|paced| paced.sampler.as_ref())
            && sampler.is_application_limited()
        {
            self.control.on_restart(now, sampler.delivered_at());
            self.cache_window();
        }
    }

    /// Returns `true` if the next segment waits for its departure time.
    #[inline]
    pub(super) fn waits_for_departure(&self) -> bool {
        self.paced.as_ref().is_some_and(|paced| paced.pacer.waits())
    }

    /// The control models the path: give it an acknowledgement.
    pub(super) fn on_rate_sample(&mut self, sample: &RateSample) {
        self.control.on_rate_sample(sample);
        self.cache_window();
    }

    /// Time at which the next segment may leave, if it waits for that; otherwise far in the future.
    #[inline]
    pub(super) fn departure(&self) -> Instant {
        self.paced.as_ref().map_or(Instant::FAR_FUTURE, |paced| paced.pacer.departure())
    }

    /// The next segment may leave.
    pub(super) fn depart(&mut self) {
        if let Some(paced) = &mut self.paced {
            paced.pacer.on_time();
        }
    }

    /// Segments that may always leave at once.
    pub(super) fn fewest_at_a_time(&self) -> u64 {
        self.control.fewest_at_a_time()
    }

    /// A segment was sent. A burst has at most `largest` segments.
    pub(super) fn pace(&mut self, now: Instant, bytes: u64, srtt: Option<Duration>, largest: u64) {
        let by_window = || bytes_a_second(self.paced_window, srtt);
        let rate = self.control.pacing_rate(srtt).unwrap_or_else(by_window);
        if let Some(paced) = &mut self.paced {
            paced.pacer.on_sent(now, bytes, rate, largest);
        }
    }

    /// The congestion window in bytes.
    #[inline]
    pub(super) fn cwnd(&self) -> u64 {
        self.cwnd
    }

    #[inline]
    pub(super) fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// The control has processed something: keep its window.
    #[inline]
    fn cache_window(&mut self) {
        (self.cwnd, self.ssthresh) = (self.control.cwnd(), self.control.ssthresh());
    }

    #[inline]
    pub(super) fn paced_window(&self) -> u64 {
        self.paced_window
    }

    #[inline]
    pub(super) fn update_pacing(
        &mut self,
        platform: &Platform,
        in_flight: u64,
        srtt: Option<Duration>,
    ) {
        self.paced_window = platform.paced_window(self.cwnd(), self.ssthresh(), in_flight);
        if self.paced.is_some() {
            self.use_own_rate(srtt);
        }
    }

    /// A control with a rate of its own decides what pacing sends in a round-trip time.
    #[cold]
    fn use_own_rate(&mut self, srtt: Option<Duration>) {
        if let Some(rate) = self.control.pacing_rate(srtt) {
            self.paced_window = bytes_in(rate, srtt.unwrap_or(Duration::ZERO));
        }
    }

    #[inline]
    pub(super) fn notify(&mut self, event: &CongestionEvent, slot: Slot, views: &[SubflowView]) {
        self.control.on_congestion_event(event, slot.index(), views);
        self.cache_window();
    }

    /// An acknowledgement may let the window grow.
    #[inline]
    pub(super) fn on_ack(&mut self, sample: &AckSample, slot: Slot, views: &[SubflowView]) {
        self.control.on_ack(sample, slot.index(), views);
        self.cache_window();
    }

    pub(super) fn reduce(&mut self, reduction: ExternalReduction) {
        self.control.on_external_reduction(reduction);
        self.cache_window();
    }

    /// Data was sent, new or not.
    #[inline]
    pub(super) fn on_data_sent(&mut self, now: Instant) {
        self.last_data_sent = now;
    }

    /// Time since data was sent.
    #[inline]
    pub(super) fn idle(&self, now: Instant) -> Duration {
        now.saturating_since(self.last_data_sent)
    }

    #[inline]
    pub(super) fn has_sent_at(&self, now: Instant) -> bool {
        self.last_data_sent == now
    }

    /// `outstanding` is what lies between SND.UNA and SND.NXT, after new data was sent or deferred.
    #[inline]
    pub(super) fn on_used(&mut self, now: Instant, outstanding: Range<u64>, cwnd: Cwnd) {
        self.usage.on_sent(now, outstanding, cwnd);
    }

    /// Returns `true` if the window limits the sender.
    #[inline]
    pub(super) fn limits(&self, cwnd: Cwnd) -> bool {
        self.usage.limits(cwnd)
    }

    /// The window was reduced because the sender had been idle.
    pub(super) fn restart(&mut self, now: Instant) {
        self.usage.restart(now);
    }

    /// The bytes in use, if the window has not limited the sender for `rto`.
    #[inline]
    pub(super) fn take_unused(&mut self, now: Instant, rto: Duration) -> Option<u64> {
        self.usage.take_unused(now, rto)
    }
}

/// Bytes in a round-trip time at a rate in bytes a second.
fn bytes_in(rate: u64, srtt: Duration) -> u64 {
    (u128::from(rate) * u128::from(srtt.as_nanos()) / 1_000_000_000) as u64
}

/// Rate in bytes a second if a round-trip time carries `bytes` bytes; 0 without a round-trip time.
fn bytes_a_second(bytes: u64, srtt: Option<Duration>) -> u64 {
    let nanoseconds = srtt.map_or(u64::MAX, |srtt| srtt.as_nanos().max(1));
    u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(nanoseconds)).unwrap_or(u64::MAX)
}
