//! What goes out next, and on which subflow.

use anabranch_wire::mptcp::WideOrNarrow;
use anabranch_wire::{Duration, Flags, Instant, Payload, Segment};

use super::schedule::Choice;
use super::timer::Timer;
use super::{Connection, Mode, Status};
use crate::error::ConnectionError;
use crate::platform::ShortSegments;
use crate::remedy::{RemedyActions, RemedyContext};
use crate::scheduler::Pending;
use crate::subflow::{Cargo, Carries, DataLevel};
use crate::trace::TraceKind;
use crate::view::{SubflowSet, SubflowView, Usability};

/// What is known of data that stays unacknowledged, and of a window that stays shut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overdue {
    /// Expiries of the retransmission timer since the last progress.
    pub(super) timeouts: u32,
    /// Those of them in a row when no subflow had anything outstanding.
    unexplained: u16,
    /// When the first of all was.
    since: Instant,
    /// Segments to be sent again at a time: data that subflows have acknowledged is not there.
    repeating: u16,
    /// Window probes since the last progress.
    probes: u32,
    /// Window probes since anything came from the peer.
    pub(super) unanswered: u32,
}

/// Why data goes out that was mapped before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// The subflow that carried it does not answer.
    Reinjection,
    /// A remedy wants it.
    Opportunistic,
    /// The scheduler wants it on several.
    Copy,
    /// The path manager wants to know how the subflow does.
    Probe,
    /// The scheduler has assigned it to the subflow, which had no room: it goes out for the first time.
    Assigned,
}

