//! Congestion control: one object per subflow, which owns the congestion window.
//!
//! The arithmetic of each algorithm is in small stateless functions, which the objects apply.
//! Windows are counted in bytes, and grow by whole segments. Algorithms without state besides the
//! window are adjustments of it ([`WindowAdjustment`]), which [`Composed`] joins with slow start.

mod balia;
mod bandwidth;
mod bbr;
mod bbr3;
mod composed;
mod coupled;
mod cubic;
mod cubic_linux;
mod draws;
mod hystart;
mod lia;
mod lia_linux;
mod maximum;
mod new_reno;
mod olia;
mod window;
mod wvegas;

pub use balia::{Balia, BaliaConfig};
pub use bbr::BbrConfig;
pub use bbr3::Bbr3Config;
pub use composed::{Composed, WindowAdjustment};
pub use cubic::{Cubic, CubicConfig};
pub use cubic_linux::CubicLinuxConfig;
use hystart::FirstHyStart;
pub use hystart::HyStart;
pub use lia::{Lia, LiaConfig};
pub use lia_linux::LiaLinuxConfig;
pub use new_reno::{NewReno, NewRenoConfig};
pub use olia::{Olia, OliaConfig};
pub use window::Window;
pub use wvegas::{WVegas, WVegasConfig};

use coupled::Coupled;

use core::fmt::Debug;
use std::net::IpAddr;

use anabranch_config::parts;
use anabranch_wire::{Duration, Instant};

use crate::view::{RecoveryPhase, SubflowView};

parts! {
    /// A congestion control with its parameters.
    pub enum CongestionControlConfig: "congestion control", dyn BuildCongestionControl {
        NewReno(NewRenoConfig),
        Cubic(CubicConfig),
        CubicLinux(CubicLinuxConfig),
        Lia(LiaConfig),
        Olia(OliaConfig),
        Balia(BaliaConfig),
        WVegas(WVegasConfig),
        LiaLinux(LiaLinuxConfig),
        Bbr(BbrConfig),
        Bbr3(Bbr3Config),
    }
}

/// Parameters of a congestion control: its constructor, and facts that other crates need.
pub trait BuildCongestionControl {
    /// Returns `true` if it considers the other subflows.
    fn is_coupled(&self) -> bool {
        false
    }

    /// Linux's name for the same algorithm; `None` if Linux has none.
    fn in_kernel(&self) -> Option<&'static str> {
        None
    }

    /// The rule that ends its slow start before a loss does.
    fn slow_start_exit(&self) -> SlowStartExit;

    /// Creates the congestion control for a subflow. `hystart`: HyStart++ (RFC 9406) may end its slow
    /// start, unless it has a rule of its own.
    fn build(&self, start: &Start, hystart: bool) -> Box<dyn CongestionControl>;
}

/// Rule that ends slow start before a loss does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartExit {
    /// The congestion control's own rule.
    Own,
    /// Nothing, unless the user asks for HyStart++.
    Loss,
    /// HyStart++ (RFC 9406), unless the user turns it off.
    HyStart,
}

/// Initial values for a new subflow.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Local address of the subflow.
    pub local: IpAddr,
    /// Remote address of the subflow.
    pub remote: IpAddr,
    /// Sender maximum segment size in bytes.
    pub mss: u32,
    /// Initial window in bytes. RFC 6928.
    pub initial_window: u64,
    /// A random number, another one for each subflow.
    pub random: u64,
}

/// An acknowledgement of new data on the subflow.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When the acknowledgement arrived.
    pub now: Instant,
    /// Bytes newly acknowledged by the cumulative acknowledgement.
    pub acked: u64,
    /// Round-trip time sample, if there is one.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Bytes in flight after the acknowledgement.
    pub bytes_in_flight: u64,
    /// First unacknowledged byte of the subflow (64-bit, from the start of the subflow).
    pub snd_una: u64,
    /// Next byte to send, in the same numbering.
    pub snd_nxt: u64,
    /// Whether the window limited the sender, rather than the application or the receiver.
    pub cwnd_limited: bool,
}

