//! The data level: one connection over several subflows. RFC 8684.

mod activity;
mod announce;
mod announcements;
mod arrived;
mod buffers;
mod carried;
mod checksum;
mod close;
mod contents;
mod data_fin;
mod data_rto;
mod data_timers;
mod fallback;
mod handshake;
mod input;
mod interference;
mod join;
mod mapping;
mod outbox;
mod path_driver;
mod paths;
mod prediction;
mod probes;
mod push;
mod receiver;
mod recv_queue;
mod reinjection;
mod schedule;
mod scheduling;
mod send_queue;
mod sender;
mod session;
mod signs;
mod staleness;
mod stats;
mod stopwatch;
mod subflows;
mod timer;
mod transmit;

pub use arrived::ArrivedData;
pub use contents::Contents;
pub(crate) use handshake::{OfferOutcome, Reception, because};
pub(crate) use join::{Answered, JoinAnswer};
pub(crate) use outbox::Registration;
pub(crate) use path_driver::SubflowRequest;
pub(crate) use session::Role;

use std::net::IpAddr;
use std::sync::Arc;

use anabranch_wire::{Instant, Payload, Piece, SocketAddress};

use crate::config::{ConnectionConfig, Protocol};
use crate::counters::ConnectionCounters;
use crate::error::SendError;
use crate::event::Event;
use crate::keys::Secrets;
use crate::path_manager::{LocalAddress, PathEvent};
use crate::platform::{ReceiveWindow, SendBuffer, SilenceRule};
use crate::remedy::BufferSide;
use crate::subflow::{Open, Purpose, Subflow, SubflowIdentity};
use crate::trace::TraceEvent;
use crate::view::{Slot, SubflowId};
use data_fin::DataFin;
use data_rto::DataRto;
use outbox::Outbox;
use path_driver::PathDriver;
use receiver::DataReceiver;
use recv_queue::RecvQueue;
use scheduling::Scheduling;
use send_queue::SendQueue;
use sender::Sender;
use session::Session;
use subflows::Subflows;

pub(crate) struct Connection {
    config: Arc<ConnectionConfig>,
    session: Session,
    fallback: fallback::FallbackState,
    secrets: Secrets,
    subflows: Subflows,
    send: Sender,
    recv: DataReceiver,
    scheduling: Scheduling,
    paths: PathDriver,
    timers: timer::ConnectionTimers,
    data_rto: DataRto,
    data_fin: DataFin,
    outbox: Outbox,
    counters: ConnectionCounters,
    offer_outcome: Option<OfferOutcome>,
    /// Nothing was left to send after the last poll.
    settled: bool,
}

/// The parts of a new connection.
pub(crate) struct NewConnection<'a> {
    pub(crate) config: Arc<ConnectionConfig>,
    pub(crate) role: Role,
    pub(crate) key: u64,
    pub(crate) secrets: Secrets,
    pub(crate) addresses: Vec<LocalAddress>,
    /// The host's addresses whose interfaces are down.
    pub(crate) addresses_down: &'a [IpAddr],
}

impl Connection {
    pub(crate) fn new(new: NewConnection<'_>) -> Self {
        let config = new.config;
        let mut subflows = Subflows::new((config.remedies)(), config.shared_bottleneck_detection);
        let is_tcp = config.protocol == Protocol::Tcp;
        let send_buffer = SendBuffer::new(&config.platform.buffers, is_tcp, config.send_buffer)
            .beginning_with(subflows.initial_buffer(BufferSide::Send));
        let window = ReceiveWindow::new(&config.platform.buffers, is_tcp, config.receive_buffer)
            .beginning_with(subflows.initial_buffer(BufferSide::Receive));
        let window = match config.first_receive_buffer {
            Some(bytes) => window.opening_later(bytes.into()),
            None => window,
        };
        let scale = window.scale();
        Connection {
            session: Session::new(new.role, new.key, &config),
            fallback: fallback::FallbackState::default(),
            secrets: new.secrets,
            subflows,
            send: Sender::new(SendQueue::new(send_buffer), config.platform.options),
            recv: DataReceiver::new(RecvQueue::new(window), scale),
            scheduling: Scheduling::new((config.scheduler)()),
            paths: PathDriver::new(
                (config.path_manager)(),
                new.addresses,
                new.addresses_down,
                &config.platform,
            ),
            timers: timer::ConnectionTimers::new(),
            data_rto: DataRto::default(),
            data_fin: DataFin::default(),
            outbox: Outbox::new(config.trace),
            counters: ConnectionCounters::default(),
            offer_outcome: None,
            settled: false,
            config,
        }
    }

    /// Write data. Returns the number of bytes accepted. If it is smaller than the number offered,
    /// the send buffer is full, and [`Event::Writable`] will follow.
    pub(crate) fn send(&mut self, piece: Piece) -> Result<usize, SendError> {
        if self.session.has_ended() {
            return Err(SendError::NotConnected);
        }
        if self.send.queue.is_finished() {
            return Err(SendError::Closed);
        }
        self.measure_send_memory();
        let accepted = self.send.write(piece);
        self.scheduling.on_change();
        Ok(accepted)
    }

    /// Minimum number of bytes that [`Connection::send`] would accept.
    pub(crate) fn send_buffer_space(&self) -> u64 {
        self.send.queue.space()
    }

    /// Read the next in-order data.
    pub(crate) fn recv(&mut self) -> Option<Payload> {
        let payload = self.recv.queue.read()?;
        self.on_read();
        if self.recv.queue.is_drained() {
            self.subflows.on_drained();
        }
        Some(payload)
    }

