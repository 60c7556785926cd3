//! The window that all loss-based algorithms share: slow start, growth by whole segments, halving,
//! undo. RFC 5681, RFC 3465, RFC 4015.

use super::{CongestionEvent, ExternalReduction, Start};

/// Congestion window and slow-start threshold in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    mss: u32,
    initial: u64,
    cwnd: u64,
    ssthresh: u64,
    /// Growth in bytes that does not amount to a whole segment yet.
    credit: f64,
    before_reduction: Option<(u64, u64)>,
}

/// RFC 5681 §3.1: ssthresh is at least two segments.
const MIN_SSTHRESH_SEGMENTS: u64 = 2;
/// Minimum for [`Window::shrink_to`]: two segments elicit an acknowledgement without delay.
const MIN_CWND_SEGMENTS: u64 = 2;

impl Window {
    /// The initial window, in slow start.
    pub fn new(start: &Start) -> Self {
        Window {
            mss: start.mss,
            initial: start.initial_window,
            cwnd: start.initial_window,
            ssthresh: u64::MAX,
            credit: 0.0,
            before_reduction: None,
        }
    }

    /// Segment size in bytes.
    pub fn mss(&self) -> u32 {
        self.mss
    }

    /// Congestion window in bytes.
    pub fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// Slow-start threshold in bytes.
    pub fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Returns `true` if the window is below the threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Leave slow start here.
    pub fn end_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    /// Shrink to `bytes`, in whole segments and at least two. The threshold does not change.
    pub fn shrink_to(&mut self, bytes: u64) {
        let floor = MIN_CWND_SEGMENTS * u64::from(self.mss);
        self.cwnd = self.cwnd.min(self.segments(bytes).max(floor));
        self.credit = 0.0;
    }

    /// Ensure that a later slow start reaches at least three quarters of the current window. RFC
    /// 2861 §3.1.
    pub fn remember_window(&mut self) {
        self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
    }

    /// Slow start: grow by the acknowledged bytes, up to the threshold. Returns the bytes left for
    /// congestion avoidance. RFC 5681 §3.1, counted in bytes as RFC 3465 allows.
    pub fn slow_start(&mut self, acked: u64) -> u64 {
        let grown = acked.min(self.ssthresh.saturating_sub(self.cwnd));
        self.cwnd += grown;
        acked - grown
    }

    /// Grow by `bytes`, usually a fraction of a segment; `bytes` may be negative. The window
    /// changes when the fractions add up to a whole segment.
    pub fn grow(&mut self, bytes: f64) {
        let mss = f64::from(self.mss);
        self.credit += bytes;
        while self.credit >= mss {
            self.credit -= mss;
            self.cwnd += u64::from(self.mss);
        }
        while self.credit <= -mss {
            self.credit += mss;
            self.cwnd = self.cwnd.saturating_sub(u64::from(self.mss)).max(u64::from(self.mss));
        }
    }

    /// Grow to `bytes`, rounded down to whole segments.
    pub fn rise_to(&mut self, bytes: u64) {
        self.cwnd = self.cwnd.max(self.segments(bytes));
    }

    /// Multiplicative decrease: set the threshold to `factor` × `basis` bytes.
    pub fn reduce(&mut self, basis: u64, factor: f64) {
        self.before_reduction = Some((self.cwnd, self.ssthresh));
        self.ssthresh = self.reduced(basis, factor);
        self.cwnd = self.ssthresh;
        self.credit = 0.0;
    }

    /// Multiplicative decrease because of marks. Nothing was lost, so there is nothing to undo. A
    /// window smaller than the minimum threshold does not grow to it.
    pub fn reduce_for_marks(&mut self, basis: u64, factor: f64) {
        let cwnd = self.cwnd;
        self.reduce(basis, factor);
        self.cwnd = self.cwnd.min(cwnd);
        self.before_reduction = None;
    }

    /// A timeout: shrink to one segment. The first of consecutive timeouts sets the threshold to
    /// `factor` × `basis` bytes. RFC 5681 §3.1.
    pub fn collapse(&mut self, basis: u64, factor: f64, first: bool) {
        if first {
            self.before_reduction = Some((self.cwnd, self.ssthresh));
            self.ssthresh = self.reduced(basis, factor);
        }
        self.cwnd = u64::from(self.mss);
        self.credit = 0.0;
    }

    /// Handle any event, for algorithms that have no state besides the window. A loss leaves
    /// `factor` of the outstanding data. RFC 5681 §3.1.
    pub fn on_event(&mut self, event: &CongestionEvent, factor: f64) {
        match *event {
            CongestionEvent::Recovery { flight_size, .. } => self.reduce(flight_size, factor),
            CongestionEvent::Marked { flight_size, .. } => {
                self.reduce_for_marks(flight_size, factor);
            }
            CongestionEvent::Timeout { flight_size, first, .. } => {
                self.collapse(flight_size, factor, first);
            }
            _ => {
                self.on_common_event(event);
            }
        }
    }

