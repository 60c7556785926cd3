//! Malformed and malicious segments. They must neither cause a panic nor keep a host busy without
//! end.

use anabranch_proto::config::Protocol;
use anabranch_wire::mptcp::{
    CapableFlags, CapableKeys, Dss, Mapping, MpCapable, MpFail, VERSION, WideOrNarrow,
};
use anabranch_wire::{DataSeq, Flags, Payload, Piece, SackBlock, SackBlocks, Segment, SeqNumber};
use proptest::prelude::*;

use crate::pair::{Fate, Pair, ms, on_any_platform};

/// A small random number generator, so that a single number determines a case.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// An offset to an edge of the 32-bit sequence space or near it, in either direction.
    fn step(&mut self) -> u32 {
        let edge = self.pick(&[
            0,
            1,
            2,
            99,
            500,
            1432,
            1448,
            5000,
            65_535,
            65_536,
            1 << 20,
            1 << 30,
            1 << 31,
            u32::MAX,
        ]);
        let near = edge.wrapping_add(self.below(3) as u32).wrapping_sub(1);
        if self.below(2) == 0 { near } else { near.wrapping_neg() }
    }

    /// A number at an edge of the 64-bit data sequence space or near it.
    fn wide(&mut self) -> WideOrNarrow {
        let edge = self.pick(&[0, 1, 1432, 1 << 31, 1 << 32, 1 << 62, 1 << 63, u64::MAX]);
        WideOrNarrow::Wide(DataSeq(edge.wrapping_add(self.below(5)).wrapping_sub(2)))
    }
}

fn mutate(draws: &mut Draws, segment: &mut Segment) {
    for _ in 0..=draws.below(3) {
        match draws.below(4) {
            0 => mutate_header(draws, segment),
            1 => mutate_options(draws, segment),
            2 => mutate_signal(draws, segment),
            _ => mutate_payload(draws, segment),
        }
    }
}

fn mutate_header(draws: &mut Draws, segment: &mut Segment) {
    let header = &mut segment.header;
    match draws.below(5) {
        0 => header.seq = header.seq + draws.step(),
        1 => header.ack = header.ack + draws.step(),
        2 => header.ack = header.ack + draws.below(3_000) as u32,
        3 => header.window = draws.pick(&[0, 1, 100, u16::MAX]),
        _ => {
            header.flags = draws.pick(&[
                Flags::SYN,
                Flags::SYN | Flags::ACK,
                Flags::FIN | Flags::ACK,
                Flags::ACK,
                Flags::RST,
                Flags::FIN,
                Flags::SYN | Flags::FIN | Flags::ACK,
            ]);
        }
    }
}

fn mutate_options(draws: &mut Draws, segment: &mut Segment) {
    let options = &mut segment.options;
    match draws.below(6) {
        0 => {
            if let Some(stamps) = &mut options.timestamps {
                stamps.value = stamps.value.wrapping_add(draws.step());
            }
        }
        1 => options.timestamps = None,
        2 => options.control = None,
        3 => options.sack = sacks(draws, segment.header.ack),
        4 => {
            let data_seq = DataSeq(draws.next());
            options.control_mut().fail = Some(MpFail { data_seq });
        }
        _ => {
            let flags = CapableFlags::PLAIN;
            let keys = CapableKeys::WithData {
                sender: draws.next(),
                receiver: draws.next(),
                data_len: draws.pick(&[0, 1, 100, u16::MAX]),
                checksum: None,
            };
            options.control_mut().capable = Some(MpCapable { version: VERSION, flags, keys });
        }
    }
}

fn sacks(draws: &mut Draws, ack: SeqNumber) -> SackBlocks {
    let mut blocks = SackBlocks::default();
    for _ in 0..=draws.below(4) {
        let far = if draws.below(6) == 0 { draws.step() } else { 0 };
        let start = ack + (draws.below(60) as u32 * 100).wrapping_add(far);
        blocks.push(SackBlock { start, end: start + draws.below(50) as u32 * 358 });
    }
    blocks
}

fn mutate_signal(draws: &mut Draws, segment: &mut Segment) {
    let mapping = Mapping {
        data_seq: WideOrNarrow::Narrow(draws.next() as u32),
        subflow_seq: SeqNumber(draws.step()),
        len: draws.next() as u16,
        checksum: [None, Some(draws.next() as u16)][draws.below(2) as usize],
    };
    let Some(dss) = &mut segment.options.dss else {
        segment.options.dss = Some(Dss { mapping: Some(mapping), ..Dss::default() });
        return;
    };
    match draws.below(7) {
        0 => dss.data_fin = !dss.data_fin,
        1 => dss.mapping = None,
        2 => dss.data_ack = Some(draws.wide()),
        3 => dss.mapping = Some(mapping),
        4 => segment.options.dss = None,
        5 => {
            if let Some(WideOrNarrow::Narrow(ack)) = &mut dss.data_ack {
                *ack = ack.wrapping_add(draws.below(3_000) as u32);
            }
        }
        _ => {
            if let Some(mapping) = &mut dss.mapping {
                mapping.len = draws.pick(&[0, 1, 100, u16::MAX]);
                mapping.data_seq = draws.wide();
            }
        }
    }
}

fn mutate_payload(draws: &mut Draws, segment: &mut Segment) {
    let len = segment.payload.len() as u64;
    segment.payload = if len == 0 || draws.below(2) == 0 {
        Payload::from(Piece::pattern(draws.next() >> 20, draws.below(3_000) as u32))
    } else {
        let from = draws.below(len);
        let to = from + draws.below(len - from + 1);
        segment.payload.slice(from as usize, to as usize)
    };
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn mutated_segments_do_no_harm(
        seed in any::<u64>(),
        percent in 1u64..60,
        plain in any::<bool>(),
        dss_checksum in any::<bool>(),
        addresses in 1u8..4,
        slow_ms in 0u64..100,
        loss_percent in 0u64..10,
    ) {
        let protocol = if plain { Protocol::Tcp } else { Protocol::Mptcp };
        let config = on_any_platform()
.protocol(protocol)
.dss_checksum(dss_checksum)
.send_buffer(60_000)
.receive_buffer(60_000);
        let mut draws = Draws(seed | 1);
        let mut pair = Pair::new(addresses, config.clone(), config)
            .with_slow_path(1, ms(slow_ms))
            .with_filter(move |n, segment| {
                if draws.below(100) < loss_percent {
                    return Fate::Drop;
                }
                if n > 8 && draws.below(100) < percent {
                    mutate(&mut draws, segment);
                    if draws.below(2) == 0 {
                        return Fate::Twice;
                    }
                }
                if draws.below(100) < 5 { Fate::Delay(ms(draws.below(100))) } else { Fate::Deliver }
            });
        pair.unchecked = true;
        for _ in 0..200 {
            pair.write(0, 10_000_000);
            pair.write(1, 10_000_000);
            pair.run_ms(5);
        }
        pair.close_both();
        pair.run_ms(5_000);
    }
}
