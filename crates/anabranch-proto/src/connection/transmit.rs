//! What goes out next, and on which subflow.

use anabranch_wire::mptcp::WideOrNarrow;
use anabranch_wire::{Duration, Flags, Instant, Segment};

use super::again::Again;
use super::schedule::Choice;
use super::timer::Timer;
use super::{Connection, Status};
use crate::platform::ShortSegments;
use crate::remedy::{RemedyActions, RemedyContext};
use crate::scheduler::Pending;
use crate::subflow::{Cargo, Carries, DataLevel};
use crate::trace::TraceKind;
use crate::view::{SubflowSet, SubflowView, Usability};

/// Half of the data sequence numbers of 4 octets.
const HALF_OF_NUMBERS: u64 = 1 << 31;
/// RFC 9293 §3.4.2: the maximum segment lifetime.
const SEGMENT_LIFETIME: Duration = Duration::from_secs(120);
/// May data sequence numbers of 4 octets wrap too soon?
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wrap {
    /// They may: numbers of 8 octets are sent.
    pub(super) wide: bool,
    /// That is looked into when so much has been sent, and was when.
    check_from: u64,
    checked_at: Option<Instant>,
}

pub(super) fn poll_transmit(connection: &mut Connection, now: Instant) -> Option<Segment> {
    if let Some(segment) = connection.acknowledge_early(now) {
        return Some(segment);
    }
    if connection.recv.update_is_due(|| connection.lanes.largest_mss()) {
        connection.demand_acks();
    }
    let mut level = connection.data_level();
    for slot in 0..connection.lanes.len() {
        if let Some(segment) = connection.lanes[slot].subflow.poll_transmit(now, &level) {
            connection.counters.out_resets += u64::from(segment.header.flags.contains(Flags::RST));
            if let Some(control) = &segment.options.control {
                connection.counters.mp_fail_tx += u64::from(control.fail.is_some());
                connection.counters.mp_rst_tx += u64::from(control.reset.is_some());
                connection.counters.mp_fastclose_tx += u64::from(control.fastclose.is_some());
            }
            connection.lanes.refresh(slot as u8);
            return Some(segment);
        }
    }
    if connection.status == Status::Open
        && let Some(segment) = connection.poll_data(now, &level)
    {
        return Some(segment);
    }
    connection.plan_fin();
    if connection.paths.has_removals() {
        connection.signal_removals();
    }
    connection.signal_addresses(now);
    for slot in 0..connection.lanes.len() {
        level.bare_data_fin = connection.bare_fin_for(now, slot);
        let lane = &mut connection.lanes[slot];
        if !lane.subflow.has_more_to_say() {
            continue;
        }
        let probe = if lane.subflow.wants_tail_probe() {
            lane.subflow.send_tail_probe(now, &level)
        } else {
            None
        };
        let segment = probe.or_else(|| lane.subflow.poll_acknowledge(now, &level));
        if let Some(segment) = segment {
            return Some(connection.count_acknowledgement(slot, segment));
        }
    }
    connection.reap(now);
    None
}

impl Connection {
    /// What came last is acknowledged, with the window before the application has read all of it.
    fn acknowledge_early(&mut self, now: Instant) -> Option<Segment> {
        let (slot, edge) = self.early_acknowledgement.take()?;
        let window = self.recv.announce_up_to(edge, || self.lanes.largest_mss());
        let level = self.data_level_with(window);
        let slot = usize::from(slot);
        let segment = self.lanes.get_mut(slot)?.subflow.poll_acknowledge(now, &level)?;
        Some(self.count_acknowledgement(slot, segment))
    }

    /// An acknowledgement goes out on a subflow, and with it what is signalled there.
    fn count_acknowledgement(&mut self, slot: usize, segment: Segment) -> Segment {
        if let Some(control) = &segment.options.control {
            self.counters.mp_fail_tx += u64::from(control.fail.is_some());
            self.counters.mp_prio_tx += u64::from(control.prio.is_some());
            let removed = control.remove_addr.map_or(0, |option| option.address_ids().len());
            self.counters.rm_addr_tx += removed as u64;
            let told = control.add_addr.map(|option| option.truncated_hmac.is_some());
            self.counters.add_addr_tx += u64::from(told == Some(true));
            self.counters.echo_add_tx += u64::from(told == Some(false));
        }
        if segment.options.dss.is_some_and(|dss| dss.data_fin) {
            self.data_fin.went_alone(slot as u8);
        }
        self.lanes.refresh(slot as u8);
        segment
    }

