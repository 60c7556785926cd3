//! Records the tables of a run.

use anabranch_net::Side;
use anabranch_net::network::Paths;
use anabranch_proto::view::Bottleneck;
use anabranch_proto::{ConnectionStats, Fallback, SubflowStats};
use anabranch_wire::{Duration, Instant};

use crate::scenario::{Connection, Scenario};
use crate::topology;
use crate::workload::{Sender, Sink};

/// A column of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Flags and small enumerations.
    U8(Vec<u8>),
    /// Indices.
    U32(Vec<u32>),
    /// Counts, bytes, nanoseconds.
    U64(Vec<u64>),
}

/// Named columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the table.
    pub name: &'static str,
    /// Names and contents of the columns.
    pub columns: Vec<(&'static str, Column)>,
}

impl Table {
    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(each, _)| *each == name).map(|(_, column)| column)
    }
}

impl Column {
    /// The values as 64-bit numbers, regardless of the column's type.
    pub fn values(&self) -> Vec<u64> {
        match self {
            Column::U8(values) => values.iter().copied().map(u64::from).collect(),
            Column::U32(values) => values.iter().copied().map(u64::from).collect(),
            Column::U64(values) => values.clone(),
        }
    }
}

/// Builds a table from 64-bit columns. Columns of narrower types are converted at the end.
pub(crate) struct Builder {
    name: &'static str,
    columns: Vec<(&'static str, Kind, Vec<u64>)>,
}

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A flag or a small enumeration.
    Flag,
    /// An index.
    Index,
    /// A count, bytes, nanoseconds.
    Count,
}
use Kind::{Count, Flag, Index};

/// An index of nothing.
pub(crate) const NONE: u64 = u32::MAX as u64;

impl Builder {
    /// A table without rows.
    pub(crate) fn new(name: &'static str, columns: &[(&'static str, Kind)]) -> Self {
        let columns = columns.iter().map(|(name, kind)| (*name, *kind, Vec::new())).collect();
        Builder { name, columns }
    }

    /// Add a row.
    pub(crate) fn push<const N: usize>(&mut self, row: [u64; N]) {
        assert_eq!(N, self.columns.len(), "a row has one value per column");
        for ((_, _, column), value) in self.columns.iter_mut().zip(row) {
            column.push(value);
        }
    }

    /// The complete table.
    pub(crate) fn finish(self) -> Table {
        let columns = self.columns.into_iter().map(|(name, kind, values)| {
            let column = match kind {
                Flag => Column::U8(values.iter().map(|value| *value as u8).collect()),
                Index => Column::U32(values.iter().map(|value| *value as u32).collect()),
                Count => Column::U64(values),
            };
            (name, column)
        });
        Table { name: self.name, columns: columns.collect() }
    }
}

/// Interface through which the recorder reads a host. Connections are numbered as in the scenario.
pub trait Observed {
    /// The receiving half of the connection's application.
    fn sink(&self, connection: usize) -> &Sink;
    /// The sending half of the connection's application, if it has one.
    fn sender(&self, connection: usize) -> Option<&dyn Sender>;
    /// Bytes of the data that have arrived for the connection's application, each counted once. By
    /// default these are the ones that it has read; a host that knows more also counts what waits
    /// for earlier data.
    fn arrived(&self, connection: usize) -> u64 {
        self.sink(connection).received()
    }
    /// State of the connection.
    fn progress(&self, connection: usize) -> Progress;
    /// When the connection was opened, and when it ended if it has, if that is the time to measure it
    /// for. By default the scenario says when measuring begins, and the workload when it ends.
    fn lifetime(&self, _connection: usize) -> Option<(Instant, Option<Instant>)> {
        None
    }
    /// Current totals of the connection, if it exists.
    fn stats(&self, now: Instant, connection: usize) -> Option<ConnectionStats>;
    /// Final totals of the connection, if it has ended.
    fn last_stats(&self, connection: usize) -> Option<ConnectionStats>;
    /// The open subflows of the connection.
    fn subflows(&self, connection: usize) -> Vec<SubflowStats>;
    /// The closed subflows of the connection.
    fn past_subflows(&self, connection: usize) -> &[SubflowStats];
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The connection is open or will be opened.
    Underway,
    /// Both directions were closed, and all data was acknowledged.
    Closed,
    /// A program reset the connection.
    Aborted,
    /// The connection ended in another way.
    Failed,
}

