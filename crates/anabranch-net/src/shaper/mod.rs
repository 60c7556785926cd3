//! Shapers: models of the links that other emulation tools create.
//!
//! A plain link has a queue, a transmitter that sends at the link's rate, and then the propagation
//! delay. Tools differ from it in four facts: whether the delay comes before or after the rate, what
//! the limit counts, how the rate is kept, and which headers count. Each tool is a [`ShaperConfig`]
//! that states these facts as a [`Model`], in its own file. A `Shaper` runs any of them.

mod dummynet;
mod gate;
mod mininet;
mod netem;
mod plain;
mod tbf;

pub use dummynet::DummynetConfig;
pub use gate::Gate;
pub use mininet::MininetConfig;
pub use netem::NetemConfig;
pub use plain::PlainConfig;
pub use tbf::TbfConfig;

use anabranch_config::{Selection, parts};
use anabranch_wire::{Duration, Instant};

use crate::delay_line::DelayLine;
use crate::impairment::JitterModel;
use crate::queue::{Discipline, Invalid, Packet, QueueCapacity};
use crate::serialiser::Serialiser;
use crate::units::{QueueLimit, Rate};

parts! {
    /// Emulation tool that a link behaves like. The first is the default.
    #[derive(Copy, Eq)]
    pub enum ShaperConfig: "shaper", dyn DescribeShaper {
        Plain(PlainConfig),
        Mininet(MininetConfig),
        Netem(NetemConfig),
        Tbf(TbfConfig),
        Dummynet(DummynetConfig),
    }
}

#[cfg(feature = "serde")]
anabranch_config::written_by_name!(ShaperConfig);

impl Default for ShaperConfig {
    fn default() -> Self {
        PlainConfig {}.into()
    }
}

/// Description of a tool.
pub trait DescribeShaper {
    /// Properties of the tool's links; `None` for a plain link.
    fn model(&self) -> Option<Model>;

    /// Check that the tool can make this link.
    ///
    /// # Errors
    /// If it cannot.
    fn check(&self, _link: Request) -> Result<(), Invalid> {
        Ok(())
    }

    /// Effect of jitter on the order of packets, if the tool leaves no choice.
    fn jitter_model(&self) -> Option<JitterModel> {
        None
    }

    /// Returns `true` if the tool applies jitter and loss to both directions.
    fn is_symmetric(&self) -> bool {
        false
    }
}

/// A link for [`DescribeShaper::check`].
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Whether the link follows a trace.
    pub follows_trace: bool,
    /// QueueCapacity of the queue.
    pub limit: QueueLimit,
    /// Queue discipline.
    pub discipline: Discipline,
    /// Length of the longest IP packet.
    pub mtu: u16,
}

/// Properties in which the links of tools differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// The rule by which waiting packets leave.
    pub gate: Gate,
    /// The delay comes before the gate. The limit then counts all packets inside the link.
    /// Otherwise the delay comes after the gate, and the limit counts waiting packets.
    pub delays_first: bool,
    /// Bytes of each packet that the tool counts in addition to the IP packet.
    pub overhead: u32,
}

/// Length of an Ethernet header. Linux's qdiscs count it.
const ETHERNET_HEADER: u32 = 14;

/// Takes the place of the queue and of the transmitter's rule in a [`Link`](crate::Link).
#[derive(Debug)]
pub(crate) struct Shaper {
    model: Model,
    capacity: QueueCapacity,
    /// Packets in front of the gate, with the times at which their delay ends.
    waiting: DelayLine,
    /// Bytes of the IP packets that wait.
    bytes: u64,
    /// When the link last resumed.
    resumed_at: Instant,
}

impl Shaper {
    /// The shaper of a link; `None` if it is a plain link.
    pub(crate) fn new(
        config: ShaperConfig,
        limit: QueueLimit,
        rate: Rate,
        jitter_model: JitterModel,
    ) -> Option<Self> {
        Some(Shaper {
            model: config.part().model()?,
            capacity: QueueCapacity::new(limit, rate),
            waiting: DelayLine::new(jitter_model),
            bytes: 0,
            resumed_at: Instant::ZERO,
        })
    }

