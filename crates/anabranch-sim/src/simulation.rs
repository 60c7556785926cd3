//! The run loop: who is due next, until the time is up.

use std::io::{self, Write};

use anabranch_net::middlebox::{Chain, Middlebox, Towards};
use anabranch_net::rng::stream_seed;
use anabranch_net::{Link, Node};
use anabranch_proto::Counters;
use anabranch_wire::pcap::{Direction as Capture, InterfaceId, PcapWriter};
use anabranch_wire::{Datagram, EmitError, Instant, Packet, ParseError, Segment};
use thiserror::Error;

use crate::cross_traffic::CrossTraffic;
use crate::digest::Digest;
use crate::event_queue::EventQueue;
use crate::host::Host;
use crate::middleboxes;
use crate::own_policies::{self, OwnPolicies, OwnPoliciesError};
use crate::recorder::{Hosts, Recorder, Table};
use crate::scenario::Scenario;
use crate::topology::{Hop, Routes, Side};

/// How to run, beside the scenario.
#[derive(Default)]
pub struct Options<'a> {
    /// Where to write a pcapng capture of all interfaces.
    pub capture: Option<&'a mut dyn Write>,
    /// Turn every packet into octets and back before it enters a link: slower, and proof that
    /// nothing travels that could not be sent.
    pub round_trip: bool,
    /// The policies of the user's own, those of connection number *n* at index *n*; connections
    /// beyond the end have none.
    pub own_policies: &'a [OwnPolicies],
    /// Asked before each event: is the run to end here?
    pub stop: Option<&'a mut dyn FnMut() -> bool>,
}

/// What a run leaves behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Fingerprint of everything that entered a link.
    pub digest: u64,
    /// Segments that the hosts sent.
    pub segments: u64,
    /// Those with payload that were delivered.
    pub data_segments_delivered: u64,
    /// Virtual time at the end.
    pub end: Instant,
    /// Tables, see [`Table`].
    pub tables: Vec<Table>,
    /// What client and server counted.
    pub counters: [Counters; 2],
}

