//! The network between a client and a server: links, middleboxes and cross-traffic, connected.
//!
//! A [`Path`] has a link in each direction and may have middleboxes at the server's end of both.
//! A path can lead *via* earlier paths, and crosses each of them in either direction. Paths that
//! lead via the same path share its links, so paths can form any topology. The route of a packet is
//! therefore a list of links, with middleboxes before or after some of them. The client's address in
//! the packet determines the route. [`Paths`] holds the routes, and [`Network`] moves packets along
//! them.
//!
//! A network follows the same contract as its parts: `handle_*` takes input, `poll_*` returns
//! output. Virtual and real clocks can both drive it.
//!
//! ```
//! use anabranch_net::network::{Network, Path};
//! use anabranch_net::{Link, LinkConfig, Side, units::Rate};
//! use anabranch_wire::{Datagram, Duration, Instant, Piece, SocketAddress};
//!
//! let rate: Rate = "8Mbit/s".parse()?;
//! let link = |seed| {
//!     let limit = "100packets".parse().expect("a limit");
//!     Link::new(LinkConfig::new(rate, Duration::from_millis(10), limit), seed)
//! };
//! let path = Path { forward: link(1), reverse: link(2), boxes: None, via: vec![], egress: [None; 2] };
//! let mut network: Network = Network::new(vec![path], |_client| Some(0), Vec::new(), ());
//!
//! let packet = Datagram {
//!     source: SocketAddress::new([10, 1, 0, 0].into(), 5000),
//!     destination: SocketAddress::new([10, 0, 0, 1].into(), 5000),
//!     payload: Piece::pattern(0, 972).into(),
//!     ecn: 0,
//! };
//! network.handle_packet(Instant::ZERO, Side::Server, 0, packet.into());
//!
//! // 1 ms of transmission and 10 ms of propagation.
//! let due = network.poll_timeout().ok_or("a packet is in flight")?;
//! assert_eq!(due.as_millis(), 11);
//! network.handle_timeout(due);
//! let arrival = network.poll_transmit(due).ok_or("the packet arrives")?;
//! assert_eq!(arrival.receiver, Side::Server);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod paths;
mod tap;
#[cfg(test)]
mod tests;

use anabranch_wire::{Instant, Packet, PacketTooBig};

use crate::event_queue::EventQueue;
use crate::link::Link;
use crate::node::Node;
use crate::schedule::{LinkChange, ScheduledChange};
use crate::side::Side;

pub use paths::{Hop, LinkId, Locate, Path, Paths};
pub use tap::{Tap, Traffic, TrafficSource};

use paths::{Beyond, SiteId};

/// A network of paths between a client and a server.
///
/// Call [`handle_timeout`](Self::handle_timeout) at the time that
/// [`poll_timeout`](Self::poll_timeout) returns, then [`poll_transmit`](Self::poll_transmit) until
/// it returns `None`. One call serves one link, one source of traffic, or the middleboxes of one
/// path. The next one can be due at the same time, so a driver can let a host answer in between.
///
/// Ties have a fixed order: links by path, forward before reverse; then sources of traffic in the
/// order given; then middleboxes by path.
#[derive(Debug)]
pub struct Network<T = ()> {
    paths: Paths,
    traffic: Vec<Traffic>,
    /// Node numbers break ties: links first, then sources, then sites of middleboxes.
    queue: EventQueue,
    /// The link whose packets are being collected.
    serving: Option<LinkId>,
    /// Some link has an MTU.
    has_mtus: bool,
    tap: T,
}

/// A packet that arrives at a host.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The host.
    pub receiver: Side,
    /// Number of the path that the client's address in the packet belongs to.
    pub path: usize,
    /// The packet.
    pub packet: Packet,
}

impl<T: Tap> Network<T> {
    /// Connect `paths`, which are numbered in this order. `traffic` is cross-traffic, `locate` maps
    /// the client's addresses to paths, and `tap` observes packets inside the network.
    ///
    /// # Panics
    /// If a path leads via a path that is not listed before it, or crosses a path twice, or a path
    /// with middleboxes in reverse; or if traffic uses a path that does not exist.
    pub fn new(paths: Vec<Path>, locate: Locate, traffic: Vec<Traffic>, tap: T) -> Self {
        assert!(traffic.iter().all(|each| each.path < paths.len()), "a path that exists");
        let paths = Paths::new(paths, locate);
        let nodes = paths.link_count() + traffic.len() + paths.site_count();
        let queue = EventQueue::new(nodes);
        let has_mtus = paths.links().any(|(_, _, link)| link.mtu().is_some());
        let mut network = Network { paths, traffic, queue, serving: None, has_mtus, tap };
        (0..nodes).for_each(|node| network.plan(node));
        network
    }

