//! The peer's window for this host's data on a subflow.

/// Edges are subflow offsets: of the first byte that may not be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendWindow {
    /// The edge that counts.
    edge: u64,
    /// The edge that the peer advertised last.
    advertised: u64,
    /// Sequence offset of the segment that advertised it. RFC 9293 §3.3.1: SND.WL1. There is no need
    /// of SND.WL2, which is never above SND.UNA.
    from: u64,
    /// Largest window advertised, in bytes.
    largest: u32,
    /// Effective window of a host that ignores smaller windows, in bytes.
    kept: u32,
    /// The window advertised last belongs to the connection.
    shared: bool,
    /// It was 0.
    shut: bool,
}

/// A window as a segment advertises it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advertised {
    /// Offset of the segment's sequence number.
    pub(super) seq: u64,
    /// Offset that it acknowledges, which is not below SND.UNA.
    pub(super) ack: u64,
    /// It acknowledges something new.
    pub(super) acknowledges: bool,
    /// Bytes from there on.
    pub(super) window: u64,
    /// The window belongs to the connection: all of its subflows advertise it.
    pub(super) shared: bool,
}

impl SendWindow {
    /// Apply an advertised window. TCP's window is that of the newest segment, and may shrink (RFC
    /// 9293 §3.10.7.4, §3.8.6). A shared window only grows, because segments of different subflows
    /// overtake each other (RFC 8684 §3.3.5).
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    pub(super) fn update(&mut self, new: Advertised) {
        let edge = new.ack + new.window;
        let window = u32::try_from(new.window).unwrap_or(u32::MAX);
        if new.acknowledges || new.seq > self.from || window > self.kept || window == 0 {
            self.kept = window;
        }
        self.largest = self.largest.max(window);
        if self.from <= new.seq {
            self.from = new.seq;
            self.advertised = edge;
            (self.shared, self.shut) = (new.shared, new.window == 0);
        }
        self.edge = if new.shared { self.edge.max(edge) } else { self.advertised };
    }

    /// Effective window in bytes of a host that ignores a smaller window if the segment neither
    /// acknowledges nor carries anything new. RFC 9293 §3.10.7.4 accepts such windows.
    pub(crate) fn kept(&self) -> u64 {
        self.kept.into()
    }

    /// First offset that may not be sent.
    pub(crate) fn edge(&self) -> u64 {
        self.edge
    }

    /// Largest window advertised so far, in bytes. RFC 5961 §5: MAX.SND.WND.
    pub(crate) fn largest(&self) -> u64 {
        u64::from(self.largest)
    }

    /// The edge that the peer advertised last.
    pub(super) fn advertised(&self) -> u64 {
        self.advertised
    }

    /// Returns `true` if the peer last said that it has no room for data up to `end`, which is
    /// outstanding. A shared window counts from the DATA_ACK, so it says this only when it is 0.
    pub(super) fn refuses(&self, end: u64) -> bool {
        if self.shared { self.shut } else { self.advertised < end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(shared: bool, advertised: &[(u64, u64, u64)]) -> Vec<u64> {
        let mut send = SendWindow::default();
        let take = |&(seq, ack, window): &_| {
            send.update(Advertised { seq, ack, acknowledges: true, window, shared });
            send.edge()
        };
        advertised.iter().map(take).collect()
    }

    #[test]
    fn the_newest_segment_decides_and_an_older_one_says_nothing() {
        // RFC 9293 §3.10.7.4
        let advertised =
            [(1, 1, 5000), (2, 1001, 1000), (1, 1001, 9000), (2, 1001, 0), (3, 1001, 9)];
        assert_eq!(edges(false, &advertised), [5001, 2001, 2001, 1001, 1010]);
    }

    #[test]
    fn a_smaller_window_is_passed_over_unless_the_segment_acknowledges_or_brings_something() {
        let mut send = SendWindow::default();
        let mut una = 0;
        let mut kept = |seq, ack, window| {
            let acknowledges = ack > una;
            una = ack;
            send.update(Advertised { seq, ack, acknowledges, window, shared: true });
            send.kept()
        };
        assert_eq!([kept(1, 1, 5000), kept(1, 1, 4000)], [5000, 5000]);
        assert_eq!([kept(1, 2, 4000), kept(2, 2, 3000)], [4000, 3000]);
        assert_eq!([kept(2, 2, 6000), kept(2, 2, 0)], [6000, 0]);
    }

    #[test]
    fn a_shared_window_only_grows() {
        // RFC 8684 §3.3.5
        let advertised = [(1, 1, 5000), (1, 1001, 1000), (1, 1, 9000), (1, 1001, 0)];
        assert_eq!(edges(true, &advertised), [5001, 5001, 9001, 9001]);
    }
}
