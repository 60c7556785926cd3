//! Runs one seed and checks the outcome.

use std::panic::{AssertUnwindSafe, catch_unwind};

use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Options, RunError, RunOutcome};

use crate::account;
use crate::draw::{self, DrawnFlow, SoakScenario};

/// Far more events than any run needs. A run exceeds it if time stands still, or if the hosts send
/// each other segments endlessly.
const MOST_EVENTS: u64 = 20_000_000;

/// Ends of the connections of the runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) segments: u64,
    /// Sum of the digests of all runs.
    pub(crate) digest: u64,
    /// All data arrived and both directions were closed, over Multipath TCP or over TCP.
    pub(crate) completed_mptcp: u64,
    pub(crate) completed_tcp: u64,
    /// The connection ended with an error.
    pub(crate) failed: u64,
    /// The checksum of a modified mapping matched by chance: 1 in 65 536 for a 16-bit checksum.
    pub(crate) collisions: u64,
    /// The connection did not open, because outages or losses hit all seven SYNs by chance.
    pub(crate) unopened: u64,
}

/// Length of the longest mapping in bytes.
const LONGEST_MAPPING: u64 = 9_000;

impl Totals {
    pub(crate) fn add(&mut self, other: Totals) {
        self.segments += other.segments;
        self.digest = self.digest.wrapping_add(other.digest);
        self.completed_mptcp += other.completed_mptcp;
        self.completed_tcp += other.completed_tcp;
        self.failed += other.failed;
        self.collisions += other.collisions;
        self.unopened += other.unopened;
    }
}

/// Run `seed` and check its outcome.
///
/// # Errors
/// The fault, in one line.
pub(crate) fn check(seed: u64) -> Result<Totals, String> {
    let drawn = draw::scenario(seed);
    let scenario = Scenario::from_toml(&drawn.toml, "soak.toml")
        .map_err(|error| format!("the scenario is invalid: {error}"))?;
    let outcome = run(&scenario, seed, Watched::default())?;
    // For some seeds, check that a run with the round-trip check gives the same digest.
    if seed.is_multiple_of(16) {
        let again = run(&scenario, seed, Watched { round_trip: true, ..Watched::default() })?;
        if again.digest != outcome.digest {
            return Err("a run with the round-trip check has another digest".into());
        }
    }
    // For others, check that a ledger changes nothing and accounts for everything.
    if seed % 8 == 3 {
        let again = run(&scenario, seed, Watched { ledger: true, ..Watched::default() })?;
        if again.digest != outcome.digest {
            return Err("a run with a ledger has another digest".into());
        }
        account::check(&scenario, &again, drawn.rewrites)?;
    }
    // For others, check that the shortcuts of engine and links change nothing.
    if seed % 8 == 5 {
        let again =
            run(&scenario, seed, Watched { without_shortcuts: true, ..Watched::default() })?;
        if again != outcome {
            return Err("a run without shortcuts has another outcome".into());
        }
    }
    judge(&drawn, &outcome)
}

/// Options of a run that must not change its outcome.
#[derive(Clone, Copy, Default)]
struct Watched {
    round_trip: bool,
    ledger: bool,
    without_shortcuts: bool,
}

fn run(scenario: &Scenario, seed: u64, watched: Watched) -> Result<RunOutcome, String> {
    let mut events = 0u64;
    let mut too_many = |_| {
        events += 1;
        events > MOST_EVENTS
    };
    let Watched { round_trip, ledger, without_shortcuts } = watched;
    let options = Options::default()
        .stop(&mut too_many)
        .round_trip(round_trip)
        .ledger(ledger)
        .without_shortcuts(without_shortcuts);
    match catch_unwind(AssertUnwindSafe(|| anabranch_sim::run(scenario, seed, options))) {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(RunError::Stopped)) => Err(format!("more than {MOST_EVENTS} events")),
        Ok(Err(error)) => Err(format!("the run failed: {error}")),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().cloned();
            let message = message.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).into()));
            Err(format!("panic: {}", message.unwrap_or_default()))
        }
    }
}