    /// Open all of the receive buffer.
    pub(crate) fn open_receive_buffer(&mut self) {
        self.recv.queue.window_mut().open();
    }

    /// Returns `true` if the peer has closed its sending direction and the application has read
    /// everything.
    pub(crate) fn is_at_end(&self) -> bool {
        !self.recv.queue.has_data() && self.has_received_all()
    }

    /// Returns `true` if the peer's stream has arrived up to its end, and nothing of it was discarded.
    pub(crate) fn has_received_all(&self) -> bool {
        self.peer_has_finished() && !self.recv.queue.has_discarded()
    }

    fn peer_has_finished(&self) -> bool {
        match self.session.is_mptcp() {
            true => self.recv.queue.is_complete(),
            false => {
                let ctx = self.subflows.get(self.fallback.slot().index());
                self.recv.queue.is_complete()
                    || ctx.is_some_and(|ctx| ctx.subflow.receiver().finished())
            }
        }
    }

    /// The local port of the subflow in the first slot.
    pub(crate) fn local_port(&self) -> Option<u16> {
        self.subflows.first().map(|ctx| ctx.subflow.identity().local.port)
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.outbox.poll_event()
    }

    pub(crate) fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.outbox.poll_trace()
    }

    /// Returns `true` if an event or a registration waits.
    #[inline]
    pub(crate) fn has_output(&self) -> bool {
        self.outbox.has_output()
    }

    pub(crate) fn has_registrations(&self) -> bool {
        self.outbox.has_registrations()
    }

    pub(crate) fn poll_registration(&mut self) -> Option<Registration> {
        self.outbox.poll_registration()
    }

    /// Returns `true` if the connection is over, in order or with an error.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.session.has_ended()
    }

    /// Returns `true` if nothing is left to do, so that the endpoint may forget the connection.
    pub(crate) fn is_gone(&self) -> bool {
        let ended = self.session.has_ended() && self.subflows.iter().all(|ctx| ctx.is_reaped());
        ended && !self.recv.queue.has_data()
    }

    /// Release unused memory.
    pub(crate) fn release_memory(&mut self) {
        self.send.queue.release_memory();
        self.recv.queue.release_memory();
        self.outbox.release_memory();
        self.paths.release_memory();
        self.subflows.release_memory();
    }

    /// Add a new subflow in a free slot.
    fn add_subflow(
        &mut self,
        make: impl FnOnce(Open<'_>) -> Subflow,
        place: SubflowAddresses,
    ) -> Slot {
        let id = self.subflows.next_id();
        let subflow = self.make_subflow(id, make, place);
        let slot = self.subflows.add(subflow);
        let SubflowAddresses { local, remote, .. } = place;
        self.outbox.register(Registration { slot, local, remote, exists: true });
        slot
    }

    fn make_subflow(
        &mut self,
        id: SubflowId,
        make: impl FnOnce(Open<'_>) -> Subflow,
        place: SubflowAddresses,
    ) -> Subflow {
        make(Open {
            identity: SubflowIdentity {
                id,
                purpose: place.purpose,
                local: place.local,
                remote: place.remote,
                local_address_id: place.local_address_id,
                remote_address_id: place.remote_address_id,
            },
            iss: self.secrets.initial_sequence(place.local, place.remote)
                + (place.now.as_nanos() / 64) as u32,
            timestamp_offset: self.secrets.draw("timestamp") as u32,
            receive_scale: self.recv.scale(),
            config: &self.config,
        })
    }

    /// Returns `true` if a deadline may be earlier than `wake_up`, and was not when this was last asked.
    #[inline]
    pub(crate) fn has_earlier_deadline(&mut self, wake_up: Instant) -> bool {
        let set = self.timers.take_earliest_set().min(self.subflows.take_earliest_set());
        set.min(self.paths.announcements.next()).min(self.path_manager_timeout()) < wake_up
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let subflows = self.subflows.iter().map(|ctx| ctx.subflow.poll_timeout());
        let own = self.timers.next().min(self.paths.announcements.next());
        let next = subflows.fold(own.min(self.path_manager_timeout()), Instant::min);
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.scheduling.on_change();
        let orphaned = self.recv.is_released() || self.session.has_ended();
        for slot in self.subflows.slots() {
            if self.subflows[slot].subflow.poll_timeout() <= now {
                let (ctx, views) = self.subflows.with_views(slot);
                let timed_out = ctx.subflow.handle_timeout(now, views, orphaned);
                self.subflows.refresh(slot);
                if timed_out {
                    self.on_subflow_timeout(now, slot);
                }
            }
        }
        self.handle_data_timers(now);
        self.reap(now);
    }

    /// The subflow stopped answering: reinject the data that only this subflow carried, unless the
    /// host waits for more signs.
    fn on_subflow_timeout(&mut self, now: Instant, slot: Slot) {
        let fails = self.config.platform.silence == SilenceRule::FirstTimeout;
        if fails && self.subflows.len() > 1 {
            self.reinject_outstanding(slot);
        }
        let subflow = &self.subflows[slot].subflow;
        let (id, in_a_row) = (subflow.id(), subflow.timeouts_in_a_row());
        self.tell_path_manager(now, &PathEvent::SubflowTimeout { id, in_a_row });
    }
}

/// Addresses of a new subflow.
#[derive(Clone, Copy)]
struct SubflowAddresses {
    now: Instant,
    purpose: Purpose,
    local: SocketAddress,
    remote: SocketAddress,
    local_address_id: u8,
    remote_address_id: u8,
}
