//! Headers around TCP: each one gives the same tables as no header. What cannot be read is counted.

use std::io::Write;

use anabranch_trace::{AnalyseError, Analysis, Input, analyse};

use super::support::{
    Captured, Packets, analysis, emit, essence, numbers, pcap, run, segments, table,
};

const SCENARIO: &str = "name = \"t\"\nduration = \"20s\"\n\
    [[path]]\nname = \"a\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"20packets\"\nloss = \"1%\"\n\
    [[path]]\nname = \"b\"\nrate = \"4Mbit/s\"\ndelay = \"30ms\"\nlimit = \"60packets\"\n\
    [[connection]]\nworkload = { kind = \"bulk\", size = \"60kB\" }\n";

fn transfer() -> Vec<Captured> {
    transfer_of(SCENARIO)
}

fn transfer_of(scenario: &str) -> Vec<Captured> {
    let mut all = segments(&run(scenario, 1).capture);
    all.retain(|each| each.interface % 2 == 1);
    all
}

/// The analysis of a capture in which `wrap` made each packet.
fn wrapped(link_type: u32, wrap: impl Fn(&[u8]) -> Vec<u8>) -> Analysis {
    let mut capture = Packets::new(link_type);
    transfer().iter().for_each(|each| capture.push(each.time, &wrap(&emit(each))));
    analysis(&capture.bytes)
}

/// An IPv4 header for `bytes` bytes of a protocol, with a checksum that nobody verifies.
fn ipv4(protocol: u8, bytes: usize, id: u16, fragment: u16) -> Vec<u8> {
    let total = (bytes as u16 + 20).to_be_bytes();
    let [id, fragment] = [id, fragment].map(u16::to_be_bytes);
    let start = [0x45, 0, total[0], total[1], id[0], id[1], fragment[0], fragment[1]];
    [&start[..], &[64, protocol, 0, 0], &[192, 0, 2, 1], &[192, 0, 2, 2]].concat()
}

fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let [source, destination] = [source, destination].map(u16::to_be_bytes);
    let length = (payload.len() as u16 + 8).to_be_bytes();
    let datagram = [&source[..], &destination, &length, &[0, 0], payload].concat();
    [ipv4(17, datagram.len(), 0, 0), datagram].concat()
}

fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &ether_type.to_be_bytes(), payload].concat()
}

fn in_ip(protocol: u8, payload: &[u8]) -> Vec<u8> {
    [ipv4(protocol, payload.len(), 0, 0), payload.to_vec()].concat()
}

/// The packet in IPv6, with addresses that nobody looks at.
fn in_ipv6(packet: &[u8]) -> Vec<u8> {
    let length = (packet.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0, length[0], length[1], 4, 64][..], &[0xfd; 32], packet].concat()
}

