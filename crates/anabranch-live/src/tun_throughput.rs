//! Throughput over TUN devices: the engine compared with a bare copy. Both face this kernel's
//! sockets.
//!
//! The copy is the reference for a user-space stack on TUN: it reads each packet that one kernel
//! host sends, and writes it to the other. Every receiver compares every byte with the test pattern.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anabranch_proto::config::{ConnectionConfig, Protocol};
use anabranch_proto::congestion::Cubic;
use anabranch_proto::path_manager::InitialOnly;
use anabranch_proto::{ConnectionId, Endpoint, Event};
use anabranch_wire::{Instant, SocketAddress, pattern};
use bytes::BytesMut;

use crate::clock::Clock;
use crate::namespace::{Namespace, ip, set_sysctl};
use crate::sys::{self, ClockId, LONGEST_FRAME, PollFlags, Tun};
use crate::tun_host::TunHost;

/// Role of this process between its TUN devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunRole {
    /// It copies packets between two kernel hosts.
    Copy,
    /// The engine receives from a kernel host.
    EngineReceives,
    /// The engine sends to a kernel host.
    EngineSends,
}

/// A measurement to make.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Role of this process.
    pub role: TunRole,
    /// Whether to use Multipath TCP over one path, or plain TCP.
    pub mptcp: bool,
    /// Whether the reader of a frame computes checksums and segments it (`IFF_VNET_HDR`).
    pub offload: bool,
}

/// The result of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Number of bytes that the receiver read. All of them were correct.
    pub bytes: u64,
    /// Time from the start of the connection to the end of the stream.
    pub elapsed: Duration,
    /// CPU time of the thread that copies or runs the engine. It includes the kernel's work on
    /// frames written to a TUN device.
    pub cpu: Duration,
    /// Number of frames with data that this process read or wrote.
    pub frames: u64,
}

impl Figure {
    /// Goodput in Gbit/s.
    pub fn gbit_per_s(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.elapsed.as_secs_f64()
    }

    /// Goodput in Gbit per second of CPU time.
    pub fn gbit_per_cpu_s(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.cpu.as_secs_f64()
    }
}

/// The host that sends, or the engine's peer.
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The host that receives, or the engine.
const FAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const PORT: u16 = 5001;
/// Send and receive buffers of the engine. The kernel tunes its buffers up to twice this size,
/// because it counts overhead.
const BUFFER: u64 = 4 << 20;
/// Queue length of a device in packets. It exceeds the window, so that no packet is lost.
const QUEUE: u32 = 20_000;
/// Bytes per read and write of kernel hosts.
const CHUNK: usize = pattern::MAX_SLICE;
/// Number of frames copied in one direction before it is the other direction's turn.
const BATCH: u64 = 64;
/// Longest wait before checking whether threads have finished.
const TICK: Duration = Duration::from_millis(20);
/// Time after the end of sending at which an unfinished stream counts as stuck.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Send for `time`, and measure. Call this where namespaces may be created
/// ([`enter`](crate::enter)).
///
/// # Errors
/// If the system refuses a device, a namespace or a socket, if a received byte is wrong, or if the
/// stream does not end.
pub fn measure(case: Case, time: Duration) -> io::Result<Figure> {
    match case.role {
        TunRole::Copy => copy(case, time),
        TunRole::EngineReceives => engine_receives(case, time),
        TunRole::EngineSends => engine_sends(case, time),
    }
}

/// A kernel host behind a TUN device.
struct KernelPeer {
    namespace: Namespace,
}

impl KernelPeer {
    fn new(address: Ipv4Addr, offload: bool) -> io::Result<(Self, Tun)> {
        let namespace = Namespace::new()?;
        let tun = namespace.within(|| {
            let tun = Tun::open("tun0", offload)?;
            let most = 2 * BUFFER;
            set_sysctl("ipv4/tcp_rmem", &format!("4096 131072 {most}"))?;
            set_sysctl("ipv4/tcp_wmem", &format!("4096 131072 {most}"))?;
            set_sysctl("ipv6/conf/tun0/disable_ipv6", "1")?;
            ip(&[
                "link set lo up".to_owned(),
                format!("addr add {address}/24 dev tun0"),
                format!("link set tun0 mtu 1500 txqueuelen {QUEUE} up"),
            ])?;
            Ok(tun)
        })?;
        Ok((KernelPeer { namespace }, tun))
    }

    fn socket(&self, case: Case) -> io::Result<TcpStream> {
        let protocol = if case.mptcp { sys::MPTCP } else { sys::TCP };
        let socket = self.namespace.within(|| sys::stream_socket(true, protocol))?;
        sys::set_congestion_control(&socket, "cubic")?;
        Ok(TcpStream::from(socket))
    }

