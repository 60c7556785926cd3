//! What a script needs of a TCP stack.

use anabranch_wire::{Instant, Payload, Segment};

use crate::layout::Layout;

/// Names a socket of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handle(pub usize);

/// How far a system call has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<T> {
    /// It has returned.
    Done(T),
    /// It blocks.
    Blocked,
    /// It has failed with this error, named as in errno.h.
    Failed(&'static str),
}

/// A socket option with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketOption {
    /// SO_RCVBUF, in bytes that the window may offer.
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

/// What a stack tells about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Does it speak Multipath TCP?
    pub is_mptcp: bool,
    /// Subflows that can carry data.
    pub subflows: u64,
    /// Congestion window of the first subflow in segments.
    pub cwnd: u64,
}

/// The machinery around a stack failed, not the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble(pub String);

/// A TCP stack that a script is played against. Calls never block: the player tries again.
pub trait Stack {
    /// The time since the script began.
    fn now(&self) -> Instant;
    /// Let time pass until `until`, or until something may have changed.
    fn wait(&mut self, until: Instant) -> Result<(), Trouble>;
    /// The next segment that the stack has sent, and when.
    fn next_segment(&mut self) -> Option<(Instant, Segment)>;
    /// A segment arrives.
    fn inject(&mut self, segment: Segment) -> Result<(), Trouble>;
    /// How exactly the stack keeps time.
    fn is_exact(&self) -> bool;
    /// The addresses in use.
    fn layout(&self) -> Layout;

    /// `socket`, of Multipath TCP or TCP.
    fn socket(&mut self, mptcp: bool) -> Progress<Handle>;
    /// `setsockopt`.
    fn set_option(&mut self, socket: Handle, option: SocketOption) -> Progress<()>;
    /// `bind` to an address, or to all.
    fn bind(&mut self, socket: Handle, host: Option<u8>, port: u16) -> Progress<()>;
    /// `listen`.
    fn listen(&mut self, socket: Handle) -> Progress<()>;
    /// `accept`.
    fn accept(&mut self, socket: Handle) -> Progress<Handle>;
    /// `connect`; later calls tell how it went.
    fn connect(&mut self, socket: Handle, peer: u8, port: u16) -> Progress<()>;
    /// `write` of `len` bytes of the pattern from offset `from`; tells how many were taken.
    fn write(&mut self, socket: Handle, from: u64, len: u32) -> Progress<u32>;
    /// `read` of at most `len` bytes; none at the end of the stream.
    fn read(&mut self, socket: Handle, len: u32) -> Progress<Payload>;
    /// `getsockopt` of SO_ERROR.
    fn take_error(&mut self, socket: Handle) -> Option<&'static str>;
    /// `shutdown(SHUT_WR)`.
    fn shutdown(&mut self, socket: Handle) -> Progress<()>;
    /// `close`.
    fn close(&mut self, socket: Handle) -> Progress<()>;
    /// An address of the host goes away or comes back.
    fn set_address(&mut self, host: u8, up: bool) -> Result<(), Trouble>;
    /// What the stack tells about a connection.
    fn facts(&mut self, socket: Handle) -> Option<Facts>;
}
