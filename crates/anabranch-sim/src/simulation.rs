//! A run from the outside: whole, or step by step.

use anabranch_net::Side;
use anabranch_net::network::Paths;
use anabranch_proto::TraceEvent;
use anabranch_table::Table;
use anabranch_wire::Instant;
use core::fmt;

use crate::error::RunError;
use crate::host::EngineHost;
use crate::run_loop::{Options, RunLoop, RunOutcome};
use crate::scenario::{Change, Scenario};

/// Run `scenario` with `seed`.
///
/// # Errors
/// [`RunError`] if the capture cannot be written, if the round-trip check fails, if the
/// user-defined policies do not match the scenario, or if the run was stopped.
pub fn run(scenario: &Scenario, seed: u64, options: Options<'_>) -> Result<RunOutcome, RunError> {
    let mut simulation = Simulation::new(scenario, seed, options)?;
    simulation.step_until(Instant::FAR_FUTURE)?;
    Ok(simulation.finish())
}

/// A run that its driver advances step by step. Between two steps, the driver can look at hosts, links
/// and tables, and schedule changes of paths. Neither the steps nor the looking change the outcome.
///
/// ```
/// use anabranch_sim::{Options, Simulation, run, scenario::Scenario};
/// use anabranch_wire::{Duration, Instant};
///
/// let text = r#"
/// name = "link"
/// duration = "3s"
/// path = [{ name = "wifi", rate = "8Mbit/s", delay = "10ms", limit = "60packets" }]
/// connection = [{ workload = { kind = "bulk" } }]
/// "#;
/// let scenario = Scenario::from_toml(text, "link.toml")?;
/// let mut simulation = Simulation::new(&scenario, 1, Options::default())?;
/// while !simulation.is_over() {
///     simulation.step_until(simulation.now() + Duration::from_millis(500))?;
///     let queue: u64 = simulation.paths().links().map(|(_, _, link)| link.queue_packets()).sum();
///     println!("{} ms: {queue} packets wait", simulation.now().as_millis());
/// }
/// let whole = run(&scenario, 1, Options::default())?;
/// assert_eq!(simulation.finish().digest, whole.digest);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Simulation<'c>(RunLoop<'c, EngineHost>);

impl fmt::Debug for Simulation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").field("now", &self.0.now).finish_non_exhaustive()
    }
}

impl<'c> Simulation<'c> {
    /// The run of `scenario` with `seed`, before its first event.
    ///
    /// # Errors
    /// [`RunError`] if the capture cannot be written, or if the user-defined policies do not match
    /// the scenario.
    pub fn new(scenario: &Scenario, seed: u64, options: Options<'c>) -> Result<Self, RunError> {
        RunLoop::new(scenario, seed, options).map(Simulation)
    }

    /// The present virtual time.
    pub fn now(&self) -> Instant {
        self.0.now
    }

    /// The time at which the run ends.
    pub fn end(&self) -> Instant {
        self.0.end
    }

    /// Returns `true` once nothing is left to do.
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// Number of events so far.
    pub fn events(&self) -> u64 {
        self.0.events
    }

    /// Fingerprint of all packets that have entered a link so far.
    pub fn digest(&self) -> u64 {
        self.0.network.tap().digest()
    }

    /// Segments that both hosts have sent so far.
    pub fn segments(&self) -> u64 {
        self.0.segments
    }

    /// Execute all events until `until`, or until the end of the run. Then it is that time.
    ///
    /// # Errors
    /// [`RunError`] if the capture cannot be written, if the round-trip check fails, or if the run was
    /// stopped.
    pub fn step_until(&mut self, until: Instant) -> Result<(), RunError> {
        self.0.execute_until(until.clamp(self.0.now, self.0.end))
    }

    /// Execute the next event. Returns `false` if there was none before the end of the run.
    ///
    /// # Errors
    /// As [`step_until`](Self::step_until).
    pub fn step_event(&mut self) -> Result<bool, RunError> {
        self.0.execute_next()
    }

    /// Change a path at a time that lies ahead. The run goes on as if the change had been in its
    /// scenario, after the path's other changes.
    ///
    /// # Errors
    /// [`RunError::UnknownPath`], or [`RunError::PastChange`] if the time of the change has passed.
    pub fn schedule(&mut self, path: usize, change: &Change) -> Result<(), RunError> {
        self.0.schedule(path, change)
    }

    /// A host, to look at.
    pub fn host(&self, side: Side) -> &EngineHost {
        &self.0.hosts[side as usize]
    }

    /// Paths and links in their present state.
    pub fn paths(&mut self) -> &Paths {
        self.0.network.observe(self.0.now)
    }

    /// The rows so far of the tables `subflow_samples` and `connection_samples`.
    pub fn samples(&self) -> [&Table; 2] {
        self.0.recorder.samples()
    }

    /// Totals so far, as in the tables `connections`, `subflows`, `links` and `blocks` of a run that
    /// ends now.
    pub fn totals(&mut self) -> [Table; 4] {
        self.0.totals()
    }

    /// The use of the links so far, as in the table `capacity`; `None` without a ledger.
    pub fn capacity(&mut self) -> Option<Table> {
        self.0.capacity()
    }

    /// The states of the subflows so far, as in the table `activities`: the intervals that have ended,
    /// and those that last; `None` without a ledger.
    pub fn activities(&mut self) -> Option<(&Table, Table)> {
        self.0.activities()
    }

    /// The outcome of the run, or of its part until now.
    pub fn finish(self) -> RunOutcome {
        self.0.conclude()
    }

    /// The next decision of the engine at one end of a connection, with [`Options::trace`]. Decisions
    /// wait until they are polled.
    pub fn poll_trace(&mut self, side: Side, connection: usize) -> Option<TraceEvent> {
        self.0.hosts[side as usize].poll_trace(connection)
    }
}
