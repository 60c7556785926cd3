//! IPv4 and IPv6 headers of packets with a TCP segment or a UDP datagram. RFC 791, RFC 8200.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::reader::Reader;
use crate::{Checksum, EmitError, ParseError};

/// ECN field of a packet that queues may mark. RFC 3168 §5: a sender that needs only one ECT
/// codepoint uses ECT(0).
pub const ECT_0: u8 = 0b10;
/// ECN field of a marked packet: congestion experienced. RFC 3168 §5.
pub const CE: u8 = 0b11;

/// Bytes of an IPv4 header without options.
pub const IPV4_HEADER_BYTES: usize = 20;

/// Bytes of an IPv6 header without extension headers.
pub const IPV6_HEADER_BYTES: usize = 40;

/// Protocol number of TCP, the same in IPv4 and IPv6. RFC 9293 §3.1.
pub(crate) const PROTOCOL_TCP: u8 = 6;
/// Protocol numbers of ICMP and of ICMPv6. RFC 792, RFC 4443 §1.
pub(crate) const PROTOCOL_ICMP: u8 = 1;
pub(crate) const PROTOCOL_ICMPV6: u8 = 58;
/// Protocol number of UDP, the same in IPv4 and IPv6. RFC 768.
pub(crate) const PROTOCOL_UDP: u8 = 17;

/// Length in bytes of the IP header that this crate emits for packets to or from `address`.
pub const fn ip_header_bytes(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(_) => IPV4_HEADER_BYTES,
        IpAddr::V6(_) => IPV6_HEADER_BYTES,
    }
}

impl Checksum {
    /// The sum of the pseudo-header for a TCP segment of `tcp_bytes` bytes, including header and
    /// options. RFC 9293 §3.1 for IPv4, RFC 8200 §8.1 for IPv6.
    pub fn of_tcp_pseudo_header(source: IpAddr, destination: IpAddr, tcp_bytes: usize) -> Self {
        Checksum::of_pseudo_header(source, destination, PROTOCOL_TCP, tcp_bytes)
    }
}

/// A parsed IP packet.
pub(crate) struct IpPacket<'a> {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// ECN field, 2 bits.
    pub(crate) ecn: u8,
    /// Protocol after the IP header and its extension headers.
    pub(crate) protocol: u8,
    /// Header and payload of that protocol, without trailing bytes beyond the packet's length.
    pub(crate) transport: &'a [u8],
}

impl IpPacket<'_> {
    /// Return an error unless the packet carries `protocol`. The error names the expected protocol
    /// `expected`.
    pub(crate) fn require(&self, protocol: u8, expected: &'static str) -> Result<(), ParseError> {
        if self.protocol == protocol {
            return Ok(());
        }
        Err(ParseError::Protocol { found: self.protocol, expected })
    }
}

/// Parse the IP header of a packet. Bytes beyond the length in the header are ignored.
pub(crate) fn parse(bytes: &[u8]) -> Result<IpPacket<'_>, ParseError> {
    let version = Reader::new("IP header", bytes).u8()? >> 4;
    match version {
        4 => parse_v4(bytes),
        6 => parse_v6(bytes),
        found => Err(ParseError::IpVersion { found }),
    }
}

/// Source and destination address of a packet to emit, both of one family.
#[derive(Clone, Copy)]
pub(crate) enum Addresses {
    V4 { source: Ipv4Addr, destination: Ipv4Addr },
    V6 { source: Ipv6Addr, destination: Ipv6Addr },
}

impl Addresses {
    pub(crate) const fn new(from: IpAddr, to: IpAddr) -> Result<Self, EmitError> {
        match (from, to) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                Ok(Addresses::V4 { source, destination })
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                Ok(Addresses::V6 { source, destination })
            }
            _ => Err(EmitError::MixedAddressFamilies { from, to }),
        }
    }

    /// Append the IP header for `bytes` bytes of `protocol` (its header and payload).
    pub(crate) fn emit(
        self,
        protocol: u8,
        ecn: u8,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        match self {
            Addresses::V4 { source, destination } => {
                // RFC 791 §3.1: the total length includes the header.
                let total = length_field(bytes, IPV4_HEADER_BYTES, IPV4_HEADER_BYTES)?;
                out.extend_from_slice(&v4_header(source, destination, protocol, ecn, total));
            }
            Addresses::V6 { source, destination } => {
                // RFC 8200 §3: the payload length does not include the header.
                let payload = length_field(bytes, IPV6_HEADER_BYTES, 0)?;
                out.extend_from_slice(&v6_header(source, destination, protocol, ecn, payload));
            }
        }
        Ok(())
    }
}

