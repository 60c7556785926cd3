//! One subflow: a TCP connection that carries mappings of the data level as opaque metadata.
//!
//! Inside a subflow, sequence numbers are 64-bit offsets from 0 for the SYN, so they can be
//! compared. They become 32-bit numbers on the wire. The data level decides what to send and
//! interprets the data that arrives; a subflow never looks into it.

mod acknowledgement;
mod clock;
mod ecn;
mod ending;
mod full_segment;
mod input;
mod limits;
mod output;
mod path_mtu;
mod receiver;
mod recovery;
mod scoreboard;
mod send_window;
mod signals;
#[cfg(test)]
mod tests;
mod timeouts;
mod timer;

pub(crate) use ending::SubflowEnd;
pub(crate) use input::RxContext;
pub(crate) use output::{Carries, DataLevel};
use timer::Timer;

use std::sync::Arc;

use anabranch_wire::mptcp::{Control, Mapping};
use anabranch_wire::{
    DataSeq, Duration, Flags, Instant, Payload, Segment, SeqNumber, SocketAddress,
};

use crate::config::ConnectionConfig;
use crate::congestion::{CongestionControl, CongestionEvent, ExternalReduction};
use crate::counters::{Counters, Totals};
use crate::flood::Numbers;
use crate::platform::{Cwnd, CwndUsage, OwnMss, RcvSsthresh};
use crate::rtt::RttEstimator;
use crate::view::{Bottleneck, Phase, SubflowId, SubflowView, Usability};
use clock::Clock;
use ecn::Ecn;
use path_mtu::PathMtu;
use receiver::Receiver;
use recovery::Recovery;
use scoreboard::Scoreboard;
use send_window::SendWindow;
use timer::TimerTable;

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

/// Origin of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It opened the connection.
    Initial,
    /// It joined an existing connection. RFC 8684 §3.2.
    Join,
}

/// Requests to use the subflow only if no regular subflow is usable. RFC 8684 §3.3.8.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Priority {
    /// This host requested it of the peer with MP_JOIN or MP_PRIO, and does the same itself.
    pub(crate) signalled: bool,
    /// The peer requested it.
    pub(crate) by_peer: bool,
    /// Only this host's path manager requested it, without telling the peer.
    pub(crate) standby: bool,
}

impl Priority {
    fn is_backup(self) -> bool {
        self.signalled || self.by_peer || self.standby
    }
}

/// Options of the peer's SYN; the defaults apply until it arrives.
#[derive(Clone, Copy, Debug)]
struct Peer {
    mss: u16,
    window_scale: Option<u8>,
    sack: bool,
    timestamps: bool,
}

