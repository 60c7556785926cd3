//! The end of an analysis: rules that need the whole capture, and the tables.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use anabranch_table::{Builder, Table, row};
use anabranch_wire::{Instant, SocketAddress};

use crate::acknowledged::Acknowledged;
use crate::analyser::{Analyser, since};
use crate::capture::{Damage, Unread};
use crate::connection::{Connection, Protocol};
use crate::input::FileReport;
use crate::keys::Version;
use crate::rules::Rule;
use crate::subflow::{Subflow, SubflowKind};
use crate::watch::Whom;
use crate::words::{counted, grouped};

/// The result of an analysis.
#[derive(Debug)]
pub struct Analysis {
    /// `connections`, `subflows`, `segments`, `events`, `violations` and `files`.
    pub tables: Vec<Table>,
    /// For each file, the damage at which reading stopped, if any.
    pub damages: Vec<Option<Damage>>,
    /// Limitations of the captures that affect the tables.
    pub notes: Vec<String>,
}

/// Judge the remaining rules, and build the tables.
pub(crate) fn finish(
    mut analyser: Analyser,
    files: Vec<(String, FileReport)>,
    places: &[String],
    left_out: u64,
) -> Analysis {
    analyser.give_homes();
    analyser.judge_unmapped();
    analyser.judge_announcements();
    analyser.judge_completeness();
    let homes: Vec<_> = analyser.subflows.iter().map(Subflow::home).collect();
    let connections = &analyser.connections;
    let unjudged = analyser.watch.retract(&homes, |connection, rule, time| {
        let Some(connection) = connections.get(connection as usize) else { return false };
        let fell = connection.fallback.as_ref().is_some_and(|fallback| fallback.at.time <= time);
        (rule.needs_everything() && connection.is_incomplete) || (rule.ends_with_fallback() && fell)
    });
    let mut notes = analyser.notes(&files, left_out);
    if unjudged > 0 {
        notes.push(format!(
            "{unjudged} possible violations are not judged: the capture does not contain all data \
             of their connections"
        ));
    }
    let tables = [connection_table(&analyser), subflow_table(&analyser, places)];
    let ([events, violations], dropped) = analyser.watch.finish(&homes);
    for (count, what) in dropped.into_iter().zip(["events", "violations"]) {
        if count > 0 {
            notes.push(format!("{count} more {what} are not in the table"));
        }
    }
    let segments = analyser.segments.finish(&homes);
    let file_table = file_table(&files, &analyser.without_options);
    let damages = files.into_iter().map(|(_, report)| report.damage).collect();
    let [connections, subflows] = tables;
    let tables = vec![connections, subflows, segments, events, violations, file_table];
    Analysis { tables, damages, notes }
}

impl Subflow {
    fn home(&self) -> (u32, bool) {
        (self.connection.unwrap_or(u32::MAX), self.is_turned)
    }

    /// Returns `true` if only one direction was captured. Repeated SYNs may have had no answer.
    fn is_one_sided(&self) -> bool {
        let [out, back] = &self.halves;
        let seen = out.packets.max(back.packets) > 0 && out.packets.min(back.packets) == 0;
        seen && self.halves.iter().any(|half| half.acked.is_some())
    }
}

impl Analyser {
    /// Make each remaining subflow a plain TCP connection. Joins whose connection is unknown stay
    /// without a connection.
    fn give_homes(&mut self) {
        for index in 0..self.subflows.len() {
            let subflow = &self.subflows[index];
            if subflow.connection.is_some() || subflow.kind == SubflowKind::Join {
                continue;
            }
            let (at, end) = (subflow.begin, subflow.end);
            let data = [0, 1].map(|side| (subflow.halves[side].bytes > 0).then_some(end));
            let connection = self.begin(index, Protocol::Tcp, at);
            let connection = &mut self.connections[connection as usize];
            connection.end = end;
            connection.last_data = data;
        }
        for index in 0..self.subflows.len() {
            let subflow = &self.subflows[index];
            let Some(connection) = subflow.connection else { continue };
            let connection = &mut self.connections[connection as usize];
            connection.reset |= subflow.reset.is_some() && connection.subflows == 1;
        }
    }

