//! The cases: scenarios, and the expected counters of each host.

mod control;
mod spoilt;
mod transfers;

use anabranch_live::{Action, HostStack, Intervention};
use anabranch_sim::Side;
use anabranch_wire::{Duration, Instant};

/// A case: one run.
pub(crate) struct Case {
    /// Name of the case.
    pub(crate) name: String,
    /// The scenario, in TOML.
    pub(crate) scenario: String,
    /// TCP stacks of client and server.
    pub(crate) stacks: [HostStack; 2],
    /// Expected result.
    pub(crate) expected: Expected,
    /// Actions on the hosts during the run.
    pub(crate) interventions: Vec<Intervention>,
    /// Whether the case is skipped if this kernel or its nftables cannot strip options.
    pub(crate) needs_nftables: bool,
    /// Whether a capture is kept and checked.
    pub(crate) captured: bool,
}

/// The expected result of a run.
#[derive(Clone, Copy)]
pub(crate) struct Expected {
    /// Whether both hosts close the connection.
    pub(crate) completes: bool,
    /// Whether a middlebox changes bytes of the stream.
    pub(crate) changed: bool,
    /// Whether the connection uses Multipath TCP.
    pub(crate) mptcp: bool,
    /// The paths that carry data.
    pub(crate) carried: Carried,
    /// Whether packets are marked and their sender slows down.
    pub(crate) marked: bool,
    /// Maximum number of bytes that the application writes. Set if the connection is closed before
    /// the workload ends.
    pub(crate) most_bytes: Option<u64>,
    /// The host that sends the first DATA_FIN.
    pub(crate) first_data_fin: Option<Side>,
    /// Whether the mappings have checksums.
    pub(crate) checksums: bool,
    /// Kernel counters that must move, by name. A repeated name states how often.
    pub(crate) kernel: &'static [&'static str],
    /// Error counters that may move.
    pub(crate) tolerated: &'static [&'static str],
    /// Engine counters that must move.
    pub(crate) engine: &'static [&'static str],
    /// Counters of both that must remain 0.
    pub(crate) still: &'static [&'static str],
    /// Reasons that resets in the capture must state, at least once each.
    pub(crate) resets: &'static [&'static str],
    /// Reason of the reset that ends a subflow before the DATA_FIN, unless both hosts end it with FINs.
    pub(crate) ends: Option<&'static str>,
    /// Whether each host counts as many options as the other sends.
    pub(crate) exact: bool,
}

/// The paths that must carry the data.
#[derive(Clone, Copy)]
pub(crate) enum Carried {
    /// Each path carries some of it.
    ByAll,
    /// Any path may carry it.
    ByAny,
    /// This path carries more than three quarters of it.
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
    ends: None,
    exact: false,
};

const FAST: &str = "rate = \"20Mbit/s\"\ndelay = \"5ms\"\nlimit = \"100packets\"\n";
const SLOW: &str = "rate = \"10Mbit/s\"\ndelay = \"15ms\"\nlimit = \"100packets\"\n";
/// Linux accepts and opens no subflows after the application has closed. A small send buffer
/// prevents the application from writing all data at once.
const DOWN: &str = "direction = \"download\"\nsend_buffer = \"100kB\"\n";
const UP: &str = "direction = \"upload\"\nsend_buffer = \"100kB\"\n";
const BULK: &str = "kind = \"bulk\"\nsize = \"1MB\"\n";
const MORE: &str = "kind = \"bulk\"\nsize = \"3MB\"\n";
const MOST: &str = "kind = \"bulk\"\nsize = \"6MB\"\n";

fn path(name: &str, settings: &str) -> String {
    format!("[[path]]\nname = \"{name}\"\n{settings}\n")
}

/// Two paths. The second one uses IPv6, so the server announces its address there.
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

type Roles = (&'static str, [HostStack; 2]);

const ROLES: [Roles; 2] = [
    ("engine to kernel", [HostStack::Engine, HostStack::Kernel]),
    ("kernel to engine", [HostStack::Kernel, HostStack::Engine]),
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

    /// Add an action on a host. Commands apply to kernel hosts.
    fn at(mut self, milliseconds: u64, side: Side, what: Action) -> Self {
        let at = Instant::ZERO + Duration::from_millis(milliseconds);
        self.interventions.push(Intervention { at, side, what });
        self
    }

    /// Add a shell command. It applies to the kernel host.
    fn command(self, milliseconds: u64, command: &str) -> Self {
        let kernel = if self.stacks[0] == HostStack::Kernel { Side::Client } else { Side::Server };
        self.at(milliseconds, kernel, Action::Command(command.to_owned()))
    }
}

/// The side that uses `stack`.
fn side_of(stack: HostStack, (_, stacks): Roles) -> Side {
    if stacks[0] == stack { Side::Client } else { Side::Server }
}

/// All cases in both roles.
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
