//! Packet-delivery traces in Mahimahi's format. A trace says when a link may deliver data.
//!
//! A file has one line per delivery opportunity: its time in whole milliseconds. Times never
//! decrease. An opportunity carries [`OPPORTUNITY_BYTES`] bytes. The trace repeats, and its last
//! time is its period. Sources: `mm-link(1)`, and the README of Mahimahi's traces.

use core::fmt;
use core::num::NonZeroU64;

use anabranch_wire::Instant;

use crate::units::Rate;

/// Bytes that one opportunity carries: Mahimahi's `PACKET_SIZE`. It is an Ethernet MTU plus the
/// four bytes that a TUN device may prepend to a packet. (Mahimahi's manual says 1500.)
pub const OPPORTUNITY_BYTES: u64 = 1_504;

/// Latest time in a trace: 10⁹ s, which is also the longest configurable duration.
const MAX_MILLIS: u64 = 1_000_000_000_000;

/// A packet-delivery trace. It has at least one opportunity, and the last one is after time zero.
#[derive(Clone, PartialEq, Eq)]
pub struct Trace {
    moments: Vec<Moment>,
    opportunities: u64,
}

/// A time in a trace and the number of its opportunities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Time from the start of the trace.
    pub millis: u64,
    /// Number of opportunities at this time.
    pub opportunities: NonZeroU64,
}

/// Error of a text that is not a trace. It displays as one line that has the line number and the
/// expected form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TraceError(String);

impl Trace {
    /// A trace with these moments.
    ///
    /// # Errors
    /// If there are no moments, their times do not increase, or no moment is after time zero.
    pub fn new(moments: Vec<Moment>) -> Result<Self, TraceError> {
        let pairs = moments.iter().zip(moments.iter().skip(1));
        if let Some((last, next)) = pairs.into_iter().find(|(a, b)| a.millis >= b.millis) {
            let (last, next) = (last.millis, next.millis);
            return Err(TraceError(format!(
                "{next} follows {last}; the times of a trace increase"
            )));
        }
        match moments.last() {
            None => Err(TraceError("empty; a trace has at least one line".to_owned())),
            Some(Moment { millis: 0, .. }) => {
                let problem = "all times are 0; a trace ends after 0, since its last time is the \
                               period at which it repeats";
                Err(TraceError(problem.to_owned()))
            }
            Some(Moment { millis, .. }) if *millis > MAX_MILLIS => {
                Err(TraceError(format!("{millis}: a trace lasts at most {MAX_MILLIS} ms")))
            }
            Some(_) => {
                let count =
                    |sum: u64, moment: &Moment| sum.saturating_add(moment.opportunities.get());
                let opportunities = moments.iter().fold(0, count);
                Ok(Trace { moments, opportunities })
            }
        }
    }

    /// The trace in the file with contents `text`.
    ///
    /// # Errors
    /// If a line is not a whole number or is below the previous line, or as [`Trace::new`].
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut moments: Vec<Moment> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let at_line = |problem: String| TraceError(format!("line {}: {problem}", index + 1));
            let millis = whole_number(line).ok_or_else(|| {
                at_line(format!("{line:?} is not a whole number of milliseconds"))
            })?;
            match moments.last_mut() {
                Some(last) if millis < last.millis => {
                    let problem = format!("{millis} is below the line before, {}", last.millis);
                    return Err(at_line(format!("{problem}; times never decrease")));
                }
                Some(last) if millis == last.millis => {
                    last.opportunities = last.opportunities.saturating_add(1);
                }
                _ => moments.push(Moment { millis, opportunities: NonZeroU64::MIN }),
            }
        }
        Trace::new(moments)
    }

    /// All times with their opportunities, in chronological order.
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// Number of opportunities in one period.
    pub fn opportunities(&self) -> u64 {
        self.opportunities
    }

    /// Period in milliseconds.
    pub fn period_millis(&self) -> u64 {
        self.moments[self.moments.len() - 1].millis
    }

    /// Number of opportunities after `from` and until `until`, of a trace that starts at the epoch
    /// and repeats.
    pub fn opportunities_between(&self, from: Instant, until: Instant) -> u64 {
        let period = self.period_millis();
        let (from, until) = (from.as_millis(), until.as_millis());
        let within = from % period;
        let mut start = from - within;
        let mut next = self.moments.partition_point(|moment| moment.millis <= within);
        let mut sum = 0;
        loop {
            for moment in &self.moments[next..] {
                if start + moment.millis > until {
                    return sum;
                }
                sum += moment.opportunities.get();
            }
            (start, next) = (start + period, 0);
        }
    }

    /// Average rate of the trace over a period, rounded down to one bit per second. Queue limits in
    /// time are converted to bytes with this rate.
    pub fn mean_rate(&self) -> Rate {
        let bits = u128::from(self.opportunities) * u128::from(OPPORTUNITY_BYTES * 8);
        let per_second = bits * 1_000 / u128::from(self.period_millis());
        let within = per_second.clamp(1, u128::from(Rate::MAX.as_bits_per_second()));
        Rate::from_bits_per_second(within as u64)
    }
}

