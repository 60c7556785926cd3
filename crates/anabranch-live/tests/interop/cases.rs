//! What is tried: scenarios, and what each host is to count.

mod control;
mod spoilt;
mod transfers;

use anabranch_live::{Action, Intervention, Stack};
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
    /// What is done to the hosts.
    pub(crate) interventions: Vec<Intervention>,
    /// Is it skipped where this kernel or its nftables cannot strip options?
    pub(crate) needs_nftables: bool,
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
    /// Bytes that the application writes, at most: fewer than the workload has, if it is
    /// closed before.
    pub(crate) most_bytes: Option<u64>,
    /// Whose DATA_FIN comes first?
    pub(crate) first_data_fin: Option<Side>,
    /// Do the mappings have checksums?
    pub(crate) checksums: bool,
    /// Counters of the kernel's that are to move, by name; so often, where a name stands several
    /// times.
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
    most_bytes: None,
    first_data_fin: None,
    checksums: false,
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
const MORE: &str = "kind = \"bulk\"\nsize = \"3MB\"\n";

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
        Case {
            name,
            scenario,
            stacks,
            expected,
            interventions,
            needs_nftables: false,
            captured: true,
        }
    }

    /// With something done to a host. Commands are done to hosts of the kernel's.
    fn at(mut self, milliseconds: u64, side: Side, what: Action) -> Self {
        let at = Instant::ZERO + Duration::from_millis(milliseconds);
        self.interventions.push(Intervention { at, side, what });
        self
    }

    /// With a shell's command, which concerns the host of the kernel's.
    fn command(self, milliseconds: u64, command: &str) -> Self {
        let kernel = if self.stacks[0] == Stack::Kernel { Side::Client } else { Side::Server };
        self.at(milliseconds, kernel, Action::Command(command.to_owned()))
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
