//! Configuration and counters of a link.

use std::sync::Arc;

use anabranch_wire::Duration;

use crate::impairment::{GilbertElliottConfig, JitterModel, LossTrace};
use crate::queue::Discipline;
use crate::schedule::ScheduledChange;
use crate::shaper::ShaperConfig;
use crate::trace::Trace;
use crate::units::{Probability, QueueLimit, Rate};

/// Configuration of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// When the transmitter sends.
    pub capacity: Capacity,
    /// One-way propagation delay, from the last bit sent to the packet's delivery.
    pub delay: Duration,
    /// Capacity of the queue in front of the transmitter. A shaper may count all packets inside.
    pub limit: QueueLimit,
    /// Which packets the queue drops even if there is room for them.
    pub discipline: Discipline,
    /// Emulation tool that the link behaves like. A shaper has its own queue, and needs a rate.
    pub shaper: ShaperConfig,
    /// Amplitude of the jitter: the delay varies uniformly within ± this much, and is never below
    /// zero.
    pub jitter: Duration,
    /// Effect of jitter on the order of packets.
    pub jitter_model: JitterModel,
    /// Loss probability. Packets are lost on arrival, before the queue, as in netem. A lost packet
    /// occupies neither the queue nor the transmitter.
    pub loss: Probability,
    /// Burst loss, in addition to `loss`.
    pub burst_loss: Option<GilbertElliottConfig>,
    /// Losses of a trace, in addition to `loss` and `burst_loss`.
    pub loss_trace: Option<LossTrace>,
    /// Largest IP packet that the link takes; `None` if it takes any. The [`Network`](crate::Network)
    /// enforces it.
    pub mtu: Option<Mtu>,
    /// Scheduled changes during the run.
    pub changes: Vec<ScheduledChange>,
}

/// The largest IP packet of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mtu {
    /// Size in bytes.
    pub bytes: u16,
    /// The router in front of the link answers larger TCP segments with ICMP (RFC 1191, RFC 8201).
    /// Otherwise they vanish: a black hole (RFC 2923 §2.1).
    pub answers: bool,
}

/// When a link's transmitter may send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// Always, at this rate.
    Rate(Rate),
    /// At the delivery opportunities of a trace. The trace starts at the epoch and repeats. A
    /// packet leaves with the opportunity that sends its last byte. A packet that arrives at the
    /// time of an opportunity has missed it.
    Trace(Arc<Trace>),
}

/// Counters of a link. At any time, packets in = delivered + dropped in the four ways +
/// [inside](super::Link::packets_inside).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets offered to the link, including packets that it dropped.
    pub packets_in: u64,
    /// Bytes of the packets offered.
    pub bytes_in: u64,
    /// Packets delivered at the far end.
    pub packets_delivered: u64,
    /// Bytes of the packets delivered.
    pub bytes_delivered: u64,
    /// Packets dropped by the queue: for lack of room, or by its discipline.
    pub dropped_by_queue: u64,
    /// Packets that the queue's discipline marked instead of dropping them. RFC 3168 §5.
    pub marked: u64,
    /// Packets lost by random loss, by burst loss, and by the trace of losses.
    pub dropped_by_loss: u64,
    /// Packets dropped because the link was down or went down.
    pub dropped_down: u64,
    /// Packets dropped because they exceeded the link's MTU.
    pub dropped_too_big: u64,
    /// Bytes of all packets dropped.
    pub bytes_dropped: u64,
    /// Maximum number of packets in the queue, or in front of a shaper's gate.
    pub queue_packets_max: u64,
    /// Maximum number of bytes in the queue, or in front of a shaper's gate.
    pub queue_bytes_max: u64,
}

impl LinkStats {
    pub(super) fn count_drop_by_queue(&mut self, bytes: u32) {
        self.dropped_by_queue += 1;
        self.bytes_dropped += u64::from(bytes);
    }
}

impl LinkConfig {
    /// A link without impairments or changes.
    pub fn new(capacity: impl Into<Capacity>, delay: Duration, limit: QueueLimit) -> Self {
        LinkConfig {
            capacity: capacity.into(),
            delay,
            limit,
            discipline: Discipline::default(),
            shaper: ShaperConfig::default(),
            jitter: Duration::ZERO,
            jitter_model: JitterModel::default(),
            loss: Probability::ZERO,
            burst_loss: None,
            loss_trace: None,
            mtu: None,
            changes: Vec::new(),
        }
    }
}

impl Capacity {
    /// The rate, or the mean rate of the trace.
    pub fn mean_rate(&self) -> Rate {
        match self {
            Capacity::Rate(rate) => *rate,
            Capacity::Trace(trace) => trace.mean_rate(),
        }
    }
}

impl From<Rate> for Capacity {
    fn from(rate: Rate) -> Self {
        Capacity::Rate(rate)
    }
}

impl From<Arc<Trace>> for Capacity {
    fn from(trace: Arc<Trace>) -> Self {
        Capacity::Trace(trace)
    }
}
