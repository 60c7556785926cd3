//! Congestion control: one object per subflow, which owns the congestion window.
//!
//! The arithmetic of each algorithm is in small functions without state; the objects apply it.
//! Windows are counted in bytes, and grow in whole segments.

mod balia;
mod coupled;
mod cubic;
mod hystart;
mod lia;
mod new_reno;
mod olia;
mod window;
mod wvegas;

pub use balia::Balia;
pub use cubic::Cubic;
use hystart::FirstHyStart;
pub use hystart::HyStart;
pub use lia::Lia;
pub use new_reno::NewReno;
pub use olia::Olia;
pub use window::Window;
pub use wvegas::WVegas;

use coupled::Coupled;

use core::fmt::Debug;
use std::net::IpAddr;

use anabranch_wire::{Duration, Instant};

use crate::policy::Entry;
use crate::view::SubflowView;

/// A congestion control that can be chosen by name.
pub type CongestionControlEntry = Entry<Making>;

/// All congestion controls.
pub const ALL: &[CongestionControlEntry] = &[
    new_reno::ENTRY,
    cubic::ENTRY,
    cubic::LINUX_ENTRY,
    lia::ENTRY,
    olia::ENTRY,
    balia::ENTRY,
    wvegas::ENTRY,
];

/// How a congestion control is made.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    /// Does it look at the other subflows?
    pub coupled: bool,
    /// What Linux calls the one like it; `None` if Linux has none.
    pub in_kernel: Option<&'static str>,
    /// Does HyStart++ end its slow start unless somebody says otherwise?
    pub hystart: bool,
    /// Makes one.
    pub make: Make,
}

/// Makes a congestion control for a subflow.
#[derive(Clone, Copy, Debug)]
pub enum Make {
    /// One that ends slow start by a rule of its own.
    Plain(fn(&Start) -> Box<dyn CongestionControl>),
    /// One whose slow start HyStart++ (RFC 9406) can end, if the second argument says so.
    WithHyStart(fn(&Start, bool) -> Box<dyn CongestionControl>),
}

/// What a new subflow starts with.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Address of this end of the subflow.
    pub local: IpAddr,
    /// Address of the other end.
    pub remote: IpAddr,
    /// Sender maximum segment size in bytes.
    pub mss: u32,
    /// Initial window in bytes. RFC 6928.
    pub initial_window: u64,
}

/// New data was acknowledged on the subflow.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When the acknowledgement arrived.
    pub now: Instant,
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// A round-trip time, if one could be taken.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Bytes in flight after the acknowledgement.
    pub bytes_in_flight: u64,
    /// First subflow byte not acknowledged (64-bit, from the start of the subflow).
    pub snd_una: u64,
    /// Next subflow byte to send, likewise.
    pub snd_nxt: u64,
    /// Did the window, rather than the application or the receiver, limit the sender?
    pub cwnd_limited: bool,
}

/// Something that moves the window other than an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionEvent {
    /// The SYN, or its answer, was lost: the subflow begins with one segment. RFC 5681 §3.1.
    SynLost,
    /// Loss was detected by acknowledgements: fast recovery begins. RFC 5681 §3.2.
    Recovery {
        /// When.
        now: Instant,
        /// Bytes to reduce from: sent and not cumulatively acknowledged (RFC 5681's FlightSize),
        /// or the congestion window ([`crate::platform::Platform::reduction`]).
        flight_size: u64,
    },
    /// Packets were marked on their way, none was lost: the window is reduced as for a loss.
    /// RFC 3168 §6.1.2.
    Marked {
        /// When.
        now: Instant,
        /// Bytes to reduce from, as in a recovery.
        flight_size: u64,
    },
    /// The retransmission timer expired. RFC 5681 §3.1.
    Timeout {
        /// When.
        now: Instant,
        /// Bytes to reduce from, as before the timeout.
        flight_size: u64,
        /// The first of a series for the same data: only that one lowers the threshold.
        first: bool,
    },
    /// The last reduction was not needed: nothing had been lost. RFC 4015.
    Undo,
    /// Nothing was sent for `idle`, longer than the retransmission timeout `rto`.
    /// RFC 5681 §4.1.
    Idle {
        /// Time since the last transmission.
        idle: Duration,
        /// Retransmission timeout.
        rto: Duration,
    },
    /// The application, or the receiver, has used no more than `used` bytes of the window for a
    /// retransmission timeout. RFC 2861 §3.2.
    Underused {
        /// Bytes outstanding at the most.
        used: u64,
    },
    /// The segment size changed.
    MssChanged {
        /// New sender maximum segment size in bytes.
        mss: u32,
    },
}

impl CongestionEvent {
    /// Is it a sign that the network is congested?
    pub fn is_congestion(&self) -> bool {
        matches!(self, Self::Recovery { .. } | Self::Marked { .. } | Self::Timeout { .. })
    }
}

/// A remedy asks for a smaller window. Raiciu et al., NSDI 2012; Paasch et al., CoNEXT 2013.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalReduction {
    /// Halve cwnd and set ssthresh to the result, in slow start too (NSDI 2012).
    HalveBoth,
    /// Halve cwnd; halve ssthresh too unless the subflow is in slow start (CoNEXT 2013).
    HalveKeepSlowStart,
}

/// Owns cwnd and ssthresh of one subflow.
pub trait CongestionControl: Debug + Send {
    /// Congestion window in bytes.
    fn cwnd(&self) -> u64;
    /// Slow-start threshold in bytes; `u64::MAX` before the first loss.
    fn ssthresh(&self) -> u64;
    /// New data was acknowledged outside of recovery. `peers` are the views of all subflows of
    /// the connection and `me` the index of this one, whose view is older than `sample`.
    fn on_ack(&mut self, sample: &AckSample, me: usize, peers: &[SubflowView]);
    /// Loss, timeout, undo, idleness; `me` and `peers` as for [`CongestionControl::on_ack`].
    fn on_congestion_event(&mut self, event: &CongestionEvent, me: usize, peers: &[SubflowView]);
    /// A remedy asks for a smaller window.
    fn on_external_reduction(&mut self, reduction: ExternalReduction);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    /// A subflow with segments of 1000 bytes.
    pub(super) fn start(initial_window: u64) -> Start {
        let address = IpAddr::from(Ipv4Addr::LOCALHOST);
        Start { local: address, remote: address, mss: 1000, initial_window }
    }
}