#[derive(Debug)]
pub(crate) struct Subflow {
    pub(crate) id: SubflowId,
    pub(crate) purpose: Purpose,
    /// This host sent the first SYN.
    active: bool,
    pub(crate) local: SocketAddress,
    pub(crate) remote: SocketAddress,
    pub(crate) local_address_id: u8,
    pub(crate) remote_address_id: u8,
    pub(crate) priority: Priority,
    /// Verdict of the connection's bottleneck detector.
    pub(crate) bottleneck: Bottleneck,
    /// One-way delay of the segment acknowledged last, in milliseconds plus an unknown constant.
    pub(crate) one_way_delay: Option<i32>,
    /// The peer is known to have completed the handshake.
    pub(crate) confirmed: bool,
    /// Multipath TCP options of the handshake: on the SYN, then on ACKs until the peer confirms.
    pub(crate) handshake_options: Option<Box<Control>>,
    pub(crate) totals: Totals,
    config: Arc<ConnectionConfig>,
    state: State,
    end: Option<SubflowEnd>,
    iss: SeqNumber,
    /// SND.UNA.
    una: u64,
    /// SND.NXT.
    nxt: u64,
    peer: Peer,
    receive_scale: u8,
    receiver: Receiver,
    board: Scoreboard,
    recovery: Recovery,
    rtt: RttEstimator,
    congestion_control: Box<dyn CongestionControl>,
    cwnd_usage: CwndUsage,
    timers: TimerTable,
    ecn: Ecn,
    clock: Clock,
    /// Payload bytes of a full data segment.
    mss: u32,
    path_mtu: PathMtu,
    /// SYNs or SYN/ACKs sent.
    syn_transmissions: u16,
    /// Time of the last SYN or SYN/ACK; far in the future if it is unknown.
    syn_sent: Instant,
    /// The peer's SYN, if it carried payload or a FIN that has not been processed.
    syn_payload: Option<Box<Segment>>,
    /// A SYN or SYN/ACK must be sent now.
    syn_due: bool,
    /// Retransmission timeouts since the last progress.
    timeouts_in_a_row: u16,
    /// Keep-alive probes since the peer last answered.
    keep_alive_probes: u16,
    /// A zero-length segment that elicits an acknowledgement must be sent.
    probe_due: bool,
    /// Options to send on an acknowledgement of their own.
    signals: Option<Box<Control>>,
    /// The infinite mapping that ends Multipath TCP. It is sent until a byte from this offset on is
    /// acknowledged. RFC 8684 §3.7.
    infinite: Option<Box<(Mapping, u64)>>,
    /// Time of the last MP_PRIO.
    priority_sent: Instant,
    /// The peer reports that the path is gone, and nothing has arrived over it since.
    liveness_doubtful: bool,
    /// Number of segments that are sent together, on a platform that may wait for room.
    burst: u8,
    /// Number of them that are still to be sent.
    burst_left: u8,
    /// The window advertised last. Its field may have less, if it is too short.
    advertised: u32,
    /// A tail loss probe must be sent. RFC 8985 §7.3.
    tail_probe_due: bool,
    /// The application's FIN must be sent after all data.
    fin_wanted: bool,
    /// The peer has nothing to send either, so the wait for its FIN is limited.
    peer_is_done: bool,
    fin_sent: bool,
    /// A reset must be sent, with these options.
    reset_due: bool,
    reset_options: Option<Box<Control>>,
    last_data_sent: Instant,
    /// Value at the last acknowledgement; see [`SubflowView::paced_window`].
    paced_window: u64,
    send_window: SendWindow,
    /// An acceptable segment has arrived since the retransmission timer last expired.
    answered: bool,
    /// Challenge ACKs that were sent lately, and since when. RFC 5961 §7.
    challenges: Option<Box<(Instant, u8)>>,
}

/// The parameters of a new subflow.
pub(crate) struct Open<'a> {
    pub(crate) id: SubflowId,
    pub(crate) purpose: Purpose,
    pub(crate) local: SocketAddress,
    pub(crate) remote: SocketAddress,
    pub(crate) local_address_id: u8,
    pub(crate) remote_address_id: u8,
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
/// RFC 5961 §7: maximum number of challenge ACKs per second and subflow.
const CHALLENGES_PER_SECOND: u8 = 10;