/// The headers of a data frame with this frame control, and LLC for IPv4.
fn wireless(control: [u8; 2]) -> Vec<u8> {
    [&control[..], &[0; 2], &[2; 18], &[0; 2], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat()
}

fn with(header: &[u8], packet: &[u8]) -> Vec<u8> {
    [header, packet].concat()
}

/// A name, a link type, and the frame for an IP packet.
type Case = (&'static str, u32, fn(&[u8]) -> Vec<u8>);

/// Headers by their definitions, written byte by byte.
const CASES: &[Case] = &[
    ("three VLAN tags", 1, |ip| {
        ethernet(0x88a8, &with(&[0, 1, 0x81, 0, 0, 2, 0x91, 0, 0, 3, 8, 0], ip))
    }),
    ("E-Tag", 1, |ip| ethernet(0x893f, &with(&[0, 0, 0, 1, 0, 0, 8, 0], ip))),
    ("VN-Tag", 1, |ip| ethernet(0x8926, &with(&[0, 0, 0, 1, 8, 0], ip))),
    ("LLC and SNAP", 1, |ip| {
        // Longer ones cannot state their length in this place.
        let length = Some(ip.len() as u16 + 8).filter(|length| *length <= 1500).unwrap_or(0);
        ethernet(length, &with(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], ip))
    }),
    ("MPLS", 1, |ip| ethernet(0x8847, &with(&[0, 1, 0, 64, 0, 2, 1, 64], ip))),
    ("pseudowire over MPLS", 1, |ip| {
        ethernet(0x8847, &with(&[0, 1, 1, 64, 0, 0, 0, 0], &ethernet(0x800, ip)))
    }),
    ("PPPoE", 1, |ip| {
        let length = (ip.len() as u16 + 2).to_be_bytes();
        ethernet(0x8864, &with(&[0x11, 0, 0, 7, length[0], length[1], 0, 0x21], ip))
    }),
    ("PPP", 9, |ip| with(&[0xff, 3, 0, 0x21], ip)),
    ("PPP with a short protocol", 9, |ip| with(&[0x21], ip)),
    ("PPP in HDLC", 50, |ip| with(&[0xff, 3, 0, 0x21], ip)),
    ("Cisco HDLC", 104, |ip| with(&[0x0f, 0, 8, 0], ip)),
    ("Cisco HDLC in a capture of PPP", 9, |ip| with(&[0x0f, 0, 8, 0], ip)),
    ("IP over InfiniBand", 242, |ip| with(&[&[0; 40][..], &[8, 0, 0, 0]].concat(), ip)),
    ("PPPoE without Ethernet", 51, |ip| with(&[0x11, 0, 0, 7, 0, 0, 0, 0x21], ip)),
    ("PPP with a direction", 204, |ip| with(&[1, 0xff, 3, 0, 0x21], ip)),
    ("IP in IP", 101, |ip| in_ip(4, ip)),
    ("GRE", 101, |ip| in_ip(47, &with(&[0, 0, 8, 0], ip))),
    ("GRE with checksum, key and sequence number", 101, |ip| {
        in_ip(47, &with(&[0xb0, 0, 8, 0, 1, 2, 0, 0, 0, 0, 0, 5, 0, 0, 0, 9], ip))
    }),
    ("GRE in UDP", 101, |ip| udp(40_000, 4754, &with(&[0, 0, 8, 0], ip))),
    ("provider backbone bridging", 1, |ip| {
        ethernet(0x88e7, &with(&[0, 0, 0, 9], &ethernet(0x800, ip)))
    }),
    ("PPTP", 101, |ip| {
        in_ip(47, &with(&[0x30, 0x81, 0x88, 0x0b, 0, 9, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0x21], ip))
    }),
    ("ERSPAN II", 101, |ip| {
        let header = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0, 1, 0, 0, 0, 0];
        in_ip(47, &with(&header, &ethernet(0x800, ip)))
    }),
    ("VXLAN", 101, |ip| udp(40_000, 4789, &with(&[8, 0, 0, 0, 0, 0, 42, 0], &ethernet(0x800, ip)))),
    ("Geneve with an option", 101, |ip| {
        let header = [2, 0, 0x65, 0x58, 0, 0, 42, 0, 1, 2, 3, 1, 0, 0, 0, 0];
        udp(40_000, 6081, &with(&header, &ethernet(0x800, ip)))
    }),
    ("GTP-U with a sequence number and an extension", 101, |ip| {
        let header = [0x36, 0xff, 0, 0, 0, 0, 0, 1, 0, 9, 0, 0x85, 1, 0, 1, 0];
        udp(2152, 2152, &with(&header, ip))
    }),
    ("GTP-U", 101, |ip| udp(2152, 2152, &with(&[0x30, 0xff, 0, 0, 0, 0, 0, 1], ip))),
    ("Teredo", 101, |ip| {
        udp(3544, 40_000, &with(&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &in_ipv6(ip)))
    }),
    ("Teredo with an origin", 101, |ip| {
        udp(40_000, 3544, &with(&[0, 0, 1, 2, 3, 4, 5, 6], &in_ipv6(ip)))
    }),
    ("LISP", 101, |ip| udp(40_000, 4341, &with(&[0x80, 0, 0, 1, 0, 0, 0, 1], ip))),
    ("L2TP", 101, |ip| udp(1701, 1701, &with(&[0, 2, 0, 1, 0, 2, 0xff, 3, 0, 0x21], ip))),
    ("L2TP with all its fields", 101, |ip| {
        let header = [0x4a, 2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 1, 9, 0, 0x21];
        udp(40_000, 1701, &with(&header, ip))
    }),
    ("AYIYA", 101, |ip| {
        let header = [&[0x44, 0x52, 0x11, 41, 0, 0, 0, 0][..], &[7; 16], &[8; 20]].concat();
        udp(40_000, 5072, &with(&header, &in_ipv6(ip)))
    }),
    ("CAPWAP with Ethernet", 101, |ip| {
        udp(40_000, 5247, &with(&[0, 0x10, 2, 0, 0, 0, 0, 0], &ethernet(0x800, ip)))
    }),
    ("CAPWAP with IEEE 802.11", 101, |ip| {
        let header = [0, 0x18, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        udp(5247, 40_000, &[&header[..], &wireless([0x08, 1]), ip].concat())
    }),
    ("CAPWAP with swapped bytes", 101, |ip| {
        let header = [0, 0x10, 3, 0, 0, 0, 0, 0];
        udp(5247, 40_000, &[&header[..], &wireless([1, 0x08]), ip].concat())
    }),
    ("LWAPP", 101, |ip| {
        let frame = [&wireless([0x08, 1])[..], ip].concat();
        let length = (frame.len() as u16).to_be_bytes();
        udp(40_000, 12_222, &with(&[0, 0, length[0], length[1], 0, 0], &frame))
    }),
    ("TZSP", 101, |ip| {
        udp(40_000, 37_008, &with(&[1, 0, 0, 1, 0, 10, 1, 7, 1], &ethernet(0x800, ip)))
    }),
    ("Aruba in GRE", 101, |ip| {
        in_ip(47, &[&[0, 0, 0x90, 0][..], &wireless([0x08, 1]), ip].concat())
    }),
    ("WCCP in GRE", 101, |ip| in_ip(47, &with(&[0, 0, 0x88, 0x3e, 0, 0, 1, 2], ip))),
    ("NSH", 1, |ip| ethernet(0x894f, &with(&[0, 2, 1, 1, 0, 0, 1, 255], ip))),
    ("TRILL", 1, |ip| {
        ethernet(0x22f3, &with(&[0, 0x40, 0, 1, 0, 2, 0, 0, 0, 0], &ethernet(0x800, ip)))
    }),
    ("FabricPath", 1, |ip| ethernet(0x8903, &with(&[0, 0x41], &ethernet(0x800, ip)))),
    ("EtherIP", 101, |ip| in_ip(97, &with(&[0x30, 0], &ethernet(0x800, ip)))),
    ("radiotap and QoS data", 127, |ip| {
        let radiotap = [0, 0, 9, 0, 2, 0, 0, 0, 0];
        let frame = [&[0x88, 1, 0, 0][..], &[2; 18], &[0; 2], &[0, 0]].concat();
        [&radiotap[..], &frame, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], ip].concat()
    }),
    ("radiotap with padding", 127, |ip| {
        // Flags say that the header of 26 bytes is padded to 28.
        let radiotap = [0, 0, 9, 0, 2, 0, 0, 0, 0x20];
        let frame = [&[0x88, 1, 0, 0][..], &[2; 18], &[0; 2], &[0, 0], &[0, 0]].concat();
        [&radiotap[..], &frame, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], ip].concat()
    }),
    ("IEEE 802.11 between access points", 105, |ip| {
        let frame = [&[0x08, 3, 0, 0][..], &[2; 18], &[0; 2], &[2; 6]].concat();
        [&frame[..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], ip].concat()
    }),
    ("NFLOG", 239, |ip| {
        let length = (ip.len() as u16 + 4).to_le_bytes();
        let prefix = [2, 0, 0, 0, 8, 0, 1, 0, 8, 0, 0, 0];
        with(&[&prefix[..], &length, &[9, 0]].concat(), ip)
    }),
    ("PKTAP", 258, |ip| {
        let mut header = vec![0; 108];
        header[0] = 108;
        header[4] = 1;
        header[8] = 1;
        with(&header, &ethernet(0x800, ip))
    }),
    ("PPI", 192, |ip| with(&[0, 0, 8, 0, 1, 0, 0, 0], &ethernet(0x800, ip))),
    ("FDDI", 10, |ip| with(&[&[0x50][..], &[2; 12], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat(), ip)),
    ("cooked LLC", 113, |ip| {
        let cooked = [&[0, 0, 0, 1, 0, 6][..], &[2; 8], &[0, 4]].concat();
        [&cooked[..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], ip].concat()
    }),
];

