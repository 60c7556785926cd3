//! Scenarios describe experiments as data.
//!
//! A scenario is written in TOML. The types in this module define the file format. The comments of
//! their fields are the descriptions in the JSON Schema, from which the Python classes are
//! generated. Each value is checked while it is parsed. Then [`Scenario::from_toml`] fills in
//! defaults that depend on other keys, and checks constraints between keys. A parsed scenario needs
//! no further check. An error is one line that names the mistake and a valid value.
//!
//! **Directions.** A path connects the client, which opens connections, and the server. Its
//! *forward* direction is always from server to client. This is the direction of the data of a
//! `download` and of the acknowledgements of an `upload`. A path's own keys describe the forward
//! direction. Rate, delay and limit also apply to the reverse direction unless `[path.reverse]`
//! overrides them. Jitter and loss do not.
//!
//! **Topologies.** A path may go `via` other paths. Its packets then also cross the links of those
//! paths, between their own link and the server. Several paths may go via the same path, which is
//! then a shared bottleneck, and a competing connection may use that path on its own.

mod congestion_control;
mod connection;
mod cross_traffic;
mod custom_names;
mod document;
mod error;
mod inferred;
mod loss_trace;
mod middlebox;
mod names;
mod path;
mod path_names;
mod paths;
mod policy;
#[cfg(test)]
mod policy_tests;
mod queue;
mod remedies;
mod routing;
mod stack;
mod trace;
mod via;

use std::path::Path as FilePath;

use anabranch_net::units::{Rate, format_duration};
use anabranch_wire::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use congestion_control::CongestionControl;
pub use connection::{Connection, Limits, SharedBottleneckDetection};
pub use cross_traffic::CrossTraffic;
pub use custom_names::CustomNames;
pub use document::{ChangeError, Document};
pub use error::ScenarioError;
pub use inferred::Inferred;
pub use loss_trace::LossTrace;
pub use middlebox::{Middlebox, Presence};
pub use names::{
    AppliesTo, Direction, Directions, Family, JitterOrder, LinkState, MtuProbing, Protocol,
};
pub use path::{BurstLoss, Change, Path, Reverse};
pub use paths::Paths;
pub use policy::Policy;
pub use queue::Queue;
pub use routing::{Egress, Routing, ServerAddresses};
pub use stack::Stack;
pub use trace::TraceSource;
pub use via::Via;

pub use crate::workload::{Distribution, Workload};
pub use anabranch_config::written::Factor;
use anabranch_config::written::{self, Positive, Problem, WithUnit, name};

/// An experiment: paths between a client and a server, and the connections over them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name of the scenario.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// Description for readers.
    #[serde(default)]
    pub description: String,
    /// Duration of the run.
    #[serde(with = "Positive::<Duration>")]
    pub duration: Duration,
    /// Time at the beginning of the run that metrics exclude; shorter than the duration.
    #[serde(default, with = "WithUnit::<Duration>")]
    pub warm_up: Duration,
    /// Interval between the samples of time series.
    #[serde(default = "default_sample_interval", with = "Positive::<Duration>")]
    pub sample_interval: Duration,
    /// The paths (at least one).
    #[serde(rename = "path")]
    #[schemars(length(min = 1))]
    pub paths: Vec<Path>,
    /// The connections (at least one).
    #[serde(rename = "connection")]
    #[schemars(length(min = 1))]
    pub connections: Vec<Connection>,
    /// UDP traffic that competes with the connections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cross_traffic: Vec<CrossTraffic>,
}

