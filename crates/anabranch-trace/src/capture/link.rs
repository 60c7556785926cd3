//! Link-layer headers around IP packets, by link type. <https://www.tcpdump.org/linktypes.html>

/// An IP packet, and the place at which it was seen according to its link-layer header.
pub(crate) struct Carried<'a> {
    pub(crate) packet: &'a [u8],
    /// Interface and direction, for captures of all interfaces at once; otherwise 0.
    pub(crate) place: u32,
}

/// Remove the link-layer header. `Ok(None)` if it does not carry IP.
///
/// # Errors
/// If the link type is unknown.
pub(crate) fn unwrap(link_type: u16, bytes: &[u8]) -> Result<Option<Carried<'_>>, u16> {
    let seen = |packet, place| Some(Carried { packet, place });
    Ok(match link_type {
        ETHERNET => ethernet(bytes).and_then(|packet| seen(packet, 0)),
        RAW | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => seen(bytes, 0),
        // The number of an address family depends on the system. The IP header has its version.
        NULL | LOOP => bytes.get(4..).and_then(|packet| seen(packet, 0)),
        LINUX_SLL => sll(bytes),
        LINUX_SLL2 => sll2(bytes),
        unknown => return Err(unknown),
    })
}

fn ethernet(bytes: &[u8]) -> Option<&[u8]> {
    network(u16_at(bytes, 12)?, bytes.get(14..)?)
}

/// The IP packet after an Ethernet type and any VLAN tags.
fn network(ether_type: u16, bytes: &[u8]) -> Option<&[u8]> {
    let (mut ether_type, mut rest) = (ether_type, bytes);
    for _ in 0..MOST_TAGS {
        match ether_type {
            TYPE_IPV4 | TYPE_IPV6 => return Some(rest),
            0x8100 | 0x88a8 | 0x9100 => {
                ether_type = u16_at(rest, 2)?;
                rest = rest.get(4..)?;
            }
            _ => return None,
        }
    }
    None
}

fn sll(bytes: &[u8]) -> Option<Carried<'_>> {
    let packet = network(u16_at(bytes, 14)?, bytes.get(16..)?)?;
    Some(Carried { packet, place: outgoing(u16_at(bytes, 0)?) })
}

fn sll2(bytes: &[u8]) -> Option<Carried<'_>> {
    let packet = network(u16_at(bytes, 0)?, bytes.get(20..)?)?;
    let interface = u32::from(u16_at(bytes, 4)?) << 16 | u32::from(u16_at(bytes, 6)?);
    Some(Carried { packet, place: interface << 1 | outgoing(u16::from(*bytes.get(10)?)) })
}

/// 1 if this is the packet type of outgoing packets, otherwise 0.
fn outgoing(packet_type: u16) -> u32 {
    u32::from(packet_type == 4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const RAW_BSD: u16 = 12;
const RAW_OPENBSD: u16 = 14;
const RAW: u16 = 101;
const LOOP: u16 = 108;
const LINUX_SLL: u16 = 113;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const LINUX_SLL2: u16 = 276;

const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;

/// Largest number of stacked VLAN tags.
const MOST_TAGS: usize = 4;