    /// Handle an event that all loss-based algorithms treat alike. Returns false for other events.
    pub fn on_common_event(&mut self, event: &CongestionEvent) -> bool {
        match *event {
            CongestionEvent::SynLost => self.cwnd = u64::from(self.mss),
            CongestionEvent::Undo => {
                if let Some((cwnd, ssthresh)) = self.before_reduction.take() {
                    self.cwnd = self.cwnd.max(cwnd);
                    self.ssthresh = ssthresh;
                }
            }
            CongestionEvent::Idle { idle, rto } => {
                // RFC 5681 §4.1 restarts from the initial window. Like Linux, and RFC 2861 §3.2,
                // halve the window once for each timeout that passed, but not below the initial
                // window.
                let restart = self.initial.min(self.cwnd);
                let periods = idle.as_nanos() / rto.as_nanos().max(1);
                self.remember_window();
                self.cwnd = (self.cwnd >> periods.min(63)).max(restart);
            }
            CongestionEvent::Underused { used } => {
                let used = used.max(self.initial);
                if used < self.cwnd {
                    self.remember_window();
                    self.cwnd = self.segments((self.cwnd + used) / 2);
                }
            }
            CongestionEvent::MssChanged { mss } => {
                self.initial = self.initial / u64::from(self.mss) * u64::from(mss);
                self.cwnd = (self.cwnd / u64::from(self.mss)).max(1) * u64::from(mss);
                self.mss = mss;
            }
            CongestionEvent::Recovery { .. }
            | CongestionEvent::Marked { .. }
            | CongestionEvent::Timeout { .. } => return false,
        }
        true
    }

    /// Reduce the window as a remedy requests.
    pub fn on_external_reduction(&mut self, reduction: ExternalReduction) {
        let (prior, mss) = (self.cwnd, u64::from(self.mss));
        self.cwnd = self.segments(prior / 2).max(mss);
        self.ssthresh = match reduction {
            ExternalReduction::HalveBoth => self.cwnd.max(MIN_SSTHRESH_SEGMENTS * mss),
            ExternalReduction::HalveKeepSlowStart if prior < self.ssthresh => self.ssthresh,
            ExternalReduction::HalveKeepUnset if self.ssthresh == u64::MAX => self.ssthresh,
            ExternalReduction::HalveKeepSlowStart | ExternalReduction::HalveKeepUnset => {
                self.segments(self.ssthresh / 2).max(MIN_SSTHRESH_SEGMENTS * mss)
            }
        };
        self.credit = 0.0;
    }

    fn reduced(&self, basis: u64, factor: f64) -> u64 {
        self.segments((basis as f64 * factor) as u64)
            .max(MIN_SSTHRESH_SEGMENTS * u64::from(self.mss))
    }

    /// `bytes` in whole segments, rounded down.
    fn segments(&self, bytes: u64) -> u64 {
        bytes - bytes % u64::from(self.mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::start;

    fn window(segments: u64) -> Window {
        Window::new(&start(segments * 1000))
    }

    #[test]
    fn slow_start_stops_at_the_threshold() {
        // RFC 5681 §3.1
        let mut window = window(10);
        window.reduce(24_000, 0.5);
        window.collapse(0, 0.5, false);
        assert_eq!(window.slow_start(5_000), 0);
        assert_eq!(window.slow_start(8_000), 2_000);
        assert_eq!(window.cwnd(), 12_000);
        assert!(!window.in_slow_start());
    }

    #[test]
    fn nsdi12_reduction_ends_slow_start_and_conext13_reduction_does_not() {
        let mut old = window(20);
        old.on_external_reduction(ExternalReduction::HalveBoth);
        assert_eq!((old.cwnd(), old.ssthresh()), (10_000, 10_000));
        let mut new = window(20);
        new.on_external_reduction(ExternalReduction::HalveKeepSlowStart);
        assert_eq!((new.cwnd(), new.ssthresh()), (10_000, u64::MAX));
        new.reduce(16_000, 0.5); // congestion avoidance with cwnd = ssthresh = 8 segments
        new.on_external_reduction(ExternalReduction::HalveKeepSlowStart);
        assert_eq!((new.cwnd(), new.ssthresh()), (4_000, 4_000));
    }

    #[test]
    fn the_reduction_of_0_88_halves_a_threshold_that_a_loss_has_set() {
        let mut window = window(20);
        window.on_external_reduction(ExternalReduction::HalveKeepUnset);
        assert_eq!((window.cwnd(), window.ssthresh()), (10_000, u64::MAX));
        window.collapse(16_000, 0.5, true); // slow start up to 8 segments
        window.on_external_reduction(ExternalReduction::HalveKeepUnset);
        assert_eq!((window.cwnd(), window.ssthresh()), (1_000, 4_000));
    }

    #[test]
    fn undo_restores_what_was_before() {
        // RFC 4015
        let mut window = window(20);
        window.reduce(20_000, 0.5);
        assert!(window.on_common_event(&CongestionEvent::Undo));
        assert_eq!((window.cwnd(), window.ssthresh()), (20_000, u64::MAX));
    }

    #[test]
    fn a_reduction_for_marks_is_not_undone_and_never_raises_the_window() {
        // RFC 3168 §6.1.2: half of 20 segments. One segment remains one, with the minimum
        // threshold.
        let mut window = window(20);
        window.reduce_for_marks(20_000, 0.5);
        window.on_common_event(&CongestionEvent::Undo);
        assert_eq!((window.cwnd(), window.ssthresh()), (10_000, 10_000));
        window.collapse(10_000, 0.5, true);
        window.reduce_for_marks(1_000, 0.5);
        assert_eq!((window.cwnd(), window.ssthresh()), (1_000, 2_000));
    }

    #[test]
    fn growth_happens_in_whole_segments() {
        let mut window = window(10);
        window.grow(999.0);
        assert_eq!(window.cwnd(), 10_000);
        window.grow(1.0);
        assert_eq!(window.cwnd(), 11_000);
        window.grow(-1_000.0);
        assert_eq!(window.cwnd(), 10_000);
    }
}
