//! Reasons why a packet is not analysed.

use std::fmt;

/// Reason why a packet of a capture has no TCP segment to analyse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unread {
    /// It carries no TCP segment, so nothing is lost.
    NotTcp,
    /// The capture cut its headers.
    Cut,
    /// Its headers contradict each other.
    Malformed,
    /// The capture lacks other fragments of the same IP packet, or parts of them.
    Fragment,
    /// Its contents are encrypted.
    Encrypted,
    /// Its headers are compressed (PPP, RFC 1144).
    Compressed,
    /// Several frames share one frame of IEEE 802.11 (A-MSDU).
    Aggregated,
    /// It is in a tunnel whose contents are not read.
    Tunnel,
    /// It has more nested headers than are followed.
    TooDeep,
    /// The type of its link-layer header is unknown.
    LinkType(u16),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unread::NotTcp => "not TCP",
            Unread::Cut => "headers cut by the snap length",
            Unread::Malformed => "malformed headers",
            Unread::Fragment => "fragments of incomplete IP packets",
            Unread::Encrypted => "encrypted",
            Unread::Compressed => "compressed headers",
            Unread::Aggregated => "aggregated wireless frames",
            Unread::Tunnel => "tunnels of other kinds",
            Unread::TooDeep => "too many nested headers",
            Unread::LinkType(link_type) => return write!(f, "unknown link type {link_type}"),
        })
    }
}
