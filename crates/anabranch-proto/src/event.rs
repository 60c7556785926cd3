//! Events that the engine reports to the application.

use crate::error::ConnectionError;
use crate::stats::SubflowStats;
use crate::view::SubflowId;

/// An event of a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A listener accepted the connection, which can now carry data.
    Accepted,
    /// A connection that this host opened can now carry data.
    Connected,
    /// There is data to receive, or the stream has ended.
    Readable,
    /// The send buffer was full when the application last wrote, and has room again.
    Writable,
    /// A further subflow can carry data.
    SubflowEstablished(SubflowId),
    /// A subflow has ended, with these totals. Another subflow may already have taken its slot.
    SubflowClosed(Box<SubflowStats>),
    /// The peer does not speak Multipath TCP, or stopped using it: the connection continues as TCP.
    FellBack,
    /// Both directions are closed and all data was acknowledged. The connection keeps unread data
    /// until the application reads it or calls [`crate::Endpoint::abort`].
    Closed,
    /// The connection ended with an error. It keeps unread data as after [`Event::Closed`], or
    /// discards it: [`crate::platform::Platform::keeps_unread_data`].
    Failed(ConnectionError),
}
