//! Replaces initial sequence numbers, as firewalls do for hosts whose ISNs are predictable.

use anabranch_config::part_without_parameters;
use anabranch_wire::{Flags, Instant, Packet, SeqNumber};

use super::flows::Flows;
use super::{BuildMiddlebox, Filter, Middlebox, Side, Site, map_sack_blocks};
use crate::rng::{Draws, stream_seed};

/// Shifts the sequence numbers of each flow and direction by a random number. Acknowledgements and
/// SACK blocks are shifted back.
#[derive(Debug)]
struct RewriteIsn {
    flows: Flows<()>,
    shifts: Draws,
}

impl RewriteIsn {
    fn new(seed: u64) -> Self {
        RewriteIsn { flows: Flows::default(), shifts: Draws::new(stream_seed(seed, "isn")) }
    }
}

impl Filter for RewriteIsn {
    fn pass(&mut self, _now: Instant, towards: Side, packet: &mut Packet) -> bool {
        let Packet::Tcp(segment) = packet else { return true };
        let Some(flow) = self.flows.of(towards, segment) else { return true };
        let first = 2 * flow.number;
        let shift = |towards: Side| self.shifts.bits(first + towards as u64) as u32;
        let (ahead, back) = (shift(towards), shift(towards.opposite()).wrapping_neg());
        segment.header.seq = segment.header.seq + ahead;
        if segment.header.flags.contains(Flags::ACK) {
            segment.header.ack = segment.header.ack + back;
            map_sack_blocks(&mut segment.options, |seq: SeqNumber| seq + back);
        }
        true
    }
}

part_without_parameters! {
    /// Selects the middlebox that replaces initial sequence numbers.
    pub struct RewriteIsnConfig;
    NAME = "rewrite_isn";
    SUMMARY = "Replaces the hosts' initial sequence numbers.";
    SOURCE = "Honda et al., IMC 2011";
}

impl BuildMiddlebox for RewriteIsnConfig {
    fn build(&self, site: Site) -> Box<dyn Middlebox> {
        super::filter(RewriteIsn::new(site.seed))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, Talk};
    use super::*;
    use anabranch_wire::SackBlock;

    #[test]
    fn both_hosts_see_numbers_consistent_with_their_own() {
        for talk in [Talk::v4(), Talk::v6()] {
            let mut bench = Bench::by_default::<RewriteIsnConfig>();
            let syn = bench.cross(Side::Server, talk.syn());
            assert_eq!(
                bench.cross(Side::Server, talk.syn()),
                syn,
                "the same shift for the same SYN"
            );
            let shift = syn.header.seq.0.wrapping_sub(talk.client_isn);
            assert_ne!(shift, 0);
            let mut syn_ack = talk.syn_ack();
            syn_ack.header.ack = syn.header.seq + 1;
            let seen = bench.cross(Side::Client, syn_ack);
            assert_eq!(seen.header.ack, talk.syn_ack().header.ack);
            assert_ne!(seen.header.seq, talk.syn_ack().header.seq);
            let data = bench.cross(Side::Server, talk.data(Side::Server, 100, 10));
            assert_eq!(data.header.seq.0, (syn.header.seq + 101).0);
            let mut ack = talk.ack(Side::Client, 0);
            ack.header.ack = syn.header.seq + 1;
            let (start, end) = (data.header.seq, data.header.seq + 10);
            ack.options.sack.push(SackBlock { start, end });
            let seen = bench.cross(Side::Client, ack);
            let block = seen.options.sack.as_slice()[0];
            assert_eq!(seen.header.ack, SeqNumber(talk.client_isn) + 1);
            assert_eq!(block.start, SeqNumber(talk.client_isn) + 101);
            assert_eq!(block.end, SeqNumber(talk.client_isn) + 111);
        }
    }

    #[test]
    fn flows_without_a_syn_are_not_changed() {
        let data = Talk::v4().data(Side::Server, 0, 10);
        let mut bench = Bench::by_default::<RewriteIsnConfig>();
        assert_eq!(bench.cross(Side::Server, data.clone()), data);
    }
}
