//! A host against a TCP peer whose segments the test writes one by one. RFC 9293 §3.8, §3.10.7.

use std::net::IpAddr;

use anabranch_proto::config::{ConnectionConfig, Protocol};
use anabranch_proto::platform::Platform;
use anabranch_proto::{ConnectionError, ConnectionId, Endpoint, Event};
use anabranch_wire::{
    Duration, Flags, Instant, Payload, Piece, Segment, SeqNumber, SocketAddress, TcpHeader,
    TcpOptions,
};

use crate::pair::{ms, on_any_platform};

const HOST: [u8; 4] = [10, 9, 0, 1];
const PEER: [u8; 4] = [10, 0, 0, 1];
const PORT: u16 = 80;
const PEER_ISS: SeqNumber = SeqNumber(5000);
const MSS: u32 = 1000;
const ACK: Flags = Flags::ACK;

/// A host, and the state of its peer.
struct Scene {
    now: Instant,
    host: Endpoint,
    id: Option<ConnectionId>,
    /// Window scale that the peer's SYNs offer.
    scale: Option<u8>,
    /// The host's port, and its initial sequence number after it has sent a SYN.
    port: u16,
    iss: SeqNumber,
    /// SEG.SEQ of the peer's next segment, as an offset from its SYN.
    next: u32,
    events: Vec<Event>,
}

/// The checked parts of a segment: flags, sequence number, acknowledgement number, payload bytes.
type Seen = (Flags, u32, u32, usize);

fn config(platform: Platform) -> ConnectionConfig {
    let mut config = on_any_platform().protocol(Protocol::Tcp);
    config.platform = platform;
    config.tcp.mtu = MSS as u16 + 40;
    config.tcp.timestamps = false;
    config
}

impl Scene {
    fn listening(config: ConnectionConfig) -> Self {
        let mut host = Endpoint::new(vec![IpAddr::from(HOST)], [3; 32]);
        host.listen(PORT, config);
        Scene::of(host, None, PORT)
    }

    fn of(host: Endpoint, id: Option<ConnectionId>, port: u16) -> Self {
        let (now, iss) = (Instant::ZERO + ms(1_000), SeqNumber(0));
        Scene { now, host, id, scale: None, port, iss, next: 0, events: Vec::new() }
    }

    /// The host has sent a SYN.
    fn opening(config: ConnectionConfig) -> Self {
        let mut host = Endpoint::new(vec![IpAddr::from(HOST)], [3; 32]);
        let to = SocketAddress::new(PEER.into(), PORT);
        let id = host.connect(Instant::ZERO, HOST.into(), to, config).expect("right");
        let mut scene = Scene::of(host, Some(id), 0);
        let syn = scene.host.poll_transmit(scene.now).expect("a SYN");
        (scene.port, scene.iss) = (syn.source.port, syn.header.seq);
        scene
    }

    /// An open connection. The peer's SYN offers `window` and has no option except for its MSS.
    fn open(config: ConnectionConfig, window: u16) -> Self {
        let mut scene = Scene::listening(config);
        scene.peer(Flags::SYN, 0, 0, window);
        let answer = scene.says();
        assert_eq!(answer, [(Flags::SYN | ACK, 0, 1, 0)]);
        scene.peer(ACK, 1, 0, window);
        scene.says();
        assert!(scene.events.contains(&Event::Accepted));
        scene
    }

    /// The peer sends `bytes` of the pattern at its next sequence number.
    fn peer(&mut self, flags: Flags, ack: u32, bytes: u32, window: u16) {
        self.peer_at(self.next, flags, ack, bytes, window);
        let numbers =
            u32::from(flags.intersects(Flags::SYN)) + u32::from(flags.contains(Flags::FIN));
        self.next += bytes + numbers;
    }

