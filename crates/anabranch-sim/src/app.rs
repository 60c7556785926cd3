//! An application at one end of a connection. It works with any TCP stack.

use anabranch_net::Side;
use anabranch_wire::{Instant, Payload};
use core::fmt;

use crate::scenario::Connection;
use crate::workload::{Application, Draws, Sender, Sink, Socket};

/// The application at one end of a scenario's connection.
pub struct App {
    /// When to open the connection; `None` at the server and after the connection was opened.
    start: Option<Instant>,
    sender: Option<Box<dyn Sender>>,
    sink: Sink,
    /// Whether the application has nothing more to write once its peer has closed.
    closes_with_peer: bool,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").finish_non_exhaustive()
    }
}

impl App {
    /// The application at the `side` end of `connection`, in a run with seed `seed`.
    pub fn new(side: Side, connection: &Connection, seed: u64) -> Self {
        let senders = connection.direction.senders();
        let draws = Draws { seed, connection: &connection.name };
        let end = |sends| connection.workload.application(sends, &draws);
        let mut application = end(senders.contains(&side));
        let sends_both_ways = senders.len() > 1;
        if sends_both_ways {
            application.received_blocks = end(false).received_blocks;
        }
        let Application { sender, received_blocks } = application;
        let start = (side == Side::Client).then_some(Instant::ZERO + connection.start);
        App { start, sender, sink: Sink::new(received_blocks), closes_with_peer: !sends_both_ways }
    }

    /// When to open the connection; `None` at the server and after the connection was opened.
    pub fn start(&self) -> Option<Instant> {
        self.start
    }

    /// Returns `true`, once, if it is time to open the connection.
    pub fn is_starting(&mut self, now: Instant) -> bool {
        self.start.take_if(|at| *at <= now).is_some()
    }

    /// When to call [`on_writable`](Self::on_writable) even if the socket has not become writable.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.sender()?.poll_timeout()
    }

    /// Write data. Call this when the socket has room or [`poll_timeout`](Self::poll_timeout) is
    /// due.
    pub fn on_writable(&mut self, now: Instant, socket: &mut dyn Socket) {
        if let Some(sender) = &mut self.sender {
            sender.on_writable(now, socket);
        }
    }

    /// Process data that was read from the socket.
    pub fn on_data(&mut self, now: Instant, payload: &Payload) {
        self.sink.on_data(now, payload);
    }

    /// React to the data that was read. Call this after the socket was read until it was empty.
    pub fn on_received(&mut self, now: Instant, socket: &mut dyn Socket) {
        if let Some(sender) = &mut self.sender {
            sender.on_received(now, self.sink.received(), socket);
        }
    }

    /// Returns `true` if the connection is closed as soon as the peer has closed it and all its
    /// data was read. An application that sends independently of its peer closes when it has
    /// written everything.
    pub fn closes_with_peer(&self) -> bool {
        self.closes_with_peer
    }

    /// The sending half of the application, if it has one.
    pub fn sender(&self) -> Option<&dyn Sender> {
        self.sender.as_deref().map(|sender| sender as _)
    }

    /// The receiving half of the application.
    pub fn sink(&self) -> &Sink {
        &self.sink
    }
}
