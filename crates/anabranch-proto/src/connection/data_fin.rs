//! What the peer is told of the end of this host's stream. RFC 8684 §3.3.3.

/// The DATA_FIN, as far as it goes out, and whether the peer shows that it heard it.
#[derive(Debug, Default)]
pub(super) struct DataFin {
    state: State,
    /// An acceptable segment has come since the data-level timer last expired.
    peer_spoke: bool,
    /// DATA_FINs in a row after which the peer spoke, and did not acknowledge them.
    unheard: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is to be sent.
    Quiet(Told),
    /// One without payload is to be sent: on that subflow, whosever turn it is, if it says one.
    Due { on: Option<u8>, told: Told },
}

/// What has gone out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Never,
    /// One with data, or on a subflow that is gone.
    Somewhere,
    /// The last one without payload, on the subflow in that slot.
    On(u8),
}

impl Default for State {
    fn default() -> Self {
        State::Quiet(Told::Never)
    }
}

impl DataFin {
    fn told(&self) -> Told {
        match self.state {
            State::Quiet(told) | State::Due { told, .. } => told,
        }
    }

    /// One without payload is to be sent.
    pub(super) fn send(&mut self) {
        if let State::Quiet(told) = self.state {
            self.state = State::Due { on: None, told };
        }
    }

    /// The same, on the subflow in `slot`, which has just come.
    pub(super) fn send_on(&mut self, slot: u8) {
        self.state = State::Due { on: Some(slot), told: self.told() };
    }

    /// None is to be sent any more.
    pub(super) fn cancel(&mut self) {
        self.state = State::Quiet(self.told());
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        matches!(self.state, State::Due { .. })
    }

    /// The subflow that is to carry the one that is due, if it matters.
    pub(super) fn is_due_on(&self) -> Option<u8> {
        match self.state {
            State::Due { on, .. } => on,
            State::Quiet(_) => None,
        }
    }

    /// The last data has gone out with it.
    pub(super) fn went_with_data(&mut self) {
        let heard = |told| if told == Told::Never { Told::Somewhere } else { told };
        match &mut self.state {
            State::Quiet(told) | State::Due { told, .. } => *told = heard(*told),
        }
    }

    /// It has gone out without payload on the subflow in `slot`.
    pub(super) fn went_alone(&mut self, slot: u8) {
        self.state = State::Quiet(Told::On(slot));
    }

    /// Has one gone out?
    pub(super) fn was_told(&self) -> bool {
        self.told() != Told::Never
    }

    /// The subflow that carried one without payload last, if it is still there.
    pub(super) fn was_on(&self) -> Option<u8> {
        match self.told() {
            Told::On(slot) => Some(slot),
            Told::Never | Told::Somewhere => None,
        }
    }

    /// The subflow in `slot` is gone. Did it carry the last one without payload?
    pub(super) fn lose(&mut self, slot: u8) -> bool {
        let lost = self.was_on() == Some(slot);
        if lost {
            match &mut self.state {
                State::Quiet(told) | State::Due { told, .. } => *told = Told::Somewhere,
            }
        }
        lost
    }

    /// An acceptable segment came.
    #[inline]
    pub(super) fn on_segment(&mut self) {
        self.peer_spoke = true;
    }

    /// The data-level timer expired. `waits`: the DATA_FIN is all that the peer has not
    /// acknowledged. Returns how many DATA_FINs in a row it left so, although it spoke.
    pub(super) fn count_unheard(&mut self, waits: bool) -> u8 {
        let spoke = std::mem::take(&mut self.peer_spoke);
        self.unheard = if waits && spoke { self.unheard.saturating_add(1) } else { 0 };
        self.unheard
    }

    /// Begin to count anew.
    pub(super) fn forget_unheard(&mut self) {
        self.unheard = 0;
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
        data_fin.went_alone(1);
        assert_eq!((data_fin.is_due(), data_fin.was_on()), (false, Some(1)));
        assert!(!data_fin.lose(0) && data_fin.lose(1) && !data_fin.lose(1));
        assert_eq!((data_fin.was_told(), data_fin.was_on()), (true, None));
    }

    #[test]
    fn one_that_is_due_again_stays_with_the_subflow_that_is_to_carry_it() {
        let mut data_fin = DataFin::default();
        data_fin.went_with_data();
        data_fin.send_on(2);
        data_fin.send();
        assert_eq!((data_fin.is_due_on(), data_fin.was_told()), (Some(2), true));
        data_fin.cancel();
        assert_eq!((data_fin.is_due(), data_fin.was_told()), (false, true));
    }
}
