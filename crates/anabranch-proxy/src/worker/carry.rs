//! Carrying bytes between two streams.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anabranch_host::Stream;
use bytes::{Buf, Bytes, BytesMut};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::sleep;

/// Bytes that are taken from one end at a time, at most: several times the longest frame of a TUN
/// device, because the rest of each time leaves in a short frame.
const MOST: usize = 256 << 10;
/// Fewer bytes are copied, so that they do not keep a large buffer alive.
const WORTH_SHARING: usize = MOST / 16;
/// Slices of a write. Linux takes up to 1024.
const SLICES: usize = 64;
/// Idle time before the kernel's keep-alive probes, so that a peer that has vanished does not keep a
/// connection (this project).
const KEEP_ALIVE: Duration = Duration::from_secs(120);
/// Time between two looks at what an ended connection's peer has acknowledged (this project).
const SETTLING_INTERVAL: Duration = Duration::from_millis(200);

/// Set the options of a socket whose data another connection brings.
pub(super) fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    SockRef::from(socket).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEP_ALIVE))
}

/// An end between which bytes are carried. They are not copied on their way.
pub(super) trait End {
    /// Append bytes that have arrived, and return their number; 0 at the end of the stream.
    fn poll_take(
        &mut self,
        context: &mut Context<'_>,
        to: &mut VecDeque<Bytes>,
    ) -> Poll<io::Result<usize>>;

    /// Send bytes from the front of `from`, which has some, and return their number.
    fn poll_give(
        &mut self,
        context: &mut Context<'_>,
        from: &mut VecDeque<Bytes>,
    ) -> Poll<io::Result<usize>>;

    /// No further bytes follow.
    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Bytes that the peer has not acknowledged, if this program has to keep them.
    fn unacknowledged(&self) -> u64;

    /// Reset the connection when it is dropped.
    fn reset(&mut self);
}

/// A socket of the kernel as an end.
pub(super) struct SocketEnd {
    stream: TcpStream,
    /// Room for bytes, while some arrive. Idle connections need no memory.
    room: BytesMut,
    /// Size of the next room: twice the bytes of the last read. A shared piece keeps its whole room
    /// alive.
    size: usize,
}

impl From<TcpStream> for SocketEnd {
    fn from(stream: TcpStream) -> Self {
        SocketEnd { stream, room: BytesMut::new(), size: 2 * WORTH_SHARING }
    }
}

impl End for SocketEnd {
    fn poll_take(
        &mut self,
        context: &mut Context<'_>,
        to: &mut VecDeque<Bytes>,
    ) -> Poll<io::Result<usize>> {
        if self.stream.poll_read_ready(context)?.is_pending() {
            self.room = BytesMut::new();
            return Poll::Pending;
        }
        if self.room.capacity() < (self.size / 4).max(WORTH_SHARING) {
            self.room = BytesMut::with_capacity(self.size);
        }
        let count = ready!(pin!(self.stream.read_buf(&mut self.room)).poll(context))?;
        self.size = (2 * count).clamp(2 * WORTH_SHARING, MOST);
        if count < WORTH_SHARING {
            to.extend((count > 0).then(|| Bytes::copy_from_slice(&self.room)));
            self.room.clear();
        } else {
            to.push_back(self.room.split().freeze());
        }
        Poll::Ready(Ok(count))
    }

    fn poll_give(
        &mut self,
        context: &mut Context<'_>,
        from: &mut VecDeque<Bytes>,
    ) -> Poll<io::Result<usize>> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        for (slice, bytes) in slices.iter_mut().zip(from.iter()) {
            *slice = IoSlice::new(bytes);
        }
        let slices = &slices[..from.len().min(SLICES)];
        let count = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, slices))?;
        let mut left = count;
        while let Some(first) = from.front_mut().filter(|_| left > 0) {
            let taken = left.min(first.len());
            first.advance(taken);
            left -= taken;
            if first.is_empty() {
                from.pop_front();
            }
        }
        Poll::Ready(Ok(count))
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn unacknowledged(&self) -> u64 {
        // The kernel keeps them.
        0
    }

    fn reset(&mut self) {
        let _ = self.stream.set_zero_linger();
    }
}

impl End for Stream {
    fn poll_take(
        &mut self,
        context: &mut Context<'_>,
        to: &mut VecDeque<Bytes>,
    ) -> Poll<io::Result<usize>> {
        self.poll_recv(context, MOST, to)
    }

    fn poll_give(
        &mut self,
        context: &mut Context<'_>,
        from: &mut VecDeque<Bytes>,
    ) -> Poll<io::Result<usize>> {
        let Some(first) = from.front_mut() else { return Poll::Ready(Ok(0)) };
        let count = ready!(self.poll_send(context, first.clone()))?;
        first.advance(count);
        if first.is_empty() {
            from.pop_front();
        }
        Poll::Ready(Ok(count))
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self).poll_shutdown(context)
    }

    fn unacknowledged(&self) -> u64 {
        self.stats().map_or(0, |it| it.bytes_written.saturating_sub(it.bytes_acknowledged))
    }

    fn reset(&mut self) {
        self.abort();
    }
}

/// Carry bytes both ways until both directions have ended, and the peers have acknowledged them. If a
/// connection fails before both directions have ended, reset the other one. `from_far` and `from_near`
/// count the bytes.
pub(super) async fn carry(
    mut near: impl End,
    mut far: impl End,
    from_near: &AtomicU64,
    from_far: &AtomicU64,
) -> io::Result<()> {
    let (mut there, mut back) = (Direction::new(from_near), Direction::new(from_far));
    let done = poll_fn(|context| {
        let there = there.poll(&mut near, &mut far, context)?;
        let back = back.poll(&mut far, &mut near, context)?;
        if there.is_ready() && back.is_ready() { Poll::Ready(Ok(())) } else { Poll::Pending }
    });
    let done = done.await;
    if done.is_ok() {
        settle(&near).await;
        settle(&far).await;
    } else {
        far.reset();
        near.reset();
    }
    done
}

/// Wait until the peer has acknowledged everything, or the engine has given it up.
async fn settle(end: &impl End) {
    while end.unacknowledged() > 0 {
        sleep(SETTLING_INTERVAL).await;
    }
}

/// Bytes on their way in one direction.
struct Direction<'a> {
    bytes: VecDeque<Bytes>,
    progress: Progress,
    carried: &'a AtomicU64,
}

#[derive(Clone, Copy)]
enum Progress {
    Carrying,
    Finishing,
    Finished,
}

impl<'a> Direction<'a> {
    fn new(carried: &'a AtomicU64) -> Self {
        Direction { bytes: VecDeque::new(), progress: Progress::Carrying, carried }
    }

    fn poll(
        &mut self,
        from: &mut impl End,
        to: &mut impl End,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.progress {
                Progress::Carrying if self.bytes.is_empty() => {
                    if ready!(from.poll_take(context, &mut self.bytes))? == 0 {
                        self.progress = Progress::Finishing;
                    }
                }
                Progress::Carrying => {
                    let count = ready!(to.poll_give(context, &mut self.bytes))?;
                    self.carried.fetch_add(count as u64, Ordering::Relaxed);
                }
                Progress::Finishing => {
                    ready!(to.poll_finish(context))?;
                    self.progress = Progress::Finished;
                }
                Progress::Finished => return Poll::Ready(Ok(())),
            }
        }
    }
}