impl Outcome {
    /// The table with this name: `connections`, `subflows`, `links` or one of the time series.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

/// Why a run could not be completed.
#[derive(Debug, Error)]
pub enum RunError {
    /// The capture could not be written.
    #[error("cannot write the capture: {0}")]
    Capture(#[from] io::Error),
    /// A packet could not be turned into octets.
    #[error("a packet cannot be sent: {0}")]
    Emit(#[from] EmitError),
    /// A packet's octets could not be read back.
    #[error("a packet's octets cannot be read back: {0}")]
    Parse(#[from] ParseError),
    /// The scenario and the policies of the user's own do not belong together.
    #[error(transparent)]
    OwnPolicies(#[from] OwnPoliciesError),
    /// [`Options::stop`] asked for it.
    #[error("the run was stopped")]
    Stopped,
}

/// Run `scenario` with `seed`.
///
/// # Errors
/// [`RunError`] if the capture cannot be written, if the round-trip check fails, if the policies of
/// the user's own are not those that the scenario names, or if the run was stopped.
pub fn run(scenario: &Scenario, seed: u64, options: Options<'_>) -> Result<Outcome, RunError> {
    let mut simulation = Simulation::new(scenario, seed, options)?;
    simulation.run()?;
    Ok(simulation.finish())
}

struct Simulation<'s, 'c> {
    scenario: &'s Scenario,
    now: Instant,
    /// Client, server.
    hosts: [Host; 2],
    /// Two for each path: forward, reverse.
    links: Vec<Link>,
    routes: Routes,
    cross_traffic: Vec<CrossTraffic>,
    /// What stands at the server's end of each path's link; nothing at all if no path has boxes.
    boxes: Vec<Option<Chain>>,
    /// When they want to be woken.
    boxes_due: Vec<Option<Instant>>,
    /// Nodes 0 and 1 are the hosts, the links follow, then the sources of cross-traffic, then the
    /// paths' boxes.
    queue: EventQueue,
    recorder: Recorder<'s>,
    next_sample: Instant,
    warm_at: Option<Instant>,
    digest: Digest,
    segments: u64,
    data_segments_delivered: u64,
    capture: Option<CaptureFile<'c>>,
    round_trip: bool,
    stop: Option<&'c mut dyn FnMut() -> bool>,
}

/// A capture of all interfaces of a scenario.
pub struct CaptureFile<'a> {
    writer: PcapWriter<&'a mut dyn Write>,
    /// Client's and server's interface on each path.
    interfaces: Vec<[InterfaceId; 2]>,
    octets: Vec<u8>,
}

const FIRST_LINK: usize = 2;

impl<'s, 'c> Simulation<'s, 'c> {
    fn new(scenario: &'s Scenario, seed: u64, options: Options<'c>) -> Result<Self, RunError> {
        own_policies::check_all(scenario, options.own_policies)?;
        let host = |side: Side| Host::new(side, scenario, options.own_policies, seed);
        let links: Vec<Link> = scenario
            .paths
            .iter()
            .flat_map(|path| {
                let seed =
                    |direction| stream_seed(seed, &format!("link/{}/{direction}", path.name));
                [
                    Link::new(path.forward_link(), seed("forward")),
                    Link::new(path.reverse_link(), seed("reverse")),
                ]
            })
            .collect();
        let cross_traffic: Vec<CrossTraffic> = (scenario.cross_traffic.iter().enumerate())
            .map(|(index, traffic)| CrossTraffic::new(index, traffic, &scenario.paths, seed))
            .collect();
        let boxes = middleboxes::chains(scenario, seed);
        Ok(Simulation {
            scenario,
            now: Instant::ZERO,
            hosts: [host(Side::Client), host(Side::Server)],
            queue: EventQueue::new(FIRST_LINK + links.len() + cross_traffic.len() + boxes.len()),
            links,
            cross_traffic,
            boxes_due: vec![None; boxes.len()],
            boxes,
            routes: Routes::new(scenario.paths.iter().map(|path| path.via()).collect()),
            recorder: Recorder::new(scenario),
            next_sample: Instant::ZERO,
            warm_at: Some(Instant::ZERO + scenario.warm_up),
            digest: Digest::default(),
            segments: 0,
            data_segments_delivered: 0,
            capture: options.capture.map(|out| CaptureFile::new(out, scenario)).transpose()?,
            round_trip: options.round_trip,
            stop: options.stop,
        })
    }

    fn run(&mut self) -> Result<(), RunError> {
        let end = Instant::ZERO + self.scenario.duration;
        for node in 0..self.first_box() {
            self.plan(node);
        }
        loop {
            let (at, node) = self.queue.peek();
            self.observe_until(at.min(end));
            if at > end {
                break;
            }
            if self.stop.as_mut().is_some_and(|stop| stop()) {
                return Err(RunError::Stopped);
            }
            self.now = self.now.max(at);
            if node < FIRST_LINK {
                self.hosts[node].handle_timeout(self.now);
                self.serve_host(node)?;
            } else if let Some(link) = self.link_of(node) {
                self.serve_link(link)?;
            } else {
                self.serve_cross_traffic(node - FIRST_LINK - self.links.len())?;
            }
        }
        self.now = end;
        Ok(())
    }

    /// Take the samples that are due before `until`.
    fn observe_until(&mut self, until: Instant) {
        if let Some(at) = self.warm_at.filter(|at| *at <= until) {
            self.warm_at = None;
            if at > Instant::ZERO {
                self.recorder.on_warm(observed(&self.hosts));
            }
        }
        while self.next_sample <= until {
            let at = self.next_sample;
            let hosts = observed(&self.hosts);
            self.recorder.sample(at, hosts, &mut self.links, &self.boxes);
            self.next_sample += self.scenario.sample_interval;
        }
    }

    /// The link of a node: its own, or the one at whose end the boxes are.
    #[inline(always)]
    fn link_of(&self, node: usize) -> Option<usize> {
        let link = node - FIRST_LINK;
        if link < self.links.len() {
            return Some(link);
        }
        node.checked_sub(self.first_box()).map(|path| 2 * path + 1)
    }

    /// What the link, and the boxes at its end, deliver now goes on to the next link, or to a host.
    fn serve_link(&mut self, number: usize) -> Result<(), RunError> {
        let sender = if number.is_multiple_of(2) { Side::Server } else { Side::Client };
        self.links[number].handle_timeout(self.now);
        loop {
            let mut packet = self.links[number].poll_transmit(self.now);
            let more = packet.is_some();
            if !self.boxes.is_empty() {
                self.pass_boxes(number, &mut packet)?;
            }
            let Some(packet) = packet else {
                if more {
                    continue;
                }
                break;
            };
            let client = match sender {
                Side::Client => packet.source(),
                Side::Server => packet.destination(),
            };
            let path = self.routes.path(client).expect("it had a path when it was sent");
            match self.routes.next(number, path) {
                Hop::Link(next) => self.enter(next, packet),
                Hop::Host(receiver) => match packet {
                    Packet::Tcp(segment) => self.arrive(receiver, path, segment)?,
                    Packet::Udp(datagram) => self.discard(receiver, path, &datagram)?,
                },
            }
        }
        self.plan_link(number);
        Ok(())
    }

    /// Replace the next packet that has passed the link, if there is one, by the next that has
    /// passed the boxes at its end too, if it has any. What they send the other way enters the
    /// other link.
    #[cold]
    fn pass_boxes(&mut self, link: usize, next: &mut Option<Packet>) -> Result<(), RunError> {
        let (now, path) = (self.now, link / 2);
        if link.is_multiple_of(2) || !self.has_boxes(path) {
            return Ok(());
        }
        if let Some(packet) = next.take() {
            self.enter_boxes(path, Towards::Server, packet);
        }
        while let Some(boxes) = self.boxes[path].as_mut().filter(|_| next.is_none()) {
            boxes.handle_timeout(now);
            let Some((towards, mut packet)) = boxes.poll_transmit(now) else { break };
            if self.round_trip {
                packet = there_and_back(&packet)?;
            }
            match towards {
                Towards::Client => self.enter_link(2 * path, packet),
                Towards::Server => *next = Some(packet),
            }
        }
        self.plan_boxes(path);
        Ok(())
    }

    /// Are there boxes at the server's end of the path's link?
    #[inline]
    fn has_boxes(&self, path: usize) -> bool {
        self.boxes.get(path).is_some_and(Option::is_some)
    }

    /// What a host sends comes out of the boxes as an event of its own: one that answers at once
    /// would otherwise make the host wait for itself.
    #[cold]
    fn enter_boxes(&mut self, path: usize, towards: Towards, packet: Packet) {
        if let Some(boxes) = &mut self.boxes[path] {
            boxes.handle_packet(self.now, towards, packet);
            self.plan_boxes(path);
        }
    }

    fn arrive(&mut self, receiver: Side, path: usize, segment: Segment) -> Result<(), RunError> {
        if let Some(capture) = &mut self.capture {
            let emit = |out: &mut Vec<u8>| segment.emit(out);
            capture.write(self.now, path, receiver, Capture::Inbound, emit)?;
        }
        self.data_segments_delivered += u64::from(!segment.payload.is_empty());
        self.hosts[receiver as usize].endpoint.handle_segment(self.now, segment);
        self.serve_host(receiver as usize)
    }

    /// Nobody listens for cross-traffic.
    #[cold]
    fn discard(&mut self, receiver: Side, path: usize, unread: &Datagram) -> Result<(), RunError> {
        if let Some(capture) = &mut self.capture {
            let emit = |out: &mut Vec<u8>| unread.emit(out);
            capture.write(self.now, path, receiver, Capture::Inbound, emit)?;
        }
        Ok(())
    }

    /// Let the applications act, and send what the host has to send.
    fn serve_host(&mut self, number: usize) -> Result<(), RunError> {
        let side = if number == 0 { Side::Client } else { Side::Server };
        loop {
            let mut idle = !self.hosts[number].handle_events(self.now);
            while let Some(segment) = self.hosts[number].endpoint.poll_transmit(self.now) {
                idle = false;
                self.send(side, segment)?;
            }
            if idle {
                break;
            }
        }
        self.plan_host(number);
        Ok(())
    }

    fn send(&mut self, side: Side, segment: Segment) -> Result<(), RunError> {
        let client = match side {
            Side::Client => segment.source.address,
            Side::Server => segment.destination.address,
        };
        // An address without a path has no route; a host would drop the packet too.
        let Some(path) = self.routes.path(client) else {
            return Ok(());
        };
        self.segments += 1;
        if let Some(capture) = &mut self.capture {
            let emit = |out: &mut Vec<u8>| segment.emit(out);
            capture.write(self.now, path, side, Capture::Outbound, emit)?;
        }
        let first = self.routes.first(side, path);
        if self.round_trip || !self.boxes.is_empty() {
            let packet = segment.into();
            self.enter(first, if self.round_trip { there_and_back(&packet)? } else { packet });
            return Ok(());
        }
        self.digest.fold_segment(self.now, first, &segment);
        self.links[first].handle_packet(self.now, segment.into());
        self.plan_link(first);
        Ok(())
    }

    /// Send the datagrams that are due.
    #[cold]
    fn serve_cross_traffic(&mut self, source: usize) -> Result<(), RunError> {
        while let Some(datagram) = self.cross_traffic[source].udp.poll_transmit(self.now) {
            self.send_datagram(source, datagram.into())?;
        }
        self.plan(FIRST_LINK + self.links.len() + source);
        Ok(())
    }

    fn send_datagram(&mut self, source: usize, packet: Packet) -> Result<(), RunError> {
        let CrossTraffic { side, path, .. } = self.cross_traffic[source];
        if let Some(capture) = &mut self.capture {
            let emit = |out: &mut Vec<u8>| packet.emit(out);
            capture.write(self.now, path, side, Capture::Outbound, emit)?;
        }
        let first = self.routes.first(side, path);
        self.enter(first, if self.round_trip { there_and_back(&packet)? } else { packet });
        Ok(())
    }

    /// A packet comes to the link, or first to the boxes at its end.
    #[cold] // Only as seen from the segments of hosts, most of which cross one link.
    fn enter(&mut self, link: usize, packet: Packet) {
        if link.is_multiple_of(2) && self.has_boxes(link / 2) {
            self.enter_boxes(link / 2, Towards::Client, packet);
        } else {
            self.enter_link(link, packet);
        }
    }

    fn enter_link(&mut self, link: usize, packet: Packet) {
        match &packet {
            Packet::Tcp(segment) => self.digest.fold_segment(self.now, link, segment),
            Packet::Udp(datagram) => self.digest.fold_datagram(self.now, link, datagram),
        }
        self.links[link].handle_packet(self.now, packet);
        self.plan_link(link);
    }

    /// The node of the first path's boxes.
    fn first_box(&self) -> usize {
        FIRST_LINK + self.links.len() + self.cross_traffic.len()
    }

    #[inline]
    fn plan_host(&mut self, number: usize) {
        self.queue.set(number, self.hosts[number].poll_timeout());
    }

    #[inline]
    fn plan_link(&mut self, number: usize) {
        self.queue.set(FIRST_LINK + number, self.links[number].poll_timeout());
    }

    fn plan(&mut self, node: usize) {
        let at = match node {
            0 | 1 => return self.plan_host(node),
            _ if node < FIRST_LINK + self.links.len() => return self.plan_link(node - FIRST_LINK),
            _ if node < self.first_box() => {
                self.cross_traffic[node - FIRST_LINK - self.links.len()].udp.poll_timeout()
            }
            _ => self.boxes_due[node - self.first_box()],
        };
        self.queue.set(node, at);
    }

    fn plan_boxes(&mut self, path: usize) {
        self.boxes_due[path] = self.boxes[path].as_ref().and_then(Chain::poll_timeout);
        self.plan(self.first_box() + path);
    }

    fn finish(self) -> Outcome {
        let hosts = observed(&self.hosts);
        Outcome {
            digest: self.digest.value(),
            segments: self.segments,
            data_segments_delivered: self.data_segments_delivered,
            end: self.now,
            counters: self.hosts.each_ref().map(|host| host.endpoint.counters()),
            tables: self.recorder.finish(self.now, hosts, &self.links, &self.boxes),
        }
    }
}

fn observed(hosts: &[Host; 2]) -> Hosts<'_> {
    hosts.each_ref().map(|host| host as _)
}

fn there_and_back(packet: &Packet) -> Result<Packet, RunError> {
    let mut octets = Vec::with_capacity(packet.wire_len());
    packet.emit(&mut octets)?;
    Ok(Packet::parse(&octets)?)
}

impl<'a> CaptureFile<'a> {
    /// Begin a capture.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(out: &'a mut dyn Write, scenario: &Scenario) -> Result<Self, RunError> {
        let mut writer = PcapWriter::new(out)?;
        let mut interfaces = Vec::new();
        for path in &scenario.paths {
            let mut add = |side: &str| {
                let description = format!("{side} end of path {}", path.name);
                writer.add_interface(&format!("{side}-{}", path.name), Some(&description))
            };
            interfaces.push([add("client")?, add("server")?]);
        }
        Ok(CaptureFile { writer, interfaces, octets: Vec::new() })
    }

    /// Write a packet that passes an interface of `side`.
    ///
    /// # Errors
    /// If writing fails, or `emit` does.
    pub fn write(
        &mut self,
        now: Instant,
        path: usize,
        side: Side,
        direction: Capture,
        emit: impl FnOnce(&mut Vec<u8>) -> Result<(), EmitError>,
    ) -> Result<(), RunError> {
        self.octets.clear();
        emit(&mut self.octets)?;
        let interface = self.interfaces[path][side as usize];
        self.writer.write_packet(interface, now, direction, &self.octets, None)?;
        Ok(())
    }
}
