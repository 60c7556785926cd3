//! Data: mappings, acknowledgements at both levels, and the receive window. RFC 8684 §3.3.

use anabranch_wire::mptcp::{CapableKeys, Mapping, WideOrNarrow};
use anabranch_wire::{DataSeq, Flags, SeqNumber};

use crate::analyser::{Analyser, SegmentContext};
use crate::connection::{Connection, Protocol};
use crate::rules::Rule;
use crate::stream::Taken;
use crate::subflow::{Declared, Half, Subflow, SubflowKind, Sum};
use crate::tables::{SegmentKind, SegmentRow};
use crate::words::counted;

impl Analyser {
    /// Assign a subflow without captured handshake to the connection with close data sequence
    /// numbers.
    pub(crate) fn find_connection(&mut self, context: &SegmentContext<'_>) {
        let Some(dss) = context.options.dss else { return };
        let subflow = &self.subflows[context.subflow];
        if subflow.connection.is_some() {
            return;
        }
        let token = subflow.join.token;
        if let Some(known) = token.and_then(|token| self.unknown_tokens.get(&token)).copied() {
            return self.attach(context.subflow, known, false);
        }
        let wide = |number| match number {
            WideOrNarrow::Wide(number) => Some(number),
            WideOrNarrow::Narrow(_) => None,
        };
        let sent = dss.mapping.and_then(|mapping| wide(mapping.data_seq));
        let acknowledged = dss.data_ack.and_then(wide);
        let numbers = [(sent, context.direction), (acknowledged, 1 - context.direction)];
        for (number, direction) in numbers {
            let Some(number) = number else { continue };
            if let Some((connection, host)) = self.owner_of(number) {
                return self.attach(context.subflow, connection, host != direction);
            }
        }
        let index = self.begin(context.subflow, Protocol::Mptcp(None), context.at);
        self.begun.push(index);
        if let Some(token) = token {
            self.unknown_tokens.insert(token, index);
        }
        let text = "opened before the capture, keys unknown".into();
        self.event(context, "begun_before", text);
    }

    /// The connection and the host whose data sequence numbers are close to this number.
    fn owner_of(&self, number: DataSeq) -> Option<(u32, usize)> {
        let latest = self.connections.iter().enumerate().rev().take(MOST_SEARCHED);
        let mut both = latest.flat_map(|(index, connection)| {
            [0, 1].map(|host| (index as u32, host, connection.streams[host].is_near(number)))
        });
        both.find(|(_, _, near)| *near).map(|(index, host, _)| (index, host))
    }

    /// Process the payload and the mapping of a segment, and return the segment's row.
    pub(crate) fn carry(&mut self, context: &SegmentContext<'_>, is_decoded: bool) -> SegmentRow {
        let mut row = self.row(context);
        let segment = &context.sighting.segment;
        let seq = segment.header.seq + u32::from(context.flags.contains(Flags::SYN));
        if context.flags.contains(Flags::RST) {
            return row;
        }
        let half = &mut self.subflows[context.subflow].halves[context.direction];
        let start = half.place(seq);
        let end = start + segment.payload_len as i64;
        if context.flags.contains(Flags::SYN) {
            half.in_syn = half.in_syn.max(end - start);
        }
        if is_decoded {
            self.mapping(context, (start, end), &mut row);
        }
        if context.flags.contains(Flags::FIN) {
            self.subflows[context.subflow].halves[context.direction].fin = Some(end);
            self.event_once_fin(context, end);
        }
        if end > start {
            self.payload(context, (start, end), is_decoded, &mut row);
        }
        row
    }

    fn event_once_fin(&mut self, context: &SegmentContext<'_>, end: i64) {
        if self.subflows[context.subflow].halves[context.direction].next <= end {
            let half = &mut self.subflows[context.subflow].halves[context.direction];
            if half.seen.count(end, end + 1) == 0 && half.acked.unwrap_or(0) <= end {
                self.event(context, "fin", String::new());
            }
        }
    }

