//! The links of Mininet (`TCLink`): an HTB class with a netem leaf on both interfaces.
//!
//! netem is the leaf, so the delay comes before the rate: a packet may leave when its delay has ended
//! and the class has tokens. HTB sends while a class has not overdrawn its tokens, so each burst may
//! exceed them by one packet.
//!
//! A class has two buckets, `burst` for its rate and `cburst` for its ceiling, and needs tokens of
//! both. Mininet sets `burst 15k` and leaves ceiling and `cburst` to tc, which takes the rate and 1600
//! bytes. Two buckets with the same rate keep their difference, so the smaller one decides: `burst`
//! has no effect.

use anabranch_config::part_without_parameters;

use super::{
    DescribeShaper, ETHERNET_HEADER, Gate, Model, Request, require_own_queue, require_packets,
};
use crate::impairment::JitterModel;
use crate::queue::Invalid;

part_without_parameters! {
    /// Selects the links of Mininet.
    pub struct MininetConfig;
    NAME = "mininet";
    SUMMARY = "The delay, and then a token bucket (HTB with a netem leaf). The limit counts all \
               packets inside the link, and jitter reorders them. Jitter and loss apply to both \
               directions unless `reverse` overrides them.";
    SOURCE = "Mininet's TCLink; sch_htb and sch_netem of Linux";
}

impl DescribeShaper for MininetConfig {
    fn model(&self) -> Option<Model> {
        let gate = Gate::Tokens { burst: CBURST, overdraws: true };
        Some(Model { gate, delays_first: true, overhead: ETHERNET_HEADER })
    }

    fn check(&self, link: Request) -> Result<(), Invalid> {
        require_own_queue(&(*self).into(), link)?;
        require_packets(&(*self).into(), link.limit)
    }

    fn jitter_model(&self) -> Option<JitterModel> {
        Some(JitterModel::Reordering)
    }

    fn is_symmetric(&self) -> bool {
        true
    }
}

/// tc's default for `cburst` on kernels with high-resolution timers: one packet of its default MTU.
const CBURST: u32 = 1_600;