    fn peer_at(&mut self, seq: u32, flags: Flags, ack: u32, bytes: u32, window: u16) {
        let (seq, ack) = (PEER_ISS + seq, if ack > 0 { self.iss + ack } else { SeqNumber(0) });
        // Data starts after the SYN.
        let start = u64::from(self.next + u32::from(flags.contains(Flags::SYN))).saturating_sub(1);
        let mss = flags.contains(Flags::SYN).then_some(MSS as u16);
        let window_scale = self.scale.filter(|_| flags.contains(Flags::SYN));
        self.host.handle_segment(
            self.now,
            Segment {
                source: SocketAddress::new(PEER.into(), PORT),
                destination: SocketAddress::new(HOST.into(), self.port),
                header: TcpHeader { seq, ack, flags, window, urgent: 0 },
                options: TcpOptions { mss, window_scale, ..TcpOptions::default() },
                payload: Payload::from(Piece::pattern(start, bytes)),
                ecn: 0,
                checksum_ok: true,
            },
        );
        self.take_events();
    }

    fn take_events(&mut self) {
        while let Some((id, event)) = self.host.poll_event() {
            self.id.get_or_insert(id);
            self.events.push(event);
        }
    }

    /// The segments that the host sends now.
    fn says(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        while let Some(segment) = self.host.poll_transmit(self.now) {
            let TcpHeader { seq, ack, flags, .. } = segment.header;
            if flags.contains(Flags::SYN) {
                self.iss = seq;
            }
            let ack = if flags.contains(ACK) { ack.distance_from(PEER_ISS) as u32 } else { 0 };
            let flags = Flags(flags.0 & !Flags::PSH.0);
            seen.push((flags, seq.distance_from(self.iss) as u32, ack, segment.payload.len()));
        }
        self.take_events();
        seen
    }

    /// All segments that the host sends within `time`.
    fn says_within(&mut self, time: Duration) -> Vec<Seen> {
        let end = self.now + time;
        let mut seen = self.says();
        while let Some(at) = self.host.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.host.handle_timeout(self.now);
            seen.extend(self.says());
        }
        self.now = end;
        seen
    }

    fn write(&mut self, bytes: u32) {
        let id = self.id.expect("there is a connection");
        assert_eq!(self.host.send_pattern(id, 0, bytes), Ok(bytes as usize));
    }

    /// Bytes that the application can read.
    fn reads(&mut self) -> usize {
        let id = self.id.expect("there is a connection");
        std::iter::from_fn(|| self.host.recv(id)).map(|payload| payload.len()).sum()
    }
}

fn full(n: u32) -> Seen {
    (ACK, 1 + n * MSS, 1, MSS as usize)
}

#[test]
fn no_new_data_is_sent_beyond_a_window_that_has_shrunk() {
    // RFC 9293 §3.8.6: four of ten segments are acknowledged, and the window closes behind them.
    for platform in [Platform::default(), Platform::rfc()] {
        let mut scene = Scene::open(config(platform), 30_000);
        scene.write(30_000);
        assert_eq!(scene.says(), (0..10).map(full).collect::<Vec<_>>());
        scene.now += ms(50);
        scene.peer(ACK, 4_001, 0, 0);
        assert_eq!(scene.says(), [], "{platform:?}");
        // The window opens again, and the congestion window has room as well.
        scene.now += ms(50);
        scene.peer(ACK, 4_001, 0, 30_000);
        let new = scene.says();
        assert!(new.len() >= 4 && new[0] == full(10), "{platform:?}: {new:?}");
    }
}