    /// Process a mapping declared by DSS, or by MP_CAPABLE with the first data.
    fn mapping(&mut self, context: &SegmentContext<'_>, payload: (i64, i64), row: &mut SegmentRow) {
        let capable = context.options.control.as_deref().and_then(|control| control.capable);
        if let Some(CapableKeys::WithData { data_len, checksum, .. }) =
            capable.map(|capable| capable.keys)
        {
            let Some((connection, host)) = self.home(context) else { return };
            // RFC 8684 §3.1: MP_CAPABLE maps the first bytes of the connection.
            let Some(base) = connection.streams[host].base() else { return };
            let data_seq = WideOrNarrow::Wide(base);
            // RFC 8684 appendix B: after the bytes of the SYN that the peer has taken.
            let half = &self.subflows[context.subflow].halves[context.direction];
            let in_syn = half.in_syn.min(half.acked.unwrap_or(0).max(0));
            let subflow_seq = SeqNumber(1 + in_syn as u32);
            let first = Mapping { data_seq, subflow_seq, len: data_len, checksum };
            return self.declare(context, first, false, payload, row);
        }
        let Some(dss) = context.options.dss else { return };
        if let Some(mapping) = dss.mapping {
            self.declare(context, mapping, dss.data_fin, payload, row);
        }
    }

    fn declare(
        &mut self,
        context: &SegmentContext<'_>,
        mapping: Mapping,
        data_fin: bool,
        payload: (i64, i64),
        row: &mut SegmentRow,
    ) {
        self.check_checksum_presence(context, mapping);
        let Some((connection, host)) = self.home(context) else { return };
        let stream = &mut connection.streams[host];
        let data = stream.place(mapping.data_seq);
        let number = stream.number(data);
        if data.abs_diff(stream.next) > FAR {
            if stream.is_exact && connection.is_checked() {
                let text = format!("DSN {} is far from the other DSNs", number.unwrap_or_default());
                self.violation(context, Rule::OutsideWindow, text);
            }
            return;
        }
        row.dsn = number;
        if mapping.len == 0 {
            return self.infinite_mapping(context, mapping, data);
        }
        let bytes = mapping.len - u16::from(data_fin);
        if data_fin {
            self.data_fin(context, data + i64::from(bytes));
        }
        if bytes > 0 {
            self.declare_bytes(context, mapping, bytes, data, payload);
        } else if let (Some(checksum), Some(number)) =
            (mapping.checksum, self.whole_number(context, data))
        {
            // A DATA_FIN without data: the checksum covers only the pseudo-header.
            let sum = Sum::new(checksum, number, mapping.subflow_seq, mapping.len, context.at);
            self.judge_sum(context, &sum, 0);
        }
    }

    /// The data sequence number of a place, if all of its 64 bits are known: checksums cover them.
    /// `None` as well if the hosts are not known to use checksums.
    fn whole_number(&mut self, context: &SegmentContext<'_>, place: i64) -> Option<DataSeq> {
        let (connection, host) = self.home(context)?;
        let is_checked = connection.is_checked() && connection.has_checksums() == Some(true);
        let stream = &connection.streams[host];
        (is_checked && !stream.is_narrow).then(|| stream.number(place).map(DataSeq))?
    }

    /// Process a mapping of `bytes` bytes to the data at offset `data`.
    fn declare_bytes(
        &mut self,
        context: &SegmentContext<'_>,
        mapping: Mapping,
        bytes: u16,
        data: i64,
        payload: (i64, i64),
    ) {
        let seq = context.sighting.segment.header.seq;
        let Mapping { subflow_seq, len, checksum, .. } = mapping;
        let number = self.whole_number(context, data);
        let half = &mut self.subflows[context.subflow].halves[context.direction];
        let start = half.place_of_ssn(subflow_seq, seq);
        let end = start + i64::from(bytes);
        let sum = checksum
            .zip(number)
            .map(|(checksum, number)| Sum::new(checksum, number, subflow_seq, len, context.at));
        let declared = half.declare((start, end), data, sum, &mut self.watch.held);
        let is_exact = half.is_exact;
        let was_unmapped =
            if declared == Declared::New { remove_unmapped(half, start, end) } else { vec![] };
        // RFC 8684 §3.3.1: a mapping applies to some of the segment that carries it.
        if is_exact && (end <= payload.0 || start >= payload.1) {
            let text = format!("mapping of {bytes} bytes that are not in its segment");
            self.data_violation(context, Rule::MappingElsewhere, text);
        }
        // RFC 8684 §3.3.1: a declared mapping does not change.
        if is_exact && declared == Declared::Changed {
            let text = format!("bytes from SSN {} on had another mapping before", subflow_seq.0);
            self.data_violation(context, Rule::MappingChanged, text);
        }
        for (from, to) in was_unmapped {
            let mut held = self.watch.held;
            let Some((connection, host)) = self.home(context) else { return };
            let stream = &mut connection.streams[host];
            let data = data + (from - start);
            stream.bytes += stream.record(data, data + (to - from), None, &mut held).new as u64;
            self.watch.held = held;
        }
    }