    /// What segments say of the data level, with the window as it is now.
    pub(super) fn data_level(&mut self) -> DataLevel {
        let window = self.recv.announce(|| self.lanes.largest_mss());
        self.data_level_with(window)
    }

    fn data_level_with(&self, window: u64) -> DataLevel {
        let data_ack =
            self.session.is_mptcp().then(|| self.session.peer_idsn() + self.recv.nxt()).map(
                |ack| match self.wide_acks {
                    true => WideOrNarrow::Wide(ack),
                    false => WideOrNarrow::Narrow(ack.low32()),
                },
            );
        DataLevel {
            window,
            data_ack,
            bare_data_fin: None,
            keys: self.keys_to_repeat(),
            checksums: self.session.checksums(),
            wide: self.wrap.wide,
            writer_waits: self.session.is_tcp() && self.send_blocked,
        }
    }

    /// The window opened by much: tell the peer on every subflow, the quickest of which it will
    /// hear first.
    fn demand_acks(&mut self) {
        for lane in self.lanes.iter_mut() {
            if lane.subflow.is_established() {
                lane.subflow.demand_ack();
            }
        }
    }

    /// Data, new or again.
    fn poll_data(&mut self, now: Instant, level: &DataLevel) -> Option<Segment> {
        self.timers.stop(Timer::Scheduler);
        if let Some(segment) = self.poll_reinjection(now, level) {
            return Some(segment);
        }
        if let Some(segment) = self.poll_copy(now, level) {
            return Some(segment);
        }
        if !self.probes.is_empty()
            && let Some(segment) = self.poll_probe(now, level)
        {
            return Some(segment);
        }
        if let Some(segment) = self.poll_tail_probe(now, level) {
            return Some(segment);
        }
        let unsent = self.send.unsent();
        if unsent > 0 {
            self.poll_new_data(now, level, unsent)
        } else {
            self.on_all_sent(now, level)
        }
    }

    /// RFC 8985 §7.3: a tail loss probe is new data if there is any that may be sent.
    fn poll_tail_probe(&mut self, now: Instant, level: &DataLevel) -> Option<Segment> {
        let slot = self.lanes.iter().position(|lane| lane.subflow.wants_tail_probe())? as u8;
        if self.lanes.view(slot).usability != Usability::Usable {
            return None;
        }
        if let Some(start) = self.send.next_copy(slot).filter(|start| self.send.is_assigned(*start))
        {
            let segment = self.carry_again(now, level, start, slot, Again::Assigned);
            self.lanes[usize::from(slot)].subflow.tail_probe_was_new(now);
            return segment;
        }
        let len = self.next_segment_octets(slot);
        if len == 0 || self.window_room() < len {
            return None;
        }
        // The scheduler is not asked, but what it duplicates remains duplicated.
        let choice = Choice { copies: self.last_copies, ..Choice::only(slot) };
        let segment = self.send_new(now, level, choice, len);
        self.lanes[usize::from(slot)].subflow.tail_probe_was_new(now);
        Some(segment)
    }

    fn poll_new_data(&mut self, now: Instant, level: &DataLevel, unsent: u64) -> Option<Segment> {
        if self.send.nxt() >= self.wrap.check_from {
            self.check_wrap(now);
        }
        let mut unsent = unsent;
        let choice = loop {
            let Some(choice) = self.schedule(now, Pending::NewData { octets: unsent }) else {
                self.window_limited.stop(now);
                return None;
            };
            if !choice.held {
                break choice;
            }
            match self.assign(now, choice.slot) {
                Some(left) => unsent = left,
                None => return self.on_assigned(now, level),
            }
        };
        self.last_copies = choice.copies;
        let len = self.next_segment_octets(choice.slot);
        if self.is_held_by_nagle(len, choice.slot) {
            return self.on_all_sent(now, level);
        }
        let len = if choice.to_edge { self.up_to_edge(len) } else { len };
        if choice.to_edge && self.is_short_held(choice.slot, len) {
            self.assign(now, choice.slot);
            return self.on_assigned(now, level);
        }
        let room = self.window_room();
        if room < len {
            return self.on_window_limited(now, level, choice, room);
        }
        self.window_limited.stop(now);
        Some(self.send_new(now, level, choice, len))
    }

