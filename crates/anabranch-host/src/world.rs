//! Hosts, what carries their packets, and the task that drives both.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use anabranch_net::network::Arrival;
use anabranch_net::{Network, Side};
use anabranch_sim::RunError;
use anabranch_sim::driver::Inspection;
use anabranch_wire::{Instant, Packet};
use tokio::time;

use crate::device::{Alarm, Device};
use crate::sockets::Sockets;

/// A world that several tasks share.
pub(crate) struct SharedWorld(Mutex<World>);

/// The number of a host in its world. With a device, there is one host. In an emulation, there are
/// two, in the order of [`Side`].
pub(crate) type HostNumber = usize;

/// Hosts, and what carries their packets.
pub(crate) struct World {
    pub(crate) hosts: Vec<Sockets>,
    pub(crate) carrier: Carrier,
    start: time::Instant,
    /// Time up to which everything has happened.
    pub(crate) now: Instant,
    /// When the driver wakes up by itself.
    armed: Instant,
    driver: Option<Waker>,
}

pub(crate) enum Carrier {
    Device(Box<dyn Device>),
    Emulated(Box<Emulated>),
}

/// The network between a client and a server.
pub(crate) struct Emulated {
    pub(crate) network: Network<Inspection<'static>>,
    /// When the client notices that an interface changes, in reverse chronological order.
    pub(crate) address_changes: Vec<(Instant, IpAddr, bool)>,
    /// Called with the time at which a packet left the network, and the time at which the host got
    /// it.
    pub(crate) on_arrival: Option<Box<dyn FnMut(Instant, Instant) + Send>>,
    /// Packets that the hosts have sent.
    pub(crate) packets: u64,
    /// The error that ended the capture.
    pub(crate) capture_error: Option<RunError>,
    /// The client, if it is a host outside this world.
    pub(crate) client: Option<Box<dyn Device>>,
}

/// The next event that is due.
#[derive(Clone, Copy)]
enum Due {
    Host(HostNumber),
    AddressChange,
    Network,
}

/// Packets that a host takes from its device before it acts, so that acknowledgements do not wait
/// for a long queue.
const BATCH: usize = 64;

