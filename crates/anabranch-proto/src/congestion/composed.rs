//! Loss-based congestion control as a composition: slow start, which may be that of HyStart++, and an
//! adjustment of the window for everything after it.

use core::fmt::Debug;
use core::marker::PhantomData;

use super::{
    AckSample, CongestionControl, CongestionEvent, ExternalReduction, HyStart, Start, Window,
};
use crate::view::SubflowView;

/// Adjustment of a window in congestion avoidance and after a loss, without state of its own.
pub trait WindowAdjustment: Debug + Send {
    /// Bytes by which an acknowledgement of `acked` bytes grows the window. `me` and `peers` are
    /// those of [`CongestionControl::on_ack`].
    fn increase(
        acked: u64,
        window: &Window,
        sample: &AckSample,
        me: usize,
        peers: &[SubflowView],
    ) -> f64;

    /// Part of the window that a loss leaves.
    fn decrease(me: usize, peers: &[SubflowView]) -> f64;
}

/// Slow start, then the adjustment `A`.
#[derive(Clone, Debug)]
pub struct Composed<A> {
    window: Window,
    hystart: Option<HyStart>,
    adjustment: PhantomData<A>,
}

impl<A: WindowAdjustment> Composed<A> {
    /// In slow start, with the initial window.
    pub fn new(start: &Start) -> Self {
        Composed { window: Window::new(start), hystart: None, adjustment: PhantomData }
    }

    /// In slow start, which HyStart++ ends. RFC 9406.
    pub fn with_hystart(start: &Start) -> Self {
        Composed { hystart: Some(HyStart::default()), ..Composed::new(start) }
    }
}

impl<A: WindowAdjustment> CongestionControl for Composed<A> {
    fn cwnd(&self) -> u64 {
        self.window.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    fn on_ack(&mut self, sample: &AckSample, me: usize, peers: &[SubflowView]) {
        let left = HyStart::slow_start(&mut self.hystart, &mut self.window, sample);
        if left > 0 {
            self.window.grow(A::increase(left, &self.window, sample, me, peers));
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent, me: usize, peers: &[SubflowView]) {
        self.window.on_event(event, A::decrease(me, peers));
    }

    fn on_external_reduction(&mut self, reduction: ExternalReduction) {
        self.window.on_external_reduction(reduction);
    }
}
