//! The congestion window of a subflow: its control, and what part of it is in use.

use std::ops::Range;

use anabranch_wire::{Duration, Instant};

use crate::config::ConnectionConfig;
use crate::congestion::{AckSample, CongestionControl, CongestionEvent, ExternalReduction, Start};
use crate::platform::{Cwnd, CwndUsage, Platform};
use crate::view::{Slot, SubflowView};

/// Congestion control, and the record of its use.
#[derive(Debug)]
pub(super) struct Congestion {
    control: Box<dyn CongestionControl>,
    usage: CwndUsage,
    /// Bytes that pacing would send in one round-trip time, as of the last acknowledgement.
    paced_window: u64,
    last_data_sent: Instant,
}

impl Congestion {
    pub(super) fn new(config: &ConnectionConfig, start: &Start) -> Self {
        Congestion {
            control: (config.congestion_control)(start),
            usage: CwndUsage::new(config.platform.growth),
            paced_window: 0,
            last_data_sent: Instant::ZERO,
        }
    }

    /// The congestion window in bytes.
    #[inline]
    pub(super) fn cwnd(&self) -> u64 {
        self.control.cwnd()
    }

    #[inline]
    pub(super) fn ssthresh(&self) -> u64 {
        self.control.ssthresh()
    }

    #[inline]
    pub(super) fn paced_window(&self) -> u64 {
        self.paced_window
    }

    #[inline]
    pub(super) fn update_pacing(&mut self, platform: &Platform, in_flight: u64) {
        self.paced_window = platform.paced_window(self.cwnd(), self.ssthresh(), in_flight);
    }

    #[inline]
    pub(super) fn notify(&mut self, event: &CongestionEvent, slot: Slot, views: &[SubflowView]) {
        self.control.on_congestion_event(event, slot.index(), views);
    }

    /// An acknowledgement may let the window grow.
    #[inline]
    pub(super) fn on_ack(&mut self, sample: &AckSample, slot: Slot, views: &[SubflowView]) {
        self.control.on_ack(sample, slot.index(), views);
    }

    pub(super) fn reduce(&mut self, reduction: ExternalReduction) {
        self.control.on_external_reduction(reduction);
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
