//! The tables that an analysis returns.

use anabranch_table::{Column, Named, Table};
use anabranch_wire::{SackBlock, SackBlocks, SeqNumber};

/// The kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SegmentKind {
    /// No payload.
    None = 0,
    /// Data that was not sent before.
    New = 1,
    /// Data that this subflow carried before: a TCP retransmission.
    Retransmission = 2,
    /// Data that was sent before, but not as these bytes of this subflow.
    Reinjection = 3,
}

impl Named for SegmentKind {
    const NAMES: &'static [&'static str] = &["none", "new", "retransmission", "reinjection"];

    fn index(self) -> u8 {
        self as u8
    }
}

/// Direction of a segment of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SegmentDirection {
    /// From the host that opened the connection.
    Out = 0,
    /// Towards that host.
    In = 1,
}

impl Named for SegmentDirection {
    const NAMES: &'static [&'static str] = &["out", "in"];

    fn index(self) -> u8 {
        self as u8
    }
}

/// One row of the table of segments.
pub(crate) struct SegmentRow {
    pub(crate) time: u64,
    pub(crate) file: u32,
    pub(crate) packet: u64,
    pub(crate) subflow: u32,
    /// 0 if the host that opened the subflow sent the segment, otherwise 1.
    pub(crate) direction: u8,
    pub(crate) flags: u8,
    pub(crate) kind: SegmentKind,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) len: u32,
    pub(crate) window: Option<u64>,
    pub(crate) dsn: Option<u64>,
    pub(crate) data_ack: Option<u64>,
    pub(crate) sack: Option<FirstSack>,
}

/// The first SACK block of a segment.
pub(crate) struct FirstSack {
    pub(crate) block: SackBlock,
    /// It reports data that had arrived before.
    pub(crate) is_duplicate: bool,
}

impl FirstSack {
    /// The first of the `blocks` that accompany an acknowledgement number. It reports a duplicate
    /// if it lies below that number, or within the second block. RFC 2883 §4.
    pub(crate) fn of(blocks: &SackBlocks, ack: SeqNumber) -> Option<FirstSack> {
        let [block, others @ ..] = blocks.as_slice() else { return None };
        let is_within = |outer: &SackBlock| {
            block.start.distance_from(outer.start) >= 0 && outer.end.distance_from(block.end) >= 0
        };
        let is_below = ack.distance_from(block.end) >= 0;
        let is_duplicate = is_below || others.first().is_some_and(is_within);
        Some(FirstSack { block: *block, is_duplicate })
    }
}

/// The table of segments, which may have millions of rows.
#[derive(Default)]
pub(crate) struct Segments {
    time: Vec<u64>,
    file: Vec<u32>,
    packet: Vec<u64>,
    subflow: Vec<u32>,
    direction: Vec<u8>,
    kind: Vec<u8>,
    flags: Vec<u8>,
    seq: Vec<u32>,
    ack: Vec<u32>,
    len: Vec<u32>,
    window: Vec<u64>,
    dsn: Vec<u64>,
    data_ack: Vec<u64>,
    sack_start: Vec<u32>,
    sack_end: Vec<u32>,
    is_dsack: Vec<u8>,
}

impl Segments {
    pub(crate) fn push(&mut self, row: &SegmentRow) {
        self.time.push(row.time);
        self.file.push(row.file);
        self.packet.push(row.packet);
        self.subflow.push(row.subflow);
        self.direction.push(row.direction);
        self.kind.push(row.kind as u8);
        self.flags.push(row.flags);
        self.seq.push(row.seq);
        self.ack.push(row.ack);
        self.len.push(row.len);
        self.window.push(row.window.unwrap_or(u64::MAX));
        self.dsn.push(row.dsn.unwrap_or(u64::MAX));
        self.data_ack.push(row.data_ack.unwrap_or(u64::MAX));
        let sack = row.sack.as_ref();
        self.sack_start.push(sack.map_or(u32::MAX, |first| first.block.start.0));
        self.sack_end.push(sack.map_or(u32::MAX, |first| first.block.end.0));
        self.is_dsack.push(sack.map_or(u8::MAX, |first| first.is_duplicate.into()));
    }

    /// Build the table. `homes` has for each subflow its connection, and whether their directions are
    /// opposite. These may become known later than the segments.
    pub(crate) fn finish(self, homes: &[(u32, bool)]) -> Table {
        let home =
            |subflow: &u32| homes.get(*subflow as usize).copied().unwrap_or((u32::MAX, false));
        let connection = self.subflow.iter().map(|subflow| home(subflow).0).collect();
        let turned = self.subflow.iter().map(|subflow| u8::from(home(subflow).1));
        let direction =
            self.direction.iter().zip(turned).map(|(own, turned)| own ^ turned).collect();
        Table {
            name: "segments",
            columns: vec![
                ("time_ns", Column::U64(self.time)),
                ("file", Column::U32(self.file)),
                ("packet", Column::U64(self.packet)),
                ("connection", Column::U32(connection)),
                ("subflow", Column::U32(self.subflow)),
                ("direction", Column::Names(SegmentDirection::NAMES, direction)),
                ("kind", Column::Names(SegmentKind::NAMES, self.kind)),
                ("flags", Column::U8(self.flags)),
                ("seq", Column::U32(self.seq)),
                ("ack", Column::U32(self.ack)),
                ("len", Column::U32(self.len)),
                ("window", Column::U64(self.window)),
                ("dsn", Column::U64(self.dsn)),
                ("data_ack", Column::U64(self.data_ack)),
                ("sack_start", Column::U32(self.sack_start)),
                ("sack_end", Column::U32(self.sack_end)),
                ("is_dsack", Column::U8(self.is_dsack)),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_block_below_the_acknowledgement_or_within_the_second_reports_a_duplicate() {
        // RFC 2883 §4.1 and §4.2, with numbers that wrap.
        let first = |pairs: &[(u32, u32)]| {
            let mut blocks = SackBlocks::default();
            for (start, end) in pairs {
                blocks.push(SackBlock { start: SeqNumber(*start), end: SeqNumber(*end) });
            }
            FirstSack::of(&blocks, SeqNumber(500)).map(|first| first.is_duplicate)
        };
        assert_eq!(first(&[]), None);
        assert_eq!(first(&[(u32::MAX - 400, 100)]), Some(true));
        assert_eq!(first(&[(400, 500), (900, 1_000)]), Some(true));
        assert_eq!(first(&[(900, 1_000), (800, 1_000)]), Some(true));
        assert_eq!(first(&[(900, 1_000)]), Some(false));
        assert_eq!(first(&[(900, 1_100), (800, 1_000)]), Some(false));
        assert_eq!(first(&[(900, 1_000), (600, 700)]), Some(false));
    }
}
