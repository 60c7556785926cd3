//! One small error type per operation.

use thiserror::Error;

/// Error of a connection that could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The local address does not belong to the endpoint.
    #[error("the local address is not an address of this endpoint")]
    UnknownLocalAddress,
    /// The same pair of addresses and ports is in use.
    #[error("the address and port pair is in use")]
    InUse,
    /// The two addresses belong to different families.
    #[error("the two addresses belong to different families")]
    MixedFamilies,
}

/// Error of a connection that did not accept data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The connection has ended, or never existed.
    #[error("the connection has ended")]
    NotConnected,
    /// The application has already closed its sending direction.
    #[error("the sending direction is closed")]
    Closed,
}

/// Reason why a connection ended other than by an orderly close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The peer answered a SYN with RST.
    #[error("connection refused")]
    Refused,
    /// The peer did not answer in time.
    #[error("timed out")]
    TimedOut,
    /// The peer reset the connection, or its last subflow.
    #[error("reset by the peer")]
    Reset,
    /// The application aborted the connection.
    #[error("aborted by the application")]
    Aborted,
    /// The last subflow failed and no other could replace it.
    #[error("no subflow left")]
    NoSubflow,
}