/// How long data may go unacknowledged at data level (ours; RFC 8684 §3.3 leaves it open): about
/// twice what TCP's timeouts take. Subflows that fail may be replaced by others without end.
const SEND_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Half of the data sequence numbers of 4 octets.
const HALF_OF_NUMBERS: u64 = 1 << 31;
/// RFC 9293 §3.4.2: the maximum segment lifetime.
const SEGMENT_LIFETIME: Duration = Duration::from_secs(120);
/// How long a small window waits to grow before it is used: the timeout, within these bounds. RFC 9293
/// §3.8.6.2.1: 0.1 to 1 seconds.
const SMALL_WINDOW_PAUSES: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(1));
/// Longest pause between data-level retransmissions, and between window probes.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

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
        let data_ack = (self.mode == Mode::Mptcp && self.keys.remote.is_some())
            .then(|| self.keys.remote_idsn + self.recv.nxt())
            .map(|ack| match self.wide_acks {
                true => WideOrNarrow::Wide(ack),
                false => WideOrNarrow::Narrow(ack.low32()),
            });
        DataLevel {
            window,
            data_ack,
            bare_data_fin: None,
            keys: self.keys_to_repeat(),
            checksums: self.checksums,
            wide: self.wrap.wide,
            writer_waits: self.mode == Mode::Tcp && self.send_blocked,
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

    /// Data that a subflow failed to deliver in time goes out on another.
    fn poll_reinjection(&mut self, now: Instant, level: &DataLevel) -> Option<Segment> {
        let mapped = self.send.next_reinjection()?;
        if !self.fallback.repeats {
            if !self.may_repeat_on_only_subflow() {
                return None;
            }
            self.fallback.repeats = true;
        }
        let usable = self.lanes.usable();
        let mut already_on = mapped.carried_by();
        if (0..SubflowSet::CAPACITY as u8).all(|s| !usable.contains(s) || already_on.contains(s)) {
            // Everybody has carried it: anybody may again.
            already_on = SubflowSet::EMPTY;
        }
        let choice = self.schedule(now, Pending::Reinjection { already_on })?;
        self.carry_again(now, level, mapped.start, choice.slot, Again::Reinjection)
    }

    /// On a connection's only subflow TCP delivers everything, and a copy of data would take the way
    /// back to TCP: without its mapping it would be taken for what comes next. So there is none but
    /// for a peer that has dropped data after it had acknowledged it to TCP, and that goes on to
    /// leave it out of its DATA_ACKs: one that is not heard may be back at TCP.
    fn may_repeat_on_only_subflow(&self) -> bool {
        !self.has_data_under_way()
            && self.overdue.timeouts > 1
            && self.lanes.iter().any(|lane| lane.heard_at > self.overdue.since)
    }

    /// The data at `start`, which another subflow has carried, goes out on the one in `slot`.
    pub(super) fn carry_again(
        &mut self,
        now: Instant,
        level: &DataLevel,
        start: u64,
        slot: u8,
        why: Again,
    ) -> Option<Segment> {
        let limit = self.lanes.view(slot).mss;
        let payload = self.send.carry_again(start, limit, slot)?;
        Some(self.send_again_on(now, level, slot, start, payload, why))
    }

    pub(super) fn send_again_on(
        &mut self,
        now: Instant,
        level: &DataLevel,
        slot: u8,
        start: u64,
        payload: Payload,
        why: Again,
    ) -> Segment {
        let len = payload.len() as u32;
        let data_seq = self.data_seq(start);
        // RFC 8684 §3.3.3: whoever carries a copy of the last data carries the DATA_FIN too.
        let last = start + u64::from(len) == self.send.end();
        if why == Again::Assigned && last && self.send.is_finished() {
            self.send.fin_sent();
        }
        let copied = matches!(why, Again::Copy | Again::Assigned);
        let data_fin = copied && last && self.send.fin_outstanding();
        if data_fin {
            self.data_fin.went_with_data();
        }
        let cargo = Cargo { data_fin, ..Cargo::new(data_seq) };
        let mss = self.lanes.view(slot).mss;
        let (lane, views) = self.lanes.with_views(slot);
        lane.run.extend(lane.subflow.send_next(), start, u64::from(len));
        lane.reinjected_octets += if why == Again::Assigned { 0 } else { u64::from(len) };
        let subflow = lane.subflow.id;
        let segment = lane.subflow.send_data(now, level, payload, Some(cargo), true, views);
        if why == Again::Assigned && len < mss {
            lane.short_end = lane.subflow.send_next();
        }
        self.lanes.refresh_after_sending(now, slot);
        match why {
            Again::Copy => {
                self.counters.copies += 1;
                self.record(now, TraceKind::Copied { subflow, data_seq, len });
            }
            Again::Probe => {
                self.counters.path_probes += 1;
                self.record(now, TraceKind::Probed { subflow, data_seq, len });
            }
            Again::Assigned => {
                self.record(now, TraceKind::Scheduled { subflow, data_seq, len });
            }
            Again::Reinjection | Again::Opportunistic => {
                let opportunistic = why == Again::Opportunistic;
                self.counters.data_level_retransmits += 1;
                self.record(now, TraceKind::Reinjected { subflow, data_seq, len, opportunistic });
                self.arm_retransmission(now);
            }
        }
        segment
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

    /// The subflow in `slot` is to send the next segment's data when it has room. How much follows that
    /// is to be decided upon?
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

    /// What there is, or what the shared window admits, is assigned. If that is the window, and some
    /// subflow has room, the remedies may help.
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

    /// RFC 8684 §3.3.1: numbers of 4 octets will not do if they could wrap within a segment's lifetime.
    /// Whoever sends less than half of them in that time is far from it.
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
        let checksum = self.checksums;
        let carries = match self.is_first_data_with_keys() {
            true => Carries::Keys { checksum },
            false => self.mapping_carried(),
        };
        self.send.unsent().min(self.lanes[usize::from(slot)].subflow.segment_octets(carries))
    }

    /// RFC 8684 §3.1: the initiator's first data repeats the keys.
    fn is_first_data_with_keys(&self) -> bool {
        self.mode == Mode::Mptcp && self.send.nxt() == 1 && self.keys_to_repeat().is_some()
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
        let data_fin = last && self.mode == Mode::Mptcp && self.send.is_finished() && !with_keys;
        if data_fin {
            self.send.fin_sent();
            self.data_fin.went_with_data();
        }
        let data_seq = self.data_seq(start);
        let cargo = (self.mode == Mode::Mptcp).then_some(Cargo {
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
        self.record(now, TraceKind::Scheduled { subflow: id, data_seq, len: len as u32 });
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

    /// RFC 9293 §3.8.6.2.1: nothing is under way that could open the window further. What there is of
    /// it is used at once if it is half of the largest, and otherwise after a while.
    fn is_worth_using(&mut self, room: u64) -> bool {
        let largest = self.lanes.iter().map(|lane| lane.subflow.largest_window()).max();
        let due = std::mem::take(&mut self.small_window_due);
        room > 0 && (due || 2 * room >= largest.unwrap_or(0))
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
        if self.remedies_asked || self.lanes.len() < 2 || self.mode != Mode::Mptcp {
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
            self.record(now, TraceKind::WindowLimited { subflow });
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
                self.record(now, TraceKind::Penalised { subflow, cwnd });
            }
        }
    }

    /// Something is outstanding: its timer runs from the oldest on.
    pub(super) fn start_retransmission(&mut self, now: Instant) {
        if !self.timers.is_running(Timer::Retransmission) {
            self.arm_retransmission(now);
        }
    }

    /// RFC 8684 §3.3.6 and §4: data counts as delivered only when the data level acknowledges it.
    pub(super) fn arm_retransmission(&mut self, now: Instant) {
        let slowest = self
            .lanes
            .iter()
            .zip(self.lanes.views())
            .filter(|(_, view)| view.usability == Usability::Usable)
            .map(|(lane, _)| lane.subflow.rto_without_backoff())
            .max()
            .unwrap_or(Duration::from_secs(1));
        let pause = slowest * 2 * (1 << self.overdue.timeouts.min(16));
        self.timers.set(Timer::Retransmission, now + pause.min(LONGEST_PAUSE));
        self.timers.set_if_earlier(Timer::GiveUp, now + SEND_TIMEOUT);
    }

    /// The peer's window has `room`, which is nothing or not worth using.
    fn arm_persist(&mut self, now: Instant, room: u64) {
        let rto = self.lanes.iter().map(|lane| lane.subflow.rto()).min().unwrap_or(LONGEST_PAUSE);
        if room > 0 {
            let pause = rto.max(SMALL_WINDOW_PAUSES.0).min(SMALL_WINDOW_PAUSES.1);
            self.timers.set_if_earlier(Timer::Persist, now + pause);
        } else if !self.timers.is_running(Timer::Persist) {
            let pause = rto * (1 << self.overdue.probes.min(16));
            self.timers.set(Timer::Persist, now + pause.min(LONGEST_PAUSE));
        }
    }

    /// DATA_ACK moved on.
    pub(super) fn on_data_acknowledged(&mut self, now: Instant) {
        (self.overdue.timeouts, self.overdue.probes) = (0, 0);
        self.overdue.unexplained = 0;
        self.timers.stop(Timer::Persist);
        self.small_window_due = false;
        self.timers.stop(Timer::GiveUp);
        if self.send.una() == self.send.nxt() {
            self.overdue.repeating = 0;
            self.timers.stop(Timer::Retransmission);
            return;
        }
        if !self.has_data_under_way() {
            // The peer did not have what it has now, so it may lack what follows as well.
            self.overdue.repeating = self.overdue.repeating.saturating_mul(2);
            self.send.reinject_first(self.overdue.repeating.into());
        }
        self.arm_retransmission(now);
    }

    fn has_data_under_way(&self) -> bool {
        self.lanes.iter().any(|lane| lane.subflow.has_outstanding())
    }

    pub(super) fn handle_data_timers(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_expired(now) {
            match timer {
                Timer::Retransmission => self.on_data_retransmission(now),
                Timer::Persist if self.window_room() > 0 => self.small_window_due = true,
                Timer::Persist => self.probe_window(now),
                Timer::Unmapped => self.on_unmapped_timeout(now),
                Timer::Fail => self.tell_failure(now),
                Timer::GiveUp if self.mode == Mode::Mptcp => {
                    self.give_up(ConnectionError::TimedOut);
                }
                Timer::Orphan => self.give_up(ConnectionError::NoSubflow),
                Timer::GiveUp | Timer::Scheduler => {}
            }
        }
    }

    /// Ask the peer for its window. RFC 9293 §3.8.6.1 has probes go on as long as they are answered.
    fn probe_window(&mut self, now: Instant) {
        self.probe_peer(self.overdue.probes);
        self.overdue.probes += 1;
        self.overdue.unanswered += 1;
        self.arm_persist(now, 0);
        if self.overdue.unanswered > self.config.tcp.retries {
            self.give_up(ConnectionError::TimedOut);
        }
    }

    fn on_data_retransmission(&mut self, now: Instant) {
        if self.send.una() == self.send.nxt() {
            return;
        }
        self.give_up_unheard();
        self.give_up_on_data_fin();
        if self.mode != Mode::Mptcp {
            return;
        }
        if self.send.fin_outstanding() {
            self.data_fin.send();
        }
        self.send.reinject_uncarried();
        let under_way = self.has_data_under_way();
        self.overdue.unexplained =
            if under_way { 0 } else { self.overdue.unexplained.saturating_add(1) };
        if u32::from(self.overdue.unexplained) > self.config.tcp.retries {
            // RFC 8684 §3.3 leaves a send timeout to the connection: no subflow has anything
            // outstanding that it could give up for.
            return self.give_up(ConnectionError::TimedOut);
        }
        if self.lanes.len() > 1 || !under_way {
            self.send.reinject_first(1);
        }
        self.overdue.repeating = u16::from(!under_way);
        if !self.fallback.repeats {
            self.probe_peer(self.overdue.timeouts);
        }
        if self.overdue.timeouts == 0 {
            self.overdue.since = now;
        }
        self.overdue.timeouts += 1;
        self.arm_retransmission(now);
    }

    /// Have the peer say its DATA_ACK and its window. RFC 8684 §3.3.5: any subflow will do. The best
    /// first, and then in turn: no other sign comes from a dead path on which nothing is outstanding.
    fn probe_peer(&mut self, attempt: u32) {
        let usable =
            || self.lanes.views().iter().filter(|view| view.usability == Usability::Usable);
        let key = |view: &SubflowView| (view.srtt_or_max(), view.id.slot);
        let turn = attempt as usize % usable().count().max(1);
        let next =
            |view: &&SubflowView| usable().filter(|other| key(other) < key(view)).count() == turn;
        if let Some(id) = usable().find(next).map(|view| view.id) {
            self.lanes[usize::from(id.slot)].subflow.demand_probe();
        }
    }
}
