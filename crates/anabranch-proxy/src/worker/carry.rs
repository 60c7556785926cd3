//! Carrying bytes between two streams.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::mem;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anabranch_host::Stream;
use anabranch_live::unacknowledged;
use bytes::{Buf, Bytes, BytesMut};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, interval, sleep, timeout};

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
/// Time between two looks for ends that have failed while nothing reads from them (this project).
const LOOKING_INTERVAL: Duration = Duration::from_secs(10);
/// Longest time without progress at an end whose other end has failed or finished (this project): as long
/// as a subflow waits for an acknowledgement.
const MOST_STALLED_TIME: Duration = Duration::from_secs(120);

/// Set the options of a socket whose data another connection brings.
pub(super) fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    SockRef::from(socket).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEP_ALIVE))
}

/// One end of a connection that carries bytes. The bytes are not copied on their way.
pub(super) trait End {
    /// Whether bytes that were given reach the peer even if the end is dropped.
    const KEEPS_BYTES: bool;

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

    /// Returns `true` if the connection has failed, even if no read or write is pending.
    fn has_failed(&mut self) -> bool;

    /// Bytes that the peer has not acknowledged; 0 if the connection has ended.
    fn unacknowledged(&self) -> u64;

    /// Reset the connection when it is dropped. Its unacknowledged bytes are lost.
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
    /// Whether a write has reported a reset without an end of the stream before it.
    was_reset: bool,
}

impl From<TcpStream> for SocketEnd {
    fn from(stream: TcpStream) -> Self {
        SocketEnd { stream, room: BytesMut::new(), size: 2 * WORTH_SHARING, was_reset: false }
    }
}

impl SocketEnd {
    /// Linux reports a reset once, and then an end of the stream. If the stream had ended before, the
    /// error is EPIPE (`tcp_reset`).
    fn note(&mut self, error: &io::Error) {
        self.was_reset |= error.kind() != ErrorKind::BrokenPipe;
    }
}

impl End for SocketEnd {
    const KEEPS_BYTES: bool = true;

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
        if count == 0 && self.was_reset {
            return Poll::Ready(Err(ErrorKind::ConnectionReset.into()));
        }
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
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, slices));
        let count = written.inspect_err(|error| self.note(error))?;
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

    fn has_failed(&mut self) -> bool {
        let error = self.stream.take_error().unwrap_or_else(Some);
        error.inspect(|error| self.note(error)).is_some()
    }

    fn unacknowledged(&self) -> u64 {
        match self.stream.take_error() {
            Ok(None) => unacknowledged(&self.stream) as u64,
            _ => 0,
        }
    }

    fn reset(&mut self) {
        let _ = self.stream.set_zero_linger();
    }
}

impl End for Stream {
    const KEEPS_BYTES: bool = false;

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

    fn has_failed(&mut self) -> bool {
        Stream::has_failed(self)
    }

    fn unacknowledged(&self) -> u64 {
        let stats = self.stats().filter(|_| !self.has_ended());
        stats.map_or(0, |it| it.bytes_written.saturating_sub(it.bytes_acknowledged))
    }

    fn reset(&mut self) {
        self.abort();
    }
}

/// Carry bytes both ways until both directions have ended, and the peers have acknowledged them or
/// acknowledge nothing for [`MOST_STALLED_TIME`]. If an end fails before, the other one gets what had
/// arrived from it, and is then reset. `from_far` and `from_near` count the bytes.
pub(super) async fn carry<N: End, F: End>(
    mut near: N,
    mut far: F,
    from_near: &AtomicU64,
    from_far: &AtomicU64,
) -> io::Result<()> {
    let (mut there, mut back) = (CarriedDirection::new(from_near), CarriedDirection::new(from_far));
    let mut look = interval(LOOKING_INTERVAL);
    let done = poll_fn(|context| {
        while look.poll_tick(context).is_ready() {
            let error = || ErrorKind::ConnectionReset.into();
            if near.has_failed() {
                return Poll::Ready(Err(FailedEnd::OfSource(error())));
            }
            if far.has_failed() {
                return Poll::Ready(Err(FailedEnd::OfTarget(error())));
            }
        }
        let there = there.poll(&mut near, &mut far, context)?;
        let back = back.poll(&mut far, &mut near, context).map_err(FailedEnd::reversed)?;
        if there.is_ready() && back.is_ready() { Poll::Ready(Ok(())) } else { Poll::Pending }
    });
    match done.await {
        Ok(()) => {
            if !N::KEEPS_BYTES {
                settle(&near, MOST_STALLED_TIME).await;
            }
            if !F::KEEPS_BYTES {
                settle(&far, MOST_STALLED_TIME).await;
            }
            Ok(())
        }
        Err(FailedEnd::OfSource(error)) => {
            there.rescue(&mut near, &mut far).await;
            Err(error)
        }
        Err(FailedEnd::OfTarget(error)) => {
            back.rescue(&mut far, &mut near).await;
            Err(error)
        }
    }
}

