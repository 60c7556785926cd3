//! The token bucket filter of Linux, and then the delay.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::WithUnit;

use super::{DescribeShaper, ETHERNET_HEADER, Gate, Model, Request, require_own_queue};
use crate::queue::Invalid;
use crate::units::{ByteCount, QueueLimit};

/// Parameters of a token bucket filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct TbfConfig {
    /// Size of the bucket, from which bytes leave at once after a pause. It must hold an Ethernet frame
    /// with the path's MTU.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<ByteCount>"), schemars(extend("x-origin" = "Mininet's `use_tbf`")))]
    pub burst: ByteCount,
}

impl Default for TbfConfig {
    fn default() -> Self {
        TbfConfig { burst: ByteCount::new(BURST) }
    }
}

/// Mininet's `burst 15000`.
const BURST: u64 = 15_000;
/// Largest bucket.
const MAX_BURST: u64 = 1_000_000_000;

impl Part for TbfConfig {
    const NAME: &'static str = "tbf";
    const SUMMARY: &'static str = "A queue in bytes, a token bucket, and then the delay (`tc qdisc add \
                                   … tbf rate … burst … limit …`).";
    const SOURCE: &'static str = "sch_tbf of Linux";
}

impl DescribeShaper for TbfConfig {
    fn model(&self) -> Option<Model> {
        let burst = self.burst.as_u64().min(MAX_BURST) as u32;
        let gate = Gate::Tokens { burst, overdraws: false };
        Some(Model { gate, delays_first: false, overhead: ETHERNET_HEADER })
    }

    fn check(&self, link: Request) -> Result<(), Invalid> {
        require_own_queue(&(*self).into(), link)?;
        if let limit @ QueueLimit::Packets(_) = link.limit {
            let problem = format!(
                "\"{limit}\": shaper = \"tbf\" counts bytes; write a limit such as \"100kB\" or \
                 \"80ms\""
            );
            return Err(Invalid { parameter: "limit", problem });
        }
        let least = u64::from(link.mtu) + u64::from(ETHERNET_HEADER);
        if !(least..=MAX_BURST).contains(&self.burst.as_u64()) {
            let problem = format!(
                "\"{}\": must be between {least}B, an Ethernet frame with the path's MTU, and 1GB",
                self.burst
            );
            return Err(Invalid { parameter: "shaper.burst", problem });
        }
        Ok(())
    }
}