    fn check_checksum_presence(&mut self, context: &SegmentContext<'_>, mapping: Mapping) {
        let Some((connection, _)) = self.home(context) else { return };
        if mapping.len == 0 || !connection.is_checked() {
            return;
        }
        // RFC 8684 §3.3: mappings have checksums if and only if the hosts negotiated them.
        match (connection.has_checksums(), mapping.checksum) {
            (Some(true), None) => {
                let text = "no checksum, although the SYNs negotiated checksums".into();
                self.violation(context, Rule::ChecksumMissing, text);
            }
            (Some(false), Some(_)) => {
                let text = "a checksum, although the SYNs negotiated none".into();
                self.violation(context, Rule::ChecksumUnexpected, text);
            }
            _ => {}
        }
    }

    /// Process an infinite mapping: from here on the connection is TCP. RFC 8684 §3.7.
    fn infinite_mapping(&mut self, context: &SegmentContext<'_>, mapping: Mapping, data: i64) {
        let seq = context.sighting.segment.header.seq;
        let half = &mut self.subflows[context.subflow].halves[context.direction];
        let start = half.place_of_ssn(mapping.subflow_seq, seq);
        let first = half.infinite.is_none();
        half.infinite.get_or_insert((start, data));
        let from = half.infinite.map_or(start, |(from, _)| from);
        remove_unmapped(half, from, i64::MAX);
        let Some((connection, host)) = self.home(context) else { return };
        connection.gave_up[host].get_or_insert(context.at.time);
        if first {
            self.event(context, "infinite_mapping", format!("from SSN {}", mapping.subflow_seq.0));
        }
        self.fall_back(context, "infinite mapping");
    }

    fn data_fin(&mut self, context: &SegmentContext<'_>, place: i64) {
        let Analyser { subflows, connections, watch, .. } = self;
        let Some((connection, host)) = home(subflows, connections, context) else { return };
        let stream = &mut connection.streams[host];
        match stream.fin {
            None => {
                stream.fin = Some(place);
                stream.record(place, place + 1, None, &mut watch.held);
                let beyond = stream.next > place + 1;
                self.event(context, "data_fin", format!("after {place} bytes"));
                if beyond {
                    let text = "the DATA_FIN precedes data that was sent".into();
                    self.data_violation(context, Rule::DataAfterFin, text);
                }
            }
            // RFC 8684 §3.3.3: the data has one end.
            Some(known) if known != place => {
                let text = format!("DATA_FIN after {place} bytes, previously after {known}");
                self.data_violation(context, Rule::DataFinMoved, text);
            }
            Some(_) => {}
        }
    }

    /// Process the payload at `start..end` of its subflow.
    fn payload(
        &mut self,
        context: &SegmentContext<'_>,
        (start, end): (i64, i64),
        is_decoded: bool,
        row: &mut SegmentRow,
    ) {
        let segment = &context.sighting.segment;
        let half = &mut self.subflows[context.subflow].halves[context.direction];
        let fresh = half.send(start, end);
        let again = (end - start) - fresh;
        half.segments += 1;
        half.bytes += fresh as u64;
        half.retransmitted += again as u64;
        row.kind = if fresh == 0 { SegmentKind::Retransmission } else { SegmentKind::New };
        if !is_decoded
            || self.subflows[context.subflow].connection.is_none()
            || context.flags.contains(Flags::SYN)
        {
            return;
        }
        let taken = self.process_data(context, (start, end), row);
        if !context.has_all_options {
            let known = taken.new + taken.repeated;
            let half = &mut self.subflows[context.subflow].halves[context.direction];
            half.unknown += (fresh - known).max(0) as u64;
        }
        let repeated = (taken.repeated - again).max(0);
        let half = &mut self.subflows[context.subflow].halves[context.direction];
        half.reinjected += repeated as u64;
        if fresh > 0 && taken.new == 0 && repeated > 0 {
            row.kind = SegmentKind::Reinjection;
        }
        let sums = match fresh > 0 {
            true => half.sum_up(
                context.at,
                start,
                segment.payload,
                segment.is_cut(),
                &mut self.watch.held,
            ),
            false => Vec::new(),
        };
        if let Some((connection, host)) = self.home(context) {
            connection.streams[host].bytes += taken.new as u64;
            connection.streams[host].repeated += repeated as u64;
        }
        for (from, sum) in sums {
            self.judge_sum(context, &sum, from);
        }
        let is_exact = self.subflows[context.subflow].halves[context.direction].is_exact;
        if let Some(place) = taken.differs_at.filter(|_| is_exact) {
            let text = format!("byte {place} of the data differs from the byte sent before");
            self.data_violation(context, Rule::DifferentData, text);
        }
    }

