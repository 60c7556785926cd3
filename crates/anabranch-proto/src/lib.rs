//! A Multipath TCP engine (RFC 8684) on a complete TCP, sans-IO.
//!
//! Nothing here owns a socket, a clock or a thread. A driver hands in segments and the time
//! ([`Endpoint::handle_segment`], [`Endpoint::handle_timeout`]) and pulls out segments, the next
//! deadline and events ([`Endpoint::poll_transmit`], [`Endpoint::poll_timeout`],
//! [`Endpoint::poll_event`]). After any `&mut` call, pull until empty, then read the deadline.
//!
//! Floors, imports go down only: [`view`] and the policies ([`congestion`], [`scheduler`],
//! [`remedy`], [`path_manager`]) ← `subflow` (TCP) ← `connection` (data level) ← `endpoint`.

mod bottleneck;
pub mod config;
pub mod congestion;
mod connection;
mod counters;
mod endpoint;
mod error;
mod event;
mod flood;
mod keys;
pub mod path_manager;
pub mod platform;
pub mod policy;
mod reassembly;
pub mod remedy;
mod rtt;
pub mod scheduler;
mod subflow;
mod timers;
mod trace;
pub mod view;

pub use connection::{ConnectionStats, Fallback, SubflowStats};
pub use counters::Counters;
pub use endpoint::{ConnectionId, Endpoint};
pub use error::{ConnectError, ConnectionError, SendError};
pub use event::Event;
pub use rtt::RttEstimator;
pub use trace::{TraceEvent, TraceKind};