#[test]
fn every_encapsulation_gives_the_same_tables() {
    let expected = essence(&analysis(&pcap(&transfer())));
    assert!(expected.0.len() > 40);
    for (name, link_type, wrap) in CASES {
        let outcome = wrapped(*link_type, wrap);
        assert_eq!(essence(&outcome), expected, "{name}");
        assert_eq!(outcome.notes, [] as [String; 0], "{name}");
    }
}

#[test]
fn padding_beyond_the_length_of_a_frame_is_no_payload() {
    let packets: Vec<_> = transfer().into_iter().filter(|each| emit(each).len() < 1400).collect();
    let expected = essence(&analysis(&pcap(&packets)));
    for has_pppoe in [true, false] {
        let mut capture = Packets::new(1);
        for each in &packets {
            let packet = emit(each);
            // The IP header counts the padding, too.
            let mut padded = with(&packet, &[0; 6]);
            padded[2..4].copy_from_slice(&(packet.len() as u16 + 6).to_be_bytes());
            let length = (packet.len() as u16 + 2).to_be_bytes();
            let frame = if has_pppoe {
                ethernet(0x8864, &with(&[0x11, 0, 0, 7, length[0], length[1], 0, 0x21], &padded))
            } else {
                let llc = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
                ethernet(packet.len() as u16 + 8, &with(&llc, &padded))
            };
            capture.push(each.time, &frame);
        }
        assert_eq!(essence(&analysis(&capture.bytes)), expected, "PPPoE: {has_pppoe}");
    }
}

