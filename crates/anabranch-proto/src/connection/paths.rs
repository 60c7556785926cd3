//! Executes the path manager's actions. RFC 8684 §3.3.8, §3.4.
//!
//! The connection bounds the requests of a path manager, so a faulty one can neither lose data nor
//! stall the connection. How paths appear and disappear:
//!
//! * **A path falls silent.** The retransmission timer expires. The subflow carries no new data
//!   until the peer answers, other subflows reinject its data, and it retransmits with back-off.
//! * **An interface goes down.** The driver reports it (`Endpoint::handle_address_change`). The
//!   host resets the subflows of that address and sends REMOVE_ADDR on another subflow. The peer
//!   probes the path, and closes it only if nothing answers (RFC 8684 §3.4.2).
//! * **A subflow ends.** Its path manager reopens it after 1 s, and doubles the pause up to 60 s
//!   for each subflow that carried no data. It reopens at once if the interface comes up. If the peer
//!   refused for good ([`Retry`]), or the host's kernel replaces no subflow, it reopens only then.
//!   Data that the peer SACKed but did not acknowledge on the subflow is reinjected.
//! * **No subflow is left.** The connection waits 60 s for a new one.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_wire::mptcp::ResetReason;
use anabranch_wire::{Instant, PooledSegment, SeqNumber};

use super::Connection;
use super::handshake::because;
use super::path_driver::{Duty, SubflowRequest};
use super::probes::{ProbeCopy, ProbeRequest};
use super::reinjection::RetransmitCause;
use crate::path_manager::{PathEvent, Retry};
use crate::platform::SilenceRule;
use crate::subflow::DataLevel;
use crate::view::{Slot, SubflowId, SubflowSet};

impl Connection {
    /// RFC 8684 §3.2: further subflows require that the handshake is known to be complete. RFC 8684
    /// §3.1.
    pub(super) fn start_path_manager(&mut self, now: Instant) {
        if self.paths.is_started() || !self.session.is_mptcp() {
            return;
        }
        let remote = self.subflows[Slot(0)].subflow.identity().remote;
        self.paths.start(now, self.session.is_initiator(), remote, self.subflows.views());
        self.carry_out_duties();
    }

    /// Returns `true` if the path manager has started and the connection still wants subflows.
    pub(super) fn manages_paths(&self) -> bool {
        self.paths.is_started() && self.wants_subflows()
    }

    pub(super) fn tell_path_manager(&mut self, now: Instant, event: &PathEvent<'_>) {
        if self.manages_paths() {
            self.paths.tell(now, event, self.subflows.views());
            self.carry_out_duties();
        }
    }

    /// The deadline of the path manager, or [`Instant::FAR_FUTURE`].
    pub(super) fn path_manager_timeout(&self) -> Instant {
        self.paths.due().filter(|_| self.manages_paths()).unwrap_or(Instant::FAR_FUTURE)
    }

    /// Returns `true` if there is a reason to expect a new subflow.
    pub(super) fn expects_subflows(&self) -> bool {
        let awaited = self.manages_paths() && self.paths.due().is_some();
        awaited || self.paths.has_requests() || self.paths.awaits_an_interface()
    }

    /// Returns `true` if there are subflows to open, or the path manager is due.
    #[inline]
    pub(crate) fn has_path_work(&self, now: Instant) -> bool {
        self.paths.has_requests() || self.path_manager_timeout() <= now
    }

    /// Call the path manager if its deadline has passed.
    pub(crate) fn wake_path_manager(&mut self, now: Instant) {
        if self.path_manager_timeout() <= now {
            self.paths.wake(now, self.subflows.views());
            self.carry_out_duties();
        }
    }

    /// The subflows that the endpoint must open.
    pub(crate) fn take_requests(&mut self) -> VecDeque<SubflowRequest> {
        self.paths.take_requests()
    }

    /// Returns `true` if there are subflows for the endpoint to open.
    pub(crate) fn has_requests(&self) -> bool {
        self.paths.has_requests()
    }

    pub(crate) fn could_not_open(&mut self, now: Instant, request: &SubflowRequest) {
        let (local_address_id, remote) = (request.local.id, request.remote);
        let (retry, reopens) = (Retry::Later, self.config.platform.reopens_subflows);
        let event = PathEvent::SubflowClosed { id: None, local_address_id, remote, retry, reopens };
        self.tell_path_manager(now, &event);
    }

    /// Returns `true` if the subflow can be opened. It needs an address of this host, of the peer's
    /// family and with a route to the peer, and the connection must have room for it.
    pub(crate) fn can_open(&self, request: &SubflowRequest) -> bool {
        let family = request.local.address.is_ipv4() == request.remote.address.is_ipv4();
        // RFC 8684 §3.1: not if the peer has set the "C" flag for this address.
        let welcome = !self.session.is_closed_there(request.remote);
        let (from, to) = (request.local.address, request.remote.address);
        let has_route = self.config.has_route(from, to);
        family && welcome && has_route && self.paths.has(request.local) && self.may_open()
    }

    pub(super) fn may_open(&self) -> bool {
        self.may_open_in_addition(0)
    }

    /// Returns `true` if there is room for another subflow, with `uncounted` of the existing ones
    /// left out of the count.
    pub(super) fn may_open_in_addition(&self, uncounted: usize) -> bool {
        let live = self.subflows.live().count() - uncounted;
        self.wants_subflows()
            && live < usize::from(self.config.max_subflows).min(SubflowSet::CAPACITY)
    }

    /// Returns `true` if the connection may still have further subflows. A connection that has
    /// given up its only subflow for another needs the new one to close as well.
    pub(super) fn wants_subflows(&self) -> bool {
        let is_closing = self.send.queue.is_finished() || self.recv.queue.is_complete();
        self.session.is_mptcp()
            && self.session.is_open()
            && (self.config.platform.joins.after_close || !is_closing || self.paths.is_moving())
    }

