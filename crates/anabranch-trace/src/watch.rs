//! The tables of events and violations.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_table::{Builder, Name, Table, row};
use anabranch_wire::Instant;

use crate::rules::{Clause, Rule};
use crate::tables::SegmentDirection;

/// A position in the captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) time: Instant,
    pub(crate) file: u32,
    pub(crate) packet: u64,
}

/// The subflow and the direction that an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whom {
    pub(crate) connection: Option<u32>,
    pub(crate) subflow: u32,
    /// 0 if the host that opened the connection sent the segment, otherwise 1. If the connection is
    /// unknown, the host that opened the subflow counts.
    pub(crate) direction: u8,
}

struct Violation {
    at: At,
    whom: Whom,
    rule: Rule,
    clause: Clause,
    text: String,
    /// Numbers of the packets that it concerns, in the file of `at`.
    packets: BTreeSet<u64>,
}

struct CaptureEvent {
    at: At,
    whom: Whom,
    name: &'static str,
    detail: String,
}

row! {
    /// An event in the capture.
    struct EventRow {
        time_ns: u64,
        file: u32,
        packet: u64,
        connection: u32,
        subflow: u32,
        direction: Name<SegmentDirection>,
        event: String,
        detail: String,
    }
}

row! {
    /// A violation of RFC 8684 in the capture.
    struct ViolationRow {
        time_ns: u64,
        file: u32,
        packet: u64,
        connection: u32,
        subflow: u32,
        direction: Name<SegmentDirection>,
        rule: String,
        clause: String,
        what: String,
        packets: String,
    }
}

impl Whom {
    /// The connection, and the direction in it. `homes` has each subflow's connection, and whether
    /// their directions are opposite.
    fn place(&self, homes: &[(u32, bool)]) -> (u32, Name<SegmentDirection>) {
        let home = homes.get(self.subflow as usize).copied().unwrap_or((u32::MAX, false));
        // Before a subflow was assigned to a connection, the direction is the subflow's.
        let (connection, direction) = match self.connection {
            Some(connection) => (connection, self.direction),
            None => (home.0, self.direction ^ u8::from(home.1)),
        };
        (
            connection,
            Name(if direction == 0 { SegmentDirection::Out } else { SegmentDirection::In }),
        )
    }
}

impl CaptureEvent {
    fn row(self, homes: &[(u32, bool)]) -> EventRow {
        let (connection, direction) = self.whom.place(homes);
        EventRow {
            time_ns: self.at.time.as_nanos(),
            file: self.at.file,
            packet: self.at.packet,
            connection,
            subflow: self.whom.subflow,
            direction,
            event: self.name.to_owned(),
            detail: self.detail,
        }
    }
}

impl Violation {
    fn row(self, homes: &[(u32, bool)]) -> ViolationRow {
        let (connection, direction) = self.whom.place(homes);
        let packets: Vec<_> = self.packets.iter().map(u64::to_string).collect();
        ViolationRow {
            time_ns: self.at.time.as_nanos(),
            file: self.at.file,
            packet: self.at.packet,
            connection,
            subflow: self.whom.subflow,
            direction,
            rule: self.rule.name().to_owned(),
            clause: self.clause.to_string(),
            what: self.text,
            packets: packets.join(", "),
        }
    }
}

/// Records events and violations, up to a limit.
#[derive(Default)]
pub(crate) struct Watch {
    events: Vec<CaptureEvent>,
    violations: Vec<Violation>,
    /// Number of violations beyond the limit, by rule.
    uncounted: BTreeMap<Rule, u64>,
    events_left_out: u64,
    /// Number of payload bytes stored for comparison.
    pub(crate) held: usize,
}

impl Watch {
    pub(crate) fn event(&mut self, at: At, whom: Whom, name: &'static str, detail: String) {
        if self.events.len() < MOST_EVENTS {
            self.events.push(CaptureEvent { at, whom, name, detail });
        } else {
            self.events_left_out += 1;
        }
    }

