//! netem with its own `rate`.
//!
//! netem computes when to send a packet as the packet arrives. If other packets are inside, the
//! transmission begins when the last of them has been sent, or when the packet's own delay ends,
//! whichever is later. Packets therefore keep their order, and a packet with a long delay holds up
//! the packets behind it. This equals a delay line in front of a transmitter.
//!
//! A change of the rate applies here to all packets that have not been sent. `tc qdisc change` does not
//! affect packets that are already inside.

use anabranch_config::part_without_parameters;

use super::{
    DescribeShaper, ETHERNET_HEADER, Gate, Model, Request, require_own_queue, require_packets,
};
use crate::impairment::JitterModel;
use crate::queue::Invalid;

part_without_parameters! {
    /// Selects the links of netem.
    pub struct NetemConfig;
    NAME = "netem";
    SUMMARY = "The delay, and then a transmitter (`tc qdisc add … netem delay … rate … limit …`). \
               The limit counts all packets inside the link.";
    SOURCE = "sch_netem of Linux";
}

impl DescribeShaper for NetemConfig {
    fn model(&self) -> Option<Model> {
        Some(Model { gate: Gate::Transmitter, delays_first: true, overhead: ETHERNET_HEADER })
    }

    fn check(&self, link: Request) -> Result<(), Invalid> {
        require_own_queue(&(*self).into(), link)?;
        require_packets(&(*self).into(), link.limit)
    }

    fn jitter_model(&self) -> Option<JitterModel> {
        Some(JitterModel::Fifo)
    }
}
