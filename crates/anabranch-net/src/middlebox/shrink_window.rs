//! Moves the right edge of receive windows back. RFC 9293 §3.8.6: a host should not shrink its
//! window, and its peer must tolerate it.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::{Positive, WithUnit};
use std::collections::VecDeque;

use anabranch_wire::mptcp::{Dss, WideOrNarrow};
use anabranch_wire::{
    Duration, Flags, Instant, Packet, Payload, PooledSegment, Segment, SeqNumber, TcpHeader,
    TcpOptions, Timestamps,
};

use super::flows::{FlowId, Flows, KnownFlow};
use super::{BuildMiddlebox, Directions, Middlebox, Side, Site};
use crate::rng::{Draws, stream_seed};
use crate::units::ByteCount;

/// Parameters of the middlebox that shrinks windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct ShrinkWindowConfig {
    /// Which direction is affected, by the direction of the segments that advertise windows.
    #[cfg_attr(feature = "serde", serde(rename = "applies_to"), schemars(extend("x-origin" = "this project")))]
    pub directions: Directions,
    /// Mean time between two small windows of a host. Each time is drawn between half and three halves of the
    /// mean, and is at least 1 ms.
    #[cfg_attr(feature = "serde", serde(with = "Positive::<Duration>"), schemars(extend("x-origin" = "this project: some round trips")))]
    pub every: Duration,
    /// Mean duration of a small window, with the same distribution.
    #[cfg_attr(feature = "serde", serde(rename = "for", with = "Positive::<Duration>"), schemars(extend("x-origin" = "this project: some round trips")))]
    pub lasts: Duration,
    /// Size of a small window.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<ByteCount>"), schemars(extend("x-origin" = "this project")))]
    pub to: ByteCount,
    /// Whether the host rejects data beyond its small window. Otherwise it accepts all data.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "this project")))]
    pub refuse: bool,
}

/// Shortest time drawn.
const SHORTEST: Duration = Duration::from_millis(1);

/// Shrinks the windows of each flow from time to time.
#[derive(Debug)]
struct ShrinkWindow {
    config: ShrinkWindowConfig,
    flows: Flows<[Advertiser; 2]>,
    draws: Draws,
    out: VecDeque<(Side, Packet)>,
}

/// A host of a flow, which advertises windows. The direction of its segments identifies it.
#[derive(Debug, Default)]
struct Advertiser {
    /// The window scale in its SYN. RFC 7323 §2.2.
    scale: Option<u8>,
    /// The host's latest acknowledgement.
    last_ack: Option<LastAck>,
    /// Start and end of the current or next small window, once they are drawn.
    small: Option<(Instant, Instant)>,
    /// Number of pairs of times drawn so far.
    drawn: u64,
    /// When to advertise that the window is open again, if a small window was advertised.
    reopens: Option<Instant>,
}

/// Contents of an acknowledgement.
#[derive(Clone, Copy, Debug)]
struct LastAck {
    ack: SeqNumber,
    window: u16,
    data_ack: Option<WideOrNarrow>,
    timestamps: Option<Timestamps>,
}

impl Advertiser {
    /// Returns `true` if the window is small now. `draw` returns the n-th random number.
    fn is_small(
        &mut self,
        now: Instant,
        config: &ShrinkWindowConfig,
        draw: impl Fn(u64) -> f64,
    ) -> bool {
        let mut length = |mean: Duration| {
            let nanos = mean.as_nanos() as f64 * (0.5 + draw(self.drawn));
            self.drawn += 1;
            Duration::from_nanos(nanos as u64).max(SHORTEST)
        };
        let (mut from, mut until) = self.small.unwrap_or((now, now));
        while until <= now {
            from = until + length(config.every);
            until = from + length(config.lasts);
        }
        self.small = Some((from, until));
        from <= now
    }
}