#[test]
fn fragments_are_reassembled_in_any_order() {
    let all = transfer();
    let expected = essence(&analysis(&pcap(&all)));
    let (mut capture, mut tunnel) = (Packets::new(101), Packets::new(101));
    for (number, each) in (1_u16..).zip(&all) {
        let packet = emit(each);
        let (header, rest) = packet.split_at(20);
        let cut = (rest.len() / 2).next_multiple_of(8);
        let protocol = header[9];
        let piece = |bytes: &[u8], fragment: u16| {
            let mut start = ipv4(protocol, bytes.len(), number, fragment);
            start[12..20].copy_from_slice(&header[12..20]);
            [start, bytes.to_vec()].concat()
        };
        let pieces = [piece(&rest[..cut], 0x2000), piece(&rest[cut..], cut as u16 / 8)];
        let order = if number % 2 == 0 { [0, 1] } else { [1, 0] };
        order.iter().for_each(|at| capture.push(each.time, &pieces[*at]));
        // The outer packets of a tunnel, cut.
        let (first, second) = packet.split_at(packet.len() / 2 / 8 * 8);
        let more = [ipv4(4, first.len(), number, 0x2000), first.to_vec()].concat();
        let last = ipv4(4, second.len(), number, first.len() as u16 / 8);
        tunnel.push(each.time, &more);
        tunnel.push(each.time, &[last, second.to_vec()].concat());
    }
    for capture in [capture.bytes, tunnel.bytes] {
        let outcome = analysis(&capture);
        assert_eq!(essence(&outcome), expected);
        assert_eq!(outcome.notes, [] as [String; 0]);
        assert_eq!(numbers(table(&outcome, "files"), "unread_packets"), [0]);
    }
}