    /// Start a thread that connects to `FAR` and writes for `time`. It returns the number of bytes.
    fn send(&self, case: Case, time: Duration) -> io::Result<JoinHandle<io::Result<u64>>> {
        let stream = self.socket(case)?;
        sys::connect(&stream, SocketAddr::new(FAR.into(), PORT))?;
        named("sender", move || {
            sys::poll(&mut [sys::poll_fd(&stream, PollFlags::OUT)], TIMEOUT)?;
            stream.set_nonblocking(false)?;
            write_pattern(stream, time)
        })
    }

    /// Start a thread that accepts a connection and reads it to its end. It returns the number of
    /// bytes and the time.
    fn receive(&self, case: Case) -> io::Result<JoinHandle<io::Result<(u64, Duration)>>> {
        let socket = self.socket(case)?;
        sys::bind(&socket, SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT))?;
        sys::listen(&socket)?;
        let listener = TcpListener::from(std::os::fd::OwnedFd::from(socket));
        listener.set_nonblocking(false)?;
        named("receiver", move || {
            let (stream, _) = listener.accept()?;
            read_pattern(stream)
        })
    }
}

/// Start a thread with a name, which profilers show.
fn named<T: Send + 'static>(
    name: &str,
    f: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<JoinHandle<io::Result<T>>> {
    thread::Builder::new().name(name.to_owned()).spawn(f)
}

fn write_pattern(mut stream: TcpStream, time: Duration) -> io::Result<u64> {
    let (clock, mut offset) = (Clock::start(), 0);
    while elapsed_on(clock) < time {
        offset += stream.write(pattern::slice(pattern::phase_of(offset), CHUNK))? as u64;
    }
    stream.shutdown(Shutdown::Write)?;
    // The peer closes when it has read everything.
    stream.read(&mut [0]).map(|_| offset)
}

fn read_pattern(mut stream: TcpStream) -> io::Result<(u64, Duration)> {
    let (clock, mut bytes, mut buffer) = (Clock::start(), 0, vec![0; CHUNK]);
    loop {
        let len = stream.read(&mut buffer)?;
        if len == 0 {
            return Ok((bytes, elapsed_on(clock)));
        }
        if buffer[..len] != *pattern::slice(pattern::phase_of(bytes), len) {
            return Err(wrong(bytes));
        }
        bytes += len as u64;
    }
}

fn elapsed_on(clock: Clock) -> Duration {
    Duration::from_nanos(clock.now().as_nanos())
}

fn wrong(offset: u64) -> io::Error {
    io::Error::other(format!("received data is wrong from byte {offset} on"))
}

fn ended<T>(thread: JoinHandle<io::Result<T>>) -> io::Result<T> {
    thread.join().map_err(|_| io::Error::other("a thread of a kernel host panicked"))?
}

/// CPU time of this thread and wall time, with a time limit.
struct Stopwatch {
    clock: Clock,
    give_up: Instant,
    cpu: u64,
}

impl Stopwatch {
    fn start(time: Duration) -> Self {
        let give_up = Instant::from_nanos((time + TIMEOUT).as_nanos() as u64);
        Stopwatch { clock: Clock::start(), give_up, cpu: sys::clock(ClockId::ThreadCPUTime) }
    }

    fn now(&self) -> io::Result<Instant> {
        let now = self.clock.now();
        if now < self.give_up { Ok(now) } else { Err(io::ErrorKind::TimedOut.into()) }
    }

    /// The result, if all sent bytes were received.
    fn figure(
        &self,
        sent: u64,
        (bytes, elapsed): (u64, Duration),
        frames: u64,
    ) -> io::Result<Figure> {
        let cpu = Duration::from_nanos(sys::clock(ClockId::ThreadCPUTime) - self.cpu);
        let figure = Figure { bytes, elapsed, cpu, frames };
        if bytes == sent { Ok(figure) } else { Err(wrong(bytes)) }
    }
}

fn copy(case: Case, time: Duration) -> io::Result<Figure> {
    let (near, near_tun) = KernelPeer::new(NEAR, case.offload)?;
    let (far, far_tun) = KernelPeer::new(FAR, case.offload)?;
    let receiver = far.receive(case)?;
    let sender = near.send(case, time)?;
    let watch = Stopwatch::start(time);
    let (mut buffer, mut frames) = (BytesMut::with_capacity(LONGEST_FRAME), 0);
    while !(sender.is_finished() && receiver.is_finished()) {
        watch.now()?;
        let there = pass_on(&near_tun, &far_tun, &mut buffer)?;
        let back = pass_on(&far_tun, &near_tun, &mut buffer)?;
        frames += there;
        if there + back == 0 {
            let fds = [&near_tun, &far_tun].map(|tun| sys::poll_fd(tun, PollFlags::IN));
            sys::poll(&mut { fds }, TICK)?;
        }
    }
    watch.figure(ended(sender)?, ended(receiver)?, frames)
}