/// The n-th random number of a host.
fn draw(draws: Draws, number: u64, towards: Side) -> impl Fn(u64) -> f64 {
    let stream = 2 * number + towards as u64;
    move |n| draws.uniform(stream << 24 | n)
}

/// Window scale of segments in this direction. RFC 7323 §2.2: 0 unless both SYNs had the option.
fn shift(flow: &KnownFlow<[Advertiser; 2]>, towards: Side) -> u8 {
    let [own, other] = [towards, towards.opposite()].map(|side| flow.state[side as usize].scale);
    own.filter(|_| other.is_some()).unwrap_or(0).min(14)
}

impl ShrinkWindow {
    fn new(config: ShrinkWindowConfig, seed: u64) -> Self {
        ShrinkWindow {
            config,
            flows: Flows::default(),
            draws: Draws::new(stream_seed(seed, "shrink")),
            out: VecDeque::new(),
        }
    }

    /// The segment to forward; `None` if the receiver rejects it.
    fn pass(
        &mut self,
        now: Instant,
        towards: Side,
        mut segment: PooledSegment,
    ) -> Option<PooledSegment> {
        let ShrinkWindow { config, flows, draws, .. } = self;
        let known = flows.of(towards, &segment).filter(|_| segment.checksum_ok);
        let Some(flow) = known else { return Some(segment) };
        let flags = segment.header.flags;
        let counted = u32::from(flags.contains(Flags::SYN)) + u32::from(flags.contains(Flags::FIN));
        let end = segment.header.seq + (segment.payload.len() as u32 + counted);
        flow.towards(towards)?.note(end);
        if flags.contains(Flags::SYN) {
            flow.state[towards as usize].scale = segment.options.window_scale;
            return Some(segment);
        }
        if flags.contains(Flags::RST) {
            flow.state = Default::default();
            return Some(segment);
        }
        let draws = |side| draw(*draws, flow.number, side);
        let back = towards.opposite();
        let refuses = config.refuse
            && config.directions.include(back)
            && flow.state[back as usize].is_small(now, config, draws(back));
        let shrinks = config.directions.include(towards)
            && flow.state[towards as usize].is_small(now, config, draws(towards));
        if flags.contains(Flags::ACK) {
            announce(flow, towards, &mut segment, config, shrinks);
        }
        if refuses && !segment.payload.is_empty() {
            return self.fit(towards, segment);
        }
        Some(segment)
    }

    /// The part of a segment that its receiver has room for. If there is no room, the receiver
    /// sends an acknowledgement.
    fn fit(&mut self, towards: Side, mut segment: PooledSegment) -> Option<PooledSegment> {
        let back = towards.opposite();
        let place = FlowId::of(towards, &segment);
        let flow = self.flows.of(towards, &segment)?;
        let Some(last_ack) = flow.state[back as usize].last_ack else { return Some(segment) };
        let offered = self.config.to.as_u64() >> shift(flow, back) << shift(flow, back);
        let edge = flow.towards(towards)?.offset(last_ack.ack)? + offered;
        let Some(start) = flow.towards(towards)?.offset(segment.header.seq) else {
            return Some(segment);
        };
        let room = edge.saturating_sub(start) as usize;
        if room >= segment.payload.len() {
            return Some(segment);
        }
        if room > 0 {
            segment.payload = segment.payload.slice(0, room);
            let last_only = Flags::FIN | Flags::PSH;
            segment.header.flags = Flags(segment.header.flags.0 & !last_only.0);
            return Some(segment);
        }
        // RFC 9293 §3.10.7.4: a segment outside the window is answered with an acknowledgement.
        let window =
            last_ack.window.min((self.config.to.as_u64() >> shift(flow, back)).min(0xffff) as u16);
        let answer = repeat(place, back, flow, window)?;
        let host = &mut flow.state[back as usize];
        host.reopens = host.small.map(|(_, until)| until);
        self.out.push_back((back, answer.into()));
        None
    }
}