/// The value of a length field that counts `counted` of the header's own `header` bytes.
fn length_field(bytes: usize, header: usize, counted: usize) -> Result<u16, EmitError> {
    u16::try_from(bytes + counted).map_err(|_| EmitError::PacketTooLong {
        bytes: bytes + header,
        limit: usize::from(u16::MAX) + header - counted,
    })
}

fn v4_header(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    ecn: u8,
    total: u16,
) -> [u8; IPV4_HEADER_BYTES] {
    let mut header = [0; IPV4_HEADER_BYTES];
    header[0] = 4 << 4 | (IPV4_HEADER_BYTES / 4) as u8;
    // RFC 3168 §5: ECN occupies the two low bits of the former TOS byte.
    header[1] = ecn & 0b11;
    header[2..4].copy_from_slice(&total.to_be_bytes());
    // RFC 6864 §4.1: the identification field of an atomic packet has no meaning.
    header[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    header[8] = HOP_LIMIT;
    header[9] = protocol;
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&destination.octets());
    let mut checksum = Checksum::new();
    checksum.add(&header);
    header[10..12].copy_from_slice(&checksum.finish().to_be_bytes());
    header
}

fn v6_header(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    protocol: u8,
    ecn: u8,
    payload: u16,
) -> [u8; IPV6_HEADER_BYTES] {
    let mut header = [0; IPV6_HEADER_BYTES];
    // RFC 8200 §3: version, traffic class (ECN in its low bits), flow label 0.
    let start = 6 << 28 | u32::from(ecn & 0b11) << 20;
    header[0..4].copy_from_slice(&start.to_be_bytes());
    header[4..6].copy_from_slice(&payload.to_be_bytes());
    header[6] = protocol;
    header[7] = HOP_LIMIT;
    header[8..24].copy_from_slice(&source.octets());
    header[24..40].copy_from_slice(&destination.octets());
    header
}

fn parse_v4(bytes: &[u8]) -> Result<IpPacket<'_>, ParseError> {
    let fields = V4Fields::read(bytes)?;
    let V4Fields { header, total, fragment, .. } = fields;
    check_v4(bytes, header, total)?;
    if fragment & FRAGMENT_MASK != 0 {
        return Err(ParseError::Fragment { version: 4 });
    }
    Ok(fields.around(&bytes[header..total]))
}

/// Fields of an IPv4 header, not yet validated.
struct V4Fields {
    /// Header length in bytes.
    header: usize,
    /// Total length in bytes.
    total: usize,
    fragment: u16,
    tos: u8,
    protocol: u8,
    source: Ipv4Addr,
    destination: Ipv4Addr,
}

impl V4Fields {
    fn read(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut reader = Reader::new("IPv4 header", bytes);
        let [version_and_ihl, tos] = reader.array()?;
        let total = usize::from(reader.u16()?);
        let _identification = reader.u16()?;
        let fragment = reader.u16()?;
        let [_ttl, protocol, _, _] = reader.array()?;
        let source = Ipv4Addr::from(reader.array::<4>()?);
        let destination = Ipv4Addr::from(reader.array::<4>()?);
        let header = usize::from(version_and_ihl & 0x0f) * 4;
        Ok(V4Fields { header, total, fragment, tos, protocol, source, destination })
    }

    fn around<'a>(&self, transport: &'a [u8]) -> IpPacket<'a> {
        IpPacket {
            source: self.source.into(),
            destination: self.destination.into(),
            ecn: self.tos & 0b11,
            protocol: self.protocol,
            transport,
        }
    }
}

/// Validate the two lengths of an IPv4 header, against each other and against the bytes available.
/// Then verify the header checksum.
fn check_v4(bytes: &[u8], header: usize, total: usize) -> Result<(), ParseError> {
    if header < IPV4_HEADER_BYTES {
        return Err(ParseError::Ipv4HeaderLength { found: header });
    }
    if total < header {
        return Err(ParseError::Ipv4TotalLength { found: total, header });
    }
    if bytes.len() < total {
        return Err(ParseError::Truncated {
            what: "IPv4 packet",
            needed: total,
            available: bytes.len(),
        });
    }
    let mut checksum = Checksum::new();
    checksum.add(&bytes[..header]);
    if checksum.verifies(0) { Ok(()) } else { Err(ParseError::Ipv4Checksum) }
}

fn parse_v6(bytes: &[u8]) -> Result<IpPacket<'_>, ParseError> {
    let (packet, stated) = cut_v6(bytes)?;
    if stated > packet.transport.len() {
        let missing = stated - packet.transport.len();
        return Err(ParseError::Truncated {
            what: "IPv6 packet",
            needed: bytes.len() + missing,
            available: bytes.len(),
        });
    }
    Ok(packet)
}

