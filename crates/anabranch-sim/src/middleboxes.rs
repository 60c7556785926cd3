//! From a path's middleboxes to the boxes that stand there.

use anabranch_net::middlebox::{Chain, Middlebox, Placed, Site};
use anabranch_net::rng::stream_seed;
use anabranch_wire::{Endpoint, Instant};

use crate::scenario::{Path, Scenario};
use crate::topology;

/// The boxes of each path; none at all if no path has any.
pub fn chains(scenario: &Scenario, seed: u64) -> Vec<Option<Chain>> {
    let paths = &scenario.paths;
    if paths.iter().all(|path| path.middleboxes.is_empty()) {
        return Vec::new();
    }
    (0..paths.len()).map(|path| chain(paths, path, seed)).collect()
}

fn chain(paths: &[Path], path: usize, seed: u64) -> Option<Chain> {
    let Path { name, middleboxes, .. } = &paths[path];
    let place = |(index, middlebox): (usize, &crate::scenario::Middlebox)| Placed {
        middlebox: middlebox.build(Site {
            seed: stream_seed(seed, &format!("middlebox/{name}/{index}")),
            address: topology::translated_address(paths, path, index),
        }),
        from: Instant::ZERO + middlebox.from,
        until: middlebox.until.map_or(Instant::FAR_FUTURE, |until| Instant::ZERO + until),
    };
    let placed: Vec<_> = middleboxes.iter().enumerate().map(place).collect();
    (!placed.is_empty()).then(|| Chain::new(placed))
}

/// The client's endpoint that the server sees as `seen`.
pub(crate) fn original(chains: &[Option<Chain>], seen: Endpoint) -> Endpoint {
    let mut endpoint = seen;
    if chains.is_empty() {
        return seen;
    }
    // Where a path goes via another, both may translate.
    while let Some(before) = topology::path_of(endpoint.address)
        .and_then(|path| chains.get(path)?.as_ref())
        .and_then(|chain| chain.original(endpoint))
    {
        endpoint = before;
    }
    endpoint
}
