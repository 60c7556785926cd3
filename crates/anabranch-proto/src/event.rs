//! What the engine tells the application.

use crate::error::ConnectionError;
use crate::view::SubflowId;

/// Something happened on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A listener accepted the connection; it can carry data.
    Accepted,
    /// The connection that this host opened can carry data.
    Connected,
    /// There is data to receive, or the stream has ended.
    Readable,
    /// The send buffer, full when the application last wrote, has room again.
    Writable,
    /// A further subflow can carry data.
    SubflowEstablished(SubflowId),
    /// A subflow has ended.
    SubflowClosed(SubflowId),
    /// The peer did not speak Multipath TCP (or stopped to): the connection goes on as TCP.
    FellBack,
    /// Both directions are closed and everything was acknowledged. Data that was not read yet
    /// stays, and so does the connection, until it is read or [`crate::Endpoint::abort`] is called.
    Closed,
    /// The connection ended with an error. Unread data stays as after [`Event::Closed`], or is
    /// discarded: [`crate::platform::Platform::keeps_unread_data`].
    Failed(ConnectionError),
}
