//! The relay: clients' connections, and connections to their destinations.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_host::{Listener, Stream};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use super::carry::{SocketEnd, carry, prepare};
use super::clients::{Clients, ConnectionPermit};
use super::metrics::RequestOutcome;
use super::pending::PendingPlaces;
use super::probe::Service as Probe;
use super::{WorkerState, lock};
use crate::clock;
use crate::convert::{Connect, ErrorCode, MOST_BYTES, Relay, RelayStep, Request, TcpOption};
use crate::destinations::{Destinations, Prefix};
use crate::orders::Role;
use crate::proof::{ProofKey, Refusal, Verifier};

/// Longest time for a client's request (this project).
const MOST_REQUEST_TIME: Duration = Duration::from_secs(10);
/// Longest time until a destination answers (this project).
const MOST_CONNECTING_TIME: Duration = Duration::from_secs(20);
/// Receive buffer of a connection without an admitted request: at least the ten segments that a sender
/// starts with (RFC 6928 §2).
const STRANGERS_BUFFER: u32 = 16 << 10;
/// Time for a client to read an answer without data (this project).
const MOST_READING_TIME: Duration = Duration::from_secs(5);
/// Least time between two lines about refusals (this project).
const LOG_INTERVAL: Duration = Duration::from_secs(1);
/// ICMP codes of "destination unreachable": network, host. RFC 792.
const NETWORK_UNREACHABLE: u8 = 0;
const HOST_UNREACHABLE: u8 = 1;

struct Service {
    shared: Arc<WorkerState>,
    verifier: Mutex<Verifier>,
    destinations: Destinations,
    clients: Clients,
    pending: PendingPlaces,
    /// The probe that runs: two would measure each other.
    probe: Semaphore,
    log: RefusalLog,
}

/// Listen for clients. The result takes their connections.
pub(super) fn start(
    role: &Role,
    key: ProofKey,
    shared: Arc<WorkerState>,
) -> io::Result<impl Future<Output = io::Result<()>> + Send + use<>> {
    let Role::Relay { port, allow, deny, max_connections, max_connections_per_client } = role
    else {
        return Err(io::Error::other("this is no relay"));
    };
    let (allowed, denied) = (prefixes(allow)?, prefixes(deny)?);
    // Before clients can send anything: requests from before this time are refused.
    let started = clock::milliseconds();
    let config = shared.host.config().clone().first_receive_buffer(Some(STRANGERS_BUFFER));
    let listener = shared.host.listen_with(*port, config)?;
    info!(port, "ready for clients");
    let service = Service {
        verifier: Mutex::new(Verifier::new(key, started)),
        destinations: Destinations { denied, allowed },
        clients: Clients::new(*max_connections, *max_connections_per_client),
        pending: PendingPlaces::default(),
        probe: Semaphore::new(1),
        log: RefusalLog::default(),
        shared,
    };
    Ok(serve(listener, Arc::new(service)))
}

fn prefixes(ranges: &[String]) -> io::Result<Vec<Prefix>> {
    ranges.iter().map(|range| range.parse().map_err(io::Error::other)).collect()
}

async fn serve(listener: Listener, service: Arc<Service>) -> io::Result<()> {
    let connections = &service.shared.connections;
    while let Some(accepted) = connections.next(listener.accept()).await {
        let (stream, client) = accepted?;
        let service = Arc::clone(&service);
        connections.serve(async move { service.handle(stream, client).await });
    }
    drop(listener);
    std::future::pending().await
}

impl Service {
    async fn handle(&self, mut stream: Stream, client: SocketAddr) -> io::Result<()> {
        let mut place = self.pending.enter(self.clients.places_for_others());
        let admitted = tokio::select! {
            biased;
            admitted = self.receive(&mut stream, client.ip()) => admitted?,
            () = place.lost() => {
                self.log.warn(client.ip(), "reset before an admitted request, because another connection needed its place");
                stream.abort();
                return Ok(());
            }
        };
        drop(place);
        match admitted {
            Some((request, _permit)) => self.serve(stream, client.ip(), &request).await,
            None => Ok(()),
        }
    }