    /// The host has a new address, or regained one.
    pub(crate) fn add_address(&mut self, now: Instant, address: IpAddr) {
        let usable = self.config.local_addresses.as_ref();
        if usable.is_none_or(|usable| usable.contains(&address))
            && let Some(local) = self.paths.add(address)
        {
            let remote = self.paths.remote_addresses();
            self.tell_path_manager(now, &PathEvent::AddressAdded { local, remote: &remote });
        } else {
            self.handle_address_change(now, address, true);
        }
    }

    /// A router reports that a segment of the subflow in `slot` was too large for its path.
    pub(crate) fn handle_too_big(&mut self, slot: Slot, seq: SeqNumber, mtu: u16) {
        let (ctx, views) = self.subflows.with_views(slot);
        if ctx.subflow.handle_too_big(seq, mtu, views) {
            self.subflows.refresh(slot);
            self.send.queue.recut(slot, self.subflows.view(slot).mss);
            self.scheduling.on_change();
        }
    }

    /// The interface with `address` went down or came up.
    pub(crate) fn handle_address_change(&mut self, now: Instant, address: IpAddr, usable: bool) {
        if let Some(changed) = self.paths.change(address, usable) {
            self.tell_path_manager(now, &changed);
            self.reap(now);
        }
    }

    fn carry_out_duties(&mut self) {
        for duty in self.paths.drain_duties() {
            match duty {
                Duty::Close { subflow, reset } => self.close_subflow(subflow, reset),
                Duty::SetPriority { subflow, backup, signalled } => {
                    self.subflows.set_priority(subflow, backup, signalled);
                }
                Duty::Probe { subflow, count, bytes } => {
                    let end = self.send.queue.carried_to();
                    let under_way = self.send.queue.una()..end;
                    self.paths.probes.start(subflow, ProbeRequest { count, bytes }, under_way);
                }
            }
        }
    }

    fn close_subflow(&mut self, id: SubflowId, reset: bool) {
        let is_sole = self.subflows.is_sole(id.slot);
        if is_sole && !self.may_replace(id.slot) {
            // The connection would end, although the path may recover.
            return;
        }
        let Some(mut ctx) = self.subflows.edit_by_id(id) else { return };
        if is_sole {
            self.paths.begin_move();
        }
        if reset {
            ctx.subflow.reset(Some(because(ResetReason::UNACCEPTABLE_PERFORMANCE)));
        } else {
            ctx.subflow.finish(false);
        }
        drop(ctx);
        if self.config.platform.silence != SilenceRule::FirstTimeout && self.subflows.have_several()
        {
            self.resend_all();
        }
        self.send.queue.reassign(id.slot);
    }

    /// Returns `true` if another subflow may replace the only one, in `slot`. RFC 8684 §3.1: not if the
    /// peer has set the "C" flag and announced no address. A host that refuses joins while it closes
    /// may do so before its peer can know it. A peer to which both ends of the stream were sent may
    /// have closed the connection (RFC 8684 §3.3.3). In both cases, the host gives up only a subflow
    /// whose interface is down.
    fn may_replace(&self, slot: Slot) -> bool {
        let address_id = self.subflows[slot].subflow.identity().local_address_id;
        let remote = self.paths.remote_addresses();
        let peer_may_be_done = self.recv.queue.is_complete() && self.send.queue.fin_outstanding();
        let joins = self.config.platform.joins.after_close && !peer_may_be_done;
        remote.iter().any(|remote| !self.session.is_closed_there(remote.end))
            && (joins || self.paths.is_down(address_id))
    }

    /// Send the removed addresses to the peer on every subflow that can carry the option, because
    /// the peer does not acknowledge it. RFC 8684 §3.4.2.
    pub(super) fn signal_removals(&mut self) {
        let Some(removed) = self.paths.removals() else { return };
        let mut told = false;
        let usable = self.subflows.usable();
        for (slot, ctx) in self.subflows.slots().zip(self.subflows.iter_mut()) {
            let subflow = &mut ctx.subflow;
            if usable.contains(slot)
                && !removed.address_ids().contains(&subflow.identity().local_address_id)
            {
                subflow.signals_mut().removal(removed);
                told = true;
            }
        }
        if told {
            self.paths.removals_are_told();
        }
    }

    /// The peer reports that it has lost these addresses. The scheduler must not use their subflows
    /// until they show signs of life. A platform may close them instead.
    pub(super) fn verify_liveness_of(&mut self, now: Instant, told_on: Slot, address_ids: &[u8]) {
        for slot in self.subflows.slots() {
            let ctx = &self.subflows[slot];
            let lost = address_ids.contains(&ctx.subflow.identity().remote_address_id);
            if lost && slot != told_on && !ctx.is_reaped() {
                let mut ctx = self.subflows.edit(slot);
                match self.config.platform.closes_removed {
                    true => ctx.subflow.reset(None),
                    false => ctx.subflow.verify_liveness(now),
                }
                drop(ctx);
                // A peer that lost its interface drops out-of-order data as well.
                self.resend_for(slot);
                self.send.queue.reassign(slot);
            }
        }
    }

    /// The next probe for which a subflow has room.
    pub(super) fn poll_probe(&mut self, now: Instant, level: &DataLevel) -> Option<PooledSegment> {
        let ProbeCopy { slot, start, len } =
            self.paths.probes.poll(self.send.queue.una(), self.subflows.views())?;
        let payload = self.send.queue.payload(start, len);
        Some(self.send_again_on(now, level, slot, start, payload, RetransmitCause::Probe))
    }
}
