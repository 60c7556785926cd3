//! Network address and port translation. RFC 4787, RFC 5382.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::WithUnit;
use std::net::IpAddr;

use anabranch_wire::{Datagram, Duration, Instant, Packet, PacketTooBig, Segment, SocketAddress};

use super::flows::FlowTable;
use super::{BuildMiddlebox, Filter, Middlebox, Side, Site};
use crate::rng::{Draws, stream_seed};

/// Parameters of the NAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct NatConfig {
    /// Maximum idle time of a mapping. After that, the flow gets a new port.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Duration>"), schemars(extend("x-origin" = "RFC 5382 §5")))]
    pub idle_timeout: Duration,
    /// When all mappings are dropped, as in a restart of the NAT. Never by default.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Option<Duration>>", skip_serializing_if = "Option::is_none"), schemars(extend("x-origin" = "this project")))]
    pub rebind_at: Option<Duration>,
}

/// RFC 5382 §5: at least 2 hours and 4 minutes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(124 * 60);

/// Lowest port that the NAT assigns. Lower ports belong to services.
const FIRST_PORT: u16 = 1024;

/// An endpoint of TCP (true) or UDP (false), which have separate ports.
type NatKey = (bool, SocketAddress);

/// Maps each endpoint of the client to a port of the NAT's address, the same for all servers.
#[derive(Debug)]
struct Nat {
    config: NatConfig,
    address: IpAddr,
    ports: Draws,
    drawn: u64,
    /// Mappings in use, by the client's endpoint.
    by_client: FlowTable<NatKey, Mapping>,
    /// The last mapping of each port, by the NAT's endpoint. It may have expired.
    by_port: FlowTable<NatKey, SocketAddress>,
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    public: SocketAddress,
    made: Instant,
    used: Instant,
}

impl Nat {
    fn new(config: NatConfig, site: Site) -> Self {
        Nat {
            config,
            address: site.address,
            ports: Draws::new(stream_seed(site.seed, "port")),
            drawn: 0,
            by_client: FlowTable::default(),
            by_port: FlowTable::default(),
        }
    }

    /// The mapping of a client endpoint, if it is valid at `now`. This counts as a use.
    fn use_mapping(&mut self, now: Instant, key: NatKey) -> Option<SocketAddress> {
        let NatConfig { idle_timeout, rebind_at } = self.config;
        let restart = rebind_at.map(|at| Instant::ZERO + at).filter(|at| *at <= now);
        let mapping = self.by_client.get(key)?;
        let idle = now.saturating_since(mapping.used) > idle_timeout;
        if idle || restart.is_some_and(|restart| mapping.made < restart) {
            self.by_client.remove(key);
            return None;
        }
        mapping.used = now;
        Some(mapping.public)
    }

    fn make_mapping(&mut self, now: Instant, key: NatKey) -> SocketAddress {
        let range = u64::from(u16::MAX - FIRST_PORT) + 1;
        let first = self.ports.bits(self.drawn) % range;
        self.drawn += 1;
        let tcp = key.0;
        let public = (0..range)
            .map(|step| FIRST_PORT + ((first + step) % range) as u16)
            .map(|port| SocketAddress::new(self.address, port))
            .find(|public| self.by_port.peek((tcp, *public)).is_none())
            .expect("the table is smaller than the range of ports");
        if let Some(((tcp, forgotten), client)) = self.by_port.insert((tcp, public), key.1) {
            // Another client endpoint must not get a port that this one still uses.
            let shown = self.by_client.peek((tcp, client)).map(|mapping| mapping.public);
            if shown == Some(forgotten) {
                self.by_client.remove((tcp, client));
            }
        }
        self.by_client.insert(key, Mapping { public, made: now, used: now });
        public
    }

    /// The client endpoint behind the NAT's endpoint of a packet.
    fn client_of(
        &mut self,
        now: Instant,
        tcp: bool,
        public: SocketAddress,
    ) -> Option<SocketAddress> {
        let client = *self.by_port.get((tcp, public))?;
        (self.use_mapping(now, (tcp, client)) == Some(public)).then_some(client)
    }
}

impl Nat {
    /// RFC 5508 §4.2: translate the quoted segment as well. An answer to the client's segment travels
    /// towards the client, and one to the server's segment quotes the client as its destination.
    fn pass_too_big(&mut self, now: Instant, towards: Side, message: &mut PacketTooBig) -> bool {
        match towards {
            Side::Client if message.destination == self.address => {
                let Some(client) = self.client_of(now, true, message.quoted_source) else {
                    return false;
                };
                message.destination = client.address;
                message.quoted_source = client;
            }
            Side::Server => {
                if let Some(public) = self.use_mapping(now, (true, message.quoted_destination)) {
                    message.source = public.address;
                    message.quoted_destination = public;
                }
            }
            Side::Client => {}
        }
        true
    }
}

impl Filter for Nat {
    fn pass(&mut self, now: Instant, towards: Side, packet: &mut Packet) -> bool {
        let (tcp, source, destination) = match packet {
            Packet::Tcp(segment) => {
                let Segment { source, destination, .. } = &mut **segment;
                (true, source, destination)
            }
            Packet::Udp(datagram) => {
                let Datagram { source, destination, .. } = &mut **datagram;
                (false, source, destination)
            }
            Packet::TooBig(message) => return self.pass_too_big(now, towards, message),
        };
        match towards {
            Side::Server => {
                let key = (tcp, *source);
                let public = self.use_mapping(now, key);
                *source = public.unwrap_or_else(|| self.make_mapping(now, key));
                true
            }
            // Unsolicited packets are dropped. RFC 5382 §4.3.
            Side::Client if destination.address == self.address => {
                let client = self.client_of(now, tcp, *destination);
                *destination = client.unwrap_or(*destination);
                client.is_some()
            }
            Side::Client => true,
        }
    }