/// An acknowledgement, for congestion controls that model the path. Segments are counted, whatever
/// their length. Linux: `rate_sample`.
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// When the acknowledgement arrived.
    pub now: Instant,
    /// Delivery rate; `None` if the acknowledgement shows none, or an interval shorter than the
    /// smallest round-trip time.
    pub rate: Option<DeliveryRate>,
    /// Segments that it delivered, cumulatively or selectively.
    pub acked: u64,
    /// Segments that it showed to be lost.
    pub lost: u64,
    /// Segments delivered so far.
    pub delivered: u64,
    /// Segments deemed lost so far.
    pub lost_in_all: u64,
    /// Time of the last delivery.
    pub delivered_at: Instant,
    /// Segments in flight before the acknowledgement.
    pub prior_in_flight: u64,
    /// Segments in flight after it.
    pub in_flight: u64,
    /// Round-trip time sample, if there is one.
    pub rtt: Option<Duration>,
    /// Only a single short segment was delivered, so the peer may have delayed the acknowledgement.
    pub may_be_delayed: bool,
    /// Smallest round-trip time so far; [`Duration::MAX`] before the first sample.
    pub min_rtt: Duration,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Earliest time at which pacing lets the next segment leave.
    pub next_departure: Instant,
    /// Phase of loss recovery.
    pub phase: RecoveryPhase,
    /// Payload bytes of a full segment without the options of Multipath TCP. Linux: `mss_cache`.
    pub segment: u32,
}

/// A delivery rate: segments over an interval. draft-cheng-iccrg-delivery-rate-estimation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryRate {
    /// Segments delivered from the transmission of the acknowledged segment until now.
    pub segments: u64,
    /// The longer of the times in which they were sent and acknowledged.
    pub interval: Duration,
    /// Segments that were delivered when the acknowledged segment was sent.
    pub prior_delivered: u64,
    /// Whether the application limited the sender when the segment was sent.
    pub app_limited: bool,
    /// Segments in flight after the acknowledged segment was sent.
    pub in_flight: u64,
    /// Segments that were deemed lost from its transmission until now.
    pub lost: u64,
}

/// A segment that is deemed lost, for congestion controls that model the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// Time at which the loss was detected.
    pub now: Instant,
    /// Number of the segment: those of successive segments are successive.
    pub number: u64,
    /// Segments delivered so far.
    pub delivered: u64,
    /// Segments in flight after it was sent.
    pub in_flight: u64,
    /// Segments that were deemed lost from its transmission until now, with itself.
    pub lost: u64,
    /// Whether the application limited the sender when it was sent.
    pub app_limited: bool,
}

/// An event other than an acknowledgement that changes the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionEvent {
    /// The SYN or SYN/ACK was lost: the subflow begins with one segment. RFC 5681 §3.1.
    SynLost,
    /// Acknowledgements indicate loss: fast recovery begins. RFC 5681 §3.2.
    Recovery {
        /// Time of the event.
        now: Instant,
        /// Bytes from which to reduce: those sent and not cumulatively acknowledged (RFC 5681's
        /// FlightSize), or the congestion window ([`crate::platform::Platform::reduction`]).
        flight_size: u64,
    },
    /// Packets were marked but not lost: reduce the window as after a loss. RFC 3168 §6.1.2.
    Marked {
        /// Time of the event.
        now: Instant,
        /// Bytes from which to reduce, as in [`CongestionEvent::Recovery`].
        flight_size: u64,
    },
    /// The retransmission timer expired. RFC 5681 §3.1.
    Timeout {
        /// Time of the event.
        now: Instant,
        /// Bytes from which to reduce, before the timeout.
        flight_size: u64,
        /// Whether this is the first of consecutive timeouts for the same data. Only the first
        /// lowers the threshold.
        first: bool,
    },
    /// The last reduction was spurious: nothing had been lost. RFC 4015.
    Undo,
    /// The subflow sent nothing for `idle`, which is longer than the retransmission timeout `rto`.
    /// RFC 5681 §4.1.
    Idle {
        /// Time since the last transmission.
        idle: Duration,
        /// Retransmission timeout.
        rto: Duration,
    },
    /// For a retransmission timeout, the application or the receiver has limited the subflow to
    /// `used` bytes of the window. RFC 2861 §3.2.
    Underused {
        /// Largest number of bytes outstanding.
        used: u64,
    },
    /// The maximum segment size changed.
    MssChanged {
        /// New sender maximum segment size in bytes.
        mss: u32,
    },
}

