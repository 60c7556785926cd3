//! One subflow: a TCP connection that carries mappings of the data level as opaque metadata.
//!
//! Inside a subflow, sequence numbers are 64-bit offsets from 0 for the SYN, so they can be
//! compared. They become 32-bit numbers on the wire. The data level decides what to send and
//! interprets the data that arrives; a subflow never looks into it.

mod acknowledgement;
mod challenges;
mod clock;
mod congestion;
mod ecn;
mod ending;
mod full_segment;
mod handshake;
mod identity;
mod input;
mod limits;
mod liveness;
mod member;
mod offered_window;
mod output;
mod pacer;
mod pacing;
mod path_mtu;
mod prediction;
mod priority;
mod rate_sampler;
mod receiver;
mod recovery;
mod scoreboard;
mod send_window;
mod signals;
#[cfg(test)]
mod tests;
mod timeouts;
mod timer;
mod train;

pub(crate) use ending::SubflowEnd;
pub(crate) use handshake::{FastOpen, FastOpenOutcome};
pub(crate) use identity::{Purpose, SubflowIdentity};
pub(crate) use input::RxContext;
pub(crate) use output::{Carries, DataLevel};
use timer::SubflowTimer;

use std::sync::Arc;

use anabranch_wire::{DataSeq, Duration, Flags, Instant, Payload, Segment, SeqNumber};

use crate::config::ConnectionConfig;
use crate::congestion::{CongestionEvent, ExternalReduction};
use crate::counters::{Counters, SubflowCounters};
use crate::flood::Numbers;
use crate::platform::{Cwnd, OwnMss, OwnWindow, RcvSsthresh};
use crate::rtt::RttEstimator;
use crate::view::{Bottleneck, RecoveryPhase, SubflowId, SubflowView, Usability};
use challenges::Challenges;
use clock::Clock;
use congestion::Congestion;
use ecn::Ecn;
use ending::Ending;
use handshake::Handshake;
use liveness::Liveness;
use offered_window::OfferedWindow;
use path_mtu::PathMtu;
use priority::Priority;
use receiver::Receiver;
use recovery::Recovery;
use scoreboard::Scoreboard;
use send_window::SendWindow;
use signals::Signals;
use timer::{Requested, SubflowTimers};
use train::Train;

/// Information that the data level attaches to a segment; retransmissions keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MappingMeta {
    /// Data sequence number of the first byte.
    pub(crate) data_seq: DataSeq,
    /// The DATA_FIN follows the payload.
    pub(crate) data_fin: bool,
    /// The metadata is the connection's first data, which repeats the keys. RFC 8684 §3.1.
    pub(crate) with_keys: bool,
    /// Bytes of the declared mapping that preceded the payload and have arrived.
    pub(crate) head: u16,
    /// Checksum of the whole mapping, if it was declared with one. RFC 8684 §3.3.1.
    pub(crate) checksum: Option<u16>,
    /// Bytes of the declared mapping that follow the payload, in other segments.
    pub(crate) tail: u16,
}

impl MappingMeta {
    /// Metadata for data from `data_seq` on, which this subflow has never sent before.
    pub(crate) fn new(data_seq: DataSeq) -> Self {
        MappingMeta {
            data_seq,
            data_fin: false,
            with_keys: false,
            head: 0,
            checksum: None,
            tail: 0,
        }
    }
}

/// The states of RFC 9293 §3.3.2, except for LISTEN, which belongs to the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// Options of the peer's SYN; the defaults apply until it arrives.
#[derive(Clone, Copy, Debug)]
struct Peer {
    mss: u16,
    window_scale: Option<u8>,
    sack: bool,
    timestamps: bool,
}

/// A subflow: a state of RFC 9293, and the parts that own the rest of its state.
#[derive(Debug)]
pub(crate) struct Subflow {
    config: Arc<ConnectionConfig>,
    identity: SubflowIdentity,
    state: State,
    iss: SeqNumber,
    /// SND.UNA.
    una: u64,
    /// SND.NXT.
    nxt: u64,
    peer: Peer,
    handshake: Handshake,
    ending: Ending,
    liveness: Liveness,
    priority: Priority,
    signals: Signals,
    send_window: SendWindow,
    offered: OfferedWindow,
    receiver: Receiver,
    board: Scoreboard,
    recovery: Recovery,
    congestion: Congestion,
    train: Train,
    rtt: RttEstimator,
    timers: SubflowTimers,
    requested: Requested,
    ecn: Ecn,
    clock: Clock,
    challenges: Challenges,
    /// Payload bytes of a full data segment.
    mss: u32,
    path_mtu: PathMtu,
    /// One-way delay of the segment acknowledged last, in milliseconds plus an unknown constant.
    one_way_delay: Option<i32>,
    /// Verdict of the connection's bottleneck detector.
    bottleneck: Bottleneck,
    totals: SubflowCounters,
}

