//! Segments that arrive: what they say about the data level.

use anabranch_wire::mptcp::{CapableKeys, Control, Dss, ResetReason};
use anabranch_wire::{Flags, Instant, Segment};

use super::handshake::because;
use super::recv_queue::Taken;
use super::{Connection, Mode};
use crate::subflow::{Arrived, Purpose, State};

/// Subflow octets beyond RCV.NXT that are accepted when the data level has its own window: twice
/// the receive buffer, because a subflow may carry copies of data that another delivered.
const COPIES: u64 = 2;

impl Connection {
    /// Take a segment for the subflow in `slot`; its payload is moved out.
    pub(crate) fn handle_segment(&mut self, now: Instant, slot: u8, segment: &mut Segment) {
        self.remedies_asked = false;
        if self.waits_for_keys(slot, segment) || self.lanes[usize::from(slot)].subflow.is_doomed() {
            return;
        }
        let window = match self.mode {
            Mode::Mptcp => (self.config.receive_buffer * COPIES).max(1 << 16),
            _ if self.recv.is_crowded() => 0,
            _ => self.recv.accepted_window(),
        };
        let lane = &mut self.lanes[usize::from(slot)];
        let was_opening = lane.subflow.state() == State::SynSent;
        let was_confirmed = lane.subflow.confirmed;
        let arrived = Arrived { window, views: &self.views };
        let handled = lane.subflow.handle_segment(now, segment, &arrived);
        let confirmed = lane.subflow.confirmed && !was_confirmed;
        if segment.header.flags.contains(Flags::RST) && lane.subflow.state() == State::Closed {
            self.take_reset(segment);
        }
        if handled.established {
            if was_opening {
                self.on_syn_ack(now, slot, segment);
            } else {
                self.on_third_ack(now, slot, segment);
            }
        } else if confirmed && self.lanes[usize::from(slot)].subflow.purpose == Purpose::Join {
            self.on_subflow_ready(now, slot);
        }
        // RFC 8684 §3.2: nothing counts on a subflow whose other end has not proved itself.
        if handled.acceptable && !self.lanes[usize::from(slot)].subflow.is_doomed() {
            self.answer_join(slot, segment);
            self.fall_back_if_unanswered(slot, segment, handled.ack);
            match self.mode {
                Mode::Mptcp => self.take_signals(now, slot, segment),
                _ => self.take_plain(now, slot, segment, handled.ack),
            }
            self.deliver(slot);
        }
        self.refresh(slot);
        self.detect_bottlenecks(now, slot);
        self.tune_buffers(now);
        self.reap(now);
    }

    /// RFC 8684 §3.7: a listener that acknowledges or sends data without a data sequence signal
    /// did not get this host's key: the connection goes on as TCP.
    fn fall_back_if_unanswered(&mut self, slot: u8, segment: &Segment, ack: u64) {
        let subflow = &mut self.lanes[usize::from(slot)].subflow;
        let speaks = ack > 1 || subflow.receive_next() > 1;
        let control = segment.options.control.as_ref();
        // ADD_ADDR leaves no room for a data sequence signal.
        let announces = control.is_some_and(|control| control.add_addr.is_some());
        let signals = segment.options.dss.is_some() || announces;
        if self.mode == Mode::Mptcp && self.keys_to_repeat().is_some() && speaks && !signals {
            self.counters.mp_capable_fallback_ack += 1;
            self.fall_back();
            self.lanes[usize::from(slot)].subflow.confirmed = true;
        }
    }

    /// RFC 8684 §3.2: the initiator repeats the third ACK of a join until it is acknowledged.
    fn answer_join(&mut self, slot: u8, segment: &Segment) {
        if segment.options.control.as_ref().is_some_and(|control| control.join.is_some()) {
            self.lanes[usize::from(slot)].subflow.demand_ack();
        }
    }