/// Record a host's acknowledgement, and shrink its window if `shrinks` is set.
fn announce(
    flow: &mut KnownFlow<[Advertiser; 2]>,
    towards: Side,
    segment: &mut Segment,
    config: &ShrinkWindowConfig,
    shrinks: bool,
) {
    let most = (config.to.as_u64() >> shift(flow, towards)).min(u64::from(u16::MAX)) as u16;
    let numbering = flow.towards(towards.opposite()).map(|numbering| *numbering);
    let host = &mut flow.state[towards as usize];
    let offset = |ack| numbering.and_then(|numbering| numbering.offset(ack));
    let (ack, window) = (segment.header.ack, segment.header.window);
    if host.last_ack.is_none_or(|last_ack| offset(last_ack.ack) <= offset(ack)) {
        let timestamps = segment.options.timestamps;
        // A host that sends no more Multipath TCP options may have fallen back to TCP. A DATA_ACK
        // from this middlebox would contradict that.
        let bare = segment.options.dss.is_none() && segment.options.control.is_none();
        let last_data_ack = host.last_ack.and_then(|last_ack| last_ack.data_ack).filter(|_| !bare);
        let data_ack = segment.options.dss.and_then(|dss| dss.data_ack).or(last_data_ack);
        host.last_ack = Some(LastAck { ack, window, data_ack, timestamps });
    }
    if shrinks && window > most {
        segment.header.window = most;
        host.reopens = host.small.map(|(_, until)| until);
    } else if !shrinks {
        host.reopens = None;
    }
}

/// The last acknowledgement of the host that sends `towards` this side, with this window.
fn repeat(
    place: FlowId,
    towards: Side,
    flow: &mut KnownFlow<[Advertiser; 2]>,
    window: u16,
) -> Option<Segment> {
    let last_ack = flow.state[towards as usize].last_ack?;
    let seq = flow.towards(towards).map(|numbering| numbering.seq(numbering.highest()))?;
    let (source, destination) = match towards {
        Side::Client => (place.server, place.client),
        Side::Server => (place.client, place.server),
    };
    let dss = last_ack.data_ack.map(|data_ack| Dss { data_ack: Some(data_ack), ..Dss::default() });
    Some(Segment {
        source,
        destination,
        header: TcpHeader { seq, ack: last_ack.ack, flags: Flags::ACK, window, urgent: 0 },
        options: TcpOptions { timestamps: last_ack.timestamps, dss, ..TcpOptions::default() },
        payload: Payload::EMPTY,
        ecn: 0,
        checksum_ok: true,
    })
}

impl Middlebox for ShrinkWindow {
    fn handle_packet(&mut self, now: Instant, towards: Side, packet: Packet) {
        match packet {
            Packet::Tcp(segment) => {
                let passed = self.pass(now, towards, segment);
                self.out.extend(passed.map(|segment| (towards, segment.into())));
            }
            other => self.out.push_back((towards, other)),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let ShrinkWindow { flows, draws, out, .. } = self;
        for (place, flow) in flows.iter_mut() {
            for towards in [Side::Client, Side::Server] {
                let host = &mut flow.state[towards as usize];
                if host.reopens.take_if(|at| *at <= now).is_none() {
                    continue;
                }
                // The window update may be lost, and then the peer must probe. RFC 9293 §3.8.6.1.
                let number = flow.number;
                let announced = draw(*draws, number, towards)(1 << 23 | host.drawn) < 0.5;
                if let Some(last_ack) = host.last_ack.filter(|_| announced) {
                    let update = repeat(*place, towards, flow, last_ack.window);
                    out.extend(update.map(|segment| (towards, segment.into())));
                }
            }
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Side, Packet)> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.flows.states().flatten().filter_map(|host| host.reopens).min()
    }
}

impl Default for ShrinkWindowConfig {
    fn default() -> Self {
        ShrinkWindowConfig {
            directions: Directions::Both,
            every: Duration::from_millis(500),
            lasts: Duration::from_millis(200),
            to: ByteCount::new(0),
            refuse: false,
        }
    }
}

impl Part for ShrinkWindowConfig {
    const NAME: &'static str = "shrink_window";
    const SUMMARY: &'static str = "Moves the right edge of receive windows back for a while.";
    const SOURCE: &'static str = "RFC 9293 §3.8.6";
}

impl BuildMiddlebox for ShrinkWindowConfig {
    fn build(&self, site: Site) -> Box<dyn Middlebox> {
        Box::new(ShrinkWindow::new(*self, site.seed))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, Talk, at, site};
    use super::*;

