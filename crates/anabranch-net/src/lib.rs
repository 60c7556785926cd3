//! The emulated network: links, their queues and their impairments, sans-IO.
//!
//! Everything that a packet passes on its way is a [`Node`]: it takes packets and the time, and
//! gives packets back later, fewer, or in another order. Nodes hold no clock and no socket,
//! so the same link runs in virtual time and in wall time; and every random draw is a function
//! of a seed and a packet number ([`rng`]), so a run can be repeated to the nanosecond.

mod impairment;
mod link;
pub mod middlebox;
mod node;
mod opportunities;
mod propagation;
mod queue;
pub mod rng;
mod schedule;
mod serialiser;
mod slab;
mod trace;
pub mod units;

pub use impairment::{GilbertElliottConfig, JitterModel};
pub use link::{Capacity, Link, LinkConfig, LinkStats};
pub use node::Node;
pub use queue::{CoDelConfig, Discipline, RedConfig};
pub use schedule::{LinkChange, ScheduledChange, StateChange};
pub use trace::{Moment, OPPORTUNITY_OCTETS, Trace, TraceError};
