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
    /// Number of its events that wait for the application.
    pub(super) waiting_events: u32,
    /// Time of its next wake-up.
    pub(super) wake_up: Instant,
}

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
