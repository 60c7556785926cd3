//! One subflow against a peer that is written out, segment by segment.

use anabranch_wire::mptcp::{CapableFlags, CapableKeys, Dss, MpCapable, WideOrNarrow};
use anabranch_wire::{CE, Flags, Piece, SackBlock, TcpHeader, TcpOptions, Timestamps};

use super::input::Handled;
use super::*;
use crate::config::{Profile, TcpConfig};
use crate::congestion::NewReno;

const MSS: u64 = 1000;
const ISS: SeqNumber = SeqNumber(1 << 20);
const PEER_ISS: SeqNumber = SeqNumber(u32::MAX - 700);
const PLAIN: DataLevel = DataLevel {
    window: 50_000,
    data_ack: None,
    bare_data_fin: None,
    keys: None,
    checksums: false,
    wide: false,
};
const DSS: DataLevel = DataLevel { data_ack: Some(WideOrNarrow::Narrow(7)), ..PLAIN };

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What a peer offers that can do all that TCP has.
fn all_options() -> TcpOptions {
    TcpOptions {
        mss: Some(1460),
        window_scale: Some(0),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 0, echo: 0 }),
        ..TcpOptions::default()
    }
}

/// A subflow, and the time.
struct Scene {
    now: Instant,
    subflow: Subflow,
    level: DataLevel,
}

impl Scene {
    /// It has neither sent nor received anything. Segments of 1000 octets, no timestamps, and the
    /// RFCs' parameters, but for what `change` changes.
    fn closed(purpose: Purpose, state: State, change: impl FnOnce(&mut TcpConfig)) -> Scene {
        let mut tcp = TcpConfig { mtu: 1040, timestamps: false, ..Profile::Rfc.tcp() };
        change(&mut tcp);
        let congestion_control = Arc::new(|start: &_| Box::new(NewReno::new(start)) as Box<_>);
        let config = ConnectionConfig { tcp, congestion_control, ..ConnectionConfig::default() };
        let open = Open {
            id: SubflowId { slot: 0, generation: 0 },
            purpose,
            local: Endpoint::new([10, 0, 0, 1].into(), 1000),
            remote: Endpoint::new([10, 9, 0, 1].into(), 80),
            local_address_id: 0,
            remote_address_id: 0,
            iss: ISS,
            timestamp_offset: 0,
            receive_scale: 0,
            config: &Arc::new(config),
        };
        let now = Instant::ZERO + ms(1000);
        Scene { now, subflow: Subflow::new(open, state), level: PLAIN }
    }

    /// It sent a SYN, and 100 ms later the answer came, with these flags too and `options`.
    fn joining(
        purpose: Purpose,
        flags: Flags,
        options: TcpOptions,
        change: impl FnOnce(&mut TcpConfig),
    ) -> Scene {
        let mut scene = Scene::closed(purpose, State::SynSent, change);
        assert_eq!(scene.sends().len(), 1);
        scene.now += ms(100);
        let mut answer = scene.segment(0, 1, 0);
        answer.header.seq = PEER_ISS;
        answer.header.flags = Flags::SYN | Flags::ACK | flags;
        answer.options = options;
        assert!(scene.takes(answer).established);
        scene.subflow.set_carries(Carries::Nothing, &[]);
        assert!(scene.replies().is_some());
        scene
    }

    fn open_to(options: TcpOptions, change: impl FnOnce(&mut TcpConfig)) -> Scene {
        Scene::joining(Purpose::Initial, Flags::default(), options, change)
    }

    /// Open for plain TCP; the peer knows selective acknowledgements.
    fn open() -> Scene {
        Scene::open_to(TcpOptions { timestamps: None, ..all_options() }, |_| {})
    }

    /// Open, with timestamps.
    fn stamping() -> Scene {
        Scene::open_to(all_options(), |tcp| (tcp.mtu, tcp.timestamps) = (1052, true))
    }

    /// From the peer: `distance` octets beyond what it has sent, acknowledging up to offset `ack`.
    fn segment(&self, distance: i64, ack: u64, octets: u32) -> Segment {
        let next = self.subflow.receiver.nxt() as i64 + distance;
        let header = TcpHeader {
            seq: PEER_ISS + next as u32,
            ack: ISS + ack as u32,
            flags: Flags::ACK,
            window: 50_000,
            urgent: 0,
        };
        Segment {
            source: self.subflow.remote,
            destination: self.subflow.local,
            header,
            options: TcpOptions::default(),
            payload: Payload::from(Piece::pattern(next as u64, octets)),
            ecn: 0,
            checksum_ok: true,
        }
    }

