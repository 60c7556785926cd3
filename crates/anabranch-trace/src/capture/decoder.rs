//! From the bytes of a captured frame to its TCP segment.

use std::net::IpAddr;

use anabranch_wire::{CapturedSegment, Instant};
use etherparse::{Ipv6ExtensionSlice, LaxIpSlice, LaxIpv4Slice, LaxIpv6Slice};

use super::Frame;
use super::fragments::{Fragment, FragmentKey, Fragments};
use super::header::{Found, Layer};
use super::layer;
use super::link;
use super::unread::Unread;

/// A TCP segment, and where the capture says it was seen.
#[derive(Debug)]
pub(crate) struct DecodedSegment<'a> {
    pub(crate) segment: CapturedSegment<'a>,
    /// Identification of the IPv4 packet. It has no meaning if fragmentation is forbidden (RFC 6864),
    /// but Linux and Windows increment it then as well.
    pub(crate) ip_id: Option<u16>,
    /// Interface and direction, for captures of all interfaces at once; otherwise 0.
    pub(crate) place: u32,
}

/// Finds the TCP segments of one file.
#[derive(Default)]
pub(crate) struct Decoder {
    fragments: Fragments,
    /// The reassembled packet that was last returned.
    whole: Vec<u8>,
    /// Number of frames whose fragments were completed since the last call of `completed`.
    completed: u64,
}

/// An IP header.
#[derive(Clone, Copy)]
struct Network {
    source: IpAddr,
    destination: IpAddr,
    ip_id: Option<u16>,
}

/// The bytes of a TCP segment.
struct Segment<'a> {
    network: Network,
    tcp: &'a [u8],
    /// Its whole length according to the IP header.
    stated: usize,
}

/// A fragment, and the header of its packet.
struct IpFragment<'a> {
    network: Network,
    protocol: u8,
    id: u32,
    fragment: Fragment<'a>,
    is_cut: bool,
}

enum Peeled<'a> {
    Segment(Segment<'a>),
    Fragment(IpFragment<'a>),
}

impl Decoder {
    /// Find the TCP segment of a frame.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub(crate) fn decode<'a>(&'a mut self, frame: &'a Frame) -> Result<DecodedSegment<'a>, Unread> {
        let missing = (frame.whole as usize).saturating_sub(frame.bytes.len());
        let short = if missing > 0 { Unread::Cut } else { Unread::Malformed };
        let contents = link::open(frame.link_type, &frame.bytes)?.ok_or(short)?;
        let place = contents.place;
        let piece = match peel(contents.layer, contents.bytes, missing, None)? {
            Peeled::Segment(segment) => return segment.carried(place, short),
            Peeled::Fragment(piece) => piece,
        };
        let (network, protocol) = (piece.network, piece.protocol);
        if !may_carry_tcp(protocol) {
            return Err(Unread::NotTcp);
        }
        let (whole, fragments) = self
            .reassemble(&piece, (frame.interface, place), frame.time)
            .ok_or(Unread::Fragment)?;
        self.whole = whole;
        self.completed += fragments - 1;
        match peel(Layer::Transport(protocol), &self.whole, 0, Some(network))? {
            Peeled::Segment(segment) => segment.carried(place, Unread::Malformed),
            // A fragmented tunnel with fragments within.
            Peeled::Fragment(_) => Err(Unread::Fragment),
        }
    }

    /// Number of earlier fragments that belong to packets which are whole since the last call.
    pub(crate) fn completed(&mut self) -> u64 {
        std::mem::take(&mut self.completed)
    }

    fn reassemble(
        &mut self,
        piece: &IpFragment<'_>,
        place: (u32, u32),
        now: Instant,
    ) -> Option<(Vec<u8>, u64)> {
        let Network { source, destination, .. } = piece.network;
        let key =
            FragmentKey { source, destination, protocol: piece.protocol, id: piece.id, place };
        (!piece.is_cut).then(|| self.fragments.add(key, &piece.fragment, now))?
    }
}

impl<'a> Segment<'a> {
    fn carried(self, place: u32, short: Unread) -> Result<DecodedSegment<'a>, Unread> {
        let Network { source, destination, ip_id } = self.network;
        let is_cut = self.tcp.len() < self.stated;
        let segment = CapturedSegment::parse(source, destination, self.tcp, self.stated);
        let segment = segment.map_err(|_| if is_cut { short } else { Unread::Malformed })?;
        Ok(DecodedSegment { segment, ip_id, place })
    }
}

