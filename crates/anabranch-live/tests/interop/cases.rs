//! What is tried: scenarios, and what each host is to count.

mod control;
mod spoilt;
mod transfers;

use anabranch_live::{Intervention, Stack};
use anabranch_sim::Side;
use anabranch_wire::{Duration, Instant};

/// One run.
pub(crate) struct Case {
    /// What it is called.
    pub(crate) name: String,
    /// The scenario, in TOML.
    pub(crate) scenario: String,
    /// Client's and server's stack.
    pub(crate) stacks: [Stack; 2],
    /// What is to come of it.
    pub(crate) expected: Expected,
    /// What is done to the hosts, in the order of time.
    pub(crate) interventions: Vec<(Instant, Side, Intervention)>,
    /// A program without which it is skipped.
    pub(crate) needs: Option<&'static str>,
    /// Is a capture kept, and judged?
    pub(crate) captured: bool,
}

/// What is to come of a run.
#[derive(Clone, Copy)]
pub(crate) struct Expected {
    /// Do both ends close?
    pub(crate) completes: bool,
    /// Is the stream what a box made of it?
    pub(crate) changed: bool,
    /// Do they speak Multipath TCP?
    pub(crate) mptcp: bool,
    /// Which paths carry data?
    pub(crate) carried: Carried,
    /// Are packets marked, and does whoever sent them slow down?
    pub(crate) marked: bool,
    /// Counters of the kernel's that are to move, by name.
    pub(crate) kernel: &'static [&'static str],
    /// Counters of errors that may move all the same.
    pub(crate) tolerated: &'static [&'static str],
    /// Counters of the engine's that are to move.
    pub(crate) engine: &'static [&'static str],
    /// Counters of both that are to stay at 0.
    pub(crate) still: &'static [&'static str],
    /// What the capture's resets are to say, one at least of each.
    pub(crate) resets: &'static [&'static str],
    /// Does each host count as many options as the other sends?
    pub(crate) exact: bool,
}

/// Which paths carry the data.
#[derive(Clone, Copy)]
pub(crate) enum Carried {
    /// Some of it each.
    ByAll,
    /// No matter which.
    ByAny,
    /// More than three quarters of it this one.
    By(usize),
}

const GOOD: Expected = Expected {
    completes: true,
    changed: false,
    mptcp: true,
    carried: Carried::ByAll,
    marked: false,
    kernel: &[],
    tolerated: &[],
    engine: &[],
    still: &[],
    resets: &[],
    exact: false,
};

const FAST: &str = "rate = \"20Mbit/s\"\ndelay = \"5ms\"\nlimit = \"100packets\"\n";
const SLOW: &str = "rate = \"10Mbit/s\"\ndelay = \"15ms\"\nlimit = \"100packets\"\n";
/// Linux takes and opens no subflows once the application has closed, so it must not have written
/// everything at once.
const DOWN: &str = "direction = \"download\"\nsend_buffer = \"100kB\"\n";
const UP: &str = "direction = \"upload\"\nsend_buffer = \"100kB\"\n";
const BULK: &str = "kind = \"bulk\"\nsize = \"1MB\"\n";

fn path(name: &str, settings: &str) -> String {
    format!("[[path]]\nname = \"{name}\"\n{settings}\n")
}

/// Two paths, of which the second has IPv6, so that the server announces its address there.
fn mixed_families() -> [String; 2] {
    [FAST.to_owned(), format!("{SLOW}family = \"ipv6\"\n")]
}

fn scenario(paths: &[&str], connection: &str, workload: &str) -> String {
    let paths: String =
        paths.iter().enumerate().map(|(index, each)| path(&format!("p{index}"), each)).collect();
    format!(
        "name = \"interop\"\nduration = \"20s\"\n{paths}\n[[connection]]\nname = \"c\"\n\
         congestion_control = \"cubic\"\n{connection}\n[connection.workload]\n{workload}"
    )
}

type Roles = (&'static str, [Stack; 2]);

const ROLES: [Roles; 2] = [
    ("engine to kernel", [Stack::Engine, Stack::Kernel]),
    ("kernel to engine", [Stack::Kernel, Stack::Engine]),
];

type Trial = (&'static str, String, Expected);

impl Case {
    fn new(name: &str, (roles, stacks): Roles, scenario: String, expected: Expected) -> Self {
        let name = format!("{name}, {roles}");
        let interventions = Vec::new();
        Case { name, scenario, stacks, expected, interventions, needs: None, captured: true }
    }

    /// With something done to a host. Commands are done to hosts of the kernel's.
    fn at(mut self, milliseconds: u64, side: Side, what: Intervention) -> Self {
        let at = Instant::ZERO + Duration::from_millis(milliseconds);
        self.interventions.push((at, side, what));
        self
    }
}

/// The side of a stack.
fn side_of(stack: Stack, (_, stacks): Roles) -> Side {
    if stacks[0] == stack { Side::Client } else { Side::Server }
}

/// Every case in both roles.
pub(crate) fn all() -> Vec<Case> {
    let exact =
        |(name, scenario, expected): Trial| (name, scenario, Expected { exact: true, ..expected });
    let trials = transfers::clean().into_iter().map(exact).chain(transfers::hard());
    let mut all = transfers::long();
    for (name, scenario, expected) in trials {
        let of = |roles| Case::new(name, roles, scenario.clone(), expected);
        all.extend(ROLES.map(of));
    }
    all.extend(spoilt::all());
    all.extend(control::all());
    all
}
