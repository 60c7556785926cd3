//! Behaviour that the RFCs specify, where they specify it.

use anabranch_config::part_without_parameters;
use anabranch_wire::Duration;

use super::{
    AckRule, AnnounceRule, BufferModel, BuildPlatform, Counts, DataAckRule, DataRetransmission,
    ExpiryRule, GiveUpRule, Growth, JoinRule, Nagle, OptionForm, OwnWindow, Platform, RecoveryRule,
    Reduction, ReorderingRule, RtoRule, SilenceRule, SynFallbackRule,
};

part_without_parameters! {
    /// Selects the behaviour of the RFCs.
    pub struct RfcConfig;
    NAME = "rfc";
    SUMMARY = "The RFCs' defaults: minimum RTO 1 s, acknowledgements delayed by 200 ms.";
    SOURCE = "RFC 5681, 6298, 7323, 9293";
}

impl BuildPlatform for RfcConfig {
    fn build(&self) -> Platform {
        Platform::rfc()
    }
}

/// RFC 6298 §2
const TIMEOUTS: RtoRule = RtoRule {
    initial: Duration::from_secs(1),
    minimum: Duration::from_secs(1),
    minimum_bounds_variance: false,
    maximum: Duration::from_secs(60),
    tick: None,
};

impl Platform {
    /// Values of the RFCs: a minimum RTO of 1 s, acknowledgements delayed by 200 ms.
    pub const fn rfc() -> Self {
        Platform {
            timeouts: &TIMEOUTS,
            expiry: ExpiryRule::EXACT,
            lost_syns_forgiven: 0,
            acknowledging: AckRule {
                delay: Duration::from_millis(200),
                quick_acks: 0,
                prompt: false,
                heeds_push: false,
                held_data_counts: true,
                small_take_less: false,
                quick_beyond_data_hole: false,
            },
            nagle: Nagle::All,
            reduction: Reduction::Flight,
            growth: Growth::WhileFull(0),
            reordering: ReorderingRule {
                timer_slack: Duration::ZERO,
                undo_awaits_retransmissions: false,
                counts: Counts::Acknowledged,
            },
            requires_timestamps: true,
            keeps_unread_data: false,
            buffers: BufferModel::PAYLOAD,
            options: OptionForm::Short,
            // RFC 8684 §3.2
            joins: JoinRule {
                after_close: true,
                resets_overtaken: false,
                used_from_next_segment: false,
            },
            // RFC 5681 §3.1, RFC 6937 §3
            recovery: RecoveryRule {
                counts_segments: false,
                catches_up_if_safe: false,
                grows_at_the_end: false,
            },
            deferral: None,
            data_retransmission: &DataRetransmission::RARE,
            silence: SilenceRule::FirstTimeout,
            give_up: GiveUpRule::BY_CONFIGURATION,
            announcing: AnnounceRule::Together,
            syn_fallback: SynFallbackRule::BY_CONFIGURATION,
            keeps_larger_window: false,
            acknowledges_opening_early: false,
            acknowledges_third_ack: true,
            closes_removed: false,
            reopens_subflows: true,
            takes_smaller_receive_rtt: false,
            sends_each_write: false,
            data_ack: DataAckRule::AfterAck,
            own_window: OwnWindow::Farthest,
            subflows_are_application_limited: true,
        }
    }
}