    fn original(&self, public: SocketAddress) -> Option<SocketAddress> {
        self.by_port.peek((true, public)).copied()
    }
}

impl Default for NatConfig {
    fn default() -> Self {
        NatConfig { idle_timeout: IDLE_TIMEOUT, rebind_at: None }
    }
}

impl Part for NatConfig {
    const NAME: &'static str = "nat";
    const SUMMARY: &'static str = "Translates the client's address and ports, for TCP and UDP.";
    const SOURCE: &'static str = "RFC 4787, RFC 5382";
}

impl BuildMiddlebox for NatConfig {
    fn build(&self, site: Site) -> Box<dyn Middlebox> {
        super::filter(Nat::new(*self, site))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, Talk, at, site};
    use super::super::{MAX_FLOWS, filter};
    use super::*;
    use anabranch_wire::Piece;

    fn bench(config: NatConfig) -> Bench {
        Bench::new(filter(Nat::new(config, site(1))))
    }

    /// The client's endpoint as seen by the server at `ms`.
    fn seen(bench: &mut Bench, ms: u64) -> SocketAddress {
        bench.now = at(ms);
        bench.cross(Side::Server, Talk::v4().ack(Side::Server, 0)).source
    }

    /// Returns `true` if a reply to `public` reaches the client.
    fn reaches(bench: &mut Bench, public: SocketAddress) -> bool {
        let mut answer = Talk::v4().ack(Side::Client, 0);
        let client = answer.destination;
        answer.destination = public;
        let out = bench.put(Side::Client, answer);
        assert!(out.iter().all(|(_, segment)| segment.destination == client));
        !out.is_empty()
    }

    #[test]
    fn replies_reach_the_client_and_unsolicited_packets_do_not() {
        let mut bench = bench(NatConfig::default());
        let public = seen(&mut bench, 1);
        assert_eq!(public.address.to_string(), "10.2.0.0");
        assert_eq!(seen(&mut bench, 2), public);
        assert!(reaches(&mut bench, public));
        let other = SocketAddress::new(public.address, public.port ^ 1);
        assert!(!reaches(&mut bench, other));
        let untranslated = Talk::v4().ack(Side::Client, 0);
        assert_eq!(bench.cross(Side::Client, untranslated.clone()), untranslated);
        assert_eq!(bench.middlebox.original(public), Some(Talk::v4().ack(Side::Server, 0).source));
        assert_eq!(bench.middlebox.original(other), None);
    }

    #[test]
    fn an_idle_mapping_expires_and_the_flow_gets_a_new_port() {
        let config = NatConfig { idle_timeout: Duration::from_millis(50), rebind_at: None };
        let mut bench = bench(config);
        let first = seen(&mut bench, 0);
        bench.now = at(50);
        assert!(reaches(&mut bench, first), "a reply keeps the mapping in use");
        assert_eq!(seen(&mut bench, 100), first);
        let second = seen(&mut bench, 151);
        assert_ne!(second, first);
        assert!(reaches(&mut bench, second) && !reaches(&mut bench, first));
        bench.now = at(202);
        assert!(!reaches(&mut bench, second));
        // Old mappings stay available for evaluation after the run.
        let client = bench.middlebox.original(second);
        assert!(client.is_some() && client == bench.middlebox.original(first));
    }

    #[test]
    fn a_rebinding_drops_every_mapping_once() {
        let rebind_at = Some(Duration::from_millis(10));
        let mut bench = bench(NatConfig { rebind_at, ..NatConfig::default() });
        let first = seen(&mut bench, 9);
        bench.now = at(10);
        assert!(!reaches(&mut bench, first));
        let second = seen(&mut bench, 11);
        assert_ne!(second, first);
        assert_eq!(seen(&mut bench, 1_000), second);
    }

    #[test]
    fn udp_is_translated_with_ports_of_its_own() {
        let mut bench = bench(NatConfig::default());
        let ack = Talk::v4().ack(Side::Server, 0);
        let datagram = Datagram {
            source: ack.source,
            destination: ack.destination,
            payload: Piece::pattern(0, 9).into(),
            ecn: 0,
        };
        bench.middlebox.handle_packet(at(1), Side::Server, datagram.clone().into());
        let Some((Side::Server, Packet::Udp(out))) = bench.middlebox.poll_transmit(at(1)) else {
            panic!("only datagrams entered");
        };
        assert_eq!(out.source.address.to_string(), "10.2.0.0");
        assert_ne!(out.source.port, seen(&mut bench, 2).port);
        assert_eq!(out.destination, datagram.destination);
        assert_eq!(out.payload, datagram.payload);
    }

    #[test]
    fn a_port_scan_does_not_grow_the_tables() {
        let mut bench = bench(NatConfig::default());
        let mut publics = Vec::new();
        for port in 0..3 * MAX_FLOWS as u16 {
            let mut segment = Talk::v4().ack(Side::Server, 0);
            segment.source.port = port;
            publics.push(bench.cross(Side::Server, segment).source);
        }
        publics.sort_unstable();
        publics.dedup();
        let known = publics.iter().filter(|public| bench.middlebox.original(**public).is_some());
        assert_eq!(known.count(), MAX_FLOWS);
    }
}