/// Client and server.
pub type Hosts<'a> = [&'a dyn Observed; 2];

/// One direction of a connection in which the workload's data flows. In the tables of a run, the
/// column `connection` numbers these flows, in the order of the scenario's connections.
#[derive(Clone, Copy)]
pub(crate) struct Flow {
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

/// The flows of all connections.
pub(crate) fn flows(scenario: &Scenario) -> Vec<Flow> {
    let connections = scenario.connections.iter().enumerate();
    connections.flat_map(|(number, connection)| flows_of(number, connection)).collect()
}

fn flows_of(number: usize, connection: &Connection) -> impl Iterator<Item = Flow> {
    let senders = connection.direction.senders().iter();
    senders.map(move |sender| Flow { connection: number, sender: *sender })
}

/// Builds the tables of a run.
pub struct Recorder {
    warm_up: Duration,
    /// When each connection opens.
    starts: Vec<Instant>,
    /// The paths of each connection.
    paths: Vec<Vec<usize>>,
    flows: Vec<Flow>,
    subflow_samples: Builder,
    connection_samples: Builder,
    /// What each flow had reached at the end of the warm-up.
    warm: Vec<Reached>,
}

/// What a flow has reached at a time.
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
        recorder
    }

    /// A recorder without any connections, of a run whose metrics exclude the `warm_up`.
    pub fn empty(warm_up: Duration) -> Self {
        Recorder {
            warm_up,
            starts: Vec::new(),
            paths: Vec::new(),
            warm: Vec::new(),
            flows: Vec::new(),
            subflow_samples: Builder::new(
                "subflow_samples",
                &[
                    ("time_ns", Count),
                    ("connection", Index),
                    ("subflow", Index),
                    ("path", Index),
                    ("cwnd", Count),
                    ("ssthresh", Count),
                    ("bytes_in_flight", Count),
                    ("srtt_ns", Count),
                    ("bottleneck", Index),
                    ("queue_packets", Index),
                    ("queue_bytes", Count),
                    ("bytes_received", Count),
                ],
            ),
            connection_samples: Builder::new(
                "connection_samples",
                &[
                    ("time_ns", Count),
                    ("connection", Index),
                    ("bytes_delivered", Count),
                    ("out_of_order_bytes", Count),
                    ("available_window", Count),
                    ("unsent_bytes", Count),
                ],
            ),
        }
    }

    /// Add a connection. Its number follows that of the last one.
    pub fn add(&mut self, connection: &Connection) {
        let number = self.paths.len();
        self.starts.push(Instant::ZERO + connection.start);
        self.paths.push(connection.paths.to_vec());
        self.flows.extend(flows_of(number, connection));
        self.warm.resize(self.flows.len(), Reached::default());
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
        self.connection_samples.push([
            now.as_nanos(),
            number as u64,
            receiver.sink(index).received(),
            received.map_or(0, |stats| stats.out_of_order_bytes),
            stats.available_window,
            stats.unsent_bytes,
        ]);
        for subflow in sender.subflows(index) {
            let path = self.path_of(flow, &subflow);
            let link = paths.link_of(path, flow.sender.opposite());
            let view = &subflow.view;
            let bytes_received = self.received_in_slot(hosts, paths, flow, &subflow);
            self.subflow_samples.push([
                now.as_nanos(),
                number as u64,
                u64::from(view.id.slot),
                path as u64,
                view.cwnd,
                view.ssthresh,
                view.bytes_in_flight,
                view.srtt.map_or(0, |srtt| srtt.as_nanos()),
                bottleneck(view.bottleneck),
                link.queue_packets(),
                link.queue_bytes(),
                bytes_received,
            ]);
        }
    }

    /// The path of a subflow of the sending host. The client's Address IDs number the paths of the
    /// connection.
    fn path_of(&self, flow: Flow, subflow: &SubflowStats) -> usize {
        let paths = &self.paths[flow.connection];
        paths[usize::from(flow.client_address_id(subflow)).min(paths.len() - 1)]
    }

    /// Payload bytes received on all subflows that had the same slot and path as `subflow`. This
    /// number never decreases.
    fn received_in_slot(
        &self,
        hosts: Hosts<'_>,
        paths: &Paths,
        flow: Flow,
        subflow: &SubflowStats,
    ) -> u64 {
        let (sender, receiver) = flow.hosts(hosts);
        let place = |stats: &SubflowStats| (stats.view.id.slot, self.path_of(flow, stats));
        let past = sender.past_subflows(flow.connection).iter();
        let past = past.filter(|stats| stats.view.id != subflow.view.id);
        let same = past.filter(|stats| place(stats) == place(subflow));
        same.chain([subflow]).map(|stats| flow.received(receiver, paths, stats)).sum()
    }

    /// All tables, at the end of the run.
    pub fn finish(self, now: Instant, hosts: Hosts<'_>, paths: &Paths) -> Vec<Table> {
        vec![
            self.connections(now, hosts),
            self.subflows(hosts, paths),
            links_table(paths),
            self.blocks(hosts),
            self.subflow_samples.finish(),
            self.connection_samples.finish(),
        ]
    }

    fn connections(&self, now: Instant, hosts: Hosts<'_>) -> Table {
        let mut table = Builder::new(
            "connections",
            &[
                ("connection", Index),
                ("is_mptcp", Flag),
                ("fallback", Flag),
                ("completed", Flag),
                ("aborted", Flag),
                ("failed", Flag),
                ("bytes_written", Count),
                ("bytes_delivered", Count),
                ("bytes_arrived_measured", Count),
                ("measured_ns", Count),
                ("window_limited_ns", Count),
                ("send_buffer_limited_ns", Count),
                ("reinjections", Count),
                ("copies", Count),
                ("path_probes", Count),
                ("bad_decisions", Count),
                ("send_buffer", Count),
                ("receive_buffer", Count),
                ("out_of_order_segments", Count),
                ("stray_segments", Count),
                ("corrupt_bytes", Count),
            ],
        );
        for (number, flow) in self.flows.iter().enumerate() {
            let index = flow.connection;
            let (sender, receiver) = flow.hosts(hosts);
            let stats = connection_stats(now, sender, index);
            let receiving = connection_stats(now, receiver, index);
            let progress = [sender.progress(index), receiver.progress(index)];
            // The other host sees only that its peer has reset the connection.
            let aborted = progress.contains(&Progress::Aborted);
            let received = receiver.sink(index).received();
            let (begin, end) = self.measured(now, *flow, hosts);
            let reached = flow.reached(now, hosts);
            let warm = self.warm[number];
            table.push([
                number as u64,
                stats.map_or(0, |stats| u64::from(stats.is_mptcp)),
                fallback([stats, receiving]) as u64,
                u64::from(progress == [Progress::Closed; 2]),
                u64::from(aborted),
                u64::from(!aborted && progress.contains(&Progress::Failed)),
                stats.map_or(received, |stats| stats.bytes_written),
                received,
                reached.arrived.saturating_sub(warm.arrived),
                end.saturating_since(begin).as_nanos(),
                reached.window_limited.saturating_sub(warm.window_limited).as_nanos(),
                reached.send_buffer_limited.saturating_sub(warm.send_buffer_limited).as_nanos(),
                stats.map_or(0, |stats| stats.reinjections),
                stats.map_or(0, |stats| stats.copies),
                stats.map_or(0, |stats| stats.path_probes),
                stats.map_or(0, |stats| stats.bad_decisions),
                stats.map_or(0, |stats| stats.send_buffer),
                receiving.map_or(0, |stats| stats.receive_buffer),
                receiving.map_or(0, |stats| stats.out_of_order_segments),
                receiving.map_or(0, |stats| stats.stray_segments),
                receiver.sink(index).corrupt() + sender.sink(index).corrupt(),
            ]);
        }
        table.finish()
    }

    /// The time for which a flow is measured: from the end of the warm-up, or from the opening of
    /// its connection if that is later, until its workload has ended.
    fn measured(&self, now: Instant, flow: Flow, hosts: Hosts<'_>) -> (Instant, Instant) {
        if let Some((opened, ended)) = flow.hosts(hosts).0.lifetime(flow.connection) {
            return (opened, ended.unwrap_or(now));
        }
        let begin = flow.measured_from(self.warm_up, self.starts[flow.connection]);
        (begin, flow.ended_at(hosts).unwrap_or(now))
    }

    fn subflows(&self, hosts: Hosts<'_>, paths: &Paths) -> Table {
        let mut table = Builder::new(
            "subflows",
            &[
                ("connection", Index),
                ("subflow", Index),
                ("path", Index),
                ("segments_sent", Count),
                ("bytes_sent", Count),
                ("segments_retransmitted", Count),
                ("bytes_retransmitted", Count),
                ("bytes_reinjected", Count),
                ("timeouts", Count),
                ("recoveries", Count),
                ("undone", Count),
                ("probes", Count),
                ("idle_restarts", Count),
                ("ece_received", Count),
                ("ecn_reductions", Count),
                ("srtt_ns", Count),
                ("min_rtt_ns", Count),
                ("bytes_received", Count),
            ],
        );
        for (number, flow) in self.flows.iter().enumerate() {
            let (sender, receiver) = flow.hosts(hosts);
            for stats in &all_subflows(sender, flow.connection) {
                let received = flow.received(receiver, paths, stats);
                table.push([
                    number as u64,
                    u64::from(stats.view.id.slot),
                    self.path_of(*flow, stats) as u64,
                    stats.segments_sent,
                    stats.bytes_sent,
                    stats.segments_retransmitted,
                    stats.bytes_retransmitted,
                    stats.bytes_reinjected,
                    stats.timeouts,
                    stats.recoveries,
                    stats.undone,
                    stats.probes,
                    stats.idle_restarts,
                    stats.ece_received,
                    stats.ecn_reductions,
                    stats.view.srtt.map_or(0, |srtt| srtt.as_nanos()),
                    stats.view.srtt.map_or(0, |_| stats.view.min_rtt.as_nanos()),
                    received,
                ]);
            }
        }
        table.finish()
    }

    fn blocks(&self, hosts: Hosts<'_>) -> Table {
        let mut table = Builder::new(
            "blocks",
            &[
                ("connection", Index),
                ("block", Count),
                ("bytes", Count),
                ("accepted_ns", Count),
                ("delivered_ns", Count),
            ],
        );
        for (number, flow) in self.flows.iter().enumerate() {
            for (block, (bytes, accepted, delivered)) in block_times(*flow, hosts).enumerate() {
                let (accepted, delivered) = (accepted.as_nanos(), delivered.as_nanos());
                table.push([number as u64, block as u64, bytes, accepted, delivered]);
            }
        }
        table.finish()
    }
}

