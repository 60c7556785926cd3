//! Paths: their links, their middleboxes, and the routes of packets across them.

use std::net::IpAddr;

use anabranch_wire::{Packet, SocketAddress};

use crate::link::Link;
use crate::middlebox::Middlebox;
use crate::side::Side;

/// The parts of a path.
#[derive(Debug)]
pub struct Path {
    /// The link towards the client.
    pub forward: Link,
    /// The link towards the server.
    pub reverse: Link,
    /// Middleboxes at the server's end of both links.
    pub boxes: Option<Box<dyn Middlebox>>,
    /// Earlier paths, whose routes lie between this path's links and the server. The first one is
    /// next to this path's links, the last one next to the server.
    pub via: Vec<Hop>,
    /// For packets towards the client and towards the server: the path that they take instead of this
    /// one, if the host that sends them has no source routing.
    pub egress: [Option<usize>; 2],
}

/// A path on the route of another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Number of the path.
    pub path: usize,
    /// Whether packets enter the path at the end where they would otherwise leave it. Packets to
    /// the server then cross its forward link, and packets to the client its reverse link.
    pub reversed: bool,
}

/// Maps an address to the number of its path: the client's address on this path, or a translated
/// address that the path's middleboxes show instead. A number without a path counts as `None`. The
/// server's addresses belong to no path.
pub type Locate = fn(IpAddr) -> Option<usize>;

/// A link of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkId(u32);

/// The middleboxes of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SiteId(u32);

/// The middleboxes of one path, and the links that they are connected to.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) boxes: Box<dyn Middlebox>,
    pub(super) forward: LinkId,
    pub(super) reverse: LinkId,
}

/// All paths of a network: links, middleboxes and routes.
#[derive(Debug)]
pub struct Paths {
    links: Vec<Link>,
    /// The surroundings of each link.
    around: Vec<Around>,
    sites: Vec<Site>,
    /// For each path, the links that a packet crosses towards the client and towards the server.
    routes: Vec<[Box<[LinkId]>; 2]>,
    locate: Locate,
}

/// The surroundings of a link.
#[derive(Clone, Copy, Debug)]
struct Around {
    beyond: Beyond,
    /// Middleboxes that a packet passes before the link, and after it.
    before: Option<SiteId>,
    after: Option<SiteId>,
}

/// The next stop of packets that leave a link.
#[derive(Clone, Copy, Debug)]
pub(super) enum Beyond {
    /// A host. Only this path crosses the link, which is the last one of the route.
    Host { receiver: Side, path: usize },
    /// It depends on the packet's route.
    Routed,
}

impl LinkId {
    #[inline]
    pub(super) fn new(number: usize) -> Self {
        LinkId(number as u32)
    }

    /// Position of the link among all links, for fingerprints: by path, forward before reverse.
    #[inline]
    pub fn number(self) -> usize {
        self.0 as usize
    }

    /// The link in the other direction of the same path.
    pub(super) fn back(self) -> Self {
        LinkId(self.0 ^ 1)
    }

    /// The path of the link, and its direction in that path.
    fn place(self) -> (usize, Side) {
        // A path has two links, the one towards the client first.
        let towards = if self.number().is_multiple_of(2) { Side::Client } else { Side::Server };
        (self.number() / 2, towards)
    }
}

impl SiteId {
    pub(super) fn new(number: usize) -> Self {
        SiteId(number as u32)
    }

    pub(super) fn number(self) -> usize {
        self.0 as usize
    }
}

impl Paths {
    pub(super) fn new(paths: Vec<Path>, locate: Locate) -> Self {
        let mut shared = vec![false; paths.len()];
        paths.iter().flat_map(|path| &path.via).for_each(|hop| shared[hop.path] = true);
        let mut all = Paths {
            links: Vec::with_capacity(2 * paths.len()),
            around: Vec::with_capacity(2 * paths.len()),
            sites: Vec::new(),
            routes: Vec::with_capacity(paths.len()),
            locate,
        };
        let egress: Vec<_> = paths.iter().map(|path| path.egress).collect();
        paths.into_iter().zip(shared).for_each(|(path, shared)| all.add(path, shared));
        all.redirect(&egress);
        all
    }