    /// Process the data that the subflow's bytes `start..end` map to.
    fn process_data(
        &mut self,
        context: &SegmentContext<'_>,
        (start, end): (i64, i64),
        row: &mut SegmentRow,
    ) -> Taken {
        let segment = &context.sighting.segment;
        let mut all = Taken::default();
        let (mut at, mut beyond, mut after_fin) = (start, None, false);
        {
            let Analyser { subflows, connections, watch, .. } = self;
            let Some((connection, host)) = home(subflows, connections, context) else { return all };
            let half = &mut subflows[context.subflow].halves[context.direction];
            let stream = &mut connection.streams[host];
            while at < end {
                let (to, data) = half.mapped(at, end);
                if let Some(data) = data {
                    let bytes = segment.payload.get((at - start) as usize..);
                    let bytes = bytes.map(|rest| &rest[..rest.len().min((to - at) as usize)]);
                    let len = to - at;
                    let taken = stream.record(data, data + len, bytes, &mut watch.held);
                    row.dsn = if at == start { stream.number(data) } else { row.dsn };
                    all.new += taken.new;
                    all.repeated += taken.repeated;
                    all.differs_at = all.differs_at.or(taken.differs_at);
                    // A probe of a closed window may send one byte beyond it.
                    let edge = stream.edge.filter(|edge| {
                        taken.new > 0 && !stream.hides_edge && data + len > edge + 1
                    });
                    beyond = beyond.or(edge.map(|edge| data + len - edge));
                    after_fin |= stream.fin.is_some_and(|fin| data + len > fin);
                } else if context.has_all_options {
                    half.unmapped.insert(at, to);
                    half.first_unmapped.get_or_insert(context.at);
                }
                at = to;
            }
        }
        if let Some(beyond) = beyond {
            // RFC 8684 §3.3.4 and §3.3.5: data ends before DATA_ACK + receive window, an edge that
            // never moves back.
            let text = format!("{beyond} bytes beyond the receive window");
            self.data_violation(context, Rule::OutsideWindow, text);
        }
        if after_fin {
            // RFC 8684 §3.3.3: the DATA_FIN ends the data.
            self.data_violation(context, Rule::DataAfterFin, "data after the DATA_FIN".into());
        }
        all
    }

    fn judge_sum(&mut self, context: &SegmentContext<'_>, sum: &Sum, start: i64) {
        match sum.verifies(start) {
            Some(true) => {
                if let Some((connection, _)) = self.home(context) {
                    connection.checksums_right += 1;
                }
            }
            Some(false) => {
                let packet = sum.at.packet;
                let carried = sum.packets();
                let text = format!(
                    "the checksum {:#06x} of the mapping in packet {packet} does not match its \
                     {}{}{carried}",
                    sum.checksum,
                    counted(u64::from(sum.len), "byte", "bytes"),
                    if carried.is_empty() { "" } else { " in " },
                );
                if self.is_checked(context) {
                    self.violation_with(context, &sum.places(), Rule::ChecksumWrong, text);
                }
            }
            None => {}
        }
    }

    /// Process a segment's acknowledgement and its window.
    pub(crate) fn acknowledgement(&mut self, context: &SegmentContext<'_>) {
        if context.flags.contains(Flags::RST) || !context.flags.contains(Flags::ACK) {
            return self.open_window(context, None);
        }
        let ack = context.sighting.segment.header.ack;
        let half = &mut self.subflows[context.subflow].halves[1 - context.direction];
        let place = half.place(ack);
        half.acknowledge(place, context.at.time, &mut self.watch.held);
        let data_ack = context.options.dss.and_then(|dss| dss.data_ack);
        self.open_window(context, data_ack);
    }

