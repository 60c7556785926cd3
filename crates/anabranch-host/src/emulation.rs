//! A client and a server with the emulated network of a scenario between them.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use anabranch_net::network::Paths;
use anabranch_net::{LinkChange, Side, StateChange};
use anabranch_proto::Endpoint;
use anabranch_sim::driver::{
    CaptureFile, Inspection, address_changes, client_address, connection_config, network, secret,
    server_addresses,
};
use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Capture, CustomPolicies, RunError};
use anabranch_wire::Instant;

use crate::device::{Alarm, Device, TokioAlarm};
use crate::host::Host;
use crate::sockets::{ConnectionRecord, Sockets};
use crate::world::{Carrier, Emulated, SharedWorld, World};

/// Two hosts, and the network of a scenario between them.
///
/// The clock is Tokio's. On a runtime whose time is paused, time is virtual: it jumps to the next
/// event whenever all tasks wait, and a run is a pure function of the program, the scenario and the
/// seed. Links and hosts compute in nanoseconds; Tokio's timers wake programs within a millisecond.
/// On any other runtime, the emulation runs in real time.
///
/// The options of the connections are those of the scenario's first connection. Its workload, its
/// start and the scenario's duration have no meaning here.
#[derive(Clone)]
pub struct Emulation {
    world: Arc<SharedWorld>,
    client: Host,
    server: Host,
}

/// Parts of an emulation in real time.
pub struct RealTime {
    /// An alarm that may be more precise than Tokio's timers.
    pub alarm: Box<dyn Alarm>,
    /// A capture of the packets of both hosts.
    pub capture: Option<Capture<'static>>,
    /// A client outside the emulation, which replaces [`Emulation::client`].
    pub client: Option<Box<dyn Device>>,
    /// The user-defined policies of the scenario's connections.
    pub custom_policies: Vec<CustomPolicies>,
}

impl fmt::Debug for RealTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealTime").finish_non_exhaustive()
    }
}

/// A state of an emulation, for observers.
pub struct Snapshot<'a> {
    /// The time.
    pub now: Instant,
    /// The engines of client and server.
    pub endpoints: [&'a Endpoint; 2],
    /// The records of client and server; see [`Host::keep_records`].
    pub records: [&'a [ConnectionRecord]; 2],
    /// The links.
    pub paths: &'a Paths,
    /// Packets that the hosts have sent.
    pub packets: u64,
    /// When the capture reached its limit.
    pub capture_full_at: Option<Instant>,
}

impl fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Emulation {
    /// Start the two hosts. `seed` determines all random numbers of hosts and network.
    ///
    /// # Errors
    /// If the scenario names a user-defined policy.
    ///
    /// # Panics
    /// Outside a Tokio runtime with a timer.
    pub fn new(scenario: &Scenario, seed: u64) -> Result<Self, RunError> {
        let alarm = Box::new(TokioAlarm::default());
        let parts = RealTime { alarm, capture: None, client: None, custom_policies: Vec::new() };
        Emulation::in_real_time(scenario, seed, parts)
    }

    /// Start the two hosts with parts for an emulation in real time.
    ///
    /// # Errors
    /// As [`new`](Emulation::new), and if the capture cannot be written.
    ///
    /// # Panics
    /// As [`new`](Emulation::new).
    pub fn in_real_time(scenario: &Scenario, seed: u64, parts: RealTime) -> Result<Self, RunError> {
        let RealTime { alarm, capture, client, custom_policies } = parts;
        let capture = capture.map(|capture| CaptureFile::new(capture, scenario)).transpose()?;
        let addresses = [
            (0..scenario.paths.len()).map(|path| client_address(&scenario.paths, path)).collect(),
            server_addresses(&scenario.paths),
        ];
        let emulated = Emulated {
            network: network(scenario, seed, Inspection::new(capture, false)),
            address_changes: address_changes(Side::Client, scenario),
            on_arrival: None,
            packets: 0,
            capture_error: None,
            client,
        };
        let hosts = SIDES.map(|side| {
            let addresses: &Vec<IpAddr> = &addresses[side as usize];
            Sockets::new(Endpoint::new(addresses.clone(), secret(seed, side)))
        });
        let configs = [
            connection_config(scenario, 0, Side::Client, seed, &custom_policies)?,
            connection_config(scenario, 0, Side::Server, seed, &custom_policies)?,
        ];
        let world = SharedWorld::start(hosts.into(), Carrier::Emulated(Box::new(emulated)), alarm);
        let [client, server] = addresses;
        let [client_config, server_config] = configs;
        let host = |side: Side, addresses, config| {
            Host::in_world(Arc::clone(&world), side as usize, addresses, config)
        };
        Ok(Emulation {
            client: host(Side::Client, client, client_config),
            server: host(Side::Server, server, server_config),
            world,
        })
    }

    /// The host with one address on each path.
    pub fn client(&self) -> &Host {
        &self.client
    }

    /// The host behind all paths.
    pub fn server(&self) -> &Host {
        &self.server
    }

    /// Take both links of a path up or down, from now on. The path has this index in the scenario.
    ///
    /// # Errors
    /// [`RunError::UnknownPath`].
    pub fn set_path(&self, path: usize, up: bool) -> Result<(), RunError> {
        if path >= self.client.addresses().len() {
            return Err(RunError::UnknownPath(path));
        }
        let state = Some(if up { StateChange::Up } else { StateChange::Down });
        self.with(|world| {
            let now = world.now;
            let change = LinkChange { state, ..LinkChange::default() };
            world.emulated().network.handle_change(now, path, change);
        });
        Ok(())
    }

    /// The fingerprint of all packets so far, as in a run of the simulator.
    pub fn digest(&self) -> u64 {
        self.with(|world| world.emulated().network.tap().digest())
    }

    /// The error that ended the capture, if any. The emulation goes on without it.
    pub fn take_capture_error(&self) -> Option<RunError> {
        self.with(|world| world.emulated().capture_error.take())
    }

    /// Time since the emulation started.
    pub fn now(&self) -> Instant {
        self.with(|world| world.now)
    }

    /// Call a function at each arrival of a packet at a host. It gets the time at which the packet
    /// left the network, and the time at which the program could notice. Both are equal up to the
    /// precision of the clock.
    pub fn on_arrival(&self, call: impl FnMut(Instant, Instant) + Send + 'static) {
        self.with(|world| world.emulated().on_arrival = Some(Box::new(call)));
    }

    /// Look at hosts and links.
    pub fn observe<T>(&self, look: impl FnOnce(Snapshot<'_>) -> T) -> T {
        self.with(|world| {
            let now = world.now;
            let packets = world.emulated().packets;
            world.emulated().network.observe(now);
            let World { hosts, carrier, .. } = world;
            let Carrier::Emulated(emulated) = carrier else { unreachable!("it is an emulation") };
            let [client, server] = &hosts[..] else { unreachable!("it has two hosts") };
            look(Snapshot {
                now,
                endpoints: [&client.endpoint, &server.endpoint],
                records: [client.records(), server.records()],
                paths: emulated.network.paths(),
                packets,
                capture_full_at: emulated.network.tap().capture_full_at(),
            })
        })
    }

    fn with<T>(&self, f: impl FnOnce(&mut World) -> T) -> T {
        self.world.with(Side::Client as usize, f)
    }
}

const SIDES: [Side; 2] = [Side::Client, Side::Server];

impl fmt::Debug for Emulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulation")
            .field("client", &self.client)
            .field("server", &self.server)
            .finish()
    }
}
