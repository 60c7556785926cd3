//! Runs, their captures, and the analysis of these.

use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Capture, Options, Side};
use anabranch_trace::{Analysis, Column, Input, Table, analyse};
use anabranch_wire::Segment;

/// A run and its capture.
pub(crate) struct Run {
    pub(crate) outcome: anabranch_sim::RunOutcome,
    pub(crate) capture: Vec<u8>,
}

pub(crate) fn run(scenario: &str, seed: u64) -> Run {
    let scenario = Scenario::from_toml(scenario, "a test").expect("a valid scenario");
    let mut capture = Vec::new();
    let both = Some(&[Side::Client, Side::Server][..]);
    let both = Capture { at: both, ..Capture::new(&mut capture) };
    let options = Options::default().capture(both);
    let outcome = anabranch_sim::run(&scenario, seed, options).expect("a run");
    Run { outcome, capture }
}

pub(crate) fn analysis(capture: &[u8]) -> Analysis {
    analyse(&[Input::bytes("capture", capture)], &mut |_, _| true).expect("an analysis")
}

pub(crate) fn table<'a>(outcome: &'a Analysis, name: &str) -> &'a Table {
    outcome.tables.iter().find(|table| table.name == name).expect("a table")
}

pub(crate) fn texts(table: &Table, name: &str) -> Vec<String> {
    match table.column(name) {
        Some(Column::Text(values)) => values.clone(),
        None => Vec::new(),
        Some(other) => panic!("{name}: {other:?}"),
    }
}

pub(crate) fn numbers(table: &Table, name: &str) -> Vec<u64> {
    table.column(name).map(Column::numbers).unwrap_or_default()
}

/// Rule, packet and description of every violation.
pub(crate) fn violations(outcome: &Analysis) -> Vec<String> {
    let table = table(outcome, "violations");
    let (rules, words) = (texts(table, "rule"), texts(table, "what"));
    let packets = numbers(table, "packet");
    rules
        .iter()
        .zip(packets)
        .zip(words)
        .map(|((rule, packet), words)| format!("{rule} in packet {packet}: {words}"))
        .collect()
}

/// The rules of all violations.
pub(crate) fn broken(outcome: &Analysis) -> Vec<String> {
    texts(table(outcome, "violations"), "rule")
}

/// A column of one of the run's own tables.
pub(crate) fn measured(run: &Run, table: &str, name: &str) -> Vec<u64> {
    let table = run.outcome.tables.iter().find(|each| each.name == table).expect("a table");
    table.column(name).expect("a column").numbers()
}

/// A captured segment, with its time in nanoseconds and its interface.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    pub(crate) time: u64,
    pub(crate) interface: u32,
    pub(crate) segment: Segment,
}

/// The segments of an engine's capture: little-endian, nanoseconds, no link-layer header.
pub(crate) fn segments(mut capture: &[u8]) -> Vec<Captured> {
    let mut all = Vec::new();
    while !capture.is_empty() {
        let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
        if word(0) == 6 {
            let bytes = &capture[28..28 + word(20) as usize];
            if let Ok(segment) = Segment::parse(bytes) {
                let time = u64::from(word(12)) << 32 | u64::from(word(16));
                all.push(Captured { time, interface: word(8), segment });
            }
        }
        capture = &capture[word(4) as usize..];
    }
    all
}

/// A pcap capture of these segments.
pub(crate) fn pcap(segments: &[Captured]) -> Vec<u8> {
    let mut capture = Packets::new(101);
    segments.iter().for_each(|each| capture.push(each.time, &emit(each)));
    capture.bytes
}

/// The bytes of a segment's IP packet.
pub(crate) fn emit(each: &Captured) -> Vec<u8> {
    let mut bytes = Vec::new();
    each.segment.emit(&mut bytes).expect("a segment that fits");
    bytes
}

/// The results that must not depend on the form of a capture: data sequence numbers and kinds of
/// segments, bytes of subflows, violations.
pub(crate) fn essence(outcome: &Analysis) -> (Vec<u64>, Vec<u64>, Vec<u64>, Vec<String>) {
    let segments = table(outcome, "segments");
    let subflows = table(outcome, "subflows");
    let numbers_of = |name| numbers(segments, name);
    (numbers_of("dsn"), numbers_of("kind"), numbers(subflows, "bytes_in"), violations(outcome))
}

/// A pcap capture in nanoseconds, packet by packet.
pub(crate) struct Packets {
    pub(crate) bytes: Vec<u8>,
}

impl Packets {
    pub(crate) fn new(link_type: u32) -> Self {
        let mut bytes = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([0xff, 0xff, 0, 0]);
        bytes.extend(link_type.to_le_bytes());
        Packets { bytes }
    }

    pub(crate) fn push(&mut self, time: u64, packet: &[u8]) {
        self.push_cut(time, packet, usize::MAX);
    }

    /// A packet of which at most `snap_length` bytes were captured.
    pub(crate) fn push_cut(&mut self, time: u64, packet: &[u8], snap_length: usize) {
        let captured = packet.len().min(snap_length);
        let times = [time / 1_000_000_000, time % 1_000_000_000];
        for word in [times[0], times[1], captured as u64, packet.len() as u64] {
            self.bytes.extend((word as u32).to_le_bytes());
        }
        self.bytes.extend(&packet[..captured]);
    }
}
