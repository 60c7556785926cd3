//! Tunnels in UDP, which only the ports and the headers identify.

use super::header::{Found, Layer, found, u16_at};
use super::unread::Unread;

/// Remove the header of UDP and, if there is one, that of a tunnel. Other datagrams carry no TCP. `None`
/// if the bytes end within the header of UDP.
pub(super) fn open(bytes: &[u8]) -> Option<Found<'_>> {
    let (source, destination) = (u16_at(bytes, 0)?, u16_at(bytes, 2)?);
    let inner = bytes.get(8..)?;
    let either = |port| source == port || destination == port;
    let tunnel = match destination {
        VXLAN | VXLAN_LINUX => vxlan(inner),
        VXLAN_GPE => vxlan_gpe(inner),
        GENEVE => geneve(inner),
        GRE => found(Layer::Transport(47), inner),
        MPLS => found(Layer::Mpls, inner),
        // The same in DTLS: RFC 8086 and RFC 7510.
        GRE_DTLS | MPLS_DTLS if is_dtls(inner) => Some(Found::Stop(Unread::Encrypted)),
        LISP => lisp(inner),
        TZSP => tzsp(inner),
        _ if either(GTP_U) => gtp(inner),
        _ if either(TEREDO) => teredo(inner),
        _ if either(L2TP) => l2tp(inner),
        _ if either(AYIYA) => ayiya(inner),
        _ if either(CAPWAP) => capwap(inner),
        _ if either(LWAPP) => lwapp(inner),
        _ if either(ESP) => esp(inner),
        _ if either(WIREGUARD) && inner.starts_with(&[4, 0, 0, 0]) => {
            Some(Found::Stop(Unread::Encrypted))
        }
        _ => None,
    };
    Some(tunnel.unwrap_or(Found::Stop(Unread::NotTcp)))
}

/// RFC 7348.
fn vxlan(bytes: &[u8]) -> Option<Found<'_>> {
    if bytes.first()? & 0x08 == 0 {
        return None;
    }
    found(Layer::Ethernet, bytes.get(8..)?)
}

/// draft-ietf-nvo3-vxlan-gpe §3.
fn vxlan_gpe(bytes: &[u8]) -> Option<Found<'_>> {
    let layer = match bytes.get(3)? {
        1 | 2 => Layer::Ip,
        3 => Layer::Ethernet,
        4 => Layer::Type(0x894f),
        5 => Layer::Mpls,
        _ => return None,
    };
    found(layer, bytes.get(8..)?)
}

/// RFC 8926.
fn geneve(bytes: &[u8]) -> Option<Found<'_>> {
    let first = *bytes.first()?;
    if first >> 6 != 0 {
        return None;
    }
    let options = usize::from(first & 0x3f) * 4;
    found(Layer::Type(u16_at(bytes, 2)?), bytes.get(8 + options..)?)
}

/// 3GPP TS 29.281 §5.
fn gtp(bytes: &[u8]) -> Option<Found<'_>> {
    let [flags, message, ..] = *bytes else { return None };
    // Version 1 of GTP, not of GTP', and a message with a user's packet.
    if flags >> 4 & 0b1111 != 0b0011 || message != 0xff {
        return None;
    }
    let mut at = 8;
    if flags & 0b0111 != 0 {
        at = 12;
        let mut extension = *bytes.get(11)?;
        while extension != 0 && flags & 0b0100 != 0 {
            // The length counts units of 4 bytes.
            let length = usize::from(*bytes.get(at)?) * 4;
            if length == 0 {
                return None;
            }
            extension = *bytes.get(at + length - 1)?;
            at += length;
        }
    }
    packet(bytes.get(at..)?)
}

/// RFC 9300: a header of 8 bytes.
fn lisp(bytes: &[u8]) -> Option<Found<'_>> {
    packet(bytes.get(8..)?)
}

/// RFC 4380: an authentication and the origin may precede the packet.
fn teredo(bytes: &[u8]) -> Option<Found<'_>> {
    let mut rest = bytes;
    if let [0, 1, identifier, authentication, ..] = *rest {
        rest = rest.get(13 + usize::from(identifier) + usize::from(authentication)..)?;
    }
    if rest.starts_with(&[0, 0]) {
        rest = rest.get(8..)?;
    }
    if rest.first()? >> 4 != 6 {
        return None;
    }
    found(Layer::Ip, rest)
}

/// RFC 2661, and RFC 3931 for version 3, in which only the hosts know how long a cookie is.
fn l2tp(bytes: &[u8]) -> Option<Found<'_>> {
    let flags = u16_at(bytes, 0)?;
    let has = |bit| flags & bit != 0;
    if has(L2TP_CONTROL) {
        return None;
    }
    match flags & 0x000f {
        2 => {
            let mut at = if has(0x4000) { 8 } else { 6 };
            if has(0x0800) {
                at += 4;
            }
            if has(0x0200) {
                at += 2 + usize::from(u16_at(bytes, at)?);
            }
            found(Layer::Ppp, bytes.get(at..)?)
        }
        3 if flags == 3 => Some(Found::Stop(Unread::Tunnel)),
        _ => None,
    }
}

