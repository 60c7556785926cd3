//! Ingress filtering: a provider drops packets whose source address does not belong to the customer
//! (BCP 38, RFC 2827).

use anabranch_config::part_without_parameters;
use std::net::IpAddr;

use anabranch_wire::{Instant, Packet};

use super::{BuildMiddlebox, Filter, Middlebox, Side, Site};

/// Drops packets towards the server from other addresses than the client's on this path.
#[derive(Debug)]
struct IngressFilter {
    client: IpAddr,
}

impl Filter for IngressFilter {
    fn pass(&mut self, _now: Instant, towards: Side, packet: &mut Packet) -> bool {
        towards == Side::Client || packet.source() == self.client
    }
}

part_without_parameters! {
    /// Selects the filter of source addresses.
    pub struct IngressFilterConfig;
    NAME = "ingress_filter";
    SUMMARY = "Drops packets to the server whose source is not the client's address on this path.";
    SOURCE = "RFC 2827 (BCP 38)";
}

impl BuildMiddlebox for IngressFilterConfig {
    fn build(&self, site: Site) -> Box<dyn Middlebox> {
        super::filter(IngressFilter { client: site.client })
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter;
    use super::super::testing::{Bench, Talk};
    use super::*;

    #[test]
    fn packets_to_the_server_need_the_address_of_the_path() {
        let talk = Talk::v4();
        let syn = talk.syn();
        for (client, passes) in [(syn.source.address, true), (IpAddr::from([10, 1, 0, 9]), false)] {
            let mut bench = Bench::new(filter(IngressFilter { client }));
            assert_eq!(bench.put(Side::Server, syn.clone()).len(), usize::from(passes));
            assert_eq!(bench.put(Side::Client, talk.syn_ack()).len(), 1);
        }
    }
}