    /// An acknowledgement up to offset `ack`, and of these ranges.
    fn ack(&self, ack: u64, ranges: &[(u64, u64)]) -> Segment {
        let mut segment = self.segment(0, ack, 0);
        for (start, end) in ranges {
            let (start, end) = (ISS + *start as u32, ISS + *end as u32);
            segment.options.sack.push(SackBlock { start, end });
        }
        segment
    }

    /// Full segments, and a round trip passes.
    fn write_and_wait(&mut self, segments: u64) {
        self.write(segments);
        self.now += ms(100);
    }

    fn takes_within(&mut self, mut segment: Segment, window: u64) -> Handled {
        self.subflow.handle_segment(self.now, &mut segment, &Arrived { window, views: &[] })
    }

    fn takes(&mut self, segment: Segment) -> Handled {
        self.takes_within(segment, 50_000)
    }

    /// It sends `segments` full segments of new data.
    fn write(&mut self, segments: u64) {
        for _ in 0..segments {
            self.write_octets(MSS as u32, None);
        }
    }

    fn write_octets(&mut self, octets: u32, cargo: Option<Cargo>) -> Segment {
        let payload = Payload::from(Piece::pattern(0, octets));
        self.subflow.send_data(self.now, &self.level, payload, cargo, false, &[])
    }

    /// What it sends without being given new data, but for acknowledgements.
    fn sends(&mut self) -> Vec<Segment> {
        let Scene { now, subflow, level } = self;
        std::iter::from_fn(|| subflow.poll_transmit(*now, level)).collect()
    }

    /// The acknowledgement or FIN that it sends.
    fn replies(&mut self) -> Option<Segment> {
        self.subflow.poll_acknowledge(self.now, &self.level)
    }

    /// Until the next timer, which expires.
    fn waits(&mut self) {
        self.now = self.subflow.poll_timeout();
        assert!(self.now < Instant::FAR_FUTURE);
        self.subflow.handle_timeout(self.now, &[]);
    }

    fn timer(&self, timer: Timer) -> Option<Duration> {
        self.subflow.timers.get(timer).map(|at| at.saturating_since(self.now))
    }

    fn cwnd(&self) -> u64 {
        self.subflow.view().cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.subflow.view().ssthresh
    }
}

// What arrives.

#[test]
fn a_segment_counts_if_some_of_it_lies_in_the_window() {
    // RFC 9293 §3.10.7.4: the table, and that a closed window still admits acknowledgements.
    let (ack, fin) = (Flags::ACK, Flags::ACK | Flags::FIN);
    for (window, distance, octets, flags, counts) in [
        (1000, -1, 0, ack, false),
        (1000, 0, 0, ack, true),
        (1000, 999, 0, ack, true),
        (1000, 1000, 0, ack, false),
        (1000, -100, 100, ack, false),
        (1000, -99, 100, ack, true),
        (1000, 999, 100, ack, true),
        (1000, 1000, 100, ack, false),
        (1000, -101, 100, fin, false),
        (1000, -100, 100, fin, true),
        (0, 0, 0, ack, true),
        (0, 1, 0, ack, false),
        (0, -1, 0, ack, false),
    ] {
        let mut scene = Scene::open();
        scene.takes(scene.segment(0, 1, 500));
        scene.write(1);
        let mut segment = scene.segment(distance, 1001, octets);
        segment.header.flags = flags;
        let handled = scene.takes_within(segment, window);
        let case = format!("{octets} octets at {distance} in {window}, {flags:?}");
        assert_eq!((handled.acceptable, scene.subflow.una() == 1001), (counts, counts), "{case}");
    }
}

#[test]
fn only_what_is_new_of_a_segment_becomes_part_of_the_stream() {
    let mut scene = Scene::open();
    for (distance, octets) in [(0, 500), (-250, 500), (-750, 1000)] {
        scene.takes(scene.segment(distance, 1, octets));
    }
    let mut next = 1;
    while let Some((start, payload)) = scene.subflow.poll_received() {
        assert!(start == next && payload.matches_pattern(start), "{start}");
        next += payload.len() as u64;
    }
    assert_eq!((next, scene.subflow.totals.octets_received), (1001, 1000));
}

