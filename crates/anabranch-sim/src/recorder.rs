//! Records the tables of a run.

use anabranch_net::Side;
use anabranch_net::network::Paths;
use anabranch_table::{Builder, Name, Table, row};
use anabranch_wire::{Duration, Instant};
use core::fmt;

use crate::scenario::{Connection, Scenario};
use crate::stalls::{Stall, Stalls};
use crate::statistics::{
    ConnectionProgress, ConnectionTotals, FallbackReason, Hosts, Observed, SubflowTotals,
};
use crate::topology;

row! {
    /// Totals of a flow.
    struct ConnectionRow {
        connection: u32,
        is_mptcp: bool,
        fallback: Name<FallbackReason>,
        completed: bool,
        aborted: bool,
        failed: bool,
        bytes_written: u64,
        bytes_delivered: u64,
        bytes_arrived_measured: u64,
        measured_ns: u64,
        window_limited_ns: u64,
        send_buffer_limited_ns: u64,
        stall_began_ns: u64,
        stall_ns: u64,
        reinjections: u64,
        copies: u64,
        path_probes: u64,
        bad_decisions: u64,
        send_buffer: u64,
        receive_buffer: u64,
        out_of_order_segments: u64,
        stray_segments: u64,
        corrupt_bytes: u64,
    }
}

row! {
    /// Totals of a subflow at its sender, except `bytes_received`.
    struct SubflowRow {
        connection: u32,
        subflow: u32,
        path: u32,
        segments_sent: u64,
        bytes_sent: u64,
        segments_retransmitted: u64,
        bytes_retransmitted: u64,
        bytes_reinjected: u64,
        timeouts: u64,
        recoveries: u64,
        undone: u64,
        probes: u64,
        idle_restarts: u64,
        ece_received: u64,
        ecn_reductions: u64,
        srtt_ns: u64,
        min_rtt_ns: u64,
        bytes_received: u64,
    }
}

row! {
    /// Totals of a link. Direction 0 is from server to client.
    struct LinkRow {
        path: u32,
        direction: u8,
        packets_in: u64,
        bytes_in: u64,
        packets_delivered: u64,
        bytes_delivered: u64,
        marked: u64,
        dropped_by_queue: u64,
        dropped_by_loss: u64,
        dropped_down: u64,
        dropped_too_big: u64,
        queue_packets_max: u64,
        queue_bytes_max: u64,
    }
}

row! {
    /// A delivered block.
    struct BlockRow {
        connection: u32,
        block: u64,
        bytes: u64,
        accepted_ns: u64,
        delivered_ns: u64,
    }
}

row! {
    /// A change of a path, and the first byte that the application of a flow got after it.
    struct ChangeRow {
        connection: u32,
        path: u32,
        changed_ns: u64,
        /// 0 if the application got nothing after the change.
        first_byte_ns: u64,
    }
}

row! {
    /// A subflow at a time.
    struct SubflowSample {
        time_ns: u64,
        connection: u32,
        subflow: u32,
        path: u32,
        cwnd: u64,
        ssthresh: u64,
        bytes_in_flight: u64,
        srtt_ns: u64,
        bottleneck: u32,
        queue_packets: u32,
        queue_bytes: u64,
        bytes_received: u64,
    }
}

row! {
    /// A flow at a time.
    struct ConnectionSample {
        time_ns: u64,
        connection: u32,
        bytes_delivered: u64,
        out_of_order_bytes: u64,
        available_window: u64,
        unsent_bytes: u64,
    }
}

/// One direction of a connection in which the workload's data flows. In the tables of a run, the
/// column `connection` numbers these flows, in the order of the scenario's connections.
#[derive(Clone, Copy)]
pub(crate) struct DataFlow {
    /// Number of the connection in the scenario.
    pub(crate) connection: usize,
    /// The host that sends.
    pub(crate) sender: Side,
}

/// Payload that the receiving ends of subflows have received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceivedOver {
    /// Bytes in the order of their subflow.
    pub(crate) in_order: u64,
    /// Bytes that wait for earlier bytes of their subflow.
    pub(crate) out_of_order: u64,
}