impl Scenario {
    /// Parse the TOML `text`. `file` is its name in error messages. Names of trace files are
    /// relative to the folder of `file`.
    ///
    /// # Errors
    /// If `text` is not TOML, or a key is missing, unknown, or has an invalid value.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let folder = FilePath::new(file).parent().unwrap_or(FilePath::new(""));
        Scenario::from_toml_in(text, file, folder)
    }

    /// Like [`from_toml`](Scenario::from_toml), with names of trace files relative to `folder`.
    ///
    /// # Errors
    /// Those of [`from_toml`](Scenario::from_toml).
    pub fn from_toml_in(text: &str, file: &str, folder: &FilePath) -> Result<Self, ScenarioError> {
        Document::parse(text, file, folder)?.read()
    }

    /// Read, complete and check a scenario.
    fn read(mut table: toml::Table, file: &str, folder: &FilePath) -> Result<Self, ScenarioError> {
        let read = stack::complete(&mut table).and_then(|()| {
            let mut scenario: Scenario = written::read(table)?;
            scenario.complete(folder)?;
            Ok(scenario)
        });
        read.map_err(|problem| ScenarioError::new(file, problem))
    }

    /// The normalised scenario in TOML. Every default is spelled out, quantities have their
    /// canonical form, and traces are included. [`from_toml`](Scenario::from_toml) parses it to an
    /// equal scenario.
    ///
    /// # Panics
    /// If a count is above 2⁶³ − 1, the largest integer of TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("integers that TOML can hold")
    }

    /// Estimated cost of a run: the packets that all paths carry during the run at their full rates.
    pub fn cost(&self) -> f64 {
        let rates =
            self.paths.iter().map(|path| path.rate.map_or(TRACE_RATE, Rate::as_bits_per_second));
        self.duration.as_secs_f64() * rates.map(|bps| bps as f64).sum::<f64>() / PACKET_BITS
    }

    /// The JSON Schema of scenario files, as JSON text.
    pub fn json_schema() -> String {
        let mut schema = serde_json::Value::from(schemars::schema_for!(Scenario));
        schema["properties"][stack::KEY] = stack::of_all();
        serde_json::to_string_pretty(&schema).expect("a schema is a JSON value")
    }

    /// Fill in defaults that depend on other keys, and check constraints between keys. Names of
    /// trace files are relative to `folder`.
    fn complete(&mut self, folder: &FilePath) -> Result<(), Problem> {
        require_before_end("warm_up", self.warm_up, self.duration)?;
        require_some("path", &self.paths)?;
        require_some("connection", &self.connections)?;
        for index in 0..self.paths.len() {
            let (before, rest) = self.paths.split_at_mut(index);
            let completed = rest[0].complete(before, folder);
            completed.map_err(|problem| problem.below(&format!("path[{index}]")))?;
        }
        require_unique("path", self.paths.iter().map(|path| &path.name))?;
        let names: Vec<_> = self.paths.iter().map(|path| path.name.clone()).collect();
        for (index, path) in self.paths.iter_mut().enumerate() {
            let completed = path.routing.complete(&names);
            completed.map_err(|problem| problem.below(&format!("path[{index}].routing")))?;
        }
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let completed = connection.complete(index, &self.paths, self.duration);
            completed.map_err(|problem| problem.below(&format!("connection[{index}]")))?;
            connection.find_policy_files(folder);
        }
        require_unique("connection", self.connections.iter().map(|each| &each.name))?;
        for (index, traffic) in self.cross_traffic.iter_mut().enumerate() {
            let completed = traffic.complete(index, &self.paths);
            completed.map_err(|problem| problem.below(&format!("cross_traffic[{index}]")))?;
        }
        require_unique("cross_traffic", self.cross_traffic.iter().map(|each| &each.name))
    }
}

/// Typical rate in bit/s of a path that follows a trace, and the bits of a full packet, for estimates.
const TRACE_RATE: u64 = 20_000_000;
const PACKET_BITS: f64 = 12_000.0;

fn default_sample_interval() -> Duration {
    Duration::from_millis(100)
}

/// Require at least one table in the array of tables `noun`.
fn require_some<T>(noun: &str, tables: &[T]) -> Result<(), Problem> {
    if tables.is_empty() {
        return Err(Problem::new(noun, format!("[]: write at least one [[{noun}]]")));
    }
    Ok(())
}

/// Require different names for all elements of the array of tables `noun`.
fn require_unique<'a>(noun: &str, names: impl Iterator<Item = &'a String>) -> Result<(), Problem> {
    let names: Vec<_> = names.collect();
    for (n, name) in names.iter().enumerate() {
        if let Some(first) = names[..n].iter().position(|other| other == name) {
            let problem =
                format!("{name:?} is already the name of {noun}[{first}]; choose another");
            return Err(Problem::new(format!("{noun}[{n}].name"), problem));
        }
    }
    Ok(())
}

/// Require a time before the end of a run of this `duration`.
fn require_before_end(key: &str, time: Duration, duration: Duration) -> Result<(), Problem> {
    if time < duration {
        return Ok(());
    }
    let (time, duration) = (format_duration(time), format_duration(duration));
    let problem = format!("{time:?}: must be less than the duration, {duration:?}");
    Err(Problem::new(key, problem))
}

#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod shaper_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod workload_tests;
