//! The client: programs' connections, and connections over all uplinks for them.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_host::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::carry::{SocketEnd, carry, prepare};
use super::metrics::RequestOutcome;
use super::{WorkerState, random};
use crate::clock;
use crate::convert::{Client, Connect, ConvertFailure, ErrorCode, MOST_BYTES, Message, Tlv};
use crate::front::{self, Problem, Target};
use crate::proof::ProofKey;

/// Longest time for a program's request (this project).
const MOST_REQUEST_TIME: Duration = Duration::from_secs(10);
/// Longest time until a connection to a destination is open (this project).
pub(super) const MOST_OPENING_TIME: Duration = Duration::from_secs(30);
/// Pause before an attempt over the next uplink. RFC 8305 §5 recommends 250 ms.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// Pause after the system refuses to accept a connection, for example because files are short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The relay's addresses, one of each family at most, and the key that it shares with this client.
pub(super) type RelayAndKey = Option<(Vec<SocketAddr>, ProofKey)>;

/// Listen for programs. The result takes their connections.
pub(super) async fn start(
    listen: SocketAddr,
    relay: RelayAndKey,
    shared: Arc<WorkerState>,
) -> io::Result<impl Future<Output = io::Result<()>> + Send> {
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| io::Error::new(error.kind(), format!("listen: {listen}: {error}")))?;
    info!(address = %listener.local_addr()?, "ready for SOCKS5 and HTTP CONNECT");
    Ok(serve(listener, relay, shared))
}

