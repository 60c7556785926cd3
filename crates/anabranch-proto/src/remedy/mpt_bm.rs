//! MPT-BM, bufferbloat mitigation: the data that a subflow may have in flight shrinks as its RTT
//! grows. Ferlin, Dreibholz, Alay, IWQoS 2014.

use anabranch_wire::Duration;

use super::Remedy;
use crate::policy::{Entry, Kind, Parameter, Value};
use crate::view::SubflowView;

/// Bufferbloat mitigation.
///
/// `limit = lambda · min sRTT / sRTT · cwnd`, on subflows whose smallest sRTT is at least `theta`
/// (the paper has a threshold, but we do not know its value). There is no limit before the first
/// sample, and it is never below two segments (this project: the subflow must keep measuring). sRTT
/// is smoothed by 1/8 per sample as in RFC 6298, with about one sample per acknowledgement.
///
/// **Fixed point.** The limit takes effect when sRTT exceeds lambda · min sRTT. MPT-BM does not
/// change the congestion window. Windows grow only while they limit the sender, and a capped
/// subflow cannot fill its window. In congestion avoidance, a window limits the sender if it is
/// full to within a segment. The window therefore stops growing where `limit = cwnd − mss`, and
/// sRTT settles at `lambda · min sRTT · cwnd / (cwnd − mss)`. No other gate is needed.
///
/// In slow start, the platform `linux` lets a window grow that is more than half used. There the
/// window stops at twice the limit, so sRTT settles at `2 · lambda · min sRTT`, plus the lag of the
/// smoothing.
#[derive(Clone, Copy, Debug)]
pub struct MptBm {
    lambda: f64,
    theta: Duration,
}

/// Name, description, parameters and constructor of this remedy.
pub(super) const ENTRY: super::RemedyEntry = Entry {
    name: "mpt_bm",
    summary: "Bufferbloat mitigation: reduces the data in flight as the round-trip time grows.",
    source: "Ferlin et al., IWQoS 2014",
    parameters: &[
        Parameter {
            name: "lambda",
            meaning: "multiple of its minimum to which the smoothed round-trip time may grow",
            kind: Kind::Number { least: 1.0, most: 1000.0 },
            default: Value::Number(1.5),
            origin: "the smaller of the two that the paper tries",
            only_with: None,
        },
        Parameter {
            name: "theta",
            meaning: "subflows whose smallest smoothed round-trip time is below this are not limited",
            kind: Kind::Time { zero: true },
            default: Value::Time(Duration::from_millis(50)),
            origin: "this project",
            only_with: None,
        },
    ],
    make: |values| Box::new(MptBm::new(values.number("lambda"), values.time("theta"))),
};

/// Maximum number of bytes in flight, for round-trip times in seconds and a window in bytes.
pub(super) fn limit(lambda: f64, min_srtt: f64, srtt: f64, cwnd: u64) -> u64 {
    (lambda * min_srtt / srtt * cwnd as f64) as u64
}

impl MptBm {
    /// Lets RTTs grow to `lambda` × their minimum (the paper uses 1.5 and 3) if that minimum is at
    /// least `theta`.
    pub fn new(lambda: f64, theta: Duration) -> Self {
        MptBm { lambda, theta }
    }
}

impl Remedy for MptBm {
    fn send_limit(&mut self, view: &SubflowView) -> Option<u64> {
        let srtt = view.srtt.filter(|_| view.min_srtt >= self.theta)?;
        let (min, srtt) = (view.min_srtt.as_secs_f64(), srtt.as_secs_f64());
        Some(limit(self.lambda, min, srtt, view.cwnd).max(super::least_limit(view)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::view;

    /// A window of 20 segments, with a smallest RTT of 100 ms.
    fn at(srtt_ms: u64) -> SubflowView {
        SubflowView { min_srtt: Duration::from_millis(100), ..view(0, srtt_ms) }
    }

    fn remedy(lambda: f64) -> MptBm {
        MptBm::new(lambda, Duration::from_millis(50))
    }

    #[test]
    fn the_limit_is_the_window_at_lambda_times_the_smallest_rtt() {
        assert_eq!(remedy(1.5).send_limit(&at(150)), Some(20_000));
        assert_eq!(remedy(3.0).send_limit(&at(300)), Some(20_000));
        // 1.5 · 100/200 · 20 000 = 15 000.
        assert_eq!(remedy(1.5).send_limit(&at(200)), Some(15_000));
    }

    #[test]
    fn two_segments_may_always_be_in_flight() {
        assert_eq!(remedy(1.5).send_limit(&at(10_000)), Some(2_000));
    }

    #[test]
    fn fast_paths_and_unknown_ones_are_not_limited() {
        let below = SubflowView { min_srtt: Duration::from_millis(49), ..view(0, 500) };
        assert_eq!(remedy(1.5).send_limit(&below), None);
        let unknown = SubflowView { srtt: None, min_srtt: Duration::MAX, ..view(0, 1) };
        assert_eq!(remedy(1.5).send_limit(&unknown), None);
    }
}
