//! Which links a packet crosses, and what stands between them.

use std::net::IpAddr;

use anabranch_wire::{Endpoint, Packet};

use crate::link::Link;
use crate::middlebox::Middlebox;
use crate::side::Side;

/// What a path is made of. Paths are numbered in the order in which a network is given them.
#[derive(Debug)]
pub struct Path {
    /// The link towards the client.
    pub forward: Link,
    /// The link towards the server.
    pub reverse: Link,
    /// What stands at the server's end of both links.
    pub boxes: Option<Box<dyn Middlebox>>,
    /// The number of an earlier path that lies between these links and the server.
    pub via: Option<usize>,
}

/// The number of the path that an address belongs to: the client's own on that path, or one that
/// its middleboxes show instead. Numbers of paths that do not exist are as good as `None`.
pub type Locate = fn(IpAddr) -> Option<usize>;

/// A link of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkId(u32);

/// A site of middleboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SiteId(u32);

/// Middleboxes, and the links whose ends they stand at.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) boxes: Box<dyn Middlebox>,
    pub(super) forward: LinkId,
    pub(super) reverse: LinkId,
}

/// All paths of a network: their links, their middleboxes, and the ways of packets.
#[derive(Debug)]
pub struct Paths {
    links: Vec<Link>,
    /// What is around each link.
    around: Vec<Around>,
    sites: Vec<Site>,
    /// For each path, the links of a packet towards the client and towards the server.
    ways: Vec<[Box<[LinkId]>; 2]>,
    locate: Locate,
}

/// The surroundings of a link.
#[derive(Clone, Copy, Debug)]
struct Around {
    /// The host that its packets go to.
    towards: Side,
    beyond: Beyond,
    /// What a packet passes before the link, or after it.
    before: Option<SiteId>,
    after: Option<SiteId>,
}

/// What lies beyond a link.
#[derive(Clone, Copy, Debug)]
pub(super) enum Beyond {
    /// The host: no path but this one crosses the link, and it is the last of the way.
    Host { path: usize },
    /// It depends on the packet.
    Depends,
}

impl LinkId {
    #[inline]
    pub(super) fn new(number: usize) -> Self {
        LinkId(number as u32)
    }

    /// A number for fingerprints: links count in the order of their paths, forward before reverse.
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
            ways: Vec::with_capacity(paths.len()),
            locate,
        };
        paths.into_iter().zip(shared).for_each(|(path, shared)| all.add(path, shared));
        all
    }

    fn add(&mut self, path: Path, is_shared: bool) {
        let number = self.ways.len();
        let [forward, reverse] = [0, 1].map(|offset| LinkId::new(self.links.len() + offset));
        let site = path.boxes.map(|boxes| {
            self.sites.push(Site { boxes, forward, reverse });
            SiteId::new(self.sites.len() - 1)
        });
        let at_host = |last| {
            if last && !is_shared { Beyond::Host { path: number } } else { Beyond::Depends }
        };
        let (to_client, to_server) = (at_host(true), at_host(path.via.is_none()));
        self.links.extend([path.forward, path.reverse]);
        self.around.extend([
            Around { towards: Side::Client, beyond: to_client, before: site, after: None },
            Around { towards: Side::Server, beyond: to_server, before: None, after: site },
        ]);
        // A packet towards the client crosses first what is nearest to the server.
        let [mut down, up] = path.via.map_or_else(Default::default, |via| {
            self.ways[via].each_ref().map(|links| links.to_vec())
        });
        down.push(forward);
        self.ways.push([down.into(), std::iter::once(reverse).chain(up).collect()]);
    }

    /// The path of a packet with this address of the client's; `None` if no path has it.
    #[inline]
    pub fn path_of(&self, client: IpAddr) -> Option<usize> {
        (self.locate)(client).filter(|path| *path < self.ways.len())
    }

    /// The path of a packet that goes `towards` a host; `None` if no path has its client's address.
    pub fn path_of_packet(&self, towards: Side, packet: &Packet) -> Option<usize> {
        self.path_of(match towards {
            Side::Client => packet.destination(),
            Side::Server => packet.source(),
        })
    }

    /// A path's own link in one direction.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn link_of(&self, path: usize, towards: Side) -> &Link {
        let way = &self.ways[path][towards as usize];
        let own = match towards {
            Side::Client => way.last(),
            Side::Server => way.first(),
        };
        self.link(*own.expect("a path has links of its own"))
    }

    /// All links, with the paths that they belong to and the hosts that they lead to.
    pub fn links(&self) -> impl Iterator<Item = (usize, Side, &Link)> {
        let both = |path| [Side::Client, Side::Server].map(|towards| (path, towards));
        let all = (0..self.ways.len()).flat_map(both);
        all.map(|(path, towards)| (path, towards, self.link_of(path, towards)))
    }

    /// The client's endpoint that the server sees as `seen`.
    pub fn original(&self, seen: Endpoint) -> Endpoint {
        let mut endpoint = seen;
        // Where a path goes via another, both may translate.
        while let Some(before) = self.translated_by(endpoint) {
            endpoint = before;
        }
        endpoint
    }

    /// What `endpoint` was before the middleboxes of its path changed it.
    fn translated_by(&self, endpoint: Endpoint) -> Option<Endpoint> {
        if self.sites.is_empty() {
            return None;
        }
        let path = self.path_of(endpoint.address)?;
        let site = self.site_after(self.ways[path][Side::Server as usize][0])?;
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

    /// What a packet passes before the link.
    pub(super) fn site_before(&self, link: LinkId) -> Option<SiteId> {
        self.around[link.number()].before
    }

    /// What a packet passes after the link.
    pub(super) fn site_after(&self, link: LinkId) -> Option<SiteId> {
        self.around[link.number()].after
    }

    /// The host that the link's packets go to, and what lies beyond the link.
    #[inline]
    pub(super) fn beyond(&self, link: LinkId) -> (Side, Beyond) {
        let Around { towards, beyond, .. } = self.around[link.number()];
        (towards, beyond)
    }

    /// The first link of a packet on `path`.
    #[inline]
    pub(super) fn first(&self, towards: Side, path: usize) -> LinkId {
        self.ways[path][towards as usize][0]
    }

    /// The link after this one, for a packet on `path`; `None` if the host is there.
    pub(super) fn next(&self, link: LinkId, path: usize) -> Option<LinkId> {
        let way = &self.ways[path][self.around[link.number()].towards as usize];
        let here = way.iter().position(|each| *each == link)?;
        way.get(here + 1).copied()
    }
}