/// The parameters of a new subflow.
pub(crate) struct Open<'a> {
    pub(crate) identity: SubflowIdentity,
    pub(crate) iss: SeqNumber,
    pub(crate) timestamp_offset: u32,
    pub(crate) receive_scale: u8,
    pub(crate) config: &'a Arc<ConnectionConfig>,
}

/// RFC 8985 §7.2: longest assumed delay of the peer's acknowledgements.
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// Smallest segment size that is accepted from a peer. Smaller ones could exhaust the sender
/// (CVE-2019-11479). RFC 9293 §3.7.1 has a default of 536 bytes.
const MIN_MSS: u16 = 88;
/// Bytes that timestamps take in the header, with padding. RFC 7323 appendix A.
const TIMESTAMPS: u16 = 12;
impl Subflow {
    /// A subflow that sends a SYN.
    pub(crate) fn connect(open: Open<'_>) -> Self {
        Subflow::new(open, State::SynSent)
    }

    /// A subflow that answers a SYN.
    pub(crate) fn accept(open: Open<'_>, now: Instant, syn: &anabranch_wire::Segment) -> Self {
        let mut subflow = Subflow::new(open, State::SynReceived);
        subflow.handle_syn(now, syn);
        subflow
    }

    /// Use the numbers that follow from a cookie.
    pub(crate) fn use_numbers(&mut self, numbers: Numbers) {
        self.iss = numbers.iss;
        self.clock.set_offset(numbers.timestamp_offset);
    }

    /// Set the initial sequence number, before anything is sent.
    pub(crate) fn begin_at(&mut self, iss: SeqNumber) {
        self.iss = iss;
    }

    /// Take no round-trip time sample of the handshake, because the time of the SYN/ACK is unknown.
    pub(crate) fn skip_handshake_sample(&mut self) {
        self.handshake.forget_syn_time();
    }

    fn new(open: Open<'_>, state: State) -> Self {
        let (identity, config) = (open.identity, Arc::clone(open.config));
        let mtu = config.mtu_of(identity.local.address);
        let mss = u32::from(mtu) - 40;
        let headers = identity.header_bytes() as u16;
        let start = crate::congestion::Start {
            local: identity.local.address,
            remote: identity.remote.address,
            mss,
            initial_window: u64::from(config.tcp.initial_window_segments * mss),
            random: (u64::from(open.timestamp_offset) << 32) | u64::from(open.iss.0),
        };
        Subflow {
            identity,
            state,
            iss: open.iss,
            una: 0,
            nxt: 0,
            peer: Peer { mss: 536, window_scale: None, sack: false, timestamps: false },
            handshake: Handshake::new(state == State::SynSent),
            ending: Ending::default(),
            liveness: Liveness::default(),
            priority: Priority::default(),
            signals: Signals::default(),
            send_window: SendWindow::default(),
            offered: OfferedWindow::new(open.receive_scale),
            receiver: Receiver::new(
                SeqNumber(0),
                config.platform.acknowledging,
                RcvSsthresh::default(),
            ),
            board: Scoreboard::default(),
            recovery: Recovery::new(),
            congestion: Congestion::new(&config, &start),
            train: Train::default(),
            rtt: RttEstimator::new(config.platform.timeouts),
            timers: SubflowTimers::new(),
            requested: Requested::NOTHING,
            ecn: Ecn::default(),
            clock: Clock::new(open.timestamp_offset),
            challenges: Challenges::default(),
            mss: 536,
            path_mtu: PathMtu::new(mtu, config.tcp.mtu_probing, headers + TIMESTAMPS),
            one_way_delay: None,
            bottleneck: Bottleneck::Unknown,
            totals: SubflowCounters::default(),
            config,
        }
    }

    /// Release unused memory.
    pub(crate) fn release_memory(&mut self) {
        self.board.release_memory();
        self.receiver.release_memory();
    }

    #[inline]
    pub(crate) fn identity(&self) -> &SubflowIdentity {
        &self.identity
    }

    #[inline]
    pub(crate) fn id(&self) -> SubflowId {
        self.identity.id
    }

    /// The data that has arrived, and how it is acknowledged.
    #[inline]
    pub(crate) fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// The peer's window.
    #[inline]
    pub(crate) fn send_window(&self) -> &SendWindow {
        &self.send_window
    }

