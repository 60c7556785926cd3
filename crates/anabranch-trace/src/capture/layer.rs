//! Headers around IP packets: tags, labels and tunnels, one layer at a time.

use super::datagram;
use super::header::{Found, Layer, found, found_within, u16_at};
use super::unread::Unread;
use super::wireless;

/// The header of `layer`, which is neither IP nor TCP, removed from `bytes`. `None` if the bytes end
/// within the header.
pub(super) fn next(layer: Layer, bytes: &[u8]) -> Option<Found<'_>> {
    match layer {
        Layer::Ethernet => ethernet(bytes),
        Layer::Type(ether_type) => typed(ether_type, bytes),
        Layer::Llc => llc(bytes),
        Layer::Ppp => ppp(bytes),
        Layer::Mpls => mpls(bytes),
        Layer::Transport(protocol) => transport(protocol, bytes),
        Layer::Ip => found(Layer::Ip, bytes),
        Layer::Wireless => framed(wireless::data_frame(bytes, false)),
        Layer::SwappedWireless => framed(wireless::swapped_data_frame(bytes)),
    }
}

fn framed(frame: Result<Option<&[u8]>, Unread>) -> Option<Found<'_>> {
    match frame {
        Ok(inner) => found(Layer::Llc, inner?),
        Err(reason) => Some(Found::Stop(reason)),
    }
}

fn ethernet(bytes: &[u8]) -> Option<Found<'_>> {
    let rest = bytes.get(14..)?;
    length_or_type(u16_at(bytes, 12)?, rest)
}

/// The contents behind a field that is a length up to 1500, and else a type. IEEE 802.3 §3.2.6.
fn length_or_type(field: u16, rest: &[u8]) -> Option<Found<'_>> {
    if field <= 1500 {
        found_within(Layer::Llc, rest, field)
    } else {
        found(Layer::Type(field), rest)
    }
}

/// The layer of a protocol number of Linux, as in cooked captures. <linux/if_ether.h>
pub(super) fn of_linux(protocol: u16) -> Layer {
    if protocol == ETH_P_802_2 { Layer::Llc } else { Layer::Type(protocol) }
}

fn typed(ether_type: u16, bytes: &[u8]) -> Option<Found<'_>> {
    match ether_type {
        TYPE_IPV4 | TYPE_IPV6 => found(Layer::Ip, bytes),
        // IEEE 802.1Q and its stacked forms.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => {
            length_or_type(u16_at(bytes, 2)?, bytes.get(4..)?)
        }
        // IEEE 802.1BR and VN-Tag: tags of port extenders.
        0x893f => found(Layer::Type(u16_at(bytes, 6)?), bytes.get(8..)?),
        0x8926 => found(Layer::Type(u16_at(bytes, 4)?), bytes.get(6..)?),
        // RFC 3032.
        0x8847 | 0x8848 => found(Layer::Mpls, bytes),
        TYPE_PPPOE => found_within(Layer::Ppp, bytes.get(6..)?, u16_at(bytes, 4)?),
        0x880b => found(Layer::Ppp, bytes),
        // IEEE 802.1ah: a whole frame behind its service instance.
        0x88e7 => found(Layer::Ethernet, bytes.get(4..)?),
        // Transparent Ethernet bridging, in GRE and Geneve.
        0x6558 => found(Layer::Ethernet, bytes),
        // RFC 8300: its length counts words of 4 bytes.
        0x894f => {
            let length = usize::from(*bytes.get(1)? & 0x3f) * 4;
            let layer = match *bytes.get(3)? {
                1 | 2 => Layer::Ip,
                3 => Layer::Ethernet,
                4 => Layer::Type(0x894f),
                5 => Layer::Mpls,
                _ => return Some(Found::Stop(Unread::NotTcp)),
            };
            found(layer, bytes.get(length.max(8)..)?)
        }
        // RFC 6325 (TRILL), with options of 4 bytes, and FabricPath.
        0x22f3 => {
            let options = usize::from(u16_at(bytes, 0)? >> 6 & 0x1f) * 4;
            found(Layer::Ethernet, bytes.get(6 + options..)?)
        }
        0x8903 => found(Layer::Ethernet, bytes.get(2..)?),
        // RFC 1144 with a type of its own.
        0x876b => Some(Found::Stop(Unread::Compressed)),
        // Frames of B.A.T.M.A.N. that carry others, from the number 0x40.
        0x4305 if *bytes.first()? >= 0x40 => Some(Found::Stop(Unread::Tunnel)),
        // IEEE 802.1AE.
        0x88e5 => Some(Found::Stop(Unread::Encrypted)),
        // ERSPAN in its versions II and III. draft-foschiano-erspan.
        ERSPAN_II => found(Layer::Ethernet, bytes.get(8..)?),
        ERSPAN_III => {
            let has_subheader = bytes.get(11)? & 1 != 0;
            found(Layer::Ethernet, bytes.get(if has_subheader { 20 } else { 12 }..)?)
        }
        _ => Some(Found::Stop(Unread::NotTcp)),
    }
}

