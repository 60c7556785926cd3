//! The tables of a shell: each connection of the program is one of the scenario's connections.

use std::collections::BTreeMap;

use anabranch_host::{ConnectionRecord, Snapshot};
use anabranch_proto::{ConnectionError, ConnectionId, Endpoint};
use anabranch_sim::driver::{
    ConnectionProgress, ConnectionTotals, Observed, Recorder, SubflowTotals,
};
use anabranch_sim::scenario::{Connection, Directions, Scenario, Workload};
use anabranch_sim::workload::{Bulk, Sender, Sink};
use anabranch_sim::{Side, Table};
use anabranch_wire::{Duration, Instant, SocketAddress};

/// Follows the connections of a shell.
pub(super) struct Log {
    scenario: Scenario,
    recorder: Recorder,
    connections: Vec<Connection>,
    /// The server's record of each connection, by number.
    at_server: Vec<Option<usize>>,
    /// Number of the connection with this address of the client and this destination.
    numbers: BTreeMap<(SocketAddress, SocketAddress), usize>,
    /// Number of the server's records that were assigned.
    assigned: usize,
    /// Whether the server's connections are recorded, because the client's are unknown.
    of_server: bool,
}

/// One side of all connections at one time.
struct View<'a> {
    endpoint: &'a Endpoint,
    /// The side's own records.
    records: Vec<Option<&'a ConnectionRecord>>,
    /// The same records, or the peer's record if the side has none.
    known: Vec<Option<&'a ConnectionRecord>>,
    sinks: Vec<Sink>,
    /// Whether the client is not an engine. The server's records are then the only source.
    of_server: bool,
}

impl Log {
    /// A log of the client's connections, or of the server's if the client is not an engine.
    pub(super) fn new(scenario: &Scenario, of_server: bool) -> Self {
        Log {
            // A shell has no end that is known in advance, so nothing is excluded at its start.
            recorder: Recorder::empty(Duration::ZERO),
            scenario: scenario.clone(),
            connections: Vec::new(),
            at_server: Vec::new(),
            numbers: BTreeMap::new(),
            assigned: 0,
            of_server,
        }
    }

    /// Take a sample.
    pub(super) fn sample(&mut self, snapshot: &Snapshot<'_>) {
        self.discover(snapshot);
        let [client, server] = self.views(snapshot);
        self.recorder.sample(snapshot.now, [&client, &server], snapshot.paths);
    }

    /// All tables, and the scenario whose connections they number. `None` if the program opened no
    /// connection.
    pub(super) fn finish(mut self, snapshot: &Snapshot<'_>) -> Option<(Vec<Table>, Scenario)> {
        self.sample(snapshot);
        let views = self.views(snapshot);
        let Log { recorder, connections, mut scenario, .. } = self;
        if connections.is_empty() {
            return None;
        }
        let hosts = views.each_ref().map(|view| view as &dyn Observed);
        let tables = recorder.finish(snapshot.now, hosts, snapshot.paths);
        scenario.connections = connections;
        scenario.warm_up = Duration::ZERO;
        scenario.duration = snapshot.now.saturating_since(Instant::ZERO);
        Some((tables, scenario))
    }

    /// Number the connections that are new.
    fn discover(&mut self, snapshot: &Snapshot<'_>) {
        let [client, server] = snapshot.records;
        let counting = if self.of_server { server } else { client };
        for record in &counting[self.connections.len()..] {
            let number = self.connections.len();
            let template = &self.scenario.connections[0];
            let (client, destination) = match self.of_server {
                true => (snapshot.paths.original(record.remote), record.local),
                false => (record.local, record.remote),
            };
            let connection = Connection {
                name: format!("{} {destination}", number + 1),
                start: record.opened.saturating_since(Instant::ZERO),
                direction: Directions::Both,
                workload: Workload::Bulk(Bulk { size: None }),
                ..template.clone()
            };
            self.recorder.add(&connection);
            self.connections.push(connection);
            self.at_server.push(None);
            // A port that is used again belongs to its latest connection.
            self.numbers.insert((client, destination), number);
        }
        for (index, record) in server.iter().enumerate().skip(self.assigned) {
            let client = snapshot.paths.original(record.remote);
            if let Some(number) = self.numbers.get(&(client, record.local)) {
                self.at_server[*number] = Some(index);
            }
        }
        self.assigned = server.len();
    }

