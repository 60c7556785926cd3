//! The interface between scripts and a TCP stack.

use anabranch_wire::{Instant, Payload, Segment};

use crate::layout::Layout;

/// Identifies a socket of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handle(pub usize);

/// The state of a system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallState<T> {
    /// The call has returned.
    Done(T),
    /// The call blocks.
    Blocked,
    /// The call has failed with this error, by its name in errno.h.
    Failed(&'static str),
}

/// A socket option with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketOption {
    /// SO_RCVBUF: the number of bytes that the window may offer.
    ReceiveBuffer(u32),
    /// SO_SNDBUF, in bytes.
    SendBuffer(u32),
    /// TCP_NODELAY.
    NoDelay(bool),
    /// SO_LINGER with a time of 0: `close` resets the connection.
    Abort(bool),
    /// TCP_USER_TIMEOUT in milliseconds.
    UserTimeout(u32),
}

/// The facts that a stack reports about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackInfo {
    /// Whether the connection uses Multipath TCP.
    pub is_mptcp: bool,
    /// Number of subflows that can carry data.
    pub subflows: u64,
    /// Congestion window of the first subflow in segments.
    pub cwnd: u64,
}

/// A failure of the test environment, not of the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackError(pub String);

/// A TCP stack under test. Calls never block: the player repeats a blocked call.
pub trait StackUnderTest {
    /// The time since the script began.
    fn now(&self) -> Instant;
    /// Let time pass until `until`, or until something may have changed.
    fn wait(&mut self, until: Instant) -> Result<(), StackError>;
    /// The next segment that the stack has sent, and when.
    fn next_segment(&mut self) -> Option<(Instant, Segment)>;
    /// Let a segment arrive at the stack.
    fn inject(&mut self, segment: Segment) -> Result<(), StackError>;
    /// Returns `true` if the stack keeps time exactly, in virtual time.
    fn is_exact(&self) -> bool;
    /// The addresses in use.
    fn layout(&self) -> Layout;

    /// `socket`, for Multipath TCP or TCP.
    fn socket(&mut self, mptcp: bool) -> CallState<Handle>;
    /// `setsockopt`.
    fn set_option(&mut self, socket: Handle, option: SocketOption) -> CallState<()>;
    /// `bind` to one address or to all addresses.
    fn bind(&mut self, socket: Handle, host: Option<u8>, port: u16) -> CallState<()>;
    /// `listen`.
    fn listen(&mut self, socket: Handle) -> CallState<()>;
    /// `accept`.
    fn accept(&mut self, socket: Handle) -> CallState<Handle>;
    /// `connect`. Later calls return its result.
    fn connect(&mut self, socket: Handle, peer: u8, port: u16) -> CallState<()>;
    /// `write` of `len` bytes of the test pattern from offset `from`. Returns how many were accepted.
    fn write(&mut self, socket: Handle, from: u64, len: u32) -> CallState<u32>;
    /// `read` of at most `len` bytes. Returns none at the end of the stream.
    fn read(&mut self, socket: Handle, len: u32) -> CallState<Payload>;
    /// `getsockopt` of SO_ERROR.
    fn take_error(&mut self, socket: Handle) -> Option<&'static str>;
    /// `shutdown(SHUT_WR)`.
    fn shutdown(&mut self, socket: Handle) -> CallState<()>;
    /// `close`.
    fn close(&mut self, socket: Handle) -> CallState<()>;
    /// Remove an address of the host, or restore it.
    fn set_address(&mut self, host: u8, up: bool) -> Result<(), StackError>;
    /// The facts about a connection.
    fn info(&mut self, socket: Handle) -> Option<StackInfo>;
}
