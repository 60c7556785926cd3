//! What a capture shows of Multipath TCP: connections and subflows, every segment with its data
//! sequence number, and what breaks RFC 8684.
//!
//! A capture is read twice. The first reading finds out which packets were captured at several
//! places, and where each subflow was seen best ([`survey`]); the second follows each subflow from
//! that one place ([`analyser`]). Nothing here knows the engine: what is checked is the RFC.

mod analyser;
mod capture;
mod connection;
mod data;
mod handshake;
mod input;
mod keys;
mod options;
mod ranges;
mod report;
mod rules;
mod signals;
mod stream;
mod subflow;
mod survey;
mod tables;
mod watch;

pub use analyser::{AnalyseError, Outcome, analyse};
pub use capture::Damage;
pub use input::Input;
pub use rules::Rule;
pub use tables::{Column, Table};
