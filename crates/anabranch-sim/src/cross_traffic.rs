//! Builds datagram sources at the hosts from the cross-traffic of a scenario.

use anabranch_net::Side;
use anabranch_net::network::{Traffic, TrafficSource};
use anabranch_net::rng::stream_seed;
use anabranch_wire::{Instant, Packet, SocketAddress};

use crate::scenario::{CrossTraffic, Path};
use crate::topology;
use crate::workload::{Sampler, UdpOnOff};

/// Destination port of the datagrams. RFC 863: the discard service drops everything it receives.
const DISCARD_PORT: u16 = 9;

/// Source port of the first source. Further sources use the next ports.
const FIRST_PORT: u16 = 40_001;

/// Source number `index` of a scenario, in a run with seed `seed`.
pub(crate) fn traffic_of(
    index: usize,
    traffic: &CrossTraffic,
    paths: &[Path],
    seed: u64,
) -> Traffic {
    let number = traffic.path.index;
    let client = topology::client_address(paths, number);
    let server = topology::server_address(&paths[number]);
    let side = traffic.direction.sender();
    let (from, to) = match side {
        Side::Client => (client, server),
        Side::Server => (server, client),
    };
    let stream = |name| stream_seed(seed, &format!("cross_traffic/{}/{name}", traffic.name));
    let periods = traffic.on.zip(traffic.off);
    let periods =
        periods.map(|(on, off)| [Sampler::new(on, stream("on")), Sampler::new(off, stream("off"))]);
    let source = SocketAddress::new(from, FIRST_PORT.wrapping_add(index as u16));
    let destination = SocketAddress::new(to, DISCARD_PORT);
    let packet_size = traffic.packet_bytes(&paths[number]);
    let udp = UdpOnOff::new(source, destination, traffic.rate, packet_size, periods);
    Traffic { towards: side.opposite(), path: number, source: Box::new(udp) }
}

impl TrafficSource for UdpOnOff {
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        UdpOnOff::poll_transmit(self, now).map(Packet::from)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        UdpOnOff::poll_timeout(self)
    }
}
