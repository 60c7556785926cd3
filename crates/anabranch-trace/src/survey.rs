//! The first pass: the place that saw each subflow best.
//!
//! A packet that was captured at several places is one packet. The analyser cannot always tell which
//! copies belong together: a middlebox between the places may have changed them, and
//! acknowledgements repeat. It therefore does not match packets. It follows each TCP connection from
//! the place that saw most of its payload, which is the sender's side of any loss. If two places saw
//! equally much, it chooses the place that saw the connection first. Behind a NAT, the same subflow
//! has other addresses; its keys or its nonce identify it.

use std::collections::HashMap;

use anabranch_wire::mptcp::{self, CapableKeys, MpJoin};
use anabranch_wire::{Flags, Instant, SocketAddress, TcpOptions};

use crate::input::Sighting;

/// The two ends of a TCP connection, in the order of their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FlowKey {
    pub(crate) epoch: u32,
    pub(crate) low: SocketAddress,
    pub(crate) high: SocketAddress,
}

impl FlowKey {
    pub(crate) fn of(sighting: &Sighting<'_>) -> Self {
        let (source, destination) = (sighting.segment.source, sighting.segment.destination);
        let (low, high) =
            if source <= destination { (source, destination) } else { (destination, source) };
        FlowKey { epoch: sighting.epoch, low, high }
    }
}

/// How the second pass follows a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) place: u32,
    /// Number of places that saw the flow.
    pub(crate) places: u32,
    /// For each direction (from `low`, from `high`): whether to check TCP checksums. They are
    /// meaningless with checksum offload.
    pub(crate) checksums: [bool; 2],
    /// Whether the flow carries any Multipath TCP option.
    pub(crate) is_mptcp: bool,
}

/// The result of the first pass.
#[derive(Default)]
pub(crate) struct Survey {
    flows: HashMap<FlowKey, Flow>,
    /// Flows of one subflow, by an identity that is the same on both sides of a NAT.
    identities: HashMap<Identity, Vec<FlowKey>>,
    /// Number of segments that belong to flows beyond the limit.
    pub(crate) left_out: u64,
}

#[derive(Default)]
struct Flow {
    views: Vec<View>,
}

/// A flow as seen from one place.
struct View {
    place: u32,
    payload: u64,
    first: Instant,
    first_data: Instant,
    segments: [u64; 2],
    wrong_checksums: [u64; 2],
    has_mptcp: bool,
}

#[derive(PartialEq, Eq, Hash)]
enum Identity {
    Key(u64),
    Join { token: u32, nonce: u32 },
}

impl Survey {
    pub(crate) fn take(&mut self, sighting: &Sighting<'_>) {
        let key = FlowKey::of(sighting);
        if self.flows.len() >= MOST_FLOWS && !self.flows.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let flow = self.flows.entry(key).or_default();
        let segment = &sighting.segment;
        if segment.header.flags.contains(Flags::SYN)
            && self.identities.len() < MOST_FLOWS
            && let Some(identity) = identity(segment.options)
        {
            let flows = self.identities.entry(identity).or_default();
            if !flows.contains(&key) {
                flows.push(key);
            }
        }
        let Some(view) = flow.view(sighting) else { return };
        let direction = usize::from(segment.source != key.low);
        view.has_mptcp |= has_mptcp(segment.options);
        view.segments[direction] += 1;
        view.wrong_checksums[direction] += u64::from(segment.checksum_ok() == Some(false));
        if segment.payload_len > 0 {
            view.payload += segment.payload_len as u64;
            view.first_data = view.first_data.min(sighting.time);
        }
    }

    /// Number of flows that carry Multipath TCP options at one place and none at another.
    pub(crate) fn stripped(&self) -> usize {
        let differ = |flow: &&Flow| flow.views.iter().any(|view| !view.has_mptcp);
        let all = self.flows.values().filter(|flow| flow.views.iter().any(|view| view.has_mptcp));
        all.filter(differ).count()
    }

    /// How to follow each flow. A missing flow duplicates another flow.
    pub(crate) fn choose(mut self) -> HashMap<FlowKey, Choice> {
        let mut doubles: Vec<FlowKey> = Vec::new();
        let mut same: Vec<Vec<FlowKey>> = std::mem::take(&mut self.identities)
            .into_values()
            .filter(|flows| flows.len() > 1)
            .collect();
        same.sort_unstable();
        for mut flows in same {
            flows.sort_unstable_by_key(|key| {
                (std::cmp::Reverse(self.flows.get(key).and_then(Flow::best).map(View::rank)), *key)
            });
            doubles.extend(&flows[1..]);
        }
        for double in doubles {
            self.flows.remove(&double);
        }
        let choices = self.flows.into_iter().filter_map(|(key, flow)| {
            let best = flow.best()?;
            let trusted =
                |direction| best.wrong_checksums[direction] * 2 <= best.segments[direction];
            let choice = Choice {
                place: best.place,
                places: flow.views.len() as u32,
                checksums: [trusted(0), trusted(1)],
                is_mptcp: flow.views.iter().any(|view| view.has_mptcp),
            };
            Some((key, choice))
        });
        choices.collect()
    }
}

impl Flow {
    /// The flow as seen from the place of `sighting`; `None` beyond the limit of places.
    fn view(&mut self, sighting: &Sighting<'_>) -> Option<&mut View> {
        let Sighting { place, time, .. } = *sighting;
        let index = match self.views.iter().position(|view| view.place == place) {
            Some(index) => index,
            None if self.views.len() >= MOST_VIEWS => return None,
            None => {
                let first_data = Instant::from_nanos(u64::MAX);
                self.views.push(View {
                    place,
                    payload: 0,
                    first: time,
                    first_data,
                    segments: [0; 2],
                    wrong_checksums: [0; 2],
                    has_mptcp: false,
                });
                self.views.len() - 1
            }
        };
        self.views.get_mut(index)
    }

    fn best(&self) -> Option<&View> {
        self.views.iter().max_by_key(|view| view.rank())
    }
}

impl View {
    /// Rank of the view; the greatest rank is the best.
    fn rank(&self) -> (u64, std::cmp::Reverse<(Instant, Instant, u32)>) {
        (self.payload, std::cmp::Reverse((self.first_data, self.first, self.place)))
    }
}

fn has_mptcp(options: &[u8]) -> bool {
    let mut rest = options;
    while let [kind, after @ ..] = rest {
        match *kind {
            0 => return false,
            1 => rest = after,
            mptcp::KIND => return true,
            _ => match after.first() {
                Some(length) if *length >= 2 && usize::from(*length) <= rest.len() => {
                    rest = &rest[usize::from(*length)..];
                }
                _ => return false,
            },
        }
    }
    false
}

fn identity(options: &[u8]) -> Option<Identity> {
    let control = TcpOptions::parse(options).ok()?.control?;
    if let Some(MpJoin::Syn { token, nonce, .. }) = control.join {
        return Some(Identity::Join { token, nonce });
    }
    match control.capable?.keys {
        CapableKeys::Sender(key) => Some(Identity::Key(key)),
        _ => None,
    }
}

/// Largest number of flows.
pub(crate) const MOST_FLOWS: usize = 1 << 18;

/// Largest number of places of one flow.
const MOST_VIEWS: usize = 16;

#[cfg(test)]
mod tests {
    use super::has_mptcp;

    #[test]
    fn multipath_tcp_is_found_behind_other_options() {
        assert!(has_mptcp(&[1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 30, 4, 0x20, 0]));
        assert!(!has_mptcp(&[1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert!(!has_mptcp(&[0, 30]));
        assert!(!has_mptcp(&[8, 0, 30]));
    }
}
