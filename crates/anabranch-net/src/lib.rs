//! An emulated network without I/O: links with queues and impairments, and middleboxes.
//!
//! Every element of a path is a [`Node`]. It takes packets and the time. It returns packets later,
//! changed or reordered, or it drops them. A [`Network`] connects links and middleboxes into paths
//! between two hosts. No element holds a clock or a socket, so the same network runs in virtual
//! time and in real time. Every random draw is a function of a seed and a packet number ([`rng`]),
//! so runs are reproducible to the nanosecond.
//!
//! Driving a link by hand:
//!
//! ```
//! use anabranch_net::{Link, LinkConfig, Node, units::Rate};
//! use anabranch_wire::{Datagram, Duration, Instant, Piece, SocketAddress};
//!
//! let rate: Rate = "8Mbit/s".parse()?;
//! let config = LinkConfig::new(rate, Duration::from_millis(10), "100packets".parse()?);
//! let mut link = Link::new(config, 1);
//!
//! // 1000 bytes on the wire: 20 of IPv4, 8 of UDP, 972 of payload.
//! let packet = Datagram {
//!     source: SocketAddress::new([10, 0, 0, 1].into(), 5000),
//!     destination: SocketAddress::new([10, 0, 0, 2].into(), 5000),
//!     payload: Piece::pattern(0, 972).into(),
//!     ecn: 0,
//! };
//! link.handle_packet(Instant::ZERO, packet.into());
//! assert!(link.poll_transmit(Instant::ZERO).is_none());
//!
//! // 8000 bit at 8 Mbit/s take 1 ms, and the propagation takes 10 ms.
//! let arrival = link.poll_timeout().ok_or("the link holds a packet")?;
//! assert_eq!(arrival.as_millis(), 11);
//! link.handle_timeout(arrival);
//! assert!(link.poll_transmit(arrival).is_some());
//! assert_eq!(link.stats().packets_delivered, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod delay_line;
mod event_queue;
mod impairment;
mod link;
pub mod middlebox;
pub mod network;
mod node;
mod opportunities;
pub mod queue;
pub mod rng;
mod schedule;
mod serialiser;
pub mod shaper;
mod side;
mod slab;
mod trace;

pub use anabranch_config::units;
pub use event_queue::EventQueue;
pub use impairment::{GilbertElliottConfig, JitterModel, LossTrace};
pub use link::{Capacity, Link, LinkConfig, LinkStats, Mtu, Occupancy, PacketPlace};
pub use network::Network;
pub use node::Node;
pub use queue::{CoDelConfig, Discipline, DropTailConfig, RedConfig};
pub use schedule::{LinkChange, ScheduledChange, StateChange};
pub use serialiser::WORK_PER_BYTE;
pub use shaper::ShaperConfig;
pub use side::Side;
pub use trace::{Moment, OPPORTUNITY_BYTES, Trace, TraceError};