/// Remove headers until TCP is found. `missing` bytes of the frame were not captured.
fn peel(
    layer: Layer,
    bytes: &[u8],
    missing: usize,
    network: Option<Network>,
) -> Result<Peeled<'_>, Unread> {
    let (short, guess) = match missing {
        0 => (Unread::Malformed, Unread::NotTcp),
        _ => (Unread::Cut, Unread::Cut),
    };
    let (mut layer, mut bytes, mut network) = (layer, bytes, network);
    let mut stated = bytes.len() + missing;
    // Whether the headers follow those of UDP, whose ports alone may suggest a tunnel.
    let mut is_guess = false;
    for _ in 0..MOST_LAYERS {
        match (layer, network) {
            (Layer::Ip, _) => {
                let header = ip(bytes, stated).ok_or(if is_guess { guess } else { short })?;
                if let Some(piece) = header.piece {
                    return Ok(Peeled::Fragment(piece));
                }
                (layer, network) = (Layer::Transport(header.protocol), Some(header.network));
                (bytes, stated) = (header.rest, header.stated);
            }
            (Layer::Transport(TCP), Some(network)) => {
                return Ok(Peeled::Segment(Segment { network, tcp: bytes, stated }));
            }
            _ => match layer::next(layer, bytes).ok_or(if is_guess { guess } else { short })? {
                Found::Next(next, rest, length) => {
                    is_guess |= layer == Layer::Transport(UDP);
                    stated = (stated - (bytes.len() - rest.len())).min(length);
                    (layer, bytes) = (next, &rest[..rest.len().min(length)]);
                }
                Found::Stop(reason) => return Err(reason),
            },
        }
    }
    Err(Unread::TooDeep)
}

/// An IP header, and what follows it.
struct Header<'a> {
    network: Network,
    protocol: u8,
    rest: &'a [u8],
    /// Length of `rest` before the capture cut it.
    stated: usize,
    piece: Option<IpFragment<'a>>,
}

/// Read the header of an IP packet of `stated` bytes. `None` if it cannot be read.
fn ip(bytes: &[u8], stated: usize) -> Option<Header<'_>> {
    let (slice, stop) = LaxIpSlice::from_slice(bytes).ok()?;
    // The extension headers are incomplete or contradict each other.
    if stop.is_some() {
        return None;
    }
    Some(match &slice {
        LaxIpSlice::Ipv4(slice) => v4(slice, bytes, stated),
        LaxIpSlice::Ipv6(slice) => v6(slice, bytes, stated),
    })
}

fn v4<'a>(slice: &LaxIpv4Slice<'a>, bytes: &'a [u8], stated: usize) -> Header<'a> {
    let (header, payload) = (slice.header(), slice.payload());
    let network = Network {
        source: header.source_addr().into(),
        destination: header.destination_addr().into(),
        ip_id: Some(header.identification()),
    };
    // A packet captured before segmentation offload may have a total length of 0.
    let total = match usize::from(header.total_len()) {
        0 => stated,
        // The packet cannot be longer than its frame.
        total => total.min(stated),
    };
    let before = offset_in(bytes, payload.payload);
    let piece = payload.fragmented.then(|| IpFragment {
        network,
        protocol: payload.ip_number.0,
        id: u32::from(header.identification()),
        fragment: Fragment {
            offset: header.fragments_offset(),
            has_more: header.more_fragments(),
            bytes: payload.payload,
        },
        is_cut: payload.incomplete,
    });
    let stated = total.saturating_sub(before);
    Header { network, protocol: payload.ip_number.0, rest: payload.payload, stated, piece }
}

fn v6<'a>(slice: &LaxIpv6Slice<'a>, bytes: &'a [u8], stated: usize) -> Header<'a> {
    let (header, payload) = (slice.header(), slice.payload());
    let network = Network {
        source: header.source_addr().into(),
        destination: header.destination_addr().into(),
        ip_id: None,
    };
    // RFC 2675: jumbograms have a length of 0, as packets before segmentation offload.
    let total = match usize::from(header.payload_length()) {
        0 => stated,
        length => (length + 40).min(stated),
    };
    let before = offset_in(bytes, payload.payload);
    let mut extensions = slice.extensions().clone().into_iter();
    let fragment = extensions.find_map(|extension| match extension {
        Ipv6ExtensionSlice::Fragment(fragment) => Some(fragment.to_header()),
        _ => None,
    });
    let piece = fragment.filter(|_| payload.fragmented).map(|fragment| IpFragment {
        network,
        protocol: payload.ip_number.0,
        id: fragment.identification,
        fragment: Fragment {
            offset: fragment.fragment_offset,
            has_more: fragment.more_fragments,
            bytes: payload.payload,
        },
        is_cut: payload.incomplete,
    });
    let stated = total.saturating_sub(before);
    Header { network, protocol: payload.ip_number.0, rest: payload.payload, stated, piece }
}

/// Number of bytes before `part`, which lies within `whole`.
fn offset_in(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

/// Returns `true` if packets of this protocol may carry TCP, directly or in a tunnel.
fn may_carry_tcp(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | 4 | 41 | 47 | 97 | 137)
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Largest number of nested headers.
const MOST_LAYERS: usize = 24;
