//! Links, middleboxes and sources of traffic, connected: packets go in at one host and come out at
//! the other.
//!
//! A [`Path`] is a link in each direction, with middleboxes at the server's end of both if it has
//! any. A path may go *via* an earlier one; several that do share a bottleneck. So the way of a
//! packet is a list of links, and which one it is follows from the client's address in the packet.
//! [`Paths`] knows these ways; [`Network`] moves packets along them.
//!
//! The network keeps the contract of every part of it: `handle_*` takes, `poll_*` gives. Whoever
//! owns a clock can drive it, be it virtual or real.

mod paths;
mod tap;
#[cfg(test)]
mod tests;

use anabranch_wire::{Instant, Packet};

use crate::event_queue::EventQueue;
use crate::node::Node;
use crate::side::Side;

pub use paths::{LinkId, Locate, Path, Paths};
pub use tap::{Source, Tap, Traffic};

use paths::{Beyond, SiteId};

/// A network of paths between a client and a server.
///
/// Call [`handle_timeout`](Self::handle_timeout) at the time that
/// [`poll_timeout`](Self::poll_timeout) names, and then [`poll_transmit`](Self::poll_transmit)
/// until it returns `None`. One call serves one link, source or place of middleboxes, so the next
/// may be due at the same time: what a host answers to a packet goes out before the next link is
/// served. Of what is due at the same time links come first, in the order of their paths and
/// forward before reverse; then sources, then middleboxes.
#[derive(Debug)]
pub struct Network<T = ()> {
    paths: Paths,
    traffic: Vec<Traffic>,
    /// Nodes are the links, then the sources, then the sites of middleboxes.
    queue: EventQueue,
    /// The link whose packets are being collected.
    serving: Option<LinkId>,
    tap: T,
}

/// A packet that has come to a host.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The host.
    pub receiver: Side,
    /// The path that the client's address in the packet belongs to.
    pub path: usize,
    /// The packet.
    pub packet: Packet,
}

impl<T: Tap> Network<T> {
    /// A network of `paths`, with `traffic` of its own. `locate` says which path an address of the
    /// client belongs to, and `tap` is told of packets.
    ///
    /// # Panics
    /// If a path goes via one that is not listed before it, or traffic's path does not exist.
    pub fn new(paths: Vec<Path>, locate: Locate, traffic: Vec<Traffic>, tap: T) -> Self {
        assert!(traffic.iter().all(|each| each.path < paths.len()), "a path that exists");
        let paths = Paths::new(paths, locate);
        let nodes = paths.link_count() + traffic.len() + paths.site_count();
        let queue = EventQueue::new(nodes);
        let mut network = Network { paths, traffic, queue, serving: None, tap };
        (0..nodes).for_each(|node| network.plan(node));
        network
    }

    /// Links, middleboxes, and which packets cross them, as of the last call that took a time.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The same, with links brought up to `now`.
    pub fn observe(&mut self, now: Instant) -> &Paths {
        self.paths.links_mut().for_each(|link| link.handle_timeout(now));
        &self.paths
    }

    /// What is told of packets.
    #[inline]
    pub fn tap(&self) -> &T {
        &self.tap
    }

    /// The same, to change it.
    #[inline]
    pub fn tap_mut(&mut self) -> &mut T {
        &mut self.tap
    }

    /// A host sends `packet` on `path` towards the other host.
    ///
    /// # Panics
    /// If there is no such path.
    #[inline]
    pub fn handle_packet(&mut self, now: Instant, towards: Side, path: usize, packet: Packet) {
        let first = self.paths.first(towards, path);
        if self.paths.site_count() == 0 {
            self.enter_link(now, first, packet);
        } else {
            self.enter(now, first, packet);
        }
    }