    /// Let packets of each path travel by the paths in `egress`, towards the client and the server.
    fn redirect(&mut self, egress: &[[Option<usize>; 2]]) {
        let own = self.routes.clone();
        for (route, egress) in self.routes.iter_mut().zip(egress) {
            for (towards, egress) in egress.iter().enumerate() {
                let Some(egress) = *egress else { continue };
                route[towards].clone_from(&own[egress][towards]);
                // The path of a packet that leaves these links is no longer certain.
                for link in &route[towards] {
                    self.around[link.number()].beyond = Beyond::Routed;
                }
            }
        }
    }

    fn add(&mut self, path: Path, is_shared: bool) {
        let number = self.routes.len();
        let [forward, reverse] = [0, 1].map(|offset| LinkId::new(self.links.len() + offset));
        let site = path.boxes.map(|boxes| {
            self.sites.push(Site { boxes, forward, reverse });
            SiteId::new(self.sites.len() - 1)
        });
        let beyond = |receiver, is_last| match is_last && !is_shared {
            true => Beyond::Host { receiver, path: number },
            false => Beyond::Routed,
        };
        let to_client = beyond(Side::Client, true);
        let to_server = beyond(Side::Server, path.via.is_empty());
        self.links.extend([path.forward, path.reverse]);
        self.around.extend([
            Around { beyond: to_client, before: site, after: None },
            Around { beyond: to_server, before: None, after: site },
        ]);
        let route = self.route(forward, reverse, &path.via);
        self.routes.push(route);
    }

    /// The route of a path with these two links. A packet towards the client crosses the links next
    /// to the server first.
    fn route(&self, forward: LinkId, reverse: LinkId, via: &[Hop]) -> [Box<[LinkId]>; 2] {
        let down = via.iter().rev().flat_map(|hop| self.over(*hop, Side::Client));
        let up = via.iter().flat_map(|hop| self.over(*hop, Side::Server));
        let route: [Box<[LinkId]>; 2] = [
            down.copied().chain([forward]).collect(),
            [reverse].into_iter().chain(up.copied()).collect(),
        ];
        let mut crossed: Vec<_> = route[1].iter().map(|link| link.place().0).collect();
        crossed.sort_unstable();
        assert!(crossed.is_sorted_by(|a, b| a < b), "a route crosses each path once");
        route
    }

    /// The links that packets to a host cross on their way over `hop`.
    fn over(&self, hop: Hop, towards: Side) -> &[LinkId] {
        if !hop.reversed {
            return &self.routes[hop.path][towards as usize];
        }
        let links = &self.routes[hop.path][towards.opposite() as usize];
        let has_boxes = |link: &LinkId| {
            let Around { before, after, .. } = self.around[link.number()];
            before.or(after).is_some()
        };
        assert!(!links.iter().any(has_boxes), "middleboxes face the server");
        links
    }

    /// Number of the path with this client address, translated or not.
    #[inline]
    pub fn path_of(&self, client: IpAddr) -> Option<usize> {
        (self.locate)(client).filter(|path| *path < self.routes.len())
    }

    /// Number of the path of a packet that travels `towards` a host; `None` if its client address
    /// belongs to no path.
    pub fn path_of_packet(&self, towards: Side, packet: &Packet) -> Option<usize> {
        self.path_of(match towards {
            Side::Client => packet.destination(),
            Side::Server => packet.source(),
        })
    }

    /// The host that a packet travels towards, and the number of its path; `None` if its client
    /// address belongs to no path.
    pub(super) fn heading(&self, packet: &Packet) -> Option<(Side, usize)> {
        let to = |towards| Some((towards, self.path_of_packet(towards, packet)?));
        to(Side::Client).or_else(|| to(Side::Server))
    }