    /// Judge data without mappings. A host that stops sending mappings on a sole subflow has fallen
    /// back to TCP. All other data must be mapped. RFC 8684 §3.3.1 and §3.7.
    fn judge_unmapped(&mut self) {
        for index in 0..self.subflows.len() {
            let subflow = &self.subflows[index];
            let Some(home) = subflow.connection else { continue };
            let connection = &self.connections[home as usize];
            if !connection.is_mptcp() || subflow.kind == SubflowKind::Begun {
                continue;
            }
            for side in [0, 1] {
                let half = &self.subflows[index].halves[side];
                let Some((lowest, _)) = half.unmapped.iter().next() else { continue };
                let connection = &mut self.connections[home as usize];
                let at = half.first_unmapped.unwrap_or(connection.begin);
                let stopped = half.last_mapping.is_none_or(|last| last < lowest);
                // A segment that was not captured may have had the mapping.
                if stopped && (half.missing > 0 || self.subflows[index].is_one_sided()) {
                    continue;
                }
                let direction = (side ^ usize::from(self.subflows[index].is_turned)) as u8;
                let whom = Whom { connection: Some(home), subflow: index as u32, direction };
                if stopped && connection.subflows == 1 {
                    if connection.fall_back(at, "data without DSS") {
                        self.watch.event(at, whom, "fallback", "data without DSS".into());
                    }
                    continue;
                }
                for (from, to) in half.unmapped.iter().take(MOST_RANGES_TOLD) {
                    let bytes = counted((to - from) as u64, "byte", "bytes");
                    let have = if to - from == 1 { "has" } else { "have" };
                    let text = format!("{bytes} from SSN {} on {have} no mapping", from + 1);
                    let rule = Rule::UnmappedData;
                    let clause = rule.clause_in(self.connections[home as usize].version());
                    self.watch.violation(at, whom, rule, clause, text);
                }
            }
        }
    }

    /// Judge announcements without an echo. The receiver of an ADD_ADDR echoes it. Because options
    /// can be lost, only several unanswered announcements are a violation. RFC 8684 §3.4.1.
    fn judge_announcements(&mut self) {
        for (index, connection) in self.connections.iter().enumerate() {
            for (host, announced) in connection.announced.iter().enumerate() {
                let open = announced.iter().filter(|(_, each)| !each.is_settled);
                for (id, each) in open {
                    let whom = Whom {
                        connection: Some(index as u32),
                        subflow: each.subflow,
                        direction: host as u8,
                    };
                    let waited = since(each.last, connection.end);
                    let text =
                        format!("address {id}, {}, announced {} times", each.address, each.copies);
                    if each.copies >= COPIES_TO_ANSWER && waited >= TIME_TO_ANSWER {
                        let text = format!("{text}, was not echoed");
                        let rule = Rule::AddAddrUnanswered;
                        let clause = rule.clause_in(connection.version());
                        self.watch.violation(each.first, whom, rule, clause, text);
                    } else {
                        self.watch.event(each.first, whom, "add_addr_unanswered", text);
                    }
                }
            }
        }
    }

    /// Judge whether the capture contains all data of a connection. Acknowledged data that was not
    /// seen may be the data without a mapping.
    fn judge_completeness(&mut self) {
        let unmapped = self.unmapped();
        for (connection, unmapped) in self.connections.iter_mut().zip(unmapped) {
            let streams = connection.streams.iter().zip(unmapped);
            connection.is_incomplete = streams.fold(false, |is_incomplete, (stream, unmapped)| {
                let begun_before = stream.base().is_some() && !stream.is_exact;
                let missing = stream.missing.total() > unmapped as i64;
                is_incomplete || begun_before || stream.last_ack_beyond || missing
            });
        }
        for subflow in &self.subflows {
            let missing = subflow.halves.iter().any(|half| half.missing > 0);
            let lacks = missing || subflow.lacks_options || subflow.is_one_sided();
            if let (true, Some(connection)) = (lacks, subflow.connection) {
                self.connections[connection as usize].is_incomplete = true;
            }
        }
    }

    /// Number of bytes without a mapping that each host of each connection sent.
    fn unmapped(&self) -> Vec<[u64; 2]> {
        let mut all = vec![[0; 2]; self.connections.len()];
        for subflow in &self.subflows {
            let Some(home) = subflow.connection else { continue };
            for (side, half) in subflow.halves.iter().enumerate() {
                let host = side ^ usize::from(subflow.is_turned);
                let plain = !self.connections[home as usize].is_mptcp();
                let bytes =
                    if plain { half.bytes } else { half.unmapped.total() as u64 + half.unknown };
                all[home as usize][host] += bytes;
            }
        }
        all
    }

