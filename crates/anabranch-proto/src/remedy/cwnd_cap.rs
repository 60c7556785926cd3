//! Window capping (M4): a subflow that has filled a queue may not put more in flight. Raiciu et
//! al., NSDI 2012 §4.2.

use super::{BuildRemedy, Remedy};
use crate::view::{SubflowSet, SubflowView};
use anabranch_config::Part;

/// Caps the data in flight of a subflow once its RTT exceeds a multiple of the smallest RTT.
///
/// The paper stops the growth of the window when the smoothed RTT is about twice the smallest one:
/// the queue then holds as much as the path. The exact rule is unknown. This project: when the
/// smoothed RTT passes `cap_factor` × its minimum, the data in flight at that moment becomes the
/// limit. The limit ends when the RTT falls below that value again. A reduction of the congestion
/// window lowers the limit as well.
///
/// M4 does not change the window itself. The window stops growing because it no longer limits the
/// capped subflow (see [`super::MptBm`] for slow start). Unlike MPT-BM, M4 does not remove data
/// that slow start had put into the queue before the RTT showed it.
#[derive(Clone, Debug)]
pub struct CwndCap {
    cap_factor: f64,
    /// Limit of each slot.
    caps: [Option<CapState>; SubflowSet::CAPACITY],
}

/// A limit in force.
#[derive(Clone, Copy, Debug)]
struct CapState {
    /// Generation of the limited subflow.
    generation: u32,
    limit: u64,
}

/// Parameters of [`CwndCap`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct CwndCapConfig {
    /// Multiple of the smallest smoothed round-trip time that counts as a filled queue.
    #[cfg_attr(
        feature = "serde",
        schemars(range(min = 1.0, max = 1000.0), extend("x-origin" = "the paper, approximately"))
    )]
    pub cap_factor: f64,
}

impl Default for CwndCapConfig {
    fn default() -> Self {
        CwndCapConfig { cap_factor: 2.0 }
    }
}

impl Part for CwndCapConfig {
    const NAME: &'static str = "cwnd_cap";
    const SUMMARY: &'static str =
        "M4: stops a subflow from putting more in flight once it has filled a queue.";
    const SOURCE: &'static str = "Raiciu et al., NSDI 2012, §4.2";
}

impl BuildRemedy for CwndCapConfig {
    fn build(&self) -> Box<dyn Remedy> {
        Box::new(CwndCap::new(self.cap_factor))
    }
}

impl CwndCap {
    /// Caps the data in flight at `cap_factor` × the smallest smoothed RTT; the paper uses about 2.
    pub fn new(cap_factor: f64) -> Self {
        CwndCap { cap_factor, caps: [None; SubflowSet::CAPACITY] }
    }

    fn has_filled_a_queue(&self, view: &SubflowView) -> bool {
        view.srtt
            .is_some_and(|srtt| srtt.as_secs_f64() > self.cap_factor * view.min_srtt.as_secs_f64())
    }
}

impl Remedy for CwndCap {
    fn send_limit(&mut self, view: &SubflowView) -> Option<u64> {
        let filled = self.has_filled_a_queue(view);
        let cap = &mut self.caps[view.id.slot];
        let generation = view.id.generation;
        let known = cap.filter(|cap| filled && cap.generation == generation);
        *cap = filled.then(|| {
            let limit = known.map_or(view.bytes_in_flight, |cap| cap.limit);
            CapState { generation, limit: limit.min(view.cwnd) }
        });
        cap.map(|cap| cap.limit.max(super::least_limit(view)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Slot;
    use crate::view::{SubflowId, tests::view};
    use anabranch_wire::Duration;

    /// A subflow whose smallest RTT is 50 ms.
    fn at(srtt_ms: u64, segments_in_flight: u64) -> SubflowView {
        let min_srtt = Duration::from_millis(50);
        SubflowView { min_srtt, bytes_in_flight: segments_in_flight * 1000, ..view(1, srtt_ms) }
    }

    #[test]
    fn what_is_in_flight_at_twice_the_smallest_rtt_is_held_until_it_falls_again() {
        let mut cap = CwndCap::new(2.0);
        assert_eq!(cap.send_limit(&at(100, 15)), None);
        assert_eq!(cap.send_limit(&at(101, 16)), Some(16_000));
        assert_eq!(cap.send_limit(&at(130, 19)), Some(16_000));
        assert_eq!(cap.send_limit(&at(99, 12)), None);
        assert_eq!(cap.send_limit(&at(101, 12)), Some(12_000));
    }

    #[test]
    fn a_smaller_window_lowers_the_limit_and_two_segments_remain() {
        let mut cap = CwndCap::new(2.0);
        cap.send_limit(&at(150, 16));
        let halved = SubflowView { cwnd: 8_000, ..at(150, 8) };
        assert_eq!(cap.send_limit(&halved), Some(8_000));
        assert_eq!(cap.send_limit(&at(150, 8)), Some(8_000));
        let collapsed = SubflowView { cwnd: 1_000, ..at(150, 1) };
        assert_eq!(cap.send_limit(&collapsed), Some(2_000));
    }

    #[test]
    fn a_new_subflow_in_the_slot_starts_without_limit() {
        let mut cap = CwndCap::new(2.0);
        cap.send_limit(&at(150, 5));
        let other = SubflowView { id: SubflowId { slot: Slot(1), generation: 1 }, ..at(150, 9) };
        assert_eq!(cap.send_limit(&other), Some(9_000));
        let unknown = SubflowView { srtt: None, min_srtt: Duration::MAX, ..other };
        assert_eq!(cap.send_limit(&unknown), None);
    }
}
