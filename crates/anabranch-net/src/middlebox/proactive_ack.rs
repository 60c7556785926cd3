//! A performance-enhancing proxy that acknowledges data before its receiver does, and takes over
//! its retransmission. RFC 3135 §3.1.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::Positive;
use std::collections::VecDeque;

use anabranch_wire::{
    Flags, Instant, Packet, Payload, Segment, SeqNumber, TcpHeader, TcpOptions, Timestamps,
};

use super::flows::{FlowId, Flows, KnownFlow};
use super::relay::{Accepted, Relay};
use super::{BuildMiddlebox, Middlebox, Side, Site};
use crate::units::ByteCount;

/// Acknowledges arriving data in both directions. It holds the data until the receiver has
/// acknowledged it, and retransmits it after duplicate acknowledgements or a timeout.
#[derive(Debug)]
struct ProactiveAck {
    /// Maximum number of bytes in flight from the proxy to the receiver, per flow and direction;
    /// above zero. The proxy holds at most four times as many bytes, and drops segments that do not
    /// fit.
    window: u64,
    flows: Flows<Ends>,
    out: VecDeque<(Side, Packet)>,
}

/// State of a flow, per direction.
#[derive(Debug, Default)]
struct Ends {
    relays: [Relay; 2],
    /// Properties of the sender of each direction, from its last segment.
    hosts: [HostState; 2],
}

/// Properties of a host, from its segments.
#[derive(Clone, Copy, Debug, Default)]
struct HostState {
    /// Its latest timestamp value.
    timestamp: Option<u32>,
    /// Its window scale. RFC 7323 §2.2.
    scale: u8,
    /// The offset at which its receive window ends.
    edge: u64,
    /// Its highest acknowledgement, as an offset and in the header's fields.
    acknowledged: u64,
    ack: Option<(SeqNumber, u16)>,
}

impl ProactiveAck {
    fn new(window: u64) -> Self {
        ProactiveAck { window, flows: Flows::default(), out: VecDeque::new() }
    }
}

/// Record the sender's properties and its acknowledgement. Returns `false` if the segment carries
/// nothing new for the other host.
fn handle_acknowledgement(
    now: Instant,
    towards: Side,
    segment: &Segment,
    flow: &mut KnownFlow<Ends>,
) -> bool {
    let back = towards.opposite();
    let header = &segment.header;
    let host = &mut flow.state.hosts[towards as usize];
    if let Some(Timestamps { value, .. }) = segment.options.timestamps {
        let newer = |held: &u32| value.wrapping_sub(*held) < 1 << 31;
        host.timestamp = host.timestamp.filter(|held| !newer(held)).or(Some(value));
    }
    if header.flags.contains(Flags::SYN) {
        host.scale = segment.options.window_scale.unwrap_or(0).min(14);
    }
    let ack = flow.towards(back).and_then(|numbering| numbering.offset(header.ack));
    let Some(ack) = ack.filter(|_| header.flags.contains(Flags::ACK)) else { return true };
    let ends = &mut flow.state;
    let host = &mut ends.hosts[towards as usize];
    let scale = if header.flags.contains(Flags::SYN) { 0 } else { host.scale };
    let edge = ack + (u64::from(header.window) << scale);
    let moved = edge > host.edge;
    host.edge = host.edge.max(edge);
    if ack >= host.acknowledged {
        (host.acknowledged, host.ack) = (ack, Some((header.ack, header.window)));
    }
    let pure = segment.payload.is_empty() && !header.flags.intersects(Flags::SYN | Flags::FIN);
    let duplicate = ends.relays[back as usize].on_ack(now, ack, pure && !moved);
    !duplicate
}

