//! Segments that a subflow sends.

use anabranch_wire::mptcp::{
    CapableFlags, CapableKeys, Control, Dss, Mapping, MpCapable, VERSION, WideOrNarrow,
};
use anabranch_wire::{
    DataSeq, ECT_0, Flags, Instant, MAX_OPTION_BYTES, Payload, PooledSegment, SackBlocks, Segment,
    SeqNumber, TcpHeader, TcpOptions, Timestamps, dss_checksum,
};

use super::{MappingMeta, State, Subflow, SubflowTimer};
use crate::congestion::CongestionEvent;
use crate::platform::OptionForm;
use crate::view::{RecoveryPhase, SubflowView};

/// State of the data level that all segments carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataLevel {
    /// Receive window in bytes. It begins at the DATA_ACK if there is one, otherwise at the
    /// subflow's acknowledgement.
    pub(crate) window: u64,
    /// DATA_ACK with Multipath TCP; 8 bytes long if the peer sends 8-byte data sequence numbers.
    pub(crate) data_ack: Option<WideOrNarrow>,
    /// Data sequence number of a DATA_FIN without payload.
    pub(crate) data_fin: Option<DataSeq>,
    /// MP_CAPABLE with both keys, while the peer may not have them.
    pub(crate) keys: Option<MpCapable>,
    /// The peer's key is not known yet, so mappings have no DATA_ACK. RFC 8684 appendix B.
    pub(crate) precedes_keys: bool,
    /// Mappings have checksums. RFC 8684 §3.3.1.
    pub(crate) checksums: bool,
    /// Data sequence numbers have 8 bytes. RFC 8684 §3.3.1.
    pub(crate) wide: bool,
    /// The connection is plain TCP, and the application waits for room in the send buffer.
    pub(crate) writer_waits: bool,
    /// Quick acknowledgements end with this segment.
    pub(crate) ends_quickack: bool,
}

impl DataLevel {
    /// Returns `true` if segments that follow at once say the same, and if data sequence numbers are `wide`.
    #[inline]
    pub(crate) fn holds_for_all(&self, wide: bool) -> bool {
        self.keys.is_none() && !self.precedes_keys && self.wide == wide
    }

    /// A data sequence number in the current size.
    fn number(&self, data_seq: DataSeq) -> WideOrNarrow {
        if self.wide {
            WideOrNarrow::Wide(data_seq)
        } else {
            WideOrNarrow::Narrow(data_seq.low32())
        }
    }
}

