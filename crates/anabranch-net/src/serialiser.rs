//! Sends packets bit by bit, without rounding errors.

use anabranch_wire::{Duration, Instant};

use crate::units::Rate;

/// Work per byte of a link: 8 bits, in bit/s × ns. In this unit, a transmission takes work ÷ rate
/// nanoseconds, and both are integers.
pub const WORK_PER_BYTE: u64 = 8 * 1_000_000_000;

/// A transmitter that sends one packet after the other.
///
/// It tracks the fraction of a nanosecond at which each transmission ends. Any number of packets
/// therefore takes exactly as long as their bytes take at the rate.
#[derive(Debug)]
pub(crate) struct Serialiser {
    rate: Rate,
    /// When the last bit leaves, rounded down to a nanosecond.
    free_at: Instant,
    /// Remaining work at `free_at`: less than one nanosecond.
    remainder: u64,
    /// Remaining work of the packet in transmission, while suspended.
    paused_with: Option<u64>,
}

impl Serialiser {
    /// An idle transmitter.
    pub(crate) fn new(rate: Rate) -> Self {
        Serialiser { rate, free_at: Instant::ZERO, remainder: 0, paused_with: None }
    }

    /// The rate.
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns `true` if the transmitter is suspended.
    pub(crate) fn is_suspended(&self) -> bool {
        self.paused_with.is_some()
    }

    /// When the last bit has left, rounded down to a nanosecond; [`Instant::FAR_FUTURE`] while
    /// suspended.
    pub(crate) fn free_at(&self) -> Instant {
        if self.is_suspended() { Instant::FAR_FUTURE } else { self.free_at }
    }

    /// When the last bit leaves, rounded down to a nanosecond, and the work that then remains. Only
    /// while not suspended.
    #[inline]
    pub(crate) fn end(&self) -> (Instant, u64) {
        (self.free_at, self.remainder)
    }

    /// Send nothing beyond what ended as [`Serialiser::end`] said.
    pub(crate) fn end_at(&mut self, free_at: Instant, remainder: u64) {
        (self.free_at, self.remainder) = (free_at, remainder);
    }

    /// When the remaining work falls to `work`, rounded down to a nanosecond;
    /// [`Instant::FAR_FUTURE`] while suspended.
    pub(crate) fn falls_to(&self, work: u64) -> Instant {
        let rate = self.rate.as_bits_per_second();
        let before = work.saturating_sub(self.remainder).div_ceil(rate);
        match self.is_suspended() {
            true => Instant::FAR_FUTURE,
            false => self.free_at - Duration::from_nanos(before),
        }
    }

    /// When the last bit has left, rounded up to a nanosecond; [`Instant::FAR_FUTURE`] while
    /// suspended.
    pub(crate) fn finished_at(&self) -> Instant {
        self.free_at() + Duration::from_nanos(u64::from(self.remainder > 0))
    }

    /// Start to send a packet of `bytes` bytes at `now`, after the work that remains.
    pub(crate) fn start(&mut self, now: Instant, bytes: u32) {
        // A transmission that follows immediately inherits the fraction of a nanosecond of the
        // previous one. There is no overflow: the work of an IP packet of 65 575 bytes is 5.2·10¹⁴,
        // and the fraction is at most the highest rate, 10¹⁵.
        let inherited = self.work_left(now);
        self.plan(now, inherited + WORK_PER_BYTE * u64::from(bytes));
    }

    /// Remaining work at `now` of the packet in transmission, in bit/s × ns.
    pub(crate) fn work_left(&self, now: Instant) -> u64 {
        if let Some(work) = self.paused_with {
            return work;
        }
        if self.free_at < now {
            return 0;
        }
        let nanos = self.free_at.saturating_since(now).as_nanos();
        nanos * self.rate.as_bits_per_second() + self.remainder
    }

