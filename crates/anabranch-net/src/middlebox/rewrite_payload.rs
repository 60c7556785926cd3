//! Bytes that arrive as others, as more, or as fewer: what application-level gateways do, such as
//! those that put another address into FTP's PORT command.

use anabranch_wire::entry::{Entry, Kind, Parameter, Value};
use anabranch_wire::{Flags, Instant, Packet, Payload, Segment, SeqNumber};

use super::flows::{Flows, Numbering};
use super::{Directions, Filter, MAX_PACKET, Side, map_sack_blocks, meant, names};

/// What is changed, once in each flow and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RewritePayloadConfig {
    /// What happens there.
    change: PayloadChange,
    /// How many bytes it concerns; above zero.
    bytes: u32,
    /// Where: bytes of the flow that come before.
    at: u64,
    /// Which way the flow goes.
    directions: Directions,
}

/// A change of a stream. The TCP checksum is always made right again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PayloadChange {
    /// Bytes are replaced by their complements.
    Replace,
    /// Bytes are put between two others; the box adapts all sequence numbers that follow.
    Insert,
    /// Bytes are taken out, the same way.
    Remove,
}

/// Rewrites streams. What it does to a segment depends only on where in the stream that lies, so
/// retransmissions are changed as the original was.
#[derive(Debug)]
struct RewritePayload {
    edit: Edit,
    directions: Directions,
    flows: Flows<()>,
}

/// A change at an offset: the SYN has 0, the first byte 1.
#[derive(Clone, Copy, Debug)]
struct Edit {
    change: PayloadChange,
    at: u64,
    bytes: u64,
}

/// What is inserted.
const INSERTED: u8 = b'#';

impl RewritePayload {
    fn new(config: RewritePayloadConfig) -> Self {
        let RewritePayloadConfig { change, bytes, at, directions } = config;
        let edit = Edit { change, at: at.saturating_add(1), bytes: bytes.into() };
        RewritePayload { edit, directions, flows: Flows::default() }
    }
}

impl Edit {
    /// The end of what is changed, before and after.
    fn ends(&self) -> (u64, u64) {
        let beyond = self.at.saturating_add(self.bytes);
        match self.change {
            PayloadChange::Replace => (beyond, beyond),
            PayloadChange::Insert => (self.at, beyond),
            PayloadChange::Remove => (beyond, self.at),
        }
    }

    /// Where the byte at `offset` goes.
    fn ahead(&self, offset: u64) -> u64 {
        let (before, after) = self.ends();
        match self.change {
            PayloadChange::Replace => offset,
            // What is inserted goes with the byte that follows it.
            _ if offset <= self.at => offset,
            _ if offset >= before => offset - before + after,
            _ => self.at,
        }
    }

    /// What an acknowledgement of everything before `offset` means to a host that has sent
    /// everything before `sent`.
    fn back(&self, offset: u64, sent: u64) -> u64 {
        let (before, after) = self.ends();
        match self.change {
            PayloadChange::Replace => offset,
            _ if offset < self.at => offset,
            // What was taken out has arrived, in a way, but not before it was sent.
            _ if offset == self.at => before.min(sent).max(self.at),
            _ if offset >= after => offset - after + before,
            _ => self.at,
        }
    }

    /// The same for a sequence number of an acknowledgement.
    fn translate_back(&self, seq: SeqNumber, numbering: &Numbering) -> SeqNumber {
        let offset = numbering.offset(seq);
        offset.map_or(seq, |offset| numbering.seq(self.back(offset, numbering.highest())))
    }

    /// The payload that begins at `start`, changed.
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

