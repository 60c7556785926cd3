//! From a scenario's cross-traffic to a source of datagrams on one of the hosts.

use anabranch_net::rng::stream_seed;
use anabranch_wire::Endpoint;

use crate::scenario::{self, Direction, Path};
use crate::topology::{self, Side};
use crate::workload::{Sampler, UdpOnOff};

/// A source, and the host that it is on.
pub struct CrossTraffic {
    /// The host.
    pub side: Side,
    /// The path that its packets take.
    pub path: usize,
    /// The source.
    pub udp: UdpOnOff,
}

/// Where datagrams go. RFC 863: what arrives at the discard port is thrown away.
const DISCARD_PORT: u16 = 9;

/// The first source's port; the others follow.
const FIRST_PORT: u16 = 40_001;

impl CrossTraffic {
    /// Source number `index` of a scenario in the run of `seed`.
    pub fn new(index: usize, traffic: &scenario::CrossTraffic, paths: &[Path], seed: u64) -> Self {
        let client = topology::client_address(paths, traffic.path.index);
        let path = &paths[traffic.path.index];
        let server = topology::server_address(path);
        let (side, from, to) = match traffic.direction {
            Direction::Download => (Side::Server, server, client),
            Direction::Upload => (Side::Client, client, server),
        };
        let stream = |name| stream_seed(seed, &format!("cross_traffic/{}/{name}", traffic.name));
        let periods = traffic.on.zip(traffic.off);
        let periods = periods
            .map(|(on, off)| [Sampler::new(on, stream("on")), Sampler::new(off, stream("off"))]);
        let source = Endpoint::new(from, FIRST_PORT.wrapping_add(index as u16));
        let destination = Endpoint::new(to, DISCARD_PORT);
        let packet_size = traffic.packet_octets(path);
        let udp = UdpOnOff::new(source, destination, traffic.rate, packet_size, periods);
        CrossTraffic { side, path: traffic.path.index, udp }
    }
}