#[test]
fn a_peer_that_closes_its_window_on_data_in_flight_is_probed_without_time_limit() {
    // RFC 9293 §3.8.6: "should not time out the connection if data beyond the right window edge is
    // not acknowledged". The peer answers each retransmission of the oldest segment for two hours.
    for platform in [Platform::default(), Platform::rfc()] {
        let mut scene = Scene::open(config(platform), 30_000);
        scene.write(30_000);
        assert_eq!(scene.says().len(), 10);
        scene.now += ms(50);
        scene.peer(ACK, 1, 0, 0);
        let end = scene.now + Duration::from_secs(7_200);
        let mut probes = 0;
        while scene.now < end {
            let seen = scene.says_within(ms(500));
            assert!(seen.iter().all(|segment| *segment == full(0)), "{platform:?}: {seen:?}");
            probes += seen.len();
            if !seen.is_empty() {
                scene.peer(ACK, 1, 0, 0);
            }
        }
        assert!(
            (60..200).contains(&probes),
            "{platform:?}: {probes} probes, at most two minutes apart"
        );
        scene.peer(ACK, 1, 0, 30_000);
        assert_eq!(scene.says_within(ms(1))[0], full(0), "{platform:?}");
        assert!(!scene.events.iter().any(|event| matches!(event, Event::Failed(_))));
    }
}

#[test]
fn a_connection_fails_if_the_peer_falls_silent_after_closing_its_window() {
    // RFC 9293 §3.8.3: a peer that does not answer is dead.
    let mut scene = Scene::open(config(Platform::default()), 30_000);
    scene.write(30_000);
    scene.says();
    scene.peer(ACK, 1, 0, 0);
    scene.says_within(Duration::from_secs(7_200));
    assert!(scene.events.contains(&Event::Failed(ConnectionError::TimedOut)));
}

#[test]
fn duplicate_acknowledgements_of_a_peer_without_sack_allow_new_data() {
    // RFC 5681 §3.2: each of the first two duplicates allows a new segment (step 1), the third
    // retransmits the oldest one (step 3), and further duplicates allow new segments (step 4). Here
    // the rate is that of RFC 6937, with a threshold of five segments.
    for platform in [Platform::default(), Platform::rfc()] {
        let mut scene = Scene::open(config(platform), 60_000);
        scene.write(60_000);
        assert_eq!(scene.says().len(), 10);
        scene.now += ms(50);
        for new in [10, 11] {
            scene.peer(ACK, 1, 0, 60_000);
            assert_eq!(scene.says(), [full(new)], "{platform:?}");
        }
        scene.peer(ACK, 1, 0, 60_000);
        assert_eq!(scene.says(), [full(0)], "{platform:?}");
        let mut new = Vec::new();
        for _ in 0..8 {
            scene.peer(ACK, 1, 0, 60_000);
            new.extend(scene.says());
        }
        assert!((3..=5).contains(&new.len()) && new[0] == full(12), "{platform:?}: {new:?}");
    }
}

#[test]
fn an_acknowledgement_that_changes_the_window_is_no_duplicate() {
    // RFC 5681 §2 (e)
    let mut scene = Scene::open(config(Platform::default()), 60_000);
    scene.write(60_000);
    assert_eq!(scene.says().len(), 10);
    scene.now += ms(50);
    for window in [59_000, 58_000, 57_000, 56_000] {
        scene.peer(ACK, 1, 0, window);
        assert_eq!(scene.says(), []);
    }
}

#[test]
fn duplicates_caused_by_needless_retransmissions_after_a_timeout_start_no_recovery() {
    // RFC 6582 §3.2, §4: all ten segments have arrived, and only their acknowledgements were lost.
    let mut scene = Scene::open(config(Platform::rfc()), 60_000);
    scene.write(10_000);
    assert_eq!(scene.says().len(), 10);
    assert_eq!(scene.says_within(ms(1_100)), [full(0)], "a retransmission on timeout");
    scene.peer(ACK, 10_001, 0, 60_000);
    scene.write(10_000);
    assert!(!scene.says().is_empty());
    for _ in 0..5 {
        scene.peer(ACK, 10_001, 0, 60_000);
        assert!(scene.says().iter().all(|(_, seq, ..)| *seq >= 11_001), "nothing is retransmitted");
    }
}