async fn serve(
    listener: TcpListener,
    relay: RelayAndKey,
    shared: Arc<WorkerState>,
) -> io::Result<()> {
    let connections = &shared.connections;
    while let Some(accepted) = connections.next(listener.accept()).await {
        let Ok((program, _)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (shared, relay) = (Arc::clone(&shared), relay.clone());
        connections.serve(async move { handle(program, relay.as_ref(), &shared).await });
    }
    drop(listener);
    std::future::pending().await
}

async fn handle(
    mut program: TcpStream,
    relay: Option<&(Vec<SocketAddr>, ProofKey)>,
    shared: &Arc<WorkerState>,
) -> io::Result<()> {
    prepare(&program)?;
    let request = timeout(MOST_REQUEST_TIME, front::accept(&mut program)).await??;
    let Some((front, target)) = request else { return Ok(()) };
    let opening = async {
        let destinations = resolve(&target).await?;
        open(&destinations, relay, shared).await
    };
    let opened = timeout(MOST_OPENING_TIME, opening).await.unwrap_or(Err(Problem::TimedOut));
    if shared.log_destinations {
        info!(?target, result = ?opened.as_ref().err(), "connection");
    }
    match opened {
        Ok((far, first)) => {
            shared.metrics.count(RequestOutcome::Opened);
            front.succeed(&mut program).await?;
            shared.metrics.from_uplinks.fetch_add(first.len() as u64, Ordering::Relaxed);
            program.write_all(&first).await?;
            let metrics = &shared.metrics;
            carry(SocketEnd::from(program), far, &metrics.to_uplinks, &metrics.from_uplinks).await
        }
        Err(problem) => {
            shared.metrics.count(RequestOutcome::of(problem));
            front.fail(&mut program, problem).await
        }
    }
}

/// The addresses of a target, in the order of the system's resolver. Convert carries addresses only
/// (RFC 8803 §3).
async fn resolve(target: &Target) -> Result<Vec<SocketAddr>, Problem> {
    match target {
        Target::Address(address) => Ok(vec![*address]),
        Target::Name(name, port) => {
            let found = lookup_host((name.as_str(), *port)).await;
            let found: Vec<_> = found.map_err(|_| Problem::Unreachable)?.collect();
            if found.is_empty() { Err(Problem::Unreachable) } else { Ok(found) }
        }
    }
}

/// Open a connection to the first destination that can be reached. Returns its first data as well.
pub(super) async fn open(
    destinations: &[SocketAddr],
    relay: Option<&(Vec<SocketAddr>, ProofKey)>,
    shared: &Arc<WorkerState>,
) -> Result<(Stream, Vec<u8>), Problem> {
    let mut last = Problem::Unreachable;
    for destination in destinations {
        let opened = match relay {
            Some((relay, key)) => through(*destination, relay, key, shared).await,
            None => {
                let opened = connect(&[*destination], shared, None).await;
                opened.map(|(stream, _)| (stream, Vec::new()))
            }
        };
        match opened {
            Ok(opened) => return Ok(opened),
            // Other addresses of the same name would fail in the same way.
            Err(Problem::TimedOut) => return Err(Problem::TimedOut),
            Err(Problem::NoNetwork) if relay.is_some() => return Err(Problem::NoNetwork),
            Err(problem) => last = problem,
        }
    }
    Err(last)
}

/// Connect to a host with these addresses over the first uplink that answers. The next one starts a
/// little later, so a dead uplink costs little time. The first attempt brings `data`, in its SYN if
/// the peer allows that. Also returns whether the stream is that of this attempt: data in two SYNs
/// would be two requests.
async fn connect(
    peers: &[SocketAddr],
    shared: &Arc<WorkerState>,
    mut data: Option<Vec<u8>>,
) -> Result<(Stream, bool), Problem> {
    let all = shared.uplinks.iter().enumerate();
    let ways = all.filter_map(|(index, uplink)| Some((index, *uplink.way(peers)?.1)));
    let mut waiting = ways.collect::<Vec<_>>().into_iter();
    let mut attempts = JoinSet::new();
    let mut problem = Problem::NoNetwork;
    loop {
        if let Some((index, remote)) = waiting.next() {
            let (host, config) = (shared.host.clone(), shared.config_from(index, peers));
            let data = data.take();
            attempts.spawn(async move {
                match data {
                    Some(data) => (host.connect_with_data(remote, config, data).await, true),
                    None => (host.connect_with(remote, config).await, false),
                }
            });
        }
        let next = async {
            match waiting.len() {
                0 => std::future::pending().await,
                _ => sleep(ATTEMPT_DELAY).await,
            }
        };
        tokio::select! {
            ended = attempts.join_next() => match ended {
                Some(Ok((Ok(stream), brings_data))) => return Ok((stream, brings_data)),
                Some(Ok((Err(error), _))) => problem = problem_of(&error),
                Some(Err(_)) => {}
                None if waiting.len() == 0 => return Err(problem),
                None => {}
            },
            () = next => {}
        }
    }
}

fn problem_of(error: &io::Error) -> Problem {
    match error.kind() {
        ErrorKind::ConnectionRefused => Problem::Refused,
        ErrorKind::TimedOut => Problem::TimedOut,
        ErrorKind::NetworkUnreachable | ErrorKind::AddrNotAvailable => Problem::NoNetwork,
        _ => Problem::Other,
    }
}

/// A request for a connection to `destination`, with a new proof.
pub(super) fn request(destination: SocketAddr, key: &ProofKey) -> Result<Vec<u8>, Problem> {
    let mut tlvs = vec![Tlv::Connect(Connect { remote: destination, options: None })];
    let nonce = random().map_err(|_| Problem::Other)?;
    tlvs.push(key.prove(&tlvs, clock::milliseconds(), nonce));
    Ok(Message { tlvs }.to_bytes())
}

/// Ask the relay for a connection to `destination`.
async fn through(
    destination: SocketAddr,
    relay: &[SocketAddr],
    key: &ProofKey,
    shared: &Arc<WorkerState>,
) -> Result<(Stream, Vec<u8>), Problem> {
    let connecting = connect(relay, shared, Some(request(destination, key)?)).await;
    // A relay that refuses connections is not there.
    let (mut stream, has_request) = connecting.map_err(|problem| match problem {
        Problem::Refused => Problem::NoNetwork,
        other => other,
    })?;
    if !has_request {
        // The first attempt may still reach the relay, where a proof counts once.
        let again = request(destination, key)?;
        stream.write_all(&again).await.map_err(|error| problem_of(&error))?;
    }
    let first = read_answer(&mut stream).await?;
    Ok((stream, first))
}

/// Read the relay's answer. Returns the first data of the destination, which came with it.
pub(super) async fn read_answer(stream: &mut Stream) -> Result<Vec<u8>, Problem> {
    let mut client = Client::default();
    let mut buffer = vec![0; MOST_BYTES];
    loop {
        let count = stream.read(&mut buffer).await.map_err(|error| problem_of(&error))?;
        if count == 0 {
            warn!("the relay has ended a connection without an answer");
            return Err(Problem::Other);
        }
        match client.handle_data(&buffer[..count]) {
            Ok(None) => {}
            Ok(Some(answer)) => return Ok(answer.data),
            Err(failure) => {
                // RFC 8803 §6.2.8: the client resets the connection.
                stream.abort();
                return Err(explain(&failure));
            }
        }
    }
}

/// Problem of the program that follows from a failure. Failures that no program causes are logged.
fn explain(failure: &ConvertFailure) -> Problem {
    let ConvertFailure::Relay(error) = failure else {
        warn!("{failure}");
        return Problem::Other;
    };
    match ErrorCode::from_number(error.code) {
        Some(ErrorCode::DestinationUnreachable) => Problem::Unreachable,
        Some(ErrorCode::ConnectionReset) => Problem::Refused,
        Some(ErrorCode::NotAuthorized) => {
            // The secret, the clock, or the destination.
            warn!("{failure}: compare the secrets and the clocks, if the destination is public");
            Problem::NotAllowed
        }
        Some(ErrorCode::NetworkFailure | ErrorCode::ResourceExceeded) => {
            warn!("{failure}");
            Problem::NoNetwork
        }
        _ => {
            warn!("{failure}");
            Problem::Other
        }
    }
}
