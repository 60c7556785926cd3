//! The second pass: follow every subflow from the places that were chosen for it.

use std::collections::{BTreeMap, HashMap};

use anabranch_wire::{CapturedChecksum, CapturedSegment, Flags, Instant, TcpOptions};

use crate::connection::{Connection, Protocol};
use crate::copies::CopyDetector;
use crate::input::Sighting;
use crate::keys::Version;
use crate::options;
use crate::rules::Rule;
use crate::subflow::{Subflow, SubflowKind};
use crate::survey::{FlowKey, MOST_FLOWS, Part, USUAL_MSS, ViewChoice};
use crate::tables::{FirstSack, SegmentKind, SegmentRow, Segments};
use crate::watch::{At, Watch, Whom};

/// The state of the analysis.
#[derive(Default)]
pub(crate) struct Analyser {
    choices: HashMap<FlowKey, ViewChoice>,
    flows: HashMap<FlowKey, u32>,
    /// Connections and hosts by their tokens.
    pub(crate) tokens: HashMap<u32, (u32, usize)>,
    /// Connections with unknown keys, by the token of a join to them.
    pub(crate) unknown_tokens: HashMap<u32, u32>,
    /// Connections that began before the capture.
    pub(crate) begun: Vec<u32>,
    pub(crate) subflows: Vec<Subflow>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) segments: Segments,
    pub(crate) watch: Watch,
    copies: CopyDetector,
    /// Number of packets that other places show as well.
    pub(crate) doubles: u64,
    /// Number of packets that were captured twice in one view.
    pub(crate) copied: u64,
    pub(crate) corrupted: u64,
    /// For each file, the number of segments of which some options are unknown, and the first one.
    pub(crate) without_options: BTreeMap<u32, (u64, u64)>,
}

/// The segment being processed.
pub(crate) struct SegmentContext<'a> {
    pub(crate) at: At,
    pub(crate) subflow: usize,
    /// 0 if the host that opened the subflow sent the segment, otherwise 1.
    pub(crate) direction: usize,
    pub(crate) sighting: &'a Sighting<'a>,
    pub(crate) options: TcpOptions,
    /// Whether these are all options of the segment.
    pub(crate) has_all_options: bool,
    pub(crate) flags: Flags,
}

impl Analyser {
    /// Follow each flow from the place that was chosen for it.
    pub(crate) fn new(choices: HashMap<FlowKey, ViewChoice>) -> Self {
        Analyser { choices, ..Analyser::default() }
    }

    pub(crate) fn handle(&mut self, sighting: &Sighting<'_>) {
        let key = FlowKey::of(sighting);
        let segment = &sighting.segment;
        let from_low = usize::from(segment.source != key.low);
        let followed = self.choices.get(&key).and_then(|choice| {
            let view = choice.views.iter().find(|view| view.place == sighting.place)?;
            view.part[from_low].contains(sighting.time).then_some((choice, view))
        });
        let Some((choice, view)) = followed else {
            self.doubles += 1;
            return;
        };
        let (has_checksums, places, is_mptcp) =
            (view.checksums[from_low], choice.places, choice.is_mptcp);
        let at = At { time: sighting.time, file: sighting.file, packet: sighting.number };
        let known = self.flows.get(&key).map(|index| *index as usize);
        let rtt = known.and_then(|index| self.subflows[index].rtt);
        if self.copies.is_copy(sighting, rtt) {
            self.copied += 1;
            return;
        }
        let subflow = match known.filter(|index| self.continues(*index, segment)) {
            Some(index) => index,
            None => self.open_subflow(key, sighting, at, places),
        };
        let state = &mut self.subflows[subflow];
        let direction = usize::from(segment.source != state.ends[0]);
        let is_wrong = has_checksums && segment.checksum() == Some(CapturedChecksum::Wrong);
        if is_wrong && segment.payload_len <= state.most_payload(direction) {
            state.corrupted += 1;
            self.corrupted += 1;
            return;
        }
        state.end = sighting.time;
        let flags = segment.header.flags;
        state.halves[direction].packets += 1;
        let (options, has_all_options) = options::read(segment);
        if !has_all_options {
            state.lacks_options = true;
            self.without_options.entry(at.file).or_insert((0, at.packet)).0 += 1;
        }
        let context =
            SegmentContext { at, subflow, direction, sighting, options, has_all_options, flags };
        self.process(&context, is_mptcp);
    }

