//! A connection as a stream of bytes.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anabranch_proto::{ConnectionId, ConnectionStats, SubflowStats};
use anabranch_wire::{Payload, Piece};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::world::{HostNumber, SharedWorld};

/// Bytes that a single write takes at most, so that a large buffer is not copied again and again.
const LONGEST_WRITE: usize = 256 << 10;

/// A connection: Multipath TCP, or TCP if the peer or a middlebox does not support it.
///
/// Writing waits while the send buffer is full, and reading waits for data. `shutdown` closes the
/// sending direction; the peer then reads the end of the stream, and can still write. Dropping the
/// stream closes the connection after all written data, in the background. If received data was not
/// read, dropping resets the connection, as Linux does.
///
/// Errors are those of [`tokio::net::TcpStream`](https://docs.rs/tokio/latest/tokio/net/struct.TcpStream.html):
/// `ConnectionReset`, `ConnectionAborted`, `TimedOut` and `BrokenPipe` after `shutdown`. If the last
/// subflow failed and no other could replace it, reading fails with `NetworkUnreachable` and writing
/// with `BrokenPipe`.
pub struct Stream {
    world: Arc<SharedWorld>,
    host: HostNumber,
    id: ConnectionId,
    local: SocketAddr,
    peer: SocketAddr,
    /// Data that was taken from the engine, but not read yet.
    unread: Payload,
}

impl Stream {
    /// The stream of a connection that is open or opening.
    pub(crate) fn new(world: Arc<SharedWorld>, host: HostNumber, id: ConnectionId) -> Self {
        let first = world.with(host, |world| world.hosts[host].endpoint.subflow_stats(id).next());
        let unknown = SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 0);
        let (local, peer) =
            first.map_or((unknown, unknown), |it| (it.local.into(), it.remote.into()));
        Stream { world, host, id, local, peer, unread: Payload::EMPTY }
    }

    /// Wait until the connection is open.
    pub(crate) async fn opened(self) -> io::Result<Self> {
        let (host, id) = (self.host, self.id);
        std::future::poll_fn(|context| {
            self.world.with(host, |world| world.hosts[host].poll_open(id, context))
        })
        .await?;
        Ok(self)
    }

    /// Address and port of this host on the first subflow.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Address and port of the peer on the first subflow.
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// The connection in the host's engine.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Totals of the connection; `None` once the host has forgotten it.
    pub fn stats(&self) -> Option<ConnectionStats> {
        let (host, id) = (self.host, self.id);
        self.world.with(host, |world| world.hosts[host].endpoint.connection_stats(world.now, id))
    }

    /// Returns `true` if the connection has ended, in order or with an error. Data may still be unread.
    pub fn has_ended(&self) -> bool {
        let (host, id) = (self.host, self.id);
        self.world.with(host, |world| world.hosts[host].has_ended(id))
    }

    /// Returns `true` if the connection has ended with an error.
    pub fn has_failed(&self) -> bool {
        let (host, id) = (self.host, self.id);
        self.world.with(host, |world| world.hosts[host].has_failed(id))
    }

    /// Totals of the open subflows.
    pub fn subflows(&self) -> Vec<SubflowStats> {
        let (host, id) = (self.host, self.id);
        self.world.with(host, |world| {
            let all = world.hosts[host].endpoint.subflow_stats(id);
            all.filter(SubflowStats::is_open).collect()
        })
    }

    /// Receive data without copying it: append what has arrived to `to`, until it is `enough`, and
    /// return the number of bytes. It is 0 at the end of the stream.
    ///
    /// # Errors
    /// As reading.
    pub fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
        enough: usize,
        to: &mut VecDeque<Bytes>,
    ) -> Poll<io::Result<usize>> {
        let mut count = append(mem::take(&mut self.unread), to);
        let (host, id) = (self.host, self.id);
        // All in one step, so that the peer learns of the free window once.
        self.world.with(host, |world| {
            while count < enough {
                match world.hosts[host].poll_read(id, context) {
                    Poll::Ready(Ok(Some(payload))) => count += append(payload, to),
                    // Data that was read comes before an error or the end.
                    _ if count > 0 => break,
                    Poll::Ready(Ok(None)) => break,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(Ok(count))
        })
    }

    /// Send data without copying it, and return the number of bytes that the send buffer has taken.
    ///
    /// # Errors
    /// As writing.
    pub fn poll_send(&mut self, context: &mut Context<'_>, data: Bytes) -> Poll<io::Result<usize>> {
        let (host, id) = (self.host, self.id);
        self.world.with(host, |world| world.hosts[host].poll_write(id, context, data))
    }

    /// Open all of the receive buffer; see [`Endpoint::open_receive_buffer`].
    ///
    /// [`Endpoint::open_receive_buffer`]: anabranch_proto::Endpoint::open_receive_buffer
    pub fn open_receive_buffer(&self) {
        let (host, id) = (self.host, self.id);
        self.world.with(host, |world| world.hosts[host].endpoint.open_receive_buffer(id));
    }

    /// Reset the connection: MP_FASTCLOSE, or RST for TCP.
    pub fn abort(&self) {
        let (host, id) = (self.host, self.id);
        self.world.with(host, |world| world.hosts[host].endpoint.abort(id));
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (host, id) = (self.host, self.id);
        let mut any = false;
        while buffer.remaining() > 0 {
            if self.unread.is_empty() {
                let next = self.world.with(host, |world| world.hosts[host].poll_read(id, context));
                match next {
                    Poll::Ready(Ok(Some(payload))) => self.unread = payload,
                    // Data that was read comes before an error or the end.
                    _ if any => break,
                    Poll::Ready(Ok(None)) => break,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            let length = self.unread.len();
            let count = length.min(buffer.remaining());
            self.unread.slice(0, count).for_each_slice(|bytes| buffer.put_slice(bytes));
            self.unread = self.unread.slice(count, length);
            any = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        if buffer.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let (host, id) = (self.host, self.id);
        self.world.with(host, |world| {
            let sockets = &mut world.hosts[host];
            // The engine reports room only after a write that it did not take in full, so this
            // offers a byte more than there is room for.
            let room =
                usize::try_from(sockets.endpoint.send_buffer_space(id)).unwrap_or(LONGEST_WRITE);
            let offered = buffer.len().min(room.saturating_add(1)).min(LONGEST_WRITE);
            sockets.poll_write(id, context, Bytes::copy_from_slice(&buffer[..offered]))
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (host, id) = (self.host, self.id);
        self.world.with(host, |world| world.hosts[host].endpoint.close(id));
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let (host, id, unread) = (self.host, self.id, !self.unread.is_empty());
        self.world.with(host, |world| world.hosts[host].release(id, unread));
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("local", &self.local).field("peer", &self.peer).finish()
    }
}

/// Append the bytes of a payload, and return their number.
fn append(payload: Payload, to: &mut VecDeque<Bytes>) -> usize {
    let count = payload.len();
    for piece in payload.into_pieces().into_iter().filter(|piece| !piece.is_empty()) {
        to.push_back(match piece {
            Piece::Shared(bytes) => bytes,
            pattern @ Piece::Pattern { .. } => Payload::from(pattern).to_vec().into(),
        });
    }
    count
}
