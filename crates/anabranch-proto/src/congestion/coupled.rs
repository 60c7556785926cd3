//! Input of the coupled algorithms: the subflows of a connection as their formulas need them.

use super::AckSample;
use crate::view::{Bottleneck, SubflowView, Usability};

/// A subflow as the formula of a coupled increase needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Coupled {
    /// Congestion window in bytes.
    pub(super) cwnd: f64,
    /// Smoothed round-trip time in seconds.
    pub(super) rtt: f64,
    /// Bytes acknowledged since the last loss, or between the last two losses if that is more.
    pub(super) loss_interval: f64,
}

impl Coupled {
    /// The subflow that received the acknowledgement. Its own state is newer than its view.
    pub(super) fn own(cwnd: u64, sample: &AckSample, me: usize, peers: &[SubflowView]) -> Self {
        let loss_interval = peers.get(me).map_or(0, |view| view.loss_interval);
        Coupled {
            cwnd: cwnd as f64,
            rtt: sample.srtt.as_secs_f64(),
            loss_interval: loss_interval as f64,
        }
    }

    /// A subflow from its view; `None` until it can carry data and has a round-trip time.
    pub(super) fn of(view: &SubflowView) -> Option<Self> {
        let live = matches!(view.usability, Usability::Usable | Usability::PotentiallyFailed);
        let rtt = view.srtt.filter(|rtt| live && !rtt.is_zero())?;
        Some(Coupled {
            cwnd: view.cwnd as f64,
            rtt: rtt.as_secs_f64(),
            loss_interval: view.loss_interval as f64,
        })
    }

    /// Rate in bytes per second.
    pub(super) fn rate(&self) -> f64 {
        self.cwnd / self.rtt
    }
}

/// `own`, followed by the other subflows that count. If the engine knows which subflows share
/// bottlenecks (RFC 8382), only the subflows that share this one's count; otherwise all do. During
/// fast recovery, the window of a subflow already equals its threshold, as the formulas require.
pub(super) fn subflows(
    own: Coupled,
    me: usize,
    peers: &[SubflowView],
) -> impl Iterator<Item = Coupled> + Clone + '_ {
    let bottleneck = peers.get(me).map_or(Bottleneck::Unknown, |view| view.bottleneck);
    let others = peers.iter().enumerate();
    let others = others.filter(move |(i, view)| *i != me && bottleneck.may_be(view.bottleneck));
    std::iter::once(own).chain(others.filter_map(|(_, view)| Coupled::of(view)))
}

/// (w / rtt²) / (Σ w_k / rtt_k)²: the growth common to OLIA and BALIA, in windows per window
/// acknowledged. With windows in bytes, the unit is 1/byte. Multiplied by the segment size and the
/// bytes acknowledged, it gives bytes.
pub(super) fn fair_gain(own: &Coupled, subflows: impl Iterator<Item = Coupled>) -> f64 {
    let total: f64 = subflows.map(|subflow| subflow.rate()).sum();
    own.rate() / own.rtt / (total * total)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::view::{SubflowView, tests::view};

    /// `n` identical subflows.
    pub(crate) fn same(n: usize, cwnd: f64, rtt: f64) -> impl Iterator<Item = Coupled> + Clone {
        std::iter::repeat_n(Coupled { cwnd, rtt, loss_interval: 0.0 }, n)
    }

    #[test]
    fn the_own_view_is_replaced_and_closed_subflows_are_left_out() {
        let closed = SubflowView { usability: Usability::Closed, ..view(2, 30) };
        let unknown = SubflowView { srtt: None, ..view(3, 30) };
        let peers = [view(0, 10), view(1, 20), closed, unknown];
        let own = Coupled { cwnd: 7_000.0, rtt: 0.5, loss_interval: 0.0 };
        let other = Coupled { cwnd: 20_000.0, rtt: 0.02, loss_interval: 0.0 };
        assert!(subflows(own, 0, &peers).eq([own, other]));
    }

    #[test]
    fn only_subflows_that_may_share_the_bottleneck_are_coupled() {
        let behind = |slot, bottleneck| SubflowView { bottleneck, ..view(slot, 20) };
        let own = same(1, 10.0, 0.02).next().expect("one");
        let count = |views: &[SubflowView]| subflows(own, 0, views).count();
        let (unknown, none) = (Bottleneck::Unknown, Bottleneck::None);
        let shared = Bottleneck::Shared;
        assert_eq!(count(&[behind(0, shared(0)), behind(1, shared(0)), behind(2, shared(2))]), 2);
        assert_eq!(count(&[behind(0, none), behind(1, none), behind(2, shared(2))]), 1);
        assert_eq!(count(&[behind(0, shared(0)), behind(1, unknown), behind(2, none)]), 2);
        assert_eq!(count(&[behind(0, unknown), behind(1, none), behind(2, shared(2))]), 3);
    }
}
