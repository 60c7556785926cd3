//! The simulator as a WebAssembly module, for the playground.
//!
//! A [`Session`] is a run that a page advances, looks at and changes. A change during the run becomes a
//! `[[path.change]]` of the session's scenario, so the scenario repeats the session packet by packet.
//! Going back in time is running again.
//!
//! The module has no clock and no threads. Numbers leave it as rows of 64-bit floats, and everything
//! else as JSON.

mod export;
mod packets;
mod rows;
mod session;
mod state;

use wasm_bindgen::prelude::*;

pub use session::Engine;

/// A run that a page advances, looks at and changes. Errors are one line, as on the command line.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Session(Engine);

#[wasm_bindgen]
impl Session {
    /// The run of the scenario in the TOML `text` before its first event. `file` is its name in error
    /// messages.
    #[wasm_bindgen(constructor)]
    pub fn new(text: &str, file: &str, seed: u64) -> Result<Session, String> {
        Engine::new(text, file, seed).map(Session)
    }

    /// The present virtual time in ns.
    pub fn now(&self) -> f64 {
        self.0.simulation().now().as_nanos() as f64
    }

    /// The end of the run in ns.
    pub fn end(&self) -> f64 {
        self.0.simulation().end().as_nanos() as f64
    }

    /// Returns `true` at the end of the run.
    #[wasm_bindgen(js_name = isOver)]
    pub fn is_over(&self) -> bool {
        self.0.simulation().is_over()
    }

    /// Number of events so far.
    pub fn events(&self) -> f64 {
        self.0.simulation().events() as f64
    }

    /// Number of segments that both hosts have sent so far.
    pub fn segments(&self) -> f64 {
        self.0.simulation().segments() as f64
    }

    /// Fingerprint of all packets so far.
    pub fn digest(&self) -> String {
        format!("{:016x}", self.0.simulation().digest())
    }

    /// Execute all events until the time in ns.
    #[wasm_bindgen(js_name = stepUntil)]
    pub fn step_until(&mut self, ns: f64) -> Result<(), String> {
        self.0.step_until(ns as u64)
    }

    /// Execute up to `count` events. Returns the number of events executed.
    #[wasm_bindgen(js_name = stepEvents)]
    pub fn step_events(&mut self, count: u32) -> Result<u32, String> {
        self.0.step_events(count)
    }

    /// Begin again, with the same scenario, changes and seed.
    pub fn restart(&mut self) -> Result<(), String> {
        self.0.restart()
    }

    /// Change a path now. `change` is a JSON object with some of the keys `rate`, `delay`, `jitter`,
    /// `loss` and `state` of `[[path.change]]`.
    pub fn change(&mut self, path: usize, change: &str) -> Result<(), String> {
        self.0.change(path, change)
    }

    /// Set keys of the scenario, and begin again. `settings` is a JSON array of pairs of key and value.
    pub fn set(&mut self, settings: &str) -> Result<(), String> {
        self.0.set(settings)
    }

    /// The scenario with all changes, in TOML.
    pub fn toml(&self) -> String {
        self.0.document().to_toml()
    }

    /// The scenario with every default spelled out, as JSON.
    pub fn scenario(&self) -> String {
        state::scenario(self.0.scenario())
    }

    /// Hosts and links in their present state, as JSON.
    pub fn state(&mut self) -> String {
        state::state(&mut self.0)
    }

    /// The packets inside the links, [`packetWidth`](Session::packet_width) numbers each.
    pub fn packets(&mut self) -> Vec<f64> {
        packets::packets(&mut self.0)
    }

    /// Numbers that describe a packet in [`packets`](Session::packets).
    #[wasm_bindgen(js_name = packetWidth)]
    pub fn packet_width() -> usize {
        packets::WIDTH
    }

    /// The rows of a table from number `from` on, as numbers row by row. Names are their indices in
    /// [`schema`](Session::schema).
    pub fn rows(&mut self, table: &str, from: usize) -> Result<Vec<f64>, String> {
        rows::rows(&mut self.0, table, from)
    }

    /// The columns of a table and the names in them, as JSON.
    pub fn schema(&mut self, table: &str) -> Result<String, String> {
        rows::schema(&mut self.0, table)
    }

    /// A table so far as CSV.
    pub fn csv(&mut self, table: &str) -> Result<String, String> {
        export::csv(&mut self.0, table)
    }

    /// A capture (pcapng) of the run until now at the sending hosts, with whole packets and at most
    /// `limit` bytes.
    pub fn pcapng(&self, limit: f64) -> Result<Vec<u8>, String> {
        export::pcapng(&self.0, limit as u64)
    }
}

/// Run a scenario to its end. Returns the digest of all packets.
#[wasm_bindgen(js_name = digestOf)]
pub fn digest_of(text: &str, file: &str, seed: u64) -> Result<String, String> {
    let scenario = anabranch_sim::scenario::Scenario::from_toml(text, file);
    let scenario = scenario.map_err(|error| error.to_string())?;
    let outcome = anabranch_sim::run(&scenario, seed, anabranch_sim::Options::default());
    outcome.map(|outcome| format!("{:016x}", outcome.digest)).map_err(|error| error.to_string())
}