    #[inline]
    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    #[inline]
    pub(crate) fn totals(&self) -> &SubflowCounters {
        &self.totals
    }

    /// Bytes that pacing would send in one round-trip time, as of the last acknowledgement.
    #[inline]
    pub(crate) fn paced_window(&self) -> u64 {
        self.congestion.paced_window()
    }

    /// The subflow's view for policies.
    pub(crate) fn view(&self) -> SubflowView {
        let cwnd = self.congestion.cwnd();
        SubflowView {
            id: self.identity.id,
            local_address_id: self.identity.local_address_id,
            remote_address_id: self.identity.remote_address_id,
            usability: self.usability(),
            backup: self.priority.is_backup(),
            phase: self.recovery.phase(),
            mss: self.mss(),
            cwnd,
            ssthresh: self.congestion.ssthresh(),
            bytes_in_flight: self.bytes_in_flight(),
            available_cwnd: self.cwnd_for_new_data(),
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            min_rtt: self.rtt.min_rtt(),
            min_srtt: self.rtt.min_srtt(),
            receive_rtt: self.clock.receive_rtt(),
            loss_interval: self.recovery.loss_interval(self.una),
            bottleneck: self.bottleneck,
        }
    }

    /// Update `view` after the subflow has sent new data; everything else is unchanged.
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    pub(crate) fn after_sending(&mut self, now: Instant, view: &mut SubflowView) {
        view.cwnd = self.congestion.cwnd();
        view.ssthresh = self.congestion.ssthresh();
        view.bytes_in_flight = self.bytes_in_flight();
        view.available_cwnd = self.cwnd_for_new_data();
        let full = self.cwnd_room(view.cwnd) < u64::from(view.mss);
        let cwnd = Cwnd { bytes: view.cwnd, full, slow_start: view.cwnd < view.ssthresh };
        self.congestion.on_used(now, self.una..self.nxt, cwnd);
    }

    /// Update `view` after the subflow has only received data in a usual segment. Returns `false` if more
    /// has changed than that changes.
    #[inline]
    pub(crate) fn after_receiving(&self, view: &mut SubflowView) -> bool {
        view.available_cwnd = self.cwnd_for_new_data();
        view.receive_rtt = self.clock.receive_rtt();
        let same = view.usability == self.usability() && view.mss == self.mss;
        debug_assert!(!same || *view == self.view(), "a change of the view that was not expected");
        same
    }

    #[inline]
    fn update_pacing(&mut self) {
        let in_flight = self.bytes_in_flight();
        self.congestion.update_pacing(&self.config.platform, in_flight, self.rtt.srtt());
    }

    #[inline]
    fn usability(&self) -> Usability {
        match self.state {
            // RFC 7413 §4.2.2: a server may send before the third ACK.
            State::SynReceived if self.handshake.syn_data_received() => Usability::Usable,
            State::SynSent | State::SynReceived => Usability::Opening,
            State::Established | State::CloseWait if self.ending.wants_fin() => Usability::Closed,
            State::Established | State::CloseWait => {
                if self.awaits_confirmation() {
                    Usability::Opening
                } else if self.liveness.is_in_question(self.config.platform.silence) {
                    Usability::PotentiallyFailed
                } else {
                    Usability::Usable
                }
            }
            _ => Usability::Closed,
        }
    }

    /// Number of bytes of new data that the subflow may send now.
    #[inline]
    fn cwnd_for_new_data(&self) -> u64 {
        // RFC 8684 §3.3.5: the subflow's own window counts as well, which a middlebox may have
        // reduced. If nothing is in flight, a segment is sent regardless, to elicit a new window.
        let left = self.own_edge().saturating_sub(self.nxt);
        let least = if self.board.is_empty() { u64::from(self.mss()) } else { 0 };
        self.space().min(left.max(least))
    }

    /// First offset that the peer's window for this subflow does not admit.
    #[inline]
    fn own_edge(&self) -> u64 {
        match self.config.platform.own_window {
            OwnWindow::Farthest => self.send_window.edge(),
            OwnWindow::AsTcp => self.una + self.send_window.kept(),
            OwnWindow::Ignored => u64::MAX,
        }
    }

    /// Number of bytes in flight, as far as is known.
    #[inline]
    fn bytes_in_flight(&self) -> u64 {
        self.board.bytes_in_flight().saturating_sub(self.recovery.arrived_unreported())
    }