/// Bytes of the IP and TCP headers without options.
fn header_bytes(local: SocketAddress) -> u32 {
    if local.address.is_ipv4() { 40 } else { 60 }
}

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

    /// Take no round-trip time sample of the handshake, because the time of the SYN/ACK is unknown.
    pub(crate) fn skip_handshake_sample(&mut self) {
        self.syn_sent = Instant::FAR_FUTURE;
    }

    fn new(open: Open<'_>, state: State) -> Self {
        let config = Arc::clone(open.config);
        let mtu = config.mtu_of(open.local.address);
        let mss = u32::from(mtu) - 40;
        let headers = header_bytes(open.local);
        let start = crate::congestion::Start {
            local: open.local.address,
            remote: open.remote.address,
            mss,
            initial_window: u64::from(config.tcp.initial_window_segments * mss),
        };
        Subflow {
            id: open.id,
            purpose: open.purpose,
            active: state == State::SynSent,
            local: open.local,
            remote: open.remote,
            local_address_id: open.local_address_id,
            remote_address_id: open.remote_address_id,
            priority: Priority::default(),
            bottleneck: Bottleneck::Unknown,
            one_way_delay: None,
            confirmed: false,
            handshake_options: None,
            totals: Totals::default(),
            state,
            end: None,
            iss: open.iss,
            una: 0,
            nxt: 0,
            peer: Peer { mss: 536, window_scale: None, sack: false, timestamps: false },
            receive_scale: open.receive_scale,
            receiver: Receiver::new(
                SeqNumber(0),
                config.platform.acknowledging,
                RcvSsthresh::default(),
            ),
            board: Scoreboard::default(),
            recovery: Recovery::new(),
            rtt: RttEstimator::new(config.platform.timeouts),
            congestion_control: (config.congestion_control)(&start),
            cwnd_usage: CwndUsage::new(config.platform.growth),
            timers: TimerTable::new(),
            ecn: Ecn::default(),
            clock: Clock::new(open.timestamp_offset),
            mss: 536,
            path_mtu: PathMtu::new(mtu, config.tcp.mtu_probing, headers as u16 + TIMESTAMPS),
            syn_transmissions: 0,
            syn_sent: Instant::FAR_FUTURE,
            syn_payload: None,
            syn_due: true,
            timeouts_in_a_row: 0,
            keep_alive_probes: 0,
            probe_due: false,
            signals: None,
            infinite: None,
            priority_sent: Instant::ZERO,
            liveness_doubtful: false,
            burst: 0,
            burst_left: 0,
            advertised: 0,
            tail_probe_due: false,
            fin_wanted: false,
            peer_is_done: false,
            fin_sent: false,
            reset_due: false,
            reset_options: None,
            last_data_sent: Instant::ZERO,
            paced_window: 0,
            send_window: SendWindow::default(),
            answered: false,
            challenges: None,
            config,
        }
    }

    /// Release unused memory.
    pub(crate) fn release_memory(&mut self) {
        self.board.release_memory();
        self.receiver.release_memory();
    }

    /// The subflow's view for policies.
    pub(crate) fn view(&self) -> SubflowView {
        let cwnd = self.congestion_control.cwnd();
        SubflowView {
            id: self.id,
            local_address_id: self.local_address_id,
            remote_address_id: self.remote_address_id,
            usability: self.usability(),
            backup: self.priority.is_backup(),
            phase: self.recovery.phase(),
            mss: self.mss(),
            cwnd,
            ssthresh: self.congestion_control.ssthresh(),
            bytes_in_flight: self.bytes_in_flight(),
            available_cwnd: self.cwnd_for_new_data(),
            paced_window: self.paced_window,
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
    pub(crate) fn after_sending(&mut self, now: Instant, view: &mut SubflowView) {
        view.cwnd = self.congestion_control.cwnd();
        view.ssthresh = self.congestion_control.ssthresh();
        view.bytes_in_flight = self.bytes_in_flight();
        view.available_cwnd = self.cwnd_for_new_data();
        let full = self.cwnd_room(view.cwnd) < u64::from(view.mss);
        let cwnd = Cwnd { bytes: view.cwnd, full, slow_start: view.cwnd < view.ssthresh };
        self.cwnd_usage.on_sent(now, self.una..self.nxt, cwnd);
    }

    fn update_pacing(&mut self) {
        let (cwnd, ssthresh) = (self.congestion_control.cwnd(), self.congestion_control.ssthresh());
        let in_flight = self.bytes_in_flight();
        self.paced_window = self.config.platform.paced_window(cwnd, ssthresh, in_flight);
    }

    fn usability(&self) -> Usability {
        match self.state {
            State::SynSent | State::SynReceived => Usability::Opening,
            State::Established | State::CloseWait if self.fin_wanted => Usability::Closed,
            State::Established | State::CloseWait => {
                if self.purpose == Purpose::Join && !self.confirmed {
                    Usability::Opening
                } else if self.timeouts_in_a_row > 0 || self.liveness_doubtful {
                    Usability::PotentiallyFailed
                } else {
                    Usability::Usable
                }
            }
            _ => Usability::Closed,
        }
    }

    /// Number of bytes of new data that the subflow may send now.
    fn cwnd_for_new_data(&self) -> u64 {
        // RFC 8684 §3.3.5: the subflow's own window counts as well, which a middlebox may have
        // reduced. If nothing is in flight, a segment is sent regardless, to elicit a new window.
        let left = self.send_window.edge().saturating_sub(self.nxt);
        let least = if self.board.is_empty() { u64::from(self.mss()) } else { 0 };
        self.space().min(left.max(least))
    }

    /// Number of bytes in flight, as far as is known.
    fn bytes_in_flight(&self) -> u64 {
        self.board.bytes_in_flight().saturating_sub(self.recovery.arrived_unreported())
    }

    /// Number of bytes that congestion control allows the subflow to send now.
    fn space(&self) -> u64 {
        match self.recovery.phase() {
            _ if self.ecn.is_holding() => 0,
            Phase::Recovery => self.recovery.quota(),
            Phase::Open | Phase::Loss => self.cwnd_room(self.congestion_control.cwnd()),
        }
    }

    /// Number of bytes that a congestion window of `cwnd` bytes admits.
    fn cwnd_room(&self, cwnd: u64) -> u64 {
        let partial = if self.counts_segments() { cwnd % u64::from(self.mss.max(1)) } else { 0 };
        (cwnd - partial).saturating_sub(self.flight())
    }

    /// Bytes in flight as congestion control counts them: segments in full, on some platforms.
    pub(crate) fn flight(&self) -> u64 {
        if !self.counts_segments() {
            return self.bytes_in_flight();
        }
        let all = self.board.segments_in_flight() * u64::from(self.mss);
        all.saturating_sub(self.recovery.arrived_unreported())
    }

    /// Returns `true` if congestion control counts segments. It does so on some platforms, and only
    /// with selective acknowledgements, which identify each segment.
    fn counts_segments(&self) -> bool {
        self.config.platform.recovery.counts_segments && self.peer.sack
    }

    /// Returns `true` if the peer's window admits another byte.
    pub(crate) fn has_window(&self) -> bool {
        self.nxt < self.send_window.edge()
    }

    /// Offset of the end of the peer's window.
    pub(crate) fn window_edge(&self) -> u64 {
        self.send_window.edge()
    }

    /// The largest window that the peer has offered, in bytes.
    pub(crate) fn largest_window(&self) -> u64 {
        self.send_window.largest()
    }

    /// Payload bytes of a full data segment.
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
        self.config.mtu_of(self.local.address)
    }

    pub(super) fn own_mss(&self) -> OwnMss {
        let bare = self.mtu() - self.header_bytes() as u16;
        let stamped = |stamps| if stamps { bare - TIMESTAMPS } else { bare };
        OwnMss {
            at_syn: stamped(!self.active && self.peer.timestamps),
            with_timestamps: stamped(self.config.tcp.timestamps),
        }
    }

    fn header_bytes(&self) -> u32 {
        header_bytes(self.local)
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

    pub(crate) fn end(&self) -> Option<SubflowEnd> {
        self.end
    }

    /// SND.UNA as an offset.
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// SND.NXT as an offset.
    pub(crate) fn send_next(&self) -> u64 {
        self.nxt
    }

    /// RCV.NXT as an offset.
    pub(crate) fn receive_next(&self) -> u64 {
        self.receiver.nxt()
    }

    /// Subflow offset of the end of an arriving segment's payload.
    pub(crate) fn end_of(&self, segment: &Segment) -> u64 {
        let start = self.receiver.nxt() as i64 + self.receiver.distance(segment.header.seq);
        (start + segment.payload.len() as i64).max(0) as u64
    }

    /// Returns `true` if the segment is out of order, and arrives before anything has shown that
    /// the peer agrees to the join that this host began. RFC 8684 §3.2.
    pub(crate) fn overtakes_fourth_ack(&self, segment: &Segment) -> bool {
        self.active
            && self.purpose == Purpose::Join
            && !self.confirmed
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

    /// Returns `true` if the peer's FIN has arrived, and everything before it.
    pub(crate) fn peer_finished(&self) -> bool {
        self.receiver.finished()
    }

    /// Add the subflow's totals to the counters of its connection.
    pub(crate) fn add_to(&self, counters: &mut Counters) {
        counters.add_subflow(&self.totals, self.peer.sack);
    }

    /// The valid window in bytes on a host that keeps the larger window.
    pub(crate) fn kept_window(&self) -> u64 {
        self.send_window.kept()
    }

    /// The window of a segment in bytes. RFC 7323 §2.2: the window of a SYN is never scaled.
    #[inline]
    pub(crate) fn advertised_window(&self, segment: &Segment) -> u64 {
        let scaled = !segment.header.flags.contains(Flags::SYN);
        let scale = if scaled { self.peer.window_scale.unwrap_or(0) } else { 0 };
        u64::from(segment.header.window) << scale
    }

    pub(crate) fn out_of_order_bytes(&self) -> u64 {
        self.receiver.out_of_order_bytes()
    }

    pub(crate) fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    pub(crate) fn rto_without_backoff(&self) -> Duration {
        self.rtt.rto_without_backoff()
    }

    /// The next in-order payload with its subflow offset.
    pub(crate) fn poll_received(&mut self) -> Option<(u64, Payload)> {
        self.receiver.poll_ready()
    }

    /// Payload bytes of the peer's full-sized segments.
    pub(crate) fn full_segment(&self) -> u32 {
        self.receiver.full_segment()
    }

    /// Returns `true` if the subflow must send an acknowledgement at once.
    pub(crate) fn owes_acknowledgement(&self) -> bool {
        self.receiver.ack_is_due()
    }

    /// Make the subflow send an acknowledgement at once.
    pub(crate) fn demand_ack(&mut self) {
        self.receiver.demand_ack();
    }

    /// The application has read all data.
    pub(crate) fn on_drained(&mut self) {
        self.receiver.on_drained();
    }

    /// Make the subflow send a zero-length segment that the peer must acknowledge. RFC 9293
    /// §3.8.6.1.
    pub(crate) fn demand_probe(&mut self) {
        self.probe_due = true;
    }

    /// The peer reports that the path is gone. RFC 8684 §3.4.2: this is believed only if nothing
    /// answers.
    pub(crate) fn verify_liveness(&mut self, now: Instant) {
        if self.is_established() && !self.liveness_doubtful {
            self.liveness_doubtful = true;
            self.probe_due = true;
            self.timers.set(Timer::Doubt, now + self.rtt.rto_without_backoff() * 2);
        }
    }

    /// Number of expiries of the retransmission timer since the last acknowledgement of new data.
    pub(crate) fn timeouts_in_a_row(&self) -> u32 {
        self.timeouts_in_a_row.into()
    }

    /// Returns `true` if a tail loss probe waits for something to send.
    pub(crate) fn wants_tail_probe(&self) -> bool {
        self.tail_probe_due
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
    fn notify(&mut self, event: &CongestionEvent, views: &[SubflowView]) {
        self.congestion_control.on_congestion_event(event, self.id.slot.index(), views);
    }

    /// A remedy requests a smaller window.
    pub(crate) fn penalise(&mut self, reduction: ExternalReduction) {
        self.congestion_control.on_external_reduction(reduction);
    }

    /// The options of data segments are known now.
    pub(crate) fn set_carries(&mut self, carries: Carries, views: &[SubflowView]) {
        self.path_mtu.set_option_bytes(self.data_option_bytes(carries));
        self.settle_mss(views);
    }
}