#[test]
fn the_acknowledgement_that_ends_recovery_after_a_timeout_increases_the_window() {
    // RFC 5681 §3.1: slow start from one segment, with every acknowledgement of new data.
    for platform in [Platform::default(), Platform::rfc()] {
        let mut scene = Scene::open(config(platform), 60_000);
        scene.write(1_000);
        assert_eq!(scene.says(), [full(0)]);
        scene.says_within(ms(1_100));
        scene.peer(ACK, 1_001, 0, 60_000);
        scene.write(10_000);
        assert_eq!(scene.says(), [full(1), full(2)], "{platform:?}");
    }
}

#[test]
fn a_burst_that_filled_the_window_doubles_it_in_linux_but_not_by_the_rfc() {
    // Linux: if the window was full at some time in this round. RFC: only while it is full.
    for (platform, sent) in [(Platform::default(), 20), (Platform::rfc(), 11)] {
        let mut scene = Scene::open(config(platform), 60_000);
        scene.write(10_000);
        assert_eq!(scene.says().len(), 10);
        scene.now += ms(50);
        for n in 1..=10 {
            scene.peer(ACK, 1 + n * MSS, 0, 60_000);
            assert_eq!(scene.says(), []);
        }
        scene.write(40_000);
        assert_eq!(scene.says().len(), sent, "{platform:?}");
    }
}

#[test]
fn an_idle_sender_waits_for_half_of_the_largest_window_or_a_second_at_most() {
    // RFC 9293 §3.8.6.2.1, with room for 30 bytes, and then for 2000 of 4000.
    for platform in [Platform::default(), Platform::rfc()] {
        let mut scene = Scene::open(config(platform), 4_000);
        scene.peer(ACK, 1, 0, 30);
        scene.write(16_000);
        assert_eq!(scene.says_within(ms(99)), [], "{platform:?}");
        let sent = scene.says_within(ms(901));
        assert!(!sent.is_empty() && sent.iter().all(|s| *s == (ACK, 1, 1, 30)), "{platform:?}");
        scene.peer(ACK, 31, 0, 30);
        assert_eq!(scene.says(), [], "{platform:?}");
        scene.peer(ACK, 31, 0, 2_000);
        assert_eq!(scene.says()[0], (ACK, 31, 1, 1_000), "{platform:?}");
    }
    let mut scene = Scene::open(config(Platform::default()), 800);
    scene.write(16_000);
    assert_eq!(scene.says(), [(ACK, 1, 1, 800)], "the whole window, which was never larger");
}

#[test]
fn a_listener_drops_segments_without_syn_ack_or_rst() {
    // RFC 9293 §3.10.7.2. By §3.10.7.1, a closed port answers with RST.
    for flags in [Flags::FIN, Flags::default(), Flags::URG, Flags::FIN | Flags::PSH] {
        for (port, answers) in [(PORT, 0), (PORT + 1, 1)] {
            let mut scene = Scene::listening(config(Platform::default()));
            scene.port = port;
            scene.peer(flags, 0, 0, 1_000);
            assert_eq!(scene.says().len(), answers, "{flags:?} to port {port}");
        }
    }
    let mut scene = Scene::listening(config(Platform::default()));
    scene.peer_at(0, Flags::FIN | ACK, 7, 0, 1_000);
    assert_eq!(scene.says().len(), 1, "an acknowledgement is answered with RST");
}

#[test]
fn a_reset_in_the_handshake_refuses_an_active_open_and_keeps_a_listener() {
    // RFC 9293 §3.10.7.4, SYN-RECEIVED.
    let mut scene = Scene::opening(config(Platform::default()));
    scene.peer(Flags::SYN, 0, 0, 1_000);
    assert_eq!(scene.says(), [(Flags::SYN | ACK, 0, 1, 0)]);
    scene.peer(Flags::RST, 0, 0, 0);
    assert!(scene.events.contains(&Event::Failed(ConnectionError::Refused)));

    let mut scene = Scene::listening(config(Platform::default()));
    scene.peer(Flags::SYN, 0, 0, 1_000);
    assert_eq!(scene.says().len(), 1);
    scene.peer(Flags::RST, 0, 0, 0);
    assert_eq!(
        (scene.says(), scene.events.clone()),
        (vec![], vec![]),
        "the application receives no event"
    );
    assert_eq!(scene.host.connections().count(), 0);
    scene.next = 0;
    scene.peer(Flags::SYN, 0, 0, 1_000);
    assert_eq!(scene.says(), [(Flags::SYN | ACK, 0, 1, 0)]);
}