#[test]
fn ipv6_packets_with_extension_headers_fragments_and_jumbograms_are_read() {
    let all = transfer_of(&SCENARIO.replace("delay", "family = \"ipv6\"\ndelay"));
    let expected = essence(&analysis(&pcap(&all)));
    assert!(expected.0.len() > 40);
    let [mut options, mut routed, mut cut, mut jumbo] = [(); 4].map(|()| Packets::new(101));
    for (number, each) in (1_u32..).zip(&all) {
        let packet = emit(each);
        let (header, rest) = packet.split_at(40);
        let around = |next: u8, length: u16, rest: &[u8]| {
            let mut start = header.to_vec();
            start[4..6].copy_from_slice(&length.to_be_bytes());
            start[6] = next;
            [&start[..], rest].concat()
        };
        let len = rest.len() as u16;
        // Destination options with padding; a routing header; fragments; a length in an option.
        let padding = [6, 0, 1, 4, 0, 0, 0, 0];
        options.push(each.time, &around(60, len + 8, &[&padding[..], rest].concat()));
        let routing = [6, 0, 4, 0, 0, 0, 0, 0];
        routed.push(each.time, &around(43, len + 8, &[&routing[..], rest].concat()));
        let at = rest.len() / 2 / 8 * 8;
        let fragment = |offset: usize, more: u8| {
            let offset = (offset as u16).to_be_bytes();
            [&[6, 0, offset[0], offset[1] | more], &number.to_be_bytes()[..]].concat()
        };
        let first = [&fragment(0, 1)[..], &rest[..at]].concat();
        let second = [&fragment(at, 0)[..], &rest[at..]].concat();
        cut.push(each.time, &around(44, first.len() as u16, &first));
        cut.push(each.time, &around(44, second.len() as u16, &second));
        let length = (rest.len() as u32 + 8).to_be_bytes();
        let option = [&[6, 0, 0xc2, 4][..], &length].concat();
        jumbo.push(each.time, &around(0, 0, &[&option[..], rest].concat()));
    }
    for (name, capture) in
        [("options", options), ("routing", routed), ("fragments", cut), ("jumbo", jumbo)]
    {
        let outcome = analysis(&capture.bytes);
        assert_eq!(outcome.notes, [] as [String; 0], "{name}");
        assert_eq!(essence(&outcome), expected, "{name}");
    }
}

#[test]
fn tunnels_that_are_not_read_are_counted() {
    let all = transfer();
    let packet = emit(&all[0]);
    let cases: &[(&str, Vec<u8>)] = &[
        ("encrypted", udp(4500, 4500, &[1; 40])),
        ("encrypted", udp(40_000, 51_820, &with(&[4, 0, 0, 0], &[1; 40]))),
        ("encrypted", udp(40_000, 5247, &with(&[1, 0, 0, 0, 23, 0xfe, 0xfd], &[1; 40]))),
        ("encrypted", udp(40_000, 4755, &with(&[23, 0xfe, 0xfd], &[1; 40]))),
        ("tunnels of other kinds", in_ip(115, &with(&[0, 0, 0, 1], &packet))),
        ("tunnels of other kinds", udp(1701, 1701, &with(&[0, 3, 0, 0, 0, 0, 0, 1], &packet))),
        // A fragment, and a frame that is not one of IEEE 802.11.
        ("tunnels of other kinds", udp(9, 5247, &with(&[0, 0x10, 2, 0x80, 0, 1, 0, 0], &packet))),
        ("tunnels of other kinds", udp(9, 5247, &with(&[0, 0x10, 7, 0, 0, 1, 0, 0], &packet))),
        ("tunnels of other kinds", udp(9, 12_222, &with(&[2, 0, 1, 0, 0, 0], &packet))),
        ("tunnels of other kinds", in_ip(47, &with(&[0, 0, 0xfe, 0xae], &packet))),
    ];
    for (number, (reason, bytes)) in cases.iter().enumerate() {
        let mut capture = Packets::new(101);
        capture.push(all[0].time, &packet);
        capture.push(all[0].time, bytes);
        let outcome = analysis(&capture.bytes);
        let expected = format!("1 {reason} (first: packet 2)");
        assert!(outcome.notes[0].contains(&expected), "{number}: {:?}", outcome.notes);
    }
}

#[test]
fn datagrams_with_the_port_of_a_tunnel_and_other_contents_are_not_tcp() {
    let all = transfer();
    let mut capture = Packets::new(101);
    capture.push(all[0].time, &emit(&all[0]));
    // A keep-alive of CAPWAP, messages of control, IKE, the keep-alive of a NAT, and other contents.
    capture.push(all[0].time, &udp(9, 5247, &[0, 0x10, 2, 8, 0, 0, 0, 0, 0, 1]));
    capture.push(all[0].time, &udp(1701, 1701, &[0xc8, 2, 0, 12, 0, 1, 0, 0, 0, 1, 0, 1]));
    capture.push(all[0].time, &udp(4500, 4500, &[0; 40]));
    capture.push(all[0].time, &udp(4500, 4500, &[0xff]));
    let ports = [1701, 3544, 4341, 4789, 5072, 5247, 6081, 12_222, 37_008];
    for port in ports {
        for byte in [0x00, 0x55, 0xaa, 0xff] {
            capture.push(all[0].time, &udp(53, port, &[byte; 60]));
        }
    }
    let outcome = analysis(&capture.bytes);
    let files = table(&outcome, "files");
    assert_eq!(numbers(files, "unread_packets"), [0], "{:?}", outcome.notes);
    assert_eq!(numbers(files, "other_packets"), [4 + 4 * ports.len() as u64]);
}

