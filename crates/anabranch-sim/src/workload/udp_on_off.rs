//! Competing UDP traffic: datagrams at a rate, always or during on periods.

use anabranch_net::units::Rate;
use anabranch_wire::{
    Datagram, Duration, Instant, Piece, SocketAddress, UDP_HEADER_BYTES, ip_header_bytes,
};

use super::Sampler;

/// Sends datagrams and expects no replies.
///
/// The time towards the next datagram counts only during on periods, and carries over from one to
/// the next. Each on period therefore sends exactly as many bytes as its length allows at the rate,
/// to within one datagram. The long-term rate does not drift. The first period is an on period.
#[derive(Clone, Debug)]
pub struct UdpOnOff {
    rate: Rate,
    packet_bytes: u64,
    /// Lengths of on and off periods in nanoseconds; `None` for always on.
    periods: Option<[Sampler; 2]>,
    source: SocketAddress,
    destination: SocketAddress,
    /// Number and start of the current on period.
    period: u64,
    began: Instant,
    /// Length of this on period in nanoseconds, and total length of all earlier ones.
    on: u64,
    on_before: u64,
    sent: u64,
    next_at: Instant,
}

impl UdpOnOff {
    /// Sends IP packets of `packet_bytes` bytes, including headers, from `source` to `destination`,
    /// at `rate` while on.
    ///
    /// # Panics
    /// If `packet_bytes` is too small for the headers.
    pub fn new(
        source: SocketAddress,
        destination: SocketAddress,
        rate: Rate,
        packet_bytes: u16,
        periods: Option<[Sampler; 2]>,
    ) -> Self {
        let headers = ip_header_bytes(source.address) + UDP_HEADER_BYTES;
        assert!(usize::from(packet_bytes) >= headers, "a packet has room for its headers");
        let mut traffic = UdpOnOff {
            rate,
            packet_bytes: u64::from(packet_bytes),
            periods,
            source,
            destination,
            period: 0,
            began: Instant::ZERO,
            on: periods.map_or(u64::MAX, |[on, _]| length(&on, 0)),
            on_before: 0,
            sent: 0,
            next_at: Instant::FAR_FUTURE,
        };
        traffic.plan();
        traffic
    }

    /// When the next datagram is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.next_at != Instant::FAR_FUTURE).then_some(self.next_at)
    }

    /// The next datagram that is due by `now`; `None` if there is none.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        if self.next_at > now {
            return None;
        }
        let headers = ip_header_bytes(self.source.address) + UDP_HEADER_BYTES;
        let len = self.packet_bytes - headers as u64;
        // The payload is always the same, and capture decoders do not mistake it for a known
        // protocol.
        let payload = Piece::pattern(0, len as u32).into();
        self.sent += 1;
        self.plan();
        let (source, destination) = (self.source, self.destination);
        Some(Datagram { source, destination, payload, ecn: 0 })
    }

    /// Compute when the next datagram is due, in this on period or in a later one.
    fn plan(&mut self) {
        let due = self.on_time_of(self.sent + 1);
        while due - self.on_before > self.on && self.began != Instant::FAR_FUTURE {
            self.next_period();
        }
        self.next_at = self.began + Duration::from_nanos(due - self.on_before);
    }

    fn next_period(&mut self) {
        if let Some([on, off]) = &self.periods {
            self.on_before = self.on_before.saturating_add(self.on);
            self.began +=
                Duration::from_nanos(self.on) + Duration::from_nanos(length(off, self.period));
            self.period += 1;
            self.on = length(on, self.period);
        }
    }

    /// On time in nanoseconds after which `packets` datagrams have been sent.
    fn on_time_of(&self, packets: u64) -> u64 {
        let bits = u128::from(packets) * u128::from(self.packet_bytes) * 8;
        let nanos = bits * 1_000_000_000 / u128::from(self.rate.as_bits_per_second());
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

/// Length of period number `period` in nanoseconds, at least one microsecond. Shorter periods would
/// only slow down the run.
fn length(sampler: &Sampler, period: u64) -> u64 {
    sampler.of(period).max(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Distribution;
    use crate::workload::testing::ms;

    /// 100-byte packets at 80 kbit/s: one every 10 ms of on time.
    fn traffic(periods: Option<[u64; 2]>) -> UdpOnOff {
        let end = SocketAddress::new([10, 0, 0, 1].into(), 9);
        let periods = periods.map(|periods| {
            periods.map(|millis| {
                Sampler::new(Distribution::Constant(Duration::from_millis(millis)), 1)
            })
        });
        UdpOnOff::new(end, end, "80kbit/s".parse().unwrap(), 100, periods)
    }

    /// Times of the first `count` datagrams in ms.
    fn times(mut traffic: UdpOnOff, count: usize) -> Vec<u64> {
        let mut next = || {
            let at = traffic.poll_timeout().unwrap();
            let datagram = traffic.poll_transmit(at).unwrap();
            assert_eq!((datagram.wire_len(), traffic.poll_transmit(at)), (100, None));
            at.as_nanos()
        };
        let nanos: Vec<u64> = (0..count).map(|_| next()).collect();
        assert!(nanos.iter().all(|at| at % 1_000_000 == 0));
        nanos.into_iter().map(|at| at / 1_000_000).collect()
    }

    #[test]
    fn a_source_that_is_always_on_keeps_its_rate() {
        assert_eq!(times(traffic(None), 5), [10, 20, 30, 40, 50]);
        let mut late = traffic(None);
        let caught_up = core::iter::from_fn(|| late.poll_transmit(ms(55))).count();
        assert_eq!((caught_up, late.poll_timeout()), (5, Some(ms(60))));
    }

    #[test]
    fn on_time_counts_across_off_periods() {
        // On at 0–25, 125–150, 250–275, ...: the third packet uses 5 ms of the first on period, and
        // is complete 5 ms into the second.
        assert_eq!(times(traffic(Some([25, 100])), 6), [10, 20, 130, 140, 150, 260]);
        // Periods shorter than a packet's time. On at 0–4, 10–14, 20–24, ...: 10 ms of on time end
        // at 22.
        assert_eq!(times(traffic(Some([4, 6])), 2), [22, 50 - 6]);
    }

    #[test]
    fn the_mean_rate_follows_from_the_period_lengths() {
        let seconds = Duration::from_secs;
        let on = Sampler::new(Distribution::Exponential { mean: seconds(1) }, 1);
        let off = Sampler::new(Distribution::Exponential { mean: seconds(3) }, 2);
        let end = SocketAddress::new([10, 0, 0, 1].into(), 9);
        let rate = "800kbit/s".parse().unwrap();
        let mut traffic = UdpOnOff::new(end, end, rate, 1_000, Some([on, off]));
        let horizon = Instant::ZERO + seconds(40_000);
        let packets = core::iter::from_fn(|| traffic.poll_transmit(horizon)).count() as f64;
        // On for a quarter of the time: 25 packets per second. With 10⁴ periods of each kind, the
        // share has a standard error of about 0.25·0.75·√(2/10⁴) = 0.0027. The tolerance is four of
        // them.
        let share = packets / 100.0 / 40_000.0;
        assert!((share - 0.25).abs() < 0.0106, "{share}");
    }
}
