//! Event counters of an endpoint, named after the kernel's MIB.

/// How often things happened. Field names are the kernel's `MPTcpExt…` names in snake case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// SYNs with MP_CAPABLE received.
    pub mp_capable_syn_rx: u64,
    /// SYN/ACKs with MP_CAPABLE received.
    pub mp_capable_syn_ack_rx: u64,
    /// Third ACKs with MP_CAPABLE received.
    pub mp_capable_ack_rx: u64,
    /// Connections that fell back because the SYN/ACK lacked MP_CAPABLE.
    pub mp_capable_fallback_syn_ack: u64,
    /// Connections that fell back because the third ACK or first data lacked it.
    pub mp_capable_fallback_ack: u64,
    /// SYNs with MP_JOIN received.
    pub join_syn_rx: u64,
    /// SYN/ACKs with MP_JOIN received.
    pub join_syn_ack_rx: u64,
    /// Third ACKs with MP_JOIN received.
    pub join_ack_rx: u64,
    /// SYNs with MP_JOIN whose token named no connection.
    pub join_no_token_found: u64,
    /// SYN/ACKs with MP_JOIN whose HMAC was wrong.
    pub join_syn_ack_hmac_failure: u64,
    /// Third ACKs with MP_JOIN whose HMAC was wrong.
    pub join_ack_hmac_failure: u64,
    /// Connections that fell back because the first data, or its acknowledgement, came without
    /// any option.
    pub mp_capable_data_fallback: u64,
    /// Connections that fell back because options were missing, then or later.
    pub dss_fallback: u64,
    /// Mappings that contradicted an earlier one.
    pub dss_not_matching: u64,
    /// Mappings whose checksum was wrong.
    pub data_csum_err: u64,
    /// Connections that fell back because a checksum was wrong.
    pub dss_corruption_fallback: u64,
    /// Subflows reset because a checksum was wrong, or the stream could not be placed in a fallback.
    pub dss_corruption_reset: u64,
    /// Data-level octets that had been received before, in segments.
    pub dup_data: u64,
    /// Segments that had to wait at data level for an earlier one.
    pub ofo_queue: u64,
    /// Data outside of the receive window.
    pub no_dss_in_window: u64,
    /// Data sent again on another subflow, in segments.
    pub data_level_retransmits: u64,
    /// Fallbacks announced by infinite mappings.
    pub infinite_map_tx: u64,
    /// Infinite mappings received before the fallback.
    pub infinite_map_rx: u64,
    /// MP_FAIL options sent.
    pub mp_fail_tx: u64,
    /// MP_FAIL options received.
    pub mp_fail_rx: u64,
    /// Segments whose TCP checksum was wrong.
    pub checksum_errors: u64,
    /// SYN/ACKs sent without keeping state, because of too many handshakes at a time.
    pub stateless_syn_acks: u64,
    /// Segments for no connection, answered with RST.
    pub out_resets: u64,
    /// Challenge ACKs sent. RFC 5961.
    pub challenge_acks: u64,
    /// Copies of data that the scheduler wanted on several subflows, in segments.
    pub copies: u64,
    /// Copies of data that the path manager had sent to try a subflow, in segments.
    pub path_probes: u64,
    /// MP_PRIO options sent.
    pub mp_prio_tx: u64,
    /// MP_PRIO options received.
    pub mp_prio_rx: u64,
    /// ADD_ADDR options received.
    pub add_addr: u64,
    /// ADD_ADDR options received that were ignored.
    pub add_addr_drop: u64,
    /// ADD_ADDR options sent.
    pub add_addr_tx: u64,
    /// Echoes of ADD_ADDR received.
    pub echo_add: u64,
    /// Echoes of ADD_ADDR sent.
    pub echo_add_tx: u64,
    /// REMOVE_ADDR options received.
    pub rm_addr: u64,
    /// REMOVE_ADDR options sent.
    pub rm_addr_tx: u64,
    /// MP_FASTCLOSE options sent.
    pub mp_fastclose_tx: u64,
    /// MP_FASTCLOSE options received with the right key.
    pub mp_fastclose_rx: u64,
    /// MP_TCPRST options sent.
    pub mp_rst_tx: u64,
    /// MP_TCPRST options received.
    pub mp_rst_rx: u64,
    /// Scheduler decisions that could not be carried out, or would have halted the connection.
    pub bad_decisions: u64,
}