#[test]
fn a_reset_outside_of_the_window_is_not_even_challenged() {
    // RFC 5961 §3.2
    for (distance, challenges) in [(-1, 0), (1, 1), (999, 1), (1000, 0)] {
        let mut scene = Scene::open();
        let mut reset = scene.segment(distance, 1, 0);
        reset.header.flags = Flags::RST;
        scene.takes_within(reset, 1000);
        assert_eq!(scene.subflow.totals.challenge_acks, challenges, "at {distance}");
        assert_eq!(scene.subflow.state(), State::Established);
    }
}

#[test]
fn acknowledgements_count_from_a_window_back_to_all_that_was_sent() {
    // RFC 5961 §5.2: MAX.SND.WND is 65535 octets at least here.
    let mut scene = Scene::open();
    scene.write(70);
    for (ack, counts) in
        [(70_002, false), (70_001, true), (70_001 - 65_536, false), (70_001 - 65_535, true)]
    {
        let handled = scene.takes(scene.ack(ack, &[]));
        assert_eq!(handled.acceptable, counts, "{ack}");
    }
    assert_eq!((scene.subflow.una(), scene.subflow.totals.challenge_acks), (70_001, 2));
}

#[test]
fn timestamps_that_were_not_agreed_on_mean_nothing() {
    // RFC 7323 §3.2: the segment is taken as if it had none.
    let mut scene = Scene::open_to(all_options(), |_| {});
    let mut old = scene.segment(0, 1, 100);
    old.options.timestamps = Some(Timestamps { value: u32::MAX, echo: 0 });
    assert!(scene.takes(old).acceptable);
    let reply = scene.write_octets(100, None);
    assert_eq!((scene.subflow.receive_next(), reply.options.timestamps), (101, None));
}

#[test]
fn selective_acknowledgements_are_not_sent_to_who_does_not_want_them() {
    // RFC 2018 §2: both hosts have to.
    for (wanted, offered) in [(true, true), (true, false), (false, true), (false, false)] {
        let options = TcpOptions { sack_permitted: offered, ..all_options() };
        let mut scene = Scene::open_to(options, |tcp| tcp.sack = wanted);
        scene.takes(scene.segment(500, 1, 500));
        let reply = scene.replies().expect("an acknowledgement is due");
        assert_eq!(reply.options.sack.is_empty(), !(wanted && offered), "{wanted} {offered}");
    }
}

#[test]
fn a_closed_subflow_takes_nothing_and_wants_nothing() {
    let mut scene = Scene::open();
    scene.write(1);
    scene.subflow.abandon(SubflowEnd::TimedOut);
    assert_eq!(
        (scene.subflow.state(), scene.subflow.end()),
        (State::Closed, Some(SubflowEnd::TimedOut))
    );
    assert_eq!(scene.subflow.poll_timeout(), Instant::FAR_FUTURE);
    assert_eq!(scene.takes(scene.ack(1001, &[])), Handled::default());
}

#[test]
fn what_arrives_is_counted() {
    let (both, ecn) = (all_options(), |tcp: &mut TcpConfig| tcp.ecn = true);
    let mut scene = Scene::joining(Purpose::Initial, Flags::ECE, both, ecn);
    assert!(!scene.subflow.has_carried_data() && !scene.subflow.has_outstanding());
    for distance in [0, 500] {
        let mut marked = scene.segment(distance, 1, 500);
        marked.ecn = CE;
        assert_eq!(scene.subflow.end_of(&marked), 501 + 2 * distance as u64);
        scene.takes(marked);
    }
    assert!(scene.subflow.has_carried_data());
    let totals = scene.subflow.totals;
    assert_eq!((totals.segments_received, totals.octets_received), (3, 500));
    assert_eq!((totals.ce_received, scene.subflow.out_of_order_octets()), (2, 500));
    let mut fin = scene.segment(0, 1, 500);
    fin.header.flags |= Flags::FIN;
    scene.takes(fin);
    assert!(!scene.subflow.peer_finished(), "the stream does not end before what follows it");
}

// Acknowledgements and times.

