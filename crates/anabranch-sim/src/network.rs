//! Builds the network between the hosts from a scenario.

use anabranch_net::middlebox::{Chain, Middlebox, Placed, Site};
use anabranch_net::network::{self, Tap};
use anabranch_net::rng::stream_seed;
use anabranch_net::{Link, Network};
use anabranch_wire::Instant;

use crate::cross_traffic;
use crate::scenario::{self, Path, Scenario};
use crate::topology;

/// The network of `scenario`, in a run with seed `seed`: paths, middleboxes and cross-traffic.
/// `tap` observes its packets.
pub fn network<T: Tap>(scenario: &Scenario, seed: u64, tap: T) -> Network<T> {
    let paths = (0..scenario.paths.len()).map(|path| path_of(&scenario.paths, path, seed));
    let traffic = scenario.cross_traffic.iter().enumerate();
    let traffic =
        traffic.map(|(index, each)| cross_traffic::traffic_of(index, each, &scenario.paths, seed));
    Network::new(paths.collect(), topology::path_of, traffic.collect(), tap)
}

fn path_of(paths: &[Path], number: usize, seed: u64) -> network::Path {
    let path = &paths[number];
    let stream = |direction| stream_seed(seed, &format!("link/{}/{direction}", path.name));
    network::Path {
        forward: Link::new(path.forward_link(), stream("forward")),
        reverse: Link::new(path.reverse_link(), stream("reverse")),
        boxes: boxes(paths, number, seed),
        via: path.via.hops().to_vec(),
    }
}

fn boxes(paths: &[Path], path: usize, seed: u64) -> Option<Box<dyn Middlebox>> {
    let Path { name, middleboxes, .. } = &paths[path];
    let place = |(index, middlebox): (usize, &scenario::Middlebox)| Placed {
        middlebox: middlebox.build(Site {
            seed: stream_seed(seed, &format!("middlebox/{name}/{index}")),
            address: topology::translated_address(paths, path, index),
        }),
        from: Instant::ZERO + middlebox.from,
        until: middlebox.until.map_or(Instant::FAR_FUTURE, |until| Instant::ZERO + until),
    };
    let placed: Vec<_> = middleboxes.iter().enumerate().map(place).collect();
    (!placed.is_empty()).then(|| Box::new(Chain::new(placed)) as _)
}
