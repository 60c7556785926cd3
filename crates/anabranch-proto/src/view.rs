//! What a policy sees of a connection: copies, never the engine itself.

use anabranch_wire::Duration;

/// Names a subflow of a connection. Slots are reused, generations are not, so a stale name is
/// recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubflowId {
    /// Index into the array of views, below [`SubflowSet::CAPACITY`].
    pub slot: u8,
    /// How many subflows used the slot before.
    pub generation: u32,
}

/// A set of subflows, as a bit mask over slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubflowSet(u32);

/// The state of one subflow, copied for policies. The connection keeps one array of views,
/// indexed by slot; an unused slot has [`Usability::Closed`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubflowView {
    /// Who this is.
    pub id: SubflowId,
    /// Identifier of the local address. RFC 8684 §3.2.
    pub local_address_id: u8,
    /// Identifier of the remote address.
    pub remote_address_id: u8,
    /// May it carry data?
    pub usability: Usability,
    /// Either end marked it as backup. RFC 8684 §3.3.8.
    pub backup: bool,
    /// Where loss recovery stands.
    pub phase: Phase,
    /// Largest payload of one data segment, in bytes, options accounted for.
    pub mss: u32,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow-start threshold in bytes; `u64::MAX` before the first loss.
    pub ssthresh: u64,
    /// Bytes sent and neither acknowledged nor deemed lost.
    pub bytes_in_flight: u64,
    /// Bytes that congestion control lets the subflow send now.
    pub room: u64,
    /// Bytes that its platform paces out in a round-trip time, as of the last acknowledgement.
    pub paced_window: u64,
    /// Smoothed round-trip time; `None` before the first sample. RFC 6298.
    pub srtt: Option<Duration>,
    /// Round-trip time variation.
    pub rttvar: Duration,
    /// Smallest round-trip time seen; [`Duration::MAX`] before the first sample.
    pub min_rtt: Duration,
    /// Smallest *smoothed* round-trip time; [`Duration::MAX`] before the first sample.
    pub min_srtt: Duration,
    /// Smoothed round-trip time as a receiver of data sees it: from an acknowledgement sent until
    /// data comes back that echoes its timestamp. RFC 7323 §4.1, used the other way round.
    pub receive_rtt: Option<Duration>,
    /// Bytes acknowledged since the last loss, or between the last two if that is more: how
    /// well the path has done lately. Khalili et al., CoNEXT 2012.
    pub loss_interval: u64,
    /// Whom it shares a bottleneck with, if that is being found out. RFC 8382.
    pub bottleneck: Bottleneck,
}

/// May a subflow carry data?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usability {
    /// Established at both ends.
    Usable,
    /// Its retransmission timer expired and nothing was acknowledged since: no new data until it
    /// answers again.
    PotentiallyFailed,
    /// The handshake is still going on.
    Opening,
    /// Closing, or an unused slot.
    Closed,
}

/// The bottleneck that a subflow passes through. RFC 8382.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bottleneck {
    /// Nobody has looked, or not for long enough.
    #[default]
    Unknown,
    /// None: its delays show no queue.
    None,
    /// One that all subflows with this number pass through; it is the lowest of their slots.
    Shared(u8),
}

impl Bottleneck {
    /// May a subflow that passes through this one share it with one that passes through `other`?
    pub fn may_be(self, other: Bottleneck) -> bool {
        let unknown = self == Bottleneck::Unknown || other == Bottleneck::Unknown;
        unknown || (self == other && self != Bottleneck::None)
    }
}

/// Where a subflow's loss recovery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing deemed lost.
    Open,
    /// Fast recovery. RFC 6675, RFC 8985.
    Recovery,
    /// After a retransmission timeout. RFC 6298 §5.
    Loss,
}

impl SubflowSet {
    /// Most subflows a connection can have.
    pub const CAPACITY: usize = 32;
    /// No subflow.
    pub const EMPTY: SubflowSet = SubflowSet(0);

    /// The set of the subflow in `slot` alone.
    pub fn of(slot: u8) -> Self {
        SubflowSet(1 << slot)
    }

    /// Is the subflow in `slot` a member?
    pub fn contains(self, slot: u8) -> bool {
        self.0 & (1 << slot) != 0
    }

    /// Add the subflow in `slot`.
    pub fn insert(&mut self, slot: u8) {
        self.0 |= 1 << slot;
    }

    /// Take out the subflow in `slot`.
    pub fn remove(&mut self, slot: u8) {
        self.0 &= !(1 << slot);
    }

    /// Add all members of `other`.
    pub fn extend(&mut self, other: SubflowSet) {
        self.0 |= other.0;
    }

    /// The members that `other` has too.
    #[must_use]
    pub fn and(self, other: SubflowSet) -> Self {
        SubflowSet(self.0 & other.0)
    }

    /// The slots of the members, in order.
    pub fn slots(self) -> impl Iterator<Item = u8> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let slot = left.trailing_zeros() as u8;
            (left != 0).then(|| {
                left &= left - 1;
                slot
            })
        })
    }

    /// Have the two sets a member in common?
    pub fn intersects(self, other: SubflowSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Has the set no member?
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl SubflowView {
    /// May it carry data, and does congestion control let it send a full segment now?
    pub fn can_send(&self) -> bool {
        self.usability == Usability::Usable && self.room >= u64::from(self.mss)
    }

    /// Smoothed round-trip time, or "unknown, longer than any".
    pub fn srtt_or_max(&self) -> Duration {
        self.srtt.unwrap_or(Duration::MAX)
    }

    /// Is the window still below the slow-start threshold?
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
            id: SubflowId { slot, generation: 0 },
            local_address_id: slot,
            remote_address_id: 0,
            usability: Usability::Usable,
            backup: false,
            phase: Phase::Open,
            mss: 1000,
            cwnd: 20_000,
            ssthresh: 10_000,
            bytes_in_flight: 19_000,
            room: 1_000,
            paced_window: 24_000,
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
        let mut set = SubflowSet::of(3);
        set.insert(31);
        set.remove(3);
        assert!(set.contains(31) && !set.contains(3) && !set.is_empty());
        set.extend(SubflowSet::of(7));
        assert!(set.slots().eq([7, 31]));
        assert!(set.and(SubflowSet::of(7)).slots().eq([7]));
    }
}