/// draft-massar-v6ops-ayiya-02 §3: an identity and a signature of stated lengths precede the packet.
fn ayiya(bytes: &[u8]) -> Option<Found<'_>> {
    let [identity, signature, operation, protocol, ..] = *bytes else { return None };
    // To forward, and to forward with a request for an echo.
    if !matches!(operation & 0x0f, 1 | 3) || !matches!(protocol, 4 | 41) {
        return None;
    }
    let length = (1_usize << (identity >> 4)) + usize::from(signature >> 4) * 4;
    packet(bytes.get(8 + length..)?)
}

/// RFC 5415.
fn capwap(bytes: &[u8]) -> Option<Found<'_>> {
    let [preamble, length, binding, flags, ..] = *bytes else { return None };
    match preamble {
        0 => {}
        // In DTLS, whose records follow 4 bytes.
        1 if is_dtls(bytes.get(4..)?) => return Some(Found::Stop(Unread::Encrypted)),
        _ => return None,
    }
    if flags & CAPWAP_KEEP_ALIVE != 0 {
        return None;
    }
    let rest = bytes.get(usize::from(length >> 3) * 4..)?;
    let is_native = binding & 1 != 0;
    match binding >> 1 & 0x1f {
        _ if flags & CAPWAP_FRAGMENT != 0 => Some(Found::Stop(Unread::Tunnel)),
        _ if !is_native => found(Layer::Ethernet, rest),
        // RFC 5416.
        1 => found(wireless(rest)?, rest),
        _ => Some(Found::Stop(Unread::Tunnel)),
    }
}

/// RFC 5412. The first bits are a version of 0, and one of them marks control.
fn lwapp(bytes: &[u8]) -> Option<Found<'_>> {
    let [flags, _, high, low, ..] = *bytes else { return None };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if flags & 0xc4 != 0 || length + 6 < bytes.len() {
        return None;
    }
    if flags & LWAPP_FRAGMENT != 0 {
        return Some(Found::Stop(Unread::Tunnel));
    }
    let rest = bytes.get(6..)?;
    found(wireless(rest)?, rest)
}

/// A frame of IEEE 802.11 in a tunnel: the byte with the type shows whether frame control is swapped.
fn wireless(bytes: &[u8]) -> Option<Layer> {
    let [first, second, ..] = *bytes else { return None };
    let is_data = |control: u8| control & 0x0f == 0x08;
    Some(if is_data(second) && !is_data(first) { Layer::SwappedWireless } else { Layer::Wireless })
}

/// TaZmen Sniffer Protocol: tags until one that ends them. Only padding has no length.
fn tzsp(bytes: &[u8]) -> Option<Found<'_>> {
    let [1, 0 | 1, ..] = *bytes else { return None };
    let mut at = 4;
    loop {
        match *bytes.get(at)? {
            0 => at += 1,
            1 => break,
            _ => at += 2 + usize::from(*bytes.get(at + 1)?),
        }
    }
    let layer = match u16_at(bytes, 2)? {
        1 => Layer::Ethernet,
        18 => Layer::Wireless,
        _ => return Some(Found::Stop(Unread::Tunnel)),
    };
    found(layer, bytes.get(at + 1..)?)
}

/// RFC 3948: messages of IKE begin with 4 bytes of 0, and one byte keeps the mapping of a NAT.
fn esp(bytes: &[u8]) -> Option<Found<'_>> {
    (bytes.len() > 8 && bytes[..4] != [0; 4]).then_some(Found::Stop(Unread::Encrypted))
}

/// Returns `true` if a DTLS 1.0 or 1.2 record with data begins here. RFC 6347.
fn is_dtls(bytes: &[u8]) -> bool {
    matches!(bytes, [23, 0xfe, 0xff | 0xfd, ..])
}

/// An IP packet, if the version is one.
fn packet(bytes: &[u8]) -> Option<Found<'_>> {
    if !matches!(bytes.first()? >> 4, 4 | 6) {
        return None;
    }
    found(Layer::Ip, bytes)
}

/// Ports; Linux used the second for VXLAN before IANA assigned one.
const VXLAN: u16 = 4789;
const VXLAN_LINUX: u16 = 8472;
const VXLAN_GPE: u16 = 4790;
const GENEVE: u16 = 6081;
const GTP_U: u16 = 2152;
const GRE: u16 = 4754;
const GRE_DTLS: u16 = 4755;
const MPLS: u16 = 6635;
const MPLS_DTLS: u16 = 6636;
const LISP: u16 = 4341;
const TEREDO: u16 = 3544;
const L2TP: u16 = 1701;
const AYIYA: u16 = 5072;
const CAPWAP: u16 = 5247;
const LWAPP: u16 = 12_222;
const TZSP: u16 = 37_008;
const ESP: u16 = 4500;
const WIREGUARD: u16 = 51_820;

const L2TP_CONTROL: u16 = 0x8000;
const CAPWAP_FRAGMENT: u8 = 0x80;
const LWAPP_FRAGMENT: u8 = 0x02;
const CAPWAP_KEEP_ALIVE: u8 = 0x08;