/// The tables that every run has, without rows, in the order of [`Recorder::finish`].
pub fn empty_tables() -> Vec<Table> {
    vec![
        Builder::<ConnectionRow>::new("connections").finish(),
        Builder::<SubflowRow>::new("subflows").finish(),
        Builder::<LinkRow>::new("links").finish(),
        Builder::<BlockRow>::new("blocks").finish(),
        Builder::<SubflowSample>::new("subflow_samples").finish(),
        Builder::<ConnectionSample>::new("connection_samples").finish(),
        Builder::<ChangeRow>::new("changes").finish(),
    ]
}

/// The flows of all connections.
pub(crate) fn flows(scenario: &Scenario) -> Vec<DataFlow> {
    let connections = scenario.connections.iter().enumerate();
    connections.flat_map(|(number, connection)| flows_of(number, connection)).collect()
}

fn flows_of(number: usize, connection: &Connection) -> impl Iterator<Item = DataFlow> {
    let senders = connection.direction.senders().iter();
    senders.map(move |sender| DataFlow { connection: number, sender: *sender })
}

/// Builds the tables of a run.
pub struct Recorder {
    warm_up: Duration,
    /// When each connection opens.
    starts: Vec<Instant>,
    /// The paths of each connection.
    paths: Vec<Vec<usize>>,
    /// Deliveries of each connection, of data from the client and from the server.
    deliveries: Vec<[Deliveries; 2]>,
    /// When each path changes, in chronological order.
    changes: Vec<(Instant, usize)>,
    /// Whether the sender of each connection answers requests.
    answers: Vec<bool>,
    flows: Vec<DataFlow>,
    subflow_samples: Builder<SubflowSample>,
    connection_samples: Builder<ConnectionSample>,
    /// Progress of each flow at the end of the warm-up.
    warm: Vec<Reached>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

/// Times at which one direction of a connection delivered data to its application.
struct Deliveries {
    stalls: Stalls,
    /// The first delivery after each of the first changes.
    after_changes: Vec<Instant>,
}

/// Progress of a flow at a time.
#[derive(Clone, Copy, Default)]
struct Reached {
    /// Bytes that have arrived.
    arrived: u64,
    /// Time during which the receive window, or the send buffer, kept a subflow from sending.
    window_limited: Duration,
    send_buffer_limited: Duration,
}

impl Recorder {
    /// A recorder without any records.
    pub fn new(scenario: &Scenario) -> Self {
        let mut recorder = Recorder::empty(scenario.warm_up);
        scenario.connections.iter().for_each(|connection| recorder.add(connection));
        let paths = scenario.paths.iter().enumerate();
        let changes =
            paths.flat_map(|(path, each)| each.changes.iter().map(move |at| (at.at, path)));
        changes.for_each(|(at, path)| recorder.add_change(Instant::ZERO + at, path));
        recorder
    }

    /// A recorder without any connections, of a run whose metrics exclude the `warm_up`.
    pub fn empty(warm_up: Duration) -> Self {
        Recorder {
            warm_up,
            starts: Vec::new(),
            paths: Vec::new(),
            deliveries: Vec::new(),
            changes: Vec::new(),
            answers: Vec::new(),
            warm: Vec::new(),
            flows: Vec::new(),
            subflow_samples: Builder::new("subflow_samples"),
            connection_samples: Builder::new("connection_samples"),
        }
    }

    /// Add a connection. Its number follows that of the last one.
    pub fn add(&mut self, connection: &Connection) {
        let number = self.paths.len();
        self.starts.push(Instant::ZERO + connection.start);
        self.paths.push(connection.paths.to_vec());
        let stalls = Stalls::new(Instant::ZERO + self.warm_up);
        self.deliveries.push([(); 2].map(|()| Deliveries { stalls, after_changes: Vec::new() }));
        self.answers.push(connection.workload.answers());
        self.flows.extend(flows_of(number, connection));
        self.warm.resize(self.flows.len(), Reached::default());
    }

