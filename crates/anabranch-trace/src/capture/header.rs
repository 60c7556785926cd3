//! Results of reading one header: the protocol of the bytes behind it, or the reason to stop.

use super::unread::Unread;

/// The protocol at the start of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    Ethernet,
    /// The protocol of an Ethernet type.
    Type(u16),
    /// IEEE 802.2.
    Llc,
    Ppp,
    Mpls,
    Ip,
    /// A frame of IEEE 802.11.
    Wireless,
    /// The same with the two bytes of frame control swapped, as some controllers send it.
    SwappedWireless,
    /// The protocol of an IP packet with this protocol number.
    Transport(u8),
}

/// Contents behind one header.
pub(super) enum Found<'a> {
    /// The rest of the bytes, and its length without padding: `usize::MAX` if the header states none.
    Next(Layer, &'a [u8], usize),
    Stop(Unread),
}

pub(super) fn found(layer: Layer, rest: &[u8]) -> Option<Found<'_>> {
    Some(Found::Next(layer, rest, usize::MAX))
}

/// The same with the length that a header states, where 0 states none.
pub(super) fn found_within(layer: Layer, rest: &[u8], length: u16) -> Option<Found<'_>> {
    Some(Found::Next(layer, rest, if length == 0 { usize::MAX } else { length.into() }))
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}
