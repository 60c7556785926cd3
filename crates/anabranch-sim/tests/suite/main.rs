//! Whole runs over emulated networks. One binary, since each would link the engine and the network;
//! what counts allocations is beside it.

#[path = "../common/mod.rs"]
mod common;

mod conservation;
mod cross_traffic;
mod ecn;
mod families;
mod faults;
mod middleboxes;
mod own_policies;
mod path_managers;
mod policies;
mod shared_bottleneck;
mod theory;
mod traces;
mod workloads;
