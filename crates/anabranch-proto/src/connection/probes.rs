//! Copies of data in flight, with which the path manager probes a path.

use std::ops::Range;

use crate::view::{Slot, SubflowId, SubflowView};

/// Copies that subflows must send.
#[derive(Debug, Default)]
pub(super) struct Probes(Vec<Burst>);

/// Copies that one subflow must send.
#[derive(Clone, Copy, Debug)]
struct Burst {
    subflow: SubflowId,
    /// Data offsets: the next byte to copy, and the end.
    next: u64,
    end: u64,
    /// Bytes per segment.
    bytes: u32,
}

/// Copies that a path manager requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeRequest {
    pub(super) count: u32,
    /// Bytes per copy.
    pub(super) bytes: u32,
}

/// A copy to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeCopy {
    pub(super) slot: Slot,
    pub(super) start: u64,
    pub(super) len: u32,
}

impl Probes {
    /// Make a subflow send copies of the newest data in flight, in order, so that those that arrive
    /// first are useful.
    pub(super) fn start(
        &mut self,
        subflow: SubflowId,
        wanted: ProbeRequest,
        under_way: Range<u64>,
    ) {
        let ProbeRequest { count, bytes } = wanted;
        let wanted = u64::from(count) * u64::from(bytes);
        let end = under_way.end;
        let next = end.saturating_sub(wanted).max(under_way.start);
        self.0.retain(|burst| burst.subflow != subflow);
        self.0.push(Burst { subflow, next, end, bytes });
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next copy for which a subflow has room. Data acknowledged up to `una` needs no copy.
    pub(super) fn poll(&mut self, una: u64, views: &[SubflowView]) -> Option<ProbeCopy> {
        self.0.retain_mut(|burst| {
            burst.next = burst.next.max(una);
            let there = views.get(burst.subflow.slot.index());
            burst.next < burst.end && there.is_some_and(|view| view.id == burst.subflow)
        });
        let view_of = |burst: &Burst| &views[burst.subflow.slot];
        let burst = self.0.iter_mut().find(|burst| view_of(burst).can_send())?;
        let (start, mss) = (burst.next, u64::from(view_of(burst).mss));
        let len = u64::from(burst.bytes).min(mss).min(burst.end - start);
        burst.next += len;
        Some(ProbeCopy { slot: burst.subflow.slot, start, len: len as u32 })
    }

    /// Cancel all copies.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