#[test]
fn a_round_trip_is_measured_from_what_was_sent_once() {
    // RFC 6298 §2.3, §3: SRTT ← 7/8 · 100 ms + 1/8 · 60 ms; what was sent again gives no sample.
    let mut scene = Scene::open();
    scene.write(1);
    scene.now += ms(60);
    scene.takes(scene.ack(1001, &[]));
    assert_eq!(scene.subflow.view().srtt, Some(ms(95)));
    scene.write(1);
    scene.waits();
    assert_eq!(
        scene.subflow.send_tail_probe(scene.now, &PLAIN).map(|s| s.payload.len()),
        Some(1000)
    );
    scene.now += ms(300);
    scene.takes(scene.ack(2001, &[]));
    assert_eq!(scene.subflow.view().srtt, Some(ms(95)));
}

#[test]
fn an_echo_measures_what_was_sent_again_unless_it_answers_a_duplicate() {
    // RFC 7323 §4.1; RFC 2883 §4: with a report, the timestamp is that of the other copy.
    for (reports, expected) in [(false, ms(95)), (true, ms(100))] {
        let mut scene = Scene::stamping();
        scene.write(1);
        scene.waits();
        scene.subflow.send_tail_probe(scene.now, &PLAIN);
        let echo = scene.now.as_millis() as u32;
        scene.now += ms(60);
        let ranges: &[_] = if reports { &[(1, 1001)] } else { &[] };
        let mut ack = scene.ack(1001, ranges);
        ack.options.timestamps = Some(Timestamps { value: 9, echo });
        scene.takes(ack);
        assert_eq!(scene.subflow.view().srtt, Some(expected));
    }
}

#[test]
fn a_one_way_delay_needs_to_know_which_copy_arrived() {
    // RFC 8382 §3.2.1
    for (again, delay) in [(false, Some(-1100 + 77)), (true, None)] {
        let mut scene = Scene::stamping();
        scene.write(1);
        if again {
            scene.waits();
            scene.subflow.send_tail_probe(scene.now, &PLAIN);
            scene.write(1);
        }
        let mut ack = scene.ack(scene.subflow.send_next(), &[]);
        ack.options.timestamps = Some(Timestamps { value: 77, echo: 0 });
        scene.takes(ack);
        assert_eq!(scene.subflow.one_way_delay, delay);
    }
}

#[test]
fn a_receiver_measures_with_each_echo_once_and_not_with_short_segments() {
    let mut scene = Scene::stamping();
    for (echo_age, octets, measured) in
        [(40, 400, None), (50, 600, Some(50)), (90, 1000, Some(50)), (58, 1000, Some(51))]
    {
        scene.now += ms(40);
        let mut data = scene.segment(0, 1, octets);
        let echo = (scene.now.as_millis() - echo_age) as u32;
        data.options.timestamps = Some(Timestamps { value: 9, echo });
        scene.takes(data);
        assert_eq!(scene.subflow.view().receive_rtt, measured.map(ms), "{echo_age} {octets}");
    }
}

#[test]
fn a_delayed_acknowledgement_waits_from_the_first_segment_on() {
    // RFC 9293 §3.8.6.3
    let mut scene = Scene::open();
    for _ in 0..2 {
        scene.takes(scene.segment(0, 1, 1000));
    }
    assert!(scene.replies().is_some(), "the second full-sized segment");
    assert_eq!(scene.subflow.poll_timeout(), Instant::FAR_FUTURE);
    for left in [200, 100] {
        scene.takes(scene.segment(0, 1, 100));
        assert_eq!((scene.replies(), scene.timer(Timer::DelayedAck)), (None, Some(ms(left))));
        scene.now += ms(100);
    }
    scene.subflow.handle_timeout(scene.now, &[]);
    assert!(scene.replies().is_some());
}

#[test]
fn the_retransmission_timer_is_restarted_by_what_arrived_and_by_nothing_else() {
    // RFC 6298 §5.3; here selective acknowledgements count too.
    let mut scene = Scene::open();
    assert_eq!(scene.subflow.poll_timeout(), Instant::FAR_FUTURE);
    scene.write(5);
    let begin = scene.subflow.rto();
    scene.now += ms(50);
    scene.takes(scene.ack(1, &[]));
    assert_eq!(scene.timer(Timer::Retransmission).map(|left| left + ms(50)), Some(begin));
    for (ack, ranges) in [(1, &[(3001, 4001)]), (1001, &[(3001, 4001)])] {
        scene.now += ms(1);
        scene.takes(scene.ack(ack, ranges));
        assert_eq!(scene.timer(Timer::Retransmission), Some(scene.subflow.rto()), "{ack}");
    }
    scene.takes(scene.ack(5001, &[]));
    assert_eq!(scene.subflow.poll_timeout(), Instant::FAR_FUTURE);
}

