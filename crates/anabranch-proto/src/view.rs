//! Copies of a connection's state for policies, which never see the engine itself.

use core::ops::{Index, IndexMut};

use anabranch_wire::Duration;

/// Identifies a subflow of a connection. Slots are reused but generations are not, so the engine
/// recognises a stale identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubflowId {
    /// Index into the array of views, below [`SubflowSet::CAPACITY`].
    pub slot: Slot,
    /// Number of earlier subflows of the connection.
    pub generation: u32,
}

/// The place of a subflow in the lists of its connection; below [`SubflowSet::CAPACITY`]. Slots are
/// used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u8);

impl Slot {
    /// The index into a list of subflows.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl<T> Index<Slot> for [T] {
    type Output = T;

    #[inline]
    fn index(&self, slot: Slot) -> &T {
        &self[slot.index()]
    }
}

impl<T> IndexMut<Slot> for [T] {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        &mut self[slot.index()]
    }
}

impl<T> Index<Slot> for Vec<T> {
    type Output = T;

    #[inline]
    fn index(&self, slot: Slot) -> &T {
        &self[slot.index()]
    }
}

impl<T> IndexMut<Slot> for Vec<T> {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        &mut self[slot.index()]
    }
}

impl From<Slot> for u8 {
    fn from(slot: Slot) -> u8 {
        slot.0
    }
}

impl From<Slot> for u32 {
    fn from(slot: Slot) -> u32 {
        slot.0.into()
    }
}

/// A set of subflows: a bit mask over slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubflowSet(u32);

/// The state of one subflow, copied for policies. The connection keeps one array of views, indexed
/// by slot. An unused slot has [`Usability::Closed`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubflowView {
    /// Identifier of the subflow.
    pub id: SubflowId,
    /// Identifier of the local address. RFC 8684 §3.2.
    pub local_address_id: u8,
    /// Identifier of the remote address.
    pub remote_address_id: u8,
    /// Whether the subflow may carry data.
    pub usability: Usability,
    /// Whether either host marked the subflow as a backup. RFC 8684 §3.3.8.
    pub backup: bool,
    /// State of loss recovery.
    pub phase: RecoveryPhase,
    /// Largest payload of one data segment in bytes, after subtracting the options.
    pub mss: u32,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow-start threshold in bytes; `u64::MAX` before the first loss.
    pub ssthresh: u64,
    /// Bytes sent and neither acknowledged nor deemed lost.
    pub bytes_in_flight: u64,
    /// Bytes that congestion control allows the subflow to send now.
    pub available_cwnd: u64,
    /// Smoothed round-trip time; `None` before the first sample. RFC 6298.
    pub srtt: Option<Duration>,
    /// Round-trip time variation.
    pub rttvar: Duration,
    /// Smallest round-trip time seen; [`Duration::MAX`] before the first sample.
    pub min_rtt: Duration,
    /// Smallest *smoothed* round-trip time; [`Duration::MAX`] before the first sample.
    pub min_srtt: Duration,
    /// Smoothed round-trip time as measured by the receiver of data: from sending an
    /// acknowledgement to the arrival of data that echoes its timestamp. This reverses the
    /// measurement of RFC 7323 §4.1.
    pub receive_rtt: Option<Duration>,
    /// Bytes acknowledged since the last loss, or between the last two losses if that is more. It
    /// measures how well the path has performed recently. Khalili et al., CoNEXT 2012.
    pub loss_interval: u64,
    /// Bottleneck that the subflow passes through, if detection is on. RFC 8382.
    pub bottleneck: Bottleneck,
}

/// Whether a subflow may carry data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usability {
    /// Established at both ends.
    Usable,
    /// Its retransmission timer expired, and the peer has acknowledged nothing since. It carries no
    /// new data until the peer acknowledges something.
    PotentiallyFailed,
    /// The handshake is in progress.
    Opening,
    /// Closing, or an unused slot.
    Closed,
}

/// The bottleneck that a subflow passes through. RFC 8382.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bottleneck {
    /// Detection is off, or has not observed the subflow for long enough.
    #[default]
    Unknown,
    /// No bottleneck: the delays of the subflow show no queue.
    None,
    /// A bottleneck shared by all subflows with this number, which is the lowest of their slots.
    Shared(u8),
}

