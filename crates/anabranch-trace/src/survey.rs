//! The first pass: the places from which each subflow is followed.
//!
//! A capture of one host consists of views that complement each other: one per direction (Linux
//! "cooked", or an interface per direction of a tap), per time (rotated files), or per interface. A
//! packet that was captured at several places, such as both ends, is one packet. The analyser cannot
//! always tell which copies belong together: a middlebox between the places may have changed them,
//! and acknowledgements repeat. It therefore follows each TCP connection from the place that saw most
//! of its payload, which is the sender's side of any loss. If two places saw equally much, it chooses
//! the place that saw the connection first. To this view it adds, for each direction, the views that
//! are no copies. Samples of their packets ([`Sketch`]) show which are. Behind a NAT, the same subflow
//! has other addresses; its keys or its nonce identify it.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use anabranch_wire::mptcp::{self, CapableKeys, MpJoin};
use anabranch_wire::{CapturedChecksum, Duration, Flags, Instant, SocketAddress, TcpOptions};

use crate::input::Sighting;
use crate::sketch::Sketch;

/// The two ends of a TCP connection, in the order of their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

impl Hash for FlowKey {
    // Every packet is looked up in several maps. One write takes half the time of one for each field.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut bytes = [0; 40];
        bytes[..4].copy_from_slice(&self.epoch.to_ne_bytes());
        for (end, part) in [self.low, self.high].iter().zip(bytes[4..].chunks_exact_mut(18)) {
            let address = match end.address {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => address,
            };
            part[..16].copy_from_slice(&address.octets());
            part[16..].copy_from_slice(&end.port.to_ne_bytes());
        }
        state.write(&bytes);
    }
}

/// Instructions for the second pass to follow a flow.
#[derive(Clone, Debug)]
pub(crate) struct ViewChoice {
    /// The views to follow. The first one is the best.
    pub(crate) views: Vec<Followed>,
    /// Number of places that saw the flow.
    pub(crate) places: u32,
    /// Whether the flow carries any Multipath TCP option.
    pub(crate) is_mptcp: bool,
}

/// A view that the second pass follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Followed {
    pub(crate) place: u32,
    /// For each direction (from `low`, from `high`), the packets to take.
    pub(crate) part: [Part; 2],
    /// For each direction: whether to check TCP checksums. They are meaningless if most of them are
    /// wrong.
    pub(crate) checksums: [bool; 2],
}

/// The packets of a view to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    None,
    All,
    /// Those before and after an interval that other views show.
    Outside(Instant, Instant),
}

/// The result of the first pass.
#[derive(Default)]
pub(crate) struct Survey {
    flows: HashMap<FlowKey, FlowViews>,
    /// Flows of one subflow and the places that saw their SYNs, by an identity that is the same on
    /// both sides of a NAT.
    identities: HashMap<FlowIdentity, Vec<(FlowKey, u32)>>,
    /// Number of segments that belong to flows beyond the limit.
    pub(crate) left_out: u64,
}

#[derive(Default)]
struct FlowViews {
    views: Vec<View>,
}

/// A flow as seen from one place.
struct View {
    place: u32,
    payload: u64,
    first: Instant,
    first_data: Instant,
    sides: [SideTotals; 2],
    has_mptcp: bool,
}

/// One direction of a view.
struct SideTotals {
    segments: u64,
    first: Instant,
    last: Instant,
    /// Sequence number of the last SYN.
    syn: Option<u32>,
    checked: u64,
    wrong_checksums: u64,
    sketch: Sketch,
}

#[derive(PartialEq, Eq, Hash)]
enum FlowIdentity {
    Key(u64),
    Join { token: u32, nonce: u32 },
}