#[test]
fn the_user_timeout_counts_from_the_last_progress() {
    // RFC 9293 §3.8.3
    let options = TcpOptions { timestamps: None, ..all_options() };
    let mut scene = Scene::open_to(options, |tcp| tcp.user_timeout = Some(ms(5000)));
    scene.write(2);
    assert_eq!(scene.timer(Timer::UserTimeout), Some(ms(5000)));
    scene.now += ms(100);
    scene.takes(scene.ack(1001, &[]));
    assert_eq!(scene.timer(Timer::UserTimeout), Some(ms(5000)));
}

#[test]
fn selective_acknowledgements_of_anything_but_what_is_outstanding_say_nothing() {
    // RFC 2018 §5.1, RFC 2883 §4
    let mut scene = Scene::open();
    scene.write_and_wait(6);
    scene.takes(scene.ack(1001, &[]));
    for (block, in_flight) in [
        ((1, 3001), 5000),
        ((1, 1001), 5000),
        ((4001, 7001), 5000),
        ((3001, 3001), 5000),
        ((5001, 6001), 4000),
    ] {
        scene.takes(scene.ack(1001, &[block]));
        assert_eq!(scene.subflow.view().bytes_in_flight, in_flight, "{block:?}");
    }
}

// Loss.

#[test]
fn a_reduction_is_undone_when_the_repeat_is_reported_as_a_duplicate() {
    // RFC 3708, RFC 2883 §4: reports are ranges below the acknowledgement, or within the second.
    for (report, undone) in [
        (&[(1, 1001)][..], 1),
        (&[(1, 1001), (1, 5001)], 1),
        (&[(500, 500)], 0),
        (&[(9001, 10_001)], 0),
    ] {
        let mut scene = Scene::open();
        scene.write_and_wait(10);
        scene.takes(scene.ack(1, &[(1001, 4001)]));
        assert_eq!((scene.sends().len(), scene.cwnd()), (1, 5000));
        scene.takes(scene.ack(4001, &[]));
        scene.takes(scene.ack(5001, report));
        assert_eq!(scene.subflow.totals.undone, undone, "{report:?}");
        assert_eq!(scene.cwnd() >= 10_000, undone > 0);
    }
}

#[test]
fn fast_recovery_sends_no_faster_than_data_arrives() {
    // RFC 6937 §3: 3 segments have arrived, and one is added to catch up.
    let mut scene = Scene::open();
    scene.write_and_wait(10);
    scene.takes(scene.ack(1, &[(7001, 10_001)]));
    assert_eq!(scene.sends().len(), 4);
}

#[test]
fn half_of_what_was_outstanding_is_left_after_a_loss() {
    // RFC 5681 §3.1: not of a window that was not in use.
    let mut scene = Scene::open();
    scene.write_and_wait(10);
    scene.takes(scene.ack(10_001, &[]));
    assert_eq!(scene.cwnd(), 20_000);
    scene.write_and_wait(6);
    scene.takes(scene.ack(10_001, &[(11_001, 14_001)]));
    assert_eq!((scene.cwnd(), scene.ssthresh()), (3000, 3000));
}

#[test]
fn a_timeout_halves_once_and_begins_with_one_segment() {
    // RFC 5681 §3.1; RFC 6298 §5.5
    let mut scene = Scene::open_to(all_options(), |tcp| tcp.sack = false);
    scene.write_and_wait(10);
    scene.takes(scene.ack(10_001, &[]));
    scene.write_and_wait(6);
    for _ in 0..2 {
        scene.waits();
        assert_eq!((scene.cwnd(), scene.ssthresh(), scene.sends().len()), (1000, 3000, 1));
    }
    scene.takes(scene.ack(11_001, &[]));
    assert_eq!((scene.cwnd(), scene.sends().len()), (2000, 2));
}

#[test]
fn a_loss_that_a_probe_repaired_costs_half_of_the_window() {
    // RFC 8985 §7.4.2; unless an acknowledgement of nothing new says that both copies arrived.
    for (needless, reduced) in [(false, true), (true, false)] {
        let mut scene = Scene::open();
        scene.write_and_wait(3);
        scene.takes(scene.ack(2001, &[]));
        scene.waits();
        assert!(scene.subflow.wants_tail_probe());
        scene.subflow.send_tail_probe(scene.now, &PLAIN);
        scene.takes(scene.ack(3001, &[]));
        if needless {
            scene.takes(scene.ack(3001, &[]));
        }
        assert_eq!(scene.ssthresh(), u64::MAX, "it may have been the original");
        scene.write_and_wait(1);
        scene.takes(scene.ack(4001, &[]));
        assert_eq!(scene.ssthresh() < u64::MAX, reduced);
    }
}

