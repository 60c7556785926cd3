//! MPT-BM, bufferbloat mitigation: the data that a subflow may have in flight shrinks as its RTT
//! grows. Ferlin, Dreibholz, Alay, IWQoS 2014.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::WithUnit;
use anabranch_wire::Duration;

use super::{BuildRemedy, Remedy};
use crate::view::SubflowView;

/// Bufferbloat mitigation.
///
/// `limit = lambda · min sRTT / sRTT · cwnd`, on subflows whose smallest sRTT is at least `theta`
/// (the paper has a threshold, whose value this project does not know). There is no limit before
/// the first sample, and it is never below two segments (this project: the subflow must keep
/// measuring). sRTT is smoothed by 1/8 per sample as in RFC 6298, with about one sample per
/// acknowledgement.
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

/// Parameters of [`MptBm`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct MptBmConfig {
    /// Multiple of its minimum to which the smoothed round-trip time may grow.
    #[cfg_attr(
        feature = "serde",
        schemars(
            range(min = 1.0, max = 1000.0),
            extend("x-origin" = "the smaller of the two that the paper tries")
        )
    )]
    pub lambda: f64,
    /// Subflows whose smallest smoothed round-trip time is below this are not limited.
    #[cfg_attr(
        feature = "serde",
        serde(with = "WithUnit::<Duration>"),
        schemars(extend("x-origin" = "this project"))
    )]
    pub theta: Duration,
}

impl Default for MptBmConfig {
    fn default() -> Self {
        MptBmConfig { lambda: 1.5, theta: Duration::from_millis(50) }
    }
}

impl Part for MptBmConfig {
    const NAME: &'static str = "mpt_bm";
    const SUMMARY: &'static str =
        "Bufferbloat mitigation: reduces the data in flight as the round-trip time grows.";
    const SOURCE: &'static str = "Ferlin et al., IWQoS 2014";
}

impl BuildRemedy for MptBmConfig {
    fn build(&self) -> Box<dyn Remedy> {
        Box::new(MptBm::new(self.lambda, self.theta))
    }
}

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
