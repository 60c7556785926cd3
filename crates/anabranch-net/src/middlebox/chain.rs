//! The middleboxes of one path, in a row.

use std::collections::VecDeque;

use anabranch_wire::{Instant, Packet, SocketAddress};

use super::{Middlebox, Side};

/// A middlebox and the period in which it is active.
#[derive(Debug)]
pub struct Placed {
    /// The middlebox.
    pub middlebox: Box<dyn Middlebox>,
    /// Start of the period. Packets bypass the middlebox before it.
    pub from: Instant,
    /// End of the period. Packets that the middlebox still holds leave it later.
    pub until: Instant,
}

/// Several middleboxes in a row, which act as one middlebox. The first one is next to the client.
#[derive(Debug)]
pub struct Chain {
    boxes: Vec<Placed>,
    out: VecDeque<(Side, Packet)>,
}

impl Chain {
    /// A chain of these middleboxes, the first next to the client.
    pub fn new(boxes: Vec<Placed>) -> Self {
        Chain { boxes, out: VecDeque::new() }
    }

    /// Pass a packet on to the next active middlebox, searching from index `next`. If there is
    /// none, the packet leaves the chain.
    fn hand_over(&mut self, now: Instant, towards: Side, next: Option<usize>, packet: Packet) {
        let mut index = next;
        while let Some(place) = index.and_then(|index| self.boxes.get_mut(index)) {
            if place.from <= now && now < place.until {
                return place.middlebox.handle_packet(now, towards, packet);
            }
            index = after(index, towards);
        }
        self.out.push_back((towards, packet));
    }

    /// Move packets from middlebox to middlebox until all have left the chain or are held.
    fn settle(&mut self, now: Instant) {
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for index in 0..self.boxes.len() {
                while let Some((towards, packet)) = self.boxes[index].middlebox.poll_transmit(now) {
                    quiet = false;
                    self.hand_over(now, towards, after(Some(index), towards), packet);
                }
            }
        }
    }
}

fn after(index: Option<usize>, towards: Side) -> Option<usize> {
    match towards {
        Side::Server => index.map(|index| index + 1),
        Side::Client => index.and_then(|index| index.checked_sub(1)),
    }
}

impl Middlebox for Chain {
    fn handle_packet(&mut self, now: Instant, towards: Side, packet: Packet) {
        let first = match towards {
            Side::Server => Some(0),
            Side::Client => self.boxes.len().checked_sub(1),
        };
        self.hand_over(now, towards, first, packet);
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        for place in &mut self.boxes {
            place.middlebox.handle_timeout(now);
        }
        self.settle(now);
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Side, Packet)> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        // Packets that were not collected yet are due immediately.
        let uncollected = self.out.front().map(|_| Instant::ZERO);
        let boxes = self.boxes.iter().filter_map(|place| place.middlebox.poll_timeout());
        boxes.chain(uncollected).min()
    }

    fn original(&self, public: SocketAddress) -> Option<SocketAddress> {
        let translated =
            self.boxes.iter().rev().fold(public, |endpoint, place| {
                place.middlebox.original(endpoint).unwrap_or(endpoint)
            });
        (translated != public).then_some(translated)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, at, site};
    use super::super::{
        BlackholeOptionsConfig, BlackholedSyns, BuildMiddlebox, NatConfig, RewriteIsnConfig,
    };
    use super::*;
    use anabranch_wire::Segment;

    fn placed(config: &dyn BuildMiddlebox, seed: u64, from: u64, until: u64) -> Placed {
        Placed { middlebox: config.build(site(seed)), from: at(from), until: at(until) }
    }

    fn cross(chain: &mut Chain, now: Instant, towards: Side, segment: Segment) -> Vec<Segment> {
        chain.handle_packet(now, towards, segment.into());
        let out = std::iter::from_fn(|| chain.poll_transmit(now));
        out.map(|(way, packet)| match packet {
            Packet::Tcp(segment) if way == towards => segment.into_inner(),
            other => panic!("{other:?}"),
        })
        .collect()
    }

    #[test]
    fn packets_bypass_a_box_outside_its_period() {
        let all = BlackholeOptionsConfig { syns: BlackholedSyns::All };
        let hole = placed(&all, 1, 10, 20);
        let mut chain = Chain::new(vec![hole]);
        let syn = Talk::v4().syn();
        let arrives = [9, 10, 19, 20]
            .map(|ms| cross(&mut chain, at(ms), Side::Server, syn.clone()) == [syn.clone()]);
        assert_eq!(arrives, [true, false, false, true]);
    }

    #[test]
    fn packets_cross_the_boxes_in_reverse_order_on_the_way_back() {
        let mut chain = Chain::new(vec![
            placed(&NatConfig::default(), 1, 0, 99),
            placed(&RewriteIsnConfig::default(), 2, 0, 99),
            placed(&NatConfig::default(), 3, 0, 99),
        ]);
        let talk = Talk::v4();
        let syn = cross(&mut chain, at(1), Side::Server, talk.syn()).remove(0);
        assert_ne!((syn.source, syn.header.seq), (talk.syn().source, talk.syn().header.seq));
        assert_eq!(chain.original(syn.source), Some(talk.syn().source));
        let mut answer = talk.syn_ack();
        answer.destination = syn.source;
        answer.header.ack = syn.header.seq + 1;
        let back = cross(&mut chain, at(2), Side::Client, answer).remove(0);
        assert_eq!(back.destination, talk.syn().source);
        assert_eq!(back.header.ack, talk.syn_ack().header.ack);
    }
}