/// Parse the IP header of a packet from a capture. The packet may be truncated. If offload was on,
/// its checksums or its total length may not be filled in. Also returns the length of `transport`
/// according to the header.
pub(crate) fn parse_cut(bytes: &[u8]) -> Result<(IpPacket<'_>, usize), ParseError> {
    let version = Reader::new("IP header", bytes).u8()? >> 4;
    match version {
        4 => cut_v4(bytes),
        6 => cut_v6(bytes),
        found => Err(ParseError::IpVersion { found }),
    }
}

fn cut_v4(bytes: &[u8]) -> Result<(IpPacket<'_>, usize), ParseError> {
    let fields = V4Fields::read(bytes)?;
    let V4Fields { header, fragment, .. } = fields;
    // A packet captured before segmentation offload may have a total length of 0.
    let total = if fields.total == 0 { bytes.len() } else { fields.total };
    if header < IPV4_HEADER_BYTES {
        return Err(ParseError::Ipv4HeaderLength { found: header });
    }
    if total < header {
        return Err(ParseError::Ipv4TotalLength { found: total, header });
    }
    if fragment & FRAGMENT_MASK != 0 {
        return Err(ParseError::Fragment { version: 4 });
    }
    let end = total.min(bytes.len());
    let transport = bytes.get(header..end).ok_or(ParseError::Truncated {
        what: "IPv4 packet",
        needed: total,
        available: bytes.len(),
    })?;
    Ok((fields.around(transport), total - header))
}

fn cut_v6(bytes: &[u8]) -> Result<(IpPacket<'_>, usize), ParseError> {
    let mut reader = Reader::new("IPv6 header", bytes);
    let version_class_label = reader.u32()?;
    let payload = usize::from(reader.u16()?);
    let [next_header, _hop_limit] = reader.array()?;
    let source = Ipv6Addr::from(reader.array::<16>()?);
    let destination = Ipv6Addr::from(reader.array::<16>()?);
    let rest = reader.rest();
    let there = &rest[..payload.min(rest.len())];
    let (protocol, transport) = skip_options(next_header, there)?;
    let packet = IpPacket {
        source: source.into(),
        destination: destination.into(),
        ecn: (version_class_label >> 20) as u8 & 0b11,
        protocol,
        transport,
    };
    Ok((packet, payload - (there.len() - transport.len())))
}

/// Skip hop-by-hop and destination options. Returns the protocol after them, and its bytes.
fn skip_options(next_header: u8, bytes: &[u8]) -> Result<(u8, &[u8]), ParseError> {
    let (mut next_header, mut rest) = (next_header, bytes);
    loop {
        match next_header {
            HOP_BY_HOP | DESTINATION_OPTIONS => {
                let [next, length] = Reader::new("IPv6 extension header", rest).array()?;
                // RFC 8200 §4.3: the length counts units of 8 bytes, without the first 8.
                let skipped = (usize::from(length) + 1) * 8;
                next_header = next;
                rest = rest.get(skipped..).ok_or(ParseError::Truncated {
                    what: "IPv6 extension header",
                    needed: skipped,
                    available: rest.len(),
                })?;
            }
            FRAGMENT => return Err(ParseError::Fragment { version: 6 }),
            found @ (ROUTING | ESP | AUTHENTICATION) => {
                return Err(ParseError::ExtensionHeader { found });
            }
            protocol => return Ok((protocol, rest)),
        }
    }
}

/// TTL or hop limit of every emitted packet. RFC 1700, "IP time to live parameter".
const HOP_LIMIT: u8 = 64;

/// The Don't Fragment bit in the word with flags and fragment offset. RFC 791 §3.1.
const DONT_FRAGMENT: u16 = 0x4000;

/// The More Fragments bit and the fragment offset. Both are 0 in a whole packet. RFC 791 §3.1.
const FRAGMENT_MASK: u16 = 0x3fff;