/// Writes the trace as a file: one line per opportunity, each ended by a newline. If the original
/// file was written in this form, without leading zeros, the output equals it byte by byte.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.moments.iter().try_for_each(|moment| {
            (0..moment.opportunities.get()).try_for_each(|_| writeln!(f, "{}", moment.millis))
        })
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (opportunities, period) = (self.opportunities, self.period_millis());
        write!(f, "Trace({opportunities} opportunities in {period} ms)")
    }
}

/// Parses digits only; signs and spaces are errors.
fn whole_number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Trace::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn opportunities_between_two_times_are_those_after_the_first() {
        // Opportunities at 0, 3, 3 and 5 ms, and every 5 ms again: 5, 8, 8, 10, 10 …
        let trace = Trace::parse("0\n3\n3\n5\n").unwrap();
        let ms = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        for (from, until, expected) in [(0, 3, 2), (0, 5, 4), (3, 3, 0), (5, 10, 4), (2, 12, 8)] {
            let found = trace.opportunities_between(ms(from), ms(until));
            assert_eq!(found, expected, "from {from} to {until} ms");
        }
    }

    #[test]
    fn a_file_is_reproduced_byte_by_byte() {
        for file in ["1\n", "0\n0\n3\n7\n7\n7\n", "1056\n1143\n1143\n"] {
            assert_eq!(Trace::parse(file).unwrap().to_string(), file);
        }
        // Other forms are read as well, and written in the canonical form.
        assert_eq!(Trace::parse("001\n2").unwrap().to_string(), "1\n2\n");
    }

    #[test]
    fn times_are_counted() {
        let trace = Trace::parse("0\n0\n3\n7\n7\n7\n").unwrap();
        let moments: Vec<_> =
            trace.moments().iter().map(|at| (at.millis, at.opportunities.get())).collect();
        assert_eq!(moments, [(0, 2), (3, 1), (7, 3)]);
        assert_eq!((trace.opportunities(), trace.period_millis()), (6, 7));
        // 6 · 1504 · 8 bits in 7 ms.
        assert_eq!(trace.mean_rate().as_bits_per_second(), 10_313_142);
        // One opportunity each millisecond: the 12 Mbit/s of the manual, with 1504 bytes.
        assert_eq!(Trace::parse("1\n").unwrap().mean_rate().to_string(), "12.032Mbit/s");
    }

    #[test]
    fn errors_name_the_line_and_the_value() {
        assert_eq!(error("1\n2.5\n"), r#"line 2: "2.5" is not a whole number of milliseconds"#);
        assert_eq!(error("1\n\n2\n"), r#"line 2: "" is not a whole number of milliseconds"#);
        assert_eq!(error("-1\n"), r#"line 1: "-1" is not a whole number of milliseconds"#);
        assert_eq!(error("5\n4\n"), "line 2: 4 is below the line before, 5; times never decrease");
        assert_eq!(error(""), "empty; a trace has at least one line");
        assert_eq!(
            error("0\n0\n"),
            "all times are 0; a trace ends after 0, since its last time is the period at which \
             it repeats"
        );
        assert_eq!(
            error("1000000000001\n"),
            "1000000000001: a trace lasts at most 1000000000000 ms"
        );
    }
}
