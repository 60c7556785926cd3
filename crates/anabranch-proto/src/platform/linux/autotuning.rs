//! Socket buffers that no program has requested a size for: Linux tunes them.

use anabranch_wire::{Duration, Instant};

use crate::platform::Tuning;
use crate::view::SubflowView;

impl Tuning {
    /// Bounds of Linux on a host with a few gigabytes of memory. Recent kernels have 32 MiB as the
    /// largest receive buffer.
    pub const DEFAULT: Tuning = Tuning {
        first_receive: 131_072,
        largest_receive: 6 << 20,
        largest_send: 4 << 20,
        spare_segments: 16,
    };
}

/// Memory of a subflow's send buffer: two congestion windows of `segments` segments, and at most
/// `largest` bytes.
pub(crate) fn send_memory(segments: u16, largest: u32) -> u64 {
    let segments = u64::from(segments).max(FEWEST_SEGMENTS);
    (2 * SEGMENT_MEMORY * segments).min(largest.into())
}

/// Memory of a socket buffer with a full segment, as the send buffer is reckoned
/// (`tcp_sndbuf_expand`). Seen with Linux 6.12 and 6.18. A kernel that reserves room for the longer
/// headers of wireless drivers has 4096 + 256.
const SEGMENT_MEMORY: u64 = 2048 + 256;
/// Most bytes sent at a time (`GSO_LEGACY_MAX_SIZE`).
const LARGEST_BURST: u64 = 1 << 16;
/// Segments for which there is always room (`TCP_INIT_CWND`).
const FEWEST_SEGMENTS: u64 = 10;
/// Bytes that a connection of Multipath TCP adds to the send buffers of its subflows
/// (`tcp_wmem[0]`, `__mptcp_sync_sndbuf`).
const SHARED_SEND: u64 = 4096;

/// Segments that Linux sends at a time: what pacing would send in a 1024th of a second, more on paths
/// of less than 16 ms, and at least `fewest` (`tcp_tso_autosize`). Pacing sends `paced_window` bytes in
/// a round-trip time.
pub(crate) fn segments_at_a_time(view: &SubflowView, paced_window: u64, fewest: u64) -> u64 {
    let paced = view.srtt.map_or(0, |srtt| {
        let nanoseconds = u128::from(srtt.as_nanos().max(1)) * 1024;
        u64::try_from(u128::from(paced_window) * 1_000_000_000 / nanoseconds).unwrap_or(u64::MAX)
    });
    let halvings = u32::try_from(view.min_rtt.as_micros() >> 9).unwrap_or(u32::MAX);
    let short = LARGEST_BURST.checked_shr(halvings).unwrap_or(0);
    (paced.saturating_add(short).min(LARGEST_BURST) / u64::from(view.mss.max(1))).max(fewest)
}

/// Send buffer of a Multipath TCP connection whose subflows have `subflows` bytes together.
pub(crate) fn shared_send_memory(subflows: u64) -> u64 {
    SHARED_SEND + subflows
}

/// Measures the data that the application reads in rounds of a round-trip time, and from that the
/// window that a receiver should offer: at least twice as much (`tcp_rcv_space_adjust`,
/// `mptcp_rcv_space_adjust`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadRounds {
    /// Arrival time of the last segment. An application that keeps up reads at this time.
    now: Instant,
    /// Start of the current round. The first one begins with the connection.
    since: Option<Instant>,
    /// Bytes that the application had read until then.
    before: u64,
    /// Round-trip time when it was last looked at.
    rtt: Duration,
    /// Most bytes read in a round.
    most_read: u64,
    /// [`Tuning::spare_segments`]
    spare_segments: u8,
}

/// Finding of [`ReadRounds`] after the application has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The last look was less than a round-trip time ago.
    TooSoon,
    /// The application has read no more than in the rounds before.
    Steady,
    /// The window should have this number of bytes.
    Grows(u64),
}

impl ReadRounds {
    pub(crate) fn new(tuning: &Tuning) -> Self {
        ReadRounds { spare_segments: tuning.spare_segments, ..ReadRounds::default() }
    }

    /// A segment of an open connection has arrived, be it that which opened the connection.
    pub(crate) fn note_arrival(&mut self, now: Instant) {
        self.now = now;
        self.since.get_or_insert(now);
    }

    /// Returns `true` if the application has read before.
    pub(crate) fn has_begun(&self) -> bool {
        self.rtt > Duration::ZERO
    }

