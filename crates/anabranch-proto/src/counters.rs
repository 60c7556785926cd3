//! Event counters of a host, with their meanings and the kernel's names.

use anabranch_wire::{Flags, Segment};

/// Generates the structs of counters from one table of meaning, field and name in results.
macro_rules! counters {
    (
        connection { $($(#[doc = $meaning:literal])+ $field:ident = $name:literal,)+ }
        others { $($(#[doc = $others:literal])+ $other:ident = $other_name:literal,)+ }
    ) => {
        /// Number of occurrences of each event on a host.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[doc = $meaning])+ pub $field: u64,)+
            $($(#[doc = $others])+ pub $other: u64,)+
        }

        /// Number of occurrences of each event on a connection.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct ConnectionCounters {
            $($(#[doc = $meaning])+ pub(crate) $field: u64,)+
        }

        impl Counters {
            /// All names with their meanings. Where Linux counts the same event, the name is that
            /// of the kernel's MIB as `nstat` prints it. Other names are in snake case.
            pub const NAMES: &[(&str, &str)] = &[
                $(($name, concat!($($meaning),+)),)+
                $(($other_name, concat!($($others),+)),)+
            ];

            /// The counts with their names, in the order of [`Counters::NAMES`].
            pub fn named(&self) -> [(&'static str, u64); Self::NAMES.len()] {
                [$(($name, self.$field),)+ $(($other_name, self.$other),)+]
            }

            pub(crate) fn add(&mut self, other: &Counters) {
                $(self.$field += other.$field;)+
                $(self.$other += other.$other;)+
            }

            /// Add the counts of a connection.
            pub(crate) fn add_connection(&mut self, connection: &ConnectionCounters) {
                $(self.$field += connection.$field;)+
            }
        }
    };
}

counters! {
    // Events that a connection counts itself.
    connection {
        /// SYNs with MP_CAPABLE received.
        mp_capable_syn_rx = "MPTcpExtMPCapableSYNRX",
        /// SYN/ACKs with MP_CAPABLE received.
        mp_capable_syn_ack_rx = "MPTcpExtMPCapableSYNACKRX",
        /// Third ACKs with MP_CAPABLE received.
        mp_capable_ack_rx = "MPTcpExtMPCapableACKRX",
        /// Connections that fell back because the SYN/ACK lacked MP_CAPABLE.
        mp_capable_fallback_syn_ack = "MPTcpExtMPCapableFallbackSYNACK",
        /// Connections that fell back because the third ACK or first data lacked MP_CAPABLE.
        mp_capable_fallback_ack = "MPTcpExtMPCapableFallbackACK",
        /// Connections that fell back because the first data, or its acknowledgement, had no MPTCP
        /// option.
        mp_capable_data_fallback = "MPTcpExtMPCapableDataFallback",
        /// SYNs with MP_JOIN received.
        join_syn_rx = "MPTcpExtMPJoinSynRx",
        /// SYN/ACKs with MP_JOIN received.
        join_syn_ack_rx = "MPTcpExtMPJoinSynAckRx",
        /// Third ACKs with MP_JOIN received.
        join_ack_rx = "MPTcpExtMPJoinAckRx",
        /// SYN/ACKs with MP_JOIN whose HMAC was wrong.
        join_syn_ack_hmac_failure = "MPTcpExtMPJoinSynAckHMacFailure",
        /// Third ACKs with MP_JOIN whose HMAC was wrong.
        join_ack_hmac_failure = "MPTcpExtMPJoinAckHMacFailure",
        /// ADD_ADDR options sent.
        add_addr_tx = "MPTcpExtAddAddrTx",
        /// ADD_ADDR options received.
        add_addr = "MPTcpExtAddAddr",
        /// ADD_ADDR options received that were ignored.
        add_addr_drop = "MPTcpExtAddAddrDrop",
        /// Echoes of ADD_ADDR sent.
        echo_add_tx = "MPTcpExtEchoAddTx",
        /// Echoes of ADD_ADDR received.
        echo_add = "MPTcpExtEchoAdd",
        /// Addresses in the REMOVE_ADDR options sent.
        rm_addr_tx = "MPTcpExtRmAddrTx",
        /// Addresses in the REMOVE_ADDR options received.
        rm_addr = "MPTcpExtRmAddr",
        /// MP_PRIO options sent.
        mp_prio_tx = "MPTcpExtMPPrioTx",
        /// MP_PRIO options received.
        mp_prio_rx = "MPTcpExtMPPrioRx",
        /// MP_FAIL options sent.
        mp_fail_tx = "MPTcpExtMPFailTx",
        /// MP_FAIL options received.
        mp_fail_rx = "MPTcpExtMPFailRx",
        /// MP_FASTCLOSE options sent.
        mp_fastclose_tx = "MPTcpExtMPFastcloseTx",
        /// MP_FASTCLOSE options received with the right key.
        mp_fastclose_rx = "MPTcpExtMPFastcloseRx",
        /// MP_TCPRST options sent.
        mp_rst_tx = "MPTcpExtMPRstTx",
        /// MP_TCPRST options received.
        mp_rst_rx = "MPTcpExtMPRstRx",
        /// Connections that fell back because options were missing, from the start or later.
        dss_fallback = "MPTcpExtDssFallback",
        /// Mappings that contradicted an earlier one.
        dss_not_matching = "MPTcpExtDSSNotMatching",
        /// Mappings whose checksum was wrong.
        data_csum_err = "MPTcpExtDataCsumErr",
        /// Connections that fell back because a checksum was wrong.
        dss_corruption_fallback = "MPTcpExtDSSCorruptionFallback",
        /// Subflows reset because a checksum was wrong, or the stream could not be placed in a
        /// fallback.
        dss_corruption_reset = "MPTcpExtDSSCorruptionReset",
        /// Fallbacks announced by infinite mappings.
        infinite_map_tx = "MPTcpExtInfiniteMapTx",
        /// Infinite mappings received before the fallback.
        infinite_map_rx = "MPTcpExtInfiniteMapRx",
        /// Data outside the receive window.
        no_dss_in_window = "MPTcpExtNoDSSInWindow",
        /// Segments whose data had been received before, at the data level.
        dup_data = "MPTcpExtDuplicateData",
        /// Segments that had to wait for earlier data, at the data level.
        ofo_queue = "MPTcpExtOFOQueue",
        /// Segments reinjected on another subflow.
        data_level_retransmits = "MPTcpExtMPTCPRetrans",
        /// Subflows accepted.
        passive_opens = "TcpPassiveOpens",
        /// Segments with RST sent.
        out_resets = "TcpOutRsts",
        /// Segments that carried a copy of data which the scheduler sent on several subflows.
        copies = "copies",
        /// Segments that carried a copy of data with which the path manager probed a subflow.
        path_probes = "path_probes",
        /// Scheduler decisions that were impossible, or would have stalled the connection.
        bad_decisions = "bad_decisions",
    }
    // Events counted by subflows or by the host.
    others {
        /// Connections opened with MP_CAPABLE.
        mp_capable_syn_tx = "MPTcpExtMPCapableSYNTX",
        /// Connections opened without MP_CAPABLE, because SYNs with it were lost before.
        mp_capable_syn_tx_disabled = "MPTcpExtMPCapableSYNTXDisabled",
        /// Times that the host stopped offering Multipath TCP, because SYNs with it were lost.
        blackholes = "MPTcpExtBlackhole",
        /// Subflows opened with MP_JOIN.
        join_syn_tx = "MPTcpExtMPJoinSynTx",
        /// Subflows opened.
        active_opens = "TcpActiveOpens",
        /// SYNs with MP_JOIN whose token named no connection.
        join_no_token_found = "MPTcpExtMPJoinNoTokenFound",
        /// Segments received.
        segments_in = "TcpInSegs",
        /// Segments sent, without retransmissions.
        segments_out = "TcpOutSegs",
        /// Segments retransmitted on their subflow, including SYNs.
        retransmitted = "TcpRetransSegs",
        /// Segments whose TCP checksum was wrong.
        checksum_errors = "TcpInCsumErrors",
        /// SYNs and SYN/ACKs retransmitted.
        syn_retransmitted = "TcpExtTCPSynRetrans",
        /// Expiries of retransmission timers, including those of SYNs. RFC 6298.
        timeouts = "TcpExtTCPTimeouts",
        /// Fast recoveries with SACK.
        sack_recoveries = "TcpExtTCPSackRecovery",
        /// Fast recoveries without SACK.
        reno_recoveries = "TcpExtTCPRenoRecovery",
        /// Tail loss probes. RFC 8985 §7.
        tail_loss_probes = "TcpExtTCPLossProbes",
        /// Keep-alive probes sent. RFC 9293 §3.8.4.
        keep_alive_probes = "TcpExtTCPKeepAlive",
        /// Challenge ACKs sent. RFC 5961.
        challenge_acks = "TcpExtTCPChallengeACK",
        /// SYN/ACKs sent without keeping state, because too many handshakes were open.
        stateless_syn_acks = "TcpExtSyncookiesSent",
        /// Reductions of congestion windows that proved needless and were undone.
        undone = "undone",
        /// Data segments received with a congestion mark (CE). RFC 3168.
        ce_received = "ce_received",
        /// Acknowledgements received that echo a congestion mark (ECE). RFC 3168.
        ece_received = "ece_received",
        /// Reductions of congestion windows because of congestion marks. RFC 3168.
        ecn_reductions = "ecn_reductions",
    }
}

impl Counters {
    /// Add the counts of a subflow.
    pub(crate) fn add_subflow(&mut self, totals: &SubflowCounters, with_sack: bool) {
        let syns = u64::from(totals.syn_retransmissions);
        self.retransmitted += totals.segments_retransmitted + syns;
        self.syn_retransmitted += syns;
        self.timeouts += u64::from(totals.expiries);
        if with_sack {
            self.sack_recoveries += u64::from(totals.recoveries);
        } else {
            self.reno_recoveries += u64::from(totals.recoveries);
        }
        self.tail_loss_probes += u64::from(totals.probes);
        self.keep_alive_probes += u64::from(totals.keep_alive_probes);
        self.challenge_acks += u64::from(totals.challenge_acks);
        self.undone += u64::from(totals.undone);
        self.ce_received += totals.ce_received;
        self.ece_received += totals.ece_received;
        self.ecn_reductions += totals.ecn_reductions;
    }
}

impl ConnectionCounters {
    /// Count the signals of a segment that leaves.
    #[inline]
    pub(crate) fn on_sent(&mut self, segment: &Segment) {
        self.out_resets += u64::from(segment.header.flags.contains(Flags::RST));
        if let Some(control) = &segment.options.control {
            self.mp_fail_tx += u64::from(control.fail.is_some());
            self.mp_rst_tx += u64::from(control.reset.is_some());
            self.mp_fastclose_tx += u64::from(control.fastclose.is_some());
            self.mp_prio_tx += u64::from(control.prio.is_some());
            let removed = control.remove_addr.map_or(0, |option| option.address_ids().len());
            self.rm_addr_tx += removed as u64;
            let told = control.add_addr.map(|option| option.truncated_hmac.is_some());
            self.add_addr_tx += u64::from(told == Some(true));
            self.echo_add_tx += u64::from(told == Some(false));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_counters_has_them_all() {
        let rows = Counters::NAMES.iter().map(|(name, meaning)| {
            let meaning = meaning.trim();
            format!("| `{name}` | {meaning} |\n")
        });
        let table: String = rows.collect();
        let page = include_str!("../../../docs/counters.md");
        assert!(page.contains(&table), "the table in docs/counters.md must be:\n{table}");
    }

    #[test]
    fn no_name_is_used_twice() {
        let mut names: Vec<_> = Counters::NAMES.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), Counters::NAMES.len());
    }
}

/// Totals of one subflow. Events that occur at most once per timeout, or ten times a second, are
/// counted in 32 bits, which suffice for years.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SubflowCounters {
    pub(crate) segments_sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) segments_retransmitted: u64,
    pub(crate) bytes_retransmitted: u64,
    pub(crate) bytes_received: u64,
    pub(crate) segments_received: u64,
    pub(crate) acks_sent: u64,
    pub(crate) timeouts: u32,
    pub(crate) recoveries: u32,
    pub(crate) undone: u32,
    pub(crate) probes: u32,
    pub(crate) idle_restarts: u32,
    pub(crate) challenge_acks: u32,
    pub(crate) keep_alive_probes: u32,
    /// Expiries of the retransmission timer, including those during the handshake.
    pub(crate) expiries: u32,
    pub(crate) syn_retransmissions: u32,
    pub(crate) ce_received: u64,
    pub(crate) ece_received: u64,
    pub(crate) ecn_reductions: u64,
}