#[test]
fn the_window_grows_only_while_it_is_in_use() {
    // RFC 7661 §4.1: all of it; or half in slow start, as in Linux.
    for (loose, segments, grows) in
        [(false, 9, false), (false, 10, true), (true, 5, false), (true, 6, true)]
    {
        let options = TcpOptions { timestamps: None, ..all_options() };
        let mut scene = Scene::open_to(options, |tcp| tcp.loose_cwnd_limited = loose);
        scene.write_and_wait(segments);
        scene.takes(scene.ack(scene.subflow.send_next(), &[]));
        assert_eq!(scene.cwnd() > 10_000, grows, "{loose} {segments}");
    }
}

#[test]
fn the_window_restarts_after_more_than_a_timeout_without_data() {
    // RFC 5681 §4.1
    for (restart, octets, beyond, left) in [
        (true, 10_000, 0, 20_000),
        (true, 10_000, 9000, 10_000),
        (false, 10_000, 9000, 20_000),
        (true, 0, 9000, 10_000),
    ] {
        let options = TcpOptions { timestamps: None, ..all_options() };
        let mut scene = Scene::open_to(options, |tcp| tcp.idle_restart = restart);
        scene.write_and_wait(octets / MSS);
        scene.takes(scene.ack(1 + octets, &[]));
        let before = scene.cwnd();
        scene.now = scene.subflow.last_data_sent + scene.subflow.rto() + ms(beyond);
        scene.write_and_wait(1);
        assert_eq!(scene.cwnd(), left, "{restart} {octets} {beyond}");
        assert_eq!(scene.subflow.totals.idle_restarts, u32::from(left < before));
    }
}

#[test]
fn a_window_of_one_segment_waits_for_the_timer_after_a_mark_and_then_goes_on() {
    // RFC 3168 §6.1.2
    let options = TcpOptions { timestamps: None, ..all_options() };
    let change = |tcp: &mut TcpConfig| (tcp.ecn, tcp.initial_window_segments) = (true, 1);
    let mut scene = Scene::joining(Purpose::Join, Flags::ECE, options, change);
    scene.write_and_wait(1);
    let mut echo = scene.ack(1001, &[]);
    echo.header.flags |= Flags::ECE;
    scene.takes(echo);
    assert_eq!(scene.subflow.view().room, 0);
    scene.waits();
    assert_eq!((scene.subflow.view().room, scene.subflow.timeouts_in_a_row()), (MSS, 0));
    assert_eq!((scene.replies(), scene.subflow.poll_timeout()), (None, Instant::FAR_FUTURE));
}

#[test]
fn a_remedy_halves_the_window() {
    let mut scene = Scene::open();
    scene.subflow.penalise(ExternalReduction::HalveBoth);
    assert_eq!((scene.cwnd(), scene.ssthresh()), (5000, 5000));
}

// The beginning and the end.

#[test]
fn a_subflow_is_given_up_after_as_many_repeats_as_configured() {
    // RFC 9293 §3.8.3
    let mut scene = Scene::open_to(all_options(), |tcp| (tcp.retries, tcp.sack) = (3, false));
    scene.write(1);
    let mut repeats = 0;
    while scene.subflow.end().is_none() {
        scene.waits();
        repeats += scene.sends().len();
    }
    let totals = scene.subflow.totals;
    assert_eq!((repeats, totals.timeouts, totals.expiries), (3, 3, 4));
    assert_eq!(scene.subflow.end(), Some(SubflowEnd::TimedOut));
}