impl Counters {
    /// The sum of two.
    pub fn plus(&self, other: &Counters) -> Counters {
        Counters {
            mp_capable_syn_rx: self.mp_capable_syn_rx + other.mp_capable_syn_rx,
            mp_capable_syn_ack_rx: self.mp_capable_syn_ack_rx + other.mp_capable_syn_ack_rx,
            mp_capable_ack_rx: self.mp_capable_ack_rx + other.mp_capable_ack_rx,
            mp_capable_fallback_syn_ack: self.mp_capable_fallback_syn_ack
                + other.mp_capable_fallback_syn_ack,
            mp_capable_fallback_ack: self.mp_capable_fallback_ack + other.mp_capable_fallback_ack,
            join_syn_rx: self.join_syn_rx + other.join_syn_rx,
            join_syn_ack_rx: self.join_syn_ack_rx + other.join_syn_ack_rx,
            join_ack_rx: self.join_ack_rx + other.join_ack_rx,
            join_no_token_found: self.join_no_token_found + other.join_no_token_found,
            join_syn_ack_hmac_failure: self.join_syn_ack_hmac_failure
                + other.join_syn_ack_hmac_failure,
            join_ack_hmac_failure: self.join_ack_hmac_failure + other.join_ack_hmac_failure,
            mp_capable_data_fallback: self.mp_capable_data_fallback
                + other.mp_capable_data_fallback,
            dss_fallback: self.dss_fallback + other.dss_fallback,
            dss_not_matching: self.dss_not_matching + other.dss_not_matching,
            data_csum_err: self.data_csum_err + other.data_csum_err,
            dss_corruption_fallback: self.dss_corruption_fallback + other.dss_corruption_fallback,
            dss_corruption_reset: self.dss_corruption_reset + other.dss_corruption_reset,
            dup_data: self.dup_data + other.dup_data,
            ofo_queue: self.ofo_queue + other.ofo_queue,
            no_dss_in_window: self.no_dss_in_window + other.no_dss_in_window,
            data_level_retransmits: self.data_level_retransmits + other.data_level_retransmits,
            infinite_map_tx: self.infinite_map_tx + other.infinite_map_tx,
            infinite_map_rx: self.infinite_map_rx + other.infinite_map_rx,
            mp_fail_tx: self.mp_fail_tx + other.mp_fail_tx,
            mp_fail_rx: self.mp_fail_rx + other.mp_fail_rx,
            checksum_errors: self.checksum_errors + other.checksum_errors,
            stateless_syn_acks: self.stateless_syn_acks + other.stateless_syn_acks,
            out_resets: self.out_resets + other.out_resets,
            challenge_acks: self.challenge_acks + other.challenge_acks,
            copies: self.copies + other.copies,
            path_probes: self.path_probes + other.path_probes,
            mp_prio_tx: self.mp_prio_tx + other.mp_prio_tx,
            mp_prio_rx: self.mp_prio_rx + other.mp_prio_rx,
            add_addr: self.add_addr + other.add_addr,
            add_addr_drop: self.add_addr_drop + other.add_addr_drop,
            add_addr_tx: self.add_addr_tx + other.add_addr_tx,
            echo_add: self.echo_add + other.echo_add,
            echo_add_tx: self.echo_add_tx + other.echo_add_tx,
            rm_addr: self.rm_addr + other.rm_addr,
            rm_addr_tx: self.rm_addr_tx + other.rm_addr_tx,
            mp_fastclose_tx: self.mp_fastclose_tx + other.mp_fastclose_tx,
            mp_fastclose_rx: self.mp_fastclose_rx + other.mp_fastclose_rx,
            mp_rst_tx: self.mp_rst_tx + other.mp_rst_tx,
            mp_rst_rx: self.mp_rst_rx + other.mp_rst_rx,
            bad_decisions: self.bad_decisions + other.bad_decisions,
        }
    }
}
