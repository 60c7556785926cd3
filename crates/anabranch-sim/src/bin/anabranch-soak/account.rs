//! Checks that a run's ledger accounts for every instant and every byte.

use std::collections::BTreeMap;

use anabranch_net::units::Rate;
use anabranch_net::{Capacity, LinkConfig};
use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Outcome, Side, Table};
use anabranch_wire::Instant;

/// Causes of the table of capacities that this check names.
const USEFUL: u64 = 32;
const HELD: u64 = 41;
/// No path.
const NONE: u64 = u32::MAX as u64;

/// Check the ledger of a run.
///
/// # Errors
/// What does not add up, in one line.
pub(crate) fn check(scenario: &Scenario, outcome: &Outcome) -> Result<(), String> {
    instants(outcome)?;
    links(scenario, outcome)?;
    blocks(outcome)?;
    goodput(scenario, outcome)
}

/// The intervals of each subflow follow each other from the start of the run to its end.
fn instants(outcome: &Outcome) -> Result<(), String> {
    let [connection, path, subflow, generation, from, until] =
        ["connection", "path", "subflow", "generation", "from_ns", "until_ns"]
            .map(|name| column(outcome, "activities", name));
    // A subflow's lane begins before the subflow has a number, so its first interval has none.
    let mut ends: BTreeMap<_, Vec<(u64, u64)>> = BTreeMap::new();
    for row in 0..from.len() {
        let lane = (connection[row], path[row], subflow[row], generation[row]);
        ends.entry(lane).or_default().push((from[row], until[row]));
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
        if expected != outcome.end.as_nanos() {
            return Err(format!("the lane of subflow {subflow} ends at {expected} ns"));
        }
    }
    Ok(())
}

/// The causes of each link add up to what the link could have carried.
fn links(scenario: &Scenario, outcome: &Outcome) -> Result<(), String> {
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
                let Some(expected) = bytes_of(link, outcome.end) else { continue };
                let sum = sums.get(&(flow, *path as u64)).copied().unwrap_or(0);
                if sum != expected {
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
fn blocks(outcome: &Outcome) -> Result<(), String> {
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

/// What arrived for the first time was delivered, or waits when the run ends.
fn goodput(scenario: &Scenario, outcome: &Outcome) -> Result<(), String> {
    // A fallback makes the receiver drop data that arrives again.
    if scenario.paths.iter().any(|path| !path.via.is_empty()) {
        return Ok(());
    }
    let [connection, cause, bytes] =
        ["connection", "cause", "bytes"].map(|name| column(outcome, "capacity", name));
    // The window's edge is rounded up to the unit of the window field, so a little more may arrive.
    let receive_buffers: Vec<u64> =
        column(outcome, "connections", "receive_buffer").iter().map(|size| 2 * size).collect();
    for (flow, delivered) in column(outcome, "connections", "bytes_delivered").iter().enumerate() {
        let of = |wanted: u64| -> u64 {
            let rows = (0..bytes.len())
                .filter(|row| connection[*row] == flow as u64 && cause[*row] == wanted);
            rows.map(|row| bytes[row]).sum()
        };
        let (useful, held) = (of(USEFUL), of(HELD));
        if useful != delivered + held || held > receive_buffers[flow] {
            return Err(format!(
                "flow {flow}: {useful} useful bytes, {delivered} delivered and {held} held"
            ));
        }
    }
    Ok(())
}

fn column(outcome: &Outcome, table: &str, name: &str) -> Vec<u64> {
    let found = outcome.table(table).and_then(|table: &Table| table.column(name));
    found.expect("a run with a ledger has this column").values()
}