impl Subflow {
    /// The next segment that does not depend on the scheduler: a SYN, a reset, a retransmission, a
    /// probe.
    #[inline]
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        level: &DataLevel,
    ) -> Option<PooledSegment> {
        if self.is_urgent() { self.send_urgent(now, level) } else { None }
    }

    /// Returns `true` if there may be something to send before the scheduler is asked.
    #[inline]
    fn is_urgent(&self) -> bool {
        self.handshake.syn_is_due()
            || self.liveness.probe_is_due()
            || self.ending.reset_is_due()
            || self.board.has_lost()
    }

    /// Returns `true` if there is nothing to send but what the scheduler decides.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        !self.is_urgent() && !self.has_more_to_say()
    }

    /// Returns `true` if there is nothing to send but lost data, and no room for it. Only a change of this
    /// subflow makes room.
    pub(crate) fn only_awaits_room(&self) -> bool {
        let has_other_duties = self.handshake.syn_is_due()
            || self.liveness.probe_is_due()
            || self.ending.reset_is_due()
            || self.path_mtu.is_searching()
            || self.has_more_to_say();
        let lost = self.board.first_lost();
        !has_other_duties && lost.is_some_and(|number| !self.may_send_again(number))
    }

    fn send_urgent(&mut self, now: Instant, level: &DataLevel) -> Option<PooledSegment> {
        if self.state == State::Closed {
            return None;
        }
        if let Some(reason) = self.ending.take_reset() {
            let segment = self.build_reset(now, level, reason);
            self.close(super::SubflowEnd::Aborted);
            return Some(segment);
        }
        if self.handshake.syn_is_due() {
            return Some(self.send_syn(now, level));
        }
        if self.path_mtu.is_searching() {
            self.cut_lost_probe();
        }
        if let Some(number) = self.board.next_lost()
            && self.may_send_again(number)
        {
            return Some(self.send_again(now, level, number));
        }
        if self.liveness.take_probe() {
            return Some(self.send_probe(now, level));
        }
        None
    }

    /// Returns `true` if there may be anything to send after the scheduler was asked.
    #[inline]
    pub(crate) fn has_more_to_say(&self) -> bool {
        self.receiver.ack_is_due()
            || self.recovery.probe_is_due()
            || self.ending.fin_is_due()
            || self.signals.are_waiting()
    }

    /// After the scheduler was asked: a FIN, or an acknowledgement that no data segment carried.
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    pub(crate) fn poll_acknowledge(
        &mut self,
        now: Instant,
        level: &DataLevel,
    ) -> Option<PooledSegment> {
        let fin = self.ending.fin_is_due() && self.is_established();
        let acknowledgement = self.has_signals_to_send() || self.receiver.ack_is_due();
        let opening =
            matches!(self.state, State::SynSent | State::Closed) || self.handshake.syn_is_due();
        if fin {
            return Some(self.send_fin(now, level));
        }
        (acknowledgement && !opening).then(|| self.send_acknowledgement(now, level))
    }

    fn send_acknowledgement(&mut self, now: Instant, level: &DataLevel) -> PooledSegment {
        let signals = self.has_signals_to_send();
        self.totals.acks_sent += 1;
        let mut segment = self.build(now, level, self.nxt, Flags::ACK, level.data_fin);
        if signals && segment.options.control.is_none() {
            self.signals.attach(now, &mut segment.options, self.receiver.ack_is_due());
        }
        self.add_sacks(&mut segment.options, 0);
        if level.ends_quickack {
            self.receiver.end_quickack();
        }
        self.sent();
        segment
    }

    /// Send `payload`, which this subflow has never sent before.
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    pub(crate) fn send_data(
        &mut self,
        now: Instant,
        level: &DataLevel,
        payload: Payload,
        mut meta: Option<MappingMeta>,
        push: bool,
        views: &[SubflowView],
    ) -> PooledSegment {
        self.validate_window(now, level.writer_waits, views);
        let (start, len) = (self.nxt, payload.len() as u64);
        if let Some(meta) = meta.as_mut().filter(|_| level.checksums) {
            let (subflow_seq, mapped) = (SeqNumber(start as u32), meta.mapped(&payload));
            meta.checksum = Some(dss_checksum(meta.data_seq, subflow_seq, mapped, &payload));
        }
        let push = self.train.take_end() || push;
        let flags = if push { Flags::ACK | Flags::PSH } else { Flags::ACK };
        let mut segment = self.build(now, level, start, flags, None);
        self.attach(&mut segment, level, &payload, meta, start);
        if self.ecn.is_agreed() {
            self.make_markable(&mut segment, start + len);
        }
        if let Some(more) = len.checked_sub(self.mss.into()).filter(|more| *more > 0) {
            let size = self.path_mtu.value() + more as u16;
            self.path_mtu.on_probe_sent(start, start + len, size);
        }
        self.before_transmission(now);
        self.board.push(start, payload, meta, flags, now);
        self.nxt += len;
        self.receiver.on_data_sent(now);
        self.totals.segments_sent += 1;
        self.totals.bytes_sent += len;
        self.on_sent(now, len);
        segment
    }

    /// RFC 3168 §6.1.2: routers may mark new data instead of dropping it, and the first new data
    /// after a reduction has CWR. RFC 3168 §6.1.6: data beyond the window, up to `end`, is a probe
    /// and must not be markable.
    fn make_markable(&mut self, segment: &mut Segment, end: u64) {
        if end <= self.send_window.edge() {
            segment.ecn = ECT_0;
            if self.ecn.take_reduced() {
                segment.header.flags |= Flags::CWR;
            }
        }
    }

    /// Send a tail loss probe if the data level has no new data: retransmit the last segment. RFC
    /// 8985 §7.3.
    pub(crate) fn send_tail_probe(
        &mut self,
        now: Instant,
        level: &DataLevel,
    ) -> Option<PooledSegment> {
        self.recovery.cancel_probe();
        let last = self.board.last().filter(|number| self.has_room_for(*number))?;
        self.recovery.on_probe_sent(self.nxt, true);
        self.totals.probes += 1;
        let segment = self.send_again(now, level, last);
        self.arm_retransmission(now);
        Some(segment)
    }

    /// The tail loss probe was new data, which has just been sent.
    pub(crate) fn tail_probe_was_new(&mut self, now: Instant) {
        self.recovery.cancel_probe();
        self.recovery.on_probe_sent(self.nxt, false);
        self.totals.probes += 1;
        self.timers.stop(SubflowTimer::TailLossProbe);
        self.arm_retransmission(now);
    }

    /// Payload bytes of a full data segment with these options.
    pub(crate) fn segment_bytes(&self, carries: Carries) -> u64 {
        match carries {
            Carries::Keys { .. } => {
                u64::from(self.mss_without_options() - self.data_option_bytes(carries))
            }
            Carries::Nothing | Carries::Mapping { .. } => u64::from(self.mss()),
        }
    }

    fn may_send_again(&self, number: u64) -> bool {
        let len = self.board.get(number).map_or(0, super::scoreboard::Sent::len);
        if !self.has_room_for(number) {
            return false;
        }
        match self.recovery.phase() {
            _ if self.congestion.waits_for_departure() => false,
            RecoveryPhase::Recovery if !self.congestion.models_path() => self.recovery.quota() > 0,
            // RFC 5681 §3.1: one segment may always be in flight, whatever the window.
            _ => self.bytes_in_flight() == 0 || self.space() >= len,
        }
    }

    /// RFC 9293 §3.8.6: data beyond a window that has shrunk is not retransmitted, except for the
    /// oldest segment, which probes the window.
    fn has_room_for(&self, number: u64) -> bool {
        let start = self.board.get(number).map_or(0, |sent| sent.start);
        start <= self.una || start < self.send_window.edge()
    }

    /// Retransmit a segment. RFC 8684 §3.3.6. RFC 9293 §3.9.1.2: the last buffered segment has PSH,
    /// and so has its retransmission. RFC 3168 §6.1.5: never with ECT or CWR.
    fn send_again(&mut self, now: Instant, level: &DataLevel, number: u64) -> PooledSegment {
        let timestamp = self.clock.value(now);
        self.recovery.on_retransmission(timestamp);
        self.replace_snapshot(number);
        let record = self.board.retransmit(number, now);
        let (start, len, flags) = (record.start, record.len(), record.flags);
        let (payload, meta) = (record.payload.clone(), record.meta);
        let mut segment = self.build(now, level, start, flags, None);
        self.attach(&mut segment, level, &payload, meta, start);
        self.totals.segments_retransmitted += 1;
        self.totals.bytes_retransmitted += len;
        self.on_sent(now, len);
        segment
    }

    fn on_sent(&mut self, now: Instant, bytes: u64) {
        self.congestion.on_data_sent(now);
        let whole = if self.counts_segments() { u64::from(self.mss) } else { 0 };
        self.recovery.on_sent(bytes.max(whole));
        // RFC 6298 §5.1
        if self.timers.get(SubflowTimer::Retransmission).is_none() {
            self.arm_retransmission(now);
        }
        if let Some(timeout) = self.config.tcp.user_timeout
            && self.timers.get(SubflowTimer::UserTimeout).is_none()
        {
            self.timers.set(SubflowTimer::UserTimeout, now + timeout);
        }
        let oldest =
            self.board.oldest_sent_at().filter(|_| self.config.platform.expiry.probe_heeds_oldest);
        self.arm_tail_loss_probe(now, oldest);
        self.pace(now, bytes);
        self.sent();
    }

    /// RFC 8985 §7.2. `oldest`: when the oldest outstanding segment was sent, if its timeout bounds the
    /// probe.
    pub(super) fn arm_tail_loss_probe(&mut self, now: Instant, oldest: Option<Instant>) {
        let Some(srtt) = self.rtt.srtt() else { return };
        if !self.peer.sack || !self.recovery.may_probe(&self.board) {
            self.timers.stop(SubflowTimer::TailLossProbe);
            return;
        }
        // The peer may delay the acknowledgement of a single segment.
        let single = self.board.len() == 1;
        let more = if single { super::MAX_ACK_DELAY } else { self.timer_slack() };
        let mut wait = srtt * 2 + more;
        if let Some(timeout) = oldest.map(|sent| sent + self.rtt.rto()).filter(|at| *at > now) {
            wait = wait.min(timeout.saturating_since(now));
        }
        self.start_tail_loss_probe(now, wait);
    }

    /// RFC 5681 §4.1, RFC 2861: a congestion window that was not used is no longer reliable.
    fn validate_window(&mut self, now: Instant, writer_waits: bool, views: &[SubflowView]) {
        if !self.config.tcp.idle_restart || self.congestion.models_path() {
            return;
        }
        let (idle, rto) = (self.congestion.idle(now), self.rtt.rto());
        if self.board.is_empty() && idle > rto {
            let cwnd = self.congestion.cwnd();
            self.notify(&CongestionEvent::Idle { idle, rto }, views);
            self.totals.idle_restarts += u32::from(self.congestion.cwnd() < cwnd);
            self.congestion.restart(now);
        } else if let Some(used) = self.congestion.take_unused(now, rto)
            && self.recovery.phase() == RecoveryPhase::Open
            && !writer_waits
        {
            self.notify(&CongestionEvent::Underused { used }, views);
        }
    }

    /// A segment with the current acknowledgement was sent.
    fn sent(&mut self) {
        self.receiver.ack_sent();
        self.timers.stop(SubflowTimer::DelayedAck);
        self.clock.acknowledged(self.receiver.nxt());
    }

    fn send_syn(&mut self, now: Instant, level: &DataLevel) -> PooledSegment {
        self.totals.syn_retransmissions += u32::from(self.handshake.on_syn_sent(now));
        self.nxt = self.nxt.max(1);
        let answer = self.state == State::SynReceived;
        let flags = if answer {
            Flags::SYN | Flags::ACK | self.ecn.answer(self.config.tcp.ecn)
        } else {
            Flags::SYN | self.ecn.offer(self.config.tcp.ecn, self.handshake.syns_sent())
        };
        let mut segment = self.blank(0, flags);
        let window = level.window.min(self.first_window().into());
        segment.header.window = self.offered.offer_on_syn(window);
        let options = &mut segment.options;
        options.mss = Some(self.mtu() - self.header_bytes() as u16);
        // An answer offers only what the SYN offered.
        options.sack_permitted = if answer { self.peer.sack } else { self.config.tcp.sack };
        let scaling = !answer || self.peer.window_scale.is_some();
        options.window_scale = scaling.then_some(self.offered.scale());
        let stamping = if answer { self.peer.timestamps } else { self.config.tcp.timestamps };
        if stamping {
            options.timestamps = Some(self.clock.stamp(now));
        }
        if self.offers_multipath() {
            options.control = self.handshake.options().cloned().map(Box::new);
        }
        if let Some(fast_open) = self.handshake.fast_open() {
            segment.options.fast_open = Some(Box::new(fast_open.cookie));
            segment.payload = fast_open.data.clone();
        }
        self.arm_retransmission(now);
        self.sent();
        segment
    }

    /// A middlebox may drop SYNs because of their Multipath TCP option, so the last attempts to
    /// open a connection omit it. RFC 8684 §3.9.3, §6.
    fn offers_multipath(&self) -> bool {
        self.identity.is_join()
            || self.state == State::SynReceived
            || self.handshake.syns_sent() <= self.syn_retries_before_fallback() + 1
    }

    fn send_fin(&mut self, now: Instant, level: &DataLevel) -> PooledSegment {
        let flags = Flags::ACK | Flags::FIN;
        let segment = self.build(now, level, self.nxt, flags, None);
        self.board.push(self.nxt, Payload::EMPTY, None, flags, now);
        self.nxt += 1;
        self.ending.on_fin_sent();
        self.state = match self.state {
            State::CloseWait => State::LastAck,
            _ => State::FinWait1,
        };
        self.on_sent(now, 1);
        segment
    }

    /// RFC 9293 §3.8.4: an old sequence number makes the peer acknowledge.
    fn send_probe(&mut self, now: Instant, level: &DataLevel) -> PooledSegment {
        let segment = self.build(now, level, self.nxt - 1, Flags::ACK, level.data_fin);
        self.sent();
        segment
    }

    fn build_reset(
        &mut self,
        now: Instant,
        level: &DataLevel,
        reason: Option<Box<Control>>,
    ) -> PooledSegment {
        // Include the DATA_ACK, so that the peer does not resend data that the subflow has
        // delivered.
        let data_ack = level.data_ack.filter(|_| self.is_confirmed() && self.is_established());
        let mut segment = self.build(now, level, self.nxt, Flags::RST | Flags::ACK, None);
        segment.options.control = reason;
        segment.options.dss =
            data_ack.map(|ack| Dss { data_ack: Some(ack), mapping: None, data_fin: false });
        segment
    }

    /// A segment without payload and its options, in this order of priority: handshake, timestamps,
    /// data sequence signal, selective acknowledgements.
    fn build(
        &mut self,
        now: Instant,
        level: &DataLevel,
        start: u64,
        flags: Flags,
        data_fin: Option<DataSeq>,
    ) -> PooledSegment {
        let mut segment = self.blank(start, flags);
        self.ecn.echo(&mut segment.header);
        segment.header.window = self.offered.offer(level.window);
        if self.peer.timestamps {
            segment.options.timestamps = Some(self.clock.stamp(now));
        }
        if let mapping @ Some(_) = self.signals.infinite() {
            segment.options.dss = Some(Dss { data_ack: None, mapping, data_fin: false });
        } else if let Some(options) = self.handshake.unconfirmed_options() {
            segment.options.control = Some(Box::new(options.clone()));
        } else if let Some(keys) = level.keys.filter(|_| data_fin.is_none()) {
            segment.options.control_mut().capable = Some(keys);
        } else if let Some(data_ack) = level.data_ack {
            segment.options.dss = Some(Dss {
                data_ack: Some(data_ack),
                mapping: data_fin.map(|data_seq| Mapping {
                    // RFC 8684 §3.3.3: without payload, the subflow sequence is 0 and the length 1;
                    // the checksum covers the pseudo-header.
                    data_seq: level.number(data_seq),
                    subflow_seq: SeqNumber(0),
                    len: 1,
                    checksum: level
                        .checksums
                        .then(|| dss_checksum(data_seq, SeqNumber(0), 1, &Payload::EMPTY)),
                }),
                data_fin: data_fin.is_some(),
            });
        }
        segment
    }

    /// Attach the payload and its mapping to a segment.
    fn attach(
        &self,
        segment: &mut Segment,
        level: &DataLevel,
        payload: &Payload,
        meta: Option<MappingMeta>,
        start: u64,
    ) {
        segment.payload = payload.clone();
        // RFC 8684 §3.7: no other mapping follows the infinite mapping.
        if let Some(meta) = meta.filter(|_| level.data_ack.is_some() || level.precedes_keys) {
            self.attach_mapping(segment, level, payload, meta, start);
        }
        self.add_sacks(&mut segment.options, payload.len());
    }

    /// RFC 8684 §3.3.1, §3.7.
    fn attach_mapping(
        &self,
        segment: &mut Segment,
        level: &DataLevel,
        payload: &Payload,
        meta: MappingMeta,
        start: u64,
    ) {
        if meta.with_keys
            && let Some(keys) = level.keys
            && let CapableKeys::Both { sender, receiver } = keys.keys
        {
            // RFC 8684 §3.1: the mapping of the first data is implied by MP_CAPABLE.
            let (data_len, checksum) = (meta.mapped(payload), meta.checksum);
            let keys_with_data = CapableKeys::WithData { sender, receiver, data_len, checksum };
            let capable = MpCapable { keys: keys_with_data, ..keys };
            segment.options.control_mut().capable = Some(capable);
            return;
        }
        // A mapping and the keys of the third ACK do not fit together; the mapping takes
        // precedence.
        segment.options.control = None;
        let dss = segment.options.dss.get_or_insert_default();
        dss.data_ack = level.data_ack;
        let head = u32::from(meta.head);
        dss.mapping = Some(Mapping {
            data_seq: level.number(meta.data_seq + u64::from(head).wrapping_neg()),
            subflow_seq: SeqNumber((start as u32).wrapping_sub(head)),
            len: meta.mapped(payload),
            checksum: meta.checksum,
        });
        dss.data_fin = meta.data_fin;
        if level.wide || matches!(level.data_ack, Some(WideOrNarrow::Wide(_))) {
            self.fit_wide_numbers(segment);
        }
    }

    /// Omit the DATA_ACK of a segment that was first sent when data sequence numbers were smaller.
    fn fit_wide_numbers(&self, segment: &mut Segment) {
        let bytes = segment.payload.len() + segment.options.bytes_len();
        if bytes > self.bytes_in_packet()
            && let Some(dss) = &mut segment.options.dss
        {
            dss.data_ack = None;
        }
    }

    /// Number of bytes in a packet besides its fixed headers.
    fn bytes_in_packet(&self) -> usize {
        (u32::from(self.path_mtu.value()) - self.header_bytes()) as usize
    }

    /// Attach as many selective acknowledgements as fit next to `payload` bytes. RFC 2018 §3.
    #[inline]
    fn add_sacks(&self, options: &mut TcpOptions, payload: usize) {
        if self.peer.sack && self.receiver.has_sacks() {
            self.add_fitting_sacks(options, payload);
        }
    }

    fn add_fitting_sacks(&self, options: &mut TcpOptions, payload: usize) {
        let in_packet = self.bytes_in_packet();
        let space = in_packet.saturating_sub(payload).min(MAX_OPTION_BYTES);
        for blocks in (0..=SackBlocks::MAX).rev() {
            options.sack = self.receiver.sack_blocks(blocks);
            if options.bytes_len() <= space {
                break;
            }
        }
    }

    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    fn blank(&self, start: u64, flags: Flags) -> PooledSegment {
        let ack =
            if flags.contains(Flags::ACK) { self.receiver.ack_number() } else { SeqNumber(0) };
        let header = TcpHeader { seq: self.iss + start as u32, ack, flags, window: 0, urgent: 0 };
        let (local, remote) = (self.identity.local, self.identity.remote);
        let mut segment = PooledSegment::blank(local, remote, header);
        segment.options.word_aligned = !flags.contains(Flags::SYN) && self.aligns_options();
        segment
    }

    /// Returns `true` if the options of an established subflow's segments are padded one by one.
    #[inline]
    fn aligns_options(&self) -> bool {
        self.config.platform.options == OptionForm::Long
    }

    /// The options of a segment of an established subflow, before any is added.
    fn no_options(&self) -> TcpOptions {
        TcpOptions { word_aligned: self.aligns_options(), ..TcpOptions::default() }
    }

    /// Size in bytes of the padded options of a data segment with these parts, without selective
    /// acknowledgements. RFC 8684 §3.3: a DATA_ACK has 4 bytes if the peer sends 4-byte numbers.
    pub(super) fn data_option_bytes(&self, carries: Carries) -> u32 {
        let narrow = WideOrNarrow::Narrow(0);
        let sum = |checksum: bool| checksum.then_some(0);
        let timestamps = self.peer.timestamps.then(Timestamps::default);
        let mut options = TcpOptions { timestamps, ..self.no_options() };
        match carries {
            Carries::Nothing => {}
            Carries::Mapping { checksum, wide, wide_ack } => {
                let checksum = sum(checksum);
                let number = |wide| if wide { WideOrNarrow::Wide(DataSeq(0)) } else { narrow };
                let data_ack = number(wide_ack);
                let mapping =
                    Mapping { data_seq: number(wide), subflow_seq: SeqNumber(0), len: 0, checksum };
                options.dss =
                    Some(Dss { data_ack: Some(data_ack), mapping: Some(mapping), data_fin: false });
            }
            Carries::Keys { checksum } => {
                let checksum = sum(checksum);
                let keys = CapableKeys::WithData { sender: 0, receiver: 0, data_len: 0, checksum };
                let flags = CapableFlags::PLAIN;
                options.control_mut().capable = Some(MpCapable { version: VERSION, flags, keys });
            }
        }
        options.bytes_len() as u32
    }

    /// Returns `true` if the subflow may acknowledge the latest data with this window, before the
    /// application has read it.
    pub(crate) fn acknowledges_early(&self, window: u64) -> bool {
        !self.receiver.ack_may_wait() || !self.offered.shrinks_to(window)
    }

    /// The window that was advertised last.
    pub(crate) fn advertised(&self) -> u64 {
        self.offered.last()
    }
}

/// Options of the data level on a data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carries {
    /// None, in plain TCP.
    Nothing,
    /// A mapping with or without checksum; its data sequence number and the DATA_ACK have 4 or 8
    /// bytes.
    Mapping { checksum: bool, wide: bool, wide_ack: bool },
    /// MP_CAPABLE with both keys, which implies the mapping.
    Keys { checksum: bool },
}

impl MappingMeta {
    /// Length of the mapping whose remaining payload is `payload`. RFC 8684 §3.3.3: the DATA_FIN
    /// counts as one byte.
    fn mapped(&self, payload: &Payload) -> u16 {
        self.head + (payload.len() + usize::from(self.data_fin)) as u16 + self.tail
    }
}