    /// The subflow in `slot` is to send the next segment's data when it has room. How much follows
    /// that is to be decided upon?
    fn assign(&mut self, now: Instant, slot: u8) -> Option<u64> {
        let len = self.next_segment_octets(slot);
        if self.is_held_by_nagle(len, slot) {
            return None;
        }
        let len = self.up_to_edge(len);
        if self.window_room() < len {
            return None;
        }
        let SubflowView { id, mss, .. } = *self.lanes.view(slot);
        let len = self.send.assign_next(len as u32, slot, mss);
        self.last_copies = SubflowSet::EMPTY;
        self.start_retransmission(now);
        if len < u64::from(mss) {
            self.short_segment_end = self.send.nxt();
        }
        self.scheduler.on_sent(id, len);
        Some(self.send.unsent()).filter(|unsent| *unsent > 0)
    }

    /// A segment's octets, or what is left of the peer's window.
    fn up_to_edge(&self, len: u64) -> u64 {
        match self.window_room() {
            0 => len,
            room => room.min(len),
        }
    }

    /// What there is, or what the shared window admits, is assigned. If that is the window, and
    /// some subflow has room, the remedies may help.
    fn on_assigned(&mut self, now: Instant, level: &DataLevel) -> Option<Segment> {
        if let Some(segment) = self.poll_copy(now, level) {
            return Some(segment);
        }
        let room = self.window_room();
        let idle = self.lanes.views().iter().find(|view| view.can_send()).map(|view| view.id.slot);
        match idle.filter(|slot| room < self.next_segment_octets(*slot)) {
            Some(slot) => self.on_window_limited(now, level, Choice::only(slot), room),
            None => {
                self.window_limited.stop(now);
                None
            }
        }
    }

    /// RFC 8684 §3.3.1: numbers of 4 octets will not do if they could wrap within a segment's
    /// lifetime. Whoever sends less than half of them in that time is far from it.
    fn check_wrap(&mut self, now: Instant) {
        let since = self.wrap.checked_at.replace(now);
        self.wrap.check_from = self.send.nxt() + HALF_OF_NUMBERS;
        let soon = since.is_some_and(|since| now.saturating_since(since) < SEGMENT_LIFETIME);
        if soon && !self.wrap.wide {
            self.wrap.wide = true;
            self.settle_all_options();
        }
    }

    fn next_segment_octets(&self, slot: u8) -> u64 {
        let checksum = self.session.checksums();
        let carries = match self.is_first_data_with_keys() {
            true => Carries::Keys { checksum },
            false => self.mapping_carried(),
        };
        self.send.unsent().min(self.lanes[usize::from(slot)].subflow.segment_octets(carries))
    }

    /// RFC 8684 §3.1: the initiator's first data repeats the keys.
    fn is_first_data_with_keys(&self) -> bool {
        self.session.is_mptcp() && self.send.nxt() == 1 && self.keys_to_repeat().is_some()
    }

    /// RFC 9293 §3.7.4: a short segment waits.
    fn is_held_by_nagle(&self, len: u64, slot: u8) -> bool {
        let sent = ShortSegments {
            sent_end: self.send.nxt(),
            short_end: self.short_segment_end,
            writer_waits: self.send_blocked,
        };
        self.config.tcp.nagle
            && len < u64::from(self.lanes.view(slot).mss)
            && self.send.una() < self.config.platform.nagle.awaits(sent)
            && !self.send.is_finished()
    }

    /// Octets that the peer's window admits.
    pub(super) fn window_room(&self) -> u64 {
        self.peer_edge.saturating_sub(self.send.nxt())
    }