    /// Links, middleboxes and routes, in their state at the last call with a time.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Like [`paths`](Self::paths), after all links have caught up with `now`.
    pub fn observe(&mut self, now: Instant) -> &Paths {
        self.paths.links_mut().for_each(|link| link.handle_timeout(now));
        &self.paths
    }

    /// Let all links use their general form, before packets enter. The outcome is the same, and takes
    /// longer.
    pub fn use_general_links(&mut self) {
        self.paths.links_mut().for_each(Link::use_general_form);
    }

    /// The packet observer.
    #[inline]
    pub fn tap(&self) -> &T {
        &self.tap
    }

    /// The packet observer, mutable.
    #[inline]
    pub fn tap_mut(&mut self) -> &mut T {
        &mut self.tap
    }

    /// Accept a packet that a host sends on `path` towards the other host.
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

    /// Change both links of a path at `now`, in addition to their scheduled changes.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn handle_change(&mut self, now: Instant, path: usize, change: LinkChange) {
        for link in self.paths.own_links(path) {
            self.paths.link_mut(link).handle_change(now, change);
            self.plan_link(link);
        }
    }

    /// Add a scheduled change to the link of a path towards a host. Its time must lie ahead: the link
    /// then acts as if the change had been in its configuration.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn schedule(&mut self, path: usize, towards: Side, change: ScheduledChange) {
        let link = self.paths.own_links(path)[towards as usize];
        self.paths.link_mut(link).schedule(change);
        self.plan_link(link);
    }

    /// Serve the link, source or middleboxes due first, if they are due by `now`. A call that comes
    /// early is harmless.
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

    /// The next packet that arrives at a host as a result of the last
    /// [`handle_timeout`](Self::handle_timeout).
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
                    Beyond::Host { receiver, path } => {
                        self.finish_if_empty(now, link);
                        return Some(Arrival { receiver, path, packet });
                    }
                    Beyond::Routed => {
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

    /// A packet leaves `link` for a host, whose answer does not cross this link. If no other is due,
    /// and there are no middleboxes to serve, the link has been served.
    #[inline]
    fn finish_if_empty(&mut self, now: Instant, link: LinkId) {
        let due = self.paths.link(link).poll_timeout();
        if self.paths.site_count() == 0 && due.is_none_or(|at| at > now) {
            self.queue.set(link.number(), due);
            self.serving = None;
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout); `None` while the network waits for a
    /// packet from a host. A time in the past means now.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let (at, _) = self.queue.peek();
        (at != Instant::FAR_FUTURE).then_some(at)
    }

    /// Serve a source, or middleboxes. Middleboxes are served together with the link that leads to
    /// them, because packets from both leave through the same exit.
    #[cold] // Links are due far more often.
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

    /// Hand a packet that has `passed` the link to the middleboxes at its end, if there are any.
    /// Returns the next packet that leaves the middleboxes towards the server.
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

    /// The next packet that leaves the middleboxes towards the server. Packets that leave them
    /// towards the client enter the forward link.
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

    /// Send a packet that has passed `link` to the next link of its route. Returns it if `link` was
    /// the last one.
    #[cold] // Most paths lead via no other.
    fn route(&mut self, now: Instant, link: LinkId, packet: Packet) -> Option<Arrival> {
        let (receiver, path) = self
            .paths
            .heading(&packet)
            .expect("a packet had a path when it was sent, and boxes translate to one");
        match self.paths.next(link, receiver, path) {
            Some(next) => {
                self.enter(now, next, packet);
                None
            }
            None => Some(Arrival { receiver, path, packet }),
        }
    }

    /// Pass a packet to a link, or to the middleboxes before it. Packets leave the middleboxes in a
    /// separate event: a box that answers at once would otherwise deliver a packet to a host that
    /// is still sending.
    #[cold] // Most packets cross one link without middleboxes.
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
        if self.has_mtus && self.drops_too_big(now, link, &packet) {
            return;
        }
        self.paths.link_mut(link).handle_packet(now, packet);
        self.plan_link(link);
    }

    /// Drop a packet that exceeds the link's MTU, and answer it. The answer crosses the link's other
    /// direction, so it comes one propagation delay later. Returns `true` if the packet was dropped.
    #[cold] // Few runs have a narrow link.
    fn drops_too_big(&mut self, now: Instant, link: LinkId, packet: &Packet) -> bool {
        let Some(mtu) = self.paths.link(link).mtu() else { return false };
        if packet.wire_len() <= usize::from(mtu.bytes) {
            return false;
        }
        self.paths.link_mut(link).drop_too_big(packet);
        if let Packet::Tcp(segment) = packet
            && mtu.answers
        {
            let answer = PacketTooBig {
                // Any address of the router would do. That of the other end determines the route.
                source: segment.destination.address,
                destination: segment.source.address,
                mtu: mtu.bytes,
                quoted_source: segment.source,
                quoted_destination: segment.destination,
                quoted_seq: segment.header.seq,
            };
            self.enter_link(now, link.back(), answer.into());
        }
        true
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
