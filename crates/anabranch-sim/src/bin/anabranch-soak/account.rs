//! Checks that a run's ledger accounts for every instant and every byte.

use std::collections::BTreeMap;

use anabranch_net::units::Rate;
use anabranch_net::{Capacity, LinkConfig};
use anabranch_sim::scenario::{Path, Routing, Scenario};
use anabranch_sim::{Column, RunOutcome, Side, Table};
use anabranch_wire::{Duration, Instant};

const USEFUL: &str = "useful";
/// No path.
const NONE: u64 = u32::MAX as u64;

/// Check the ledger of a run. `rewrites` is true if a middlebox changes the stream.
///
/// # Errors
/// The first inconsistency, in one line.
pub(crate) fn check(
    scenario: &Scenario,
    outcome: &RunOutcome,
    rewrites: bool,
) -> Result<(), String> {
    blocks(outcome)?;
    if rewrites {
        // A middlebox changes how many bytes arrive, and thereby when the workload has ended.
        return Ok(());
    }
    received(outcome)?;
    let measured = measured(scenario, outcome);
    instants(outcome, &measured)?;
    links(scenario, outcome, &measured)?;
    goodput(scenario, outcome)
}

/// When each flow is measured: from the opening of its connection to the end of its workload or of the
/// run. The scenarios have no warm-up.
fn measured(scenario: &Scenario, outcome: &RunOutcome) -> Vec<(Instant, Instant)> {
    let flows = scenario.connections.iter().flat_map(|connection| {
        connection.direction.senders().iter().map(|_| Instant::ZERO + connection.start)
    });
    let lengths = column(outcome, "connections", "measured_ns");
    flows.zip(lengths).map(|(from, ns)| (from, from + Duration::from_nanos(ns))).collect()
}

/// The intervals of each subflow follow each other from the start of the run to the end of its flow.
fn instants(outcome: &RunOutcome, measured: &[(Instant, Instant)]) -> Result<(), String> {
    let [connection, path, subflow, generation, from, until] =
        ["connection", "path", "subflow", "generation", "from_ns", "until_ns"]
            .map(|name| column(outcome, "activities", name));
    // A subflow's timeline begins before the subflow has a number, so its first interval has none.
    let mut ends: BTreeMap<_, Vec<(u64, u64)>> = BTreeMap::new();
    for row in 0..from.len() {
        let timeline = (connection[row], path[row], subflow[row], generation[row]);
        ends.entry(timeline).or_default().push((from[row], until[row]));
    }
    let waiting: BTreeMap<_, _> = ends
        .iter()
        .filter(|((_, _, subflow, _), _)| *subflow == NONE)
        .map(|((connection, path, ..), intervals)| ((*connection, *path), intervals.clone()))
        .collect();
    for ((connection, path, subflow, _), intervals) in &ends {
        if *subflow == NONE {
            continue;
        }
        let mut intervals = intervals.clone();
        if intervals[0].0 > 0
            && let Some(before) = waiting.get(&(*connection, *path))
        {
            intervals.splice(0..0, before.iter().copied());
        }
        let mut expected = 0;
        for (from, until) in intervals {
            if from != expected || until <= from {
                return Err(format!(
                    "subflow {subflow} of connection {connection}: an interval from {from} ns to \
                     {until} ns follows one until {expected} ns"
                ));
            }
            expected = until;
        }
        if expected != measured[*connection as usize].1.as_nanos() {
            return Err(format!("the timeline of subflow {subflow} ends at {expected} ns"));
        }
    }
    Ok(())
}

/// The causes of each link add up to what the link could have carried.
fn links(
    scenario: &Scenario,
    outcome: &RunOutcome,
    measured: &[(Instant, Instant)],
) -> Result<(), String> {
    let [connection, path, bytes] =
        ["connection", "path", "bytes"].map(|name| column(outcome, "capacity", name));
    let mut sums: BTreeMap<_, u64> = BTreeMap::new();
    for row in 0..bytes.len() {
        *sums.entry((connection[row], path[row])).or_default() += bytes[row];
    }
    let mut flow = 0;
    for connection in &scenario.connections {
        for sender in connection.direction.senders() {
            for path in connection.paths.iter() {
                let towards = sender.opposite();
                let link = match towards {
                    Side::Client => scenario.paths[*path].forward_link(),
                    Side::Server => scenario.paths[*path].reverse_link(),
                };
                let (begin, end) = measured[flow];
                let before = bytes_of(link.clone(), begin);
                let Some(expected) =
                    bytes_of(link, end).zip(before).map(|(all, before)| all - before)
                else {
                    continue;
                };
                let sum = sums.get(&(flow as u64, *path as u64)).copied().unwrap_or(0);
                // The account rounds where it begins and where it ends.
                if sum.abs_diff(expected) > 1 {
                    return Err(format!(
                        "flow {flow} on path {path}: causes add up to {sum} of {expected} bytes"
                    ));
                }
            }
            flow += 1;
        }
    }
    Ok(())
}

