//! The interface to the system that a host needs: a network device and an alarm clock.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use anabranch_wire::Packet;
use tokio::time::{Instant, Sleep, sleep};

/// The network interface of a host, in real time: a TUN device, for example.
pub trait Device: Send + 'static {
    /// Send a packet, at the next call of [`flush`](Device::flush) at the latest. A device without
    /// room drops it, as any interface does.
    ///
    /// # Errors
    /// If the device has failed. All connections of the host then fail.
    fn send(&mut self, packet: Packet) -> io::Result<()>;

    /// Send what the device has gathered, because no further packet follows for now.
    ///
    /// # Errors
    /// If the device has failed. All connections of the host then fail.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Receive the next packet, or arrange for `context` to be woken when there is one. A device
    /// skips packets that are neither TCP nor UDP.
    ///
    /// # Errors
    /// If the device has failed. All connections of the host then fail.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Packet>>;
}

/// Wakes the task that drives a world.
pub trait Alarm: Send + 'static {
    /// Return `Ready` if it is `at` or later. Otherwise arrange for `context` to be woken then,
    /// instead of at an earlier call's time.
    fn poll_at(&mut self, at: Instant, context: &mut Context<'_>) -> Poll<()>;
}

/// Tokio's timer, which is precise to a millisecond.
pub(crate) struct TokioAlarm(Pin<Box<Sleep>>);

impl Default for TokioAlarm {
    fn default() -> Self {
        TokioAlarm(Box::pin(sleep(Duration::ZERO)))
    }
}

impl Alarm for TokioAlarm {
    fn poll_at(&mut self, at: Instant, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().reset(at);
        self.0.as_mut().poll(context)
    }
}
