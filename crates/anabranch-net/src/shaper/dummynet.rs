//! A pipe of ipfw's dummynet.
//!
//! A pipe is a plain link on a clock of ticks. FreeBSD's default is `kern.hz = 1000`: a packet arrives
//! at the last tick, and leaves at the first tick after its last bit, so packets leave in small bursts.
//! The rate is exact, because the time between two ticks is not lost while packets wait.
//!
//! Here, a queue in bytes drops packets that do not fit. dummynet accepts another packet as long as the
//! queue does not exceed its size.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::Positive;
use anabranch_wire::Duration;

use super::{DescribeShaper, Gate, Model, Request, require_own_queue};
use crate::queue::Invalid;

/// Parameters of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct DummynetConfig {
    /// Time between two ticks of the kernel's clock: 1 / `kern.hz`.
    #[cfg_attr(feature = "serde", serde(with = "Positive::<Duration>"), schemars(extend("x-origin" = "FreeBSD's `kern.hz` of 1000")))]
    pub tick: Duration,
}

impl Default for DummynetConfig {
    fn default() -> Self {
        DummynetConfig { tick: TICK }
    }
}

/// `kern.hz = 1000`.
const TICK: Duration = Duration::from_millis(1);

impl Part for DummynetConfig {
    const NAME: &'static str = "dummynet";
    const SUMMARY: &'static str = "A queue, a transmitter on a clock of ticks, and then the delay \
                                   (`ipfw pipe … config bw … delay … queue …`).";
    const SOURCE: &'static str = "ip_dummynet of FreeBSD";
}

impl DescribeShaper for DummynetConfig {
    fn model(&self) -> Option<Model> {
        Some(Model {
            gate: Gate::Ticks(self.tick.max(Duration::from_nanos(1))),
            delays_first: false,
            overhead: 0,
        })
    }

    fn check(&self, link: Request) -> Result<(), Invalid> {
        require_own_queue(&(*self).into(), link)
    }
}