impl Survey {
    pub(crate) fn handle(&mut self, sighting: &Sighting<'_>) {
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
            if flows.len() < MOST_SAME && flows.iter().all(|(known, _)| *known != key) {
                flows.push((key, sighting.place));
            }
        }
        let Some(view) = flow.view(sighting) else { return };
        let direction = usize::from(segment.source != key.low);
        view.has_mptcp |= has_mptcp(segment.options);
        view.sides[direction].handle(sighting);
        if segment.payload_len > 0 {
            view.payload += segment.payload_len as u64;
            view.first_data = view.first_data.min(sighting.time);
        }
    }

    /// Number of flows that carry Multipath TCP options at one place and none at another that saw
    /// the same packets.
    pub(crate) fn stripped(&self) -> usize {
        let differ = |flow: &&FlowViews| {
            flow.views.iter().any(|with| {
                let without = flow.views.iter().filter(|view| !view.has_mptcp);
                with.has_mptcp && without.into_iter().any(|view| view.is_copy_of(with))
            })
        };
        self.flows.values().filter(differ).count()
    }

    /// Choose how to follow each flow. A missing flow duplicates another flow.
    pub(crate) fn choose(mut self) -> HashMap<FlowKey, ViewChoice> {
        let mut doubles: Vec<FlowKey> = Vec::new();
        let mut same: Vec<Vec<(FlowKey, u32)>> = std::mem::take(&mut self.identities)
            .into_values()
            .filter(|flows| are_copies(flows))
            .collect();
        same.sort_unstable();
        for mut flows in same {
            flows.sort_unstable_by_key(|(key, _)| {
                (
                    std::cmp::Reverse(
                        self.flows.get(key).and_then(FlowViews::best).map(View::rank),
                    ),
                    *key,
                )
            });
            doubles.extend(flows[1..].iter().map(|(key, _)| *key));
        }
        for double in doubles {
            self.flows.remove(&double);
        }
        self.flows.into_iter().map(|(key, flow)| (key, flow.choose())).collect()
    }
}

/// Returns `true` if flows of one identity are one flow on several sides of NATs. Each was then
/// opened at another place, or one place sees both sides and has two of them. Many such flows at
/// one place are a flood with the same contents.
fn are_copies(flows: &[(FlowKey, u32)]) -> bool {
    let mut places: Vec<_> = flows.iter().map(|(_, place)| *place).collect();
    places.sort_unstable();
    places.dedup();
    flows.len() == 2 || (flows.len() > 2 && places.len() == flows.len())
}

