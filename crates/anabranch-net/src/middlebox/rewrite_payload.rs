//! Replaces, inserts or removes payload bytes, as application-level gateways do. FTP gateways, for
//! example, rewrite the address in a PORT command.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::WithUnit;
use anabranch_wire::{Flags, Instant, Packet, Payload, Segment, SeqNumber};

use super::flows::{Flows, Numbering};
use super::{
    BuildMiddlebox, Directions, Filter, MAX_PACKET, Middlebox, Side, Site, map_sack_blocks,
};
use crate::units::ByteCount;

/// Parameters of the middlebox that changes payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields)
)]
pub struct RewritePayloadConfig {
    /// Which direction is affected.
    #[cfg_attr(feature = "serde", serde(rename = "applies_to", default), schemars(extend("x-origin" = "this project")))]
    pub directions: Directions,
    /// The change, made once in each flow and direction.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "none: the user must choose")))]
    pub change: PayloadChange,
    /// Number of bytes affected.
    #[cfg_attr(feature = "serde", serde(default = "few"), schemars(range(min = 1, max = 1_000), extend("x-origin" = "this project")))]
    pub bytes: u32,
    /// Number of bytes of the flow before the change.
    #[cfg_attr(feature = "serde", serde(default, with = "WithUnit::<ByteCount>"), schemars(extend("x-origin" = "this project")))]
    pub at: ByteCount,
}

/// Number of bytes by default.
#[cfg(feature = "serde")]
fn few() -> u32 {
    4
}

/// A change of a byte stream. The TCP checksum is always corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case"),
    schemars(inline)
)]
pub enum PayloadChange {
    /// Bytes are replaced by their complements.
    Replace,
    /// Bytes are inserted, and all later sequence numbers are adapted.
    Insert,
    /// Bytes are removed, and all later sequence numbers are adapted.
    Remove,
}

/// Rewrites streams. The effect on a segment depends only on its position in the stream, so
/// retransmissions are changed in the same way as the original.
#[derive(Debug)]
struct RewritePayload {
    edit: Edit,
    directions: Directions,
    flows: Flows<()>,
}

/// A change at an offset. The SYN has offset 0, and the first byte has 1.
#[derive(Clone, Copy, Debug)]
struct Edit {
    change: PayloadChange,
    at: u64,
    bytes: u64,
}

/// The inserted byte.
const INSERTED: u8 = b'#';

impl RewritePayload {
    fn new(config: RewritePayloadConfig) -> Self {
        let RewritePayloadConfig { change, bytes, at, directions } = config;
        let edit = Edit { change, at: at.as_u64().saturating_add(1), bytes: bytes.into() };
        RewritePayload { edit, directions, flows: Flows::default() }
    }
}

impl Edit {
    /// The end of the affected bytes, before and after the change.
    fn ends(&self) -> (u64, u64) {
        let beyond = self.at.saturating_add(self.bytes);
        match self.change {
            PayloadChange::Replace => (beyond, beyond),
            PayloadChange::Insert => (self.at, beyond),
            PayloadChange::Remove => (beyond, self.at),
        }
    }

    /// The new offset of the byte at `offset`.
    fn ahead(&self, offset: u64) -> u64 {
        let (before, after) = self.ends();
        match self.change {
            PayloadChange::Replace => offset,
            // Inserted bytes travel in the segment of the byte that follows them.
            _ if offset <= self.at => offset,
            _ if offset >= before => offset - before + after,
            _ => self.at,
        }
    }

    /// Translate the acknowledgement of everything before `offset` for the sender, which has sent
    /// everything before `sent`.
    fn back(&self, offset: u64, sent: u64) -> u64 {
        let (before, after) = self.ends();
        match self.change {
            PayloadChange::Replace => offset,
            _ if offset < self.at => offset,
            // Removed bytes count as arrived, but only after they were sent.
            _ if offset == self.at => before.min(sent).max(self.at),
            _ if offset >= after => offset - after + before,
            _ => self.at,
        }
    }

    /// Translate an acknowledgement's sequence number in the same way.
    fn translate_back(&self, seq: SeqNumber, numbering: &Numbering) -> SeqNumber {
        let offset = numbering.offset(seq);
        offset.map_or(seq, |offset| numbering.seq(self.back(offset, numbering.highest())))
    }

