//! The emulated network in real time: it is brought up to the present, event by event, so that a
//! late wake-up delays what is due but changes no departure time.

use std::net::IpAddr;

use anabranch_net::middlebox::{Chain, Middlebox, Towards};
use anabranch_net::rng::stream_seed;
use anabranch_net::{Link, Node};
use anabranch_sim::Side;
use anabranch_sim::driver::{self, CrossTraffic, Hop, Routes};
use anabranch_sim::scenario::Scenario;
use anabranch_wire::{Instant, Packet};

/// Links, and the boxes at their ends.
pub(crate) struct Network {
    /// Two for each path: forward, reverse.
    pub(crate) links: Vec<Link>,
    /// For each path; none at all if no path has boxes.
    pub(crate) boxes: Vec<Option<Chain>>,
    cross_traffic: Vec<CrossTraffic>,
    routes: Routes,
    now: Instant,
    delivered: Vec<Delivery>,
}

/// A packet at the end of its way.
pub(crate) struct Delivery {
    /// When it was there.
    pub(crate) due: Instant,
    pub(crate) receiver: Side,
    /// The path whose client's address it has.
    pub(crate) path: usize,
    pub(crate) packet: Packet,
}

/// What is due next.
enum Due {
    Link(usize),
    Boxes(usize),
    CrossTraffic(usize),
}

impl Network {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Self {
        let links = scenario.paths.iter().flat_map(|path| {
            let seed = |direction| stream_seed(seed, &format!("link/{}/{direction}", path.name));
            [
                Link::new(path.forward_link(), seed("forward")),
                Link::new(path.reverse_link(), seed("reverse")),
            ]
        });
        let traffic = scenario.cross_traffic.iter().enumerate();
        Network {
            links: links.collect(),
            boxes: driver::chains(scenario, seed),
            cross_traffic: traffic
                .map(|(index, traffic)| CrossTraffic::new(index, traffic, &scenario.paths, seed))
                .collect(),
            routes: Routes::new(scenario.paths.iter().map(|path| path.via()).collect()),
            now: Instant::ZERO,
            delivered: Vec::new(),
        }
    }

    /// The path that a client's address belongs to.
    pub(crate) fn path(&self, client: IpAddr) -> Option<usize> {
        self.routes.path(client)
    }

    /// A host sends a packet on `path` at `at`, or when something later has happened already.
    pub(crate) fn handle_packet(&mut self, at: Instant, sender: Side, path: usize, packet: Packet) {
        self.handle_timeout(at);
        self.enter(self.routes.first(sender, path), packet);
    }

    /// Do what is due up to `until`.
    pub(crate) fn handle_timeout(&mut self, until: Instant) {
        while let Some((at, due)) = self.next().filter(|(at, _)| *at <= until) {
            self.now = self.now.max(at);
            match due {
                Due::Link(link) => self.serve_link(link),
                Due::Boxes(path) => self.serve_boxes(path),
                Due::CrossTraffic(source) => self.serve_cross_traffic(source),
            }
        }
        self.now = self.now.max(until);
    }

    /// When something is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.next().map(|(at, _)| at)
    }

    /// Take what has arrived, in the order of arrival.
    pub(crate) fn take_delivered(&mut self) -> Vec<Delivery> {
        std::mem::take(&mut self.delivered)
    }

    /// The earliest of all; a handful of nodes needs no queue.
    fn next(&self) -> Option<(Instant, Due)> {
        let links = self.links.iter().enumerate();
        let links = links.filter_map(|(link, node)| Some((node.poll_timeout()?, Due::Link(link))));
        let boxes =
            self.boxes.iter().enumerate().filter_map(|(path, chain)| {
                Some((chain.as_ref()?.poll_timeout()?, Due::Boxes(path)))
            });
        let traffic = self.cross_traffic.iter().enumerate();
        let traffic = traffic.filter_map(|(index, source)| {
            Some((source.udp.poll_timeout()?, Due::CrossTraffic(index)))
        });
        links.chain(boxes).chain(traffic).min_by_key(|(at, _)| *at)
    }

    fn serve_link(&mut self, link: usize) {
        self.links[link].handle_timeout(self.now);
        while let Some(packet) = self.links[link].poll_transmit(self.now) {
            let path = link / 2;
            match self.boxes.get_mut(path).and_then(Option::as_mut) {
                Some(boxes) if !link.is_multiple_of(2) => {
                    boxes.handle_packet(self.now, Towards::Server, packet);
                    self.drain_boxes(path);
                }
                _ => self.leave(link, packet),
            }
        }
    }

    fn serve_boxes(&mut self, path: usize) {
        if let Some(boxes) = &mut self.boxes[path] {
            boxes.handle_timeout(self.now);
        }
        self.drain_boxes(path);
    }

    fn serve_cross_traffic(&mut self, source: usize) {
        while let Some(datagram) = self.cross_traffic[source].udp.poll_transmit(self.now) {
            let CrossTraffic { side, path, .. } = self.cross_traffic[source];
            self.enter(self.routes.first(side, path), datagram.into());
        }
    }

    /// A packet comes to the link, or first to the boxes at its end.
    fn enter(&mut self, link: usize, packet: Packet) {
        let path = link / 2;
        match self.boxes.get_mut(path).and_then(Option::as_mut) {
            Some(boxes) if link.is_multiple_of(2) => {
                boxes.handle_packet(self.now, Towards::Client, packet);
                self.drain_boxes(path);
            }
            _ => self.links[link].handle_packet(self.now, packet),
        }
    }

    fn drain_boxes(&mut self, path: usize) {
        while let Some((towards, packet)) =
            self.boxes[path].as_mut().and_then(|boxes| boxes.poll_transmit(self.now))
        {
            match towards {
                Towards::Client => self.links[2 * path].handle_packet(self.now, packet),
                Towards::Server => self.leave(2 * path + 1, packet),
            }
        }
    }

    /// A packet has passed the link and what stands at its end.
    fn leave(&mut self, link: usize, packet: Packet) {
        let client = if link.is_multiple_of(2) { packet.destination() } else { packet.source() };
        let path = self.routes.path(client).expect("it had a path when it was sent");
        match self.routes.next(link, path) {
            Hop::Link(next) => self.enter(next, packet),
            Hop::Host(receiver) => {
                self.delivered.push(Delivery { due: self.now, receiver, path, packet });
            }
        }
    }
}
