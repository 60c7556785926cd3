//! Builds the network between the hosts from a scenario.

use std::collections::BTreeSet;

use anabranch_net::middlebox::{Chain, Middlebox, Placed, Site};
use anabranch_net::network::{self, Tap};
use anabranch_net::rng::stream_seed;
use anabranch_net::{Link, LinkConfig, Network};
use anabranch_wire::Instant;

use crate::cross_traffic;
use crate::scenario::{self, Path, Scenario};
use crate::topology;

/// The network of `scenario`, in a run with seed `seed`: paths, middleboxes and cross-traffic.
/// `tap` observes its packets.
pub fn network<T: Tap>(scenario: &Scenario, seed: u64, tap: T) -> Network<T> {
    let narrow = narrow_paths(&scenario.paths);
    let paths = (0..scenario.paths.len())
        .map(|path| path_of(&scenario.paths, path, seed, narrow.contains(&path)));
    let traffic = scenario.cross_traffic.iter().enumerate();
    let traffic =
        traffic.map(|(index, each)| cross_traffic::traffic_of(index, each, &scenario.paths, seed));
    Network::new(paths.collect(), topology::path_of, traffic.collect(), tap)
}

/// The paths whose links see packets that are too large for them. Another path with a larger MTU leads
/// via such a path, or has it as its egress.
fn narrow_paths(paths: &[Path]) -> BTreeSet<usize> {
    let mut narrow = BTreeSet::new();
    for path in paths {
        let mut ahead: Vec<usize> = path.via.hops().iter().map(|hop| hop.path).collect();
        ahead.extend(egress_of(path).into_iter().flatten());
        while let Some(next) = ahead.pop() {
            if paths[next].mtu < path.mtu {
                narrow.insert(next);
            }
            ahead.extend(paths[next].via.hops().iter().map(|hop| hop.path));
        }
    }
    narrow
}

/// The paths by which packets of `path` towards the client, and towards the server, leave a host.
fn egress_of(path: &Path) -> [Option<usize>; 2] {
    [&path.routing.server_egress, &path.routing.client_egress]
        .map(|egress| egress.as_ref().map(|egress| egress.path))
}

fn path_of(paths: &[Path], number: usize, seed: u64, is_narrow: bool) -> network::Path {
    let path = &paths[number];
    let stream = |direction| stream_seed(seed, &format!("link/{}/{direction}", path.name));
    let link = |config: LinkConfig, direction| {
        let mtu = config.mtu.filter(|_| is_narrow);
        Link::new(LinkConfig { mtu, ..config }, stream(direction))
    };
    network::Path {
        forward: link(path.forward_link(), "forward"),
        reverse: link(path.reverse_link(), "reverse"),
        boxes: boxes(paths, number, seed),
        egress: egress_of(path),
        via: path.via.hops().to_vec(),
    }
}

fn boxes(paths: &[Path], path: usize, seed: u64) -> Option<Box<dyn Middlebox>> {
    let Path { name, middleboxes, .. } = &paths[path];
    let place = |(index, middlebox): (usize, &scenario::Middlebox)| Placed {
        middlebox: middlebox.build(Site {
            seed: stream_seed(seed, &format!("middlebox/{name}/{index}")),
            client: topology::client_address(paths, path),
            address: topology::translated_address(paths, path, index),
        }),
        from: Instant::ZERO + middlebox.presence.from,
        until: middlebox.presence.until.map_or(Instant::FAR_FUTURE, |until| Instant::ZERO + until),
    };
    let placed: Vec<_> = middleboxes.iter().enumerate().map(place).collect();
    (!placed.is_empty()).then(|| Box::new(Chain::new(placed)) as _)
}
