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
    /// Number of an earlier path, which then lies between this path and the server.
    pub via: Option<usize>,
}

/// Maps an address to the number of its path: the client's address on this path, or a translated
/// address that the path's middleboxes show instead. A number without a path counts as `None`.
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
    /// The host at the end of the route.
    towards: Side,
    beyond: Beyond,
    /// Middleboxes that a packet passes before the link, and after it.
    before: Option<SiteId>,
    after: Option<SiteId>,
}

/// The next stop of packets that leave a link.
#[derive(Clone, Copy, Debug)]
pub(super) enum Beyond {
    /// The host. Only this path crosses the link, which is the last one of the route.
    Host { path: usize },
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
        let is_shared = |number| paths.iter().any(|path| path.via == Some(number));
        let shared: Vec<bool> = (0..paths.len()).map(is_shared).collect();
        let mut all = Paths {
            links: Vec::with_capacity(2 * paths.len()),
            around: Vec::with_capacity(2 * paths.len()),
            sites: Vec::new(),
            routes: Vec::with_capacity(paths.len()),
            locate,
        };
        paths.into_iter().zip(shared).for_each(|(path, shared)| all.add(path, shared));
        all
    }

    fn add(&mut self, path: Path, is_shared: bool) {
        let number = self.routes.len();
        let [forward, reverse] = [0, 1].map(|offset| LinkId::new(self.links.len() + offset));
        let site = path.boxes.map(|boxes| {
            self.sites.push(Site { boxes, forward, reverse });
            SiteId::new(self.sites.len() - 1)
        });
        let at_host = |last| {
            if last && !is_shared { Beyond::Host { path: number } } else { Beyond::Routed }
        };
        let (to_client, to_server) = (at_host(true), at_host(path.via.is_none()));
        self.links.extend([path.forward, path.reverse]);
        self.around.extend([
            Around { towards: Side::Client, beyond: to_client, before: site, after: None },
            Around { towards: Side::Server, beyond: to_server, before: None, after: site },
        ]);
        // A packet towards the client crosses the links next to the server first.
        let [mut down, up] = path.via.map_or_else(Default::default, |via| {
            self.routes[via].each_ref().map(|links| links.to_vec())
        });
        down.push(forward);
        self.routes.push([down.into(), std::iter::once(reverse).chain(up).collect()]);
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
        let [to_client, to_server] = &self.routes[path];
        [to_client.last(), to_server.first()].map(|own| *own.expect("a path has links of its own"))
    }

    /// Number of paths.
    pub fn count(&self) -> usize {
        self.routes.len()
    }

    /// The paths whose links a packet of `path` crosses towards a host, in order.
    pub fn paths_crossed(&self, path: usize, towards: Side) -> impl Iterator<Item = usize> + '_ {
        // A path has two links, the one towards the client first.
        self.routes[path][towards as usize].iter().map(|link| link.number() / 2)
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
        let site = self.site_after(self.routes[path][Side::Server as usize][0])?;
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

    /// The host at the end of the route, and the next stop after the link.
    #[inline]
    pub(super) fn beyond(&self, link: LinkId) -> (Side, Beyond) {
        let Around { towards, beyond, .. } = self.around[link.number()];
        (towards, beyond)
    }

    /// The first link of a route.
    #[inline]
    pub(super) fn first(&self, towards: Side, path: usize) -> LinkId {
        self.routes[path][towards as usize][0]
    }

    /// The link after `link` on the route of `path`; `None` if it is the last one.
    pub(super) fn next(&self, link: LinkId, path: usize) -> Option<LinkId> {
        let route = &self.routes[path][self.around[link.number()].towards as usize];
        let here = route.iter().position(|each| *each == link)?;
        route.get(here + 1).copied()
    }
}