/// Copy some waiting frames, and return the number of frames with data.
fn pass_on(from: &Tun, to: &Tun, buffer: &mut BytesMut) -> io::Result<u64> {
    for frame in 0..BATCH {
        buffer.clear();
        if !from.receive(buffer)? {
            return Ok(frame);
        }
        to.send(buffer)?;
    }
    Ok(BATCH)
}

/// An engine host at `FAR`, and its kernel peer at `NEAR`.
fn engine_at_far(case: Case) -> io::Result<(KernelPeer, TunHost)> {
    let (peer, tun) = KernelPeer::new(NEAR, case.offload)?;
    // The keys of a benchmark need not be secret.
    let endpoint = Endpoint::new(vec![IpAddr::V4(FAR)], [7; 32]);
    Ok((peer, TunHost::new(endpoint, tun, case.offload)))
}

fn config(case: Case) -> ConnectionConfig {
    ConnectionConfig::default()
        .protocol(if case.mptcp { Protocol::Mptcp } else { Protocol::Tcp })
        .send_buffer(BUFFER)
        .receive_buffer(BUFFER)
        .congestion_control(|start| Box::new(Cubic::new(start)))
        .path_manager(|| Box::new(InitialOnly))
}

fn engine_receives(case: Case, time: Duration) -> io::Result<Figure> {
    let (near, mut host) = engine_at_far(case)?;
    host.endpoint.listen(PORT, config(case));
    let sender = near.send(case, time)?;
    let watch = Stopwatch::start(time);
    let (mut connection, mut bytes, mut started, mut elapsed) = (None, 0, None, None);
    while !sender.is_finished() || elapsed.is_none() {
        let now = watch.now()?;
        let arrived = host.handle_input(now)?;
        while let Some((id, event)) = host.endpoint.poll_event() {
            check(case, &event)?;
            if event == Event::Accepted {
                (connection, started) = (Some(id), Some(Clock::start()));
            }
        }
        if let Some(id) = connection {
            bytes += read_engine(&mut host.endpoint, id, bytes)?;
            if host.endpoint.is_at_end(id) && elapsed.is_none() {
                elapsed = started.map(elapsed_on);
                host.endpoint.close(id);
            }
        }
        if !host.transmit(now)? && !arrived {
            host.wait(now, TICK)?;
        }
    }
    watch.figure(ended(sender)?, (bytes, elapsed.unwrap_or_default()), host.frames)
}

/// Read all available data, and return the number of bytes.
fn read_engine(endpoint: &mut Endpoint, id: ConnectionId, offset: u64) -> io::Result<u64> {
    let mut bytes = 0;
    while let Some(payload) = endpoint.recv(id) {
        if !payload.matches_pattern(offset + bytes) {
            return Err(wrong(offset + bytes));
        }
        bytes += payload.len() as u64;
    }
    Ok(bytes)
}

fn engine_sends(case: Case, time: Duration) -> io::Result<Figure> {
    let (near, mut host) = engine_at_far(case)?;
    let receiver = near.receive(case)?;
    let watch = Stopwatch::start(time);
    let to = SocketAddress::new(NEAR.into(), PORT);
    let connected = host.endpoint.connect(watch.now()?, FAR.into(), to, config(case));
    let id = connected.map_err(io::Error::other)?;
    let (mut offset, mut open) = (0, true);
    while !receiver.is_finished() {
        let now = watch.now()?;
        let arrived = host.handle_input(now)?;
        while let Some((_, event)) = host.endpoint.poll_event() {
            check(case, &event)?;
        }
        if open && elapsed_on(watch.clock) >= time {
            open = false;
            host.endpoint.close(id);
        }
        let room = if open { host.endpoint.send_buffer_space(id) } else { 0 };
        if room > 0 {
            let sent = host.endpoint.send_pattern(id, offset, room as u32);
            offset += sent.map_err(io::Error::other)? as u64;
        }
        if !host.transmit(now)? && !arrived {
            host.wait(now, TICK)?;
        }
    }
    watch.figure(offset, ended(receiver)?, host.frames)
}

/// Return an error for events that invalidate the measurement.
fn check(case: Case, event: &Event) -> io::Result<()> {
    match event {
        Event::Failed(error) => Err(io::Error::other(*error)),
        Event::FellBack if case.mptcp => Err(io::Error::other("the connection fell back to TCP")),
        _ => Ok(()),
    }
}