#[test]
fn syns_are_repeated_with_their_multipath_options_but_for_the_last_that_open_a_connection() {
    // RFC 8684 §3.1, §3.2, §6: a listener's answers and joins keep them.
    for (purpose, state, with_options) in [
        (Purpose::Initial, State::SynSent, 3),
        (Purpose::Initial, State::SynReceived, 7),
        (Purpose::Join, State::SynSent, 7),
        (Purpose::Join, State::SynReceived, 7),
    ] {
        let mut scene = Scene::closed(purpose, state, |_| {});
        scene.subflow.handshake_options = Some(Box::default());
        let mut syns = scene.sends();
        while scene.subflow.end().is_none() {
            scene.waits();
            syns.extend(scene.sends());
        }
        let carrying = syns.iter().filter(|syn| syn.options.control.is_some()).count();
        assert_eq!((syns.len(), carrying), (7, with_options), "{purpose:?} {state:?}");
        let totals = scene.subflow.totals;
        assert_eq!((totals.expiries, totals.syn_retransmissions), (7, 6));
    }
}

#[test]
fn the_third_acknowledgement_of_a_join_is_repeated_as_often_as_a_syn() {
    // RFC 8684 §3.2
    let mut scene = Scene::joining(Purpose::Join, Flags::default(), all_options(), |_| {});
    let mut repeats = 0;
    while scene.subflow.end().is_none() {
        scene.waits();
        repeats += usize::from(scene.replies().is_some());
    }
    assert_eq!((repeats, scene.subflow.end()), (6, Some(SubflowEnd::TimedOut)));
}

#[test]
fn a_handshake_whose_begin_is_forgotten_gives_no_sample() {
    // RFC 6298 §2.2; RFC 4987 §3.6: the SYN/ACK was a cookie.
    for (forgotten, srtt) in [(false, Some(ms(100))), (true, None)] {
        let mut scene = Scene::closed(Purpose::Initial, State::SynReceived, |_| {});
        let mut syn = scene.segment(-1, 0, 0);
        syn.header.flags = Flags::SYN;
        scene.subflow.take_syn(scene.now, &syn);
        assert_eq!(scene.sends().len(), 1);
        if forgotten {
            scene.subflow.take_no_sample_of_handshake();
        }
        scene.now += ms(100);
        assert!(scene.takes(scene.ack(1, &[])).established);
        assert_eq!(scene.subflow.view().srtt, srtt);
    }
}

#[test]
fn the_host_that_closes_last_does_not_linger() {
    // RFC 9293 §3.6
    let mut scene = Scene::open();
    let mut fin = scene.segment(0, 1, 0);
    fin.header.flags |= Flags::FIN;
    scene.takes(fin);
    assert!(scene.subflow.peer_finished());
    scene.subflow.finish(true);
    assert_eq!(scene.subflow.view().usability, Usability::Closed);
    assert!(scene.replies().is_some_and(|segment| segment.header.flags.contains(Flags::FIN)));
    scene.takes(scene.ack(2, &[]));
    assert_eq!(scene.subflow.end(), Some(SubflowEnd::Finished));
    assert!(!scene.subflow.has_carried_data(), "a FIN is no data");
}

#[test]
fn a_fin_is_not_waited_for_without_end_if_nothing_else_can_come() {
    // RFC 9293 §3.6.1: here for as long as in TIME-WAIT.
    let mut scene = Scene::open();
    scene.subflow.finish(true);
    assert!(scene.replies().is_some());
    scene.takes(scene.ack(2, &[]));
    assert_eq!(scene.subflow.state(), State::FinWait2);
    assert_eq!(scene.timer(Timer::TimeWait), Some(Duration::from_secs(60)));
}

#[test]
fn a_path_in_doubt_has_two_timeouts_to_answer() {
    // RFC 8684 §3.4.2
    let mut scene = Scene::closed(Purpose::Initial, State::SynSent, |_| {});
    scene.subflow.doubt(scene.now);
    assert_eq!(scene.timer(Timer::Doubt), None);
    let mut scene = Scene::open();
    let patience = scene.subflow.rto() * 2;
    scene.subflow.doubt(scene.now);
    scene.now += ms(50);
    scene.subflow.doubt(scene.now);
    assert_eq!(scene.timer(Timer::Doubt).map(|left| left + ms(50)), Some(patience));
}

// Options of Multipath TCP.

fn signalled(scene: &mut Scene) -> bool {
    let control = scene.replies().and_then(|segment| segment.options.control);
    control.is_some_and(|control| control.prio.is_some())
}

#[test]
fn a_priority_is_told_again_if_data_comes_later_than_two_round_trips() {
    // RFC 8684 §3.3.8
    let mut scene = Scene::open();
    scene.subflow.confirmed = true;
    scene.subflow.signal_priority(true);
    assert!(signalled(&mut scene));
    for (after, again) in [(150, false), (50, false), (1, true)] {
        scene.now += ms(after);
        scene.takes(scene.segment(0, 1, 100));
        assert_eq!(signalled(&mut scene), again, "{after}");
    }
}

