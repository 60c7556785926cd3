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
    Next(Layer, &'a [u8]),
    Stop(Unread),
}

pub(super) fn found(layer: Layer, rest: &[u8]) -> Option<Found<'_>> {
    Some(Found::Next(layer, rest))
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}