    /// Process a segment in a host's order: handshake, signals, data, acknowledgements.
    fn process(&mut self, context: &SegmentContext<'_>, is_mptcp: bool) {
        let is_other = self.subflows[context.subflow].is_other_version;
        if is_mptcp && !is_other {
            self.check_form(context);
        }
        self.handshake(context);
        let is_decoded = is_mptcp && !self.subflows[context.subflow].is_other_version;
        if is_decoded {
            self.find_connection(context);
            self.signals(context);
        }
        let mut row = self.carry(context, is_decoded);
        self.acknowledgement(context);
        self.ending(context);
        if is_mptcp {
            self.complete_row(context, &mut row);
            self.segments.push(&row);
        }
        self.note_time(context);
    }

    /// Returns `true` if a segment belongs to the known subflow between its addresses. A new SYN
    /// begins a new one.
    fn continues(&self, index: usize, segment: &CapturedSegment<'_>) -> bool {
        let known = &self.subflows[index];
        let direction = usize::from(segment.source != known.ends[0]);
        let first = known.halves[direction].ssn_base;
        let again = first == Some(segment.header.seq) || !known.can_be_followed();
        let again = again || (direction == 1 && known.can_be_opened_by_both());
        !opens(segment) || again || self.subflows.len() >= 2 * MOST_FLOWS
    }

    fn open_subflow(
        &mut self,
        key: FlowKey,
        sighting: &Sighting<'_>,
        at: At,
        places: u32,
    ) -> usize {
        let segment = &sighting.segment;
        let is_syn = opens(segment);
        let flags = segment.header.flags;
        let answers = flags.contains(Flags::SYN) && !is_syn;
        let (from, to) = (segment.source, segment.destination);
        // Without a captured SYN, guess that the server has the lower port.
        let turned = answers || (!is_syn && from.port < to.port);
        let index = self.subflows.len();
        let kind = if is_syn { SubflowKind::Plain } else { SubflowKind::Begun };
        let ends = if turned { [to, from] } else { [from, to] };
        let mut subflow = Subflow::new(kind, ends, at);
        (subflow.place, subflow.places) = (sighting.place, places);
        self.subflows.push(subflow);
        self.flows.insert(key, index as u32);
        index
    }

    fn check_form(&mut self, context: &SegmentContext<'_>) {
        let whom = self.whom(context);
        let version = self.version(context);
        let watch = &mut self.watch;
        options::faults(context.sighting.segment.options, version, |(rule, clause, text)| {
            watch.violation(context.at, whom, rule, clause, text);
        });
    }

    /// Process FIN and RST.
    fn ending(&mut self, context: &SegmentContext<'_>) {
        if context.flags.contains(Flags::RST) {
            let control = context.options.control.as_deref();
            let reason = control.and_then(|control| control.reset);
            let text = match reason {
                Some(reset) => {
                    let lasting = if reset.transient { "transient" } else { "permanent" };
                    format!("{}, {lasting}", reason_words(reset.reason.0))
                }
                None => String::new(),
            };
            let first = self.subflows[context.subflow].reset.is_none();
            if first {
                self.event(context, "reset", text.clone());
            }
            self.subflows[context.subflow].reset.get_or_insert(text);
            self.on_reset(context);
            self.release(context.subflow);
        }
    }

    /// Drop the stored data of a subflow that has ended.
    fn release(&mut self, subflow: usize) {
        let subflow = &mut self.subflows[subflow];
        let held = &mut self.watch.held;
        subflow.halves.iter_mut().for_each(|half| half.release(held));
        // If it was the connection's only subflow, drop the connection's data as well.
        if let Some(connection) =
            subflow.connection.map(|index| &mut self.connections[index as usize])
            && connection.subflows == 1
        {
            connection.streams.iter_mut().for_each(|stream| stream.release(held));
        }
    }

    fn note_time(&mut self, context: &SegmentContext<'_>) {
        let subflow = &self.subflows[context.subflow];
        let Some(index) = subflow.connection else { return };
        let host = context.direction ^ usize::from(subflow.is_turned);
        let connection = &mut self.connections[index as usize];
        connection.end = connection.end.max(context.at.time);
        if context.sighting.segment.payload_len > 0 {
            connection.first_data[host].get_or_insert(context.at.time);
            connection.last_data[host] = Some(context.at.time);
        }
    }

    /// The subflow and the direction of a segment.
    pub(crate) fn whom(&self, context: &SegmentContext<'_>) -> Whom {
        let subflow = &self.subflows[context.subflow];
        Whom {
            connection: subflow.connection,
            subflow: context.subflow as u32,
            direction: (context.direction ^ usize::from(subflow.is_turned)) as u8,
        }
    }

    pub(crate) fn event(
        &mut self,
        context: &SegmentContext<'_>,
        name: &'static str,
        detail: String,
    ) {
        let whom = self.whom(context);
        self.watch.event(context.at, whom, name, detail);
    }

