//! One subflow against a scripted peer, segment by segment.

mod acknowledgement;
mod arrival;
mod ends;
mod loss;
mod options;
mod socket_buffers;

use crate::view::Slot;
use anabranch_wire::mptcp::{
    AddAddr, CapableFlags, CapableKeys, Dss, Mapping, MpCapable, WideOrNarrow,
};
use anabranch_wire::{
    CE, Flags, MAX_OPTION_BYTES, Piece, Pooled, SackBlock, SocketAddress, TcpHeader, TcpOptions,
    Timestamps,
};

use super::input::RxOutcome;
use super::*;
use crate::config::TcpConfig;
use crate::congestion::NewReno;
use crate::platform::{Growth, Platform, Unsent};

const MSS: u64 = 1000;
const ISS: SeqNumber = SeqNumber(1 << 20);
const PEER_ISS: SeqNumber = SeqNumber(u32::MAX - 700);
const PLAIN: DataLevel = DataLevel {
    window: 50_000,
    data_ack: None,
    data_fin: None,
    keys: None,
    precedes_keys: false,
    checksums: false,
    wide: false,
    writer_waits: false,
    ends_quickack: false,
};
const DSS: DataLevel = DataLevel { data_ack: Some(WideOrNarrow::Narrow(7)), ..PLAIN };

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The options of a peer that supports everything in TCP.
fn all_options() -> TcpOptions {
    TcpOptions {
        mss: Some(1460),
        window_scale: Some(0),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 0, echo: 0 }),
        ..TcpOptions::default()
    }
}

/// A subflow and the current time.
struct Scene {
    now: Instant,
    subflow: Subflow,
    level: DataLevel,
}

impl Scene {
    /// A subflow that has neither sent nor received anything. It has segments of 1000 bytes, no
    /// timestamps and the RFCs' parameters, except for the changes by `change`.
    fn closed(purpose: Purpose, state: State, change: impl FnOnce(&mut ConnectionConfig)) -> Scene {
        let tcp = TcpConfig { mtu: 1040, timestamps: false, ..TcpConfig::default() };
        let congestion_control = Arc::new(|start: &_| Box::new(NewReno::new(start)) as Box<_>);
        let platform = Platform::rfc();
        let mut config =
            ConnectionConfig { platform, tcp, congestion_control, ..ConnectionConfig::default() };
        change(&mut config);
        let open = Open {
            identity: SubflowIdentity {
                id: SubflowId { slot: Slot(0), generation: 0 },
                purpose,
                local: SocketAddress::new([10, 0, 0, 1].into(), 1000),
                remote: SocketAddress::new([10, 9, 0, 1].into(), 80),
                local_address_id: 0,
                remote_address_id: 0,
            },
            iss: ISS,
            timestamp_offset: 0,
            receive_scale: 0,
            config: &Arc::new(config),
        };
        let now = Instant::ZERO + ms(1000);
        Scene { now, subflow: Subflow::new(open, state), level: PLAIN }
    }

    /// A subflow that sent a SYN, which the peer answered 100 ms later with these flags and
    /// `options`.
    fn joining(
        purpose: Purpose,
        flags: Flags,
        options: TcpOptions,
        change: impl FnOnce(&mut ConnectionConfig),
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

    fn open_to(options: TcpOptions, change: impl FnOnce(&mut ConnectionConfig)) -> Scene {
        Scene::joining(Purpose::Initial, Flags::default(), options, change)
    }

    /// A plain TCP subflow that is open; the peer supports SACK.
    fn open() -> Scene {
        Scene::open_to(TcpOptions { timestamps: None, ..all_options() }, |_| {})
    }

    /// An open plain TCP subflow with timestamps.
    fn stamping() -> Scene {
        Scene::open_to(all_options(), |config| {
            (config.tcp.mtu, config.tcp.timestamps) = (1052, true)
        })
    }

    /// A segment from the peer, `distance` bytes beyond its earlier data, acknowledging up to
    /// offset `ack`.
    fn segment(&self, distance: i64, ack: u64, bytes: u32) -> Segment {
        let next = self.subflow.receiver.nxt() as i64 + distance;
        let header = TcpHeader {
            seq: PEER_ISS + next as u32,
            ack: ISS + ack as u32,
            flags: Flags::ACK,
            window: 50_000,
            urgent: 0,
        };
        Segment {
            source: self.subflow.identity.remote,
            destination: self.subflow.identity.local,
            header,
            options: TcpOptions::default(),
            payload: Payload::from(Piece::pattern(next as u64, bytes)),
            ecn: 0,
            checksum_ok: true,
        }
    }

    /// An acknowledgement up to offset `ack`, with these SACK ranges.
    fn ack(&self, ack: u64, ranges: &[(u64, u64)]) -> Segment {
        let mut segment = self.segment(0, ack, 0);
        for (start, end) in ranges {
            let (start, end) = (ISS + *start as u32, ISS + *end as u32);
            segment.options.sack.push(SackBlock { start, end });
        }
        segment
    }

    /// Send full segments, and let a round trip pass.
    fn write_and_wait(&mut self, segments: u64) {
        self.write(segments);
        self.now += ms(100);
    }

    fn takes_within(&mut self, mut segment: Segment, window: u64) -> RxOutcome {
        self.subflow.handle_segment(
            self.now,
            &mut segment,
            &RxContext { window, shared_window: false, views: &[] },
        )
    }

    fn takes(&mut self, segment: Segment) -> RxOutcome {
        self.takes_within(segment, 50_000)
    }

    /// The subflow sends `segments` full segments of new data.
    fn write(&mut self, segments: u64) {
        for _ in 0..segments {
            self.write_bytes(MSS as u32, None);
        }
    }

    fn write_bytes(&mut self, bytes: u32, meta: Option<MappingMeta>) -> Segment {
        let payload = Payload::from(Piece::pattern(0, bytes));
        let segment = self.subflow.send_data(self.now, &self.level, payload, meta, false, &[]);
        let mut view = self.subflow.view();
        self.subflow.after_sending(self.now, &mut view);
        segment.into_inner()
    }

    /// The segments that the subflow sends without new data, other than acknowledgements.
    fn sends(&mut self) -> Vec<Segment> {
        let Scene { now, subflow, level } = self;
        std::iter::from_fn(|| subflow.poll_transmit(*now, level)).map(Pooled::into_inner).collect()
    }

    /// The acknowledgement or FIN that the subflow sends.
    fn replies(&mut self) -> Option<Segment> {
        self.subflow.poll_acknowledge(self.now, &self.level).map(Pooled::into_inner)
    }

    /// Advance to the next timer, which expires.
    fn waits(&mut self) {
        self.now = self.subflow.poll_timeout();
        assert!(self.now < Instant::FAR_FUTURE);
        self.subflow.handle_timeout(self.now, &[], false);
    }

    fn timer(&self, timer: SubflowTimer) -> Option<Duration> {
        self.subflow.timers.get(timer).map(|at| at.saturating_since(self.now))
    }

    fn cwnd(&self) -> u64 {
        self.subflow.view().cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.subflow.view().ssthresh
    }
}