#[test]
fn repeated_syns_do_not_shorten_a_listeners_handshake_timeout() {
    // RFC 9293 §3.8.3: 127 s with six retransmissions by the listener. The peer receives no answer
    // and repeats its SYN at the same times.
    let mut scene = Scene::listening(config(Platform::default()));
    let mut numbers = Vec::new();
    for pause in [1, 2, 4, 8, 16, 32] {
        scene.next = 0;
        scene.peer(Flags::SYN, 0, 0, 1_000);
        scene.says_within(Duration::from_secs(pause));
        numbers.push(scene.iss);
    }
    assert!(numbers.iter().all(|iss| *iss == numbers[0]), "it remains the same connection");
    scene.peer(ACK, 1, 0, 1_000);
    assert!(scene.events.contains(&Event::Accepted), "{:?}", scene.events);
}

#[test]
fn text_and_fin_of_a_syn_ack_are_accepted() {
    // RFC 9293 §3.10.7.3
    for (flags, ack) in [(Flags::SYN | ACK, 501), (Flags::SYN | Flags::FIN | ACK, 502)] {
        let mut scene = Scene::opening(config(Platform::default()));
        scene.peer(flags, 1, 500, 1_000);
        assert_eq!(scene.says(), [(ACK, 1, ack, 0)]);
        assert!(scene.events.contains(&Event::Connected));
        assert_eq!(scene.reads(), 500);
        assert_eq!(scene.host.is_at_end(scene.id.expect("open")), ack == 502);
    }
}

#[test]
fn a_simultaneous_open_results_in_one_connection() {
    // RFC 9293 §3.5, figure 8.
    let mut scene = Scene::opening(config(Platform::default()));
    scene.peer(Flags::SYN, 0, 0, 1_000);
    assert_eq!(scene.says(), [(Flags::SYN | ACK, 0, 1, 0)]);
    scene.peer_at(0, Flags::SYN | ACK, 1, 0, 1_000);
    assert_eq!(scene.says(), [(ACK, 1, 1, 0)]);
    assert!(scene.events.contains(&Event::Connected));
    scene.peer(ACK, 1, 500, 1_000);
    assert_eq!(scene.reads(), 500);
}

#[test]
fn the_window_of_a_syn_ack_is_not_scaled_in_a_simultaneous_open_either() {
    // RFC 7323 §2.2: 2000 bytes, not 2000 << 14.
    let mut scene = Scene::opening(config(Platform::default()));
    scene.scale = Some(14);
    scene.peer(Flags::SYN, 0, 0, 2_000);
    scene.says();
    scene.peer_at(0, Flags::SYN | ACK, 1, 0, 2_000);
    scene.write(9_000);
    let data: Vec<_> = scene.says().into_iter().filter(|(.., bytes)| *bytes > 0).collect();
    assert_eq!(data, [full(0), full(1)]);
}

#[test]
fn a_reset_in_a_simultaneous_open_needs_the_exact_number() {
    // RFC 5961 §3.2: SYN, ACK and RST one byte below RCV.NXT.
    let mut scene = Scene::opening(config(Platform::default()));
    scene.peer(Flags::SYN, 0, 0, 1_000);
    scene.says();
    scene.peer_at(0, Flags::SYN | Flags::RST | ACK, 1, 0, 1_000);
    assert!(scene.events.is_empty(), "{:?}", scene.events);
}

