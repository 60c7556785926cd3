//! A session: a scenario with its changes, and its run up to the present.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use anabranch_net::units::format_duration;
use anabranch_proto::TraceKind;
use anabranch_sim::scenario::{Document, Scenario};
use anabranch_sim::{Options, Side, Simulation};
use anabranch_wire::{Duration, Instant};
use serde_json::Value;

/// A scenario with its changes, and its run up to the present.
#[derive(Debug)]
pub struct Engine {
    document: Document,
    scenario: Scenario,
    seed: u64,
    simulation: Simulation<'static>,
    decisions: Decisions,
}

/// The engine's decisions that the picture marks. Only the recent ones matter: a packet is in sight
/// for seconds.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    /// The low 32 bits of the first data sequence number, by connection and number of the sender.
    first: BTreeMap<(usize, u8), u32>,
    /// Reinjected data, by connection and data sequence number, in the order of the reinjections.
    reinjected: VecDeque<(usize, u32)>,
    /// By connection and slot: how often a remedy has reduced the congestion window, and when last.
    pub(crate) penalties: BTreeMap<(usize, u8), (u64, Instant)>,
}

/// Reinjections that the picture still marks.
const RECENT: usize = 4_096;

/// Time from one moment of a session to the next, for a change that takes effect "now".
const TICK: Duration = Duration::from_micros(1);

impl Engine {
    /// The run of the scenario in the TOML `text` before its first event.
    ///
    /// # Errors
    /// If the scenario is wrong, or names policies that are not built in.
    pub fn new(text: &str, file: &str, seed: u64) -> Result<Self, String> {
        let document = Document::parse(text, file, Path::new("")).map_err(to_line)?;
        let scenario = document.read().map_err(to_line)?;
        let simulation = start(&scenario, seed)?;
        Ok(Engine { document, scenario, seed, simulation, decisions: Decisions::default() })
    }

    /// The run.
    pub fn simulation(&self) -> &Simulation<'static> {
        &self.simulation
    }

    pub(crate) fn simulation_mut(&mut self) -> &mut Simulation<'static> {
        &mut self.simulation
    }

    pub(crate) fn document(&self) -> &Document {
        &self.document
    }

    pub(crate) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// Execute all events until the time in ns.
    ///
    /// # Errors
    /// Those of the run.
    pub fn step_until(&mut self, ns: u64) -> Result<(), String> {
        self.simulation.step_until(Instant::from_nanos(ns)).map_err(to_line)?;
        self.record_decisions();
        Ok(())
    }

    /// Execute up to `count` events. Returns the number of events executed.
    ///
    /// # Errors
    /// Those of the run.
    pub fn step_events(&mut self, count: u32) -> Result<u32, String> {
        let mut executed = 0;
        while executed < count && self.simulation.step_event().map_err(to_line)? {
            executed += 1;
        }
        self.record_decisions();
        Ok(executed)
    }

    /// Begin again, with the same scenario, changes and seed.
    ///
    /// # Errors
    /// Those of [`Engine::new`].
    pub fn restart(&mut self) -> Result<(), String> {
        self.simulation = start(&self.scenario, self.seed)?;
        self.decisions = Decisions::default();
        Ok(())
    }

    /// Change a path now.
    ///
    /// # Errors
    /// If `change` is not a JSON object, or if the scenario with it would be wrong.
    pub fn change(&mut self, path: usize, change: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(change).map_err(to_line)?;
        let Value::Object(keys) = value else { return Err("a change is an object".to_owned()) };
        let mut table = toml::Table::new();
        table.insert("at".to_owned(), format_duration(self.next_moment()).into());
        for (key, value) in keys {
            table.insert(key, toml::Value::try_from(value).map_err(to_line)?);
        }
        let (document, scenario) = self.document.with_path_change(path, table).map_err(to_line)?;
        let changes = scenario.paths.get(path).map(|path| &path.changes);
        let added = *changes.and_then(|changes| changes.last()).ok_or("there is no such path")?;
        self.simulation.schedule(path, &added).map_err(to_line)?;
        (self.document, self.scenario) = (document, scenario);
        Ok(())
    }

    /// The first moment that is neither past nor that of another change. Simultaneous changes of
    /// different paths would have to take effect in the order of the paths.
    fn next_moment(&self) -> Duration {
        let now = Duration::from_nanos(self.simulation.now().as_nanos());
        let changes = self.scenario.paths.iter().flat_map(|path| &path.changes);
        let pending = changes.map(|change| change.at).filter(|at| *at > now);
        let micros = now.as_micros() + TICK.as_micros();
        let mut moment = Duration::from_micros(micros);
        let taken: Vec<_> = pending.collect();
        while taken.contains(&moment) {
            moment = Duration::from_micros(moment.as_micros() + TICK.as_micros());
        }
        moment
    }

    /// Set keys of the scenario, and begin again.
    ///
    /// # Errors
    /// If `settings` is not a JSON array of pairs, or if the scenario would be wrong. The session then
    /// goes on as before.
    pub fn set(&mut self, settings: &str) -> Result<(), String> {
        let pairs: Vec<(String, toml::Value)> = serde_json::from_str(settings).map_err(to_line)?;
        let (document, scenario) = self.document.with_settings(&pairs).map_err(to_line)?;
        self.simulation = start(&scenario, self.seed)?;
        (self.document, self.scenario) = (document, scenario);
        self.decisions = Decisions::default();
        Ok(())
    }

    fn record_decisions(&mut self) {
        for connection in 0..self.scenario.connections.len() {
            for side in [Side::Client, Side::Server] {
                while let Some(event) = self.simulation.poll_trace(side, connection) {
                    self.decisions.record(connection, side, event.at, event.kind);
                }
            }
        }
    }
}

impl Decisions {
    fn record(&mut self, connection: usize, side: Side, at: Instant, kind: TraceKind) {
        match kind {
            TraceKind::Scheduled { data_seq, .. } => {
                self.first.entry((connection, side as u8)).or_insert(data_seq.0 as u32);
            }
            TraceKind::Reinjected { data_seq, .. } => {
                self.reinjected.push_back((connection, data_seq.0 as u32));
                if self.reinjected.len() > RECENT {
                    self.reinjected.pop_front();
                }
            }
            TraceKind::Penalised { subflow, .. } => {
                let entry = self.penalties.entry((connection, subflow.slot.into()));
                let (count, last) = entry.or_insert((0, at));
                (*count, *last) = (*count + 1, at);
            }
            _ => {}
        }
    }

    /// Offset in the stream of data with this number.
    pub(crate) fn offset(&self, connection: usize, sender: Side, data_seq: u32) -> Option<u32> {
        let first = self.first.get(&(connection, sender as u8))?;
        Some(data_seq.wrapping_sub(*first))
    }

    /// The numbers of recently reinjected data, for look-ups.
    pub(crate) fn reinjected(&self) -> BTreeSet<(usize, u32)> {
        self.reinjected.iter().copied().collect()
    }
}

fn start(scenario: &Scenario, seed: u64) -> Result<Simulation<'static>, String> {
    let options = Options::default().ledger(true).trace(true);
    Simulation::new(scenario, seed, options).map_err(to_line)
}

/// An error as the command line shows it.
pub(crate) fn to_line(error: impl ToString) -> String {
    error.to_string()
}