    /// Serve what is due first, if it is due by `now`. A call for no reason is harmless.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        let (at, node) = self.queue.peek();
        if at > now {
            return;
        }
        if node < self.paths.link_count() {
            self.serving = Some(LinkId::new(node));
        } else {
            self.handle_other_timeout(now, node);
        }
    }

    /// The next packet that comes to a host by `now` because of the last
    /// [`handle_timeout`](Self::handle_timeout), if there is one.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Arrival> {
        let link = self.serving?;
        loop {
            let mut next = self.paths.link_mut(link).poll_transmit(now);
            let is_last = next.is_none();
            if self.paths.site_count() > 0 {
                next = self.pass_boxes(now, link, next);
            }
            match next {
                Some(packet) => match self.paths.beyond(link) {
                    (receiver, Beyond::Host { path }) => {
                        return Some(Arrival { receiver, path, packet });
                    }
                    _ => {
                        if let Some(arrival) = self.route(now, link, packet) {
                            return Some(arrival);
                        }
                    }
                },
                None if is_last => break,
                None => {}
            }
        }
        self.plan_link(link);
        self.serving = None;
        None
    }

    /// When to call [`handle_timeout`](Self::handle_timeout); `None` while only a packet from a
    /// host can make anything happen. A time that has passed means at once.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let (at, _) = self.queue.peek();
        (at != Instant::FAR_FUTURE).then_some(at)
    }

    /// Serve a source, or middleboxes together with the link that leads to them.
    #[cold] // Only as seen from links.
    fn handle_other_timeout(&mut self, now: Instant, node: usize) {
        let first_site = self.first_site();
        if let Some(site) = node.checked_sub(first_site) {
            self.serving = Some(self.paths.site(SiteId::new(site)).reverse);
        } else {
            self.serve_source(now, node - self.paths.link_count());
        }
    }

    fn serve_source(&mut self, now: Instant, number: usize) {
        while let Some(mut packet) = self.traffic[number].source.poll_transmit(now) {
            let Traffic { towards, path, .. } = self.traffic[number];
            self.tap.on_source(now, towards, path, &mut packet);
            self.handle_packet(now, towards, path, packet);
        }
        self.plan(self.paths.link_count() + number);
    }

    /// What follows a packet that has `passed` the link, or is there without one: the next packet
    /// that has passed the middleboxes at its end too, if it has any.
    #[cold] // Few runs have middleboxes.
    fn pass_boxes(&mut self, now: Instant, link: LinkId, passed: Option<Packet>) -> Option<Packet> {
        let Some(site) = self.paths.site_after(link) else { return passed };
        if let Some(packet) = passed {
            self.paths.site_mut(site).boxes.handle_packet(now, Side::Server, packet);
        }
        let next = self.poll_boxes(now, site);
        self.plan_site(site);
        next
    }

    /// The next packet that middleboxes let out towards the server.
    fn poll_boxes(&mut self, now: Instant, site: SiteId) -> Option<Packet> {
        loop {
            let place = self.paths.site_mut(site);
            let forward = place.forward;
            place.boxes.handle_timeout(now);
            let (towards, mut packet) = place.boxes.poll_transmit(now)?;
            self.tap.on_boxes(now, &mut packet);
            match towards {
                Side::Client => self.enter_link(now, forward, packet),
                Side::Server => return Some(packet),
            }
        }
    }

    /// Send a packet that has passed `link` on to the next link of its way, if there is one.
    #[cold] // Only as seen from paths that go via no other.
    fn route(&mut self, now: Instant, link: LinkId, packet: Packet) -> Option<Arrival> {
        let (receiver, _) = self.paths.beyond(link);
        let path = self.paths.path_of_packet(receiver, &packet);
        let path = path.expect("a packet had a path when it was sent, and boxes translate to one");
        match self.paths.next(link, path) {
            Some(next) => {
                self.enter(now, next, packet);
                None
            }
            None => Some(Arrival { receiver, path, packet }),
        }
    }

    /// A packet comes to a link, or to the middleboxes before it. What these let out is an event of
    /// its own: one that answers a host at once would otherwise make the host wait for itself.
    #[cold] // Only as seen from the packets of hosts, most of which cross one link.
    fn enter(&mut self, now: Instant, link: LinkId, packet: Packet) {
        match self.paths.site_before(link) {
            Some(site) => {
                self.paths.site_mut(site).boxes.handle_packet(now, Side::Client, packet);
                self.plan_site(site);
            }
            None => self.enter_link(now, link, packet),
        }
    }

    #[inline]
    fn enter_link(&mut self, now: Instant, link: LinkId, packet: Packet) {
        self.tap.on_enter(now, link, &packet);
        self.paths.link_mut(link).handle_packet(now, packet);
        self.plan_link(link);
    }

    /// The node of the first site of middleboxes.
    fn first_site(&self) -> usize {
        self.paths.link_count() + self.traffic.len()
    }

    #[inline]
    fn plan_link(&mut self, link: LinkId) {
        self.queue.set(link.number(), self.paths.link(link).poll_timeout());
    }

    fn plan_site(&mut self, site: SiteId) {
        let at = self.paths.site(site).boxes.poll_timeout();
        self.queue.set(self.first_site() + site.number(), at);
    }

    fn plan(&mut self, node: usize) {
        if node < self.paths.link_count() {
            self.plan_link(LinkId::new(node));
        } else if let Some(site) = node.checked_sub(self.first_site()) {
            self.plan_site(SiteId::new(site));
        } else {
            let source = &self.traffic[node - self.paths.link_count()].source;
            self.queue.set(node, source.poll_timeout());
        }
    }
}