    pub(crate) fn violation(
        &mut self,
        at: At,
        whom: Whom,
        rule: Rule,
        clause: Clause,
        text: String,
    ) {
        self.violation_with(at, &[], whom, rule, clause, text);
    }

    /// The same for a violation that concerns `others` as well. Packets of other files are left out,
    /// because their numbers count there.
    pub(crate) fn violation_with(
        &mut self,
        at: At,
        others: &[At],
        whom: Whom,
        rule: Rule,
        clause: Clause,
        text: String,
    ) {
        if self.violations.len() < MOST_VIOLATIONS {
            let others = others.iter().filter(|other| other.file == at.file && **other != at);
            let others: BTreeSet<_> = others.map(|other| other.packet).collect();
            let first = others.into_iter().take(MOST_PACKETS - 1);
            let packets = first.chain([at.packet]).collect();
            self.violations.push(Violation { at, whom, rule, clause, text, packets });
        } else {
            *self.uncounted.entry(rule).or_default() += 1;
        }
    }

    /// Remove violations that cannot be judged, and return their number. `homes` has each subflow's
    /// connection. `unjudged` decides for each violation.
    pub(crate) fn retract(
        &mut self,
        homes: &[(u32, bool)],
        unjudged: impl Fn(u32, Rule, Instant) -> bool,
    ) -> u64 {
        let before = self.violations.len();
        self.violations.retain(|each| {
            let home = homes.get(each.whom.subflow as usize).map_or(u32::MAX, |home| home.0);
            let connection = each.whom.connection.unwrap_or(home);
            !unjudged(connection, each.rule, each.at.time)
        });
        (before - self.violations.len()) as u64
    }

    /// The tables of events and violations, and how many of each the tables omit.
    pub(crate) fn finish(mut self, homes: &[(u32, bool)]) -> ([Table; 2], [u64; 2]) {
        self.events.sort_by_key(|event| (event.at.time, event.at.file, event.at.packet));
        self.violations.sort_by_key(|each| (each.at.time, each.at.file, each.at.packet));
        let mut events = Builder::new("events");
        self.events.into_iter().for_each(|event| events.push(event.row(homes)));
        let mut violations = Builder::new("violations");
        self.violations.into_iter().for_each(|each| violations.push(each.row(homes)));
        let left_out = [self.events_left_out, self.uncounted.values().sum()];
        ([events.finish(), violations.finish()], left_out)
    }
}

/// Largest number of rows of each table.
const MOST_EVENTS: usize = 200_000;
const MOST_VIOLATIONS: usize = 20_000;
/// Largest number of packets of one violation that the table lists: a display filter with a hundred
/// numbers still fits into Wireshark's field.
const MOST_PACKETS: usize = 100;

#[cfg(test)]
mod tests {
    use anabranch_table::Column;

    use super::*;

    #[test]
    fn a_violation_lists_up_to_a_hundred_packets_of_its_file() {
        let at = |file, packet| At { time: Instant::ZERO, file, packet };
        let others: Vec<_> =
            (1..=300).rev().map(|packet| at(1, packet)).chain([at(0, 7)]).collect();
        let clause = Rule::ChecksumWrong.clause_in(None);
        let mut watch = Watch::default();
        for others in [&others[..], &others[298..], &[]] {
            let text = String::new();
            watch.violation_with(
                at(1, 500),
                others,
                Whom { connection: None, subflow: 0, direction: 0 },
                Rule::ChecksumWrong,
                clause,
                text,
            );
        }
        let ([_, violations], _) = watch.finish(&[]);
        let Some(Column::Text(lists)) = violations.column("packets") else { panic!("no column") };
        let all: Vec<u64> = lists[0].split(", ").map(|each| each.parse().unwrap()).collect();
        assert_eq!(all, (1..=99).chain([500]).collect::<Vec<_>>());
        assert_eq!(lists[1..], ["1, 2, 500", "500"]);
    }
}
