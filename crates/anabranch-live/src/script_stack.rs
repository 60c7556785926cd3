//! The kernel as the stack under test of a packet script: sockets in a separate network namespace,
//! whose packets pass through a TUN device.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use anabranch_script::{
    CallState, Congestion, EndpointUse, Handle, Layout, ScriptSettings, SocketOption, StackError,
    StackInfo, StackUnderTest,
};
use anabranch_wire::{Instant, Payload, Segment, pattern};
use bytes::BytesMut;
use rustix::io::Errno;
use rustix::net::sockopt;

use crate::clock::Clock;
use crate::namespace::{Namespace, ip, set_sysctl};
use crate::sys::{self, LONGEST_FRAME, PollFlags, Tun};

/// The kernel behind a TUN device.
pub struct KernelStack {
    namespace: Namespace,
    tun: Tun,
    clock: Clock,
    settings: ScriptSettings,
    sockets: Vec<Option<KernelSocket>>,
    sent: VecDeque<(Instant, Segment)>,
    frame: BytesMut,
    leaving: Vec<u8>,
}

impl fmt::Debug for KernelStack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KernelStack").finish_non_exhaustive()
    }
}

struct KernelSocket {
    stream: TcpStream,
    connecting: bool,
}

/// The longest sleep. Events that unblock a call need not send a segment.
const TICK: Duration = Duration::from_millis(1);

impl KernelStack {
    /// Create a host as the header of a script describes it. Call this where namespaces may be
    /// created ([`enter`](crate::enter)).
    ///
    /// # Errors
    /// If the system refuses the namespace, the device, or a setting.
    pub fn new(settings: &ScriptSettings) -> io::Result<Self> {
        sys::set_timer_slack();
        let namespace = Namespace::new()?;
        let tun = namespace.within(|| set_up(settings))?;
        Ok(KernelStack {
            namespace,
            tun,
            clock: Clock::start(),
            settings: settings.clone(),
            sockets: Vec::new(),
            sent: VecDeque::new(),
            frame: BytesMut::with_capacity(LONGEST_FRAME),
            leaving: Vec::new(),
        })
    }

    fn push(&mut self, stream: TcpStream) -> Handle {
        self.sockets.push(Some(KernelSocket { stream, connecting: false }));
        Handle(self.sockets.len() - 1)
    }

    fn get(&mut self, socket: Handle) -> &mut KernelSocket {
        self.sockets[socket.0].as_mut().expect("the player does not use closed sockets")
    }

    fn stream(&mut self, socket: Handle) -> &TcpStream {
        &self.get(socket).stream
    }

    /// Receive the packets that the kernel has sent.
    fn collect(&mut self) -> io::Result<()> {
        loop {
            self.frame.clear();
            self.frame.reserve(LONGEST_FRAME);
            if !self.tun.receive(&mut self.frame)? {
                return Ok(());
            }
            // Ignore packets that do not belong to the script, such as router solicitations.
            if let Ok(segment) = Segment::parse(&self.frame) {
                self.sent.push_back((self.clock.now(), segment));
            }
        }
    }
}

/// Set up the host. Call this inside the namespace.
fn set_up(settings: &ScriptSettings) -> io::Result<Tun> {
    let tun = Tun::open(DEVICE, false)?;
    let on = |wanted| if wanted { "1" } else { "0" };
    set_sysctl("ipv4/conf/all/rp_filter", "0")?;
    set_sysctl("ipv4/tcp_no_metrics_save", "1")?;
    set_sysctl("ipv4/tcp_sack", on(settings.sack))?;
    set_sysctl("ipv4/tcp_timestamps", on(settings.timestamps))?;
    set_sysctl("ipv4/tcp_ecn", on(settings.ecn))?;
    set_sysctl("ipv4/tcp_rmem", "4096 131072 6291456")?;
    set_sysctl("mptcp/checksum_enabled", on(settings.checksum))?;
    set_sysctl("mptcp/allow_join_initial_addr_port", on(settings.allow_join))?;
    // After a lost SYN, Linux would make the next connections plain TCP.
    let _ = set_sysctl("mptcp/blackhole_timeout", "0");
    if !settings.ipv6 {
        set_sysctl(&format!("ipv6/conf/{DEVICE}/disable_ipv6"), "1")?;
    }
    ip(&commands(settings))?;
    Ok(tun)
}

const DEVICE: &str = "tun0";