    /// Notes about joins to one address and port that came in great number and were not completed.
    fn floods(&self) -> Vec<String> {
        let joins = self.subflows.iter().filter(|subflow| subflow.kind == SubflowKind::Join);
        let mut open: BTreeMap<SocketAddress, (u64, BTreeSet<IpAddr>)> = BTreeMap::new();
        for subflow in joins.filter(|subflow| !subflow.join.has_third) {
            let (count, sources) = open.entry(subflow.ends[1]).or_default();
            *count += 1;
            sources.insert(subflow.ends[0].address);
        }
        let floods = open.into_iter().filter(|(_, (count, _))| *count >= JOINS_OF_A_FLOOD);
        let notes = floods.map(|(target, (count, sources))| {
            let sources = counted(sources.len() as u64, "address", "addresses");
            let count = grouped(count);
            format!("{count} joins to {target} from {sources} were not completed: a flood")
        });
        notes.collect()
    }

    fn notes(&self, files: &[(String, FileReport)], left_out: u64) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(files.iter().filter(|(_, report)| !report.unread.is_empty()).map(unread_note));
        if self.doubles > 0 {
            let doubles = counted(self.doubles, "packet was", "packets were");
            notes.push(format!(
                "{doubles} captured at several places; each subflow is shown as seen from one \
                 place"
            ));
        }
        if self.copied > 0 {
            let copied = counted(
                self.copied,
                "packet is a copy of a packet just before, as a mirror port makes it, and counts",
                "packets are copies of packets just before, as a mirror port makes them, and count",
            );
            notes.push(format!("{copied} once"));
        }
        notes.extend(self.floods());
        if self.corrupted > 0 {
            let corrupted = counted(
                self.corrupted,
                "segment with a wrong TCP checksum was",
                "segments with a wrong TCP checksum were",
            );
            notes.push(format!("{corrupted} ignored"));
        }
        for (file, (count, first)) in &self.without_options {
            let name = files.get(*file as usize).map_or("", |(name, _)| name);
            let count = counted(*count, "segment has", "segments have");
            notes.push(format!(
                "{name}: {count} TCP options that were cut or are malformed (first: packet {first}), \
                 and what those options say is not judged"
            ));
        }
        if left_out > 0 {
            let left_out = counted(left_out, "segment was", "segments were");
            notes.push(format!("{left_out} ignored: the captures have too many TCP connections"));
        }
        notes
    }
}

/// The packets of a file that could not be read, by reason.
fn unread_note((name, report): &(String, FileReport)) -> String {
    let total = report.unread.values().map(|(count, _)| count).sum();
    let packets = counted(total, "packet was", "packets were");
    format!("{name}: {packets} not read and not judged: {}", unread_words(&report.unread))
}

/// Reasons with their numbers and first packets.
fn unread_words(unread: &BTreeMap<Unread, (u64, u64)>) -> String {
    let words = unread.iter().map(|(reason, (count, first))| {
        format!("{} {reason} (first: packet {first})", grouped(*count))
    });
    words.collect::<Vec<_>>().join(", ")
}

row! {
    /// A connection.
    struct ConnectionRow {
        connection: u32,
        protocol: String,
        version: Option<u8>,
        fallback: String,
        state: String,
        initiator: String,
        listener: String,
        subflows: u32,
        begin_ns: u64,
        end_ns: u64,
        bytes_out: u64,
        bytes_in: u64,
        acked_out: u64,
        acked_in: u64,
        last_acked_out_ns: Option<u64>,
        last_acked_in_ns: Option<u64>,
        repeated_out: u64,
        repeated_in: u64,
        first_data_out_ns: Option<u64>,
        first_data_in_ns: Option<u64>,
        last_data_out_ns: Option<u64>,
        last_data_in_ns: Option<u64>,
        base_out: Option<u64>,
        base_in: Option<u64>,
        token_initiator: Option<u32>,
        token_listener: Option<u32>,
        has_checksums: Option<bool>,
        checksums_right: u64,
        hmacs_right: u64,
        tokens_right: u64,
        is_complete: bool,
    }
}