/// The parts of each block add up to its delay.
fn blocks(outcome: &RunOutcome) -> Result<(), String> {
    let of = |name| column(outcome, "block_parts", name);
    let (accepted, delivered) = (of("accepted_ns"), of("delivered_ns"));
    let parts = [
        "send_wait_ns",
        "retransmission_ns",
        "queueing_ns",
        "transmission_ns",
        "propagation_ns",
        "out_of_order_ns",
        "unknown_ns",
    ]
    .map(of);
    for row in 0..accepted.len() {
        let sum: u64 = parts.iter().map(|part| part[row]).sum();
        if sum != delivered[row] - accepted[row] {
            return Err(format!("the parts of block row {row} add up to {sum} ns"));
        }
    }
    Ok(())
}

/// The subflows of each flow together received at least what was delivered.
fn received(outcome: &RunOutcome) -> Result<(), String> {
    let [connection, bytes] =
        ["connection", "bytes_received"].map(|name| column(outcome, "subflows", name));
    let delivered = column(outcome, "connections", "bytes_delivered");
    for (flow, delivered) in delivered.into_iter().enumerate() {
        let rows = (0..bytes.len()).filter(|row| connection[*row] == flow as u64);
        let received: u64 = rows.map(|row| bytes[row]).sum();
        if received < delivered {
            return Err(format!(
                "the subflows of flow {flow} received {received} of {delivered} bytes"
            ));
        }
    }
    Ok(())
}

/// The bytes that a link with a rate could have carried until `end`, with its changes of rate.
fn bytes_of(link: LinkConfig, end: Instant) -> Option<u64> {
    let Capacity::Rate(mut rate) = link.capacity else { return None };
    let (mut work, mut since) = (0, Instant::ZERO);
    let mut changes = link.changes;
    changes.sort_by_key(|change| change.at);
    for change in changes.iter().filter(|change| change.at <= end) {
        work += work_of(rate, since, change.at);
        since = change.at;
        rate = change.change.rate.unwrap_or(rate);
    }
    work += work_of(rate, since, end);
    Some((work / 8_000_000_000) as u64)
}

fn work_of(rate: Rate, since: Instant, until: Instant) -> u128 {
    let nanos = until.saturating_since(since).as_nanos();
    u128::from(nanos) * u128::from(rate.as_bits_per_second())
}

/// The useful bytes are those that arrived for the first time.
fn goodput(scenario: &Scenario, outcome: &RunOutcome) -> Result<(), String> {
    // Paths that share a link see each other's bytes.
    let shares = |path: &Path| {
        let Routing { client_egress, server_egress, .. } = &path.routing;
        !path.via.is_empty() || client_egress.is_some() || server_egress.is_some()
    };
    if scenario.paths.iter().any(shares) {
        return Ok(());
    }
    let [connection, bytes] = ["connection", "bytes"].map(|name| column(outcome, "capacity", name));
    let cause = found(outcome, "capacity", "cause").names();
    let arrived = column(outcome, "connections", "bytes_arrived_measured");
    for (flow, arrived) in arrived.into_iter().enumerate() {
        let rows =
            (0..bytes.len()).filter(|row| connection[*row] == flow as u64 && cause[*row] == USEFUL);
        let useful: u64 = rows.map(|row| bytes[row]).sum();
        if useful != arrived {
            return Err(format!("flow {flow}: {useful} useful bytes, and {arrived} arrived"));
        }
    }
    Ok(())
}

fn column(outcome: &RunOutcome, table: &str, name: &str) -> Vec<u64> {
    found(outcome, table, name).numbers()
}

fn found<'o>(outcome: &'o RunOutcome, table: &str, name: &str) -> &'o Column {
    let found = outcome.table(table).and_then(|table: &Table| table.column(name));
    found.expect("a run with a ledger has this column")
}
