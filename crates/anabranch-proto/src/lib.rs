//! A Multipath TCP engine (RFC 8684) with its own TCP stack, sans-I/O.
//!
//! An [`Endpoint`] is a host: it holds all connections, listeners and addresses. It owns no socket,
//! clock or thread, so a simulator, a test or a program with a TUN device can drive it. The driver
//! hands in segments and the time ([`Endpoint::handle_segment`], [`Endpoint::handle_timeout`]), and
//! pulls out segments, events and the next deadline ([`Endpoint::poll_transmit`],
//! [`Endpoint::poll_event`], [`Endpoint::poll_timeout`]). After any `&mut` call, pull until both
//! queues are empty, then read the deadline.
//!
//! ```
//! use anabranch_proto::config::ConnectionConfig;
//! use anabranch_proto::{Endpoint, Event};
//! use anabranch_wire::{Instant, SocketAddress};
//!
//! let (here, there) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
//! let mut client = Endpoint::new(vec![here], [1; 32]); // the second argument is the host's secret
//! let mut server = Endpoint::new(vec![there], [2; 32]);
//! server.listen(80, ConnectionConfig::default());
//!
//! let now = Instant::ZERO;
//! let to = SocketAddress::new(there, 80);
//! let connection = client.connect(now, here, to, ConnectionConfig::default())?;
//! client.send(connection, "hello")?;
//!
//! // The network between the two hosts takes no time here.
//! let mut received = Vec::new();
//! loop {
//!     if let Some(segment) = client.poll_transmit(now) {
//!         server.handle_segment(now, segment);
//!     } else if let Some(segment) = server.poll_transmit(now) {
//!         client.handle_segment(now, segment);
//!     } else {
//!         break;
//!     }
//!     while let Some((accepted, event)) = server.poll_event() {
//!         if event == Event::Readable {
//!             received.extend(server.recv(accepted).map_or(vec![], |payload| payload.to_vec()));
//!         }
//!     }
//! }
//! assert_eq!(received, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/two_engines.rs` adds delay, timers and a second path. Applications choose policies in
//! [`config::ConnectionConfig`], and can bring their own: [`congestion`] controls, [`scheduler`]s,
//! [`remedy`]s for a full receive window, and [`path_manager`]s. Policies see copies of the
//! subflows' state ([`view`]) and return decisions.
//!
//! Imports inside the crate go in one direction: [`view`] and the round-trip time estimator ←
//! policies ← `subflow` (TCP) ← `connection` (the data level) ← `endpoint`.

mod activity;
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
mod reassembly;
pub mod remedy;
mod rtt;
pub mod scheduler;
mod stats;
mod subflow;
mod timers;
mod trace;
pub mod view;

pub use activity::{Activity, Reason};
pub use connection::{ArrivedData, Contents};
pub use counters::Counters;
pub use endpoint::{ConnectionId, Endpoint, PortSelection};
pub use error::{ConnectError, ConnectionError, SendError};
pub use event::Event;
pub use rtt::RttEstimator;
pub use stats::{ConnectionStats, Fallback, SubflowStats};
pub use trace::{TraceEvent, TraceKind};