#[test]
fn what_is_to_be_told_waits_for_the_keys_and_is_forgotten_with_multipath_tcp() {
    // RFC 8684 §3.1, §3.7
    let mut scene = Scene::open();
    scene.subflow.confirmed = true;
    scene.subflow.signal_priority(true);
    let keys = CapableKeys::Both { sender: 1, receiver: 2 };
    let keys = MpCapable { version: 1, flags: CapableFlags::PLAIN, keys };
    scene.level.keys = Some(keys);
    let control = scene.replies().and_then(|segment| segment.options.control).expect("options");
    assert_eq!((control.capable, control.prio), (Some(keys), None));
    scene.level.keys = None;
    assert!(signalled(&mut scene));
    scene.subflow.signal_priority(true);
    scene.subflow.forget_signals();
    scene.subflow.demand_ack();
    assert!(!signalled(&mut scene) && !scene.subflow.priority.signalled);
}

#[test]
fn the_end_of_multipath_tcp_is_announced_until_it_was_heard() {
    // RFC 8684 §3.7
    let mut scene = Scene::open();
    assert!(!scene.subflow.announces_infinite());
    let mapping = Mapping {
        data_seq: WideOrNarrow::Narrow(1),
        subflow_seq: SeqNumber(1),
        len: 0,
        checksum: None,
    };
    scene.subflow.announce_infinite(mapping);
    assert!(scene.subflow.announces_infinite());
    let sent = scene.write_octets(100, None);
    assert_eq!(sent.options.dss.and_then(|dss| dss.mapping), Some(mapping));
    scene.takes(scene.ack(101, &[]));
    assert!(scene.subflow.end_announcement() && !scene.subflow.announces_infinite());
}

#[test]
fn a_reset_acknowledges_data_once_the_join_is_complete() {
    // RFC 8684 §3.2
    for confirmed in [false, true] {
        let mut scene = Scene::joining(Purpose::Join, Flags::default(), all_options(), |_| {});
        scene.level = DSS;
        scene.subflow.confirmed = confirmed;
        scene.subflow.reset(None);
        let sent = scene.sends();
        assert_eq!(sent[0].header.flags, Flags::RST | Flags::ACK);
        assert_eq!(sent[0].options.dss.is_some(), confirmed);
    }
}

#[test]
fn a_repeat_whose_numbers_have_become_wide_fits_the_packet() {
    // RFC 8684 §3.3.1: without DATA_ACK, if there is no other way.
    let wide = WideOrNarrow::Wide(DataSeq(7));
    for (level, growth) in
        [(DataLevel { wide: true, ..DSS }, 4), (DataLevel { data_ack: Some(wide), ..DSS }, 4)]
    {
        for (short_by, acknowledges) in [(0, false), (growth - 1, false), (growth, true)] {
            let mut scene = Scene::open();
            scene.level = DSS;
            scene.subflow.confirmed = true;
            let carries = Carries::Mapping { checksum: false, wide: false, wide_ack: false };
            scene.subflow.set_carries(carries, &[]);
            let octets = scene.subflow.mss() - short_by;
            scene.write_octets(octets, Some(Cargo::new(DataSeq(1))));
            scene.waits();
            scene.level = level;
            let again = scene.subflow.send_tail_probe(scene.now, &scene.level).expect("a probe");
            assert!(again.payload.len() + again.options.octets_len() <= 1000);
            let Dss { data_ack, mapping, .. } = again.options.dss.expect("a mapping");
            assert_eq!((data_ack.is_some(), mapping.is_some()), (acknowledges, true), "{short_by}");
        }
    }
}

#[test]
fn no_packet_is_larger_than_the_path_takes() {
    // RFC 9293 §3.7.1: the peer would take more; nor do selective acknowledgements make it so.
    let mut scene = Scene::open();
    assert_eq!(scene.subflow.mss(), 1000);
    scene.takes(scene.segment(500, 1, 500));
    for octets in [1000, 980] {
        let sent = scene.write_octets(octets, None);
        assert!(sent.payload.len() + sent.options.octets_len() <= 1000);
        scene.takes(scene.segment(500, 1, 500));
    }
}