/// The size of each delivered block of a flow, and when its delay started and ended.
pub(crate) fn block_times(
    flow: Flow,
    hosts: Hosts<'_>,
) -> impl Iterator<Item = (u64, Instant, Instant)> {
    let index = flow.connection;
    let (sender, receiver) = flow.hosts(hosts);
    let sink = receiver.sink(index);
    // A block's delay starts when its sender writes it, or when its receiver requests it.
    let starts = [sender, receiver].into_iter().filter_map(move |host| host.sender(index));
    let starts = starts.flat_map(|workload| workload.blocks_accepted());
    let times = starts.zip(sink.blocks_delivered()).enumerate();
    times.map(|(block, (accepted, delivered))| {
        (sink.block_size(block as u64), *accepted, *delivered)
    })
}

impl Flow {
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

    /// What the flow has reached at `now`.
    fn reached(&self, now: Instant, hosts: Hosts<'_>) -> Reached {
        let (sender, receiver) = self.hosts(hosts);
        let stats = connection_stats(now, sender, self.connection);
        Reached {
            arrived: receiver.arrived(self.connection),
            window_limited: stats.map_or(Duration::ZERO, |stats| stats.window_limited),
            send_buffer_limited: stats.map_or(Duration::ZERO, |stats| stats.send_buffer_limited),
        }
    }