    /// Add a change of a path whose time lies ahead.
    pub(crate) fn add_change(&mut self, at: Instant, path: usize) {
        let place = self.changes.partition_point(|each| *each <= (at, path));
        self.changes.insert(place, (at, path));
    }

    /// The applications of a connection may have written or read.
    #[inline]
    pub fn on_progress<H: Observed + ?Sized>(
        &mut self,
        now: Instant,
        connection: usize,
        hosts: [&H; 2],
    ) {
        let [client, server] = hosts;
        let directions = [(client, server), (server, client)];
        for (deliveries, (sender, receiver)) in
            self.deliveries[connection].iter_mut().zip(directions)
        {
            let Some(sender) = sender.sender(connection) else { continue };
            let received = receiver.sink(connection).received();
            if deliveries.stalls.on_progress(now, sender.written(), received) {
                let after = &mut deliveries.after_changes;
                while self.changes.get(after.len()).is_some_and(|(at, _)| *at < now) {
                    after.push(now);
                }
            }
        }
    }

    /// Record the end of the warm-up at `now`.
    pub fn on_warm(&mut self, now: Instant, hosts: Hosts<'_>) {
        for (warm, flow) in self.warm.iter_mut().zip(&self.flows) {
            *warm = flow.reached(now, hosts);
        }
    }

    /// Sample all connections and subflows at `now`.
    pub fn sample(&mut self, now: Instant, hosts: Hosts<'_>, paths: &Paths) {
        for number in 0..self.flows.len() {
            self.sample_flow(now, hosts, paths, number);
        }
    }

    fn sample_flow(&mut self, now: Instant, hosts: Hosts<'_>, paths: &Paths, number: usize) {
        let flow = self.flows[number];
        let index = flow.connection;
        let (sender, receiver) = flow.hosts(hosts);
        let Some(stats) = sender.stats(now, index) else { return };
        let received = receiver.stats(now, index);
        self.connection_samples.push(ConnectionSample {
            time_ns: now.as_nanos(),
            connection: number as u32,
            bytes_delivered: receiver.sink(index).received(),
            out_of_order_bytes: received.map_or(0, |stats| stats.out_of_order_bytes),
            available_window: stats.available_window,
            unsent_bytes: stats.unsent_bytes,
        });
        for subflow in sender.subflows(index) {
            let Some(path) = flow.path_of(flow.sender, &subflow) else { continue };
            let link = paths.link_of(path, flow.sender.opposite());
            let bytes_received = self.received_in_slot(hosts, paths, flow, &subflow);
            self.subflow_samples.push(SubflowSample {
                time_ns: now.as_nanos(),
                connection: number as u32,
                subflow: subflow.key.slot.into(),
                path: path as u32,
                cwnd: subflow.cwnd,
                ssthresh: subflow.ssthresh,
                bytes_in_flight: subflow.bytes_in_flight,
                srtt_ns: subflow.srtt.map_or(0, Duration::as_nanos),
                bottleneck: subflow.bottleneck,
                queue_packets: link.queue_packets() as u32,
                queue_bytes: link.queue_bytes(),
                bytes_received,
            });
        }
    }

    /// Payload bytes received on all subflows that had the same slot and path as `subflow`. This
    /// number never decreases.
    fn received_in_slot(
        &self,
        hosts: Hosts<'_>,
        paths: &Paths,
        flow: DataFlow,
        subflow: &SubflowTotals,
    ) -> u64 {
        let (sender, receiver) = flow.hosts(hosts);
        let place = |stats: &SubflowTotals| (stats.key.slot, flow.path_of(flow.sender, stats));
        let past = sender.past_subflows(flow.connection);
        let past = past.iter().filter(|stats| stats.key != subflow.key);
        let same = past.filter(|stats| place(stats) == place(subflow));
        same.chain([subflow]).map(|stats| flow.received(receiver, paths, stats)).sum()
    }

    /// The samples so far, of subflows and of connections.
    pub fn samples(&self) -> [&Table; 2] {
        [self.subflow_samples.table(), self.connection_samples.table()]
    }