    /// Number of bytes that congestion control allows the subflow to send now.
    #[inline]
    fn space(&self) -> u64 {
        match self.recovery.phase() {
            _ if self.ecn.is_holding() || self.congestion.waits_for_departure() => 0,
            RecoveryPhase::Recovery if !self.congestion.models_path() => self.recovery.quota(),
            _ => self.cwnd_room(self.congestion.cwnd()),
        }
    }

    /// Number of bytes that a congestion window of `cwnd` bytes admits.
    #[inline]
    fn cwnd_room(&self, cwnd: u64) -> u64 {
        let partial = if self.counts_segments() { cwnd % u64::from(self.mss.max(1)) } else { 0 };
        (cwnd - partial).saturating_sub(self.flight())
    }

    /// Bytes in flight as congestion control counts them: segments in full, on some platforms.
    #[inline]
    pub(crate) fn flight(&self) -> u64 {
        if !self.counts_segments() {
            return self.bytes_in_flight();
        }
        let all = self.board.segments_in_flight() * u64::from(self.mss);
        all.saturating_sub(self.recovery.arrived_unreported())
    }

    /// Returns `true` if congestion control counts segments. It does so on some platforms, and only
    /// with selective acknowledgements, which identify each segment.
    #[inline]
    fn counts_segments(&self) -> bool {
        self.config.platform.recovery.counts_segments && self.peer.sack
    }

    /// Returns `true` if the peer's window admits another byte.
    pub(crate) fn has_window(&self) -> bool {
        self.nxt < self.send_window.edge()
    }

    /// Payload bytes of a full data segment.
    #[inline]
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// Payload bytes of a full data segment without options.
    fn mss_without_options(&self) -> u32 {
        (u32::from(self.path_mtu.value()) - self.header_bytes()).min(u32::from(self.peer.mss))
    }

    /// Payload bytes of a full segment that has timestamps, if they are used, and no other options.
    /// Linux: `advmss`.
    pub(crate) fn advertised_mss(&self) -> u32 {
        self.mss_without_options() - self.data_option_bytes(Carries::Nothing)
    }

    /// Largest receive window that this host's SYN may advertise.
    pub(crate) fn first_window(&self) -> u32 {
        self.config.platform.buffers.first_window(self.config.receive_buffer, self.own_mss())
    }

    /// Largest IP packet in bytes that this subflow's interface sends.
    pub(super) fn mtu(&self) -> u16 {
        self.config.mtu_of(self.identity.local.address)
    }

    pub(super) fn own_mss(&self) -> OwnMss {
        let bare = self.mtu() - self.header_bytes() as u16;
        let stamped = |stamps| if stamps { bare - TIMESTAMPS } else { bare };
        OwnMss {
            at_syn: stamped(!self.handshake.is_active() && self.peer.timestamps),
            with_timestamps: stamped(self.config.tcp.timestamps),
        }
    }

    #[inline]
    fn header_bytes(&self) -> u32 {
        self.identity.header_bytes()
    }