/// Wait until the peer has acknowledged everything, it acknowledges nothing for `most`, or the connection
/// has ended.
async fn settle(end: &impl End, most: Duration) {
    let (mut left, mut since) = (end.unacknowledged(), Instant::now());
    while left > 0 && since.elapsed() < most {
        sleep(SETTLING_INTERVAL).await;
        let before = mem::replace(&mut left, end.unacknowledged());
        if left != before {
            since = Instant::now();
        }
    }
}

/// Bytes on their way in one direction.
struct CarriedDirection<'a> {
    bytes: VecDeque<Bytes>,
    progress: DirectionState,
    carried: &'a AtomicU64,
}

#[derive(Clone, Copy)]
enum DirectionState {
    Carrying,
    Finishing,
    Finished,
}

/// The end that has failed, seen from a direction.
enum FailedEnd {
    OfSource(io::Error),
    OfTarget(io::Error),
}

impl FailedEnd {
    /// Seen from the other direction.
    fn reversed(self) -> Self {
        match self {
            FailedEnd::OfSource(error) => FailedEnd::OfTarget(error),
            FailedEnd::OfTarget(error) => FailedEnd::OfSource(error),
        }
    }
}

impl<'a> CarriedDirection<'a> {
    fn new(carried: &'a AtomicU64) -> Self {
        CarriedDirection { bytes: VecDeque::new(), progress: DirectionState::Carrying, carried }
    }

    /// Carry bytes to the end of the stream.
    fn poll(
        &mut self,
        from: &mut impl End,
        to: &mut impl End,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), FailedEnd>> {
        while ready!(self.poll_step(from, to, context))? {}
        Poll::Ready(Ok(()))
    }

    /// Take bytes or give some. Returns whether more may follow.
    fn poll_step(
        &mut self,
        from: &mut impl End,
        to: &mut impl End,
        context: &mut Context<'_>,
    ) -> Poll<Result<bool, FailedEnd>> {
        match self.progress {
            DirectionState::Carrying if self.bytes.is_empty() => {
                let taken = ready!(from.poll_take(context, &mut self.bytes));
                let count = taken.map_err(|error| {
                    self.progress = DirectionState::Finished;
                    FailedEnd::OfSource(error)
                })?;
                if count == 0 {
                    self.progress = DirectionState::Finishing;
                }
            }
            DirectionState::Carrying => {
                let given = ready!(to.poll_give(context, &mut self.bytes));
                let count = given.map_err(FailedEnd::OfTarget)?;
                self.carried.fetch_add(count as u64, Ordering::Relaxed);
            }
            DirectionState::Finishing => {
                // On an error, `to` has failed, and the other direction reports it.
                let _ = ready!(to.poll_finish(context));
                self.progress = DirectionState::Finished;
            }
            DirectionState::Finished => return Poll::Ready(Ok(false)),
        }
        Poll::Ready(Ok(true))
    }