impl CongestionEvent {
    /// Returns `true` if the event indicates congestion in the network.
    pub fn is_congestion(&self) -> bool {
        matches!(self, Self::Recovery { .. } | Self::Marked { .. } | Self::Timeout { .. })
    }
}

/// A remedy asks for a smaller window. Raiciu et al., NSDI 2012; Paasch et al., CoNEXT 2013.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalReduction {
    /// Halve cwnd and set ssthresh to the result, also in slow start (NSDI 2012).
    HalveBoth,
    /// Halve cwnd. Halve ssthresh as well, unless the subflow is in slow start (CoNEXT 2013).
    HalveKeepSlowStart,
    /// Halve cwnd. Halve ssthresh as well, unless no loss has set it yet (MPTCP 0.88).
    HalveKeepUnset,
}

/// Owns cwnd and ssthresh of one subflow.
pub trait CongestionControl: Debug + Send {
    /// Congestion window in bytes.
    fn cwnd(&self) -> u64;
    /// Slow-start threshold in bytes; `u64::MAX` before the first loss.
    fn ssthresh(&self) -> u64;
    /// New data was acknowledged outside of recovery. `peers` are the views of all subflows of the
    /// connection. `me` is the index of this subflow, whose view is older than `sample`.
    fn on_ack(&mut self, sample: &AckSample, me: usize, peers: &[SubflowView]);
    /// Loss, marks, timeout, undo, idle time, or a new segment size; `me` and `peers` as in
    /// [`CongestionControl::on_ack`].
    fn on_congestion_event(&mut self, event: &CongestionEvent, me: usize, peers: &[SubflowView]);
    /// A remedy asks for a smaller window.
    fn on_external_reduction(&mut self, reduction: ExternalReduction);

    /// Returns `true` if it models the path: it gets [`CongestionControl::on_rate_sample`] instead of
    /// [`CongestionControl::on_ack`], and its window also applies in fast recovery. Must always return
    /// the same. Linux: `cong_control`.
    fn models_path(&self) -> bool {
        false
    }
    /// An acknowledgement showed that a segment was lost. Follows the event of a recovery that begins,
    /// and precedes the sample of the acknowledgement.
    fn on_segment_lost(&mut self, _lost: &LostSegment) {}
    /// An acknowledgement arrived, in whatever phase of loss recovery.
    fn on_rate_sample(&mut self, _sample: &RateSample) {}
    /// The subflow sends after a time in which the application limited it and nothing was in flight.
    /// `delivered_at` is the time of the last delivery. Linux: `CA_EVENT_TX_START`.
    fn on_restart(&mut self, _now: Instant, _delivered_at: Instant) {}
    /// Rate in bytes a second at which segments leave; `None` if it does not pace. The smoothed
    /// round-trip time counts before the first rate sample.
    fn pacing_rate(&self, _srtt: Option<Duration>) -> Option<u64> {
        None
    }
    /// Segments that may always leave at once where the subflow is paced. Linux: `min_tso_segs`.
    fn fewest_at_a_time(&self) -> u64 {
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    /// A subflow with segments of 1000 bytes.
    pub(super) fn start(initial_window: u64) -> Start {
        let address = IpAddr::from(Ipv4Addr::LOCALHOST);
        Start { local: address, remote: address, mss: 1000, initial_window, random: 1 }
    }
}