impl Bottleneck {
    /// Returns `true` if a subflow behind this bottleneck may share it with a subflow behind
    /// `other`.
    pub fn may_be(self, other: Bottleneck) -> bool {
        let unknown = self == Bottleneck::Unknown || other == Bottleneck::Unknown;
        unknown || (self == other && self != Bottleneck::None)
    }
}

/// State of a subflow's loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryPhase {
    /// No segment is deemed lost.
    Open,
    /// Fast recovery. RFC 6675, RFC 8985.
    Recovery,
    /// After a retransmission timeout. RFC 6298 §5.
    Loss,
}

impl SubflowSet {
    /// Maximum number of subflows of a connection.
    pub const CAPACITY: usize = 32;
    /// The empty set.
    pub const EMPTY: SubflowSet = SubflowSet(0);

    /// The set that contains only the subflow in `slot`.
    pub fn of(slot: Slot) -> Self {
        SubflowSet(1 << slot.0)
    }

    /// Returns `true` if the subflow in `slot` is a member.
    pub fn contains(self, slot: Slot) -> bool {
        self.0 & (1 << slot.0) != 0
    }

    /// Add the subflow in `slot`.
    pub fn insert(&mut self, slot: Slot) {
        self.0 |= 1 << slot.0;
    }

    /// Remove the subflow in `slot`.
    pub fn remove(&mut self, slot: Slot) {
        self.0 &= !(1 << slot.0);
    }

    /// Add all members of `other`.
    pub fn extend(&mut self, other: SubflowSet) {
        self.0 |= other.0;
    }

    /// The members that both sets contain.
    #[must_use]
    pub fn and(self, other: SubflowSet) -> Self {
        SubflowSet(self.0 & other.0)
    }

    /// The slots of the members, in order.
    pub fn slots(self) -> impl Iterator<Item = Slot> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let slot = left.trailing_zeros() as u8;
            (left != 0).then(|| {
                left &= left - 1;
                Slot(slot)
            })
        })
    }

    /// Returns `true` if the two sets have a common member.
    pub fn intersects(self, other: SubflowSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns `true` if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl SubflowView {
    /// Returns `true` if it may carry data and congestion control allows it to send a full segment
    /// now.
    pub fn can_send(&self) -> bool {
        self.usability == Usability::Usable && self.available_cwnd >= u64::from(self.mss)
    }

    /// Smoothed round-trip time, or [`Duration::MAX`] before the first sample.
    pub fn srtt_or_max(&self) -> Duration {
        self.srtt.unwrap_or(Duration::MAX)
    }

    /// Returns `true` if the window is still below the slow-start threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A usable subflow in congestion avoidance with room for one segment.
    pub(crate) fn view(slot: u8, srtt_ms: u64) -> SubflowView {
        SubflowView {
            id: SubflowId { slot: Slot(slot), generation: 0 },
            local_address_id: slot,
            remote_address_id: 0,
            usability: Usability::Usable,
            backup: false,
            phase: RecoveryPhase::Open,
            mss: 1000,
            cwnd: 20_000,
            ssthresh: 10_000,
            bytes_in_flight: 19_000,
            available_cwnd: 1_000,
            srtt: Some(Duration::from_millis(srtt_ms)),
            rttvar: Duration::ZERO,
            min_rtt: Duration::from_millis(srtt_ms),
            min_srtt: Duration::from_millis(srtt_ms),
            receive_rtt: None,
            loss_interval: 0,
            bottleneck: Bottleneck::Unknown,
        }
    }

    #[test]
    fn sets_hold_what_was_put_in() {
        let mut set = SubflowSet::of(Slot(3));
        set.insert(Slot(31));
        set.remove(Slot(3));
        assert!(set.contains(Slot(31)) && !set.contains(Slot(3)) && !set.is_empty());
        set.extend(SubflowSet::of(Slot(7)));
        assert!(set.slots().eq([Slot(7), Slot(31)]));
        assert!(set.and(SubflowSet::of(Slot(7))).slots().eq([Slot(7)]));
    }
}