#[test]
fn repeated_text_of_a_crossing_syn_is_delivered_once() {
    // RFC 9293 §3.10.7.3: the SYN has 500 bytes. The SYN/ACK repeats them with 100 more.
    let mut scene = Scene::opening(config(Platform::default()));
    scene.peer(Flags::SYN, 0, 500, 1_000);
    scene.says();
    scene.next = 0;
    scene.peer_at(0, Flags::SYN | ACK, 1, 600, 1_000);
    scene.says();
    let id = scene.id.expect("open");
    let mut read = 0;
    while let Some(payload) = scene.host.recv(id) {
        assert!(payload.matches_pattern(read), "at {read}");
        read += payload.len() as u64;
    }
    assert_eq!(read, 600);
}

#[test]
fn text_of_a_simultaneous_syn_waits_until_the_connection_is_open() {
    // RFC 9293 §3.10.7.3: the text is queued until the connection is in the ESTABLISHED state.
    let mut scene = Scene::opening(config(Platform::default()));
    scene.peer(Flags::SYN, 0, 500, 1_000);
    assert_eq!(scene.says(), [(Flags::SYN | ACK, 0, 1, 0)]);
    assert_eq!(scene.reads(), 0);
    scene.peer_at(1, ACK, 1, 0, 1_000);
    assert_eq!(scene.says(), [(ACK, 1, 501, 0)]);
    assert_eq!(scene.reads(), 500);
}

#[test]
fn data_received_before_a_reset_can_be_read_in_linux_but_not_by_the_rfc() {
    // RFC 9293 §3.10.7.4 flushes all queues.
    for (platform, left) in [(Platform::default(), 500), (Platform::rfc(), 0)] {
        let mut scene = Scene::open(config(platform), 1_000);
        scene.peer(ACK, 1, 500, 1_000);
        scene.says();
        scene.peer(Flags::RST, 0, 0, 0);
        scene.says();
        assert!(scene.events.contains(&Event::Failed(ConnectionError::Reset)), "{platform:?}");
        assert_eq!(scene.reads(), left, "{platform:?}");
        scene.says();
        assert_eq!(scene.host.connections().count(), 0, "{platform:?}");
    }
}

#[test]
fn an_abort_discards_the_unread_data_of_an_ended_connection() {
    let mut scene = Scene::open(config(Platform::default()), 1_000);
    scene.peer(ACK, 1, 500, 1_000);
    scene.peer(Flags::RST, 0, 0, 0);
    scene.says();
    assert_eq!(scene.host.connections().count(), 1);
    scene.host.abort(scene.id.expect("open"));
    scene.says();
    assert_eq!(scene.host.connections().count(), 0);
}

#[test]
fn time_wait_gives_way_to_a_newer_syn_only() {
    // RFC 9293 §3.6.1 (MAY-2).
    for platform in [Platform::default(), Platform::rfc()] {
        let mut scene = Scene::open(config(platform), 30_000);
        scene.host.close(scene.id.expect("it is open"));
        assert_eq!(scene.says(), [(Flags::FIN | ACK, 1, 1, 0)]);
        scene.peer(Flags::FIN | ACK, 2, 0, 30_000);
        assert_eq!(scene.says(), [(ACK, 2, 2, 0)], "{platform:?}: TIME-WAIT");
        // The connection's own SYN comes again, and then one with data that was received.
        for seq in [0, 1] {
            scene.peer_at(seq, Flags::SYN, 0, 0, 30_000);
            assert_eq!(scene.says(), [(ACK, 2, 2, 0)], "{platform:?}: {seq}");
        }
        let last = scene.iss + 2;
        scene.peer_at(70_000, Flags::SYN, 0, 0, 30_000);
        assert_eq!(scene.says(), [(Flags::SYN | ACK, 0, 70_001, 0)], "{platform:?}");
        assert!(scene.iss.distance_from(last) > 0, "{platform:?}");
        scene.peer_at(70_001, ACK, 1, 0, 30_000);
        scene.says();
        assert_eq!(scene.events.iter().filter(|it| **it == Event::Accepted).count(), 2);
    }
}