    const CLIENT: Directions = Directions::Forward;

    fn config(to: u64, refuse: bool) -> ShrinkWindowConfig {
        let [every, lasts] = [100, 50].map(Duration::from_millis);
        ShrinkWindowConfig { every, lasts, to: ByteCount::new(to), refuse, directions: CLIENT }
    }

    /// A middlebox that has seen SYNs with these window scales.
    fn opened(config: ShrinkWindowConfig, talk: &Talk, scales: [Option<u8>; 2]) -> Bench {
        let mut bench = Bench::new(Box::new(ShrinkWindow::new(config, site(1).seed)));
        let (mut syn, mut answer) = (talk.syn(), talk.syn_ack());
        (syn.options.window_scale, answer.options.window_scale) = (scales[0], scales[1]);
        bench.cross(Side::Server, syn);
        bench.cross(Side::Client, answer);
        bench
    }

    /// The windows that the server advertises, one per millisecond.
    fn announced(bench: &mut Bench, talk: &Talk) -> Vec<u16> {
        (0..2_000)
            .map(|ms| {
                bench.now = at(ms);
                bench.cross(Side::Client, talk.ack(Side::Client, 0)).header.window
            })
            .collect()
    }

    #[test]
    fn the_window_shrinks_for_a_while_and_reopens() {
        let talk = Talk::v4();
        let windows = announced(&mut opened(config(0, false), &talk, [None; 2]), &talk);
        assert!(windows[..50].iter().all(|window| *window == 1_000), "not before every / 2");
        assert!(windows.iter().all(|window| matches!(window, 0 | 1_000)));
        let lengths: Vec<_> =
            windows.chunk_by(|a, b| a == b).map(|each| (each[0], each.len())).collect();
        let whole = &lengths[..lengths.len() - 1];
        for (window, length) in whole {
            let range = if *window == 0 { 24..=76 } else { 49..=151 };
            assert!(range.contains(length), "{lengths:?}");
        }
        // 2000 ms at 150 ms for each cycle, two runs per cycle.
        assert!((20..34).contains(&lengths.len()), "{lengths:?}");
        assert!(lengths[1].1 != lengths[3].1 || lengths[3].1 != lengths[5].1, "drawn");
        let again = announced(&mut opened(config(0, false), &talk, [None; 2]), &talk);
        assert_eq!(windows, again);
    }

    #[test]
    fn the_size_respects_the_window_scale() {
        let talk = Talk::v6();
        let small = |scales| {
            let mut bench = opened(config(7_000, false), &talk, scales);
            announced(&mut bench, &talk).into_iter().min()
        };
        // 7000 B with a shift of 5: 218 units of 32 B.
        assert_eq!(small([Some(2), Some(5)]), Some(218));
        // RFC 7323 §2.2: a scale on one side only does not count. The window of 1000 is below 7000.
        assert_eq!(small([None, Some(5)]), Some(1_000));
        assert_eq!(small([Some(2), None]), Some(1_000));
    }

    #[test]
    fn the_other_direction_and_syns_are_not_changed() {
        let talk = Talk::v4();
        let mut bench = opened(config(0, true), &talk, [Some(0), Some(0)]);
        for ms in 0..1_000 {
            bench.now = at(ms);
            let window = bench.cross(Side::Server, talk.ack(Side::Server, 0)).header.window;
            assert_eq!(window, 1_000);
        }
        assert_eq!(bench.cross(Side::Client, talk.syn_ack()).header.window, 1_000);
    }

