//! The end of this host's stream, as announced to the peer. RFC 8684 §3.3.3.

use crate::view::Slot;

/// The state of sending the DATA_FIN, and whether the peer seems to receive it.
#[derive(Debug, Default)]
pub(super) struct DataFin {
    state: DataFinState,
    /// An acceptable segment has arrived since the data-level timer last expired.
    peer_spoke: bool,
    /// Consecutive DATA_FINs that the peer did not acknowledge although it sent segments.
    ignored: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataFinState {
    /// No DATA_FIN is to be sent.
    Quiet(Told),
    /// A DATA_FIN without payload is to be sent; on the subflow `on` if it is given, otherwise on
    /// any.
    Due { on: Option<Slot>, told: Told },
}

/// The DATA_FINs sent so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Never,
    /// With data, or on a subflow that has ended.
    Somewhere,
    /// The last one without payload was sent on the subflow in this slot.
    On(Slot),
}

impl Default for DataFinState {
    fn default() -> Self {
        DataFinState::Quiet(Told::Never)
    }
}

impl DataFin {
    fn told(&self) -> Told {
        match self.state {
            DataFinState::Quiet(told) | DataFinState::Due { told, .. } => told,
        }
    }

    /// Request a DATA_FIN without payload.
    pub(super) fn send(&mut self) {
        if let DataFinState::Quiet(told) = self.state {
            self.state = DataFinState::Due { on: None, told };
        }
    }

    /// Request a DATA_FIN on the subflow in `slot`, which has just been established.
    pub(super) fn send_on(&mut self, slot: Slot) {
        self.state = DataFinState::Due { on: Some(slot), told: self.told() };
    }

    /// Cancel a requested DATA_FIN.
    pub(super) fn cancel(&mut self) {
        self.state = DataFinState::Quiet(self.told());
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        matches!(self.state, DataFinState::Due { .. })
    }

    /// The subflow that must send the requested DATA_FIN, if it matters.
    pub(super) fn is_due_on(&self) -> Option<Slot> {
        match self.state {
            DataFinState::Due { on, .. } => on,
            DataFinState::Quiet(_) => None,
        }
    }

    /// The DATA_FIN was sent with the last data.
    pub(super) fn went_with_data(&mut self) {
        let after = |told| if told == Told::Never { Told::Somewhere } else { told };
        match &mut self.state {
            DataFinState::Quiet(told) | DataFinState::Due { told, .. } => *told = after(*told),
        }
    }

    /// The DATA_FIN was sent without payload on the subflow in `slot`.
    pub(super) fn went_alone(&mut self, slot: Slot) {
        self.state = DataFinState::Quiet(Told::On(slot));
    }

    /// Returns `true` if a DATA_FIN was sent.
    pub(super) fn was_told(&self) -> bool {
        self.told() != Told::Never
    }

    /// The subflow that last carried a DATA_FIN without payload, if it still exists.
    pub(super) fn was_on(&self) -> Option<Slot> {
        match self.told() {
            Told::On(slot) => Some(slot),
            Told::Never | Told::Somewhere => None,
        }
    }

    /// The subflow in `slot` has ended. Returns `true` if it carried the last DATA_FIN without
    /// payload.
    pub(super) fn lose(&mut self, slot: Slot) -> bool {
        let lost = self.was_on() == Some(slot);
        if lost {
            match &mut self.state {
                DataFinState::Quiet(told) | DataFinState::Due { told, .. } => {
                    *told = Told::Somewhere
                }
            }
        }
        lost
    }

    /// An acceptable segment arrived.
    #[inline]
    pub(super) fn on_segment(&mut self) {
        self.peer_spoke = true;
    }

    /// The data-level timer expired. `waits` is true if only the DATA_FIN is unacknowledged.
    /// Returns the number of consecutive DATA_FINs that the peer did not acknowledge although it
    /// sent segments.
    pub(super) fn count_ignored(&mut self, waits: bool) -> u8 {
        let spoke = std::mem::take(&mut self.peer_spoke);
        self.ignored = if waits && spoke { self.ignored.saturating_add(1) } else { 0 };
        self.ignored
    }

    /// Restart the count.
    pub(super) fn forget_ignored(&mut self) {
        self.ignored = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_went_with_its_subflow_was_told_and_is_known_to_be_lost() {
        let mut data_fin = DataFin::default();
        data_fin.send();
        assert!(data_fin.is_due() && !data_fin.was_told());
        data_fin.went_alone(Slot(1));
        assert_eq!((data_fin.is_due(), data_fin.was_on()), (false, Some(Slot(1))));
        assert!(!data_fin.lose(Slot(0)) && data_fin.lose(Slot(1)) && !data_fin.lose(Slot(1)));
        assert_eq!((data_fin.was_told(), data_fin.was_on()), (true, None));
    }

    #[test]
    fn one_that_is_due_again_stays_with_the_subflow_that_is_to_carry_it() {
        let mut data_fin = DataFin::default();
        data_fin.went_with_data();
        data_fin.send_on(Slot(2));
        data_fin.send();
        assert_eq!((data_fin.is_due_on(), data_fin.was_told()), (Some(Slot(2)), true));
        data_fin.cancel();
        assert_eq!((data_fin.is_due(), data_fin.was_told()), (false, true));
    }
}