    /// Receive a request. Without one that is admitted, the connection has ended.
    async fn receive(
        &self,
        stream: &mut Stream,
        client: IpAddr,
    ) -> io::Result<Option<(Request, ConnectionPermit<'_>)>> {
        let Ok(received) = timeout(MOST_REQUEST_TIME, receive(stream)).await else {
            stream.abort();
            return Err(ErrorKind::TimedOut.into());
        };
        // Dropping the stream would keep its state until the peer has acknowledged the end.
        let received = received.inspect_err(|_| stream.abort())?;
        let (answer, outcome) = match received {
            Ok(request) => match self.admit(&request, client) {
                Ok(permit) => {
                    stream.open_receive_buffer();
                    return Ok(Some((request, permit)));
                }
                Err((code, outcome)) => (Request::refuse(code, &[0]), outcome),
            },
            Err(answer) => (answer, RequestOutcome::Malformed),
        };
        self.refuse(stream, &answer, outcome).await?;
        Ok(None)
    }

    /// Do what an admitted request asks for.
    async fn serve(&self, mut stream: Stream, client: IpAddr, request: &Request) -> io::Result<()> {
        // Without a Connect TLV, the client wants information only.
        let Some(connect) = &request.connect else {
            return answer_and_end(&mut stream, &request.accept(&[])).await;
        };
        if let Some(probe) = Probe::at(connect.remote) {
            return self.probe(probe, stream, request).await;
        }
        let opened = timeout(MOST_CONNECTING_TIME, connect_to(connect)).await;
        let opened = opened.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
        if self.shared.log_destinations {
            let error = opened.as_ref().err().map(ToString::to_string);
            info!(%client, destination = %connect.remote, error, "connection");
        }
        match opened {
            Ok(far) => self.carry(stream, far, request).await,
            Err(error) => {
                let (code, value) = code_of(&error);
                let answer = Request::refuse(code, &[value]);
                self.refuse(&mut stream, &answer, RequestOutcome::Unreachable).await
            }
        }
    }

    /// Decide about a request.
    fn admit(
        &self,
        request: &Request,
        client: IpAddr,
    ) -> Result<ConnectionPermit<'_>, (ErrorCode, RequestOutcome)> {
        let verified = lock(&self.verifier).verify(request, clock::milliseconds());
        if let Err(refusal) = verified {
            self.log.warn(client, &refusal.to_string());
            let code = match refusal {
                Refusal::Missing => ErrorCode::MissingCookie,
                Refusal::TooMany => ErrorCode::ResourceExceeded,
                Refusal::Wrong | Refusal::OtherTime | Refusal::Used => ErrorCode::NotAuthorized,
            };
            return Err((code, RequestOutcome::Unproved));
        }
        let connect = request.connect.as_ref();
        let is_admitted = |connect: &Connect| {
            Probe::at(connect.remote).is_some() || self.destinations.admits(connect.remote.ip())
        };
        if connect.is_some_and(|connect| !is_admitted(connect)) {
            self.log.warn(client, "the destination is denied, or not public and not allowed");
            return Err((ErrorCode::NotAuthorized, RequestOutcome::NotAllowed));
        }
        self.clients.permit(client).ok_or_else(|| {
            self.log.warn(client, "too many connections");
            (ErrorCode::ResourceExceeded, RequestOutcome::Overload)
        })
    }

    async fn carry(
        &self,
        mut stream: Stream,
        mut far: TcpStream,
        request: &Request,
    ) -> io::Result<()> {
        let metrics = &self.shared.metrics;
        metrics.count(RequestOutcome::Opened);
        let open = async {
            prepare(&far)?;
            stream.write_all(&request.accept(&[])).await?;
            metrics.from_uplinks.fetch_add(request.data.len() as u64, Ordering::Relaxed);
            far.write_all(&request.data).await
        };
        open.await.inspect_err(|_| stream.abort())?;
        carry(SocketEnd::from(far), stream, &metrics.to_uplinks, &metrics.from_uplinks).await
    }

    /// Serve a probe, if no other one runs.
    async fn probe(&self, probe: Probe, mut stream: Stream, request: &Request) -> io::Result<()> {
        let Ok(_alone) = self.probe.try_acquire() else {
            let answer = Request::refuse(ErrorCode::ResourceExceeded, &[0]);
            return self.refuse(&mut stream, &answer, RequestOutcome::Overload).await;
        };
        self.shared.metrics.count(RequestOutcome::Opened);
        stream.write_all(&request.accept(&[])).await?;
        probe.serve(stream, &request.data).await
    }

    async fn refuse(
        &self,
        stream: &mut Stream,
        answer: &[u8],
        outcome: RequestOutcome,
    ) -> io::Result<()> {
        self.shared.metrics.count(outcome);
        answer_and_end(stream, answer).await
    }
}

