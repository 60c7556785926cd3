//! Timestamps: this host's clock in milliseconds, and what is known of the peer's. RFC 7323.

use anabranch_wire::{Duration, Instant, Timestamps};

/// RFC 7323 §5.5: a timestamp that is older than this says nothing any more.
const PAWS_EXPIRY: Duration = Duration::from_secs(24 * 24 * 3600);
/// Echoes of this host's timestamps that are older than this are no measurement, in milliseconds.
const LONGEST_ECHO_MS: u32 = 1 << 20;

#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Added to the time in milliseconds.
    offset: u32,
    /// TS.Recent.
    recent: Option<Recent>,
    /// Last.ACK.sent.
    last_ack_sent: u64,
    /// The last echo that came with data.
    last_echo: Option<u32>,
    /// The round-trip time from such echoes, smoothed.
    receive_rtt: Option<Duration>,
}

/// The peer's last timestamp, and when it was taken.
#[derive(Clone, Copy, Debug)]
struct Recent {
    value: u32,
    at: Instant,
}

impl Clock {
    pub(super) fn new(offset: u32) -> Self {
        Clock { offset, recent: None, last_ack_sent: 0, last_echo: None, receive_rtt: None }
    }

    /// A cookie decides the offset. What the peer has said stays.
    pub(super) fn set_offset(&mut self, offset: u32) {
        self.offset = offset;
    }

    /// What the clock shows.
    #[inline]
    pub(super) fn value(&self, now: Instant) -> u32 {
        (now.as_millis() as u32).wrapping_add(self.offset)
    }

    /// What a segment says that goes out.
    #[inline]
    pub(super) fn stamp(&self, now: Instant) -> Timestamps {
        Timestamps { value: self.value(now), echo: self.recent.map_or(0, |recent| recent.value) }
    }

    /// RFC 7323 §5.3: does the segment repeat what came long ago (PAWS)?
    #[inline]
    pub(super) fn is_old(&self, now: Instant, timestamps: Timestamps) -> bool {
        self.recent.is_some_and(|recent| {
            (timestamps.value.wrapping_sub(recent.value) as i32) < 0
                && now.saturating_since(recent.at) < PAWS_EXPIRY
        })
    }

    /// The peer's SYN came.
    pub(super) fn begin(&mut self, now: Instant, timestamps: Timestamps) {
        self.recent = Some(Recent { value: timestamps.value, at: now });
    }

    /// A segment came that begins at receive offset `start`. RFC 7323 §4.3.
    #[inline]
    pub(super) fn take(&mut self, now: Instant, start: i64, timestamps: Timestamps) {
        if start <= self.last_ack_sent as i64 {
            self.recent = Some(Recent { value: timestamps.value, at: now });
        }
    }

    /// An acknowledgement up to receive offset `ack` goes out.
    #[inline]
    pub(super) fn acknowledged(&mut self, ack: u64) {
        self.last_ack_sent = ack;
    }

    /// Time since this host sent the timestamp that the peer echoes: at least a millisecond, and
    /// `None` if the echo is too old to be a measurement.
    #[inline]
    pub(super) fn since_echo(&self, now: Instant, timestamps: Timestamps) -> Option<Duration> {
        let elapsed = self.value(now).wrapping_sub(timestamps.echo);
        (elapsed < LONGEST_ECHO_MS).then(|| Duration::from_millis(u64::from(elapsed.max(1))))
    }

    /// The round-trip time as the receiver of data sees it, from timestamps that come back: one
    /// sample for each that is new. `full`: the sender will hardly have paused before the segment.
    #[inline]
    pub(super) fn take_receive_rtt(&mut self, now: Instant, timestamps: Timestamps, full: bool) {
        let news = self.last_echo.replace(timestamps.echo) != Some(timestamps.echo);
        if news
            && full
            && let Some(sample) = self.since_echo(now, timestamps)
        {
            let smoothed = self.receive_rtt.map_or(sample, |rtt| (rtt * 7 + sample) / 8);
            self.receive_rtt = Some(smoothed);
        }
    }

    #[inline]
    pub(super) fn receive_rtt(&self) -> Option<Duration> {
        self.receive_rtt
    }
}