    pub(crate) fn violation(&mut self, context: &SegmentContext<'_>, rule: Rule, text: String) {
        self.violation_with(context, &[], rule, text);
    }

    /// Record a violation that concerns `others` as well.
    pub(crate) fn violation_with(
        &mut self,
        context: &SegmentContext<'_>,
        others: &[At],
        rule: Rule,
        text: String,
    ) {
        let whom = self.whom(context);
        let clause = rule.clause_in(self.version(context));
        self.watch.violation_with(context.at, others, whom, rule, clause, text);
    }

    /// The version of Multipath TCP of a segment's connection, if it is known.
    pub(crate) fn version(&self, context: &SegmentContext<'_>) -> Option<Version> {
        let connection = self.subflows[context.subflow].connection?;
        self.connections[connection as usize].version()
    }

    /// The connection of a segment's subflow, and which of its hosts sent the segment.
    pub(crate) fn home(
        &mut self,
        context: &SegmentContext<'_>,
    ) -> Option<(&mut Connection, usize)> {
        let subflow = &self.subflows[context.subflow];
        let index = subflow.connection?;
        let host = context.direction ^ usize::from(subflow.is_turned);
        Some((&mut self.connections[index as usize], host))
    }

    /// Create a connection that begins with this subflow.
    pub(crate) fn begin(&mut self, subflow: usize, protocol: Protocol, at: At) -> u32 {
        let index = self.connections.len() as u32;
        let ends = self.subflows[subflow].ends;
        self.connections.push(Connection::new(protocol, ends, at));
        self.attach(subflow, index, false);
        index
    }

    pub(crate) fn attach(&mut self, subflow: usize, connection: u32, is_turned: bool) {
        let subflow = &mut self.subflows[subflow];
        subflow.connection = Some(connection);
        subflow.is_turned = is_turned;
        self.connections[connection as usize].subflows += 1;
    }

    /// The segment's row in the table of segments.
    pub(crate) fn row(&self, context: &SegmentContext<'_>) -> SegmentRow {
        let segment = &context.sighting.segment;
        SegmentRow {
            time: context.at.time.as_nanos(),
            file: context.at.file,
            packet: context.at.packet,
            subflow: context.subflow as u32,
            direction: context.direction as u8,
            flags: context.flags.0,
            kind: SegmentKind::None,
            seq: segment.header.seq.0,
            ack: segment.header.ack.0,
            len: segment.payload_len as u32,
            window: None,
            dsn: None,
            data_ack: None,
            sack: FirstSack::of(&context.options.sack, segment.header.ack),
        }
    }
}

impl Part {
    fn contains(self, time: Instant) -> bool {
        match self {
            Part::None => false,
            Part::All => true,
            Part::Outside(first, last) => time < first || time > last,
        }
    }
}

impl Subflow {
    /// The largest payload of one segment on the wire. More is the work of the network card or the
    /// kernel (TSO, GRO), and has no checksum.
    fn most_payload(&self, direction: usize) -> usize {
        self.halves[1 - direction].mss.map_or(USUAL_MSS, usize::from)
    }

    /// Returns `true` if only one SYN was seen. A SYN of the other host is then a simultaneous
    /// open.
    fn can_be_opened_by_both(&self) -> bool {
        let is_open =
            self.kind == SubflowKind::Begun || self.is_established || self.reset.is_some();
        !is_open && self.halves[1].packets == 0
    }

    /// Returns `true` if a new connection with the same addresses may follow.
    fn can_be_followed(&self) -> bool {
        let over = self.reset.is_some() || self.halves.iter().any(|half| half.fin.is_some());
        over || self.is_established
            || self.kind == SubflowKind::Begun
            || self.halves[1].base.is_none()
    }
}

/// Returns `true` if a segment is a SYN that opens a connection.
fn opens(segment: &CapturedSegment<'_>) -> bool {
    let flags = segment.header.flags;
    flags.contains(Flags::SYN) && !flags.contains(Flags::ACK)
}

/// A reason code of MP_TCPRST in words. RFC 8684 §3.6.
fn reason_words(code: u8) -> String {
    match code {
        0 => "unspecified error".to_owned(),
        1 => "MPTCP-specific error".to_owned(),
        2 => "lack of resources".to_owned(),
        3 => "administratively prohibited".to_owned(),
        4 => "too much outstanding data".to_owned(),
        5 => "unacceptable performance".to_owned(),
        6 => "middlebox interference".to_owned(),
        code => format!("reason {code}"),
    }
}

/// Time between two instants in nanoseconds, or 0 if `later` precedes `earlier`.
pub(crate) fn since(earlier: Instant, later: Instant) -> u64 {
    later.as_nanos().saturating_sub(earlier.as_nanos())
}