impl Middlebox for ProactiveAck {
    fn handle_packet(&mut self, now: Instant, towards: Side, packet: Packet) {
        let ProactiveAck { window, flows, out } = self;
        let Packet::Tcp(segment) = packet else { return out.push_back((towards, packet)) };
        let place = FlowId::of(towards, &segment);
        let known = flows.of(towards, &segment).filter(|_| segment.checksum_ok);
        let Some(flow) = known else { return out.push_back((towards, segment.into())) };
        let flags = segment.header.flags;
        if flags.contains(Flags::RST) {
            flow.state.relays = Default::default();
            return out.push_back((towards, segment.into()));
        }
        let fin = flags.contains(Flags::FIN);
        let len = segment.payload.len() as u32 + u32::from(fin);
        let syn = u32::from(flags.contains(Flags::SYN));
        let Some(numbering) = flow.towards(towards) else { return };
        let start = numbering.offset(segment.header.seq);
        numbering.note(segment.header.seq + (len + syn));
        let news = handle_acknowledgement(now, towards, &segment, flow);
        let Some(start) = start.filter(|_| len > 0 && syn == 0) else {
            if news {
                out.push_back((towards, segment.into()));
            }
            return forward(now, flow, *window, out);
        };
        let echo = segment.options.timestamps.map(|timestamps| timestamps.value);
        match flow.state.relays[towards as usize].accept(start, segment, 4 * *window) {
            Accepted::Passed(segment) => out.push_back((towards, segment.into())),
            Accepted::Dropped => {}
            Accepted::Taken => {
                let answer = acknowledge(place, towards, echo, flow);
                out.extend(answer.map(|segment| (towards.opposite(), segment.into())));
            }
        }
        forward(now, flow, *window, out);
    }

    fn handle_timeout(&mut self, now: Instant) {
        let ProactiveAck { window, flows, out } = self;
        for (_, flow) in flows.iter_mut() {
            for relay in &mut flow.state.relays {
                relay.handle_timeout(now);
            }
            forward(now, flow, *window, out);
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Side, Packet)> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let relays = self.flows.states().flat_map(|ends| &ends.relays);
        relays.filter_map(Relay::poll_timeout).min()
    }
}

/// Forward the segments of a flow that the window permits.
fn forward(
    now: Instant,
    flow: &mut KnownFlow<Ends>,
    window: u64,
    out: &mut VecDeque<(Side, Packet)>,
) {
    for towards in [Side::Client, Side::Server] {
        let HostState { timestamp: clock, ack, .. } = flow.state.hosts[towards as usize];
        while let Some(mut segment) = flow.state.relays[towards as usize].poll(now, window) {
            // Newer segments may have overtaken the held one. Its receiver would then reject the
            // old timestamp. RFC 7323 §5.3.
            if let Some((timestamps, clock)) = segment.options.timestamps.as_mut().zip(clock) {
                timestamps.value = clock;
            }
            // It would also reject a very old acknowledgement. RFC 5961 §5.2.
            if let Some((ack, window)) = ack {
                (segment.header.ack, segment.header.window) = (ack, window);
            }
            out.push_back((towards, segment.into()));
        }
    }
}

/// An acknowledgement in the receiver's name for data that travelled `towards` it. `time` is the
/// timestamp of that data.
fn acknowledge(
    place: FlowId,
    towards: Side,
    time: Option<u32>,
    flow: &mut KnownFlow<Ends>,
) -> Option<Segment> {
    let back = towards.opposite();
    let next = flow.state.relays[towards as usize].next();
    let host = flow.state.hosts[back as usize];
    let seq = flow.towards(back).map(|numbering| numbering.seq(numbering.highest()))?;
    let ack = flow.towards(towards)?.seq(next);
    // The proxy offers no more than the receiver does.
    let window = (host.edge.saturating_sub(next) >> host.scale).min(u64::from(u16::MAX)) as u16;
    let timestamps = host.timestamp.zip(time).map(|(value, echo)| Timestamps { value, echo });
    let (source, destination) = match towards {
        Side::Server => (place.server, place.client),
        Side::Client => (place.client, place.server),
    };
    Some(Segment {
        source,
        destination,
        header: TcpHeader { seq, ack, flags: Flags::ACK, window, urgent: 0 },
        options: TcpOptions { timestamps, ..TcpOptions::default() },
        payload: Payload::EMPTY,
        ecn: 0,
        checksum_ok: true,
    })
}