impl SharedWorld {
    /// Share a world, and start the task that drives it until nobody else holds it.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub(crate) fn start(hosts: Vec<Sockets>, carrier: Carrier, alarm: Box<dyn Alarm>) -> Arc<Self> {
        let world = World {
            hosts,
            carrier,
            start: time::Instant::now(),
            now: Instant::ZERO,
            armed: Instant::FAR_FUTURE,
            driver: None,
        };
        let shared = Arc::new(SharedWorld(Mutex::new(world)));
        tokio::spawn(Driver { world: Arc::downgrade(&shared), alarm });
        shared
    }

    /// Call `f` when everything has happened that is due, and send what results from it at `host`.
    pub(crate) fn with<T>(&self, host: HostNumber, f: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.lock();
        world.advance();
        let result = f(&mut world);
        world.serve(host);
        let next = world.next().0;
        if next < world.armed {
            world.driver.take().into_iter().for_each(Waker::wake);
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        // A panic inside the engine would leave the world in disorder, but it is already reported.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that lets time pass in a world.
struct Driver {
    world: Weak<SharedWorld>,
    alarm: Box<dyn Alarm>,
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(shared) = self.world.upgrade() else { return Poll::Ready(()) };
        let mut world = shared.lock();
        world.driver = Some(context.waker().clone());
        loop {
            world.advance();
            world.receive(context);
            world.armed = world.next().0;
            if world.armed == Instant::FAR_FUTURE {
                return Poll::Pending;
            }
            let at = world.start + std::time::Duration::from_nanos(world.armed.as_nanos());
            if self.alarm.poll_at(at, context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl World {
    /// Let everything happen that is due, each event at its own time. A late call therefore delays
    /// what a program sees, but not what the hosts and the network do.
    fn advance(&mut self) {
        let until = Instant::from_nanos(self.start.elapsed().as_nanos() as u64);
        loop {
            let (at, due) = self.next();
            if at > until {
                break;
            }
            self.now = self.now.max(at);
            match due {
                Due::Host(host) => {
                    self.hosts[host].endpoint.handle_timeout(self.now);
                    self.serve(host);
                }
                Due::AddressChange => self.change_address(),
                Due::Network => self.serve_network(until),
            }
        }
        self.now = self.now.max(until);
    }

    /// The next event, and its time. Of simultaneous events, those of the client come first, then
    /// those of the server.
    fn next(&self) -> (Instant, Due) {
        let mut next = (Instant::FAR_FUTURE, Due::Network);
        let mut consider = |at: Option<Instant>, due| {
            if let Some(at) = at.filter(|at| *at < next.0) {
                next = (at, due);
            }
        };
        for (number, host) in self.hosts.iter().enumerate() {
            consider(host.endpoint.poll_timeout(), Due::Host(number));
        }
        if let Carrier::Emulated(emulated) = &self.carrier {
            let change = emulated.address_changes.last().map(|(at, ..)| *at);
            consider(change, Due::AddressChange);
            consider(emulated.network.poll_timeout(), Due::Network);
        }
        next
    }

    fn change_address(&mut self) {
        let Carrier::Emulated(emulated) = &mut self.carrier else { return };
        let Some((_, address, usable)) = emulated.address_changes.pop() else { return };
        let client = Side::Client as usize;
        self.hosts[client].endpoint.handle_address_change(self.now, address, usable);
        self.serve(client);
    }

    fn serve_network(&mut self, until: Instant) {
        let now = self.now;
        if let Carrier::Emulated(emulated) = &mut self.carrier {
            emulated.network.handle_timeout(now);
        }
        while let Carrier::Emulated(emulated) = &mut self.carrier
            && let Some(arrival) = emulated.network.poll_transmit(now)
        {
            let Arrival { receiver, path, packet } = arrival;
            if let Some(on_arrival) = &mut emulated.on_arrival {
                on_arrival(now, until);
            }
            let captured = emulated.network.tap_mut().on_received(now, receiver, path, &packet);
            emulated.note(captured);
            if let Some(client) = emulated.client.as_mut().filter(|_| receiver == Side::Client) {
                if let Err(error) = client.send(packet).and_then(|()| client.flush()) {
                    self.hosts[Side::Client as usize].fail(&error);
                }
                continue;
            }
            self.hosts[receiver as usize].handle_packet(now, packet);
            self.serve(receiver as usize);
        }
    }

    /// Handle packets that have arrived at the device, or that a client outside this world has
    /// sent.
    fn receive(&mut self, context: &mut Context<'_>) {
        for taken in 0.. {
            let device = match &mut self.carrier {
                Carrier::Device(device) => Some(device),
                Carrier::Emulated(emulated) => emulated.client.as_mut(),
            };
            let Some(device) = device else { return };
            if taken == BATCH {
                context.waker().wake_by_ref();
                break;
            }
            match (device.poll_receive(context), &self.carrier) {
                (Poll::Ready(Ok(packet)), Carrier::Device(_)) => {
                    self.hosts[0].handle_packet(self.now, packet);
                }
                (Poll::Ready(Ok(packet)), Carrier::Emulated(_)) => self.send(0, packet),
                (Poll::Ready(Err(error)), _) => return self.hosts[0].fail(&error),
                (Poll::Pending, _) => break,
            }
        }
        self.serve(0);
    }

    /// Process the events of a host, and send its segments.
    fn serve(&mut self, host: HostNumber) {
        loop {
            let mut idle = !self.hosts[host].handle_events(self.now);
            while let Some(segment) = self.hosts[host].endpoint.poll_transmit(self.now) {
                idle = false;
                self.send(host, segment.into());
            }
            if idle {
                break;
            }
        }
        self.flush();
    }

    /// No further packet follows for now.
    fn flush(&mut self) {
        if let Carrier::Device(device) = &mut self.carrier
            && let Err(error) = device.flush()
        {
            self.hosts[0].fail(&error);
        }
    }

    /// Send a packet of a host.
    pub(crate) fn send(&mut self, host: HostNumber, mut packet: Packet) {
        match &mut self.carrier {
            Carrier::Device(device) => {
                if let Err(error) = device.send(packet) {
                    self.hosts[host].fail(&error);
                }
            }
            Carrier::Emulated(emulated) => {
                let sender =
                    if host == Side::Client as usize { Side::Client } else { Side::Server };
                let towards = sender.opposite();
                let network = &mut emulated.network;
                // An address without a path has no route. A real host would drop the packet as well.
                let Some(path) = network.paths().path_of_packet(towards, &packet) else { return };
                emulated.packets += 1;
                let captured = network.tap_mut().on_sent(self.now, sender, path, &mut packet);
                network.handle_packet(self.now, towards, path, packet);
                emulated.note(captured);
            }
        }
    }

    /// The emulated network of this world.
    ///
    /// # Panics
    /// If the world has a device instead.
    pub(crate) fn emulated(&mut self) -> &mut Emulated {
        match &mut self.carrier {
            Carrier::Emulated(emulated) => emulated,
            Carrier::Device(_) => panic!("only emulations have an emulated network"),
        }
    }
}

impl Emulated {
    /// The world continues without the capture.
    fn note(&mut self, captured: Result<(), RunError>) {
        if let Err(error) = captured {
            self.capture_error.get_or_insert(error);
        }
    }
}
