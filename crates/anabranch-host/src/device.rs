//! What carries the packets of a host.

use std::io;
use std::task::{Context, Poll};

use anabranch_wire::Packet;

/// The network interface of a host, in real time: a TUN device, for example.
pub trait Device: Send + 'static {
    /// Send a packet. A device without room drops it, as any interface does.
    ///
    /// # Errors
    /// If the device has failed. All connections of the host then fail.
    fn send(&mut self, packet: &Packet) -> io::Result<()>;

    /// Receive the next packet, or arrange for `context` to be woken when there is one. A device
    /// skips what is neither TCP nor UDP.
    ///
    /// # Errors
    /// If the device has failed. All connections of the host then fail.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Packet>>;
}