/// Parameters of the proxy that acknowledges data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct ProactiveAckConfig {
    /// Maximum bytes of a flow in flight from the proxy to the receiver. The proxy holds four times as many.
    #[cfg_attr(feature = "serde", serde(with = "Positive::<ByteCount>"), schemars(extend("x-origin" = "this project")))]
    pub window: ByteCount,
}

impl Default for ProactiveAckConfig {
    fn default() -> Self {
        ProactiveAckConfig { window: ByteCount::new(64 << 10) }
    }
}

impl Part for ProactiveAckConfig {
    const NAME: &'static str = "proactive_ack";
    const SUMMARY: &'static str =
        "Acknowledges data before its receiver does, and retransmits it if necessary.";
    const SOURCE: &'static str = "RFC 3135 §3.1";
}

impl BuildMiddlebox for ProactiveAckConfig {
    fn build(&self, _: Site) -> Box<dyn Middlebox> {
        Box::new(ProactiveAck::new(self.window.as_u64()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, Talk, at};
    use super::*;

    fn opened(talk: &Talk, window: u64) -> Bench {
        Bench::new(Box::new(ProactiveAck::new(window))).opened(talk)
    }

    /// Number of bytes that an acknowledgement towards the client covers.
    fn acknowledged(talk: &Talk, (towards, segment): &(Side, Segment)) -> Option<u32> {
        let ack = segment.header.ack.0.wrapping_sub(talk.client_isn.wrapping_add(1));
        (*towards == Side::Client && segment.payload.is_empty()).then_some(ack)
    }

    #[test]
    fn data_is_acknowledged_at_once_and_forwarded() {
        for talk in [Talk::v4(), Talk::v6()] {
            let mut bench = opened(&talk, 1_000);
            let data = talk.data(Side::Server, 0, 500);
            let out = bench.put(Side::Server, data.clone());
            assert_eq!(acknowledged(&talk, &out[0]), Some(500));
            // The SYN/ACK offered 1000 bytes, of which 500 are used.
            assert_eq!(out[0].1.header.window, 500);
            assert_eq!(out[1], (Side::Server, data));
            assert_eq!(out.len(), 2);
        }
    }

    #[test]
    fn lost_data_is_retransmitted_and_duplicate_acks_are_absorbed() {
        let talk = Talk::v4();
        let mut bench = opened(&talk, 10_000);
        let data = |from| talk.data(Side::Server, from, 100);
        for from in [0, 100, 200, 300] {
            assert_eq!(bench.put(Side::Server, data(from)).len(), 2);
        }
        bench.cross(Side::Client, talk.ack(Side::Client, 100));
        let again = (0..3).map(|_| bench.put(Side::Client, talk.ack(Side::Client, 100)));
        let again: Vec<_> = again.flatten().collect();
        assert_eq!(again, [(Side::Server, data(100))], "after the third; none reaches the sender");
        bench.cross(Side::Client, talk.ack(Side::Client, 400));
        assert_eq!(bench.middlebox.poll_timeout(), None);
    }

    #[test]
    fn a_retransmission_has_the_newest_acknowledgement_of_its_sender() {
        // RFC 5961 §5.2: its receiver drops data with an acknowledgement that is older than a window.
        let talk = Talk::v4();
        let mut bench = opened(&talk, 10_000);
        bench.put(Side::Server, talk.data(Side::Server, 0, 100));
        bench.put(Side::Client, talk.data(Side::Client, 0, 100));
        let newest = talk.ack(Side::Server, 100);
        bench.cross(Side::Server, newest.clone());
        let next = bench.middlebox.poll_timeout().expect("the data is not acknowledged");
        let out = bench.wait_until(next.as_millis());
        let acks: Vec<_> = out.iter().map(|(towards, s)| (*towards, s.header.ack)).collect();
        assert_eq!(acks, [(Side::Server, newest.header.ack)]);
    }

    #[test]
    fn a_segment_that_spans_two_held_pieces_leaves_no_empty_one() {
        let talk = Talk::v4();
        let mut bench = opened(&talk, 10_000);
        for (from, len) in [(100, 50), (150, 50), (100, 200)] {
            bench.put(Side::Server, talk.data(Side::Server, from, len));
        }
        let out = bench.put(Side::Server, talk.data(Side::Server, 0, 100));
        assert_eq!(acknowledged(&talk, &out[0]), Some(200));
    }

    #[test]
    fn timeouts_back_off_and_end_eventually() {
        let talk = Talk::v4();
        let mut bench = opened(&talk, 10_000);
        bench.put(Side::Server, talk.data(Side::Server, 0, 100));
        let mut times = Vec::new();
        while let Some(next) = bench.middlebox.poll_timeout() {
            let out = bench.wait_until(next.as_millis());
            times.extend(out.iter().map(|_| next.as_millis()));
            assert!(times.len() < 99);
        }
        assert_eq!(times[..4], [1_000, 3_000, 7_000, 15_000]);
        assert_eq!(times.len(), 10);
        assert!(bench.now > at(60_000));
    }

    #[test]
    fn data_beyond_the_window_waits_and_data_beyond_four_windows_is_dropped() {
        let talk = Talk::v4();
        let mut bench = opened(&talk, 250);
        let mut count = |from| {
            let out = bench.put(Side::Server, talk.data(Side::Server, from, 100));
            let acknowledged = out.iter().filter_map(|each| acknowledged(&talk, each)).max();
            (acknowledged, out.iter().filter(|(way, _)| *way == Side::Server).count())
        };
        assert_eq!(count(0), (Some(100), 1));
        assert_eq!(count(100), (Some(200), 1));
        assert_eq!(count(200), (Some(300), 0));
        for from in (300..1_000).step_by(100) {
            assert_eq!(count(from), (Some(from + 100), 0));
        }
        assert_eq!(count(1_000), (None, 0));
        let out = bench.put(Side::Client, talk.ack(Side::Client, 200));
        assert_eq!(out.len(), 3, "the acknowledgement, and two segments that fit now");
    }

    #[test]
    fn out_of_order_data_is_held_and_the_fin_is_forwarded_last() {
        let talk = Talk::v4();
        let mut bench = opened(&talk, 10_000);
        let out = bench.put(Side::Server, talk.fin(Side::Server, 200));
        assert_eq!(out.iter().map(|each| acknowledged(&talk, each)).collect::<Vec<_>>(), [Some(0)]);
        let out = bench.put(Side::Server, talk.data(Side::Server, 100, 100));
        assert_eq!(acknowledged(&talk, &out[0]), Some(0));
        let out = bench.put(Side::Server, talk.data(Side::Server, 0, 100));
        assert_eq!(
            acknowledged(&talk, &out[0]),
            Some(200),
            "the receiver acknowledges the FIN itself"
        );
        let way: Vec<_> = out[1..].iter().map(|(_, segment)| segment.header.seq).collect();
        let expected = [0, 100].map(|from| talk.data(Side::Server, from, 1).header.seq);
        assert_eq!(way, [expected[0], expected[1], talk.fin(Side::Server, 200).header.seq]);
    }

    #[test]
    fn a_reset_ends_the_flow() {
        let talk = Talk::v4();
        let mut bench = opened(&talk, 10_000);
        bench.put(Side::Server, talk.data(Side::Server, 0, 100));
        let mut reset = talk.ack(Side::Client, 0);
        reset.header.flags = Flags::RST | Flags::ACK;
        bench.cross(Side::Client, reset);
        assert_eq!(bench.middlebox.poll_timeout(), None);
    }
}