    /// The payload that begins at `start`, after the change.
    fn apply(&self, start: u64, payload: &Payload) -> Payload {
        let end = start + payload.len() as u64;
        let place = |offset: u64| (offset.clamp(start, end) - start) as usize;
        let (from, to) = (place(self.at), place(self.ends().0));
        let middle = match self.change {
            PayloadChange::Insert if start <= self.at && self.at < end => {
                vec![INSERTED; self.bytes as usize]
            }
            PayloadChange::Replace if from < to => {
                payload.slice(from, to).to_vec().into_iter().map(|byte| !byte).collect()
            }
            PayloadChange::Remove if from < to => Vec::new(),
            _ => return payload.clone(),
        };
        let head = Payload::concat(&payload.slice(0, from), &middle.into());
        Payload::concat(&head, &payload.slice(to, payload.len()))
    }

    /// Change the payload and the sequence number of a segment.
    fn rewrite(&self, segment: &mut Segment, numbering: &mut Numbering) {
        let header = &mut segment.header;
        let Some(start) = numbering.offset(header.seq) else { return };
        let fin = u32::from(header.flags.contains(Flags::FIN));
        let had_payload = !segment.payload.is_empty();
        numbering.note(header.seq + (segment.payload.len() as u32 + fin));
        segment.payload = self.apply(start, &segment.payload);
        let mut place = self.ahead(start);
        if had_payload && segment.payload.is_empty() && fin == 0 {
            // The segment is empty now. RFC 9293 §3.8.4: an old sequence number makes the receiver
            // send an acknowledgement. The sender learns from it that the removed bytes have
            // arrived.
            place -= 1;
        }
        header.seq = numbering.seq(place);
    }
}

impl Filter for RewritePayload {
    fn pass(&mut self, _now: Instant, towards: Side, packet: &mut Packet) -> bool {
        let Packet::Tcp(segment) = packet else { return true };
        let Some(flow) = self.flows.of(towards, segment) else { return true };
        let back = towards.opposite();
        if self.directions.include(back)
            && segment.header.flags.contains(Flags::ACK)
            && let Some(numbering) = flow.towards(back)
        {
            let (edit, numbering) = (self.edit, *numbering);
            segment.header.ack = edit.translate_back(segment.header.ack, &numbering);
            map_sack_blocks(&mut segment.options, |seq| edit.translate_back(seq, &numbering));
        }
        let syn = segment.header.flags.contains(Flags::SYN);
        if self.directions.include(towards)
            && !syn
            && let Some(numbering) = flow.towards(towards)
        {
            self.edit.rewrite(segment, numbering);
        }
        // A packet that has become too large is dropped.
        segment.wire_len() <= MAX_PACKET
    }
}

impl Part for RewritePayloadConfig {
    const NAME: &'static str = "rewrite_payload";
    const SUMMARY: &'static str =
        "Replaces, inserts or removes bytes of the stream, and corrects the TCP checksum.";
    const SOURCE: &'static str = "application-level gateways, for example for FTP";
}

