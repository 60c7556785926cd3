//! A stateful middlebox that drops data after a gap in the sequence space, and acknowledgements of
//! data that it did not see. Honda et al., IMC 2011.

use anabranch_config::part_without_parameters;
use anabranch_wire::{Flags, Instant, Packet};

use super::flows::Flows;
use super::{BuildMiddlebox, Filter, Middlebox, Side, Site};

/// For each flow, the end of the contiguous data seen towards the client and towards the server.
#[derive(Debug, Default)]
struct HoleRefusal {
    flows: Flows<[u64; 2]>,
}

impl Filter for HoleRefusal {
    fn pass(&mut self, _now: Instant, towards: Side, packet: &mut Packet) -> bool {
        let Packet::Tcp(segment) = packet else { return true };
        let Some(flow) = self.flows.of(towards, segment) else { return true };
        let (seq, ack, flags) = (segment.header.seq, segment.header.ack, segment.header.flags);
        if flags.contains(Flags::ACK)
            && let Some(numbering) = flow.towards(towards.opposite())
        {
            let acknowledged = numbering.offset(ack).unwrap_or(0);
            if acknowledged > flow.state[towards.opposite() as usize] {
                return false;
            }
        }
        let counted = u64::from(flags.contains(Flags::SYN)) + u64::from(flags.contains(Flags::FIN));
        let len = segment.payload.len() as u64 + counted;
        let start = flow.towards(towards).and_then(|numbering| numbering.offset(seq));
        let Some(start) = start.filter(|_| len > 0) else { return true };
        let seen = &mut flow.state[towards as usize];
        if start > *seen {
            return false;
        }
        *seen = (*seen).max(start + len);
        let end = segment.header.seq + len as u32;
        flow.towards(towards).and_then(|numbering| numbering.note(end));
        true
    }
}

part_without_parameters! {
    /// Selects the middlebox that drops data after a gap.
    pub struct HoleRefusalConfig;
    NAME = "hole_refusal";
    SUMMARY = "Drops data after a gap, and acknowledgements of data that it did not see.";
    SOURCE = "Honda et al., IMC 2011";
}

impl BuildMiddlebox for HoleRefusalConfig {
    fn build(&self, _: Site) -> Box<dyn Middlebox> {
        super::filter(HoleRefusal::default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, Talk};
    use super::*;

    #[test]
    fn data_after_a_gap_and_acknowledgements_of_unseen_data_are_dropped() {
        for talk in [Talk::v4(), Talk::v6()] {
            let mut bench = Bench::by_default::<HoleRefusalConfig>().opened(&talk);
            let data = |from| talk.data(Side::Server, from, 100);
            bench.cross(Side::Server, data(0));
            assert!(bench.put(Side::Server, data(200)).is_empty());
            assert!(bench.put(Side::Client, talk.ack(Side::Client, 300)).is_empty());
            bench.cross(Side::Client, talk.ack(Side::Client, 100));
            bench.cross(Side::Server, data(100));
            bench.cross(Side::Server, data(200));
            bench.cross(Side::Server, data(0));
            bench.cross(Side::Client, talk.ack(Side::Client, 300));
            assert!(bench.put(Side::Server, talk.fin(Side::Server, 400)).is_empty());
            bench.cross(Side::Server, talk.fin(Side::Server, 300));
            // A segment without payload leaves no gap.
            bench.cross(Side::Server, talk.ack(Side::Server, 0));
        }
    }
}