    /// The application has read `read` bytes so far. `rtt` is the longest round-trip time of the
    /// subflows as the receiver measures it, `mss` their largest segment with timestamps alone.
    pub(crate) fn update(&mut self, read: u64, rtt: Duration, mss: u64) -> Reading {
        let elapsed = self.now.saturating_since(self.since.unwrap_or(self.now));
        if elapsed < self.rtt {
            return Reading::TooSoon;
        }
        self.rtt = rtt;
        if elapsed < rtt {
            return Reading::Steady;
        }
        self.since = Some(self.now);
        let (read, last) = (
            read - std::mem::replace(&mut self.before, read),
            self.most_read.max(FEWEST_SEGMENTS * mss),
        );
        if read <= last {
            return Reading::Steady;
        }
        self.most_read = read;
        // Room for a sender that doubles its rate, and for as much growth again.
        let window = 2 * read + u64::from(self.spare_segments) * mss;
        let growth = u128::from(window) * u128::from(read - last) / u128::from(last.max(1));
        let growth = u64::try_from(2 * growth).unwrap_or(u64::MAX);
        Reading::Grows(window.saturating_add(growth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::view;

    #[test]
    fn the_buffer_follows_what_the_application_reads_in_a_round_trip() {
        let mut rounds = ReadRounds::new(&Tuning::DEFAULT);
        let rtt = Duration::from_millis(100);
        let mut update = |ms, read| {
            rounds.note_arrival(Instant::ZERO + Duration::from_millis(ms));
            rounds.update(read, rtt, 1000)
        };
        assert_eq!(update(0, 1_000), Reading::Steady, "the connection has just opened");
        assert_eq!(update(99, 40_000), Reading::TooSoon);
        // 20,000 bytes, twice the initial window: 56,000 and twice the growth of 100 %.
        assert_eq!(update(100, 20_000), Reading::Grows(168_000));
        assert_eq!(update(200, 40_000), Reading::Steady, "no more than before");
        assert_eq!(update(300, 70_000), Reading::Grows(76_000 * 2));
    }

    #[test]
    fn later_kernels_spare_no_segments() {
        let mut rounds = ReadRounds::new(&Tuning { spare_segments: 0, ..Tuning::DEFAULT });
        let mut update = |ms, read| {
            rounds.note_arrival(Instant::ZERO + Duration::from_millis(ms));
            rounds.update(read, Duration::from_millis(60), 1448)
        };
        assert_eq!(update(0, 0), Reading::Steady);
        // Three blocks of 8 KiB, as in `mptcp_rcvbuf_grow`.
        assert_eq!(update(60, 24_576), Reading::Grows(49_152 + 2 * 34_270));
    }

    #[test]
    fn a_first_read_a_round_trip_after_the_handshake_ends_the_first_round() {
        let mut rounds = ReadRounds::new(&Tuning::DEFAULT);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        rounds.note_arrival(at(0));
        rounds.note_arrival(at(100));
        assert_eq!(rounds.update(1_000, Duration::from_millis(100), 1000), Reading::Steady);
        rounds.note_arrival(at(200));
        let grows = rounds.update(21_000, Duration::from_millis(100), 1000);
        assert_eq!(grows, Reading::Grows(168_000), "without what ended the round before");
    }

    #[test]
    fn two_segments_go_at_a_time_and_more_on_fast_or_short_paths() {
        let ms = Duration::from_millis;
        let of = |paced_window, srtt, min_rtt| {
            let view = SubflowView { srtt, min_rtt, mss: 1448, ..view(0, 1) };
            segments_at_a_time(&view, paced_window, 2)
        };
        assert_eq!(of(14_480, None, Duration::MAX), 2, "without a round-trip time");
        // 1.25 MB/s are 1220 bytes in a 1024th of a second, and 12.5 MB/s are 12,207.
        assert_eq!(of(125_000, Some(ms(100)), ms(100)), 2);
        assert_eq!(of(1_250_000, Some(ms(100)), ms(100)), 8);
        // Below 0.5 ms, a burst of 64 KiB has 45 segments; each 0.5 ms more halves it.
        assert_eq!(of(0, Some(ms(1)), Duration::from_micros(400)), 45);
        assert_eq!(of(0, Some(ms(1)), Duration::from_micros(600)), 22);
        assert_eq!(of(u64::MAX, Some(ms(1)), ms(100)), 45, "at the most");
    }

    #[test]
    fn the_send_buffer_holds_two_congestion_windows() {
        let largest = Tuning::DEFAULT.largest_send;
        assert_eq!(send_memory(1, largest), 46_080);
        assert_eq!(send_memory(100, largest), 460_800);
        assert_eq!(send_memory(u16::MAX, largest), u64::from(largest));
    }
}
