//! First in, first out. Packets that do not fit are dropped.

use anabranch_config::part_without_parameters;
use std::collections::VecDeque;

use super::{CheckQueue, Packet, QueueCapacity};
use crate::units::{QueueLimit, Rate};

/// A drop-tail queue. The limit counts waiting packets only. The packet in transmission has left
/// the queue, as in the device queues of netem and ns-3.
#[derive(Debug)]
pub(crate) struct DropTail {
    capacity: QueueCapacity,
    waiting: VecDeque<Packet>,
    bytes: u64,
}

impl DropTail {
    /// An empty queue in front of a transmitter with rate `rate`.
    pub(crate) fn new(limit: QueueLimit, rate: Rate) -> Self {
        DropTail { capacity: QueueCapacity::new(limit, rate), waiting: VecDeque::new(), bytes: 0 }
    }

    /// Set the transmitter's rate. A limit in time then corresponds to a different number of bytes.
    /// Waiting packets stay, even above a limit that has shrunk.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.capacity.set_rate(rate);
    }

    /// Enqueue `packet`; `false` if there is no room for it.
    pub(crate) fn enqueue(&mut self, packet: Packet) -> bool {
        let fits = self.has_room(packet);
        if fits {
            self.waiting.push_back(packet);
            self.bytes += u64::from(packet.bytes);
        }
        fits
    }

    /// Returns `true` if there is room for `packet`.
    pub(crate) fn has_room(&self, packet: Packet) -> bool {
        self.capacity.fits(self.waiting.len() as u64, self.bytes + u64::from(packet.bytes))
    }

    /// The next packet to transmit.
    pub(crate) fn dequeue(&mut self) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }

    /// The packets in the queue, the oldest first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Packet> + '_ {
        self.waiting.iter().copied()
    }

    /// Number of waiting packets.
    pub(crate) fn packets(&self) -> usize {
        self.waiting.len()
    }

    /// Bytes of waiting packets.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

part_without_parameters! {
    /// Selects the queue that drops packets only for lack of room.
    pub struct DropTailConfig;
    NAME = "drop_tail";
    SUMMARY = "Drops packets only for lack of room.";
    SOURCE = "the default of links";
}

impl CheckQueue for DropTailConfig {}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each packet of `sizes`, `true` if a queue with this limit at 8 Mbit/s accepts it.
    fn accepted(limit: &str, sizes: &[u32]) -> Vec<bool> {
        let rate = Rate::from_bits_per_second(8_000_000);
        let mut queue = DropTail::new(limit.parse().unwrap(), rate);
        let offer = |&bytes| queue.enqueue(Packet { number: 0, slot: 0, bytes });
        sizes.iter().map(offer).collect()
    }

    #[test]
    fn each_kind_of_limit_is_respected() {
        assert_eq!(accepted("2packets", &[1, 9_000, 1]), [true, true, false]);
        // The third packet does not fit, but the smaller fourth one does.
        assert_eq!(accepted("4kB", &[1_500, 1_500, 1_500, 1_000]), [true, true, false, true]);
        // 3 ms at 8 Mbit/s are 3000 bytes.
        assert_eq!(accepted("3ms", &[1_500, 1_500, 1]), [true, true, false]);
        assert_eq!(accepted("infinite", &[1_500; 5_000]), [true; 5_000]);
    }

    #[test]
    fn a_limit_in_time_has_room_for_one_full_size_packet() {
        assert_eq!(accepted("1ns", &[1_500, 1]), [true, false]);
    }

    #[test]
    fn packets_leave_in_the_order_of_arrival_and_free_their_room() {
        let rate = Rate::from_bits_per_second(8_000_000);
        let mut queue = DropTail::new(QueueLimit::Packets(2), rate);
        let packet = |number| Packet { number, slot: 0, bytes: 100 };
        assert!(queue.enqueue(packet(1)) && queue.enqueue(packet(2)));
        assert_eq!(queue.dequeue(), Some(packet(1)));
        assert!(queue.enqueue(packet(3)));
        assert_eq!((queue.packets(), queue.bytes()), (2, 200));
        assert_eq!([queue.dequeue(), queue.dequeue()], [Some(packet(2)), Some(packet(3))]);
        assert_eq!((queue.dequeue(), queue.bytes()), (None, 0));
    }

    #[test]
    fn a_limit_in_time_follows_the_rate() {
        let mut queue =
            DropTail::new("3ms".parse().unwrap(), Rate::from_bits_per_second(8_000_000));
        queue.set_rate(Rate::from_bits_per_second(16_000_000));
        let mut offer = || queue.enqueue(Packet { number: 0, slot: 0, bytes: 1_500 });
        // 3 ms at 16 Mbit/s are 6000 bytes.
        assert_eq!([offer(), offer(), offer(), offer(), offer()], [true, true, true, true, false]);
    }
}