/// Hop-by-hop options. RFC 8200 §4.3.
const HOP_BY_HOP: u8 = 0;
/// Routing header. RFC 8200 §4.4.
const ROUTING: u8 = 43;
/// Fragment header. RFC 8200 §4.5.
const FRAGMENT: u8 = 44;
/// Encapsulating security payload. RFC 4303.
const ESP: u8 = 50;
/// Authentication header. RFC 4302.
const AUTHENTICATION: u8 = 51;
/// Destination options. RFC 8200 §4.6.
const DESTINATION_OPTIONS: u8 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    /// 10.0.0.1 → 10.0.0.2 with ECT(0), 4 bytes of payload, 4 bytes of options (three NOPs and an
    /// end of list), and 2 bytes of padding after the packet.
    fn v4_with_options() -> Vec<u8> {
        let mut packet = vec![
            0x46, 0x02, 0x00, 0x1c, 0x12, 0x34, 0x40, 0x00, 0x40, 0x06, 0x00, 0x00, 10, 0, 0, 1,
            10, 0, 0, 2, 1, 1, 1, 0, 0xde, 0xad, 0xbe, 0xef, 0xa5, 0xa5,
        ];
        refresh_checksum(&mut packet);
        packet
    }

    fn refresh_checksum(packet: &mut [u8]) {
        packet[10..12].fill(0);
        let mut checksum = Checksum::new();
        checksum.add(&packet[..usize::from(packet[0] & 0x0f) * 4]);
        packet[10..12].copy_from_slice(&checksum.finish().to_be_bytes());
    }

    fn error_of(packet: &[u8]) -> ParseError {
        parse(packet).map(|_| ()).unwrap_err()
    }

    /// The parse error after one byte of a valid IPv4 packet is overwritten.
    fn error_with(offset: usize, byte: u8) -> ParseError {
        let mut packet = v4_with_options();
        packet[offset] = byte;
        refresh_checksum(&mut packet);
        error_of(&packet)
    }

    #[test]
    fn v4_options_and_trailing_bytes_are_skipped() {
        let bytes = v4_with_options();
        let packet = parse(&bytes).unwrap();
        assert_eq!(packet.source, IpAddr::from([10, 0, 0, 1]));
        assert_eq!(packet.destination, IpAddr::from([10, 0, 0, 2]));
        assert_eq!(packet.ecn, 2);
        assert_eq!((packet.protocol, packet.transport), (6, &[0xde, 0xad, 0xbe, 0xef][..]));
    }

    #[test]
    fn malformed_v4_headers_are_errors_with_a_reason() {
        assert_eq!(error_with(0, 0x56), ParseError::IpVersion { found: 5 });
        assert_eq!(error_with(0, 0x44), ParseError::Ipv4HeaderLength { found: 16 });
        let total = ParseError::Ipv4TotalLength { found: 23, header: 24 };
        assert_eq!(error_with(3, 23), total);
        let truncated = ParseError::Truncated { what: "IPv4 packet", needed: 31, available: 30 };
        assert_eq!(error_with(3, 31), truncated);
        assert_eq!(error_with(6, 0x20), ParseError::Fragment { version: 4 });
        assert_eq!(error_with(7, 0x01), ParseError::Fragment { version: 4 });
        let mut packet = v4_with_options();
        packet[11] ^= 1;
        assert_eq!(error_of(&packet), ParseError::Ipv4Checksum);
    }

    /// ::1 → ::2 with the given chain of headers as payload.
    fn v6(next_header: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0x30, 0, 0, 0, payload.len() as u8, next_header, 64];
        packet.extend(Ipv6Addr::from(1).octets());
        packet.extend(Ipv6Addr::from(2).octets());
        packet.extend(payload);
        packet
    }

    #[test]
    fn v6_hop_by_hop_and_destination_options_are_skipped() {
        // RFC 8200 §4.3 and §4.6: 8 bytes of hop-by-hop and 16 of destination options, PadN in
        // both.
        let mut chain = vec![60, 0, 1, 4, 0, 0, 0, 0, 6, 1, 1, 12];
        chain.extend([0; 12]);
        chain.extend(*b"tcp!");
        let bytes = v6(0, &chain);
        let packet = parse(&bytes).unwrap();
        assert_eq!((packet.protocol, packet.transport), (6, &b"tcp!"[..]));
        assert_eq!(packet.ecn, 3);
    }

    #[test]
    fn other_v6_headers_are_errors_with_a_reason() {
        assert_eq!(error_of(&v6(44, &[6; 8])), ParseError::Fragment { version: 6 });
        assert_eq!(error_of(&v6(43, &[6; 8])), ParseError::ExtensionHeader { found: 43 });
        let overrun =
            ParseError::Truncated { what: "IPv6 extension header", needed: 56, available: 8 };
        assert_eq!(error_of(&v6(0, &[6; 8])), overrun);
        let mut short = v6(6, &[0; 20]);
        short.pop();
        let truncated = ParseError::Truncated { what: "IPv6 packet", needed: 60, available: 59 };
        assert_eq!(error_of(&short), truncated);
    }
}