/// Check that each stream arrived exactly, or that its connection ended with an error that the
/// scenario explains.
fn judge(drawn: &SoakScenario, outcome: &RunOutcome) -> Result<Totals, String> {
    let mut totals =
        Totals { segments: outcome.segments, digest: outcome.digest, ..Totals::default() };
    for (index, flow) in drawn.flows.iter().enumerate() {
        let DrawnFlow { connection, size, keep_alive, checksums, may_fail } = *flow;
        let value = |name| column(outcome, "connections", name)[index];
        let (completed, failed) = (value("completed") == 1, value("failed") == 1);
        let (delivered, corrupt) = (value("bytes_delivered"), value("corrupt_bytes"));
        let mptcp = value("is_mptcp") == 1 && value("fallback") == 0;
        // Without DSS checksums, a middlebox can change the stream unnoticed.
        let protected = !drawn.rewrites || checksums && mptcp;
        let collision = drawn.rewrites && protected && (1..=LONGEST_MAPPING).contains(&corrupt);
        let unopened = failed && !may_fail && delivered == 0 && !sender_is_open(outcome, index);
        totals.collisions += u64::from(collision);
        totals.unopened += u64::from(unopened);
        let problem = if protected && corrupt > 0 && !collision {
            Some(format!("{corrupt} bytes are corrupt"))
        } else if protected && delivered > size {
            Some(format!("{delivered} bytes delivered of {size}"))
        } else if protected && completed && delivered < size {
            Some(format!("closed after {delivered} bytes of {size}"))
        } else if is_stuck(completed || failed, connection, drawn, outcome)
            // A receiver whose peer has vanished waits forever unless keep-alive is on. Under
            // Multipath TCP, a peer vanishes only if something may end the connection.
            && (keep_alive || delivered < size || mptcp && !may_fail)
            && (mptcp || !drawn.rewrites)
            // The same holds if the third ACK never arrived and the host has nothing to send.
            && (keep_alive || sender_is_open(outcome, index))
        {
            Some(format!("stuck after {delivered} bytes of {size}"))
        } else if failed && !may_fail && !unopened {
            Some(format!(
                "an error after {delivered} bytes of {size} that the scenario does not explain"
            ))
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(format!("flow {index}: {problem}"));
        }
        totals.failed += u64::from(failed);
        totals.completed_mptcp += u64::from(completed && !failed && mptcp);
        totals.completed_tcp += u64::from(completed && !failed && !mptcp);
    }
    Ok(totals)
}

/// Returns `true` if the connection is still open, and delivered no data of either flow in the second
/// half of the run.
fn is_stuck(ended: bool, connection: u64, drawn: &SoakScenario, outcome: &RunOutcome) -> bool {
    let delivered = column(outcome, "connections", "bytes_delivered");
    let flows = drawn.flows.iter().enumerate().filter(|(_, flow)| flow.connection == connection);
    let stands_still = |index: usize| delivered[index] == delivered_half_way(outcome, index);
    !ended && flows.into_iter().all(|(index, _)| stands_still(index))
}

/// Returns `true` if the connection of the sending host was ever open.
fn sender_is_open(outcome: &RunOutcome, index: usize) -> bool {
    column(outcome, "subflows", "connection").contains(&(index as u64))
}

/// Bytes delivered by the connection in the first half of the run.
fn delivered_half_way(outcome: &RunOutcome, index: usize) -> u64 {
    let of = |name| column(outcome, "connection_samples", name);
    let mut rows = of("connection").into_iter().zip(of("time_ns")).zip(of("bytes_delivered"));
    let middle = outcome.end.as_nanos() / 2;
    rows.rfind(|((connection, at), _)| *connection == index as u64 && *at <= middle)
        .map(|(_, delivered)| delivered)
        .unwrap_or(0)
}

fn column(outcome: &RunOutcome, table: &str, name: &str) -> Vec<u64> {
    let table = outcome.tables.iter().find(|found| found.name == table);
    let column = table.expect("each run has this table").column(name);
    column.expect("a column of the table").numbers()
}
