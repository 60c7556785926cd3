//! Multipath TCP as streams for Tokio programs.
//!
//! A [`Host`] is the engine of `anabranch-proto` with timers and an interface. Programs open and
//! accept [`Stream`]s, which implement [`AsyncRead`](tokio::io::AsyncRead) and
//! [`AsyncWrite`](tokio::io::AsyncWrite). Two kinds of interfaces exist:
//!
//! * **The network of a scenario** ([`Emulation`]). On a runtime with paused time, a test of your
//!   protocol runs over real Multipath TCP with real congestion, in virtual time, from one seed.
//! * **A device** ([`Device`]) in real time. `anabranch-live` has one for TUN.
//!
//! ```
//! use anabranch_host::Emulation;
//! use anabranch_sim::scenario::Scenario;
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
//!     name = "lte"
//!     rate = "2Mbit/s"
//!     delay = "40ms"
//!     limit = "100packets"
//!     [[connection]]
//!     scheduler = "ecf"
//!     workload = { kind = "bulk" }
//!     "#,
//!     "phone.toml",
//! )?;
//! let phone = Emulation::new(&scenario, 1)?;
//!
//! let listener = phone.server().listen(80)?;
//! let server = tokio::spawn(async move {
//!     let (mut stream, _client) = listener.accept().await?;
//!     stream.write_all(&vec![7; 1_000_000]).await?;
//!     stream.shutdown().await
//! });
//! let mut stream = phone.client().connect((phone.server().addresses()[0], 80)).await?;
//! let mut received = Vec::new();
//! stream.read_to_end(&mut received).await?;
//! server.await??;
//!
//! // 8 Mbit at 10 Mbit/s take 0.8 s, and slow start takes some round-trip times.
//! assert_eq!(received.len(), 1_000_000);
//! assert!((0.8..1.6).contains(&phone.now().as_secs_f64()));
//! # Ok(())
//! # }
//! ```
//!
//! `examples/echo.rs` has other options and a path that goes down. The options of connections are
//! those of the engine: [`ConnectionConfig`](anabranch_proto::config::ConnectionConfig).

mod device;
mod emulation;
mod host;
mod listener;
mod sockets;
mod stream;
mod world;

pub use device::{Alarm, Device};
pub use emulation::{Emulation, RealTime, Snapshot};
pub use host::Host;
pub use listener::{Incoming, Interceptor, Listener};
pub use sockets::ConnectionRecord;
pub use stream::Stream;