    /// RFC 8684 §3.1: until the listener has the initiator's key it cannot use a data sequence
    /// signal; the first data will be sent again, with the keys.
    fn waits_for_keys(&self, slot: u8, segment: &Segment) -> bool {
        let subflow = &self.lanes[usize::from(slot)].subflow;
        let has_keys = segment.options.control.as_ref().is_some_and(|c| c.capable.is_some());
        subflow.state() == State::SynReceived
            && subflow.purpose == Purpose::Initial
            && self.mode == Mode::Negotiating
            && segment.options.dss.is_some()
            && !has_keys
            && !segment.header.flags.contains(Flags::RST)
    }

    /// The data sequence signal of an acceptable segment. RFC 8684 §3.3.
    fn take_signals(&mut self, now: Instant, slot: u8, segment: &Segment) {
        if let Some(dss) = &segment.options.dss {
            let lane = &mut self.lanes[usize::from(slot)];
            if !lane.subflow.confirmed {
                lane.subflow.confirmed = true;
            }
            self.take_data_ack(now, slot, dss, segment);
            self.take_mapping(slot, dss);
            self.start_path_manager(now);
        } else if let Some(control) = &segment.options.control
            && let Some(capable) = control.capable
            && let CapableKeys::WithData { data_len, .. } = capable.keys
        {
            // RFC 8684 §3.1: the first data is mapped from IDSN + 1 at subflow sequence 1.
            self.add_mapping(slot, 1, 1, u64::from(data_len));
        }
        if let Some(control) = &segment.options.control {
            self.take_path_signals(now, slot, control);
        }
        if self.peer_edge == 1 {
            // The handshake's own windows count from the first octet.
            self.widen(1, slot, segment);
        }
    }

    /// What a believed reset says.
    fn take_reset(&mut self, segment: &Segment) {
        let Some(control) = &segment.options.control else { return };
        self.counters.mp_rst_rx += u64::from(control.reset.is_some());
        if let Some(fastclose) = control.fastclose {
            self.take_fastclose(fastclose);
        }
    }

    fn take_path_signals(&mut self, now: Instant, slot: u8, control: &Control) {
        if let Some(prio) = control.prio {
            // RFC 8684 §3.3.8: it concerns the subflow that it arrives on.
            self.counters.mp_prio_rx += 1;
            self.lanes[usize::from(slot)].subflow.priority.by_peer = prio.backup;
        }
        if let Some(removed) = &control.remove_addr {
            self.counters.rm_addr += 1;
            self.forget_addresses(now, removed.address_ids());
            self.doubt_subflows(now, slot, removed.address_ids());
        }
        if let Some(fastclose) = control.fastclose {
            self.take_fastclose(fastclose);
        }
        if let Some(option) = &control.add_addr {
            self.take_address(now, slot, option);
        }
    }

    /// RFC 8684 §3.3.2: DATA_ACK acknowledges cumulatively, and the window counts from it.
    fn take_data_ack(&mut self, now: Instant, slot: u8, dss: &Dss, segment: &Segment) {
        let Some(data_ack) = dss.data_ack else { return };
        let near = self.data_seq(self.send.una());
        let distance = data_ack.resolve(near).distance_from(near);
        let Some(offset) = self.send.una().checked_add_signed(distance) else { return };
        if offset < 1 || offset > self.send.nxt() {
            return;
        }
        if self.widen(offset, slot, segment) && self.timers.retransmission_backoff > 0 {
            // There is room again for what the peer may have had to drop.
            self.timers.retransmission = now;
        }
        if self.send.acknowledge(offset) {
            self.on_data_progress(now);
        }
    }

    /// RFC 8684 §3.3.5: only a larger edge counts, since segments of different subflows overtake
    /// each other. True if it is one.
    fn widen(&mut self, acknowledged: u64, slot: u8, segment: &Segment) -> bool {
        let scale = self.lanes[usize::from(slot)].subflow.peer_window_scale();
        let scale = if segment.header.flags.contains(Flags::SYN) { 0 } else { scale };
        let window = u64::from(segment.header.window) << scale;
        let before = self.peer_edge;
        self.peer_edge = before.max(acknowledged + window);
        self.peer_edge > before
    }