    /// Add `packet`, whose own delay is `delay`; `false` if there is no room for it. `is_sending`
    /// says whether another packet is in transmission.
    pub(crate) fn enqueue(
        &mut self,
        now: Instant,
        packet: Packet,
        delay: Duration,
        is_sending: bool,
    ) -> bool {
        let sending = u64::from(is_sending && self.model.delays_first);
        let frame = self.frame(packet.bytes);
        let headers = self.packets() * u64::from(self.model.overhead);
        let bytes = self.bytes + headers + u64::from(frame);
        let fits = self.capacity.fits(self.packets() + sending, bytes);
        if !fits || !self.model.gate.admits(frame) {
            return false;
        }
        let delay = if self.model.delays_first { delay } else { Duration::ZERO };
        self.waiting.push(packet, self.waiting.admissible(now + delay));
        self.bytes += u64::from(packet.bytes);
        true
    }

    /// When the next packet passes the gate; [`Instant::FAR_FUTURE`] if none waits, or while
    /// suspended.
    pub(crate) fn opens_at(&self, serialiser: &Serialiser) -> Instant {
        self.waiting.first().map_or(Instant::FAR_FUTURE, |first| {
            let opens_at = self.model.gate.opens_at(serialiser, self.frame(first.bytes));
            opens_at.max(first.due).max(self.resumed_at)
        })
    }

    /// The link is no longer suspended.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.resumed_at = now;
    }

    /// Let the next packet pass the gate at `now`.
    pub(crate) fn pass(&mut self, now: Instant, serialiser: &mut Serialiser) -> Option<Packet> {
        let packet = self.waiting.pop(now)?;
        self.bytes -= u64::from(packet.bytes);
        serialiser.start(self.model.gate.starts_at(now, serialiser), self.frame(packet.bytes));
        Some(packet)
    }

    /// Returns `true` if packets leave the link's transmitter as soon as they have passed the gate.
    pub(crate) fn sends_at_once(&self) -> bool {
        matches!(self.model.gate, Gate::Tokens { .. })
    }

    /// When the packet in transmission leaves.
    pub(crate) fn leaves_at(&self, serialiser: &Serialiser) -> Instant {
        self.model.gate.leaves_at(serialiser)
    }

    /// The delay after the gate of a packet whose own delay is `delay`.
    pub(crate) fn delay_after(&self, delay: Duration) -> Duration {
        if self.model.delays_first { Duration::ZERO } else { delay }
    }

    /// Returns `true` if packets wait for the gate. Where the delay comes first, a waiting packet may
    /// be waiting for its delay only, and the work left in the serialiser shows whether the link is
    /// busy.
    pub(crate) fn is_busy(&self) -> bool {
        !self.model.delays_first && self.packets() > 0
    }

    /// Pass all packets to `lose`.
    pub(crate) fn clear(&mut self, now: Instant, lose: impl FnMut(Packet)) {
        core::iter::from_fn(|| self.waiting.pop(Instant::FAR_FUTURE)).for_each(lose);
        // A lost packet does not delay later packets.
        self.waiting.clear(now, |_| ());
        self.bytes = 0;
    }

    /// Set the rate.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.capacity.set_rate(rate);
    }

    /// The slots of the packets in front of the gate, in order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        self.waiting.iter().map(|(_, slot)| slot)
    }

    /// Number of packets in front of the gate.
    pub(crate) fn packets(&self) -> u64 {
        self.waiting.packets() as u64
    }

    /// Bytes of the packets in front of the gate.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes of a packet that the tool counts.
    fn frame(&self, bytes: u32) -> u32 {
        bytes + self.model.overhead
    }
}

/// Require a link with a rate, and no queue discipline: the tool has its own queue.
fn require_own_queue(tool: &ShaperConfig, link: Request) -> Result<(), Invalid> {
    let tool = tool.name();
    if link.follows_trace {
        let problem = format!("shaper = {tool:?} needs a rate; write rate, or remove the shaper");
        return Err(Invalid { parameter: "trace", problem });
    }
    if link.discipline != Discipline::default() {
        let queue = link.discipline.name();
        let problem = format!(
            "kind = {queue:?}: shaper = {tool:?} has a queue of its own; remove this key, or the \
             shaper"
        );
        return Err(Invalid { parameter: "queue", problem });
    }
    Ok(())
}

/// Require a limit in packets.
fn require_packets(tool: &ShaperConfig, limit: QueueLimit) -> Result<(), Invalid> {
    match limit {
        QueueLimit::Packets(_) | QueueLimit::Infinite => Ok(()),
        QueueLimit::Bytes(_) | QueueLimit::Time(_) => {
            let tool = tool.name();
            let problem = format!(
                "\"{limit}\": shaper = {tool:?} counts packets; write a limit such as \"100packets\""
            );
            Err(Invalid { parameter: "limit", problem })
        }
    }
}
