//! Virtual time: hosts that run the engine, the network between them, and what is recorded.
//!
//! [`run`] executes a [`scenario::Scenario`] with a seed. The outcome is a pure function of
//! (version, scenario, seed): the digest in [`Outcome`] proves it.

mod application;
mod cross_traffic;
mod digest;
mod event_queue;
mod host;
mod middleboxes;
mod own_policies;
mod recorder;
pub mod scenario;
mod simulation;
mod topology;
pub mod workload;

pub use own_policies::{
    OwnCongestionControl, OwnPathManager, OwnPolicies, OwnPoliciesError, OwnScheduler, Owner,
};
pub use recorder::{Column, Table};
pub use simulation::{Options, Outcome, RunError, run};
pub use topology::Side;
