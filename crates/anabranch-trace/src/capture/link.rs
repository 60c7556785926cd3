//! Link-layer headers, by link type. <https://www.tcpdump.org/linktypes.html>

use super::header::{Layer, u16_at};
use super::layer::{TYPE_PPPOE, of_linux};
use super::unread::Unread;
use super::wireless;

/// The contents of a frame behind its link-layer header.
pub(super) struct Contents<'a> {
    pub(super) layer: Layer,
    pub(super) bytes: &'a [u8],
    /// Interface and direction, for captures of all interfaces at once; otherwise 0.
    pub(super) place: u32,
}

/// Remove the link-layer header. `Ok(None)` if the bytes end within it.
///
/// # Errors
/// If the link type is unknown, or the frame carries no TCP segment that could be read.
pub(super) fn open(link_type: u16, bytes: &[u8]) -> Result<Option<Contents<'_>>, Unread> {
    let mut link_type = link_type;
    let mut bytes = bytes;
    // Headers that name another link type for the rest.
    for _ in 0..MOST_NESTED {
        let inner = match link_type {
            PPI => ppi(bytes),
            PKTAP => pktap(bytes),
            _ => break,
        };
        let Some((inner_type, rest)) = inner else { return Ok(None) };
        (link_type, bytes) = (inner_type, rest);
    }
    let behind =
        |layer, header: usize| bytes.get(header..).map(|bytes| Contents { layer, bytes, place: 0 });
    let typed = |at, header| u16_at(bytes, at).and_then(|t| behind(of_linux(t), header));
    Ok(match link_type {
        ETHERNET => behind(Layer::Ethernet, 0),
        RAW | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => behind(Layer::Ip, 0),
        NULL | LOOP => return family(bytes),
        // Cisco HDLC begins with a unicast or a multicast address, and 0.
        PPP | PPP_HDLC if matches!(bytes, [0x0f | 0x8f, 0, ..]) => typed(2, 4),
        PPP | PPP_HDLC => behind(Layer::Ppp, 0),
        PPP_ETHER => behind(Layer::Type(TYPE_PPPOE), 0),
        PPP_WITH_DIR => behind(Layer::Ppp, 1),
        C_HDLC => typed(2, 4),
        ATM_RFC1483 => behind(Layer::Llc, 0),
        FDDI => behind(Layer::Llc, 13),
        MPLS => behind(Layer::Mpls, 0),
        // RFC 4391: a type behind the global routing header.
        IPOIB => typed(40, 44),
        IEEE802_11 => return wireless_frame(Some((bytes, false))),
        RADIOTAP => return wireless_frame(wireless::radiotap(bytes)),
        PRISM | AVS => return wireless_frame(monitor(bytes)),
        LINUX_SLL => sll(bytes),
        LINUX_SLL2 => sll2(bytes),
        NFLOG => nflog(bytes),
        unknown => return Err(Unread::LinkType(unknown)),
    })
}

/// BSD loopback. The number of an address family depends on the system, so the IP header tells the
/// version.
fn family(bytes: &[u8]) -> Result<Option<Contents<'_>>, Unread> {
    let Some(bytes) = bytes.get(4..) else { return Ok(None) };
    match bytes.first() {
        Some(first) if !matches!(first >> 4, 4 | 6) => Err(Unread::NotTcp),
        _ => Ok(Some(Contents { layer: Layer::Ip, bytes, place: 0 })),
    }
}

fn wireless_frame(frame: Option<(&[u8], bool)>) -> Result<Option<Contents<'_>>, Unread> {
    let Some((bytes, is_padded)) = frame else { return Ok(None) };
    let inner = wireless::data_frame(bytes, is_padded)?;
    Ok(inner.map(|bytes| Contents { layer: Layer::Llc, bytes, place: 0 }))
}

/// The headers of Prism and AVS: the second word is their length, in either byte order.
fn monitor(bytes: &[u8]) -> Option<(&[u8], bool)> {
    let word: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
    let length = u32::from_be_bytes(word).min(u32::from_le_bytes(word));
    Some((bytes.get(length as usize..)?, false))
}

/// Per-packet information: version, flags, length, and the link type of the rest.
fn ppi(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let length = usize::from(u16::from_le_bytes(bytes.get(2..4)?.try_into().ok()?));
    Some((data_link(u32_le(bytes, 4)?), bytes.get(length.max(8)..)?))
}

/// Apple's header: its length, a record type, and the link type of the rest.
fn pktap(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let length = u32_le(bytes, 0)? as usize;
    Some((data_link(u32_le(bytes, 8)?), bytes.get(length.max(12)..)?))
}

/// The link type of a data-link type (DLT). The numbers are equal, except those of raw IP, which
/// [`open`] knows as well.
fn data_link(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

fn sll(bytes: &[u8]) -> Option<Contents<'_>> {
    let layer = of_linux(u16_at(bytes, 14)?);
    Some(Contents { layer, bytes: bytes.get(16..)?, place: outgoing(u16_at(bytes, 0)?) })
}

fn sll2(bytes: &[u8]) -> Option<Contents<'_>> {
    let layer = of_linux(u16_at(bytes, 0)?);
    let interface = u32::from(u16_at(bytes, 4)?) << 16 | u32::from(u16_at(bytes, 6)?);
    let place = interface << 1 | outgoing(u16::from(*bytes.get(10)?));
    Some(Contents { layer, bytes: bytes.get(20..)?, place })
}

/// 1 if this is the packet type of outgoing packets, otherwise 0.
fn outgoing(packet_type: u16) -> u32 {
    u32::from(packet_type == 4)
}

/// Attributes of Linux's netlink log, in the byte order of the host; one of them is the packet.
fn nflog(bytes: &[u8]) -> Option<Contents<'_>> {
    let mut rest = bytes.get(4..)?;
    loop {
        let attribute = [rest.get(..2)?, rest.get(2..4)?];
        let [length, kind] = attribute.map(|two| u16::from_le_bytes([two[0], two[1]]));
        // Lengths are small, so the byte order shows.
        let (length, kind) = match kind {
            0..=0xff => (length, kind),
            _ => (length.swap_bytes(), kind.swap_bytes()),
        };
        let length = usize::from(length).max(4);
        if kind == NFULA_PAYLOAD {
            let bytes = &rest[4..length.min(rest.len())];
            return Some(Contents { layer: Layer::Ip, bytes, place: 0 });
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

fn u32_le(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const PPP: u16 = 9;
const FDDI: u16 = 10;
const RAW_BSD: u16 = 12;
const RAW_OPENBSD: u16 = 14;
const PPP_HDLC: u16 = 50;
const PPP_ETHER: u16 = 51;
const ATM_RFC1483: u16 = 100;
const RAW: u16 = 101;
const C_HDLC: u16 = 104;
const IEEE802_11: u16 = 105;
const LOOP: u16 = 108;
const LINUX_SLL: u16 = 113;
const PRISM: u16 = 119;
const RADIOTAP: u16 = 127;
const AVS: u16 = 163;
const PPI: u16 = 192;
const PPP_WITH_DIR: u16 = 204;
const MPLS: u16 = 219;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const NFLOG: u16 = 239;
const IPOIB: u16 = 242;
const PKTAP: u16 = 258;
const LINUX_SLL2: u16 = 276;

/// The attribute with the packet. <linux/netfilter/nfnetlink_log.h>
const NFULA_PAYLOAD: u16 = 9;

/// Largest number of headers that name another link type.
const MOST_NESTED: usize = 4;
