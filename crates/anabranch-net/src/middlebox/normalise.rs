//! A normaliser: retransmitted data arrives with its original content. Handley, Paxson and
//! Kreibich, USENIX Security 2001.

use anabranch_config::part_without_parameters;
use std::collections::BTreeMap;

use anabranch_wire::{Flags, Instant, Packet, Payload};

use super::flows::Flows;
use super::{BuildMiddlebox, Filter, Middlebox, Side, Site};

/// Maximum number of bytes kept per flow and direction. The earliest bytes are discarded first.
const MAX_BYTES: u64 = 1 << 20;

/// Keeps data that was not acknowledged yet.
#[derive(Debug, Default)]
struct Normalise {
    flows: Flows<[Memory; 2]>,
}

/// Payload by offset in the stream, without overlap.
#[derive(Debug, Default)]
struct Memory {
    seen: BTreeMap<u64, Payload>,
    bytes: u64,
}

impl Memory {
    /// The first-seen content of the bytes from `start` on. Keeps bytes that are new.
    fn first_seen(&mut self, start: u64, payload: &Payload) -> Payload {
        let end = start + payload.len() as u64;
        let mut whole = Payload::EMPTY;
        let mut at = start;
        while at < end {
            let part = match self.held_at(at) {
                Some((from, held)) => {
                    let until = end.min(from + held.len() as u64);
                    held.slice((at - from) as usize, (until - from) as usize)
                }
                None => {
                    let next = self.seen.range(at..end).next().map_or(end, |(from, _)| *from);
                    let new = payload.slice((at - start) as usize, (next - start) as usize);
                    self.remember(at, new.clone());
                    new
                }
            };
            at += part.len() as u64;
            whole = Payload::concat(&whole, &part);
        }
        self.limit();
        whole
    }

    /// The kept piece that covers `offset`, with its start.
    fn held_at(&self, offset: u64) -> Option<(u64, &Payload)> {
        let (from, held) = self.seen.range(..=offset).next_back()?;
        (offset < from + held.len() as u64).then_some((*from, held))
    }

    fn remember(&mut self, at: u64, payload: Payload) {
        self.bytes += payload.len() as u64;
        self.seen.insert(at, payload);
    }

    fn limit(&mut self) {
        while self.bytes > MAX_BYTES
            && let Some((_, oldest)) = self.seen.pop_first()
        {
            self.bytes -= oldest.len() as u64;
        }
    }

    /// Discard all bytes before `offset`. They were acknowledged and will not be retransmitted.
    fn forget_before(&mut self, offset: u64) {
        while let Some(first) = self.seen.first_entry()
            && first.key() + first.get().len() as u64 <= offset
        {
            self.bytes -= first.remove().len() as u64;
        }
    }
}

impl Filter for Normalise {
    fn pass(&mut self, _now: Instant, towards: Side, packet: &mut Packet) -> bool {
        let Packet::Tcp(segment) = packet else { return true };
        let Some(flow) = self.flows.of(towards, segment).filter(|_| segment.checksum_ok) else {
            return true;
        };
        let back = towards.opposite();
        if segment.header.flags.contains(Flags::ACK)
            && let Some(numbering) = flow.towards(back)
            && let Some(acknowledged) = numbering.offset(segment.header.ack)
        {
            flow.state[back as usize].forget_before(acknowledged);
        }
        if !segment.payload.is_empty()
            && let Some(numbering) = flow.towards(towards)
            && let Some(start) = numbering.note(segment.header.seq)
        {
            let memory = &mut flow.state[towards as usize];
            segment.payload = memory.first_seen(start, &segment.payload);
        }
        true
    }
}

part_without_parameters! {
    /// Selects the normaliser.
    pub struct NormaliseConfig;
    NAME = "normalise";
    SUMMARY = "Replaces the content of retransmissions by the content seen first.";
    SOURCE = "Handley, Paxson and Kreibich, USENIX Security 2001";
}

impl BuildMiddlebox for NormaliseConfig {
    fn build(&self, _: Site) -> Box<dyn Middlebox> {
        super::filter(Normalise::default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, Talk};
    use super::*;

    /// Send a segment in which every byte is `byte`, and return the payload that arrives.
    fn put(bench: &mut Bench, talk: &Talk, from: u32, len: u32, byte: u8) -> Vec<u8> {
        let mut segment = talk.data(Side::Server, from, len);
        segment.payload = vec![byte; len as usize].into();
        bench.cross(Side::Server, segment).payload.to_vec()
    }

    #[test]
    fn a_retransmission_arrives_with_its_original_content() {
        for talk in [Talk::v4(), Talk::v6()] {
            let mut bench = Bench::by_default::<NormaliseConfig>().opened(&talk);
            put(&mut bench, &talk, 10, 10, b'a');
            put(&mut bench, &talk, 30, 10, b'b');
            assert_eq!(
                put(&mut bench, &talk, 0, 50, b'c'),
                b"ccccccccccaaaaaaaaaaccccccccccbbbbbbbbbbcccccccccc"
            );
            assert_eq!(put(&mut bench, &talk, 5, 10, b'd'), b"cccccaaaaa");
            // Acknowledged bytes were discarded, so new content passes.
            bench.cross(Side::Client, talk.ack(Side::Client, 30));
            assert_eq!(put(&mut bench, &talk, 10, 25, b'e'), b"eeeeeeeeeeeeeeeeeeeebbbbb");
        }
    }

    #[test]
    fn the_first_transmission_shares_its_memory() {
        let talk = Talk::v4();
        let mut bench = Bench::by_default::<NormaliseConfig>().opened(&talk);
        for _ in 0..2 {
            let segment = bench.cross(Side::Server, talk.data(Side::Server, 0, 1_000));
            assert!(matches!(segment.payload.pieces()[0], anabranch_wire::Piece::Pattern { .. }));
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut memory = Memory::default();
        for n in 0..2_000u64 {
            memory.first_seen(n * 2_000, &vec![0; 1_000].into());
        }
        assert!(memory.bytes <= MAX_BYTES && memory.bytes > MAX_BYTES - 1_000);
        assert_eq!(memory.seen.len() as u64, memory.bytes / 1_000);
        memory.forget_before(u64::MAX);
        assert_eq!((memory.bytes, memory.seen.len()), (0, 0));
    }
}
