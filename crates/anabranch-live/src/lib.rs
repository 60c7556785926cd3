//! Real time, on Linux: the same scenario with hosts that are this kernel's, the engine's, or one
//! of each, over the same emulated links.
//!
//! A host of the kernel's is a network namespace with its sockets in it. Every packet that leaves
//! or enters it does so through a veth pair whose other end this process holds, and passes the
//! links and middleboxes of `anabranch-net`, driven by the monotonic clock. None of it needs
//! privilege where user namespaces are allowed: [`enter`] starts the command again inside one.

#![cfg(target_os = "linux")]

mod clock;
mod counters;
mod doctor;
mod kernel_host;
mod kernel_setup;
mod kernel_stats;
mod lateness;
mod namespace;
mod network;
mod run;
mod script_stack;
mod settings;
mod super_segment;
mod sys;
mod tun_host;
pub mod tun_throughput;
mod wakefulness;

pub use counters::HostCounters;
pub use doctor::{Capability, probe};
pub use lateness::Lateness;
pub use namespace::{enter, is_inside};
pub use run::{Action, Intervention, LiveError, Options, Outcome, Stack, run};
pub use script_stack::KernelStack;
pub use sys::stop_preferring;