fn commands(settings: &ScriptSettings) -> Vec<String> {
    let layout = Layout { ipv6: settings.ipv6 };
    let (family, bits) = if settings.ipv6 { ("-6 ", "128 nodad") } else { ("", "32") };
    let mut all = vec![
        "link set lo up".to_owned(),
        format!("link set {DEVICE} mtu {} up", settings.mtu),
        "mptcp limits set subflow 8 add_addr_accepted 8".to_owned(),
    ];
    all.extend(layout.hosts().map(|host| format!("{family}addr add {host}/{bits} dev {DEVICE}")));
    for number in 0..layout.hosts().count() as u8 {
        all.push(format!(
            "{family}route add {} dev {DEVICE} src {} initcwnd {}",
            layout.peer(number),
            layout.host(0),
            settings.initial_window
        ));
    }
    all.extend(settings.endpoints.iter().map(|(host, used)| endpoint(layout, *host, *used)));
    all
}

fn endpoint(layout: Layout, host: u8, used: EndpointUse) -> String {
    let used = match used {
        EndpointUse::Subflow => "subflow",
        EndpointUse::Backup => "subflow backup",
        EndpointUse::Signal => "signal",
    };
    format!("mptcp endpoint add {} dev {DEVICE} id {host} {used}", layout.host(host))
}

/// The error's name in errno.h.
fn name(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::AGAIN) => "EAGAIN",
        Some(Errno::INPROGRESS) => "EINPROGRESS",
        Some(Errno::CONNREFUSED) => "ECONNREFUSED",
        Some(Errno::CONNRESET) => "ECONNRESET",
        Some(Errno::TIMEDOUT) => "ETIMEDOUT",
        Some(Errno::PIPE) => "EPIPE",
        Some(Errno::NOTCONN) => "ENOTCONN",
        Some(Errno::ISCONN) => "EISCONN",
        Some(Errno::ALREADY) => "EALREADY",
        Some(Errno::CONNABORTED) => "ECONNABORTED",
        Some(Errno::INVAL) => "EINVAL",
        Some(Errno::ADDRINUSE) => "EADDRINUSE",
        Some(Errno::NETUNREACH) => "ENETUNREACH",
        Some(Errno::HOSTUNREACH) => "EHOSTUNREACH",
        Some(Errno::NETRESET) => "ENETRESET",
        Some(Errno::OPNOTSUPP) => "EOPNOTSUPP",
        _ => "EBADF",
    }
}

fn progress<T>(result: io::Result<T>) -> CallState<T> {
    match result {
        Ok(value) => CallState::Done(value),
        Err(error) if error.kind() == ErrorKind::WouldBlock => CallState::Blocked,
        Err(error) => CallState::Failed(name(&error)),
    }
}

fn stack_error(error: io::Error) -> StackError {
    StackError(error.to_string())
}

fn stream(fd: OwnedFd) -> TcpStream {
    TcpStream::from(fd)
}

impl StackUnderTest for KernelStack {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn wait(&mut self, until: Instant) -> Result<(), StackError> {
        self.collect().map_err(stack_error)?;
        let left = until.saturating_since(self.clock.now());
        if self.sent.is_empty() && !left.is_zero() {
            let timeout = TICK.min(Duration::from_nanos(left.as_nanos()));
            let mut fds = [sys::poll_fd(&self.tun, PollFlags::IN)];
            sys::poll(&mut fds, timeout).map_err(stack_error)?;
            self.collect().map_err(stack_error)?;
        }
        Ok(())
    }

    fn next_segment(&mut self) -> Option<(Instant, Segment)> {
        if self.sent.is_empty() {
            // The next wait reports an error.
            let _ = self.collect();
        }
        self.sent.pop_front()
    }

