//! Output of a connection: events for the application, registrations for the endpoint, traces.

use std::collections::VecDeque;

use anabranch_wire::{Instant, SocketAddress};

use crate::event::Event;
use crate::trace::{TraceEvent, TraceKind};
use crate::view::Slot;

/// A change to the endpoint's table of addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registration {
    pub(crate) slot: Slot,
    pub(crate) local: SocketAddress,
    pub(crate) remote: SocketAddress,
    pub(crate) exists: bool,
}

/// Output that waits to be polled.
pub(super) struct Outbox {
    events: VecDeque<Event>,
    /// One event of each kind is enough until the application polls it.
    readable: bool,
    writable: bool,
    /// Subflows that the endpoint must add to or remove from its table.
    registrations: VecDeque<Registration>,
    /// `None` unless the connection is traced.
    trace: Option<VecDeque<TraceEvent>>,
}

impl Outbox {
    pub(super) fn new(traced: bool) -> Self {
        Outbox {
            events: VecDeque::new(),
            readable: false,
            writable: false,
            registrations: VecDeque::new(),
            trace: traced.then(VecDeque::new),
        }
    }

    /// Report an event to the application.
    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// The application can read more, or has reached the end of the stream.
    #[inline]
    pub(super) fn tell_readable(&mut self) {
        self.readable = true;
    }

    /// The application can write again.
    #[inline]
    pub(super) fn tell_writable(&mut self) {
        self.writable = true;
    }

    /// Report a change of subflows to the endpoint.
    pub(super) fn register(&mut self, registration: Registration) {
        self.registrations.push_back(registration);
    }

    /// Record a trace event, if the connection is traced.
    #[inline]
    pub(super) fn record(&mut self, now: Instant, kind: TraceKind) {
        if let Some(trace) = &mut self.trace {
            trace.push_back(TraceEvent { at: now, kind });
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if std::mem::take(&mut self.readable) {
            return Some(Event::Readable);
        }
        std::mem::take(&mut self.writable).then_some(Event::Writable)
    }

    /// Returns `true` if an event or a registration waits.
    #[inline]
    pub(super) fn has_output(&self) -> bool {
        self.readable || self.writable || !self.events.is_empty() || !self.registrations.is_empty()
    }

    #[inline]
    pub(super) fn has_registrations(&self) -> bool {
        !self.registrations.is_empty()
    }

    pub(super) fn poll_registration(&mut self) -> Option<Registration> {
        self.registrations.pop_front()
    }

    pub(super) fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.trace.as_mut()?.pop_front()
    }

    /// Release unused memory.
    pub(super) fn release_memory(&mut self) {
        self.events.shrink_to_fit();
        self.registrations.shrink_to_fit();
    }
}