    /// All tables, at the end of the run.
    pub fn finish(self, now: Instant, hosts: Hosts<'_>, paths: &Paths) -> Vec<Table> {
        let changes = self.changes();
        vec![
            self.connections(now, hosts),
            self.subflows(hosts, paths),
            links_table(paths),
            self.blocks(hosts),
            self.subflow_samples.finish(),
            self.connection_samples.finish(),
            changes,
        ]
    }

    /// The first delivery of each flow after each change of one of its paths after its start.
    fn changes(&self) -> Table {
        let mut table = Builder::new("changes");
        for (number, flow) in self.flows.iter().enumerate() {
            let index = flow.connection;
            let after = &self.deliveries[index][flow.sender as usize].after_changes;
            for (change, (at, path)) in self.changes.iter().enumerate() {
                if *at >= self.starts[index] && self.paths[index].contains(path) {
                    table.push(ChangeRow {
                        connection: number as u32,
                        path: *path as u32,
                        changed_ns: at.as_nanos(),
                        first_byte_ns: after.get(change).map_or(0, |first| first.as_nanos()),
                    });
                }
            }
        }
        table.finish()
    }

    /// Totals of the flows.
    pub(crate) fn connections(&self, now: Instant, hosts: Hosts<'_>) -> Table {
        let mut table = Builder::new("connections");
        for (number, flow) in self.flows.iter().enumerate() {
            let index = flow.connection;
            let (sender, receiver) = flow.hosts(hosts);
            let stats = connection_stats(now, sender, index);
            let receiving = connection_stats(now, receiver, index);
            let progress = [sender.progress(index), receiver.progress(index)];
            // The other host sees only that its peer has reset the connection.
            let aborted = progress.contains(&ConnectionProgress::Aborted);
            let received = receiver.sink(index).received();
            let (begin, end) = self.measured(now, *flow, hosts);
            let reached = flow.reached(now, hosts);
            let warm = self.warm[number];
            let stall = self.longest_stall(*flow, end);
            let sent = stats.unwrap_or_default();
            let taken = receiving.unwrap_or_default();
            table.push(ConnectionRow {
                connection: number as u32,
                is_mptcp: sent.is_mptcp,
                fallback: Name(fallback([stats, receiving])),
                completed: progress == [ConnectionProgress::Closed; 2],
                aborted,
                failed: !aborted && progress.contains(&ConnectionProgress::Failed),
                bytes_written: stats.map_or(received, |stats| stats.bytes_written),
                bytes_delivered: received,
                bytes_arrived_measured: reached.arrived.saturating_sub(warm.arrived),
                measured_ns: end.saturating_since(begin).as_nanos(),
                window_limited_ns: since_warm(reached.window_limited, warm.window_limited),
                send_buffer_limited_ns: since_warm(
                    reached.send_buffer_limited,
                    warm.send_buffer_limited,
                ),
                stall_began_ns: stall.began.as_nanos(),
                stall_ns: stall.length.as_nanos(),
                reinjections: sent.reinjections,
                copies: sent.copies,
                path_probes: sent.path_probes,
                bad_decisions: sent.bad_decisions,
                send_buffer: sent.send_buffer,
                receive_buffer: taken.receive_buffer,
                out_of_order_segments: taken.out_of_order_segments,
                stray_segments: taken.stray_segments,
                corrupt_bytes: receiver.sink(index).corrupt() + sender.sink(index).corrupt(),
            });
        }
        table.finish()
    }

    /// The longest stall of a flow whose measured time ends at `end`. A receiver that requests the data
    /// also waits while its requests do.
    fn longest_stall(&self, flow: DataFlow, end: Instant) -> Stall {
        let longest =
            |sender: Side| self.deliveries[flow.connection][sender as usize].stalls.until(end);
        let (own, requests) = (longest(flow.sender), longest(flow.sender.opposite()));
        if self.answers[flow.connection] && requests.length > own.length { requests } else { own }
    }

    /// The time for which a flow is measured: from the end of the warm-up, or from the opening of
    /// its connection if that is later, until its workload has ended.
    fn measured(&self, now: Instant, flow: DataFlow, hosts: Hosts<'_>) -> (Instant, Instant) {
        if let Some((opened, ended)) = flow.hosts(hosts).0.lifetime(flow.connection) {
            return (opened, ended.unwrap_or(now));
        }
        let begin = flow.measured_from(self.warm_up, self.starts[flow.connection]);
        (begin, flow.ended_at(hosts).unwrap_or(now))
    }