    fn inject(&mut self, segment: Segment) -> Result<(), StackError> {
        self.leaving.clear();
        segment.emit(&mut self.leaving).map_err(|error| StackError(error.to_string()))?;
        self.tun.send(&self.leaving).map_err(stack_error)?;
        self.collect().map_err(stack_error)
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn layout(&self) -> Layout {
        Layout { ipv6: self.settings.ipv6 }
    }

    fn socket(&mut self, mptcp: bool) -> CallState<Handle> {
        let protocol = if mptcp { sys::MPTCP } else { sys::TCP };
        let settings = &self.settings;
        let opened = self.namespace.within(|| {
            let socket = sys::stream_socket(!settings.ipv6, protocol)?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            let congestion = match settings.congestion {
                Congestion::Reno => "reno",
                Congestion::Cubic => "cubic",
            };
            sys::set_congestion_control(&socket, congestion)?;
            if let Some(seconds) = settings.keep_alive {
                let time = Duration::from_secs(seconds.into());
                sockopt::set_socket_keepalive(&socket, true)?;
                sockopt::set_tcp_keepidle(&socket, time)?;
                sockopt::set_tcp_keepintvl(&socket, time)?;
            }
            Ok(socket)
        });
        match opened {
            Ok(fd) => CallState::Done(self.push(stream(fd))),
            Err(error) => CallState::Failed(name(&error)),
        }
    }

    fn set_option(&mut self, socket: Handle, option: SocketOption) -> CallState<()> {
        let stream = self.stream(socket);
        let set = match option {
            SocketOption::ReceiveBuffer(bytes) => {
                sockopt::set_socket_recv_buffer_size(stream, bytes as usize)
            }
            SocketOption::SendBuffer(bytes) => {
                sockopt::set_socket_send_buffer_size(stream, bytes as usize)
            }
            SocketOption::NoDelay(on) => sockopt::set_tcp_nodelay(stream, on),
            SocketOption::UserTimeout(millis) => sockopt::set_tcp_user_timeout(stream, millis),
            SocketOption::Abort(true) => return progress(sys::reset_when_closed(stream)),
            SocketOption::Abort(false) => Ok(()),
        };
        progress(set.map_err(Into::into))
    }

    fn bind(&mut self, socket: Handle, host: Option<u8>, port: u16) -> CallState<()> {
        let layout = self.layout();
        let any: IpAddr =
            if layout.ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let address = host.map_or(any, |host| layout.host(host));
        progress(sys::bind(self.stream(socket), SocketAddr::new(address, port)))
    }

    fn listen(&mut self, socket: Handle) -> CallState<()> {
        progress(sys::listen(self.stream(socket)))
    }

    fn accept(&mut self, socket: Handle) -> CallState<Handle> {
        match progress(sys::accept(self.stream(socket))) {
            CallState::Done(fd) => CallState::Done(self.push(stream(fd))),
            CallState::Blocked => CallState::Blocked,
            CallState::Failed(error) => CallState::Failed(error),
        }
    }

    fn connect(&mut self, socket: Handle, peer: u8, port: u16) -> CallState<()> {
        let to = SocketAddr::new(self.layout().peer(peer), port);
        let socket = self.get(socket);
        if !socket.connecting {
            socket.connecting = true;
            return match sys::connect(&socket.stream, to) {
                Ok(()) => CallState::Blocked,
                Err(error) => CallState::Failed(name(&error)),
            };
        }
        if !sys::is_ready(&socket.stream, PollFlags::OUT) {
            return CallState::Blocked;
        }
        progress(socket.stream.take_error().and_then(|error| error.map_or(Ok(()), Err)))
    }

    fn write(&mut self, socket: Handle, from: u64, len: u32) -> CallState<u32> {
        let bytes = pattern::slice(pattern::phase_of(from), (len as usize).min(pattern::MAX_SLICE));
        progress(self.get(socket).stream.write(bytes).map(|bytes| bytes as u32))
    }

    fn read(&mut self, socket: Handle, len: u32) -> CallState<Payload> {
        let mut bytes = vec![0; len as usize];
        let read = self.get(socket).stream.read(&mut bytes);
        progress(read.map(|len| {
            bytes.truncate(len);
            bytes.into()
        }))
    }

    fn take_error(&mut self, socket: Handle) -> Option<&'static str> {
        self.get(socket).stream.take_error().ok().flatten().map(|error| name(&error))
    }

    fn shutdown(&mut self, socket: Handle) -> CallState<()> {
        progress(self.get(socket).stream.shutdown(Shutdown::Write))
    }

    fn close(&mut self, socket: Handle) -> CallState<()> {
        self.sockets[socket.0] = None;
        CallState::Done(())
    }

    fn set_address(&mut self, host: u8, up: bool) -> Result<(), StackError> {
        let used = self.settings.endpoints.iter().find(|(number, _)| *number == host);
        let Some((_, used)) = used.copied() else {
            return Err(StackError(format!(
                "host{host} is not an endpoint; add --endpoint=host{host},..."
            )));
        };
        let layout = self.layout();
        let command = if up {
            endpoint(layout, host, used)
        } else {
            format!("mptcp endpoint delete id {host}")
        };
        self.namespace.within(|| ip(&[command])).map_err(stack_error)
    }

    fn info(&mut self, socket: Handle) -> Option<StackInfo> {
        let stream = self.stream(socket);
        if let Ok((info, subflows)) = sys::mptcp_info(stream)
            && info.flags & FELL_BACK == 0
        {
            let cwnd = subflows.first().map_or(0, |subflow| subflow.tcp.snd_cwnd.into());
            return Some(StackInfo { is_mptcp: true, subflows: subflows.len() as u64, cwnd });
        }
        let cwnd = sys::tcp_info(stream).map_or(0, |info| info.snd_cwnd.into());
        Some(StackInfo { is_mptcp: false, subflows: 1, cwnd })
    }
}

/// `MPTCP_INFO_FLAG_FALLBACK`.
const FELL_BACK: u32 = 1;
