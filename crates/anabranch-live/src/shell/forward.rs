//! Forwarding of a program's streams over the paths, and out of the emulation through the host's
//! sockets.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anabranch_host::{Host, Incoming, Stream};
use anabranch_proto::config::ConnectionConfig;
use anabranch_wire::{Datagram, Payload, SocketAddress};
use bytes::Bytes;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::sys;

/// Bytes that a connection holds between two sockets, in each direction.
const CHUNK: usize = 128 << 10;
/// After this time without a datagram, a UDP flow ends, as in the NATs of home routers.
const UDP_IDLE: Duration = Duration::from_secs(120);
/// Number of simultaneous UDP flows (this project). Datagrams of further flows are dropped.
const MOST_UDP_FLOWS: usize = 1024;

/// The client's addresses of each family on the paths, in the order of the connection.
#[derive(Clone, Debug)]
pub(super) struct ClientAddresses {
    pub(super) ipv4: Vec<IpAddr>,
    pub(super) ipv6: Vec<IpAddr>,
}

impl ClientAddresses {
    fn towards(&self, destination: SocketAddr) -> Vec<IpAddr> {
        if destination.is_ipv4() { self.ipv4.clone() } else { self.ipv6.clone() }
    }
}

/// Take the connections that the program opens, and carry them over the paths.
pub(super) async fn from_program(
    program: Host,
    client: Host,
    addresses: ClientAddresses,
    config: ConnectionConfig,
) -> io::Result<()> {
    let interceptor = program.intercept();
    loop {
        let incoming = interceptor.next().await?;
        let config =
            config.clone().local_addresses(Some(addresses.towards(incoming.destination())));
        let (client, own) = (client.clone(), program.config().clone());
        tokio::spawn(async move {
            let to = incoming.destination();
            let Some((mut far, incoming)) =
                answered(client.connect_with(to, config).await, incoming)
            else {
                return;
            };
            let Ok(mut near) = incoming.accept(own).await else { return far.abort() };
            let done = copy_bidirectional_with_sizes(&mut near, &mut far, CHUNK, CHUNK).await;
            if done.is_err() {
                near.abort();
                far.abort();
            }
        });
    }
}

/// Take the connections that reach the server, and continue them with sockets of the host.
pub(super) async fn to_host(server: Host, own: Vec<IpAddr>) -> io::Result<()> {
    let interceptor = server.intercept();
    let own: Arc<[IpAddr]> = own.into();
    loop {
        let incoming = interceptor.next().await?;
        let (config, own) = (server.config().clone(), Arc::clone(&own));
        tokio::spawn(async move {
            let to = outside(incoming.destination(), &own);
            let Some((mut far, incoming)) = answered(TcpStream::connect(to).await, incoming) else {
                return;
            };
            let _ = far.set_nodelay(true);
            let Ok(mut near) = incoming.accept(config).await else { return };
            if carry(&mut near, &mut far).await.is_err() {
                near.abort();
                let _ = sys::reset_when_closed(&far);
            }
        });
    }
}

async fn carry(near: &mut Stream, far: &mut TcpStream) -> io::Result<()> {
    copy_bidirectional_with_sizes(near, far, CHUNK, CHUNK).await.map(|_| ())
}

/// The connection to the destination. If there is none, tell the peer as the destination would.
fn answered<T>(connected: io::Result<T>, incoming: Incoming) -> Option<(T, Incoming)> {
    match connected {
        Ok(far) => return Some((far, incoming)),
        // Like the destination, say nothing.
        Err(error) if error.kind() == ErrorKind::TimedOut => drop(incoming),
        Err(_) => incoming.refuse(),
    }
    None
}

/// The address outside for a destination inside: the emulated server stands for this host.
fn outside(destination: SocketAddr, own: &[IpAddr]) -> SocketAddr {
    if !own.contains(&destination.ip()) {
        return destination;
    }
    let loopback: IpAddr = match destination {
        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(loopback, destination.port())
}

/// Pass datagrams from one host on to another.
pub(super) async fn datagrams(from: Host, to: Host) -> io::Result<()> {
    loop {
        to.send_datagram(from.recv_datagram().await?);
    }
}

/// Take the datagrams that reach the server, and send them through sockets of the host: one for each
/// pair of addresses.
pub(super) async fn datagrams_to_host(server: Host, own: Vec<IpAddr>) -> io::Result<()> {
    let mut flows: BTreeMap<(SocketAddress, SocketAddress), UdpFlow> = BTreeMap::new();
    loop {
        let datagram = server.recv_datagram().await?;
        let between = (datagram.source, datagram.destination);
        if flows.len() >= MOST_UDP_FLOWS {
            flows.retain(|_, flow| !flow.replies.is_finished());
        }
        let is_over = |flow: &UdpFlow| flow.replies.is_finished();
        if flows.get(&between).is_none_or(is_over) && flows.len() < MOST_UDP_FLOWS {
            let Ok(flow) = UdpFlow::open(&server, between, &own).await else { continue };
            flows.insert(between, flow);
        }
        if let Some(flow) = flows.get(&between) {
            // An error is that of an earlier datagram: nobody listens there.
            let _ = flow.socket.send(&datagram.payload.to_vec()).await;
        }
    }
}

/// A socket for the datagrams between two addresses.
struct UdpFlow {
    socket: Arc<UdpSocket>,
    replies: JoinHandle<io::Result<()>>,
}

impl UdpFlow {
    async fn open(
        server: &Host,
        (source, destination): (SocketAddress, SocketAddress),
        own: &[IpAddr],
    ) -> io::Result<Self> {
        let to = outside(destination.into(), own);
        let any: IpAddr = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = Arc::new(UdpSocket::bind((any, 0)).await?);
        socket.connect(to).await?;
        let (from, server) = (Arc::clone(&socket), server.clone());
        let replies = tokio::spawn(async move {
            let mut buffer = vec![0; usize::from(u16::MAX)];
            while let Ok(received) = timeout(UDP_IDLE, from.recv(&mut buffer)).await {
                // An error is that of an earlier datagram: nobody listens there.
                let Ok(count) = received else { continue };
                let payload = Payload::from(Bytes::copy_from_slice(&buffer[..count]));
                server.send_datagram(Datagram {
                    source: destination,
                    destination: source,
                    payload,
                    ecn: 0,
                });
            }
            Ok(())
        });
        Ok(UdpFlow { socket, replies })
    }
}
