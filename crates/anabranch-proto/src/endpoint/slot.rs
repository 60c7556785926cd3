//! A place of an endpoint for a connection.

use anabranch_wire::Instant;

use crate::connection::Connection;

/// A connection, and what its endpoint knows about it.
pub(super) struct ConnectionSlot {
    pub(super) generation: u32,
    pub(super) connection: Option<Box<Connection>>,
    /// Included in the endpoint's list of connections that may have something to send.
    pub(super) dirty: bool,
    /// Included in the endpoint's number of half-open connections.
    pub(super) half_open: bool,
    /// Number of its events that the application has not polled, or [`MANY`].
    waiting_events: u16,
    /// Time of its next wake-up.
    pub(super) wake_up: Instant,
}

/// Number of waiting events from which they are no longer counted.
const MANY: u16 = u16::MAX;

impl Default for ConnectionSlot {
    fn default() -> Self {
        ConnectionSlot {
            generation: 0,
            connection: None,
            dirty: false,
            half_open: false,
            waiting_events: 0,
            wake_up: Instant::FAR_FUTURE,
        }
    }
}

impl ConnectionSlot {
    /// More events of the connection wait for the application.
    #[inline]
    pub(super) fn on_events(&mut self, count: usize) {
        let count = u16::try_from(count).unwrap_or(MANY);
        self.waiting_events = self.waiting_events.saturating_add(count);
    }

    /// The application has polled an event of the connection.
    #[inline]
    pub(super) fn on_event_polled(&mut self) {
        if self.waiting_events != MANY {
            self.waiting_events -= 1;
        }
    }

    /// Returns `true` if an event of the connection waits, and `None` if that is not known.
    pub(super) fn has_waiting_event(&self) -> Option<bool> {
        (self.waiting_events != MANY).then_some(self.waiting_events > 0)
    }

    /// Forget the connection, whose events were polled.
    pub(super) fn forget(&mut self) {
        self.connection = None;
        self.waiting_events = 0;
        self.wake_up = Instant::FAR_FUTURE;
        self.generation = self.generation.wrapping_add(1);
    }

    /// Returns `true` if the connection may have to tell the application or the endpoint anything.
    #[inline]
    pub(super) fn has_output(&self) -> bool {
        self.half_open || self.connection.as_ref().is_some_and(|c| c.has_output())
    }

    /// Returns `true` if the connection is over, in order or with an error.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.connection.as_ref().is_some_and(|c| c.has_ended())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_events_are_counted_unless_there_are_too_many() {
        let mut slot = ConnectionSlot::default();
        slot.on_events(2);
        slot.on_event_polled();
        assert_eq!(slot.has_waiting_event(), Some(true));
        slot.on_event_polled();
        assert_eq!(slot.has_waiting_event(), Some(false));
        slot.on_events(usize::from(MANY) + 1);
        slot.on_event_polled();
        assert_eq!(slot.has_waiting_event(), None);
        slot.forget();
        assert_eq!(slot.has_waiting_event(), Some(false));
    }
}