row! {
    /// A TCP connection.
    struct SubflowRow {
        subflow: u32,
        connection: Option<u32>,
        kind: String,
        state: String,
        initiator: String,
        listener: String,
        opened_by: String,
        address_id_initiator: u8,
        address_id_listener: u8,
        is_backup: bool,
        hmacs_right: u8,
        seen_at: String,
        places: u32,
        begin_ns: u64,
        end_ns: u64,
        rtt_ns: Option<u64>,
        segments_out: u64,
        segments_in: u64,
        bytes_out: u64,
        bytes_in: u64,
        retransmitted_out: u64,
        retransmitted_in: u64,
        reinjected_out: u64,
        reinjected_in: u64,
        missing_out: u64,
        missing_in: u64,
        corrupted: u64,
    }
}

row! {
    /// A file.
    struct FileRow {
        file: String,
        packets: u64,
        other_packets: u64,
        unread_packets: u64,
        unread: String,
        without_options: u64,
        first_ns: Option<u64>,
        last_ns: Option<u64>,
        damage: String,
    }
}

fn connection_table(analyser: &Analyser) -> Table {
    let mut table = Builder::new("connections");
    let (unmapped, acknowledged) = (analyser.unmapped(), analyser.acknowledged());
    let mut states = vec![String::new(); analyser.connections.len()];
    for subflow in &analyser.subflows {
        if let Some(home) = subflow.connection {
            states[home as usize] = subflow_state(subflow);
        }
    }
    for (index, connection) in analyser.connections.iter().enumerate() {
        let state = state(connection).map_or_else(|| states[index].clone(), str::to_owned);
        let acked = acknowledged[index];
        table.push(connection_row(index as u32, connection, state, unmapped[index], acked));
    }
    table.finish()
}

fn connection_row(
    index: u32,
    connection: &Connection,
    state: String,
    unmapped: [u64; 2],
    acknowledged: [Acknowledged; 2],
) -> ConnectionRow {
    let [out, back] = &connection.streams;
    let token = |host: usize| {
        let known = connection.version().zip(connection.keys[host]);
        known.map(|(version, key)| version.token(key))
    };
    let fallback = connection.fallback.as_ref().map_or("", |fallback| fallback.why);
    ConnectionRow {
        connection: index,
        protocol: protocol(connection).to_owned(),
        version: connection.version().map(Version::number),
        fallback: fallback.to_owned(),
        state,
        initiator: connection.ends[0].to_string(),
        listener: connection.ends[1].to_string(),
        subflows: connection.subflows,
        begin_ns: connection.begin.time.as_nanos(),
        end_ns: connection.end.as_nanos(),
        bytes_out: out.bytes + unmapped[0],
        bytes_in: back.bytes + unmapped[1],
        acked_out: acknowledged[0].bytes,
        acked_in: acknowledged[1].bytes,
        last_acked_out_ns: nanos(acknowledged[0].last),
        last_acked_in_ns: nanos(acknowledged[1].last),
        repeated_out: out.repeated,
        repeated_in: back.repeated,
        first_data_out_ns: nanos(connection.first_data[0]),
        first_data_in_ns: nanos(connection.first_data[1]),
        last_data_out_ns: nanos(connection.last_data[0]),
        last_data_in_ns: nanos(connection.last_data[1]),
        base_out: out.number(0),
        base_in: back.number(0),
        token_initiator: token(0),
        token_listener: token(1),
        has_checksums: connection.has_checksums(),
        checksums_right: connection.checksums_right,
        hmacs_right: connection.hmacs_right,
        tokens_right: connection.tokens_right,
        is_complete: !connection.is_incomplete,
    }
}

fn subflow_table(analyser: &Analyser, places: &[String]) -> Table {
    let mut table = Builder::new("subflows");
    for (index, subflow) in analyser.subflows.iter().enumerate() {
        table.push(subflow_row(index as u32, subflow, places));
    }
    table.finish()
}

