//! Counts of the data level's timeouts and probes, and the pauses that follow from them.

use anabranch_wire::{Duration, Instant};

use crate::platform::Pause;

/// State of the data-level timers: for data that stays unacknowledged, and for a window that stays
/// shut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DataRto {
    /// Expiries of the retransmission timer since the last progress.
    timeouts: u16,
    /// Number of the latest ones that expired while no subflow had anything outstanding.
    unexplained: u16,
    /// When the first timeout since the last progress was.
    since: Instant,
    /// Segments to be sent again at a time: data that subflows have acknowledged is not there.
    repeating: u16,
    /// Window probes since the last progress.
    probes: u16,
    /// Window probes since anything came from the peer.
    unanswered: u16,
    /// Consecutive window probes that the peer answered without a data sequence signal.
    optionless_probes: u16,
    /// Longest time to the next timer of a subflow when the scheduler was asked last, in ms.
    pending_ms: u32,
}

/// Longest pause between data-level retransmissions, and between window probes.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Expiries without progress after which the period is at least a retransmission timeout (this project:
/// Linux keeps a period of milliseconds for as long as a path is dead).
const MOST_PERIODS: u16 = 64;

impl DataRto {
    /// Expiries of the retransmission timer since the last progress.
    #[inline]
    pub(super) fn timeouts(&self) -> u32 {
        self.timeouts.into()
    }

    /// When the first timeout since the last progress was.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Something acceptable came from the peer.
    #[inline]
    pub(super) fn on_segment(&mut self) {
        self.unanswered = 0;
    }

    /// The longest time to the next timer of a subflow, now that the scheduler is asked.
    #[inline]
    pub(super) fn note_pending(&mut self, longest: Duration) {
        self.pending_ms = longest.as_millis() as u32;
    }

    /// Time until data is retransmitted at the data level, where `timeout` gives the retransmission
    /// timeout of the slowest subflow. RFC 8684 §3.3.6 and §4: data counts as delivered only when the
    /// data level acknowledges it. `only_data_fin`: the DATA_FIN alone is outstanding. It is sent again
    /// at each timeout, so the timer backs off.
    #[inline]
    pub(super) fn pause(
        &self,
        rule: Pause,
        only_data_fin: bool,
        timeout: impl Fn() -> Duration,
    ) -> Duration {
        let pause = match rule {
            Pause::PendingTimers { none } => {
                let pending = Duration::from_millis(self.pending_ms.into());
                let first = if self.pending_ms > 0 { pending } else { none };
                match if only_data_fin { self.timeouts } else { self.unexplained } {
                    0 | 1 if self.timeouts > MOST_PERIODS => first.max(timeout()),
                    0 | 1 => first,
                    expiries => first.max(timeout()) * (1 << (expiries - 1).min(16)),
                }
            }
            Pause::Timeouts => timeout() * 2 * (1 << self.timeouts.min(16)),
        };
        pause.min(LONGEST_PAUSE)
    }

    /// Time from the last window probe to the next one, with this retransmission timeout.
    pub(super) fn probe_pause(&self, timeout: Duration) -> Duration {
        (timeout * (1 << self.probes.min(16))).min(LONGEST_PAUSE)
    }

    /// Returns `true` if the pauses between window probes, which begin with this retransmission timeout,
    /// have doubled up to the `longest` timeout.
    pub(super) fn has_backed_off(&self, timeout: Duration, longest: Duration) -> bool {
        timeout * (1 << self.probes.min(16)) >= longest
    }

    /// DATA_ACK moved on.
    #[inline]
    pub(super) fn on_progress(&mut self) {
        (self.timeouts, self.probes, self.unexplained) = (0, 0, 0);
    }

    /// The peer has acknowledged everything.
    #[inline]
    pub(super) fn on_all_acknowledged(&mut self) {
        self.repeating = 0;
    }

    /// The peer lacked the data that it has now acknowledged, so it may lack the data after it as
    /// well. Returns the number of segments to send again.
    pub(super) fn widen_repetition(&mut self) -> u32 {
        self.repeating = self.repeating.saturating_mul(2);
        self.repeating.into()
    }

    /// The retransmission timer expired, with data `under_way` on a subflow or not. Returns the
    /// number of the latest expiries without.
    pub(super) fn on_expired(&mut self, under_way: bool) -> u32 {
        self.unexplained = if under_way { 0 } else { self.unexplained.saturating_add(1) };
        self.unexplained.into()
    }

    /// The reaction to the timeout is complete. Data that is not `under_way` is repeated.
    pub(super) fn begin_repetition(&mut self, under_way: bool) {
        self.repeating = u16::from(!under_way);
    }

    /// The timeout counts.
    pub(super) fn count_timeout(&mut self, now: Instant) {
        if self.timeouts == 0 {
            self.since = now;
        }
        self.timeouts = self.timeouts.saturating_add(1);
    }

    /// The window probes since the last progress.
    pub(super) fn probes(&self) -> u32 {
        self.probes.into()
    }

    /// Another window probe is sent. `silent`: no data sequence signal has arrived since the last
    /// one. Returns the number of probes in a row that the peer has answered without one.
    pub(super) fn on_probe(&mut self, silent: bool) -> u16 {
        let is_optionless = self.probes > 0 && self.unanswered == 0 && silent;
        self.optionless_probes =
            if is_optionless { self.optionless_probes.saturating_add(1) } else { 0 };
        self.probes = self.probes.saturating_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
        self.optionless_probes
    }

    /// Window probes since anything came from the peer.
    pub(super) fn unanswered(&self) -> u32 {
        self.unanswered.into()
    }
}
