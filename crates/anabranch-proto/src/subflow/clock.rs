//! Timestamps: this host's clock in milliseconds, and the peer's timestamps. RFC 7323.

use anabranch_wire::{Duration, Instant, Timestamps};

/// RFC 7323 §5.5: a timestamp older than this is meaningless.
const PAWS_EXPIRY: Duration = Duration::from_secs(24 * 24 * 3600);
/// Echoes of older timestamps than this, in milliseconds, give no sample.
const LONGEST_ECHO_MS: u32 = 1 << 20;

#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Offset of the clock from the time in milliseconds.
    offset: u32,
    /// TS.Recent.
    recent: Option<Recent>,
    /// Last.ACK.sent.
    last_ack_sent: u64,
    /// The last echo that arrived with data.
    last_echo: Option<u32>,
    /// Smoothed round-trip time from these echoes.
    receive_rtt: Option<Duration>,
}

/// The peer's last timestamp, and its time of arrival.
#[derive(Clone, Copy, Debug)]
struct Recent {
    value: u32,
    at: Instant,
}

impl Clock {
    pub(super) fn new(offset: u32) -> Self {
        Clock { offset, recent: None, last_ack_sent: 0, last_echo: None, receive_rtt: None }
    }

    /// Use the offset that follows from a cookie. The peer's timestamps stay.
    pub(super) fn set_offset(&mut self, offset: u32) {
        self.offset = offset;
    }

    /// The current value of the clock.
    #[inline]
    pub(super) fn value(&self, now: Instant) -> u32 {
        (now.as_millis() as u32).wrapping_add(self.offset)
    }

    /// The timestamps of a segment to send.
    #[inline]
    pub(super) fn stamp(&self, now: Instant) -> Timestamps {
        Timestamps { value: self.value(now), echo: self.recent.map_or(0, |recent| recent.value) }
    }

    /// Returns `true` if the segment is an old duplicate (PAWS). RFC 7323 §5.3.
    #[inline]
    pub(super) fn is_old(&self, now: Instant, timestamps: Timestamps) -> bool {
        self.recent.is_some_and(|recent| {
            (timestamps.value.wrapping_sub(recent.value) as i32) < 0
                && now.saturating_since(recent.at) < PAWS_EXPIRY
        })
    }

    /// Returns `true` if the segment left the peer later than the last segment that counted.
    pub(super) fn is_newer(&self, timestamps: Timestamps) -> bool {
        self.recent.is_some_and(|recent| timestamps.value.wrapping_sub(recent.value) as i32 > 0)
    }

    /// The peer's SYN arrived.
    pub(super) fn begin(&mut self, now: Instant, timestamps: Timestamps) {
        self.recent = Some(Recent { value: timestamps.value, at: now });
    }

    /// A segment arrived that begins at receive offset `start`. RFC 7323 §4.3.
    #[inline]
    pub(super) fn on_timestamps(&mut self, now: Instant, start: i64, timestamps: Timestamps) {
        if start <= self.last_ack_sent as i64 {
            self.recent = Some(Recent { value: timestamps.value, at: now });
        }
    }

    /// An acknowledgement up to receive offset `ack` was sent.
    #[inline]
    pub(super) fn acknowledged(&mut self, ack: u64) {
        self.last_ack_sent = ack;
    }

    /// Time since this host sent the echoed timestamp, at least a millisecond. `None` if the echo
    /// is too old to give a sample.
    #[inline]
    pub(super) fn since_echo(&self, now: Instant, timestamps: Timestamps) -> Option<Duration> {
        let elapsed = self.value(now).wrapping_sub(timestamps.echo);
        (elapsed < LONGEST_ECHO_MS).then(|| Duration::from_millis(u64::from(elapsed.max(1))))
    }

    /// Round-trip time as measured by the receiver of data, by echoed timestamps: one sample for
    /// each new echo. `full` is true if the sender has probably not paused before the segment.
    /// `takes_smaller`: [`takes_smaller_receive_rtt`](crate::platform::Platform).
    #[inline]
    pub(super) fn on_receive_rtt(
        &mut self,
        now: Instant,
        timestamps: Timestamps,
        full: bool,
        takes_smaller: bool,
    ) {
        let news = self.last_echo.replace(timestamps.echo) != Some(timestamps.echo);
        if news
            && full
            && let Some(sample) = self.since_echo(now, timestamps)
        {
            self.receive_rtt = Some(match self.receive_rtt {
                Some(rtt) if sample >= rtt || !takes_smaller => (rtt * 7 + sample) / 8,
                _ => sample,
            });
        }
    }

    #[inline]
    pub(super) fn receive_rtt(&self) -> Option<Duration> {
        self.receive_rtt
    }
}
