//! Run scenarios in real time on Linux, with the kernel's Multipath TCP, the engine, or one of
//! each.
//!
//! [`run`] takes a scenario of `anabranch-sim` and returns the same tables. Each kernel host is a
//! network namespace with its own sockets. Its packets pass through a veth pair to this process,
//! which drives the links and middleboxes of `anabranch-net` by the monotonic clock. Where user
//! namespaces are allowed, none of this needs root: [`enter`] restarts the command inside one.
//! [`probe`] checks what this host supports.
//!
//! A [`Shell`] runs any program over the engine and the links of a scenario. A [`TunDevice`] is the
//! interface of a Rust program's own `anabranch_host::Host`.
//!
//! ```no_run
//! use anabranch_live::{HostStack, Options, enter, is_inside, run};
//! use anabranch_sim::scenario::Scenario;
//!
//! if !is_inside() {
//!     let command: Vec<String> = std::env::args().collect();
//!     std::process::exit(enter(&command)?.code().unwrap_or(1));
//! }
//! let scenario = Scenario::from_toml(&std::fs::read_to_string("wifi_3g.toml")?, "wifi_3g.toml")?;
//! let options = Options::new(HostStack::Engine, HostStack::Kernel);
//! let outcome = run(&scenario, 1, options)?;
//! println!("{} packets; {:?}", outcome.packets, outcome.lateness);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg(target_os = "linux")]

mod catch_up;
mod clock;
mod counters;
mod doctor;
mod idle_spinner;
mod kernel_host;
mod kernel_setup;
mod kernel_stats;
mod lateness;
mod namespace;
mod network_changes;
pub mod qdisc;
mod run;
mod script_stack;
mod settings;
mod shell;
mod super_segment;
mod sys;
mod tun_device;
mod tun_host;
pub mod tun_throughput;

pub use counters::HostCounters;
pub use doctor::{Capability, probe};
pub use lateness::Lateness;
pub use namespace::{enter, is_inside};
pub use network_changes::NetworkChanges;
pub use run::{Action, HostStack, Intervention, LiveError, LiveOutcome, Options, run};
pub use script_stack::KernelStack;
pub use settings::objection;
pub use shell::{PathState, Shell, ShellOptions, ShellOutcome, Terminal, exec_program, is_sandbox};
pub use sys::{stop_preferring, unacknowledged};
pub use tun_device::TunDevice;
