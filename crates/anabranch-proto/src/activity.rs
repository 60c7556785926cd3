//! Activity of a subflow at an instant: the reason why it sends nothing more.

use crate::view::{Slot, SubflowId};

/// The reason why a subflow cannot send another segment of new data now. After
/// [`Endpoint::poll_transmit`](crate::Endpoint::poll_transmit) has returned `None`, exactly one
/// reason applies to each subflow until the next call that changes the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Activity {
    /// The handshake is in progress.
    Opening,
    /// Its congestion window is full, or a congestion signal holds it.
    CongestionWindow,
    /// Pacing lets the next segment leave later.
    Paced,
    /// A remedy limits its data in flight.
    Remedy,
    /// It recovers from a loss, and recovery admits no new data.
    Recovery,
    /// Its retransmission timer has expired, or the peer reports the path as gone, and nothing was
    /// acknowledged since.
    Silent,
    /// It is a backup, and a regular subflow is usable. RFC 8684 §3.3.8.
    Standby,
    /// It has room, and the receive window is full. The oldest data that the window waits for is on
    /// the subflow of [`Reason::behind`]. RFC 8684 §3.3.5.
    ReceiveWindow,
    /// It has room, everything written was sent, and the application waits for room in the send
    /// buffer. The oldest data in the buffer is on the subflow of [`Reason::behind`].
    SendBuffer,
    /// It has room, and there is data and window, but the scheduler did not choose it.
    Scheduler,
    /// It has room, but the application has written nothing more, or less than a segment while
    /// Nagle's algorithm waits. RFC 9293 §3.7.4.
    Application,
    /// It has room, everything sent was acknowledged, and the receiving application does not read.
    Reader,
    /// The connection fell back to TCP on another subflow. RFC 8684 §3.7.
    FallenBack,
    /// The subflow, or the sending direction of the connection, is closed.
    Closed,
}

/// The activity of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The subflow.
    pub subflow: SubflowId,
    /// Its activity.
    pub activity: Activity,
    /// Slot of the subflow that carries the oldest data which the window or the send buffer waits
    /// for.
    pub behind: Option<Slot>,
}
