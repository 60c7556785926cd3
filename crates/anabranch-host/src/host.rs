//! A host: what programs use to open and accept connections.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::{Endpoint, PortSelection};
use anabranch_wire::{Datagram, Instant};
use bytes::Bytes;

use crate::device::{Device, TokioAlarm};
use crate::listener::{Interceptor, Listener};
use crate::sockets::{ConnectionRecord, Sockets};
use crate::stream::Stream;
use crate::world::{Carrier, HostNumber, SharedWorld};

/// A host with the engine as its TCP stack. Clones are the same host.
#[derive(Clone)]
pub struct Host {
    world: Arc<SharedWorld>,
    number: HostNumber,
    addresses: Arc<[IpAddr]>,
    config: Arc<ConnectionConfig>,
}

impl Host {
    /// A host behind a device, in real time. `config` holds the options of its connections:
    /// scheduler, congestion control, remedies, path manager, buffers. All keys and initial sequence
    /// numbers follow from `secret`, so take it from the system's random source.
    ///
    /// # Panics
    /// Outside a Tokio runtime with a timer.
    pub fn new(
        device: impl Device,
        addresses: Vec<IpAddr>,
        secret: [u8; 32],
        config: ConnectionConfig,
    ) -> Self {
        let mut endpoint = Endpoint::new(addresses.clone(), secret);
        // A peer may keep closed connections in TIME-WAIT.
        endpoint.select_ports(PortSelection::InTurn);
        let sockets = Sockets::new(endpoint);
        let world = SharedWorld::start(
            vec![sockets],
            Carrier::Device(Box::new(device)),
            Box::new(TokioAlarm::default()),
        );
        Host::in_world(world, 0, addresses, config)
    }

    pub(crate) fn in_world(
        world: Arc<SharedWorld>,
        number: HostNumber,
        addresses: Vec<IpAddr>,
        config: ConnectionConfig,
    ) -> Self {
        Host { world, number, addresses: addresses.into(), config: Arc::new(config) }
    }

    /// The host's addresses.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// The options of the host's connections, unless a call states others.
    pub fn config(&self) -> &ConnectionConfig {
        &self.config
    }

    /// Open a connection to `remote`, and wait until it can carry data.
    ///
    /// # Errors
    /// `ConnectionRefused`, `TimedOut`, or `AddrNotAvailable` if the host has no address of the
    /// family of `remote`.
    pub async fn connect(&self, remote: impl Into<SocketAddr>) -> io::Result<Stream> {
        self.connect_with(remote, (*self.config).clone()).await
    }

    /// Open a connection with other options than [`config`](Host::config).
    ///
    /// # Errors
    /// As [`connect`](Host::connect).
    pub async fn connect_with(
        &self,
        remote: impl Into<SocketAddr>,
        config: ConnectionConfig,
    ) -> io::Result<Stream> {
        self.open(remote.into(), config, None).await
    }

    /// Open a connection with other options than [`config`](Host::config), and with `data` as the
    /// first data of its stream. The SYN carries it if the peer has allowed that before: see
    /// [`Endpoint::connect_with_data`].
    ///
    /// # Errors
    /// As [`connect`](Host::connect).
    pub async fn connect_with_data(
        &self,
        remote: impl Into<SocketAddr>,
        config: ConnectionConfig,
        data: impl Into<Bytes>,
    ) -> io::Result<Stream> {
        self.open(remote.into(), config, Some(data.into())).await
    }

    async fn open(
        &self,
        remote: SocketAddr,
        config: ConnectionConfig,
        data: Option<Bytes>,
    ) -> io::Result<Stream> {
        let number = self.number;
        let id = self.world.with(number, |world| {
            let now = world.now;
            world.hosts[number].connect(now, remote.into(), config, data, &self.addresses)
        })?;
        Stream::new(Arc::clone(&self.world), number, id).opened().await
    }

    /// Listen on a port of all addresses.
    ///
    /// # Errors
    /// `AddrInUse` if the host already listens on the port.
    pub fn listen(&self, port: u16) -> io::Result<Listener> {
        self.listen_with(port, (*self.config).clone())
    }

    /// Listen with other options than [`config`](Host::config).
    ///
    /// # Errors
    /// As [`listen`](Host::listen).
    pub fn listen_with(&self, port: u16, config: ConnectionConfig) -> io::Result<Listener> {
        Listener::new(Arc::clone(&self.world), self.number, port, config)
    }

    /// Decide about every SYN that reaches this host, whatever its destination. Listeners get none
    /// from now on.
    pub fn intercept(&self) -> Interceptor {
        Interceptor::new(Arc::clone(&self.world), self.number)
    }

    /// Send a UDP datagram, whatever its source.
    pub fn send_datagram(&self, datagram: Datagram) {
        let number = self.number;
        self.world.with(number, |world| world.send(number, datagram.into()));
    }

    /// Wait for the next UDP datagram that reaches this host, whatever its destination.
    ///
    /// # Errors
    /// If the device of the host has failed.
    pub async fn recv_datagram(&self) -> io::Result<Datagram> {
        let number = self.number;
        poll_fn(|context| {
            self.world.with(number, |world| world.hosts[number].poll_datagram(context))
        })
        .await
    }

    /// Add an address to the engine of the host.
    pub fn add_address(&self, address: IpAddr) {
        let number = self.number;
        self.world.with(number, |world| {
            let now = world.now;
            world.hosts[number].endpoint.add_address(now, address);
        });
    }

    /// The interface with `address` went down or came up. Open connections then stop or start to use
    /// it.
    pub fn set_address_usable(&self, address: IpAddr, usable: bool) {
        let number = self.number;
        self.world.with(number, |world| {
            let now = world.now;
            world.hosts[number].endpoint.handle_address_change(now, address, usable);
        });
    }

    /// Keep a [`ConnectionRecord`] of each connection from now on.
    pub fn keep_records(&self) {
        self.world.with(self.number, |world| world.hosts[self.number].keep_records());
    }

    /// Look at the engine, and at the records of all connections, oldest first.
    pub fn inspect<T>(&self, look: impl FnOnce(Instant, &Endpoint, &[ConnectionRecord]) -> T) -> T {
        let number = self.number;
        self.world.with(number, |world| {
            let host = &world.hosts[number];
            look(world.now, &host.endpoint, host.records())
        })
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}
