//! The next node to wake: a heap with one wake-up per node, indexed by node.

use anabranch_wire::Instant;

/// The earliest wake-up of each node. Of simultaneous wake-ups, the node with the lower number
/// comes first. The order of events therefore never depends on the history of the heap.
#[derive(Debug)]
pub struct EventQueue {
    /// Node numbers, as a binary heap by (time, number).
    heap: Vec<u32>,
    /// Position of each node in the heap.
    position: Vec<u32>,
    time: Vec<Instant>,
    /// The next wake-up and its node, if no heap is kept.
    next: (Instant, u32),
}

/// With at most this many nodes, a search is quicker than a heap.
const FEW: usize = 8;

impl EventQueue {
    /// A queue for `nodes` nodes without any wake-ups.
    pub fn new(nodes: usize) -> Self {
        let numbers = 0..nodes as u32;
        EventQueue {
            heap: numbers.clone().collect(),
            position: numbers.collect(),
            time: vec![Instant::FAR_FUTURE; nodes],
            next: (Instant::FAR_FUTURE, 0),
        }
    }

    /// The next wake-up and its node; [`Instant::FAR_FUTURE`] if there are no wake-ups.
    #[inline]
    pub fn peek(&self) -> (Instant, usize) {
        if self.time.len() <= FEW {
            return (self.next.0, self.next.1 as usize);
        }
        let Some(node) = self.heap.first() else { return (Instant::FAR_FUTURE, 0) };
        (self.time[*node as usize], *node as usize)
    }

    /// Replace the wake-up of `node` by `at`.
    #[inline]
    pub fn set(&mut self, node: usize, at: Option<Instant>) {
        let at = at.unwrap_or(Instant::FAR_FUTURE);
        let earlier = at < self.time[node];
        if at == self.time[node] {
            return;
        }
        self.time[node] = at;
        if self.time.len() <= FEW {
            self.next = self.search();
        } else {
            self.restore(node, earlier);
        }
    }

    /// The next wake-up among few.
    #[inline]
    fn search(&self) -> (Instant, u32) {
        let mut next = (Instant::FAR_FUTURE, 0);
        for (at, node) in self.time.iter().zip(0..) {
            if *at < next.0 {
                next = (*at, node);
            }
        }
        next
    }

    /// Restore the order of the heap: the wake-up of `node` has become earlier or later.
    fn restore(&mut self, node: usize, earlier: bool) {
        let position = self.position[node] as usize;
        if earlier {
            self.rise(position);
        } else {
            self.sink(position);
        }
    }

    fn precedes(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.heap[a], self.heap[b]);
        (self.time[a as usize], a) < (self.time[b as usize], b)
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.position[self.heap[a] as usize] = a as u32;
        self.position[self.heap[b] as usize] = b as u32;
    }

    fn rise(&mut self, mut at: usize) {
        while at > 0 && self.precedes(at, (at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.precedes(child, least) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.swap(at, least);
            at = least;
        }
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
            nodes in 1usize..12,
            changes in prop::collection::vec((0usize..12, prop::option::of(0u64..50)), 1..200),
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