    /// The link of a path in one direction, without the links of paths that it leads via.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn link_of(&self, path: usize, towards: Side) -> &Link {
        self.link(self.own_links(path)[towards as usize])
    }

    /// The links of a path towards the client and towards the server, without the links of paths
    /// that it leads via.
    pub(super) fn own_links(&self, path: usize) -> [LinkId; 2] {
        assert!(path < self.routes.len(), "a path that exists");
        [Side::Client, Side::Server].map(|towards| LinkId::new(2 * path + towards as usize))
    }

    /// Number of paths.
    pub fn count(&self) -> usize {
        self.routes.len()
    }

    /// The links that a packet of `path` crosses towards a host, in order. Each is given by its path
    /// and by its direction in that path, as for [`link_of`](Self::link_of).
    pub fn crossed(&self, path: usize, towards: Side) -> impl Iterator<Item = (usize, Side)> + '_ {
        self.routes[path][towards as usize].iter().map(|link| link.place())
    }

    /// All links, each with its path and its direction.
    pub fn links(&self) -> impl Iterator<Item = (usize, Side, &Link)> {
        let both = |path| [Side::Client, Side::Server].map(|towards| (path, towards));
        let all = (0..self.routes.len()).flat_map(both);
        all.map(|(path, towards)| (path, towards, self.link_of(path, towards)))
    }

    /// The client's own endpoint, given the possibly translated one that the server has `seen`.
    pub fn original(&self, seen: SocketAddress) -> SocketAddress {
        let mut endpoint = seen;
        // If a path leads via another, the middleboxes of both may translate.
        while let Some(before) = self.translated_by(endpoint) {
            endpoint = before;
        }
        endpoint
    }

    /// The endpoint that the middleboxes of its path translated to `endpoint`.
    fn translated_by(&self, endpoint: SocketAddress) -> Option<SocketAddress> {
        if self.sites.is_empty() {
            return None;
        }
        let path = self.path_of(endpoint.address)?;
        let site = self.site_after(self.own_links(path)[Side::Server as usize])?;
        self.site(site).boxes.original(endpoint)
    }

    #[inline]
    pub(super) fn link_count(&self) -> usize {
        self.links.len()
    }

    #[inline]
    pub(super) fn site_count(&self) -> usize {
        self.sites.len()
    }

    pub(super) fn links_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.links.iter_mut()
    }

    #[inline]
    pub(super) fn link(&self, link: LinkId) -> &Link {
        &self.links[link.number()]
    }

    #[inline]
    pub(super) fn link_mut(&mut self, link: LinkId) -> &mut Link {
        &mut self.links[link.number()]
    }

    pub(super) fn site(&self, site: SiteId) -> &Site {
        &self.sites[site.number()]
    }

    pub(super) fn site_mut(&mut self, site: SiteId) -> &mut Site {
        &mut self.sites[site.number()]
    }

    /// The middleboxes that a packet passes before the link.
    pub(super) fn site_before(&self, link: LinkId) -> Option<SiteId> {
        self.around[link.number()].before
    }

    /// The middleboxes that a packet passes after the link.
    pub(super) fn site_after(&self, link: LinkId) -> Option<SiteId> {
        self.around[link.number()].after
    }

    /// The next stop after the link.
    #[inline]
    pub(super) fn beyond(&self, link: LinkId) -> Beyond {
        self.around[link.number()].beyond
    }

    /// The first link of a route.
    #[inline]
    pub(super) fn first(&self, towards: Side, path: usize) -> LinkId {
        self.routes[path][towards as usize][0]
    }

    /// The link after `link` on the route of `path` towards a host; `None` if it is the last one.
    pub(super) fn next(&self, link: LinkId, towards: Side, path: usize) -> Option<LinkId> {
        let route = &self.routes[path][towards as usize];
        let here = route.iter().position(|each| *each == link)?;
        route.get(here + 1).copied()
    }
}
