//! Simulate Multipath TCP in virtual time: hosts, applications, paths, and tables of results.
//!
//! A [`scenario::Scenario`] describes paths, connections and workloads. It is read from TOML or
//! built in code. [`run`] executes it with a seed. The [`RunOutcome`] holds tables, counters and a
//! digest of all packets. Version, scenario and seed determine it completely.
//!
//! ```
//! use anabranch_sim::{Options, run, scenario::Scenario};
//!
//! let scenario = Scenario::from_toml(
//!     r#"
//!     name = "phone"
//!     duration = "60s"
//!     [[path]]
//!     name = "wifi"
//!     rate = "8Mbit/s"
//!     delay = "10ms"
//!     limit = "54packets"
//!     [[path]]
//!     name = "3g"
//!     rate = "2Mbit/s"
//!     delay = "75ms"
//!     limit = "334packets"
//!     [[connection]]
//!     workload = { kind = "bulk" }
//!     "#,
//!     "phone.toml", // the file name in error messages
//! )?;
//! let outcome = run(&scenario, 1, Options::default())?;
//!
//! let connections = outcome.table("connections").ok_or("every run has it")?;
//! let delivered = connections.column("bytes_delivered").ok_or("the table has it")?.numbers();
//! let goodput_mbps = delivered[0] as f64 * 8e-6 / outcome.end.as_secs_f64();
//! assert!(goodput_mbps > 8.0, "more than WiFi alone: {goodput_mbps:.1} Mbit/s");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The examples are `simulator.rs` (several runs and a table), `my_scheduler.rs` and
//! `my_congestion_control.rs` (user-defined policies, passed through [`CustomPolicies`]).

mod app;
mod capture;
mod cross_traffic;
mod custom_policies;
mod digest;
mod error;
mod host;
mod inspection;
mod ledger;
pub mod metrics;
mod network;
mod recorder;
mod run_loop;
pub mod scenario;
mod simulation;
mod stalls;
mod states;
mod statistics;
mod topology;
pub mod workload;

pub use anabranch_net::Side;
pub use anabranch_table::{Column, Table};
pub use capture::Capture;
pub use custom_policies::{
    CustomCongestionControl, CustomPathManager, CustomPolicies, CustomPoliciesError,
    CustomScheduler, Owner, PathNames,
};
pub use error::RunError;
pub use recorder::empty_tables;
pub use run_loop::{Options, RunOutcome};
pub use simulation::{Simulation, run};

/// `cargo test` runs the Rust code of the page about policies.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/policies/your-own.md")]
struct YourCustomPolicy;

/// Building blocks for run loops with another clock.
pub mod driver {
    pub use crate::app::App;
    pub use crate::capture::CaptureFile;
    pub use crate::host::{AddressChange, EngineHost, address_changes, connection_config, secret};
    pub use crate::inspection::Inspection;
    pub use crate::network::network;
    pub use crate::recorder::Recorder;
    pub use crate::statistics::{
        ConnectionProgress, ConnectionTotals, FallbackReason, Hosts, Observed, SubflowKey,
        SubflowTotals,
    };
    pub use crate::topology::{
        client_address, client_address_in, path_of, port_of, server_address, server_address_in,
        server_addresses,
    };
}