    fn views<'a>(&self, snapshot: &Snapshot<'a>) -> [View<'a>; 2] {
        let [client, server] = snapshot.records;
        let numbers = 0..self.connections.len();
        let at_client: Vec<_> = numbers.clone().map(|number| client.get(number)).collect();
        let at_server = self.at_server.iter().map(|index| index.map(|index| &server[index]));
        let at_server: Vec<_> = at_server.collect();
        let stats = |side: Side, record: Option<&ConnectionRecord>| {
            let current = |id| snapshot.endpoints[side as usize].connection_stats(snapshot.now, id);
            record.and_then(|record| record.last.or_else(|| current(record.id)))
        };
        // A client outside the engine has received the data that it has acknowledged.
        let received = |side: Side, number: usize| match (side, at_client[number]) {
            (Side::Client, None) => {
                stats(Side::Server, at_server[number]).map(|stats| stats.bytes_acknowledged)
            }
            (Side::Client, own) => stats(side, own).map(|stats| stats.bytes_delivered),
            (Side::Server, _) => stats(side, at_server[number]).map(|stats| stats.bytes_delivered),
        };
        let view = |side: Side,
                    records: &[Option<&'a ConnectionRecord>],
                    peers: &[Option<&'a ConnectionRecord>]| {
            let sinks = numbers.clone().map(|number| received(side, number).unwrap_or(0));
            let known = records.iter().zip(peers).map(|(own, peer)| own.or(*peer));
            View {
                endpoint: snapshot.endpoints[side as usize],
                records: records.to_vec(),
                known: known.collect(),
                sinks: sinks.map(Sink::of_received).collect(),
                of_server: self.of_server,
            }
        };
        [view(Side::Client, &at_client, &at_server), view(Side::Server, &at_server, &at_client)]
    }
}

impl View<'_> {
    fn id(&self, connection: usize) -> Option<ConnectionId> {
        self.records[connection].map(|record| record.id)
    }
}

impl Observed for View<'_> {
    fn sink(&self, connection: usize) -> &Sink {
        &self.sinks[connection]
    }

    fn sender(&self, _connection: usize) -> Option<&dyn Sender> {
        None
    }

    fn progress(&self, connection: usize) -> ConnectionProgress {
        match self.known[connection].and_then(|record| record.ended) {
            None => ConnectionProgress::Underway,
            Some((_, None)) => ConnectionProgress::Closed,
            Some((_, Some(ConnectionError::Aborted))) => ConnectionProgress::Aborted,
            // The server sees only that the program's socket has reset the connection.
            Some((_, Some(ConnectionError::Reset))) if self.of_server => {
                ConnectionProgress::Aborted
            }
            Some((_, Some(_))) => ConnectionProgress::Failed,
        }
    }

    fn lifetime(&self, connection: usize) -> Option<(Instant, Option<Instant>)> {
        let record = self.known[connection]?;
        Some((record.opened, record.ended.map(|(at, _)| at)))
    }

    fn stats(&self, now: Instant, connection: usize) -> Option<ConnectionTotals> {
        let id = self.id(connection)?;
        self.endpoint.connection_stats(now, id).map(Into::into)
    }

    fn last_stats(&self, connection: usize) -> Option<ConnectionTotals> {
        self.records[connection]?.last.map(Into::into)
    }

    fn subflows(&self, connection: usize) -> Vec<SubflowTotals> {
        let id = self.id(connection);
        id.into_iter().flat_map(|id| self.endpoint.subflow_stats(id)).map(Into::into).collect()
    }

    fn past_subflows(&self, connection: usize) -> Vec<SubflowTotals> {
        let record = self.records[connection].into_iter();
        record.flat_map(|record| &record.past_subflows).map(|stats| (*stats).into()).collect()
    }
}