#[test]
fn packets_that_cannot_be_read_are_counted_by_reason() {
    let all = transfer();
    let first = emit(&all[0]);
    let mut capture = Packets::new(101);
    capture.push(all[0].time, &first);
    // Encrypted twice, a fragment without its rest, a header that contradicts itself, UDP.
    capture.push(all[0].time, &in_ip(50, &[1; 40]));
    capture.push(all[0].time, &in_ip(50, &[1; 40]));
    capture.push(all[0].time, &[ipv4(6, 40, 7, 0x2000), vec![0; 40]].concat());
    capture.push(all[0].time, &in_ip(6, &[0; 40]));
    capture.push(all[0].time, &udp(53, 53, &[0; 20]));
    let outcome = analysis(&capture.bytes);
    let files = table(&outcome, "files");
    assert_eq!((numbers(files, "packets"), numbers(files, "other_packets")), (vec![6], vec![1]));
    assert_eq!(numbers(files, "unread_packets"), [4]);
    let expected = "capture: 4 packets were not read and not judged: 1 malformed headers (first: \
        packet 5), 1 fragments of incomplete IP packets (first: packet 4), 2 encrypted (first: packet \
        2)";
    assert_eq!(outcome.notes, [expected]);
}

#[test]
fn wireless_frames_that_are_encrypted_or_aggregated_are_named() {
    let protect = |ip: &[u8]| [&[0x08, 0x41, 0, 0][..], &[2; 18], &[0; 2], &[0; 8], ip].concat();
    assert!(wrapped(105, protect).notes[0].contains("encrypted (first: packet 1)"));
    let aggregate = |ip: &[u8]| [&[0x88, 1, 0, 0][..], &[2; 18], &[0; 2], &[0x80, 0], ip].concat();
    assert!(wrapped(105, aggregate).notes[0].contains("aggregated wireless frames"));
}

#[test]
fn a_packet_from_before_segmentation_offload_has_the_length_of_its_frame() {
    let all = transfer();
    let expected = essence(&analysis(&pcap(&all)));
    let mut capture = Packets::new(101);
    for each in &all {
        let mut packet = emit(each);
        packet[2..4].fill(0);
        capture.push_cut(each.time, &packet, 100);
    }
    assert_eq!(essence(&analysis(&capture.bytes)).2, expected.2);
}

#[test]
fn compressed_captures_are_read_as_they_are() {
    let plain = pcap(&transfer());
    let expected = essence(&analysis(&plain));
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let zstandard = |bytes: &[u8]| {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        ruzstd::encoding::compress_to_vec(bytes, level)
    };
    let (first, second) = plain.split_at(plain.len() / 2);
    let skipped = [0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    for compressed in [
        gzip(&plain),
        // Several members or frames, as parallel compressors write them.
        [gzip(first), gzip(second)].concat(),
        zstandard(&plain),
        [&zstandard(first)[..], &skipped, &zstandard(second)].concat(),
        [&skipped[..], &zstandard(&plain)].concat(),
    ] {
        let outcome = analysis(&compressed);
        assert_eq!(essence(&outcome), expected);
        assert_eq!(outcome.damages, [None]);
        let cut = &compressed[..compressed.len() - compressed.len() / 4];
        let damage = match analyse(&[Input::bytes("cut", cut)], &mut |_, _| true) {
            Ok(outcome) => outcome.damages.into_iter().flatten().next(),
            // Not even the first block is complete.
            Err(AnalyseError::NoCapture { damage, .. }) => Some(damage),
            Err(other) => panic!("{other}"),
        };
        assert!(damage.is_some_and(|damage| !damage.what.is_empty()));
    }
}
