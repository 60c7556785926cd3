//! Behaviour that the RFCs specify, where they specify it.

use anabranch_config::part_without_parameters;
use anabranch_wire::Duration;

use super::{
    AckRule, Buffers, BuildPlatform, Counts, Growth, Nagle, OptionForm, Platform, Reduction,
    ReorderingRule, RtoRule, Tuning,
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

impl Platform {
    /// Values of the RFCs: a minimum RTO of 1 s, acknowledgements delayed by 200 ms.
    pub const fn rfc() -> Self {
        Platform {
            // RFC 6298 §2
            timeouts: RtoRule {
                initial: Duration::from_secs(1),
                minimum: Duration::from_secs(1),
                minimum_bounds_variance: false,
                maximum: Duration::from_secs(60),
            },
            lost_syns_forgiven: 0,
            acknowledging: AckRule {
                delay: Duration::from_millis(200),
                quick_acks: 0,
                prompt: false,
            },
            nagle: Nagle::All,
            reduction: Reduction::Flight,
            growth: Growth::WhileFull,
            reordering: ReorderingRule {
                timer_slack: Duration::ZERO,
                undo_awaits_retransmissions: false,
                counts: Counts::Acknowledged,
            },
            requires_timestamps: true,
            keeps_unread_data: false,
            buffers: Buffers::Payload,
            tuning: Tuning::DEFAULT,
            options: OptionForm::Short,
            joins_after_close: true,
        }
    }
}