    /// Change the rate at `now`.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Rate) {
        let work = self.work_left(now);
        self.rate = rate;
        self.plan(now, work);
    }

    /// Pause at `now`.
    pub(crate) fn suspend(&mut self, now: Instant) {
        self.paused_with = Some(self.work_left(now));
    }

    /// Continue at `now`.
    pub(crate) fn resume(&mut self, now: Instant) {
        if let Some(work) = self.paused_with.take() {
            self.plan(now, work);
        }
    }

    /// Discard the packet in transmission.
    pub(crate) fn clear(&mut self, now: Instant) {
        self.paused_with = self.paused_with.map(|_| 0);
        (self.free_at, self.remainder) = (now, 0);
    }

    /// Schedule the end of `work` that starts at `now`.
    fn plan(&mut self, now: Instant, work: u64) {
        let rate = self.rate.as_bits_per_second();
        self.free_at = now + Duration::from_nanos(work / rate);
        self.remainder = work % rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    fn serialiser(rate: &str) -> Serialiser {
        Serialiser::new(rate.parse().unwrap())
    }

    /// Send `packets` packets of 1500 bytes back to back. Returns when the last bit has left.
    fn send(serialiser: &mut Serialiser, packets: u32) -> Instant {
        for _ in 0..packets {
            serialiser.start(serialiser.free_at(), 1_500);
        }
        serialiser.free_at()
    }

    #[test]
    fn a_million_packets_take_exactly_as_long_as_their_bytes() {
        // 1.5·10⁹ bytes at 10⁶ bytes per second.
        assert_eq!(send(&mut serialiser("8Mbit/s"), 1_000_000), at(1_500_000_000));
        // 12 000 bits at 7 Mbit/s take 1 714 285 + 5/7 ns. Every seventh packet ends on a whole
        // nanosecond.
        assert_eq!(send(&mut serialiser("7Mbit/s"), 7), at(12_000));
        assert_eq!(send(&mut serialiser("7Mbit/s"), 6), Instant::from_nanos(10_285_714));
        assert_eq!(send(&mut serialiser("7Mbit/s"), 700_000), at(1_200_000_000));
        // 12 000 bits at 999 999 937 bit/s (a prime): as many packets take exactly 12 000 s.
        let mut prime = serialiser("999999937bit/s");
        let exact = |packets: u128| (packets * 12_000_000_000_000 / 999_999_937) as u64;
        assert_eq!(send(&mut prime, 1_000_000), Instant::from_nanos(exact(1_000_000)));
    }

    #[test]
    fn the_remaining_bits_are_sent_at_the_new_rate() {
        let mut link = serialiser("8Mbit/s");
        link.start(at(0), 1_500);
        // After 0.5 ms, 1000 bytes are left: at 4 Mbit/s they take 2 ms.
        link.set_rate(at(500), "4Mbit/s".parse().unwrap());
        assert_eq!(link.free_at(), at(2_500));
        // After another 1 ms, 500 bytes are left: at 400 Mbit/s they take 10 µs.
        link.set_rate(at(1_500), "400Mbit/s".parse().unwrap());
        assert_eq!(link.free_at(), at(1_510));
    }

    #[test]
    fn a_pause_adds_its_length_and_honours_rate_changes() {
        let mut link = serialiser("8Mbit/s");
        link.start(at(0), 1_500);
        link.suspend(at(500));
        assert_eq!((link.free_at(), link.is_suspended()), (Instant::FAR_FUTURE, true));
        link.resume(at(10_000));
        assert_eq!(link.free_at(), at(11_000));
        link.suspend(at(10_500));
        link.set_rate(at(10_600), "16Mbit/s".parse().unwrap());
        link.resume(at(20_000));
        // 500 bytes at 2 bytes per µs.
        assert_eq!(link.free_at(), at(20_250));
    }

    #[test]
    fn an_idle_transmitter_starts_at_once_on_a_whole_nanosecond() {
        let mut link = serialiser("7Mbit/s");
        assert_eq!(send(&mut link, 1), Instant::from_nanos(1_714_285));
        link.start(at(5_000), 1_500);
        link.start(link.free_at(), 1_500);
        // Twice 5/7 ns carries into one whole nanosecond.
        assert_eq!(link.free_at(), Instant::from_nanos(5_000_000 + 3_428_571));
    }
}
