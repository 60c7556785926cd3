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

/// What a run loop with another clock needs.
pub mod driver {
    pub use crate::application::Application;
    pub use crate::cross_traffic::CrossTraffic;
    pub use crate::host::Host;
    pub use crate::middleboxes::chains;
    pub use crate::recorder::{Hosts, Observed, Progress, Recorder};
    pub use crate::simulation::CaptureFile;
    pub use crate::topology::{
        Hop, Routes, client_address, path_of, port_of, server_address, server_addresses,
    };
}