    /// Totals of the subflows.
    pub(crate) fn subflows(&self, hosts: Hosts<'_>, paths: &Paths) -> Table {
        let mut table = Builder::new("subflows");
        for (number, flow) in self.flows.iter().enumerate() {
            let (sender, receiver) = flow.hosts(hosts);
            for stats in &all_subflows(sender, flow.connection) {
                let Some(path) = flow.path_of(flow.sender, stats) else { continue };
                table.push(SubflowRow {
                    connection: number as u32,
                    subflow: stats.key.slot.into(),
                    path: path as u32,
                    segments_sent: stats.segments_sent,
                    bytes_sent: stats.bytes_sent,
                    segments_retransmitted: stats.segments_retransmitted,
                    bytes_retransmitted: stats.bytes_retransmitted,
                    bytes_reinjected: stats.bytes_reinjected,
                    timeouts: stats.timeouts,
                    recoveries: stats.recoveries,
                    undone: stats.undone,
                    probes: stats.probes,
                    idle_restarts: stats.idle_restarts,
                    ece_received: stats.ece_received,
                    ecn_reductions: stats.ecn_reductions,
                    srtt_ns: stats.srtt.map_or(0, Duration::as_nanos),
                    min_rtt_ns: stats.srtt.map_or(0, |_| stats.min_rtt.as_nanos()),
                    bytes_received: flow.received(receiver, paths, stats),
                });
            }
        }
        table.finish()
    }

    /// The delivered blocks.
    pub(crate) fn blocks(&self, hosts: Hosts<'_>) -> Table {
        let mut table = Builder::new("blocks");
        for (number, flow) in self.flows.iter().enumerate() {
            for (block, (bytes, accepted, delivered)) in block_times(*flow, hosts).enumerate() {
                table.push(BlockRow {
                    connection: number as u32,
                    block: block as u64,
                    bytes,
                    accepted_ns: accepted.as_nanos(),
                    delivered_ns: delivered.as_nanos(),
                });
            }
        }
        table.finish()
    }
}

/// The size of each delivered block of a flow, and when its delay started and ended.
pub(crate) fn block_times(
    flow: DataFlow,
    hosts: Hosts<'_>,
) -> impl Iterator<Item = (u64, Instant, Instant)> {
    let index = flow.connection;
    let (sender, receiver) = flow.hosts(hosts);
    let sink = receiver.sink(index);
    // A block's delay starts at its sender, or when its receiver requests it.
    let starts = [sender, receiver].into_iter().filter_map(move |host| host.sender(index));
    let starts = starts.flat_map(|workload| workload.delay_starts());
    let times = starts.zip(sink.blocks_delivered()).enumerate();
    times.map(|(block, (start, delivered))| (sink.block_size(block as u64), *start, *delivered))
}

impl DataFlow {
    /// Sending host and receiving host.
    fn hosts<'h>(&self, hosts: Hosts<'h>) -> (&'h dyn Observed, &'h dyn Observed) {
        (hosts[self.sender as usize], hosts[self.sender.opposite() as usize])
    }

    /// When measuring begins of a connection that opens at `start`.
    pub(crate) fn measured_from(&self, warm_up: Duration, start: Instant) -> Instant {
        start.max(Instant::ZERO + warm_up)
    }

    /// When the last byte of the workload's data was delivered, if it was.
    pub(crate) fn ended_at(&self, hosts: Hosts<'_>) -> Option<Instant> {
        let (sender, receiver) = self.hosts(hosts);
        let sink = receiver.sink(self.connection);
        // The end that knows the amount is the one that writes or the one that requests. If both
        // ends send, both send the same amount.
        let ends = [sender, receiver].into_iter().filter_map(|host| host.sender(self.connection));
        let all = ends.filter_map(|end| end.data_bytes()).next()?;
        (sink.received() >= all).then_some(sink.last_at())
    }