    /// Address ID of a subflow's client address, as the sending host sees it.
    fn client_address_id(&self, subflow: &SubflowStats) -> u8 {
        let view = &subflow.view;
        match self.sender {
            Side::Client => view.local_address_id,
            Side::Server => view.remote_address_id,
        }
    }

    /// Payload bytes that the other end of `subflow` received in order.
    fn received(&self, receiver: &dyn Observed, paths: &Paths, subflow: &SubflowStats) -> u64 {
        // Middleboxes may have translated the client's address and port.
        let name = |endpoint| paths.original(endpoint);
        let this = (name(subflow.remote), name(subflow.local));
        let mut ends = all_subflows(receiver, self.connection).into_iter();
        let other = ends.find(|end| (name(end.local), name(end.remote)) == this);
        other.map_or(0, |end| end.bytes_received)
    }

    /// The path of a subflow of the receiving host, by the client's address.
    pub(crate) fn path_of(&self, subflow: &SubflowStats) -> Option<usize> {
        let client = match self.sender {
            Side::Client => subflow.remote,
            Side::Server => subflow.local,
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
        let on = ends.filter(|end| self.path_of(end).is_some_and(|path| here(&path)));
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
) -> Option<ConnectionStats> {
    host.stats(now, connection).or_else(|| host.last_stats(connection))
}

/// Why a connection uses TCP. If the hosts know different reasons, the one that happened first
/// counts.
fn fallback(hosts: [Option<ConnectionStats>; 2]) -> Fallback {
    let reasons = hosts.into_iter().flatten().map(|stats| stats.fallback);
    reasons.filter(|why| *why != Fallback::None).min().unwrap_or_default()
}

/// All subflows of a host's connection, closed ones first.
fn all_subflows(host: &dyn Observed, connection: usize) -> Vec<SubflowStats> {
    let mut all = host.past_subflows(connection).to_vec();
    for stats in host.subflows(connection) {
        if !all.iter().any(|past| past.view.id == stats.view.id) {
            all.push(stats);
        }
    }
    all
}

/// 0 means unknown, 1 means no bottleneck, 2 and above identify bottlenecks.
fn bottleneck(bottleneck: Bottleneck) -> u64 {
    match bottleneck {
        Bottleneck::Unknown => 0,
        Bottleneck::None => 1,
        Bottleneck::Shared(number) => 2 + u64::from(number),
    }
}

fn links_table(paths: &Paths) -> Table {
    let mut table = Builder::new(
        "links",
        &[
            ("path", Index),
            ("direction", Flag),
            ("packets_in", Count),
            ("bytes_in", Count),
            ("packets_delivered", Count),
            ("bytes_delivered", Count),
            ("marked", Count),
            ("dropped_by_queue", Count),
            ("dropped_by_loss", Count),
            ("dropped_down", Count),
            ("dropped_too_big", Count),
            ("queue_packets_max", Count),
            ("queue_bytes_max", Count),
        ],
    );
    for (path, towards, link) in paths.links() {
        let stats = link.stats();
        table.push([
            path as u64,
            u64::from(towards == Side::Server),
            stats.packets_in,
            stats.bytes_in,
            stats.packets_delivered,
            stats.bytes_delivered,
            stats.marked,
            stats.dropped_by_queue,
            stats.dropped_by_loss,
            stats.dropped_down,
            stats.dropped_too_big,
            stats.queue_packets_max,
            stats.queue_bytes_max,
        ]);
    }
    table.finish()
}
