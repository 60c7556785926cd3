//! One small error type per operation.

use thiserror::Error;

/// Why a connection could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The local address is not one of the endpoint's.
    #[error("the local address is not an address of this endpoint")]
    UnknownLocalAddress,
    /// The same pair of addresses and ports is in use.
    #[error("the address and port pair is in use")]
    InUse,
    /// The two addresses are not of one family.
    #[error("the two addresses are not of the same family")]
    MixedFamilies,
}

/// Why data could not be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The connection has ended, or never existed.
    #[error("the connection has ended")]
    NotConnected,
    /// The application has closed its direction already.
    #[error("the sending direction is closed")]
    Closed,
}

/// Why a connection ended other than by an orderly close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
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
    /// The application aborted it.
    #[error("aborted by the application")]
    Aborted,
    /// The last subflow failed and none could replace it.
    #[error("no subflow left")]
    NoSubflow,
}
