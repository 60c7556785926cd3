//! Carrying bytes between two streams.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use anabranch_host::Stream;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;

/// Bytes that a connection holds between two sockets, in each direction.
const CHUNK: usize = 64 << 10;
/// Idle time before the kernel's keep-alive probes, so that a peer that has vanished does not keep a
/// connection (this project).
const KEEP_ALIVE: Duration = Duration::from_secs(120);

/// Set the options of a socket whose data another connection brings.
pub(super) fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    SockRef::from(socket).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEP_ALIVE))
}

/// The end of a connection that is not the one over the uplinks.
pub(super) trait Near: AsyncRead + AsyncWrite + Unpin {
    /// Reset the connection when it is dropped.
    fn reset(&mut self);
}

impl Near for TcpStream {
    fn reset(&mut self) {
        let _ = self.set_zero_linger();
    }
}

impl Near for Stream {
    fn reset(&mut self) {
        self.abort();
    }
}

/// Carry bytes both ways until both directions have ended. If a connection fails, reset the other
/// one. `from_far` and `from_near` count the bytes.
pub(super) async fn carry(
    mut near: impl Near,
    far: Stream,
    from_near: &AtomicU64,
    from_far: &AtomicU64,
) -> io::Result<()> {
    let mut far = Counted { stream: far, read: from_far, written: from_near };
    let done = copy_bidirectional_with_sizes(&mut near, &mut far, CHUNK, CHUNK).await;
    if done.is_err() {
        far.stream.abort();
        near.reset();
    }
    done.map(|_| ())
}

/// A stream that counts its bytes.
struct Counted<'a> {
    stream: Stream,
    read: &'a AtomicU64,
    written: &'a AtomicU64,
}

impl AsyncRead for Counted<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.read.fetch_add((buffer.filled().len() - before) as u64, Ordering::Relaxed);
        polled
    }
}

impl AsyncWrite for Counted<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, buffer);
        if let Poll::Ready(Ok(count)) = polled {
            self.written.fetch_add(count as u64, Ordering::Relaxed);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
