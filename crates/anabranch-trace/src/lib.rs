//! Analyse captures of Multipath TCP: connections, subflows, data, and violations of RFC 8684.
//!
//! [`analyse`] reads one or several captures (pcap or pcapng) and returns tables: connections,
//! subflows, every segment with its data sequence number, events, violations and files. Each
//! violation names a [`Rule`] and its clause in the RFC. The crate does not know the engine,
//! because it judges the engine's captures as well.
//!
//! Captures are read twice. The first pass finds the packets that were captured at several places,
//! and the views of each subflow that complement each other. The second pass follows each subflow
//! from these views.
//!
//! ```
//! use anabranch_sim::{Capture, Options, run, scenario::Scenario};
//! use anabranch_trace::{Input, analyse};
//!
//! // A capture of a short simulation; `Input::file` reads one from a file.
//! let scenario = Scenario::from_toml(
//!     r#"
//!     name = "short"
//!     duration = "2s"
//!     [[path]]
//!     name = "wifi"
//!     rate = "8Mbit/s"
//!     delay = "10ms"
//!     limit = "54packets"
//!     [[connection]]
//!     workload = { kind = "bulk", size = "100kB" }
//!     "#,
//!     "short.toml",
//! )?;
//! let mut capture = Vec::new();
//! run(&scenario, 1, Options::default().capture(Capture::new(&mut capture)))?;
//!
//! let found = analyse(&[Input::bytes("short.pcapng", &capture)], &mut |_, _| true)?;
//! let rows = |name| found.tables.iter().find(|table| table.name == name).unwrap().rows();
//! assert_eq!(rows("connections"), 1);
//! assert_eq!(rows("violations"), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acknowledged;
mod analyser;
mod analysis;
mod capture;
mod connection;
mod copies;
mod data;
mod error;
mod handshake;
mod input;
mod keys;
mod options;
mod ranges;
mod report;
mod rules;
mod signals;
mod sketch;
mod stream;
mod subflow;
mod survey;
mod tables;
mod watch;
mod words;

pub use anabranch_table::{Column, Table};
pub use analysis::analyse;
pub use capture::{Damage, begins_capture};
pub use error::AnalyseError;
pub use input::Input;
pub use report::Analysis;
pub use rules::Rule;
