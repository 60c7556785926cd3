//! Whole runs over emulated networks. All tests are in one binary, because linking the engine and
//! the network takes long. Tests that count allocations have their own binary.

#[path = "../common/mod.rs"]
mod common;

mod bbr;
mod conservation;
mod cross_traffic;
mod custom_policies;
mod ecn;
mod failing_paths;
mod families;
mod faults;
mod goodput;
mod ledger;
mod linux_sockets;
mod middleboxes;
mod mtu;
mod path_managers;
mod policies;
mod queues;
mod routing;
mod shared_bottleneck;
mod stalls;
mod stepping;
mod theory;
mod topologies;
mod traces;
mod workloads;