impl BuildMiddlebox for RewritePayloadConfig {
    fn build(&self, _: Site) -> Box<dyn Middlebox> {
        super::filter(RewritePayload::new(*self))
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter;
    use super::super::testing::{Bench, Talk};
    use super::*;
    use anabranch_wire::SackBlock;

    /// A middlebox that changes ten bytes after the first hundred bytes towards the server.
    fn opened(change: PayloadChange, talk: &Talk) -> Bench {
        let directions = Directions::Reverse;
        let config =
            RewritePayloadConfig { change, bytes: 10, at: ByteCount::new(100), directions };
        Bench::new(filter(RewritePayload::new(config))).opened(talk)
    }

    /// Stream offset and bytes of a segment as it arrives.
    fn arrives(bench: &mut Bench, talk: &Talk, from: u32, len: u32) -> (u32, Vec<u8>) {
        let segment = bench.cross(Side::Server, talk.data(Side::Server, from, len));
        assert!(segment.checksum_ok);
        let at = segment.header.seq.0.wrapping_sub(talk.client_isn.wrapping_add(1));
        (at, segment.payload.to_vec())
    }

    /// The client's view of an acknowledgement of `bytes`.
    fn acknowledged(bench: &mut Bench, talk: &Talk, bytes: u32) -> u32 {
        let ack = bench.cross(Side::Client, talk.ack(Side::Client, bytes)).header.ack;
        ack.0.wrapping_sub(talk.client_isn.wrapping_add(1))
    }

    fn pattern(from: u32, to: u32) -> Vec<u8> {
        Talk::v4().data(Side::Server, from, to - from).payload.to_vec()
    }

    #[test]
    fn replaced_bytes_shift_nothing() {
        let talk = Talk::v4();
        let mut bench = opened(PayloadChange::Replace, &talk);
        let flipped: Vec<u8> = pattern(100, 110).iter().map(|byte| !byte).collect();
        assert_eq!(arrives(&mut bench, &talk, 0, 100), (0, pattern(0, 100)));
        for _ in 0..2 {
            let expected = [pattern(90, 100), flipped.clone(), pattern(110, 120)].concat();
            assert_eq!(arrives(&mut bench, &talk, 90, 30), (90, expected));
        }
        assert_eq!(arrives(&mut bench, &talk, 105, 2), (105, flipped[5..7].to_vec()));
        assert_eq!(acknowledged(&mut bench, &talk, 120), 120);
    }

    #[test]
    fn inserted_bytes_shift_all_later_numbers() {
        for talk in [Talk::v4(), Talk::v6()] {
            let mut bench = opened(PayloadChange::Insert, &talk);
            let inserted = vec![INSERTED; 10];
            assert_eq!(arrives(&mut bench, &talk, 0, 100), (0, pattern(0, 100)));
            assert_eq!(acknowledged(&mut bench, &talk, 100), 100);
            let expected = [inserted.clone(), pattern(100, 150)].concat();
            assert_eq!(arrives(&mut bench, &talk, 100, 50), (100, expected));
            let expected = [pattern(90, 100), inserted, pattern(100, 150)].concat();
            assert_eq!(arrives(&mut bench, &talk, 90, 60), (90, expected));
            assert_eq!(arrives(&mut bench, &talk, 150, 10), (160, pattern(150, 160)));
            let acknowledged =
                [100, 105, 110, 111, 170].map(|n| acknowledged(&mut bench, &talk, n));
            assert_eq!(acknowledged, [100, 100, 100, 101, 160]);
            let fin = bench.cross(Side::Server, talk.fin(Side::Server, 160));
            assert_eq!(fin.header.seq, SeqNumber(talk.client_isn) + 171);
        }
    }

    #[test]
    fn removed_bytes_count_as_arrived_once_they_were_sent() {
        let talk = Talk::v4();
        let mut bench = opened(PayloadChange::Remove, &talk);
        arrives(&mut bench, &talk, 0, 100);
        assert_eq!(acknowledged(&mut bench, &talk, 100), 100, "the next ten were not sent yet");
        // This segment becomes empty, and makes the receiver acknowledge again.
        assert_eq!(arrives(&mut bench, &talk, 100, 5), (99, vec![]));
        assert_eq!(acknowledged(&mut bench, &talk, 100), 105);
        assert_eq!(arrives(&mut bench, &talk, 105, 15), (100, pattern(110, 120)));
        assert_eq!(
            arrives(&mut bench, &talk, 90, 30),
            (90, [pattern(90, 100), pattern(110, 120)].concat())
        );
        assert_eq!(arrives(&mut bench, &talk, 120, 10), (110, pattern(120, 130)));
        let acknowledged = [99, 100, 101, 120].map(|n| acknowledged(&mut bench, &talk, n));
        assert_eq!(acknowledged, [99, 110, 111, 130]);
    }

    #[test]
    fn sack_blocks_are_translated() {
        let talk = Talk::v4();
        let mut bench = opened(PayloadChange::Insert, &talk);
        arrives(&mut bench, &talk, 0, 300);
        let mut ack = talk.ack(Side::Client, 50);
        let seq = |offset: u32| SeqNumber(talk.client_isn) + (offset + 1);
        ack.options.sack.push(SackBlock { start: seq(210), end: seq(310) });
        let seen = bench.cross(Side::Client, ack);
        let expected = SackBlock { start: seq(200), end: seq(300) };
        assert_eq!((seen.header.ack, seen.options.sack.as_slice()), (seq(50), &[expected][..]));
    }

    #[test]
    fn the_other_direction_is_not_changed() {
        let talk = Talk::v4();
        let mut bench = opened(PayloadChange::Remove, &talk);
        let data = talk.data(Side::Client, 0, 300);
        assert_eq!(bench.cross(Side::Client, data.clone()), data);
        let ack = talk.ack(Side::Server, 300);
        assert_eq!(bench.cross(Side::Server, ack.clone()), ack);
    }
}