    /// Progress of the flow at `now`.
    fn reached(&self, now: Instant, hosts: Hosts<'_>) -> Reached {
        let (sender, receiver) = self.hosts(hosts);
        let stats = connection_stats(now, sender, self.connection);
        Reached {
            arrived: receiver.arrived(self.connection),
            window_limited: stats.map_or(Duration::ZERO, |stats| stats.window_limited),
            send_buffer_limited: stats.map_or(Duration::ZERO, |stats| stats.send_buffer_limited),
        }
    }

    /// Payload bytes that the other end of `subflow` received in order.
    fn received(&self, receiver: &dyn Observed, paths: &Paths, subflow: &SubflowTotals) -> u64 {
        // Middleboxes may have translated the client's address and port.
        let name = |endpoint| paths.original(endpoint);
        let this = (name(subflow.remote), name(subflow.local));
        let mut ends = all_subflows(receiver, self.connection).into_iter();
        let other = ends.find(|end| (name(end.local), name(end.remote)) == this);
        other.map_or(0, |end| end.bytes_received)
    }

    /// The path of a subflow of a host, by the client's address.
    pub(crate) fn path_of(&self, host: Side, subflow: &SubflowTotals) -> Option<usize> {
        let client = match host {
            Side::Client => subflow.local,
            Side::Server => subflow.remote,
        };
        topology::path_of(client.address)
    }

    /// Payload that the receiver has received over the paths that are `here`.
    pub(crate) fn received_over(
        &self,
        receiver: &dyn Observed,
        here: impl Fn(&usize) -> bool,
    ) -> ReceivedOver {
        let ends = all_subflows(receiver, self.connection).into_iter();
        let host = self.sender.opposite();
        let on = ends.filter(|end| self.path_of(host, end).is_some_and(|path| here(&path)));
        on.fold(ReceivedOver::default(), |sum, end| ReceivedOver {
            in_order: sum.in_order + end.bytes_received,
            out_of_order: sum.out_of_order + end.out_of_order_bytes,
        })
    }
}

/// Current totals of a host's connection, or its final totals.
fn connection_stats(
    now: Instant,
    host: &dyn Observed,
    connection: usize,
) -> Option<ConnectionTotals> {
    host.stats(now, connection).or_else(|| host.last_stats(connection))
}

/// Reason why a connection uses TCP. If the hosts know different reasons, the one that happened
/// first counts.
fn fallback(hosts: [Option<ConnectionTotals>; 2]) -> FallbackReason {
    let reasons = hosts.into_iter().flatten().map(|stats| stats.fallback);
    reasons.filter(|why| *why != FallbackReason::None).min().unwrap_or_default()
}

/// The part of a time that passed after the warm-up, in nanoseconds.
fn since_warm(reached: Duration, warm: Duration) -> u64 {
    reached.saturating_sub(warm).as_nanos()
}

/// All subflows of a host's connection, closed ones first.
fn all_subflows(host: &dyn Observed, connection: usize) -> Vec<SubflowTotals> {
    let mut all = host.past_subflows(connection);
    for stats in host.subflows(connection) {
        if !all.iter().any(|past| past.key == stats.key) {
            all.push(stats);
        }
    }
    all
}

/// Totals of the links.
pub(crate) fn links_table(paths: &Paths) -> Table {
    let mut table = Builder::new("links");
    for (path, towards, link) in paths.links() {
        let stats = link.stats();
        table.push(LinkRow {
            path: path as u32,
            direction: u8::from(towards == Side::Server),
            packets_in: stats.packets_in,
            bytes_in: stats.bytes_in,
            packets_delivered: stats.packets_delivered,
            bytes_delivered: stats.bytes_delivered,
            marked: stats.marked,
            dropped_by_queue: stats.dropped_by_queue,
            dropped_by_loss: stats.dropped_by_loss,
            dropped_down: stats.dropped_down,
            dropped_too_big: stats.dropped_too_big,
            queue_packets_max: stats.queue_packets_max,
            queue_bytes_max: stats.queue_bytes_max,
        });
    }
    table.finish()
}