    fn take_mapping(&mut self, slot: u8, dss: &Dss) {
        let Some(mapping) = dss.mapping else { return };
        let near = self.keys.remote_idsn + self.recv.nxt();
        let distance = mapping.data_seq.resolve(near).distance_from(near);
        let Some(data) = self.recv.nxt().checked_add_signed(distance) else { return };
        if data.checked_add(u64::from(mapping.len)).is_none() {
            return;
        }
        let mut len = u64::from(mapping.len);
        if len == 0 {
            self.counters.infinite_map_rx += 1;
            return;
        }
        if dss.data_fin {
            // RFC 8684 §3.3.3: the DATA_FIN is the mapping's last octet.
            len -= 1;
            if self.recv.set_fin(data + len) {
                self.readable = true;
            }
            // Whatever else happens, the peer must learn that its DATA_FIN arrived.
            self.lanes[usize::from(slot)].subflow.demand_ack();
        }
        if len > 0 {
            let lane = &self.lanes[usize::from(slot)];
            let next = lane.subflow.receive_next();
            let subflow =
                next as i64 + i64::from(mapping.subflow_seq.0.wrapping_sub(next as u32) as i32);
            if let Ok(subflow) = u64::try_from(subflow) {
                self.add_mapping(slot, subflow, data, len);
            }
        }
    }

    fn add_mapping(&mut self, slot: u8, subflow: u64, data: u64, len: u64) {
        let lane = &mut self.lanes[usize::from(slot)];
        let next = lane.subflow.receive_next();
        let reach = self.config.receive_buffer * COPIES + (1 << 16);
        let near = subflow + len > next.saturating_sub(reach) && subflow < next + reach;
        if len > 0 && !(near && lane.mappings.add(subflow, data, len)) {
            self.counters.dss_no_match += 1;
        }
    }

    /// Plain TCP: the subflow's octets are the stream's.
    fn take_plain(&mut self, now: Instant, slot: u8, segment: &Segment, ack: u64) {
        let una = self.lanes[usize::from(slot)].subflow.una();
        self.widen(ack.max(1), slot, segment);
        // The FIN has a number at subflow level only.
        if self.send.acknowledge(una.min(self.send.end())) {
            self.on_data_progress(now);
        }
    }

    /// Move what the subflow has in order to the data level.
    fn deliver(&mut self, slot: u8) {
        let lane = &mut self.lanes[usize::from(slot)];
        while let Some((start, payload)) = lane.subflow.poll_received() {
            if self.mode == Mode::Mptcp {
                lane.mappings.push(start, payload);
                continue;
            }
            if self.recv.take(slot, start, payload) == Taken::Delivered {
                self.readable = true;
            }
        }
        while let Some((data, payload)) = self.lanes[usize::from(slot)].mappings.poll() {
            if self.recv.is_crowded() {
                // Not acknowledged at data level, so it will come again.
                self.counters.no_dss_in_window += 1;
                continue;
            }
            match self.recv.take(slot, data, payload) {
                Taken::Delivered => self.readable = true,
                Taken::Waiting => self.counters.ofo_queue += 1,
                Taken::Duplicate => self.counters.dup_data += 1,
                Taken::OutsideWindow => self.counters.no_dss_in_window += 1,
            }
        }
        let lane = &mut self.lanes[usize::from(slot)];
        if lane.mappings.unmapped_octets() > self.config.receive_buffer * COPIES {
            // RFC 8684 §3.3.1: payload that no mapping comes for is of no use to anybody.
            lane.subflow.reset(Some(because(ResetReason::MIDDLEBOX_INTERFERENCE)));
        }
        if self.mode != Mode::Mptcp && self.peer_has_finished() {
            self.readable = true;
        }
    }

    /// The peer acknowledged data.
    fn on_data_progress(&mut self, now: Instant) {
        self.on_data_acknowledged(now);
        self.wake_writer();
    }
}