/// Send an answer, and end the connection. A client resets the connection when it has read an error
/// (RFC 8803 §6.2.8). If it does not, it has some time to read.
async fn answer_and_end(stream: &mut Stream, answer: &[u8]) -> io::Result<()> {
    let reset = async {
        stream.write_all(answer).await?;
        stream.shutdown().await?;
        let mut rest = [0; MOST_BYTES];
        while stream.read(&mut rest).await? > 0 {}
        std::future::pending::<io::Result<()>>().await
    };
    let _ = timeout(MOST_READING_TIME, reset).await;
    stream.abort();
    Ok(())
}

/// A log of refusals with at most one line a second, so that nobody can fill a disk.
#[derive(Default)]
struct RefusalLog(Mutex<(Option<Instant>, u64)>);

impl RefusalLog {
    fn warn(&self, client: IpAddr, why: &str) {
        let (last, suppressed) = &mut *lock(&self.0);
        let now = Instant::now();
        if last.is_some_and(|last| now - last < LOG_INTERVAL) {
            *suppressed += 1;
            return;
        }
        *last = Some(now);
        warn!(%client, suppressed = std::mem::take(suppressed), "{why}");
    }
}

/// Read a request, or decide the answer that refuses it.
async fn receive(stream: &mut Stream) -> io::Result<Result<Request, Vec<u8>>> {
    let (mut relay, mut buffer) = (Relay::default(), [0; MOST_BYTES]);
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        match relay.handle_data(&buffer[..count]) {
            RelayStep::Wait => {}
            RelayStep::Decide(request) => return Ok(Ok(request)),
            RelayStep::Refuse(_, answer) => return Ok(Err(answer)),
            RelayStep::Reset(why) => {
                stream.abort();
                return Err(io::Error::new(ErrorKind::InvalidData, why));
            }
        }
    }
}

/// Connect to a destination with a socket of the kernel: one of Multipath TCP if the client asks for
/// the option.
async fn connect_to(connect: &Connect) -> io::Result<TcpStream> {
    let options = connect.options.iter().flatten();
    if !options.into_iter().any(|option| option.kind == TcpOption::MPTCP) {
        return TcpStream::connect(connect.remote).await;
    }
    let domain = Domain::for_address(connect.remote);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::MPTCP))?;
    socket.set_nonblocking(true)?;
    TcpSocket::from_std_stream(socket.into()).connect(connect.remote).await
}

/// The error for a client, with its value. RFC 8803 §6.2.8.
fn code_of(error: &io::Error) -> (ErrorCode, u8) {
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => {
            (ErrorCode::ConnectionReset, 0)
        }
        ErrorKind::NetworkUnreachable => (ErrorCode::DestinationUnreachable, NETWORK_UNREACHABLE),
        ErrorKind::HostUnreachable | ErrorKind::TimedOut => {
            (ErrorCode::DestinationUnreachable, HOST_UNREACHABLE)
        }
        _ => (ErrorCode::NetworkFailure, 0),
    }
}