fn subflow_row(index: u32, subflow: &Subflow, places: &[String]) -> SubflowRow {
    let turned = usize::from(subflow.is_turned);
    let (out, back) = (&subflow.halves[turned], &subflow.halves[1 - turned]);
    let id = |side: usize| subflow.join.ids[side ^ turned].unwrap_or(0);
    SubflowRow {
        subflow: index,
        connection: subflow.connection,
        kind: kind_name(subflow.kind).to_owned(),
        state: subflow_state(subflow),
        initiator: subflow.ends[turned].to_string(),
        listener: subflow.ends[1 - turned].to_string(),
        opened_by: if turned == 0 { "initiator" } else { "listener" }.to_owned(),
        address_id_initiator: id(0),
        address_id_listener: id(1),
        is_backup: subflow.join.is_backup,
        hmacs_right: subflow.join.right,
        seen_at: places.get(subflow.place as usize).cloned().unwrap_or_default(),
        places: subflow.places,
        begin_ns: subflow.begin.time.as_nanos(),
        end_ns: subflow.end.as_nanos(),
        rtt_ns: subflow.rtt,
        segments_out: out.segments,
        segments_in: back.segments,
        bytes_out: out.bytes,
        bytes_in: back.bytes,
        retransmitted_out: out.retransmitted,
        retransmitted_in: back.retransmitted,
        reinjected_out: out.reinjected,
        reinjected_in: back.reinjected,
        missing_out: out.missing.max(0) as u64,
        missing_in: back.missing.max(0) as u64,
        corrupted: subflow.corrupted,
    }
}

fn file_table(
    files: &[(String, FileReport)],
    without_options: &BTreeMap<u32, (u64, u64)>,
) -> Table {
    let mut table = Builder::new("files");
    for (index, (name, report)) in files.iter().enumerate() {
        let without = without_options.get(&(index as u32)).map_or(0, |(count, _)| *count);
        table.push(FileRow {
            file: name.clone(),
            packets: report.packets,
            other_packets: report.other,
            unread_packets: report.unread.values().map(|(count, _)| count).sum(),
            unread: unread_words(&report.unread),
            without_options: without,
            first_ns: nanos(report.first),
            last_ns: nanos(report.last),
            damage: report.damage.as_ref().map_or(String::new(), ToString::to_string),
        });
    }
    table.finish()
}

fn protocol(connection: &Connection) -> &'static str {
    match connection.protocol {
        Protocol::Mptcp(_) => "MPTCP",
        Protocol::Other => "MPTCP of another version",
        Protocol::Tcp => "TCP",
    }
}

/// End of a Multipath TCP connection; `None` if it ended like its last subflow.
fn state(connection: &Connection) -> Option<&'static str> {
    let closed = connection.streams.iter().all(|s| s.fin.is_some_and(|fin| s.acked > fin));
    match () {
        () if !connection.is_checked() => None,
        () if connection.fastclosed => Some("aborted by MP_FASTCLOSE"),
        () if closed => Some("closed"),
        () if connection.reset => Some("reset"),
        () => Some("open at the end"),
    }
}

fn kind_name(kind: SubflowKind) -> &'static str {
    match kind {
        SubflowKind::Initial => "initial",
        SubflowKind::Join => "join",
        SubflowKind::Plain => "TCP",
        SubflowKind::Begun => "begun before",
    }
}

fn subflow_state(subflow: &Subflow) -> String {
    let fins = subflow.halves.iter().filter(|half| half.fin.is_some()).count();
    match (&subflow.reset, fins) {
        (Some(reason), _) if reason.is_empty() => "reset".into(),
        (Some(reason), _) => format!("reset: {reason}"),
        (None, 2) => "closed".into(),
        (None, 1) => "half closed".into(),
        _ if subflow.is_established || subflow.kind == SubflowKind::Begun => {
            "open at the end".into()
        }
        _ => "not answered".into(),
    }
}

fn nanos(time: Option<Instant>) -> Option<u64> {
    time.map(Instant::as_nanos)
}

/// Largest number of unmapped ranges that are reported one by one.
const MOST_RANGES_TOLD: usize = 100;

/// A host opens only a few joins at once. Linux allows at most 8 subflows of a connection
/// (MPTCP_PM_ADDR_MAX), so this many open joins are no usual attempts.
const JOINS_OF_A_FLOOD: u64 = 64;

/// An unanswered address is a violation after this many announcements, and this time in nanoseconds
/// after the last one.
const COPIES_TO_ANSWER: u32 = 3;
const TIME_TO_ANSWER: u64 = 1_000_000_000;
