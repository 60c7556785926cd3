//! The next node to wake, with one wake-up for each node.

use anabranch_wire::Instant;

/// The earliest wake-up of each node. Of simultaneous wake-ups, the node with the lower number
/// comes first. The order of events therefore never depends on the history of the queue.
#[derive(Debug)]
pub struct EventQueue {
    /// Wake-up of each node, padded to a power of two with [`Instant::FAR_FUTURE`].
    time: Vec<Instant>,
    next: WakeUp,
    /// Tournament tree. The final is at index 1. The winner of match n, which is the earlier wake-up, plays
    /// in match n / 2. The second half pairs neighbouring nodes.
    matches: Vec<[WakeUp; 2]>,
}

/// A wake-up and its node.
#[derive(Clone, Copy, Debug)]
struct WakeUp {
    at: Instant,
    node: u32,
}

/// With at most this many nodes, a search is quicker than a tournament.
const FEW: usize = 8;

impl EventQueue {
    /// A queue for `nodes` nodes without any wake-ups.
    pub fn new(nodes: usize) -> Self {
        let places = nodes.next_power_of_two();
        let none = WakeUp { at: Instant::FAR_FUTURE, node: 0 };
        let matches = if places > FEW { vec![[none; 2]; places] } else { Vec::new() };
        EventQueue { time: vec![none.at; places], next: none, matches }
    }

    /// The next wake-up and its node; [`Instant::FAR_FUTURE`] if there are no wake-ups.
    #[inline]
    pub fn peek(&self) -> (Instant, usize) {
        (self.next.at, self.next.node as usize)
    }

    /// Replace the wake-up of `node` by `at`.
    #[inline]
    pub fn set(&mut self, node: usize, at: Option<Instant>) {
        let at = at.unwrap_or(Instant::FAR_FUTURE);
        if at == self.time[node] {
            return;
        }
        self.time[node] = at;
        self.next = if self.matches.is_empty() { self.search() } else { self.replay(node, at) };
    }

    /// The next wake-up among few.
    #[inline]
    fn search(&self) -> WakeUp {
        let mut next = WakeUp { at: Instant::FAR_FUTURE, node: 0 };
        for (at, node) in self.time.iter().zip(0..) {
            if *at < next.at {
                next = WakeUp { at: *at, node };
            }
        }
        next
    }

    /// Repeat the matches in which `node` takes part, now with this wake-up. Returns the next wake-up.
    #[inline(never)]
    fn replay(&mut self, node: usize, at: Instant) -> WakeUp {
        let mut place = self.matches.len() + node;
        let mut winner = WakeUp { at, node: node as u32 };
        while place > 1 {
            // Lower numbers are on the left.
            let pair = &mut self.matches[place / 2];
            pair[place % 2] = winner;
            let [left, right] = *pair;
            winner = if right.at < left.at { right } else { left };
            place /= 2;
        }
        winner
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_go_to_the_lower_number() {
        let mut queue = EventQueue::new(3);
        let at = Instant::from_nanos(7);
        queue.set(2, Some(at));
        queue.set(1, Some(at));
        assert_eq!(queue.peek(), (at, 1));
        queue.set(1, None);
        assert_eq!(queue.peek(), (at, 2));
    }

    proptest! {
        #[test]
        fn the_queue_agrees_with_a_linear_search(
            nodes in 1usize..40,
            changes in prop::collection::vec((0usize..40, prop::option::of(0u64..50)), 1..200),
        ) {
            let mut queue = EventQueue::new(nodes);
            let mut times = vec![Instant::FAR_FUTURE; nodes];
            for (node, at) in changes {
                let node = node % nodes;
                let at = at.map(Instant::from_nanos);
                queue.set(node, at);
                times[node] = at.unwrap_or(Instant::FAR_FUTURE);
                let expected = times.iter().enumerate().map(|(n, t)| (*t, n)).min().unwrap();
                prop_assert_eq!(queue.peek(), expected);
            }
        }
    }
}
