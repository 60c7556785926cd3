//! Contents of a connection's buffers. They follow from the connection's state, so they cost nothing
//! unless a driver asks.

use std::ops::Range;

use super::Connection;
use crate::view::Slot;

/// Contents of a connection's buffers at a host, as offsets in the streams. The first byte has
/// offset 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The peer has acknowledged all bytes before this offset. The send buffer begins here.
    pub acknowledged: u64,
    /// New data begins at this offset: all bytes before it were sent at least once.
    pub sent: u64,
    /// The application has written the bytes before this offset.
    pub written: u64,
    /// Slot of the subflow that carries the oldest unacknowledged data. If several do, the slowest
    /// counts.
    pub blocking: Option<Slot>,
    /// The application has read the bytes of the peer's stream before this offset. The receive buffer
    /// begins here.
    pub read: u64,
    /// All bytes of the peer's stream before this offset have arrived.
    pub delivered: u64,
    /// Bytes of the peer's stream that wait for earlier bytes, in ranges that do not touch.
    pub out_of_order: Vec<Range<u64>>,
}

impl Connection {
    /// Contents of the buffers.
    pub(crate) fn contents(&self) -> Contents {
        let (send, receive) = (&self.send.queue, &self.recv.queue);
        let offset = |number: u64| number - 1;
        let written = offset(send.end());
        let waiting = receive.out_of_order();
        Contents {
            acknowledged: offset(send.una()).min(written),
            sent: offset(send.nxt()).min(written),
            written,
            blocking: self.blocking_slot(),
            read: receive.bytes_read(),
            delivered: offset(receive.next_data()),
            out_of_order: joined(waiting.map(|range| offset(range.start)..offset(range.end))),
        }
    }
}

/// Ascending ranges, of which those that touch are one.
fn joined(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => all.push(range),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        assert_eq!(joined([3..5, 5..9, 12..14, 13..20].into_iter()), [3..9, 12..20]);
    }
}
