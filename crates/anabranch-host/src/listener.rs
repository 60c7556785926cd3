//! Connections that peers open.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anabranch_proto::config::ConnectionConfig;
use anabranch_wire::{PooledSegment, Segment};

use crate::stream::Stream;
use crate::world::{HostNumber, SharedWorld};

/// Accepts the connections to a port. Dropping it resets the connections that wait to be accepted,
/// and refuses new ones.
pub struct Listener {
    world: Arc<SharedWorld>,
    host: HostNumber,
    port: u16,
}

impl Listener {
    pub(crate) fn new(
        world: Arc<SharedWorld>,
        host: HostNumber,
        port: u16,
        config: ConnectionConfig,
    ) -> io::Result<Self> {
        world.with(host, |world| world.hosts[host].listen(port, config))?;
        Ok(Listener { world, host, port })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Wait for the next connection. Returns its stream and the address of the peer.
    ///
    /// # Errors
    /// If the device of the host has failed.
    pub async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let (host, port) = (self.host, self.port);
        let id = poll_fn(|context| {
            self.world.with(host, |world| world.hosts[host].poll_accept(port, context))
        });
        let stream = Stream::new(Arc::clone(&self.world), host, id.await?);
        let peer = stream.peer_addr();
        Ok((stream, peer))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let (host, port) = (self.host, self.port);
        self.world.with(host, |world| {
            let now = world.now;
            world.hosts[host].stop_listening(now, port);
        });
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("port", &self.port).finish()
    }
}

/// Takes every connection that reaches a host, whatever its destination, as a gateway does.
#[derive(Clone)]
pub struct Interceptor {
    world: Arc<SharedWorld>,
    host: HostNumber,
}

impl Interceptor {
    pub(crate) fn new(world: Arc<SharedWorld>, host: HostNumber) -> Self {
        world.with(host, |world| world.hosts[host].start_intercepting());
        Interceptor { world, host }
    }

    /// Wait for the next SYN.
    ///
    /// # Errors
    /// If the device of the host has failed.
    pub async fn next(&self) -> io::Result<Incoming> {
        let host = self.host;
        let syn = poll_fn(|context| {
            self.world.with(host, |world| world.hosts[host].poll_intercept(context))
        });
        Ok(Incoming { world: Arc::clone(&self.world), host, syn: Some(syn.await?) })
    }
}

impl fmt::Debug for Interceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interceptor").finish_non_exhaustive()
    }
}

/// A connection that a peer wants to open. Dropping it leaves the SYN without an answer.
pub struct Incoming {
    world: Arc<SharedWorld>,
    host: HostNumber,
    /// `None` once it was answered.
    syn: Option<PooledSegment>,
}

impl Incoming {
    /// The peer's address and port.
    pub fn source(&self) -> SocketAddr {
        self.syn().source.into()
    }

    /// The address and port that the peer wants to reach.
    pub fn destination(&self) -> SocketAddr {
        self.syn().destination.into()
    }

    /// Accept the connection in the name of its destination, and wait until it is open.
    ///
    /// # Errors
    /// If the peer gives up, or if too many connections are half open.
    pub async fn accept(mut self, config: ConnectionConfig) -> io::Result<Stream> {
        let syn = self.take();
        let host = self.host;
        let id = self.world.with(host, |world| {
            let now = world.now;
            world.hosts[host].accept(now, syn, config)
        })?;
        Stream::new(Arc::clone(&self.world), host, id).opened().await
    }

    /// Refuse the connection: RST.
    pub fn refuse(mut self) {
        let syn = self.take();
        let host = self.host;
        self.world.with(host, |world| {
            let now = world.now;
            world.hosts[host].refuse(now, syn);
        });
    }

    fn syn(&self) -> &Segment {
        self.syn.as_ref().expect("only methods that consume it take the SYN")
    }

    fn take(&mut self) -> PooledSegment {
        self.syn.take().expect("only methods that consume it take the SYN")
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(syn) = self.syn.take() {
            let host = self.host;
            self.world.with(host, |world| world.hosts[host].ignore(&syn));
        }
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let syn = self.syn();
        f.debug_struct("Incoming")
            .field("source", &syn.source)
            .field("destination", &syn.destination)
            .finish()
    }
}