    /// After a failure of `from`, give `to` what had arrived before, and the end of the stream if there
    /// was one. Then reset both.
    async fn rescue(&mut self, from: &mut impl End, to: &mut impl End) {
        loop {
            let step = poll_fn(|context| self.poll_step(from, to, context));
            match timeout(MOST_STALLED_TIME, step).await {
                Ok(Ok(true) | Err(FailedEnd::OfSource(_))) => {}
                Ok(Ok(false)) => break settle(to, MOST_STALLED_TIME).await,
                Ok(Err(FailedEnd::OfTarget(_))) | Err(_) => break,
            }
        }
        to.reset();
        from.reset();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpSocket};
    use tokio::task::JoinHandle;

    use super::*;

    /// Bytes of an answer: more than small buffers hold, and fewer than large ones do.
    const ANSWER: usize = 100_000;
    const SMALL: u32 = 4096;
    const LARGE: u32 = 1 << 20;

    /// The ends of a connection with buffers of this size.
    async fn pair(buffer: u32) -> io::Result<[TcpStream; 2]> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(buffer)?;
        let opened = socket.connect(listener.local_addr()?).await?;
        let (accepted, _) = listener.accept().await?;
        SockRef::from(&accepted).set_send_buffer_size(buffer as usize)?;
        Ok([opened, accepted])
    }

    /// A program uploads until all buffers are full. A server answers, ends its direction if it `ends`,
    /// and then resets the connection, because it has not read the upload. Returns the program's end,
    /// and the task between the two.
    async fn answer_and_reset(ends: bool) -> io::Result<(TcpStream, JoinHandle<io::Result<()>>)> {
        let ([program, near], [far, mut server]) = (pair(SMALL).await?, pair(LARGE).await?);
        let carried = tokio::spawn(async {
            let counters = [AtomicU64::new(0), AtomicU64::new(0)];
            carry(SocketEnd::from(near), SocketEnd::from(far), &counters[0], &counters[1]).await
        });
        while timeout(Duration::from_millis(50), program.writable()).await.is_ok() {
            let _ = program.try_write(&[0; 1000]);
        }
        server.peek(&mut [0]).await?;
        server.write_all(&[1; ANSWER]).await?;
        if ends {
            server.shutdown().await?;
        }
        while unacknowledged(&server) > 0 {
            tokio::task::yield_now().await;
        }
        Ok((program, carried))
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_resets_is_noticed_while_the_server_reads_nothing() -> io::Result<()> {
        let ([program, near], [far, _server]) = (pair(SMALL).await?, pair(SMALL).await?);
        let carried = tokio::spawn(async {
            let counters = [AtomicU64::new(0), AtomicU64::new(0)];
            carry(SocketEnd::from(near), SocketEnd::from(far), &counters[0], &counters[1]).await
        });
        while timeout(Duration::from_millis(50), program.writable()).await.is_ok() {
            let _ = program.try_write(&[0; 1000]);
        }
        SockRef::from(&program).set_linger(Some(Duration::ZERO))?;
        drop(program);
        let started = Instant::now();
        carried.await?.expect_err("the program has reset it");
        assert!((120..150).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
        Ok(())
    }

    /// Number of bytes until the end of the stream or its error, and this error.
    async fn read(mut program: TcpStream) -> (usize, Option<ErrorKind>) {
        let mut bytes = Vec::new();
        let error = program.read_to_end(&mut bytes).await.err();
        (bytes.len(), error.map(|error| error.kind()))
    }

    #[tokio::test]
    async fn an_answer_arrives_before_the_reset_that_follows_it() -> io::Result<()> {
        for (ends, error) in [(false, Some(ErrorKind::ConnectionReset)), (true, None)] {
            let (program, carried) = answer_and_reset(ends).await?;
            sleep(Duration::from_millis(100)).await;
            assert_eq!(read(program).await, (ANSWER, error));
            carried.await?.expect_err("the server has reset it");
        }
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_does_not_read_an_answer_is_reset_in_the_end() -> io::Result<()> {
        let (program, carried) = answer_and_reset(false).await?;
        let started = Instant::now();
        carried.await?.expect_err("the server has reset it");
        assert!((120..150).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
        let (count, error) = read(program).await;
        assert!(count < ANSWER && error == Some(ErrorKind::ConnectionReset), "{count}, {error:?}");
        Ok(())
    }
}