    /// Returns `true` if the handshake is in progress.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.state, State::SynSent | State::SynReceived)
    }

    /// Returns `true` if the handshake is complete and the subflow is not closed.
    pub(crate) fn is_established(&self) -> bool {
        !matches!(self.state, State::SynSent | State::SynReceived | State::Closed)
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// SND.UNA as an offset.
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// SND.NXT as an offset.
    pub(crate) fn send_next(&self) -> u64 {
        self.nxt
    }

    /// Subflow offset of the end of an arriving segment's payload.
    pub(crate) fn end_of(&self, segment: &Segment) -> u64 {
        let start = self.receiver.nxt() as i64 + self.receiver.distance(segment.header.seq);
        (start + segment.payload.len() as i64).max(0) as u64
    }

    /// Returns `true` if the segment is out of order, and arrives before anything has shown that
    /// the peer agrees to the join that this host began. RFC 8684 §3.2.
    pub(crate) fn overtakes_fourth_ack(&self, segment: &Segment) -> bool {
        self.handshake.is_active()
            && self.awaits_confirmation()
            && self.state == State::Established
            && self.receiver.distance(segment.header.seq) > 0
    }

    /// Returns `true` if data has arrived on the subflow, or any of its data was acknowledged.
    pub(crate) fn has_carried_data(&self) -> bool {
        self.totals.bytes_received > 0 || (self.totals.bytes_sent > 0 && self.una > 1)
    }

    /// Returns `true` if the subflow has sent data.
    pub(crate) fn has_sent_data(&self) -> bool {
        self.totals.bytes_sent > 0
    }

    /// Add the subflow's totals to the counters of its connection.
    pub(crate) fn add_to(&self, counters: &mut Counters) {
        counters.add_subflow(&self.totals, self.peer.sack);
    }

    /// The window of a segment in bytes. RFC 7323 §2.2: the window of a SYN is never scaled.
    #[inline]
    pub(crate) fn advertised_window(&self, segment: &Segment) -> u64 {
        let scaled = !segment.header.flags.contains(Flags::SYN);
        let scale = if scaled { self.peer.window_scale.unwrap_or(0) } else { 0 };
        u64::from(segment.header.window) << scale
    }

    /// The next in-order payload.
    #[inline]
    pub(crate) fn poll_received(&mut self) -> Option<Payload> {
        self.receiver.poll_ready()
    }

    /// Make the subflow send an acknowledgement at once.
    pub(crate) fn demand_ack(&mut self) {
        self.receiver.demand_ack();
    }

    /// Acknowledge this segment at once, and further segments for half of `window`, in bytes.
    pub(crate) fn enter_quickack(&mut self, window: u64) {
        self.receiver.enter_quickack(window);
    }

    /// Let the receive window open up to `bytes` bytes.
    pub(crate) fn open_window_up_to(&mut self, bytes: u64) {
        self.receiver.open_up_to(bytes);
    }

    /// The application has read all data. Returns `true` if an acknowledgement has become due.
    #[inline]
    pub(crate) fn on_drained(&mut self) -> bool {
        self.receiver.on_drained()
    }

    /// Make the subflow send a zero-length segment that the peer must acknowledge. RFC 9293
    /// §3.8.6.1.
    pub(crate) fn demand_probe(&mut self) {
        self.liveness.demand_probe();
    }

    /// The peer reports that the path is gone. RFC 8684 §3.4.2: this is believed only if nothing
    /// answers.
    pub(crate) fn verify_liveness(&mut self, now: Instant) {
        if self.is_established() && self.liveness.require_verification() {
            self.liveness.demand_probe();
            self.timers.set(SubflowTimer::Verification, now + self.rtt.rto_without_backoff() * 2);
        }
    }

    /// Number of expiries of the retransmission timer since the last acknowledgement of new data.
    pub(crate) fn timeouts_in_a_row(&self) -> u32 {
        self.liveness.timeouts_in_a_row()
    }

    /// Number of acceptable segments that have arrived, modulo 2^32.
    pub(crate) fn answers(&self) -> u32 {
        self.liveness.answers()
    }

    /// The subflow is out of use until an acceptable segment arrives.
    pub(crate) fn becomes_stale(&mut self) {
        self.liveness.becomes_stale();
    }

    /// Number of bytes that were sent and are not acknowledged cumulatively.
    #[inline]
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.nxt - self.una
    }

    /// Number of the socket buffers that hold this data.
    pub(crate) fn socket_buffers(&self) -> u64 {
        self.board.buffers()
    }

    /// Returns `true` if a tail loss probe waits for something to send.
    pub(crate) fn wants_tail_probe(&self) -> bool {
        self.recovery.probe_is_due()
    }

    /// Data sequence numbers and lengths of the segments that have not arrived.
    pub(crate) fn outstanding_data(&self) -> impl Iterator<Item = (DataSeq, u64)> + '_ {
        self.board.outstanding_meta().map(|(meta, len)| (meta.data_seq, len))
    }

    /// Data sequence numbers and lengths of all unacknowledged segments, including those that have
    /// arrived beyond a hole, which are lost with the subflow.
    pub(crate) fn unacknowledged_data(&self) -> impl Iterator<Item = (DataSeq, u64)> + '_ {
        self.board.all_meta().map(|(meta, len)| (meta.data_seq, len))
    }

    /// Returns `true` if the subflow has sent data that the peer has not acknowledged.
    pub(crate) fn has_outstanding(&self) -> bool {
        !self.board.is_empty()
    }

    /// Pass an event to the congestion control.
    #[inline]
    fn notify(&mut self, event: &CongestionEvent, views: &[SubflowView]) {
        self.congestion.notify(event, self.identity.id.slot, views);
    }

    /// A remedy requests a smaller window.
    pub(crate) fn penalise(&mut self, reduction: ExternalReduction) {
        self.congestion.reduce(reduction);
    }

    /// The options of data segments are known now.
    pub(crate) fn set_carries(&mut self, carries: Carries, views: &[SubflowView]) {
        self.path_mtu.set_option_bytes(self.data_option_bytes(carries));
        self.settle_mss(views);
    }
}
