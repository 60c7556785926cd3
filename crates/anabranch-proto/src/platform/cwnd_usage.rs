//! Whether the congestion window is in use.

use std::ops::Range;

use anabranch_wire::{Duration, Instant};

use super::{Cwnd, Growth, linux};

/// Record of the use of a subflow's congestion window.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CwndUsage {
    /// Nothing but the present.
    Present,
    /// The most that was outstanding.
    Recorded(linux::CwndUsage),
}

impl CwndUsage {
    /// Nothing has been sent.
    pub(crate) fn new(growth: Growth) -> Self {
        match growth {
            Growth::WhileFull(_) => CwndUsage::Present,
            Growth::OnceFull => CwndUsage::Recorded(linux::CwndUsage::default()),
        }
    }

    /// New data went out, and `outstanding` is what lies between SND.UNA and SND.NXT.
    pub(crate) fn on_sent(&mut self, now: Instant, outstanding: Range<u64>, cwnd: Cwnd) {
        if let CwndUsage::Recorded(usage) = self {
            usage.on_sent(now, outstanding, cwnd);
        }
    }

    /// Returns `true` if the congestion window limits the sender. `cwnd` is the window at the
    /// arrival of the acknowledgement.
    pub(crate) fn limits(&self, cwnd: Cwnd) -> bool {
        match self {
            CwndUsage::Present => cwnd.full,
            CwndUsage::Recorded(usage) => usage.limits(cwnd.bytes, cwnd.slow_start),
        }
    }

    /// The window is known to be right now.
    pub(crate) fn restart(&mut self, now: Instant) {
        if let CwndUsage::Recorded(usage) = self {
            usage.restart(now);
        }
    }

    /// The bytes in use, if the window has not limited the sender for `rto`. RFC 2861 §3.2.
    pub(crate) fn take_unused(&mut self, now: Instant, rto: Duration) -> Option<u64> {
        match self {
            CwndUsage::Present => None,
            CwndUsage::Recorded(usage) => usage.take_unused(now, rto),
        }
    }
}