    fn send_new(&mut self, now: Instant, level: &DataLevel, choice: Choice, len: u64) -> Segment {
        let Choice { slot, copies, .. } = choice;
        let start = self.send.nxt();
        let with_keys = self.is_first_data_with_keys();
        let payload = self.send.map_next(len as u32, slot, copies);
        let last = self.send.unsent() == 0;
        let is_short = len < u64::from(self.lanes.view(slot).mss);
        if is_short {
            self.short_segment_end = self.send.nxt();
        }
        // RFC 8684 §3.3.3: the DATA_FIN rides on the last data.
        let data_fin = last && self.session.is_mptcp() && self.send.is_finished() && !with_keys;
        if data_fin {
            self.send.fin_sent();
            self.data_fin.went_with_data();
        }
        let data_seq = self.session.data_seq(start);
        let cargo = (self.session.is_mptcp()).then_some(Cargo {
            data_fin,
            with_keys,
            ..Cargo::new(data_seq)
        });
        let (lane, views) = self.lanes.with_views(slot);
        lane.run.extend(lane.subflow.send_next(), start, len);
        let id = lane.subflow.id;
        let segment = lane.subflow.send_data(now, level, payload, cargo, last, views);
        if is_short {
            lane.short_end = lane.subflow.send_next();
        }
        self.scheduler.on_sent(id, len);
        self.outbox.record(now, TraceKind::Scheduled { subflow: id, data_seq, len: len as u32 });
        self.lanes.refresh_after_sending(now, slot);
        self.start_retransmission(now);
        segment
    }

    /// A subflow has room, the shared window has not: ask the remedies. RFC 8684 §3.3.5 has the
    /// window; what to do about it is the sender's affair.
    fn on_window_limited(
        &mut self,
        now: Instant,
        level: &DataLevel,
        choice: Choice,
        room: u64,
    ) -> Option<Segment> {
        self.window_limited.start(now);
        if let Some(segment) = self.ask_remedies(now, level, choice.slot, true) {
            return Some(segment);
        }
        if self.send.una() == self.send.nxt() {
            if self.is_worth_using(room) {
                return Some(self.send_new(now, level, choice, room));
            }
            self.arm_persist(now, room);
        }
        None
    }

    /// Everything was sent that makes a segment. If that is because the send buffer is full, the
    /// remedies may help.
    fn on_all_sent(&mut self, now: Instant, level: &DataLevel) -> Option<Segment> {
        self.window_limited.stop(now);
        if !self.send_blocked || self.remedies_asked || self.lanes.len() < 2 {
            return None;
        }
        let choice = self.schedule(now, Pending::NewData { octets: 0 })?;
        if choice.held {
            return None;
        }
        self.ask_remedies(now, level, choice.slot, false)
    }

    fn ask_remedies(
        &mut self,
        now: Instant,
        level: &DataLevel,
        slot: u8,
        window_limited: bool,
    ) -> Option<Segment> {
        // One subflow cannot hold up another; nothing outstanding holds up nobody.
        if self.remedies_asked || self.lanes.len() < 2 || !self.session.is_mptcp() {
            return None;
        }
        self.remedies_asked = true;
        self.blocked += u64::from(window_limited || self.send.room() == 0);
        if self.lanes.remedies() == 0 {
            return None;
        }
        let head = self.send.head()?;
        let subflow = self.lanes.view(slot).id;
        if window_limited {
            self.outbox.record(now, TraceKind::WindowLimited { subflow });
        }
        let mut reinject = false;
        for remedy in 0..self.lanes.remedies() {
            let send_buffer_full = self.send.room() == 0;
            let actions = self.lanes.ask(remedy, |remedy, subflows| {
                let head_carried_by = head.carried_by();
                let context = RemedyContext {
                    now,
                    subflows,
                    blocked: slot,
                    head_carried_by,
                    send_buffer_full,
                };
                match window_limited {
                    true => remedy.on_window_limited(&context),
                    false => remedy.on_send_buffer_full(&context),
                }
            });
            reinject |= actions.reinject;
            self.penalise(now, actions);
        }
        if !reinject || !self.fallback.repeats {
            return None;
        }
        self.carry_again(now, level, head.start, slot, Again::Opportunistic)
    }

    fn penalise(&mut self, now: Instant, actions: RemedyActions) {
        let Some((guilty, reduction)) = actions.penalise else { return };
        for slot in 0..self.lanes.len() as u8 {
            if guilty.contains(slot) {
                self.lanes.edit(slot).subflow.penalise(reduction);
                let view = self.lanes.view(slot);
                let (subflow, cwnd) = (view.id, view.cwnd);
                self.outbox.record(now, TraceKind::Penalised { subflow, cwnd });
            }
        }
    }
}