/// IEEE 802.2, and SNAP (RFC 1042).
fn llc(bytes: &[u8]) -> Option<Found<'_>> {
    match bytes.get(..3)? {
        [0xaa, 0xaa, 0x03] => {
            let rest = bytes.get(8..)?;
            match bytes.get(3..6)? {
                [0, 0, 0] | [0, 0, 0xf8] => found(Layer::Type(u16_at(bytes, 6)?), rest),
                _ => Some(Found::Stop(Unread::NotTcp)),
            }
        }
        [0x06, 0x06, 0x03] => found(Layer::Ip, &bytes[3..]),
        _ => Some(Found::Stop(Unread::NotTcp)),
    }
}

/// RFC 1661 and RFC 1662.
fn ppp(bytes: &[u8]) -> Option<Found<'_>> {
    let bytes = bytes.strip_prefix(&[0xff, 0x03]).unwrap_or(bytes);
    // RFC 1661: the protocol may be compressed to its low byte, which is odd.
    let first = *bytes.first()?;
    let (protocol, rest) = match first & 1 {
        1 => (u16::from(first), bytes.get(1..)?),
        _ => (u16_at(bytes, 0)?, bytes.get(2..)?),
    };
    match protocol {
        0x0021 | 0x0057 => found(Layer::Ip, rest),
        0x0281 | 0x0283 => found(Layer::Mpls, rest),
        // RFC 1144 and RFC 2507.
        0x002d | 0x002f | 0x0061 | 0x0063 | 0x0069 => Some(Found::Stop(Unread::Compressed)),
        // RFC 1968.
        0x0053 => Some(Found::Stop(Unread::Encrypted)),
        _ => Some(Found::Stop(Unread::NotTcp)),
    }
}

/// A stack of labels. RFC 3032.
fn mpls(bytes: &[u8]) -> Option<Found<'_>> {
    let mut rest = bytes;
    loop {
        let is_last = rest.get(2)? & 1 != 0;
        rest = rest.get(4..)?;
        if is_last {
            break;
        }
    }
    // RFC 4928: the first nibble tells IP from a pseudowire, whose control word begins with 0.
    match rest.first()? >> 4 {
        4 | 6 => found(Layer::Ip, rest),
        0 => found(Layer::Ethernet, rest.get(4..)?),
        _ => found(Layer::Ethernet, rest),
    }
}

fn transport(protocol: u8, bytes: &[u8]) -> Option<Found<'_>> {
    match protocol {
        // IPv4 and IPv6 in IP: RFC 2003, RFC 2473.
        4 | 41 => found(Layer::Ip, bytes),
        17 => datagram::open(bytes),
        47 => gre(bytes),
        50 => Some(Found::Stop(Unread::Encrypted)),
        // EtherIP, RFC 3378.
        97 => found(Layer::Ethernet, bytes.get(2..)?),
        // L2TPv3, RFC 3931: session 0 is its control. Only the hosts know how long a cookie is.
        115 if bytes.get(..4)? != [0; 4] => Some(Found::Stop(Unread::Tunnel)),
        // RFC 4023.
        137 => found(Layer::Mpls, bytes),
        _ => Some(Found::Stop(Unread::NotTcp)),
    }
}

/// RFC 2784, RFC 2890, and RFC 2637 for version 1.
fn gre(bytes: &[u8]) -> Option<Found<'_>> {
    let (flags, protocol) = (u16_at(bytes, 0)?, u16_at(bytes, 2)?);
    let has = |bit: u16| usize::from(flags & bit != 0) * 4;
    if flags & 0x0007 == 1 {
        let rest = bytes.get(8 + has(SEQUENCE) + has(0x0080)..)?;
        return if rest.is_empty() {
            Some(Found::Stop(Unread::NotTcp))
        } else {
            found(Layer::Ppp, rest)
        };
    }
    let rest = bytes.get(4 + has(0x8000) + has(0x2000) + has(SEQUENCE)..)?;
    match protocol {
        // ERSPAN I has no header of its own, and no sequence number.
        ERSPAN_II if flags & SEQUENCE == 0 => found(Layer::Ethernet, rest),
        // Aruba's controllers number the queues of their tunnels.
        0x8200..=0x83f0 | 0x9000..=0x90f0 if protocol & 0x000f == 0 => found(Layer::Wireless, rest),
        // WCCP, whose second version has a header of 4 bytes.
        0x883e if rest.first()? >> 4 == 4 => found(Layer::Ip, rest),
        0x883e => found(Layer::Ip, rest.get(4..)?),
        // Frame Relay, Aerohive, and bonding (RFC 8157).
        0x6559 | 0xfeae | 0xb7ea => Some(Found::Stop(Unread::Tunnel)),
        _ => found(Layer::Type(protocol), rest),
    }
}

const TYPE_IPV4: u16 = 0x0800;
/// RFC 2516.
pub(super) const TYPE_PPPOE: u16 = 0x8864;
const TYPE_IPV6: u16 = 0x86dd;
const ERSPAN_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;
const ETH_P_802_2: u16 = 0x0004;

/// The bit of GRE that announces a sequence number.
const SEQUENCE: u16 = 0x1000;