    /// Change a segment and its place.
    fn rewrite(&self, segment: &mut Segment, numbering: &mut Numbering) {
        let header = &mut segment.header;
        let Some(start) = numbering.offset(header.seq) else { return };
        let fin = u32::from(header.flags.contains(Flags::FIN));
        let had_payload = !segment.payload.is_empty();
        numbering.note(header.seq + (segment.payload.len() as u32 + fin));
        segment.payload = self.apply(start, &segment.payload);
        let mut place = self.ahead(start);
        if had_payload && segment.payload.is_empty() && fin == 0 {
            // Nothing is left of it. RFC 9293 §3.8.4: an old sequence number makes the receiver
            // acknowledge, and so the sender learns that what was taken out need not come again.
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
        // What has become too long for a packet is lost.
        segment.wire_len() <= MAX_PACKET
    }
}

const CHANGES: [(&str, PayloadChange); 3] = [
    ("replace", PayloadChange::Replace),
    ("insert", PayloadChange::Insert),
    ("remove", PayloadChange::Remove),
];

pub(super) const ENTRY: super::MiddleboxEntry = Entry {
    name: "rewrite_payload",
    summary: "Replaces, inserts or removes bytes of the stream; the TCP checksum stays right.",
    source: "application-level gateways, such as those for FTP",
    parameters: &[
        super::APPLIES_TO,
        Parameter {
            name: "change",
            meaning: "what happens, once in each flow and direction",
            kind: Kind::Choice(&names(&CHANGES)),
            default: Value::Required,
            origin: "the user says it",
            only_with: None,
        },
        Parameter {
            name: "bytes",
            meaning: "to how many bytes",
            kind: Kind::Count { least: 1, most: 1_000 },
            default: Value::Count(4),
            origin: "ours",
            only_with: None,
        },
        Parameter {
            name: "at",
            meaning: "after how much of the flow",
            kind: Kind::Bytes { least: 0, most: u64::MAX },
            default: Value::Bytes(0),
            origin: "ours",
            only_with: None,
        },
    ],
    make: |values, _| {
        super::filter(RewritePayload::new(RewritePayloadConfig {
            change: meant(&CHANGES, values.choice("change")),
            bytes: values.count("bytes"),
            at: values.bytes("at"),
            directions: Directions::new(values),
        }))
    },
};

#[cfg(test)]
mod tests {
    use super::super::filter;
    use super::super::testing::{Bench, Talk};
    use super::*;
    use anabranch_wire::SackBlock;

    /// A change of ten bytes after the first hundred towards the server.
    fn opened(change: PayloadChange, talk: &Talk) -> Bench {
        let directions = Directions::Only(Side::Server);
        let config = RewritePayloadConfig { change, bytes: 10, at: 100, directions };
        Bench::new(filter(RewritePayload::new(config))).opened(talk)
    }

    /// Where in the stream a segment arrives, and its bytes.
    fn arrives(bench: &mut Bench, talk: &Talk, from: u32, len: u32) -> (u32, Vec<u8>) {
        let segment = bench.cross(Side::Server, talk.data(Side::Server, from, len));
        assert!(segment.checksum_ok);
        let at = segment.header.seq.0.wrapping_sub(talk.client_isn.wrapping_add(1));
        (at, segment.payload.to_vec())
    }

    /// What the client takes an acknowledgement of `bytes` for.
    fn acknowledged(bench: &mut Bench, talk: &Talk, bytes: u32) -> u32 {
        let ack = bench.cross(Side::Client, talk.ack(Side::Client, bytes)).header.ack;
        ack.0.wrapping_sub(talk.client_isn.wrapping_add(1))
    }

    fn pattern(from: u32, to: u32) -> Vec<u8> {
        Talk::v4().data(Side::Server, from, to - from).payload.to_vec()
    }

    #[test]
    fn bytes_are_replaced_and_nothing_moves() {
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
    fn bytes_are_inserted_and_all_numbers_follow() {
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
    fn bytes_are_removed_and_count_as_arrived_once_they_were_sent() {
        let talk = Talk::v4();
        let mut bench = opened(PayloadChange::Remove, &talk);
        arrives(&mut bench, &talk, 0, 100);
        assert_eq!(acknowledged(&mut bench, &talk, 100), 100, "the next ten were not sent yet");
        // Nothing is left of these; the receiver is made to answer with what it has.
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
    fn selective_acknowledgements_are_translated_too() {
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
    fn the_other_direction_is_left_alone() {
        let talk = Talk::v4();
        let mut bench = opened(PayloadChange::Remove, &talk);
        let data = talk.data(Side::Client, 0, 300);
        assert_eq!(bench.cross(Side::Client, data.clone()), data);
        let ack = talk.ack(Side::Server, 300);
        assert_eq!(bench.cross(Side::Server, ack.clone()), ack);
    }
}