impl FlowViews {
    /// The flow as seen from the place of `sighting`; `None` beyond the limit of places.
    fn view(&mut self, sighting: &Sighting<'_>) -> Option<&mut View> {
        let Sighting { place, time, .. } = *sighting;
        let known = self.views.iter().rposition(|view| view.place == place);
        let index = match known {
            Some(index) => index,
            None if self.views.len() >= MOST_VIEWS => return None,
            None => {
                self.views.push(View {
                    place,
                    payload: 0,
                    first: time,
                    first_data: Instant::from_nanos(u64::MAX),
                    sides: [SideTotals::at(time), SideTotals::at(time)],
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

    /// The best view, and the views that complement it.
    fn choose(mut self) -> ViewChoice {
        self.views.sort_by_key(|view| std::cmp::Reverse(view.rank()));
        let mut views: Vec<Followed> = Vec::new();
        for (index, view) in self.views.iter().enumerate() {
            let is_shifted = view.is_shifted_copy_of(&self.views[..index]);
            let part = [0, 1].map(|direction| {
                let known = self.views[..index].iter().zip(&views);
                let known = known.filter(|(_, taken)| taken.part[direction] != Part::None);
                let known = known.map(|(other, _)| &other.sides[direction]);
                view.sides[direction].part(known, is_shifted)
            });
            let checksums = [0, 1].map(|direction| view.sides[direction].has_checksums());
            views.push(Followed { place: view.place, part, checksums });
        }
        views.retain(|view| view.part != [Part::None; 2]);
        ViewChoice {
            views,
            places: self.views.len() as u32,
            is_mptcp: self.views.iter().any(|view| view.has_mptcp),
        }
    }
}

impl View {
    /// Rank of the view; the greatest rank is the best.
    fn rank(&self) -> (u64, std::cmp::Reverse<(Instant, Instant, u32)>) {
        (self.payload, std::cmp::Reverse((self.first_data, self.first, self.place)))
    }

    fn is_copy_of(&self, other: &View) -> bool {
        let sides = self.sides.iter().zip(&other.sides);
        sides.into_iter().any(|(own, other)| own.is_copy_of([other].into_iter(), false))
    }

    /// Returns `true` if the other views show both directions of this view, at any time: the clocks
    /// of two places may differ. Data alone does not suffice at other times, because it may consist
    /// of retransmissions.
    fn is_shifted_copy_of(&self, others: &[View]) -> bool {
        let parts = [0, 1].map(|direction| {
            let own = &self.sides[direction].sketch;
            let others = others.iter().map(|other| &other.sides[direction].sketch);
            (own.len() >= FEW_PACKETS).then(|| own.part_in(others))
        });
        let mut parts = parts.into_iter().flatten().peekable();
        parts.peek().is_some() && parts.all(|part| part >= WHOLE_COPY)
    }
}

impl SideTotals {
    /// A direction of which nothing was seen, in a view that begins at `time`.
    fn at(time: Instant) -> Self {
        let sketch = Sketch::default();
        SideTotals {
            segments: 0,
            first: time,
            last: time,
            syn: None,
            checked: 0,
            wrong_checksums: 0,
            sketch,
        }
    }

    fn handle(&mut self, sighting: &Sighting<'_>) {
        let Sighting { time, segment, .. } = sighting;
        let header = &segment.header;
        if self.segments == 0 {
            self.first = *time;
        }
        self.segments += 1;
        self.last = self.last.max(*time);
        match segment.checksum() {
            Some(CapturedChecksum::Right) => self.checked += 1,
            // More than one segment: the network card fills in the checksums.
            Some(CapturedChecksum::Wrong) if segment.payload_len > USUAL_MSS => {}
            Some(CapturedChecksum::Wrong) => {
                self.checked += 1;
                self.wrong_checksums += 1;
            }
            Some(CapturedChecksum::Offloaded) | None => {}
        }
        let ends = header.flags.0 & (Flags::SYN | Flags::FIN | Flags::RST).0;
        if header.flags.contains(Flags::SYN) {
            self.syn = Some(header.seq.0);
        }
        match segment.payload_len {
            _ if ends != 0 => self.sketch.flags(header.seq.0, ends),
            0 => self.sketch.acknowledgement(header.ack.0, header.window, segment.options),
            _ => self.sketch.data(header.seq.0, segment.payload_len as u32),
        }
    }

    fn has_checksums(&self) -> bool {
        self.wrong_checksums * 2 <= self.checked
    }

    /// The packets to take, given other views of the same direction that were chosen before.
    fn part<'s>(
        &self,
        others: impl Iterator<Item = &'s SideTotals> + Clone,
        is_shifted: bool,
    ) -> Part {
        if self.segments == 0 {
            return Part::None;
        }
        let others = others.filter(|other| other.segments > 0);
        let first = others.clone().map(|other| other.first).min();
        let last = others.clone().map(|other| other.last).max();
        let (Some(first), Some(last)) = (first, last) else { return Part::All };
        if !self.is_copy_of(others.clone(), is_shifted) {
            return Part::All;
        }
        // Two captures of one host may overlap. Copies from elsewhere end at the same time.
        let longer = first.saturating_since(self.first).max(self.last.saturating_since(last))
            > LONGEST_DELAY;
        if longer && self.sketch.part_in(others.map(|other| &other.sketch)) < WHOLE_COPY {
            return Part::Outside(first, last);
        }
        Part::None
    }

    /// Returns `true` if other views show many of these packets at the same time, or all of them at
    /// another time (`is_shifted`). A middlebox that changes sequence numbers makes copies that
    /// look different, but their SYNs pass at the same time.
    fn is_copy_of<'s>(
        &self,
        others: impl Iterator<Item = &'s SideTotals> + Clone,
        is_shifted: bool,
    ) -> bool {
        let meets = |other: &&SideTotals| self.first <= other.last && other.first <= self.last;
        let both_opened = |other: &SideTotals| {
            let both = self.syn.is_some() && other.syn.is_some();
            both && (self.syn == other.syn || meets(&other))
        };
        let meeting = others.clone().filter(meets).map(|other| &other.sketch);
        is_shifted || others.clone().any(both_opened) || self.sketch.part_in(meeting) >= SOME_COPIES
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

fn identity(options: &[u8]) -> Option<FlowIdentity> {
    let control = TcpOptions::parse(options).ok()?.control?;
    if let Some(MpJoin::Syn { token, nonce, .. }) = control.join {
        return Some(FlowIdentity::Join { token, nonce });
    }
    match control.capable?.keys {
        CapableKeys::Sender(key) => Some(FlowIdentity::Key(key)),
        _ => None,
    }
}

/// Largest number of flows.
pub(crate) const MOST_FLOWS: usize = 1 << 18;

/// The maximum segment size over Ethernet and IPv4.
pub(crate) const USUAL_MSS: usize = 1460;

/// Largest number of places of one flow. Each rotated file is a place.
const MOST_VIEWS: usize = 1_024;

/// Largest number of flows of one identity that are compared.
const MOST_SAME: usize = 64;

/// A view is a copy if others show this part of its packets. Retransmissions are fewer.
const SOME_COPIES: f64 = 0.5;

/// Smallest sample that is compared, in packets.
const FEW_PACKETS: usize = 8;

/// A view is only a copy if others show this part of its packets.
const WHOLE_COPY: f64 = 0.85;

/// Longest time that a packet needs from one place to another.
const LONGEST_DELAY: Duration = Duration::from_secs(1);

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