    fn open_window(&mut self, context: &SegmentContext<'_>, data_ack: Option<WideOrNarrow>) {
        if context.flags.contains(Flags::RST) || self.subflows[context.subflow].is_other_version {
            return;
        }
        let window = self.subflows[context.subflow].window(context);
        let Analyser { subflows, connections, watch, .. } = self;
        let Some((connection, host)) = home(subflows, connections, context) else { return };
        if !connection.is_mptcp() {
            return;
        }
        let checked = connection.is_checked();
        let stream = &mut connection.streams[1 - host];
        stream.hides_edge |= window.is_none();
        let mut from = stream.acked;
        let mut beyond = None;
        if let Some(data_ack) = data_ack {
            let place = stream.place(data_ack);
            // A capture that starts mid-connection may start with an acknowledgement.
            if !stream.is_exact && stream.next == 0 && place.unsigned_abs() < FAR {
                stream.next = stream.next.max(place);
            }
            from = place;
            if checked && place.abs_diff(stream.next) <= FAR {
                stream.note_data_ack(place, context.at.time);
            }
            stream.last_ack_beyond = checked && place > stream.next;
            if stream.last_ack_beyond {
                beyond = Some(place - stream.next);
            } else if checked {
                stream.acknowledge(place, context.at.time, &mut watch.held);
            }
        }
        if let (Some(window), None) = (window, beyond)
            && from.abs_diff(stream.next) < FAR
        {
            let edge = from + window as i64;
            stream.edge = Some(stream.edge.map_or(edge, |known| known.max(edge)));
        }
        if let Some(beyond) = beyond {
            // RFC 8684 §3.3.2: a DATA_ACK is the next number expected. It may repeat or lag, but not
            // lead.
            let text = format!("DATA_ACK of {beyond} bytes more than were sent");
            self.data_violation(context, Rule::AckBeyondData, text);
        }
    }

    /// Record a violation about data, unless the connection has fallen back to TCP.
    fn data_violation(&mut self, context: &SegmentContext<'_>, rule: Rule, text: String) {
        if self.is_checked(context) {
            self.violation(context, rule, text);
        }
    }

    fn is_checked(&mut self, context: &SegmentContext<'_>) -> bool {
        self.home(context).is_some_and(|(connection, _)| connection.is_checked())
    }

    /// Add window and DATA_ACK to the row of a segment.
    pub(crate) fn complete_row(&mut self, context: &SegmentContext<'_>, row: &mut SegmentRow) {
        row.window = self.subflows[context.subflow].window(context);
        let data_ack = context.options.dss.and_then(|dss| dss.data_ack);
        let Some((connection, host)) = self.home(context) else { return };
        if let Some(data_ack) = data_ack {
            let stream = &mut connection.streams[1 - host];
            let place = stream.place(data_ack);
            row.data_ack = stream.number(place).filter(|_| place.abs_diff(stream.next) <= FAR);
        }
    }
}

impl Subflow {
    /// The receive window of a segment in bytes, if the window scale is known.
    fn window(&self, context: &SegmentContext<'_>) -> Option<u64> {
        let window = u64::from(context.sighting.segment.header.window);
        if context.flags.contains(Flags::SYN) {
            return Some(window);
        }
        let [own, other] =
            [context.direction, 1 - context.direction].map(|side| &self.halves[side]);
        let knows_syn = |half: &Half| half.is_exact && half.has_syn_options;
        if !knows_syn(own) || !knows_syn(other) || self.kind == SubflowKind::Begun {
            return None;
        }
        // RFC 7323 §2.2: windows are scaled only if both SYNs have the option, by at most 14 bits.
        let scale = other.window_scale.and(own.window_scale).unwrap_or(0).min(14);
        Some(window << scale)
    }
}

/// Remove `start..end` from the unmapped ranges of a subflow's direction.
fn remove_unmapped(half: &mut Half, start: i64, end: i64) -> Vec<(i64, i64)> {
    let parts = half.unmapped.parts(start, end);
    for (from, to) in &parts {
        half.unmapped.remove(*from, *to);
    }
    parts
}

/// Like [`Analyser::home`], for callers that also borrow other parts of the analyser.
fn home<'c>(
    subflows: &[Subflow],
    connections: &'c mut [Connection],
    context: &SegmentContext<'_>,
) -> Option<(&'c mut Connection, usize)> {
    let subflow = &subflows[context.subflow];
    let host = context.direction ^ usize::from(subflow.is_turned);
    Some((connections.get_mut(subflow.connection? as usize)?, host))
}

/// A data sequence number at this distance from the others is wrong: no window is so large.
const FAR: u64 = 1 << 31;

/// Largest number of connections that are searched for the owner of a data sequence number.
const MOST_SEARCHED: usize = 1_000;
