//! What limits a subflow's data in flight.

use super::Subflow;

impl Subflow {
    /// Bytes of new data that congestion control and the peer's window on this subflow admit now,
    /// without the limits that remedies set.
    pub(crate) fn own_room(&self) -> u64 {
        self.room_for_new_data()
    }

    /// Would congestion control admit a full segment that the peer's window on this subflow does
    /// not?
    pub(crate) fn is_limited_by_window(&self) -> bool {
        let mss = u64::from(self.mss());
        self.room() >= mss && self.room_for_new_data() < mss
    }
}