    /// The middlebox at a time when the server's window is small.
    fn while_small(config: ShrinkWindowConfig, talk: &Talk) -> Bench {
        let mut bench = opened(config, talk, [None; 2]);
        let windows = announced(&mut opened(config, talk, [None; 2]), talk);
        bench.cross(Side::Client, talk.ack(Side::Client, 0));
        bench.now = at(windows.iter().position(|window| *window < 1_000).unwrap() as u64);
        bench
    }

    #[test]
    fn data_beyond_a_small_window_is_cut_or_rejected_with_an_acknowledgement() {
        let talk = Talk::v4();
        let mut bench = while_small(config(300, true), &talk);
        let cut = bench.cross(Side::Server, talk.data(Side::Server, 200, 500));
        assert_eq!((cut.payload.len(), cut.header.flags), (100, Flags::ACK));
        let out = bench.put(Side::Server, talk.data(Side::Server, 300, 500));
        let mut expected = talk.ack(Side::Client, 0);
        expected.header.window = 300;
        assert_eq!(out, [(Side::Client, expected)]);
        // The acknowledgement advances, and the small window moves with it.
        bench.cross(Side::Client, talk.ack(Side::Client, 300));
        let whole = talk.data(Side::Server, 300, 300);
        assert_eq!(bench.cross(Side::Server, whole.clone()), whole);
        // Without `refuse`, all data passes.
        let mut bench = while_small(config(300, false), &talk);
        let whole = talk.data(Side::Server, 300, 500);
        assert_eq!(bench.cross(Side::Server, whole.clone()), whole);
    }

    #[test]
    fn half_of_the_reopenings_are_announced() {
        let talk = Talk::v4();
        let mut bench = while_small(config(0, false), &talk);
        let (mut announced, mut asked) = (0, 0);
        for _ in 0..100 {
            let mut ack = talk.ack(Side::Client, 0);
            let data_ack = Some(WideOrNarrow::Narrow(7));
            ack.options.dss = Some(Dss { data_ack, ..Dss::default() });
            bench.put(Side::Client, ack.clone());
            match bench.middlebox.poll_timeout() {
                Some(next) if next > bench.now => {
                    let out = bench.wait_until(next.as_millis() + 1);
                    assert!(out.is_empty() || out == [(Side::Client, ack)], "{out:?}");
                    announced += out.len();
                    asked += 1 - out.len();
                    assert_eq!(bench.middlebox.poll_timeout(), None);
                }
                _ => bench.now += Duration::from_millis(10),
            }
        }
        assert!(announced > 2 && asked > 2, "{announced} {asked}");
    }

    #[test]
    fn a_host_that_fell_back_to_tcp_sends_no_mptcp_options() {
        let talk = Talk::v4();
        let mut bench = while_small(config(300, true), &talk);
        let mut ack = talk.ack(Side::Client, 0);
        let data_ack = Some(WideOrNarrow::Narrow(7));
        ack.options.dss = Some(Dss { data_ack, ..Dss::default() });
        bench.cross(Side::Client, ack);
        bench.cross(Side::Client, talk.ack(Side::Client, 0));
        let out = bench.put(Side::Server, talk.data(Side::Server, 300, 500));
        let mut expected = talk.ack(Side::Client, 0);
        expected.header.window = 300;
        assert_eq!(out, [(Side::Client, expected)]);
    }

    #[test]
    fn hours_of_silence_cost_little() {
        let talk = Talk::v4();
        let mut bench = opened(config(0, false), &talk, [None; 2]);
        for hour in 0..5 {
            bench.now = at(hour * 3_600_000);
            bench.cross(Side::Client, talk.ack(Side::Client, 0));
        }
    }
}
